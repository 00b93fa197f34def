"""Faults at random: as often as their rates say, where they can happen, with luck of their own."""

from __future__ import annotations

from math import sqrt
from typing import Any

import pytest

from simulator.service.answers import Answer
from simulator.service.errors import Silence
from simulator.world.fault import (
    CALL_KINDS,
    CALL_PLACES,
    KINDS,
    PLACES,
    TRANSACTION_KINDS,
    TRANSACTION_PLACES,
)
from simulator.world.rates import Chance, Rates
from simulator.world.scenario import Scenario
from simulator.world.world import World

REFUND = "provider.refund"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [-0.01, 1.01, float("nan"), True, "0.1", None])
def test_a_probability_is_between_0_and_1(kind: str, p: Any) -> None:
    with pytest.raises(ValueError, match=rf"Rates\({kind}=.*between 0 and 1"):
        Rates(**{kind: p})


@pytest.mark.parametrize("p", [0, 0.0, 1, 1.0])
def test_0_and_1_are_probabilities(p: float) -> None:
    assert Rates(lose_request=p).lose_request == p


@pytest.mark.parametrize("field", ["delay_seconds", "pause_seconds", "down_seconds"])
@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_what_lasts_lasts_more_than_no_time_and_ends(field: str, seconds: float) -> None:
    with pytest.raises(ValueError, match=f"{field}=.*more than 0 seconds"):
        Rates(**{field: seconds})


def test_rates_apply_at_the_provider_or_everywhere() -> None:
    with pytest.raises(ValueError, match="say 'provider' or 'everywhere'"):
        Rates(where="anywhere")


def test_rates_read_like_the_call_that_made_them() -> None:
    assert str(Rates(lose_request=0.1, where="everywhere")) == (
        "Rates(lose_request=0.1, where=everywhere)"
    )


def strikes(rates: Rates, call: bool, what: str = REFUND, count: int = 4_000) -> list[Any]:
    chance = Chance(rates, 5)
    what = what if call else "begin"
    return [chance.strike("worker-1", what, k, k, call) for k in range(1, count + 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_strikes_as_often_as_its_rate_says(kind: str) -> None:
    # Standard error of a share p of n: sqrt(p (1 - p) / n); four of them either way.
    for call, kinds in ((True, CALL_KINDS), (False, TRANSACTION_KINDS)):
        struck = strikes(Rates(**{kind: 0.1}), call)
        share = sum(fault is not None for fault in struck) / len(struck)
        assert {fault.kind for fault in struck if fault} <= {kind}
        if kind in kinds:
            assert abs(share - 0.1) < 4 * sqrt(0.1 * 0.9 / len(struck))
        else:
            assert share == 0


def test_a_rate_of_1_always_strikes_and_a_rate_of_0_never() -> None:
    assert all(strikes(Rates(lose_request=1.0), call=True, count=200))
    assert not any(strikes(Rates(), call=True, count=200))


@pytest.mark.parametrize("kind", KINDS)
def test_a_random_fault_is_one_that_can_happen_there(kind: str) -> None:
    for call, kinds in ((True, CALL_KINDS), (False, TRANSACTION_KINDS)):
        if kind not in kinds:
            continue
        struck = [f for f in strikes(Rates(**{kind: 0.5}), call, count=400) if f]
        places = {fault.when for fault in struck}
        if kind in ("crash", "pause"):
            assert places == set(CALL_PLACES if call else TRANSACTION_PLACES)
        else:
            assert places == set(PLACES.get(kind, ("",)))


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("delay_request", "delay_seconds"),
        ("pause", "pause_seconds"),
        ("provider_down", "down_seconds"),
    ],
)
def test_what_lasts_is_drawn_evenly_up_to_twice_its_mean(kind: str, field: str) -> None:
    drawn = [f.seconds for f in strikes(Rates(**{kind: 1.0, field: 10.0}), call=True) if f]
    assert min(drawn) > 0
    assert 19.9 < max(drawn) <= 20.0
    # Standard deviation of a uniform number in (0, 20): 20 / sqrt(12).
    assert abs(sum(drawn) / len(drawn) - 10.0) < 4 * 20 / sqrt(12 * len(drawn))


def test_by_default_only_the_provider_is_at_risk() -> None:
    certain = {"lose_request": 1.0}
    assert not any(strikes(Rates(**certain), call=True, what="customer.notify", count=50))
    assert all(strikes(Rates(**certain, where="everywhere"), True, "customer.notify", count=50))


def test_only_calls_of_the_provider_can_bring_it_down() -> None:
    rates = Rates(crash_provider=1.0, provider_down=1.0, where="everywhere")
    assert not any(strikes(rates, call=True, what="customer.notify", count=50))
    assert all(strikes(rates, call=True, count=50))


def test_one_kind_more_at_risk_moves_no_other_kinds_luck() -> None:
    alone = strikes(Rates(duplicate_request=0.1), call=True, count=1000)
    both = strikes(Rates(duplicate_request=0.1, delay_response=0.1), call=True, count=1000)
    kept = [fault is not None and fault.kind == "duplicate_request" for fault in both]
    assert kept == [fault is not None for fault in alone]


def test_all_puts_every_kind_at_the_same_risk_everywhere() -> None:
    rates = Rates.all(0.05)
    assert {getattr(rates, kind) for kind in KINDS} == {0.05}
    assert rates.where == "everywhere"


def test_at_a_rate_of_1_every_call_of_the_provider_is_paid_and_none_is_answered(
    pipe: Any, send: Any, later: Answer, store: Any
) -> None:
    heard: list[str] = []

    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        for _ in range(5):
            try:
                yield from rt.call(REFUND, send(session), timeout=2.0)
            except Silence as error:
                heard.append(type(error).__name__)
        return later

    chance = Chance(Rates(lose_response=1.0), 3)
    made = World(pipe(handle), Scenario.one_refund(), chance, 3, store).run()
    assert heard == ["CallTimeout"] * 5
    assert len(made.provider.ledger) == 5
