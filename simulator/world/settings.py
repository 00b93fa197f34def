"""What a scenario is made of: intents, orders, submissions, and how agent and provider behave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator.service.checks import fits_its_types, needs, positive, whole
from simulator.service.schemas import EXPONENTS

__all__ = [
    "MANAGER",
    "ORDER_ID",
    "OTHER_TENANT",
    "OTHER_USER",
    "TENANT",
    "USER",
    "AgentSettings",
    "ApproverSettings",
    "Intent",
    "Order",
    "Outside",
    "ProviderSettings",
    "Submission",
    "WebhookSettings",
]

TENANT = "7a1c0f5e-3b52-4c0e-9f0a-1d2e3f4a5b6c"
USER = "c0ffee00-1234-4abc-8def-000000001001"
OTHER_TENANT = "0b8e6d2c-77aa-4f1d-8c55-9e0f1a2b3c4d"
OTHER_USER = "c0ffee00-1234-4abc-8def-000000001002"
MANAGER = "c0ffee00-1234-4abc-8def-00000000feed"
ORDER_ID = "ORD-1001"

Fields = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Intent:
    """What a customer wants, once. Minted by the application before any model runs.

    Attributes:
        amount: minor units.
        owed: whether the customer has a right to it.
        permissions: of the session that it is asked for in.
    """

    id: str
    tenant_id: str = TENANT
    user_id: str = USER
    order_id: str = ORDER_ID
    amount: int = 500_00
    currency: str = "USD"
    owed: bool = True
    permissions: frozenset[str] = frozenset({"refund:create"})

    def __post_init__(self) -> None:
        fits_its_types(self)
        needs(self, "amount", whole(self.amount, 1), "whole minor units, 1 or more")
        needs(self, "currency", self.currency in EXPONENTS, f"one of {', '.join(EXPONENTS)}")


@dataclass(frozen=True, slots=True)
class Order:
    """An order that was paid for.

    Attributes:
        captured: minor units.
        lines: what was ordered: (stock-keeping unit, quantity). A shop's stock of each begins
            at zero.
    """

    id: str = ORDER_ID
    tenant_id: str = TENANT
    user_id: str = USER
    captured: int = 500_00
    currency: str = "USD"
    lines: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        fits_its_types(self)
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
        tool: which tool the model calls.
        arguments: what else it writes into the call, or in place of what it should write: an
            injected tenant, a flag, other wording. A mapping; kept as sorted pairs.
    """

    intent_id: str
    at: float = 0.0
    instance: str = "backend-1"
    thought: int = 1
    amount: str | None = None
    after_answer: bool = False
    model_key: str | None = None
    tool: str = "issue_refund"
    arguments: Mapping[str, Any] | Fields = ()

    def __post_init__(self) -> None:
        if isinstance(self.arguments, Mapping):
            pairs = tuple(sorted((name, _frozen(value)) for name, value in self.arguments.items()))
            object.__setattr__(self, "arguments", pairs)
        fits_its_types(self)
        needs(self, "at", self.at == 0 or positive(self.at), "seconds, 0 or more")


def _frozen(value: Any) -> Any:
    """A list as a tuple, so that a submission can be hashed."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


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
        fits_its_types(self)
        needs(self, "patience", positive(self.patience), "seconds, more than 0")
        needs(self, "resubmits", whole(self.resubmits, 0), "a whole number, 0 or more")


@dataclass(frozen=True, slots=True)
class ApproverSettings:
    """The person who is asked for consent.

    Attributes:
        delay: seconds until a question is answered.
        says: what is answered about an intent: (intent id, "yes", "no" or "nothing"); about
            others "yes".
        second_thoughts: seconds after which the opposite is said; None: never.
        user_id, permissions: of the person's own session.
    """

    delay: float = 60.0
    says: tuple[tuple[str, str], ...] = ()
    second_thoughts: float | None = None
    user_id: str = MANAGER
    permissions: frozenset[str] = frozenset(
        {"refund:approve", "cancel_orders:approve", "delete_profile:approve"}
    )

    def __post_init__(self) -> None:
        fits_its_types(self)
        needs(self, "delay", positive(self.delay), "seconds, more than 0")
        words = all(word in ("yes", "no", "nothing") for _, word in self.says)
        needs(self, "says", words, "pairs of an intent's id and 'yes', 'no' or 'nothing'")
        later = self.second_thoughts is None or positive(self.second_thoughts)
        needs(self, "second_thoughts", later, "seconds, more than 0, or None")

    def answer(self, intent_id: str) -> str:
        """What this person says about an intent."""
        return dict(self.says).get(intent_id, "yes")


OUTSIDE = ("cancel", "refund", "chargeback")


@dataclass(frozen=True, slots=True)
class Outside:
    """Something that happens to an order, and that no tool call of ours made happen.

    Attributes:
        what: "cancel": a colleague cancels the order in the back office and pays everything
            back that is left, by hand; "refund": somebody refunds at the provider's dashboard,
            and our books know nothing of it; "chargeback": the customer's bank takes it back.
        at: seconds since the history began.
        amount: minor units; a cancellation takes what is left.
    """

    what: str
    at: float
    order_id: str = ORDER_ID
    tenant_id: str = TENANT
    amount: int = 0

    def __post_init__(self) -> None:
        fits_its_types(self)
        needs(self, "what", self.what in OUTSIDE, f"one of {', '.join(OUTSIDE)}")
        needs(self, "at", positive(self.at), "seconds, more than 0")
        whole_amount = whole(self.amount, 0 if self.what == "cancel" else 1)
        needs(self, "amount", whole_amount, "whole minor units, 1 or more")


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """How the provider reports what it did. It repeats a report until it gets a 200.

    Attributes:
        created, succeeded, failed: seconds after the event at which each report of it sets
            out. Two numbers are two copies; a "created" that sets out after a "succeeded"
            comes out of order.
        patience: seconds that the provider waits for our answer.
        tries: how often a report is sent at most, 5 s, 10 s, 20 s … up to an hour apart.
        misreports: minor units that the reports of refunds that we asked for name, whatever was
            paid; None: what was paid.
    """

    created: tuple[float, ...] = ()
    succeeded: tuple[float, ...] = (0.0,)
    failed: tuple[float, ...] = (0.0,)
    patience: float = 5.0
    tries: int = 40
    misreports: int | None = None

    def __post_init__(self) -> None:
        fits_its_types(self)
        for name in ("created", "succeeded", "failed"):
            seconds = all(at == 0 or positive(at) for at in getattr(self, name))
            needs(self, name, seconds, "seconds, 0 or more each")
        needs(self, "patience", positive(self.patience), "seconds, more than 0")
        needs(self, "tries", whole(self.tries, 1), "a whole number, 1 or more")
        said = self.misreports is None or whole(self.misreports, 0)
        needs(self, "misreports", said, "whole minor units, 0 or more, or None")


SEMANTICS = ("stripe-v1", "stripe-v2", "ietf", "none")


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """How the payment provider behaves.

    Attributes:
        leg, work: seconds for a message one way, and from its arrival to the payment.
        semantics: what a key means. "stripe-v1": the first result under a key is replayed,
            errors too; "stripe-v2": a success is replayed, failed work is tried again; "ietf":
            a missing key is an error (400); "none": keys mean nothing. All but the last refuse
            other parameters under a key, and answer 409 while its first request is worked on.
        key_lifetime: seconds for which a key is remembered.
        declines: intents that it refuses, definitely.
        contradicts: intents that it refuses, and pays all the same `contradicts_after` seconds
            later.
        covers_endpoint: whether a key belongs to one endpoint: the same key at another one is
            an error. If not, the first answer is given, whatever was asked.
        limit: requests that it takes in any `limit_window` seconds; None: as many as come.
        lookup_lag: seconds until a payment can be found by asking; None: it cannot be asked.
        errors: how many sends of each intent end in a 500.
        error_when: whether such a send fails "before" the payment or "after" it.
        settles_after: seconds from "accepted" until the money moves; None: it moves at once.
        fails_to_settle: intents that are accepted, and then come to nothing.
        duplicate_window: seconds for which a second refund of one amount on one order is
            refused as a duplicate, whatever its key; None: never.
        checks_balance: whether it refuses more than was captured. By default it pays what it
            is asked to pay, like a payout.
        webhooks: how it reports what it did; None: it does not.
    """

    leg: float = 0.05
    work: float = 0.1
    semantics: str = "stripe-v1"
    key_lifetime: float = 24 * 3600.0
    declines: frozenset[str] = frozenset()
    contradicts: frozenset[str] = frozenset()
    contradicts_after: float = 7.0
    covers_endpoint: bool = True
    limit: int | None = None
    limit_window: float = 1.0
    lookup_lag: float | None = 0.0
    errors: int = 0
    error_when: str = "before"
    settles_after: float | None = None
    fails_to_settle: frozenset[str] = frozenset()
    duplicate_window: float | None = None
    checks_balance: bool = False
    webhooks: WebhookSettings | None = None

    def __post_init__(self) -> None:
        fits_its_types(self)
        for name in ("leg", "work", "key_lifetime", "limit_window", "contradicts_after"):
            needs(self, name, positive(getattr(self, name)), "seconds, more than 0")
        allowed = self.limit is None or whole(self.limit, 1)
        lag = self.lookup_lag in (None, 0) or positive(self.lookup_lag)
        needs(self, "lookup_lag", lag, "seconds, 0 or more, or None")
        needs(self, "limit", allowed, "a whole number, 1 or more, or None")
        needs(self, "semantics", self.semantics in SEMANTICS, f"one of {', '.join(SEMANTICS)}")
        needs(self, "errors", whole(self.errors, 0), "a whole number, 0 or more")
        needs(self, "error_when", self.error_when in ("before", "after"), "'before' or 'after'")
        for name in ("settles_after", "duplicate_window"):
            value = getattr(self, name)
            needs(self, name, value is None or positive(value), "seconds, more than 0, or None")
