"""Cancelling orders with their goods: all or nothing, once, and not while money is under way."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from simulator.service.cancellation import cancel_order, cancel_orders, why_not
from simulator.service.errors import DatabaseUnavailable
from simulator.service.operations import move

TENANT = "7a1c0f5e-3b52-4c0e-9f0a-1d2e3f4a5b6c"
OTHER_TENANT = "11111111-2222-4333-8444-555555555555"
STOCK = {"LANTERN-1": 10, "BOOK-7": 0}
BACK = {"LANTERN-1": 13, "BOOK-7": 3}


def refund(tools: Any, order_id: str = "ORD-1002", *states: str) -> str:
    """A refund of an order, brought through these states; its operation."""
    session = replace(tools.session, intent_id=f"refund-of-{order_id}")
    tools.call("issue_refund", session, order_id=order_id, amount="200.00")
    (operation_id,) = tools.desk.one("SELECT operation_id FROM refunds ORDER BY rowid DESC")
    for before, after in itertools.pairwise(("pending", *states)):
        assert move(tools.desk, operation_id, before, after)
    return str(operation_id)


# States and stock.


def test_orders_are_cancelled_and_their_goods_are_back_in_the_same_transaction(
    tools: Any,
) -> None:
    assert cancel_orders(tools.desk, TENANT, ["ORD-1001", "ORD-1002"]) is None
    assert tools.orders() == {"ORD-1001": ("cancelled", 2), "ORD-1002": ("cancelled", 2)}
    assert tools.stock() == BACK


def test_the_goods_of_another_shop_stay_where_they_are(tools: Any) -> None:
    # It has an order of the same number, for the same goods.
    for sku, quantity in (("LANTERN-1", 4), ("COMPASS-2", 1)):
        values = {"tenant": OTHER_TENANT, "sku": sku, "quantity": quantity}
        tools.desk.execute(
            "INSERT INTO order_lines VALUES (:tenant, 'ORD-1001', :sku, :quantity)", values
        )
    cancel_orders(tools.desk, TENANT, ["ORD-1001"])
    query = f"SELECT on_hand FROM stock WHERE tenant_id = '{OTHER_TENANT}'"
    assert tools.desk.rows(query) == [(5,)]
    assert tools.stock() == {"LANTERN-1": 12, "BOOK-7": 0}


def test_goods_that_the_shop_had_forgotten_of_are_in_stock_again_too(tools: Any) -> None:
    tools.desk.execute("DELETE FROM stock WHERE sku = 'BOOK-7'")
    cancel_orders(tools.desk, TENANT, ["ORD-1002"])
    assert tools.stock() == {"LANTERN-1": 11, "BOOK-7": 3}


def test_an_order_without_lines_puts_nothing_back(tools: Any) -> None:
    tools.desk.order(order_id="ORD-3001")
    assert cancel_orders(tools.desk, TENANT, ["ORD-3001"]) is None
    assert tools.stock() == STOCK


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("ORD-9999", "there is no order ORD-9999."),
        ("ORD-2001", "there is no order ORD-2001."),
        ("ORD-3001", "order ORD-3001 is cancelled."),
        ("ORD-3002", "a refund of order ORD-3002 is under way."),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_order_that_cannot_be_cancelled_keeps_all_the_others(
    bad: str, reason: str, place: int, tools: Any
) -> None:
    tools.desk.order(order_id="ORD-3001")
    tools.desk.order(order_id="ORD-3002")
    cancel_order(tools.desk, TENANT, "ORD-3001")
    refund(tools, "ORD-3002", "processing")
    before = tools.dump()
    names = ["ORD-1001", "ORD-1002"]
    names.insert(place, bad)
    assert cancel_orders(tools.desk, TENANT, names) == reason
    assert tools.dump() == before


def test_if_somebody_comes_between_the_look_and_the_change_the_whole_transaction_goes_back(
    tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []

    def looked(tx: Any, tenant_id: str, order_id: str) -> str | None:
        looks.append(order_id)
        # The fourth look is the one immediately before the second order's change.
        return "somebody was here." if len(looks) == 4 else why_not(tx, tenant_id, order_id)

    monkeypatch.setattr("simulator.service.cancellation.why_not", looked)
    before = tools.dump()
    with pytest.raises(DatabaseUnavailable, match="ORD-1002 changed meanwhile"):
        list(tools.runtime.transact(cancel_orders, TENANT, ["ORD-1001", "ORD-1002"]))
    assert tools.dump() == before


def test_a_second_cancellation_of_one_order_changes_nothing(tools: Any) -> None:
    assert cancel_order(tools.desk, TENANT, "ORD-1001") is not None
    before = tools.dump()
    assert cancel_order(tools.desk, TENANT, "ORD-1001") is None
    assert tools.dump() == before


# Refunds of the order.


@pytest.mark.parametrize(
    ("states", "possible"),
    [
        ((), True),
        (("awaiting_approval",), True),
        (("processing",), False),
        (("processing", "outcome_unknown"), False),
        (("processing", "outcome_unknown", "processing"), False),
        (("processing", "succeeded"), True),
        (("processing", "failed"), True),
    ],
)
def test_an_order_is_not_cancelled_while_nobody_knows_what_is_left_to_pay_back(
    states: tuple[str, ...], possible: bool, tools: Any
) -> None:
    refund(tools, "ORD-1002", *states)
    expected = None if possible else "a refund of order ORD-1002 is under way."
    assert cancel_orders(tools.desk, TENANT, ["ORD-1001", "ORD-1002"]) == expected
    cancelled = [status for status, _ in tools.orders().values()].count("cancelled")
    assert cancelled == (2 if possible else 0)


def test_a_refund_of_another_order_or_of_another_shop_is_no_hindrance(tools: Any) -> None:
    operation_id = refund(tools, "ORD-1002", "processing")
    assert cancel_orders(tools.desk, TENANT, ["ORD-1001"]) is None
    # An order of the same number in another shop has a refund under way.
    tools.desk.execute(
        "UPDATE tool_operations SET tenant_id = :other WHERE id = :id",
        {"other": OTHER_TENANT, "id": operation_id},
    )
    assert cancel_orders(tools.desk, TENANT, ["ORD-1002"]) is None


def test_a_waiting_refund_of_an_order_that_the_customer_cancels_is_owed_all_the_same(
    tools: Any,
) -> None:
    # Cancelling pays nothing back, so the refund beside it is all that the customer gets.
    refund(tools, "ORD-1001")
    assert tools.cancel("ORD-1001").kind == "done"
    jobs = tools.work()
    assert sorted(job.topic for job in jobs) == ["refund", "tell"]
    assert sorted(tools.statuses()) == ["processing", "succeeded"]
    assert tools.unaudited() == set()


def test_a_refund_that_waits_for_a_person_fails_when_the_order_was_cancelled_meanwhile(
    tools: Any,
) -> None:
    tools.desk.order(captured=7_500_00, order_id="ORD-7001")
    asked = replace(tools.session, intent_id="intent-9")
    waits = tools.call("issue_refund", asked, order_id="ORD-7001", amount="6000.00")
    assert waits.kind == "verifying"
    assert tools.cancel("ORD-7001").kind == "done"
    assert tools.decide() == "changed"
    tools.work()
    assert tools.runtime.calls == []
    assert tools.desk.one("SELECT pending, status FROM orders WHERE id = 'ORD-7001'") == (
        0,
        "cancelled",
    )


def test_a_refund_that_is_asked_for_after_the_cancellation_is_paid(tools: Any) -> None:
    # Cancelling pays nothing back: the customer may still ask for the money.
    tools.cancel("ORD-1001")
    refund(tools, "ORD-1001")
    assert [job.topic for job in tools.work()] == ["tell", "refund"]
