"""What a model is shown of a tool: its name, when to use it, and a JSON schema of its arguments.

`refund_request_id`, which the published schema has the model fill in, is left out: a model that
invents it invents a new refund with every thought (trap 11). So is all that the session knows.

The schema keeps to what the strict modes of tool-calling APIs take: every property required, no
others, and patterns rather than lengths or bounds. It is a help for the model and no guard:
`parse_refund` checks again.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["REFUND_TOOL", "RefundArguments", "tool_definition"]

POSITIVE_AMOUNT = r"^([1-9][0-9]{0,9}(\.[0-9]{1,3})?|0\.([1-9][0-9]{0,2}|0[1-9][0-9]?|00[1-9]))$"
"""0.001 to 9999999999.999 in plain digits; the order's currency may have fewer decimals."""


class RefundArguments(BaseModel):
    """The arguments of issue_refund that are the model's to fill in."""

    model_config = ConfigDict(extra="forbid")

    order_id: str = Field(
        pattern="^.{3,50}$",
        description="The order's id as the customer or the shop's data gives it, for example "
        "ORD-1001. Never guess one.",
    )
    amount: str = Field(
        pattern=POSITIVE_AMOUNT,
        description="How much to refund, in the order's currency, as plain digits with no "
        "more decimals than the currency has, for example 500.00: no sign, symbol, separator "
        "or exponent.",
    )


def tool_definition(
    name: str,
    description: str,
    arguments_model: type[BaseModel],
    form: Literal["function", "input_schema"] = "function",
) -> dict[str, Any]:
    """A tool as tool-calling APIs take it.

    Args:
        name: of the tool.
        description: when to call it, and what to do with each result.
        arguments_model: its fields, each with a description; extra fields forbidden.
        form: "function" for `{"type": "function", "function": {..., "parameters", "strict"}}`,
            "input_schema" for `{"name", "description", "input_schema"}`.

    Raises:
        ValueError: a field has no description, may be left out, or others are not forbidden.
    """
    schema = arguments_model.model_json_schema()
    properties = schema.get("properties", {})
    for field, shape in properties.items():
        if not shape.get("description"):
            raise ValueError(f"Tool {name}: argument {field} needs a description.")
        if field not in schema.get("required", ()):
            raise ValueError(f"Tool {name}: argument {field} may be left out; strict forbids that.")
        shape.pop("title", None)
    if schema.get("additionalProperties") is not False:
        raise ValueError(
            f'Tool {name}: set extra="forbid" in {arguments_model.__name__}, or a model may add '
            "arguments."
        )
    # The title and the docstring are for programmers.
    parameters = {key: schema[key] for key in schema if key not in ("title", "description")}
    parameters.setdefault("required", [])  # strict modes want it, empty too
    if form == "input_schema":
        return {"name": name, "description": description, "input_schema": parameters}
    function = {"name": name, "description": description, "parameters": parameters, "strict": True}
    return {"type": "function", "function": function}


WHEN_TO_REFUND = (
    "Refunds money for an order of the customer in this conversation, who has asked for it. Call "
    "it once for one wish. The result's `outcome` decides what you may say: only `succeeded` "
    "means that the money was paid, only `refused` that it was not. With `in_progress` or "
    "`awaiting_approval`, or when the call times out, fails, or has no result, nobody knows yet: "
    "tell the customer that the refund is being verified, and neither that it was paid nor that "
    "it failed. You may then make the same call again, after `retry_after` seconds, with exactly "
    "the same arguments: it is recognised, and does not pay twice. Never change the order or the "
    "amount to get another result. With `conflict`, an earlier call for this wish had other "
    "arguments, and counts. With `invalid`, correct the argument that `field` names."
)

REFUND_TOOL = tool_definition("issue_refund", WHEN_TO_REFUND, RefundArguments)
"""The course's tool, in the first form."""
