from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from simulator.service.invalid import InvalidRequest
from simulator.service.schemas import EXPONENTS, minor_units, parse_refund
from simulator.world.scenario import Scenario
from simulator.world.settings import (
    LATEST,
    AgentSettings,
    ApproverSettings,
    Intent,
    Order,
    Outside,
    ProviderSettings,
    Submission,
    WebhookSettings,
)
from simulator.world.world import CAP

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Intent("intent-1", amount=-1), r"Intent\(amount=-1\): give whole minor units"),
        (lambda: Intent("intent-1", amount=0), r"Intent\(amount=0\)"),
        (
            lambda: Intent("intent-1", amount=500.0),
            r"Intent\(amount=500\.0\): it should be a valid integer",
        ),
        (lambda: Intent("intent-1", amount=True), r"Intent\(amount=True\)"),
        (lambda: Intent("intent-1", currency="XXX"), r"Intent\(currency='XXX'\): .*USD"),
        (lambda: Order(captured=-1), r"Order\(captured=-1\)"),
        (lambda: Order(captured=500.0), r"Order\(captured=500\.0\)"),
        (lambda: Order(currency="usd"), r"Order\(currency='usd'\)"),
        (lambda: Submission("intent-1", at=-1.0), r"Submission\(at=-1\.0\): give seconds"),
        (lambda: Submission("intent-1", at=INF), r"Submission\(at=inf\)"),
        (lambda: Intent("intent-"), r"Intent\(id='intent-'\): give 8 to 100 printable"),
        (lambda: Intent("i" * 101), r"Intent\(id='i+\.\.\.\): give 8 to 100 printable"),
        (lambda: Intent("intent-\0"), r"Intent\(id='intent-\\x00'\): give 8 to 100 printable"),
        (lambda: Intent("intent-\ud800"), r"Intent\(id='intent-\\ud800'\): give 8 to"),
        (lambda: Intent("intent-e\u0301"), r"Intent\(id=.*\): .* in NFC, which the published"),
        (lambda: Intent("intent-1", order_id="O1"), r"Intent\(order_id='O1'\): give 3 to 50"),
        (lambda: Intent("intent-1", tenant_id="\ud800"), r"Intent\(tenant_id=.*\): give an id of"),
        (lambda: Intent("intent-1", user_id="\0"), r"Intent\(user_id='\\x00'\): give an id of"),
        (
            lambda: Intent("intent-1", amount=10**12),
            r"Intent\(amount=1000000000000\): give minor units up to 999999999999, .* USD",
        ),
        (lambda: Order("O1"), r"Order\(id='O1'\): give 3 to 50 printable"),
        (lambda: Order("O" * 51), r"Order\(id='O+'\): give 3 to 50 printable"),
        (lambda: Order("ORD\n1001"), r"Order\(id='ORD\\n1001'\): give 3 to 50 printable"),
        (lambda: Order(user_id=""), r"Order\(user_id=''\): give an id of printable"),
        (lambda: Order(captured=10**18), r"Order\(captured=10{18}\): give at most 18 digits"),
        (lambda: Order(lines=(("A", 0),)), r"Order\(lines=.*\): give quantities of 1 or more"),
        (lambda: Order(lines=(("A", 10**18),)), r"Order\(lines=.*\): .* at most 18 digits"),
        (lambda: Order(lines=(("A", 1), ("A", 1))), r"Order\(lines=.*\): .*unit once"),
        (lambda: Order(lines=(("", 1),)), r"Order\(lines=.*\): .*of printable characters"),
        (lambda: Submission("intent-1", at=518_401), r"at=518401\): give at most 518400 .*six"),
        (lambda: Submission("intent-1", thought=0), r"thought=0\): give a whole number, 1 or"),
        (
            lambda: Submission("intent-1", arguments={"a": [{1, 2}]}),
            r"Submission\(arguments=.*\): give texts, numbers, lists and dicts",
        ),
        (lambda: Submission("intent-1", arguments={1: 2, "a": 3}), r"arguments=\{1: 2, 'a': 3\}"),
        (lambda: ApproverSettings(says={"intent-1": "maybe"}), r"'yes', 'no' or 'nothing'"),
        (lambda: ApproverSettings(says={1: "no"}), r"ApproverSettings\(says=\{1: 'no'\}\): it"),
        (lambda: Outside("cancel", at=518_401), r"Outside\(at=518401\): give at most 518400"),
        (lambda: Outside("refund", at=1.0, amount=10**18), r"Outside\(amount=10{18}\): give at"),
        (lambda: AgentSettings(patience=1e9), r"AgentSettings\(patience=1.*\): .*ten years"),
        (lambda: ApproverSettings(delay=1e9), r"ApproverSettings\(delay=1.*\): .*ten years"),
        (lambda: ApproverSettings(second_thoughts=1e9), r"second_thoughts=1.*\): .*ten years"),
        (lambda: ProviderSettings(leg=1e9), r"ProviderSettings\(leg=1.*\): .*ten years"),
        (lambda: ProviderSettings(lookup_lag=1e9), r"lookup_lag=1.*\): .*ten years"),
        (lambda: ProviderSettings(settles_after=1e9), r"settles_after=1.*\): .*ten years"),
        (lambda: AgentSettings(patience=0), r"AgentSettings\(patience=0\): .*more than 0"),
        (lambda: AgentSettings(resubmits=-1), r"AgentSettings\(resubmits=-1\): .*whole number"),
        (lambda: AgentSettings(resubmits=1.5), r"AgentSettings\(resubmits=1\.5\)"),
        (lambda: ProviderSettings(limit=0), r"ProviderSettings\(limit=0\): .*1 or more, or None"),
        (lambda: ProviderSettings(leg=-0.1), r"ProviderSettings\(leg=-0\.1\)"),
        (lambda: ProviderSettings(work=NAN), r"ProviderSettings\(work=nan\)"),
        (lambda: ProviderSettings(key_lifetime=-1), r"ProviderSettings\(key_lifetime=-1\)"),
        (lambda: ProviderSettings(limit_window=0), r"ProviderSettings\(limit_window=0\)"),
        (lambda: ProviderSettings(lookup_lag=-1), r"ProviderSettings\(lookup_lag=-1\)"),
        (lambda: ProviderSettings(leg="0.1"), r"ProviderSettings\(leg='0\.1'\)"),
        (lambda: ProviderSettings(semantics="stripe"), r"semantics='stripe'\): .*stripe-v1, "),
        (lambda: ProviderSettings(errors=-1), r"ProviderSettings\(errors=-1\)"),
        (lambda: ProviderSettings(error_when="during"), r"error_when='during'\): .*'before' or"),
        (lambda: ProviderSettings(settles_after=0), r"ProviderSettings\(settles_after=0\)"),
        (lambda: ProviderSettings(duplicate_window=-1), r"ProviderSettings\(duplicate_window=-1"),
        (lambda: ApproverSettings(delay=0), r"ApproverSettings\(delay=0\): .*more than 0"),
        (lambda: ApproverSettings(says=(("intent-1", "maybe"),)), r"'yes', 'no' or 'nothing'"),
        (lambda: ApproverSettings(second_thoughts=0), r"second_thoughts=0\): .*or None"),
        (lambda: Outside("steal", at=1.0), r"Outside\(what='steal'\): .*cancel, refund, charge"),
        (lambda: Outside("cancel", at=0), r"Outside\(at=0\)"),
        (lambda: Outside("refund", at=1.0), r"Outside\(amount=0\): .*1 or more"),
        (lambda: Outside("chargeback", at=1.0, amount=1.5), r"Outside\(amount=1\.5\)"),
        (lambda: WebhookSettings(created=(-1.0,)), r"WebhookSettings\(created=\(-1\.0,\)\)"),
        (lambda: WebhookSettings(succeeded=(INF,)), r"WebhookSettings\(succeeded="),
        (lambda: WebhookSettings(patience=0), r"WebhookSettings\(patience=0\)"),
        (lambda: WebhookSettings(tries=0), r"WebhookSettings\(tries=0\)"),
        (lambda: WebhookSettings(misreports=-1), r"misreports=-1\): .*0 or more, or None"),
        (lambda: WebhookSettings(misreports=50.0), r"WebhookSettings\(misreports=50\.0\)"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_with_its_value(
    make: Callable[[], Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_the_least_that_makes_sense_is_allowed() -> None:
    assert Intent("intent-1", amount=1)
    assert Intent("intent-1", owed=False, tenant_id="", user_id="")  # a session of nobody
    assert Order(captured=0)
    assert Submission("intent-1", at=0, thought=1)
    assert AgentSettings(patience=0.001, resubmits=0)
    assert ProviderSettings(limit=1, lookup_lag=0)
    assert ProviderSettings(limit=None, lookup_lag=None)
    assert ProviderSettings(settles_after=0.1, duplicate_window=0.1, errors=0)
    assert WebhookSettings(created=(), succeeded=(0, 0.0), failed=(), tries=1, misreports=0)
    assert Outside("cancel", at=0.1)
    assert Outside("refund", at=0.1, amount=1)


def test_the_most_that_makes_sense_is_allowed() -> None:
    assert Intent("i" * 8, order_id="ORD")
    assert Intent("\u00e9" * 100, order_id="O" * 50)
    assert Order(captured=10**18 - 1, lines=(("A", 10**18 - 1), ("B", 1)))
    assert Submission("intent-1", at=LATEST)
    assert Outside("refund", at=LATEST, amount=10**18 - 1)


def test_what_begins_last_has_a_day_before_the_history_is_cut_off() -> None:
    assert CAP / 1e6 - LATEST == 24 * 3600.0


@pytest.mark.parametrize("currency", EXPONENTS)
def test_the_largest_intent_is_the_largest_amount_that_the_schema_carries(currency: str) -> None:
    exponent = EXPONENTS[currency]
    most = 10 ** (10 + exponent) - 1
    order = Order(captured=most, currency=currency)
    largest = Intent("intent-1", amount=most, currency=currency)
    scenario = Scenario(orders=(order,), intents=(largest,))
    call, session = scenario.call(scenario.submissions[0]), scenario.session("intent-1")
    assert minor_units(parse_refund(call, session).amount, currency) == most
    with pytest.raises(ValueError, match=rf"Intent\(amount={most + 1}\)"):
        replace(largest, amount=most + 1)
    above = replace(scenario.submissions[0], amount=str(10**10))
    with pytest.raises(InvalidRequest):
        parse_refund(scenario.call(above), session)


# What the model writes beside, or in place of, what it should.


def test_arguments_are_kept_as_sorted_pairs_so_that_submissions_can_be_compared() -> None:
    one = Submission("intent-1", arguments={"b": [1, [2]], "a": True})
    other = Submission("intent-1", arguments={"a": True, "b": [1, [2]]})
    assert one == other
    assert hash(one) == hash(other)
    assert one.arguments == (("a", True), ("b", (1, (2,))))


def test_an_object_within_the_arguments_is_no_list_of_its_pairs_and_has_no_order() -> None:
    one = Submission("intent-1", arguments={"a": {"b": 1, "c": [{}]}})
    assert one == Submission("intent-1", arguments={"a": {"c": [{}], "b": 1}})
    assert hash(one) == hash(Submission("intent-1", arguments={"a": {"c": [{}], "b": 1}}))
    assert one != Submission("intent-1", arguments={"a": [["b", 1], ["c", [{}]]]})
    assert one.written() == {"a": {"b": 1, "c": [{}]}}
    assert replace(one, thought=2).written() == one.written()


@pytest.mark.parametrize("given", [(("b", [1]), ("a", {"c": 2})), [["b", [1]], ["a", {"c": 2}]]])
def test_arguments_may_be_given_as_pairs(given: Any) -> None:
    pairs = [tuple(pair) for pair in given]
    made = Submission("intent-1", arguments=type(given)(pairs))
    assert made == Submission("intent-1", arguments=MappingProxyType(dict(pairs)))


def test_submissions_with_other_arguments_are_other_submissions() -> None:
    plain = Submission("intent-1")
    assert plain != Submission("intent-1", arguments={"confirm": True})
    assert plain != Submission("intent-1", tool="delete_profile")
    assert plain == Submission("intent-1", arguments={})


def test_an_approver_says_yes_about_what_nobody_named() -> None:
    person = ApproverSettings(says=(("intent-2", "no"), ("intent-3", "nothing")))
    assert [person.answer(f"intent-{n}") for n in (1, 2, 3)] == ["yes", "no", "nothing"]


def test_what_an_approver_says_may_be_written_as_a_dict() -> None:
    pairs = (("intent-2", "no"), ("intent-3", "nothing"))
    person = ApproverSettings(says={"intent-3": "nothing", "intent-2": "no"})
    assert person == ApproverSettings(says=pairs) == ApproverSettings(says=list(pairs))  # type: ignore[arg-type]
    assert hash(person)
    assert person.answer("intent-2") == "no"
