"""Providers that refuse, take their time, report in disorder, or read no keys."""

from __future__ import annotations

from typing import Self

from simulator.world.scenarios.base import BaseScenario
from simulator.world.settings import ProviderSettings, WebhookSettings

__all__ = ["ProviderScenarios"]


class ProviderScenarios(BaseScenario):
    """The part of `Scenario` that is about them."""

    @classmethod
    def declined(cls) -> Self:
        """The provider refuses, definitely: the card was closed."""
        return cls(name="declined", provider=ProviderSettings(declines=frozenset({"intent-1"})))

    @classmethod
    def keys_mean_nothing(cls) -> Self:
        """The provider reads no keys, and refuses to pay back more than was captured."""
        return cls(
            name="keys_mean_nothing",
            provider=ProviderSettings(semantics="none", checks_balance=True),
        )

    @classmethod
    def accepted_then_paid(cls) -> Self:
        """The provider accepts the refund, and pays it an hour later."""
        return cls(
            name="accepted_then_paid",
            provider=ProviderSettings(settles_after=3600.0, webhooks=WebhookSettings()),
        )

    @classmethod
    def paid_while_answering(cls) -> Self:
        """The provider accepts the refund, and pays it half a second after the caller was told
        that it is being verified: the follow-up may overtake that answer.
        """
        return cls.accepted_then_paid().but(
            name="paid_while_answering",
            provider=ProviderSettings(settles_after=5.5, webhooks=WebhookSettings()),
        )

    @classmethod
    def webhook_storm(cls) -> Self:
        """The provider's reports come early, twice, late, and in the wrong order."""
        return cls(
            name="webhook_storm",
            provider=ProviderSettings(
                work=0.5,
                webhooks=WebhookSettings(created=(0.2, 90.0), succeeded=(0.0, 0.0, 30.0)),
            ),
        )

    @classmethod
    def returned_by_the_bank(cls) -> Self:
        """The provider accepts the refund, and two days later the bank sends the money back."""
        return cls(
            name="returned_by_the_bank",
            provider=ProviderSettings(
                settles_after=48 * 3600.0,
                fails_to_settle=frozenset({"intent-1"}),
                webhooks=WebhookSettings(),
            ),
        )
