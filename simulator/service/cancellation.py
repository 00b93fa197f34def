"""Cancelling an order: its state, its money and its stock, all or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.service.balance import OrderRow, order_of

if TYPE_CHECKING:
    from simulator.service.runtime import Transaction

__all__ = ["cancel_order"]

UNDER_WAY = """
    SELECT COUNT(*) FROM tool_operations o JOIN refunds r ON r.operation_id = o.id
    WHERE o.tenant_id = :tenant_id AND r.order_id = :order_id
      AND o.status IN ('processing', 'outcome_unknown')
"""
CANCEL = """
    UPDATE orders SET status = 'cancelled', version = version + 1
    WHERE tenant_id = :tenant_id AND id = :order_id AND status = 'confirmed'
"""


def cancel_order(tx: Transaction, tenant_id: str, order_id: str) -> OrderRow | None:
    """Cancels a confirmed order. Returns the order as it was, or None: it was not cancelled.

    It is not while a refund of it is under way: nobody knows yet what is left to pay back.
    A refund that only waits, for a person or for a worker, is none: it will be looked at again
    before it is sent, and find the order changed.
    """
    which = {"tenant_id": tenant_id, "order_id": order_id}
    order = order_of(tx, tenant_id, order_id)
    if order is None or tx.execute(UNDER_WAY, which).fetchone()[0]:
        return None
    return order if tx.execute(CANCEL, which).rowcount == 1 else None
