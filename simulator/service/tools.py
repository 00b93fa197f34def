"""The tools that a model may call: which of them write, who may, and what a call of each does.

A tool that writes has a side effect: it is found again by its key, and never repeated blindly.
One that reads changes nothing, and may be repeated two or three times (section 10 of the lesson).
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from simulator.service import answers, approval, pipeline
from simulator.service.actions import CANCEL, DELETE_PROFILE, perform
from simulator.service.answers import CONFLICT, Answer, answer_about
from simulator.service.audit import Notes
from simulator.service.balance import order_of
from simulator.service.errors import CommitUnknown, DatabaseUnavailable
from simulator.service.invalid import InvalidRequest
from simulator.service.keys import digest, operation_key
from simulator.service.money import money
from simulator.service.once import once, write_audit
from simulator.service.operations import Operation, Row
from simulator.service.retry_limits import ReadRetry
from simulator.service.schemas import Session, ToolCall, storable
from simulator.service.tool_schema import WHEN_TO_REFUND, RefundArguments, tool_definition

if TYPE_CHECKING:
    from simulator.service.design import Design
    from simulator.service.runtime import Runtime, Steps, Transaction

__all__ = ["TOOLS", "Tool", "definitions", "handle"]

MOST_ORDERS = 100


def _one_spelling(order_id: str) -> str:
    """The id in NFC, in which orders are stored; as `parse_refund` has it."""
    if not order_id.isprintable():
        raise PydanticCustomError("not_text", "An order's id has characters that cannot be seen")
    return unicodedata.normalize("NFC", order_id)


def _not_too_many(order_ids: list[str]) -> list[str]:
    # Not as `maxItems`: strict modes do not all know it.
    if len(order_ids) > MOST_ORDERS:
        raise PydanticCustomError("too_long", f"Give at most {MOST_ORDERS} orders")
    return order_ids


OrderId = Annotated[
    str,
    Field(pattern="^.{3,50}$", description="An order's id, for example ORD-1001. Never guess one."),
    AfterValidator(_one_spelling),
]


class OneOrder(BaseModel):
    """Arguments of get_order_status."""

    model_config = ConfigDict(extra="forbid")

    order_id: OrderId


class SomeOrders(BaseModel):
    """Arguments of cancel_orders."""

    model_config = ConfigDict(extra="forbid")

    order_ids: Annotated[
        list[OrderId],
        Field(min_length=1, description="The orders to cancel: all, or none; at most 100."),
        AfterValidator(_not_too_many),
    ]


class Nothing(BaseModel):
    """Arguments of delete_profile: whose it is says the session."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Tool:
    """One tool.

    Attributes:
        name: as the model calls it.
        writes: whether it has a side effect.
        permission: what the session has to allow.
        arguments: the model of its arguments.
        description: when a model should call it, and what to make of the result.
    """

    name: str
    writes: bool
    permission: str
    arguments: type[BaseModel]
    description: str


TOOLS: Mapping[str, Tool] = MappingProxyType(
    {
        tool.name: tool
        for tool in (
            Tool("issue_refund", True, "refund:create", RefundArguments, WHEN_TO_REFUND),
            Tool(
                CANCEL,
                True,
                "order:cancel",
                SomeOrders,
                "Cancels orders of the customer in this conversation, who has asked for it, and "
                "puts their goods back into stock: all of them, or none. It pays nothing back. "
                "Two or more need a person's approval. When the call times out, make exactly the "
                "same call again.",
            ),
            Tool(
                DELETE_PROFILE,
                True,
                "profile:delete",
                Nothing,
                "Deletes the name and address of the customer in this conversation, for ever, "
                "after a person has approved it. Only when the customer has asked for just that.",
            ),
            Tool(
                "get_order_status",
                False,
                "order:read",
                OneOrder,
                "Reads how an order of the customer stands. It changes nothing and may be "
                "repeated.",
            ),
        )
    }
)


def definitions() -> list[dict[str, Any]]:
    """Every tool in the form that tool-calling APIs take."""
    return [tool_definition(tool.name, tool.description, tool.arguments) for tool in TOOLS.values()]


def handle(rt: Runtime, d: Design, call: ToolCall, session: Session) -> Steps[Answer]:
    """One tool call in, one answer out, whichever tool it is."""
    tool = TOOLS.get(call.name)
    if tool is None or tool.name == "issue_refund":
        return pipeline.handle(rt, d, call, session)
    return use(rt, d, tool, call, session)


def use(rt: Runtime, d: Design, tool: Tool, call: ToolCall, session: Session) -> Steps[Answer]:
    """A call of a tool that moves no money."""
    if tool.permission not in session.permissions:
        yield from once(rt, d, pipeline.refuse, session.intent_id, "denied", "no permission")
        return FORBIDDEN
    try:
        arguments = _arguments(tool, call)
    except InvalidRequest as error:
        yield from once(rt, d, pipeline.refuse, session.intent_id, "invalid", str(error))
        return d.answer_to("invalid", pipeline.unreadable(error))
    if not tool.writes:
        answer = yield from read_order(rt, d, arguments["order_id"], session)
        return answer
    operation = _operation(rt.new_id(), tool.name, arguments, call, session)
    answer = yield from once(rt, d, begin_action, operation)
    return answer


FORBIDDEN = replace(answers.FORBIDDEN, text="It was refused: 403 Forbidden.")
SHOWN = 60
"""Characters of an argument's name, which the model wrote, that a sentence repeats."""


def _arguments(tool: Tool, call: ToolCall) -> dict[str, Any]:
    if not isinstance(call.arguments, Mapping):
        raise InvalidRequest("The arguments are not an object.", None, "not_a_call")
    try:
        return tool.arguments.model_validate(dict(call.arguments)).model_dump()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        if len(where) > SHOWN or not where.isprintable():
            where = f"{where!a:.{SHOWN}}"
        raise InvalidRequest(f"Argument {where}: {first['msg']}.", where) from error


def _operation(
    operation_id: str, action: str, arguments: dict[str, Any], call: ToolCall, session: Session
) -> Operation:
    """The session's intent, as an operation; one spelling of its arguments."""
    if "order_ids" in arguments:
        arguments = {"order_ids": sorted(set(arguments["order_ids"]))}
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
    return Operation(
        id=operation_id,
        tenant_id=session.tenant_id,
        user_id=session.user_id,
        intent_id=session.intent_id,
        call_id=storable(call.call_id),
        order_id="",
        amount=0,
        currency="USD",
        model_key="",
        key=operation_key(session.tenant_id, action, session.intent_id),
        fingerprint=digest(session.tenant_id, action, text),
        action=action,
        arguments=text,
    )


def begin_action(
    tx: Transaction, d: Design, later: list[tuple[Any, ...]], operation: Operation
) -> Answer:
    """Look-up, ownership, consent, and the change itself, in ONE transaction."""
    notes = Notes(tx, d, later)
    for order_id in json.loads(operation.arguments).get("order_ids", ()):
        if not d.owns(order_of(tx, operation.tenant_id, order_id), operation):
            if pipeline.other_payload(tx, d, operation):
                break
            notes.entry(operation.intent_id, None, "denied", "not an order of this user")
            return FORBIDDEN
    word = d.begin_record(tx, operation)
    if word == "conflict":
        notes.entry(operation.intent_id, None, "conflict", "other payload under the key")
        return CONFLICT
    if word == "known":
        return answer_about(operation, d.record.row(tx, operation))
    if d.record.durable:
        notes.add(operation, "->pending")
    if d.approval.needed(operation, {}):
        if not d.record.durable:
            refused = pipeline.turn_down(tx, d, notes, operation, pipeline.NO_RECORD)
            return answer_about(operation, refused.row)
        if approval.ask(tx, d, notes, operation):
            return answer_about(operation, Row("awaiting_approval"))
    return answer_about(operation, perform(tx, d, notes, operation))


READS = ReadRetry()


def read_order(rt: Runtime, d: Design, order_id: str, session: Session) -> Steps[Answer]:
    """Reads an order of the session's user; repeated when the database does not answer."""
    for attempt in count():
        later: list[tuple[Any, ...]] = []
        try:
            text = yield from rt.transact(order_status, d, later, order_id, session)
            if later:
                yield from rt.transact(write_audit, later)
            return Answer("info", text)
        except (DatabaseUnavailable, CommitUnknown):
            delay = READS.delay(attempt, rt.random)
            if delay is None:
                raise
            yield from rt.sleep(delay)
    raise AssertionError("unreachable")


def order_status(
    tx: Transaction, d: Design, later: list[tuple[Any, ...]], order_id: str, session: Session
) -> str:
    """How an order stands, in a sentence; another customer's is not there."""
    order = order_of(tx, session.tenant_id, order_id)
    if order is None or order.user_id != session.user_id:
        Notes(tx, d, later).entry(session.intent_id, None, "denied", "not an order of this user")
        return f"There is no order {order_id}."
    paid, back = money(order.captured, order.currency), money(order.refunded, order.currency)
    said = f"Order {order_id} is {order.status}: {paid} paid, {back} refunded"
    if order.pending:
        said += f", {money(order.pending, order.currency)} being refunded"
    return f"{said}."
