"""Colleagues and banks who change an order without us."""

from __future__ import annotations

from typing import Self

from simulator.world.scenarios.consents import ConsentScenarios
from simulator.world.settings import Intent, Outside, ProviderSettings, Submission, WebhookSettings

__all__ = ["OutsideScenarios"]


class OutsideScenarios(ConsentScenarios):
    """The part of `Scenario` that is about them."""

    @classmethod
    def charged_back(cls) -> Self:
        """While $6,000 of $7,500 wait for consent, the customer's bank takes back $2,000."""
        return cls.cancelled_meanwhile().but(
            name="charged_back",
            outside=(Outside("chargeback", at=60.0, order_id="ORD-7001", amount=2_000_00),),
            provider=ProviderSettings(webhooks=WebhookSettings()),
        )

    @classmethod
    def refunded_by_hand(cls) -> Self:
        """Somebody refunds $100 of $500 at the provider's dashboard, whose reports come three
        times. Ten minutes later the customer asks for $450.
        """
        return cls(
            name="refunded_by_hand",
            intents=(Intent("intent-1", amount=450_00),),
            submissions=(Submission("intent-1", at=600.0),),
            outside=(Outside("refund", at=1.0, amount=100_00),),
            provider=ProviderSettings(webhooks=WebhookSettings(succeeded=(0.0, 0.0, 30.0))),
        )

    @classmethod
    def charged_back_before(cls) -> Self:
        """The customer's bank takes $100 of $500 back. Ten minutes later she asks for $450."""
        return cls.refunded_by_hand().but(
            name="charged_back_before", outside=(Outside("chargeback", at=1.0, amount=100_00),)
        )

    @classmethod
    def charged_back_in_between(cls) -> Self:
        """The customer's bank takes $100 of $500 back, and we hear of it in the milliseconds
        between her asking for all of it and the worker.
        """
        return cls(
            name="charged_back_in_between",
            outside=(Outside("chargeback", at=0.002, amount=100_00),),
            provider=ProviderSettings(webhooks=WebhookSettings()),
        )

    @classmethod
    def cancelled_under_way(cls) -> Self:
        """The colleague cancels while the provider is working on a refund of $200 of $500."""
        return cls(
            name="cancelled_under_way",
            intents=(Intent("intent-1", amount=200_00),),
            outside=(Outside("cancel", at=0.1),),
        )
