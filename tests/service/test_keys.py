from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.service.keys import (
    ModelKey,
    NoKey,
    OperationKey,
    PerAttempt,
    fingerprint,
    operation_key,
)
from simulator.service.operations import Operation
from simulator.service.schemas import ToolCall

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
