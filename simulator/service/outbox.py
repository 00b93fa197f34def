"""How a refund gets from our books to the provider, and the outbox that promises it.

A row of the outbox is written in the transaction that makes the promise. Workers claim one
row at a time in one statement; a claim is a lease with a fencing token, and every write that
follows from the claim checks that the token is still the newest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from simulator.service.checks import fits_its_types, needs, needs_seconds
from simulator.service.operations import REFUND, Operation, Row, move

if TYPE_CHECKING:
    from simulator.service.audit import Notes
    from simulator.service.design import Design
    from simulator.service.runtime import Transaction

__all__ = [
    "Found",
    "Inline",
    "Job",
    "Outbox",
    "Publish",
    "bury",
    "claim_next",
    "enqueue",
    "is_held",
    "look",
    "next_due",
    "promise",
    "release",
]


@dataclass(frozen=True, slots=True)
class Inline:
    """The backend calls the provider itself, while the caller waits.

    Attributes:
        inside: the call is made inside the transaction that writes our books, as if the
            provider could be rolled back with it (section 8 of the lesson).
        reruns: how often such a transaction is run again when its commit fails, as frameworks
            do by themselves: each run calls the provider anew (case B02).
    """

    inside: bool = False
    reruns: int = 2
    inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        fits_its_types(self)
        needs(self, "reruns", self.reruns >= 0, "a whole number, 0 or more")


@dataclass(frozen=True, slots=True)
class Publish:
    """The backend sends a message to a broker, whose workers call the provider.

    The broker forgets a message as soon as a worker has taken it.

    Attributes:
        when: "after" or "before" the commit. A crash falls between in both.
    """

    when: str = "after"
    inline: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.when not in ("after", "before"):
            raise ValueError(
                f"Publish(when={self.when!r}): a message is published 'after' or 'before' "
                "the commit."
            )


@dataclass(frozen=True, slots=True)
class Outbox:
    """A row in the same transaction, and workers that claim rows.

    Attributes:
        lease: seconds until a claim may be taken over; None: never.
        fence: whether a worker's writes check the claim's token.
        max_attempts: claims in a row that may end without a result before the row, whatever
            its topic, is set aside as a dead letter, with a task for a human; None: it is
            claimed for ever.
        atomic: whether looking for a row and claiming it are one statement. If not, two workers
            find the same row before either has marked it (case B55).
    """

    lease: float | None = 30.0
    fence: bool = True
    max_attempts: int | None = 8
    atomic: bool = True
    inline: ClassVar[bool] = False

    def __post_init__(self) -> None:
        fits_its_types(self)
        needs_seconds(self, "lease", or_none=True)
        enough = self.max_attempts is None or self.max_attempts >= 1
        needs(self, "max_attempts", enough, "a whole number, 1 or more, or None")


class Job(NamedTuple):
    """A claimed row.

    Attributes:
        topic: "refund", "act" (what moves no money), "tell", or "expire" (of a question to a
            person).
        token: the claim's fencing token.
        claims: claims in a row, this one included, that have left no result yet.
        tries: results so far that were not final.
        status, result: the operation's, as the claim found them.
        created_at: when the promise was made, as the database stores times.
        too_old: whether the design's horizon is past: nothing may be sent any more.
        overdue: whether it is past by so much that from here on only a person asks; longer where
            the provider has taken the refund on.
        objection: why a refund must not be sent for the first time; None if nothing speaks
            against it.
    """

    operation: Operation
    topic: str
    token: int
    claims: int
    tries: int
    status: str
    result: Any
    created_at: Any
    too_old: bool = False
    overdue: bool = False
    objection: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether the provider has taken it on, as far as we know."""
        return bool((Row.read(self.status, self.result).result or {}).get("accepted"))

    @property
    def expired(self) -> bool:
        """Whether the claim before this one left no result: its lease had ended."""
        return self.claims > 1


ENQUEUE = """
    INSERT INTO outbox (operation_id, topic, available_at, created_at)
    VALUES (:operation_id, :topic, :due, :now)
    ON CONFLICT (operation_id, topic) DO NOTHING
"""
LOOK = """
    SELECT operation_id, topic FROM outbox
    WHERE done_at IS NULL AND dead_at IS NULL AND available_at <= :now
      AND (owner IS NULL OR (:takes_over = 1 AND lease_until <= :now))
    ORDER BY available_at, operation_id, topic
    LIMIT 1
"""
CLAIM = f"""
    UPDATE outbox
    SET owner = :owner, lease_until = :until, token = token + 1, claims = claims + 1
    WHERE (operation_id, topic) = ({LOOK})
    RETURNING operation_id, topic, token, claims, tries, created_at
"""
CLAIM_UNSEEN = """
    UPDATE outbox
    SET owner = :owner, lease_until = :until, token = token + 1, claims = claims + 1
    WHERE operation_id = :operation_id AND topic = :topic
    RETURNING operation_id, topic, token, claims, tries, created_at
"""
LOAD = """
    SELECT o.id, o.tenant_id, COALESCE(r.user_id, a.user_id), COALESCE(r.intent_id, a.intent_id),
           COALESCE(r.call_id, a.call_id), COALESCE(r.order_id, ''), COALESCE(r.amount, 0),
           COALESCE(r.currency, 'USD'), COALESCE(r.model_key, ''), o.idempotency_key,
           o.request_hash, COALESCE(r.order_version, 1), o.action_type,
           COALESCE(a.arguments, ''), o.status, o.result
    FROM tool_operations o
    LEFT JOIN refunds r ON r.operation_id = o.id
    LEFT JOIN actions a ON a.operation_id = o.id
    WHERE o.id = :operation_id
"""
RELEASE = """
    UPDATE outbox
    SET owner = NULL, lease_until = NULL, claims = 0, tries = tries + 1,
        available_at = :available_at, done_at = :done_at
    WHERE operation_id = :operation_id AND topic = :topic AND token = :token
      AND owner IS NOT NULL
"""
HELD = """
    SELECT 1 FROM outbox
    WHERE operation_id = :operation_id AND topic = :topic AND token = :token
      AND owner IS NOT NULL
"""
RELEASE_UNFENCED = """
    UPDATE outbox
    SET owner = NULL, lease_until = NULL, claims = 0, tries = tries + 1,
        available_at = :available_at, done_at = :done_at
    WHERE operation_id = :operation_id AND topic = :topic
"""
BURY = """
    UPDATE outbox SET dead_at = :now, owner = NULL, lease_until = NULL
    WHERE operation_id = :operation_id AND topic = :topic
"""
NEXT_DUE = """
    SELECT MIN(CASE WHEN owner IS NULL OR lease_until < available_at THEN available_at
                    ELSE lease_until END)
    FROM outbox
    WHERE done_at IS NULL AND dead_at IS NULL AND available_at IS NOT NULL
      AND (owner IS NULL OR (:takes_over = 1 AND lease_until IS NOT NULL))
"""


def enqueue(tx: Transaction, operation_id: str, topic: str, due_in: float = 0.0) -> None:
    """Promises a piece of work, due in so many seconds."""
    tx.execute(
        ENQUEUE,
        {
            "operation_id": operation_id,
            "topic": topic,
            "due": tx.time(due_in),
            "now": tx.time(),
        },
    )


def promise(tx: Transaction, d: Design, notes: Notes, operation: Operation) -> None:
    """What makes an operation go on once it is pending, in the transaction that made it so."""
    if isinstance(d.dispatch, Outbox):
        enqueue(tx, operation.id, "refund" if operation.action == REFUND else "act")
    elif d.dispatch.inline and d.record.durable and operation.action == REFUND:
        move(tx, operation.id, "pending", "processing")
        notes.add(operation, "pending->processing")


Found = tuple[str, str]
"""(operation id, topic) of a row that a look has found."""


def look(tx: Transaction, takes_over: bool) -> Found | None:
    """The row that has been due longest, without claiming it."""
    row = tx.execute(LOOK, {"now": tx.time(), "takes_over": int(takes_over)}).fetchone()
    return None if row is None else (row[0], row[1])


def claim_next(
    tx: Transaction,
    owner: str,
    lease: float | None,
    takes_over: bool,
    found: Found | None = None,
) -> Job | None:
    """Claims the row that has been due longest, or None if nothing is due.

    With `found`, of an earlier look, that row is claimed whatever has become of it since.
    """
    values: dict[str, Any] = {"owner": owner, "until": None if lease is None else tx.time(lease)}
    if found is None:
        values |= {"now": tx.time(), "takes_over": int(takes_over)}
        row = tx.execute(CLAIM, values).fetchone()
    else:
        values |= {"operation_id": found[0], "topic": found[1]}
        row = tx.execute(CLAIM_UNSEEN, values).fetchone()
    if row is None:
        return None
    operation_id, topic, token, claims, tries, created_at = row
    *fields, status, result = tx.execute(LOAD, {"operation_id": operation_id}).fetchone()
    operation = Operation(*fields)
    return Job(operation, topic, token, claims, tries, status, result, created_at)


def release(tx: Transaction, job: Job, fence: bool, again_in: float | None, done: bool) -> bool:
    """Ends a claim: done, due again in `again_in` seconds, or (None) left for ever.

    Returns False, and writes nothing, if `fence` is on and somebody else has claimed since.
    """
    cursor = tx.execute(
        RELEASE if fence else RELEASE_UNFENCED,
        {
            "operation_id": job.operation.id,
            "topic": job.topic,
            "token": job.token,
            "available_at": None if done or again_in is None else tx.time(again_in),
            "done_at": tx.time() if done else None,
        },
    )
    return bool(cursor.rowcount == 1)


def is_held(tx: Transaction, job: Job) -> bool:
    """Whether a claim is still the newest, and has not ended."""
    which = {"operation_id": job.operation.id, "topic": job.topic, "token": job.token}
    return tx.execute(HELD, which).fetchone() is not None


def bury(tx: Transaction, job: Job) -> None:
    """Sets the row aside: nobody will claim it again."""
    tx.execute(BURY, {"operation_id": job.operation.id, "topic": job.topic, "now": tx.time()})


def next_due(tx: Transaction, takes_over: bool) -> Any:
    """When the next row is due, as the database stores times; None if none ever will be."""
    return tx.execute(NEXT_DUE, {"takes_over": int(takes_over)}).fetchone()[0]
