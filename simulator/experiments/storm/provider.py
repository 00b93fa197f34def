"""A payment provider with a capacity: servers, a queue, outages, a rate limit.

The queue is first come, first served, so everything about a request is known the moment it
arrives: it starts when the first server is free, and ends a service time later (Kiefer and
Wolfowitz, 1955). The provider therefore needs no events of its own: it answers *when* the
answer will leave, and the client waits for that. One event a call instead of four.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from math import inf
from typing import Literal

from simulator.experiments.storm.luck import Luck

__all__ = ["FAILED", "LIMITED", "PAID", "REJECTED", "SILENCE", "Desk", "Provider", "Refund"]

# How a call ends for the client. Only SILENCE leaves it in doubt; the others are definite.
PAID, REJECTED, LIMITED, FAILED, SILENCE = "paid", "rejected", "limited", "failed", "silence"


@dataclass(frozen=True)
class Provider:
    """What the provider is like. Its capacity is `servers / service` refunds a second.

    Attributes:
        servers: how many requests it works on at the same time; None = any number.
        service: seconds of work a request needs (mean).
        law: "constant" or "exponential" service times.
        slowdown: seconds each request needs longer for every request that is being worked on,
            itself included (only without a limit on servers): what coordination costs.
        queue_limit: how many requests may wait; one more is rejected at once. None = any number.
        sheds: whether a request whose client has stopped waiting is dropped when its turn comes.
            False is how most servers are: they work on it, for nobody.
        outage: what happens to requests in an outage. "lost": nothing is heard of them, nor of
            those in the house when it begins. "refused": they are refused at once, and those in
            the house are lost. "frozen": nothing is lost; all wait until it is over.
        rate_limit: requests a second it lets in, in bursts of one second's worth; None = no limit.
        retry_after: seconds to wait that it asks for at the rate limit; None = it does not say.
        failure_rate: the probability that it refuses a request at the door, without any work.
        latency: seconds a call takes at least, there and back.
        key_lifetime: how long it remembers an idempotency key, seconds (Stripe v1: at least 24 h).
    """

    servers: int | None = 1
    service: float = 0.008
    law: Literal["constant", "exponential"] = "constant"
    slowdown: float = 0.0
    queue_limit: int | None = None
    sheds: bool = False
    outage: Literal["lost", "refused", "frozen"] = "lost"
    rate_limit: float | None = None
    retry_after: float | None = None
    failure_rate: float = 0.0
    latency: float = 0.001
    key_lifetime: float = 86_400.0

    def __post_init__(self) -> None:
        if self.servers is not None and self.servers < 1:
            raise ValueError(
                f"servers is {self.servers}; a provider has at least 1, or None for any number."
            )
        if self.servers is not None and self.slowdown:
            raise ValueError(
                "slowdown is for a provider with any number of servers: set servers=None."
            )
        if self.outage not in ("lost", "refused", "frozen"):
            raise ValueError(
                f"outage is {self.outage!r}; it must be 'lost', 'refused' or 'frozen'."
            )
        if self.law not in ("constant", "exponential"):
            raise ValueError(f"law is {self.law!r}; it must be 'constant' or 'exponential'.")
        if not self.service >= 0 or not self.slowdown >= 0:
            raise ValueError("service and slowdown are seconds of work; they must be 0 or more.")
        if not self.latency > 0:
            raise ValueError(
                f"latency is {self.latency}; it must be above 0 seconds, or a client that is "
                "refused at once and retries at once would do so for ever in one instant."
            )
        if not 0 <= self.failure_rate <= 1:
            raise ValueError(f"failure_rate is {self.failure_rate}; it is a probability.")

    @property
    def capacity(self) -> float:
        """Refunds a second it can do, at most."""
        return self.servers / self.service if self.servers and self.service else inf


class Refund:
    """One refund that somebody waits for, and what the provider did about it."""

    __slots__ = (
        "asked",
        "attempts",
        "delays",
        "effects",
        "failure",
        "late",
        "luck",
        "number",
        "recorded",
        "sends",
    )

    def __init__(self, number: int, asked: float, luck: Luck, layers: int = 1) -> None:
        self.number = number
        self.asked = asked
        self.luck = luck
        self.sends = 0
        self.attempts = [0] * layers  # that failed, in each layer of retries
        self.delays: list[float | None] = [None] * layers  # the last one, in each layer
        self.effects = 0  # how often money moved
        self.recorded = -inf  # when the provider recorded the key
        self.failure: str | None = None  # how its last send failed, once one did
        self.late = inf  # when the first answer to an abandoned send will come


class Desk:
    """The provider at work in one run."""

    def __init__(
        self, provider: Provider, outages: Iterable[tuple[float, float]], key: bool
    ) -> None:
        self.provider = provider
        self.key = key
        self.outages = deque(sorted(outages))
        self.free = [0.0] * (provider.servers or 0)  # when each server is free: a heap
        self.ends: list[float] = []  # of the work in progress, without a limit on servers: a heap
        self.starts: deque[float] = deque()  # of the requests that wait, in order
        self.tokens = provider.rate_limit or 0.0
        self.refilled = 0.0
        self.waits = 0.0  # seconds that served requests waited for a server, together
        self.work = 0.0  # seconds of work done
        self.served = 0
        self.abandoned = 0  # served when nobody was waiting any more
        self.paid = self.doubles = self.overpaid = (
            0  # refunds; refunds paid twice; payments too many
        )

    def receive(
        self, now: float, refund: Refund, luck: Luck, patience: float
    ) -> tuple[str, float, float]:
        """A request arrives at `now`; its client waits until `patience`.

        Returns:
            How it ends, when the answer leaves (inf: never), and when its turn comes (for the
            length of the queue; `now` if it never waits).
        """
        provider = self.provider
        if self.is_down(now):
            return (REJECTED, now, now) if provider.outage == "refused" else (SILENCE, inf, now)
        if provider.failure_rate and luck.random() < provider.failure_rate:
            return FAILED, now, now
        if provider.rate_limit is not None and not self.lets_in(now):
            return LIMITED, now, now
        if provider.queue_limit is not None and self.waiting(now) >= provider.queue_limit:
            return REJECTED, now, now
        start = max(now, self.free[0]) if self.free else now
        frozen = provider.outage == "frozen"
        if frozen:
            start = self.thawed(start)
        if provider.queue_limit is not None and start > now:
            self.starts.append(start)
        if provider.sheds and start > patience:
            return SILENCE, inf, start
        work = self.work_for(start, luck)
        end = self.thawed(start, work) if frozen else start + work
        if self.free:
            heapreplace(self.free, end)
        if self.outages and not frozen and end > self.outages[0][0]:
            return SILENCE, inf, start  # it was still in the house when the house went down
        self.served += 1
        self.abandoned += end > patience
        self.waits += start - now
        self.work += work
        self.pay(end, refund)
        return PAID, end, start

    def is_down(self, now: float) -> bool:
        """Whether requests go nowhere now; after an outage, all servers are idle."""
        if self.provider.outage == "frozen":
            return False
        while self.outages and now >= self.outages[0][1]:
            over = self.outages.popleft()[1]
            self.free = [over] * len(self.free)
            self.ends.clear()
            self.starts.clear()
        return bool(self.outages) and now >= self.outages[0][0]

    def thawed(self, start: float, work: float = 0.0) -> float:
        """When work that could start at `start` is done, if nothing is done during outages."""
        for begin, over in self.outages:
            if start < begin:
                if start + work <= begin:
                    break
                work += over - begin  # what is under way stops, and goes on afterwards
            elif start < over:
                start = over
        return start + work

    def lets_in(self, now: float) -> bool:
        """The rate limit: a bucket of one second's worth of requests."""
        rate = self.provider.rate_limit or 0.0
        self.tokens = min(max(1.0, rate), self.tokens + (now - self.refilled) * rate)
        self.refilled = now
        if self.tokens < 1.0:
            return False
        self.tokens -= 1.0
        return True

    def waiting(self, now: float) -> int:
        """How many wait for a server."""
        while self.starts and self.starts[0] <= now:
            self.starts.popleft()
        return len(self.starts)

    def work_for(self, start: float, luck: Luck) -> float:
        """Seconds of work of a request that starts now."""
        provider = self.provider
        work = provider.service
        if provider.law == "exponential":
            work = luck.exponential(work)
        if provider.slowdown:
            while self.ends and self.ends[0] <= start:
                heappop(self.ends)
            work += provider.slowdown * (len(self.ends) + 1)
            heappush(self.ends, start + work)
        return work

    def pay(self, now: float, refund: Refund) -> None:
        """Money moves, unless a key says that it has."""
        if self.key and now - refund.recorded <= self.provider.key_lifetime:
            return
        refund.effects += 1
        refund.recorded = now
        self.paid += refund.effects == 1
        self.doubles += refund.effects == 2
        self.overpaid += refund.effects > 1
