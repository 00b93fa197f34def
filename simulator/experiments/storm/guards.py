"""What may forbid a retry, or even a first send: token buckets and circuit breakers.

A guard is shared by the clients of one process, and remembers what they lived through. The
storm asks `may_send` before the first send of a refund and `may_retry` before every other, and
tells it how each send ended. A refund that is forbidden a send gives up. `Guard` itself forbids
nothing. Times are seconds; a failure is SILENCE, REJECTED, LIMITED or FAILED.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from simulator.experiments.storm.provider import SILENCE
from simulator.service.retry_limits import give_back, spend

__all__ = [
    "BotocoreBudget",
    "CircuitBreaker",
    "Guard",
    "GuardFactory",
    "RetryBreaker",
    "TokenBucket",
]


class Guard:
    """Forbids nothing, remembers nothing."""

    def may_send(self, now: float) -> bool:
        """Whether a new refund may be sent at all."""
        return True

    def may_retry(self, now: float, failure: str) -> bool:
        """Whether a refund whose last send ended in `failure` may be sent again."""
        return True

    def succeeded(self, now: float, failure: str | None) -> None:
        """A refund was answered; `failure`: how its send before that ended, None if it had none."""

    def failed(self, now: float) -> None:
        """A send was refused, or not answered in time."""


GuardFactory = Callable[[], Guard]


class TokenBucket(Guard):
    """Every new refund brings `fill` tokens, every retry takes one: load at most 1 + `fill`.

    In the long run, that is: the bucket starts full, with `size` tokens, and a retry needs more
    than one token, as in mbrooker/simulator_example (table B: fill 0.1, size 5).
    """

    def __init__(self, fill: float = 0.1, size: float = 5.0) -> None:
        self.fill, self.size, self.tokens = fill, size, size

    def may_send(self, now: float) -> bool:
        """Always; and the bucket fills."""
        self.tokens = min(self.size, self.tokens + self.fill)
        return True

    def may_retry(self, now: float, failure: str) -> bool:
        """While there are tokens."""
        if self.tokens <= 1.0:
            return False
        self.tokens -= 1.0
        return True


class BotocoreBudget(Guard):
    """The retry quota of botocore: a retry costs, a success gives back.

    Defaults are those of 1.44.0 (10 November 2026) for transient errors: a bucket of 500, 14 a
    retry. Before, a retry cost 5, after a timeout 10: `BotocoreBudget(cost=5, timeout_cost=10)`.
    An empty bucket is reached after size // cost retries: 35 now, 100 or 50 before (derived).
    """

    def __init__(self, size: int = 500, cost: int = 14, timeout_cost: int | None = None) -> None:
        self.size, self.tokens = size, float(size)
        self.cost, self.timeout_cost = cost, cost if timeout_cost is None else timeout_cost

    def price(self, failure: str) -> int:
        """What a retry after this failure costs."""
        return self.timeout_cost if failure == SILENCE else self.cost

    def may_retry(self, now: float, failure: str) -> bool:
        """While the bucket can pay for it."""
        left = spend(self.tokens, self.price(failure))
        if left is None:
            return False
        self.tokens = left
        return True

    def succeeded(self, now: float, failure: str | None) -> None:
        """Gives back what this refund's last retry cost, or 1 if there was none."""
        cost = 0 if failure is None else self.price(failure)
        self.tokens = give_back(self.tokens, self.size, cost, gain=1)


class RetryBreaker(Guard):
    """No retries while failures are more than `rate` of all refunds so far.

    mbrooker/simulator_example's breaker (table B: 10 %): it never stops a first send, and never
    forgets.
    """

    def __init__(self, rate: float = 0.1) -> None:
        self.rate, self.refunds, self.failures = rate, 0, 0

    def may_send(self, now: float) -> bool:
        """Always; and one more refund is counted."""
        self.refunds += 1
        return True

    def failed(self, now: float) -> None:
        """Counts."""
        self.failures += 1

    def may_retry(self, now: float, failure: str) -> bool:
        """While few have failed."""
        return self.failures <= self.rate * self.refunds


class CircuitBreaker(Guard):
    """Open after too many failures in a window: then nothing is sent, first sends included.

    After `pause` seconds one probe is let through; if it is answered, the breaker closes, else
    it stays open for another `pause`.

    Args:
        rate: the share of failures among the last `window` sends that opens it.
        window: how many sends it looks back.
        pause: seconds it stays open before a probe.
    """

    def __init__(self, rate: float = 0.5, window: int = 20, pause: float = 5.0) -> None:
        self.rate, self.pause = rate, pause
        self.recent: deque[bool] = deque(maxlen=window)
        self.opened = -pause  # when it last opened, or let a probe through
        self.is_open = False

    def may_send(self, now: float) -> bool:
        """While closed, or as the probe."""
        if not self.is_open:
            return True
        if now < self.opened + self.pause:
            return False
        self.opened = now  # this one is the probe; the next is let through a pause later
        return True

    def may_retry(self, now: float, failure: str) -> bool:
        """A retry is a send like any other."""
        return self.may_send(now)

    def succeeded(self, now: float, failure: str | None) -> None:
        """An answer closes it."""
        if self.is_open:
            self.is_open = False
            self.recent.clear()
        self.recent.append(False)

    def failed(self, now: float) -> None:
        """Enough failures open it."""
        self.recent.append(True)
        full = len(self.recent) == self.recent.maxlen
        if not self.is_open and full and sum(self.recent) >= self.rate * len(self.recent):
            self.is_open, self.opened = True, now
