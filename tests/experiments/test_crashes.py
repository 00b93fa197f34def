"""The crash table: every cell is a history."""

from __future__ import annotations

import pytest

from simulator import Scenario, designs, replay
from simulator.cli.words import FAULT
from simulator.experiments.crashes import (
    NOT_TAKEN,
    OUTCOMES,
    crash_grid,
    crash_table,
    outcome_of,
)
from simulator.experiments.verdict import INVARIANTS


@pytest.fixture(scope="module")
def table():
    return crash_table()


@pytest.mark.parametrize(
    ("design", "step", "fault", "when", "outcome"),
    [
        ("NAIVE", "provider.refund", "crash", "before_send", "right"),
        ("NAIVE", "provider.refund", "crash", "after_send", "doubled"),
        ("NAIVE", "claim", "crash", "after", NOT_TAKEN),
        ("MEMORY_RECORD", "finish", "crash", "before", "doubled"),
        ("MEMORY_RECORD", "begin", "pause", "after", "falsely told"),
        ("DURABLE_RECORD", "begin", "crash", "after", "lost"),
        ("RESERVED", "provider.refund", "crash", "after_answer", "stuck"),
        ("PUBLISH_AFTER_COMMIT", "broker.publish", "crash", "before_send", "lost"),
        ("PUBLISH_AFTER_COMMIT", "broker.publish", "crash", "after_send", "right"),
        ("OUTBOX", "claim", "crash", "after", "untold"),
        ("OUTBOX", "provider.refund", "pause", "after_send", "untold"),
    ],
)
def test_known_points_have_known_outcomes(table, design, step, fault, when, outcome) -> None:
    assert crash_grid(table).loc[(step, fault, when), design] == outcome


def test_safe_is_right_at_every_point_of_its_way(table) -> None:
    safe = table[(table["design"] == "SAFE") & (table["outcome"] != NOT_TAKEN)]
    assert set(safe["outcome"]) == {"right"}
    steps = {(step.what, step.call) for step in replay(designs.SAFE).steps}
    assert len(safe) == sum(6 if call else 4 for _, call in steps) > 30


def test_every_cell_is_what_its_history_comes_to(table) -> None:
    for cell in table[table["outcome"] != NOT_TAKEN].itertuples():
        fault = FAULT.convert(cell.history, None, None)
        assert (fault.kind, fault.when) == (cell.fault, cell.when)
        assert fault.step.split(":")[1] == cell.step
        verdict = replay(getattr(designs, cell.design), faults=[fault]).verdict
        assert (outcome_of(verdict), cell.broken) == (cell.outcome, str(verdict) * bool(verdict))


def test_a_pause_outlasts_every_lease(table) -> None:
    pauses = table[(table["fault"] == "pause") & (table["outcome"] != NOT_TAKEN)]
    seconds = [FAULT.convert(history, None, None).seconds for history in pauses["history"]]
    assert min(seconds) > 30.0


def test_points_are_in_the_order_of_the_way_with_the_steps_of_all_designs(table) -> None:
    order = list(dict.fromkeys(table["step"]))
    known = [
        "tool.issue_refund",
        "begin",
        "broker.publish",
        "start",
        "claim",
        "provider.refund",
        "finish",
        "customer.notify",
        "mark_told",
    ]
    assert [step for step in order if step in known] == known


def test_the_steps_of_safe_are_there_even_if_safe_is_not_tried() -> None:
    table = crash_table([designs.NAIVE])
    assert set(table["design"]) == {"NAIVE"}
    safe, naive = ({step.what for step in replay(d).steps} for d in (designs.SAFE, designs.NAIVE))
    assert {*table[table["outcome"] == NOT_TAKEN]["step"]} == safe - naive >= {"claim"}


def test_of_a_step_that_is_taken_twice_the_worse_time_counts() -> None:
    scenario = Scenario.new_thought()
    grid = crash_grid(crash_table([designs.MEMORY_RECORD], scenario))
    assert grid.loc[("begin", "crash", "after"), "MEMORY_RECORD"] == "doubled"
    found = [
        outcome_of(
            replay(
                designs.MEMORY_RECORD, scenario, [FAULT.convert(f"crash:begin:{nth}", None, None)]
            ).verdict
        )
        for nth in (1, 2)
    ]
    assert found == ["right", "doubled"]


def test_the_table_is_the_same_on_two_processes(table) -> None:
    assert crash_table(n_jobs=2).equals(table)


def test_money_that_left_is_the_worst_and_every_invariant_has_a_word() -> None:
    assert outcome_of([]) == "right"
    assert outcome_of(["books_differ", "stuck", "lost_refund", "double_refund"]) == "doubled"
    assert outcome_of(["stuck", "unapproved_refund"]) == "not allowed"
    assert outcome_of(["books_differ", "untold", "false_answer"]) == "falsely told"
    assert outcome_of(["audit_gap"]) == outcome_of(["illegal_transition"]) == "other"
    assert {outcome_of([name]) for name in INVARIANTS} == {*OUTCOMES} - {"right"}
    assert OUTCOMES == (
        "doubled",
        "overpaid",
        "not allowed",
        "lost",
        "stuck",
        "falsely told",
        "untold",
        "books differ",
        "other",
        "right",
    )


def test_designs_stand_in_the_order_given(table) -> None:
    assert list(crash_grid(table).columns) == [design.name for design in designs.LADDER]
    assert not crash_grid(table).isna().any(axis=None)


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ([], "no design to try"),
        ([designs.SAFE, designs.SAFE], "two designs are called 'SAFE'"),
        (5, "designs=5: give a list"),
        (["SAFE"], "'SAFE' is not a design"),
    ],
)
def test_designs_that_make_no_table_are_refused(chosen, sentence) -> None:
    with pytest.raises(ValueError, match=sentence):
        crash_table(chosen)


def test_a_table_may_be_of_one_design_and_of_one_with_a_name_of_your_own() -> None:
    assert set(crash_table(designs.ONE_SHOT)["design"]) == {"ONE_SHOT"}
    assert set(crash_table({"mine": designs.ONE_SHOT})["design"]) == {"mine"}
