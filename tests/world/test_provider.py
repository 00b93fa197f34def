"""The payment provider: what it pays, what it remembers, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.service.answers import Answer
from simulator.service.errors import Declined, RateLimited, Silence
from simulator.service.payment import FindRefund, RefundOrder
from simulator.world import faults
from simulator.world.scenario import AgentSettings, Intent, ProviderSettings, Scenario

ONCE = Scenario.one_refund().but(
    intents=(Intent("intent-1"), Intent("intent-2", owed=False)),
    agent=AgentSettings(resubmits=0, patience=1e6),
)
REFUND = "provider.refund"
Case = Callable[..., tuple[Any, list[Any]]]


def order(key: str | None = None, amount: int = 500_00, order_id: str = "ORD-1001") -> RefundOrder:
    return RefundOrder("intent-1", order_id, amount, "USD", key)


@pytest.fixture
def ask(world: Any, pipe: Any) -> Case:
    """Sends orders one after the other; returns the world and what was heard.

    A number among the orders is a wait in seconds.
    """

    def case(*orders: Any, on: tuple[Any, ...] = (), **settings: Any) -> tuple[Any, list[Any]]:
        heard: list[Any] = []

        def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
            for each in orders:
                if isinstance(each, RefundOrder | FindRefund):
                    name = REFUND if isinstance(each, RefundOrder) else "provider.find"
                    try:
                        heard.append((yield from rt.call(name, each, timeout=2.0)))
                    except (Silence, Declined, RateLimited) as error:
                        heard.append(error)
                else:
                    yield from rt.sleep(each)
            return Answer("verifying", "later")

        scenario = ONCE.but(provider=ProviderSettings(**settings))
        return world(pipe(handle), *on, scenario=scenario), heard

    return case


def amounts(made: Any) -> list[int]:
    return [effect.amount for effect in made.provider.ledger]


def test_without_a_key_every_request_is_a_new_one(ask: Case) -> None:
    made, heard = ask(order(), order(), order())
    assert amounts(made) == [500_00] * 3
    assert len(set(heard)) == 3


def test_the_same_key_is_paid_once_and_answered_alike(ask: Case) -> None:
    made, heard = ask(order("k"), order("k"), order("k"))
    assert amounts(made) == [500_00]
    assert len(set(heard)) == 1
    assert [e.kind for e in made.trace if e.kind in ("effect", "replayed")] == [
        "effect",
        "replayed",
        "replayed",
    ]


def test_two_keys_are_two_payments(ask: Case) -> None:
    made, _ = ask(order("k"), order("l"))
    assert amounts(made) == [500_00, 500_00]
    assert [effect.key for effect in made.provider.ledger] == ["k", "l"]


def test_two_requests_under_one_key_at_the_same_time_are_paid_once(world: Any, pipe: Any) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.call(REFUND, order("k"), timeout=2.0)
        return Answer("verifying", "later")

    scenario = Scenario.double_click()
    scenario = scenario.but(
        submissions=tuple(
            type(s)(s.intent_id, 0.0, s.instance, s.thought) for s in scenario.submissions
        )
    )
    made = world(pipe(handle), scenario=scenario)
    arrivals = [e.time for e in made.trace if (e.process, e.kind) == ("provider", "arrive")]
    assert arrivals[:2] == [70_000, 70_000]
    assert [e.kind for e in made.trace if e.kind in ("limited", "effect", "replayed")] == [
        "limited",  # 409: the first is being worked on
        "effect",
        "replayed",  # a second later
    ]
    assert amounts(made) == [500_00]


@pytest.mark.parametrize(
    "other", [order("k", amount=800_00), order("k", order_id="ORD-2"), order("k", amount=1)]
)
def test_a_key_with_other_parameters_is_refused_and_moves_nothing(
    other: RefundOrder, ask: Case
) -> None:
    made, heard = ask(order("k"), other, order("k"))
    assert amounts(made) == [500_00]
    assert isinstance(heard[1], Declined)
    assert "other parameters" in heard[1].reason
    assert heard[2] == heard[0]  # and the first result is still there


# The key record is atomic with the effect.


@pytest.mark.parametrize(
    ("when", "kinds"), [("before", ["effect"]), ("after", ["effect", "replayed"])]
)
def test_a_provider_that_dies_at_work_has_both_payment_and_key_or_neither(
    when: str, kinds: list[str], ask: Case
) -> None:
    made, heard = ask(order("k"), 6, order("k"), on=(faults.crash_provider(REFUND, when=when),))
    assert isinstance(heard[0], Silence)
    assert amounts(made) == [500_00]
    assert [e.kind for e in made.trace if e.kind in ("effect", "replayed")] == kinds


@pytest.mark.parametrize("lifetime", [60.0, 24 * 3600.0])
def test_a_key_is_remembered_for_its_lifetime_from_the_payment_and_then_forgotten(
    lifetime: float, ask: Case
) -> None:
    # From the answer to the next payment pass 0.05 s back and 0.15 s there and at work.
    made, _ = ask(order("k"), lifetime - 0.21, order("k"), key_lifetime=lifetime)
    assert amounts(made) == [500_00]
    made, _ = ask(order("k"), lifetime - 0.19, order("k"), key_lifetime=lifetime)
    assert amounts(made) == [500_00, 500_00]


def test_a_replay_does_not_prolong_a_keys_life(ask: Case) -> None:
    made, _ = ask(order("k"), 40, order("k"), 40, order("k"), key_lifetime=60.0)
    assert amounts(made) == [500_00, 500_00]


def test_after_its_lifetime_a_key_may_carry_other_parameters(ask: Case) -> None:
    made, _ = ask(order("k"), 61, order("k", amount=1), key_lifetime=60.0)
    assert amounts(made) == [500_00, 1]


# Definite refusals.


def test_a_decline_is_definite_and_moves_nothing(ask: Case) -> None:
    made, heard = ask(order(), declines=frozenset({"intent-1"}))
    assert amounts(made) == []
    assert isinstance(heard[0], Declined)
    assert made.provider.declined == {"intent-1"}


def test_a_decline_is_stored_under_its_key(ask: Case) -> None:
    # Stripe replays the first result, success or failure (reference, section 4).
    made, heard = ask(order("k"), order("k"), declines=frozenset({"intent-1"}))
    assert [type(answer) for answer in heard] == [Declined, Declined]
    assert [e.kind for e in made.trace if e.kind in ("declined", "replayed")] == [
        "declined",
        "replayed",
    ]


def test_other_intents_are_not_declined(ask: Case) -> None:
    made, _ = ask(order(), declines=frozenset({"intent-2"}))
    assert amounts(made) == [500_00]


def test_an_answer_that_says_no_is_not_written_down_as_a_broken_connection(ask: Case) -> None:
    made, _ = ask(order(), declines=frozenset({"intent-1"}))
    assert [e for e in made.trace if e.kind == "reset"] == []


# The rate limit.


def test_past_its_limit_it_says_when_to_come_back_and_moves_nothing(ask: Case) -> None:
    made, heard = ask(order(), order(), order(), limit=2, limit_window=10.0)
    assert amounts(made) == [500_00] * 2
    # First arrival at 0.07 s, third at 0.47: the window is free again 9.6 s later.
    assert isinstance(heard[2], RateLimited)
    assert heard[2].retry_after == pytest.approx(9.6)
    assert [e.kind for e in made.trace if e.kind == "limited"] == ["limited"]


def test_whoever_comes_back_when_told_is_served(ask: Case) -> None:
    made, heard = ask(order(), order(), 9.8, order(), limit=1, limit_window=10.0)
    assert isinstance(heard[1], RateLimited)
    assert heard[1].retry_after == pytest.approx(9.8)
    assert amounts(made) == [500_00] * 2


def test_whoever_comes_back_too_early_is_refused_again(ask: Case) -> None:
    _, heard = ask(order(), order(), 9.5, order(), limit=1, limit_window=10.0)
    assert isinstance(heard[2], RateLimited)


def test_a_refusal_for_its_rate_is_not_stored_under_the_key(ask: Case) -> None:
    # Stripe answers 429 before the key layer (reference, section 4).
    made, heard = ask(order(), order("k"), 10, order("k"), limit=1, limit_window=10.0)
    assert isinstance(heard[1], RateLimited)
    assert heard[2].startswith("REF-2")
    assert amounts(made) == [500_00] * 2


def test_a_refusal_for_its_rate_hides_what_an_earlier_send_did(ask: Case) -> None:
    made, heard = ask(
        order("k"), order("k"), on=(faults.lose_response(REFUND),), limit=1, limit_window=10.0
    )
    assert isinstance(heard[1], RateLimited)
    assert amounts(made) == [500_00]


def test_a_provider_that_is_down_counts_nothing_towards_the_limit(ask: Case) -> None:
    made, heard = ask(
        order(),
        6,
        order(),
        on=(faults.provider_down(REFUND, seconds=5.0),),
        limit=1,
        limit_window=100.0,
    )
    assert isinstance(heard[0], Silence)
    assert amounts(made) == [500_00]


# Look-ups.

FIND = FindRefund("intent-1")


def test_a_refund_can_be_found_once_it_is_paid(ask: Case) -> None:
    made, heard = ask(FIND, order("k"), FIND)
    assert heard[0] is None
    assert heard[1] == heard[2] != None  # noqa: E711
    assert amounts(made) == [500_00]


def test_a_refund_of_another_intent_is_not_found(ask: Case) -> None:
    _, heard = ask(order("k"), FindRefund("intent-2"))
    assert heard[1] is None


def test_a_request_that_is_still_travelling_is_not_found_and_arrives_all_the_same(
    ask: Case,
) -> None:
    # The probe race (reference, section 5): "not found" is no proof.
    late = faults.delay_request(REFUND, seconds=10.0)
    made, heard = ask(order("k"), FIND, 20, FIND, on=(late,))
    assert isinstance(heard[0], Silence)
    assert heard[1] is None
    assert heard[2].startswith("REF-1")
    assert amounts(made) == [500_00]


def test_a_look_up_with_a_lag_does_not_see_what_was_just_paid(ask: Case) -> None:
    # Found from 30 s after the payment on; from answer to look-up pass another 0.05 + 0.15 s.
    _, heard = ask(order("k"), 29.7, FIND, lookup_lag=30.0)
    assert heard[1] is None
    _, heard = ask(order("k"), 29.9, FIND, lookup_lag=30.0)
    assert heard[1].startswith("REF-1")


def test_a_provider_that_cannot_be_asked_says_so(ask: Case) -> None:
    _, heard = ask(order("k"), FIND, lookup_lag=None)
    assert isinstance(heard[1], Declined)
    assert "no way to ask" in heard[1].reason


def test_a_look_up_moves_no_money_and_stores_no_key(ask: Case) -> None:
    made, _ = ask(FIND, FIND, order("k"))
    assert amounts(made) == [500_00]
    assert list(made.provider.keys) == ["k"]


# Speed.


def test_messages_and_work_take_the_time_that_the_scenario_says(ask: Case) -> None:
    made, _ = ask(order(), leg=0.3, work=0.7)
    assert [effect.time for effect in made.provider.ledger] == [20_000 + 300_000 + 700_000]
    (answered,) = [
        e.time for e in made.trace if (e.kind, e.process, e.what) == ("arrive", "backend-1", REFUND)
    ]
    assert answered == 20_000 + 1_300_000
