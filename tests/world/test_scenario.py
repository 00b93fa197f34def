from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from simulator.experiments.replay import replay
from simulator.service.designs import RESERVED, SAFE
from simulator.service.schemas import parse_refund
from simulator.world import faults
from simulator.world.scenario import (
    TENANT,
    USER,
    ApproverSettings,
    Intent,
    Order,
    Outside,
    ProviderSettings,
    Scenario,
    Submission,
    ready_scenarios,
)

READY = list(ready_scenarios().values())


def test_there_are_ready_scenarios() -> None:
    assert len(READY) >= 7


@pytest.mark.parametrize("make", READY)
def test_a_ready_scenario_needs_no_arguments_and_knows_its_name(
    make: Callable[[], Scenario],
) -> None:
    assert make().name == make.__name__
    assert make() == make()


@pytest.mark.parametrize(
    ("slots", "words"),
    [
        (
            {"intents": (Intent("intent-1", order_id="ORD-9"),)},
            "'ORD-9' is not one of",
        ),
        ({"intents": (Intent("intent-1", tenant_id="t"),)}, "is not one of the tenant's orders"),
        ({"intents": (Intent("intent-1"), Intent("intent-1"))}, "two intents have one id"),
        ({"orders": (Order(), Order(captured=1))}, "two orders of one tenant have one id"),
        (
            {"intents": (Intent("intent-1", currency="EUR"),)},
            "'intent-1' is in EUR, and its order 'ORD-1001' in USD; give both one",
        ),
        (
            {"intents": (Intent("intent-1", currency="EUR", owed=False),)},
            "'intent-1' is in EUR, and its order",
        ),
        (
            {"outside": (Outside("cancel", at=1.0, order_id="ORD-9"),)},
            "a cancel from outside names order 'ORD-9', which is not one of .* there are ORD-1001",
        ),
        (
            {"outside": (Outside("cancel", at=1.0, tenant_id="other"),)},
            "names order 'ORD-1001', which is not one of the tenant's",
        ),
        ({"poison": {"intent-9"}}, "poison names intent 'intent-9'; there are intent-1"),
        (
            {"provider": ProviderSettings(declines=frozenset({"intent-9", "intent-1"}))},
            r"provider\.declines names intent 'intent-9'; there are intent-1",
        ),
        (
            {"provider": ProviderSettings(contradicts=frozenset({"intent-9"}))},
            r"provider\.contradicts names intent 'intent-9'",
        ),
        (
            {"provider": ProviderSettings(fails_to_settle=frozenset({"intent-9"}))},
            r"provider\.fails_to_settle names intent 'intent-9'",
        ),
        (
            {"approver": ApproverSettings(says={"intent-9": "no"})},
            r"approver\.says names intent 'intent-9'",
        ),
        ({"submissions": (Submission("intent-2"),)}, "'intent-2'; there are intent-1"),
        (
            {"submissions": (Submission("intent-1", instance="backend-3"),)},
            "'backend-3'; there are backend-1, backend-2",
        ),
        (
            {"submissions": (Submission("intent-1", instance="worker-1"),)},
            "goes to 'worker-1'; there are backend-1",
        ),
    ],
)
def test_a_scenario_that_names_what_is_not_there_is_refused(
    slots: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=rf"Scenario 'mine': .*{words}"):
        Scenario(name="mine", **slots)


@pytest.mark.parametrize(
    ("slots", "words"),
    [
        ({"backends": 0}, r"Scenario\(backends=0\): give a whole number, 1 or more"),
        ({"consent_above": -1}, r"Scenario\(consent_above=-1\): give whole units"),
        ({"agent": 3}, r"Scenario\(agent=3\): it should be an instance of AgentSettings"),
        ({"intents": "intent-1"}, r"Scenario\(intents='intent-1'\): it should be a valid tuple"),
        ({"name": None}, r"Scenario\(name=None\): it should be a valid string"),
    ],
)
def test_an_attribute_of_another_kind_is_refused(slots: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Scenario(**slots)


def test_lists_and_sets_are_taken_for_what_they_mean() -> None:
    intents, submissions = [Intent("intent-1")], [Submission("intent-1")]
    mine = Scenario(intents=intents, submissions=submissions, poison={"intent-1"})  # type: ignore[arg-type]
    assert mine == Scenario(
        intents=tuple(intents), submissions=tuple(submissions), poison=frozenset({"intent-1"})
    )
    assert hash(mine)


def test_but_checks_as_well() -> None:
    with pytest.raises(ValueError, match="a submission names intent 'intent-2'"):
        Scenario.one_refund().but(submissions=(Submission("intent-2"),))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Scenario(workers=0), "workers=0"),
        (lambda: Scenario(intents=(), submissions=()), r"\w"),
    ],
)
def test_a_scenario_without_workers_or_wishes_is_refused(
    make: Callable[[], Scenario], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_an_attribute_that_there_is_not_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="intents"):
        Scenario.one_refund().but(intent=Intent("intent-1"))


def test_a_scenario_cannot_be_changed_in_place() -> None:
    with pytest.raises(FrozenInstanceError):
        Scenario.one_refund().backends = 3


def test_an_intent_that_nobody_owes_may_name_any_order() -> None:
    assert Scenario(intents=(Intent("intent-1", order_id="ORD-9", owed=False),))


NOT_A_REFUND = {
    "injected_arguments",
    "flag_in_the_call",
    "cancelled_before",
    "cancelled_orders",
    "deleted_profile",
    "strangers_goods",
}


@pytest.mark.parametrize("make", [m for m in READY if m.__name__ not in NOT_A_REFUND])
def test_what_the_model_writes_fits_the_published_schema(make: Callable[[], Scenario]) -> None:
    scenario = make()
    for submission in scenario.submissions:
        call = scenario.call(submission)
        session = scenario.session(submission.intent_id)
        assert parse_refund(call, session).refund_request_id == submission.intent_id


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (500_00, "USD", "500.00"),
        (1, "USD", "0.01"),
        (500, "JPY", "500"),
        (123456_78, "EUR", "123456.78"),
    ],
)
def test_the_model_writes_an_amount_in_plain_digits(amount: int, currency: str, text: str) -> None:
    intent = Intent("intent-1", amount=amount, currency=currency)
    scenario = Scenario(orders=(Order(captured=amount, currency=currency),), intents=(intent,))
    assert scenario.call(scenario.submissions[0]).arguments["amount"] == text


def test_a_new_thought_has_another_call_id_and_invents_another_key() -> None:
    scenario = Scenario.one_refund()
    first = scenario.call(Submission("intent-1"))
    same = scenario.call(replace(Submission("intent-1"), at=10.0, instance="backend-2"))
    anew = scenario.call(Submission("intent-1", thought=2))
    assert first == same
    assert first.call_id != anew.call_id
    assert first.arguments["refund_request_id"] != anew.arguments["refund_request_id"]


def test_the_session_says_who_asks_and_for_which_intent() -> None:
    session = Scenario.two_partial_refunds().session("intent-2")
    assert (session.tenant_id, session.user_id, session.intent_id) == (TENANT, USER, "intent-2")
    assert session.permissions == {"refund:create"}


def test_an_unknown_intent_has_no_session() -> None:
    with pytest.raises(ValueError, match="has no intent"):
        Scenario.one_refund().session("intent-9")


# What a submission may put into the call.


def test_what_is_injected_is_written_into_the_call_or_over_what_was_there() -> None:
    scenario = Scenario.one_refund()
    plain = scenario.call(Submission("intent-1"))
    more = {"tenant_id": "other", "amount": "1.00"}
    call = scenario.call(Submission("intent-1", arguments=more))
    assert call.arguments == {**plain.arguments, **more}
    assert call.call_id == plain.call_id


def test_another_tool_gets_its_arguments_and_none_of_a_refunds() -> None:
    call = Scenario.one_refund().call(
        Submission("intent-1", tool="order_lookup", arguments={"order_id": "ORD-1001"})
    )
    assert call.name == "order_lookup"
    assert dict(call.arguments) == {"order_id": "ORD-1001"}


def test_what_the_model_wrote_cannot_be_changed_by_who_reads_it() -> None:
    call = Scenario.one_refund().call(Submission("intent-1", arguments={"a": 1}))
    with pytest.raises(TypeError):
        call.arguments["a"] = 2


def test_lists_and_objects_come_back_as_the_model_wrote_them_and_new_each_time() -> None:
    scenario = Scenario.one_refund()
    wrote = {"note": {"b": [1, {"c": None}], "a": {}}, "order_ids": ["ORD-1001", ["x"]]}
    made = Submission("intent-1", tool="other", arguments=wrote)
    call = scenario.call(made)
    assert dict(call.arguments) == wrote
    call.arguments["note"]["b"].append("changed by who read it")
    assert dict(scenario.call(made).arguments) == wrote
    assert dict(scenario.call(replace(made, thought=2)).arguments) == wrote


def test_an_object_in_place_of_an_amount_is_told_as_invalid() -> None:
    odd = Submission("intent-1", arguments={"amount": {"value": "500.00", "currency": "USD"}})
    run = replay(SAFE, Scenario.one_refund().but(submissions=(odd,)))
    assert run.ledger.empty
    assert list(run.answers.answer) == ["invalid"]
    assert "an object is not an amount" in run.answers.text[0]


@pytest.mark.parametrize("orders", [5, None, [1, 2], {"id": "ORD-1001"}, "ORD-1001"])
def test_what_is_no_list_of_orders_is_told_as_invalid(orders: Any) -> None:
    odd = Submission("intent-1", tool="cancel_orders", arguments={"order_ids": orders})
    run = replay(SAFE, Scenario.cancelled_orders().but(submissions=(odd,)))
    assert list(run.answers.answer) == ["invalid"]
    assert set(run.books.status) == {None}


def test_the_permissions_of_a_session_are_those_of_its_intent() -> None:
    reader = frozenset({"order:read"})
    scenario = Scenario(intents=(Intent("intent-1", permissions=reader),))
    assert scenario.session("intent-1").permissions == reader


# The ready ones, under the safe design: what they are there for.

AGAIN = pytest.mark.parametrize("seed", [0, 1])


@AGAIN
def test_whoever_is_asked_once_is_not_asked_again(seed: int) -> None:
    lost = [faults.lose_response("tool.issue_refund")]
    run = replay(SAFE, Scenario.asked_once(), lost, seed)
    assert run.verdict == frozenset()
    assert [step.nth for step in run.steps if step.name == "agent:tool.issue_refund"] == [1]
    # It has no answer, and by then the customer has read the follow-up.
    assert list(run.told.statement) == ["done"]
    assert [event.text for event in run.trace if event.what == "verifying"]


@AGAIN
def test_of_injected_arguments_nothing_is_paid(seed: int) -> None:
    run = replay(SAFE, Scenario.injected_arguments(), (), seed)
    assert run.verdict == frozenset()
    assert run.ledger.empty
    assert list(run.told.statement) == ["invalid", "refused", "refused"]


@AGAIN
def test_what_the_bank_returns_is_told_as_refused_after_two_days(seed: int) -> None:
    run = replay(SAFE, Scenario.returned_by_the_bank(), (), seed)
    assert run.verdict == frozenset()
    assert run.ledger.empty
    assert run.time_to_answer["intent-1"] == pytest.approx(48 * 3600, abs=2.0)


@AGAIN
def test_a_poisoned_event_kills_its_workers_is_set_aside_and_the_good_one_is_paid(
    seed: int,
) -> None:
    run = replay(SAFE, Scenario.poisoned_event(), (), seed)
    assert run.verdict == frozenset()
    assert list(run.ledger.intent) == ["intent-2"]
    assert len(run.tasks) == 1
    deaths = [event for event in run.trace if event.kind == "crash"]
    assert len(deaths) == 8  # as many claims as SAFE allows
    assert all(event.process.startswith("worker") for event in deaths)


def test_poison_kills_a_backend_that_sends_it_as_well() -> None:
    run = replay(RESERVED, Scenario.poisoned_event())
    assert {event.process for event in run.trace if event.kind == "crash"} == {"backend-1"}
    assert list(run.ledger.intent) == ["intent-2"]


def test_true_is_not_the_argument_one() -> None:
    same = Submission("intent-1", arguments={"confirm": 1})
    other = Submission("intent-1", arguments={"confirm": True})
    scenario = Scenario(submissions=(same, other))
    flags = [scenario.call(each).arguments["confirm"] for each in (same, other)]
    assert [type(flag) for flag in flags] == [int, bool]
