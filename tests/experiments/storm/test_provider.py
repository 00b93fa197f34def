from __future__ import annotations

from math import inf

import pytest

from simulator.experiments.closed_forms import mean_wait
from simulator.experiments.statistics import mean_interval
from simulator.experiments.storm import Luck, Provider, storm
from simulator.experiments.storm.provider import (
    FAILED,
    LIMITED,
    PAID,
    REJECTED,
    SILENCE,
    Desk,
    Refund,
)
from simulator.service.retry import NoRetry

Answer = tuple[str, float, float]


def refund(number: int = 0) -> Refund:
    return Refund(number, 0.0, Luck(1, number))


def ask(desk: Desk, now: float, who: Refund | None = None, patience: float = inf) -> Answer:
    return desk.receive(now, who or refund(), Luck(1), patience)


def test_requests_are_served_one_after_the_other_in_the_order_they_came() -> None:
    desk = Desk(Provider(servers=1, service=2.0), (), key=False)
    assert [ask(desk, 0.0), ask(desk, 0.5), ask(desk, 9.0)] == [
        (PAID, 2.0, 0.0),
        (PAID, 4.0, 2.0),
        (PAID, 11.0, 9.0),
    ]


def test_two_servers_do_two_requests_at_a_time() -> None:
    desk = Desk(Provider(servers=2, service=2.0), (), key=False)
    assert [ask(desk, 0.0)[1] for _ in range(5)] == [2.0, 2.0, 4.0, 4.0, 6.0]


def test_without_a_limit_on_servers_each_request_in_work_slows_the_next() -> None:
    desk = Desk(Provider(servers=None, service=1.0, slowdown=0.5), (), key=False)
    assert [ask(desk, now)[1] for now in (0.0, 0.0, 0.0, 10.0)] == [1.5, 2.0, 2.5, 11.5]


def test_a_full_queue_rejects_and_a_place_becomes_free_when_a_turn_comes() -> None:
    desk = Desk(Provider(servers=1, service=2.0, queue_limit=1), (), key=False)
    outcomes = [ask(desk, now)[0] for now in (0.0, 0.0, 0.0, 2.0)]
    assert outcomes == [PAID, PAID, REJECTED, PAID]


def test_most_servers_work_for_clients_who_have_left() -> None:
    desk = Desk(Provider(servers=1, service=2.0), (), key=False)
    who = refund(1)
    ask(desk, 0.0)
    assert ask(desk, 0.0, who, patience=1.0) == (PAID, 4.0, 2.0)
    assert (who.effects, desk.abandoned, ask(desk, 0.0)[1]) == (1, 1, 6.0)


def test_a_server_that_sheds_does_nothing_for_them() -> None:
    desk = Desk(Provider(servers=1, service=2.0, sheds=True), (), key=False)
    who = refund(1)
    ask(desk, 0.0)
    assert ask(desk, 0.0, who, patience=1.0) == (SILENCE, inf, 2.0)
    assert (who.effects, desk.abandoned, ask(desk, 0.0)[1]) == (0, 0, 4.0)


def test_what_is_in_the_house_when_an_outage_begins_is_lost() -> None:
    desk = Desk(Provider(servers=1, service=2.0), ((3.0, 10.0),), key=False)
    done, caught, late = refund(1), refund(2), refund(3)
    assert ask(desk, 0.0, done)[0] == PAID
    assert ask(desk, 0.0, caught)[:2] == (SILENCE, inf)
    for _ in range(10):  # 20 s of work, all of it lost
        ask(desk, 1.0)
    assert ask(desk, 5.0)[:2] == (SILENCE, inf)
    assert ask(desk, 10.0, late) == (PAID, 12.0, 10.0)  # and nobody waits any more
    assert [who.effects for who in (done, caught, late)] == [1, 0, 1]


def test_a_provider_that_is_down_may_say_so() -> None:
    desk = Desk(Provider(outage="refused"), ((0.0, 10.0),), key=False)
    assert ask(desk, 5.0) == (REJECTED, 5.0, 5.0)


def test_a_frozen_provider_loses_nothing() -> None:
    desk = Desk(Provider(servers=1, service=2.0, outage="frozen"), ((3.0, 10.0),), key=False)
    # the second is stopped after one of its two seconds; the third comes during the freeze
    assert [ask(desk, now)[1] for now in (0.0, 0.0, 5.0)] == [2.0, 11.0, 13.0]


def test_a_rate_limit_lets_one_second_s_worth_in_at_once_and_then_its_rate() -> None:
    desk = Desk(Provider(servers=None, service=0.0, rate_limit=2.0), (), key=False)
    assert [ask(desk, now)[0] for now in (0.0, 0.0, 0.0, 0.5, 0.6)] == [
        PAID,
        PAID,
        LIMITED,
        PAID,
        LIMITED,
    ]


def test_a_provider_that_always_fails_pays_nothing() -> None:
    desk = Desk(Provider(failure_rate=1.0), (), key=False)
    who = refund()
    assert ask(desk, 1.0, who) == (FAILED, 1.0, 1.0)
    assert who.effects == 0


def test_without_a_key_every_request_is_paid() -> None:
    desk, who = Desk(Provider(), (), key=False), refund()
    for _ in range(3):
        ask(desk, 0.0, who)
    assert (who.effects, desk.paid, desk.doubles, desk.overpaid) == (3, 1, 1, 2)


def test_with_a_key_one_is_paid_until_the_key_is_forgotten() -> None:
    desk, who = Desk(Provider(service=1.0, key_lifetime=100.0), (), key=True), refund()
    ask(desk, 0.0, who)
    ask(desk, 50.0, who)
    assert (who.effects, desk.doubles) == (1, 0)
    ask(desk, 101.0, who)  # done at 102, recorded at 1
    assert (who.effects, desk.doubles) == (2, 1)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.7), (3, 0.8)])
def test_without_faults_the_queue_is_erlang_s_and_little_s(servers: int, load: float) -> None:
    rate = 100.0
    waits, lengths = [], []
    for seed in range(1, 9):
        run = storm(
            15_000,
            NoRetry(),
            provider=Provider(servers=servers, service=servers * load / rate, law="exponential"),
            outages=(),
            arrivals=rate,
            timeout=1e9,
            horizon=1e9,
            resolution=0.05,
            seed=seed,
        )
        waits.append(run.mean_wait)
        lengths.append(float(run.series["queue"].mean()) / rate)
    expected = mean_wait(servers, rate, servers * load / rate)
    found = mean_interval(waits, confidence=0.99)
    assert found.low <= expected <= found.high
    assert found.high - found.low < 0.3 * expected  # an interval that says something
    # Little: the mean length of the queue, looked at every 50 ms, is rate times mean wait
    assert mean_interval(lengths).mean == pytest.approx(found.mean, rel=0.03)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"servers": 0}, "servers is 0"),
        ({"slowdown": 0.1}, "set servers=None"),
        ({"law": "normal"}, "law is 'normal'"),
        ({"outage": "late"}, "outage is 'late'"),
        ({"service": -1.0}, "seconds of work"),
        ({"latency": 0.0}, "latency is 0.0"),
        ({"failure_rate": 1.5}, "failure_rate is 1.5"),
    ],
)
def test_a_provider_that_can_t_be_is_refused_in_a_sentence(
    settings: dict[str, object], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        Provider(**settings)  # type: ignore[arg-type]


def test_capacity_is_servers_over_service() -> None:
    assert Provider(servers=3, service=0.1).capacity == pytest.approx(30.0)
    assert Provider(servers=None).capacity == inf
