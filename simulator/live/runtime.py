"""What a process may do on the live ground; see `simulator.service.runtime`.

The service's generators run here unchanged. Nothing is ever yielded: a call blocks.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from simulator.live.clock import Clock
from simulator.live.database import Database, DiskFull, OpenTransaction
from simulator.live.stops import Stops
from simulator.service.errors import Silence
from simulator.service.operations import DurableRecord, Operation, Row
from simulator.service.outbox import next_due
from simulator.service.retry import Random01
from simulator.service.runtime import Steps

__all__ = ["LiveRuntime", "Service", "drive"]

T = TypeVar("T")

POLL = 0.03
"""Seconds of the wall's clock between two looks into the database, if nothing is known."""

FIRST_LOOK, LAST_LOOK = 0.01, 0.1
"""The same while somebody waits for one operation: soon at first, then less and less often."""

RECORD = DurableRecord()


Service = Callable[[Any, float, Callable[[], None]], Any]
"""Something that answers calls over the network: it is called with the request, the seconds of
the wall's clock to wait, and a function to call when the request has left. It returns the
answer, or raises what `Runtime.call` may raise."""


def drive(steps: Steps[T]) -> T:
    """Runs a generator of the service to its end."""
    try:
        waits_for = next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError(f"The service yielded {waits_for!r}: on this ground a call blocks.")


class LiveRuntime:
    """The handle of one life of one process; its threads share it."""

    def __init__(
        self,
        owner: str,
        clock: Clock,
        database: Database,
        services: Mapping[str, Service],
        takes_over: bool = True,
        stops: Stops | None = None,
        seed: int = 0,
    ) -> None:
        self.owner = owner
        self.clock = clock
        self.database = database
        self.services = services
        self.takes_over = takes_over
        self.stops = stops or Stops()
        self.memory: dict[str, Any] = {}
        self.random: Random01 = random.Random(f"{seed}/{owner}")

    def now(self) -> float:
        """Seconds of the service since the run began."""
        return self.clock.now()

    def new_id(self) -> str:
        """A UUID that nobody else has."""
        return str(uuid.uuid4())

    def call(self, name: str, request: Any, timeout: float) -> Steps[Any]:
        """Sends a request and waits for its answer."""
        yield from ()
        self.stops.at(name, "before_send")
        try:
            return self.services[name](
                request, self.clock.real(timeout), lambda: self.stops.at(name, "after_send")
            )
        except Silence:
            self.stops.report("silence", name)
            raise
        finally:
            self.stops.at(name, "after_answer")

    def transact(self, transaction: Callable[..., T], *arguments: Any) -> Steps[T]:
        """Runs and commits a transaction."""
        yield from ()
        name = transaction.__name__
        self.stops.at(name, "before")
        try:
            result: T = self.database.run(
                transaction,
                arguments,
                self.memory,
                self.random,
                inside=lambda: self.stops.at(name, "inside"),
            )
        except DiskFull as error:
            self.stops.report("full", str(error))
            raise
        self.stops.at(name, "after")
        return result

    def open(self, name: str) -> Steps[OpenTransaction]:
        """Opens a transaction that stays open while time passes."""
        yield from ()
        return self.database.open(self.memory, self.random)

    def commit(self, tx: OpenTransaction) -> Steps[None]:
        """Commits it."""
        yield from ()
        self.stops.at("commit", "before")
        self.database.commit_open(tx)
        self.stops.at("commit", "after")

    def sleep(self, seconds: float) -> Steps[None]:
        """Waits."""
        yield from ()
        self.clock.sleep(seconds)

    def settled(self, operation: Operation, seconds: float) -> Steps[Row | None]:
        """The operation's row when it is final, or as it stands after `seconds`."""
        yield from ()
        end = self.clock.now() + seconds
        wait = FIRST_LOOK
        while True:
            row: Row | None = self.database.run(RECORD.row, (operation,), reads=True)
            if row is None or row.final or self.clock.now() >= end:
                return row
            time.sleep(wait)
            wait = min(LAST_LOOK, 1.5 * wait)

    def due(self) -> Steps[None]:
        """Waits until the outbox has something to do."""
        yield from ()
        while not self.database.run(self._is_due, reads=True):
            time.sleep(POLL)

    def _is_due(self, tx: Any) -> bool:
        when = next_due(tx, self.takes_over)
        return when is not None and bool(when <= tx.time())

    def received(self) -> Steps[Operation]:
        """Waits for the next message of the broker."""
        yield from ()
        while True:
            operation: Operation | None = self.services["broker.take"](None, POLL, lambda: None)
            if operation is not None:
                return operation
            time.sleep(POLL)
