"""How long to wait before sending again: the one place where delays are computed.

A policy is a small frozen dataclass with one method::

    delay(attempt, random) -> seconds before the retry that follows failed attempt
                              `attempt` (0 = the first send failed), None = give up

`max_attempts` counts sends in all, the first included; None means without limit.
The service, the storm and the lessons all ask here, so that a delay is the same
number everywhere. Randomness is handed in, never global: whoever calls decides
whose luck it is.

Names and formulas: M. Brooker, "Exponential Backoff and Jitter", AWS Architecture
Blog, 2015, and aws-samples/aws-arch-backoff-simulator. Every delay is finite and
0 <= delay <= cap for attempts 0 to 10^6 (cases B14, B37).
"""

# The published function at the end returns what `min` of untyped powers returns.
# mypy: disable-error-code="no-any-return"
# It has no docstring either, and stays as it was printed.
# ruff: noqa: D103

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from simulator.service.checks import fits_its_types, needs

__all__ = [
    "Decorrelated",
    "EqualJitter",
    "Exponential",
    "Fixed",
    "FullJitter",
    "Immediate",
    "LessonFormula",
    "NoRetry",
    "Random01",
    "Retry",
    "RetryPolicy",
    "bounded_wait",
    "calculate_retry_delay",
    "ceiling",
    "next_delay",
]

LARGEST_POWER = 1023  # 2.0 ** 1023 is the largest power of two that a float can hold
LONGEST_CAP = 1e300  # seconds; above it, 3 * cap would no longer be a finite float
ATTEMPTS = "sends in all, the first included: a whole number, 1 or more, or None for no limit"
CHAIN_STEPS = 500  # at 1.10 times a step, 500 steps span 20 decades: the chain has settled


class Random01(Protocol):
    """A source of luck. `random.Random` is one."""

    def random(self) -> float:
        """A number in [0, 1)."""
        ...

    def uniform(self, a: float, b: float, /) -> float:
        """A number between `a` and `b`."""
        ...


class RetryPolicy(Protocol):
    """What the service and the storm ask: wait how long, or give up?"""

    def delay(self, attempt: int, random: Random01, /) -> float | None:
        """Seconds before the retry that follows failed attempt `attempt`; None = give up."""
        ...


Retry = RetryPolicy | Callable[[int, Random01], float | None]
"""A policy, or a function that says the same."""


def ceiling(attempt: int, base: float, cap: float) -> float:
    """min(cap, base * 2**attempt) in seconds, for any attempt from 0 up.

    The exponent is clamped before the power is taken: with a float base, `base * 2**1024`
    raises OverflowError, and the loop that should outlast a long outage dies of it (case B37).
    """
    return min(cap, base * 2.0 ** min(attempt, LARGEST_POWER))


def allowed(attempt: int, max_attempts: int | None) -> bool:
    """Whether one more send is allowed after attempt `attempt` failed."""
    if attempt < 0:
        raise ValueError(f"attempt is {attempt}; attempts are counted from 0, the first send.")
    return max_attempts is None or attempt + 1 < max_attempts


def _check(policy: Any, *seconds: str) -> None:
    """Refuses times below 0, and a limit that does not even allow the first send."""
    fits_its_types(policy)
    for name in seconds:
        fits = 0 <= getattr(policy, name) <= LONGEST_CAP
        needs(policy, name, fits, "seconds, 0 or more")
    limit = policy.max_attempts
    needs(policy, "max_attempts", limit is None or limit >= 1, ATTEMPTS)


@dataclass(frozen=True)
class NoRetry:
    """One send, whatever happens."""

    def delay(self, attempt: int, random: Random01) -> float | None:
        """Always None: give up."""
        allowed(attempt, 1)
        return None


@dataclass(frozen=True)
class Immediate:
    """Again at once: what a loop does when nobody thought about waiting."""

    max_attempts: int | None = 3

    def __post_init__(self) -> None:
        _check(self)

    def delay(self, attempt: int, random: Random01) -> float | None:
        """0 seconds, or None after the last attempt."""
        return 0.0 if allowed(attempt, self.max_attempts) else None


@dataclass(frozen=True)
class Fixed:
    """The same pause every time, `seconds` long."""

    seconds: float = 1.0
    max_attempts: int | None = 12

    def __post_init__(self) -> None:
        _check(self, "seconds")

    def delay(self, attempt: int, random: Random01) -> float | None:
        """`seconds`, or None after the last attempt."""
        return self.seconds if allowed(attempt, self.max_attempts) else None


@dataclass(frozen=True)
class Exponential:
    """min(cap, base * 2**attempt), without luck: those who fail together return together.

    Attributes:
        base: the first delay's ceiling, seconds.
        cap: the longest delay, seconds.
        max_attempts: sends in all, the first included; None = no limit.
    """

    base: float = 1.0
    cap: float = 30.0
    max_attempts: int | None = 12

    def __post_init__(self) -> None:
        _check(self, "base", "cap")

    def ceiling(self, attempt: int) -> float:
        """The longest this delay may be before jitter, seconds."""
        return ceiling(attempt, self.base, self.cap)

    def delay(self, attempt: int, random: Random01) -> float | None:
        """Seconds, or None after the last attempt."""
        if not allowed(attempt, self.max_attempts):
            return None
        return self.spread(self.ceiling(attempt), random)

    def spread(self, ceiling: float, random: Random01) -> float:
        """Where below the ceiling to land: here, on it."""
        return ceiling


@dataclass(frozen=True)
class FullJitter(Exponential):
    """U(0, ceiling): clients that failed together spread over the whole window."""

    def spread(self, ceiling: float, random: Random01) -> float:
        """Anywhere below the ceiling."""
        return random.uniform(0.0, ceiling)


@dataclass(frozen=True)
class EqualJitter(Exponential):
    """ceiling / 2 + U(0, ceiling / 2): at least half the wait, the rest by luck."""

    def spread(self, ceiling: float, random: Random01) -> float:
        """Anywhere in the upper half."""
        return ceiling / 2 + random.uniform(0.0, ceiling / 2)


@dataclass(frozen=True)
class Decorrelated(Exponential):
    """min(cap, U(base, 3 * previous)), `previous` starting at `base`, one chain a client.

    It grows only 3/e = 1.10 times a step in the typical case (cortexproject/cortex issue
    638), and at the cap two draws of three are cut off to the cap itself: its jitter is
    alive there, but thin.
    """

    def delay(self, attempt: int, random: Random01) -> float | None:
        """Seconds, or None after the last attempt.

        The policy itself remembers nothing, so the client's chain is walked anew: the same
        distribution for every single delay, at the price of `attempt` draws. Whoever
        remembers the last delay calls `after`, as `next_delay` does.
        """
        if not allowed(attempt, self.max_attempts):
            return None
        previous = self.base
        for _ in range(min(attempt + 1, CHAIN_STEPS)):
            previous = self.after(previous, random)
        return previous

    def after(self, previous: float, random: Random01) -> float:
        """One step of the chain: the delay that follows a delay of `previous` seconds."""
        return min(self.cap, random.uniform(self.base, max(self.base, 3 * previous)))


@dataclass(frozen=True)
class LessonFormula(Exponential):
    """min(cap, ceiling + U(0, 0.2 * ceiling)): section 11 of the lesson, with luck handed in.

    Kept with its faults, because lessons measure them: it is labelled full jitter but spreads
    over a sixth of the wait only, and **at the cap the jitter is gone**: `min(cap, cap + ...)`
    is `cap`, and a fleet that has backed off returns in one beat (case B14).

    One fault is a switch: with `clamped=False` attempt 1024 raises OverflowError like the
    published function, and the retry loop dies in a long outage (case B37). The default is
    clamped, so that a storm shows the beat and not the crash.
    """

    clamped: bool = True

    def ceiling(self, attempt: int) -> float:
        """As `Exponential`, or as published: the power first, the cap after it."""
        if self.clamped:
            return super().ceiling(attempt)
        return float(min(self.cap, self.base * (2**attempt)))

    def spread(self, ceiling: float, random: Random01) -> float:
        """A fifth of jitter on top, and then the cap cuts it off."""
        return min(self.cap, ceiling + random.uniform(0, ceiling * 0.2))


def bounded_wait(own: float, header: float | None, bound: float) -> float:
    """max(own, min(header, bound)), in seconds; `own` if there is no header.

    Never earlier than the provider asked, as far as the bound; never held for ever by a header
    (case B77: a `Retry-After` that is ignored, or obeyed literally).
    """
    return own if header is None else max(own, min(header, bound))


def next_delay(
    policy: Retry,
    attempt: int,
    random: Random01,
    *,
    previous: float | None = None,
    retry_after: float | None = None,
    longest_retry_after: float = math.inf,
    elapsed: float = 0.0,
    deadline: float = math.inf,
) -> float | None:
    """What a client really does after attempt `attempt` failed: wait so long, or give up.

    Args:
        policy: the backoff, or a function (attempt, random) -> seconds or None.
        attempt: which send failed, counted from 0.
        random: the client's luck.
        previous: the client's last delay in seconds, which only `Decorrelated` needs.
        retry_after: what the provider asked for, seconds; None if it did not.
        longest_retry_after: the longest such wish that is honoured, seconds.
        elapsed: seconds since the first send.
        deadline: seconds after the first send when nobody needs the answer any more.

    Returns:
        Seconds, or None. The delay is max(own, min(retry_after, longest_retry_after)): never
        earlier than the provider asked, never held for ever by a header (case B77). A retry
        that would be sent after the deadline is not sent.
    """
    if isinstance(policy, Decorrelated) and allowed(attempt, policy.max_attempts):
        delay: float | None = policy.after(policy.base if previous is None else previous, random)
    else:
        ask: Any = getattr(policy, "delay", policy)
        delay = ask(attempt, random)
    if delay is None:
        return None
    delay = bounded_wait(delay, retry_after, longest_retry_after)
    return None if elapsed + delay > deadline else delay


# The function below is the lesson's, section 11, letter for letter, with its mistakes: it is
# not full jitter, its jitter is gone at the cap, and attempt 1024 raises OverflowError.
# fmt: off
def calculate_retry_delay(
    attempt: int, base_delay: float = 1.0, max_delay: float = 30.0
) -> float:
    # 2^attempt (1s, 2s, 4s, 8s, 16s...)
    exponential_delay = min(max_delay, base_delay * (2 ** attempt))

    # Full Jitter: randomize within the window
    jitter = random.uniform(0, exponential_delay * 0.2)

    return min(max_delay, exponential_delay + jitter)
# fmt: on
