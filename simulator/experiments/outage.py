"""After an outage: the same fleet, the same outage, eight ways to retry.

The fleet of the lecture: 1,000 clients want a refund within a second, while the provider is down
for ten seconds; it then does 125 refunds a second, clients wait one second for an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.experiments.jobs import Row, run_jobs
from simulator.experiments.statistics import mean_interval
from simulator.experiments.storm import Load, Provider, storm
from simulator.service.retry import (
    Decorrelated,
    EqualJitter,
    Exponential,
    Fixed,
    FullJitter,
    Immediate,
    LessonFormula,
    NoRetry,
    Retry,
)

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["METRICS", "at_the_cap", "policies", "storms", "summary"]

METRICS = (
    "answered",
    "gave_up",
    "waiting",
    "calls",
    "calls_per_refund",
    "peak",
    "time_to_drain",
    "slowest",
    "paid",
    "double_refunds",
    "double_refund_rate",
)


def policies(
    base: float = 1.0, cap: float = 30.0, max_attempts: int | None = 12
) -> dict[str, Retry]:
    """The eight ways to retry, by name, with the same base, cap (seconds) and attempt limit."""
    return {
        "none": NoRetry(),
        "immediate": Immediate(max_attempts),
        "fixed": Fixed(base, max_attempts),
        "exponential": Exponential(base, cap, max_attempts),
        "lesson": LessonFormula(base, cap, max_attempts),
        "equal": EqualJitter(base, cap, max_attempts),
        "full": FullJitter(base, cap, max_attempts),
        "decorrelated": Decorrelated(base, cap, max_attempts),
    }


def storms(
    retries: Mapping[str, Retry | Sequence[Retry]],
    *,
    clients: int = 1_000,
    seeds: Iterable[int] = range(1, 11),
    n_jobs: int = 1,
    keep: str | Path | None = None,
    progress: bool = False,
    **settings: Any,
) -> DataFrame:
    """A storm for every policy and every seed, the same luck for every policy.

    Args:
        retries: policies by name.
        clients: how many want a refund.
        seeds: one run each.
        n_jobs: processes; -1 = all cores.
        keep: a folder for results; what it has is not run again.
        progress: show a bar on stderr.
        **settings: for `storm`.

    Returns:
        One row per policy and seed: `policy, seed`, and the numbers of `Load` in `METRICS`.
    """
    from pandas import DataFrame

    jobs = [
        {"policy": name, "clients": clients, "retry": retry, "seed": seed, "settings": settings}
        for seed in seeds
        for name, retry in retries.items()
    ]
    rows = run_jobs(_storm, jobs, n_jobs=n_jobs, keep=keep, progress=progress, label="storms")
    return DataFrame([row for job in rows for row in job])


def _storm(
    policy: str,
    clients: int,
    retry: Retry | Sequence[Retry],
    seed: int,
    settings: Mapping[str, Any],
) -> list[Row]:
    load = storm(clients, retry, seed=seed, **settings)
    return [{"policy": policy, "seed": seed} | {name: getattr(load, name) for name in METRICS}]


def summary(frame: DataFrame) -> DataFrame:
    """Means over the seeds: one row per policy and metric, with a 95 % interval (Student's t).

    Columns `policy, metric, mean, low, high, n`. A policy that sometimes never drained has an
    infinite mean, and no interval.
    """
    from pandas import DataFrame

    rows = []
    for policy, runs in frame.groupby("policy", sort=False):
        for metric in METRICS:
            found = mean_interval(runs[metric].tolist())
            rows.append(
                {
                    "policy": policy,
                    "metric": metric,
                    "mean": found.mean,
                    "low": found.low,
                    "high": found.high,
                    "n": found.n,
                }
            )
    return DataFrame(rows)


def at_the_cap(
    retry: Retry,
    *,
    clients: int = 1_000,
    outage: float = 300.0,
    capacity: float = 125.0,
    seed: int = 1,
    **settings: Any,
) -> Load:
    """A fleet that has backed off to the cap when the provider comes back (case B14).

    Without a limit on attempts in `retry`, after 300 s every client with base 1 s and cap 30 s
    waits 30 s (at most), and what remains of the jitter decides how they return.
    """
    return storm(
        clients,
        retry,
        provider=Provider(service=1.0 / capacity),
        outages=((0.0, outage),),
        horizon=outage + 600.0,
        seed=seed,
        **settings,
    )
