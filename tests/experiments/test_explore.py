"""The exploration misses nothing within its bound, and shows the smallest first."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import pytest

from simulator import Scenario, designs, explore, replay
from simulator.experiments.explore import faults_at
from simulator.service.errors import ConnectionLost, Silence
from simulator.service.operations import Operation
from simulator.service.recovery import Blind, SameKey
from simulator.world import faults
from simulator.world.faults import KINDS
from simulator.world.scenario import Scenario as Setting
from simulator.world.world import Step


def test_it_stops_at_the_first_counterexample_and_counts_the_histories() -> None:
    found = explore(designs.NAIVE, max_faults=1)
    assert found.schedules == 3
    assert not found.complete
    assert sum(found.by_verdict.values()) == 3


def test_it_goes_on_if_asked_and_counts_the_verdicts() -> None:
    found = explore(designs.NAIVE, max_faults=1, stop=False)
    assert found.complete
    assert found.by_verdict[frozenset()] > 10
    assert any("double_refund" in verdict for verdict in found.by_verdict)
    assert found.counterexample is not None
    assert len(found.counterexample.faults) == 1


def test_every_pair_of_faults_is_tried_exactly_once() -> None:
    # Faults that change no later step: the pairs can be counted without running anything.
    scenario = Scenario.one_refund()
    kinds = ["delay_response"]
    steps = list(replay(designs.SAFE).steps)
    single = [fault for step in steps for fault in faults_at(step, designs.SAFE, scenario, kinds)]
    found = explore(designs.SAFE, scenario, max_faults=2, kinds=kinds, stop=False)
    # The delays here (1.5 s) end before any timeout, so every pair strikes.
    assert found.schedules == 1 + len(single) + len(list(combinations(single, 2)))


def test_every_kind_of_fault_is_tried_somewhere() -> None:
    steps = replay(designs.SAFE).steps
    tried = {f.kind for step in steps for f in faults_at(step, designs.SAFE, Scenario.one_refund())}
    assert tried == set(KINDS)


def test_a_counterexample_replays() -> None:
    found = explore(designs.OUTBOX, max_faults=1).counterexample
    assert found is not None
    again = replay(found.design, found.scenario, found.faults, found.seed)
    assert again.text == found.text


def test_a_design_that_takes_a_reset_for_a_failure_is_found_out() -> None:
    def resets_did_not_happen(operation: Operation, silence: Silence) -> str:
        return "failed" if isinstance(silence, ConnectionLost) else "outcome_unknown"

    found = explore(designs.SAFE.but(on_silence=resets_did_not_happen), max_faults=1)
    assert found.counterexample is not None
    assert {fault.kind for fault in found.counterexample.faults} <= {
        "reset",
        "crash_provider",
        "provider_down",
    }


def test_a_key_that_changes_after_the_first_attempt_is_found_out() -> None:
    def rotated(operation: Operation, attempt: int) -> str:
        return f"{operation.key}-{min(attempt, 1)}"

    found = explore(designs.SAFE.but(key=rotated), max_faults=1)
    assert found.counterexample is not None
    assert "double_refund" in found.counterexample.verdict


def test_a_key_made_of_order_and_amount_is_found_out() -> None:
    # Cases B07, B33: two honest refunds of equal amount become one.
    def order_and_amount(operation: Operation, attempt: int) -> str:
        return f"{operation.order_id}-{operation.amount}"

    merged = designs.SAFE.but(key=order_and_amount)
    found = explore(merged, Scenario.two_equal_refunds(), max_faults=0)
    assert found.counterexample is not None
    assert "lost_refund" in found.counterexample.verdict
    assert explore(designs.SAFE, Scenario.two_equal_refunds(), max_faults=1).counterexample is None


@pytest.mark.parametrize("recovery", [Blind(), SameKey(horizon=30 * 3600.0)])
def test_sending_on_after_the_provider_forgot_the_key_is_found_out(
    recovery: Blind | SameKey,
) -> None:
    found = explore(
        designs.SAFE.but(recovery=recovery), max_faults=1, kinds=["database_down"]
    ).counterexample
    assert found is not None
    assert "double_refund" in found.verdict
    assert found.faults[0].seconds > 24 * 3600


def test_no_faults_means_one_history() -> None:
    assert explore(designs.SAFE, max_faults=0).schedules == 1
    assert explore(designs.SAFE, max_faults=0, kinds=()).schedules == 1


def test_it_says_what_it_found() -> None:
    assert "is enough to break: double_refund" in str(explore(designs.NAIVE, max_faults=1))
    assert "none broke an invariant" in str(explore(designs.SAFE, max_faults=0))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"max_faults": -1}, "max_faults=-1: give 0, 1, 2"),
        ({"max_faults": 1.5}, "max_faults=1.5"),
        ({"kinds": ["lose_respones"]}, "There is no fault 'lose_respones'"),
        ({"kinds": ()}, r"kinds=\(\) names no fault, .*lose_request, .* or max_faults=0"),
        ({"kinds": 5}, r"kinds=5: give a list, for example \[\"crash\"\]"),
        ({"breaks": 5}, r"breaks=5: give a list, for example \[\"lost_refund\"\]"),
        ({"heal": "no"}, "heal='no': say True or False"),
        ({"stop": 0}, "stop=0: say True or False"),
        ({"progress": "no"}, "progress='no': say True or False"),
        ({"seed": None}, "seed=None: give a whole number"),
        ({"seed": 1.5}, r"seed=1\.5: give a whole number"),
        ({"design": None}, "None is not a design"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(
    arguments: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        explore(**({"design": designs.SAFE, "max_faults": 1} | arguments))


# People, and the provider's own reports.

STORM = Scenario.webhook_storm()
ASKING = Scenario.approval_between()


def tried(process: str, what: str, scenario: Setting, call: bool = True) -> list[faults.Fault]:
    step = Step(process, what, 1, call, 0)
    return list(faults_at(step, designs.SAFE, scenario))


def test_the_provider_is_neither_killed_nor_paused_where_it_reports() -> None:
    kinds = {fault.kind for fault in tried("provider", "webhook.report", STORM)}
    assert kinds == {
        "lose_request",
        "lose_response",
        "duplicate_request",
        "reset",
        "delay_request",
        "delay_response",
    }


def test_a_person_may_be_stopped_and_killed() -> None:
    kinds = {fault.kind for fault in tried("approver", "approval.decide", ASKING)}
    assert {"crash", "pause"} <= kinds
    assert not kinds & {"crash_provider", "provider_down"}  # that is no call to the provider


def test_no_history_with_reports_has_a_fault_that_never_strikes() -> None:
    steps = replay(designs.SAFE, STORM).steps
    reports = [step for step in steps if step.process == "provider"]
    assert len(reports) == 5
    for step in reports:
        for fault in faults_at(step, designs.SAFE, STORM):
            assert not replay(designs.SAFE, STORM, [fault]).unstruck, fault


@pytest.mark.parametrize(
    ("process", "what", "scenario", "longest"),
    [
        # A decision may lie in a queue for longer than a question lives; a tool call too.
        ("approver", "approval.decide", ASKING, 25 * 3600.0),
        ("agent", "tool.issue_refund", ASKING, 25 * 3600.0),
        # A network keeps no packet that long.
        ("provider", "webhook.report", STORM, 40.0),
        ("worker-1", "provider.refund", STORM, 40.0),
    ],
)
def test_how_late_a_message_may_come_depends_on_what_carries_it(
    process: str, what: str, scenario: Setting, longest: float
) -> None:
    late = [f.seconds for f in tried(process, what, scenario) if f.kind == "delay_request"]
    assert len(late) == 3
    assert max(late) == longest


def test_a_commit_of_an_open_transaction_gets_the_faults_of_a_transaction() -> None:
    kinds = {f.kind for f in tried("backend-1", "commit", Scenario.one_refund(), call=False)}
    assert kinds == {"crash", "pause", "lose_commit_ack", "database_down"}


# One invariant at a time.


def test_only_a_history_that_breaks_what_is_sought_is_a_counterexample() -> None:
    any_at_all = explore(designs.NAIVE, max_faults=1)
    assert any_at_all.counterexample is not None
    assert "lost_refund" not in any_at_all.counterexample.verdict
    found = explore(designs.ONE_SHOT, max_faults=1, breaks=["lost_refund"])
    assert found.counterexample is not None
    assert "lost_refund" in found.counterexample.verdict
    assert any(found.by_verdict[verdict] for verdict in found.by_verdict if verdict)


def test_what_is_sought_and_never_breaks_is_sought_to_the_end() -> None:
    found = explore(designs.NAIVE, max_faults=1, breaks=["unapproved_refund"])
    assert found.counterexample is None
    assert found.complete
    everything = explore(designs.NAIVE, max_faults=1, stop=False)
    assert found.by_verdict == everything.by_verdict


def test_several_may_be_sought() -> None:
    either = explore(designs.NAIVE, max_faults=1, breaks=("untold", "double_refund"))
    assert either.counterexample is not None


@pytest.mark.parametrize(
    ("missing", "scenario"),
    [
        ("approval digest", Scenario.approval_between),
        ("approval expiry", Scenario.approval_between),
        ("revalidation", Scenario.cancelled_meanwhile),
        ("webhooks by operation", Scenario.webhook_storm),
        ("settlement", Scenario.returned_by_the_bank),
        ("permission", Scenario.injected_arguments),
    ],
)
def test_each_new_scenario_finds_out_who_lacks_what_it_is_about(
    missing: str, scenario: Callable[[], Setting]
) -> None:
    found = explore(designs.ablations()[missing], scenario(), max_faults=0)
    assert found.counterexample is not None
    assert explore(designs.SAFE, scenario(), max_faults=0).counterexample is None


@pytest.mark.parametrize(
    ("breaks", "complaint"),
    [
        (["double_refnud"], r"breaks='double_refnud' is no invariant\. They are: double_refund"),
        ("lost", r"breaks='lost' is no invariant"),
        ([], r"breaks=\[\] names no invariant\. Give some of these: double_refund"),
    ],
)
def test_an_invariant_that_there_is_not_is_refused_and_not_found_clean(
    breaks: list[str] | str, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        explore(designs.NAIVE, max_faults=1, breaks=breaks)


def test_one_invariant_may_be_named_without_a_list() -> None:
    found = explore(designs.NAIVE, max_faults=1, breaks="double_refund").counterexample
    assert found is not None
    assert "double_refund" in found.verdict
