"""What comes too late and says the contrary of what was booked is left to a person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.service.designs import SAFE
from simulator.service.errors import Declined
from simulator.service.payment import Outcome
from simulator.service.pipeline import finish, handle
from simulator.service.schemas import Session, ToolCall
from simulator.service.webhooks import Report, receive
from simulator.service.worker import claim, refund

Call = Callable[..., ToolCall]
NO = Declined("the card was closed.")


@pytest.fixture
def shift(runtime: Any, run: Any, make_call: Call, session: Session) -> Any:
    """A refund that a worker has just claimed."""
    run(handle(runtime, SAFE, make_call(), session))
    job = claim(runtime.desk, SAFE, [], "worker-1#1")
    assert job is not None
    return job


def reported(kind: str, job: Any) -> Report:
    operation = job.operation
    money = operation.amount, operation.currency
    of = operation.tenant_id, operation.order_id
    return Report("event-1", kind, operation.intent_id, "REF-1 $500.00", *of, *money)


def log(desk: Any) -> list[str]:
    return [event for (event,) in desk.rows("SELECT event FROM audit_log ORDER BY id")]


@pytest.mark.parametrize(
    ("report", "answer", "said"),
    [
        ("failed", "REF-1 $500.00", "booked as failed, and the provider answers: REF-1 $500.00"),
        ("succeeded", NO, "booked as succeeded, and the provider answers: the card was closed."),
    ],
)
def test_an_answer_that_contradicts_the_report_before_it_opens_one_task(
    report: str, answer: Any, said: str, runtime: Any, run: Any, shift: Any
) -> None:
    assert run(receive(runtime, SAFE, reported(report, shift))) == 200
    booked = runtime.desk.balance()
    runtime.answers = [answer]
    run(refund(runtime, SAFE, shift))
    assert runtime.desk.status() == report
    assert runtime.desk.balance() == booked
    ((topic, reason),) = runtime.desk.rows("SELECT topic, reason FROM tasks")
    assert (topic, said in reason) == ("contradiction", True)
    assert log(runtime.desk).count("task") == 1


@pytest.mark.parametrize(("report", "answer"), [("succeeded", "REF-1 $500.00"), ("failed", NO)])
def test_an_answer_that_says_the_same_asks_nobody(
    report: str, answer: Any, runtime: Any, run: Any, shift: Any
) -> None:
    assert run(receive(runtime, SAFE, reported(report, shift))) == 200
    runtime.answers = [answer]
    run(refund(runtime, SAFE, shift))
    assert runtime.desk.rows("SELECT * FROM tasks") == []


def test_a_zombie_that_heard_the_contrary_is_heard_once(runtime: Any, shift: Any) -> None:
    desk = runtime.desk
    desk.seconds += 100  # its lease is over, and another one takes the refund up
    after = claim(desk, SAFE, [], "worker-2#1")
    assert after is not None
    assert finish(desk, SAFE, [], after.operation, Outcome("failed", "closed"), after)
    for _ in range(2):
        paid = Outcome("succeeded", "REF-1 $500.00")
        assert not finish(desk, SAFE, [], shift.operation, paid, shift)
    assert desk.status() == "failed"
    assert len(desk.rows("SELECT * FROM tasks")) == 1
    assert log(desk).count("task") == 1


def test_a_zombie_that_knows_nothing_asks_nobody(runtime: Any, shift: Any) -> None:
    desk = runtime.desk
    desk.seconds += 100
    after = claim(desk, SAFE, [], "worker-2#1")
    assert after is not None
    assert finish(desk, SAFE, [], after.operation, Outcome("succeeded", "REF-1"), after)
    silent = Outcome("outcome_unknown", "no answer")
    assert not finish(desk, SAFE, [], shift.operation, silent, shift)
    assert desk.rows("SELECT * FROM tasks") == []
