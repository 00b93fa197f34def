from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from simulator.service.keys import fingerprint
from simulator.service.schemas import (
    FreeDict,
    InvalidRequest,
    RefundRequest,
    Session,
    ToolCall,
    minor_units,
    parse_refund,
)

SESSION = Session("user", "tenant", frozenset(), "intent-1")


def parsed(**arguments: Any) -> RefundRequest:
    call = ToolCall("call-1", "issue_refund", {"order_id": "ORD-1001", **arguments})
    return parse_refund(call, SESSION)


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        ("NaN", "valid decimal"),
        ("sNaN", "amount"),
        ("Infinity", "valid decimal"),
        ("-Infinity", "valid decimal"),
        (float("nan"), "valid decimal"),
        (float("inf"), "valid decimal"),
        ("-500.00", "greater than 0"),
        ("0", "greater than 0"),
        ("0.00", "greater than 0"),
        ("500.0001", "3 decimal places"),
        (0.1 + 0.2, "amount"),
        ("10000000000.00", "10 digits"),
        ("1e22", "amount"),
        ("five hundred", "valid decimal"),
        ("0x1F4", "valid decimal"),
        ("", "valid decimal"),
        (None, "amount"),
        (True, "amount"),
        (["500"], "amount"),
        ({"value": "500"}, "an object is not an amount"),
        ((0, (5,), 0), "not an amount"),
        (b"500", "not an amount"),
        (-500, "greater than 0"),
        pytest.param(10**5000, "digits", id="10**5000"),
        (Decimal("NaN"), "amount"),
        (Decimal("sNaN"), "amount"),
        (Decimal("-0.01"), "greater than 0"),
        (Decimal("0.0001"), "3 decimal places"),
        (Decimal("1E+1000000"), "digits"),
        pytest.param("9" * 100_000, "digits", id="a hundred thousand nines"),
    ],
)
def test_an_amount_that_is_no_payable_sum_is_refused_in_a_sentence(amount: Any, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as refused:
        parsed(amount=amount)
    assert str(refused.value).startswith("Argument amount: ")
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(
    "amount",
    [
        "1e3",
        "5E2",
        "5_00",
        "５００",  # noqa: RUF001
        "+5",
        " 500",
        "500\n",
        "1,000",
        ".5",
        "5.",
        "0500",
        "500.0000",
    ],
)
def test_an_amount_in_an_unusual_spelling_is_refused(amount: str) -> None:
    with pytest.raises(InvalidRequest):
        parsed(amount=amount)


@pytest.mark.parametrize("spelling", ["500", "500.0", "500.00", 500, 500.0, Decimal("5E+2")])
def test_500_is_500_however_the_model_spells_it(spelling: Any) -> None:
    units = minor_units(parsed(amount=spelling).amount, "USD")
    assert units == 50000
    assert fingerprint("t", "refund", "ORD-1001", units, "USD") == fingerprint(
        "t", "refund", "ORD-1001", 50000, "USD"
    )


@given(st.decimals(min_value="0.01", max_value="9999999999.99", places=2))
def test_every_amount_of_two_decimals_arrives_to_the_cent(amount: Decimal) -> None:
    assert parsed(amount=str(amount)).amount == amount


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"order_id": "OR"}, "order_id: String should have at least 3"),
        ({"order_id": "O" * 51}, "order_id: String should have at most 50"),
        ({"order_id": 1001}, "order_id: Input should be a valid string"),
        ({"order_id": "ORD\x001001"}, "order_id: .* cannot be seen"),
        ({"order_id": "ORD\u200b-1001"}, "order_id: .* cannot be seen"),
        ({"order_id": "ORD-\ud800"}, "order_id: .* cannot be seen"),
        ({"note": "please"}, "note: Extra inputs are not permitted"),
        ({"Amount": "500.00"}, "Amount: Extra inputs are not permitted"),
    ],
)
def test_other_arguments_are_refused_by_name(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        parsed(amount="500.00", **arguments)


def test_a_missing_argument_is_named() -> None:
    with pytest.raises(InvalidRequest, match="amount: Field required"):
        parsed()


def test_another_tool_is_refused_by_name(make_call: Callable[..., ToolCall]) -> None:
    with pytest.raises(InvalidRequest, match=r"no tool 'cancel_order'\. Use issue_refund"):
        parse_refund(make_call("cancel_order"), SESSION)


@pytest.mark.parametrize("invented", ["refund-of-a-new-thought", "x", "", 7, None])
def test_the_requests_id_is_the_sessions_whatever_the_model_invents(invented: Any) -> None:
    # Section 5 forbids a key from the model; section 16's schema asks it for one (trap 11).
    assert parsed(amount="500.00", refund_request_id=invented).refund_request_id == "intent-1"


@pytest.mark.parametrize(
    ("name", "comes_from"),
    [
        ("tenant_id", "comes from the session"),
        ("user_id", "comes from the session"),
        ("confirm", "a person confirms"),
        ("approved", "a person approves"),
        ("idempotency_key", "the application gives"),
    ],
)
def test_what_is_not_the_models_to_say_is_refused_with_where_it_comes_from(
    name: str, comes_from: str
) -> None:
    with pytest.raises(InvalidRequest, match=comes_from) as refused:
        parsed(amount="500.00", aside="x", **{name: True})
    assert f"The model may not set {name}" in str(refused.value)
    assert (refused.value.field, refused.value.code) == (name, "unknown_field")


@pytest.mark.parametrize(
    ("arguments", "field", "code"),
    [
        ({}, "order_id", "missing"),
        ({"order_id": "ORD-1001"}, "amount", "missing"),
        ({"amount": "500.00"}, "order_id", "missing"),
        ({"order_id": 1001, "amount": "500.00"}, "order_id", "not_text"),
        ({"order_id": "OR", "amount": "500.00"}, "order_id", "out_of_range"),
        ({"order_id": "ORD-1001", "amount": "500", "note": ""}, "note", "unknown_field"),
        ({"order_id": "ORD-1001", "amount": "five"}, "amount", "not_a_number"),
        ({"order_id": "ORD-1001", "amount": None}, "amount", "not_a_number"),
        ({"order_id": "ORD-1001", "amount": True}, "amount", "not_a_number"),
        ({"order_id": "ORD-1001", "amount": Decimal("NaN")}, "amount", "not_a_number"),
        ({"order_id": "ORD-1001", "amount": "0"}, "amount", "out_of_range"),
        ({"order_id": "ORD-1001", "amount": "-5"}, "amount", "out_of_range"),
        ({"order_id": "ORD-1001", "amount": 10**10}, "amount", "out_of_range"),
        ({"order_id": "ORD-1001", "amount": "0.0001"}, "amount", "too_precise"),
        ({"order_id": "ORD-1001", "amount": Decimal("0.0001")}, "amount", "too_precise"),
    ],
)
def test_a_refusal_names_field_and_reason_for_programs(
    arguments: dict[str, Any], field: str, code: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_refund(ToolCall("call-1", "issue_refund", arguments), SESSION)
    assert (refused.value.field, refused.value.code) == (field, code)


def test_a_refusal_of_the_whole_call_names_no_field(make_call: Callable[..., ToolCall]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_refund(make_call("cancel_order"), SESSION)
    assert (refused.value.field, refused.value.code) == (None, "unknown_tool")


@pytest.mark.parametrize("arguments", [None, [], "order_id", 5])
def test_arguments_that_are_no_object_are_refused(arguments: Any) -> None:
    with pytest.raises(InvalidRequest, match="not an object") as refused:
        parse_refund(ToolCall("call-1", "issue_refund", arguments), SESSION)
    assert refused.value.code == "not_a_call"


TEXT = st.text(st.characters(), max_size=20)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.decimals(allow_nan=True)
    | TEXT
    | st.sampled_from(["500.00", "ORD-1001"])
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
)
NAMES = st.sampled_from(["order_id", "amount", "refund_request_id", "tenant_id"]) | TEXT


def outcome_of(arguments: Any) -> RefundRequest | InvalidRequest:
    try:
        return parse_refund(ToolCall("call-1", "issue_refund", arguments), SESSION)
    except InvalidRequest as refused:
        return refused


@given(st.dictionaries(NAMES, JSON, max_size=4) | JSON)
def test_whatever_a_model_writes_is_a_payable_request_or_one_refusing_sentence(
    arguments: Any,
) -> None:
    outcome = outcome_of(arguments)
    if isinstance(outcome, RefundRequest):
        assert 1 <= minor_units(outcome.amount, "USD") < 10**12
    else:
        assert re.fullmatch(r"[^\n]{10,250}\.", str(outcome))
        assert outcome.code != "invalid"


def test_an_order_has_one_spelling_from_the_edge_on() -> None:
    # "é" as one character, and as "e" with an accent of its own (reference, section 5).
    composed, decomposed = "ORD-Caf\u00e9", "ORD-Cafe\u0301"
    one = parsed(amount="500.00", order_id=composed)
    other = parsed(amount="500.00", order_id=decomposed)
    assert one.order_id == other.order_id == composed


@given(st.text(min_size=1, max_size=12).filter(str.isprintable))
def test_an_orders_spelling_never_changes_the_fingerprint(name: str) -> None:
    prints = set()
    for form in ("NFC", "NFD"):
        spelled = unicodedata.normalize(form, f"ORD-{name}")
        assume(spelled.isprintable())
        order_id = parsed(amount="500.00", order_id=spelled).order_id
        prints.add(fingerprint("t", "refund", order_id, 500_00, "USD"))
    assert len(prints) == 1


def naive(amount: Any, policy: FreeDict = FreeDict(), **arguments: Any) -> RefundRequest:  # noqa: B008
    call = ToolCall("call-1", "issue_refund", {"order_id": "1", "amount": amount, **arguments})
    return policy(call, SESSION)


@pytest.mark.parametrize(
    ("amount", "cents"),
    [("1e3", 1000_00), ("5_00", 500_00), (-500, -500_00), ("0", 0), (True, 1_00), (0.1 + 0.2, 30)],
)
def test_naive_code_takes_what_float_reads(amount: Any, cents: int) -> None:
    request = naive(amount, tenant_id="another", approved=True)
    assert minor_units(request.amount, "USD") == cents
    assert request.order_id == "1"


@pytest.mark.parametrize("amount", ["five", None, [], 10**400])
def test_what_float_cannot_read_is_refused_even_by_naive_code(amount: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"float\(\) cannot read"):
        naive(amount)


@pytest.mark.parametrize("cents", ["round", "truncate"])
@pytest.mark.parametrize("amount", ["nan", "inf", "-inf", 1e308])
def test_what_is_no_number_of_cents_is_refused_before_it_reaches_the_books(
    amount: Any, cents: Any
) -> None:
    with pytest.raises(InvalidRequest):
        FreeDict().minor_units(naive(amount, FreeDict(cents=cents)).amount, "USD")


def test_cutting_a_float_loses_a_cent_that_rounding_keeps() -> None:
    assert int(19.99 * 100) == 1998  # case B45
    assert minor_units(naive("19.99", FreeDict(cents="truncate")).amount, "USD") == 1998
    assert minor_units(naive("19.99", FreeDict(cents="round")).amount, "USD") == 1999
    assert minor_units(parsed(amount="19.99").amount, "USD") == 1999


@given(st.integers(0, 10**12))
def test_rounding_a_float_keeps_every_cent_of_an_ordinary_amount(cents: int) -> None:
    # 15 decimal digits survive a float: naive code is right here, and that is why it survives.
    written = f"{Decimal(cents).scaleb(-2):.2f}"
    assert minor_units(naive(written).amount, "USD") == cents


@pytest.mark.parametrize(
    ("currency", "by_table", "times_hundred"),
    [("USD", 500_00, 500_00), ("JPY", 500, 500_00), ("KWD", 500_000, 500_00)],
)
def test_a_hundred_for_every_currency_pays_yen_a_hundredfold(
    currency: str, by_table: int, times_hundred: int
) -> None:
    # Case B43. Dinars have three decimals: they get a tenth.
    amount = naive("500").amount
    assert FreeDict().minor_units(amount, currency) == by_table
    assert FreeDict(scale="hundred").minor_units(amount, currency) == times_hundred
