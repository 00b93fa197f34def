"""What a tool changes in our own database alone: no provider, but the same record and consent.

An action is an operation like a refund: found again by its key, compared by its fingerprint,
audited, and held for a person where that is the rule. It is carried out in one transaction with
its record, so there is no unknown outcome: it was committed, or it was not.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from simulator.service.audit import Notes
from simulator.service.balance import order_of
from simulator.service.cancellation import cancel_orders
from simulator.service.conclusion import conclude
from simulator.service.operations import Operation, Row, move
from simulator.service.profiles import delete_profile, profile_exists

if TYPE_CHECKING:
    from simulator.service.design import Design
    from simulator.service.runtime import Transaction

__all__ = ["BULK", "CANCEL", "DELETE_PROFILE", "action_asks_consent", "perform", "state_of"]

CANCEL = "cancel_orders"
DELETE_PROFILE = "delete_profile"

DONE = {
    CANCEL: "the orders are cancelled, and their goods are back in stock.",
    DELETE_PROFILE: "the profile is deleted, for ever.",
}

BULK = 2
"""From so many orders on a cancellation needs a person's consent."""


def action_asks_consent(action: str, arguments: str) -> bool:
    """Whether this may not be done without a person's consent."""
    return action == DELETE_PROFILE or len(_orders(arguments)) >= BULK


def state_of(tx: Transaction, operation: Operation) -> str | int:
    """What the operation would change, as it is now: consent is given to exactly this.

    Of a refund it is the order's version.
    """
    if operation.action == DELETE_PROFILE:
        return str(profile_exists(tx, operation.tenant_id, operation.user_id))
    if operation.action == CANCEL:
        found = [order_of(tx, operation.tenant_id, name) for name in _orders(operation.arguments)]
        return json.dumps([order and [order.status, order.version] for order in found])
    order = order_of(tx, operation.tenant_id, operation.order_id)
    return "gone" if order is None else order.version


def perform(tx: Transaction, d: Design, notes: Notes, operation: Operation) -> Row:
    """Carries out a pending action, and books how it ended; returns the final row."""
    move(tx, operation.id, "pending", "processing")
    notes.add(operation, "pending->processing")
    if operation.action == CANCEL:
        reason = cancel_orders(tx, operation.tenant_id, _orders(operation.arguments))
    else:
        reason = delete_profile(tx, operation.tenant_id, operation.user_id)
    status = "succeeded" if reason is None else "failed"
    detail = reason or DONE[operation.action]
    result = {"detail": detail}
    d.record.finish(tx, operation, status, result, checked=True)
    notes.add(operation, f"processing->{status}", detail)
    conclude(tx, d, operation)
    return Row(status, result)


def _orders(arguments: str) -> list[str]:
    names: Any = json.loads(arguments).get("order_ids", [])
    return [str(name) for name in names]
