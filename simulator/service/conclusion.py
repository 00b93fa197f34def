"""How an operation comes to its end, and what that brings with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.service.operations import Operation, move
from simulator.service.outbox import enqueue

if TYPE_CHECKING:
    from simulator.service.audit import Notes
    from simulator.service.design import Design
    from simulator.service.runtime import Transaction

__all__ = ["conclude", "fail"]


def conclude(tx: Transaction, d: Design, operation: Operation) -> None:
    """What a final state brings with it: the promise to tell the customer."""
    if getattr(d.answer, "follow_up", False):
        enqueue(tx, operation.id, "tell")


def fail(
    tx: Transaction, d: Design, notes: Notes, operation: Operation, before: str, reason: str
) -> bool:
    """Ends an operation that was never sent: the balance is free again, the customer is told.

    False, and nothing is written, if it is not in the state `before` any more.
    """
    if not move(tx, operation.id, before, "failed", {"detail": reason}):
        return False
    d.balance.settle(tx, operation, before, "failed")
    notes.add(operation, f"{before}->failed", reason)
    conclude(tx, d, operation)
    return True
