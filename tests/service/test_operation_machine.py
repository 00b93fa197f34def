"""The operation's state machine, against a model in plain Python.

Hypothesis calls the record in every order it can think of: two tenants that use the same keys,
payloads that change, moves that the table has and has not, writes that come too late, writes
that check nothing, and an old record that is forgotten while somebody still holds it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from simulator.service import operations
from simulator.service.operations import (
    FINAL,
    TRANSITIONS,
    DurableRecord,
    Operation,
    Row,
    move,
)

TENANTS = (
    "7a1c0f5e-3b52-4c0e-9f0a-1d2e3f4a5b6c",
    "11111111-2222-4333-8444-555555555555",
)
KEYS = ("key-1", "key-2")
PAYLOADS = ("500.00 of ORD-1001", "800.00 of ORD-1001")
STATES = tuple(TRANSITIONS)
KEEP = 60.0
EXAMPLES = settings(max_examples=300, stateful_step_count=30, report_multiple_bugs=False)
TO_THE_FIRST_FAILURE = settings(EXAMPLES, phases=(Phase.generate,))


@dataclass
class Recorded:
    """What the model knows of one row."""

    id: str
    payload: str
    changed_at: float
    status: str = "pending"
    result: dict[str, Any] | None = None


class OperationMachine(RuleBasedStateMachine):
    """One database, and beside it what should be in it.

    Attributes:
        rows: the model, by (tenant, key).
        sloppy: whether the last step wrote without checking the state.
        seen: how many changes of state have been looked at.
    """

    asked = Bundle("asked")

    def __init__(self, desk: Any) -> None:
        super().__init__()
        self.desk = desk
        self.rows: dict[tuple[str, str], Recorded] = {}
        self.sloppy = False
        self.seen = 0
        self.number = 0

    def teardown(self) -> None:
        self.desk.connection.close()

    def dump(self) -> tuple[list[Any], list[Any]]:
        """Everything there is to know about operations."""
        return (
            self.desk.rows("SELECT * FROM tool_operations ORDER BY id"),
            self.desk.rows("SELECT * FROM refunds ORDER BY operation_id"),
        )

    def row_of(self, operation: Operation) -> Recorded | None:
        """The row, if it is this very operation's and not one that took its key later."""
        row = self.rows.get((operation.tenant_id, operation.key))
        return row if row is not None and row.id == operation.id else None

    def write(self, row: Recorded, status: str, result: dict[str, Any] | None) -> None:
        """A change that was accepted, in the model."""
        row.status, row.changed_at = status, self.desk.seconds
        row.result = row.result if result is None else result

    def next_result(self) -> dict[str, Any]:
        """A result that no other write brings."""
        self.number += 1
        return {"detail": f"result {self.number}"}

    @rule(
        target=asked,
        tenant=st.sampled_from(TENANTS),
        key=st.sampled_from(KEYS),
        payload=st.sampled_from(PAYLOADS),
        keep=st.sampled_from([None, None, KEEP]),
        fingerprint=st.sampled_from([True, True, False]),
    )
    def begin(
        self, tenant: str, key: str, payload: str, keep: float | None, fingerprint: bool
    ) -> Operation:
        """Somebody asks, with an id that is new each time."""
        self.sloppy = False
        self.number += 1
        operation = Operation(
            f"aaaaaaaa-0000-4000-8000-{self.number:012d}",
            tenant,
            "user",
            f"intent of {key}",
            f"call-{self.number}",
            "ORD-1001",
            500_00,
            "USD",
            "model",
            key,
            payload,
        )
        if keep is not None:
            self.rows = {
                where: row
                for where, row in self.rows.items()
                if row.status not in FINAL or row.changed_at > self.desk.seconds - keep
            }
        row = self.rows.get((tenant, key))
        if row is None:
            expected = "new"
            self.rows[tenant, key] = Recorded(operation.id, payload, self.desk.seconds)
        else:
            expected = "conflict" if fingerprint and row.payload != payload else "known"
        before = self.dump()
        assert DurableRecord(fingerprint, keep).begin(self.desk, operation) == expected
        if expected != "new" and keep is None:
            assert self.dump() == before, f"{expected}, and something changed"
        return operation

    @rule(operation=asked, before=st.sampled_from(STATES), after=st.sampled_from(STATES))
    def move_somewhere(self, operation: Operation, before: str, after: str) -> None:
        """A change of state that the table may not have, from where it may no longer be."""
        self.sloppy = False
        result = self.next_result()
        if after not in TRANSITIONS[before]:
            with pytest.raises(ValueError, match=f"cannot go from {before} to {after}"):
                move(self.desk, operation.id, before, after, result)
            return
        row = self.row_of(operation)
        possible = row is not None and row.status == before
        assert move(self.desk, operation.id, before, after, result) is possible
        if row is not None and possible:
            self.write(row, after, result)

    @rule(operation=asked, data=st.data(), with_result=st.booleans())
    def move_on(self, operation: Operation, data: Any, with_result: bool) -> None:
        """A change that the table has, from where the operation is."""
        self.sloppy = False
        row = self.row_of(operation)
        if row is None or row.status in FINAL:
            return
        after = data.draw(st.sampled_from(sorted(TRANSITIONS[row.status])))
        result = self.next_result() if with_result else None
        assert move(self.desk, operation.id, row.status, after, result) is True
        self.write(row, after, result)

    @rule(operation=asked, status=st.sampled_from(STATES))
    def finish(self, operation: Operation, status: str) -> None:
        """An outcome that comes in time, too late, or for an operation that is forgotten."""
        self.sloppy = False
        row, result = self.row_of(operation), self.next_result()
        accepted = row is not None and status in TRANSITIONS[row.status]
        before = row.status if row is not None and accepted else None
        assert DurableRecord().finish(self.desk, operation, status, result, True) == before
        if row is not None and accepted:
            self.write(row, status, result)

    @rule(operation=asked, status=st.sampled_from(sorted({*FINAL, "outcome_unknown"})))
    def finish_without_looking(self, operation: Operation, status: str) -> None:
        """What a design without a fence writes: whatever the state."""
        self.sloppy = True
        row, result = self.row_of(operation), self.next_result()
        before = DurableRecord().finish(self.desk, operation, status, result, False)
        if row is not None:
            assert before == row.status
            self.write(row, status, result)

    @rule(seconds=st.sampled_from([1.0, KEEP / 2, KEEP]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.desk.seconds += seconds

    @invariant()
    def an_operation_is_unique_per_tenant_and_key(self) -> None:
        twice = self.desk.rows(
            "SELECT tenant_id, idempotency_key FROM tool_operations "
            "GROUP BY tenant_id, idempotency_key HAVING count(*) > 1"
        )
        assert twice == []

    @invariant()
    def every_operation_says_what_it_is_about(self) -> None:
        ids = self.desk.rows("SELECT id FROM tool_operations ORDER BY id")
        assert self.desk.rows("SELECT operation_id FROM refunds ORDER BY operation_id") == ids

    @invariant()
    def a_checked_write_makes_only_changes_that_the_table_has(self) -> None:
        changes = self.desk.rows("SELECT before, after FROM changes ORDER BY rowid")
        new, self.seen = changes[self.seen :], len(changes)
        for before, after in new:
            if not self.sloppy:
                assert before not in FINAL
                assert after == "pending" if before is None else after in TRANSITIONS[before]

    @invariant()
    def state_and_result_are_those_of_the_last_accepted_write(self) -> None:
        stored = {
            (tenant, key): (id_, payload, Row.read(status, result))
            for tenant, key, id_, payload, status, result in self.desk.rows(
                "SELECT tenant_id, idempotency_key, id, request_hash, status, result "
                "FROM tool_operations"
            )
        }
        assert stored == {
            where: (row.id, row.payload, Row(row.status, row.result))
            for where, row in self.rows.items()
        }

    @invariant()
    def everybody_who_asks_reads_the_row_of_their_own_tenant_and_key(self) -> None:
        for (tenant, key), row in self.rows.items():
            asking = Operation("?", tenant, *"uico", 1, "USD", "m", key, row.payload)
            assert DurableRecord().row(self.desk, asking) == Row(row.status, row.result)


def test_the_record_does_what_its_model_does(new_desk: Callable[[], Any]) -> None:
    run_state_machine_as_test(lambda: OperationMachine(new_desk()), settings=EXAMPLES)


# The machine itself: it turns red when the code is broken. (name, what is there, what is not.)

BROKEN: dict[str, tuple[str, str, str]] = {
    "a move does not look at the state": ("MOVE", " AND status = :before", ""),
    "a move does not look at the id": ("MOVE", "id = :id AND ", ""),
    "a move keeps the first result": (
        "MOVE",
        "COALESCE(:result, result)",
        "COALESCE(result, :result)",
    ),
    "a move without a result loses it": ("MOVE", "COALESCE(:result, result)", ":result"),
    "a write without looking hits every row": ("MOVE_UNCHECKED", "WHERE id = :id", ""),
    "who asks again begins anew": (
        "INSERT_OPERATION",
        "DO NOTHING",
        "DO UPDATE SET status = 'pending'",
    ),
    "a key is looked up without its tenant": ("FIND_OPERATION", "tenant_id = :tenant_id AND", ""),
}


@pytest.mark.parametrize("what", BROKEN)
def test_the_machine_notices_when(
    what: str, new_desk: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, good, bad = BROKEN[what]
    statement = getattr(operations, name)
    assert good in statement
    monkeypatch.setattr(operations, name, statement.replace(good, bad))
    turns_red(new_desk)


def test_the_machine_notices_when_the_table_of_changes_is_not_asked(
    new_desk: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "is_legal", lambda before, after: True)
    turns_red(new_desk)


def test_the_machine_notices_when_open_operations_are_forgotten(
    new_desk: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    final = "status IN ('succeeded', 'failed') AND "
    assert all(final in statement for statement in operations.FORGET)
    forget = tuple(statement.replace(final, "") for statement in operations.FORGET)
    monkeypatch.setattr(operations, "FORGET", forget)
    turns_red(new_desk)


def turns_red(new_desk: Callable[[], Any]) -> None:
    """Runs the machine until its first failure, which must come."""
    with pytest.raises((AssertionError, TypeError, pytest.fail.Exception)):
        run_state_machine_as_test(
            lambda: OperationMachine(new_desk()), settings=TO_THE_FIRST_FAILURE
        )
