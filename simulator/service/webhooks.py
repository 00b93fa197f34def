"""What the provider tells us of its own accord: early, twice, late, or in the wrong order.

A report repeats what the provider did. It is matched by the operation that we named when we
asked, never by the provider's reference, which we may not have heard of yet. A webhook policy
returns the HTTP status of our answer: the provider repeats what got no 200.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from simulator.service.audit import Notes
from simulator.service.balance import BOOK, DISPUTE, PAID_ELSEWHERE
from simulator.service.checks import fits_its_types, needs
from simulator.service.conclusion import conclude
from simulator.service.once import once
from simulator.service.operations import Operation, Row
from simulator.service.outbox import LOAD
from simulator.service.tasks import open_task

if TYPE_CHECKING:
    from simulator.service.design import Design
    from simulator.service.runtime import Runtime, Steps, Transaction

__all__ = ["OK", "BookByReference", "ByOperation", "IgnoreWebhooks", "Report", "receive"]

OK, NOT_FOUND, CONFLICT = 200, 404, 409


@dataclass(frozen=True, slots=True)
class Report:
    """One report of the provider.

    Attributes:
        id: of the event; copies of a report have one id.
        kind: "created", "succeeded" or "failed", of a refund that we asked for; "refunded" or
            "disputed", of money that went without us.
        intent_id: the metadata that we sent; "" if it was not our request.
        reference: the provider's name for it.
        amount: minor units.
    """

    id: str
    kind: str
    intent_id: str
    reference: str
    tenant_id: str
    order_id: str
    amount: int
    currency: str


FIND = """
    SELECT o.id FROM tool_operations o JOIN refunds r ON r.operation_id = o.id
    WHERE o.tenant_id = :tenant_id AND r.intent_id = :intent_id
    ORDER BY o.id LIMIT 1
"""
BY_REFERENCE = "SELECT 1 FROM tool_operations WHERE CAST(result AS TEXT) LIKE :reference LIMIT 1"
SEEN = "SELECT 1 FROM webhook_events WHERE id = :id"
MARK = """
    INSERT INTO webhook_events (id, received_at) VALUES (:id, :now) ON CONFLICT (id) DO NOTHING
"""


def receive(rt: Runtime, d: Design, report: Report) -> Steps[int]:
    """Takes a report, and returns the HTTP status of our answer."""
    if d.webhook.marker_first:
        fresh = yield from once(rt, d, mark, report)
        if not fresh:
            return OK
    status = yield from once(rt, d, note_report, report)
    return status


def mark(tx: Transaction, d: Design, later: list[tuple[Any, ...]], report: Report) -> bool:
    """Writes down that a report has come; False if it had come before."""
    marked = tx.execute(MARK, {"id": report.id, "now": tx.time()})
    return bool(marked.rowcount == 1)


def note_report(tx: Transaction, d: Design, later: list[tuple[Any, ...]], report: Report) -> int:
    """Books a report in one transaction; returns the HTTP status."""
    return d.webhook.take(tx, d, Notes(tx, d, later), report)


@dataclass(frozen=True, slots=True)
class IgnoreWebhooks:
    """Says thank you, and does nothing."""

    marker_first: ClassVar[bool] = False

    def take(self, tx: Transaction, d: Design, notes: Notes, report: Report) -> int:
        return OK


@dataclass(frozen=True, slots=True)
class BookByReference:
    """Looks for the provider's reference, and books a refund that it does not find as a new one.

    Case B04: the report overtakes the answer to our own request, so nobody knows the reference
    yet, and the answer then books the same refund a second time.
    """

    marker_first: ClassVar[bool] = False

    def take(self, tx: Transaction, d: Design, notes: Notes, report: Report) -> int:
        known = tx.execute(BY_REFERENCE, {"reference": f"%{report.reference}%"}).fetchone()
        if report.kind in ("succeeded", "refunded") and known is None:
            if not mark(tx, d, [], report):
                return OK
            tx.execute(BOOK, _of_order(report))
        return OK


@dataclass(frozen=True, slots=True)
class ByOperation:
    """Finds the operation by the intent that we named, and moves it where its state allows.

    Attributes:
        marker_first: write down that the report has come in a transaction of its own, before it
            is booked: a crash in between, and its repetition is told that all is done (B49).
        on_unknown: the answer to a report of an operation that we do not have (yet): 404, so
            that it is repeated, or 200, and it is gone for ever (case B29).
    """

    marker_first: bool = False
    on_unknown: int = NOT_FOUND

    def __post_init__(self) -> None:
        fits_its_types(self)
        is_status = 100 <= self.on_unknown <= 599
        needs(self, "on_unknown", is_status, "an HTTP status, 100 to 599")

    def take(self, tx: Transaction, d: Design, notes: Notes, report: Report) -> int:
        seen = tx.execute(SEEN, {"id": report.id}).fetchone() is not None
        if seen and not self.marker_first:
            return OK
        if not report.intent_id:
            self._without_us(tx, notes, report)
            status = OK
        else:
            status = self._of_ours(tx, d, notes, report)
        if status == OK:
            mark(tx, d, [], report)
        return status

    def _of_ours(self, tx: Transaction, d: Design, notes: Notes, report: Report) -> int:
        found = tx.execute(
            FIND, {"tenant_id": report.tenant_id, "intent_id": report.intent_id}
        ).fetchone()
        if found is None:
            return self.on_unknown
        *fields, status, _ = tx.execute(LOAD, {"operation_id": found[0]}).fetchone()
        operation = Operation(*fields)
        row = Row(status)
        if report.kind == "created" or status == report.kind:
            return OK  # nothing that we do not know
        if row.final:
            # Our books say one thing, the provider another. No rule may decide that.
            reason = f"It was booked as {status}, and the provider reports: {report.kind}."
            open_task(tx, operation.id, "contradiction", reason)
            notes.add(operation, "task", reason)
            return OK
        if status not in ("processing", "outcome_unknown"):
            return CONFLICT  # not sent by us, as far as we know: let it come again
        paid = report.kind == "succeeded"
        if paid and (report.amount, report.currency) != (operation.amount, operation.currency):
            reason = (
                f"{operation.amount} {operation.currency} were asked for, and the provider "
                f"reports {report.amount} {report.currency} (minor units)."
            )
            open_task(tx, operation.id, "contradiction", reason)
            notes.add(operation, "task", reason)
            return OK
        result = {"detail": report.reference if paid else "the provider could not pay it."}
        before = d.record.finish(tx, operation, report.kind, result, checked=True)
        if before is None:
            return CONFLICT
        d.balance.settle(tx, operation, before, report.kind)
        notes.add(operation, f"{before}->{report.kind}", f"reported: {report.reference}")
        conclude(tx, d, operation)
        return OK

    @staticmethod
    def _without_us(tx: Transaction, notes: Notes, report: Report) -> None:
        tx.execute(DISPUTE if report.kind == "disputed" else PAID_ELSEWHERE, _of_order(report))
        notes.entry("", None, report.kind, f"{report.reference} of {report.order_id}")


def _of_order(report: Report) -> dict[str, Any]:
    return {
        "tenant_id": report.tenant_id,
        "order_id": report.order_id,
        "amount": report.amount,
    }
