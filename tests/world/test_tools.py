"""The tools beside the refund from end to end: the customer, the person who consents, and faults.

What the verdict does not judge (stock, profiles, all or nothing) is looked at here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from simulator.experiments.explore import explore, faults_at
from simulator.experiments.replay import replay
from simulator.experiments.verdict import judge
from simulator.service.approval import NoApproval
from simulator.service.design import Design
from simulator.service.designs import SAFE
from simulator.world import faults
from simulator.world.faults import Fault
from simulator.world.scenario import (
    ApproverSettings,
    Intent,
    Order,
    Scenario,
    Submission,
)
from simulator.world.settings import OTHER_TENANT, OTHER_USER, ProviderSettings
from simulator.world.world import World

MakeWorld = Callable[..., World]
CANCEL = Scenario.cancelled_orders()
FORGET = Scenario.deleted_profile()
BOOKS = {"order_ids": ["ORD-1001", "ORD-1002"]}
READS = frozenset({"order:read"})


def one_cancellation(*order_ids: str, **changes: Any) -> Scenario:
    """The orders of CANCEL; these are to be cancelled, once."""
    wish = Submission("intent-1", tool="cancel_orders", arguments={"order_ids": list(order_ids)})
    return CANCEL.but(**{"submissions": (wish,), **changes})


def stock(world: World) -> dict[str, int]:
    return dict(world.database.rows("SELECT sku, on_hand FROM stock"))


def states(world: World) -> dict[str, str]:
    return dict(world.database.rows("SELECT id, status FROM orders"))


def profiles(world: World) -> list[Any]:
    return world.database.rows("SELECT tenant_id, user_id FROM profiles")


def ended(world: World, action: str) -> set[str]:
    return {
        status
        for (status,) in world.database.rows(
            f"SELECT status FROM tool_operations WHERE action_type = '{action}'"
        )
    }


def all_or_nothing(world: World) -> bool:
    """The record, the states of the orders and the goods in stock say the same."""
    done = ended(world, "cancel_orders") == {"succeeded"}
    state = "cancelled" if done else "confirmed"
    goods = {"LANTERN-1": 3, "BOOK-7": 3} if done else {"LANTERN-1": 0, "BOOK-7": 0}
    return set(states(world).values()) == {state} and stock(world) == goods


def gone_or_not(world: World) -> bool:
    """The profile is gone if and only if the record says so."""
    return bool(profiles(world)) == (ended(world, "delete_profile") != {"succeeded"})


def plans_of_one(world: MakeWorld, scenario: Scenario) -> Iterator[tuple[Fault, ...]]:
    """No fault, and every single one."""
    yield ()
    for step in world(SAFE, scenario=scenario, quiet=True).steps:
        for fault in faults_at(step, SAFE, scenario):
            yield (fault,)


# Without faults.


def test_the_orders_are_cancelled_once_their_goods_are_back_and_the_customer_is_told(
    world: MakeWorld,
) -> None:
    made = world(SAFE, scenario=CANCEL)
    assert judge(made) == frozenset()
    assert (states(made), stock(made)) == (
        {"ORD-1001": "cancelled", "ORD-1002": "cancelled"},
        {"LANTERN-1": 3, "BOOK-7": 3},
    )
    assert made.provider.ledger == []
    assert [told.kind for told in made.told] == ["verifying", "verifying", "done"]
    assert (
        made.told[-1].text == "Done: the orders are cancelled, and their goods are back in stock."
    )


def test_the_profile_is_gone_after_the_refund_is_paid_and_both_are_told(world: MakeWorld) -> None:
    made = world(SAFE, scenario=FORGET)
    assert judge(made) == frozenset()
    assert profiles(made) == []
    assert len(made.provider.ledger) == 1
    last = {told.intent: told.kind for told in made.told}
    assert last == {"intent-1": "done", "intent-2": "done"}


def test_a_deletion_that_is_approved_before_the_refund_is_paid_is_refused(
    world: MakeWorld,
) -> None:
    hasty = FORGET.but(approver=ApproverSettings(delay=0.03))
    slow = hasty.but(provider=ProviderSettings(work=1.0))
    made = world(SAFE, scenario=slow)
    assert judge(made) == frozenset()
    assert len(profiles(made)) == 1
    (refused,) = [told.text for told in made.told if told.kind == "refused"]
    assert refused == "It was refused: a refund of this customer is still open."


@pytest.mark.parametrize("says", ["no", "nothing"])
@pytest.mark.parametrize("scenario", [CANCEL, FORGET], ids=lambda scenario: scenario.name)
def test_after_a_no_or_silence_nothing_has_changed_and_the_customer_knows(
    scenario: Scenario, says: str, world: MakeWorld
) -> None:
    intent = scenario.submissions[-1].intent_id
    stern = scenario.but(approver=ApproverSettings(says=((intent, says),)))
    made = world(SAFE, scenario=stern)
    assert judge(made) == frozenset()
    assert set(states(made).values()) == {"confirmed"}
    assert set(stock(made).values()) <= {0}
    assert len(profiles(made)) == 1
    assert [told.kind for told in made.told if told.intent == intent][-1] == "refused"


def test_second_thoughts_come_too_late(world: MakeWorld) -> None:
    unsteady = ApproverSettings(says=(("intent-1", "no"),), second_thoughts=60.0)
    made = world(SAFE, scenario=CANCEL.but(approver=unsteady))
    assert judge(made) == frozenset()
    assert all_or_nothing(made)
    assert ended(made, "cancel_orders") == {"failed"}


def test_one_order_needs_nobodys_consent(world: MakeWorld) -> None:
    made = world(SAFE, scenario=one_cancellation("ORD-1002"))
    assert judge(made) == frozenset()
    assert made.consents == []
    assert states(made) == {"ORD-1001": "confirmed", "ORD-1002": "cancelled"}
    assert stock(made) == {"LANTERN-1": 1, "BOOK-7": 3}


def test_a_strangers_order_among_them_and_nothing_happens(world: MakeWorld) -> None:
    orders = (*CANCEL.orders, Order("ORD-2001", tenant_id=OTHER_TENANT, user_id=OTHER_USER))
    greedy = one_cancellation("ORD-1001", "ORD-2001", orders=orders)
    made = world(SAFE, scenario=greedy)
    assert judge(made) == frozenset()
    assert set(states(made).values()) == {"confirmed"}
    assert made.database.rows("SELECT event FROM audit_log") == [("denied",)]


def test_other_orders_under_the_same_wish_are_a_409(world: MakeWorld) -> None:
    later = Submission(
        "intent-1", at=300.0, tool="cancel_orders", arguments={"order_ids": ["ORD-1001"]}
    )
    first = one_cancellation("ORD-1002").submissions
    made = world(SAFE, scenario=CANCEL.but(submissions=(*first, later)))
    assert judge(made) == frozenset()
    assert made.told[-1].kind == "conflict"
    assert states(made)["ORD-1001"] == "confirmed"


def test_a_call_that_does_not_fit_takes_back_nothing_that_was_said(world: MakeWorld) -> None:
    injected = {**BOOKS, "tenant_id": OTHER_TENANT}
    later = Submission("intent-1", at=300.0, tool="cancel_orders", arguments=injected)
    made = world(SAFE, scenario=CANCEL.but(submissions=(CANCEL.submissions[0], later)))
    assert judge(made) == frozenset()
    assert [told.kind for told in made.told] == ["verifying", "done", "invalid"]
    assert all_or_nothing(made)


# A read.


def reading(order_id: str = "ORD-1001", **changes: Any) -> Scenario:
    """A refund, and a look at the order before and after it."""
    look = {"tool": "get_order_status", "arguments": {"order_id": order_id}}
    settings: dict[str, Any] = {
        "intents": (Intent("intent-1"), Intent("intent-2", owed=False, permissions=READS)),
        "submissions": (
            Submission("intent-2", **look),
            Submission("intent-1", at=1.0),
            Submission("intent-2", at=60.0, **look),
        ),
    }
    return Scenario(name="reading", **{**settings, **changes})


def test_what_a_read_says_is_judged_by_no_invariant_and_told_every_time(world: MakeWorld) -> None:
    made = world(SAFE, scenario=reading())
    assert judge(made) == frozenset()
    assert [told.text for told in made.told if told.kind == "info"] == [
        "Order ORD-1001 is confirmed: $500.00 paid, $0.00 refunded.",
        "Order ORD-1001 is confirmed: $500.00 paid, $500.00 refunded.",
    ]


def test_a_read_of_the_refunds_own_wish_does_not_count_as_its_last_word(world: MakeWorld) -> None:
    both = Intent("intent-1", permissions=READS | {"refund:create"})
    look = Submission(
        "intent-1", at=60.0, tool="get_order_status", arguments={"order_id": "ORD-1001"}
    )
    made = world(
        SAFE, scenario=reading(intents=(both,), submissions=(Submission("intent-1"), look))
    )
    assert judge(made) == frozenset()
    assert made.told[-1].kind == "info"


def test_a_history_of_reads_alone_writes_nothing(world: MakeWorld) -> None:
    scenario = reading().but(submissions=reading().submissions[::2])
    scenario = scenario.but(intents=scenario.intents[1:])
    made = world(SAFE, scenario=scenario)
    assert judge(made) == frozenset()
    for table in ("tool_operations", "actions", "outbox", "approvals", "audit_log", "tasks"):
        assert made.database.rows(f"SELECT * FROM {table}") == []


def test_a_read_survives_a_short_outage_of_the_database_and_every_single_fault() -> None:
    run = replay(SAFE, reading(), [faults.database_down("order_status", seconds=1.0)])
    assert run.verdict == frozenset()
    assert run.told.statement.tolist().count("info") == 2
    found = explore(SAFE, reading(), max_faults=1)
    assert found.complete
    assert found.counterexample is None


# With faults.


@pytest.mark.parametrize(
    ("scenario", "right"),
    [(CANCEL, all_or_nothing), (FORGET, gone_or_not)],
    ids=["cancelled_orders", "deleted_profile"],
)
def test_after_any_single_fault_record_and_data_say_the_same(
    scenario: Scenario, right: Callable[[World], bool], world: MakeWorld
) -> None:
    plans = list(plans_of_one(world, scenario))
    kinds = {fault.kind for plan in plans for fault in plan}
    assert {"crash", "pause", "lose_commit_ack", "database_down", "duplicate_request"} <= kinds
    for plan in plans:
        made = world(SAFE, *plan, scenario=scenario, quiet=True)
        assert right(made), plan
        assert judge(made) == frozenset(), plan


def crashes(steps: Any, scenario: Scenario) -> list[Fault]:
    return [fault for step in steps for fault in faults_at(step, SAFE, scenario, ["crash"])]


@pytest.mark.parametrize(
    ("scenario", "right"),
    [(CANCEL, all_or_nothing), (FORGET, gone_or_not)],
    ids=["cancelled_orders", "deleted_profile"],
)
def test_after_any_two_crashes_record_and_data_say_the_same(
    scenario: Scenario, right: Callable[[World], bool], world: MakeWorld
) -> None:
    plans = []
    for first in crashes(world(SAFE, scenario=scenario, quiet=True).steps, scenario):
        made = world(SAFE, first, scenario=scenario, quiet=True)
        later = made.steps[made.struck[0][0] + 1 :]
        plans += [(first, second) for second in crashes(later, scenario)]
    assert len(plans) > 400
    for plan in plans:
        made = world(SAFE, *plan, scenario=scenario, quiet=True)
        assert right(made), plan
        assert judge(made) == frozenset(), plan


# Without the person.


def hurried(scenario: Scenario) -> tuple[Design, Scenario]:
    """Nobody is asked; where a refund stands in the way, it is long over."""
    *before, wish = scenario.submissions
    return SAFE.but(approval=NoApproval()), scenario.but(
        submissions=(
            *before,
            Submission(wish.intent_id, at=300.0, tool=wish.tool, arguments=wish.arguments),
        )
    )


@pytest.mark.parametrize("scenario", [CANCEL, FORGET], ids=lambda scenario: scenario.name)
def test_what_nobody_consented_to_is_found_by_the_verdict(
    scenario: Scenario, world: MakeWorld
) -> None:
    made = world(hurried(scenario)[0], scenario=hurried(scenario)[1])
    assert made.consents == []
    assert ended(made, scenario.submissions[-1].tool) == {"succeeded"}
    assert judge(made) == {"unapproved_refund"}


# Money with three decimals, from the customer's words to the provider's ledger.


def test_a_thousandth_of_a_dinar_arrives_as_it_was_asked_for() -> None:
    scenario = Scenario(
        orders=(Order(captured=5_000, currency="KWD"),),
        intents=(Intent("intent-1", amount=1_234, currency="KWD"),),
    )
    run = replay(SAFE, scenario)
    assert run.verdict == frozenset()
    assert run.ledger[["amount", "currency"]].values.tolist() == [[Decimal("1.234"), "KWD"]]
    assert run.books.refunded.tolist() == [Decimal("1.234")]
