"""Questions for a human, opened where the service must not guess."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator.service.runtime import Transaction

__all__ = ["open_task"]

OPEN_TASK = """
    INSERT INTO tasks (operation_id, topic, reason, opened_at)
    VALUES (:operation_id, :topic, :reason, :now)
    ON CONFLICT (operation_id, topic) DO NOTHING
"""


def open_task(tx: Transaction, operation_id: str, topic: str, reason: str) -> None:
    """Opens a question; a second one about the same thing changes nothing."""
    tx.execute(
        OPEN_TASK,
        {"operation_id": operation_id, "topic": topic, "reason": reason, "now": tx.time()},
    )
