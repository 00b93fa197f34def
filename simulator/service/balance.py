"""The order's refundable balance: captured - refunded - pending - disputed, in minor units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from simulator.service.operations import FINAL, Operation

if TYPE_CHECKING:
    from simulator.service.runtime import Transaction

__all__ = [
    "BOOK",
    "DISPUTE",
    "PAID_ELSEWHERE",
    "TOO_MUCH",
    "CheckThenAct",
    "NoBalance",
    "OrderRow",
    "Reserved",
    "order_of",
]

TOO_MUCH = "it exceeds the refundable balance of the order."

FIND_ORDER = """
    SELECT user_id, currency, captured, refunded, pending, disputed, status, version FROM orders
    WHERE tenant_id = :tenant_id AND id = :order_id
"""
RESERVE = """
    UPDATE orders SET pending = pending + :amount
    WHERE tenant_id = :tenant_id AND id = :order_id
      AND captured - refunded - pending - disputed >= :amount
"""
RELEASE = """
    UPDATE orders SET pending = pending - :amount, refunded = refunded + :paid
    WHERE tenant_id = :tenant_id AND id = :order_id
"""
BOOK = """
    UPDATE orders SET refunded = refunded + :amount
    WHERE tenant_id = :tenant_id AND id = :order_id
"""
PAID_ELSEWHERE = """
    UPDATE orders SET refunded = refunded + :amount, version = version + 1
    WHERE tenant_id = :tenant_id AND id = :order_id
    RETURNING refunded + disputed - captured
"""
DISPUTE = """
    UPDATE orders SET disputed = disputed + :amount, version = version + 1
    WHERE tenant_id = :tenant_id AND id = :order_id
    RETURNING refunded + disputed - captured
"""


class OrderRow(NamedTuple):
    """An order as our books have it; money in minor units.

    Attributes:
        disputed: what the customer's bank took back (a chargeback).
        status: "confirmed" or "cancelled".
        version: grows with every change that a check made earlier cannot have known of.
    """

    user_id: str
    currency: str
    captured: int
    refunded: int
    pending: int
    disputed: int = 0
    status: str = "confirmed"
    version: int = 1


def order_of(tx: Transaction, tenant_id: str, order_id: str) -> OrderRow | None:
    """The tenant's order, or None: another tenant's order is not there."""
    row = tx.execute(FIND_ORDER, {"tenant_id": tenant_id, "order_id": order_id}).fetchone()
    return None if row is None else OrderRow(*row)


def _which(operation: Operation, **more: int) -> dict[str, Any]:
    return {"tenant_id": operation.tenant_id, "order_id": operation.order_id, **more}


@dataclass(frozen=True, slots=True)
class NoBalance:
    """Never looks. Books what was paid."""

    def take(self, tx: Transaction, operation: Operation) -> bool:
        return True

    def holds(self, order: OrderRow, operation: Operation) -> bool:
        return True

    def settle(self, tx: Transaction, operation: Operation, before: str, status: str) -> None:
        if status == "succeeded":
            tx.execute(BOOK, _which(operation, amount=operation.amount))


@dataclass(frozen=True, slots=True)
class CheckThenAct:
    """Looks at what was refunded so far; what is under way it does not see."""

    def take(self, tx: Transaction, operation: Operation) -> bool:
        order = order_of(tx, operation.tenant_id, operation.order_id)
        return order is not None and self.holds(order, operation)

    def holds(self, order: OrderRow, operation: Operation) -> bool:
        return order.captured - order.refunded >= operation.amount

    def settle(self, tx: Transaction, operation: Operation, before: str, status: str) -> None:
        if status == "succeeded":
            tx.execute(BOOK, _which(operation, amount=operation.amount))


@dataclass(frozen=True, slots=True)
class Reserved:
    """Takes the amount out of the balance before the provider is asked, in one guarded update.

    It stays reserved until the outcome is final.
    """

    def take(self, tx: Transaction, operation: Operation) -> bool:
        return bool(tx.execute(RESERVE, _which(operation, amount=operation.amount)).rowcount == 1)

    def holds(self, order: OrderRow, operation: Operation) -> bool:
        """Whether what was reserved is still there; the operation's own amount is pending."""
        return order.refunded + order.pending + order.disputed <= order.captured

    def settle(self, tx: Transaction, operation: Operation, before: str, status: str) -> None:
        if status in FINAL:
            paid = operation.amount if status == "succeeded" else 0
            tx.execute(RELEASE, _which(operation, amount=operation.amount, paid=paid))
