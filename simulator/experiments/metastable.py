"""Retries that keep an outage alive: collapse, metastable failure, hysteresis.

The example is that of Bronson, Aghayev, Charapko and Zhu, "Metastable Failures in Distributed
Systems" (HotOS 2021): a database does 300 queries a second; clients wait 1 s and retry once;
below 150/s nothing can lock it up, from 150 to 300/s a trigger can: each query then costs two,
each answer comes too late, and the trigger may be long gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.experiments.jobs import Row, run_jobs
from simulator.experiments.statistics import mean_interval
from simulator.experiments.storm import Load, Provider, Spike, UpAndDown, storm
from simulator.service.retry import FullJitter, Immediate, Retry

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["STATES", "after_trigger", "collapse", "hysteresis", "state_map"]

CAPACITY = 300.0  # queries a second
STATES = ("stable", "vulnerable", "metastable", "overloaded")
START = 10.0  # seconds of quiet before the trigger
ONCE_MORE = Immediate(max_attempts=2)


def after_trigger(
    offered: float,
    trigger: float,
    *,
    retry: Retry = ONCE_MORE,
    settle: float = 40.0,
    watch: float = 10.0,
    seed: int = 1,
) -> Load:
    """Steady traffic, then a freeze of the database, then the traffic goes on.

    Args:
        offered: queries a second that are wanted, a Poisson process.
        trigger: seconds in which the database does nothing; what comes meanwhile waits, as
            behind a network that sends again what it could not deliver.
        retry: of the clients, who wait 1 s.
        settle: seconds after the trigger before anybody judges.
        watch: the seconds that are judged, at the end of the run.
        seed: of all luck.
    """
    horizon = START + trigger + settle + watch
    return storm(
        int(offered * horizon * 1.2) + 100,
        retry,
        provider=Provider(service=1.0 / CAPACITY, outage="frozen"),
        outages=((START, START + trigger),) if trigger else (),
        arrivals=offered,
        horizon=horizon,
        seed=seed,
    )


def state_map(
    offered: Sequence[float] = (50, 100, 130, 160, 190, 220, 250, 280, 310, 340),
    triggers: Sequence[float] = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0),
    *,
    retries: int = 1,
    seed: int = 1,
    n_jobs: int = 1,
    keep: str | Path | None = None,
    progress: bool = False,
) -> DataFrame:
    """Offered load against trigger: who comes back?

    Returns:
        One row per cell: `offered` (queries/s), `trigger` (s), `goodput` (answered in time per
        second, in the last ten seconds), `share` (of what was offered), and `state`: "overloaded"
        (more is wanted than can be done), "metastable" (the trigger is over, and less than half
        is answered in time), "vulnerable" (it came back, but 1 + `retries` times the load would
        not fit), "stable" (even that would fit).
    """
    from pandas import DataFrame

    jobs = [
        {"offered": float(rate), "trigger": float(trigger), "retries": retries, "seed": seed}
        for rate in offered
        for trigger in triggers
    ]
    rows = run_jobs(_cell, jobs, n_jobs=n_jobs, keep=keep, progress=progress, label="cells")
    return DataFrame([row for cell in rows for row in cell])


def _cell(offered: float, trigger: float, retries: int, seed: int) -> list[Row]:
    load = after_trigger(offered, trigger, retry=Immediate(1 + retries), seed=seed)
    goodput = float(load.series["goodput"].iloc[-10:].mean())
    share = goodput / offered
    if offered >= CAPACITY:
        state = "overloaded"
    elif share < 0.5:
        state = "metastable"
    elif offered * (1 + retries) > CAPACITY:
        state = "vulnerable"
    else:
        state = "stable"
    return [
        {"offered": offered, "trigger": trigger, "goodput": goodput, "share": share, "state": state}
    ]


def hysteresis(
    *,
    low: float = 60.0,
    high: float = 360.0,
    steps: int = 10,
    hold: float = 20.0,
    retry: Retry = ONCE_MORE,
    queue_limit: int | None = 1_000,
    seeds: Sequence[int] = range(1, 6),
    n_jobs: int = 1,
) -> DataFrame:
    """Traffic goes up, then down again: goodput depends on where it came from.

    Args:
        low: queries a second at both ends.
        high: in the middle.
        steps: of each branch.
        hold: seconds on each step; the second half is measured.
        retry: of the clients, who wait 1 s.
        queue_limit: requests that may wait. 1,000 are 3.3 s of work: every answer of a full
            queue is too late. 150 are half a second: none is.
        seeds: one run each.
        n_jobs: processes; -1 = all cores.

    Returns:
        One row per step: `offered` (a second), `branch` ("up" or "down"), `goodput` (a second,
        mean over the seeds), `low, high` (95 %, Student's t).
    """
    from pandas import DataFrame

    traffic = UpAndDown(low, high, steps, hold)
    jobs = [
        {"traffic": traffic, "retry": retry, "queue_limit": queue_limit, "seed": seed}
        for seed in seeds
    ]
    runs = run_jobs(_up_and_down, jobs, n_jobs=n_jobs)
    rows = []
    for step, same in enumerate(zip(*runs, strict=True)):
        found = mean_interval([row["goodput"] for row in same])
        rows.append(
            {
                "offered": traffic(step * hold),
                "branch": "up" if step <= steps else "down",
                "goodput": found.mean,
                "low": found.low,
                "high": found.high,
            }
        )
    return DataFrame(rows)


def _up_and_down(traffic: UpAndDown, retry: Retry, queue_limit: int | None, seed: int) -> list[Row]:
    """Goodput on each step of one run."""
    load = storm(
        int(traffic.seconds * traffic.high),
        retry,
        provider=Provider(service=1.0 / CAPACITY, queue_limit=queue_limit),
        outages=(),
        arrivals=traffic,
        horizon=traffic.seconds,
        seed=seed,
    )
    hold, goodput = traffic.hold, load.series["goodput"]
    begins = [step * hold for step in range(2 * traffic.steps + 1)]
    return [
        {"goodput": float(goodput.loc[begin + hold / 2 : begin + hold - 1].mean())}
        for begin in begins
    ]


def collapse(*, backoff: bool, seed: int = 1) -> Load:
    """mbrooker/simulator_example, simple_collapse_sim: a spike of five seconds.

    40 requests a second, 80 from t = 20 to 25 s. A request takes 1 s + 0.01 s for each request
    in work; clients wait 3 s and send at most three times; each leg of the network takes an
    exponential 0.1 s. Without `backoff` they send again at once; with it they wait U(0, 20) s,
    then U(0, 40) s.
    """
    return storm(
        100_000,
        FullJitter(base=20.0, cap=40.0, max_attempts=3) if backoff else Immediate(max_attempts=3),
        provider=Provider(servers=None, service=1.0, slowdown=0.01, latency=1e-9),
        outages=(),
        arrivals=Spike(base=40.0, peak=80.0, start=20.0, width=5.0),
        timeout=3.0,
        network=0.1,
        horizon=80.0,
        seed=seed,
    )
