"""Two transactions in every order of their statements, on a real PostgreSQL and on SQLite."""

from __future__ import annotations

from math import comb

import pytest

from simulator.live.interleavings import (
    LEVELS,
    SQLITE,
    Interleavings,
    interleavings,
    orders_of,
)
from simulator.live.problems import Problem
from simulator.live.transactions import CASES

LESSON = "lesson, "
FIRST, SECOND, THIRD = LEVELS
PLAIN, IMMEDIATE = SQLITE


@pytest.fixture(scope="module")
def found(postgresql: str) -> Interleavings:
    return interleavings(postgresql, [case for case in CASES if not case.name.startswith(LESSON)])


@pytest.fixture(scope="module")
def lesson(postgresql: str) -> Interleavings:
    cases = [case for case in CASES if case.name.startswith(LESSON)]
    return interleavings(postgresql, cases, [FIRST], sqlite=False)


def test_every_order_of_the_statements_is_run_once() -> None:
    assert sorted(orders_of(2, 2)) == ["AABB", "ABAB", "ABBA", "BAAB", "BABA", "BBAA"]
    assert len(set(orders_of(4, 4))) == comb(8, 4)


# In 2 of the 20 orders one client is through before the other begins: nothing can go wrong.
@pytest.mark.parametrize(
    ("case", "level", "outcomes"),
    [
        ("no lock", FIRST, {"right": 2, "over-refund": 18}),
        ("no lock", SECOND, {"right": 2, "retry": 18}),
        ("no lock", THIRD, {"right": 2, "retry": 18}),
        ("FOR SHARE", FIRST, {"right": 8, "deadlock": 12}),
        ("FOR UPDATE", FIRST, {"right": 20}),
        ("FOR UPDATE", SECOND, {"right": 2, "retry": 18}),
        ("guarded update", FIRST, {"right": 6}),
        ("guarded update", SECOND, {"right": 2, "retry": 4}),
        ("look-up, then insert", FIRST, {"right": 2, "doubled": 18}),
        ("look-up, then insert", SECOND, {"right": 2, "doubled": 18}),
        ("look-up, then insert", THIRD, {"right": 2, "retry": 18}),
        ("insert with UNIQUE", FIRST, {"right": 20}),
        ("insert with UNIQUE", SECOND, {"right": 20}),
        ("ON CONFLICT", FIRST, {"right": 20}),
        ("ON CONFLICT", SECOND, {"right": 2, "retry": 18}),
        ("no lock", PLAIN, {"right": 2, "retry": 18}),
        ("no lock", IMMEDIATE, {"right": 20}),
        ("look-up, then insert", PLAIN, {"right": 2, "retry": 18}),
        ("insert with UNIQUE", PLAIN, {"right": 20}),
    ],
)
def test_what_becomes_of_each_way_on_each_level(
    found: Interleavings, case: str, level: str, outcomes: dict[str, int]
) -> None:
    assert dict(found.outcomes[case, level]) == outcomes


@pytest.mark.parametrize("case", [case.name for case in CASES if not case.name.startswith(LESSON)])
def test_serializable_does_it_never_twice(found: Interleavings, case: str) -> None:
    assert set(found.outcomes[case, THIRD]) <= {"right", "retry", "deadlock"}


def test_a_client_that_has_to_wait_is_noticed(found: Interleavings) -> None:
    # FOR UPDATE: in all orders but the two in which one is through before the other begins.
    assert found.waited["FOR UPDATE", FIRST] == 18
    assert found.waited["look-up, then insert", FIRST] == 0


def test_the_block_of_section_7_fails_on_its_own_table(lesson: Interleavings) -> None:
    assert dict(lesson.outcomes["lesson, as published", FIRST]) == {"fails": comb(8, 4)}
    text = lesson.example("lesson, as published", FIRST, "fails")
    assert "23502" in text, "NOT NULL"


def test_with_its_columns_filled_in_it_records_a_success_that_was_none(
    lesson: Interleavings,
) -> None:
    outcomes = dict(lesson.outcomes["lesson, columns filled in", FIRST])
    assert outcomes == {"false success": comb(8, 4)}


def test_repaired_it_is_right_in_every_order(lesson: Interleavings) -> None:
    assert dict(lesson.outcomes["lesson, repaired", FIRST]) == {"right": comb(8, 4)}


def test_an_example_shows_the_statements_and_what_they_brought(found: Interleavings) -> None:
    text = found.example("no lock", FIRST, "over-refund")
    assert text.count("-> 500") == 2, "both have seen the whole balance"
    assert text.endswith("done 2 times: over-refund")
    with pytest.raises(ValueError, match="No order of 'FOR UPDATE'"):
        found.example("FOR UPDATE", FIRST, "over-refund")


def test_the_table_has_a_row_for_each_case_and_the_frame_the_same_counts(
    found: Interleavings,
) -> None:
    text = str(found)
    assert "2 right, 18 over-refund" in text
    assert "PostgreSQL 1" in text
    frame = found.frame
    assert frame.query("case == 'no lock' and level == 'SERIALIZABLE'")["orders"].sum() == 20


def test_a_database_that_cannot_be_used_is_a_sentence() -> None:
    with pytest.raises(Problem, match=r"cannot be used for the interleavings: .*"):
        interleavings("postgresql://nobody@127.0.0.1:9/none", sqlite=False)
