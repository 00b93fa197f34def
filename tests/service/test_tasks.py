from __future__ import annotations

from typing import Any

from simulator.service.audit import Notes
from simulator.service.designs import SAFE
from simulator.service.operations import Operation
from simulator.service.tasks import open_task


def asked(desk: Any, operation_id: str, topic: str, reason: str) -> bool:
    operation = Operation(*[""] * 12)._replace(id=operation_id, intent_id="intent-1")
    return open_task(desk, Notes(desk, SAFE, []), operation, topic, reason)


def test_a_question_is_asked_once_with_its_first_reason_and_is_in_the_log_once(desk: Any) -> None:
    assert asked(desk, "operation-1", "refund", "first")
    desk.seconds = 60.0
    assert not asked(desk, "operation-1", "refund", "second")
    assert desk.rows("SELECT operation_id, topic, reason FROM tasks") == [
        ("operation-1", "refund", "first")
    ]
    assert desk.rows("SELECT event, detail FROM audit_log") == [("task", "first")]


def test_two_topics_are_two_questions(desk: Any) -> None:
    asked(desk, "operation-1", "refund", "who was paid?")
    asked(desk, "operation-1", "tell", "nobody was told")
    asked(desk, "operation-2", "refund", "who was paid?")
    assert len(desk.rows("SELECT * FROM tasks")) == 3
