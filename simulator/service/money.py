"""Money: whole minor units inside, Decimal at the edges, never float."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from simulator.service.invalid import InvalidRequest

__all__ = ["EXPONENTS", "allocate", "minor_units", "money", "plain_units"]

EXPONENTS = {"USD": 2, "EUR": 2, "JPY": 0, "KWD": 3}
"""Decimals of a currency (ISO 4217)."""

DIGITS = 18
"""Digits of an amount in minor units that a BIGINT column holds for certain."""


def minor_units(amount: Decimal, currency: str) -> int:
    """The amount in the currency's smallest unit: 500.00 USD are 50000.

    Raises:
        InvalidRequest: the currency is unknown, or cannot express the amount.
    """
    if currency not in EXPONENTS:
        raise InvalidRequest(
            f"Currency {currency!r} is not one of {', '.join(EXPONENTS)}.", None, "unknown_currency"
        )
    if not amount.is_finite():
        raise InvalidRequest(f"{amount} is not an amount of money.", "amount", "not_a_number")
    exponent = EXPONENTS[currency]
    if amount and amount.adjusted() + exponent >= DIGITS:
        raise InvalidRequest(
            f"The amount has more than {DIGITS} digits in the smallest unit of {currency}.",
            "amount",
            "out_of_range",
        )
    # A ratio, since Decimal.scaleb rounds to 28 digits: it takes 1 + 1e-29 for a whole number.
    numerator, denominator = amount.as_integer_ratio()
    units: int = numerator * 10**exponent
    whole, rest = divmod(units, denominator)
    if rest:
        raise InvalidRequest(
            f"{amount} {currency} is not a whole number of its smallest unit: "
            f"give at most {exponent} decimals.",
            "amount",
            "too_precise",
        )
    return whole


def plain_units(amount: Decimal, currency: str) -> int:
    """`minor_units` of what a model wrote, where three decimals mean a third decimal.

    "500.000" is five hundred here and five hundred thousand there, so it is read only where the
    currency has three.

    Raises:
        InvalidRequest: as `minor_units`, or the amount has more decimals than the currency.
    """
    exponent = EXPONENTS.get(currency, 2)
    if amount.is_finite() and -int(amount.as_tuple().exponent) > max(exponent, 2):
        raise InvalidRequest(
            f"Argument amount: {currency} has no more than {exponent} decimal places, and "
            f"{amount} is written with more.",
            "amount",
            "too_precise",
        )
    return minor_units(amount, currency)


def money(amount: int, currency: str = "USD") -> str:
    """Minor units as a person reads them: 50000 USD is $500.00."""
    exponent = EXPONENTS[currency]
    text = f"{Decimal(amount).scaleb(-exponent):,.{exponent}f}"
    return f"${text}" if currency == "USD" else f"{text} {currency}"


def allocate(total: int, weights: Sequence[int]) -> list[int]:
    """Shares of `total` in proportion to the weights, to the last minor unit.

    Every share is rounded down; what is left goes, one unit each, to the largest remainders
    (of equal ones, to the first). So the sum is exact, and no share is a whole unit off: three
    parts of 10.00 are 3.34, 3.33 and 3.33, where 3 x 3.33 would strand a cent (case B86).

    Args:
        total: minor units, 0 or more.
        weights: whole numbers, 0 or more, not all 0: for example the prices of the items.

    Raises:
        ValueError: a number is negative or not whole, or there is nothing to divide by.
    """
    for number in (total, *weights):
        if type(number) is not int or number < 0:
            raise ValueError(f"allocate() divides whole numbers from 0 up, not {number!r}.")
    whole = sum(weights)
    if whole == 0:
        raise ValueError("allocate() needs at least one weight above 0.")
    shares = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: -(total * weights[i] % whole))
    for i in by_remainder[: total - sum(shares)]:
        shares[i] += 1
    return shares
