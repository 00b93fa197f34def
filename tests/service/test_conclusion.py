from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.service.answers import Answer, FromRecord
from simulator.service.audit import Notes
from simulator.service.balance import NoBalance, Reserved
from simulator.service.conclusion import conclude, fail
from simulator.service.designs import SAFE
from simulator.service.operations import DurableRecord, Operation, Row

Make = Callable[..., Operation]


@pytest.fixture
def reserved(shop: Any, make_operation: Make) -> Operation:
    """A recorded refund of 300.00 whose amount is reserved."""
    operation = make_operation(amount=300_00)
    DurableRecord().begin(shop, operation)
    assert Reserved().take(shop, operation)
    return operation


@pytest.mark.parametrize(
    ("answer", "topics"),
    [
        (FromRecord(follow_up=True), [("tell",)]),
        (FromRecord(follow_up=False), []),
        (lambda begun, row: Answer("verifying", "later"), []),
    ],
    ids=["follow-up", "none", "a plain function"],
)
def test_what_is_final_promises_a_word_exactly_if_the_design_does(
    answer: Any, topics: list[tuple[str]], shop: Any, reserved: Operation
) -> None:
    for _ in range(2):
        conclude(shop, SAFE.but(answer=answer), reserved)
    assert shop.rows("SELECT topic FROM outbox") == topics


@pytest.mark.parametrize("before", ["pending", "awaiting_approval"])
def test_what_was_never_sent_ends_with_its_reason_and_frees_the_balance(
    before: str, shop: Any, reserved: Operation
) -> None:
    shop.execute("UPDATE tool_operations SET status = :s", {"s": before})
    assert fail(shop, SAFE, Notes(shop, SAFE, []), reserved, before, "it rained.") is True
    assert DurableRecord().row(shop, reserved) == Row("failed", {"detail": "it rained."})
    assert shop.balance() == (0, 0)
    assert shop.rows("SELECT event, detail FROM audit_log") == [(f"{before}->failed", "it rained.")]
    assert shop.rows("SELECT topic FROM outbox") == [("tell",)]


@pytest.mark.parametrize("now", ["processing", "outcome_unknown", "succeeded", "failed"])
def test_what_has_gone_on_is_not_ended(now: str, shop: Any, reserved: Operation) -> None:
    shop.execute("UPDATE tool_operations SET status = :s", {"s": now})
    assert fail(shop, SAFE, Notes(shop, SAFE, []), reserved, "pending", "it rained.") is False
    assert DurableRecord().row(shop, reserved) == Row(now)
    assert shop.balance() == (0, 300_00)
    assert shop.rows("SELECT * FROM audit_log") == []
    assert shop.rows("SELECT * FROM outbox") == []


def test_a_design_without_a_balance_has_nothing_to_free(shop: Any, reserved: Operation) -> None:
    design = SAFE.but(balance=NoBalance())
    assert fail(shop, design, Notes(shop, design, []), reserved, "pending", "it rained.")
    assert shop.balance() == (0, 300_00)
