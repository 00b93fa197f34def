"""The real database, whichever it is: what `sqlite_file` and `postgres` have in common.

Transactions are SERIALIZABLE. On PostgreSQL one that would not be is refused with SQLSTATE
40001 (or 40P01, a deadlock), was rolled back, and is run again here.
"""

from __future__ import annotations

import random
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any

from simulator.live.clock import Clock
from simulator.live.problems import Problem
from simulator.service.database import postgresql_schema
from simulator.service.errors import DatabaseUnavailable
from simulator.service.retry import Random01

__all__ = ["TABLES", "VERSION", "Database", "DiskFull", "LiveTransaction"]

VERSION = sha256(postgresql_schema().encode()).hexdigest()[:12]
"""Two files that say the same make the same tables."""

TABLES = frozenset(re.findall(r"CREATE TABLE (\w+)", postgresql_schema()))

TRIES = 100
"""How often a transaction is run before the database counts as unavailable."""


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


class OpenTransaction(LiveTransaction):
    """A transaction that stays open from one call to the next; see `Runtime.open`.

    Attributes:
        connection: that it has for itself; None: it is over.
    """

    connection: Any


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

    def open(self, memory: dict[str, Any], dice: Random01) -> OpenTransaction:
        """Begins a transaction and leaves it open; `commit_open` ends it.

        Raises:
            DatabaseUnavailable: the database takes none; its statements raise it too.
        """
        connection = self._take()

        def execute(statement: str, parameters: dict[str, Any]) -> Any:
            if tx.connection is None:
                raise DatabaseUnavailable("this transaction is over: it was rolled back")
            try:
                return self.execute(connection, statement, parameters)
            except self.errors as error:
                tx.connection = None
                self.roll_back(connection)
                self._give_back(connection)
                raise self.meaning(error) from error

        tx = OpenTransaction(execute, self.stored_time, memory, dice)
        tx.connection = connection
        try:
            self.begin(connection, reads=False)
        except self.errors as error:
            self._give_back(connection)
            raise self.meaning(error) from error
        return tx

    def commit_open(self, tx: OpenTransaction) -> None:
        """Commits what `open` began.

        Raises:
            DatabaseUnavailable: it was rolled back, to let another go on or for lack of the
                database. CommitUnknown: nobody knows.
        """
        connection, tx.connection = tx.connection, None
        if connection is None:
            raise DatabaseUnavailable("this transaction is over: it was rolled back")
        try:
            self.commit(connection)
        except self.errors as error:
            self.roll_back(connection)
            if self.may_run_again(error):
                raise DatabaseUnavailable("another transaction got in the way") from error
            raise self.meaning_at_commit(error) from error
        finally:
            self._give_back(connection)

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
        connection = self._take()
        try:
            yield connection
        finally:
            self._give_back(connection)

    def _take(self) -> Any:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        return self.connect() if connection is None else connection

    def _give_back(self, connection: Any) -> None:
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
