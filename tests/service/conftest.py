"""The service on a ground as plain as can be: no simulation, one SQLite database, no waiting.

Everything in `simulator.service` runs here to its end without yielding once, which is also
how the live ground runs it.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Generator, Iterable
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


class ToolDesk:
    """The tools beside the refund, and the person who consents, each called by hand.

    There are the orders ORD-1001 (two lanterns) and ORD-1002 (a lantern and three books) of the
    session's user, ORD-1003 of another user, ORD-2001 of another tenant, and the user's profile.
    """

    MANAGER = "deca0de0-1234-4abc-8def-000000000007"
    OTHER_USER = "c0ffee00-1234-4abc-8def-000000001002"
    PERMISSIONS = frozenset({"order:cancel", "order:read", "profile:delete", "refund:create"})
    TABLES = (
        *("tool_operations", "refunds", "actions", "orders", "order_lines", "stock", "profiles"),
        *("outbox", "tasks", "approvals", "webhook_events", "audit_log", "changes"),
    )

    def __init__(self, runtime: GroundRuntime) -> None:
        from simulator.service.designs import SAFE

        self.runtime, self.desk = runtime, runtime.desk
        self.design: Design = SAFE
        self.session = Session(USER, TENANT, self.PERMISSIONS, "intent-1")
        self.manager = Session(
            self.MANAGER,
            TENANT,
            frozenset({"cancel_orders:approve", "delete_profile:approve", "refund:approve"}),
            "",
        )
        desk = self.desk
        desk.order(order_id="ORD-1002")
        desk.order(order_id="ORD-1003", user_id=self.OTHER_USER)
        desk.order(order_id="ORD-2001", tenant_id=OTHER_TENANT, user_id=self.OTHER_USER)
        for order_id, sku, quantity in (
            ("ORD-1001", "LANTERN-1", 2),
            ("ORD-1002", "LANTERN-1", 1),
            ("ORD-1002", "BOOK-7", 3),
        ):
            values = {"tenant": TENANT, "order": order_id, "sku": sku, "quantity": quantity}
            desk.execute(
                "INSERT INTO order_lines VALUES (:tenant, :order, :sku, :quantity)", values
            )
        # A shop of another tenant has goods of the same name.
        for tenant, sku, on_hand in (
            (TENANT, "LANTERN-1", 10),
            (TENANT, "BOOK-7", 0),
            (OTHER_TENANT, "LANTERN-1", 5),
        ):
            values = {"tenant": tenant, "sku": sku, "on_hand": on_hand}
            desk.execute("INSERT INTO stock VALUES (:tenant, :sku, :on_hand)", values)
        for tenant, user in ((TENANT, USER), (TENANT, self.OTHER_USER), (OTHER_TENANT, USER)):
            desk.execute(
                "INSERT INTO profiles VALUES (:tenant, :user, 'Mira', 'mira@example.org')",
                {"tenant": tenant, "user": user},
            )

    def call(self, name: str, session: Session | None = None, /, **arguments: Any) -> Any:
        """What the tool answers."""
        from simulator.service.tools import handle

        call = ToolCall("call-1", name, arguments)
        return finished(handle(self.runtime, self.design, call, session or self.session))

    def cancel(self, *order_ids: str, session: Session | None = None) -> Any:
        return self.call("cancel_orders", session, order_ids=list(order_ids))

    def decide(
        self, approve: bool = True, who: Session | None = None, digest: str | None = None
    ) -> str:
        """What becomes of a person's answer to the newest question."""
        from simulator.service.approval import Decision
        from simulator.service.pipeline import consent

        name, shown = self.desk.one("SELECT id, digest FROM approvals ORDER BY rowid DESC")
        decision = Decision(name, approve, shown if digest is None else digest)
        return str(finished(consent(self.runtime, self.design, decision, who or self.manager)))

    def work(self, rounds: int = 6) -> list[Any]:
        """What a worker does with all that is due; the jobs that are not done in our database."""
        from simulator.service.worker import act, call_off, claim, expire

        ours: dict[str, Any] = {"act": act, "expire": expire}
        jobs = []
        for _ in range(rounds):
            job = finished(self.runtime.transact(claim, self.design, [], "worker-1#1", None))
            if job is None:
                continue
            ends = call_off if job.objection is not None else ours.get(job.topic)
            if ends is None:
                jobs.append(job)
            else:
                finished(self.runtime.transact(ends, self.design, [], job))
        return jobs

    def orders(self) -> dict[str, tuple[str, int]]:
        """(status, version) of each order of the user."""
        query = f"SELECT id, status, version FROM orders WHERE user_id = '{USER}'"
        return {order_id: (status, version) for order_id, status, version in self.desk.rows(query)}

    def stock(self) -> dict[str, int]:
        """What the tenant has on hand."""
        return dict(self.desk.rows(f"SELECT sku, on_hand FROM stock WHERE tenant_id = '{TENANT}'"))

    def profiles(self) -> int:
        return len(self.desk.rows("SELECT * FROM profiles"))

    def statuses(self) -> list[str]:
        return [row[0] for row in self.desk.rows("SELECT status FROM tool_operations ORDER BY id")]

    def events(self) -> list[str]:
        return [row[0] for row in self.desk.rows("SELECT event FROM audit_log ORDER BY id")]

    def dump(self, but: Iterable[str] = ()) -> dict[str, list[Any]]:
        """Every row of every table."""
        return {
            table: self.desk.rows(f"SELECT * FROM {table}")
            for table in self.TABLES
            if table not in but
        }

    def unaudited(self) -> set[Any]:
        """Changes of state that have no row in the audit log."""
        made = {
            (operation, f"{before or ''}->{after}")
            for operation, before, after in self.desk.rows("SELECT * FROM changes")
        }
        return made - set(self.desk.rows("SELECT operation_id, event FROM audit_log"))


@pytest.fixture
def tools(runtime: GroundRuntime) -> ToolDesk:
    return ToolDesk(runtime)
