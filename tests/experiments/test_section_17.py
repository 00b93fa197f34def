"""Section 17 of the source lesson: each test case and each failure scenario, from end to end.

Of each: what the safe service does (nothing is broken, and the money, states, words and audit
rows are these), and a design that fails it, with the invariant that it breaks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from simulator import Design, Scenario, designs, faults, replay
from simulator.experiments.ablation import without
from simulator.experiments.replay import store
from simulator.experiments.run import Run
from simulator.service.approval import Approval
from simulator.service.balance import Reserved
from simulator.service.envelope import ToolResult, tool_result
from simulator.service.keys import NoKey
from simulator.service.operations import Operation
from simulator.service.outbox import Outbox
from simulator.service.runtime import Transaction
from simulator.service.schemas import InvalidRequest, RefundRequest, Session, ToolCall, parse_refund
from simulator.world.fault import Fault
from simulator.world.faults import Plan
from simulator.world.scenario import (
    ApproverSettings,
    Intent,
    Order,
    Outside,
    ProviderSettings,
    Submission,
    WebhookSettings,
)
from simulator.world.settings import MANAGER, OTHER_TENANT, OTHER_USER
from simulator.world.world import World

ABLATED = designs.ablations()
ONE = Scenario.one_refund()
STRAIGHT = ["pending", "processing", "succeeded"]


def right(scenario: Scenario, *what: Fault) -> Run:
    """A history of the safe service that breaks nothing, and in which every fault struck."""
    run = replay(designs.SAFE, scenario, what)
    assert run.verdict == frozenset(), f"{run}"
    assert not run.unstruck
    return run


def breaks(design: Design, scenario: Scenario, *what: Fault) -> frozenset[str]:
    """What another design breaks in the same history."""
    run = replay(design, scenario, what)
    assert not run.unstruck
    return run.verdict


def results(
    scenario: Scenario, faults: Sequence[Fault] = (), design: Design = designs.SAFE
) -> list[ToolResult]:
    """What the model reads, call by call."""
    with store() as database:
        world = World(design, scenario, Plan(faults), 0, database).run()
        return [
            tool_result(answer, request.call.call_id) for request, answer in world.backends.answers
        ]


def paid(run: Run) -> list[str]:
    """What the provider paid, in order."""
    return [str(amount) for amount in run.ledger.amount]


def states(run: Run) -> list[str]:
    """The states of the operations, in the order in which they came."""
    return [event.what.split("->")[1] for event in run.trace if event.kind == "state"]


def books(run: Run) -> list[tuple[str, str, str]]:
    """State, refunded and pending of each operation and its order."""
    rows = run.books[["status", "refunded", "pending"]].to_numpy().tolist()
    return [(status, str(refunded), str(pending)) for status, refunded, pending in rows]


def logged(run: Run) -> list[str]:
    """The events of the audit log."""
    return list(run.audit.event)


def words(run: Run) -> list[str]:
    """Kinds of statements in order, each named once while it stays the same."""
    return [word for word, _ in itertools.groupby(run.told.statement)]


def asked(arguments: Mapping[str, Any], **intent: Any) -> Scenario:
    """Nobody is owed this: the model's call has these arguments."""
    return ONE.but(
        name="asked",
        intents=(Intent("intent-1", owed=False, **intent),),
        submissions=(Submission("intent-1", arguments=arguments),),
    )


# --- Valid, and repeated ---------------------------------------------------------------------


def test_a_valid_refund_is_paid_booked_told_and_logged() -> None:
    run = right(ONE)
    assert paid(run) == ["500.00"]
    assert states(run) == STRAIGHT
    assert books(run) == [("succeeded", "500.00", "0.00")]
    assert words(run) == ["done"]
    assert logged(run) == ["->pending", "pending->processing", "processing->succeeded"]
    (result,) = results(ONE)
    assert (result["status"], result["outcome"], result["final"]) == (200, "succeeded", True)
    unpaid = designs.SAFE.but(permission=lambda session: False)
    assert breaks(unpaid, ONE) == {"lost_refund"}


def test_a_repeat_with_the_same_key_gets_the_recorded_answer() -> None:
    again = ONE.but(
        submissions=(Submission("intent-1"), Submission("intent-1", at=10.0, after_answer=True))
    )
    run = right(again)
    assert paid(run) == ["500.00"]
    assert len(run.books) == 1
    assert states(run) == STRAIGHT
    first, second = results(again)
    assert first == second
    assert second["outcome"] == "succeeded", "and no refusal for lack of balance (trap 14)"
    assert breaks(designs.NAIVE, again) >= {"double_refund", "over_refund"}
    assert "illegal_transition" in breaks(ABLATED["insert first"], again)


# --- The same key with something else --------------------------------------------------------

OTHER_ORDER = ONE.but(
    name="other order",
    orders=(Order(), Order("ORD-1002")),
    submissions=(
        Submission("intent-1"),
        Submission(
            "intent-1", at=10.0, thought=2, arguments={"order_id": "ORD-1002"}, after_answer=True
        ),
    ),
)


@pytest.mark.parametrize("changed", [Scenario.changed_payload(), OTHER_ORDER], ids=lambda s: s.name)
def test_the_same_key_with_another_amount_or_order_is_a_409(changed: Scenario) -> None:
    run = right(changed)
    assert paid(run) == ["500.00"]
    assert list(run.ledger.order_id) == ["ORD-1001"]
    assert states(run) == STRAIGHT
    assert words(run) == ["done", "conflict"]
    assert logged(run)[-1] == "conflict"
    first, second = results(changed)
    assert first["status"] == 200
    assert (second["status"], second["outcome"], second["retry"]) == (409, "conflict", "never")
    assert "conflict_ignored" in breaks(ABLATED["fingerprint"], changed)
    assert "conflict_ignored" in breaks(designs.MEMORY_RECORD, changed)


# --- Amounts and fields that are none --------------------------------------------------------


def test_more_than_the_balance_is_refused() -> None:
    too_much = ONE.but(intents=(Intent("intent-1", amount=500_01),))
    run = right(too_much)
    assert paid(run) == []
    assert states(run) == ["pending", "failed"]
    assert books(run) == [("failed", "0.00", "0.00")]
    assert words(run) == ["refused"]
    assert logged(run) == ["->pending", "pending->failed"]
    (result,) = results(too_much)
    assert (result["status"], result["outcome"], result["final"]) == (422, "refused", True)
    assert "exceeds the refundable balance" in result["message"]
    assert breaks(designs.PROVIDER_KEY, too_much) == {"over_refund"}


def refused_unread(scenario: Scenario, argument: str) -> None:
    """Nothing is recorded of a call that cannot be read, but that it was refused."""
    run = right(scenario)
    assert paid(run) == []
    assert states(run) == []
    assert set(books(run)) == {(None, "0.00", "0.00")}
    assert logged(run) == ["invalid"]
    assert run.audit.detail[0].startswith(f"Argument {argument}: ")
    (result,) = results(scenario)
    assert (result["status"], result["outcome"], result["field"]) == (422, "invalid", argument)
    assert result["message"].endswith(run.audit.detail[0])


@pytest.mark.parametrize(
    "amount",
    ["0", "0.00", 0, "-500.00", -500, "10.005", 10.005],
    ids=lambda amount: f"{type(amount).__name__}_{amount}",
)
def test_zero_negative_and_three_decimals_are_refused(amount: Any) -> None:
    refused_unread(asked({"amount": amount}), "amount")
    assert breaks(ABLATED["schema"], asked({"amount": amount})) == {"unauthorized_refund"}


def at_most_500(call: ToolCall, session: Session) -> RefundRequest:
    """Caps the amount instead of refusing it: min(500, nan) is 500."""
    amount = Decimal(str(min(500.0, float(call.arguments["amount"]))))
    return RefundRequest.model_construct(
        order_id=call.arguments["order_id"], amount=amount, refund_request_id=session.intent_id
    )


@pytest.mark.parametrize("amount", ["NaN", math.nan, "Infinity", math.inf], ids=repr)
def test_nan_and_infinity_are_refused(amount: Any) -> None:
    refused_unread(asked({"amount": amount}), "amount")
    capped = designs.SAFE.but(schema=at_most_500)
    assert breaks(capped, asked({"amount": amount})) == {"unauthorized_refund"}


def test_an_unknown_field_is_refused() -> None:
    refused_unread(asked({"note": "please"}), "note")
    assert breaks(ABLATED["schema"], asked({"note": "please"})) == {"unauthorized_refund"}


@pytest.mark.parametrize(
    ("arguments", "field", "code"),
    [
        ({"amount": "0.00"}, "amount", "out_of_range"),
        ({"amount": "-500.00"}, "amount", "out_of_range"),
        ({"amount": "NaN"}, "amount", "not_a_number"),
        ({"amount": "10.0005"}, "amount", "too_precise"),
        ({"note": "please"}, "note", "unknown_field"),
    ],
)
def test_the_refusal_to_read_a_call_names_field_and_kind_for_programs(
    arguments: dict[str, Any], field: str, code: str
) -> None:
    scenario = asked(arguments)
    call = scenario.call(scenario.submissions[0])
    with pytest.raises(InvalidRequest) as refused:
        parse_refund(call, scenario.session("intent-1"))
    result = tool_result(refused.value, call.call_id)
    assert (result["status"], result["outcome"]) == (422, "invalid")
    assert (result["field"], result["code"], result["retry"]) == (field, code, "corrected_call")


# --- Without the right -----------------------------------------------------------------------

NOT_ALLOWED = ONE.but(
    intents=(Intent("intent-1", owed=False, permissions=frozenset({"order:read"})),)
)
ANOTHER_SHOP = ONE.but(
    orders=(Order(), Order("ORD-2001", tenant_id=OTHER_TENANT, user_id=OTHER_USER)),
    intents=(Intent("intent-1", order_id="ORD-2001", owed=False),),
)
ANOTHER_CUSTOMER = ONE.but(
    orders=(Order(), Order("ORD-1002", user_id=OTHER_USER)),
    intents=(Intent("intent-1", order_id="ORD-1002", owed=False),),
)
INJECTED = ANOTHER_SHOP.but(
    submissions=(
        Submission("intent-1", arguments={"tenant_id": OTHER_TENANT, "user_id": OTHER_USER}),
    )
)


def denied(scenario: Scenario, detail: str) -> None:
    """A 403 that leaves nothing behind but its audit row, and says no more than that."""
    run = right(scenario)
    assert paid(run) == []
    assert states(run) == []
    assert words(run) == ["refused"]
    assert list(run.audit[["event", "detail"]].itertuples(index=False, name=None)) == [
        ("denied", detail)
    ]
    (result,) = results(scenario)
    assert (result["status"], result["outcome"], result["retry"]) == (403, "refused", "never")
    assert result["message"] == "Your refund was refused: 403 Forbidden."


def test_a_missing_permission_is_a_403() -> None:
    denied(NOT_ALLOWED, "no permission")
    assert breaks(ABLATED["permission"], NOT_ALLOWED) == {"unauthorized_refund"}


def test_another_tenants_order_is_a_403() -> None:
    denied(ANOTHER_SHOP, "not an order of this user")
    reads_all = designs.SAFE.but(identity=lambda session, call: (OTHER_TENANT, OTHER_USER))
    assert "unauthorized_refund" in breaks(reads_all, ANOTHER_SHOP)


def test_another_customers_order_is_a_403() -> None:
    denied(ANOTHER_CUSTOMER, "not an order of this user")
    assert breaks(ABLATED["ownership"], ANOTHER_CUSTOMER) == {"unauthorized_refund"}


def test_a_tenant_in_the_arguments_is_refused_and_would_not_be_believed() -> None:
    refused_unread(INJECTED, "tenant_id")
    assert breaks(ABLATED["schema"], INJECTED) == frozenset(), "the session's tenant is asked"
    assert breaks(ABLATED["identity from the session"], INJECTED) == frozenset(), "it is not read"
    both = without("schema", "identity from the session")
    assert "unauthorized_refund" in breaks(both, INJECTED)


# --- The response is lost, and deaths --------------------------------------------------------


def test_after_a_lost_response_there_is_one_effect_and_the_outcome_is_unknown_then_succeeded() -> (
    None
):
    lost = faults.lose_response("provider.refund")
    run = right(ONE, lost)
    assert paid(run) == ["500.00"]
    assert states(run) == ["pending", "processing", "outcome_unknown", "processing", "succeeded"]
    assert books(run) == [("succeeded", "500.00", "0.00")]
    assert words(run) == ["done"]
    assert "processing->outcome_unknown" in logged(run)
    assert run.tasks.empty
    assert "double_refund" in breaks(ABLATED["provider key"], ONE, lost)
    assert "false_answer" in breaks(ABLATED["outcome_unknown"], ONE, lost)
    assert "stuck" in breaks(ABLATED["recovery"], ONE, lost)


def test_a_crash_after_the_commit_and_before_the_worker_loses_nothing() -> None:
    crash = faults.crash("begin", when="after")
    run = right(ONE, crash)
    assert paid(run) == ["500.00"]
    assert states(run) == STRAIGHT
    assert books(run) == [("succeeded", "500.00", "0.00")]
    assert words(run) == ["done"]
    assert len(results(ONE, [crash])) == 1, "the first call was never answered"
    for design in (designs.PUBLISH_AFTER_COMMIT, ABLATED["outbox"]):
        assert breaks(design, ONE, crash) == {"lost_refund", "stuck"}


def test_a_worker_that_dies_before_its_claim_is_replaced_by_the_other() -> None:
    run = right(ONE, faults.crash("worker-1:claim", when="before"))
    assert paid(run) == ["500.00"]
    sent = [step.process for step in run.steps if step.what == "provider.refund"]
    assert sent == ["worker-2"]
    lost = faults.crash("worker-1:start", when="before")
    assert breaks(ABLATED["outbox"], ONE, lost) >= {"lost_refund", "stuck"}


def test_a_crash_between_effect_and_record_is_found_out_under_the_same_key() -> None:
    between = faults.crash("provider.refund", when="after_answer")
    run = right(ONE, between)
    assert paid(run) == ["500.00"]
    assert states(run) == ["pending", "processing", "outcome_unknown", "processing", "succeeded"]
    assert books(run) == [("succeeded", "500.00", "0.00")]
    assert words(run) == ["verifying", "done"]
    assert any(event.kind == "replayed" for event in run.trace)
    assert "double_refund" in breaks(designs.NAIVE, ONE, between)
    assert "double_refund" in breaks(ABLATED["provider key"], ONE, between)
    assert "stuck" in breaks(ABLATED["lease"], ONE, between)


# --- Two at once -----------------------------------------------------------------------------


@pytest.mark.parametrize("apart", [0.05, 1.0])
def test_of_two_partial_refunds_that_together_exceed_the_balance_one_is_paid(apart: float) -> None:
    scenario = Scenario.two_partial_refunds().but(
        submissions=(Submission("intent-1"), Submission("intent-2", at=apart, instance="backend-2"))
    )
    run = right(scenario)
    assert paid(run) == ["300.00"]
    assert books(run) == [("succeeded", "300.00", "0.00"), ("failed", "300.00", "0.00")]
    assert sorted(run.told.groupby("intent").statement.last()) == ["done", "refused"]
    assert logged(run).count("pending->failed") == 1
    assert breaks(designs.PROVIDER_KEY, scenario) == {"over_refund"}
    if apart < 0.2:  # the provider's usual answer: before it, a check finds nothing refunded
        assert breaks(ABLATED["reservation"], scenario) == {"over_refund"}


def test_a_double_click_is_one_refund() -> None:
    clicks = Scenario.double_click()
    run = right(clicks)
    assert paid(run) == ["500.00"]
    assert states(run) == STRAIGHT
    assert len(run.books) == 1
    assert [result["outcome"] for result in results(clicks)] == ["succeeded", "succeeded"]
    assert breaks(designs.MEMORY_RECORD, clicks) >= {"double_refund", "over_refund"}
    assert "illegal_transition" in breaks(ABLATED["insert first"], clicks)


def test_of_two_workers_on_one_event_one_gets_it() -> None:
    together = [
        faults.pause("worker-1:claim", when="before", seconds=0.1),
        faults.pause("worker-2:claim", when="before", seconds=0.1),
    ]
    run = right(ONE, *together)
    assert paid(run) == ["500.00"]
    assert [step.process for step in run.steps if step.what == "claim"][:2] == [
        "worker-1",
        "worker-2",
    ]
    assert len([step for step in run.steps if step.what == "provider.refund"]) == 1
    assert states(run) == STRAIGHT

    looks_then_claims = designs.SAFE.but(dispatch=Outbox(atomic=False), key=NoKey())
    assert "double_refund" in breaks(looks_then_claims, ONE, *together)
    assert breaks(designs.SAFE.but(key=NoKey()), ONE, *together) == frozenset()
    unfenced = designs.SAFE.but(dispatch=Outbox(atomic=False, fence=False))
    assert breaks(unfenced, ONE, *together) == {"books_differ"}


def test_a_worker_paused_past_its_lease_writes_nothing_when_it_wakes_up() -> None:
    pause = faults.pause("worker-1:provider.refund", when="before_send", seconds=42.0)
    run = right(ONE, pause)
    assert paid(run) == ["500.00"]
    assert states(run) == ["pending", "processing", "outcome_unknown", "processing", "succeeded"]
    assert books(run) == [("succeeded", "500.00", "0.00")]
    sent = [step.process for step in run.steps if step.what == "provider.refund"]
    assert sent == ["worker-1", "worker-2"]
    late = [step.process for step in run.steps if step.what == "finish"]
    assert late == ["worker-2", "worker-1"], "the zombie came, and was too late"
    assert breaks(ABLATED["fencing token"], ONE, pause) == {"books_differ"}
    silent = faults.lose_response("worker-1:provider.refund")
    paused = faults.pause("worker-1:finish", when="before", seconds=42.0)
    right(ONE, silent, paused)
    assert "illegal_transition" in breaks(ABLATED["fencing token"], ONE, silent, paused)


# --- A definite no ---------------------------------------------------------------------------


@dataclass(frozen=True)
class NeverReleased(Reserved):
    """Gives nothing back to the balance after a failure."""

    def settle(self, tx: Transaction, operation: Operation, before: str, after: str) -> None:
        if after != "failed":
            Reserved.settle(self, tx, operation, before, after)


def test_after_a_definite_decline_the_operation_is_failed_and_its_balance_released() -> None:
    declined = Scenario.declined()
    run = right(declined)
    assert paid(run) == []
    assert states(run) == ["pending", "processing", "failed"]
    assert books(run) == [("failed", "0.00", "0.00")]
    assert words(run) == ["refused"]
    assert logged(run)[-1] == "processing->failed"
    assert run.audit.detail.iloc[-1] == "the card was closed."
    assert len([step for step in run.steps if step.what == "provider.refund"]) == 1

    kept = designs.SAFE.but(balance=NeverReleased())
    assert breaks(kept, declined) == {"books_differ"}
    busy = faults.provider_down("provider.refund", seconds=30.0)
    right(declined, busy)
    assert breaks(ABLATED["answer from the record"], declined, busy) == {"false_answer"}


def test_the_released_balance_pays_the_next_refund() -> None:
    then_another = Scenario.declined().but(
        intents=(Intent("intent-1"), Intent("intent-2")),
        submissions=(Submission("intent-1"), Submission("intent-2", at=10.0)),
    )
    run = right(then_another)
    assert list(run.ledger.intent) == ["intent-2"]
    assert books(run) == [("failed", "500.00", "0.00"), ("succeeded", "500.00", "0.00")]
    kept = designs.SAFE.but(balance=NeverReleased())
    assert "lost_refund" in breaks(kept, then_another)


# --- Above 5,000 -----------------------------------------------------------------------------


def large(amount: int = 6_000_00, says: str = "yes", **approver: Any) -> Scenario:
    """One refund of an order of 7,500.00, and a manager who answers after a minute."""
    return ONE.but(
        name="large",
        orders=(Order("ORD-7001", captured=7_500_00),),
        intents=(Intent("intent-1", order_id="ORD-7001", amount=amount),),
        approver=ApproverSettings(says=(("intent-1", says),), **approver),
    )


def test_5000_is_paid_at_once_and_a_cent_more_waits() -> None:
    assert states(right(large(5_000_00))) == STRAIGHT
    run = right(large(5_000_01))
    assert states(run)[:2] == ["pending", "awaiting_approval"]
    assert run.ledger.time[0] > 60
    assert breaks(ABLATED["approval"], large(5_000_00)) == frozenset()
    assert breaks(ABLATED["approval"], large(5_000_01)) == {"unapproved_refund"}


def test_above_5000_it_waits_and_the_customer_and_the_model_are_told_so() -> None:
    run = right(large())
    assert run.told.text[0] == "Your refund waits for a manager's approval. We will tell you."
    (result,) = results(large())
    assert (result["status"], result["outcome"]) == (202, "awaiting_approval")
    assert (result["final"], result["retry"]) == (False, "same_call")
    assert breaks(ABLATED["answer from the record"], large()) == {"false_answer"}


def test_approved_it_is_paid_once_and_the_log_names_who_approved() -> None:
    run = right(large())
    assert paid(run) == ["6000.00"]
    assert states(run) == ["pending", "awaiting_approval", *STRAIGHT]
    assert books(run) == [("succeeded", "6000.00", "0.00")]
    assert words(run) == ["verifying", "done"]
    approved = run.audit[run.audit.event == "awaiting_approval->pending"]
    assert list(approved.detail) == [f"approved by {MANAGER}"]
    assert breaks(designs.OUTBOX, large()) == {"unapproved_refund"}
    assert breaks(ABLATED["follow-up"], large()) == {"untold"}


@pytest.mark.parametrize(
    ("says", "reason", "failing"),
    [
        ("no", "a manager rejected it.", "approval"),
        ("nothing", "nobody approved it in time.", "approval expiry"),
    ],
)
def test_rejected_or_expired_it_fails_and_releases_the_balance(
    says: str, reason: str, failing: str
) -> None:
    scenario = large(says=says)
    run = right(scenario)
    assert paid(run) == []
    assert states(run) == ["pending", "awaiting_approval", "failed"]
    assert books(run) == [("failed", "0.00", "0.00")]
    assert words(run) == ["verifying", "refused"]
    assert run.told.text.iloc[-1] == f"Your refund was refused: {reason}"
    assert (logged(run)[-1], run.audit.detail.iloc[-1]) == ("awaiting_approval->failed", reason)
    assert breaks(ABLATED[failing], scenario) == {"unapproved_refund"}


def test_a_yes_after_the_order_has_changed_pays_nothing() -> None:
    changed = Scenario.cancelled_meanwhile()
    run = right(changed)
    assert list(run.ledger.key) == [None], "only the colleague's payment by hand"
    assert states(run) == ["pending", "awaiting_approval", "failed"]
    assert books(run) == [("failed", "7500.00", "0.00")]
    assert words(run) == ["verifying", "refused"]
    assert run.audit.detail.iloc[-1] == "the order has changed since it was asked for."
    assert "over_refund" in breaks(ABLATED["revalidation"], changed)


def test_a_yes_that_comes_too_late_pays_nothing() -> None:
    late = large(delay=25 * 3600.0)
    run = right(late)
    assert paid(run) == []
    assert words(run) == ["verifying", "refused"]
    assert "late decision" in logged(run)
    assert "unapproved_refund" in breaks(ABLATED["approval expiry"], late)


BUSY = (
    faults.pause("worker-1:claim", when="before", seconds=100.0),
    faults.pause("worker-2:claim", when="before", seconds=100.0),
)


def test_a_yes_after_the_time_is_over_counts_as_none_even_if_no_worker_has_noticed_yet() -> None:
    half_a_minute = designs.SAFE.but(approval=Approval(lifetime=30.0))
    late = large().but(consent_within=30.0)
    run = replay(half_a_minute, late, BUSY)  # they sleep from 30 s on; the yes comes at 60 s
    assert run.verdict == frozenset()
    assert not run.unstruck
    assert paid(run) == []
    ended = next(event for event in run.trace if event.what == "awaiting_approval->failed")
    assert (ended.process, ended.time // 1_000_000) == ("backend-1", 60)
    assert run.audit.detail.iloc[-1] == "nobody approved it in time."
    means_yes = designs.SAFE.but(approval=Approval(lifetime=30.0, when_expired="approved"))
    assert breaks(means_yes, large()) == {"unapproved_refund"}


def test_an_order_that_changes_between_the_yes_and_the_worker_is_not_refunded() -> None:
    between = large().but(outside=(Outside("cancel", at=70.0, order_id="ORD-7001"),))
    run = right(between, *BUSY)
    assert list(run.ledger.key) == [None], "only the colleague's payment by hand"
    assert states(run) == ["pending", "awaiting_approval", "pending", "failed"]
    assert run.audit.detail.iloc[-1] == "the order has changed since it was asked for."
    assert words(run) == ["verifying", "refused"]
    assert "over_refund" in breaks(ABLATED["revalidation"], between, *BUSY)


def test_whoever_asks_may_not_approve() -> None:
    alone = large(user_id=Intent("intent-1").user_id)
    run = right(alone)
    assert paid(run) == []
    assert words(run) == ["verifying", "refused"]
    assert "denied" in logged(run)
    assert breaks(ABLATED["approval"], alone) == {"unapproved_refund"}


# --- Late, poisoned, dark, early -------------------------------------------------------------


def test_a_redelivery_after_the_providers_key_lifetime_gets_the_recorded_answer() -> None:
    late = Scenario.late_redelivery()
    assert late.submissions[1].at > late.provider.key_lifetime
    run = right(late)
    assert paid(run) == ["200.00"]
    assert states(run) == STRAIGHT
    assert [result["outcome"] for result in results(late)] == ["succeeded", "succeeded"]
    assert breaks(ABLATED["tombstone"], late) == {"double_refund"}
    assert breaks(designs.MEMORY_RECORD, late) == {"double_refund"}


def test_a_poisoned_event_becomes_a_dead_letter_with_a_task_and_holds_up_nobody() -> None:
    run = right(Scenario.poisoned_event())
    assert list(run.ledger.intent) == ["intent-2"]
    assert books(run) == [
        ("outcome_unknown", "200.00", "200.00"),
        ("succeeded", "200.00", "200.00"),
    ]
    assert list(run.tasks.reason) == ["Claimed 8 times without a result (dead letter)."]
    assert run.audit[run.audit.event == "task"].intent.tolist() == ["intent-1"]
    assert run.told.groupby("intent").statement.last().to_dict() == {
        "intent-1": "verifying",
        "intent-2": "done",
    }
    # With its lease of 30 s it would be claimed 20,000 times in the week of a history.
    for_ever = designs.SAFE.but(dispatch=Outbox(lease=6 * 3600.0, max_attempts=None))
    assert breaks(for_ever, Scenario.poisoned_event()) == {"stuck"}


def test_an_hour_without_the_provider_delays_the_refund_and_nothing_else() -> None:
    hour = faults.provider_down("provider.refund", seconds=3600.0)
    run = right(ONE, hour)
    assert paid(run) == ["500.00"]
    assert run.ledger.time[0] > 3600
    assert set(states(run)[2:-1]) == {"outcome_unknown", "processing"}
    assert books(run) == [("succeeded", "500.00", "0.00")]
    assert words(run) == ["verifying", "done"]
    assert run.tasks.empty, "no human is needed for an hour"
    assert breaks(designs.OUTBOX, ONE, hour) == {"lost_refund"}
    assert breaks(designs.NAIVE, ONE, hour) == {"lost_refund"}
    assert breaks(ABLATED["answer from the record"], ONE, hour) == {"false_answer"}


EARLY = ONE.but(name="early webhook", provider=ProviderSettings(webhooks=WebhookSettings()))


@pytest.mark.parametrize(
    "response",
    [
        faults.delay_response("provider.refund", seconds=1.0),
        faults.lose_response("provider.refund"),
    ],
    ids=lambda fault: fault.kind,
)
def test_a_webhook_before_the_response_books_the_refund_once(response: Fault) -> None:
    run = right(EARLY, response)
    assert paid(run) == ["500.00"]
    assert states(run) == STRAIGHT
    assert books(run) == [("succeeded", "500.00", "0.00")]
    reported = next(event for event in run.trace if event.what == "processing->succeeded")
    assert reported.process.startswith("backend"), "the report, not the worker, ended it"
    assert run.audit.detail.iloc[-1].startswith("reported: ")
    assert "books_differ" in breaks(ABLATED["webhooks by operation"], EARLY, response)
    assert "books_differ" in breaks(ABLATED["fencing token"], EARLY, response)


def test_reports_that_come_twice_late_and_in_the_wrong_order_change_nothing_more() -> None:
    run = right(Scenario.webhook_storm())
    assert paid(run) == ["500.00"]
    assert states(run) == STRAIGHT
    assert breaks(ABLATED["webhooks by operation"], Scenario.webhook_storm()) == {"books_differ"}


# --- What is not so yet ----------------------------------------------------------------------


def test_a_call_that_cannot_be_read_says_nothing_final_about_the_refund() -> None:
    corrected = ONE.but(
        submissions=(
            Submission("intent-1", amount="500.000"),
            Submission("intent-1", at=10.0, thought=2, after_answer=True),
        )
    )
    run = replay(designs.SAFE, corrected)
    assert paid(run) == ["500.00"]
    assert run.verdict == frozenset(), "told 'refused', and then paid"
