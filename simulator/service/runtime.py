"""The ground that the service stands on, virtual or real.

`call`, `transact`, `open`, `commit`, `sleep`, `settled`, `due` and `received` are generators,
to be used with `yield from`. On the virtual ground they yield events of the simulation; on the live
ground they block and never yield.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Protocol, TypeVar

from simulator.service.operations import Operation, Row
from simulator.service.retry import Random01

__all__ = ["Runtime", "Steps", "Transaction"]

T = TypeVar("T")
Steps = Generator[Any, Any, T]


class Transaction(Protocol):
    """One open transaction.

    Attributes:
        memory: the process's own memory, lost when it dies.
        random: the source of randomness of this process.
    """

    memory: dict[str, Any]
    random: Random01

    def execute(self, statement: str, parameters: dict[str, Any] | None = None) -> Any:
        """Runs one statement with `:named` parameters; returns a cursor (fetchone, rowcount)."""
        ...

    def time(self, seconds_from_now: float = 0.0) -> Any:
        """The time, as the database stores it. Times are passed in, never the database's own."""
        ...


class Runtime(Protocol):
    """What a process may do. One runtime belongs to one life of one process.

    Attributes:
        owner: name and number of this life, for claims: "worker-1#2" is the second life.
        memory: a dict that dies with the process.
        random: the source of randomness of this process.
    """

    owner: str
    memory: dict[str, Any]
    random: Random01

    def now(self) -> float:
        """Seconds since the epoch of this ground."""
        ...

    def new_id(self) -> str:
        """A UUID that nobody else has."""
        ...

    def call(self, name: str, request: Any, timeout: float) -> Steps[Any]:
        """Sends `request` and waits at most `timeout` seconds for the answer.

        Raises:
            CallTimeout, ConnectionLost, ServerError: nobody knows whether it was carried out.
            Declined, RateLimited: it was not.
        """
        ...

    def transact(self, transaction: Callable[..., T], *arguments: Any) -> Steps[T]:
        """Runs `transaction(tx, *arguments)` in one transaction and commits.

        Raises:
            DatabaseUnavailable: not carried out.
            CommitUnknown: nobody knows.
        """
        ...

    def open(self, name: str) -> Steps[Transaction]:
        """Opens a transaction that stays open while time passes.

        A mistake that real systems make. Whatever it locked stays locked meanwhile.
        """
        ...

    def commit(self, tx: Any) -> Steps[None]:
        """Commits what `open` returned.

        Raises:
            DatabaseUnavailable: not carried out.
            CommitUnknown: nobody knows.
        """
        ...

    def sleep(self, seconds: float) -> Steps[None]:
        """Waits."""
        ...

    def settled(self, operation: Operation, seconds: float) -> Steps[Row | None]:
        """The operation's row as soon as it is final, or as it stands after `seconds`.

        None if there is no such row.
        """
        ...

    def due(self) -> Steps[None]:
        """Waits until the outbox has something to do."""
        ...

    def received(self) -> Steps[Operation]:
        """Waits for the next message of the broker (designs that publish)."""
        ...
