from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from simulator.service.authorization import (
    Anyone,
    AnyOrder,
    FromArguments,
    FromSession,
    Ownership,
    RefundPermission,
)
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


# What weaker designs take for an identity, a right and an owner.


@pytest.mark.parametrize(
    ("written", "whose"),
    [
        ({}, ("tenant", "user")),
        ({"tenant_id": OTHER}, (OTHER, "user")),
        ({"user_id": "another"}, ("tenant", "another")),
        ({"tenant_id": OTHER, "user_id": "another"}, (OTHER, "another")),
        ({"tenant_id": 7}, ("7", "user")),
    ],
)
def test_who_believes_the_arguments_acts_for_whomever_the_model_names(
    written: dict[str, Any], whose: tuple[str, str], make_call: Any
) -> None:
    # Case B23.
    session = Session("user", "tenant", frozenset(), "intent-1")
    assert FromArguments()(session, make_call(**written)) == whose


@pytest.mark.parametrize("permissions", [frozenset(), frozenset({"refund:create"})])
def test_who_asks_for_no_permission_lets_anyone(
    permissions: frozenset[str], session: Session
) -> None:
    assert Anyone()(replace(session, permissions=permissions)) is True


@pytest.mark.parametrize(
    ("where", "allowed"),
    [
        ({}, True),
        ({"user_id": OTHER}, True),
        ({"tenant_id": OTHER}, False),
        ({"order_id": "ORD-9999"}, False),
    ],
)
def test_who_asks_for_no_owner_takes_any_order_of_the_tenant(
    where: dict[str, str],
    allowed: bool,
    shop: Any,
    make_operation: Callable[..., Operation],
) -> None:
    operation = make_operation(**where)
    order = order_of(shop, operation.tenant_id, operation.order_id)
    assert AnyOrder()(order, operation) is allowed


def test_another_permission_may_be_asked_for(session: Session) -> None:
    assert RefundPermission("refund:read")(session) is False
    assert RefundPermission("refund:create")(session) is True
