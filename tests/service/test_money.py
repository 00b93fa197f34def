from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.service.invalid import InvalidRequest
from simulator.service.money import EXPONENTS, allocate, minor_units, money, plain_units


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


@pytest.mark.parametrize(
    ("amount", "currency", "units"),
    [
        ("1.234", "KWD", 1234),
        ("1.230", "KWD", 1230),
        ("500.00", "KWD", 500_000),
        ("500.00", "USD", 500_00),
        ("500.00", "JPY", 500),
        ("500", "JPY", 500),
    ],
)
def test_an_amount_written_as_its_currency_is_written_is_read(
    amount: str, currency: str, units: int
) -> None:
    assert plain_units(Decimal(amount), currency) == units


@pytest.mark.parametrize(
    ("amount", "currency"),
    [
        ("500.000", "USD"),
        ("500.000", "EUR"),
        ("500.000", "JPY"),
        ("500.5", "JPY"),
        ("500.50", "JPY"),
        ("1.234", "USD"),
        ("1.2340", "KWD"),
        ("NaN", "KWD"),
    ],
)
def test_three_decimals_are_five_hundred_here_and_five_hundred_thousand_there(
    amount: str, currency: str
) -> None:
    # So they are read only where the currency has a third decimal.
    with pytest.raises(InvalidRequest) as refused:
        plain_units(Decimal(amount), currency)
    assert refused.value.field == "amount"
    assert refused.value.code in ("too_precise", "not_a_number")


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
    ("amount", "code"),
    [
        ("1." + "0" * 28 + "1", "too_precise"),
        ("1E-1000000", "too_precise"),
        ("1E+1000000", "out_of_range"),
        ("1E+16", "out_of_range"),
        ("NaN", "not_a_number"),
        ("sNaN", "not_a_number"),
        ("-Infinity", "not_a_number"),
    ],
)
def test_no_amount_is_rounded_in_silence_or_overflows_a_column(amount: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        minor_units(Decimal(amount), "USD")
    assert (refused.value.field, refused.value.code) == ("amount", code)


def test_the_largest_amount_fits_a_bigint() -> None:
    assert minor_units(Decimal("9" * 16 + ".99"), "USD") == 10**18 - 1 < 2**63


def test_nothing_is_lost_when_ten_dollars_are_parted_in_three() -> None:
    # Case B86: 3 x 3.33 leaves a cent that can never be refunded.
    assert allocate(10_00, [1, 1, 1]) == [334, 333, 333]


def test_the_cent_that_is_left_goes_to_the_largest_remainder() -> None:
    assert allocate(100, [1, 2, 3]) == [17, 33, 50]
    assert allocate(10, [1, 1, 4]) == [2, 2, 6]  # equal remainders: the first ones


WEIGHTS = st.lists(st.integers(0, 10**9), min_size=1, max_size=12).filter(any)


@given(st.integers(0, 10**15), WEIGHTS)
def test_shares_add_up_and_none_is_a_whole_unit_off(total: int, weights: list[int]) -> None:
    shares = allocate(total, weights)
    assert sum(shares) == total
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share - Fraction(total * weight, sum(weights))) < 1
        assert share >= 0


@given(st.integers(0, 10**15), WEIGHTS)
def test_who_weighs_more_never_gets_less_and_weight_zero_gets_nothing(
    total: int, weights: list[int]
) -> None:
    pairs = sorted(zip(weights, allocate(total, weights), strict=True))
    for weight, share in pairs:
        assert weight > 0 or share == 0
    for (lighter, less), (heavier, more) in pairwise(pairs):
        assert lighter == heavier or less <= more


@pytest.mark.parametrize(
    ("total", "weights"),
    [(-1, [1]), (10.0, [1]), (10, [1.5]), (10, [-1, 2]), (True, [1]), (10, [0, 0]), (10, [])],
)
def test_what_cannot_be_divided_is_refused_in_a_sentence(total: Any, weights: Any) -> None:
    with pytest.raises(ValueError, match=r"allocate\(\) .*\."):
        allocate(total, weights)
