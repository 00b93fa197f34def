from __future__ import annotations

import math

import pytest

from simulator.experiments.closed_forms import (
    calls_with_retries,
    delay_probability,
    doubled_by_naive_retries,
    executions_past_timeout,
    mean_wait,
    success_with_retries,
)


def test_success_and_load_of_three_retries_at_30_percent() -> None:
    assert success_with_retries(0.3, 3) == pytest.approx(1 - 0.3**4)
    assert calls_with_retries(0.3, 3) == pytest.approx(1 + 0.3 + 0.09 + 0.027)


def test_retrying_until_answered_doubles_b_over_1_minus_a() -> None:
    assert doubled_by_naive_retries(0.1, 0.2, 200) == pytest.approx(0.2 / 0.9)


def test_one_attempt_doubles_nothing() -> None:
    assert doubled_by_naive_retries(0.1, 0.2, 1) == pytest.approx(0.0)


def test_doubles_agree_with_all_histories_counted_one_by_one() -> None:
    a, b, n = 0.25, 0.15, 4

    def doubled(effects: int, sends: int) -> float:
        if sends == n:
            return float(effects >= 2)
        answered = (1 - a - b) * float(effects + 1 >= 2)
        return a * doubled(effects, sends + 1) + b * doubled(effects + 1, sends + 1) + answered

    assert doubled_by_naive_retries(a, b, n) == pytest.approx(doubled(0, 0))


def test_executions_past_the_timeout_are_those_of_the_reference() -> None:
    # happy-simulator's defaults: work 50 ms, timeout 30 ms, 3 retries
    assert executions_past_timeout(0.05, 0.03, 3, late_answers=True) == pytest.approx(
        1.741, abs=5e-4
    )
    assert executions_past_timeout(0.05, 0.03, 3, late_answers=False) == pytest.approx(
        2.015, abs=5e-4
    )


def test_with_one_server_erlang_c_is_the_load() -> None:
    assert delay_probability(1, 0.8) == pytest.approx(0.8)
    assert mean_wait(1, 8.0, 0.1) == pytest.approx(0.8 * 0.1 / 0.2)  # rho s / (1 - rho)


def test_erlang_c_agrees_with_the_balance_of_births_and_deaths() -> None:
    servers, offered = 4, 2.6
    weights = [1.0]
    for waiting in range(1, 400):
        weights.append(weights[-1] * offered / min(waiting, servers))
    busy = sum(weights[servers:]) / math.fsum(weights)
    assert delay_probability(servers, offered) == pytest.approx(busy)


def test_a_queue_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="offered load is 3"):
        delay_probability(3, 3.0)
