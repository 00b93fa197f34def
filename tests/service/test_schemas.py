from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.service.keys import fingerprint
from simulator.service.schemas import (
    EXPONENTS,
    InvalidRequest,
    RefundRequest,
    Session,
    ToolCall,
    minor_units,
    money,
    parse_refund,
)

SESSION = Session("user", "tenant", frozenset(), "intent-1")


def parsed(**arguments: Any) -> RefundRequest:
    call = ToolCall("call-1", "issue_refund", {"order_id": "ORD-1001", **arguments})
    return parse_refund(call, SESSION)


@pytest.mark.parametrize(
    ("amount", "currency", "units"),
    [
        ("500", "USD", 50000),
        ("500.00", "USD", 50000),
        ("0.01", "USD", 1),
        ("500", "JPY", 500),
        ("500.0", "JPY", 500),
        ("1.234", "KWD", 1234),
        ("500", "KWD", 500000),
    ],
)
def test_minor_units_follow_the_currencys_exponent(amount: str, currency: str, units: int) -> None:
    # ISO 4217: 2 decimals for USD, none for JPY, 3 for KWD (trap 10 of the lesson).
    assert minor_units(Decimal(amount), currency) == units


@pytest.mark.parametrize(
    ("amount", "currency", "decimals"),
    [("500.5", "JPY", 0), ("1.2345", "KWD", 3), ("0.001", "USD", 2)],
)
def test_an_amount_that_the_currency_cannot_express_is_refused(
    amount: str, currency: str, decimals: int
) -> None:
    with pytest.raises(InvalidRequest, match=f"{amount} {currency} .* at most {decimals} decimals"):
        minor_units(Decimal(amount), currency)


def test_an_unknown_currency_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequest, match="'BTC' is not one of USD, EUR, JPY, KWD"):
        minor_units(Decimal(1), "BTC")


@given(st.integers(0, 10**12), st.sampled_from(sorted(EXPONENTS)), st.integers(0, 5))
def test_trailing_zeros_never_change_an_amount(units: int, currency: str, zeros: int) -> None:
    exact = Decimal(units).scaleb(-EXPONENTS[currency])
    with_zeros = Decimal(f"{exact:f}" + ("" if "." in f"{exact:f}" else ".") + "0" * zeros)
    assert minor_units(exact, currency) == minor_units(with_zeros, currency) == units


@given(st.integers(0, 10**12), st.sampled_from(sorted(EXPONENTS)))
def test_money_is_read_back_as_it_was(units: int, currency: str) -> None:
    text = money(units, currency)
    digits = text.lstrip("$").split()[0].replace(",", "")
    assert minor_units(Decimal(digits), currency) == units


def test_money_is_written_for_people() -> None:
    assert money(50000) == "$500.00"
    assert money(123456789) == "$1,234,567.89"
    assert money(500, "JPY") == "500 JPY"
    assert money(1234, "KWD") == "1.234 KWD"


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
        ("500.001", "2 decimal places"),
        (0.1 + 0.2, "amount"),
        ("10000000000.00", "10 digits"),
        ("1e22", "amount"),
        ("five hundred", "valid decimal"),
        ("0x1F4", "valid decimal"),
        ("", "valid decimal"),
        (None, "amount"),
        (True, "amount"),
        (["500"], "amount"),
    ],
)
def test_an_amount_that_is_no_payable_sum_is_refused_in_a_sentence(amount: Any, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as refused:
        parsed(amount=amount)
    assert str(refused.value).startswith("Argument amount: ")
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("amount", ["1e3", "5E2", "5_00", "５００"])  # noqa: RUF001
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
        ({"tenant_id": "another"}, "tenant_id: Extra inputs are not permitted"),
        ({"approved": True}, "approved: Extra inputs are not permitted"),
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
