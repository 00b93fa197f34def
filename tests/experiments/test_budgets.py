"""Table B of the reference: mbrooker/simulator_example, one run of 10,000 refunds a figure."""

from __future__ import annotations

from math import sqrt

import pytest

from simulator.experiments.budgets import budgets, table_b
from simulator.experiments.closed_forms import calls_with_retries, success_with_retries
from simulator.experiments.statistics import mean_interval

# failure rate: success (%) and load, for none, 3 retries, token bucket, breaker
TABLE_B = {
    0.05: ((94.8, 1.00), (100, 1.053), (100, 1.054), (98.8, 1.038)),
    0.10: ((89.8, 1.00), (100, 1.113), (99.4, 1.102), (93.2, 1.030)),
    0.20: ((79.4, 1.00), (99.9, 1.239), (90.6, 1.135), (80.5, 1.004)),
    0.30: ((69.8, 1.00), (99.2, 1.406), (79.5, 1.139), (70.3, 1.001)),
    0.50: ((48.9, 1.00), (94.1, 1.854), (57.5, 1.142), (50.2, 1.000)),
}
RULES = ("none", "3 retries", "token bucket", "breaker")


@pytest.mark.parametrize("rate", TABLE_B)
@pytest.mark.parametrize(("rule", "retries"), [("none", 0), ("3 retries", 3)])
def test_without_a_budget_success_and_load_follow_the_closed_forms(
    rule: str, retries: int, rate: float
) -> None:
    success, load = table_b(rule, rate)
    expected, calls = success_with_retries(rate, retries), calls_with_retries(rate, retries)
    squares = sum((2 * sent + 1) * rate**sent for sent in range(retries + 1))  # E[sends^2]
    # 10,000 refunds, four standard errors (and one refund, where the rate is nearly 1)
    assert success == pytest.approx(expected, abs=4 * sqrt(expected * (1 - expected)) / 100 + 1e-4)
    assert load == pytest.approx(calls, abs=4 * sqrt(squares - calls**2) / 100 + 1e-12)


@pytest.mark.parametrize("rate", TABLE_B)
@pytest.mark.parametrize("rule", RULES)
def test_every_figure_of_table_b_is_one_that_this_model_gives(rule: str, rate: float) -> None:
    runs = [table_b(rule, rate, seed) for seed in range(1, 5)]
    for ours, table, rounding in zip(
        zip(*runs, strict=True),
        TABLE_B[rate][RULES.index(rule)],
        (0.05, 0.0005),
        strict=True,
    ):
        scale = 100.0 if rounding == 0.05 else 1.0
        found = mean_interval([scale * value for value in ours])
        # The table is one run; the binomial error of one run of 10,000 bounds its spread from
        # below, four runs of ours tell the rest. Three standard deviations of the difference.
        binomial = scale * sqrt(rate * (1 - rate)) / 100
        spread = max(found.se * 2, binomial)
        assert abs(found.mean - table) <= 3 * spread * sqrt(1 + 1 / 4) + rounding


def test_a_bucket_bounds_the_load_whatever_the_failure_rate() -> None:
    for rate in (0.2, 0.5, 0.9, 1.0):
        # 100 first sends a guard: 10 tokens, and at most 4 of the 5 that it began with
        assert table_b("token bucket", rate)[1] <= 1.0 + 0.1 + 0.04


def test_the_frame_has_one_row_per_rule_rate_and_metric() -> None:
    frame = budgets([0.1], seeds=[1, 2])
    assert list(frame.columns) == ["rule", "failure_rate", "metric", "mean", "se", "low", "high"]
    assert len(frame) == 4 * 2
    assert (frame["low"] <= frame["mean"]).all()
