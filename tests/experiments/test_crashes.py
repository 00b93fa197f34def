"""The crash table: every cell is a history."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import simulator.service
from simulator import Scenario, designs, faults, replay
from simulator.cli.words import FAULT
from simulator.experiments.crashes import (
    NOT_TAKEN,
    OUTCOMES,
    SETTINGS,
    Prepared,
    alike,
    crash_grid,
    crash_table,
    outcome_of,
)
from simulator.experiments.replay import store
from simulator.experiments.verdict import INVARIANTS
from simulator.service.tools import TOOLS
from simulator.world import approver, reports
from simulator.world.faults import Plan
from simulator.world.scenario import ready_scenarios
from simulator.world.world import World

BY_NAME = {setting.name: setting for setting in SETTINGS}
ONE, OUTAGE, STORM, CONSENT, OFF, OTHERS = BY_NAME


@pytest.fixture(scope="module")
def table():
    return crash_table()


def faults_of(history: str) -> list[faults.Fault]:
    return [FAULT.convert(each, None, None) for each in re.split(r", (?=[a-z_]+\()", history)]


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
    assert crash_grid(table).loc[(ONE, step, fault, when), design] == outcome


@pytest.mark.parametrize(
    ("scenario", "design", "step", "fault", "when", "outcome"),
    [
        (OUTAGE, "OUTBOX", "finish", "crash", "before", "lost"),
        (OUTAGE, "NAIVE", "provider.find", "crash", "before_send", NOT_TAKEN),
        (STORM, "NAIVE", "note_report", "crash", "after", "doubled"),
        (STORM, "RESERVED", "note_report", "crash", "before", "stuck"),
        (STORM, "OUTBOX", "note_report", "crash", "before", "right"),
        (CONSENT, "NAIVE", "begin", "pause", "after", "doubled"),
        (CONSENT, "OUTBOX", "claim", "crash", "after", "not allowed"),
        (OTHERS, "SAFE", "refuse", "crash", "after", "right"),
        (OTHERS, "OUTBOX", "begin_action", "crash", "before", "not allowed"),
    ],
)
def test_what_a_crash_does_elsewhere_is_known_too(
    table, scenario, design, step, fault, when, outcome
) -> None:
    assert crash_grid(table).loc[(scenario, step, fault, when), design] == outcome


def test_safe_is_right_at_every_point_of_its_way(table) -> None:
    safe = table[(table["design"] == "SAFE") & (table["outcome"] != NOT_TAKEN)]
    assert set(safe["outcome"]) == {"right"}
    for name, rows in safe.groupby("scenario"):
        run = replay(designs.SAFE, BY_NAME[name].scenario, BY_NAME[name].faults)
        begins = max((place for place, _ in run.struck), default=-1) + 1
        steps = {(s.what, s.call) for s in run.steps[begins:] if s.process != "provider"}
        assert len(rows) == sum(6 if call else 4 for _, call in steps) > 20


# --- Every step of SAFE is in it -------------------------------------------------------------

ELSEWHERE = {
    "look_up": "other records look first, and write in a second transaction",
    "inside": "other dispatchers call the provider inside the transaction",
    "write_audit": "other audits write after the commit",
    "broker.publish": "other dispatchers have a broker",
    "start": "other dispatchers have consumers",
    "see": "other outboxes look first, and claim in a second transaction",
    "mark": "other receivers mark a report before they take it",
    "tool.get_order_status": "a read: no scenario reads, and nothing is done twice or lost",
    "order_status": "the same",
    "webhook.report": "the provider's own call: it has crashes of its own",
}
"""What the code can take and the table does not have, with the reason."""


def steps_in_the_code() -> set[str]:
    """The names of all transactions and calls that the service, people and agents begin."""
    service = Path(simulator.service.__file__).parent
    files = [*service.glob("*.py"), Path(approver.__file__), Path(reports.__file__)]
    found = {f"tool.{name}" for name in TOOLS}
    for file in files:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            place = {"once": 2, "rt.transact": 0, "rt.call": 0, "rt.open": 0}.get(name)
            if place is None:
                continue
            step = node.args[place]
            either = [step.body, step.orelse] if isinstance(step, ast.IfExp) else [step]
            for name_of in either:
                named = isinstance(name_of, ast.Constant)
                found.add(str(name_of.value) if named else ast.unparse(name_of).split(".")[-1])
    return found - {"transaction"}  # what `once` is given


def test_every_transaction_and_call_that_the_code_can_take_is_there_or_has_a_reason(
    table,
) -> None:
    taken = table[(table["design"] == "SAFE") & (table["outcome"] != NOT_TAKEN)]
    there = set(taken["step"])
    assert there & ELSEWHERE.keys() == set()
    assert there | ELSEWHERE.keys() == steps_in_the_code()


def test_no_history_of_safe_in_a_ready_scenario_takes_another_step(table) -> None:
    taken = table[(table["design"] == "SAFE") & (table["outcome"] != NOT_TAKEN)]
    for make in ready_scenarios().values():
        steps = replay(designs.SAFE, make()).steps
        assert {s.what for s in steps if s.process != "provider"} <= set(taken["step"])


def work_of(setting: Prepared) -> set[str]:
    """The steps that SAFE takes, and the tasks that its worker finds in the outbox."""
    with store() as database:
        world = World(designs.SAFE, setting.scenario, Plan(setting.faults), 0, database, True)
        world.run()
        topics = {f"a row: {topic}" for (topic,) in world.database.rows("SELECT topic FROM outbox")}
        steps = {step.what for step in world.steps}
        world.dissolve()
    return topics | steps


def test_each_setting_has_something_that_those_before_it_do_not_have() -> None:
    known: set[str] = set()
    new = []
    for setting in SETTINGS:
        work = work_of(setting)
        new.append(work - known)
        known |= work
    assert new[1:] == [
        {"provider.find", "hand_over"},
        {"webhook.report", "note_report"},
        {"approval.decide", "decide", "expire", "a row: expire"},
        {"call_off"},
        {"begin_action", "refuse", "tool.cancel_orders", "tool.delete_profile"}
        | {"act", "a row: act"},
    ]


# --- What the cells are ----------------------------------------------------------------------


def test_every_cell_is_what_its_history_comes_to(table) -> None:
    for cell in table[table["outcome"] != NOT_TAKEN][::5].itertuples():
        setting = BY_NAME[cell.scenario]
        *before, fault = faults_of(cell.history)
        assert tuple(before) == setting.faults
        assert (fault.kind, fault.when) == (cell.fault, cell.when)
        assert fault.step.split(":")[1] == cell.step
        run = replay(getattr(designs, cell.design), setting.scenario, [*before, fault])
        assert run.struck[-1][1] == fault
        said = (outcome_of(run.verdict), str(run.verdict) * bool(run.verdict))
        assert said == (cell.outcome, cell.broken)


def test_beside_every_cell_stands_what_comes_without_the_crash(table) -> None:
    for (name, design), rows in table.groupby(["scenario", "design"]):
        setting = BY_NAME[name]
        run = replay(getattr(designs, design), setting.scenario, setting.faults)
        assert set(rows["without"]) == {outcome_of(run.verdict)}


def test_what_went_wrong_before_comes_before_the_crash(table) -> None:
    outage = table[(table["scenario"] == OUTAGE) & (table["outcome"] != NOT_TAKEN)]
    assert "begin" not in set(outage["step"])
    for cell in outage[outage["design"] == "SAFE"].itertuples():
        plan = faults_of(cell.history)
        run = replay(designs.SAFE, Scenario.one_refund(), plan)
        assert [fault for _, fault in run.struck] == plan


def test_a_design_that_the_faults_before_cannot_befall_is_not_tried() -> None:
    down = faults.database_down("claim", seconds=5.0)
    table = crash_table([designs.NAIVE, designs.SAFE], Prepared(Scenario.one_refund(), (down,)))
    naive, safe = (table[table["design"] == name] for name in ("NAIVE", "SAFE"))
    assert set(naive["outcome"]) == set(naive["without"]) == {NOT_TAKEN}
    assert "right" in set(safe["outcome"])
    assert set(table["scenario"]) == {"one_refund after database_down(claim, 5 s)"}


def test_a_pause_outlasts_every_lease(table) -> None:
    pauses = table[(table["fault"] == "pause") & (table["outcome"] != NOT_TAKEN)]
    seconds = [faults_of(history)[-1].seconds for history in pauses["history"]]
    assert min(seconds) > 30.0


def test_points_are_in_the_order_of_the_way_with_the_steps_of_all_designs(table) -> None:
    order = list(dict.fromkeys(table[table["scenario"] == ONE]["step"]))
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
    outage = table[table["scenario"] == OUTAGE]["step"].drop_duplicates()
    known = ["finish", "claim", "provider.refund", "provider.find", "hand_over"]
    assert list(outage) == known


def test_the_steps_of_safe_are_there_even_if_safe_is_not_tried() -> None:
    table = crash_table([designs.NAIVE], Scenario.one_refund())
    assert set(table["design"]) == {"NAIVE"}
    safe, naive = ({step.what for step in replay(d).steps} for d in (designs.SAFE, designs.NAIVE))
    assert {*table[table["outcome"] == NOT_TAKEN]["step"]} == safe - naive >= {"claim"}


def test_of_a_step_that_is_taken_twice_the_worse_time_counts() -> None:
    scenario = Scenario.new_thought()
    grid = crash_grid(crash_table([designs.MEMORY_RECORD], scenario))
    assert grid.loc[("new_thought", "begin", "crash", "after"), "MEMORY_RECORD"] == "doubled"
    found = [
        outcome_of(
            replay(
                designs.MEMORY_RECORD, scenario, [FAULT.convert(f"crash:begin:{nth}", None, None)]
            ).verdict
        )
        for nth in (1, 2)
    ]
    assert found == ["right", "doubled"]


def test_scenarios_are_tried_in_the_order_given_and_on_two_processes_alike(table) -> None:
    two = [BY_NAME[CONSENT], BY_NAME[ONE].scenario]
    again = crash_table([designs.SAFE, designs.NAIVE], two, n_jobs=2)
    assert list(dict.fromkeys(again["scenario"])) == [CONSENT, ONE]
    for name in (ONE, CONSENT):
        here, there = (
            whole[(whole["scenario"] == name) & (whole["design"] == "SAFE")]
            for whole in (again, table)
        )
        here = here[here["outcome"] != NOT_TAKEN].reset_index(drop=True)
        assert here.equals(there[there["outcome"] != NOT_TAKEN].reset_index(drop=True))


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


def test_a_step_that_an_earlier_scenario_has_is_tried_again_in_a_later_one(table) -> None:
    grid = crash_grid(table)
    assert grid.loc[(STORM, "begin", "crash", "after"), "SAFE"] == "right"
    assert grid.loc[(CONSENT, "begin", "crash", "after"), "SAFE"] == "right"


def test_places_at_which_all_fare_alike_are_one_row(table) -> None:
    chosen = table[(table["scenario"] == ONE) & table["design"].isin(["NAIVE", "SAFE"])]
    rows = alike(crash_grid(chosen))
    assert sum(len(row.when) for row in rows) == len(crash_grid(chosen))
    refund = [row for row in rows if (row.step, row.fault) == ("provider.refund", "crash")]
    assert [(row.when, row.everywhere, row.words) for row in refund] == [
        (("before_send",), False, ("right", "right")),
        (("after_send", "after_answer"), False, ("doubled", "right")),
    ]
    told = [row for row in rows if (row.step, row.fault) == ("mark_told", "pause")]
    assert [(row.when, row.everywhere) for row in told] == [(("before", "after"), True)]


@pytest.mark.parametrize(
    ("chosen", "scenario", "sentence"),
    [
        ([], None, "no design to try"),
        ([designs.SAFE, designs.SAFE], None, "two designs are called 'SAFE'"),
        (5, None, "designs=5: give a list"),
        (["SAFE"], None, "'SAFE' is not a design"),
        ([designs.SAFE], [], "no scenario to try"),
        ([designs.SAFE], [Scenario.one_refund()] * 2, "two scenarios are called 'one_refund'"),
        ([designs.SAFE], [Scenario.one_refund], r"not a scenario. Call it: Scenario.one_refund"),
        ([designs.SAFE], "one_refund", "'one_refund' is not a scenario"),
    ],
)
def test_what_makes_no_table_is_refused(chosen, scenario, sentence) -> None:
    with pytest.raises(ValueError, match=sentence):
        crash_table(chosen, scenario)


def test_a_table_may_be_of_one_design_and_of_one_with_a_name_of_your_own() -> None:
    one = Scenario.one_refund()
    assert set(crash_table(designs.ONE_SHOT, one)["design"]) == {"ONE_SHOT"}
    assert set(crash_table({"mine": designs.ONE_SHOT}, one)["design"]) == {"mine"}
