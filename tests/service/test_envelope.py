from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.service.answers import KINDS, Answer, FromRecord
from simulator.service.envelope import ToolResult, read_tool_call, tool_result
from simulator.service.operations import TRANSITIONS, Row
from simulator.service.schemas import (
    InvalidRequest,
    Session,
    ToolCall,
    minor_units,
    parse_refund,
)

ARGUMENTS = {"order_id": "ORD-1001", "amount": "500.00"}
FORMS: dict[str, Callable[[str], dict[str, Any]]] = {
    "function": lambda text: {
        "id": "call-1",
        "type": "function",
        "function": {"name": "issue_refund", "arguments": text},
    },
    "function call": lambda text: {
        "id": "fc-9",
        "call_id": "call-1",
        "type": "function_call",
        "name": "issue_refund",
        "arguments": text,
    },
    "tool use": lambda text: {
        "type": "tool_use",
        "id": "call-1",
        "name": "issue_refund",
        "input": json.loads(text),
    },
    "bare": lambda text: {"id": "call-1", "name": "issue_refund", "arguments": json.loads(text)},
}


def refused(raw: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest, match=r"\.$") as caught:
        read_tool_call(raw)
    return caught.value


@pytest.mark.parametrize("form", FORMS)
def test_one_call_is_read_from_every_form_as_text_or_as_data(form: str) -> None:
    raw = FORMS[form](json.dumps(ARGUMENTS))
    expected = ToolCall("call-1", "issue_refund", ARGUMENTS)
    assert read_tool_call(raw) == read_tool_call(json.dumps(raw)) == expected


def test_the_lessons_bare_call_needs_no_id() -> None:
    call = read_tool_call({"name": "issue_refund", "arguments": ARGUMENTS})
    assert call == ToolCall("", "issue_refund", ARGUMENTS)


def test_an_amount_in_json_never_becomes_a_float() -> None:
    call = read_tool_call('{"name": "issue_refund", "arguments": {"amount": 0.1, "n": 5}}')
    assert call.arguments == {"amount": Decimal("0.1"), "n": 5}
    assert isinstance(call.arguments["amount"], Decimal)


@given(st.integers(1, 10**12 - 1), st.sampled_from(list(FORMS)[:2]))
def test_every_amount_written_as_a_number_arrives_to_the_cent(cents: int, form: str) -> None:
    text = f'{{"order_id": "ORD-1001", "amount": {cents // 100}.{cents % 100:02}}}'
    request = parse_refund(
        read_tool_call(FORMS[form](text)), Session("u", "t", frozenset(), "intent-1")
    )
    assert minor_units(request.amount, "USD") == cents


@pytest.mark.parametrize(
    "raw",
    [
        '{"name": "issue_refund", "arguments": {"amount": 5, "amount": 500}}',
        '{"name": "issue_refund", "arguments": {"amount": 5, "am\\u006funt": 500}}',
        FORMS["function"]('{"amount": 5, "amount": 500}'),
        FORMS["function"]('{"amount": {"value": 5, "value": 500}}'),
        '{"name": "find_order", "name": "issue_refund", "arguments": {}}',
    ],
)
def test_a_field_that_stands_twice_is_refused(raw: Any) -> None:
    error = refused(raw)
    assert error.code == "duplicate_field"
    assert repr(error.field) in str(error)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "5e2", "5E+2", "1.0e999999999"])
def test_what_is_no_plain_number_is_refused(number: str) -> None:
    error = refused(FORMS["function"](f'{{"amount": {number}}}'))
    assert (error.code, number[:3] in str(error)) == ("not_a_number", True)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("", "not_json"),
        ("issue_refund(500)", "not_json"),
        ("{'name': 'issue_refund'}", "not_json"),
        ('{"name": "issue_refund", "arguments": {}} {}', "not_json"),
        ("[" * 100_000, "not_json"),
        ('{"a":' * 100_000, "not_json"),
        ('{"name": "x", "arguments": {"amount": ' + "9" * 5000 + "}}", "not_json"),
        (FORMS["function"](""), "not_json"),
        (FORMS["function"]("amount=500"), "not_json"),
        ("null", "not_a_call"),
        ("[]", "not_a_call"),
        ('"issue_refund"', "not_a_call"),
        (None, "not_a_call"),
        (b"{}", "not_a_call"),
        ({}, "not_a_call"),
        ({1: 2}, "not_a_call"),
        ({"name": "issue_refund"}, "not_a_call"),
        ({"arguments": ARGUMENTS}, "not_a_call"),
        ({"name": "", "arguments": ARGUMENTS}, "not_a_call"),
        ({"name": 5, "arguments": ARGUMENTS}, "not_a_call"),
        ({"name": "issue_refund", "arguments": None}, "not_a_call"),
        ({"name": "issue_refund", "arguments": [ARGUMENTS]}, "not_a_call"),
        ({"name": "issue_refund", "arguments": "[]"}, "not_a_call"),
        ({"name": "issue_refund", "arguments": {1: 2}}, "not_a_call"),
        ({"id": 7, "name": "issue_refund", "arguments": ARGUMENTS}, "not_a_call"),
        ({"type": "tool_use", "name": "issue_refund", "input": ARGUMENTS}, "not_a_call"),
        ({"id": "c", "type": "function", "function": "issue_refund"}, "not_a_call"),
        ({"id": "c", "type": "function", "function": {"name": "issue_refund"}}, "not_a_call"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_no_tool_call_is_refused_in_a_sentence(raw: Any, code: str) -> None:
    assert refused(raw).code == code


@pytest.mark.parametrize(
    "second", [{"input": ARGUMENTS}, {"function": {"name": "x", "arguments": "{}"}}]
)
def test_a_call_with_two_sets_of_arguments_is_refused(second: dict[str, Any]) -> None:
    # A gateway that checks one, and a service that carries out the other, both mean well.
    raw = {"id": "c", "name": "issue_refund", "arguments": {"amount": "1"}, **second}
    assert "give them once" in str(refused(raw))


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "arguments", "input", "function", "id", "type", "x"]), inner
        )
    ),
)


@given(JSON_LIKE | st.builds(json.dumps, JSON_LIKE) | st.text())
def test_anything_is_either_a_call_or_refused(raw: Any) -> None:
    try:
        call = read_tool_call(raw)
    except InvalidRequest:
        return
    assert isinstance(call.name, str)
    assert all(isinstance(name, str) for name in call.arguments)


# The result.

FIELDS = set(ToolResult.__annotations__)
ROWS = [None, *(Row(status, {"detail": "the card was closed."}) for status in TRANSITIONS)]
WORDS = ["new", "known", "conflict", "refused", "denied", "invalid"]


def decided(result: ToolResult) -> str:
    """What a model tells the customer: from the fields, and nothing else."""
    if result["outcome"] == "succeeded":
        return "paid"
    if result["final"] and result["outcome"] == "refused":
        return "not paid"
    return "say nothing yet"


@pytest.mark.parametrize(
    ("begun", "row", "outcome", "status", "final", "retry", "retry_after"),
    [
        ("new", Row("succeeded"), "succeeded", 200, True, "never", None),
        ("known", Row("succeeded"), "succeeded", 200, True, "never", None),
        ("new", Row("failed", {"detail": "closed."}), "refused", 422, True, "never", None),
        ("refused", None, "refused", 422, True, "never", None),
        ("denied", None, "refused", 403, True, "never", None),
        ("conflict", None, "conflict", 409, True, "never", None),
        ("new", None, "in_progress", 202, False, "same_call", 30.0),
        ("new", Row("pending"), "in_progress", 202, False, "same_call", 30.0),
        ("known", Row("outcome_unknown"), "in_progress", 202, False, "same_call", 30.0),
        ("new", Row("awaiting_approval"), "awaiting_approval", 202, False, "same_call", 3600.0),
    ],
)
def test_every_answer_from_the_record_has_its_result(
    begun: str,
    row: Row | None,
    outcome: str,
    status: int,
    final: bool,
    retry: str,
    retry_after: float | None,
) -> None:
    answer = FromRecord()(begun, row)
    assert tool_result(answer, "call-1") == {
        "call_id": "call-1",
        "outcome": outcome,
        "status": status,
        "message": answer.text,
        "final": final,
        "retry": retry,
        "retry_after": retry_after,
        "field": None,
        "code": None,
    }


@pytest.mark.parametrize("begun", WORDS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: "no row" if row is None else row.status)
def test_a_model_that_reads_no_prose_tells_no_lie(begun: str, row: Row | None) -> None:
    answer = FromRecord()(begun, row)
    result = tool_result(answer, "call-1")
    said = {"done": "paid", "refused": "not paid"}.get(answer.kind, "say nothing yet")
    assert decided(result) == said
    assert (result["status"] == 200) == (said == "paid")
    assert result["final"] == (result["status"] != 202) == (result["retry"] != "same_call")


def test_a_refusal_for_another_reason_is_not_a_matter_of_rights() -> None:
    answer = Answer("refused", "Your refund was refused: see form 403 Forbidden.", version=2)
    assert tool_result(answer, "call-1")["status"] == 422


def test_an_invalid_call_names_the_argument_to_correct() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_refund(
            ToolCall("call-1", "issue_refund", {**ARGUMENTS, "amount": "0.0001"}),
            Session("u", "t", frozenset(), "intent-1"),
        )
    assert tool_result(caught.value, "call-1") == {
        "call_id": "call-1",
        "outcome": "invalid",
        "status": 422,
        "message": str(caught.value),
        "final": True,
        "retry": "corrected_call",
        "retry_after": None,
        "field": "amount",
        "code": "too_precise",
    }


def test_a_tool_that_does_not_exist_is_not_called_again() -> None:
    error = InvalidRequest("There is no tool 'pay'.", None, "unknown_tool")
    assert tool_result(error, "call-1")["retry"] == "never"


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_result_is_json_and_keeps_its_shape(kind: str) -> None:
    result = tool_result(Answer(kind, "Words."), "call-1")
    assert set(result) == FIELDS
    assert json.loads(json.dumps(result)) == result


def test_an_answer_of_an_unknown_kind_is_no_success() -> None:
    with pytest.raises(ValueError, match="kind 'perhaps' has no tool result"):
        tool_result(Answer("perhaps", "Who knows."), "call-1")
