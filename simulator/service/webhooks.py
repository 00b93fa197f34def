"""What the provider tells us of its own accord: early, twice, late, or in the wrong order.

A report repeats what the provider did. It is matched by the operation that we named when we
asked, never by the provider's reference, which we may not have heard of yet. That it fits what we
asked for, or have booked, is compared all the same. A webhook policy returns the HTTP status of our
answer: the provider repeats what got no 200.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from simulator.service.audit import Notes
from simulator.service.balance import BOOK, DISPUTE, PAID_ELSEWHERE, order_of
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
NEWEST = """
    SELECT o.id FROM tool_operations o JOIN refunds r ON r.operation_id = o.id
    WHERE o.tenant_id = :tenant_id AND r.order_id = :order_id
    ORDER BY o.created_at DESC, o.id DESC LIMIT 1
"""
BY_REFERENCE = "SELECT 1 FROM tool_operations WHERE CAST(result AS TEXT) LIKE :reference LIMIT 1"
SEEN = "SELECT 1 FROM webhook_events WHERE id = :id"
MARK = """
    INSERT INTO webhook_events (id, received_at) VALUES (:id, :now) ON CONFLICT (id) DO NOTHING
"""

OF_OURS = ("created", "succeeded", "failed")
WITHOUT_US = {"refunded": PAID_ELSEWHERE, "disputed": DISPUTE}
REFERENCE = re.compile(r"(\S*[\d_-]\S*)( \S*\d\S*( [A-Z]{3})?)?")
"""One word that is none of a sentence, and perhaps the amount: "REF-1 $500.00", "REF-1 500 JPY"."""
UNREADABLE = "unreadable report"


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
            that it is repeated, or 200, and it is gone for ever (case B29). The same of an order.
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
        if report.kind not in (OF_OURS if report.intent_id else WITHOUT_US):
            said = f"{report.kind}: {report.reference} of {report.order_id}"
            notes.entry(report.intent_id, None, UNREADABLE, said)
            status = OK
        elif report.intent_id:
            status = self._of_ours(tx, d, notes, report)
        else:
            status = self._without_us(tx, notes, report)
        if status == OK:
            mark(tx, d, [], report)
        return status

    def _of_ours(self, tx: Transaction, d: Design, notes: Notes, report: Report) -> int:
        found = tx.execute(
            FIND, {"tenant_id": report.tenant_id, "intent_id": report.intent_id}
        ).fetchone()
        if found is None:
            return self.on_unknown
        *fields, status, booked = tx.execute(LOAD, {"operation_id": found[0]}).fetchone()
        operation, row = Operation(*fields), Row.read(status, booked)
        if report.kind == "created":
            return OK  # nothing that we do not know
        if not row.final and status not in ("processing", "outcome_unknown"):
            return CONFLICT  # not sent by us, as far as we know: let it come again
        reason = contradiction(operation, row, report)
        if reason is not None:
            # Our books say one thing, the provider another. No rule may decide that.
            ask_a_person(tx, notes, operation, "contradiction", reason)
            return OK
        if row.final:
            return OK
        paid = report.kind == "succeeded"
        result = {"detail": report.reference if paid else "the provider could not pay it."}
        before = d.record.finish(tx, operation, report.kind, result, checked=True)
        if before is None:
            return CONFLICT
        d.balance.settle(tx, operation, before, report.kind)
        notes.add(operation, f"{before}->{report.kind}", f"reported: {report.reference}")
        conclude(tx, d, operation)
        return OK

    def _without_us(self, tx: Transaction, notes: Notes, report: Report) -> int:
        order = order_of(tx, report.tenant_id, report.order_id)
        if order is None:
            return self.on_unknown
        which = f"{report.reference} of {report.order_id}"
        said = (
            f"The provider reports {report.amount} {report.currency} (minor units) "
            f"{report.kind}, {which}."
        )
        if report.currency != order.currency or report.amount < 1:
            said += f" It is no amount of an order in {order.currency}, and was not booked."
            ask_about_order(tx, notes, report, UNREADABLE, said)
            return OK
        (too_much,) = tx.execute(WITHOUT_US[report.kind], _of_order(report)).fetchone()
        notes.entry("", None, report.kind, which)
        if too_much > 0:
            said += f" More went back than was captured, by {too_much}."
            ask_about_order(tx, notes, report, "overdrawn", said)
        return OK


def contradiction(operation: Operation, row: Row, report: Report) -> str | None:
    """What a report of ours says against what we asked for, or have booked; None: nothing."""
    if row.final and row.status != report.kind:
        return f"It was booked as {row.status}, and the provider reports: {report.kind}."
    if report.kind != "succeeded":
        return None
    reported = (report.order_id, report.amount, report.currency)
    if reported != (operation.order_id, operation.amount, operation.currency):
        return (
            f"{operation.amount} {operation.currency} were asked for on {operation.order_id}, and "
            f"the provider reports {report.amount} {report.currency} on {report.order_id} "
            "(minor units)."
        )
    booked = str((row.result or {}).get("detail", "")) if row.final else ""
    if is_another(booked, report.reference):
        return f"It was booked as {booked}, and the provider reports another: {report.reference}."
    return None


def is_another(booked: str, reported: str) -> bool:
    """Whether both are the provider's names, and of two payments.

    What was booked by another path may have words in that place, and a report no name at all.
    """
    name = REFERENCE.fullmatch(booked)
    return name is not None and reported.split()[:1] not in ([], [name[1]])


def ask_a_person(
    tx: Transaction, notes: Notes, operation: Operation, topic: str, reason: str
) -> None:
    """Opens a question; where it is open, another report that contradicts is in the log, too."""
    if not open_task(tx, notes, operation, topic, reason):
        notes.add(operation, "task", reason)


def ask_about_order(tx: Transaction, notes: Notes, report: Report, event: str, reason: str) -> None:
    """Writes down what is wrong with an order, and opens a question about its newest refund: one
    of an order alone there is none.
    """
    notes.entry("", None, event, reason)
    which = {"tenant_id": report.tenant_id, "order_id": report.order_id}
    newest = tx.execute(NEWEST, which).fetchone()
    if newest is not None:
        *fields, _, _ = tx.execute(LOAD, {"operation_id": newest[0]}).fetchone()
        ask_a_person(tx, notes, Operation(*fields), event, reason)


def _of_order(report: Report) -> dict[str, Any]:
    return {
        "tenant_id": report.tenant_id,
        "order_id": report.order_id,
        "amount": report.amount,
    }
