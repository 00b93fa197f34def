from __future__ import annotations

import math
import random

import pytest

from simulator.experiments.statistics import (
    difference_interval,
    mean_interval,
    rate_interval,
    ratio_interval,
)


def test_wilson_and_exact_intervals_have_their_textbook_values() -> None:
    wilson = rate_interval(15, 148)  # Newcombe, Statistics in Medicine 17, 1998, table I
    assert (round(wilson.low, 4), round(wilson.high, 4)) == (0.0624, 0.1605)
    exact = rate_interval(15, 148, method="exact")
    assert (round(exact.low, 4), round(exact.high, 4)) == (0.0578, 0.1617)


def test_nothing_in_n_trials_is_at_most_three_in_n() -> None:
    assert rate_interval(0, 1_000, method="exact").high == pytest.approx(3.69e-3, rel=1e-2)
    assert 0.003 < rate_interval(0, 1_000).high < 0.004
    assert rate_interval(0, 1_000).low == 0.0


def test_without_trials_anything_is_possible() -> None:
    none = rate_interval(0, 0)
    assert math.isnan(none.rate)
    assert (none.low, none.high) == (0.0, 1.0)


def test_more_successes_than_trials_are_refused() -> None:
    with pytest.raises(ValueError, match="count is 11 of 10"):
        rate_interval(11, 10)


def test_a_95_percent_interval_covers_the_truth_95_times_in_100() -> None:
    source = random.Random(1)
    rates = means = ratios = 0
    for _ in range(400):
        hits = sum(source.random() < 0.2 for _ in range(100))
        rate = rate_interval(hits, 100)
        rates += rate.low <= 0.2 <= rate.high
        mean = mean_interval([source.gauss(5.0, 2.0) for _ in range(8)])
        means += mean.low <= 5.0 <= mean.high
        pairs = [
            (x, 3.0 * x + source.gauss(0.0, 1.0))
            for x in (source.uniform(5, 15) for _ in range(40))
        ]
        ratio = ratio_interval([y for _, y in pairs], [x for x, _ in pairs])
        ratios += ratio.low <= 3.0 <= ratio.high
    # 380 of 400 expected; 4 standard deviations of a binomial are 17
    for covered in (rates, means, ratios):
        assert abs(covered - 380) <= 17


def test_a_mean_has_its_textbook_interval() -> None:
    found = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.se == pytest.approx(math.sqrt(2.5 / 5))
    assert found.high - found.mean == pytest.approx(2.7764 * found.se, rel=1e-4)  # t with 4 d.f.


def test_a_mean_of_one_value_has_no_interval() -> None:
    one = mean_interval([3.0])
    assert (one.mean, one.low, one.high) == (3.0, -math.inf, math.inf)
    assert math.isnan(mean_interval([]).mean)


def test_pairs_with_the_same_luck_are_compared_pair_by_pair() -> None:
    source = random.Random(1)
    first = [source.gauss(0.0, 100.0) for _ in range(50)]
    found = difference_interval(first, [value - 1.0 for value in first])
    assert found.mean == pytest.approx(1.0)
    assert found.high - found.low < 1e-9


def test_a_ratio_to_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="add up to 0"):
        ratio_interval([1.0], [0.0])
