"""The one pipeline that naive and safe designs share.

It follows section 15 of the lesson, with two changes: the look-up for a duplicate comes
before the balance check (else a finished full refund, asked for again, is refused for lack
of balance instead of getting its recorded answer), and both run in one transaction with
the outbox row. Only the pipeline yields; policies decide, or write in a transaction.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simulator.service import approval
from simulator.service.answers import Answer
from simulator.service.audit import Notes
from simulator.service.balance import TOO_MUCH, OrderRow, order_of
from simulator.service.conclusion import conclude
from simulator.service.errors import CommitUnknown, DatabaseUnavailable, Silence
from simulator.service.keys import fingerprint, operation_key
from simulator.service.money import plain_units
from simulator.service.once import once, write_audit
from simulator.service.operations import FINAL, REFUND, DurableRecord, Operation, Row, move
from simulator.service.outbox import Job, Outbox, Publish, promise, release
from simulator.service.payment import PROVIDER_TIMEOUT, Outcome, pay
from simulator.service.retry_limits import next_wait
from simulator.service.schemas import (
    InvalidRequest,
    Session,
    ToolCall,
    storable,
)
from simulator.service.tasks import open_task

if TYPE_CHECKING:
    from simulator.service.design import Design
    from simulator.service.runtime import Runtime, Steps, Transaction

__all__ = [
    "Begun",
    "begin",
    "consent",
    "finish",
    "handle",
]

SETTLE = 5.0
"""Seconds that a caller is kept waiting for a final outcome."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What `begin` found.

    Attributes:
        word: "new", "known", "conflict", "refused", "denied" or "invalid".
        row: of a known operation, or of a refusal.
        operation: of what is new or known.
    """

    word: str
    row: Row | None = None
    operation: Operation | None = None


def handle(rt: Runtime, d: Design, call: ToolCall, session: Session) -> Steps[Answer]:
    """One tool call in, one answer out: steps 1 to 8 and 10, in the backend."""
    if not d.may(session):
        yield from once(rt, d, refuse, session.intent_id, "denied", "no permission")
        return d.answer_to("denied", None)
    try:
        request = d.parse(call, session)
    except InvalidRequest as error:
        yield from once(rt, d, refuse, session.intent_id, "invalid", str(error))
        return d.answer_to("invalid", unreadable(error))
    tenant_id, user_id = d.whose(session, call)
    admitted = Admitted(
        id=rt.new_id(),
        tenant_id=tenant_id,
        user_id=user_id,
        intent_id=session.intent_id,
        call_id=storable(call.call_id),
        order_id=request.order_id,
        amount=request.amount,
        model_key=storable(call.arguments.get("refund_request_id", "")),
        call=call,
    )
    if isinstance(d.dispatch, Publish) and d.dispatch.when == "before":
        # Nobody has looked at the order yet, so its currency is a guess.
        with suppress(InvalidRequest):
            yield from publish(rt, admitted.operation(d, None))
    if getattr(d.dispatch, "inside", False):
        begun = yield from inside(rt, d, admitted)
        return d.answer_to(begun.word, begun.row)
    looked = None
    if d.record.looks_first:
        looked = yield from once(rt, d, look_up, admitted)
    begun = looked or (yield from once(rt, d, begin, admitted))
    operation, row = begun.operation, begun.row
    if operation is None:
        return d.answer_to(begun.word, row)
    if row is not None and row.status == "awaiting_approval":
        return d.answer_to(begun.word, row)  # a person takes longer than a caller waits
    if begun.word == "new":
        row = yield from carry_on(rt, d, operation)
    if d.record.durable:
        try:
            row = yield from rt.settled(operation, SETTLE)
        except DatabaseUnavailable:
            row = None
    return d.answer_to(begun.word, row)


def carry_on(rt: Runtime, d: Design, operation: Operation) -> Steps[Row | None]:
    """What the backend itself does for an operation that may go on; a row if it is over then."""
    if operation.action != REFUND:
        if not isinstance(d.dispatch, Outbox):
            yield from once(rt, d, approval.act, operation)
        return None
    if d.dispatch.inline:
        outcome = yield from pay(rt, d, operation)
        yield from once(rt, d, finish, operation, outcome)
        return Row(outcome.status, {"detail": outcome.detail})
    if isinstance(d.dispatch, Publish) and d.dispatch.when == "after":
        yield from publish(rt, operation)
    return None


def inside(rt: Runtime, d: Design, admitted: Admitted) -> Steps[Begun]:
    """Everything in one transaction, the call to the provider too, and again if it fails.

    What was written is undone with it. What was paid is not.
    """
    for attempt in count():
        later: list[tuple[Any, ...]] = []
        tx = yield from rt.open("inside")
        begun = begin(tx, d, later, admitted)
        if begun.word == "new" and begun.operation is not None and begun.row is None:
            outcome = yield from pay(rt, d, begun.operation)
            finish(tx, d, later, begun.operation, outcome)
            row = Row(outcome.status, {"detail": outcome.detail})
            begun = Begun("new", row, begun.operation)
        try:
            yield from rt.commit(tx)
        except (DatabaseUnavailable, CommitUnknown):
            if attempt >= getattr(d.dispatch, "reruns", 0):
                raise
            yield from rt.sleep(RERUN_AFTER)
            continue
        if later:
            yield from rt.transact(write_audit, later)
        return begun
    raise AssertionError("unreachable")


RERUN_AFTER = 1.0
"""Seconds until a framework runs a transaction again."""


def look_up(
    tx: Transaction, d: Design, later: list[tuple[Any, ...]], admitted: Admitted
) -> Begun | None:
    """Whether there is such an operation, asked before and apart from writing one."""
    order = order_of(tx, admitted.tenant_id, admitted.order_id)
    try:
        operation = admitted.operation(d, order)
    except InvalidRequest:
        return None
    assert isinstance(d.record, DurableRecord)
    word = d.record.look(tx, operation)
    if word == "conflict":
        return conflict(tx, d, later, operation)
    return None if word is None else Begun("known", d.record.row(tx, operation), operation)


def consent(
    rt: Runtime, d: Design, decision: approval.Decision, session: Session
) -> Steps[approval.Decided]:
    """Takes a person's decision, and lets go on what it allows."""
    decided = yield from once(rt, d, approval.decide, decision, session)
    if decided.operation is not None:
        yield from carry_on(rt, d, decided.operation)
    return decided


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
    call: ToolCall

    def operation(self, d: Design, order: OrderRow | None) -> Operation:
        """The operation that this request asks for, of an order as it stands.

        Raises:
            InvalidRequest: the currency cannot express the amount.
        """
        currency = "USD" if order is None else order.currency
        exact = getattr(d.schema, "minor_units", plain_units)
        amount = int(exact(self.amount, currency))
        operation = Operation(
            id=self.id,
            tenant_id=self.tenant_id,
            user_id=self.user_id,
            intent_id=self.intent_id,
            call_id=self.call_id,
            order_id=self.order_id,
            amount=amount,
            currency=currency,
            model_key=self.model_key,
            key=operation_key(self.tenant_id, REFUND, self.intent_id),
            fingerprint=fingerprint(self.tenant_id, REFUND, self.order_id, amount, currency),
            order_version=1 if order is None else order.version,
        )
        return d.identified(operation, self.call)


def refuse(
    tx: Transaction,
    d: Design,
    later: list[tuple[Any, ...]],
    intent_id: str,
    event: str,
    detail: str,
) -> None:
    """Writes down a refusal that came before there was an operation."""
    Notes(tx, d, later).entry(intent_id, None, event, detail)


def conflict(
    tx: Transaction, d: Design, later: list[tuple[Any, ...]], operation: Operation
) -> Begun:
    """Refuses what comes under the key of something else."""
    refuse(tx, d, later, operation.intent_id, "conflict", "other payload under the key")
    return Begun("conflict")


def other_payload(tx: Transaction, d: Design, operation: Operation) -> bool:
    """Whether something else was asked for under this key: then the call is wrong, and what is
    recorded stands, whoever the order that it names belongs to.
    """
    return isinstance(d.record, DurableRecord) and d.record.look(tx, operation) == "conflict"


def begin(tx: Transaction, d: Design, later: list[tuple[Any, ...]], admitted: Admitted) -> Begun:
    """Look-up, balance, consent and promise, in ONE transaction."""
    order = order_of(tx, admitted.tenant_id, admitted.order_id)
    try:
        operation = admitted.operation(d, order)
    except InvalidRequest as error:
        refuse(tx, d, later, admitted.intent_id, "invalid", str(error))
        return Begun("invalid", unreadable(error))
    if not d.owns(order, operation):
        if other_payload(tx, d, operation):
            return conflict(tx, d, later, operation)
        refuse(tx, d, later, operation.intent_id, "denied", "not an order of this user")
        return Begun("denied")
    notes = Notes(tx, d, later)
    word = d.begin_record(tx, operation)
    if word == "known":
        return Begun("known", d.record.row(tx, operation), operation)
    if word == "conflict":
        return conflict(tx, d, later, operation)
    if d.record.durable:
        notes.add(operation, "->pending")
    needs_consent = d.approval.needed(operation, admitted.call.arguments)
    if needs_consent and not (d.approval.asks and d.record.durable):
        reason = NO_RECORD if d.approval.asks else NO_CONSENT
        return turn_down(tx, d, notes, operation, reason)
    if not d.balance.take(tx, operation):
        return turn_down(tx, d, notes, operation, TOO_MUCH)
    if needs_consent and approval.ask(tx, d, notes, operation):
        return Begun("new", Row("awaiting_approval"), operation)
    promise(tx, d, notes, operation)
    return Begun("new", None, operation)


NO_CONSENT = "a manager has to approve it: set confirm to true."
NO_RECORD = "a manager has to approve it, and without a record nobody could be asked."


def turn_down(tx: Transaction, d: Design, notes: Notes, operation: Operation, reason: str) -> Begun:
    """Refuses what was just begun, and has taken nothing out of the balance."""
    if d.record.durable:
        move(tx, operation.id, "pending", "failed", {"detail": reason})
        notes.add(operation, "pending->failed", reason)
        conclude(tx, d, operation)
    else:
        d.record.finish(tx, operation, "failed", {"detail": reason}, checked=False)
        notes.entry(operation.intent_id, None, "refused", reason)
    return Begun("refused", refusal(reason))


def unreadable(error: InvalidRequest) -> Row:
    """A row for a call that does not fit: nothing was done, and a corrected one may follow."""
    return Row("failed", {"detail": str(error), "field": error.field, "code": error.code})


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
            compare(tx, d, notes, operation, outcome)
            return False
    if outcome.status == "forgotten":
        d.record.forget(tx, operation)
        d.balance.settle(tx, operation, "processing", "failed")
        return True
    result: dict[str, Any] = {"detail": outcome.detail}
    if outcome.pending or (job is not None and job.accepted):
        result["accepted"] = True  # a later silence takes nothing back
    before = d.record.finish(tx, operation, outcome.status, result, checked)
    if before is None:
        if job is not None:
            compare(tx, d, notes, operation, outcome)
        return False
    d.balance.settle(tx, operation, before, outcome.status)
    if d.record.durable:
        notes.add(operation, f"{before}->{outcome.status}", outcome.detail)
    if outcome.status in FINAL:
        conclude(tx, d, operation)
    return True


def compare(
    tx: Transaction, d: Design, notes: Notes, operation: Operation, outcome: Outcome
) -> None:
    """Leaves it to a human if what comes too late says the contrary of what was booked."""
    row = d.record.row(tx, operation)
    if row is None or not row.final or outcome.status not in FINAL or outcome.status == row.status:
        return
    reason = f"It was booked as {row.status}, and the provider answers: {outcome.detail}"
    open_task(tx, notes, operation, "contradiction", reason)


def _again_in(d: Design, tx: Transaction, job: Job, outcome: Outcome) -> float | None:
    """Seconds until an unknown outcome is looked into again; None: never."""
    if not d.recovery.takes_over or d.recovery.every is None:
        return None
    # Each try of the queue is a round of its own, so no deadline holds here; the budget does. A
    # transaction that is run again pays twice, which only makes the process more careful.
    wait = next_wait(
        d.retry,
        job.tries,
        -inf,
        outcome.again_in,
        tx.memory,
        tx.random,
        ask=d.delay_after,
    )
    delay = d.recovery.every if wait.seconds is None else wait.seconds
    return max(delay, outcome.again_in or 0.0)
