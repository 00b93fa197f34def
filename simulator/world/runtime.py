"""What a process may do on the virtual ground; see `simulator.service.runtime`."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from simulator.service.errors import (
    CallTimeout,
    CommitUnknown,
    ConnectionLost,
    DatabaseUnavailable,
)
from simulator.service.operations import Operation, Row
from simulator.service.retry import Random01
from simulator.world.clock import Dead, Life, microseconds
from simulator.world.faults import Fault
from simulator.world.mistakes import Mistake

if TYPE_CHECKING:
    from simulator.world.database import VirtualTransaction
    from simulator.world.world import World

__all__ = ["VirtualRuntime"]

T = TypeVar("T")

ROUND_TRIP = 2_000
"""Microseconds for a transaction."""

COMMIT_TIMEOUT = 5.0
"""Seconds until a client notices that nobody acknowledges its commit."""

TIMED_OUT = object()


class VirtualRuntime:
    """The handle of one life of one process. Once that life is over it does nothing."""

    def __init__(self, world: World, life: Life) -> None:
        self.world = world
        self.life = life
        self.owner = life.owner
        self.memory = life.memory
        self.random: Random01 = world.luck_of(life.process)

    def now(self) -> float:
        """Seconds since the history began."""
        return self.world.clock.now / 1_000_000

    def new_id(self) -> str:
        """A UUID that nobody else has."""
        return self.world.new_id()

    def call(self, name: str, request: Any, timeout: float) -> Generator[Any, Any, Any]:
        """Sends a request and waits for its answer."""
        return self._step(f"rt.call({name!r}, …)", self._call(name, request, timeout))

    def transact(
        self, transaction: Callable[..., Any], *arguments: Any
    ) -> Generator[Any, Any, Any]:
        """Runs a transaction in one instant."""
        name = name_of(transaction)
        return self._step(f"rt.transact({name}, …)", self._transact(transaction, arguments))

    def sleep(self, seconds: float) -> Generator[Any, Any, None]:
        """Waits."""
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"rt.sleep({seconds!r}): wait for 0 seconds or more.")
        return self._step(f"rt.sleep({seconds:g})", self._sleep(seconds))

    def settled(self, operation: Operation, seconds: float) -> Generator[Any, Any, Row | None]:
        """The operation's row when it is final, or as it stands after `seconds`."""
        return self._step("rt.settled(…)", self._settled(operation, seconds))

    def due(self) -> Generator[Any, Any, None]:
        """Waits until the outbox has something to do."""
        return self._step("rt.due()", self._due())

    def received(self) -> Generator[Any, Any, Operation]:
        """Waits for the next message of the broker."""
        return self._step("rt.received()", self._received())

    def open(self, name: str) -> Generator[Any, Any, VirtualTransaction]:
        """Opens a transaction that stays open while time passes, and holds a lock meanwhile.

        A mistake that real systems make: everybody else waits until it is closed.
        """
        return self._step(f"rt.open({name!r})", self._open(name))

    def commit(self, tx: VirtualTransaction) -> Generator[Any, Any, None]:
        """Commits a transaction that `open` returned."""
        return self._step("rt.commit(…)", self._commit(tx))

    def _step(self, what: str, generator: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        if not self.life.alive:
            generator.close()
            raise Dead
        task = self.life.current
        if task is not None:
            task.making(what, generator)
        return generator

    def _alive(self) -> None:
        if not self.life.alive:
            raise Dead

    def _call(self, name: str, request: Any, timeout: float) -> Generator[Any, Any, Any]:
        self._alive()
        world, life, clock = self.world, self.life, self.world.clock
        fault = world.strike(life, name, call=True)
        if fault is not None:
            yield from self._interrupted(fault, "before_send")
            world.break_down(fault)
        if world.scenario.poison and name.startswith("provider."):
            yield from self._poisoned(request)
        reply = clock.event()
        world.exchange(life, name, request, reply, fault).send()
        if fault is not None:
            yield from self._interrupted(fault, "after_send")

        def time_out(_: Any) -> None:
            if not reply.triggered:
                reply.succeed(TIMED_OUT)

        clock.after(microseconds(timeout), time_out)
        answer = yield reply
        if answer is TIMED_OUT:
            world.note(life.process, "timeout", name, text=f"after {timeout:g} s")
            answer = CallTimeout(f"no answer to {name} within {timeout:g} s")
        elif isinstance(answer, ConnectionLost):
            world.note(life.process, "reset", name, text=str(answer))
        if fault is not None:
            yield from self._interrupted(fault, "after_answer")
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _transact(
        self, transaction: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> Generator[Any, Any, Any]:
        self._alive()
        world, life = self.world, self.life
        name = name_of(transaction)
        fault = world.strike(life, name, call=False)
        if fault is not None:
            yield from self._interrupted(fault, "before")
            world.break_down(fault)
        yield world.clock.timeout(ROUND_TRIP)
        database = world.database
        if not database.up or database.holder is not None:
            yield from self._turn(name)
        lost = fault is not None and fault.kind == "lose_commit_ack"
        if lost and fault is not None and fault.when == "before":
            yield from self._unknown(name, committed=False)
        try:
            result = database.run(transaction, arguments, life.memory, self.random)
        except BaseException as error:
            world.note(life.process, "rollback", name, "database", text=str(error))
            raise
        world.note(life.process, "commit", name, "database")
        world.note_changes(life.process)
        if lost:
            yield from self._unknown(name, committed=True)
        if fault is not None:
            yield from self._interrupted(fault, "after")
        return result

    def _turn(self, name: str) -> Generator[Any, Any, None]:
        """Waits while somebody holds a transaction open; checks that the database is there."""
        database = self.world.database
        while database.up and database.holder is not None:
            yield database.turn()
        if not database.up:
            self.world.note(self.life.process, "rollback", name, "database", text="down")
            raise DatabaseUnavailable(f"the database refused {name}")

    def _unknown(self, name: str, committed: bool) -> Generator[Any, Any, None]:
        world = self.world
        if not committed:
            world.note(self.life.process, "rollback", name, "database")
        world.note(self.life.process, "ack_lost", name, "database")
        yield world.clock.timeout(microseconds(COMMIT_TIMEOUT))
        raise CommitUnknown(f"nobody acknowledged the commit of {name}")

    def _poisoned(self, request: Any) -> Generator[Any, Any, None]:
        """Dies of a request that kills whoever is about to send it."""
        if request.intent_id in self.world.scenario.poison:
            self.world.note(self.life.process, "note", "poison", text="this event kills it")
            self.world.kill(self.life)
            yield self.world.clock.event()  # never happens

    def _interrupted(self, fault: Fault, place: str) -> Generator[Any, Any, None]:
        """Dies or pauses here, if that is the fault."""
        if fault.when != place or fault.kind not in ("crash", "pause"):
            return
        if fault.kind == "crash":
            self.world.kill(self.life)
            yield self.world.clock.event()  # never happens
        self.world.pause(self.life, fault.seconds)
        yield self.world.clock.timeout(1)

    def _sleep(self, seconds: float) -> Generator[Any, Any, None]:
        self._alive()
        yield self.world.clock.timeout(round(seconds * 1_000_000))

    def _settled(self, operation: Operation, seconds: float) -> Generator[Any, Any, Row | None]:
        self._alive()
        world = self.world
        final = world.settlement(operation)
        if final is None:
            yield world.clock.timeout(1)  # so that a loop around it takes time
        else:
            clock = world.clock

            def give_up(_: Any) -> None:
                if not final.triggered:
                    final.succeed()

            clock.after(microseconds(seconds), give_up)
            yield final
        yield from self._turn("settled")
        return world.row(operation)

    def _due(self) -> Generator[Any, Any, None]:
        self._alive()
        wakeup = self.world.wakeup
        if wakeup is None:
            raise Mistake("rt.due() waits for an outbox, and this design has none.")
        yield wakeup.wait(self.life)

    def _received(self) -> Generator[Any, Any, Operation]:
        self._alive()
        operation: Operation = yield self.world.broker.take(self.life)
        return operation

    def _open(self, name: str) -> Generator[Any, Any, VirtualTransaction]:
        self._alive()
        yield self.world.clock.timeout(ROUND_TRIP)
        yield from self._turn(name)
        return self.world.database.open(self.life, self.random)

    def _commit(self, tx: VirtualTransaction) -> Generator[Any, Any, None]:
        self._alive()
        world, life = self.world, self.life
        fault = world.strike(life, "commit", call=False)
        if fault is not None:
            yield from self._interrupted(fault, "before")
            world.break_down(fault)
        yield world.clock.timeout(ROUND_TRIP)
        lost = fault is not None and fault.kind == "lose_commit_ack"
        if lost and fault is not None and fault.when == "before":
            world.database.close(tx, commit=False)
            yield from self._unknown("commit", committed=False)
        if not world.database.close(tx, commit=True):
            world.note(life.process, "rollback", "open transaction", "database")
            raise DatabaseUnavailable("the connection of the open transaction broke")
        world.note(life.process, "commit", "open transaction", "database")
        world.note_changes(life.process)
        if lost:
            yield from self._unknown("commit", committed=True)
        if fault is not None:
            yield from self._interrupted(fault, "after")


def name_of(transaction: object) -> str:
    """The name of a transaction's step: that of its function."""
    function = getattr(transaction, "func", transaction)  # a functools.partial
    name = getattr(function, "__name__", None)
    if not callable(transaction) or name is None:
        raise Mistake(
            f"rt.transact({transaction!r}, …): give a function that takes the open transaction, "
            "for example rt.transact(begin, design, operation)."
        )
    return str(name)
