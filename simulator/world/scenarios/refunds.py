"""Refunds that are asked for once, twice, late, in other words, or in other money."""

from __future__ import annotations

from typing import Self

from simulator.world.scenarios.base import BaseScenario
from simulator.world.settings import (
    OTHER_TENANT,
    OTHER_USER,
    AgentSettings,
    Intent,
    Order,
    Submission,
)

__all__ = ["RefundScenarios"]


class RefundScenarios(BaseScenario):
    """The part of `Scenario` that is about them."""

    @classmethod
    def one_refund(cls) -> Self:
        """A customer asks for $500 back, once."""
        return cls(name="one_refund")

    @classmethod
    def asked_once(cls) -> Self:
        """As `one_refund`, but the agent does not call again when it gets no answer."""
        return cls.one_refund().but(name="asked_once", agent=AgentSettings(resubmits=0))

    @classmethod
    def double_click(cls) -> Self:
        """The customer clicks twice, 50 ms apart; two instances get one click each."""
        return cls(
            name="double_click",
            submissions=(
                Submission("intent-1"),
                Submission("intent-1", at=0.05, instance="backend-2", thought=2),
            ),
        )

    @classmethod
    def two_partial_refunds(cls) -> Self:
        """Two honest refunds of $300 on an order of $500, one second apart. Either may win."""
        return cls(
            name="two_partial_refunds",
            intents=(Intent("intent-1", amount=300_00), Intent("intent-2", amount=300_00)),
            submissions=(
                Submission("intent-1"),
                Submission("intent-2", at=1.0, instance="backend-2"),
            ),
        )

    @classmethod
    def resubmitted_elsewhere(cls) -> Self:
        """The agent submits the same call again after ten seconds, to the other instance."""
        return cls(
            name="resubmitted_elsewhere",
            submissions=(
                Submission("intent-1"),
                Submission("intent-1", at=10.0, instance="backend-2"),
            ),
        )

    @classmethod
    def new_thought(cls) -> Self:
        """The agent thinks anew after ten seconds, and calls again in other words.

        The refund is $200 of $500, so that no balance stands in the way of a second one.
        """
        return cls(
            name="new_thought",
            intents=(Intent("intent-1", amount=200_00),),
            submissions=(
                Submission("intent-1"),
                Submission("intent-1", at=10.0, thought=2, amount="200.0"),
            ),
            agent=AgentSettings(new_thought=True),
        )

    @classmethod
    def changed_payload(cls) -> Self:
        """The same request comes again with another amount: $800 in place of $500.

        The agent is answered first: a wrong amount that comes first is no conflict yet.
        """
        return cls(
            name="changed_payload",
            submissions=(
                Submission("intent-1"),
                Submission("intent-1", at=10.0, thought=2, amount="800.00", after_answer=True),
            ),
        )

    @classmethod
    def two_equal_refunds(cls) -> Self:
        """Two honest refunds of $200 each on one order of $500: equal, and both owed."""
        return cls(
            name="two_equal_refunds",
            intents=(Intent("intent-1", amount=200_00), Intent("intent-2", amount=200_00)),
            submissions=(
                Submission("intent-1"),
                Submission("intent-2", at=10.0, instance="backend-2"),
            ),
        )

    @classmethod
    def two_tenants_one_key(cls) -> Self:
        """Two shops have an order of one number, and two models invent one and the same key."""
        return cls(
            name="two_tenants_one_key",
            orders=(Order(), Order(tenant_id=OTHER_TENANT, user_id=OTHER_USER)),
            intents=(
                Intent("intent-1"),
                Intent("intent-2", tenant_id=OTHER_TENANT, user_id=OTHER_USER),
            ),
            submissions=(
                Submission("intent-1", model_key="refund-A"),
                Submission("intent-2", at=10.0, instance="backend-2", model_key="refund-A"),
            ),
        )

    @classmethod
    def late_redelivery(cls) -> Self:
        """A queue delivers the tool call again a day later, when the provider has forgotten the
        key. The refund is $200 of $500, so that no balance stands in the way.
        """
        return cls(
            name="late_redelivery",
            intents=(Intent("intent-1", amount=200_00),),
            submissions=(
                Submission("intent-1"),
                Submission("intent-1", at=25 * 3600.0, instance="backend-2"),
            ),
        )

    @classmethod
    def uneven_amounts(cls) -> Self:
        """Two customers want $19.99 and 500 yen back: cents that no float holds, and a currency
        that has none.
        """
        return cls(
            name="uneven_amounts",
            orders=(Order(), Order("ORD-3001", captured=50_000, currency="JPY")),
            intents=(
                Intent("intent-1", amount=19_99),
                Intent("intent-2", order_id="ORD-3001", amount=500, currency="JPY"),
            ),
            submissions=(Submission("intent-1"), Submission("intent-2", at=10.0)),
        )

    @classmethod
    def poisoned_event(cls) -> Self:
        """One event kills every worker that takes it up. Beside it lies a good one."""
        return cls(
            name="poisoned_event",
            intents=(Intent("intent-1", amount=200_00), Intent("intent-2", amount=200_00)),
            submissions=(Submission("intent-1"), Submission("intent-2", at=1.0)),
            poison=frozenset({"intent-1"}),
        )
