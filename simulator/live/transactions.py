"""Ways to guard an order's balance, or to do a thing once: as transactions, statement by statement.

Each case is run by two clients at the same time. Those of the first kind refund $300 each of an
order of $500; those of the second kind do the same operation, under one key, twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["CASES", "FILL", "TABLES", "Case", "Seen", "Step"]

TABLES = """
CREATE TABLE orders (
    tenant_id TEXT NOT NULL,
    id TEXT NOT NULL,
    status TEXT NOT NULL,
    captured INTEGER NOT NULL,
    refunded INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE TABLE payouts (client TEXT NOT NULL, key TEXT NOT NULL);
CREATE TABLE tool_operations (
    id TEXT NOT NULL PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    action_type TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    status TEXT NOT NULL,
    UNIQUE (tenant_id, idempotency_key)
);
"""
FILL = "INSERT INTO orders VALUES ('shop', 'ORD-1001', 'confirmed', 500, 0)"


@dataclass(slots=True)
class Seen:
    """What a client has seen so far.

    Attributes:
        value: what its SELECT found; None: no row.
        rows: how many rows its last change touched.
    """

    value: int | None = None
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One statement of a transaction.

    Attributes:
        sql: with `:client` for the client's name.
        needs: whether the client goes on to this statement, given what it has seen so far;
            what it has not gone on to is left out.
    """

    sql: str
    needs: Callable[[Seen], bool] = lambda seen: True


@dataclass(frozen=True, slots=True)
class Case:
    """A transaction that two clients run.

    Attributes:
        name: for the table.
        steps: without BEGIN, and with COMMIT.
        known: SQLSTATEs that the client takes as "somebody else has done it".
        wrong: what it is called when both did it: "over-refund", "doubled", "false success".
        done: a query for how often it was done.
        about: a sentence.
    """

    name: str
    steps: tuple[Step, ...]
    wrong: str
    done: str
    about: str
    known: tuple[str, ...] = ()


COMMIT = Step("COMMIT")
ADD = "UPDATE orders SET refunded = refunded + 300 WHERE id = 'ORD-1001'"
ROOM = "SELECT captured - refunded FROM orders WHERE id = 'ORD-1001'"
PAY = "INSERT INTO payouts VALUES (:client, 'key-1')"
RECORD = """INSERT INTO tool_operations
VALUES (:client, 'shop', 'key-1', 'refund', 'hash', 'pending')"""


def there_is_room(seen: Seen) -> bool:
    """The balance that was read is enough."""
    return seen.value is not None and seen.value >= 300


def nobody_did(seen: Seen) -> bool:
    """The look-up found nothing."""
    return seen.value is None


def it_was_me(seen: Seen) -> bool:
    """The last change touched a row."""
    return seen.rows == 1


REFUNDS = "SELECT refunded / 300 FROM orders"
PAYOUTS = "SELECT COUNT(*) FROM payouts"
SUCCESSES = "SELECT COUNT(*) FROM tool_operations WHERE status = 'succeeded'"

LOCK = """SELECT id, status FROM orders
WHERE tenant_id = 'shop' AND id = 'ORD-1001'
FOR UPDATE"""
CANCEL = """UPDATE orders
SET status = 'cancelled'
WHERE tenant_id = 'shop' AND id = 'ORD-1001' AND status = 'confirmed'"""
PUBLISHED = """INSERT INTO tool_operations (tenant_id, idempotency_key, action_type, status)
VALUES ('shop', :client, 'cancel_order', 'succeeded')"""
FILLED_IN = """INSERT INTO tool_operations
VALUES (:client, 'shop', :client, 'cancel_order', 'hash', 'succeeded')"""
"""With id and request_hash, which the published statement leaves out; each client has its key."""


CASES: tuple[Case, ...] = (
    Case(
        "no lock",
        (Step(ROOM), Step(ADD, there_is_room), COMMIT),
        "over-refund",
        REFUNDS,
        "Look at the balance, then take from it.",
    ),
    Case(
        "FOR SHARE",
        (Step(f"{ROOM} FOR SHARE"), Step(ADD, there_is_room), COMMIT),
        "over-refund",
        REFUNDS,
        "Look at the balance under a lock that two can hold, then take from it.",
    ),
    Case(
        "FOR UPDATE",
        (Step(f"{ROOM} FOR UPDATE"), Step(ADD, there_is_room), COMMIT),
        "over-refund",
        REFUNDS,
        "Look at the balance under a lock that one can hold, then take from it.",
    ),
    Case(
        "guarded update",
        (Step(f"{ADD} AND captured - refunded >= 300"), COMMIT),
        "over-refund",
        REFUNDS,
        "Take from the balance only if there is enough, in one statement.",
    ),
    Case(
        "look-up, then insert",
        (
            Step("SELECT 1 FROM payouts WHERE key = 'key-1'"),
            Step(PAY, nobody_did),
            COMMIT,
        ),
        "doubled",
        PAYOUTS,
        "Look whether it was done, then do it and write it down. No UNIQUE.",
    ),
    Case(
        "insert with UNIQUE",
        (Step(RECORD), Step(PAY, it_was_me), COMMIT),
        "doubled",
        PAYOUTS,
        "Insert first; the error 23505 says that somebody else did.",
        known=("23505",),
    ),
    Case(
        "ON CONFLICT",
        (Step(f"{RECORD}\nON CONFLICT DO NOTHING"), Step(PAY, it_was_me), COMMIT),
        "doubled",
        PAYOUTS,
        "Insert first; no row inserted says that somebody else did.",
    ),
    Case(
        "lesson, as published",
        (Step(LOCK), Step(CANCEL), Step(PUBLISHED), COMMIT),
        "false success",
        SUCCESSES,
        "Section 7 of the lesson: its INSERT leaves out id and request_hash, both NOT NULL.",
    ),
    Case(
        "lesson, columns filled in",
        (Step(LOCK), Step(CANCEL), Step(FILLED_IN), COMMIT),
        "false success",
        SUCCESSES,
        "It records 'succeeded' without looking at how many rows the UPDATE changed.",
    ),
    Case(
        "lesson, repaired",
        (Step(LOCK), Step(CANCEL), Step(FILLED_IN, it_was_me), COMMIT),
        "false success",
        SUCCESSES,
        "Records 'succeeded' only if the UPDATE changed a row.",
    ),
)
