"""Four accounts of one run, which have to agree.

The provider's ledger, our operations, the balances of the orders, and what the customers were
told. They are kept by different parties in different places; the first is the truth.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.live.database import Database
from simulator.live.ledger import payments
from simulator.live.people import Told, Wish
from simulator.service.design import Design
from simulator.service.operations import FINAL
from simulator.service.schemas import money

__all__ = ["Accounts", "counted", "read_accounts"]

OPERATIONS = """
    SELECT r.intent_id, o.id, o.status
    FROM tool_operations o JOIN refunds r ON r.operation_id = o.id
"""


@dataclass(frozen=True)
class Accounts:
    """What the four say, by intent or by order; amounts in minor units.

    Attributes:
        design: the service under trial.
        owed: what each intent asked for, once.
        captured: what was paid for each order.
        paid: the provider's ledger, the amounts paid on each intent, in order.
        paid_at: when each intent was first paid, in seconds of the service.
        order_of: the order of each intent.
        operations: our record, the states of each intent's operations.
        tasked: intents with an open question for a human.
        balances: (refunded, pending) of each order.
        told: what the customers read, in order.
    """

    design: Design
    owed: dict[str, int]
    captured: dict[str, int]
    paid: dict[str, list[int]]
    paid_at: dict[str, float]
    order_of: dict[str, str]
    operations: dict[str, list[str]]
    tasked: frozenset[str]
    balances: dict[str, tuple[int, int]]
    told: dict[str, list[Told]]

    def findings(self) -> dict[str, list[str]]:
        """What is wrong: the names of the broken invariants, each with the intents or orders
        that break it. Empty if all is right.
        """
        found: dict[str, list[str]] = defaultdict(list)
        for intent in self.owed:
            for name in self._wrong_with(intent):
                found[name].append(intent)
        paid_on: Counter[str] = Counter()
        for intent, amounts in self.paid.items():
            paid_on[self.order_of[intent]] += sum(amounts)
        waiting = {self.order_of[intent] for intent in self.tasked}
        for order, captured in self.captured.items():
            if paid_on[order] > captured:
                found["over_refund"].append(order)
            if order not in waiting and self.balances[order] != (paid_on[order], 0):
                found["books_differ"].append(order)
        return dict(found)

    def _wrong_with(self, intent: str) -> list[str]:
        times, states = len(self.paid[intent]), self.operations[intent]
        kinds = [told.kind for told in self.told[intent]]
        wrong = []
        if times > 1:
            wrong.append("double_refund")
        if self._false_answer(intent):
            wrong.append("false_answer")
        if intent in self.tasked:
            return wrong  # a human is looking into it
        if not times and "refused" not in kinds:
            wrong.append("lost_refund")
        if not kinds or kinds[-1] not in ("done", "refused"):
            wrong.append("untold")
        if self.design.record.durable:
            if len(states) != 1 or states[0] not in FINAL:
                wrong.append("stuck")
            elif (states[0] == "succeeded") != (times > 0):
                wrong.append("books_differ")
        return wrong

    def _false_answer(self, intent: str) -> bool:
        first = self.paid_at.get(intent)
        return any(
            (told.kind == "done" and (first is None or first > told.at))
            or (told.kind == "refused" and first is not None)
            for told in self.told[intent]
        )

    def lines(self) -> list[str]:
        """The four accounts, a line each, and what follows from them."""
        paid = [amount for amounts in self.paid.values() for amount in amounts]
        states = Counter(state for states in self.operations.values() for state in states)
        refunded = sum(balance[0] for balance in self.balances.values())
        pending = sum(balance[1] for balance in self.balances.values())
        last = Counter(told[-1].kind if told else "nothing" for told in self.told.values())
        ours = counted(states) if self.design.record.durable else "this design keeps none"
        lines = [
            f"  provider's ledger    {len(paid)} payments, {money(sum(paid))}",
            f"  our operations       {ours}",
            f"  balances of orders   {money(refunded)} refunded, {money(pending)} pending",
            f"  customers were told  {counted(last)}",
        ]
        findings = self.findings()
        if self.tasked:
            lines.append(f"  for a human          {len(self.tasked)} open questions")
        if not findings:
            return [*lines, "  The four accounts agree. No refund was paid twice, none was lost."]
        for name, where in findings.items():
            lines.append(f"  {name:<20} {len(where)} (for example {where[0]})")
        twice = [amounts for amounts in self.paid.values() if len(amounts) > 1]
        if twice:
            extra = sum(sum(amounts[1:]) for amounts in twice)
            lines.append(
                f"  {len(twice)} refunds were paid more than once: {money(extra)} too much."
            )
        return lines


def counted(counter: Counter[str]) -> str:
    """For example: 190 done, 10 refused."""
    return ", ".join(f"{count} {name}" for name, count in sorted(counter.items())) or "nothing"


def read_accounts(
    design: Design,
    wishes: Sequence[Wish],
    amount: int,
    captured: dict[str, int],
    database: Database,
    ledger: Path,
    told: Sequence[Told],
) -> Accounts:
    """Reads all four, for the wishes of one run; each asks for `amount` minor units."""
    order_of = {wish.intent_id: wish.order_id for wish in wishes}
    paid: dict[str, list[int]] = {intent: [] for intent in order_of}
    paid_at: dict[str, float] = {}
    for payment in payments(ledger):
        if payment.intent_id not in paid:
            continue  # of an earlier run, with the same database
        paid[payment.intent_id].append(payment.amount)
        paid_at.setdefault(payment.intent_id, payment.at)
    operations: dict[str, list[str]] = {intent: [] for intent in order_of}
    intent_of: dict[str, str] = {}
    for intent_id, operation_id, status in database.rows(OPERATIONS):
        if intent_id in operations:
            operations[intent_id].append(status)
            intent_of[operation_id] = intent_id
    tasked = {row[0] for row in database.rows("SELECT operation_id FROM tasks")}
    balances = {
        order: (refunded, pending)
        for order, refunded, pending in database.rows("SELECT id, refunded, pending FROM orders")
        if order in captured
    }
    statements: dict[str, list[Told]] = {intent: [] for intent in order_of}
    for statement in told:
        if statement.intent_id not in statements:
            continue
        statements[statement.intent_id].append(statement)
    return Accounts(
        design,
        dict.fromkeys(order_of, amount),
        captured,
        paid,
        paid_at,
        order_of,
        operations,
        frozenset(intent_of[operation] for operation in tasked if operation in intent_of),
        balances,
        statements,
    )
