"""The one pipeline that naive and safe designs share.

It follows section 15 of the lesson, with two changes: the look-up for a duplicate comes
before the balance check (else a finished full refund, asked for again, is refused for lack
of balance instead of getting its recorded answer), and both run in one transaction with
the outbox row. Only the pipeline yields; policies decide, or write in a transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from simulator.service import audit as audit_log
from simulator.service.answers import Answer
from simulator.service.balance import order_of
from simulator.service.errors import (
    CommitUnknown,
    DatabaseUnavailable,
    Silence,
)
from simulator.service.keys import fingerprint
from simulator.service.operations import FINAL, REFUND, Operation, Row, move
from simulator.service.outbox import Job, Outbox, Publish, enqueue, release
from simulator.service.payment import PROVIDER_TIMEOUT, Outcome, pay
from simulator.service.schemas import (
    InvalidRequest,
    Session,
    ToolCall,
    minor_units,
)

if TYPE_CHECKING:
    from simulator.service.design import Design
    from simulator.service.runtime import Runtime, Steps, Transaction

__all__ = [
    "Begun",
    "begin",
    "conclude",
    "finish",
    "handle",
    "once",
]

T = TypeVar("T")

SETTLE = 5.0
"""Seconds that a caller is kept waiting for a final outcome."""

DATABASE_TRIES = 6
"""Tries to get a transaction committed, 0.5 s, 1 s, 2 s … apart: 15 s, half a lease. After
that the process gives up: a backend answers with an error, a worker is started anew."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What `begin` found.

    Attributes:
        word: "new", "known", "conflict", "refused" or "denied".
        row: of a known operation, or of a refusal.
        operation: of what is new or known.
    """

    word: str
    row: Row | None = None
    operation: Operation | None = None


class Notes:
    """Audit entries of one transaction: written with it, or kept for one of their own."""

    def __init__(self, tx: Transaction, design: Design, later: list[tuple[Any, ...]]) -> None:
        self.tx = tx
        self.audit = design.audit
        self.later = later

    def add(self, operation: Operation, event: str, detail: str = "") -> None:
        if self.audit.with_the_change:
            audit_log.append(self.tx, operation.intent_id, operation.id, event, detail)
        elif self.audit.kept:
            self.later.append((operation.intent_id, operation.id, event, detail))


def handle(rt: Runtime, d: Design, call: ToolCall, session: Session) -> Steps[Answer]:
    """One tool call in, one answer out: steps 1 to 8 and 10, in the backend."""
    if not d.may(session):
        yield from once(rt, d, refuse, session.intent_id, "denied", "no permission")
        return d.answer_to("denied", None)
    try:
        request = d.parse(call, session)
    except InvalidRequest as error:
        yield from once(rt, d, refuse, session.intent_id, "refused", str(error))
        return d.answer_to("refused", refusal(str(error)))
    tenant_id, user_id = d.whose(session)
    admitted = Admitted(
        id=rt.new_id(),
        tenant_id=tenant_id,
        user_id=user_id,
        intent_id=session.intent_id,
        call_id=call.call_id,
        order_id=request.order_id,
        amount=request.amount,
        model_key=str(call.arguments.get("refund_request_id", "")),
    )
    publishes = d.dispatch.when if isinstance(d.dispatch, Publish) else None
    if publishes == "before":
        yield from publish(rt, admitted.operation(d, "USD"))
    begun = yield from once(rt, d, begin, admitted)
    operation, row = begun.operation, begun.row
    if operation is None:
        return d.answer_to(begun.word, row)
    if begun.word == "new":
        if d.dispatch.inline:
            outcome = yield from pay(rt, d, operation)
            yield from once(rt, d, finish, operation, outcome)
            row = Row(outcome.status, {"detail": outcome.detail})
        elif publishes == "after":
            yield from publish(rt, operation)
    if d.record.durable:
        try:
            row = yield from rt.settled(operation, SETTLE)
        except DatabaseUnavailable:
            row = None
    return d.answer_to(begun.word, row)


def once(rt: Runtime, d: Design, transaction: Callable[..., T], *arguments: Any) -> Steps[T]:
    """Runs a transaction until it is known to have been committed, or gives up.

    With a durable record every transaction here may run twice and changes things once, so an
    unknown commit is simply run again. Without one, nothing protects a second run: the error
    goes up, and the caller gets no answer.
    """
    for attempt in count():
        later: list[tuple[Any, ...]] = []
        try:
            result = yield from rt.transact(transaction, d, later, *arguments)
        except (DatabaseUnavailable, CommitUnknown):
            if not d.record.durable or attempt + 1 >= DATABASE_TRIES:
                raise
            yield from rt.sleep(0.5 * 2.0**attempt)
            continue
        if later:
            yield from rt.transact(write_audit, later)
        return result
    raise AssertionError("unreachable")


def write_audit(tx: Transaction, entries: list[tuple[Any, ...]]) -> None:
    """The audit rows of a change that is committed already (AuditAfterwards)."""
    for entry in entries:
        audit_log.append(tx, *entry)


class Admitted(NamedTuple):
    """A checked request; the order will say its currency."""

    id: str
    tenant_id: str
    user_id: str
    intent_id: str
    call_id: str
    order_id: str
    amount: Any
    model_key: str

    def operation(self, d: Design, currency: str) -> Operation:
        """The operation that this request asks for.

        Raises:
            InvalidRequest: the currency cannot express the amount.
        """
        amount = minor_units(self.amount, currency)
        return Operation(
            id=self.id,
            tenant_id=self.tenant_id,
            user_id=self.user_id,
            intent_id=self.intent_id,
            call_id=self.call_id,
            order_id=self.order_id,
            amount=amount,
            currency=currency,
            model_key=self.model_key,
            key=d.identify(self.tenant_id, self.intent_id, self.model_key),
            fingerprint=fingerprint(self.tenant_id, REFUND, self.order_id, amount, currency),
        )


def refuse(
    tx: Transaction,
    d: Design,
    later: list[tuple[Any, ...]],
    intent_id: str,
    event: str,
    detail: str,
) -> None:
    """Writes down a refusal that came before there was an operation."""
    if d.audit.with_the_change:
        audit_log.append(tx, intent_id, None, event, detail)
    elif d.audit.kept:
        later.append((intent_id, None, event, detail))


def begin(tx: Transaction, d: Design, later: list[tuple[Any, ...]], admitted: Admitted) -> Begun:
    """Look-up, balance and promise, in ONE transaction."""
    order = order_of(tx, admitted.tenant_id, admitted.order_id)
    try:
        operation = admitted.operation(d, "USD" if order is None else order.currency)
    except InvalidRequest as error:
        refuse(tx, d, later, admitted.intent_id, "refused", str(error))
        return Begun("refused", refusal(str(error)))
    if not d.owns(order, operation):
        refuse(tx, d, later, operation.intent_id, "denied", "not an order of this user")
        return Begun("denied")
    notes = Notes(tx, d, later)
    word = d.begin_record(tx, operation)
    if word == "known":
        return Begun("known", d.record.row(tx, operation), operation)
    if word == "conflict":
        refuse(tx, d, later, operation.intent_id, "conflict", "other payload under the key")
        return Begun("conflict")
    if d.record.durable:
        notes.add(operation, "->pending")
    if not d.balance.take(tx, operation):
        reason = "it exceeds the refundable balance of the order."
        if d.record.durable:
            move(tx, operation.id, "pending", "failed", {"detail": reason})
            notes.add(operation, "pending->failed", reason)
            conclude(tx, d, operation)
        else:
            refuse(tx, d, later, operation.intent_id, "refused", reason)
        return Begun("refused", refusal(reason))
    if isinstance(d.dispatch, Outbox):
        enqueue(tx, operation.id, "refund")
    elif d.dispatch.inline and d.record.durable:
        move(tx, operation.id, "pending", "processing")
        notes.add(operation, "pending->processing")
    return Begun("new", None, operation)


def refusal(reason: str) -> Row:
    """A row for what was refused before, or without, a record."""
    return Row("failed", {"detail": reason})


def publish(rt: Runtime, operation: Operation) -> Steps[None]:
    """Sends the message and hopes: nobody tries again if the broker stays silent."""
    try:
        yield from rt.call("broker.publish", operation, timeout=PROVIDER_TIMEOUT)
    except Silence:
        return


def finish(
    tx: Transaction,
    d: Design,
    later: list[tuple[Any, ...]],
    operation: Operation,
    outcome: Outcome,
    job: Job | None = None,
) -> bool:
    """Books an outcome; with a job, ends its claim. False if the write came too late."""
    notes = Notes(tx, d, later)
    checked = not isinstance(d.dispatch, Outbox) or d.dispatch.fence
    if job is not None:
        done = outcome.status in FINAL
        again_in = None if done else _again_in(d, tx, job, outcome)
        if not release(tx, job, checked, again_in, done):
            return False
    before = d.record.finish(tx, operation, outcome.status, {"detail": outcome.detail}, checked)
    if before is None:
        return False
    d.balance.settle(tx, operation, before, outcome.status)
    if d.record.durable:
        notes.add(operation, f"{before}->{outcome.status}", outcome.detail)
    if outcome.status in FINAL:
        conclude(tx, d, operation)
    return True


def _again_in(d: Design, tx: Transaction, job: Job, outcome: Outcome) -> float | None:
    """Seconds until an unknown outcome is looked into again; None: never."""
    if not d.recovery.takes_over or d.recovery.every is None:
        return None
    delay = d.delay_after(job.tries, tx.random)
    if delay is None:
        delay = d.recovery.every
    return max(delay, outcome.again_in or 0.0)


def conclude(tx: Transaction, d: Design, operation: Operation) -> None:
    """What a final state brings with it: the promise to tell the customer."""
    if getattr(d.answer, "follow_up", False):
        enqueue(tx, operation.id, "tell")
