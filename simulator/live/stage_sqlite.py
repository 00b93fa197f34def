"""Two transactions on a SQLite file."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from simulator.live.stage import FRESH, Client, History, Stage
from simulator.live.transactions import TABLES, Case, Step

__all__ = ["SQLiteStage"]


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
