"""PostgreSQL as the service's database, by psycopg 3."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from simulator.live.clock import Clock
from simulator.live.database import TABLES, VERSION, Database, DiskFull
from simulator.live.problems import Problem
from simulator.service.database import postgresql_schema
from simulator.service.errors import CommitUnknown, DatabaseUnavailable

if TYPE_CHECKING:
    import psycopg

__all__ = ["SCHEMA", "PostgreSQL", "without_password"]

SCHEMA = "exactly_one_refund"
"""Where our tables are, apart from everybody else's."""


@cache
def postgresql_words(statement: str) -> bytes:
    """A statement with `:named` parameters as psycopg wants it: `%(named)s`."""
    escaped = statement.replace("%", "%%")
    return re.sub(r"(?<!:):([a-z_]+)", r"%(\1)s", escaped).encode()


class PostgreSQL(Database):
    """PostgreSQL. Our tables live in a schema of their own."""

    def __init__(self, url: str, clock: Clock) -> None:
        super().__init__(url, clock)
        import psycopg

        self.errors = (psycopg.Error,)
        self._psycopg = psycopg

    def connect(self) -> psycopg.Connection[Any]:
        from psycopg.types.string import TextLoader

        try:
            connection = self._psycopg.connect(self.url, autocommit=True, connect_timeout=5)
            connection.execute(f"SET search_path TO {SCHEMA}".encode())
        except self._psycopg.Error as error:
            raise DatabaseUnavailable(f"{self.name()}: {first_line(error)}") from error
        # The service keeps its ids as text.
        connection.adapters.register_loader("uuid", TextLoader)
        return connection

    def begin(self, connection: psycopg.Connection[Any], reads: bool) -> None:
        level = "READ COMMITTED READ ONLY" if reads else "SERIALIZABLE"
        connection.execute(f"BEGIN ISOLATION LEVEL {level}".encode())

    def execute(
        self, connection: psycopg.Connection[Any], statement: str, parameters: dict[str, Any]
    ) -> Any:
        return connection.execute(postgresql_words(statement), parameters)

    def commit(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute("COMMIT")

    def roll_back(self, connection: psycopg.Connection[Any]) -> None:
        with suppress(self._psycopg.Error):
            connection.rollback()

    def usable(self, connection: psycopg.Connection[Any]) -> bool:
        idle = self._psycopg.pq.TransactionStatus.IDLE
        return not connection.closed and connection.info.transaction_status == idle

    def stored_time(self, seconds_from_now: float) -> Any:
        return self.clock.moment(seconds_from_now)

    def may_run_again(self, error: BaseException) -> bool:
        errors = self._psycopg.errors
        return isinstance(error, errors.SerializationFailure | errors.DeadlockDetected)

    def meaning(self, error: BaseException) -> BaseException:
        if isinstance(error, self._psycopg.errors.DiskFull):
            return DiskFull(f"no room left for {self.name()}")
        if isinstance(error, self._psycopg.OperationalError | self._psycopg.InterfaceError):
            return DatabaseUnavailable(f"{self.name()}: {first_line(error)}")
        return error

    def meaning_at_commit(self, error: BaseException) -> BaseException:
        state = getattr(error, "sqlstate", None)
        if state is None or state.startswith(("08", "57P")):
            return CommitUnknown(f"the connection broke during COMMIT: {first_line(error)}")
        return self.meaning(error)

    def version(self, connection: psycopg.Connection[Any]) -> str | None:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s", [SCHEMA]
        ).fetchall()
        names = {row[0] for row in tables}
        if "schema_version" in names:
            found = connection.execute("SELECT version FROM schema_version").fetchone()
            return str(found[0]) if found else ""
        return "" if names & TABLES else None

    def make_tables(self, connection: psycopg.Connection[Any]) -> None:
        with connection.transaction():
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}".encode())
            connection.execute(postgresql_schema().encode())
            connection.execute("CREATE TABLE schema_version (version TEXT NOT NULL)")
            connection.execute("INSERT INTO schema_version VALUES (%s)", [VERSION])

    def why_not(self, error: BaseException) -> Problem:
        if isinstance(error, self._psycopg.errors.InsufficientPrivilege):
            return Problem(
                f"{self.name()} does not let you make tables ({first_line(error)}). Have its "
                "owner run: GRANT CREATE ON DATABASE … TO you, or name a database of your own."
            )
        if isinstance(error, self._psycopg.errors.DiskFull):
            return Problem(f"There is no room for {self.name()}: make some, and start again.")
        return Problem(
            f"{self.name()} cannot be used: {first_line(error)}. Check the URL, and that the "
            "database is up and lets you in."
        )

    def name(self) -> str:
        return f"the database {without_password(self.url)}"

    def product(self) -> str:
        return f"PostgreSQL {self.rows('SHOW server_version')[0][0].split()[0]}"

    def removal(self) -> str:
        return f'psql "{without_password(self.url)}" -c "DROP SCHEMA {SCHEMA} CASCADE"'


def first_line(error: BaseException) -> str:
    """The first line of an error's message, without the full stop."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def without_password(url: str) -> str:
    """The URL, fit to be shown."""
    shown = re.sub(r"(?<=[?&]password=)[^&]*", "…", url)
    return re.sub(r"(?<=//)([^/?#:@]*):.*@", r"\1:…@", shown)
