"""Every exercise: its stub, its solution, and the wrong answers that people give.

`pytest tests/lessons/test_kill_table.py -s -k prints` prints the table.
"""

from __future__ import annotations

import linecache
import runpy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator.lessons import check, hint
from simulator.lessons.build import ROOT
from simulator.lessons.checking import Outcome
from simulator.lessons.course import lessons
from simulator.lessons.source import read

SECONDS = 2.0
"""What a check may take; a loop is waited for, and every other answer comes sooner."""

Row = tuple[str, str, str, str]
"""exercise, code, outcome, words of the message"""


def exercises() -> Iterator[tuple[str, str]]:
    for lesson in lessons():
        for exercise in lesson.exercises:
            yield lesson.file, exercise.name


def wrong_answers() -> list[Row]:
    rows: list[Row] = []
    for path in sorted((Path(__file__).parent / "kill_table").glob("lesson_*.py")):
        for name, answers in runpy.run_path(str(path))["WRONG"].items():
            rows += [(name, *answer) for answer in answers]
    return rows


def cell(file: str, name: str, side: Any) -> str:
    text = (ROOT / "solutions" / f"{file}.py").read_text(encoding="utf-8")
    (found,) = (cell for cell in read(text).cells if cell.id == name)
    return found.code(side)


def checked(name: str, code: str) -> Outcome:
    """Check an answer as a notebook would: its lines are found by its file's name."""
    file = f"<cell {abs(hash(code))}>"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    # A lesson's cell ends with its check; here it must not be the one that counts.
    names: dict[str, Any] = {"check": lambda *answer: None}
    exec(compile(code, file, "exec"), names)
    return check(name, names[name])


@pytest.fixture(autouse=True, scope="module")
def warm() -> None:
    """The first check imports Hypothesis and matplotlib; a student waits for that once."""
    checked("total_paid", "def total_paid(payments):\n    return sum(payments)")
    checked(
        "overpaid",
        "def overpaid(paid, owed):\n"
        "    return sum(max(0, cents - owed.get(refund, 0)) for refund, cents in paid)",
    )


@pytest.mark.parametrize(("file", "name"), list(exercises()))
def test_a_stub_is_not_attempted_yet(file: str, name: str) -> None:
    assert checked(name, cell(file, name, "student")).kind == "not attempted"


@pytest.mark.parametrize(("file", "name"), list(exercises()))
def test_the_solution_is_right(file: str, name: str) -> None:
    outcome = checked(name, cell(file, name, "solution"))
    assert outcome.kind == "right", str(outcome)


@pytest.mark.parametrize(("file", "name"), list(exercises()))
def test_an_exercise_has_at_least_five_wrong_answers_and_three_hints(file: str, name: str) -> None:
    assert sum(row[0] == name for row in wrong_answers()) >= 5
    shown = str([hint(name) for _ in range(3)][-1])
    assert all(f"{number}. " in shown for number in (1, 2, 3))


@pytest.mark.parametrize("row", wrong_answers(), ids=lambda row: f"{row[0]}: {row[3][:40]}")
def test_a_wrong_answer_gets_the_words_meant_for_it(row: Row) -> None:
    name, code, kind, words = row
    began = time.monotonic()
    outcome = checked(name, code)
    took = time.monotonic() - began
    told = str(outcome)
    assert (outcome.kind, words in told) == (kind, True), told
    assert "Traceback" not in told
    assert f'hint("{name}")' in told
    assert took < SECONDS, f"{took:.2f} s"


def test_an_answer_that_differs_in_a_wrong_way_is_explained_in_full() -> None:
    name, code, _, _ = next(row for row in wrong_answers() if row[0] == "overpaid")
    told = str(checked(name, code))
    for part in ("I called `overpaid(", "It returned `", "expected `", "Why it costs money: "):
        assert part in told


def test_a_right_answer_that_changes_its_arguments_hears_of_it() -> None:
    changes = (
        "def total_paid(payments):\n"
        "    total = 0\n"
        "    while payments:\n"
        "        total += payments.pop()\n"
        "    return total"
    )
    outcome = checked("total_paid", changes)
    assert outcome.kind == "right"
    assert "it also changes `payments`" in str(outcome)
    tidy = checked("total_paid", "def total_paid(payments):\n    return sum(payments)")
    assert "also changes" not in str(tidy)


def test_an_answer_that_is_right_only_until_it_is_asked_again_is_not_right() -> None:
    calls: list[list[int]] = []

    def total_paid(payments: list[int]) -> int:
        calls.append(payments)
        return 0 if payments == [50_000] and len(calls) == last else sum(payments)

    last = -1
    assert check("total_paid", total_paid).kind == "right"
    last = len(calls)  # the same call in the next check, which goes the same way
    calls.clear()
    outcome = check("total_paid", total_paid)
    assert outcome.kind == "wrong"
    assert "keep nothing outside the function" in str(outcome)


def test_a_wrong_answer_is_answered_the_same_every_time() -> None:
    for name, code, *_ in wrong_answers()[::4]:
        assert str(checked(name, code)) == str(checked(name, code))


def test_the_kill_table_prints(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{'exercise':<20}{'outcome':<10}{'s':>5}  words of the message"]
    for name, code, _, words in wrong_answers():
        began = time.monotonic()
        outcome = checked(name, code)
        took = time.monotonic() - began
        lines.append(f"{name:<20}{outcome.kind:<10}{took:5.2f}  {words[:60]}")
    with capsys.disabled():
        print("\n" + "\n".join(lines))
    assert len(lines) > 5 * len(list(exercises()))
