"""Questions for a human, opened where the service must not guess.

Runbook. Look the refund up at the provider first, by its intent (the metadata) and by order and
amount; never send it again by hand without having looked.

* "The outcome is unknown …": the provider has it: book it as succeeded. The provider does not:
  wait out its longest delay, look again, then book it as failed, and let the customer ask anew.
* "Claimed … times without a result (dead letter)": of a refund, the same; of anything else our own
  books say whether it was done. Then find out what kills the worker, for the row waits until
  somebody lets it go.
* "The provider refused: it looks like a duplicate": nothing was paid. Compare it with the refund
  that it is like; if both are owed, pay by hand, book it, and tell the customer.
* "It was booked as …, and the provider answers (or reports) …": trust the provider's ledger,
  correct ours by a new entry, never by changing an old one, and tell the customer.
* "… It is no amount of an order in …": find out at the provider what moved, and book it by hand.
* "More went back than was captured …": find out which of them was not owed, and claim it back.
* "The customer could not be told": tell the customer.

Whatever is decided is an entry of the audit log, with the person's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator.service.audit import Notes
    from simulator.service.operations import Operation
    from simulator.service.runtime import Transaction

__all__ = ["open_task"]

OPEN_TASK = """
    INSERT INTO tasks (operation_id, topic, reason, opened_at)
    VALUES (:operation_id, :topic, :reason, :now)
    ON CONFLICT (operation_id, topic) DO NOTHING
"""


def open_task(tx: Transaction, notes: Notes, operation: Operation, topic: str, reason: str) -> bool:
    """Opens a question, and writes down why. False if it is open: a second one about the same
    thing changes nothing.
    """
    values = {"operation_id": operation.id, "topic": topic, "reason": reason, "now": tx.time()}
    opened = bool(tx.execute(OPEN_TASK, values).rowcount == 1)
    if opened:
        notes.add(operation, "task", reason)
    return opened
