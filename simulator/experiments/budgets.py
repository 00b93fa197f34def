"""Table B: what budgets and breakers do to success and load when a provider fails at random.

mbrooker/simulator_example, retry_sim (brooker.co.za, 28 February 2022): 100 clients, each with
Poisson traffic of 10 requests a second for 10 s, a provider without limits that refuses each
request with the same probability; no backoff.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from simulator.experiments.jobs import Row, run_jobs
from simulator.experiments.statistics import mean_interval
from simulator.experiments.storm import Guard, Provider, RetryBreaker, TokenBucket, storm
from simulator.experiments.storm.guards import GuardFactory
from simulator.service.retry import Immediate, NoRetry, Retry

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["RULES", "budgets", "table_b"]

RULES: Mapping[str, tuple[Retry, GuardFactory]] = {
    "none": (NoRetry(), Guard),
    "3 retries": (Immediate(max_attempts=4), Guard),
    "token bucket": (Immediate(max_attempts=None), TokenBucket),
    "breaker": (Immediate(max_attempts=4), RetryBreaker),
}


def table_b(rule: str, failure_rate: float, seed: int = 1) -> tuple[float, float]:
    """One run: the share of refunds that succeed, and sends per refund.

    Args:
        rule: a key of `RULES`.
        failure_rate: the probability that a send is refused.
        seed: of all luck.
    """
    retry, guard = RULES[rule]
    load = storm(
        10_000,
        retry,
        provider=Provider(servers=None, service=0.0, failure_rate=failure_rate, latency=0.02),
        outages=(),
        arrivals=1_000.0,
        guard=guard,
        guards=100,
        seed=seed,
    )
    return load.answered / load.asked, load.calls / load.asked


def budgets(
    failure_rates: Sequence[float] = (0.05, 0.1, 0.2, 0.3, 0.5),
    *,
    seeds: Sequence[int] = range(1, 6),
    n_jobs: int = 1,
) -> DataFrame:
    """Table B: one row per rule, failure rate and metric (`success`, a share; `load`).

    Columns `rule, failure_rate, metric, mean, se, low, high`: means over the seeds, with a 95 %
    interval (Student's t).
    """
    from pandas import DataFrame

    cells = [(rule, rate) for rule in RULES for rate in failure_rates]
    jobs = [{"rule": rule, "failure_rate": rate, "seeds": list(seeds)} for rule, rate in cells]
    rows = run_jobs(_cell, jobs, n_jobs=n_jobs)
    return DataFrame([row for cell in rows for row in cell])


def _cell(rule: str, failure_rate: float, seeds: list[int]) -> list[Row]:
    runs = [table_b(rule, failure_rate, seed) for seed in seeds]
    rows = []
    for metric, values in zip(("success", "load"), zip(*runs, strict=True), strict=True):
        found = mean_interval(values)
        rows.append(
            {
                "rule": rule,
                "failure_rate": failure_rate,
                "metric": metric,
                "mean": found.mean,
                "se": found.se,
                "low": found.low,
                "high": found.high,
            }
        )
    return rows
