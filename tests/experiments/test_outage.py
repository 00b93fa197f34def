from __future__ import annotations

import math

import pytest

from simulator.experiments.outage import METRICS, at_the_cap, policies, storms, summary
from simulator.experiments.storm import Provider
from simulator.service.retry import EqualJitter, FullJitter, LessonFormula


def test_there_are_eight_ways_to_retry_with_one_base_and_one_cap() -> None:
    ways = policies(base=2.0, cap=20.0, max_attempts=5)
    assert list(ways) == [
        "none",
        "immediate",
        "fixed",
        "exponential",
        "lesson",
        "equal",
        "full",
        "decorrelated",
    ]
    assert ways["full"] == FullJitter(2.0, 20.0, 5)


def test_at_the_cap_the_lesson_s_formula_comes_in_beats_and_full_jitter_does_not() -> None:
    lesson, full = (at_the_cap(kind(max_attempts=None)) for kind in (LessonFormula, FullJitter))
    down = slice(200, 299)  # the last 100 s of the outage: everybody waits at the cap of 30 s
    beats, spread = (load.series["calls"].loc[down] for load in (lesson, full))
    assert beats.max() > 300
    assert (beats == 0).mean() > 0.7
    # 1,000 clients / (15 s mean delay + 1 s of waiting) = 62 a second, Poisson: five SD are 40
    assert spread.mean() == pytest.approx(62.5, rel=0.05)
    assert spread.max() < 62.5 + 5 * math.sqrt(62.5)
    assert spread.min() > 20
    assert lesson.double_refunds > 500
    assert full.double_refunds == 0


def test_at_the_cap_half_a_window_of_jitter_is_a_spread_too() -> None:
    equal = at_the_cap(EqualJitter(max_attempts=None)).series["calls"].loc[200:299]
    assert (equal == 0).sum() == 0


def test_a_sweep_has_one_row_per_policy_and_seed_and_the_same_numbers_on_two_processes() -> None:
    ways = {name: policies()[name] for name in ("full", "lesson")}
    one, two = (
        storms(ways, clients=50, seeds=(1, 2), n_jobs=jobs, provider=Provider(service=0.1))
        for jobs in (1, 2)
    )
    assert one.equals(two)
    assert list(one.columns) == ["policy", "seed", *METRICS]
    assert len(one) == 4


def test_the_summary_gives_means_with_intervals() -> None:
    frame = storms({"full": FullJitter()}, clients=50, seeds=range(1, 6))
    rows = summary(frame).set_index("metric")
    assert rows.at["calls", "mean"] == pytest.approx(frame["calls"].mean())
    assert rows.at["calls", "low"] < rows.at["calls", "mean"] < rows.at["calls", "high"]
    assert set(rows["n"]) == {5}


def test_who_never_drains_has_an_infinite_mean() -> None:
    frame = storms({"full": FullJitter(max_attempts=None)}, clients=5, seeds=(1, 2), horizon=9.0)
    rows = summary(frame).set_index("metric")
    assert rows.at["time_to_drain", "mean"] == math.inf
    assert rows.at["waiting", "mean"] == 5
