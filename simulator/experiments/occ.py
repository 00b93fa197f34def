"""Optimistic concurrency: many clients change one row, and wait longer each time they lose.

The model behind "Exponential Backoff and Jitter" (M. Brooker, AWS Architecture Blog, 2015;
aws-samples/aws-arch-backoff-simulator): a client reads the row's version, then writes; the write
succeeds if the version is still the same, else it waits and reads again. Each of the four legs
of the network takes |Normal(10, 2)| ms. Added here: a seed, and a server that can be busy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import TYPE_CHECKING

import simpy

from simulator.experiments.statistics import mean_interval
from simulator.experiments.storm.fleet import Step
from simulator.service.retry import (
    Decorrelated,
    EqualJitter,
    Exponential,
    FullJitter,
    Immediate,
    RetryPolicy,
    next_delay,
)

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["POLICIES", "Race", "compare", "race"]

BASE, CAP = 0.005, 2.0  # seconds
LEG_MEAN, LEG_SD = 0.010, 0.002  # seconds, of one leg of the network

POLICIES: Mapping[str, RetryPolicy] = {
    "none": Immediate(None),
    "exponential": Exponential(BASE, CAP, None),
    "full": FullJitter(BASE, CAP, None),
    "equal": EqualJitter(BASE, CAP, None),
    "decorrelated": Decorrelated(BASE, CAP, None),
}


@dataclass(frozen=True)
class Race:
    """One race for the row.

    Attributes:
        calls: writes that reached the server, the successful ones included.
        seconds: until the last client knew that it had succeeded.
    """

    calls: int
    seconds: float


def race(clients: int, retry: RetryPolicy, *, service: float = 0.0, seed: int = 1) -> Race:
    """`clients` start together, and each changes the row once.

    Args:
        clients: how many.
        retry: the backoff of each. The original counts the first failure as attempt 1, so the
            first ceiling is 2 * base.
        service: seconds the server is busy with each read and each write, one at a time, first
            come first served; 0 = it has no limit, as in the original.
        seed: of all luck; every client has a stream of its own.
    """
    run = _Race(retry, service)
    for number in range(clients):
        run.env.process(run.client(Random(seed * 1_000_003 + number)))
    run.env.run()
    return Race(run.calls, run.last)


class _Race:
    """One row, its version, and the clock. Times are seconds."""

    def __init__(self, retry: RetryPolicy, service: float) -> None:
        self.env = simpy.Environment()
        self.retry, self.service = retry, service
        self.version = self.calls = 0
        self.free = self.last = 0.0

    def client(self, luck: Random) -> Step:
        """Read, write, and if somebody else was faster, wait and begin again."""
        env = self.env
        pause, attempt, delay = 0.0, 0, None
        while True:
            yield env.timeout(pause + leg(luck))
            if self.service:
                yield env.timeout(self.turn())
            version = self.version  # read
            yield env.timeout(leg(luck) + leg(luck))  # the answer comes, the write goes
            if self.service:
                yield env.timeout(self.turn())
            self.calls += 1
            if version == self.version:
                self.version += 1
                self.last = max(self.last, env.now + leg(luck))
                return
            attempt += 1
            delay = next_delay(self.retry, attempt, luck, previous=delay)
            if delay is None:
                return
            pause = leg(luck) + delay

    def turn(self) -> float:
        """Seconds until the server has done this request."""
        self.free = max(self.free, self.env.now) + self.service
        return self.free - self.env.now


def leg(luck: Random) -> float:
    """Seconds of one leg of the network."""
    return abs(luck.gauss(LEG_MEAN, LEG_SD))


def compare(
    clients: Sequence[int],
    policies: Mapping[str, RetryPolicy] = POLICIES,
    *,
    repetitions: int = 100,
    service: float = 0.0,
    seed: int = 1,
    n_jobs: int = 1,
) -> DataFrame:
    """Races of several sizes under several policies.

    Every race of a size has its own seed, the same one for every policy.

    Returns:
        One row per size, policy and metric (`calls`, `seconds`): columns `clients, policy,
        metric, mean, se, low, high, n`; `low` and `high` bound the mean with 95 % confidence
        (Student's t).
    """
    from joblib import Parallel, delayed
    from pandas import DataFrame

    jobs = [(size, name) for size in clients for name in policies]
    races = Parallel(n_jobs=n_jobs)(
        delayed(_races)(size, policies[name], repetitions, service, seed) for size, name in jobs
    )
    rows = []
    for (size, name), done in zip(jobs, races, strict=True):
        for metric in ("calls", "seconds"):
            interval = mean_interval([getattr(one, metric) for one in done])
            rows.append({"clients": size, "policy": name, "metric": metric, **asdict(interval)})
    return DataFrame(rows)


def _races(
    clients: int, retry: RetryPolicy, repetitions: int, service: float, seed: int
) -> list[Race]:
    return [
        race(clients, retry, service=service, seed=seed * 1_000_003 + nth)
        for nth in range(repetitions)
    ]
