"""Two transactions, statement by statement, in every order, on a real database.

Each order of the statements of clients A and B is run on two connections. A statement that
blocks is noticed (`pg_blocking_pids`), and its client waits while the other goes on, as it
would in life.
"""

from __future__ import annotations

import sqlite3
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from simulator.live.problems import Problem
from simulator.live.transactions import CASES, FILL, TABLES, Case, Seen, Step

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LEVELS", "OUTCOMES", "SQLITE", "Interleavings", "interleavings", "orders_of"]

LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
SQLITE = ("SQLite BEGIN", "SQLite BEGIN IMMEDIATE")
OUTCOMES = ("right", "over-refund", "doubled", "false success", "retry", "deadlock", "fails")
"""retry: a client got 40001 (SQLite: "database is locked") and nothing else went wrong.
fails: a statement is refused whenever it is run."""

SCHEMA = "exactly_one_refund_interleavings"
FRESH = f"DELETE FROM orders; DELETE FROM payouts; DELETE FROM tool_operations; {FILL};"
PATIENCE = 5.0
"""Seconds within which a statement must end, or be seen to wait for the other client."""

RETRY = ("40001",)
DEADLOCK = "40P01"


def orders_of(first: int, second: int) -> Iterator[str]:
    """Every order of `first` turns of A and `second` of B: "AABB", "ABAB" and so on."""
    for places in combinations(range(first + second), first):
        yield "".join("A" if place in places else "B" for place in range(first + second))


@dataclass
class Interleavings:
    """What came of every order, for every case on every level.

    Attributes:
        outcomes: how many orders ended in which outcome, by (case, level).
        waited: in how many orders a client had to wait, by (case, level).
        examples: the first order that ended so, as a text, by (case, level, outcome).
        product: the database.
    """

    outcomes: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    waited: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str, str], str] = field(default_factory=dict)
    product: str = ""

    @property
    def frame(self) -> pd.DataFrame:
        """One row for every outcome that occurred: case, level, outcome, orders, of, waited."""
        import pandas as pd

        rows = [
            (case, level, outcome, count, sum(counts.values()), self.waited[case, level])
            for (case, level), counts in self.outcomes.items()
            for outcome, count in counts.items()
        ]
        return pd.DataFrame(rows, columns=["case", "level", "outcome", "orders", "of", "waited"])

    def example(self, case: str, level: str, outcome: str) -> str:
        """The first order of this case that ended so, statement by statement.

        Raises:
            ValueError: none did.
        """
        found = self.examples.get((case, level, outcome))
        if found is None:
            raise ValueError(f"No order of {case!r} on {level} ended in {outcome!r}.")
        return found

    def cell(self, case: str, level: str) -> str:
        """For example: 8 right, 12 over-refund."""
        counts = self.outcomes.get((case, level))
        if counts is None:
            return "–"
        if len(counts) == 1:
            return f"always {next(iter(counts))}"
        return ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name])

    def __str__(self) -> str:
        levels = list(dict.fromkeys(level for _, level in self.outcomes))
        cases = list(dict.fromkeys(case for case, _ in self.outcomes))
        table = [["", *levels]]
        table += [[case, *(self.cell(case, level) for level in levels)] for case in cases]
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
            for row in table
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([*lines, "", self.product])


def interleavings(
    url: str | None,
    cases: Sequence[Case] = CASES,
    levels: Sequence[str] = LEVELS,
    sqlite: bool = True,
) -> Interleavings:
    """Runs every order of every case.

    Args:
        url: of a PostgreSQL database; None: SQLite only.
        cases: which.
        levels: of isolation, on PostgreSQL.
        sqlite: whether to run them on SQLite, too.

    Raises:
        Problem: the database cannot be used.
    """
    found = Interleavings()
    products = []
    if url is not None:
        with PostgreSQLStage(url) as stage:
            products.append(stage.product)
            for case in cases:
                for level in levels:
                    run_case(found, stage, case, level)
    if sqlite:
        with SQLiteStage() as small:
            products.append(small.product)
            for case in cases:
                if small.knows(case):
                    for level in SQLITE:
                        run_case(found, small, case, level)
    found.product = ", ".join(products)
    return found


def run_case(found: Interleavings, stage: Stage, case: Case, level: str) -> None:
    """Runs all orders of one case on one level."""
    counts = found.outcomes.setdefault((case.name, level), Counter())
    turns = len(case.steps)
    for order in orders_of(turns, turns):
        history = stage.play(case, level, order)
        outcome = history.outcome
        counts[outcome] += 1
        found.waited[case.name, level] += history.waited
        found.examples.setdefault((case.name, level, outcome), str(history))


@dataclass
class History:
    """What happened in one order.

    Attributes:
        lines: statement by statement.
        errors: SQLSTATEs that the clients got and did not expect.
        waited: whether a client had to wait.
        times: how often it was done in the end.
    """

    case: Case
    lines: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    waited: bool = False
    times: int = 0

    @property
    def outcome(self) -> str:
        """One of OUTCOMES."""
        if self.times > 1:
            return self.case.wrong
        if DEADLOCK in self.errors:
            return "deadlock"
        if any(error not in RETRY for error in self.errors):
            return "fails"
        return "retry" if self.errors else "right"

    def __str__(self) -> str:
        return "\n".join([*self.lines, f"done {self.times} times: {self.outcome}"])


class Client(ABC):
    """One of the two: runs its statements one by one, in a thread of its own if it can wait."""

    def __init__(self, name: str, history: History) -> None:
        self.name = name
        self.history = history
        self.seen = Seen()
        self.over = False

    def take(self, step: Step) -> None:
        """Runs a statement, unless the transaction is over or goes on without it."""
        if self.over or not step.needs(self.seen):
            return
        text = " ".join(step.sql.split())
        try:
            result = self.execute(step.sql)
        except Exception as error:
            state = self.state_of(error)
            self.history.lines.append(f"{self.name}: {text}\n   -> {state}")
            self.roll_back()
            self.over = True
            if state not in self.history.case.known:
                self.history.errors.append(state)
            return
        self.history.lines.append(f"{self.name}: {text}\n   -> {result}")
        self.over = step.sql == "COMMIT"

    @abstractmethod
    def execute(self, sql: str) -> str:
        """Runs it, notes what was seen, and returns a word about it."""

    @abstractmethod
    def state_of(self, error: Exception) -> str:
        """The SQLSTATE of an error; raises the error if it is none of the database's."""

    @abstractmethod
    def roll_back(self) -> None:
        """Ends the transaction."""

    def note(self, cursor: Any, selects: bool) -> str:
        """Remembers what a statement brought."""
        if selects:
            row = cursor.fetchone()
            self.seen.value = None if row is None else (row[0] if isinstance(row[0], int) else 1)
            return "no row" if row is None else str(row[0])
        self.seen.rows = cursor.rowcount
        return f"{cursor.rowcount} rows" if cursor.rowcount != 1 else "1 row"


class Stage(ABC):
    """A database on which two clients play."""

    product: str

    @abstractmethod
    def play(self, case: Case, level: str, order: str) -> History:
        """Runs one order from a fresh start."""


# PostgreSQL.


class PostgreSQLClient(Client):
    """A connection, and the thread that waits in it."""

    def __init__(self, name: str, connection: Any) -> None:
        super().__init__(name, History(CASES[0]))
        self.connection = connection
        self.pid = connection.info.backend_pid
        self.steps: SimpleQueue[Step | None] = SimpleQueue()
        self.idle = threading.Event()
        self.idle.set()
        self.waiting = 0
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def start(self, history: History, level: str) -> None:
        """Opens a transaction."""
        self.history, self.seen, self.over = history, Seen(), False
        self.connection.execute(f"BEGIN ISOLATION LEVEL {level}".encode())

    def give(self, step: Step) -> None:
        """A statement to run as soon as those before it are done."""
        self.waiting += 1
        self.idle.clear()
        self.steps.put(step)

    def _work(self) -> None:
        while (step := self.steps.get()) is not None:
            self.take(step)
            self.waiting -= 1
            if not self.waiting:
                self.idle.set()

    def execute(self, sql: str) -> str:
        if sql == "COMMIT":
            self.connection.execute("COMMIT")
            return "committed"
        statement = sql.replace(":client", f"'{self.name}'").encode()
        cursor = self.connection.execute(statement)
        return self.note(cursor, cursor.description is not None)

    def state_of(self, error: Exception) -> str:
        state = getattr(error, "sqlstate", None)
        if state is None:
            raise error
        return str(state)

    def roll_back(self) -> None:
        self.connection.execute("ROLLBACK")


class PostgreSQLStage(Stage):
    """Three connections: two clients, and one that watches. Tables in a schema of their own."""

    def __init__(self, url: str) -> None:
        import psycopg

        self.psycopg = psycopg
        self.url = url

    def __enter__(self) -> PostgreSQLStage:
        try:
            self.watch = self.psycopg.connect(self.url, autocommit=True, connect_timeout=5)
            self.watch.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())
            self.watch.execute(f"CREATE SCHEMA {SCHEMA}".encode())
            self.watch.execute(f"SET search_path TO {SCHEMA}".encode())
            self.watch.execute(TABLES.encode())
        except self.psycopg.Error as error:
            line = str(error).strip().splitlines()[0]
            raise Problem(f"PostgreSQL cannot be used for the interleavings: {line}.") from error
        self.product = f"PostgreSQL {self.watch.info.server_version // 10000}"
        self.clients = {name: PostgreSQLClient(name, self._connect()) for name in "AB"}
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.clients.values():
            client.steps.put(None)
            client.thread.join(PATIENCE)
            client.connection.close()
        self.watch.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())
        self.watch.close()

    def _connect(self) -> Any:
        connection = self.psycopg.connect(self.url, autocommit=True)
        connection.execute(f"SET search_path TO {SCHEMA}; SET synchronous_commit TO off".encode())
        with suppress(self.psycopg.errors.InsufficientPrivilege):
            # By default it looks for deadlocks after a second of waiting.
            connection.execute("SET deadlock_timeout = '5ms'")
        return connection

    def play(self, case: Case, level: str, order: str) -> History:
        self.watch.execute(FRESH.encode())
        history = History(case)
        steps = {name: iter(case.steps) for name in "AB"}
        for client in self.clients.values():
            client.start(history, level)
        for name in order:
            self.clients[name].give(next(steps[name]))
            for client in self.clients.values():
                history.waited |= not self._settled(client)
        for client in self.clients.values():
            if not client.idle.wait(PATIENCE):
                raise Problem(f"{case.name} on {level}, order {order}: it never came to an end.")
        row = self.watch.execute(case.done.encode()).fetchone()
        history.times = int(row[0]) if row else 0
        return history

    def _settled(self, client: PostgreSQLClient) -> bool:
        """Waits until the client is idle (True), or waits for the other (False)."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if client.idle.wait(0.002):
                return True
            row = self.watch.execute("SELECT pg_blocking_pids(%s)", [client.pid]).fetchone()
            if row and row[0]:
                return client.idle.is_set()
        raise Problem("A statement neither ended nor waited for the other client.")


# SQLite.


class SQLiteClient(Client):
    """A connection that never waits: whoever would have to, tries again after the other's turn."""

    def __init__(self, name: str, history: History, path: Path, begin: str) -> None:
        super().__init__(name, history)
        self.connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        self.begin = Step(begin)
        self.later: list[Step] = [self.begin]

    def execute(self, sql: str) -> str:
        cursor = self.connection.execute(sql, {"client": self.name} if ":client" in sql else {})
        if sql == "COMMIT":
            return "committed"
        if sql == self.begin.sql:
            return "begun"
        return self.note(cursor, cursor.description is not None)

    def state_of(self, error: Exception) -> str:
        if not isinstance(error, sqlite3.Error):
            raise error
        if isinstance(error, sqlite3.IntegrityError):
            return "23505" if "UNIQUE" in str(error) else "23502"
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise Busy from error
        # SQLITE_BUSY_SNAPSHOT: another one has written since we read. Waiting would not help.
        return "40001" if error.sqlite_errorcode == sqlite3.SQLITE_BUSY_SNAPSHOT else str(error)

    def roll_back(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def go_on(self) -> None:
        """Runs what can be run of what is waiting."""
        while self.later:
            try:
                self.take(self.later[0])
            except Busy:
                return
            self.later.pop(0)


class Busy(Exception):
    """This statement has to wait."""


class SQLiteStage(Stage):
    """A file in a temporary folder, in WAL mode."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="refunds-")
        self.path = Path(self.folder.name) / "interleavings.db"
        self.product = f"SQLite {sqlite3.sqlite_version}"

    def __enter__(self) -> SQLiteStage:
        self.watch = sqlite3.connect(self.path, isolation_level=None)
        self.watch.execute("PRAGMA journal_mode = WAL")
        self.watch.execute("PRAGMA synchronous = OFF")
        self.watch.executescript(TABLES)
        return self

    def __exit__(self, *_: object) -> None:
        self.watch.close()
        self.folder.cleanup()

    @staticmethod
    def knows(case: Case) -> bool:
        """SQLite has no row locks: FOR UPDATE is no SQL to it."""
        return not any("\nFOR" in step.sql or " FOR " in step.sql for step in case.steps)

    def play(self, case: Case, level: str, order: str) -> History:
        self.watch.executescript(FRESH)
        history = History(case)
        begin = level.removeprefix("SQLite ")
        clients = {name: SQLiteClient(name, history, self.path, begin) for name in "AB"}
        steps = {name: iter(case.steps) for name in "AB"}
        for name in order:
            clients[name].later.append(next(steps[name]))
            for client in (clients[name], *clients.values()):
                client.go_on()
                history.waited |= bool(client.later)
        for client in clients.values():
            client.connection.close()
            if client.later:
                history.errors.append("40001")  # it would have waited for ever: busy
        history.times = int(self.watch.execute(case.done).fetchone()[0])
        return history
