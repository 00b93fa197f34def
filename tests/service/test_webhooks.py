"""The provider's reports on plain ground: early, twice, late, and in the wrong order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.service.answers import FromRecord
from simulator.service.audit import AuditAfterwards
from simulator.service.balance import Reserved
from simulator.service.designs import SAFE
from simulator.service.errors import CommitUnknown, DatabaseUnavailable
from simulator.service.operations import DurableRecord, Operation
from simulator.service.outbox import Job, enqueue
from simulator.service.payment import Outcome
from simulator.service.pipeline import finish, handle
from simulator.service.schemas import Session, ToolCall
from simulator.service.webhooks import (
    BookByReference,
    ByOperation,
    IgnoreWebhooks,
    Report,
    note_report,
    receive,
)
from simulator.service.worker import call_off, claim

TENANT = "7a1c0f5e-3b52-4c0e-9f0a-1d2e3f4a5b6c"
OTHER_TENANT = "11111111-2222-4333-8444-555555555555"
OK, NOT_FOUND, CONFLICT = 200, 404, 409
PAID = Report("event-1", "succeeded", "intent-1", "REF-1", TENANT, "ORD-1001", 500_00, "USD")
CREATED = replace(PAID, id="event-2", kind="created")
RETURNED = replace(PAID, id="event-3", kind="failed")
BY_HAND = replace(PAID, id="event-4", kind="refunded", intent_id="", amount=100_00)
CHARGEBACK = replace(BY_HAND, id="event-5", kind="disputed")
TABLES = ("tool_operations", "orders", "outbox", "tasks", "webhook_events", "audit_log")


class Post:
    """Where reports come in, while the test decides how far the refund has come."""

    def __init__(self, runtime: Any, run: Any, ask: Any) -> None:
        self.runtime, self.run, self.ask = runtime, run, ask
        self.desk, self.design = runtime.desk, SAFE

    def report(self, report: Report) -> int:
        status: int = self.run(receive(self.runtime, self.design, report))
        return status

    def asked(self) -> None:
        self.run(self.ask(self.design))

    def claimed(self) -> Job:
        job = claim(self.desk, self.design, [], "worker-1#1")
        assert job is not None
        return job

    def finished(self, job: Job, outcome: Outcome) -> bool:
        return finish(self.desk, self.design, [], job.operation, outcome, job)

    def books(self) -> Any:
        """(refunded, pending, disputed, version) of the order."""
        return self.desk.one("SELECT refunded, pending, disputed, version FROM orders")

    def seen(self) -> list[Any]:
        return [self.desk.rows(f"SELECT * FROM {table}") for table in TABLES]

    def markers(self) -> list[str]:
        return [row[0] for row in self.desk.rows("SELECT id FROM webhook_events ORDER BY id")]

    def topics(self) -> list[str]:
        rows = self.desk.rows("SELECT topic FROM outbox WHERE done_at IS NULL ORDER BY topic")
        return [row[0] for row in rows]

    def tasks(self) -> list[Any]:
        return self.desk.rows("SELECT topic, reason FROM tasks ORDER BY topic")

    def events(self) -> list[str]:
        return [row[0] for row in self.desk.rows("SELECT event FROM audit_log ORDER BY id")]


@pytest.fixture
def post(runtime: Any, run: Any, make_call: Callable[..., ToolCall], session: Session) -> Post:
    return Post(runtime, run, lambda design: handle(runtime, design, make_call(), session))


@pytest.fixture
def sent(post: Post) -> Post:
    """A refund of 500.00 that a worker has sent, and has no answer to."""
    post.asked()
    post.claimed()
    return post


# A report of what we asked for.


def test_a_report_that_overtakes_the_answer_books_the_refund(sent: Post) -> None:
    assert sent.report(PAID) == OK
    assert sent.desk.status() == "succeeded"
    assert sent.books() == (500_00, 0, 0, 1)
    assert "tell" in sent.topics()
    assert sent.markers() == ["event-1"]
    assert sent.events()[-1] == "processing->succeeded"
    assert "REF-1" in sent.desk.one("SELECT result FROM tool_operations")[0]


@pytest.mark.parametrize(
    "answer", [Outcome("succeeded", "REF-1"), Outcome("outcome_unknown", "no answer")]
)
def test_the_answer_that_comes_after_the_report_changes_nothing(
    answer: Outcome, post: Post
) -> None:
    post.asked()
    job = post.claimed()
    post.report(PAID)
    books = post.books()
    assert post.finished(job, answer) is False
    assert (post.books(), post.desk.status()) == (books, "succeeded")
    post.desk.seconds = 10**6
    claim(post.desk, SAFE, [], "worker-1#1")
    assert (post.books(), post.desk.status()) == (books, "succeeded")


@pytest.mark.parametrize("report", [PAID, RETURNED, BY_HAND, CHARGEBACK])
def test_a_copy_of_a_report_changes_nothing(report: Report, sent: Post) -> None:
    assert sent.report(report) == OK
    seen = sent.seen()
    assert sent.report(report) == OK
    assert sent.report(replace(report, kind="refunded", intent_id="")) == OK
    assert sent.seen() == seen


def test_a_report_of_what_is_booked_already_is_only_noted(post: Post) -> None:
    post.asked()
    post.finished(post.claimed(), Outcome("succeeded", "REF-1"))
    books, topics = post.books(), post.topics()
    assert post.report(PAID) == OK
    assert (post.books(), post.topics()) == (books, topics)
    assert post.desk.rows("SELECT * FROM tasks") == []
    assert post.markers() == ["event-1"]


@pytest.mark.parametrize("first", [PAID, CREATED])
def test_created_says_nothing_new_before_or_after_succeeded(first: Report, sent: Post) -> None:
    second = CREATED if first is PAID else PAID
    for report in (first, second):
        assert sent.report(report) == OK
        if report is CREATED and first is CREATED:
            assert sent.desk.status() == "processing"
    assert (sent.desk.status(), sent.books()) == ("succeeded", (500_00, 0, 0, 1))
    assert sent.markers() == ["event-1", "event-2"]


@pytest.mark.parametrize("reference", ["REF-1", "REF-99", ""])
def test_a_report_is_matched_by_our_intent_whatever_the_providers_reference(
    reference: str, sent: Post
) -> None:
    assert sent.report(replace(PAID, reference=reference)) == OK
    assert sent.desk.status() == "succeeded"


def test_an_unknown_outcome_is_known_with_the_report(post: Post) -> None:
    post.asked()
    post.finished(post.claimed(), Outcome("outcome_unknown", "no answer"))
    assert post.report(PAID) == OK
    assert (post.desk.status(), post.books()) == ("succeeded", (500_00, 0, 0, 1))
    assert post.events()[-1] == "outcome_unknown->succeeded"
    post.desk.seconds = 10**6
    assert "refund" not in [
        job.topic for _ in range(3) if (job := claim(post.desk, SAFE, [], "worker-1#1"))
    ]


def test_money_that_came_back_frees_the_balance_and_the_customer_is_told(sent: Post) -> None:
    assert sent.report(RETURNED) == OK
    assert (sent.desk.status(), sent.books()) == ("failed", (0, 0, 0, 1))
    assert "tell" in sent.topics()
    assert "could not pay it" in sent.desk.one("SELECT result FROM tool_operations")[0]


def test_without_a_follow_up_a_report_promises_none(sent: Post) -> None:
    sent.design = SAFE.but(answer=FromRecord(follow_up=False))
    sent.report(PAID)
    assert "tell" not in sent.topics()


# Reports that fit nothing, or not yet.


@pytest.mark.parametrize("report", [PAID, CREATED, RETURNED])
def test_a_report_of_what_we_do_not_know_yet_is_to_come_again(report: Report, post: Post) -> None:
    assert post.report(report) == NOT_FOUND
    assert post.markers() == []
    post.asked()
    post.claimed()
    assert post.report(report) == OK


@pytest.mark.parametrize("report", [PAID, RETURNED])
@pytest.mark.parametrize("status", ["pending", "awaiting_approval"])
def test_a_report_of_what_we_have_not_sent_is_to_come_again(
    status: str, report: Report, post: Post
) -> None:
    post.asked()
    post.desk.execute("UPDATE tool_operations SET status = :s", {"s": status})
    seen = post.seen()
    assert post.report(report) == CONFLICT
    assert post.seen() == seen
    post.desk.execute("UPDATE tool_operations SET status = 'processing'")
    assert post.report(report) == OK
    assert post.desk.status() == report.kind


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [(PAID, RETURNED, "succeeded"), (RETURNED, PAID, "failed")],
    ids=["failed after succeeded", "succeeded after failed"],
)
def test_a_report_against_our_books_is_a_humans_and_changes_nothing(
    first: Report, second: Report, status: str, sent: Post
) -> None:
    sent.report(first)
    books, topics = sent.books(), sent.topics()
    assert sent.report(second) == OK
    assert (sent.desk.status(), sent.books(), sent.topics()) == (status, books, topics)
    ((topic, reason),) = sent.desk.rows("SELECT topic, reason FROM tasks")
    assert topic == "contradiction"
    assert status in reason
    assert reason.endswith(f"reports: {second.kind}.")
    assert sent.events()[-1] == "task"
    assert sent.markers() == ["event-1", "event-3"]


@pytest.mark.parametrize("other", [{"amount": 300_00}, {"currency": "EUR"}])
def test_a_report_of_another_sum_than_was_asked_for_is_a_humans(
    other: dict[str, Any], sent: Post
) -> None:
    assert sent.report(replace(PAID, **other)) == OK
    assert (sent.desk.status(), sent.books()) == ("processing", (0, 500_00, 0, 1))
    ((topic, reason),) = sent.desk.rows("SELECT topic, reason FROM tasks")
    assert (topic, "50000 USD were asked for" in reason) == ("contradiction", True)
    assert sent.events()[-1] == "task"
    assert sent.markers() == ["event-1"]


@pytest.fixture
def booked(sent: Post) -> Post:
    """A refund of 500.00 that is booked as paid, under the provider's name REF-1 $500.00."""
    sent.report(replace(PAID, id="the first", reference="REF-1 $500.00"))
    return sent


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"amount": 50_00}, "reports 5000 USD on ORD-1001"),
        ({"amount": 0}, "reports 0 USD"),
        ({"currency": "EUR"}, "reports 50000 EUR"),
        ({"order_id": "ORD-2"}, "on ORD-2"),
        ({"reference": "REF-11 $500.00"}, "booked as REF-1 $500.00, and the provider reports"),
        ({"reference": "re_2"}, "another: re_2."),
        ({"reference": "OTHER"}, "another: OTHER."),
    ],
)
def test_a_report_that_differs_from_what_is_booked_is_a_humans_once(
    other: dict[str, Any], words: str, booked: Post
) -> None:
    books, topics, events = booked.books(), booked.topics(), booked.events()
    report = replace(PAID, **{"reference": "REF-1 $500.00", **other})
    for _ in range(3):
        assert booked.report(report) == OK
    assert (booked.books(), booked.topics()) == (books, topics)
    assert booked.desk.status() == "succeeded"
    ((topic, reason),) = booked.tasks()
    assert (topic, words in reason) == ("contradiction", True)
    assert booked.events() == [*events, "task"]
    assert "event-1" in booked.markers()


def test_a_third_payment_is_written_down_though_the_question_is_open(booked: Post) -> None:
    for number in (2, 3):
        booked.report(replace(PAID, id=f"event-{number}", reference=f"REF-{number} $500.00"))
    ((_, reason),) = booked.tasks()
    assert "REF-2" in reason
    details = booked.desk.rows("SELECT detail FROM audit_log WHERE event = 'task' ORDER BY id")
    assert ["REF-2" in details[0][0], "REF-3" in details[1][0]] == [True, True]


@pytest.mark.parametrize(
    ("detail", "reference"),
    [
        ("REF-1 $500.00", "REF-1 $500.00"),
        ("REF-1 $1,500.00", "REF-1"),
        ("REF-1 500 JPY", "REF-1 500 JPY"),
        ("REF-1 $500.00", ""),
        ("REF-1 $500.00", " "),
        ("", "REF-1 $500.00"),
        ("booked by hand", "REF-1 $500.00"),
        ("paid, see the e-mail of 3 May", "REF-1 $500.00"),
        ("2026-05-03 by hand", "REF-1 $500.00"),
        ("paid", "REF-1 $500.00"),
    ],
)
def test_where_one_of_the_two_has_no_name_of_the_provider_none_is_compared(
    detail: str, reference: str, post: Post
) -> None:
    post.asked()
    post.finished(post.claimed(), Outcome("succeeded", detail))
    seen = post.tasks(), post.books(), post.events()
    assert post.report(replace(PAID, reference=reference)) == OK
    assert (post.tasks(), post.books(), post.events()) == seen
    assert seen[0] == []
    assert post.report(replace(PAID, id="another sum", amount=1)) == OK
    assert len(post.tasks()) == 1, "the sum is compared all the same"


@pytest.mark.parametrize("detail", ["REF-1 500 JPY", "REF-1 1.500 KWD", "re_3Nab", "84419", "X_y"])
def test_a_name_of_the_provider_is_known_by_its_form(detail: str, post: Post) -> None:
    post.asked()
    post.finished(post.claimed(), Outcome("succeeded", detail))
    post.report(replace(PAID, reference="REF-2"))
    assert len(post.tasks()) == 1


def test_an_audit_afterwards_hears_of_a_second_payment_too(booked: Post) -> None:
    booked.design = SAFE.but(audit=AuditAfterwards())
    booked.report(replace(PAID, reference="REF-2 $500.00"))
    assert booked.events()[-1] == "task"


@pytest.mark.parametrize(
    "report",
    [replace(PAID, kind="updated"), replace(BY_HAND, kind="updated"), replace(PAID, intent_id="")],
    ids=["of ours", "without us", "ours, without our intent"],
)
def test_a_report_of_a_kind_that_we_do_not_know_is_written_down_and_nothing_is_booked(
    report: Report, sent: Post
) -> None:
    books, topics, events = sent.books(), sent.topics(), sent.events()
    for _ in range(2):
        assert sent.report(report) == OK
    assert (sent.books(), sent.topics(), sent.tasks()) == (books, topics, [])
    assert sent.desk.status() == "processing"
    assert sent.events() == [*events, "unreadable report"]
    assert sent.markers() == [report.id]


def test_a_tenant_hears_nothing_of_anothers_refund_with_the_same_intent_id(
    sent: Post, run: Any, make_call: Any, session: Session
) -> None:
    sent.desk.order(tenant_id=OTHER_TENANT)
    run(handle(sent.runtime, SAFE, make_call(), replace(session, tenant_id=OTHER_TENANT)))
    sent.desk.execute("UPDATE tool_operations SET status = 'processing'")
    for tenant in (OTHER_TENANT, TENANT):
        assert sent.report(replace(PAID, id=f"of {tenant}", tenant_id=tenant)) == OK
        paid = sent.desk.rows("SELECT tenant_id FROM tool_operations WHERE status = 'succeeded'")
        assert (tenant,) in paid
        assert len(paid) == (1 if tenant == OTHER_TENANT else 2)
    assert sent.report(replace(PAID, id="of nobody", tenant_id="nobody")) == NOT_FOUND


# Money that went without us.


@pytest.mark.parametrize(
    ("report", "books"),
    [(BY_HAND, (100_00, 0, 0, 2)), (CHARGEBACK, (0, 0, 100_00, 2))],
    ids=["by hand", "chargeback"],
)
def test_money_that_went_without_us_is_booked_once_and_the_order_is_another(
    report: Report, books: tuple[int, ...], post: Post
) -> None:
    for _ in range(2):
        assert post.report(report) == OK
    assert post.books() == books
    assert post.desk.rows("SELECT event, intent_id, operation_id FROM audit_log") == [
        (report.kind, "", None)
    ]
    post.report(replace(report, id="event-9"))
    assert post.books()[3] == 3


@pytest.mark.parametrize("report", [BY_HAND, CHARGEBACK])
def test_what_was_checked_before_money_went_without_us_is_not_sent(
    report: Report, post: Post
) -> None:
    post.asked()
    post.report(report)
    call_off(post.desk, SAFE, [], post.claimed())
    assert post.desk.status() == "failed"


def test_what_is_left_after_money_went_without_us_can_still_be_refunded(
    post: Post, run: Any, make_call: Any, session: Session
) -> None:
    post.report(BY_HAND)
    post.report(CHARGEBACK)
    kinds = [
        run(
            handle(
                post.runtime,
                SAFE,
                make_call(amount=amount),
                replace(session, intent_id=f"intent-of-{amount}"),
            )
        ).kind
        for amount in ("300.01", "300.00")
    ]
    assert kinds == ["refused", "verifying"]


def test_another_order_is_left_alone(post: Post) -> None:
    post.desk.order(order_id="ORD-2")
    post.report(replace(CHARGEBACK, order_id="ORD-2"))
    post.report(replace(BY_HAND, order_id="ORD-2"))
    assert post.desk.rows("SELECT refunded, disputed, version FROM orders ORDER BY id") == [
        (0, 0, 1),
        (100_00, 100_00, 3),
    ]


@pytest.mark.parametrize("report", [BY_HAND, CHARGEBACK])
@pytest.mark.parametrize("other", [{"order_id": "ORD-2"}, {"tenant_id": OTHER_TENANT}])
def test_a_report_of_an_order_that_we_do_not_have_yet_is_to_come_again(
    other: dict[str, str], report: Report, post: Post
) -> None:
    report = replace(report, **other)
    seen = post.seen()
    assert post.report(report) == NOT_FOUND
    assert post.seen() == seen
    post.desk.order(order_id=report.order_id, tenant_id=report.tenant_id)
    assert post.report(report) == OK
    assert post.markers() == [report.id]
    assert post.events() == [report.kind]
    assert post.books() == (0, 0, 0, 1), "the other order is left alone"


def test_a_thank_you_for_an_unknown_order_loses_the_report_for_ever(post: Post) -> None:
    post.design = SAFE.but(webhook=ByOperation(on_unknown=OK))
    for _ in range(2):
        assert post.report(replace(CHARGEBACK, order_id="ORD-2")) == OK
        post.desk.execute("UPDATE orders SET id = 'ORD-2'")
    assert post.books() == (0, 0, 0, 1)


@pytest.mark.parametrize("kind", ["refunded", "disputed"])
@pytest.mark.parametrize("other", [{"currency": "EUR"}, {"amount": 0}, {"amount": -100_00}])
def test_what_is_no_amount_of_the_order_is_not_booked_and_is_a_humans(
    other: dict[str, Any], kind: str, sent: Post
) -> None:
    books, events = sent.books(), sent.events()
    report = replace(BY_HAND, kind=kind, **other)
    for _ in range(2):
        assert sent.report(report) == OK
    assert sent.books() == books
    ((topic, reason),) = sent.tasks()
    assert topic == "unreadable report"
    assert f"{report.amount} {report.currency} (minor units) {kind}, REF-1 of ORD-1001" in reason
    assert sent.events() == [*events, "unreadable report", "task"]
    assert sent.markers() == [report.id]


def test_where_nobody_asked_for_a_refund_a_foreign_currency_is_at_least_written_down(
    post: Post,
) -> None:
    assert post.report(replace(BY_HAND, currency="EUR")) == OK
    assert post.books() == (0, 0, 0, 1)
    assert (post.events(), post.tasks()) == (["unreadable report"], [])


@pytest.mark.parametrize("kind", ["refunded", "disputed"])
def test_more_than_was_captured_is_booked_and_is_a_humans(kind: str, booked: Post) -> None:
    refunded, pending, disputed, version = booked.books()
    report = replace(BY_HAND, kind=kind, amount=1)
    events = booked.events()
    for _ in range(2):
        assert booked.report(report) == OK
    by_hand = kind == "refunded"
    assert booked.books() == (refunded + by_hand, pending, disputed + (not by_hand), version + 1)
    ((topic, reason),) = booked.tasks()
    assert topic == "overdrawn"
    assert reason.endswith("More went back than was captured, by 1.")
    assert booked.events() == [*events, kind, "overdrawn", "task"]


@pytest.mark.parametrize("kind", ["refunded", "disputed"])
def test_all_that_was_captured_is_not_too_much(kind: str, post: Post) -> None:
    post.report(BY_HAND)
    post.report(replace(CHARGEBACK, amount=400_00))
    assert post.events() == ["refunded", "disputed"]
    post.report(replace(BY_HAND, id="event-6", kind=kind, amount=1))
    assert post.events()[2:] == [kind, "overdrawn"]
    assert post.tasks() == []


def test_what_is_only_under_way_does_not_count_as_gone(sent: Post) -> None:
    sent.report(replace(CHARGEBACK, amount=500_00))
    assert sent.tasks() == []


def test_a_question_about_an_order_is_put_to_its_newest_refund(
    post: Post, run: Any, make_call: Any, session: Session
) -> None:
    post.desk.order(order_id="ORD-2")
    # In the order of their ids, of time, and of another order: only time counts.
    wanted = {"intent-a": ("ORD-1001", 2), "intent-b": ("ORD-1001", 1), "intent-c": ("ORD-2", 3)}
    for intent_id, (order_id, seconds) in wanted.items():
        post.desk.seconds = seconds
        call = make_call(order_id=order_id, amount="10.00")
        run(handle(post.runtime, SAFE, call, replace(session, intent_id=intent_id)))
    post.report(replace(BY_HAND, currency="EUR"))
    asked = "SELECT r.intent_id FROM tasks t JOIN refunds r ON r.operation_id = t.operation_id"
    assert post.desk.rows(asked) == [("intent-a",)]


# Crashes, and the database.


def test_a_report_whose_commit_nobody_acknowledged_is_booked_once(sent: Post) -> None:
    sent.runtime.acks.append(CommitUnknown("broken"))
    assert sent.report(CHARGEBACK) == OK
    assert sent.runtime.transactions[-2:] == ["note_report", "note_report"]
    assert sent.books() == (0, 500_00, 100_00, 2)


def test_a_report_that_cannot_be_booked_leaves_no_marker_and_comes_again(sent: Post) -> None:
    sent.runtime.refusals += [DatabaseUnavailable("down")] * 9
    with pytest.raises(DatabaseUnavailable):
        sent.report(PAID)
    sent.runtime.refusals.clear()
    assert sent.markers() == []
    assert sent.report(PAID) == OK
    assert sent.desk.status() == "succeeded"


MARKED_FIRST = SAFE.but(webhook=ByOperation(marker_first=True))


def test_a_marker_before_the_work_loses_the_report_with_a_crash_in_between(sent: Post) -> None:
    # Case B49.
    sent.design = MARKED_FIRST
    steps = receive(sent.runtime, sent.design, PAID)
    transact, names = sent.runtime.transact, []

    def dies(transaction: Any, *arguments: Any) -> Any:
        names.append(transaction.__name__)
        if len(names) > 1:
            raise SystemExit
        return transact(transaction, *arguments)

    sent.runtime.transact = dies
    with pytest.raises(SystemExit):
        sent.run(steps)
    sent.runtime.transact = transact
    assert names == ["mark", "note_report"]
    assert sent.report(PAID) == OK
    assert sent.desk.status() == "processing"


def test_a_marker_before_the_work_loses_what_is_to_come_again(post: Post) -> None:
    post.design = MARKED_FIRST
    assert post.report(PAID) == NOT_FOUND
    post.asked()
    post.claimed()
    assert post.report(PAID) == OK
    assert post.desk.status() == "processing"


def test_a_marker_before_the_work_books_what_goes_well_once(sent: Post) -> None:
    sent.design = MARKED_FIRST
    for _ in range(3):
        assert sent.report(CHARGEBACK) == OK
        assert sent.report(PAID) == OK
    assert sent.books() == (500_00, 0, 100_00, 2)


def test_a_thank_you_for_an_unknown_report_loses_it_for_ever(post: Post) -> None:
    # Case B29.
    post.design = SAFE.but(webhook=ByOperation(on_unknown=OK))
    assert post.report(PAID) == OK
    post.asked()
    post.claimed()
    assert post.report(PAID) == OK
    assert post.desk.status() == "processing"


# The weaker policies.


@pytest.mark.parametrize("report", [PAID, RETURNED, BY_HAND, CHARGEBACK])
def test_who_ignores_reports_says_thank_you_and_does_nothing(report: Report, sent: Post) -> None:
    sent.design = SAFE.but(webhook=IgnoreWebhooks())
    seen = sent.seen()
    assert sent.report(report) == OK
    assert sent.seen() == seen


BY_REFERENCE = SAFE.but(webhook=BookByReference())


def test_a_report_that_is_matched_by_reference_is_booked_twice_if_it_is_early(post: Post) -> None:
    # Case B04.
    post.design = BY_REFERENCE
    post.asked()
    job = post.claimed()
    for _ in range(2):
        assert post.report(PAID) == OK
    assert post.books()[:2] == (500_00, 500_00)
    assert post.finished(job, Outcome("succeeded", "REF-1"))
    assert post.books()[:2] == (1000_00, 0)


def test_a_report_that_is_matched_by_reference_is_booked_once_if_it_is_late(post: Post) -> None:
    post.design = BY_REFERENCE
    post.asked()
    post.finished(post.claimed(), Outcome("succeeded", "REF-1"))
    assert post.report(PAID) == OK
    assert post.books()[:2] == (500_00, 0)


@pytest.mark.parametrize(
    ("report", "refunded"), [(CREATED, 0), (RETURNED, 0), (CHARGEBACK, 0), (BY_HAND, 100_00)]
)
def test_by_reference_only_money_that_went_back_is_booked(
    report: Report, refunded: int, post: Post
) -> None:
    post.design = BY_REFERENCE
    assert post.report(report) == OK
    assert post.books()[0] == refunded


def test_an_audit_afterwards_is_written_after_the_report_is_booked(sent: Post) -> None:
    sent.design = SAFE.but(audit=AuditAfterwards())
    sent.report(PAID)
    assert sent.runtime.transactions[-2:] == ["note_report", "write_audit"]
    assert sent.events()[-1] == "processing->succeeded"


# Any order, any number of copies.


@settings(max_examples=150)
@given(st.data())
def test_reports_in_any_order_and_number_end_in_the_same_books(
    new_desk: Callable[[], Any], data: st.DataObject
) -> None:
    desk = new_desk()
    desk.order(900_00)
    outcome = data.draw(st.sampled_from([PAID, RETURNED]))
    facts = [CREATED, outcome, BY_HAND, CHARGEBACK, replace(CHARGEBACK, id="event-6")]
    copies = data.draw(st.lists(st.sampled_from(facts), max_size=10))
    # Each report comes once more, at last: the provider repeats what got no 200.
    arriving = data.draw(st.permutations([*copies, "ask", "claim", "answer"]))
    operation = Operation(
        "1", TENANT, "u", "intent-1", "c", "ORD-1001", 500_00, "USD", "m", "k", "f"
    )
    design = SAFE.but(approval=replace(SAFE.approval, revalidate=False))
    jobs: list[Job] = []

    def ask() -> None:
        if DurableRecord().begin(desk, operation) == "new":
            assert Reserved().take(desk, operation)
            enqueue(desk, operation.id, "refund")

    def take() -> None:
        job = claim(desk, design, [], "worker-1#1")
        if job is not None and job.topic == "refund":
            jobs.append(job)

    for what in arriving:
        if what == "ask":
            ask()
        elif what == "claim":
            take()
        elif what == "answer":
            for job in jobs:
                finish(desk, design, [], operation, Outcome("outcome_unknown", "late"), job)
        else:
            status = note_report(desk, design, [], what)
            known = bool(desk.rows("SELECT * FROM tool_operations"))
            assert status != NOT_FOUND or not known
    ask()
    take()
    for report in (*facts, *data.draw(st.permutations(facts))):
        assert note_report(desk, design, [], report) == OK
    paid = 500_00 if outcome is PAID else 0
    assert desk.status() == outcome.kind
    assert desk.one("SELECT refunded, pending, disputed, version FROM orders") == (
        paid + 100_00,
        0,
        200_00,
        4,
    )
    assert desk.rows("SELECT * FROM tasks") == []
    assert len(desk.rows("SELECT * FROM webhook_events")) == len(facts)
    assert len(desk.rows("SELECT * FROM outbox WHERE topic = 'tell'")) == 1
