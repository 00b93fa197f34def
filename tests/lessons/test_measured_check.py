"""Checks of answers that are tried out and measured, and what a check says of luck and errors."""

from __future__ import annotations

import dataclasses
import random
import time
from typing import Any

import pytest

from simulator.lessons import check, checking, course, lesson_01
from simulator.lessons.course import Judgement, MeasuredExercise

FAST = MeasuredExercise(
    name="fast_enough",
    task="be below ten",
    judge=lambda answer: (
        None if answer == [...] else Judgement(answer < 10, (f"I measured {answer}.",))
    ),
    costs="slow is dear.",
    hints=("One.", "Two.", "Three."),
)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exercise, as if a lesson had it."""
    monkeypatch.setattr(course, "exercise", lambda name: FAST)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (..., "not attempted", "It should be below ten."),
        ([...], "not attempted", "It should be below ten."),
        (9, "right", "I measured 9."),
        (12, "wrong", "Why it costs money: slow is dear."),
        ("ten", "raised", "'<' not supported between instances of 'str' and 'int'"),
    ],
)
def test_an_answer_is_measured_and_has_one_of_four_outcomes(
    answer: Any, kind: str, words: str
) -> None:
    outcome = check("fast_enough", answer)
    assert (outcome.kind, words in str(outcome)) == (kind, True), str(outcome)


def test_a_measurement_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(answer: Any) -> Judgement:
        time.sleep(30)
        return Judgement(True, ())

    monkeypatch.setattr(course, "exercise", lambda name: dataclasses.replace(FAST, judge=sleep))
    monkeypatch.setattr(checking, "ALL_SECONDS", 0.2)
    outcome = check("fast_enough", 1)
    assert outcome.kind == "wrong"
    assert "did not come to an end" in str(outcome)


def test_an_answer_that_depends_on_chance_is_told_so() -> None:
    told = str(check("overpaid", lambda paid, owed: random.randrange(1, 10**9)))
    assert "for the very same input, another" in told


def test_an_error_that_people_run_into_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    known = dataclasses.replace(lesson_01.OVERPAID, raised={"KeyError": "The dict lacks it."})
    monkeypatch.setattr(course, "exercise", lambda name: known)
    outcome = check("overpaid", lambda paid, owed: sum(owed[name] for name, _ in paid))
    assert outcome.kind == "raised"
    assert "The dict lacks it." in str(outcome)
