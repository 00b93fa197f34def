"""The audit log: who did what to which operation, appended and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from simulator.service.design import Design
    from simulator.service.operations import Operation
    from simulator.service.runtime import Transaction

__all__ = ["AuditAfterwards", "AuditInTransaction", "NoAudit", "Notes", "append"]

APPEND = """
    INSERT INTO audit_log (at, intent_id, operation_id, event, detail)
    VALUES (:at, :intent_id, :operation_id, :event, :detail)
"""


def append(
    tx: Transaction, intent_id: str, operation_id: str | None, event: str, detail: str
) -> None:
    """Appends one row in the transaction that is open."""
    tx.execute(
        APPEND,
        {
            "at": tx.time(),
            "intent_id": intent_id,
            "operation_id": operation_id,
            "event": event,
            "detail": detail,
        },
    )


@dataclass(frozen=True, slots=True)
class NoAudit:
    """Keeps no log."""

    kept: ClassVar[bool] = False
    with_the_change: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class AuditAfterwards:
    """Writes the log in a transaction of its own, after the change: a crash falls between."""

    kept: ClassVar[bool] = True
    with_the_change: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class AuditInTransaction:
    """Writes the log in the transaction that makes the change: both or neither."""

    kept: ClassVar[bool] = True
    with_the_change: ClassVar[bool] = True


class Notes:
    """Audit entries of one transaction: written with it, or kept for one of their own."""

    def __init__(self, tx: Transaction, design: Design, later: list[tuple[Any, ...]]) -> None:
        self.tx = tx
        self.audit = design.audit
        self.later = later

    def add(self, operation: Operation, event: str, detail: str = "") -> None:
        """Writes down what happened to an operation."""
        self.entry(operation.intent_id, operation.id, event, detail)

    def entry(self, intent_id: str, operation_id: str | None, event: str, detail: str) -> None:
        """Writes down what happened; `operation_id` is None before there is an operation."""
        if self.audit.with_the_change:
            append(self.tx, intent_id, operation_id, event, detail)
        elif self.audit.kept:
            self.later.append((intent_id, operation_id, event, detail))
