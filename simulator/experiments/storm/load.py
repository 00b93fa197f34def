"""What a storm did: to the provider, to those who waited, and to the money."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Counts", "Load"]


class Counts:
    """Tallies of a run while it goes on; the keys are rows of `Load.series`, counted from 0."""

    def __init__(self) -> None:
        self.calls: Counter[int] = Counter()
        self.goodput: Counter[int] = Counter()
        self.rejected: Counter[int] = Counter()
        self.queue: Counter[int] = Counter()  # changes of its length


@dataclass(frozen=True)
class Load:
    """The result of `storm`.

    Attributes:
        asked: refunds that somebody wanted.
        answered: of these, those whose client got the answer.
        gave_up: of these, those whose client stopped trying.
        waiting: of these, those still tried when the run ended.
        calls: sends in all; a send that is lost on the way counts, one that is forbidden does not.
        paid: refunds that the provider paid at least once.
        double_refunds: refunds that it paid more than once.
        overpaid: payments beyond the first, in all.
        time_to_drain: seconds from the end of the last outage (from 0 without one) until nobody
            waited any more; inf if the run ended first.
        slowest: seconds the slowest answered client waited, from wish to answer; 0 if none.
        mean_wait: seconds an answered request waited for a free server (mean).
        abandoned: requests that were worked on for a client who had stopped waiting.
        horizon: seconds of the run, in virtual time.
        outage: when the first outage began, seconds (0 without one).
        after: when the last outage ended, seconds (0 without one).
        resolution: seconds of one row of `series`.
        latencies: seconds from wish to answer, of every answered refund, in the order of answers.
        counts: the raw tallies behind `series`.
    """

    asked: int
    answered: int
    gave_up: int
    calls: int
    paid: int
    double_refunds: int
    overpaid: int
    time_to_drain: float
    mean_wait: float
    abandoned: int
    horizon: float
    outage: float
    after: float
    resolution: float
    latencies: list[float]
    counts: Counts

    @property
    def waiting(self) -> int:
        """Refunds that were neither answered nor given up when the run ended."""
        return self.asked - self.answered - self.gave_up

    @property
    def calls_per_refund(self) -> float:
        """Calls for each answered refund; inf if none was answered."""
        return self.calls / self.answered if self.answered else inf

    @property
    def slowest(self) -> float:
        """Seconds the slowest answered client waited."""
        return max(self.latencies, default=0.0)

    @property
    def double_refund_rate(self) -> float:
        """The share of the paid refunds that were paid more than once; 0 if none was paid."""
        return self.double_refunds / self.paid if self.paid else 0.0

    @property
    def peak(self) -> float:
        """The most calls a second, in one row of `series`, after the last outage ended."""
        first = int(self.after / self.resolution)
        calls = self.counts.calls
        return max((n for at, n in calls.items() if at >= first), default=0) / self.resolution

    @cached_property
    def series(self) -> DataFrame:
        """Over time: index `time` (seconds, start of the row).

        Columns `calls`, `goodput` (answers to clients who still waited) and `rejected` (definite
        noes), each a second; `queue`, the requests that wait at the end of the row.
        """
        from pandas import DataFrame, Index

        rows = max(1, -int(-self.horizon // self.resolution))
        times = Index([at * self.resolution for at in range(rows)], name="time")
        counts = self.counts
        columns: dict[str, list[float]] = {
            name: [tally[at] / self.resolution for at in range(rows)]
            for name, tally in (
                ("calls", counts.calls),
                ("goodput", counts.goodput),
                ("rejected", counts.rejected),
            )
        }
        waiting, queue = 0, []
        for at in range(rows):
            waiting += counts.queue[at]
            queue.append(float(waiting))
        return DataFrame({**columns, "queue": queue}, index=times)

    def __str__(self) -> str:
        """The run in one paragraph."""
        drain = (
            f"drained {self.time_to_drain:.0f} s after the outage"
            if isfinite(self.time_to_drain)
            else f"{self.waiting} still waiting after {self.horizon:.0f} s"
        )
        return (
            f"{self.answered} of {self.asked} refunds answered, {self.gave_up} given up, {drain}; "
            f"{self.calls} calls ({self.calls_per_refund:.1f} a refund), peak {self.peak:.0f}/s, "
            f"slowest {self.slowest:.0f} s; paid more than once: {self.double_refunds}."
        )
