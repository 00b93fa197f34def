"""Idempotency keys: what our record is found by, and what the provider is sent.

A key policy is called with an operation and the number of the attempt (0 is the first
send) and returns the key to send, or None for none. Two methods are optional:

`identity(operation, call)` names the operation in our own record, from the tool call as the
model wrote it; `operation.key` is still empty then, and is the result from there on. A policy
without it uses the operation's own key, so its mistake reaches the provider only.

`at(operation, attempt, now)` takes the place of the call where a key depends on the time, and
`by(operation, attempt, owner)` where it depends on the life of a process.

`OperationKey` is right. Every other policy here was found in a real system.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from simulator.service.checks import fits_its_types, needs
from simulator.service.operations import Operation

if TYPE_CHECKING:
    from simulator.service.schemas import ToolCall

__all__ = [
    "Ambiguous",
    "ArgumentsHash",
    "DateStamped",
    "ModelKey",
    "ModelKeyPerAttempt",
    "NoKey",
    "ObjectKey",
    "OperationKey",
    "OrderAmountKey",
    "OrderKey",
    "PerAttempt",
    "ProcessKey",
    "RewrittenKey",
    "RowId",
    "TimeStamped",
    "ToolCallId",
    "Truncated",
    "digest",
    "fingerprint",
    "operation_key",
]

DAY = 24 * 3600.0


def digest(*parts: str | int) -> str:
    """32 hex digits of these parts: other parts, other digits."""
    # JSON quotes and separates its parts, so no two lists of parts give one text, and 1 is not
    # "1". Text is NFC: an "é" of one character and one of two are the same letter.
    spelled = [
        unicodedata.normalize("NFC", part) if isinstance(part, str) else part for part in parts
    ]
    text = json.dumps(spelled, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@lru_cache(maxsize=4096)
def operation_key(tenant_id: str, action: str, intent_id: str) -> str:
    """The key of an intent: 32 hex digits, the same on every attempt, instance and day."""
    return digest(tenant_id, action, intent_id)


# typed: to a dict, and so to a cache, 500, 500.0 and Decimal(500) are one.
@lru_cache(maxsize=4096, typed=True)
def fingerprint(tenant_id: str, action: str, order_id: str, amount: int, currency: str) -> str:
    """Digest of what is asked for. `amount` in minor units: 500 and 500.00 give one digest.

    Raises:
        TypeError: the amount is not a whole number of minor units.
    """
    if type(amount) is not int:
        raise TypeError(
            f"A fingerprint is made of whole minor units, not of {amount!r}: "
            "use minor_units(amount, currency)."
        )
    return digest(tenant_id, action, order_id, amount, currency)


@dataclass(frozen=True, slots=True)
class OperationKey:
    """The operation's own key, on every attempt."""

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return operation_key(operation.tenant_id, operation.action, operation.intent_id)


@dataclass(frozen=True, slots=True)
class NoKey:
    """Sends no key: to the provider every request is a new one."""

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return None


@dataclass(frozen=True, slots=True)
class PerAttempt:
    """A fresh key for every send: as good as none."""

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return f"{operation.id}-{attempt}"


# From what the model wrote: record and provider are both misled.


@dataclass(frozen=True, slots=True)
class ModelKey:
    """The key that the model wrote into its tool call: a new thought, a new key.

    Two tenants whose models invent one and the same key share it at the provider. A model that
    leaves it out gets a fresh one for every call.
    """

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return operation.model_key or operation.id

    def identity(self, operation: Operation, call: ToolCall) -> str:
        return operation.model_key or operation.id


@dataclass(frozen=True, slots=True)
class ModelKeyPerAttempt:
    """The tool's description tells the model to make a unique key for each try, and it does.

    Wrong as soon as anything is sent twice: by the record for a new call, by the provider for a
    new attempt (case B25).
    """

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return f"{operation.key}-try-{attempt + 1}"

    def identity(self, operation: Operation, call: ToolCall) -> str:
        return f"{operation.model_key}-{call.call_id}"


@dataclass(frozen=True, slots=True)
class ToolCallId:
    """The id that the model's API gave to the tool call.

    Right while one call is sent again; wrong when the run is, or the model thinks anew: the same
    refund then comes under another id, to record and provider alike (case B17).
    """

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return operation.key

    def identity(self, operation: Operation, call: ToolCall) -> str:
        return call.call_id or operation.id


@dataclass(frozen=True, slots=True)
class ArgumentsHash:
    """A hash of the arguments as the model spelled them, but for its own id.

    One refund spelled twice has two keys (10 and 10.0, "é" of one character and of two), and
    two honest refunds spelled alike have one. Record and provider are both misled (reference,
    section 5: 14 of 14 functions).
    """

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return operation.key

    def identity(self, operation: Operation, call: ToolCall) -> str:
        spelled = {
            name: value for name, value in call.arguments.items() if name != "refund_request_id"
        }
        text = json.dumps([operation.tenant_id, spelled], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


# From too little of what is asked for: two honest refunds become one, in the record too.


@dataclass(frozen=True, slots=True)
class OrderKey:
    """The order's id is the key: an order can be refunded once.

    The second part of a partial refund is answered with the first, by record and provider; with
    a fingerprint it is refused as a conflict (case B07).
    """

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return operation.key

    def identity(self, operation: Operation, call: ToolCall) -> str:
        return digest(operation.tenant_id, operation.action, operation.order_id)


@dataclass(frozen=True, slots=True)
class OrderAmountKey:
    """Order and amount are the key, well encoded and in minor units.

    Two honest refunds of equal amount on one order become one, and no fingerprint notices: the
    customer is owed 20.00 and gets 10.00, told twice that it is done (case B07).
    """

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return operation.key

    def identity(self, operation: Operation, call: ToolCall) -> str:
        return digest(
            operation.tenant_id,
            operation.action,
            operation.order_id,
            operation.amount,
            operation.currency,
        )


# The record is found by the operation's own key; what the provider is sent goes wrong.


@dataclass(frozen=True, slots=True)
class RowId:
    """The id of our row is the key.

    Right as long as the row stays. Where an error path deletes it, a record forgets it, or there
    is none, the next try makes a new row, and a new key (case B05).
    """

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return operation.id


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """A key of what is refunded, not of what is done to it: the action is left out.

    Harmless while there is one action. With a second (a dry run, a cancellation) the provider
    answers one with the other's result, and the refund is reported and never made (case B64).
    """

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return digest(operation.tenant_id, operation.intent_id)


@dataclass(frozen=True, slots=True)
class Truncated:
    """The first characters of the intent's id, like the lesson's `REF-{key[:8]}` (trap 8).

    Ids that begin alike share the key: intent-10 and intent-11, or two UUIDs of version 7 made
    within a minute (their first 8 digits are the time). Other tenants' ids count too.

    Attributes:
        length: characters that are kept.
    """

    length: int = 8

    def __post_init__(self) -> None:
        fits_its_types(self)
        needs(self, "length", self.length >= 1, "a whole number, 1 or more")

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return f"REF-{operation.intent_id[: self.length]}"


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Tenant and intent with a colon between them, like `f"{tenant_id}:{idempotency_key}"`.

    Where an id has a colon itself, "a:b" with "c" is "a" with "b:c": one tenant's refund is
    answered with another's (trap 7).
    """

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return f"{operation.tenant_id}:{operation.intent_id}"


@dataclass(frozen=True, slots=True)
class DateStamped:
    """The operation's key with the day behind it, so that a stored error is gone tomorrow.

    A refund that is paid at 23:59:50, with its answer lost, is paid again at 00:00:10 (case B10).

    Attributes:
        day_begins: seconds from the start of the run to a midnight; histories begin at 09:00.
    """

    day_begins: float = 15 * 3600.0

    def __post_init__(self) -> None:
        fits_its_types(self)

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return self.at(operation, attempt, 0.0)

    def at(self, operation: Operation, attempt: int, now: float) -> str | None:
        return f"{operation.key}-day-{int((now - self.day_begins) // DAY) + 1}"


@dataclass(frozen=True, slots=True)
class TimeStamped:
    """The operation's key with the milliseconds of the send behind it: as good as none.

    `Date.now()` inside a key is a new key for every attempt (case B89).
    """

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return self.at(operation, attempt, 0.0)

    def at(self, operation: Operation, attempt: int, now: float) -> str | None:
        return f"{operation.key}-{int(now * 1000)}"


@dataclass(frozen=True, slots=True)
class RewrittenKey:
    """The application hands over the right key, and its SDK puts one of its own in its place.

    A new one for every send, so wrong with the first retry; only a look at the wire shows it
    (case B61).
    """

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return self.at(operation, attempt, 0.0)

    def at(self, operation: Operation, attempt: int, now: float) -> str | None:
        return f"sdk-{digest(operation.key, attempt, int(now * 1_000_000))}"


@dataclass(frozen=True, slots=True)
class ProcessKey:
    """The SDK's own key again, but kept for all retries of one life of a process.

    Right until the process dies, or another one takes over (case B61).
    """

    def __call__(self, operation: Operation, attempt: int) -> str | None:
        return self.by(operation, attempt, "")

    def by(self, operation: Operation, attempt: int, owner: str) -> str | None:
        return f"sdk-{digest(operation.key, owner)}"
