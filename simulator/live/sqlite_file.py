"""A SQLite file as the service's database."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from simulator.live.clock import Clock
from simulator.live.database import TABLES, VERSION, Database, DiskFull
from simulator.live.problems import Problem
from simulator.service.database import sqlite_schema
from simulator.service.errors import DatabaseUnavailable

__all__ = ["SqliteFile"]

BUSY = 5.0
"""Seconds of the wall's clock to wait for the one lock for writing."""


class SqliteFile(Database):
    """A SQLite file. One transaction writes at a time; a killed process leaves no lock behind."""

    errors = (sqlite3.Error,)

    def __init__(self, url: str, clock: Clock) -> None:
        super().__init__(url, clock)
        self.path = Path(unquote(url.removeprefix("sqlite:///")))

    def connect(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self.path, timeout=BUSY, isolation_level=None, check_same_thread=False
            )
            connection.execute("PRAGMA journal_mode = WAL")
            # Every commit is with the system, and survives our death; not the machine's.
            connection.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.OperationalError as error:
            raise DatabaseUnavailable(f"{self.name()}: {error}") from error
        return connection

    def begin(self, connection: sqlite3.Connection, reads: bool) -> None:
        # IMMEDIATE takes the lock for writing now: a transaction that has read is never
        # refused later because another one wrote meanwhile.
        connection.execute("BEGIN" if reads else "BEGIN IMMEDIATE")

    def execute(
        self, connection: sqlite3.Connection, statement: str, parameters: dict[str, Any]
    ) -> Any:
        return connection.execute(statement, parameters)

    def commit(self, connection: sqlite3.Connection) -> None:
        connection.execute("COMMIT")

    def roll_back(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")

    def usable(self, connection: sqlite3.Connection) -> bool:
        return not connection.in_transaction

    def stored_time(self, seconds_from_now: float) -> str:
        return self.clock.moment(seconds_from_now).isoformat(timespec="microseconds")

    def may_run_again(self, error: BaseException) -> bool:
        return False

    def meaning(self, error: BaseException) -> BaseException:
        if not isinstance(error, sqlite3.Error):
            return error
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return DiskFull(f"no room left for {self.name()}")
        if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
            return DatabaseUnavailable(f"{self.name()}: {error}")
        return error  # a mistake in a statement, or a constraint: not the database's fault

    def meaning_at_commit(self, error: BaseException) -> BaseException:
        # A COMMIT that SQLite refuses was not carried out: there is no line that could break.
        return self.meaning(error)

    def version(self, connection: sqlite3.Connection) -> str | None:
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        if "schema_version" in names:
            found = connection.execute("SELECT version FROM schema_version").fetchone()
            return str(found[0]) if found else ""
        return "" if names & TABLES else None

    def make_tables(self, connection: sqlite3.Connection) -> None:
        connection.executescript(
            f"BEGIN IMMEDIATE;\n{sqlite_schema()}\n"
            "CREATE TABLE schema_version (version TEXT NOT NULL);\n"
            f"INSERT INTO schema_version VALUES ('{VERSION}');\nCOMMIT;"
        )

    def why_not(self, error: BaseException) -> Problem:
        text = str(error)
        if "not a database" in text:
            return Problem(
                f"{self.path} is a file, and not one of SQLite's. It was left as it is. "
                "Name a file that does not exist yet: sqlite:///refunds.db"
            )
        if "readonly" in text:
            return Problem(
                f"{self.path} cannot be written to by you. Give yourself the right, or name "
                "another file."
            )
        if "full" in text:
            return Problem(f"There is no room for {self.path}: make some, and start again.")
        return Problem(f"{self.name()} cannot be used: {text}. Is that the file you mean?")

    def name(self) -> str:
        return f"the SQLite file {self.path}"

    def product(self) -> str:
        return f"SQLite {sqlite3.sqlite_version}"

    def removal(self) -> str:
        return f"rm {self.path}"
