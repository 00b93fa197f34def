"""Consent, cancellations, deletions, reads and reports: the same service on real databases."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from simulator.live.clock import Clock
from simulator.live.database import Database
from simulator.live.runtime import LiveRuntime, drive
from simulator.service import pipeline, tools, webhooks, worker
from simulator.service.approval import Decision
from simulator.service.designs import SAFE
from simulator.service.schemas import Session, ToolCall
from simulator.service.webhooks import Report

MANAGER = "c0ffee00-1234-4abc-8def-00000000feed"
RIGHTS = frozenset({"refund:create", "order:cancel", "order:read", "profile:delete"})
CONSENTS = frozenset({"refund:approve", "cancel_orders:approve", "delete_profile:approve"})


class Shop:
    """A tenant of its own in a database that others use too."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.tenant, self.user = str(uuid4()), str(uuid4())
        self.intents = 0
        self.paid: list[Any] = []
        services = {
            "provider.refund": self.pay,
            "customer.notify": lambda request, timeout, sent: "read",
        }
        self.runtime = LiveRuntime("worker-1#1", Clock.start(), database, services)
        database.run(self.fill)

    def fill(self, tx: Any) -> None:
        for order in ("ORD-7001", "ORD-7002"):
            values = {"tenant": self.tenant, "order": order, "user": self.user}
            tx.execute(
                "INSERT INTO orders (tenant_id, id, user_id, status, currency, captured, refunded, "
                "pending) VALUES (:tenant, :order, :user, 'confirmed', 'USD', 750000, 0, 0)",
                values,
            )
            tx.execute("INSERT INTO order_lines VALUES (:tenant, :order, 'LANTERN-1', 2)", values)
        tx.execute("INSERT INTO stock VALUES (:tenant, 'LANTERN-1', 5)", values)
        tx.execute("INSERT INTO profiles VALUES (:tenant, :user, 'Mira', 'm@example.org')", values)

    def pay(self, request: Any, timeout: float, sent: Any) -> str:
        self.paid.append(request)
        return f"REF-{len(self.paid)}"

    def session(self) -> Session:
        self.intents += 1
        return Session(self.user, self.tenant, RIGHTS, f"intent-{self.intents}-{self.tenant}")

    def call(self, session: Session, name: str, **arguments: Any) -> Any:
        call = ToolCall("call-1", name, arguments)
        return drive(tools.handle(self.runtime, SAFE, call, session))

    def decide(self, approve: bool = True) -> str:
        asked = """
            SELECT a.id, a.digest FROM approvals a JOIN tool_operations o ON o.id = a.operation_id
            WHERE o.tenant_id = :tenant AND a.status = 'open'
        """
        ((approval_id, digest),) = self.rows(asked)
        manager = Session(MANAGER, self.tenant, CONSENTS, "")
        decision = Decision(approval_id, approve, digest)
        return drive(pipeline.consent(self.runtime, SAFE, decision, manager)).word

    def work(self) -> None:
        for _ in range(6):
            job = drive(worker.once(self.runtime, SAFE, worker.claim, "worker-1#1", None))
            if job is not None and job.operation.tenant_id == self.tenant:
                if job.topic == "act":
                    drive(worker.once(self.runtime, SAFE, worker.act, job))
                else:
                    carry_out = worker.refund if job.topic == "refund" else worker.tell
                    drive(carry_out(self.runtime, SAFE, job))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.database.rows(query, {"tenant": self.tenant, "user": self.user})


@pytest.fixture
def shop(database: Database) -> Shop:
    return Shop(database)


ORDERS = "SELECT status, version, refunded, pending, disputed FROM orders WHERE tenant_id = :tenant"
STOCK = "SELECT on_hand FROM stock WHERE tenant_id = :tenant"
STATES = "SELECT action_type, status FROM tool_operations WHERE tenant_id = :tenant"


@pytest.mark.parametrize(("approve", "paid"), [(True, 1), (False, 0)])
def test_a_large_refund_waits_for_a_person(shop: Shop, approve: bool, paid: int) -> None:
    answer = shop.call(shop.session(), "issue_refund", order_id="ORD-7001", amount="6000.00")
    assert (answer.kind, answer.code) == ("verifying", "awaiting_approval")
    assert shop.decide(approve) == ("approved" if approve else "rejected")
    shop.work()
    assert len(shop.paid) == paid
    assert shop.rows(STATES) == [("refund", "succeeded" if approve else "failed")]
    assert sorted(shop.rows(ORDERS)) == [
        ("confirmed", 1, 0, 0, 0),
        ("confirmed", 1, 600_000 if approve else 0, 0, 0),
    ]


def test_orders_are_cancelled_with_their_goods_once_and_all_or_nothing(shop: Shop) -> None:
    session = shop.session()
    both = ["ORD-7001", "ORD-7002"]
    assert shop.call(session, "cancel_orders", order_ids=both).kind == "verifying"
    assert shop.decide() == "approved"
    shop.work()
    assert shop.call(session, "cancel_orders", order_ids=both).kind == "done"
    assert {row[:2] for row in shop.rows(ORDERS)} == {("cancelled", 2)}
    assert shop.rows(STOCK) == [(9,)]
    assert shop.call(shop.session(), "cancel_orders", order_ids=both[:1]).kind == "refused"
    assert shop.rows(STOCK) == [(9,)]


def test_a_profile_is_deleted_after_a_yes_and_an_order_can_be_read(shop: Shop) -> None:
    assert shop.call(shop.session(), "delete_profile").kind == "verifying"
    assert shop.decide() == "approved"
    shop.work()
    assert shop.rows("SELECT 1 FROM profiles WHERE tenant_id = :tenant") == []
    read = shop.call(shop.session(), "get_order_status", order_id="ORD-7001")
    assert read.kind == "info"
    assert "is confirmed: $7,500.00 paid, $0.00 refunded." in read.text


def test_reports_of_the_provider_are_booked_once(shop: Shop) -> None:
    session = shop.session()
    shop.call(session, "issue_refund", order_id="ORD-7001", amount="100.00")
    drive(worker.once(shop.runtime, SAFE, worker.claim, "worker-1#1", None))  # and it dies
    place = (shop.tenant, "ORD-7001", 100_00, "USD")
    for report in (
        Report(f"paid-{shop.tenant}", "succeeded", session.intent_id, "REF-9", *place),
        Report(f"paid-{shop.tenant}", "succeeded", session.intent_id, "REF-9", *place),
        Report(f"bank-{shop.tenant}", "disputed", "", "REF-10", *place),
        Report(f"hand-{shop.tenant}", "refunded", "", "REF-11", *place),
    ):
        assert drive(webhooks.receive(shop.runtime, SAFE, report)) == webhooks.OK
    assert shop.rows(STATES) == [("refund", "succeeded")]
    assert ("confirmed", 3, 200_00, 0, 100_00) in shop.rows(ORDERS)
