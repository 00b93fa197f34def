from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.service.keys import (
    Ambiguous,
    ArgumentsHash,
    DateStamped,
    ModelKey,
    ModelKeyPerAttempt,
    NoKey,
    ObjectKey,
    OperationKey,
    OrderAmountKey,
    OrderKey,
    PerAttempt,
    ProcessKey,
    RewrittenKey,
    RowId,
    TimeStamped,
    ToolCallId,
    Truncated,
    fingerprint,
    operation_key,
)
from simulator.service.operations import Operation
from simulator.service.schemas import Session, ToolCall, minor_units, parse_refund

PARTS = st.tuples(st.text(max_size=6), st.text(max_size=6), st.text(max_size=6))
AWKWARD = st.text(alphabet=':|",[]\\ a1é', max_size=4)
PAYLOADS = st.tuples(
    AWKWARD, AWKWARD, AWKWARD, st.integers(0, 200), st.sampled_from(["USD", "JPY"])
)


@given(PARTS)
def test_a_key_is_32_hex_digits_whatever_goes_into_it(parts: tuple[str, str, str]) -> None:
    assert re.fullmatch("[0-9a-f]{32}", operation_key(*parts))


@given(st.tuples(AWKWARD, AWKWARD, AWKWARD), st.tuples(AWKWARD, AWKWARD, AWKWARD))
def test_two_lists_of_parts_never_share_a_key(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    assert (operation_key(*one) == operation_key(*other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a:b", "refund", "c"), ("a", "refund", "b:c")),  # f"{tenant}:{key}", trap 7
        (("a", "b", "cd"), ("a", "bc", "d")),
        (('a","b', "c", "d"), ("a", 'b","c', "d")),
        (("a", "", "b"), ("a", "b", "")),
    ],
)
def test_where_a_part_ends_makes_a_difference(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    assert operation_key(*one) != operation_key(*other)


def test_a_key_is_the_same_in_every_process_and_on_every_day() -> None:
    # Written down once: a key that changes with a release pays every open refund again.
    assert operation_key("tenant", "refund", "intent-1") == "02771be52624ed9773a86f0bbf0a30a9"


@given(PAYLOADS, PAYLOADS)
def test_two_payloads_never_share_a_fingerprint(
    one: tuple[str, str, str, int, str], other: tuple[str, str, str, int, str]
) -> None:
    assert (fingerprint(*one) == fingerprint(*other)) == (one == other)


@given(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8))
def test_two_spellings_of_one_letter_give_one_key_and_one_fingerprint(
    tenant: str, order: str, intent: str
) -> None:
    nfc, nfd = (
        [unicodedata.normalize(form, text) for text in (tenant, order, intent)]
        for form in ("NFC", "NFD")
    )
    assert operation_key(nfc[0], "refund", nfc[2]) == operation_key(nfd[0], "refund", nfd[2])
    assert fingerprint(nfc[0], "refund", nfc[1], 1, "USD") == fingerprint(
        nfd[0], "refund", nfd[1], 1, "USD"
    )


@given(st.text(st.characters(), max_size=8), st.text(st.characters(), max_size=8))
def test_texts_that_are_not_one_spelled_twice_never_share_a_key(one: str, other: str) -> None:
    same = unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)
    assert (operation_key("t", "refund", one) == operation_key("t", "refund", other)) == same


@given(st.integers(1, 10**11), st.integers(0, 2))
def test_every_spelling_of_an_amount_gives_one_fingerprint(cents: int, zeros: int) -> None:
    exact = f"{Decimal(cents).scaleb(-2):f}"
    whole, _, decimals = exact.partition(".")
    short = f"{whole}.{decimals}".rstrip("0").rstrip(".")
    padded = short + ("" if "." in short else "." if zeros else "") + "0" * zeros
    spellings: list[Any] = [exact, short, Decimal(exact), Decimal(padded), Decimal(short)]
    if cents % 100 == 0:
        spellings += [cents // 100, cents / 100]
    prints = set()
    for amount in spellings:
        call = ToolCall("call-1", "issue_refund", {"order_id": "ORD-1", "amount": amount})
        request = parse_refund(call, Session("u", "t", frozenset(), "intent-1"))
        units = minor_units(request.amount, "USD")
        prints.add(fingerprint("t", "refund", request.order_id, units, "USD"))
    assert prints == {fingerprint("t", "refund", "ORD-1", cents, "USD")}


@pytest.mark.parametrize("amount", [500.0, Decimal(500), "500", True])
def test_a_fingerprint_takes_whole_minor_units_only(amount: Any) -> None:
    # First the right one, so that a cache which takes 500 and 500.0 for one would be noticed.
    fingerprint("t", "refund", "ORD-1", int(amount), "USD")
    with pytest.raises(TypeError, match="whole minor units"):
        fingerprint("t", "refund", "ORD-1", amount, "USD")


def test_a_fingerprint_is_the_same_in_every_release() -> None:
    assert (
        fingerprint("tenant", "refund", "ORD-1001", 50000, "USD")
        == "8cf9305a7d498aa3b5695cdd55097f1b"
    )


def test_a_fingerprint_tells_order_amount_currency_and_tenant_apart() -> None:
    payloads = [
        ("t", "refund", "ORD-1", 500, "USD"),
        ("t", "refund", "ORD-2", 500, "USD"),
        ("t", "refund", "ORD-1", 501, "USD"),
        ("t", "refund", "ORD-1", 500, "JPY"),
        ("u", "refund", "ORD-1", 500, "USD"),
        ("t", "cancel", "ORD-1", 500, "USD"),
    ]
    assert len({fingerprint(*payload) for payload in payloads}) == len(payloads)


def test_the_operations_key_stays_the_same_on_every_attempt(
    make_operation: Callable[..., Operation],
) -> None:
    operation = make_operation()
    assert {OperationKey()(operation, attempt) for attempt in range(20)} == {operation.key}


def test_the_operations_key_ignores_all_that_a_model_could_write(
    make_operation: Callable[..., Operation],
) -> None:
    first = OperationKey()(make_operation(), 0)
    anew = make_operation(number=2, call_id="call-2", model_key="a new thought", amount=1)
    assert OperationKey()(anew, 0) == first


def test_the_operations_key_differs_between_tenants_and_intents(
    make_operation: Callable[..., Operation],
) -> None:
    operations = [
        make_operation(),
        make_operation(intent_id="intent-2"),
        make_operation(tenant_id="another"),
    ]
    assert len({OperationKey()(operation, 0) for operation in operations}) == 3


def test_two_honest_refunds_of_one_amount_have_two_keys(
    make_operation: Callable[..., Operation],
) -> None:
    one, other = make_operation(amount=200_00), make_operation(intent_id="intent-2", amount=200_00)
    assert one.fingerprint == other.fingerprint
    assert OperationKey()(one, 0) != OperationKey()(other, 0)


def test_no_key_is_none(make_operation: Callable[..., Operation]) -> None:
    assert NoKey()(make_operation(), 0) is None


def test_a_key_per_attempt_is_new_every_time(make_operation: Callable[..., Operation]) -> None:
    assert len({PerAttempt()(make_operation(), attempt) for attempt in range(5)}) == 5


def test_the_models_key_changes_with_its_thoughts(
    make_operation: Callable[..., Operation],
    make_call: Callable[..., ToolCall],
) -> None:
    key = ModelKey()
    assert key(make_operation(model_key="one"), 0) == key(make_operation(model_key="one"), 3)
    assert key(make_operation(model_key="one"), 0) != key(make_operation(model_key="two"), 0)
    assert key.identity(make_operation(model_key="one"), make_call()) == "one"


# Each wrong policy, with exactly the two operations that it confuses, or fails to unite.


def call_of(operation: Operation, **arguments: Any) -> ToolCall:
    filled = {
        "order_id": operation.order_id,
        "amount": "500.00",
        "refund_request_id": operation.model_key,
    }
    return ToolCall(operation.call_id, "issue_refund", {**filled, **arguments})


def keyed(policy: Any, operation: Operation, **arguments: Any) -> Operation:
    """The operation under the record's key that the policy finds for its call."""
    bare = operation._replace(key="")
    return operation._replace(key=policy.identity(bare, call_of(operation, **arguments)))


def sent(policy: Any, operation: Operation, attempt: int = 0, **arguments: Any) -> str:
    """The key that the provider gets, where the record's key comes from the policy too."""
    found = policy(keyed(policy, operation, **arguments), attempt)
    assert isinstance(found, str)
    return found


def test_a_model_that_leaves_its_key_out_gets_a_new_one_for_every_call(
    make_operation: Callable[..., Operation],
) -> None:
    one, other = make_operation(model_key=""), make_operation(number=2, model_key="")
    assert ModelKey()(one, 0) == ModelKey()(one, 1) != ModelKey()(other, 0)


def test_two_tenants_models_that_invent_one_key_share_it(
    make_operation: Callable[..., Operation],
) -> None:
    one = make_operation(model_key="refund-A")
    other = make_operation(model_key="refund-A", tenant_id="another", intent_id="intent-2")
    assert ModelKey()(one, 0) == ModelKey()(other, 0)


def test_a_key_that_the_model_makes_for_each_try_unites_nothing(
    make_operation: Callable[..., Operation],
) -> None:
    policy, operation = ModelKeyPerAttempt(), make_operation()
    assert sent(policy, operation, 0) != sent(policy, operation, 1)
    again = make_operation(call_id="call-2")
    assert keyed(policy, operation).key != keyed(policy, again).key


def test_a_tool_calls_id_is_another_when_the_run_is_restarted(
    make_operation: Callable[..., Operation],
) -> None:
    policy = ToolCallId()
    one, other = make_operation(call_id="c1"), make_operation(call_id="c3")
    assert one.intent_id == other.intent_id
    assert sent(policy, one, 0) == sent(policy, one, 1) == keyed(policy, one).key == "c1"
    assert sent(policy, one) != sent(policy, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"amount": 10}, {"amount": 10.0}),
        ({"amount": "10"}, {"amount": "10.00"}),
        ({"amount": "10"}, {"amount": 10}),
        ({"order_id": "ORD-Caf\u00e9"}, {"order_id": "ORD-Cafe\u0301"}),
    ],
)
def test_a_hash_of_the_arguments_changes_with_their_spelling(
    make_operation: Callable[..., Operation], one: dict[str, Any], other: dict[str, Any]
) -> None:
    policy, operation = ArgumentsHash(), make_operation()
    assert sent(policy, operation, **one) != sent(policy, operation, **other)


def test_a_hash_of_the_arguments_ignores_their_order_and_the_models_id(
    make_operation: Callable[..., Operation],
) -> None:
    policy, operation = ArgumentsHash(), make_operation()
    turned = ToolCall("call-2", "issue_refund", {"amount": "500.00", "order_id": "ORD-1001"})
    assert policy.identity(operation, turned) == sent(policy, operation)


def test_a_hash_of_the_arguments_takes_what_json_gives(
    make_operation: Callable[..., Operation],
) -> None:
    assert re.fullmatch(
        "[0-9a-f]{32}", sent(ArgumentsHash(), make_operation(), amount=Decimal("500.00"))
    )


@pytest.mark.parametrize("policy", [ArgumentsHash(), OrderKey(), OrderAmountKey()])
def test_what_knows_no_intent_makes_one_of_two_honest_refunds(
    make_operation: Callable[..., Operation], policy: Any
) -> None:
    one = make_operation(intent_id="intent-1", amount=200_00, model_key="")
    other = make_operation(number=2, intent_id="intent-2", amount=200_00, call_id="c", model_key="")
    assert keyed(policy, one).key == keyed(policy, other).key
    assert sent(policy, one) == sent(policy, other)
    assert OperationKey()(one, 0) != OperationKey()(other, 0)


def test_an_orders_key_makes_one_of_two_different_amounts_too(
    make_operation: Callable[..., Operation],
) -> None:
    one, other = make_operation(amount=200_00), make_operation(amount=300_00)
    assert sent(OrderKey(), one) == sent(OrderKey(), other)
    assert sent(OrderAmountKey(), one) != sent(OrderAmountKey(), other)
    assert one.fingerprint != other.fingerprint


@pytest.mark.parametrize("policy", [ArgumentsHash(), OrderKey(), OrderAmountKey()])
def test_what_knows_no_intent_still_tells_orders_and_tenants_apart(
    make_operation: Callable[..., Operation], policy: Any
) -> None:
    operations = [
        make_operation(),
        make_operation(order_id="ORD-2"),
        make_operation(tenant_id="another"),
    ]
    assert len({sent(policy, operation) for operation in operations}) == 3


def test_a_rows_id_goes_with_its_row(make_operation: Callable[..., Operation]) -> None:
    row_17, row_18 = make_operation(number=17), make_operation(number=18)
    assert row_17.intent_id == row_18.intent_id
    assert RowId()(row_17, 0) == RowId()(row_17, 5) != RowId()(row_18, 0)


class Cancellation(Operation):
    @property
    def action(self) -> str:
        return "cancel"


def test_a_key_of_the_object_makes_one_of_two_actions(
    make_operation: Callable[..., Operation],
) -> None:
    refund = make_operation()
    cancellation = Cancellation(*refund)
    assert ObjectKey()(refund, 0) == ObjectKey()(cancellation, 0)
    assert OperationKey()(refund, 0) != OperationKey()(cancellation, 0)
    assert ObjectKey()(refund, 0) != ObjectKey()(make_operation(intent_id="intent-2"), 0)


def test_ids_that_begin_alike_share_a_truncated_key(
    make_operation: Callable[..., Operation],
) -> None:
    ten, eleven = make_operation(intent_id="intent-10"), make_operation(intent_id="intent-11")
    assert Truncated()(ten, 0) == Truncated()(eleven, 0) == "REF-intent-1"
    assert Truncated(length=9)(ten, 0) != Truncated(length=9)(eleven, 0)
    assert OperationKey()(ten, 0) != OperationKey()(eleven, 0)


def test_a_colon_between_two_ids_is_not_found_again(
    make_operation: Callable[..., Operation],
) -> None:
    one = make_operation(tenant_id="a:b", intent_id="c")
    other = make_operation(tenant_id="a", intent_id="b:c")
    assert Ambiguous()(one, 0) == Ambiguous()(other, 0)
    assert OperationKey()(one, 0) != OperationKey()(other, 0)


def test_a_key_with_the_day_in_it_changes_at_midnight(
    make_operation: Callable[..., Operation],
) -> None:
    policy, operation = DateStamped(), make_operation()
    midnight = 15 * 3600.0  # histories begin at 09:00
    assert policy(operation, 0) == policy.at(operation, 3, midnight - 10.0)
    assert policy.at(operation, 0, midnight - 10.0) != policy.at(operation, 0, midnight + 10.0)
    assert policy.at(operation, 0, midnight) == policy.at(operation, 0, midnight + 86_399.0)
    assert policy.at(operation, 0, midnight) != policy.at(operation, 0, midnight + 86_400.0)


def test_another_run_has_its_midnight_elsewhere(make_operation: Callable[..., Operation]) -> None:
    policy, operation = DateStamped(day_begins=60.0), make_operation()
    assert policy.at(operation, 0, 59.0) != policy.at(operation, 0, 60.0)


@pytest.mark.parametrize("policy", [TimeStamped(), RewrittenKey()])
def test_a_key_of_the_moment_is_new_for_every_send(
    make_operation: Callable[..., Operation], policy: Any
) -> None:
    operation = make_operation()
    assert policy.at(operation, 0, 1.0) != policy.at(operation, 1, 13.05)
    assert policy.at(operation, 0, 1.0) != policy.at(operation, 0, 13.05)
    assert policy.at(operation, 0, 1.0) == policy.at(operation, 0, 1.0)


def test_an_sdks_key_dies_with_its_process(make_operation: Callable[..., Operation]) -> None:
    policy, operation = ProcessKey(), make_operation()
    assert policy.by(operation, 0, "worker-1#1") == policy.by(operation, 7, "worker-1#1")
    assert policy.by(operation, 0, "worker-1#1") != policy.by(operation, 0, "worker-1#2")


POLICIES = [
    Ambiguous(),
    ArgumentsHash(),
    DateStamped(),
    ModelKey(),
    ModelKeyPerAttempt(),
    ObjectKey(),
    OperationKey(),
    OrderAmountKey(),
    OrderKey(),
    PerAttempt(),
    ProcessKey(),
    RewrittenKey(),
    RowId(),
    TimeStamped(),
    ToolCallId(),
    Truncated(),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_every_policy_sends_a_key_that_a_provider_takes(
    make_operation: Callable[..., Operation], policy: Any
) -> None:
    # 255 characters are what Stripe allows.
    assert re.fullmatch(r"[!-~]{1,255}", policy(make_operation(), 0))


def test_every_policy_is_tried() -> None:
    import simulator.service.keys as module

    names = {name for name in module.__all__ if name[0].isupper()}
    assert {type(policy).__name__ for policy in POLICIES} == names - {"NoKey"}
