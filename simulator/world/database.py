"""A real database in virtual time: SQLite in memory, real tables, UNIQUE, rollback.

A transaction runs in one instant, so this database is serializable. A transaction that a
process keeps open holds a first-come-first-served lock meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache, partial
from typing import Any

from simulator.service.database import sqlite_schema
from simulator.service.retry import Random01
from simulator.world.clock import Clock, Life
from simulator.world.mistakes import EndsItself, YieldsInside
from simulator.world.scenario import Order

__all__ = ["EPOCH", "Change", "Store", "VirtualDatabase", "VirtualTransaction", "read", "written"]

EPOCH = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""Where every history begins, so that times in tables can be read."""

# The world sees every change of state, whoever makes it and however.
OBSERVE = """
CREATE TRIGGER observe_task AFTER INSERT ON tasks BEGIN
    SELECT observe_task(NEW.topic, NEW.reason);
END;
CREATE TRIGGER observe_question AFTER INSERT ON approvals BEGIN
    SELECT observe_question(NEW.id);
END;
CREATE TRIGGER observe_insert AFTER INSERT ON tool_operations BEGIN
    SELECT observe(NEW.id, NULL, NEW.status);
END;
CREATE TRIGGER observe_update AFTER UPDATE OF status ON tool_operations
WHEN OLD.status IS NOT NEW.status BEGIN
    SELECT observe(NEW.id, OLD.status, NEW.status);
END;
"""


def written(microseconds: int) -> str:
    """A time of the clock as the database stores it; sorts like time."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{_second(seconds)}.{rest:06d}+00:00"


@lru_cache(maxsize=65_536)
def _second(seconds: int) -> str:
    # Histories meet the same seconds again and again; isoformat costs more than a statement.
    return (EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")


def read(text: str) -> int:
    """The clock's time of what `written` wrote."""
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


INSERT_ORDER = """
    INSERT INTO orders (tenant_id, id, user_id, status, currency, captured, refunded, pending)
    VALUES (:tenant_id, :id, :user_id, 'confirmed', :currency, :captured, 0, 0)
"""


INSERT_LINE = """
    INSERT INTO order_lines (tenant_id, order_id, sku, quantity)
    VALUES (:tenant_id, :id, :sku, :quantity)
"""
INSERT_STOCK = """
    INSERT INTO stock (tenant_id, sku, on_hand) VALUES (:tenant_id, :sku, 0)
    ON CONFLICT (tenant_id, sku) DO NOTHING
"""
INSERT_PROFILE = """
    INSERT INTO profiles (tenant_id, user_id, name, email)
    VALUES (:tenant_id, :user_id, 'Mira', 'mira@example.org')
    ON CONFLICT (tenant_id, user_id) DO NOTHING
"""


def _order_row(order: Order) -> dict[str, Any]:
    return {
        "tenant_id": order.tenant_id,
        "id": order.id,
        "user_id": order.user_id,
        "currency": order.currency,
        "captured": order.captured,
    }


Change = tuple[str, str | None, str]
"""(operation id, state before or None for a new one, state after)."""


class Store:
    """One SQLite database, used for one history after the other.

    A whole history runs inside a savepoint, and every transaction of the service in one of
    its own: so one statement makes the database new again.

    Attributes:
        graveyard: generators of the dead of the history before. They are closed, which runs
            their `finally`, only when the next history takes the database; their handles do
            nothing any more.
        seen, asked, questions: changes of state, new tasks and new questions to an approver,
            in the transaction that is open.
    """

    def __init__(self) -> None:
        self.connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, cached_statements=256
        )
        # A history touches a few rows; small pages make its savepoints cheap to undo.
        self.connection.execute("PRAGMA page_size = 1024")
        self.connection.create_function("observe", 3, self._observe)
        self.connection.create_function("observe_task", 2, self._observe_task)
        self.connection.create_function("observe_question", 1, self._observe_question)
        self.connection.executescript(sqlite_schema() + OBSERVE)
        self.seen: list[Change] = []
        self.asked: list[tuple[str, str]] = []
        self.questions: list[str] = []
        self.graveyard: list[Generator[Any, Any, Any]] = []
        self.orders: tuple[Order, ...] | None = None

    def _observe(self, operation_id: str, before: str | None, after: str) -> None:
        self.seen.append((operation_id, before, after))

    def _observe_task(self, topic: str, reason: str) -> None:
        self.asked.append((topic, reason))

    def _observe_question(self, approval_id: str) -> None:
        self.questions.append(approval_id)

    def clean(self, orders: tuple[Order, ...]) -> Store:
        """Buries the dead, rolls back all that the history before wrote, and sets up orders."""
        dead, self.graveyard = self.graveyard, []
        for generator in dead:
            try:
                generator.close()
            except BaseException as error:  # what their `finally` does reaches nobody
                if isinstance(error, KeyboardInterrupt | SystemExit):
                    raise
        if self.orders is not None:
            self.connection.execute("ROLLBACK TO history")
        if orders != self.orders:
            if self.orders is not None:
                self.connection.execute("RELEASE history")
            for table in ("orders", "order_lines", "stock", "profiles"):
                self.connection.execute(f"DELETE FROM {table}")
            for order in orders:
                self.connection.execute(INSERT_ORDER, _order_row(order))
                self.connection.execute(INSERT_PROFILE, _order_row(order))
                for sku, quantity in order.lines:
                    line = {**_order_row(order), "sku": sku, "quantity": quantity}
                    self.connection.execute(INSERT_LINE, line)
                    self.connection.execute(INSERT_STOCK, line)
            self.connection.execute("SAVEPOINT history")
            self.orders = orders
        self.seen.clear()
        self.asked.clear()
        self.questions.clear()
        return self


CONTROL = frozenset({"BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "PRAGMA"})


@cache
def _kind(statement: str) -> str:
    """What a statement does: it reads, it writes, or it meddles with the transaction."""
    first = statement.split(maxsplit=1)[0].rstrip(";").upper() if statement.strip() else ""
    return "control" if first in CONTROL else "read" if first == "SELECT" else "write"


class VirtualTransaction:
    """What the service sees of an open transaction. It costs nothing until it writes."""

    __slots__ = ("connection", "memory", "now", "random", "text", "usable", "wrote")

    def __init__(
        self, connection: sqlite3.Connection, now: int, memory: dict[str, Any], random: Random01
    ) -> None:
        self.connection = connection
        self.now = now
        self.memory = memory
        self.random: Random01 = random
        self.text: str | None = None
        self.usable = True
        self.wrote = False

    def execute(self, statement: str, parameters: dict[str, Any] | None = None) -> Any:
        """Runs one statement; returns SQLite's cursor."""
        if not self.usable:
            raise RuntimeError("This transaction is over: it was committed or rolled back.")
        kind = _kind(statement)
        if kind == "control":
            raise EndsItself(statement)
        if kind == "write" and not self.wrote:
            self.connection.execute("SAVEPOINT tx")
            self.wrote = True
        return self.connection.execute(statement, parameters or {})

    def end(self, commit: bool) -> None:
        """Commits or rolls back."""
        self.usable = False
        if self.wrote:
            if not commit:
                self.connection.execute("ROLLBACK TO tx")
            self.connection.execute("RELEASE tx")

    def time(self, seconds_from_now: float = 0.0) -> str:
        """The time as text; see `written`."""
        if not seconds_from_now:
            if self.text is None:
                self.text = written(self.now)
            return self.text
        return written(self.now + round(seconds_from_now * 1_000_000))


class VirtualDatabase:
    """The database of one history.

    Attributes:
        up: whether it takes connections.
        changes: every committed change of an operation's state, in order.
        times: of each change, in microseconds.
        tasks: every question to a human that was opened: (topic, reason).
        questions: ids of the questions to an approver.
        committed: called at the end of every transaction, with the changes that it made.
    """

    def __init__(
        self, clock: Clock, store: Store, committed: Callable[[list[Change]], None]
    ) -> None:
        self.clock = clock
        self.store = store
        self.connection = store.connection
        self.committed = committed
        self.up = True
        self.changes: list[Change] = []
        self.times: list[int] = []
        self.tasks: list[tuple[str, str]] = []
        self.questions: list[str] = []
        self.holder: Life | None = None
        self.open_tx: VirtualTransaction | None = None
        self.queue: deque[Any] = deque()

    def run(
        self,
        transaction: Callable[..., Any],
        arguments: tuple[Any, ...],
        memory: dict[str, Any],
        random: Random01,
    ) -> Any:
        """Runs and commits a transaction in this instant; if it raises, rolls it back."""
        tx = VirtualTransaction(self.connection, int(self.clock.now), memory, random)
        try:
            result = transaction(tx, *arguments)
            if isinstance(result, Generator):
                raise YieldsInside(result)
        except BaseException:
            self._end(tx, commit=False)
            raise
        self._end(tx, commit=True)
        return result

    def turn(self) -> Any:
        """An event that happens when somebody else has closed an open transaction."""
        event = self.clock.event()
        self.queue.append(event)
        return event

    def open(self, life: Life, random: Random01) -> VirtualTransaction:
        """Opens a transaction that stays open while time passes."""
        self.holder = life
        tx = VirtualTransaction(self.connection, int(self.clock.now), life.memory, random)
        self.open_tx = tx
        life.on_death.append(partial(self.forget, tx))
        if life.current is not None:
            # A handler that ends without closing it: its connection goes back to the pool.
            life.current.on_end.append(partial(self.forget, tx))
        return tx

    def forget(self, tx: VirtualTransaction) -> None:
        """Rolls back a transaction that nobody will close any more."""
        self.close(tx, commit=False)

    def go_down(self) -> None:
        """Refuses connections from now on; a transaction that is open is rolled back."""
        self.up = False
        if self.open_tx is not None:
            self.close(self.open_tx, commit=False)
        self.let_in()

    def close(self, tx: VirtualTransaction, commit: bool) -> bool:
        """Commits or rolls back an open transaction, and lets the next one in.

        Returns False if it was over already.
        """
        if not tx.usable:
            return False
        self.holder = None
        self.open_tx = None
        self._end(tx, commit)
        self.let_in()
        return True

    def _end(self, tx: VirtualTransaction, commit: bool) -> None:
        tx.end(commit)
        store = self.store
        made = store.seen if commit else []
        if tx.wrote:  # whatever only read has changed nothing
            if commit:
                self.changes += made
                self.times += [int(self.clock.now)] * len(made)
                self.tasks += store.asked
                self.questions += store.questions
            store.seen, store.asked, store.questions = [], [], []
        self.committed(made)

    def let_in(self) -> None:
        """Wakes those who wait for their turn, in their order; each looks whether it is free.

        Waking only the first would be wrong: it may be paused, or dead.
        """
        queue, self.queue = self.queue, deque()
        for event in queue:
            event.succeed()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Reads for the world, not for the service: no time passes, nothing is recorded."""
        return self.connection.execute(query).fetchall()
