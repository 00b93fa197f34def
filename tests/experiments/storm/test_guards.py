from __future__ import annotations

import pytest

from simulator.experiments.storm import (
    BotocoreBudget,
    CircuitBreaker,
    Guard,
    Provider,
    RetryBreaker,
    TokenBucket,
    storm,
)
from simulator.experiments.storm.provider import FAILED, SILENCE
from simulator.service.retry import Fixed, Immediate


def test_a_guard_that_guards_nothing_allows_everything() -> None:
    assert Guard().may_send(0.0)
    assert Guard().may_retry(0.0, SILENCE)


def test_a_full_token_bucket_pays_for_four_retries_and_then_one_in_ten() -> None:
    bucket = TokenBucket(fill=0.1, size=5.0)
    assert sum(bucket.may_retry(0.0, FAILED) for _ in range(10)) == 4  # more than one must be left
    retries = 0
    for _ in range(1_000):
        bucket.may_send(0.0)
        retries += bucket.may_retry(0.0, FAILED)
    assert retries == pytest.approx(100, abs=2)


@pytest.mark.parametrize(
    ("budget", "failure", "retries"),
    [
        (BotocoreBudget(cost=5, timeout_cost=10), FAILED, 100),
        (BotocoreBudget(cost=5, timeout_cost=10), SILENCE, 50),
        (BotocoreBudget(), SILENCE, 35),
        (BotocoreBudget(cost=5), FAILED, 100),  # throttling since 1.44.0
    ],
)
def test_botocore_s_bucket_is_empty_after_as_many_retries_as_derived(
    budget: BotocoreBudget, failure: str, retries: int
) -> None:
    assert sum(budget.may_retry(0.0, failure) for _ in range(1_000)) == retries


def test_botocore_gives_back_what_the_last_retry_cost_or_one() -> None:
    budget = BotocoreBudget(cost=5, timeout_cost=10)
    budget.may_retry(0.0, SILENCE)
    budget.may_retry(0.0, FAILED)
    assert budget.tokens == 485
    budget.succeeded(1.0, SILENCE)
    assert budget.tokens == 495
    budget.succeeded(1.0, None)
    assert budget.tokens == 496
    budget.succeeded(1.0, SILENCE)
    assert budget.tokens == 500  # never more than the bucket holds


def test_the_retry_breaker_never_stops_a_first_send() -> None:
    breaker = RetryBreaker(rate=0.1)
    for _ in range(5):
        assert breaker.may_send(0.0)
        breaker.failed(0.0)
    assert not breaker.may_retry(0.0, FAILED)
    for _ in range(100):
        assert breaker.may_send(0.0)
    assert breaker.may_retry(0.0, FAILED)


def test_the_circuit_breaker_opens_probes_and_closes() -> None:
    breaker = CircuitBreaker(rate=0.5, window=4, pause=5.0)
    for _ in range(2):
        breaker.succeeded(0.0, None)
    breaker.failed(0.0)
    assert breaker.may_send(0.0)
    breaker.failed(1.0)  # two of the last four
    assert not breaker.may_send(5.9)
    assert breaker.may_send(6.0)  # the probe
    assert not breaker.may_send(6.1)
    breaker.failed(7.0)
    assert not breaker.may_send(10.9)
    assert breaker.may_send(11.0)
    breaker.succeeded(11.5, None)
    assert breaker.may_send(11.6)
    assert breaker.may_retry(11.6, FAILED)


def test_a_circuit_breaker_spares_a_provider_that_is_down() -> None:
    def calls(guard: type[Guard]) -> int:
        return storm(
            2_000,
            Fixed(0.5, 4),
            provider=Provider(servers=None, service=0.01, outage="refused"),
            outages=((0.0, 20.0),),
            arrivals=100.0,
            guard=guard,
            guards=5,
        ).calls

    assert calls(CircuitBreaker) < 0.2 * calls(Guard)


def test_a_token_bucket_bounds_the_load_of_an_outage() -> None:
    run = storm(
        5_000,
        Immediate(max_attempts=20),
        provider=Provider(outage="refused"),
        outages=((0.0, 100.0),),
        arrivals=500.0,
        guard=TokenBucket,
        guards=10,
    )
    # 0.1 a refund, and at most four of the five first tokens for each of ten guards
    assert run.calls <= 5_000 * 1.1 + 40
    assert run.gave_up == 5_000
