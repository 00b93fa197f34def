from __future__ import annotations

from typing import Any

import pytest

from simulator.service.audit import (
    AuditAfterwards,
    AuditInTransaction,
    NoAudit,
    Notes,
    append,
)
from simulator.service.designs import SAFE


def test_a_row_says_when_who_and_what(desk: Any) -> None:
    append(desk, "intent-1", None, "denied", "no permission")
    assert desk.rows("SELECT at, intent_id, operation_id, event, detail FROM audit_log") == [
        (desk.time(), "intent-1", None, "denied", "no permission")
    ]


def test_a_row_disappears_with_the_transaction_that_wrote_it(desk: Any) -> None:
    desk.execute("BEGIN")
    append(desk, "intent-1", "operation-1", "->pending", "")
    desk.execute("ROLLBACK")
    assert desk.rows("SELECT * FROM audit_log") == []


@pytest.mark.parametrize(
    ("policy", "kept", "with_the_change"),
    [
        (NoAudit(), False, False),
        (AuditAfterwards(), True, False),
        (AuditInTransaction(), True, True),
    ],
)
def test_a_policy_says_whether_and_when_it_writes(
    policy: Any, kept: bool, with_the_change: bool
) -> None:
    assert (policy.kept, policy.with_the_change) == (kept, with_the_change)


# Notes of one transaction.

ROWS = "SELECT intent_id, operation_id, event, detail FROM audit_log"


def noted(desk: Any, policy: Any, operation: Any) -> tuple[list[Any], list[Any]]:
    """What one note of each kind leaves in the log, and for later."""
    later: list[Any] = []
    notes = Notes(desk, SAFE.but(audit=policy), later)
    notes.add(operation, "->pending")
    notes.entry("intent-2", None, "denied", "no permission")
    return desk.rows(ROWS), later


def test_a_note_goes_where_the_design_says(desk: Any, make_operation: Any) -> None:
    operation = make_operation()
    entries = [
        ("intent-1", operation.id, "->pending", ""),
        ("intent-2", None, "denied", "no permission"),
    ]
    assert noted(desk, NoAudit(), operation) == ([], [])
    assert noted(desk, AuditAfterwards(), operation) == ([], entries)
    assert noted(desk, AuditInTransaction(), operation) == (entries, [])
