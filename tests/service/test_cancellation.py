from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.service.balance import OrderRow
from simulator.service.cancellation import cancel_order
from simulator.service.operations import DurableRecord, Operation

TENANT = "7a1c0f5e-3b52-4c0e-9f0a-1d2e3f4a5b6c"
OTHER_TENANT = "11111111-2222-4333-8444-555555555555"
USER = "c0ffee00-1234-4abc-8def-000000001001"
STATE = "SELECT status, version, captured, refunded, pending FROM orders"


def refund_in(shop: Any, operation: Operation, status: str) -> None:
    """A refund of the order that has come so far."""
    DurableRecord().begin(shop, operation)
    shop.execute(
        "UPDATE tool_operations SET status = :status WHERE id = :id",
        {"status": status, "id": operation.id},
    )


def test_a_cancelled_order_is_another_version_and_comes_back_as_it_was(shop: Any) -> None:
    shop.execute("UPDATE orders SET refunded = 100, pending = 200, version = 3")
    order = cancel_order(shop, TENANT, "ORD-1001")
    assert order == OrderRow(USER, "USD", 500_00, 100, 200, 0, "confirmed", 3)
    assert shop.one(STATE) == ("cancelled", 4, 500_00, 100, 200)


def test_an_order_is_cancelled_once(shop: Any) -> None:
    cancel_order(shop, TENANT, "ORD-1001")
    assert cancel_order(shop, TENANT, "ORD-1001") is None
    assert shop.one(STATE)[:2] == ("cancelled", 2)


@pytest.mark.parametrize("where", [(OTHER_TENANT, "ORD-1001"), (TENANT, "ORD-9")])
def test_an_order_that_is_not_the_tenants_is_not_cancelled(
    where: tuple[str, str], shop: Any
) -> None:
    shop.order(order_id="ORD-2")
    assert cancel_order(shop, *where) is None
    assert shop.rows("SELECT DISTINCT status FROM orders") == [("confirmed",)]


def test_only_the_order_that_was_named_is_cancelled(shop: Any) -> None:
    shop.order(order_id="ORD-2")
    shop.order(tenant_id=OTHER_TENANT)
    cancel_order(shop, TENANT, "ORD-1001")
    cancelled = shop.rows("SELECT tenant_id, id FROM orders WHERE status = 'cancelled'")
    assert cancelled == [(TENANT, "ORD-1001")]


@pytest.mark.parametrize(
    ("status", "cancelled"),
    [
        ("pending", True),
        ("awaiting_approval", True),
        ("processing", False),
        ("outcome_unknown", False),
        ("succeeded", True),
        ("failed", True),
    ],
)
def test_an_order_is_cancelled_exactly_if_no_refund_of_it_is_under_way(
    status: str, cancelled: bool, shop: Any, make_operation: Callable[..., Operation]
) -> None:
    refund_in(shop, make_operation(), status)
    assert (cancel_order(shop, TENANT, "ORD-1001") is not None) is cancelled
    assert shop.one(STATE)[:2] == (("cancelled", 2) if cancelled else ("confirmed", 1))


@pytest.mark.parametrize("other", [{"order_id": "ORD-2"}, {"tenant_id": OTHER_TENANT}])
def test_a_refund_of_another_order_does_not_stand_in_the_way(
    other: dict[str, str], shop: Any, make_operation: Callable[..., Operation]
) -> None:
    refund_in(shop, make_operation(**other), "processing")
    assert cancel_order(shop, TENANT, "ORD-1001") is not None
