"""Asking the provider for the money, and what it may answer."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from math import inf
from typing import TYPE_CHECKING

from simulator.service.errors import Declined, RateLimited, Silence
from simulator.service.operations import FINAL, Operation
from simulator.service.outbox import Outbox
from simulator.service.retry_limits import next_wait, succeeded

if TYPE_CHECKING:
    from simulator.service.design import Design
    from simulator.service.runtime import Runtime, Steps

__all__ = [
    "PROVIDER_TIMEOUT",
    "Accepted",
    "CameToNothing",
    "FindRefund",
    "Outcome",
    "RefundOrder",
    "ask",
    "pay",
]

PROVIDER_TIMEOUT = 2.0
"""Seconds to wait for the provider: far above its usual 0.2 s, far below a lease."""


SETTLEMENT_CHECK = 6 * 3600.0
"""Seconds until we ask again about what the provider has taken on: banks take days, and its own
report comes sooner."""


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
class Accepted:
    """The provider's answer where money moves later: it will try, and may yet fail.

    Attributes:
        reference: the provider's name for it.
    """

    reference: str

    def __str__(self) -> str:
        return f"{self.reference}, accepted"


@dataclass(frozen=True, slots=True)
class CameToNothing:
    """What the provider says when asked for a refund that it took on and could not pay."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a payment: "succeeded", "failed" or "outcome_unknown", and why.

    Attributes:
        again_in: seconds that the provider asked to wait for; None if it did not.
        pending: the provider has taken it on, and will say how it ends.
        for_a_person: nothing that we could send or ask would settle it.
    """

    status: str
    detail: str
    again_in: float | None = None
    pending: bool = False
    for_a_person: bool = False


def pay(
    rt: Runtime, d: Design, operation: Operation, tries: int = 0, unknown: bool = False
) -> Steps[Outcome]:
    """Asks the provider for the money, as often as the design says.

    `tries` counts earlier rounds of the same operation, for the design's retry policy;
    `unknown` says that an earlier round ended in silence, or in the death of its worker.
    """
    if unknown and d.recovery.asks_first:
        found = yield from ask(rt, operation)
        if found.status == "unanswerable":
            return Outcome("outcome_unknown", found.detail)
        if found.status != "not_found":
            return found
    elif unknown and _asks_too(d, tries):
        found = yield from ask(rt, operation)
        if found.status in FINAL or found.pending:
            return found
    silent = unknown
    lease = d.dispatch.lease if isinstance(d.dispatch, Outbox) else None
    # Whoever sleeps past the own lease wakes up as a zombie: better let go of it.
    until = inf if lease is None else lease - 2 * PROVIDER_TIMEOUT
    begun, paid = rt.now(), 0.0
    for attempt in count(tries):
        header = None
        key = d.key_for(operation, attempt, rt.now(), rt.owner)
        if unknown and d.recovery.asks_first and key is not None:
            key = f"{key}-{attempt}"
        order = RefundOrder(
            operation.intent_id, operation.order_id, operation.amount, operation.currency, key
        )
        try:
            reference = yield from rt.call("provider.refund", order, timeout=PROVIDER_TIMEOUT)
            succeeded(d.retry, rt.memory, paid)
            return _taken(d, reference)
        except Declined as no:
            refused = Outcome("failed", no.reason)
            if not d.recovery.marks_unknown or not (silent or no.takes_for_duplicate):
                return refused
            # This request was refused. One before it may have been carried out all the same,
            # where keys mean nothing, or the provider refused it as a duplicate of that one.
            found = yield from ask(rt, operation)
            if no.takes_for_duplicate and found.status in ("not_found", "unanswerable"):
                # A duplicate of what? Of another refund that looks the same (case B33).
                return Outcome("outcome_unknown", no.reason, for_a_person=True)
            if found.status == "unanswerable" and key is None:
                return Outcome("outcome_unknown", no.reason)
            return refused if found.status in ("not_found", "unanswerable") else found
        except RateLimited as busy:
            # This request was not carried out; earlier ones may have been.
            header, reason, given_up = busy.retry_after, str(busy), "failed"
            if d.recovery.takes_over:
                given_up = "outcome_unknown"
        except Silence as silence:
            status = d.status_after(operation, silence)
            silent = True
            reason, given_up = "no answer from the provider.", "failed"
            if status != "again":
                return Outcome(status, reason)
        wait = next_wait(
            d.retry,
            attempt,
            rt.now() - begun,
            header,
            rt.memory,
            rt.random,
            until=until,
            ask=d.delay_after,
        )
        if wait.seconds is None:
            if wait.why == "lease":
                given_up = "outcome_unknown"
            return Outcome(given_up, f"{reason} {wait.sentence}", wait.not_before)
        paid = wait.cost
        yield from rt.sleep(wait.seconds)
    raise AssertionError("unreachable")


def _asks_too(d: Design, tries: int) -> bool:
    """Whether the provider is also asked before this try: every second time from `asks_from` on,
    for where it takes one request at a time the question would take the place of the refund.
    """
    first = d.recovery.asks_from
    return first is not None and tries >= first and (tries - first) % 2 == 0


def _taken(d: Design, answer: str | Accepted) -> Outcome:
    """What a yes of the provider means: paid, or only accepted."""
    if isinstance(answer, str):
        return Outcome("succeeded", answer)
    if not d.recovery.waits_for_settlement:
        return Outcome("succeeded", answer.reference)
    return _not_yet(answer)


def _not_yet(answer: Accepted) -> Outcome:
    """Accepted: whether it is paid shows in days, not in seconds."""
    detail = f"{answer}, and not paid yet."
    return Outcome("outcome_unknown", detail, again_in=SETTLEMENT_CHECK, pending=True)


def ask(rt: Runtime, operation: Operation) -> Steps[Outcome]:
    """Asks the provider what became of a refund.

    Beside "succeeded", "failed" (it came to nothing, definitely) and "outcome_unknown" (no
    answer, or none yet) the status may be "not_found": the provider knows of no such refund
    now, as far as its look-up sees; or "unanswerable": it cannot be asked.
    """
    try:
        question = FindRefund(operation.intent_id)
        found = yield from rt.call("provider.find", question, timeout=PROVIDER_TIMEOUT)
    except Declined as error:
        return Outcome("unanswerable", str(error))
    except (Silence, RateLimited) as error:
        return Outcome("outcome_unknown", str(error))
    if found is None:
        return Outcome("not_found", "the provider knows of no such refund.")
    if isinstance(found, Accepted):
        return _not_yet(found)
    if isinstance(found, CameToNothing):
        return Outcome("failed", found.reason)
    return Outcome("succeeded", found)
