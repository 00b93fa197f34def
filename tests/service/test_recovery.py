"""What becomes of unknown outcomes, on the virtual ground: who pays twice, who never."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from simulator.experiments.replay import replay
from simulator.service.design import Design
from simulator.service.designs import SAFE
from simulator.service.keys import NoKey
from simulator.service.recovery import AskOnly, AskThenSend, Blind, NoRecovery, SameKey
from simulator.world import faults
from simulator.world.scenario import Scenario
from simulator.world.settings import ProviderSettings

REFUND = "provider.refund"
SLOW_LOOKUP = Scenario(name="slow look-up", provider=ProviderSettings(lookup_lag=3600.0))


@pytest.fixture(params=["travelling", "dead worker"])
def unknown(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A first request that arrives late, or whose worker died after it was paid."""
    if request.param == "travelling":
        yield faults.delay_request(f"worker-1:{REFUND}", seconds=42.0)
    else:
        yield faults.crash(f"worker-1:{REFUND}", when="after_answer")


def payments(design: Design, fault: Any, scenario: Scenario | None = None) -> int:
    return len(replay(design, scenario, faults=[fault]).ledger)


def test_the_same_key_again_pays_once_whatever_became_of_the_first(unknown: Any) -> None:
    assert payments(SAFE, unknown) == 1
    assert payments(SAFE, unknown, SLOW_LOOKUP) == 1


def test_a_blind_second_try_without_a_key_pays_twice(unknown: Any) -> None:
    assert payments(SAFE.but(recovery=Blind(), key=NoKey()), unknown) == 2


def test_asking_first_pays_once_if_the_payment_can_be_found() -> None:
    died = faults.crash(f"worker-1:{REFUND}", when="after_answer")
    assert payments(SAFE.but(recovery=AskThenSend()), died) == 1


def test_asking_first_pays_twice_while_the_first_request_is_travelling() -> None:
    # The probe race: 3 of 3 published systems that ask (reference, section 5).
    late = faults.delay_request(f"worker-1:{REFUND}", seconds=42.0)
    assert payments(SAFE.but(recovery=AskThenSend()), late) == 2


def test_asking_first_pays_twice_if_the_look_up_lags_behind() -> None:
    died = faults.crash(f"worker-1:{REFUND}", when="after_answer")
    assert payments(SAFE.but(recovery=AskThenSend()), died, SLOW_LOOKUP) == 2


def test_without_recovery_an_unknown_outcome_stays_one(unknown: Any) -> None:
    run = replay(SAFE.but(recovery=NoRecovery()), faults=[unknown])
    assert run.books.status.tolist()[0] in ("processing", "outcome_unknown")
    assert "stuck" in run.verdict


LONG_OUTAGE = faults.provider_down(REFUND, nth=2, seconds=26 * 3600.0)


@pytest.mark.parametrize(
    ("recovery", "paid"),
    [
        (SameKey(), 1),
        (SameKey(horizon=30 * 3600.0), 2),
        (Blind(), 2),
    ],
    ids=["20 h", "30 h", "no horizon"],
)
def test_sending_stops_before_the_provider_forgets_the_key_or_pays_twice(
    recovery: Any, paid: int
) -> None:
    # The first answer is lost, and the provider is gone for longer than it remembers a key.
    lost = faults.lose_response(REFUND, nth=1)
    run = replay(SAFE.but(recovery=recovery), faults=[lost, LONG_OUTAGE])
    assert len(run.ledger) == paid
    assert ("double_refund" in run.verdict) == (paid > 1)
    if paid == 1:
        assert run.verdict == frozenset()


ALL = (NoRecovery, Blind, AskThenSend, AskOnly, SameKey)


@pytest.mark.parametrize(
    ("what", "who"),
    [
        ("takes_over", {Blind, AskThenSend, AskOnly, SameKey}),
        ("resends", {Blind, AskThenSend, SameKey}),
        ("marks_unknown", {AskThenSend, AskOnly, SameKey}),
        ("asks_first", {AskThenSend, AskOnly}),
        ("waits_for_settlement", {AskThenSend, AskOnly, SameKey}),
    ],
)
def test_a_recovery_does_what_it_is_for(what: str, who: set[Any]) -> None:
    assert {policy for policy in ALL if getattr(policy(), what)} == who


def test_a_recovery_without_a_horizon_never_asks_a_human() -> None:
    assert [policy().horizon is None for policy in ALL] == [True, True, True, False, False]
    assert NoRecovery().every is None


NO_KEY = SAFE.but(recovery=AskOnly(), key=NoKey())


def test_who_only_asks_never_pays_twice_not_even_without_a_key(unknown: Any) -> None:
    assert payments(NO_KEY, unknown) == 1
    assert payments(NO_KEY, unknown, SLOW_LOOKUP) == 1


def test_what_is_lost_on_the_way_there_is_left_to_a_human_by_who_only_asks() -> None:
    run = replay(NO_KEY, faults=[faults.lose_request(REFUND)])
    assert len(run.ledger) == 0
    assert run.books.status.tolist() == ["outcome_unknown"]
    assert run.verdict == {"needless_task"}  # nobody but a human may send it again


@pytest.mark.parametrize("policy", [Blind, AskThenSend, AskOnly, SameKey])
@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf"), "5", True])
def test_a_time_to_look_again_that_is_no_time_is_refused(policy: Any, seconds: float) -> None:
    with pytest.raises(
        ValueError, match=rf"{policy.__name__}\(every=.*\): (give seconds|it should be)"
    ):
        policy(every=seconds)


def test_asking_from_no_try_on_is_refused() -> None:
    with pytest.raises(ValueError, match=r"SameKey\(asks_from=0\): give a whole number, 1 or"):
        SameKey(asks_from=0)


@pytest.mark.parametrize("policy", [AskOnly, SameKey])
def test_a_horizon_that_begins_at_once_is_refused(policy: Any) -> None:
    with pytest.raises(ValueError, match=rf"{policy.__name__}\(horizon=0\.0\)"):
        policy(horizon=0.0)
