"""The service on a ground as plain as can be: no simulation, one SQLite database, no waiting.

Everything in `simulator.service` runs here to its end without yielding once, which is also
how the live ground runs it.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from simulator.service.database import sqlite_schema
from simulator.service.design import Design
from simulator.service.errors import DatabaseUnavailable
from simulator.service.keys import fingerprint, operation_key
from simulator.service.operations import Operation
from simulator.service.schemas import Session, ToolCall

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
TENANT = "7a1c0f5e-3b52-4c0e-9f0a-1d2e3f4a5b6c"
OTHER_TENANT = "11111111-2222-4333-8444-555555555555"
USER = "c0ffee00-1234-4abc-8def-000000001001"

CHANGES = """
CREATE TABLE changes (operation_id TEXT, before TEXT, after TEXT);
CREATE TRIGGER watch_insert AFTER INSERT ON tool_operations BEGIN
    INSERT INTO changes VALUES (NEW.id, NULL, NEW.status);
END;
CREATE TRIGGER watch_update AFTER UPDATE OF status ON tool_operations
WHEN OLD.status IS NOT NEW.status BEGIN
    INSERT INTO changes VALUES (NEW.id, OLD.status, NEW.status);
END;
"""


class Desk:
    """One database and a clock that only the test moves.

    It is its own open transaction: the service's statements run on it directly.
    """

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.executescript(sqlite_schema() + CHANGES)
        self.seconds = 0.0
        self.memory: dict[str, Any] = {}
        self.random = random.Random(7)

    def execute(self, statement: str, parameters: dict[str, Any] | None = None) -> Any:
        return self.connection.execute(statement, parameters or {})

    def time(self, seconds_from_now: float = 0.0) -> str:
        at = START + timedelta(seconds=self.seconds + seconds_from_now)
        return at.isoformat(timespec="microseconds")

    def rows(self, query: str) -> list[Any]:
        return self.connection.execute(query).fetchall()

    def one(self, query: str) -> Any:
        return self.connection.execute(query).fetchone()

    def order(
        self,
        captured: int = 500_00,
        order_id: str = "ORD-1001",
        tenant_id: str = TENANT,
        user_id: str = USER,
        currency: str = "USD",
    ) -> None:
        self.connection.execute(
            "INSERT INTO orders (tenant_id, id, user_id, status, currency, captured, refunded, "
            "pending) VALUES (?, ?, ?, 'confirmed', ?, ?, 0, 0)",
            (tenant_id, order_id, user_id, currency, captured),
        )

    def balance(self) -> tuple[int, int]:
        """(refunded, pending) of the only order."""
        refunded, pending = self.one("SELECT refunded, pending FROM orders")
        return refunded, pending

    def status(self) -> str:
        """The state of the only operation."""
        (status,) = self.one("SELECT status FROM tool_operations")
        return str(status)


class GroundRuntime:
    """A runtime that blocks and never yields. `provider` answers the calls.

    Attributes:
        transactions: names of the transactions that were committed, in order.
        calls: (name, request) in order.
        slept: seconds, in order.
        acks: errors that the next commits end in, although they took effect; one of a
            transaction that was kept open takes effect unless it is DatabaseUnavailable.
        inside: whether a transaction is running right now.
    """

    def __init__(self, desk: Desk, owner: str = "worker-1#1") -> None:
        self.desk = desk
        self.owner = owner
        self.memory = desk.memory
        self.random = desk.random
        self.transactions: list[str] = []
        self.calls: list[tuple[str, Any]] = []
        self.slept: list[float] = []
        self.acks: list[Exception | None] = []
        self.refusals: list[Exception] = []
        self.answers: list[Any] = []
        self.inside = False
        self._ids = 0

    def now(self) -> float:
        return self.desk.seconds

    def new_id(self) -> str:
        self._ids += 1
        return f"00000000-0000-4000-8000-{self._ids:012d}"

    def call(self, name: str, request: Any, timeout: float) -> Generator[Any, Any, Any]:
        assert not self.inside, "the provider was called inside a transaction"
        self.calls.append((name, request))
        answer = self.answers.pop(0) if self.answers else "REF-1"
        if isinstance(answer, Exception):
            raise answer
        return answer
        yield

    def transact(
        self, transaction: Callable[..., Any], *arguments: Any
    ) -> Generator[Any, Any, Any]:
        if self.refusals:
            raise self.refusals.pop(0)
        desk = self.desk
        desk.connection.execute("BEGIN")
        self.inside = True
        try:
            result = transaction(desk, *arguments)
        except BaseException:
            desk.connection.execute("ROLLBACK")
            raise
        finally:
            self.inside = False
        desk.connection.execute("COMMIT")
        self.transactions.append(transaction.__name__)
        if self.acks and (error := self.acks.pop(0)) is not None:
            raise error
        return result
        yield

    def open(self, name: str) -> Generator[Any, Any, Desk]:
        self.transactions.append(f"open {name}")
        self.desk.connection.execute("BEGIN")
        return self.desk
        yield

    def commit(self, tx: Desk) -> Generator[Any, Any, None]:
        error = self.acks.pop(0) if self.acks else None
        tx.connection.execute("ROLLBACK" if isinstance(error, DatabaseUnavailable) else "COMMIT")
        if error is not None:
            raise error
        return
        yield

    def sleep(self, seconds: float) -> Generator[Any, Any, None]:
        self.slept.append(seconds)
        self.desk.seconds += seconds
        return
        yield

    def settled(self, operation: Operation, seconds: float) -> Generator[Any, Any, Any]:
        from simulator.service.operations import DurableRecord

        return DurableRecord().row(self.desk, operation)
        yield


def finished(steps: Generator[Any, Any, Any]) -> Any:
    """Runs to the end what never yields; returns its result."""
    try:
        waited_for = next(steps)
    except StopIteration as stop:
        return stop.value
    raise AssertionError(f"it yielded {waited_for!r}")


@pytest.fixture(scope="session")
def new_desk() -> Callable[[], Desk]:
    """Makes a desk for every example of a property."""
    return Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def shop(desk: Desk) -> Desk:
    """A desk with the course's order: ORD-1001, 500.00 USD captured."""
    desk.order()
    return desk


@pytest.fixture
def runtime(shop: Desk) -> GroundRuntime:
    return GroundRuntime(shop)


@pytest.fixture
def run() -> Callable[[Generator[Any, Any, Any]], Any]:
    return finished


@pytest.fixture
def make_operation() -> Callable[..., Operation]:
    """Builds operations that differ in what a test names."""

    def build(
        number: int = 1,
        intent_id: str = "intent-1",
        order_id: str = "ORD-1001",
        amount: int = 500_00,
        tenant_id: str = TENANT,
        user_id: str = USER,
        currency: str = "USD",
        call_id: str = "call-1",
        model_key: str = "refund-by-the-model",
    ) -> Operation:
        return Operation(
            id=f"aaaaaaaa-0000-4000-8000-{number:012d}",
            tenant_id=tenant_id,
            user_id=user_id,
            intent_id=intent_id,
            call_id=call_id,
            order_id=order_id,
            amount=amount,
            currency=currency,
            model_key=model_key,
            key=operation_key(tenant_id, "refund", intent_id),
            fingerprint=fingerprint(tenant_id, "refund", order_id, amount, currency),
        )

    return build


@pytest.fixture
def make_call() -> Callable[..., ToolCall]:
    def build(name: str = "issue_refund", call_id: str = "call-1", **arguments: Any) -> ToolCall:
        filled = {
            "order_id": "ORD-1001",
            "amount": "500.00",
            "refund_request_id": "refund-by-the-model",
        }
        return ToolCall(call_id, name, {**filled, **arguments})

    return build


@pytest.fixture
def session() -> Session:
    return Session(USER, TENANT, frozenset({"refund:create"}), "intent-1")


@pytest.fixture
def inline() -> Design:
    """A durable design that pays while the caller waits."""
    from simulator.service.answers import FromRecord
    from simulator.service.outbox import Inline
    from simulator.service.recovery import NoRecovery

    return Design(
        name="inline",
        dispatch=Inline(),
        recovery=NoRecovery(),
        answer=FromRecord(follow_up=False),
    )
