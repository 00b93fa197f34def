"""Asking the provider for the money, and what it may answer."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from simulator.service.errors import Declined, RateLimited, Silence
from simulator.service.operations import Operation
from simulator.service.outbox import Outbox

if TYPE_CHECKING:
    from simulator.service.design import Design
    from simulator.service.runtime import Runtime, Steps

__all__ = ["PROVIDER_TIMEOUT", "FindRefund", "Outcome", "RefundOrder", "ask", "pay"]

PROVIDER_TIMEOUT = 2.0
"""Seconds to wait for the provider: far above its usual 0.2 s, far below a lease."""


@dataclass(frozen=True, slots=True)
class RefundOrder:
    """What the provider is sent. `intent_id` is metadata: it moves no money and keys nothing."""

    intent_id: str
    order_id: str
    amount: int
    currency: str
    key: str | None


@dataclass(frozen=True, slots=True)
class FindRefund:
    """What the provider is asked when nobody knows what became of a request."""

    intent_id: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a payment: "succeeded", "failed" or "outcome_unknown", and why.

    Attributes:
        again_in: seconds that the provider asked to wait for; None if it did not.
    """

    status: str
    detail: str
    again_in: float | None = None


def pay(
    rt: Runtime, d: Design, operation: Operation, tries: int = 0, unknown: bool = False
) -> Steps[Outcome]:
    """Asks the provider for the money, as often as the design says.

    `tries` counts earlier rounds of the same operation, for the design's retry policy;
    `unknown` says that an earlier round ended in silence, or in the death of its worker.
    """
    if unknown and d.recovery.asks_first:
        found = yield from ask(rt, operation)
        if found.status != "failed":
            return found
    lease = d.dispatch.lease if isinstance(d.dispatch, Outbox) else None
    until = None if lease is None else rt.now() + lease - 2 * PROVIDER_TIMEOUT
    for attempt in count(tries):
        wait = 0.0
        key = d.key_for(operation, attempt, rt.now())
        if unknown and d.recovery.asks_first and key is not None:
            key = f"{key}-{attempt}"
        order = RefundOrder(
            operation.intent_id, operation.order_id, operation.amount, operation.currency, key
        )
        try:
            reference = yield from rt.call("provider.refund", order, timeout=PROVIDER_TIMEOUT)
            return Outcome("succeeded", reference)
        except Declined as no:
            return Outcome("failed", no.reason)
        except RateLimited as busy:
            # This request was not carried out; earlier ones may have been.
            wait, reason, given_up = busy.retry_after, str(busy), "failed"
            if d.recovery.takes_over:
                given_up = "outcome_unknown"
        except Silence as silence:
            status = d.status_after(operation, silence)
            reason, given_up = "no answer from the provider.", "failed"
            if status != "again":
                return Outcome(status, reason)
        delay = d.delay_after(attempt, rt.random)
        if delay is None:
            return Outcome(given_up, reason, wait or None)
        if until is not None and rt.now() + max(delay, wait) > until:
            # Whoever sleeps past the own lease wakes up as a zombie: better let go of it.
            return Outcome("outcome_unknown", reason, max(delay, wait))
        yield from rt.sleep(max(delay, wait))
    raise AssertionError("unreachable")


def ask(rt: Runtime, operation: Operation) -> Steps[Outcome]:
    """Asks the provider what became of a refund: "succeeded", "failed" if it knows of none (now,
    and as far as its look-up sees), or "outcome_unknown".
    """
    try:
        question = FindRefund(operation.intent_id)
        reference = yield from rt.call("provider.find", question, timeout=PROVIDER_TIMEOUT)
    except (Silence, RateLimited, Declined) as error:
        return Outcome("outcome_unknown", str(error))
    if reference is None:
        return Outcome("failed", "the provider knows of no such refund.")
    return Outcome("succeeded", reference)
