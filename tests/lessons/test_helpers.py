"""Predictions, questions, hints and progress, as a student calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simulator.lessons import check, hint, predict, progress, question
from simulator.lessons.course import UnknownNameError, lessons
from simulator.lessons.logbook import load, next_lesson, record
from simulator.lessons.widgets import number_from


def test_a_prediction_is_recorded_and_set_beside_the_result() -> None:
    assert "you predict: b, $500" in str(predict.choice("paid", "b"))
    assert load()["predictions"] == {"paid": "b"}
    told = str(predict.reveal("paid", 1000))
    assert "You predicted b, $500." in told
    assert "The answer: c, $1,000." in told
    assert "there is none" in told, "the words meant for this wrong prediction"


def test_a_right_prediction_is_said_to_be_right() -> None:
    predict.choice("paid", "C ")
    assert "You predicted c, and so it was." in str(predict.reveal("paid", 1000))


def test_without_a_prediction_the_result_is_shown_and_says_so() -> None:
    told = str(predict.reveal("paid", 1000))
    assert "The answer: c, $1,000." in told
    assert "You made no prediction." in told


def test_a_prediction_of_an_earlier_session_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    predict.choice("paid", "b")
    monkeypatch.setattr(predict, "_said", {})
    assert "You predicted b" in str(predict.reveal("paid", 1000))


def test_what_is_said_after_the_result_is_no_prediction() -> None:
    predict.reveal("paid", 1000)
    assert "seen the result" in str(predict.choice("paid", "c"))
    assert load()["predictions"] == {}


@pytest.mark.parametrize(
    ("said", "says"),
    [(10, "That is close."), (40, "4.0 times too high"), (2, "5.0 times too low"), (0, "apart")],
)
def test_a_number_is_compared_with_the_result(said: float, says: str) -> None:
    predict.number("rate", said)
    assert says in str(predict.reveal("rate", 10.1))


@pytest.mark.parametrize("said", [101, -1, "many", float("nan"), None])
def test_a_number_that_cannot_be_is_refused_in_a_sentence(said: float) -> None:
    card = predict.number("rate", said)
    if said is not None:
        assert "Give a number from 0 to 100" in str(card)
    assert load()["predictions"] == {}


def test_an_option_that_does_not_exist_is_answered_with_those_that_do() -> None:
    assert "Choose one of a, b, c, d." in str(predict.choice("paid", "e"))


def test_without_a_page_the_question_is_asked_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert predict.choice("paid") is None
    printed = capsys.readouterr().out
    assert "c) $1,000" in printed
    assert 'predict.choice("paid", "b")' in printed


def test_a_choice_without_a_right_answer_gets_its_own_words() -> None:
    predict.choice("at-the-timeout", "d")
    assert "Mira hears nothing more" in str(predict.reveal("at-the-timeout", None))


def test_a_result_that_no_option_stands_for_is_the_authors_mistake() -> None:
    with pytest.raises(ValueError, match="No option of 'paid' stands for 7"):
        predict.reveal("paid", 7)


def test_a_mistyped_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'overpaid'"):
        check("overpayed", lambda: 1)


def test_a_question_says_why_for_right_and_wrong_answers() -> None:
    right, wrong = question("who-runs-a-tool", "b"), question("who-runs-a-tool", "a")
    assert "Right. The model proposes" in str(right)
    assert "Not this one. A model only writes text" in str(wrong)


def test_hints_come_one_at_a_time_and_the_last_stays() -> None:
    shown = [str(hint("overpaid")) for _ in range(4)]
    assert [text.split("\n")[0] for text in shown] == [
        "→ Hint 1 of 3",
        "→ Hint 2 of 3",
        "→ Hint 3 of 3",
        "→ Hint 3 of 3",
    ]
    assert "3." not in shown[0]
    assert shown[2] == shown[3]


def test_progress_counts_what_is_right_and_leads_to_the_next_lesson() -> None:
    assert next_lesson().number == "00"
    check("total_paid", lambda payments: 0)
    assert next_lesson().number == "00"
    check("total_paid", sum)
    assert next_lesson().number == "01"
    assert "✓ 00 start here: 1 of 1 exercises right" in str(progress())
    check("total_paid", lambda payments: 0)
    assert "1 of 1" in str(progress()), "what was right once stays done"


def test_a_damaged_file_is_kept_aside_and_a_new_one_begun(own_progress: Path) -> None:
    own_progress.mkdir()
    (own_progress / "progress.json").write_text('{"exercises": {"total', encoding="utf-8")
    assert "0 of 1" in str(progress())
    record("questions", "q", "a")
    assert (own_progress / "progress.damaged.json").exists()
    assert load()["questions"] == {"q": "a"}


@pytest.mark.parametrize("content", ["[]", "3", '{"exercises": [1]}', '{"other": {}}', "null"])
def test_a_file_of_another_shape_breaks_nothing(own_progress: Path, content: str) -> None:
    own_progress.mkdir()
    (own_progress / "progress.json").write_text(content, encoding="utf-8")
    assert "0 of 1" in str(progress())
    predict.choice("paid", "b")
    assert load()["predictions"] == {"paid": "b"}


def test_where_nothing_can_be_written_the_lesson_goes_on(own_progress: Path) -> None:
    own_progress.write_text("a file where the folder should be", encoding="utf-8")
    predict.choice("paid", "b")
    assert "You predicted b" in str(predict.reveal("paid", 1000))
    assert check("total_paid", sum).kind == "right"


def test_the_file_is_replaced_in_one_step_and_leaves_no_parts(own_progress: Path) -> None:
    for answer in "abc":
        predict.choice("paid", answer)
    assert [path.name for path in own_progress.iterdir()] == ["progress.json"]
    assert json.loads((own_progress / "progress.json").read_text("utf-8"))


def test_names_are_unique_in_the_whole_course() -> None:
    names = [
        part.name
        for lesson in lessons()
        for part in (*lesson.predictions, *lesson.questions, *lesson.exercises)
    ]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("12", 12),
        ("12.5", 12.5),
        ("12,5", 12.5),
        ("$5,000", 5000),
        ("20 %", 20),
        ("1,234.5", 1234.5),
    ],
)
def test_a_number_is_read_as_people_write_it(text: str, means: float) -> None:
    assert number_from(text) == means


def test_what_is_no_number_is_none() -> None:
    assert number_from("many") != number_from("many"), "NaN"
