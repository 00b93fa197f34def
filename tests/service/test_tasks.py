from __future__ import annotations

from typing import Any

from simulator.service.tasks import open_task


def test_a_question_is_asked_once_with_its_first_reason(desk: Any) -> None:
    open_task(desk, "operation-1", "refund", "first")
    desk.seconds = 60.0
    open_task(desk, "operation-1", "refund", "second")
    assert desk.rows("SELECT operation_id, topic, reason FROM tasks") == [
        ("operation-1", "refund", "first")
    ]


def test_two_topics_are_two_questions(desk: Any) -> None:
    open_task(desk, "operation-1", "refund", "who was paid?")
    open_task(desk, "operation-1", "tell", "nobody was told")
    open_task(desk, "operation-2", "refund", "who was paid?")
    assert len(desk.rows("SELECT * FROM tasks")) == 3
