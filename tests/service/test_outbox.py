from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.service.answers import FromRecord
from simulator.service.audit import AuditInTransaction, Notes
from simulator.service.designs import NAIVE, SAFE
from simulator.service.operations import DurableRecord, Operation
from simulator.service.outbox import (
    Inline,
    Job,
    Outbox,
    Publish,
    bury,
    claim_next,
    enqueue,
    look,
    next_due,
    release,
)
from simulator.service.outbox import promise as let_go_on
from simulator.service.recovery import NoRecovery

Make = Callable[..., Operation]


def promise(desk: Any, make_operation: Make, number: int = 1, topic: str = "refund") -> Operation:
    """One operation with a row of the outbox."""
    operation = make_operation(number=number, intent_id=f"intent-{number}")
    DurableRecord().begin(desk, operation)
    enqueue(desk, operation.id, topic)
    return operation


def claim(desk: Any, owner: str = "worker-1#1", takes_over: bool = True) -> Job | None:
    return claim_next(desk, owner, 30.0, takes_over)


def claimed(desk: Any, owner: str = "worker-1#1") -> Job:
    job = claim(desk, owner)
    assert job is not None
    return job


# Claiming.


def test_a_promise_is_due_at_once_and_carries_its_operation(
    desk: Any, make_operation: Make
) -> None:
    operation = promise(desk, make_operation)
    job = claimed(desk)
    assert job.operation == operation
    assert (job.topic, job.token, job.claims, job.tries, job.expired, job.status) == (
        "refund",
        1,
        1,
        0,
        False,
        "pending",
    )
    assert job.created_at == desk.time()


def test_an_empty_outbox_gives_nothing(desk: Any) -> None:
    assert claim(desk) is None
    assert next_due(desk, takes_over=True) is None


def test_a_second_promise_of_the_same_work_changes_nothing(desk: Any, make_operation: Make) -> None:
    operation = promise(desk, make_operation)
    claimed(desk)
    seen = desk.rows("SELECT * FROM outbox")
    desk.seconds = 5.0
    enqueue(desk, operation.id, "refund")
    assert desk.rows("SELECT * FROM outbox") == seen


def test_a_claimed_row_is_nobody_elses_while_its_lease_lasts(
    desk: Any, make_operation: Make
) -> None:
    promise(desk, make_operation)
    claimed(desk)
    desk.seconds = 29.999999
    assert claim(desk, "worker-2#1") is None


def test_a_lease_that_has_ended_is_taken_over_under_a_new_token(
    desk: Any, make_operation: Make
) -> None:
    promise(desk, make_operation)
    first = claimed(desk)
    desk.seconds = 30.0
    second = claimed(desk, "worker-2#1")
    assert (second.token, second.claims, second.expired) == (first.token + 1, 2, True)
    assert desk.one("SELECT owner FROM outbox") == ("worker-2#1",)


def test_a_design_without_takeover_leaves_an_ended_lease_alone(
    desk: Any, make_operation: Make
) -> None:
    promise(desk, make_operation)
    claimed(desk)
    desk.seconds = 10**6
    assert claim(desk, "worker-2#1", takes_over=False) is None


def test_a_claim_without_a_lease_is_never_taken_over(desk: Any, make_operation: Make) -> None:
    promise(desk, make_operation)
    claim_next(desk, "worker-1#1", None, True)
    desk.seconds = 10**6
    assert claim(desk, "worker-2#1") is None
    assert next_due(desk, takes_over=True) is None


@settings(max_examples=30)
@given(st.permutations(range(6)))
def test_rows_are_claimed_in_the_order_in_which_they_fell_due(
    new_desk: Callable[[], Any], due: list[int]
) -> None:
    desk = new_desk()
    record = DurableRecord()
    for number, seconds in enumerate(due):
        operation = Operation(
            f"{number}", "t", "u", f"i{number}", "c", "o", 1, "USD", "m", f"k{number}", "f"
        )
        record.begin(desk, operation)
        desk.seconds = float(seconds)
        enqueue(desk, operation.id, "refund")
    desk.seconds = 100.0
    order = []
    while (job := claim(desk)) is not None:
        order.append(int(job.operation.id))
    assert order == sorted(range(6), key=lambda number: due[number])


def test_rows_due_at_the_same_time_are_claimed_in_one_fixed_order(
    desk: Any, make_operation: Make
) -> None:
    for number in (3, 1, 2):
        promise(desk, make_operation, number)
    promise(desk, make_operation, 1, "tell")
    order = [(job.operation.id[-1], job.topic) for job in iter(lambda: claim(desk), None)]
    assert order == [("1", "refund"), ("1", "tell"), ("2", "refund"), ("3", "refund")]


def test_work_that_is_due_later_is_not_claimed_before(desk: Any, make_operation: Make) -> None:
    promise(desk, make_operation)
    release(desk, claimed(desk), fence=True, again_in=10.0, done=False)
    desk.seconds = 9.999999
    assert claim(desk) is None
    desk.seconds = 10.0
    job = claimed(desk)
    assert (job.tries, job.claims, job.expired, job.token) == (1, 1, False, 2)


# Ending a claim.


def test_done_work_is_never_claimed_again(desk: Any, make_operation: Make) -> None:
    promise(desk, make_operation)
    assert release(desk, claimed(desk), fence=True, again_in=None, done=True) is True
    desk.seconds = 10**6
    assert claim(desk) is None
    assert next_due(desk, takes_over=True) is None


def test_work_left_for_ever_is_not_done_and_never_due(desk: Any, make_operation: Make) -> None:
    promise(desk, make_operation)
    release(desk, claimed(desk), fence=True, again_in=None, done=False)
    assert desk.one("SELECT available_at, done_at, owner FROM outbox") == (None, None, None)
    assert next_due(desk, takes_over=True) is None


@pytest.mark.parametrize(("again_in", "done"), [(None, True), (5.0, False), (None, False)])
def test_an_old_token_changes_nothing(
    again_in: float | None, done: bool, desk: Any, make_operation: Make
) -> None:
    promise(desk, make_operation)
    zombie = claimed(desk)
    desk.seconds = 30.0
    claimed(desk, "worker-2#1")
    seen = desk.rows("SELECT * FROM outbox")
    assert release(desk, zombie, fence=True, again_in=again_in, done=done) is False
    assert desk.rows("SELECT * FROM outbox") == seen


def test_an_old_token_is_refused_after_the_newer_claim_has_ended_too(
    desk: Any, make_operation: Make
) -> None:
    promise(desk, make_operation)
    zombie = claimed(desk)
    desk.seconds = 30.0
    release(desk, claimed(desk, "worker-2#1"), fence=True, again_in=None, done=True)
    seen = desk.rows("SELECT * FROM outbox")
    assert release(desk, zombie, fence=True, again_in=1.0, done=False) is False
    assert desk.rows("SELECT * FROM outbox") == seen


def test_without_a_fence_an_old_token_ends_somebody_elses_claim(
    desk: Any, make_operation: Make
) -> None:
    promise(desk, make_operation)
    zombie = claimed(desk)
    desk.seconds = 30.0
    claimed(desk, "worker-2#1")
    assert release(desk, zombie, fence=False, again_in=None, done=True) is True
    assert desk.one("SELECT owner, done_at FROM outbox") == (None, desk.time())


def test_a_release_touches_no_other_row(desk: Any, make_operation: Make) -> None:
    promise(desk, make_operation, 1)
    promise(desk, make_operation, 1, "tell")
    promise(desk, make_operation, 2)
    others = "SELECT * FROM outbox WHERE NOT (operation_id LIKE '%1' AND topic = 'refund')"
    job = claimed(desk)
    seen = desk.rows(others)
    release(desk, job, fence=True, again_in=None, done=True)
    assert desk.rows(others) == seen


def test_a_dead_letter_is_never_claimed_again(desk: Any, make_operation: Make) -> None:
    promise(desk, make_operation)
    bury(desk, claimed(desk))
    desk.seconds = 10**6
    assert claim(desk) is None
    assert next_due(desk, takes_over=True) is None
    assert desk.one("SELECT done_at, owner, dead_at FROM outbox")[:2] == (None, None)


# Properties.

STEP = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from([1.0, 10.0, 31.0])),
    st.tuples(st.just("claim"), st.sampled_from(["worker-1#1", "worker-2#1"])),
    st.tuples(st.just("done"), st.integers(0, 9)),
    st.tuples(st.just("again"), st.integers(0, 9)),
)


@settings(max_examples=40)
@given(st.lists(STEP, max_size=25))
def test_only_the_newest_claim_can_end_a_row_tokens_only_grow_and_done_is_done(
    new_desk: Callable[[], Any], steps: list[tuple[str, Any]]
) -> None:
    desk = new_desk()
    for number in range(2):
        operation = Operation(
            f"{number}", "t", "u", f"i{number}", "c", "o", 1, "USD", "m", f"k{number}", "f"
        )
        DurableRecord().begin(desk, operation)
        enqueue(desk, operation.id, "refund")
    jobs: list[Job] = []
    newest: dict[str, int] = {"0": 0, "1": 0}
    done: set[str] = set()
    held: set[str] = set()
    for step, value in steps:
        if step == "wait":
            desk.seconds += value
        elif step == "claim":
            job = claim(desk, value)
            if job is not None:
                row = job.operation.id
                assert row not in done
                assert job.token == newest[row] + 1
                newest[row] = job.token
                held.add(row)
                jobs.append(job)
        elif jobs:
            job = jobs[value % len(jobs)]
            row = job.operation.id
            ended = release(desk, job, fence=True, again_in=1.0, done=step == "done")
            assert ended == (job.token == newest[row] and row in held), "a claim ends once"
            held -= {row} if ended else set()
            if ended and step == "done":
                done.add(row)


@settings(max_examples=25)
@given(st.lists(STEP, max_size=15), st.booleans())
def test_next_due_is_the_first_moment_at_which_a_claim_finds_something(
    new_desk: Callable[[], Any], steps: list[tuple[str, Any]], takes_over: bool
) -> None:
    desk = new_desk()
    for number in range(2):
        operation = Operation(
            f"{number}", "t", "u", f"i{number}", "c", "o", 1, "USD", "m", f"k{number}", "f"
        )
        DurableRecord().begin(desk, operation)
        enqueue(desk, operation.id, "refund")
    jobs: list[Job] = []
    for step, value in steps:
        if step == "wait":
            desk.seconds += value
        elif step == "claim" and (job := claim(desk, value)):
            jobs.append(job)
        elif jobs and step != "claim":
            release(desk, jobs[value % len(jobs)], True, 3.0, step == "done")
    due = next_due(desk, takes_over)
    moments = [desk.seconds + k for k in range(65)]
    for moment in moments:
        desk.seconds = moment
        ready = due is not None and due <= desk.time()
        desk.execute("SAVEPOINT look")
        assert (claim(desk, "worker-3#1", takes_over) is not None) == ready
        desk.execute("ROLLBACK TO look")
        desk.execute("RELEASE look")


# Settings.


@pytest.mark.parametrize("lease", [0, -1.0, float("nan"), "30"])
def test_a_lease_lasts_more_than_no_time(lease: float) -> None:
    with pytest.raises(
        ValueError, match=r"Outbox\(lease=.*\): (give seconds, more than 0, or None|it should be)"
    ):
        Outbox(lease=lease)


def test_at_least_one_attempt_is_needed() -> None:
    with pytest.raises(ValueError, match=r"max_attempts=0\): give a whole number, 1 or more"):
        Outbox(max_attempts=0)


def test_a_message_is_published_before_or_after_the_commit() -> None:
    with pytest.raises(ValueError, match=r"'after' or 'before'"):
        Publish("during")


# What makes an operation go on.


@pytest.mark.parametrize(
    ("dispatch", "status", "rows", "events"),
    [
        (Outbox(), "pending", [("refund",)], []),
        (Inline(), "processing", [], ["pending->processing"]),
        (Publish(), "pending", [], []),
    ],
    ids=["outbox", "inline", "publish"],
)
def test_a_pending_operation_goes_on_as_the_design_carries_out_its_work(
    dispatch: Any,
    status: str,
    rows: list[tuple[str]],
    events: list[str],
    desk: Any,
    make_operation: Make,
) -> None:
    operation = make_operation()
    DurableRecord().begin(desk, operation)
    design = SAFE.but(dispatch=dispatch, recovery=NoRecovery(), answer=FromRecord(follow_up=False))
    let_go_on(desk, design, Notes(desk, design, []), operation)
    assert desk.status() == status
    assert desk.rows("SELECT topic FROM outbox") == rows
    assert [row[0] for row in desk.rows("SELECT event FROM audit_log")] == events


def test_an_inline_design_without_a_record_has_nothing_to_mark(
    desk: Any, make_operation: Make
) -> None:
    design = NAIVE.but(audit=AuditInTransaction())
    let_go_on(desk, design, Notes(desk, design, []), make_operation())
    assert desk.rows("SELECT * FROM audit_log") == []


@pytest.mark.parametrize("seconds", [1.0, 24 * 3600.0])
def test_a_promise_may_be_due_later(seconds: float, desk: Any, make_operation: Make) -> None:
    operation = make_operation()
    DurableRecord().begin(desk, operation)
    enqueue(desk, operation.id, "expire", seconds)
    assert desk.one("SELECT available_at, created_at FROM outbox") == (
        desk.time(seconds),
        desk.time(),
    )
    assert next_due(desk, takes_over=True) == desk.time(seconds)
    desk.seconds = seconds - 1e-6
    assert claim(desk) is None
    desk.seconds = seconds
    assert claimed(desk).topic == "expire"


# Looking first, and claiming after.


def test_a_look_finds_what_a_claim_would_and_leaves_it_there(
    desk: Any, make_operation: Make
) -> None:
    assert look(desk, takes_over=True) is None
    one = promise(desk, make_operation, 1)
    desk.seconds = 1.0
    promise(desk, make_operation, 2)
    seen = desk.rows("SELECT * FROM outbox")
    assert look(desk, takes_over=True) == look(desk, takes_over=True) == (one.id, "refund")
    assert desk.rows("SELECT * FROM outbox") == seen
    assert claimed(desk).operation == one


@pytest.mark.parametrize("takes_over", [True, False])
def test_a_look_sees_an_ended_lease_exactly_if_it_may_be_taken_over(
    takes_over: bool, desk: Any, make_operation: Make
) -> None:
    promise(desk, make_operation)
    claimed(desk)
    desk.seconds = 29.999999
    assert look(desk, takes_over) is None
    desk.seconds = 30.0
    assert (look(desk, takes_over) is not None) == takes_over


def test_two_who_looked_at_the_same_time_both_claim_the_row(
    desk: Any, make_operation: Make
) -> None:
    # Case B55.
    promise(desk, make_operation, 1)
    promise(desk, make_operation, 2)
    found = [look(desk, takes_over=True) for _ in range(2)]
    jobs = [
        claim_next(desk, owner, 30.0, True, row)
        for owner, row in zip(("worker-1#1", "worker-2#1"), found, strict=True)
    ]
    assert [job and (job.operation.id[-1], job.token, job.claims) for job in jobs] == [
        ("1", 1, 1),
        ("1", 2, 2),
    ]
    assert desk.rows("SELECT owner FROM outbox ORDER BY operation_id") == [
        ("worker-2#1",),
        (None,),
    ]


def test_a_row_that_is_gone_since_the_look_is_nobodys(desk: Any, make_operation: Make) -> None:
    promise(desk, make_operation)
    found = look(desk, takes_over=True)
    desk.execute("DELETE FROM outbox")
    assert claim_next(desk, "worker-1#1", 30.0, True, found) is None


def test_a_message_may_be_sent_on_either_side_of_the_commit() -> None:
    assert [Publish(when).when for when in ("after", "before")] == ["after", "before"]


def test_work_may_be_claimed_without_end() -> None:
    assert Outbox(max_attempts=None).max_attempts is None
