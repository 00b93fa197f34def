from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.service.operations import (
    FINAL,
    TRANSITIONS,
    DurableRecord,
    MemoryRecord,
    NoRecord,
    Operation,
    Row,
    is_legal,
    move,
)
from simulator.service.outbox import enqueue

# The table of the design, written out a second time.
LEGAL = {
    (None, "pending"),
    ("pending", "processing"),
    ("pending", "awaiting_approval"),
    ("pending", "failed"),
    ("awaiting_approval", "pending"),
    ("awaiting_approval", "failed"),
    ("processing", "succeeded"),
    ("processing", "failed"),
    ("processing", "outcome_unknown"),
    ("outcome_unknown", "processing"),
    ("outcome_unknown", "succeeded"),
    ("outcome_unknown", "failed"),
}
STATES = (
    "pending",
    "awaiting_approval",
    "processing",
    "outcome_unknown",
    "succeeded",
    "failed",
)
PAIRS = [(before, after) for before in (None, *STATES) for after in STATES]
MOVES = [(before, after) for before in STATES for after in STATES]
Make = Callable[..., Operation]


@pytest.fixture
def pending(desk: Any, make_operation: Make) -> Operation:
    """One recorded operation."""
    operation = make_operation()
    assert DurableRecord().begin(desk, operation) == "new"
    return operation


def put(desk: Any, status: str) -> None:
    """Sets the state by force, past the service."""
    desk.execute("UPDATE tool_operations SET status = :status", {"status": status})


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_a_change_of_state_is_legal_exactly_if_the_table_has_it(
    before: str | None, after: str
) -> None:
    assert is_legal(before, after) == ((before, after) in LEGAL)


def test_nothing_leaves_a_final_state() -> None:
    assert {"succeeded", "failed"} == FINAL
    assert all(not TRANSITIONS[state] for state in FINAL)


def test_a_state_that_nobody_knows_leads_nowhere() -> None:
    assert not is_legal("lost", "succeeded")
    assert not is_legal("pending", "lost")


@pytest.mark.parametrize(("before", "after"), [pair for pair in MOVES if pair not in LEGAL])
def test_move_refuses_what_the_table_does_not_have(
    before: str, after: str, desk: Any, pending: Operation
) -> None:
    put(desk, before)
    with pytest.raises(ValueError, match=f"cannot go from {before} to {after}"):
        move(desk, pending.id, before, after)
    assert desk.status() == before


@pytest.mark.parametrize(("before", "after"), [pair for pair in MOVES if pair in LEGAL])
def test_move_makes_a_legal_change(before: str, after: str, desk: Any, pending: Operation) -> None:
    put(desk, before)
    desk.seconds = 60.0
    assert move(desk, pending.id, before, after) is True
    assert desk.one("SELECT status, updated_at FROM tool_operations") == (after, desk.time())


@pytest.mark.parametrize("state", STATES)
def test_move_changes_nothing_if_somebody_was_faster(
    state: str, desk: Any, pending: Operation
) -> None:
    put(desk, state)
    seen = desk.one("SELECT * FROM tool_operations")
    desk.seconds = 60.0
    before, after = "processing", "succeeded"
    if state != before:
        assert move(desk, pending.id, before, after, {"detail": "too late"}) is False
        assert desk.one("SELECT * FROM tool_operations") == seen


def test_move_changes_only_the_operation_that_it_names(desk: Any, make_operation: Make) -> None:
    record = DurableRecord()
    record.begin(desk, one := make_operation())
    record.begin(desk, make_operation(number=2, intent_id="intent-2"))
    move(desk, one.id, "pending", "processing")
    assert desk.rows("SELECT status FROM tool_operations ORDER BY id") == [
        ("processing",),
        ("pending",),
    ]


def test_a_result_is_kept_when_a_later_change_brings_none(desk: Any, pending: Operation) -> None:
    move(desk, pending.id, "pending", "processing", {"detail": "first"})
    move(desk, pending.id, "processing", "outcome_unknown")
    assert DurableRecord().row(desk, pending) == Row("outcome_unknown", {"detail": "first"})


@pytest.mark.parametrize("result", ['{"detail": "paid"}', {"detail": "paid"}])
def test_a_result_is_read_from_text_and_from_a_dict(result: Any) -> None:
    # SQLite returns JSON as text, PostgreSQL as a dict.
    assert Row.read("succeeded", result).result == {"detail": "paid"}


def test_a_row_without_a_result_has_none() -> None:
    assert Row.read("pending", None).result is None


# The durable record.


def test_an_intent_is_new_once_and_known_ever_after(desk: Any, make_operation: Make) -> None:
    record = DurableRecord()
    assert record.begin(desk, make_operation(number=1)) == "new"
    assert record.begin(desk, make_operation(number=2, call_id="call-2")) == "known"
    assert record.begin(desk, make_operation(number=3, model_key="another")) == "known"
    assert desk.rows("SELECT id FROM tool_operations") == [(make_operation(number=1).id,)]
    assert desk.rows("SELECT operation_id FROM refunds") == [(make_operation(number=1).id,)]


@pytest.mark.parametrize("other", [{"amount": 800_00}, {"order_id": "ORD-2"}, {"currency": "JPY"}])
def test_another_payload_under_the_key_is_a_conflict(
    other: dict[str, Any], desk: Any, make_operation: Make
) -> None:
    record = DurableRecord()
    record.begin(desk, make_operation())
    seen = desk.one("SELECT * FROM tool_operations"), desk.one("SELECT * FROM refunds")
    assert record.begin(desk, make_operation(number=2, **other)) == "conflict"
    assert (desk.one("SELECT * FROM tool_operations"), desk.one("SELECT * FROM refunds")) == seen


@pytest.mark.parametrize("state", STATES)
def test_a_conflict_is_found_in_every_state(
    state: str, desk: Any, pending: Operation, make_operation: Make
) -> None:
    put(desk, state)
    assert DurableRecord().begin(desk, make_operation(number=2, amount=1)) == "conflict"
    assert desk.status() == state


def test_a_record_without_fingerprint_takes_another_payload_for_a_repeat(
    desk: Any, pending: Operation, make_operation: Make
) -> None:
    record = DurableRecord(fingerprint=False)
    assert record.begin(desk, make_operation(number=2, amount=800_00)) == "known"


def test_two_tenants_may_have_an_intent_of_the_same_name(
    desk: Any, pending: Operation, make_operation: Make
) -> None:
    other = make_operation(number=2, tenant_id="11111111-2222-4333-8444-555555555555")
    assert DurableRecord().begin(desk, other) == "new"


def test_each_tenant_finds_its_own_row_under_a_key_that_both_use(
    desk: Any, make_operation: Make
) -> None:
    # A key that a model wrote names no tenant (trap 7 of the lesson).
    record = DurableRecord()
    one = make_operation()._replace(key="same")
    other = make_operation(2, tenant_id="11111111-2222-4333-8444-555555555555", amount=1)
    other = other._replace(key="same")
    assert [record.begin(desk, one), record.begin(desk, other)] == ["new", "new"]
    record.finish(desk, other, "failed", {"detail": "declined"}, checked=True)
    assert [record.row(desk, one), record.row(desk, other)] == [
        Row("pending"),
        Row("failed", {"detail": "declined"}),
    ]
    assert [record.begin(desk, one), record.begin(desk, other)] == ["known", "known"]


def test_the_recorded_row_is_found_by_the_key_not_by_the_calls_own_id(
    desk: Any, pending: Operation, make_operation: Make
) -> None:
    assert DurableRecord().row(desk, make_operation(number=99)) == Row("pending")
    assert DurableRecord().row(desk, make_operation(intent_id="intent-2")) is None


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("status", ["succeeded", "failed", "outcome_unknown"])
def test_a_checked_outcome_is_written_exactly_if_the_table_allows_it(
    state: str, status: str, desk: Any, pending: Operation
) -> None:
    put(desk, state)
    before = DurableRecord().finish(desk, pending, status, {"detail": "x"}, checked=True)
    if (state, status) in LEGAL:
        assert before == state
        assert desk.status() == status
    else:
        assert before is None
        assert desk.one("SELECT status, result FROM tool_operations") == (state, None)


def test_an_unchecked_outcome_overwrites_even_a_final_state(desk: Any, pending: Operation) -> None:
    # What designs without a fence do (8 of 21 published systems; reference, section 5).
    put(desk, "succeeded")
    before = DurableRecord().finish(desk, pending, "failed", {"detail": "x"}, checked=False)
    assert before == "succeeded"
    assert desk.status() == "failed"


def test_an_outcome_of_no_operation_is_written_nowhere(desk: Any, make_operation: Make) -> None:
    assert DurableRecord().finish(desk, make_operation(), "succeeded", {}, checked=True) is None
    assert DurableRecord().finish(desk, make_operation(), "succeeded", {}, checked=False) is None


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from(STATES), st.booleans()), max_size=12))
def test_no_sequence_of_checked_writes_makes_an_illegal_change(
    new_desk: Callable[[], Any], wanted: list[tuple[str, bool]]
) -> None:
    desk = new_desk()
    operation = Operation("1", "t", "u", "i", "c", "o", 1, "USD", "m", "k", "f")
    record = DurableRecord()
    record.begin(desk, operation)
    for status, by_finish in wanted:
        if by_finish:
            record.finish(desk, operation, status, {}, checked=True)
        elif is_legal(now := desk.status(), status):
            move(desk, operation.id, now, status)
    changes = desk.rows("SELECT before, after FROM changes")
    assert set(changes) <= LEGAL


# The weaker records.


def test_a_record_in_memory_dies_with_the_memory(desk: Any, make_operation: Make) -> None:
    record = MemoryRecord()
    assert record.begin(desk, make_operation()) == "new"
    assert record.begin(desk, make_operation(number=2)) == "known"
    desk.memory.clear()
    assert record.begin(desk, make_operation(number=3)) == "new"


def test_a_record_in_memory_compares_no_payload(desk: Any, make_operation: Make) -> None:
    record = MemoryRecord()
    record.begin(desk, make_operation())
    assert record.begin(desk, make_operation(number=2, amount=800_00)) == "known"


def test_a_record_in_memory_remembers_the_outcome(desk: Any, make_operation: Make) -> None:
    record, operation = MemoryRecord(), make_operation()
    record.begin(desk, operation)
    record.finish(desk, operation, "succeeded", {"detail": "paid"}, checked=True)
    assert record.row(desk, operation) == Row("succeeded", {"detail": "paid"})


def test_no_record_finds_everything_new(desk: Any, make_operation: Make) -> None:
    assert [NoRecord().begin(desk, make_operation()) for _ in range(3)] == ["new"] * 3
    assert NoRecord().row(desk, make_operation()) is None
    assert desk.rows("SELECT * FROM tool_operations") == []


# How the first is told from the others.

LOOKING = DurableRecord(claim="look up")
UPSERT = DurableRecord(claim="upsert")


def promised(desk: Any, record: DurableRecord, operation: Operation) -> str:
    """What begin says, with an outbox row for what is new."""
    word = record.begin(desk, operation)
    enqueue(desk, operation.id, "refund")
    return word


def rows(desk: Any) -> list[list[str]]:
    """The operations' ids in each table."""
    columns = {"tool_operations": "id", "refunds": "operation_id", "outbox": "operation_id"}
    return [
        [row[0] for row in desk.rows(f"SELECT {column} FROM {table} ORDER BY 1")]
        for table, column in columns.items()
    ]


def test_a_record_that_is_looked_up_first_takes_all_who_looked_in_time_for_the_first(
    desk: Any, make_operation: Make
) -> None:
    # Cases B47, B88.
    one, other = make_operation(1), make_operation(2)
    assert [LOOKING.row(desk, operation) for operation in (one, other)] == [None, None]
    assert [LOOKING.begin(desk, operation) for operation in (one, other)] == ["new", "new"]
    assert rows(desk)[:2] == [[one.id], [one.id]]
    assert LOOKING.row(desk, other) == Row("pending")


def test_an_upsert_takes_everybody_for_the_first_and_sets_the_row_back(
    desk: Any, make_operation: Make
) -> None:
    # Case B66.
    one, other = make_operation(1), make_operation(2, call_id="call-2", amount=1)
    assert promised(desk, UPSERT, one) == "new"
    UPSERT.finish(desk, one, "processing", {"detail": "sent"}, checked=False)
    desk.seconds = 60.0
    assert promised(desk, UPSERT, other) == "new"
    assert rows(desk) == [[other.id]] * 3
    assert desk.one("SELECT status, result, updated_at FROM tool_operations") == (
        "pending",
        None,
        desk.time(),
    )
    assert desk.one("SELECT call_id, amount FROM refunds") == ("call-2", 1)


def test_an_upsert_leaves_other_operations_alone(desk: Any, make_operation: Make) -> None:
    other = make_operation(1, intent_id="intent-2")
    promised(desk, UPSERT, other)
    promised(desk, UPSERT, make_operation(2))
    promised(desk, UPSERT, make_operation(3))
    assert rows(desk) == [sorted([other.id, make_operation(3).id])] * 3


@pytest.mark.parametrize(
    ("record", "looks"),
    [
        (DurableRecord(), False),
        (UPSERT, False),
        (LOOKING, True),
        (MemoryRecord(), False),
        (NoRecord(), False),
    ],
)
def test_a_record_says_whether_somebody_looks_before_anybody_writes(
    record: Any, looks: bool
) -> None:
    assert record.looks_first is looks


@pytest.mark.parametrize("claim", ["lookup", "Insert", ""])
def test_a_way_to_tell_the_first_that_there_is_not_is_refused(claim: str) -> None:
    with pytest.raises(ValueError, match="say 'insert', 'look up' or 'upsert'"):
        DurableRecord(claim=claim)


@pytest.mark.parametrize("claim", ["insert", "look up", "upsert"])
def test_a_forgotten_operation_is_new_again_and_leaves_nothing(
    claim: str, desk: Any, make_operation: Make
) -> None:
    record = DurableRecord(claim=claim)
    one, other = make_operation(1), make_operation(2, intent_id="intent-2")
    for operation in (one, other):
        promised(desk, record, operation)
    record.forget(desk, one)
    assert rows(desk) == [[other.id]] * 3
    assert record.row(desk, one) is None
    assert record.begin(desk, make_operation(3)) == "new"


def test_memory_forgets_what_it_is_told_to_and_nothing_else(
    desk: Any, make_operation: Make
) -> None:
    record = MemoryRecord()
    one, other = make_operation(1), make_operation(2, intent_id="intent-2")
    record.forget(desk, one)
    for operation in (one, other):
        record.begin(desk, operation)
    record.forget(desk, one)
    assert record.begin(desk, one) == "new"
    assert record.begin(desk, other) == "known"


def test_who_remembers_nothing_forgets_nothing(desk: Any, make_operation: Make) -> None:
    NoRecord().forget(desk, make_operation())
    assert NoRecord().begin(desk, make_operation()) == "new"


def test_the_version_of_the_order_is_recorded(desk: Any, make_operation: Make) -> None:
    DurableRecord().begin(desk, make_operation()._replace(order_version=4))
    assert desk.one("SELECT order_version FROM refunds") == (4,)
