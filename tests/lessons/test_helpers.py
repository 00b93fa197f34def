"""Predictions, questions, hints and progress, as a student calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simulator import designs, faults, replay, simulate
from simulator.lessons import check, hint, predict, progress, question, show
from simulator.lessons.cards import Card, code
from simulator.lessons.course import lessons
from simulator.lessons.logbook import load, next_lesson, record
from simulator.lessons.widgets import number_from


def test_a_prediction_is_recorded_and_set_beside_the_result() -> None:
    assert "you predict: c, $1,000" in str(predict.choice("our-books", "c"))
    assert load()["predictions"] == {"our-books": "c"}
    told = str(predict.reveal("our-books", 500))
    assert "You predicted c, $1,000." in told
    assert "The answer: b, $500." in told
    assert "That is what left the shop" in told, "the words meant for this wrong prediction"


def test_a_right_prediction_is_said_to_be_right() -> None:
    predict.choice("our-books", "B ")
    assert "You predicted b, and so it was." in str(predict.reveal("our-books", 500))


def test_without_a_prediction_the_result_is_shown_and_says_so() -> None:
    told = str(predict.reveal("our-books", 500))
    assert "The answer: b, $500." in told
    assert "You made no prediction." in told


def test_a_prediction_of_an_earlier_session_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    predict.choice("our-books", "b")
    monkeypatch.setattr(predict, "_said", {})
    assert "You predicted b" in str(predict.reveal("our-books", 500))


def test_what_is_said_after_the_result_is_no_prediction() -> None:
    predict.reveal("our-books", 500)
    assert "seen the result" in str(predict.choice("our-books", "c"))
    assert load()["predictions"] == {}


@pytest.mark.parametrize(
    ("said", "says"),
    [
        (10.1, "Exactly."),
        (10, "That is close."),
        (40.4, "4 times too high"),
        (2, "5 times too low"),
        (0, "apart"),
    ],
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
    assert "Choose one of a, b, c." in str(predict.choice("our-books", "e"))


def test_without_a_page_the_question_is_asked_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert predict.choice("our-books") is None
    printed = capsys.readouterr().out
    assert "c) $1,000" in printed
    assert 'predict.choice("our-books", "b")' in printed


def test_a_choice_without_a_right_answer_gets_its_own_words() -> None:
    predict.choice("at-the-timeout", "d")
    assert "Mira hears nothing more" in str(predict.reveal("at-the-timeout", None))


def test_a_result_that_no_option_stands_for_is_the_authors_mistake() -> None:
    with pytest.raises(ValueError, match="No option of 'our-books' stands for 7"):
        predict.reveal("our-books", 7)


def test_a_mistyped_name_is_answered_with_the_nearest() -> None:
    assert "did you mean 'overpaid'" in str(check("overpayed", lambda: 1))
    assert "no exercise called 'overpayed'" in str(hint("overpayed"))
    assert "did you mean 'who-runs-a-tool'" in str(question("who-runs-tools", "b"))
    for card in (predict.choice("our-book"), predict.reveal("our-book", 500)):
        assert "did you mean 'our-books'" in str(card)
    assert "is asked with `predict.number`" in str(predict.choice("rate"))


def test_a_name_that_is_no_text_is_asked_for_in_quotes() -> None:
    def total_paid(payments: list[int]) -> int:
        return sum(payments)

    told = str(check(total_paid, "total_paid"))
    assert "Give the name first, in quotes" in told
    assert '`check("total_paid", total_paid)`' in told
    assert "comes first, in quotes" in str(hint(total_paid))  # type: ignore[arg-type]
    assert "comes first, in quotes" in str(predict.choice({}))  # type: ignore[arg-type]


def test_a_number_that_no_run_gives_is_the_lessons_own() -> None:
    predict.number("rare", 5000)
    assert "Exactly." in str(predict.reveal("rare"))
    with pytest.raises(ValueError, match="What came out of 'rate'"):
        predict.reveal("rate")


def test_a_number_in_words_is_asked_for_in_digits() -> None:
    assert "Write it in plain digits, like 5000." in str(predict.number("rate", "many"))
    assert "plain digits" not in str(predict.number("rate", 101))
    assert "you predict: 10 of 100" in str(predict.number("rate", "10 %"))


def test_a_number_is_asked_for_in_its_unit_once(capsys: pytest.CaptureFixture[str]) -> None:
    predict.number("rate")
    printed = capsys.readouterr().out
    assert "Give a number from 0 to 100 (of 100)." in printed
    assert "of of" not in printed


def test_an_estimate_is_a_line_and_not_a_page() -> None:
    found = simulate(designs.NAIVE, faults.Rates(lose_response=1.0), refunds=3)
    assert repr(found) == "<Estimate: NAIVE, 3 refunds, 0 right>"


def test_show_says_what_it_takes() -> None:
    told = str(show(0.1))
    assert "takes a run" in told
    assert "not `0.1`" in told


def test_a_fault_that_never_struck_is_said_below_the_picture() -> None:
    fault = faults.lose_response("backend-1:provider.refund", 2)
    run = replay(designs.NAIVE, faults=[fault])
    assert f"`{fault}` never struck" in str(show(run))
    assert "never struck" not in str(show(replay(designs.NAIVE)))


def test_code_keeps_its_stars_and_backticks() -> None:
    line = "return (1 - p ** n) / (2 ** `n`)"
    card = Card("raised", "It", (f"Line 2, {code(line)}, **stopped with `E` here**.",))
    assert str(card).endswith(f"Line 2, `{line}`, stopped with `E` here.")
    html = card._repr_html_()
    assert f"<code>{line}</code>" in html
    assert "<b>stopped with <code>E</code> here</b>" in html


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


@pytest.mark.parametrize("content", [b'{"exercises": {"total', b"[]", b"\xff\xfe\x00 no text"])
def test_a_damaged_file_is_kept_aside_and_a_new_one_begun(
    own_progress: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    own_progress.mkdir()
    (own_progress / "progress.json").write_bytes(content)
    assert "0 of 1" in str(progress())
    said = "file was damaged; it is kept as progress.damaged.json, and this begins anew.\n"
    assert capsys.readouterr().out.count(said) == 1
    record("questions", "q", "a")
    assert (own_progress / "progress.damaged.json").exists()
    assert load()["questions"] == {"q": "a"}


@pytest.mark.parametrize("content", ["[]", "3", '{"exercises": [1]}', '{"other": {}}', "null"])
def test_a_file_of_another_shape_breaks_nothing(own_progress: Path, content: str) -> None:
    own_progress.mkdir()
    (own_progress / "progress.json").write_text(content, encoding="utf-8")
    assert "0 of 1" in str(progress())
    predict.choice("our-books", "b")
    assert load()["predictions"] == {"our-books": "b"}


def test_where_nothing_can_be_written_the_lesson_goes_on(own_progress: Path) -> None:
    own_progress.write_text("a file where the folder should be", encoding="utf-8")
    predict.choice("our-books", "b")
    assert "You predicted b" in str(predict.reveal("our-books", 500))
    assert check("total_paid", sum).kind == "right"


def test_the_file_is_replaced_in_one_step_and_leaves_no_parts(own_progress: Path) -> None:
    for answer in "abc":
        predict.choice("our-books", answer)
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
        ("10 %", 10),
        ("5 000", 5000),
        ("5\u202f000 $", 5000),
        ("1,234.5", 1234.5),
    ],
)
def test_a_number_is_read_as_people_write_it(text: str, means: float) -> None:
    assert number_from(text) == means


def test_what_is_no_number_is_none() -> None:
    assert number_from("many") != number_from("many"), "NaN"
