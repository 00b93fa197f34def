"""A policy is checked by exploring the student's own design; on an exercise made for this test."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from simulator import Scenario, designs
from simulator.lessons import check, checking, course
from simulator.lessons.course import PolicyExercise
from simulator.service.operations import Operation

OPERATION = Operation(
    id="op-1",
    tenant_id="tenant",
    user_id="user",
    order_id="ORD-1001",
    amount=50_000,
    currency="USD",
    intent_id="intent-1",
    key="tenant/refund/intent-1",
    fingerprint="hash",
    call_id="call-1",
    model_key="key-of-the-model",
)

KEY = PolicyExercise(
    name="my_key",
    task="return the key that the provider is sent: the same for every attempt of one refund",
    design=lambda policy: designs.SAFE.but(name="SAFE with my_key", key=policy),
    scenarios=lambda: [Scenario.one_refund()],
    max_faults=1,
    costs={"double_refund": "the provider takes the second request for a new one, and pays."},
    hints=("one", "two", "three"),
    probe=(OPERATION, 0),
)


@pytest.fixture(autouse=True)
def exercise(monkeypatch: pytest.MonkeyPatch) -> None:
    known = course.exercise
    monkeypatch.setattr(course, "exercise", lambda name: KEY if name == KEY.name else known(name))


def stub(operation: Operation, attempt: int) -> Any:
    return ...


def right(operation: Operation, attempt: int) -> str:
    return f"{operation.tenant_id}/refund/{operation.intent_id}"


def no_key(operation: Operation, attempt: int) -> None:
    return None


def per_attempt(operation: Operation, attempt: int) -> str:
    return f"{operation.intent_id}-{attempt}"


def from_the_model(operation: Operation, attempt: int) -> str:
    return operation.model_key + str(attempt % 2)


def a_number(operation: Operation, attempt: int) -> int:
    return 7


def raises(operation: Operation, attempt: int) -> str:
    return {}["key"]  # the student's own line


def loops(operation: Operation, attempt: int) -> str:
    while True:
        pass


def test_a_stub_is_not_attempted_yet() -> None:
    assert check("my_key", stub).kind == "not attempted"


def test_a_right_policy_is_right_and_says_how_much_was_tried() -> None:
    outcome = check("my_key", right)
    assert outcome.kind == "right", str(outcome)
    assert "Nothing breaks in" in str(outcome)
    assert "up to 1 fault." in str(outcome)


@pytest.mark.parametrize("policy", [no_key, per_attempt, from_the_model])
def test_a_wrong_policy_is_shown_the_smallest_history_that_breaks_it(
    policy: Callable[..., Any],
) -> None:
    outcome = check("my_key", policy)
    assert outcome.kind == "wrong"
    assert "with 1 fault, breaks: double_refund" in str(outcome)
    assert "Why it costs money: the provider takes the second request for a new one" in str(outcome)
    assert outcome.run is not None
    assert len(outcome.run.faults) == 1
    assert outcome.figure is not None
    assert "paid" in repr(outcome.figure) or "pays" in repr(outcome.figure)


def test_a_policy_of_the_wrong_type_is_told_what_is_expected() -> None:
    outcome = check("my_key", a_number)
    assert outcome.kind == "wrong"
    assert "returned 7" in str(outcome)
    assert "a text of 1 to 255 characters, or None" in str(outcome)


def test_a_policy_that_raises_is_told_its_own_line() -> None:
    outcome = check("my_key", raises)
    assert outcome.kind == "raised"
    assert '`return {}["key"]  # the student\'s own line`, stopped with KeyError' in str(outcome)


def test_a_policy_that_is_no_policy_is_told_so() -> None:
    outcome = check("my_key", 7)
    assert outcome.kind == "raised"
    assert "key=7 cannot be called" in str(outcome)


def test_a_policy_that_loops_is_stopped_with_a_sentence() -> None:
    began = time.monotonic()
    outcome = check("my_key", loops)
    assert "did not come to an end" in str(outcome)
    assert time.monotonic() - began < checking.SECONDS + 0.5


def test_a_check_of_a_policy_takes_less_than_two_seconds() -> None:
    check("my_key", no_key)  # the first one draws with a matplotlib that has to be loaded
    for policy in (right, no_key, per_attempt):
        began = time.monotonic()
        check("my_key", policy)
        assert time.monotonic() - began < 2.0
