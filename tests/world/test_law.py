"""The judge's law and the service's are written twice, and say the same."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import product
from typing import Any

import pytest

from simulator.service.actions import action_asks_consent
from simulator.service.approval import permission
from simulator.service.money import EXPONENTS
from simulator.service.operations import TRANSITIONS, is_legal
from simulator.service.schemas import InvalidRequest, Session, ToolCall, parse_refund
from simulator.service.tools import TOOLS
from simulator.world import law

SESSION = Session("user", "tenant", frozenset(), "intent-1")


def test_permissions_consents_decimals_and_transitions_are_the_same() -> None:
    writing = {name: tool.permission for name, tool in TOOLS.items() if tool.writes}
    assert writing == law.PERMISSION
    assert {kind: permission(kind) for kind in law.CONSENT} == law.CONSENT
    assert EXPONENTS == law.DECIMALS
    states = [*TRANSITIONS, ""]
    for before, after in product(states, states):
        assert is_legal(before or None, after) == ((before, after) in law.TRANSITIONS)


@pytest.mark.parametrize("orders", range(5))
@pytest.mark.parametrize("kind", ["cancel_orders", "delete_profile"])
def test_both_ask_a_person_about_the_same_actions(kind: str, orders: int) -> None:
    names = [f"ORD-{number}" for number in range(orders)]
    arguments = json.dumps({"order_ids": names} if kind == "cancel_orders" else {})
    assert law.asks_consent(kind, orders) == action_asks_consent(kind, arguments)


@pytest.mark.parametrize(
    "written",
    ["500.00", "500", "500.0", "0.01", "1.234", "19.99", "9999999999.99", 500, 19.99],
)
def test_what_the_judge_reads_the_service_reads_as_the_same(written: Any) -> None:
    call = ToolCall("call-1", "issue_refund", {"order_id": "ORD-1001", "amount": written})
    order, amount = law.readable(call.arguments) or ("", Decimal(0))
    request = parse_refund(call, SESSION)
    assert (order, amount) == (request.order_id, request.amount)


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        {},
        {"order_id": "ORD-1001"},
        {"order_id": "ORD-1001", "amount": "5e2"},
        {"order_id": "ORD-1001", "amount": "-5"},
        {"order_id": "ORD-1001", "amount": "0"},
        {"order_id": "ORD-1001", "amount": True},
        {"order_id": "ORD-1001", "amount": 10**5000},
        {"order_id": "ORD-1001", "amount": "1.2345"},
        {"order_id": "ORD-1001", "amount": "500", "confirm": True},
        {"order_id": "O1", "amount": "500"},
        {"order_id": "O" * 51, "amount": "500"},
        {"order_id": "ORD-\x00", "amount": "500"},
        {"order_id": 1001, "amount": "500"},
    ],
)
def test_what_the_service_refuses_the_judge_asks_of_nobody(arguments: Any) -> None:
    assert law.readable(arguments) is None
    with pytest.raises(InvalidRequest):
        parse_refund(ToolCall("call-1", "issue_refund", arguments), SESSION)
