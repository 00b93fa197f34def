"""Operations: our record of one intent, and the states it may pass through.

    pending ──> processing ──┬──> succeeded          (final)
       │            ▲        ├──> failed             (final: definitely not done)
       ▼            │        └──> outcome_unknown ───┬──> succeeded
    awaiting_       └────────────────(same key)──────┤
    approval                                         └──> failed  (proved not done)

What was never sent may fail, too: pending (no balance), awaiting_approval (no consent).
A design's `record` is one of the classes below: none, in memory, or durable.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from simulator.service.checks import fits_its_types, needs_seconds

if TYPE_CHECKING:
    from simulator.service.runtime import Transaction

__all__ = [
    "FINAL",
    "REFUND",
    "TRANSITIONS",
    "DurableRecord",
    "MemoryRecord",
    "NoRecord",
    "Operation",
    "Row",
    "is_legal",
    "move",
]

TRANSITIONS: dict[str, frozenset[str]] = {
    "pending": frozenset({"processing", "awaiting_approval", "failed"}),
    "awaiting_approval": frozenset({"pending", "failed"}),
    "processing": frozenset({"succeeded", "failed", "outcome_unknown"}),
    "outcome_unknown": frozenset({"processing", "succeeded", "failed"}),
    "succeeded": frozenset(),
    "failed": frozenset(),
}
REFUND = "refund"
FINAL = frozenset({"succeeded", "failed"})


def is_legal(before: str | None, after: str) -> bool:
    """Whether the table allows this change; `before` is None for a new operation."""
    return after == "pending" if before is None else after in TRANSITIONS.get(before, frozenset())


class Operation(NamedTuple):
    """One intent, as the service sees it: from the session, and from checked arguments.

    Attributes:
        id: UUID of our row.
        key: the idempotency key of our record.
        amount: minor units of `currency`.
        model_key: what the model wrote where the published schema asks for an id.
        fingerprint: digest of what is asked for; two payloads under one key differ in it.
        order_version: of the order that the request was checked against.
        action: the kind of operation, as `tool_operations.action_type` has it.
        arguments: of an operation that moves no money, as JSON in one spelling.
    """

    id: str
    tenant_id: str
    user_id: str
    intent_id: str
    call_id: str
    order_id: str
    amount: int
    currency: str
    model_key: str
    key: str
    fingerprint: str
    order_version: int = 1
    action: str = REFUND
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """An operation as it stands: its state, and the result if there is one."""

    status: str
    result: dict[str, Any] | None = None

    @property
    def final(self) -> bool:
        return self.status in FINAL

    @classmethod
    def read(cls, status: str, result: Any) -> Row:
        """A row as a database gives it: JSON is text in SQLite, a dict in PostgreSQL."""
        return cls(status, json.loads(result) if isinstance(result, str) else result)


MOVE = """
    UPDATE tool_operations
    SET status = :after, result = COALESCE(:result, result), updated_at = :now
    WHERE id = :id AND status = :before
"""
MOVE_UNCHECKED = """
    UPDATE tool_operations
    SET status = :after, result = COALESCE(:result, result), updated_at = :now
    WHERE id = :id
"""


def move(
    tx: Transaction,
    operation_id: str,
    before: str,
    after: str,
    result: dict[str, Any] | None = None,
) -> bool:
    """Changes the state from `before` to `after`; False if it was not `before` any more.

    Raises:
        ValueError: the table has no such change.
    """
    if not is_legal(before, after):
        raise ValueError(f"An operation cannot go from {before} to {after}.")
    cursor = tx.execute(
        MOVE,
        {
            "id": operation_id,
            "before": before,
            "after": after,
            "result": None if result is None else json.dumps(result),
            "now": tx.time(),
        },
    )
    return bool(cursor.rowcount == 1)


@dataclass(frozen=True, slots=True)
class NoRecord:
    """Remembers nothing: every call is new."""

    durable: ClassVar[bool] = False
    looks_first: ClassVar[bool] = False

    def forget(self, tx: Transaction, operation: Operation) -> None:
        """Removes what is remembered."""

    def begin(self, tx: Transaction, operation: Operation) -> str:
        return "new"

    def row(self, tx: Transaction, operation: Operation) -> Row | None:
        return None

    def finish(
        self,
        tx: Transaction,
        operation: Operation,
        status: str,
        result: dict[str, Any],
        checked: bool,
    ) -> str | None:
        return "processing"


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A dict in the process: what section 6 of the lesson forbids.

    It dies with the process, no other instance sees it, and it compares no payloads.
    """

    durable: ClassVar[bool] = False
    looks_first: ClassVar[bool] = False

    def forget(self, tx: Transaction, operation: Operation) -> None:
        tx.memory.get("operations", {}).pop(operation.key, None)

    def begin(self, tx: Transaction, operation: Operation) -> str:
        rows = tx.memory.setdefault("operations", {})
        if operation.key in rows:
            return "known"
        rows[operation.key] = Row("processing")
        return "new"

    def row(self, tx: Transaction, operation: Operation) -> Row | None:
        found: Row | None = tx.memory.get("operations", {}).get(operation.key)
        return found

    def finish(
        self,
        tx: Transaction,
        operation: Operation,
        status: str,
        result: dict[str, Any],
        checked: bool,
    ) -> str | None:
        tx.memory.setdefault("operations", {})[operation.key] = Row(status, result)
        return "processing"


INSERT_OPERATION = """
    INSERT INTO tool_operations
        (id, tenant_id, idempotency_key, action_type, request_hash, status, created_at, updated_at)
    VALUES (:id, :tenant_id, :key, :action, :fingerprint, 'pending', :now, :now)
    ON CONFLICT (tenant_id, idempotency_key) DO NOTHING
"""
UPSERT_OPERATION = """
    INSERT INTO tool_operations
        (id, tenant_id, idempotency_key, action_type, request_hash, status, created_at, updated_at)
    VALUES (:id, :tenant_id, :key, :action, :fingerprint, 'pending', :now, :now)
    ON CONFLICT (tenant_id, idempotency_key) DO UPDATE
    SET id = excluded.id, status = 'pending', result = NULL, updated_at = excluded.updated_at
"""
REMOVE = (
    "DELETE FROM refunds WHERE operation_id = :id",
    "DELETE FROM actions WHERE operation_id = :id",
    "DELETE FROM outbox WHERE operation_id = :id",
    "DELETE FROM tool_operations WHERE id = :id",
)
INSERT_REFUND = """
    INSERT INTO refunds
        (operation_id, intent_id, call_id, model_key, user_id, order_id, amount, currency,
         order_version)
    VALUES (:id, :intent_id, :call_id, :model_key, :user_id, :order_id, :amount, :currency,
            :order_version)
"""
INSERT_ACTION = """
    INSERT INTO actions (operation_id, intent_id, call_id, user_id, arguments)
    VALUES (:id, :intent_id, :call_id, :user_id, :arguments)
"""
FORGOTTEN = """
    SELECT id FROM tool_operations
    WHERE status IN ('succeeded', 'failed') AND updated_at <= :before
"""
FORGET = (
    f"DELETE FROM refunds WHERE operation_id IN ({FORGOTTEN})",
    f"DELETE FROM actions WHERE operation_id IN ({FORGOTTEN})",
    f"DELETE FROM outbox WHERE operation_id IN ({FORGOTTEN})",
    "DELETE FROM tool_operations WHERE status IN ('succeeded', 'failed') AND updated_at <= :before",
)
FIND_OPERATION = """
    SELECT id, request_hash, status, result FROM tool_operations
    WHERE tenant_id = :tenant_id AND idempotency_key = :key
"""


@dataclass(frozen=True, slots=True)
class DurableRecord:
    """A row of `tool_operations`, inserted first: the UNIQUE constraint decides who is new.

    Attributes:
        fingerprint: compare the payload with the recorded one, and refuse another (409).
        keep: seconds after which a finished operation is forgotten; None: never. What is kept
            of it is its tombstone: it must outlive the latest redelivery.
        claim: how the first one is told from the others. "insert": by the UNIQUE constraint;
            "look up": by a look in a transaction of its own, so that two who look at the same
            time are both the first (cases B47, B88); "upsert": by nothing, a duplicate sets
            the row back to its beginning (case B66).
    """

    fingerprint: bool = True
    keep: float | None = None
    claim: str = "insert"
    durable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        fits_its_types(self)
        needs_seconds(self, "keep", or_none=True)
        if self.claim not in ("insert", "look up", "upsert"):
            raise ValueError(
                f"DurableRecord(claim={self.claim!r}): say 'insert', 'look up' or 'upsert'."
            )

    @property
    def looks_first(self) -> bool:
        """Whether somebody looks, in a transaction of its own, before anybody writes."""
        return self.claim == "look up"

    def forget(self, tx: Transaction, operation: Operation) -> None:
        for statement in REMOVE:
            tx.execute(statement, {"id": operation.id})

    def begin(self, tx: Transaction, operation: Operation) -> str:
        if self.keep is not None:
            before = tx.time(-self.keep)
            for statement in FORGET:
                tx.execute(statement, {"before": before})
        if self.claim == "upsert":
            found = self._find(tx, operation)
            for statement in () if found is None else REMOVE[:-1]:
                tx.execute(statement, {"id": found[0]})
        inserted = tx.execute(
            UPSERT_OPERATION if self.claim == "upsert" else INSERT_OPERATION,
            {
                "id": operation.id,
                "tenant_id": operation.tenant_id,
                "key": operation.key,
                "action": operation.action,
                "fingerprint": operation.fingerprint,
                "now": tx.time(),
            },
        )
        if inserted.rowcount == 1:
            if operation.action != REFUND:
                tx.execute(INSERT_ACTION, operation._asdict())
                return "new"
            tx.execute(
                INSERT_REFUND,
                {
                    "id": operation.id,
                    "intent_id": operation.intent_id,
                    "call_id": operation.call_id,
                    "model_key": operation.model_key,
                    "user_id": operation.user_id,
                    "order_id": operation.order_id,
                    "amount": operation.amount,
                    "currency": operation.currency,
                    "order_version": operation.order_version,
                },
            )
            return "new"
        if self.looks_first:
            return "new"  # whoever came between the look and this is not noticed
        word = self.look(tx, operation)
        assert word is not None, "what stands in the way of an insert is there"
        return word

    def look(self, tx: Transaction, operation: Operation) -> str | None:
        """What a look alone finds: "known", "conflict", or None if there is no such row."""
        found = self._find(tx, operation)
        if found is None:
            return None
        return "conflict" if self.fingerprint and found[1] != operation.fingerprint else "known"

    def row(self, tx: Transaction, operation: Operation) -> Row | None:
        found = self._find(tx, operation)
        if found is None:
            return None
        _, _, status, result = found
        return Row.read(status, result)

    def finish(
        self,
        tx: Transaction,
        operation: Operation,
        status: str,
        result: dict[str, Any],
        checked: bool,
    ) -> str | None:
        """Writes what became of it, and returns the state before; None if a checked write
        found the operation in a state that does not allow it.
        """
        row = self.row(tx, operation)
        if row is None:
            return None
        if checked:
            legal = is_legal(row.status, status)
            return (
                row.status if legal and move(tx, operation.id, row.status, status, result) else None
            )
        tx.execute(
            MOVE_UNCHECKED,
            {
                "id": operation.id,
                "after": status,
                "result": json.dumps(result),
                "now": tx.time(),
            },
        )
        return row.status

    def _find(self, tx: Transaction, operation: Operation) -> Any:
        return tx.execute(
            FIND_OPERATION, {"tenant_id": operation.tenant_id, "key": operation.key}
        ).fetchone()
