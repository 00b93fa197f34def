"""The payment provider: what it pays, what it remembers, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.experiments.replay import replay
from simulator.service.answers import Answer
from simulator.service.designs import SAFE
from simulator.service.errors import Declined, InProgress, RateLimited, ServerError, Silence
from simulator.service.payment import Accepted, CameToNothing, FindRefund, RefundOrder
from simulator.service.recovery import SameKey
from simulator.world import faults
from simulator.world.scenario import (
    AgentSettings,
    Intent,
    Outside,
    ProviderSettings,
    Scenario,
    Submission,
)

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


# What a key means: Stripe's first and second interface, the IETF's draft, and nothing.

V1, V2, IETF, NONE = "stripe-v1", "stripe-v2", "ietf", "none"


@pytest.mark.parametrize("semantics", [V1, V2, IETF])
def test_a_success_is_replayed_under_every_meaning_of_a_key(semantics: str, ask: Case) -> None:
    made, heard = ask(order("k"), order("k"), semantics=semantics)
    assert amounts(made) == [500_00]
    assert heard[0] == heard[1]


def test_where_keys_mean_nothing_every_request_is_paid(ask: Case) -> None:
    made, heard = ask(order("k"), order("k"), order("k", amount=1), semantics=NONE)
    assert amounts(made) == [500_00, 500_00, 1]
    assert not [each for each in heard if isinstance(each, Exception)]


@pytest.mark.parametrize("semantics", [V1, V2, IETF])
def test_other_parameters_under_a_key_are_refused(semantics: str, ask: Case) -> None:
    made, heard = ask(order("k"), order("k", amount=1), semantics=semantics)
    assert amounts(made) == [500_00]
    assert isinstance(heard[1], Declined)


@pytest.mark.parametrize("semantics", [V1, IETF])
@pytest.mark.parametrize(("when", "paid"), [("before", 0), ("after", 1)])
def test_a_stored_500_is_replayed_for_the_life_of_its_key(
    when: str, paid: int, semantics: str, ask: Case
) -> None:
    settings = {"semantics": semantics, "errors": 1, "error_when": when, "key_lifetime": 60.0}
    made, heard = ask(order("k"), 30, order("k"), 31, order("k"), **settings)
    assert [type(each) for each in heard[:2]] == [ServerError, ServerError]
    assert heard[2].startswith(f"REF-{paid + 1}")  # forgotten: a request like the first
    assert len(amounts(made)) == paid + 1


def test_failed_work_is_tried_again_under_the_same_key(ask: Case) -> None:
    made, heard = ask(*[order("k")] * 4, semantics=V2, errors=2)
    assert [type(each) for each in heard] == [ServerError, ServerError, str, str]
    assert amounts(made) == [500_00]
    assert heard[2] == heard[3]


def test_done_work_is_not_done_again_also_when_its_answer_was_a_500(ask: Case) -> None:
    made, heard = ask(order("k"), order("k"), semantics=V2, errors=1, error_when="after")
    assert isinstance(heard[0], ServerError)
    assert heard[1].startswith("REF-1")
    assert amounts(made) == [500_00]


def test_a_decline_is_failed_work_too_and_is_looked_at_again(ask: Case) -> None:
    made, heard = ask(order("k"), order("k"), semantics=V2, declines=frozenset({"intent-1"}))
    assert [type(each) for each in heard] == [Declined, Declined]
    assert [e.kind for e in made.trace if e.kind in ("declined", "replayed")] == ["declined"] * 2


def test_a_missing_key_is_an_error_to_one_who_asks_for_keys_and_moves_nothing(ask: Case) -> None:
    made, heard = ask(order(), order("k"), semantics=IETF)
    assert isinstance(heard[0], Declined)
    assert heard[0].reason.startswith("400")
    assert amounts(made) == [500_00]


@pytest.mark.parametrize("semantics", [V1, V2, NONE])
def test_others_take_a_request_without_a_key(semantics: str, ask: Case) -> None:
    made, _ = ask(order(), semantics=semantics)
    assert amounts(made) == [500_00]


def test_a_missing_key_refuses_a_request_and_not_the_refund(ask: Case) -> None:
    made, _ = ask(order(), semantics=IETF)
    assert made.provider.declined == set()


@pytest.mark.parametrize(
    ("semantics", "second", "paid"),
    [(V1, InProgress, 1), (V2, InProgress, 1), (IETF, InProgress, 1), (NONE, str, 2)],
)
def test_a_request_whose_key_is_being_worked_on_is_not_carried_out(
    semantics: str, second: type, paid: int, ask: Case
) -> None:
    # Late by 2.2 s, the first is at work from 2.27 s on; the second arrives at 2.37 s.
    late = faults.delay_request(REFUND, seconds=2.2)
    settings = {"semantics": semantics, "work": 0.5}
    made, heard = ask(order("k"), 0.3, order("k"), on=(late,), **settings)
    assert isinstance(heard[0], Silence)
    assert type(heard[1]) is second
    assert amounts(made) == [500_00] * paid


@pytest.mark.parametrize("semantics", [V1, V2, IETF])
def test_each_meaning_forgets_a_key_when_its_life_is_over(semantics: str, ask: Case) -> None:
    made, _ = ask(order("k"), 61, order("k"), key_lifetime=60.0, semantics=semantics)
    assert amounts(made) == [500_00] * 2


@pytest.mark.parametrize(("when", "paid"), [("before", 1), ("after", 3)])
def test_errors_are_counted_by_intent_whatever_the_key(when: str, paid: int, ask: Case) -> None:
    made, heard = ask(order("a"), order("b"), order("c"), errors=2, error_when=when)
    assert [type(each) for each in heard] == [ServerError, ServerError, str]
    assert len(amounts(made)) == paid


# Accepted now, paid later, or returned.

LATER: dict[str, Any] = {"settles_after": 60.0}
RETURNED: dict[str, Any] = {"settles_after": 60.0, "fails_to_settle": frozenset({"intent-1"})}


@pytest.mark.parametrize("semantics", [V1, V2, IETF])
def test_what_is_accepted_moves_money_later_and_only_once(semantics: str, ask: Case) -> None:
    made, heard = ask(order("k"), 30, order("k"), 31, order("k"), semantics=semantics, **LATER)
    assert [type(each) for each in heard] == [Accepted, Accepted, str]
    (effect,) = made.provider.ledger
    assert effect.time == 60_000_000 + 20_000 + 150_000


def test_the_look_up_says_how_it_stands(ask: Case) -> None:
    made, heard = ask(FIND, order("k"), FIND, 61, FIND, **LATER)
    assert [type(each) for each in heard] == [type(None), Accepted, Accepted, str]
    assert amounts(made) == [500_00]


@pytest.mark.parametrize("semantics", [V1, V2, IETF])
def test_what_the_bank_returned_is_refused_when_it_comes_again_and_said_when_asked(
    semantics: str, ask: Case
) -> None:
    made, heard = ask(order("k"), FIND, 61, order("k"), FIND, semantics=semantics, **RETURNED)
    assert [type(each) for each in heard] == [Accepted, Accepted, Declined, CameToNothing]
    assert amounts(made) == []
    assert made.provider.declined == {"intent-1"}


@pytest.mark.parametrize("settings", [LATER, RETURNED])
def test_a_look_up_with_a_lag_sees_late_that_it_was_accepted_and_how_it_ended(
    settings: dict[str, Any], ask: Case
) -> None:
    waits = order("k"), 9, FIND, 2, FIND, 58, FIND, 2, FIND
    _, heard = ask(*waits, lookup_lag=10.0, **settings)
    ended = CameToNothing if settings is RETURNED else str
    assert [type(each) for each in heard[1:]] == [type(None), Accepted, Accepted, ended]


def test_a_transfer_keeps_its_name_and_what_goes_by_hand_meanwhile_has_another(
    world: Any,
) -> None:
    scenario = Scenario.accepted_then_paid().but(
        intents=(Intent("intent-1", amount=200_00),),
        outside=(Outside("refund", at=60.0, amount=200_00),),
    )
    made = world(SAFE, scenario=scenario)
    by_hand, ours = made.provider.ledger
    assert (by_hand.source, ours.source) == ("by hand", "")
    assert (ours.reference, by_hand.reference) == ("REF-1 $200.00", "REF-2 $200.00")
    (accepted,) = made.provider.transfers
    assert accepted.reference == ours.reference


@pytest.mark.parametrize(
    ("rule", "answer"),
    [({"checks_balance": True}, "more than was captured"), ({"duplicate_window": 3600.0}, "dupl")],
)
def test_what_it_has_taken_on_counts_like_what_it_has_paid(
    rule: dict[str, Any], answer: str, ask: Case
) -> None:
    made, heard = ask(order("a", 300_00), order("b", 300_00), 61, **rule, **LATER)
    assert isinstance(heard[0], Accepted)
    assert isinstance(heard[1], Declined)
    assert answer in str(heard[1])
    assert amounts(made) == [300_00]


def test_without_a_key_what_is_accepted_twice_is_paid_twice(ask: Case) -> None:
    made, heard = ask(order(), order(), 61, **LATER)
    assert [type(each) for each in heard] == [Accepted, Accepted]
    assert amounts(made) == [500_00] * 2


# The provider's own rules.


@pytest.mark.parametrize(("wait", "paid"), [(3599.0, 1), (3601.0, 2)])
def test_an_equal_amount_on_one_order_looks_like_a_duplicate_for_a_while(
    wait: float, paid: int, ask: Case
) -> None:
    # Case B33: whatever its key.
    made, heard = ask(order("a"), wait, order("b"), duplicate_window=3600.0)
    assert len(amounts(made)) == paid
    assert isinstance(heard[1], Declined) == (paid == 1)


def test_another_amount_is_no_duplicate_and_a_replay_is_none_either(ask: Case) -> None:
    made, heard = ask(order("a"), order("b", amount=1), order("a"), duplicate_window=3600.0)
    assert amounts(made) == [500_00, 1]
    assert heard[2] == heard[0]


@pytest.mark.parametrize(("checks", "paid"), [(True, [300_00]), (False, [300_00, 300_00])])
def test_a_provider_may_refuse_more_than_was_captured(
    checks: bool, paid: list[int], ask: Case
) -> None:
    asked = order("a", amount=300_00), order("b", amount=300_00)
    made, heard = ask(*asked, checks_balance=checks)
    assert amounts(made) == paid
    assert isinstance(heard[1], Declined) == checks


def test_all_that_was_captured_may_go_back(ask: Case) -> None:
    made, _ = ask(order("a", amount=300_00), order("b", amount=200_00), checks_balance=True)
    assert amounts(made) == [300_00, 200_00]


@pytest.mark.parametrize("rule", [{"duplicate_window": 3600.0}, {"checks_balance": True}])
def test_two_tenants_orders_of_one_number_are_two_orders_to_it(
    rule: dict[str, Any], world: Any
) -> None:
    scenario = Scenario.two_tenants_one_key().but(provider=ProviderSettings(**rule))
    made = world(SAFE, scenario=scenario)
    assert [effect.tenant_id for effect in made.provider.ledger] == [
        intent.tenant_id for intent in scenario.intents
    ]


def test_what_one_tenant_captured_pays_for_no_other_tenants_order(world: Any, pipe: Any) -> None:
    heard: list[Any] = []

    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        try:
            asked = RefundOrder(session.intent_id, "ORD-1001", 800_00, "USD", session.intent_id)
            heard.append((yield from rt.call(REFUND, asked, timeout=2.0)))
        except Declined as error:
            heard.append(error)
        return Answer("verifying", "later")

    scenario = Scenario.two_tenants_one_key()
    world(pipe(handle), scenario=scenario.but(provider=ProviderSettings(checks_balance=True)))
    assert [type(each) for each in heard] == [Declined, Declined]


def test_what_went_by_hand_counts_towards_what_was_captured(world: Any) -> None:
    scenario = Scenario.one_refund().but(
        submissions=(Submission("intent-1", at=60.0),),
        outside=(Outside("refund", at=1.0, amount=1),),
        provider=ProviderSettings(checks_balance=True),
    )
    made = world(SAFE, scenario=scenario)
    assert [effect.source for effect in made.provider.ledger] == ["by hand"]
    assert made.told[-1].kind == "refused"


# What is asked when it is silent, and what it hides.


def told_after(design: Any, scenario: Scenario) -> float:
    """Seconds until the customer is told that it is done."""
    run = replay(design, scenario)
    assert run.verdict == frozenset()
    return float(run.told.time[run.told.statement == "done"].iloc[0])


def test_a_payment_behind_a_stored_error_is_found_by_asking() -> None:
    hidden = Scenario.one_refund().but(provider=ProviderSettings(errors=1, error_when="after"))
    assert told_after(SAFE, hidden) < 60
    never_asks = SAFE.but(recovery=SameKey(asks_from=None))
    assert told_after(never_asks, hidden) > 19 * 3600


def test_where_it_cannot_be_asked_the_same_is_sent_again() -> None:
    settings = ProviderSettings(errors=6, semantics="stripe-v2", lookup_lag=None)
    assert told_after(SAFE, Scenario.one_refund().but(provider=settings)) < 120
