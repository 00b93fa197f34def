"""The real database: a SQLite file, or PostgreSQL, whichever the URL names.

Transactions are SERIALIZABLE. On PostgreSQL one that would not be is refused with SQLSTATE
40001 (or 40P01, a deadlock), was rolled back, and is run again here.
"""

from __future__ import annotations

import random
import re
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from simulator.live.clock import Clock
from simulator.live.problems import Problem
from simulator.service.database import postgresql_schema, sqlite_schema
from simulator.service.errors import CommitUnknown, DatabaseUnavailable
from simulator.service.retry import Random01

if TYPE_CHECKING:
    import psycopg

__all__ = ["SCHEMA", "Database", "DiskFull", "LiveTransaction", "SqliteFile", "open_database"]

SCHEMA = "exactly_one_refund"
"""Where our tables are on PostgreSQL, apart from everybody else's."""

VERSION = sha256(postgresql_schema().encode()).hexdigest()[:12]
"""Two files that say the same make the same tables."""

TABLES = frozenset(re.findall(r"CREATE TABLE (\w+)", postgresql_schema()))

TRIES = 100
"""How often a transaction is run before the database counts as unavailable."""

BUSY = 5.0
"""Seconds of the wall's clock to wait for SQLite's one lock for writing."""


class DiskFull(DatabaseUnavailable):
    """No room left: the transaction was rolled back."""


class LiveTransaction:
    """What the service sees of an open transaction."""

    def __init__(
        self,
        execute: Callable[[str, dict[str, Any]], Any],
        time_of: Callable[[float], Any],
        memory: dict[str, Any],
        dice: Random01,
    ) -> None:
        self._execute = execute
        self._time_of = time_of
        self.memory = memory
        self.random = dice

    def execute(self, statement: str, parameters: dict[str, Any] | None = None) -> Any:
        """Runs one statement with `:named` parameters; returns the driver's cursor."""
        return self._execute(statement, parameters or {})

    def time(self, seconds_from_now: float = 0.0) -> Any:
        """The time of the service's clock, as this database stores it."""
        return self._time_of(seconds_from_now)


class Database(ABC):
    """Connections to one database; safe to use from several threads.

    Attributes:
        retried: how many transactions were run again after 40001 or 40P01.
    """

    errors: tuple[type[Exception], ...]

    def __init__(self, url: str, clock: Clock) -> None:
        self.url = url
        self.clock = clock
        self.retried = 0
        self._idle: list[Any] = []
        self._lock = threading.Lock()

    # What every database can do.

    def run(
        self,
        transaction: Callable[..., Any],
        arguments: tuple[Any, ...] = (),
        memory: dict[str, Any] | None = None,
        dice: Random01 | None = None,
        inside: Callable[[], None] = lambda: None,
        reads: bool = False,
    ) -> Any:
        """Runs `transaction(tx, *arguments)` and commits.

        Args:
            transaction: the function.
            arguments: of it.
            memory, dice: what it finds in `tx`.
            inside: called before COMMIT.
            reads: whether it only reads one moment, and so needs no more than that.

        Raises:
            DatabaseUnavailable: not carried out. DiskFull: neither, for lack of room.
            CommitUnknown: nobody knows.
        """
        chance: Random01 = dice or random.Random()
        # What a run that is rolled back has noted in a list was never so.
        noted = [(argument, len(argument)) for argument in arguments if isinstance(argument, list)]
        for attempt in range(TRIES):
            for notes, length in noted:
                del notes[length:]
            with self._borrowed() as connection:
                try:
                    self.begin(connection, reads)
                    tx = LiveTransaction(
                        lambda statement, parameters, to=connection: self.execute(  # type: ignore[misc]
                            to, statement, parameters
                        ),
                        self.stored_time,
                        {} if memory is None else memory,
                        chance,
                    )
                    result = transaction(tx, *arguments)
                    inside()
                except BaseException as error:
                    self.roll_back(connection)
                    if not self.may_run_again(error):
                        raise self.meaning(error) from error
                else:
                    try:
                        self.commit(connection)
                    except self.errors as error:
                        self.roll_back(connection)
                        if not self.may_run_again(error):
                            raise self.meaning_at_commit(error) from error
                    else:
                        return result
            self.retried += 1
            time.sleep(chance.uniform(0, min(0.1, 0.002 * 2.0 ** min(attempt, 10))))
        raise DatabaseUnavailable(f"other transactions got in the way {TRIES} times")

    def rows(self, query: str, parameters: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Reads, in a transaction of its own."""
        found: list[tuple[Any, ...]] = self.run(
            lambda tx: [tuple(row) for row in tx.execute(query, parameters).fetchall()], reads=True
        )
        return found

    def create(self) -> None:
        """Makes the tables, unless they are there already.

        Raises:
            Problem: tables of another version of this program are in the way.
        """
        with self._borrowed() as connection:
            try:
                version = self.version(connection)
                if version is None:
                    self.make_tables(connection)
            except self.errors as error:
                raise self.why_not(error) from error
        if version not in (None, VERSION):
            raise Problem(
                f"{self.name()} has the tables of another version of this program "
                f"({version or 'without a version'}; this one makes {VERSION}). They were left "
                f"as they are. Name another database, or remove them: {self.removal()}"
            )

    def close(self) -> None:
        """Closes the connections that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            with suppress(*self.errors):
                connection.close()

    @contextmanager
    def _borrowed(self) -> Iterator[Any]:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self.connect()
        try:
            yield connection
        finally:
            if self.usable(connection):
                with self._lock:
                    self._idle.append(connection)
            else:
                with suppress(*self.errors):
                    connection.close()

    # What each does its own way.

    @abstractmethod
    def connect(self) -> Any:
        """A new connection. Raises DatabaseUnavailable."""

    @abstractmethod
    def begin(self, connection: Any, reads: bool) -> None:
        """Opens a transaction."""

    @abstractmethod
    def execute(self, connection: Any, statement: str, parameters: dict[str, Any]) -> Any:
        """Runs one statement."""

    @abstractmethod
    def commit(self, connection: Any) -> None:
        """Commits."""

    @abstractmethod
    def roll_back(self, connection: Any) -> None:
        """Rolls back, whatever state the connection is in."""

    @abstractmethod
    def usable(self, connection: Any) -> bool:
        """Whether the connection can be used again."""

    @abstractmethod
    def stored_time(self, seconds_from_now: float) -> Any:
        """The clock's time in the database's type."""

    @abstractmethod
    def may_run_again(self, error: BaseException) -> bool:
        """Whether the transaction was rolled back only to let another go on."""

    @abstractmethod
    def meaning(self, error: BaseException) -> BaseException:
        """What an error before COMMIT means to the service."""

    @abstractmethod
    def meaning_at_commit(self, error: BaseException) -> BaseException:
        """What an error of COMMIT means to the service."""

    @abstractmethod
    def version(self, connection: Any) -> str | None:
        """Which tables are there: None if none, "" if they have no version."""

    @abstractmethod
    def make_tables(self, connection: Any) -> None:
        """Makes them, in one transaction."""

    @abstractmethod
    def why_not(self, error: BaseException) -> Problem:
        """A sentence for an error while the tables were looked for or made."""

    @abstractmethod
    def name(self) -> str:
        """The database, for a sentence; without a password."""

    @abstractmethod
    def product(self) -> str:
        """Which database it is, and its version."""

    @abstractmethod
    def removal(self) -> str:
        """How one gets rid of our tables."""


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


def open_database(url: str, clock: Clock) -> Database:
    """The database that a URL names: sqlite:///file, or postgresql://user@host/name.

    Raises:
        Problem: the URL names no database that we know, or it cannot be reached.
    """
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        database: Database = _sqlite_file(url, clock)
    elif scheme in ("postgresql", "postgres"):
        try:
            database = PostgreSQL(url, clock)
        except ImportError as error:
            raise Problem(
                "PostgreSQL needs the package psycopg. Install the extra: "
                'python -m pip install "exactly-one-refund[live]"'
            ) from error
    else:
        raise Problem(
            f"{without_password(url)!r} is no database that can be used here. Write "
            "sqlite:///refunds.db for a file, or postgresql://user@host/name."
        )
    try:
        database.rows("SELECT 1")
    except DatabaseUnavailable as error:
        raise database.why_not(error.__cause__ or error) from error
    except database.errors as error:
        raise database.why_not(error) from error
    return database


def _sqlite_file(url: str, clock: Clock) -> SqliteFile:
    if not url.startswith("sqlite:///") or not url.removeprefix("sqlite:///"):
        raise Problem(
            f"{url!r} names no file. Write three slashes and a path: sqlite:///refunds.db "
            "(four for one that begins at the root: sqlite:////tmp/refunds.db)."
        )
    database = SqliteFile(url, clock)
    if not database.path.parent.is_dir():
        raise Problem(
            f"The folder {database.path.parent} does not exist. Make it, or name another file."
        )
    if database.path.is_dir():
        raise Problem(f"{database.path} is a folder. Name a file in it.")
    return database
