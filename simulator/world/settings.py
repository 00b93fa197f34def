"""What a scenario is made of: intents, orders, submissions, and how agent and provider behave."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.service.schemas import EXPONENTS
from simulator.world.checks import needs, positive, whole

__all__ = [
    "ORDER_ID",
    "OTHER_TENANT",
    "OTHER_USER",
    "TENANT",
    "USER",
    "AgentSettings",
    "Intent",
    "Order",
    "ProviderSettings",
    "Submission",
]

TENANT = "7a1c0f5e-3b52-4c0e-9f0a-1d2e3f4a5b6c"
USER = "c0ffee00-1234-4abc-8def-000000001001"
OTHER_TENANT = "0b8e6d2c-77aa-4f1d-8c55-9e0f1a2b3c4d"
OTHER_USER = "c0ffee00-1234-4abc-8def-000000001002"
ORDER_ID = "ORD-1001"


@dataclass(frozen=True, slots=True)
class Intent:
    """What a customer wants, once. Minted by the application before any model runs.

    Attributes:
        amount: minor units.
        owed: whether the customer has a right to it.
    """

    id: str
    tenant_id: str = TENANT
    user_id: str = USER
    order_id: str = ORDER_ID
    amount: int = 500_00
    currency: str = "USD"
    owed: bool = True

    def __post_init__(self) -> None:
        needs(self, "amount", whole(self.amount, 1), "whole minor units, 1 or more")
        needs(self, "currency", self.currency in EXPONENTS, f"one of {', '.join(EXPONENTS)}")


@dataclass(frozen=True, slots=True)
class Order:
    """An order that was paid for. `captured` in minor units."""

    id: str = ORDER_ID
    tenant_id: str = TENANT
    user_id: str = USER
    captured: int = 500_00
    currency: str = "USD"

    def __post_init__(self) -> None:
        needs(self, "captured", whole(self.captured, 0), "whole minor units, 0 or more")
        needs(self, "currency", self.currency in EXPONENTS, f"one of {', '.join(EXPONENTS)}")


@dataclass(frozen=True, slots=True)
class Submission:
    """One time that the agent is moved to act on an intent.

    Attributes:
        intent_id: on which.
        at: seconds since the history began.
        instance: the backend that the call is routed to.
        thought: calls of one thought have one call id and one set of arguments.
        amount: how the model writes the amount, if not as the customer said it.
        after_answer: whether it has to wait for the end of the submission before it.
        model_key: what the model writes where the published schema asks for an id, if not
            something of its own for every thought.
    """

    intent_id: str
    at: float = 0.0
    instance: str = "backend-1"
    thought: int = 1
    amount: str | None = None
    after_answer: bool = False
    model_key: str | None = None

    def __post_init__(self) -> None:
        needs(self, "at", self.at == 0 or positive(self.at), "seconds, 0 or more")


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """How the agent behaves when it gets no answer.

    Attributes:
        patience: seconds that it waits for its tool.
        resubmits: how often it submits again after silence, after 1 s, 2 s, 4 s … up to 2 h:
            by default for a day, as a durable workflow would.
        new_thought: whether it then thinks anew (another call id, arguments written another
            way, another invented key), or repeats the same call.
        elsewhere: whether it then goes to the other instance.
    """

    patience: float = 15.0
    resubmits: int = 25
    new_thought: bool = False
    elsewhere: bool = False

    def __post_init__(self) -> None:
        needs(self, "patience", positive(self.patience), "seconds, more than 0")
        needs(self, "resubmits", whole(self.resubmits, 0), "a whole number, 0 or more")


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """How the payment provider behaves.

    It checks no balance of its own: like a payout, it pays what it is asked to pay.

    Attributes:
        leg, work: seconds for a message one way, and from its arrival to the payment.
        key_lifetime: seconds for which a key is remembered.
        declines: intents that it refuses, definitely.
        limit: requests that it takes in any `limit_window` seconds; None: as many as come.
        lookup_lag: seconds until a payment can be found by asking; None: it cannot be asked.
    """

    leg: float = 0.05
    work: float = 0.1
    key_lifetime: float = 24 * 3600.0
    declines: frozenset[str] = frozenset()
    limit: int | None = None
    limit_window: float = 1.0
    lookup_lag: float | None = 0.0

    def __post_init__(self) -> None:
        for name in ("leg", "work", "key_lifetime", "limit_window"):
            needs(self, name, positive(getattr(self, name)), "seconds, more than 0")
        allowed = self.limit is None or whole(self.limit, 1)
        lag = self.lookup_lag in (None, 0) or positive(self.lookup_lag)
        needs(self, "lookup_lag", lag, "seconds, 0 or more, or None")
        needs(self, "limit", allowed, "a whole number, 1 or more, or None")
