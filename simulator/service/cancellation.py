"""Cancelling orders: their states and their stock, all or nothing (section 7 of the lesson)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simulator.service.balance import OrderRow, order_of
from simulator.service.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from simulator.service.runtime import Transaction

__all__ = ["cancel_order", "cancel_orders", "why_not"]

UNDER_WAY = """
    SELECT COUNT(*) FROM tool_operations o JOIN refunds r ON r.operation_id = o.id
    WHERE o.tenant_id = :tenant_id AND r.order_id = :order_id
      AND o.status IN ('processing', 'outcome_unknown')
"""
CANCEL = """
    UPDATE orders SET status = 'cancelled', version = version + 1
    WHERE tenant_id = :tenant_id AND id = :order_id AND status = 'confirmed'
"""
RESTOCK = """
    INSERT INTO stock (tenant_id, sku, on_hand)
    SELECT tenant_id, sku, quantity FROM order_lines
    WHERE tenant_id = :tenant_id AND order_id = :order_id
    ON CONFLICT (tenant_id, sku) DO UPDATE SET on_hand = stock.on_hand + excluded.on_hand
"""


def why_not(tx: Transaction, tenant_id: str, order_id: str) -> str | None:
    """Why an order cannot be cancelled now, for a person; None if it can.

    It cannot while a refund of it is under way: nobody knows yet what is left to pay back.
    A refund that only waits, for a person or for a worker, is none: it will be looked at again
    before it is sent, and find the order changed.
    """
    order = order_of(tx, tenant_id, order_id)
    if order is None:
        return f"there is no order {order_id}."
    if order.status != "confirmed":
        return f"order {order_id} is {order.status}."
    if tx.execute(UNDER_WAY, {"tenant_id": tenant_id, "order_id": order_id}).fetchone()[0]:
        return f"a refund of order {order_id} is under way."
    return None


def cancel_order(tx: Transaction, tenant_id: str, order_id: str) -> OrderRow | None:
    """Cancels a confirmed order, and puts its goods back. Returns the order as it was, or None:
    nothing was changed.
    """
    which = {"tenant_id": tenant_id, "order_id": order_id}
    order = order_of(tx, tenant_id, order_id)
    if why_not(tx, tenant_id, order_id) is not None or tx.execute(CANCEL, which).rowcount != 1:
        return None
    tx.execute(RESTOCK, which)
    return order


def cancel_orders(tx: Transaction, tenant_id: str, order_ids: Sequence[str]) -> str | None:
    """Cancels all of these orders, or none. Returns why not, or None: it is done."""
    for order_id in order_ids:
        if (reason := why_not(tx, tenant_id, order_id)) is not None:
            return reason
    for order_id in order_ids:
        if cancel_order(tx, tenant_id, order_id) is None:
            # Somebody came between the look and the change: the whole transaction goes back.
            raise DatabaseUnavailable(f"order {order_id} changed meanwhile")
    return None
