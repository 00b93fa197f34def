from __future__ import annotations

import json
import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from simulator.service.envelope import Outcome
from simulator.service.schemas import (
    InvalidRequest,
    RefundRequest,
    Session,
    ToolCall,
    parse_refund,
)
from simulator.service.tool_schema import REFUND_TOOL, RefundArguments, tool_definition

PARAMETERS: dict[str, Any] = REFUND_TOOL["function"]["parameters"]
STRICT_KEYWORDS = {"type", "properties", "required", "additionalProperties"}


def schema_takes(arguments: dict[str, Any]) -> bool:
    """A tiny reading of the tool's JSON schema: closed object, required texts, patterns."""
    properties = PARAMETERS["properties"]
    if arguments.keys() - properties.keys() or set(PARAMETERS["required"]) - arguments.keys():
        return False
    return all(
        isinstance(value, str)
        and re.fullmatch(properties[name]["pattern"].removeprefix("^").removesuffix("$"), value)
        for name, value in arguments.items()
    )


def parser_takes(arguments: dict[str, Any]) -> bool:
    try:
        parse_refund(
            ToolCall("call-1", "issue_refund", arguments),
            Session("u", "t", frozenset(), "intent-1"),
        )
    except InvalidRequest:
        return False
    return True


def test_the_tool_has_the_form_that_apis_take() -> None:
    assert set(REFUND_TOOL) == {"type", "function"}
    function = REFUND_TOOL["function"]
    assert set(function) == {"name", "description", "parameters", "strict"}
    assert (REFUND_TOOL["type"], function["name"], function["strict"]) == (
        "function",
        "issue_refund",
        True,
    )
    assert json.loads(json.dumps(REFUND_TOOL)) == REFUND_TOOL


def test_the_other_form_shows_the_same_schema() -> None:
    tool = tool_definition("issue_refund", "Words.", RefundArguments, form="input_schema")
    assert tool == {
        "name": "issue_refund",
        "description": "Words.",
        "input_schema": PARAMETERS,
    }


def test_the_schema_is_closed_and_keeps_to_what_strict_modes_take() -> None:
    assert set(PARAMETERS) == STRICT_KEYWORDS
    assert PARAMETERS["type"] == "object"
    assert PARAMETERS["additionalProperties"] is False
    assert PARAMETERS["required"] == list(PARAMETERS["properties"])
    for shape in PARAMETERS["properties"].values():
        assert set(shape) == {"type", "pattern", "description"}
        assert shape["type"] == "string"
        assert "(?" not in shape["pattern"]  # look-ahead and the like are not to be had everywhere


def test_the_model_fills_in_all_that_is_published_but_the_requests_id() -> None:
    # Trap 11 of the lesson.
    assert set(PARAMETERS["properties"]) == set(RefundRequest.model_fields) - {"refund_request_id"}
    assert "refund_request_id" not in json.dumps(REFUND_TOOL)


def test_every_argument_is_described() -> None:
    for shape in PARAMETERS["properties"].values():
        assert len(shape["description"].split()) >= 8


def test_the_description_says_what_to_do_when_nobody_knows() -> None:
    text = REFUND_TOOL["function"]["description"]
    assert "being verified" in text
    assert "times out" in text
    assert "exactly the same arguments" in text
    for outcome in get_args(Outcome):
        assert f"`{outcome}`" in text


def test_the_description_never_asks_for_an_id_of_the_models_own() -> None:
    # Case B25: a description that told the model to make a fresh key each time.
    words = json.dumps(REFUND_TOOL).lower()
    assert not re.search(r"unique|uuid|idempot|random|\bkey\b", words)


TAKEN = [
    "500",
    "500.0",
    "500.00",
    "0.01",
    "0.10",
    "0.5",
    "9999999999.99",
    "10",
    "1.00",
    "1.234",
    "0.001",
    "0.010",
]
NOT_POSITIVE = ["0", "0.0", "0.00", "-5", "-0.01"]
TOO_LARGE_OR_FINE = ["10000000000", "500.0000", "500.0001"]
ODDLY_SPELLED = ["+5", "00.50", "0500", "1e3", "5E2", "5_00", "1,000", "500,00", ".5", "5.", "$5"]
NO_NUMBERS = ["NaN", "Infinity", "0x1F", "５００", "", " 500", "500 ", "500\n"]  # noqa: RUF001
REFUSED = [*NOT_POSITIVE, *TOO_LARGE_OR_FINE, *ODDLY_SPELLED, *NO_NUMBERS]


@pytest.mark.parametrize(
    ("amount", "taken"),
    [(amount, True) for amount in TAKEN] + [(amount, False) for amount in REFUSED],
)
def test_schema_and_parser_agree_about_an_amount(amount: str, taken: bool) -> None:
    arguments = {"order_id": "ORD-1001", "amount": amount}
    assert (schema_takes(arguments), parser_takes(arguments)) == (taken, taken)


@given(
    st.text("0123456789.-+e, ", max_size=14)
    | st.from_regex(PARAMETERS["properties"]["amount"]["pattern"])
)
def test_schema_and_parser_agree_about_anything_like_an_amount(amount: str) -> None:
    arguments = {"order_id": "ORD-1001", "amount": amount}
    assert schema_takes(arguments) == parser_takes(arguments)


@pytest.mark.parametrize(
    ("arguments", "taken"),
    [
        ({"order_id": "ORD", "amount": "500"}, True),
        ({"order_id": "O" * 50, "amount": "500"}, True),
        ({"order_id": "ORD-Café 7", "amount": "500"}, True),
        ({"order_id": "OR", "amount": "500"}, False),
        ({"order_id": "O" * 51, "amount": "500"}, False),
        ({"order_id": "ORD\n1001", "amount": "500"}, False),
        ({"order_id": 1001, "amount": "500"}, False),
        ({"order_id": "ORD-1001", "amount": None}, False),
        ({"order_id": "ORD-1001"}, False),
        ({"amount": "500"}, False),
        ({}, False),
        ({"order_id": "ORD-1001", "amount": "500", "tenant_id": "another"}, False),
        ({"order_id": "ORD-1001", "amount": "500", "approved": True}, False),
    ],
)
def test_schema_and_parser_agree_about_the_rest(arguments: dict[str, Any], taken: bool) -> None:
    assert (schema_takes(arguments), parser_takes(arguments)) == (taken, taken)


def test_the_parser_is_wider_in_two_points_that_models_need() -> None:
    # Not every API is strict: numbers come as numbers, and the published field may be there.
    for more in ({"amount": 500}, {"refund_request_id": "refund-by-the-model"}):
        arguments = {"order_id": "ORD-1001", "amount": "500.00", **more}
        assert (schema_takes(arguments), parser_takes(arguments)) == (False, True)


class Open(BaseModel):
    order_id: str = Field(description="The order.")


class Undescribed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    order_id: str


class Optional(BaseModel):
    model_config = ConfigDict(extra="forbid")
    order_id: str = Field("ORD-1001", description="The order.")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Open, 'set extra="forbid" in Open'),
        (Undescribed, "order_id needs a description"),
        (Optional, "order_id may be left out"),
    ],
)
def test_a_tool_that_would_surprise_a_model_is_refused(model: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        tool_definition("issue_refund", "Words.", model)
