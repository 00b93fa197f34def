"""Retries with bounds: until when, at whose cost, and how far a provider's wish is honoured.

A limit is a small frozen dataclass around a policy, or around another limit::

    Budget(Deadline(FullJitter(max_attempts=8), seconds=20.0))

Limits never retry by themselves: however deep they are nested, the policy inside is asked once
for each failed send, so one layer decides, and attempts do not multiply (3 attempts in 5 layers
would be 243 calls; Amazon Builders' Library, "Timeouts, retries, and backoff with jitter").

Whoever sends asks `next_wait` after every failure, and tells `succeeded` of every success::

    begun, paid = rt.now(), 0.0
    for attempt in count():
        try: answer = yield from rt.call(…); succeeded(policy, rt.memory, paid); return answer
        except RateLimited as busy: header = busy.retry_after
        except Silence: header = None
        wait = next_wait(policy, attempt, rt.now() - begun, header, rt.memory, rt.random)
        if wait.seconds is None: return Outcome("outcome_unknown", wait.sentence, wait.not_before)
        paid = wait.cost
        yield from rt.sleep(wait.seconds)

A limit also answers `delay`, like any policy. That is its policy's own delay: a caller that
tells neither time nor memory gets the limit of attempts, and no other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

from simulator.service.checks import fits_its_types, needs
from simulator.service.retry import FullJitter, Random01, Retry, bounded_wait

__all__ = [
    "LONGEST_RETRY_AFTER",
    "Budget",
    "Deadline",
    "Limit",
    "ReadRetry",
    "RetryAfter",
    "Wait",
    "give_back",
    "next_wait",
    "spend",
    "succeeded",
    "tokens_left",
]

LONGEST_RETRY_AFTER = 3600.0
"""Seconds of `Retry-After` that are honoured if no `RetryAfter` says otherwise."""

GAVE_UP = {
    "attempts": "the retry policy allows no more attempts.",
    "deadline": "the next attempt would begin after the deadline.",
    "lease": "the next attempt would outlast the lease.",
    "budget": "this process has used up its budget for retries.",
}

_COUNTING = Lock()  # on the live ground, threads of one process share its memory


def spend(tokens: float, cost: float) -> float | None:
    """What is left of `tokens` after a retry that costs `cost`; None if it cannot be paid."""
    return None if cost > tokens else tokens - cost


def give_back(tokens: float, capacity: float, cost: float, gain: float) -> float:
    """`tokens` after a success: plus what its last retry cost, or `gain` if it had none.

    Never more than `capacity`.
    """
    return min(capacity, tokens + (cost or gain))


class Limit:
    """What all limits share: they answer for the policy that they surround."""

    policy: Retry

    def delay(self, attempt: int, random: Random01) -> float | None:
        """The delay of the policy inside, seconds, or None to give up."""
        return _own_delay(self.policy, attempt, random)


@dataclass(frozen=True)
class Deadline(Limit):
    """No retry begins later than `seconds` after the first send of this round.

    A provider that asks for a longer wait than is left (`Retry-After`) is not waited for: the
    round ends, and the durable queue takes over when the provider said (case B77).
    """

    policy: Retry
    seconds: float

    def __post_init__(self) -> None:
        _check_policy(self)
        _check(self, "seconds")


@dataclass(frozen=True)
class RetryAfter(Limit):
    """How far the provider's `Retry-After` is honoured: wait max(own, min(header, longest)).

    Attributes:
        longest: seconds; 0 ignores the header.
    """

    policy: Retry
    longest: float = LONGEST_RETRY_AFTER

    def __post_init__(self) -> None:
        _check_policy(self)
        _check(self, "longest")


@dataclass(frozen=True)
class Budget(Limit):
    """A bucket of tokens for the retries of a whole process: a retry costs, a success gives back.

    The tokens are in the process's memory, and are full again when it is started anew. Defaults:
    botocore since 1.44.0 (10 November 2026), where an empty bucket is reached after 35 retries
    of silence or 100 of throttling (500 // 14 and 500 // 5); before, 5 a retry and 10 a timeout.

    Attributes:
        capacity: tokens of a full bucket.
        cost: of a retry after silence.
        throttled: of a retry after the provider said that it has too many requests.
        gain: what a success brings that needed no retry; one that did brings back the last cost.
        name: of the bucket; policies with one name share it.
    """

    policy: Retry
    capacity: float = 500.0
    cost: float = 14.0
    throttled: float = 5.0
    gain: float = 1.0
    name: str = "provider"

    def __post_init__(self) -> None:
        _check_policy(self)
        for name in ("capacity", "cost", "throttled", "gain"):
            _check(self, name)
        if any(isinstance(layer, Budget) for layer in _layers(self.policy)):
            raise ValueError("Budget(Budget(…)): one retry would be paid twice. Keep one of them.")

    @property
    def place(self) -> str:
        """Where in the process's memory the tokens are."""
        return f"retry budget: {self.name}"

    def price(self, header: float | None) -> float:
        """What a retry costs after a failure with, or without, a `Retry-After`."""
        return self.cost if header is None else self.throttled


@dataclass(frozen=True)
class ReadRetry:
    """For reads, which change nothing and may be repeated freely (section 10 of the lesson).

    Never for a write: there only the same key makes a repetition harmless.

    Attributes:
        attempts: sends in all, the first included; the lesson says 2 to 3 retries at most.
        base, cap: seconds, of full jitter.
    """

    attempts: int = 3
    base: float = 0.1
    cap: float = 1.0

    def __post_init__(self) -> None:
        fits_its_types(self)
        needs(self, "attempts", self.attempts >= 1, "a whole number, 1 or more")
        self._jitter()

    def _jitter(self) -> FullJitter:
        return FullJitter(self.base, self.cap, self.attempts)

    def delay(self, attempt: int, random: Random01) -> float | None:
        """Seconds, or None after the last attempt."""
        return self._jitter().delay(attempt, random)


class Wait(NamedTuple):
    """What to do after a failed send.

    Attributes:
        seconds: to wait before the next send; None: give up.
        why: "" or why it gave up: "attempts", "deadline", "lease" or "budget".
        not_before: seconds before which the provider wants to hear nothing, as far as its wish
            is honoured: for the durable queue. None if it has no such wish.
        cost: tokens that the next send was charged, for `succeeded`.
    """

    seconds: float | None
    why: str = ""
    not_before: float | None = None
    cost: float = 0.0

    @property
    def sentence(self) -> str:
        """Why it gave up, for the record and for a person; "" if it did not."""
        return GAVE_UP.get(self.why, "")


def next_wait(
    policy: Retry,
    attempt: int,
    elapsed: float,
    header: float | None,
    memory: dict[str, Any],
    random: Random01,
    *,
    until: float = math.inf,
    ask: Callable[[int, Random01], float | None] | None = None,
) -> Wait:
    """What to do after attempt `attempt` failed: the one place where all limits are applied.

    It changes nothing but the bucket in `memory`, and that only if there will be a next send.
    The policy inside is asked once, whatever the limits say, so that its luck is used alike.

    Args:
        policy: a policy, within any number of limits. Of nested limits the strictest holds.
        attempt: which send failed, counted from 0.
        elapsed: seconds since the first send of this round.
        header: the provider's `Retry-After` in seconds; None if it said nothing (silence).
        memory: of the process.
        random: the process's luck.
        until: seconds after the first send when the caller has to let go (its lease).
        ask: asks the policy inside, with checks of the caller's own.

    Raises:
        ValueError: the policy returned something other than seconds from 0 up, or None.
    """
    layers = list(_layers(policy))
    longest = [layer.longest for layer in layers if isinstance(layer, RetryAfter)]
    bound = min(longest, default=LONGEST_RETRY_AFTER)
    wish = None if header is None else min(header, bound)
    own = ask(attempt, random) if ask else _own_delay(layers[-1], attempt, random)
    if own is None:
        return Wait(None, "attempts", wish)
    if not 0 <= own < math.inf:
        raise ValueError(f"the retry policy returned {own!r}; it must be seconds, 0 or more.")
    wait = bounded_wait(own, header, bound)
    if any(elapsed + wait > one.seconds for one in layers if isinstance(one, Deadline)):
        return Wait(None, "deadline", wish)
    if elapsed + wait > until:
        return Wait(None, "lease", wish)
    budget = next((layer for layer in layers if isinstance(layer, Budget)), None)
    if budget is None:
        return Wait(wait, not_before=wish)
    cost = budget.price(header)
    with _COUNTING:
        left = spend(tokens_left(budget, memory), cost)
        if left is None:
            return Wait(None, "budget", wish)
        memory[budget.place] = left
    return Wait(wait, not_before=wish, cost=cost)


def succeeded(policy: Retry, memory: dict[str, Any], cost: float = 0.0) -> None:
    """Gives back to the budget, if there is one; `cost`: of the last retry, 0 without any."""
    for layer in _layers(policy):
        if isinstance(layer, Budget):
            with _COUNTING:
                tokens = tokens_left(layer, memory)
                memory[layer.place] = give_back(tokens, layer.capacity, cost, layer.gain)


def tokens_left(budget: Budget, memory: dict[str, Any]) -> float:
    """What is in the bucket; a process that has not retried yet has it full."""
    return float(memory.get(budget.place, budget.capacity))


def _own_delay(policy: Retry, attempt: int, random: Random01) -> float | None:
    # Not `next_delay`: nobody remembers the last delay here, so a chain is walked anew.
    ask: Any = getattr(policy, "delay", policy)
    delay: float | None = ask(attempt, random)
    return delay


def _layers(policy: Retry) -> Iterator[Any]:
    """The limits from the outside in, and the policy within them last."""
    while isinstance(policy, Limit):
        yield policy
        policy = policy.policy
    yield policy


def _check_policy(limit: Limit) -> None:
    policy = limit.policy
    if isinstance(policy, type) or not callable(getattr(policy, "delay", policy)):
        raise ValueError(
            f"{type(limit).__name__}({policy!r}): give a retry policy with its parentheses, for "
            f"example {type(limit).__name__}(FullJitter(), …), or a function."
        )


def _check(limit: Limit, name: str) -> None:
    value = getattr(limit, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ValueError(f"{type(limit).__name__}({name}={value!r}): a number, 0 or more.")
