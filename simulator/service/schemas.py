"""What comes in: the tool call that a model emitted, and the session it came with.

The slot `schema` of a design is `parse_refund`, or `FreeDict` for naive code.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from simulator.service.checks import fits_its_types
from simulator.service.invalid import InvalidRequest
from simulator.service.money import EXPONENTS, minor_units, money

__all__ = [
    "EXPONENTS",
    "FreeDict",
    "InvalidRequest",
    "RefundRequest",
    "Session",
    "ToolCall",
    "minor_units",
    "money",
    "parse_refund",
]

PLAIN = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
"""A number as JSON writes it, without an exponent."""

NOT_THE_MODELS = {
    "tenant_id": "whose refund it is comes from the session",
    "user_id": "who is asking comes from the session",
    "permissions": "what the user may do comes from the session",
    "role": "what the user may do comes from the session",
    "confirm": "a person confirms, outside the tool call",
    "confirmed": "a person confirms, outside the tool call",
    "approved": "a person approves, outside the tool call",
    "approval_id": "a person approves, outside the tool call",
    "idempotency_key": "the application gives every refund its key",
    "currency": "the order says its currency",
}
"""Arguments that models like to add, and where each really comes from."""

CODES = {
    "missing": "missing",
    "string_type": "not_text",
    "string_too_short": "out_of_range",
    "string_too_long": "out_of_range",
    "greater_than": "out_of_range",
    "decimal_max_digits": "out_of_range",
    "decimal_whole_digits": "out_of_range",
    "decimal_max_places": "too_precise",
    "finite_number": "not_a_number",
}


class RefundRequest(BaseModel):
    """As published in section 16 of the lesson."""

    model_config = ConfigDict(extra="forbid")

    order_id: str = Field(min_length=3, max_length=50)
    amount: Decimal = Field(gt=0, max_digits=12, decimal_places=2)
    refund_request_id: str = Field(min_length=8, max_length=100)


class AnyCurrency(RefundRequest):
    """As published, but for a third decimal: a Kuwaiti dinar has a thousand fils (trap 10).

    How many decimals a currency has is checked where the order, and so the currency, is known.
    """

    amount: Decimal = Field(gt=0, max_digits=13, decimal_places=3)


FIELDS = frozenset(RefundRequest.model_fields)


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

    def __post_init__(self) -> None:
        fits_its_types(self)


def parse_refund(call: ToolCall, session: Session) -> RefundRequest:
    """The call's arguments, checked. The request's id is the session's, whatever the model wrote.

    The published schema lets the model fill in `refund_request_id`. A model that invents it
    invents a new refund with every thought, so the session's id takes its place here.

    The order's id becomes NFC: it has one spelling from here on, in the look-up of the order, the
    fingerprint and the key. (Orders are stored in NFC; an "é" typed on a Mac is often NFD.)

    Raises:
        InvalidRequest: a sentence that says which argument is wrong, and how.
    """
    if call.name != "issue_refund":
        raise InvalidRequest(
            f"There is no tool {_short(call.name)}. Use issue_refund.", None, "unknown_tool"
        )
    if not isinstance(call.arguments, Mapping):
        raise InvalidRequest(
            "The arguments are not an object with the fields order_id and amount.",
            None,
            "not_a_call",
        )
    arguments = {**call.arguments, "refund_request_id": session.intent_id}
    if unknown := arguments.keys() - FIELDS:
        raise _unknown(unknown)
    if "amount" in arguments:
        _check_amount(arguments["amount"])
    if isinstance(order_id := arguments.get("order_id"), str):
        if not order_id.isprintable():
            raise InvalidRequest(
                f"Argument order_id: {_short(order_id)} has characters that cannot be seen.",
                "order_id",
                "not_text",
            )
        arguments["order_id"] = unicodedata.normalize("NFC", order_id)
    try:
        return AnyCurrency.model_validate(arguments)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = str(first["loc"][0])
        code = CODES.get(first["type"], "invalid")
        raise InvalidRequest(f"Argument {field}: {first['msg']}.", field, code) from error


def storable(text: Any) -> str:
    """What a model wrote where nobody checks it, as a text that every database can keep: itself,
    its digest if it is long or cannot be printed (half a character, a NUL), "" if it is no text.
    """
    if not isinstance(text, str):
        return ""
    if len(text) <= LONGEST_TEXT and text.isprintable():
        return text
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _unknown(names: set[Any]) -> InvalidRequest:
    forbidden = sorted(names & NOT_THE_MODELS.keys())
    if forbidden:
        name = forbidden[0]
        return InvalidRequest(
            f"Argument {name}: Extra inputs are not permitted. The model may not set {name}: "
            f"{NOT_THE_MODELS[name]}.",
            name,
            "unknown_field",
        )
    name = min(map(str, names))
    shown = name if name.isidentifier() and len(name) <= SHOWN else _short(name)
    return InvalidRequest(
        f"Argument {shown}: Extra inputs are not permitted.", name, "unknown_field"
    )


def _check_amount(amount: Any) -> None:
    """What Pydantic would let through, or could not say in a sentence."""
    number = isinstance(amount, str | int | float | Decimal) and not isinstance(amount, bool)
    if not number:
        raise InvalidRequest(
            f"Argument amount: {_short(amount)} is not an amount. Give plain digits, like 500.00.",
            "amount",
            "not_a_number",
        )
    if isinstance(amount, int | Decimal):
        return
    # Decimal reads "1e3", "5_00" and full-width digits, and "0500" is 320 where a leading zero
    # means octal. Whoever checks the amount by eye, or in another language, reads something
    # else, so only plain digits are money.
    if (plain := PLAIN.fullmatch(str(amount))) is None:
        raise InvalidRequest(
            f"Argument amount: {_short(amount)} is not a valid decimal number in plain digits, "
            "like 500.00.",
            "amount",
            "not_a_number",
        )
    # Whether a third decimal means anything says the order's currency, in `plain_units`.
    if len(plain[2] or "") > len(".000"):
        raise InvalidRequest(
            "Argument amount: Decimal input should have no more than 3 decimal places.",
            "amount",
            "too_precise",
        )


SHOWN = 60

LONGEST_TEXT = 100


def _short(value: Any) -> str:
    """A value for a sentence. What is not text or a number is named by its kind."""
    if value is None or isinstance(value, bool | float | Decimal):
        text = str(value)
    elif isinstance(value, str):
        text = ascii(value) if not value.isprintable() else repr(value)
    elif isinstance(value, Mapping):
        text = "an object"
    else:
        text = "a list" if isinstance(value, list) else f"a value of type {type(value).__name__}"
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


@dataclass(frozen=True, slots=True)
class FreeDict:
    """Naive code: takes the arguments as they are, and the amount as a float.

    It lets in a negative amount (a refund that charges, and a balance that grows), zero,
    exponents, "5_00", a thousandth of a cent (rounded or cut away), unknown arguments (ignored,
    so that a misspelled one goes unnoticed), any tool's name, and an order's id of any length in
    any spelling. What float() cannot read, and what is no number of minor units at all (NaN,
    Infinity), is refused even here.

    Attributes:
        cents: how a float becomes cents: "round", or "truncate", which is int(amount * 100), and
            turns 19.99 into 1998 (case B45).
        scale: "exponent" asks the table of currencies for the decimals; "hundred" multiplies by
            100 whatever the currency: 500 yen become 50,000 (case B43).
    """

    cents: Literal["round", "truncate"] = "round"
    scale: Literal["exponent", "hundred"] = "exponent"

    def __post_init__(self) -> None:
        fits_its_types(self)

    def __call__(self, call: ToolCall, session: Session) -> RefundRequest:
        arguments = call.arguments
        try:
            amount = float(arguments["amount"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidRequest(
                f"Argument amount: float() cannot read {_short(arguments.get('amount'))}.",
                "amount",
                "not_a_number",
            ) from error
        return RefundRequest.model_construct(
            order_id=str(arguments.get("order_id", "")),
            amount=self._cents(amount),
            refund_request_id=str(arguments.get("refund_request_id", session.intent_id)),
        )

    def minor_units(self, amount: Decimal, currency: str) -> int:
        """What the pipeline asks in place of `plain_units`.

        Raises:
            InvalidRequest: the amount is no whole number of units.
        """
        return minor_units(amount, "USD" if self.scale == "hundred" else currency)

    def _cents(self, amount: float) -> Decimal:
        if self.cents == "round" or not math.isfinite(amount * 100):
            return Decimal(repr(round(amount, 2)))
        return Decimal(int(amount * 100)).scaleb(-2)
