"""What comes in: the tool call that a model emitted, and the session it came with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

__all__ = [
    "EXPONENTS",
    "InvalidRequest",
    "RefundRequest",
    "Session",
    "ToolCall",
    "minor_units",
    "money",
    "parse_refund",
]

PLAIN = re.compile(r"-?[0-9]+(\.[0-9]+)?")

EXPONENTS = {"USD": 2, "EUR": 2, "JPY": 0, "KWD": 3}


class RefundRequest(BaseModel):
    """As published in section 16 of the lesson."""

    model_config = ConfigDict(extra="forbid")

    order_id: str = Field(min_length=3, max_length=50)
    amount: Decimal = Field(gt=0, max_digits=12, decimal_places=2)
    refund_request_id: str = Field(min_length=8, max_length=100)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What the model emitted. Nothing in it can be trusted.

    Attributes:
        call_id: the model's id for this call; a new thought has a new one.
        name: the tool.
        arguments: what the model filled in.
    """

    call_id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Session:
    """Who is asking, as authenticated by the application, before any model ran.

    Attributes:
        user_id, tenant_id: UUIDs.
        permissions: for example `refund:create`.
        intent_id: the id that the application gave to what the customer asked for.
    """

    user_id: str
    tenant_id: str
    permissions: frozenset[str]
    intent_id: str


class InvalidRequest(ValueError):
    """The arguments do not fit the tool's schema. The message is a sentence for the model."""


def minor_units(amount: Decimal, currency: str) -> int:
    """The amount in the currency's smallest unit: 500.00 USD are 50000.

    Raises:
        InvalidRequest: the currency is unknown, or cannot express the amount.
    """
    if currency not in EXPONENTS:
        raise InvalidRequest(f"Currency {currency!r} is not one of {', '.join(EXPONENTS)}.")
    scaled = amount.scaleb(EXPONENTS[currency])
    if scaled != (whole := int(scaled)):
        raise InvalidRequest(
            f"{amount} {currency} is not a whole number of its smallest unit: "
            f"give at most {EXPONENTS[currency]} decimals."
        )
    return whole


def money(amount: int, currency: str = "USD") -> str:
    """Minor units as a person reads them: 50000 USD is $500.00."""
    exponent = EXPONENTS[currency]
    text = f"{Decimal(amount).scaleb(-exponent):,.{exponent}f}"
    return f"${text}" if currency == "USD" else f"{text} {currency}"


def parse_refund(call: ToolCall, session: Session) -> RefundRequest:
    """The call's arguments, checked. The request's id is the session's, whatever the model wrote.

    The published schema lets the model fill in `refund_request_id`. A model that invents it
    invents a new refund with every thought, so the session's id takes its place here.

    Raises:
        InvalidRequest: a sentence that says which argument is wrong, and how.
    """
    if call.name != "issue_refund":
        raise InvalidRequest(f"There is no tool {call.name!r}. Use issue_refund.")
    arguments = {**call.arguments, "refund_request_id": session.intent_id}
    # Decimal reads "1e3", "5_00" and full-width digits. Whoever checks the amount by eye, or
    # in another language, reads something else, so only plain digits are money.
    if (
        isinstance(amount := arguments.get("amount"), str | float)
        and PLAIN.fullmatch(str(amount)) is None
    ):
        raise InvalidRequest(
            f"Argument amount: {amount!r} is not a valid decimal number in plain digits, "
            "like 500.00."
        )
    try:
        return RefundRequest.model_validate(arguments)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "arguments"
        raise InvalidRequest(f"Argument {where}: {first['msg']}.") from error
