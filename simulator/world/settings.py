"""What a scenario is made of: intents, orders, submissions, and how agent and provider behave."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator.service.checks import fits_its_types, needs, needs_seconds, positive, whole
from simulator.service.money import DIGITS
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

LATEST = 6 * 24 * 3600.0
"""Seconds after which nothing may begin: a history is cut off after seven days, and the last
day is for what begins last to come to rest."""

WHOLE_DIGITS = 10
"""Digits before the point that the published schema carries (12, two of them decimals)."""

Fields = tuple[tuple[str, Any], ...]


def _needs_id(owner: object, name: str, least: int, most: int) -> None:
    """Refuses an id that the published schema cannot carry, or that `parse_refund` would spell
    another way (NFC): a refund with it could never be asked for.
    """
    value = getattr(owner, name)
    fits = least <= len(value) <= most and value.isprintable()
    what = f"{least} to {most} printable characters in NFC, which the published schema can carry"
    needs(owner, name, fits and unicodedata.is_normalized("NFC", value), what)


def _needs_whose(owner: Intent | Order, least: int = 0) -> None:
    """Refuses a tenant or user whose id no database would take as a text."""
    for name in ("tenant_id", "user_id"):
        value = getattr(owner, name)
        fits = len(value) >= least and value.isprintable()
        needs(owner, name, fits, "an id of printable characters")


def _needs_moment(owner: Submission | Outside) -> None:
    """Refuses what would begin when a history is over, or too soon before."""
    what = f"at most {LATEST:.0f} seconds, six days: a history is cut off after seven"
    needs(owner, "at", owner.at <= LATEST, what)


@dataclass(frozen=True, slots=True)
class Intent:
    """What a customer wants, once. Minted by the application before any model runs.

    Attributes:
        id: 8 to 100 characters.
        order_id: 3 to 50 characters.
        amount: minor units of `currency`, which is the order's.
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
        _needs_id(self, "id", 8, 100)
        _needs_id(self, "order_id", 3, 50)
        _needs_whose(self)
        needs(self, "amount", whole(self.amount, 1), "whole minor units, 1 or more")
        needs(self, "currency", self.currency in EXPONENTS, f"one of {', '.join(EXPONENTS)}")
        most = 10 ** (WHOLE_DIGITS + EXPONENTS[self.currency]) - 1
        carried = f"minor units up to {most}, the most of {self.currency} that the schema carries"
        needs(self, "amount", self.amount <= most, carried)


@dataclass(frozen=True, slots=True)
class Order:
    """An order that was paid for.

    Attributes:
        id: 3 to 50 characters.
        captured: minor units, at most 18 digits.
        lines: what was ordered: (stock-keeping unit, quantity), each unit once. A shop's stock
            of each begins at zero.
    """

    id: str = ORDER_ID
    tenant_id: str = TENANT
    user_id: str = USER
    captured: int = 500_00
    currency: str = "USD"
    lines: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        fits_its_types(self)
        _needs_id(self, "id", 3, 50)
        _needs_whose(self, least=1)
        needs(self, "captured", whole(self.captured, 0), "whole minor units, 0 or more")
        needs(self, "captured", self.captured < 10**DIGITS, f"at most {DIGITS} digits")
        needs(self, "currency", self.currency in EXPONENTS, f"one of {', '.join(EXPONENTS)}")
        units = [unit for unit, _ in self.lines]
        readable = all(unit and unit.isprintable() for unit in units)
        needs(self, "lines", readable, "stock-keeping units of printable characters")
        needs(self, "lines", len(set(units)) == len(units), "each stock-keeping unit once")
        counted = all(0 < quantity < 10**DIGITS for _, quantity in self.lines)
        needs(self, "lines", counted, f"quantities of 1 or more, with at most {DIGITS} digits")


@dataclass(frozen=True, slots=True)
class Submission:
    """One time that the agent is moved to act on an intent.

    Attributes:
        intent_id: on which.
        at: seconds since the history began, six days at most.
        instance: the backend that the call is routed to.
        thought: which one, from 1. Calls of one thought have one call id and one set of arguments.
        amount: how the model writes the amount, if not as the customer said it.
        after_answer: whether it has to wait for the end of the submission before it.
        model_key: what the model writes where the published schema asks for an id, if not
            something of its own for every thought.
        tool: which tool the model calls.
        arguments: what else it writes into the call, or in place of what it should write: an
            injected tenant, a flag, other wording. A mapping; kept as sorted pairs, and handed
            out by `written`.
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
        fits_its_types(self)
        needs(self, "at", self.at == 0 or positive(self.at), "seconds, 0 or more")
        _needs_moment(self)
        needs(self, "thought", whole(self.thought, 1), "a whole number, 1 or more")
        pairs = tuple((name, _frozen(value)) for name, value in dict(self.arguments).items())
        object.__setattr__(self, "arguments", tuple(sorted(pairs, key=_name_of)))
        try:
            hash(self.arguments)
        except TypeError:
            needs(self, "arguments", False, "texts, numbers, lists and dicts, as JSON has them")

    def written(self) -> dict[str, Any]:
        """`arguments` as the model writes them: lists are lists, and objects are dicts."""
        return {name: _thawed(value) for name, value in dict(self.arguments).items()}


@dataclass(frozen=True, slots=True)
class _Object:
    """A dict that cannot be changed, as part of a submission's arguments."""

    pairs: Fields


def _name_of(pair: tuple[Any, Any]) -> str:
    return str(pair[0])


def _frozen(value: Any) -> Any:
    """A list as a tuple and a dict as pairs, so that a submission can be hashed."""
    if isinstance(value, Mapping):
        pairs = ((name, _frozen(inside)) for name, inside in value.items())
        return _Object(tuple(sorted(pairs, key=_name_of)))
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _thawed(value: Any) -> Any:
    if isinstance(value, _Object):
        return {name: _thawed(inside) for name, inside in value.pairs}
    return list(map(_thawed, value)) if isinstance(value, tuple) else value


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
        needs_seconds(self, "patience")
        needs(self, "resubmits", whole(self.resubmits, 0), "a whole number, 0 or more")


@dataclass(frozen=True, slots=True)
class ApproverSettings:
    """The person who is asked for consent.

    Attributes:
        delay: seconds until a question is answered.
        says: what is answered about an intent: (intent id, "yes", "no" or "nothing"); about
            others "yes". Pairs, or a mapping, which is kept as sorted pairs.
        second_thoughts: seconds after which the opposite is said; None: never.
        user_id, permissions: of the person's own session.
    """

    delay: float = 60.0
    says: Mapping[str, str] | tuple[tuple[str, str], ...] = ()
    second_thoughts: float | None = None
    user_id: str = MANAGER
    permissions: frozenset[str] = frozenset(
        {"refund:approve", "cancel_orders:approve", "delete_profile:approve"}
    )

    def __post_init__(self) -> None:
        fits_its_types(self)
        needs_seconds(self, "delay")
        needs_seconds(self, "second_thoughts", or_none=True)
        if isinstance(self.says, Mapping):
            object.__setattr__(self, "says", tuple(sorted(self.says.items())))
        words = all(word in ("yes", "no", "nothing") for word in dict(self.says).values())
        needs(self, "says", words, "pairs of an intent's id and 'yes', 'no' or 'nothing'")

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
        at: seconds since the history began, six days at most.
        amount: minor units, at most 18 digits; a cancellation takes what is left.
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
        _needs_moment(self)
        whole_amount = whole(self.amount, 0 if self.what == "cancel" else 1)
        needs(self, "amount", whole_amount, "whole minor units, 1 or more")
        needs(self, "amount", self.amount < 10**DIGITS, f"at most {DIGITS} digits")


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
            needs_seconds(self, name)
        allowed = self.limit is None or whole(self.limit, 1)
        lag = self.lookup_lag in (None, 0) or positive(self.lookup_lag)
        needs(self, "lookup_lag", lag, "seconds, 0 or more, or None")
        if self.lookup_lag:
            needs_seconds(self, "lookup_lag", or_none=True)
        needs(self, "limit", allowed, "a whole number, 1 or more, or None")
        needs(self, "semantics", self.semantics in SEMANTICS, f"one of {', '.join(SEMANTICS)}")
        needs(self, "errors", whole(self.errors, 0), "a whole number, 0 or more")
        needs(self, "error_when", self.error_when in ("before", "after"), "'before' or 'after'")
        for name in ("settles_after", "duplicate_window"):
            needs_seconds(self, name, or_none=True)
