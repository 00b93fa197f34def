"""Refunds that a person has to agree to, and what can lie between the yes and the money."""

from __future__ import annotations

from typing import Self

from simulator.world.scenarios.base import BaseScenario
from simulator.world.settings import USER, ApproverSettings, Intent, Order, Outside, Submission

__all__ = ["ConsentScenarios"]


def large_order(order_id: str) -> Order:
    """An order for which a refund may need a person's consent: $7,500 captured."""
    return Order(order_id, captured=7_500_00)


class ConsentScenarios(BaseScenario):
    """The part of `Scenario` that is about them."""

    @classmethod
    def approval_between(cls) -> Self:
        """A person's consent lies between the call and the money. To the first refund of $6,000
        the manager says yes after a minute; the second is never answered.
        """
        return cls(
            name="approval_between",
            orders=(large_order("ORD-7001"), large_order("ORD-7002")),
            intents=(
                Intent("intent-1", order_id="ORD-7001", amount=6_000_00),
                Intent("intent-2", order_id="ORD-7002", amount=6_000_00),
            ),
            submissions=(Submission("intent-1"), Submission("intent-2", at=600.0)),
            approver=ApproverSettings(says=(("intent-2", "nothing"),)),
        )

    @classmethod
    def cancelled_meanwhile(cls) -> Self:
        """While $6,000 of $7,500 wait for consent, a colleague cancels the order and pays all of
        it back by hand. Then the manager says yes.
        """
        return cls(
            name="cancelled_meanwhile",
            orders=(large_order("ORD-7001"),),
            intents=(Intent("intent-1", order_id="ORD-7001", amount=6_000_00),),
            submissions=(Submission("intent-1"),),
            outside=(Outside("cancel", at=60.0, order_id="ORD-7001"),),
            approver=ApproverSettings(delay=120.0),
        )

    @classmethod
    def cancelled_after_consent(cls) -> Self:
        """The colleague cancels in the milliseconds between the yes and the worker."""
        return cls.cancelled_meanwhile().but(
            name="cancelled_after_consent",
            outside=(Outside("cancel", at=60.0455, order_id="ORD-7001"),),
            approver=ApproverSettings(delay=60.0),
        )

    @classmethod
    def second_thoughts(cls) -> Self:
        """The manager says no to $6,000, and half a minute later, on second thoughts, yes."""
        return cls.cancelled_meanwhile().but(
            name="second_thoughts",
            outside=(),
            approver=ApproverSettings(says=(("intent-1", "no"),), second_thoughts=30.0),
        )

    @classmethod
    def self_approval(cls) -> Self:
        """Whoever asks for $6,000 has the manager's permission, too, and says yes."""
        return cls.cancelled_meanwhile().but(
            name="self_approval", outside=(), approver=ApproverSettings(user_id=USER)
        )

    @classmethod
    def flag_in_the_call(cls) -> Self:
        """The model writes `confirm: true` into its call for $6,000. Nobody has confirmed it."""
        return cls.cancelled_meanwhile().but(
            name="flag_in_the_call",
            submissions=(Submission("intent-1", arguments={"confirm": True}),),
            outside=(),
        )

    @classmethod
    def consent_without_right(cls) -> Self:
        """A colleague says yes to $6,000 who may ask for refunds, and not approve them."""
        return cls.cancelled_meanwhile().but(
            name="consent_without_right",
            outside=(),
            approver=ApproverSettings(permissions=frozenset({"refund:create"})),
        )
