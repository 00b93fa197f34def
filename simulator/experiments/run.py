"""A finished history, for looking at."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from simulator.experiments.verdict import Verdict, judge
from simulator.service.design import Design
from simulator.service.schemas import EXPONENTS
from simulator.world.faults import Fault
from simulator.world.scenario import Scenario
from simulator.world.trace import Event
from simulator.world.world import Step, World

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Run"]

BOOKS = """
    SELECT r.intent_id, o.status, orders.id, r.amount, orders.currency,
           orders.captured, orders.refunded, orders.pending
    FROM orders
    LEFT JOIN (refunds r JOIN tool_operations o ON o.id = r.operation_id)
      ON r.order_id = orders.id AND o.tenant_id = orders.tenant_id
    ORDER BY orders.id, r.intent_id, r.call_id
"""


class Run:
    """One history, over.

    Attributes:
        design, scenario, faults, seed: what it was.
        trace: every event, in order.
        steps: every step that a fault could have struck, in order.
        struck: the faults that did strike, with the index of their step.
        verdict: which invariants were broken; empty when right.
    """

    def __init__(self, world: World, faults: Sequence[Fault], verdict: Verdict) -> None:
        self.design: Design = world.design
        self.scenario: Scenario = world.scenario
        self.faults = tuple(faults)
        self.seed = world.seed
        self.trace: tuple[Event, ...] = tuple(world.trace)
        self.steps: tuple[Step, ...] = tuple(world.steps)
        self.struck = tuple(world.struck)
        self.verdict = verdict
        self.heal = world.heal
        self._effects = tuple(world.provider.ledger)
        self._told = tuple(world.told)
        self._answers = tuple(world.backends.answers)
        self._submitted = dict(world.submitted)
        self._books = world.database.rows(BOOKS)
        self._tasks = world.database.rows("SELECT operation_id, topic, reason FROM tasks")
        self._audit = world.database.rows(
            "SELECT at, intent_id, operation_id, event, detail FROM audit_log ORDER BY id"
        )

    @classmethod
    def of(cls, world: World, faults: Sequence[Fault]) -> Run:
        """Runs a world and judges it."""
        world.run()
        return cls(world, faults, judge(world))

    @property
    def ledger(self) -> pd.DataFrame:
        """What the provider paid: intent, order_id, amount (Decimal), currency, time (s), key."""
        return _frame(
            [
                (
                    e.intent,
                    e.order_id,
                    _decimal(e.amount, e.currency),
                    e.currency,
                    e.time / 1e6,
                    e.key,
                )
                for e in self._effects
            ],
            ["intent", "order_id", "amount", "currency", "time", "key"],
        )

    @property
    def books(self) -> pd.DataFrame:
        """What our database says: each operation, beside the balance of its order.

        Columns: intent, status, order_id, amount, currency, captured, refunded, pending; money
        as Decimal. An order without an operation has None for intent, status and amount.
        """
        return _frame(
            [
                (
                    intent,
                    status,
                    order,
                    _decimal(amount, currency),
                    currency,
                    *(_decimal(value, currency) for value in balance),
                )
                for intent, status, order, amount, currency, *balance in self._books
            ],
            [
                "intent",
                "status",
                "order_id",
                "amount",
                "currency",
                "captured",
                "refunded",
                "pending",
            ],
        )

    @property
    def told(self) -> pd.DataFrame:
        """What the customer was told: time (s), intent, statement (done, refused, verifying,
        conflict), text.
        """
        return _frame(
            [(t.time / 1e6, t.intent, t.kind, t.text) for t in self._told],
            ["time", "intent", "statement", "text"],
        )

    @property
    def answers(self) -> pd.DataFrame:
        """What our service answered to each tool call, in order: intent, call, tool, answer
        (done, refused, verifying, conflict, invalid, info), text.
        """
        return _frame(
            [
                (request.session.intent_id, call.call_id, call.name, answer.kind, answer.text)
                for request, answer in self._answers
                for call in (request.call,)
            ],
            ["intent", "call", "tool", "answer", "text"],
        )

    @property
    def tasks(self) -> pd.DataFrame:
        """Questions for a human: operation, topic, reason."""
        return _frame(self._tasks, ["operation", "topic", "reason"])

    @property
    def audit(self) -> pd.DataFrame:
        """The audit log: at, intent, operation, event, detail."""
        return _frame(self._audit, ["at", "intent", "operation", "event", "detail"])

    @property
    def time_to_answer(self) -> dict[str, float]:
        """Seconds from the customer's wish to the first final statement, per intent told."""
        first: dict[str, float] = {}
        for told in self._told:
            if told.kind in ("done", "refused") and told.intent not in first:
                first[told.intent] = (told.time - self._submitted[told.intent]) / 1e6
        return first

    @property
    def unstruck(self) -> tuple[Fault, ...]:
        """Faults that were asked for and never struck, because their step was never taken."""
        done = [fault for _, fault in self.struck]
        return tuple(fault for fault in self.faults if fault not in done)

    @property
    def text(self) -> str:
        """The history as text, equal for equal seeds."""
        from simulator.experiments.transcript import transcript

        lines = [self.headline, "", transcript(self.trace), ""]
        lines += [f"{fault} never struck: that step was not taken." for fault in self.unstruck]
        lines.append(f"Verdict: {self.verdict}")
        return "\n".join(lines)

    @property
    def headline(self) -> str:
        """Design, scenario and faults, in one line."""
        faults = ", ".join(map(str, self.faults)) or "no fault"
        return f"{self.design.name}, {self.scenario.name}, {faults}, seed {self.seed}"

    def timeline(self, **options: Any) -> Figure:
        """The history as a space-time diagram; options as in `timeline.draw`."""
        from simulator.experiments.timeline import draw

        return draw(self.trace, **options)

    def describe(self) -> str:
        """What the diagram shows, in a few sentences."""
        from simulator.experiments.description import describe

        return describe(self.trace)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Run of {self.headline}: {self.verdict}>"


def _decimal(amount: int | None, currency: str) -> Decimal | None:
    return None if amount is None else Decimal(amount).scaleb(-EXPONENTS[currency])


def _frame(rows: Sequence[Any], columns: list[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)
