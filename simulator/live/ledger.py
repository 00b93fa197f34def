"""The provider's books: a SQLite file of its own, that survives the provider.

A payment and the answer under its key are written in one transaction: there is no payment
without its key, and no key without its answer.
"""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Ledger", "Payment", "payments"]

TABLES = """
CREATE TABLE IF NOT EXISTS payments (
    number INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    reference TEXT NOT NULL UNIQUE,
    intent_id TEXT NOT NULL,
    order_id TEXT NOT NULL,
    amount INTEGER NOT NULL,
    currency TEXT NOT NULL,
    key TEXT
);
CREATE TABLE IF NOT EXISTS keys (
    key TEXT NOT NULL PRIMARY KEY,
    parameters TEXT NOT NULL,
    status INTEGER NOT NULL,
    body TEXT NOT NULL,
    at REAL NOT NULL
);
"""
COLUMNS = "number, at, reference, intent_id, order_id, amount, currency, key"


@dataclass(frozen=True, slots=True)
class Payment:
    """Money moved. `amount` in minor units; `at` in seconds of the service since the run began."""

    number: int
    at: float
    reference: str
    intent_id: str
    order_id: str
    amount: int
    currency: str
    key: str | None


class Ledger:
    """The open file; one thread at a time."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode = WAL")
        # Every commit is with the system, and survives our death; not the machine's.
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.connection.executescript(TABLES)
        self.lock = threading.RLock()

    def stored(self, key: str, since: float) -> tuple[str, int, str] | None:
        """(parameters, status, body) of the first request under this key, if it came later
        than `since`.
        """
        with self.lock:
            found: tuple[str, int, str] | None = self.connection.execute(
                "SELECT parameters, status, body FROM keys WHERE key = ? AND at > ?", (key, since)
            ).fetchone()
        return found

    def write(
        self, payment: Payment | None, key: str | None, answer: tuple[str, int, str], at: float
    ) -> None:
        """Books a payment, if there is one, and the answer under its key, if it has one."""
        with self.lock, self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            if payment is not None:
                self.connection.execute(
                    f"INSERT INTO payments ({COLUMNS}) VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        payment.at,
                        payment.reference,
                        payment.intent_id,
                        payment.order_id,
                        payment.amount,
                        payment.currency,
                        payment.key,
                    ),
                )
            if key is not None:
                self.connection.execute(
                    "INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?)", (key, *answer, at)
                )

    def find(self, reference: str) -> Payment | None:
        """The payment with this reference."""
        with self.lock:
            row = self.connection.execute(
                f"SELECT {COLUMNS} FROM payments WHERE reference = ?", (reference,)
            ).fetchone()
        return None if row is None else Payment(*row)

    def listed(self, order_id: str | None, before: int | None, limit: int) -> list[Payment]:
        """At most `limit` payments, newest first: of this order, if one is given, and from
        before the payment with number `before`.
        """
        with self.lock:
            rows = self.connection.execute(
                f"SELECT {COLUMNS} FROM payments WHERE (:order_id IS NULL OR order_id = :order_id)"
                " AND (:before IS NULL OR number < :before) ORDER BY number DESC LIMIT :limit",
                {"order_id": order_id, "before": before, "limit": limit},
            ).fetchall()
        return [Payment(*row) for row in rows]


def payments(path: Path) -> list[Payment]:
    """Everything that was ever paid, in its order."""
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute(f"SELECT {COLUMNS} FROM payments ORDER BY number").fetchall()
    finally:
        connection.close()
    return [Payment(*row) for row in rows]
