"""The two envelopes of a tool: the call that a model's API emits, and the result it gets back.

A result is typed, so that a model (and the code around it) decides from fields and not from
prose: "timeout" in a text was told to customers as "refunded" (case B82).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal, NoReturn, TypedDict

from simulator.service.answers import Answer
from simulator.service.schemas import InvalidRequest, ToolCall

__all__ = ["Outcome", "ToolResult", "read_tool_call", "tool_result"]

Outcome = Literal["succeeded", "refused", "in_progress", "conflict", "awaiting_approval", "invalid"]
Retry = Literal["never", "same_call", "corrected_call"]


class ToolResult(TypedDict):
    """What a model reads.

    Attributes:
        call_id: of the call that this answers.
        outcome: only "succeeded" means that what was asked for (a refund: the money) was done.
            "refused": it was not, and will not be. "in_progress" and "awaiting_approval": not
            known yet. "conflict" and "invalid": this call was not carried out, and nothing is
            said of an earlier one.
        status: the HTTP status of the same meaning.
        message: a sentence that the customer may be told ("invalid" and "conflict": the model).
        final: whether the same call would be answered like this for ever.
        retry: what may be called next. "same_call": again, with exactly these arguments.
            "corrected_call": with the named argument put right. "never": neither.
        retry_after: seconds to wait before that; None: there is no time to wait for.
        field, code: of an "invalid" call, the wrong argument and the kind of mistake.
    """

    call_id: str
    outcome: Outcome
    status: Literal[200, 202, 403, 409, 422]
    message: str
    final: bool
    retry: Retry
    retry_after: float | None
    field: str | None
    code: str | None


def tool_result(answer: Answer | InvalidRequest, call_id: str) -> ToolResult:
    """An answer of the service, or its refusal to read a call, as a model reads it.

    Raises:
        ValueError: the answer is of an unknown kind.
    """
    if isinstance(answer, InvalidRequest):
        answer = Answer("invalid", str(answer), field=answer.field, code=answer.code)
    result: ToolResult = {
        "call_id": call_id,
        "outcome": "invalid",
        "status": 422,
        "message": answer.text,
        "final": True,
        "retry": "never",
        "retry_after": None,
        "field": None,
        "code": None,
    }
    if answer.kind == "invalid":
        known = answer.code != "unknown_tool"
        result |= {"retry": "corrected_call" if known else "never"}
        result |= {"field": answer.field, "code": answer.code}
    elif answer.kind in ("done", "info"):
        result |= {"outcome": "succeeded", "status": 200}
    elif answer.kind == "refused":
        result |= {"outcome": "refused", "status": 403 if answer.code == "forbidden" else 422}
    elif answer.kind == "conflict":
        result |= {"outcome": "conflict", "status": 409}
    elif answer.kind == "verifying":
        waits = answer.code == "awaiting_approval"
        result |= {"outcome": "awaiting_approval" if waits else "in_progress", "status": 202}
        result |= {"final": False, "retry": "same_call", "retry_after": answer.retry_after}
    else:
        raise ValueError(f"An answer of kind {answer.kind!r} has no tool result.")
    return result


def read_tool_call(raw: str | Mapping[str, Any]) -> ToolCall:
    """The call in what a model's API emits, as JSON text or already read.

    Takes `{"id", "type": "function", "function": {"name", "arguments": "<JSON text>"}}`,
    `{"type": "tool_use", "id", "name", "input": {...}}` and the lesson's bare
    `{"name", "arguments": {...}}`, which needs no id (the call's is then empty). `call_id` is
    read where an API has it beside `id`: it is the one that a result is sent back under.
    Numbers in JSON text become int or Decimal, never float.

    Raises:
        InvalidRequest: the text is not JSON, names a field twice, has a number in exponent
            notation, or is not one such call.
    """
    call = _object(raw, "The tool call")
    match call:
        case {"function": Mapping() as function}:
            named, arguments, places = function, function.get("arguments"), ("function",)
        case {"input": arguments}:
            named, places = call, ("input",)
        case {"arguments": arguments}:
            named, places = call, ("arguments",)
        case _:
            _no_call('It has no arguments: give {"name": ..., "arguments": {...}}.')
    # Two places for the arguments: one may be checked, and the other carried out.
    if also := {"function", "input", "arguments"} & call.keys() - {*places}:
        _no_call(f"Its arguments stand in {places[0]} and in {sorted(also)[0]}: give them once.")
    name, call_id = named.get("name"), call.get("call_id", call.get("id", ""))
    if not isinstance(name, str) or not name:
        _no_call("It names no tool.")
    if not isinstance(call_id, str) or ("type" in call and not call_id):
        _no_call("It has no id that its result could be sent back under.")
    return ToolCall(call_id, name, _object(arguments, "The value of the arguments"))


def _object(raw: Any, what: str) -> Mapping[str, Any]:
    value = _read(raw, what) if isinstance(raw, str) else raw
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise InvalidRequest(f"{what} is not an object.", None, "not_a_call")
    return value


def _read(text: str, what: str) -> Any:
    try:
        return json.loads(
            text, parse_float=_decimal, parse_constant=_no_number, object_pairs_hook=_once
        )
    except InvalidRequest:
        raise
    except (ValueError, RecursionError) as error:  # ValueError: an integer of 4,300 digits too
        raise InvalidRequest(f"{what} is not JSON that can be read.", None, "not_json") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON lets a field stand twice; readers take the first or the last, and so differ."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise InvalidRequest(f"The field {name!a:.60} stands twice.", name, "duplicate_field")
        fields[name] = value
    return fields


def _decimal(text: str) -> Decimal:
    if "e" in text.lower():
        raise InvalidRequest(
            f"The number {text:.60} has an exponent: write plain digits, like 500.00.",
            None,
            "not_a_number",
        )
    return Decimal(text)


def _no_number(text: str) -> NoReturn:
    raise InvalidRequest(f"{text} is not a number in JSON.", None, "not_a_number")


def _no_call(reason: str) -> NoReturn:
    raise InvalidRequest(f"This is not a tool call. {reason}", None, "not_a_call")
