from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from simulator.service.authorization import FromSession, Ownership, RefundPermission
from simulator.service.balance import order_of
from simulator.service.operations import Operation
from simulator.service.schemas import Session

OTHER = "11111111-2222-4333-8444-555555555555"


def test_tenant_and_user_are_the_sessions_whatever_the_model_wrote(
    session: Session, make_call: Any
) -> None:
    assert FromSession()(session, make_call(tenant_id="another")) == (
        session.tenant_id,
        session.user_id,
    )


@pytest.mark.parametrize(
    ("permissions", "allowed"),
    [
        ({"refund:create"}, True),
        ({"refund:create", "order:read"}, True),
        (set(), False),
        ({"refund:read"}, False),
        ({"refund"}, False),
        ({"refund:create:all"}, False),
        ({"REFUND:CREATE"}, False),
    ],
)
def test_only_exactly_the_permission_to_refund_is_enough(
    permissions: set[str], allowed: bool, session: Session
) -> None:
    assert RefundPermission()(replace(session, permissions=frozenset(permissions))) is allowed


def test_the_owner_of_an_order_may_have_it_refunded(
    shop: Any, make_operation: Callable[..., Operation]
) -> None:
    operation = make_operation()
    order = order_of(shop, operation.tenant_id, operation.order_id)
    assert Ownership()(order, operation) is True


@pytest.mark.parametrize(
    "other", [{"user_id": OTHER}, {"tenant_id": OTHER}, {"order_id": "ORD-9999"}]
)
def test_nobody_else_may(
    other: dict[str, str], shop: Any, make_operation: Callable[..., Operation]
) -> None:
    # Trap 12 of the lesson: a permission is asked for, and not whose order it is.
    operation = make_operation(**other)
    order = order_of(shop, operation.tenant_id, operation.order_id)
    assert Ownership()(order, operation) is False
