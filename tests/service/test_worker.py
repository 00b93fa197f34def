"""The worker on plain ground: one claim after the other, by hand."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from simulator.service.answers import FromRecord
from simulator.service.approval import Approval
from simulator.service.balance import Reserved
from simulator.service.design import Design
from simulator.service.designs import SAFE
from simulator.service.errors import CallTimeout, CommitUnknown, Declined, RateLimited
from simulator.service.operations import FINAL, DurableRecord
from simulator.service.outbox import Job, Outbox, Publish, next_due
from simulator.service.payment import SETTLEMENT_CHECK, Accepted, CameToNothing, Outcome, pay
from simulator.service.pipeline import finish, once
from simulator.service.pipeline import handle as answer_call
from simulator.service.recovery import AskOnly, Blind, NoRecovery, SameKey
from simulator.service.retry import Fixed, NoRetry
from simulator.service.retry_limits import Budget
from simulator.service.schemas import Session, ToolCall
from simulator.service.webhooks import Report, receive
from simulator.service.worker import (
    LOOKS,
    act,
    call_off,
    claim,
    consume,
    expire,
    hand_over,
    refund,
    see,
    start,
    tell,
)
from simulator.service.worker import work as work_loop

PAID = Outcome("succeeded", "REF-1")
UNKNOWN = Outcome("outcome_unknown", "no answer from the provider.")


class Shift:
    """A worker whose every step the test takes."""

    def __init__(self, runtime: Any, run: Any, design: Design) -> None:
        self.runtime, self.run, self.design = runtime, run, design
        self.desk = runtime.desk

    def claim(self, owner: str = "worker-1#1") -> Job | None:
        job: Job | None = self.run(once(self.runtime, self.design, claim, owner))
        return job

    def claimed(self, owner: str = "worker-1#1") -> Job:
        job = self.claim(owner)
        assert job is not None
        return job

    def finish(self, job: Job, outcome: Outcome) -> bool:
        done: bool = self.run(once(self.runtime, self.design, finish, job.operation, outcome, job))
        return done

    def events(self) -> list[str]:
        return [row[0] for row in self.desk.rows("SELECT event FROM audit_log ORDER BY id")]

    def topics(self) -> list[str]:
        rows = self.desk.rows("SELECT topic FROM outbox WHERE done_at IS NULL ORDER BY topic")
        return [row[0] for row in rows]


@pytest.fixture
def shift(
    runtime: Any, run: Any, make_call: Callable[..., ToolCall], session: Session
) -> Callable[..., Shift]:
    """A worker that finds one refund of 500.00 in the outbox."""

    def begin(design: Design = SAFE) -> Shift:
        run(answer_call(runtime, design, make_call(), session))
        return Shift(runtime, run, design)

    return begin


Begin = Callable[..., Shift]


def test_a_claimed_refund_is_being_processed(shift: Begin) -> None:
    work = shift()
    job = work.claimed()
    assert (job.topic, job.token, job.operation.amount) == ("refund", 1, 500_00)
    assert work.desk.status() == "processing"
    assert work.claim("worker-2#1") is None


def test_a_paid_refund_is_booked_and_the_customer_is_promised_a_word(shift: Begin) -> None:
    work = shift()
    assert work.finish(work.claimed(), PAID) is True
    assert work.desk.status() == "succeeded"
    assert work.desk.balance() == (500_00, 0)
    assert work.topics() == ["tell"]
    assert work.events() == ["->pending", "pending->processing", "processing->succeeded"]


def test_a_declined_refund_gives_the_balance_back(shift: Begin, run: Any) -> None:
    work = shift()
    job = work.claimed()
    work.runtime.answers.append(Declined("the card was closed."))
    work.finish(job, run(pay(work.runtime, SAFE, job.operation, job.tries)))
    assert work.desk.status() == "failed"
    assert work.desk.balance() == (0, 0)
    assert work.topics() == ["tell"]


def test_an_unknown_outcome_keeps_the_reservation_and_comes_back_later(shift: Begin) -> None:
    work = shift(SAFE.but(retry=Fixed(5.0, 8)))
    work.finish(work.claimed(), UNKNOWN)
    assert work.desk.status() == "outcome_unknown"
    assert work.desk.balance() == (0, 500_00)
    assert work.claim() is None
    work.desk.seconds += 5.0
    job = work.claimed()
    assert (job.tries, job.token, job.expired) == (1, 2, False)
    assert work.desk.status() == "processing"


def test_after_the_retry_policy_has_given_up_it_is_looked_into_at_the_recoverys_pace(
    shift: Begin,
) -> None:
    work = shift(SAFE.but(retry=NoRetry(), recovery=SameKey(every=300.0)))
    work.finish(work.claimed(), UNKNOWN)
    work.desk.seconds += 299.0
    assert work.claim() is None
    work.desk.seconds += 1.0
    assert work.claim() is not None


def test_without_recovery_nobody_looks_at_an_unknown_outcome_again(shift: Begin) -> None:
    work = shift(SAFE.but(recovery=NoRecovery()))
    work.finish(work.claimed(), UNKNOWN)
    work.desk.seconds += 10**6
    assert work.claim() is None
    assert work.desk.status() == "outcome_unknown"


# Claims that expire.


def test_an_expired_claim_is_an_unknown_outcome_never_a_free_one(shift: Begin) -> None:
    work = shift()
    work.claimed()
    work.desk.seconds += 30.0
    job = work.claimed("worker-2#1")
    assert job.expired
    assert work.events()[-2:] == ["processing->outcome_unknown", "outcome_unknown->processing"]


def test_a_blind_recovery_takes_an_expired_claim_for_a_free_one(shift: Begin) -> None:
    work = shift(SAFE.but(recovery=Blind()))
    work.claimed()
    work.desk.seconds += 30.0
    assert work.claim("worker-2#1") is not None
    assert work.events() == ["->pending", "pending->processing"]


@pytest.mark.parametrize("late", [PAID, UNKNOWN, Outcome("failed", "declined")])
def test_a_zombies_result_changes_nothing(late: Outcome, shift: Begin) -> None:
    work = shift()
    zombie = work.claimed()
    work.desk.seconds += 30.0
    work.claimed("worker-2#1")
    tables = ("tool_operations", "outbox", "orders", "audit_log", "tasks")
    seen = [work.desk.rows(f"SELECT * FROM {table}") for table in tables]
    assert work.finish(zombie, late) is False
    assert [work.desk.rows(f"SELECT * FROM {table}") for table in tables] == seen


def test_a_zombies_result_is_refused_after_the_refund_is_final_too(shift: Begin) -> None:
    work = shift()
    zombie = work.claimed()
    work.desk.seconds += 30.0
    work.finish(work.claimed("worker-2#1"), PAID)
    assert work.finish(zombie, Outcome("failed", "late")) is False
    assert work.desk.status() == "succeeded"
    assert work.desk.balance() == (500_00, 0)


def test_without_a_fence_a_zombie_overwrites_a_final_result(shift: Begin) -> None:
    # 8 of 21 published systems (reference, section 5).
    work = shift(SAFE.but(dispatch=Outbox(fence=False)))
    zombie = work.claimed()
    work.desk.seconds += 30.0
    work.finish(work.claimed("worker-2#1"), PAID)
    assert work.finish(zombie, Outcome("failed", "late")) is True
    assert work.desk.status() == "failed"


def test_a_finish_that_runs_twice_books_once(shift: Begin) -> None:
    work = shift()
    job = work.claimed()
    work.runtime.acks += [CommitUnknown("broken")]
    work.finish(job, PAID)
    assert work.runtime.transactions[-2:] == ["finish", "finish"]
    assert work.desk.balance() == (500_00, 0)
    assert work.events().count("processing->succeeded") == 1


def test_a_claim_that_nobody_acknowledged_is_not_lost(shift: Begin) -> None:
    work = shift()
    work.runtime.acks += [CommitUnknown("broken")]
    assert work.claim() is None  # the first commit took effect: the row is claimed
    work.desk.seconds += 30.0
    job = work.claimed()
    assert work.finish(job, PAID) is True


def test_a_final_refund_that_is_claimed_once_more_is_only_ticked_off(shift: Begin) -> None:
    work = shift()
    job = work.claimed()
    work.desk.execute("UPDATE tool_operations SET status = 'succeeded'")
    work.desk.seconds += 30.0
    assert work.claim("worker-2#1") is None
    assert work.desk.status() == "succeeded"
    assert work.desk.rows("SELECT done_at FROM outbox WHERE topic = 'refund'") == [
        (work.desk.time(),)
    ]
    assert work.finish(job, UNKNOWN) is False


# When to stop, and ask a human.


@pytest.mark.parametrize("most", [1, 3, 8])
def test_work_that_kills_its_workers_is_set_aside_after_so_many_claims(
    most: int, shift: Begin
) -> None:
    work = shift(SAFE.but(dispatch=Outbox(max_attempts=most)))
    for number in range(most):
        assert work.claim(f"worker-{number}") is not None
        work.desk.seconds += 30.0
    assert work.claim("worker-last") is None
    assert work.desk.rows("SELECT topic FROM tasks") == [("refund",)]
    assert f"Claimed {most} times" in work.desk.one("SELECT reason FROM tasks")[0]
    assert work.desk.status() == "outcome_unknown"  # it may have been paid
    assert work.desk.balance() == (0, 500_00)
    assert work.events()[-1] == "task"
    work.desk.seconds += 10**6
    assert work.claim() is None


def test_results_between_claims_keep_a_row_alive(shift: Begin) -> None:
    work = shift(SAFE.but(dispatch=Outbox(max_attempts=2), retry=Fixed(1.0, None)))
    for _ in range(10):
        work.finish(work.claimed(), UNKNOWN)
        work.desk.seconds += 1.0
    assert work.desk.rows("SELECT * FROM tasks") == []


def tried_until(horizon: float, shift: Begin, answers: list[Any]) -> Shift:
    """A worker for whom every send ends in silence, every minute, past the horizon."""
    work = shift(SAFE.but(recovery=SameKey(horizon=horizon), retry=Fixed(60.0, None)))
    while work.desk.seconds < horizon:
        work.finish(work.claimed(), UNKNOWN)
        work.desk.seconds += 60.0
    work.runtime.answers += answers
    job = work.claimed()
    assert job.too_old
    work.run(refund(work.runtime, work.design, job))
    return work


@pytest.mark.parametrize("silence", [CallTimeout("2 s"), RateLimited(1.0)])
def test_past_the_horizon_a_silent_provider_is_asked_again_before_a_human_is(
    silence: Exception, shift: Begin
) -> None:
    work = tried_until(3600.0, shift, [silence])
    assert work.desk.rows("SELECT topic FROM tasks") == []
    assert work.desk.status() == "outcome_unknown"
    work.desk.seconds = 3959.0
    work.runtime.answers += [silence]
    work.run(refund(work.runtime, work.design, work.claimed()))
    assert work.desk.rows("SELECT topic FROM tasks") == [], "a tenth of the horizon is not over"
    work.desk.seconds += 1800.0
    work.runtime.answers += [silence]
    work.run(refund(work.runtime, work.design, work.claimed()))
    assert {name for name, _ in work.runtime.calls} == {"provider.find"}
    assert work.desk.rows("SELECT topic FROM tasks") == [("refund",)]


def test_past_the_horizon_nothing_is_sent_any_more_and_a_human_is_asked(shift: Begin) -> None:
    # "Not found" proves nothing: the first request may still be under way.
    work = tried_until(3600.0, shift, [None])
    assert [name for name, _ in work.runtime.calls] == ["provider.find"]
    assert work.desk.rows("SELECT topic FROM tasks") == [("refund",)]
    (reason,) = work.desk.one("SELECT reason FROM tasks")
    assert "forget the key" in reason
    written = work.desk.rows("SELECT event, detail FROM audit_log ORDER BY id")
    assert written[-2:] == [("processing->outcome_unknown", ""), ("task", reason)]
    assert work.desk.status() == "outcome_unknown"
    assert work.desk.balance() == (0, 500_00)
    work.desk.seconds += 10**6
    assert work.claim() is None


def test_what_the_provider_takes_for_a_duplicate_is_a_humans_at_once_with_its_words(
    shift: Begin,
) -> None:
    work = shift()
    work.runtime.answers += [Declined("it looks like another one.", takes_for_duplicate=True), None]
    work.run(refund(work.runtime, work.design, work.claimed()))
    reason = "The provider refused: it looks like another one."
    assert work.desk.rows("SELECT topic, reason FROM tasks") == [("refund", reason)]
    assert work.desk.rows("SELECT detail FROM audit_log WHERE event = 'task'") == [(reason,)]
    assert work.desk.status() == "outcome_unknown"
    assert work.desk.balance() == (0, 500_00)


def test_past_the_horizon_a_payment_that_the_provider_knows_is_booked(shift: Begin) -> None:
    work = tried_until(3600.0, shift, ["REF-1"])
    assert [name for name, _ in work.runtime.calls] == ["provider.find"]
    assert work.desk.status() == "succeeded"
    assert work.desk.balance() == (500_00, 0)
    assert work.desk.rows("SELECT * FROM tasks") == []


@pytest.mark.parametrize(("seconds", "too_old"), [(0.0, False), (99.9, False), (100.0, True)])
def test_the_horizon_is_counted_from_the_promise_not_from_the_last_try(
    seconds: float, too_old: bool, shift: Begin
) -> None:
    work = shift(SAFE.but(recovery=SameKey(horizon=100.0), retry=Fixed(0.0, None)))
    for at in (30.0, 60.0, 90.0):
        if at <= seconds:
            work.desk.seconds = at
            work.finish(work.claimed(), UNKNOWN)
    work.desk.seconds = seconds
    assert work.claimed().too_old is too_old


def test_who_hands_over_to_a_human_too_late_changes_nothing(shift: Begin) -> None:
    work = shift()
    zombie = work.claimed()
    work.desk.seconds += 30.0
    work.claimed("worker-2#1")
    seen = [work.desk.rows(f"SELECT * FROM {table}") for table in ("outbox", "tasks")]
    work.run(once(work.runtime, SAFE, hand_over, zombie))
    assert [work.desk.rows(f"SELECT * FROM {table}") for table in ("outbox", "tasks")] == seen


# Telling.


def told(work: Shift, *answers: Any) -> None:
    job = work.claimed()
    assert job.topic == "tell"
    work.runtime.answers += answers
    work.run(tell(work.runtime, work.design, job))


def test_the_customer_is_told_how_it_ended_once(shift: Begin) -> None:
    work = shift()
    work.finish(work.claimed(), PAID)
    told(work, "read")
    ((name, message),) = work.runtime.calls
    assert (name, message.intent_id, message.answer.kind) == (
        "customer.notify",
        "intent-1",
        "done",
    )
    work.desk.seconds += 10**6
    assert work.claim() is None


def test_a_message_that_was_not_read_is_sent_again(shift: Begin) -> None:
    work = shift(SAFE.but(retry=Fixed(5.0, 2), recovery=SameKey(every=300.0)))
    work.finish(work.claimed(), PAID)
    told(work, CallTimeout("2 s"))
    assert work.claim() is None
    work.desk.seconds += 5.0
    told(work, CallTimeout("2 s"))
    work.desk.seconds += 5.0
    assert work.claim() is None
    work.desk.seconds += 295.0
    told(work, "read")


def test_a_customer_who_cannot_be_told_is_a_humans(shift: Begin) -> None:
    work = shift(SAFE.but(recovery=SameKey(horizon=3600.0)))
    work.finish(work.claimed(), PAID)
    told(work, CallTimeout("2 s"))
    work.desk.seconds = 10_000.0
    assert work.claim() is None
    assert work.desk.rows("SELECT topic FROM tasks") == [("tell",)]
    assert work.desk.status() == "succeeded"
    assert work.events()[-1] == "task"


@pytest.mark.parametrize("unreached", [CallTimeout("2 s"), RateLimited(60.0), Declined("busy")])
def test_a_customer_who_is_hard_to_reach_for_hours_is_no_dead_letter(
    unreached: Exception, shift: Begin
) -> None:
    work = shift(SAFE.but(dispatch=Outbox(max_attempts=2), retry=Fixed(60.0, None)))
    work.finish(work.claimed(), PAID)
    for _ in range(12 * 60):
        told(work, unreached)
        work.desk.seconds += 60.0
    assert work.desk.rows("SELECT * FROM tasks") == []
    told(work, "read")
    assert work.topics() == []


def test_a_word_that_kills_whoever_says_it_is_a_dead_letter(shift: Begin) -> None:
    work = shift()
    work.finish(work.claimed(), PAID)
    for _ in range(8):
        with pytest.raises(ZeroDivisionError):
            told(work, ZeroDivisionError())
        work.desk.seconds += 30.0
    assert work.claim() is None
    assert work.desk.rows("SELECT topic, reason FROM tasks") == [
        ("tell", "Claimed 8 times without a result (dead letter).")
    ]
    assert work.events().count("task") == 1
    work.desk.seconds += 10**6
    assert work.claim() is None


def test_a_refund_that_failed_is_told_with_its_reason(shift: Begin) -> None:
    work = shift()
    work.finish(work.claimed(), Outcome("failed", "the card was closed."))
    told(work, "read")
    answer = work.runtime.calls[-1][1].answer
    assert (answer.kind, "the card was closed." in answer.text) == ("refused", True)


def test_without_a_follow_up_nothing_is_promised(shift: Begin) -> None:
    work = shift(SAFE.but(answer=FromRecord(follow_up=False)))
    work.finish(work.claimed(), PAID)
    assert work.topics() == []


# The broker's worker.


def test_a_message_marks_its_operation_and_leaves_a_final_one_alone(shift: Begin, run: Any) -> None:
    work = shift()
    job = work.claimed()
    work.desk.execute("UPDATE tool_operations SET status = 'pending'")
    run(once(work.runtime, SAFE, start, job.operation))
    assert work.desk.status() == "processing"
    for status in FINAL:
        work.desk.execute("UPDATE tool_operations SET status = :s", {"s": status})
        run(once(work.runtime, SAFE, start, job.operation))
        assert work.desk.status() == status


def test_a_message_says_whether_there_is_an_operation_yet(
    shift: Begin, run: Any, make_operation: Any
) -> None:
    work = shift()
    job = work.claimed()
    assert run(once(work.runtime, SAFE, start, job.operation)) == "started"
    stranger = make_operation(99, intent_id="intent-99")
    assert run(once(work.runtime, SAFE, start, stranger)) == "missing"


PUBLISHING = SAFE.but(
    dispatch=Publish("before"), recovery=NoRecovery(), answer=FromRecord(follow_up=False)
)


def consumed(runtime: Any, run: Any, operation: Any, comes_after: int | None) -> None:
    """Takes one message whose row is written after so many looks."""
    messages = iter([operation])

    def received() -> Any:
        try:
            return next(messages)
        except StopIteration:
            raise LookupError("no more messages") from None
        yield

    slept = runtime.sleep

    def sleep(seconds: float) -> Any:
        yield from slept(seconds)
        if len(runtime.slept) == comes_after:
            DurableRecord().begin(runtime.desk, operation)
            Reserved().take(runtime.desk, operation)

    runtime.received, runtime.sleep = received, sleep
    with pytest.raises(LookupError):
        run(consume(runtime, PUBLISHING))


@pytest.mark.parametrize("looks", [1, 2])
def test_a_consumer_waits_for_the_row_of_a_message_that_was_published_too_early(
    looks: int, runtime: Any, run: Any, make_operation: Any
) -> None:
    consumed(runtime, run, make_operation(), looks)
    assert runtime.slept == [1.0] * looks
    assert runtime.transactions == ["start"] * (looks + 1) + ["finish"]
    assert runtime.desk.status() == "succeeded"
    assert runtime.desk.balance() == (500_00, 0)


def test_after_three_looks_a_consumer_goes_on_without_a_row(
    runtime: Any, run: Any, make_operation: Any
) -> None:
    assert LOOKS == 3
    consumed(runtime, run, make_operation(), None)
    assert runtime.transactions == ["start"] * LOOKS + ["finish"]
    assert [name for name, _ in runtime.calls] == ["provider.refund"]
    assert runtime.desk.rows("SELECT * FROM tool_operations") == []


# The worker's loop: looking, claiming, carrying out.


def worked(work: Shift, rounds: int) -> None:
    """Lets the worker's own loop run for so many rounds."""
    left = iter(range(rounds))

    def due() -> Any:
        if next(left, None) is None:
            raise LookupError("nothing more is due")
        return
        yield

    work.runtime.due = due
    with pytest.raises(LookupError):
        work.run(work_loop(work.runtime, work.design))


def test_a_worker_pays_and_tells_one_thing_a_round(shift: Begin) -> None:
    work = shift()
    del work.runtime.transactions[:]
    worked(work, 3)
    assert [name for name, _ in work.runtime.calls] == ["provider.refund", "customer.notify"]
    assert work.runtime.transactions == ["claim", "finish", "claim", "mark_told", "claim"]
    assert work.topics() == []


NOT_ATOMIC = SAFE.but(dispatch=Outbox(atomic=False))


def test_a_worker_that_looks_first_claims_what_it_saw(shift: Begin) -> None:
    work = shift(NOT_ATOMIC)
    del work.runtime.transactions[:]
    worked(work, 3)
    assert work.runtime.transactions == [
        "see",
        "claim",
        "finish",
        "see",
        "claim",
        "mark_told",
        "see",
    ]
    assert work.desk.status() == "succeeded"


def test_two_workers_that_saw_one_row_both_carry_it_out(shift: Begin) -> None:
    # Case B55.
    work = shift(NOT_ATOMIC)
    found = [work.run(once(work.runtime, NOT_ATOMIC, see)) for _ in range(2)]
    jobs = [
        work.run(once(work.runtime, NOT_ATOMIC, claim, owner, row))
        for owner, row in zip(("worker-1#1", "worker-2#1"), found, strict=True)
    ]
    assert [job.topic for job in jobs] == ["refund", "refund"]
    assert jobs[1].token == jobs[0].token + 1


def test_a_row_that_was_done_between_look_and_claim_is_only_ticked_off(shift: Begin) -> None:
    work = shift(NOT_ATOMIC)
    found = work.run(once(work.runtime, NOT_ATOMIC, see))
    work.finish(work.claimed(), PAID)
    assert work.run(once(work.runtime, NOT_ATOMIC, claim, "worker-2#1", found)) is None
    assert (work.desk.status(), work.desk.balance()) == ("succeeded", (500_00, 0))


def test_work_that_kills_its_workers_is_claimed_for_ever_without_a_limit(shift: Begin) -> None:
    work = shift(SAFE.but(dispatch=Outbox(max_attempts=None)))
    for number in range(50):
        assert work.claim(f"worker-{number}") is not None
        work.desk.seconds += 30.0
    assert work.desk.rows("SELECT * FROM tasks") == []


# What is done in our own database.

KEPT = """
    CREATE TRIGGER kept BEFORE DELETE ON profiles
    WHEN OLD.tenant_id = '{tenant_id}' AND OLD.user_id = '{user_id}'
    BEGIN SELECT RAISE(ABORT, 'this profile must be kept'); END
"""
STAYS_OPEN = """
    CREATE TRIGGER stays_open BEFORE UPDATE OF status ON approvals
    WHEN OLD.requested_by = '{user_id}'
    BEGIN SELECT RAISE(ABORT, 'this question must stay open'); END
"""
LOCKED = """
    CREATE TRIGGER locked BEFORE UPDATE ON orders WHEN OLD.id = 'ORD-1001'
    BEGIN SELECT RAISE(ABORT, 'this order is locked'); END
"""
RULES = {"act": KEPT, "expire": STAYS_OPEN, "refund": LOCKED}
OPEN = {"act": "pending", "expire": "awaiting_approval", "refund": "pending"}
CARRY_OUT = {"act": act, "expire": expire, "refund": call_off}


def promised(tools: Any, topic: str) -> None:
    """The deletion of a profile that may go on now, or whose question has expired now; a refund
    of an order that has changed since.
    """
    if topic == "refund":
        tools.call("issue_refund", order_id="ORD-1001", amount="200.00")
        tools.desk.execute("UPDATE orders SET disputed = captured WHERE id = 'ORD-1001'")
        return
    tools.call("delete_profile")
    if topic == "act":
        assert tools.decide() == "approved"
    else:
        tools.desk.seconds = 24 * 3600.0


def poisoned(tools: Any, topic: str) -> None:
    """The same, and the database forbids it; a second later somebody else asks for a refund."""
    promised(tools, topic)
    user, tenant = tools.session.user_id, tools.session.tenant_id
    tools.desk.execute(RULES[topic].format(user_id=user, tenant_id=tenant))
    tools.desk.seconds += 1.0
    other = replace(tools.session, user_id=tools.OTHER_USER, intent_id="intent-2")
    assert (
        tools.call("issue_refund", other, order_id="ORD-1003", amount="20.00").kind == "verifying"
    )


ROUNDS = 30


def lone_worker(tools: Any, run: Any) -> list[float]:
    """One worker, started anew 5 s after each of its deaths, until nothing is due any more, or
    for so many rounds. Returns when it died.
    """
    deaths: list[float] = []
    rounds = iter(range(ROUNDS))

    def due() -> Any:
        when = next_due(tools.desk, takes_over=True)
        if when is None or next(rounds, None) is None:
            raise LookupError("nothing more is due")
        wait = datetime.fromisoformat(when) - datetime.fromisoformat(tools.desk.time())
        tools.desk.seconds += max(0.0, wait.total_seconds())
        return
        yield

    tools.runtime.due = due
    while True:
        try:
            run(work_loop(tools.runtime, tools.design))
        except LookupError:
            return deaths
        except sqlite3.IntegrityError:
            deaths.append(tools.desk.seconds)
            tools.desk.seconds += 5.0


@pytest.mark.parametrize("topic", ["act", "expire", "refund"])
def test_work_that_the_database_forbids_stops_nobody_and_is_a_humans_in_the_end(
    topic: str, tools: Any, run: Any
) -> None:
    poisoned(tools, topic)
    began = tools.desk.seconds
    deaths = lone_worker(tools, run)
    # The good refund was paid between the first try and the second.
    assert [at - began for at in deaths] == [30.0 * n for n in range(8)]
    paid = "SELECT at FROM audit_log WHERE event = 'processing->succeeded'"
    assert tools.desk.rows(paid) == [(tools.desk.time(began + 5.0 - tools.desk.seconds),)]
    assert [name for name, _ in tools.runtime.calls] == ["provider.refund", "customer.notify"]
    # And the other is set aside, and a person is asked, once.
    (operation_id,) = tools.desk.one("SELECT id FROM tool_operations ORDER BY created_at")
    assert tools.desk.rows("SELECT operation_id, topic, reason FROM tasks") == [
        (operation_id, topic, "Claimed 8 times without a result (dead letter).")
    ]
    asked = "SELECT operation_id, event, detail FROM audit_log WHERE event = 'task'"
    assert tools.desk.rows(asked) == [
        (operation_id, "task", "Claimed 8 times without a result (dead letter).")
    ]
    dead = "SELECT operation_id, topic FROM outbox WHERE dead_at IS NOT NULL AND done_at IS NULL"
    assert tools.desk.rows(dead) == [(operation_id, topic)]
    state = f"SELECT status FROM tool_operations WHERE id = '{operation_id}'"
    assert tools.desk.one(state) == (OPEN[topic],)
    assert tools.profiles() == 3
    assert tools.unaudited() == set()


@pytest.mark.parametrize("topic", ["act", "expire", "refund"])
def test_without_a_limit_work_that_the_database_forbids_is_tried_for_ever_and_stops_nobody(
    topic: str, tools: Any, run: Any
) -> None:
    tools.design = SAFE.but(dispatch=Outbox(max_attempts=None))
    poisoned(tools, topic)
    assert len(lone_worker(tools, run)) == ROUNDS - 2  # the refund, and a word to its customer
    assert [name for name, _ in tools.runtime.calls] == ["provider.refund", "customer.notify"]
    assert tools.desk.rows("SELECT * FROM tasks") == []


@pytest.mark.parametrize("topic", ["act", "expire", "refund"])
def test_a_dead_letter_whose_commit_nobody_acknowledged_is_one_question(
    topic: str, tools: Any, run: Any
) -> None:
    tools.design = SAFE.but(dispatch=Outbox(max_attempts=1))
    promised(tools, topic)
    work = Shift(tools.runtime, run, tools.design)
    work.claimed()
    work.desk.seconds += 30.0
    work.runtime.acks += [CommitUnknown("broken")]
    assert work.claim() is None
    assert work.desk.rows("SELECT topic FROM tasks") == [(topic,)]
    assert work.events().count("task") == 1


def went_through(tools: Any, topic: str) -> bool:
    """Whether it has come to its end, once, and no entry of the audit log says more."""
    events = tools.events()
    ended = {
        "act": "processing->succeeded",
        "expire": "awaiting_approval->failed",
        "refund": "pending->failed",
    }[topic]
    left = 2 if topic == "act" else 3
    return events[-1] == ended and len(events) == len({*events}) and tools.profiles() == left


@pytest.mark.parametrize("topic", ["act", "expire", "refund"])
def test_a_worker_that_dies_between_claim_and_work_takes_nothing_with_it(
    topic: str, tools: Any, run: Any
) -> None:
    promised(tools, topic)
    before = tools.dump(but=["outbox"])
    began = tools.desk.seconds
    assert Shift(tools.runtime, run, tools.design).claimed().topic == topic
    assert tools.dump(but=["outbox"]) == before
    assert lone_worker(tools, run) == []
    assert tools.desk.seconds == began + (24 * 3600.0 if topic == "act" else 30.0)
    assert went_through(tools, topic)
    assert tools.desk.rows("SELECT * FROM tasks") == []
    assert tools.desk.rows("SELECT * FROM outbox WHERE done_at IS NULL") == []


@pytest.mark.parametrize("topic", ["act", "expire", "refund"])
@pytest.mark.parametrize("fence", [True, False])
def test_a_zombie_carries_nothing_out_while_there_is_a_fence(
    fence: bool, topic: str, tools: Any, run: Any
) -> None:
    tools.design = SAFE.but(dispatch=Outbox(fence=fence))
    promised(tools, topic)
    work = Shift(tools.runtime, run, tools.design)
    zombie = work.claimed()
    work.desk.seconds += 30.0
    job = work.claimed("worker-2#1")
    before = tools.dump()
    run(once(work.runtime, work.design, CARRY_OUT[topic], zombie))
    assert (tools.dump() == before) == fence
    run(once(work.runtime, work.design, CARRY_OUT[topic], job))
    assert went_through(tools, topic)


@pytest.mark.parametrize("topic", ["act", "expire", "refund"])
def test_a_zombie_does_not_carry_out_what_is_a_humans_by_now(
    topic: str, tools: Any, run: Any
) -> None:
    tools.design = SAFE.but(dispatch=Outbox(max_attempts=1))
    promised(tools, topic)
    work = Shift(tools.runtime, run, tools.design)
    zombie = work.claimed()
    work.desk.seconds += 30.0
    assert work.claim("worker-2#1") is None
    before = tools.dump()
    run(once(work.runtime, work.design, CARRY_OUT[topic], zombie))
    assert tools.dump() == before


@pytest.mark.parametrize(
    ("topic", "revalidate"),
    [("act", True), ("act", False), ("expire", True), ("expire", False), ("refund", True)],
)
@pytest.mark.parametrize("fence", [True, False])
def test_work_in_our_own_database_that_runs_twice_is_done_once(
    fence: bool, topic: str, revalidate: bool, tools: Any, run: Any
) -> None:
    consent = Approval(revalidate=revalidate)
    tools.design = SAFE.but(dispatch=Outbox(fence=fence), approval=consent)
    promised(tools, topic)
    work = Shift(tools.runtime, run, tools.design)
    job = work.claimed()
    work.runtime.acks += [CommitUnknown("broken")]
    run(once(work.runtime, work.design, CARRY_OUT[topic], job))
    assert work.runtime.transactions[-2:] == [CARRY_OUT[topic].__name__] * 2
    assert went_through(tools, topic)


@pytest.mark.parametrize("topic", ["act", "expire"])
def test_what_came_to_its_end_meanwhile_is_only_ticked_off(
    topic: str, tools: Any, run: Any
) -> None:
    promised(tools, topic)
    work = Shift(tools.runtime, run, tools.design)
    work.claimed()
    work.desk.execute("UPDATE tool_operations SET status = 'failed'")
    work.desk.execute("UPDATE approvals SET status = 'rejected'")
    work.desk.seconds += 300.0
    before = tools.dump(but=["outbox"])
    assert work.claim() is None
    assert tools.dump(but=["outbox"]) == before
    assert topic not in work.topics()


# Who never sends twice.

ASK_ONLY = SAFE.but(recovery=AskOnly(every=300.0, horizon=3600.0), retry=NoRetry())


def silent(shift: Begin) -> Shift:
    """A first send that nobody answered, and a second look that is due."""
    work = shift(ASK_ONLY)
    work.runtime.answers.append(CallTimeout("2 s"))
    work.run(refund(work.runtime, ASK_ONLY, work.claimed()))
    assert work.desk.status() == "outcome_unknown"
    work.desk.seconds += 300.0
    return work


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ("REF-1", "succeeded"),
        (CameToNothing("returned."), "failed"),
        (Accepted("REF-1"), "outcome_unknown"),
        (None, "outcome_unknown"),
        (CallTimeout("2 s"), "outcome_unknown"),
        (Declined("there is no way to ask."), "outcome_unknown"),
    ],
)
def test_who_never_sends_twice_asks_after_silence(found: Any, status: str, shift: Begin) -> None:
    work = silent(shift)
    work.runtime.answers.append(found)
    work.run(refund(work.runtime, ASK_ONLY, work.claimed()))
    assert [name for name, _ in work.runtime.calls] == ["provider.refund", "provider.find"]
    assert work.desk.status() == status
    assert work.desk.rows("SELECT * FROM tasks") == []
    if status == "outcome_unknown":
        taken_on = isinstance(found, Accepted)
        work.desk.seconds += (SETTLEMENT_CHECK if taken_on else 300.0) - 1.0
        assert work.claim() is None
        work.desk.seconds += 1.0
        assert work.claim() is not None


def test_who_never_sends_twice_asks_after_a_workers_death_too(shift: Begin) -> None:
    work = shift(ASK_ONLY)
    work.claimed()
    work.desk.seconds += 30.0
    work.runtime.answers.append("REF-1")
    work.run(refund(work.runtime, ASK_ONLY, work.claimed("worker-2#1")))
    assert [name for name, _ in work.runtime.calls] == ["provider.find"]
    assert work.desk.status() == "succeeded"


def test_who_never_sends_twice_leaves_it_to_a_human_in_the_end(shift: Begin) -> None:
    work = silent(shift)
    work.desk.seconds = 3600.0
    work.runtime.answers.append(None)
    work.run(refund(work.runtime, ASK_ONLY, work.claimed()))
    assert work.desk.rows("SELECT topic FROM tasks") == [("refund",)]


def test_what_the_provider_is_still_paying_is_no_humans_even_past_the_horizon(
    shift: Begin,
) -> None:
    work = tried_until(3600.0, shift, [Accepted("REF-1")])
    assert [name for name, _ in work.runtime.calls] == ["provider.find"]
    assert work.desk.rows("SELECT * FROM tasks") == []
    assert work.desk.status() == "outcome_unknown"
    work.desk.seconds += 24 * 3600.0
    assert work.claim() is not None


def test_what_is_accepted_is_not_asked_about_before_its_time(shift: Begin) -> None:
    work = shift(SAFE.but(retry=Fixed(1.0, None)))
    work.runtime.answers.append(Accepted("REF-1"))
    work.run(refund(work.runtime, work.design, work.claimed()))
    assert work.desk.status() == "outcome_unknown"
    work.desk.seconds += SETTLEMENT_CHECK - 1.0
    assert work.claim() is None
    work.desk.seconds += 1.0
    assert work.claim() is not None


def test_what_a_report_has_ended_meanwhile_is_not_left_to_a_human(shift: Begin) -> None:
    work = shift()
    work.claimed()
    work.desk.seconds = 20 * 3600.0
    job = work.claimed("worker-2#1")
    assert job.too_old
    tenant = job.operation.tenant_id
    report = Report("event-1", "succeeded", "intent-1", "REF-1", tenant, "ORD-1001", 500_00, "USD")
    work.run(receive(work.runtime, SAFE, report))
    work.run(once(work.runtime, SAFE, hand_over, job))
    assert work.desk.status() == "succeeded"
    assert work.desk.rows("SELECT * FROM tasks") == []


# The budget of the whole process.


def test_when_the_process_has_spent_its_retries_the_queue_waits_for_the_long_interval(
    shift: Begin,
) -> None:
    work = shift(SAFE.but(retry=Budget(Fixed(1.0, None), capacity=20.0, cost=14.0)))
    work.finish(work.claimed(), UNKNOWN)
    work.desk.seconds += 1.0
    work.finish(work.claimed(), UNKNOWN)  # the second retry is not paid for
    work.desk.seconds += 1799.0
    assert work.claim() is None
    work.desk.seconds += 1.0
    assert work.claim() is not None


def test_a_zombie_does_not_let_go_on_what_another_worker_has_taken_up(tools: Any, run: Any) -> None:
    promised(tools, "refund")
    zombie = Shift(tools.runtime, run, tools.design).claimed()
    assert zombie.objection is not None
    tools.desk.seconds += 100.0
    assert Shift(tools.runtime, run, tools.design).claimed().objection is not None
    # Now the money is there again; who has the claim may go on, and the zombie may not.
    tools.desk.execute("UPDATE orders SET disputed = 0 WHERE id = 'ORD-1001'")
    assert call_off(tools.desk, SAFE, [], zombie)
    assert tools.desk.status() == "pending"


def test_what_goes_on_goes_on_once_however_often_its_transaction_is_run(
    tools: Any, run: Any
) -> None:
    promised(tools, "refund")
    job = Shift(tools.runtime, run, tools.design).claimed()
    tools.desk.execute("UPDATE orders SET disputed = 0 WHERE id = 'ORD-1001'")
    assert not call_off(tools.desk, SAFE, [], job)
    assert not call_off(tools.desk, SAFE, [], job)
    assert tools.desk.status() == "processing"
    assert tools.events().count("pending->processing") == 1
