from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import pytest

from simulator.experiments.closed_forms import executions_past_timeout
from simulator.experiments.statistics import mean_interval, rate_interval
from simulator.experiments.storm import Load, Provider, Spike, TokenBucket, UpAndDown, storm
from simulator.experiments.storm.luck import Luck
from simulator.service.retry import (
    Decorrelated,
    Exponential,
    Fixed,
    FullJitter,
    Immediate,
    LessonFormula,
    NoRetry,
    Retry,
)
from simulator.service.retry_limits import Budget, Deadline

ENDLESS = Provider(servers=None, service=0.01)


def executions(load: Load) -> int:
    return load.paid + load.overpaid


# Luck


def test_equal_seeds_give_equal_storms_in_every_process() -> None:
    program = (
        "from simulator.experiments.storm import storm, Provider\n"
        "from simulator.service.retry import FullJitter\n"
        "load = storm(300, FullJitter(), lose_response=0.1, network=0.01, arrivals=200.0, seed=7,\n"
        "             provider=Provider(law='exponential'))\n"
        "print(load.latencies, load.series.to_csv())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hash_seed in ("0", "1", "4711")
    }
    assert len(outputs) == 1
    assert len(outputs.pop()) > 1_000


def test_another_seed_gives_another_storm() -> None:
    assert storm(100, FullJitter(), seed=1).latencies != storm(100, FullJitter(), seed=2).latencies


def test_one_more_client_shifts_nobody_else_s_luck() -> None:
    def run(clients: int) -> Counter[float]:
        load = storm(clients, FullJitter(), provider=ENDLESS, outages=(), lose_request=0.5)
        return Counter(round(latency, 9) for latency in load.latencies)

    assert not run(50) - run(51)


def test_the_nth_send_has_the_same_luck_under_every_policy() -> None:
    def answered_at_once(retry: Retry) -> int:
        load = storm(1_000, retry, provider=ENDLESS, outages=(), lose_response=0.3)
        return sum(latency < 0.5 for latency in load.latencies)

    first = answered_at_once(NoRetry())
    assert 600 < first < 800
    assert {answered_at_once(retry) for retry in (Fixed(1.0, 3), FullJitter(5.0))} == {first}


def test_luck_is_even_and_independent_between_neighbours() -> None:
    draws = [Luck(1, 2, client).random() for client in range(40_000)]
    tenths = Counter(int(10 * draw) for draw in draws)
    # chi-squared with 9 degrees of freedom: above 27.9 once in a thousand
    assert sum((n - 4_000) ** 2 / 4_000 for n in tenths.values()) < 27.9
    mean = sum((a - 0.5) * (b - 0.5) for a, b in pairwise(draws)) * 12 / 40_000
    assert abs(mean) < 4 / math.sqrt(40_000)


# Closed forms (reference, section 3)


def test_retrying_until_answered_pays_one_over_the_share_of_answers_that_arrive() -> None:
    load = storm(
        20_000, Immediate(None), provider=ENDLESS, outages=(), lose_request=0.3, lose_response=0.3
    )
    # in-der-kothe: 1/0.7 executions (geometric: SD 0.782), 1/0.49 attempts (SD 1.457), 30 % doubled
    assert executions(load) / 20_000 == pytest.approx(1 / 0.7, abs=4 * 0.782 / math.sqrt(20_000))
    assert load.calls / 20_000 == pytest.approx(1 / 0.49, abs=4 * 1.457 / math.sqrt(20_000))
    found = rate_interval(load.double_refunds, load.paid, confidence=0.999)
    assert found.low <= 0.3 <= found.high


def test_one_attempt_pays_what_arrives_and_a_key_pays_everything_once() -> None:
    lossy = {"provider": ENDLESS, "outages": (), "lose_request": 0.3, "lose_response": 0.3}
    once = storm(10_000, NoRetry(), **lossy)  # type: ignore[arg-type]
    found = rate_interval(once.paid, 10_000, confidence=0.999)
    assert found.low <= 0.7 <= found.high
    keyed = storm(10_000, Immediate(None), key=True, **lossy)  # type: ignore[arg-type]
    assert (executions(keyed), keyed.double_refunds) == (10_000, 0)


@pytest.mark.parametrize("late_answers", [True, False])
def test_a_timeout_shorter_than_the_work_executes_as_often_as_derived(late_answers: bool) -> None:
    refunds, silent = 20_000, math.exp(-0.6)
    load = storm(
        refunds,
        Immediate(4),
        provider=Provider(servers=None, service=0.05, law="exponential", latency=1e-9),
        outages=(),
        timeout=0.03,
        late_answers=late_answers,
    )
    expected = executions_past_timeout(0.05, 0.03, 3, late_answers=late_answers)
    # at most 4 executions: their standard deviation is below 1.3
    assert executions(load) / refunds == pytest.approx(expected, abs=4 * 1.3 / math.sqrt(refunds))
    found = rate_interval(load.double_refunds, refunds, confidence=0.999)
    assert found.low <= silent <= found.high  # 54.9 %, either way


def test_closed_loop_clients_obey_the_response_time_law() -> None:
    load = storm(
        50,
        NoRetry(),
        provider=Provider(servers=1, service=0.02, law="exponential"),
        outages=(),
        think=1.0,
        timeout=1e9,
        horizon=400.0,
    )
    response = sum(load.latencies) / load.answered
    throughput = load.answered / load.horizon
    # 50 clients = throughput * (think + response); about 18,000 cycles
    assert throughput * (1.0 + response) == pytest.approx(50, rel=0.02)
    assert throughput < 50.0


# Policies, layers, limits


def test_without_trouble_every_refund_takes_one_call() -> None:
    load = storm(100, FullJitter(), outages=())
    assert (load.calls, load.answered, load.double_refunds) == (100, 100, 0)


def test_an_answer_that_comes_too_late_is_paid_and_paid_again() -> None:
    load = storm(
        1, Fixed(1.0, 3), provider=Provider(service=2.0), outages=(), timeout=1.0, horizon=100.0
    )
    assert (load.calls, load.answered, load.paid, load.overpaid) == (3, 0, 1, 2)


def test_three_attempts_in_five_layers_are_243_calls() -> None:
    load = storm(1, [Immediate(3)] * 5, outages=((0.0, 1e9),))
    assert load.calls == 243  # the Builders' Library's figure


def test_the_innermost_layer_is_asked_first_and_begins_anew_for_the_one_outside_it() -> None:
    load = storm(1, [Fixed(10.0, 2), Fixed(1.0, 3)], outages=((0.0, 1e9),), timeout=1.0)
    calls = load.series["calls"]
    assert list(calls[calls > 0].index) == [0, 2, 4, 15, 17, 19]


def test_decorrelated_clients_remember_their_last_delay() -> None:
    chain = Decorrelated(1.0, 1_000.0, max_attempts=None)
    load = storm(100, chain, outages=((0.0, 1e9),), horizon=200.0)
    # Without memory each delay is U(1, 3), and a client sends every third second: 67 times.
    assert load.calls / 100 < 40


def test_something_below_that_retries_pays_twice_though_the_client_called_once() -> None:
    # case B78: the client never retries, a proxy does
    slow = {"provider": Provider(service=1.5), "outages": (), "timeout": 1.0}
    assert storm(1, [NoRetry(), Immediate(2)], **slow).double_refunds == 1  # type: ignore[arg-type]
    assert storm(1, [NoRetry(), Immediate(2)], key=True, **slow).double_refunds == 0  # type: ignore[arg-type]
    assert storm(1, [NoRetry(), NoRetry()], **slow).double_refunds == 0  # type: ignore[arg-type]


def test_a_client_who_ignores_retry_after_gives_up_and_one_who_waits_is_served() -> None:
    def run(longest: float, **more: object) -> Load:
        return storm(
            100,
            Fixed(1.0, 3),
            provider=Provider(rate_limit=5.0, retry_after=30.0),
            outages=(),
            longest_retry_after=longest,
            **more,  # type: ignore[arg-type]
        )

    ignoring, waiting = run(0.0), run(60.0)
    assert ignoring.slowest < 4.0
    assert ignoring.gave_up > 80  # case B77: failed within seconds, though a wait would have done
    assert waiting.calls <= ignoring.calls
    assert run(60.0, throttles_count=False).gave_up == 0


def test_nobody_sends_after_the_deadline() -> None:
    load = storm(10, Fixed(2.0, None), outages=((0.0, 1e9),), deadline=10.0, horizon=100.0)
    # sends at 0, 3, 6, 9; the next would be at 12
    assert (load.calls, load.gave_up) == (40, 10)


def test_a_run_ends_at_its_horizon_whoever_waits() -> None:
    load = storm(10, Fixed(1.0, None), outages=((0.0, 1e9),), horizon=50.0)
    assert (load.waiting, load.time_to_drain) == (10, math.inf)
    assert len(load.series) == 50
    assert "10 still waiting after 50 s" in str(load)


def test_a_run_that_ends_before_all_have_come_has_not_drained() -> None:
    load = storm(100, NoRetry(), outages=(), arrivals=1.0, horizon=10.0)
    assert load.asked < 100
    assert load.waiting == 0
    assert load.time_to_drain == math.inf
    assert len(load.series) == 10


def test_a_late_answer_ends_the_wait_for_the_next_attempt() -> None:
    slow = Provider(service=2.0, latency=0.5)
    load = storm(1, Fixed(5.0, 3), provider=slow, outages=(), late_answers=True)
    assert load.latencies == [2.5]
    assert load.calls == 1


def test_a_message_that_outlasts_its_client_s_patience_still_arrives() -> None:
    load = storm(
        500, NoRetry(), provider=Provider(servers=None, service=0.0), outages=(), network=5.0
    )
    arrived_in_time = load.answered
    assert arrived_in_time < 60
    assert load.paid == 500  # nothing was lost, only late


def test_the_series_adds_up_to_the_totals() -> None:
    load = storm(1_000, FullJitter(), provider=Provider(queue_limit=50), seed=3)
    assert load.series["calls"].sum() == load.calls
    assert load.series["goodput"].sum() == load.answered == len(load.latencies)
    assert load.series["rejected"].sum() > 0
    assert load.series["queue"].max() <= 50
    assert load.series["queue"].iloc[-1] == 0
    assert load.answered + load.gave_up + load.waiting == load.asked


def test_finer_rows_hold_the_same_storm() -> None:
    fine = storm(200, FullJitter(), resolution=0.1).series
    coarse = storm(200, FullJitter(), resolution=1.0).series
    assert fine["calls"].sum() * 0.1 == pytest.approx(coarse["calls"].sum())
    assert fine.index[1] == pytest.approx(0.1)


def test_traffic_follows_its_rate() -> None:
    spike = Spike(base=20.0, peak=100.0, start=50.0, width=50.0)
    load = storm(10_000, NoRetry(), provider=ENDLESS, outages=(), arrivals=spike, horizon=150.0)
    calls = load.series["calls"]
    for begin, rate in ((0, 20), (51, 100), (101, 20)):
        seen = calls.loc[begin : begin + 48].sum()
        assert seen == pytest.approx(49 * rate, abs=4 * math.sqrt(49 * rate))


def test_up_and_down_is_the_same_way_back() -> None:
    traffic = UpAndDown(low=10.0, high=30.0, steps=2, hold=5.0)
    assert [traffic(5.0 * step) for step in range(5)] == [10, 20, 30, 20, 10]
    assert traffic.seconds == 25.0


@pytest.mark.parametrize("limit", [Deadline(Immediate(), 5.0), Budget(Immediate())])
def test_a_limit_around_the_policy_is_refused_and_not_ignored(limit: Deadline | Budget) -> None:
    with pytest.raises(ValueError, match=r"limits beside the policy.*deadline=, guard="):
        storm(10, limit)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"clients": -1}, "clients=-1"),
        ({"retry": []}, "0 layers"),
        ({"timeout": 0.0}, "timeout is 0.0"),
        ({"horizon": math.nan}, "horizon is nan"),
        ({"lose_response": 1.1}, "lose_response is 1.1"),
        ({"think": 0.0}, "think is 0.0"),
        ({"outages": ((5.0, 2.0),)}, "outage from 5.0 to 2.0"),
        ({"arrivals": 0.0}, "arrivals is 0.0"),
    ],
)
def test_a_storm_that_makes_no_sense_is_refused_in_a_sentence(
    settings: dict[str, object], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        storm(**{"clients": 1, "retry": NoRetry()} | settings)  # type: ignore[arg-type]


# Storms (reference, table C and the prototype's figures)


@pytest.mark.parametrize(
    ("retry", "drained", "calls"),
    [
        (Exponential(max_attempts=12), (189, 219), 8.0),
        (LessonFormula(max_attempts=12), (70, 100), 6.3),
        (FullJitter(max_attempts=12), (37, 41), 5.8),
    ],
)
def test_a_fleet_drains_after_an_outage_when_the_prototype_s_did(
    retry: Retry, drained: tuple[int, int], calls: float
) -> None:
    # 1,000 clients within the first second, refused for 10 s, then 125/s. The prototype counted
    # from the first wish: 219, 100 and 39 s. Beats are 30 s apart: one early is 189 and 70.
    runs = [
        storm(1_000, retry, provider=Provider(outage="refused"), arrivals=1_000.0, seed=seed)
        for seed in range(1, 6)
    ]
    low, high = drained
    assert all(low - 1 <= run.time_to_drain + 10.0 <= high + 1 for run in runs)
    found = mean_interval([run.calls_per_refund for run in runs])
    assert found.mean == pytest.approx(calls, rel=0.03)


def test_endless_full_jitter_never_recovers_from_a_storm_of_its_own() -> None:
    def run(**settings: object) -> Load:
        return storm(
            1_000,
            FullJitter(max_attempts=None),
            provider=Provider(service=1 / 50, sheds=bool(settings.pop("sheds", False))),
            horizon=600.0,
            **settings,  # type: ignore[arg-type]
        )

    stuck = run()
    # 1,000 clients / (15 s mean delay + 1 s of waiting) = 62 calls/s on a server of 50/s
    assert stuck.series["calls"].iloc[-100:].mean() == pytest.approx(62, rel=0.1)
    assert stuck.series["goodput"].iloc[-100:].sum() == 0
    assert stuck.waiting > 900
    # What brings it back: not working for those who have left, or fewer retries
    assert run(sheds=True).waiting == 0
    assert run(guard=TokenBucket, guards=10).waiting == 0


def test_a_key_changes_what_is_paid_and_not_the_load() -> None:
    bare, keyed = (storm(1_000, Exponential(), key=key) for key in (False, True))
    assert bare.double_refunds > 800
    assert keyed.double_refunds == 0
    assert bare.series.equals(keyed.series)
