"""What every scenario has: orders, intents, submissions, and the world in which they happen."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Self

from simulator.service.checks import fits_its_types, needs, needs_seconds, whole
from simulator.service.schemas import (
    EXPONENTS,
    InvalidRequest,
    Session,
    ToolCall,
    minor_units,
)
from simulator.world.settings import (
    AgentSettings,
    ApproverSettings,
    Intent,
    Order,
    Outside,
    ProviderSettings,
    Submission,
)

__all__ = ["BaseScenario"]


@lru_cache
def spellings(amount: int, currency: str) -> tuple[str | int | float, ...]:
    """Minor units in all ways that a model writes them, the usual one first: 50000 USD is "500.00",
    "500", "500.0" and, as a number, 500.

    A number with decimals is a float, as JSON is read; it is left out where it would be no more
    the same money.
    """
    exponent = EXPONENTS[currency]
    exact = Decimal(amount).scaleb(-exponent)
    texts = [f"{exact:.{places}f}" for places in (exponent, *range(exponent))]
    number: int | float = int(exact) if exact == int(exact) else float(exact)
    ways = [text for text in texts if Decimal(text) == exact]
    return (*ways, number) if Decimal(str(number)) == exact else tuple(ways)


@dataclass(frozen=True)
class BaseScenario:
    """The attributes of a `Scenario`, checked."""

    name: str = "my own"
    orders: tuple[Order, ...] = (Order(),)
    intents: tuple[Intent, ...] = (Intent("intent-1"),)
    submissions: tuple[Submission, ...] = (Submission("intent-1"),)
    agent: AgentSettings = field(default_factory=AgentSettings)
    provider: ProviderSettings = field(default_factory=ProviderSettings)
    approver: ApproverSettings = field(default_factory=ApproverSettings)
    outside: tuple[Outside, ...] = ()
    poison: frozenset[str] = frozenset()
    consent_above: int = 5_000
    consent_within: float = 3600.0
    backends: int = 2
    workers: int = 2

    def __post_init__(self) -> None:
        fits_its_types(self)
        orders = {(order.tenant_id, order.id): order for order in self.orders}
        intents = {intent.id for intent in self.intents}
        if len(orders) < len(self.orders):
            raise ValueError(
                f"Scenario {self.name!r}: two orders of one tenant have one id; give each its own."
            )
        if len(intents) < len(self.intents):
            raise ValueError(f"Scenario {self.name!r}: two intents have one id.")
        for intent in self.intents:
            order = orders.get((intent.tenant_id, intent.order_id))
            if order is None and intent.owed:
                raise ValueError(
                    f"Scenario {self.name!r}: intent {intent.id!r} is owed, and its order "
                    f"{intent.order_id!r} is not one of the tenant's orders."
                )
            if order is not None and order.currency != intent.currency:
                raise ValueError(
                    f"Scenario {self.name!r}: intent {intent.id!r} is in {intent.currency}, and "
                    f"its order {order.id!r} in {order.currency}; give both one currency."
                )
        for event in self.outside:
            if (event.tenant_id, event.order_id) not in orders:
                raise ValueError(
                    f"Scenario {self.name!r}: a {event.what} from outside names order "
                    f"{event.order_id!r}, which is not one of the tenant's orders; there are "
                    f"{', '.join(sorted(order.id for order in self.orders)) or 'none'}."
                )
        for what, named in (
            ("poison", self.poison),
            ("provider.declines", self.provider.declines),
            ("provider.contradicts", self.provider.contradicts),
            ("provider.fails_to_settle", self.provider.fails_to_settle),
            ("approver.says", frozenset(dict(self.approver.says))),
        ):
            if unknown := sorted(named - intents):
                raise ValueError(
                    f"Scenario {self.name!r}: {what} names intent {unknown[0]!r}; "
                    f"there are {', '.join(sorted(intents))}."
                )
        for name in ("backends", "workers"):
            needs(self, name, whole(getattr(self, name), 1), "a whole number, 1 or more")
        above = whole(self.consent_above, 0)
        needs(self, "consent_above", above, "whole units of a currency, 0 or more")
        needs_seconds(self, "consent_within")
        needs(self, "intents", bool(self.intents), "at least one intent")
        instances = {f"backend-{number + 1}" for number in range(self.backends)}
        for submission in self.submissions:
            if submission.intent_id not in intents:
                raise ValueError(
                    f"Scenario {self.name!r}: a submission names intent "
                    f"{submission.intent_id!r}; there are {', '.join(sorted(intents))}."
                )
            if submission.instance not in instances:
                raise ValueError(
                    f"Scenario {self.name!r}: a submission goes to {submission.instance!r}; "
                    f"there are {', '.join(sorted(instances))}."
                )

    @cached_property
    def refund_intents(self) -> frozenset[str]:
        """Ids of the intents that are about money: those for which a refund is asked."""
        asked = {s.intent_id for s in self.submissions if s.tool == "issue_refund"}
        other = {s.intent_id for s in self.submissions if s.tool != "issue_refund"}
        return frozenset(intent.id for intent in self.intents if intent.id not in other - asked)

    @cached_property
    def beside_money(self) -> bool:
        """Whether more than money is at stake: other tools are called, or orders have goods."""
        tools = any(submission.tool != "issue_refund" for submission in self.submissions)
        return tools or any(order.lines for order in self.orders)

    def tool_of(self, intent_id: str) -> str:
        """The tool that the agent calls first for an intent."""
        for submission in self.submissions:
            if submission.intent_id == intent_id:
                return submission.tool
        return "issue_refund"

    def but(self, **changes: Any) -> Self:
        """The same scenario with some attributes changed."""
        names = [each.name for each in fields(self)]
        for name in changes:
            if name not in names:
                raise ValueError(f"A scenario has no {name!r}. It has: {', '.join(names)}.")
        return replace(self, **changes)

    def intent(self, intent_id: str) -> Intent:
        """The intent with this id.

        Raises:
            ValueError: there is none.
        """
        try:
            return self._intents[intent_id]
        except KeyError:
            raise ValueError(
                f"Scenario {self.name!r} has no intent {intent_id!r}; "
                f"there are {', '.join(self._intents)}."
            ) from None

    @cached_property
    def _intents(self) -> dict[str, Intent]:
        return {intent.id: intent for intent in self.intents}

    def session(self, intent_id: str) -> Session:
        """The session of the customer who wants this."""
        if intent_id not in self._sessions:
            intent = self.intent(intent_id)
            self._sessions[intent_id] = Session(
                intent.user_id, intent.tenant_id, intent.permissions, intent_id
            )
        return self._sessions[intent_id]

    # Sessions and calls are the same in thousands of histories, and cannot be changed.

    @cached_property
    def _sessions(self) -> dict[str, Session]:
        return {}

    @cached_property
    def _calls(self) -> dict[tuple[Submission, tuple[type, ...]], ToolCall]:
        return {}

    def call(self, submission: Submission) -> ToolCall:
        """The tool call that the model makes of a submission.

        The model fills in the published schema, and so invents a `refund_request_id`.
        """
        kinds = tuple(type(value) for value in dict(submission.arguments).values())
        which = submission, kinds  # 1 is True, and not the same argument
        if which in self._calls:
            return self._calls[which]
        written = submission.written()
        call = ToolCall(
            f"call-{submission.intent_id}-{submission.thought}",
            submission.tool,
            MappingProxyType({**self._filled_in(submission), **written}),
        )
        if not any(isinstance(value, list | dict) for value in written.values()):
            self._calls[which] = call  # what is inside of those can be changed
        return call

    def respelled(self, submission: Submission, times: int) -> str | int | float:
        """The amount of a submission, the same money written another way so many times.

        What is no plain amount stays as it was written.
        """
        intent = self.intent(submission.intent_id)
        written = submission.amount
        if written is None:
            ways = spellings(intent.amount, intent.currency)
            return ways[times % len(ways)]
        try:
            ways = spellings(minor_units(Decimal(written), intent.currency), intent.currency)
        except (ArithmeticError, InvalidRequest):
            return written
        return ways[(ways.index(written) + times) % len(ways)] if written in ways else written

    def _filled_in(self, submission: Submission) -> dict[str, Any]:
        if submission.tool != "issue_refund":
            return {}
        intent = self.intent(submission.intent_id)
        return {
            "order_id": intent.order_id,
            "amount": self.respelled(submission, 0),
            "refund_request_id": submission.model_key
            or f"refund-{intent.id}-thought-{submission.thought}",
        }
