"""The process that carries out what the backends promised.

A claim is committed before the work begins, whatever the work is: a row whose work fails has been
counted, is nobody's until its lease ends, and is set aside when it was claimed too often. The
rows behind it are carried out meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simulator.service import approval
from simulator.service.answers import Answer, answer_about
from simulator.service.audit import Notes
from simulator.service.conclusion import fail
from simulator.service.errors import Declined, RateLimited, Silence
from simulator.service.once import once
from simulator.service.operations import FINAL, REFUND, Operation, Row, move
from simulator.service.outbox import Found, Job, Outbox, bury, claim_next, is_held, look, release
from simulator.service.payment import PROVIDER_TIMEOUT, Outcome, ask, pay
from simulator.service.pipeline import finish
from simulator.service.tasks import open_task

if TYPE_CHECKING:
    from simulator.service.design import Design
    from simulator.service.runtime import Runtime, Steps, Transaction

__all__ = [
    "Message",
    "act",
    "call_off",
    "claim",
    "consume",
    "expire",
    "hand_over",
    "mark_told",
    "refund",
    "start",
    "tell",
    "work",
]


@dataclass(frozen=True, slots=True)
class Message:
    """A follow-up for the customer.

    Attributes:
        about: the kind of operation that it speaks of.
    """

    intent_id: str
    answer: Answer
    about: str = REFUND


def work(rt: Runtime, d: Design) -> Steps[None]:
    """Claims and carries out one row of the outbox after the other, for ever."""
    while True:
        yield from rt.due()
        assert isinstance(d.dispatch, Outbox)
        found: Found | None = None
        if not d.dispatch.atomic:
            found = yield from once(rt, d, see)
            if found is None:
                continue
        job = yield from once(rt, d, claim, rt.owner, found)
        if job is None:
            continue
        if job.topic == "refund":
            yield from refund(rt, d, job)
        elif job.topic == "tell":
            yield from tell(rt, d, job)
        else:
            yield from once(rt, d, act if job.topic == "act" else expire, job)


def refund(rt: Runtime, d: Design, job: Job) -> Steps[None]:
    """Carries out a refund, or asks what became of one that is too old to be sent again."""
    if job.objection is not None:
        called_off = yield from once(rt, d, call_off, job)
        if called_off:
            return
    unknown = job.tries > 0 or job.expired
    if job.too_old or (unknown and not d.recovery.resends):
        outcome = yield from ask(rt, job.operation)
        if outcome.status not in FINAL and not outcome.pending:
            # "Not found" is no proof. In the end only a person may decide; but the provider,
            # if it was only silent, is asked again first.
            silent = outcome.status == "outcome_unknown"
            if job.overdue or (job.too_old and not silent and not job.accepted):
                yield from once(rt, d, hand_over, job)
                return
            outcome = Outcome("outcome_unknown", outcome.detail)
    else:
        outcome = yield from pay(rt, d, job.operation, job.tries, unknown)
    if outcome.for_a_person:
        yield from once(rt, d, hand_over, job, f"The provider refused: {outcome.detail}")
        return
    yield from once(rt, d, finish, job.operation, outcome, job)


FORGOTTEN = "The outcome is unknown, and the provider will soon forget the key."


def hand_over(
    tx: Transaction,
    d: Design,
    later: list[tuple[Any, ...]],
    job: Job,
    reason: str = FORGOTTEN,
) -> None:
    """Leaves an unknown outcome to a human."""
    assert isinstance(d.dispatch, Outbox)
    row = d.record.row(tx, job.operation)
    known = row is not None and row.final  # a report of the provider came meanwhile
    if not release(tx, job, d.dispatch.fence, again_in=None, done=known) or known:
        return
    notes = Notes(tx, d, later)
    _move(tx, notes, job.operation, "processing", "outcome_unknown")
    _set_aside(tx, notes, job, reason)


def _set_aside(tx: Transaction, notes: Notes, job: Job, reason: str) -> None:
    """From here on the row is a person's."""
    bury(tx, job)
    open_task(tx, notes, job.operation, job.topic, reason)


def see(tx: Transaction, d: Design, later: list[tuple[Any, ...]]) -> Found | None:
    """Looks for a row, and leaves it there for others to see too."""
    return look(tx, d.takes_over)


def claim(
    tx: Transaction,
    d: Design,
    later: list[tuple[Any, ...]],
    owner: str,
    found: Found | None = None,
) -> Job | None:
    """Claims a row and says what its operation now is; None if there is nothing to carry out."""
    assert isinstance(d.dispatch, Outbox)
    job = claim_next(tx, owner, d.dispatch.lease, d.takes_over, found)
    if job is None:
        return None
    notes = Notes(tx, d, later)
    if job.topic == "refund":
        return _claim_refund(tx, d, notes, job)
    if _nothing_left(job):
        release(tx, job, fence=True, again_in=None, done=True)
        return None
    if job.topic == "tell" and _too_late(tx, d, job):
        _set_aside(tx, notes, job, "The customer could not be told.")
        return None
    if _too_often(d, job):
        _set_aside(tx, notes, job, _dead_letter(job))
        return None
    return job


def _nothing_left(job: Job) -> bool:
    """Whether what was promised in our own database has come to its end already."""
    if job.topic == "expire":
        return job.status != "awaiting_approval"
    return job.topic == "act" and job.status in FINAL


def _too_often(d: Design, job: Job) -> bool:
    """Whether so many claims in a row have left no result that the next would leave none either.

    A customer who was not reached is a result: only what kills its workers counts.
    """
    assert isinstance(d.dispatch, Outbox)
    return d.dispatch.max_attempts is not None and job.claims > d.dispatch.max_attempts


def _dead_letter(job: Job) -> str:
    return f"Claimed {job.claims - 1} times without a result (dead letter)."


def _claim_refund(tx: Transaction, d: Design, notes: Notes, job: Job) -> Job | None:
    operation, status = job.operation, job.status
    if status in FINAL:
        release(tx, job, fence=True, again_in=None, done=True)
        return None
    if status == "processing" and (job.expired and d.recovery.marks_unknown):
        # The worker before may have paid and died: its claim is no evidence either way.
        _move(tx, notes, operation, "processing", "outcome_unknown")
        status = "outcome_unknown"
    if _too_often(d, job):
        if status == "processing":
            _move(tx, notes, operation, "processing", "outcome_unknown")
        _set_aside(tx, notes, job, _dead_letter(job))
        return None
    objection = approval.objection(tx, d, operation) if status == "pending" else None
    if objection is not None:
        return job._replace(objection=objection)
    if status != "processing":
        _move(tx, notes, operation, status, "processing")
    too_old = _too_late(tx, d, job)
    patience = SETTLING if job.accepted else PATIENCE
    return job._replace(too_old=too_old, overdue=too_old and _too_late(tx, d, job, patience))


def _move(tx: Transaction, notes: Notes, operation: Operation, before: str, after: str) -> None:
    if move(tx, operation.id, before, after):
        notes.add(operation, f"{before}->{after}")


PATIENCE = 1.1
"""Horizons after which a provider that stays silent is not asked any more: 22 h of 24."""

SETTLING = 6.0
"""The same where it has taken the refund on: five days, as long as banks take."""


def _too_late(tx: Transaction, d: Design, job: Job, horizons: float = 1.0) -> bool:
    """Whether the promise is older than the design's horizon, or than several."""
    horizon = d.recovery.horizon
    return horizon is not None and bool(job.created_at <= tx.time(-horizons * horizon))


def act(tx: Transaction, d: Design, later: list[tuple[Any, ...]], job: Job) -> None:
    """Carries out what moves no money and ends its claim, both or neither."""
    row = d.record.row(tx, job.operation)
    if _still_ours(tx, d, job) and row is not None and not row.final:
        approval.act(tx, d, later, job.operation)


def expire(tx: Transaction, d: Design, later: list[tuple[Any, ...]], job: Job) -> None:
    """Closes a question that nobody has answered in time and ends its claim, both or neither."""
    if _still_ours(tx, d, job):
        approval.expire(tx, d, Notes(tx, d, later), job.operation)


def call_off(tx: Transaction, d: Design, later: list[tuple[Any, ...]], job: Job) -> bool:
    """Ends a refund that must not be sent any more, and its claim, both or neither.

    False if nothing speaks against it by now, and it goes on: the money that it lacked when it
    was claimed may have been held for another refund, which was called off a moment ago.
    """
    assert isinstance(d.dispatch, Outbox)
    if d.dispatch.fence and not is_held(tx, job):
        return True  # somebody else has claimed since, and looks at it anew
    row = d.record.row(tx, job.operation)
    notes = Notes(tx, d, later)
    if row is not None and row.status == "processing":
        return False  # this transaction is run again, and has let it go on before
    reason = job.objection
    if row is not None and row.status == "pending":
        reason = approval.objection(tx, d, job.operation)
        if reason is None:
            _move(tx, notes, job.operation, "pending", "processing")
            return False
    if _still_ours(tx, d, job):
        fail(tx, d, notes, job.operation, "pending", str(reason))
    return True


def _still_ours(tx: Transaction, d: Design, job: Job) -> bool:
    """Ends the claim of what this transaction does; False if somebody else has claimed since."""
    assert isinstance(d.dispatch, Outbox)
    return release(tx, job, d.dispatch.fence, again_in=None, done=True)


def tell(rt: Runtime, d: Design, job: Job) -> Steps[None]:
    """Tells the customer how it ended. A second message is a nuisance, none is a broken promise."""
    answer = answer_about(job.operation, Row.read(job.status, job.result))
    try:
        message = Message(job.operation.intent_id, answer, job.operation.action)
        yield from rt.call("customer.notify", message, timeout=PROVIDER_TIMEOUT)
        delivered = True
    except (Silence, RateLimited, Declined):
        delivered = False
    yield from once(rt, d, mark_told, job, delivered)


def mark_told(
    tx: Transaction, d: Design, later: list[tuple[Any, ...]], job: Job, delivered: bool
) -> None:
    """Ends the claim of a follow-up."""
    assert isinstance(d.dispatch, Outbox)
    delay = None if delivered else d.delay_after(job.tries, tx.random)
    if delay is None:
        delay = d.recovery.every
    release(tx, job, d.dispatch.fence, delay, done=delivered)


def consume(rt: Runtime, d: Design) -> Steps[None]:
    """Carries out one message of the broker after the other, for ever."""
    while True:
        operation = yield from rt.received()
        word = "missing"
        for _ in range(LOOKS):
            word = yield from once(rt, d, start, operation)
            if word != "missing":
                break
            yield from rt.sleep(1.0)
        if word == "refused":
            continue
        outcome = yield from pay(rt, d, operation)
        yield from once(rt, d, finish, operation, outcome)


LOOKS = 3
"""How often a consumer looks for the row of a message that was published before its commit.
Then it goes on without: all that it needs is in the message."""


def start(tx: Transaction, d: Design, later: list[tuple[Any, ...]], operation: Operation) -> str:
    """Marks the operation of a message as being worked on: "started"; "missing" if there is none
    yet; "refused" if something speaks against it by now.
    """
    notes = Notes(tx, d, later)
    row = d.record.row(tx, operation)
    if row is None:
        return "missing"
    objection = approval.objection(tx, d, operation) if row.status == "pending" else None
    if objection is not None:
        fail(tx, d, notes, operation, "pending", objection)
        return "refused"
    _move(tx, notes, operation, "pending", "processing")
    return "started"
