"""The ladder: every rung but the last has a smallest counterexample, written down here."""

from __future__ import annotations

import pytest

from simulator import Scenario, designs, explore
from simulator.cli.words import scenarios_by_name

# Rung, scenario in which its gap shows, the fewest faults that open it, what breaks.
SMALLEST = [
    ("NAIVE", "one_refund", ["lose_response"], "double_refund"),
    ("ONE_SHOT", "one_refund", ["lose_request"], "lost_refund"),
    ("MODEL_KEY", "new_thought", [], "double_refund"),
    ("MEMORY_RECORD", "resubmitted_elsewhere", [], "double_refund"),
    ("DURABLE_RECORD", "one_refund", ["lose_response"], "double_refund"),
    ("PROVIDER_KEY", "two_partial_refunds", [], "over_refund"),
    ("RESERVED", "one_refund", ["crash"], "stuck"),
    ("PUBLISH_AFTER_COMMIT", "one_refund", ["crash"], "lost_refund"),
    ("OUTBOX", "one_refund", ["crash"], "untold"),
]
FIRST = (
    "one_refund",
    "double_click",
    "two_partial_refunds",
    "resubmitted_elsewhere",
    "new_thought",
)


def scenario(name: str) -> Scenario:
    """The scenario with this name."""
    made: Scenario = getattr(Scenario, name)()
    return made


@pytest.mark.parametrize(("rung", "where", "kinds", "broken"), SMALLEST)
def test_a_rung_has_its_smallest_counterexample(
    rung: str, where: str, kinds: list[str], broken: str
) -> None:
    found = explore(getattr(designs, rung), scenario(where), max_faults=1).counterexample
    assert found is not None
    assert [fault.kind for fault in found.faults] == kinds
    assert broken in found.verdict


def test_every_rung_but_the_last_is_in_the_table() -> None:
    assert [row[0] for row in SMALLEST] == [design.name for design in designs.LADDER[:-1]]
    assert designs.LADDER[-1] is designs.SAFE


def test_naive_pays_twice_after_one_lost_response() -> None:
    found = explore(designs.NAIVE, max_faults=1).counterexample
    assert found is not None
    assert [(fault.kind, fault.step) for fault in found.faults] == [
        ("lose_response", "backend-1:provider.refund")
    ]
    assert found.ledger.amount.sum() == 1000
    assert list(found.told.statement) == ["done"]


@pytest.mark.slow
@pytest.mark.parametrize("where", [*FIRST, "declined"])
def test_safe_survives_every_pair_of_faults(where: str) -> None:
    found = explore(designs.SAFE, scenario(where), max_faults=2)
    assert found.counterexample is None, str(found.counterexample)
    assert found.complete
    assert found.schedules > 8_000


EVERYWHERE = [name for name in scenarios_by_name() if name != "asked_once"]
"""But where the agent gives up at once: a wish that never reached us no design can keep."""


@pytest.mark.parametrize("where", EVERYWHERE)
def test_safe_survives_every_single_fault_everywhere(where: str) -> None:
    # What the bank returns takes two days of asking: hundreds of steps that are all alike.
    kinds = ["lose_response"] if where == "returned_by_the_bank" else None
    found = explore(designs.SAFE, scenario(where), max_faults=1, kinds=kinds)
    assert found.counterexample is None, str(found.counterexample)
    assert found.complete


@pytest.mark.parametrize("where", FIRST)
def test_safe_is_safe_and_leaves_nothing_unasked_when_a_fault_stays_for_ever(where: str) -> None:
    found = explore(designs.SAFE, scenario(where), max_faults=1, heal=False)
    assert found.counterexample is None, str(found.counterexample)


# What the ablation of one safeguard breaks, where, and after which kinds of fault.
ABLATED = [
    ("provider key", "one_refund", ["lose_response"], "double_refund"),
    ("operation key", "new_thought", [], "double_refund"),
    ("fingerprint", "changed_payload", [], "conflict_ignored"),
    ("tombstone", "late_redelivery", [], "double_refund"),
    ("reservation", "two_partial_refunds", ["lose_request"], "over_refund"),
    ("outbox", "one_refund", ["lose_request"], "stuck"),
    ("outcome_unknown", "one_refund", ["lose_request"], "lost_refund"),
    ("recovery", "one_refund", ["lose_request"], "stuck"),
    ("same-key recovery", "one_refund", ["delay_request"], "double_refund"),
    ("lease", "one_refund", ["crash"], "stuck"),
    ("fencing token", "one_refund", ["pause"], "books_differ"),
    ("answer from the record", "one_refund", ["crash"], "false_answer"),
    ("follow-up", "one_refund", ["crash"], "untold"),
    ("audit in the transaction", "one_refund", ["crash"], "audit_gap"),
]


@pytest.mark.parametrize(("safeguard", "where", "kinds", "broken"), ABLATED)
def test_safe_without_a_safeguard_is_found_out(
    safeguard: str, where: str, kinds: list[str], broken: str
) -> None:
    found = explore(designs.ablations()[safeguard], scenario(where), max_faults=1).counterexample
    assert found is not None
    assert [fault.kind for fault in found.faults] == kinds
    assert broken in found.verdict


def test_a_lost_answer_taken_for_a_failure_is_a_false_answer() -> None:
    without_unknown = designs.ablations()["outcome_unknown"]
    found = explore(without_unknown, kinds=["lose_response"], max_faults=1).counterexample
    assert found is not None
    assert "false_answer" in found.verdict


def test_a_delayed_request_makes_check_then_act_pay_too_much() -> None:
    unreserved = designs.ablations()["reservation"]
    found = explore(
        unreserved, Scenario.two_partial_refunds(), kinds=["delay_request"], max_faults=1
    ).counterexample
    assert found is not None
    assert "over_refund" in found.verdict


def test_a_worker_paused_past_its_lease_changes_a_final_state_if_nothing_fences_it() -> None:
    unfenced = designs.ablations()["fencing token"]
    found = explore(unfenced, kinds=["pause", "lose_response"], max_faults=2, stop=False)
    broken = set().union(*found.by_verdict)
    assert {"illegal_transition", "books_differ"} <= broken
    assert "double_refund" not in broken, "the provider's key covers the money"
