"""Consent on plain ground: who may say yes, to what, until when, and how often it counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.service.answers import WAITING, Answer, FromRecord
from simulator.service.approval import Approval, Decided, Decision, ModelFlag, decide, digest_of
from simulator.service.authorization import AnyOrder
from simulator.service.balance import DISPUTE
from simulator.service.cancellation import cancel_order
from simulator.service.design import Design
from simulator.service.designs import SAFE
from simulator.service.errors import CommitUnknown
from simulator.service.operations import Operation
from simulator.service.outbox import Job, Publish
from simulator.service.payment import Outcome
from simulator.service.pipeline import Admitted, Begun, begin, consent, finish, handle
from simulator.service.recovery import NoRecovery
from simulator.service.schemas import Session, ToolCall
from simulator.service.worker import call_off, claim, expire

TENANT = "7a1c0f5e-3b52-4c0e-9f0a-1d2e3f4a5b6c"
OTHER_TENANT = "11111111-2222-4333-8444-555555555555"
USER = "c0ffee00-1234-4abc-8def-000000001001"
MANAGER = Session("deca0de0-1234-4abc-8def-000000000007", TENANT, frozenset({"refund:approve"}), "")
COLLEAGUE = replace(MANAGER, user_id="deca0de0-1234-4abc-8def-000000000008")
DAY = 24 * 3600.0
ORDER = {"tenant_id": TENANT, "order_id": "ORD-7001"}
CALL = ToolCall("call-1", "issue_refund", {})
PAID = Outcome("succeeded", "REF-1")
UNKNOWN = Outcome("outcome_unknown", "no answer from the provider.")


class Counter:
    """The service's transactions on one order of 7,500.00, each called by hand."""

    def __init__(self, desk: Any, design: Design = SAFE, currency: str = "USD") -> None:
        self.desk, self.design = desk, design
        exponent = {"USD": 100, "JPY": 1, "KWD": 1000}[currency]
        desk.order(7_500 * exponent, "ORD-7001", currency=currency)

    def ask(self, amount: str = "6000.00", number: int = 1, call: ToolCall = CALL) -> Begun:
        admitted = Admitted(
            id=f"aaaaaaaa-0000-4000-8000-{number:012d}",
            tenant_id=TENANT,
            user_id=USER,
            intent_id=f"intent-{number}",
            call_id="call-1",
            order_id="ORD-7001",
            amount=Decimal(amount),
            model_key="",
            call=call,
        )
        return begin(self.desk, self.design, [], admitted)

    def asked(self, amount: str = "6000.00", number: int = 1) -> Operation:
        operation = self.ask(amount, number).operation
        assert operation is not None
        return operation

    def question(self) -> Any:
        """(id, digest, status, decided by, used at) of the newest question."""
        return self.desk.one(
            "SELECT id, digest, status, decided_by, used_at FROM approvals ORDER BY rowid DESC"
        )

    def decide(
        self, approve: bool = True, who: Session = MANAGER, digest: str | None = None
    ) -> Decided:
        name, shown, *_ = self.question()
        decision = Decision(name, approve, shown if digest is None else digest)
        return decide(self.desk, self.design, [], decision, who)

    def claim(self) -> Job | None:
        """What a worker has to carry out now, beside what it does in our own database."""
        job = claim(self.desk, self.design, [], "worker-1#1")
        if job is not None and job.topic == "expire":
            expire(self.desk, self.design, [], job)
        elif job is not None and job.objection is not None:
            call_off(self.desk, self.design, [], job)
        else:
            return job
        return None

    def sent(self) -> bool:
        """Whether workers that come now ask the provider for money."""
        jobs = [self.claim() for _ in range(3)]  # an order has three promises at most
        return "refund" in [job.topic for job in jobs if job is not None]

    def cancel(self) -> None:
        assert cancel_order(self.desk, TENANT, "ORD-7001") is not None

    def charge_back(self, amount: int = 1) -> None:
        self.desk.execute(DISPUTE, {**ORDER, "amount": amount})

    def pending(self) -> int:
        return int(self.desk.one("SELECT pending FROM orders")[0])

    def reason(self) -> str:
        return str(self.desk.one("SELECT result FROM tool_operations")[0])

    def events(self) -> list[str]:
        return [row[0] for row in self.desk.rows("SELECT event FROM audit_log ORDER BY id")]

    def due(self) -> list[tuple[str, str]]:
        """What is promised and not done: (topic, when)."""
        return list(
            self.desk.rows(
                "SELECT topic, available_at FROM outbox WHERE done_at IS NULL "
                "ORDER BY available_at, topic"
            )
        )


@pytest.fixture
def counter(desk: Any) -> Counter:
    return Counter(desk)


def after_no(counter: Counter) -> bool:
    """Whether all is as it should be after a no: nothing reserved, sent or left open."""
    sent = counter.sent()
    return (
        not sent
        and counter.desk.status() == "failed"
        and counter.pending() == 0
        and [topic for topic, _ in counter.due() if topic == "refund"] == []
    )


# When a person is asked.


@pytest.mark.parametrize(
    ("currency", "amount", "asks"),
    [
        ("USD", "5000.00", False),
        ("USD", "5000.01", True),
        ("JPY", "5000", False),
        ("JPY", "5001", True),
        ("KWD", "5000.000", False),
        ("KWD", "5000.001", True),
    ],
)
def test_more_than_5000_whole_units_need_a_persons_consent(
    currency: str, amount: str, asks: bool, desk: Any
) -> None:
    Counter(desk, currency=currency).ask(amount)
    assert desk.status() == ("awaiting_approval" if asks else "pending")
    assert len(desk.rows("SELECT * FROM approvals")) == asks
    topics = desk.rows("SELECT topic FROM outbox")
    assert topics == [("expire",)] if asks else topics == [("refund",)]


@pytest.mark.parametrize(("above", "asks"), [(5_999, True), (6_000, False)])
def test_the_limit_is_the_designs(above: int, asks: bool, desk: Any) -> None:
    Counter(desk, SAFE.but(approval=Approval(above=above))).ask("6000.00")
    assert (desk.status() == "awaiting_approval") == asks


def test_a_question_names_the_exact_request_and_the_orders_version(counter: Counter) -> None:
    counter.desk.execute("UPDATE orders SET version = 4")
    operation = counter.asked()
    desk = counter.desk
    assert desk.rows(
        "SELECT operation_id, digest, requested_by, status, expires_at, used_at FROM approvals"
    ) == [
        (operation.id, digest_of(operation, 4), USER, "open", desk.time(DAY), None),
    ]
    assert counter.due() == [("expire", desk.time(DAY))]
    assert counter.events() == ["->pending", "pending->awaiting_approval"]


@pytest.mark.parametrize(
    "other",
    [
        {"amount": 1},
        {"currency": "EUR"},
        {"order_id": "ORD-1"},
        {"tenant_id": "another"},
        {"action": "cancel_orders"},
        {"arguments": "{}"},
    ],
)
def test_two_requests_never_share_a_digest(
    other: dict[str, Any], make_operation: Callable[..., Operation]
) -> None:
    one = digest_of(make_operation(), 1)
    assert digest_of(make_operation()._replace(**other), 1) != one
    assert digest_of(make_operation(), 2) != one
    assert digest_of(make_operation(2, intent_id="intent-2"), 1) == one


def test_the_same_call_again_puts_no_second_question(counter: Counter) -> None:
    counter.ask()
    counter.desk.seconds = 60.0
    seen = counter.desk.rows("SELECT * FROM approvals"), counter.due(), counter.events()
    again = counter.ask()
    assert (again.word, again.row and again.row.status) == ("known", "awaiting_approval")
    assert (counter.desk.rows("SELECT * FROM approvals"), counter.due(), counter.events()) == seen


def test_the_balance_stays_reserved_while_a_person_thinks(counter: Counter) -> None:
    counter.ask("6000.00")
    assert counter.pending() == 6_000_00
    counter.desk.seconds = DAY - 1
    assert not counter.sent()
    assert counter.ask("1500.01", number=2).word == "refused"
    assert counter.pending() == 6_000_00


def test_nobody_is_asked_about_more_than_the_order_has(counter: Counter) -> None:
    assert counter.ask("7500.01").word == "refused"
    assert counter.desk.rows("SELECT * FROM approvals") == []
    assert counter.desk.status() == "failed"


# Yes, and no.


def test_a_yes_lets_a_worker_send_it_once(counter: Counter) -> None:
    operation = counter.asked()
    assert counter.decide() == Decided("approved", operation)
    assert counter.desk.status() == "pending"
    assert ("refund", counter.desk.time()) in counter.due()
    assert counter.events()[-1] == "awaiting_approval->pending"
    assert counter.sent()
    assert not counter.sent()
    assert counter.desk.status() == "processing"
    assert counter.pending() == 6_000_00


def test_the_books_say_who_decided_when_and_that_it_was_used(counter: Counter) -> None:
    counter.ask()
    counter.desk.seconds = 60.0
    counter.decide()
    assert counter.question()[2:] == ("approved", MANAGER.user_id, None)
    assert counter.desk.one("SELECT decided_at FROM approvals") == (counter.desk.time(),)
    detail = counter.desk.one("SELECT detail FROM audit_log ORDER BY id DESC")[0]
    assert detail == f"approved by {MANAGER.user_id}"
    counter.desk.seconds = 90.0
    assert counter.sent()
    assert counter.question()[4] == counter.desk.time()


def test_a_no_is_final_gives_the_balance_back_and_the_customer_is_told(counter: Counter) -> None:
    counter.ask()
    assert counter.decide(approve=False) == Decided("rejected", None)
    assert "a manager rejected it" in counter.reason()
    assert "tell" in dict(counter.due())
    assert counter.events()[-1] == "awaiting_approval->failed"
    job = counter.claim()
    assert (job and job.topic, job and job.status) == ("tell", "failed")
    assert after_no(counter)
    assert str(counter.decide(approve=True)) == "closed"
    assert after_no(counter)


@pytest.mark.parametrize("first", [True, False])
def test_a_second_decision_is_refused_and_written_down(first: bool, counter: Counter) -> None:
    counter.ask()
    counter.decide(first)
    question, status = counter.question(), counter.desk.status()
    assert counter.decide(not first, COLLEAGUE) == Decided("closed")
    assert (counter.question(), counter.desk.status()) == (question, status)
    assert counter.events()[-1] == "late decision"
    words = ("approved", "rejected") if first else ("rejected", "approved")
    (detail,) = counter.desk.one("SELECT detail FROM audit_log ORDER BY id DESC")
    assert detail == f"{words[1]}, after it was {words[0]}"


@pytest.mark.parametrize("approve", [True, False])
def test_the_same_answer_of_the_same_person_again_is_a_receipt(
    approve: bool, counter: Counter
) -> None:
    counter.ask()
    word = counter.decide(approve).word
    seen = counter.events(), counter.due()
    assert counter.decide(approve) == Decided(word, None)
    assert (counter.events(), counter.due()) == seen


@pytest.mark.parametrize("approve", [True, False])
def test_the_same_answer_of_somebody_else_is_a_second_decision(
    approve: bool, counter: Counter
) -> None:
    counter.ask()
    counter.decide(approve)
    assert counter.decide(approve, COLLEAGUE) == Decided("closed")
    assert counter.events()[-1] == "late decision"


def test_a_change_of_mind_is_a_second_decision(counter: Counter) -> None:
    counter.ask()
    counter.decide(True)
    assert counter.decide(False) == Decided("closed")
    assert counter.sent()


def test_a_question_that_there_is_not_is_unknown(counter: Counter) -> None:
    counter.ask()
    decision = Decision("approval-of-nothing", True, "")
    assert decide(counter.desk, SAFE, [], decision, MANAGER) == Decided("unknown")
    assert counter.desk.status() == "awaiting_approval"


# Who may.


@pytest.mark.parametrize("approve", [True, False])
@pytest.mark.parametrize(
    "who",
    [
        replace(MANAGER, user_id=USER),
        replace(MANAGER, tenant_id=OTHER_TENANT),
        replace(MANAGER, permissions=frozenset()),
        replace(MANAGER, permissions=frozenset({"refund:create", "refund:approve:all"})),
    ],
    ids=["the requester", "another tenant", "no permission", "another permission"],
)
def test_nobody_else_may_decide_and_the_attempt_is_written_down(
    who: Session, approve: bool, counter: Counter
) -> None:
    counter.ask()
    seen = counter.question(), counter.due()
    assert counter.decide(approve, who) == Decided("denied")
    assert (counter.question(), counter.due()) == seen
    assert counter.desk.status() == "awaiting_approval"
    assert counter.events()[-1] == "denied"
    assert not counter.sent()
    assert str(counter.decide()) == "approved"


def test_who_may_not_decide_learns_nothing_of_a_closed_question(counter: Counter) -> None:
    counter.ask()
    counter.decide()
    assert counter.decide(True, replace(MANAGER, user_id=USER)) == Decided("denied")


# What a yes covers.


def test_a_yes_to_another_screen_closes_the_question(counter: Counter) -> None:
    operation = counter.asked("6000.00")
    smaller = digest_of(operation._replace(amount=600_00), 1)
    assert counter.decide(digest=smaller) == Decided("changed", None)
    assert counter.question()[2] == "changed"
    assert "the order has changed" in counter.reason()
    assert after_no(counter)


@pytest.mark.parametrize("change", ["cancel", "charge_back"])
def test_a_yes_to_an_order_that_has_changed_closes_the_question(
    change: str, counter: Counter
) -> None:
    counter.ask()
    getattr(counter, change)()
    assert str(counter.decide()) == "changed"
    assert after_no(counter)


def test_a_no_counts_whatever_the_screen_showed(counter: Counter) -> None:
    counter.ask()
    counter.charge_back()
    assert str(counter.decide(approve=False, digest="something else")) == "rejected"


def test_a_receipt_that_was_lost_says_changed_again(counter: Counter) -> None:
    counter.ask()
    counter.cancel()
    assert str(counter.decide()) == "changed"
    seen = counter.events()
    assert str(counter.decide()) == "changed"
    assert counter.events() == seen
    assert str(counter.decide(True, COLLEAGUE)) == "closed"


def test_without_revalidation_a_yes_counts_whatever_has_become_of_the_order(desk: Any) -> None:
    counter = Counter(desk, SAFE.but(approval=Approval(revalidate=False)))
    counter.ask()
    counter.cancel()
    assert str(counter.decide()) == "approved"
    assert counter.sent()


# Until when.


@pytest.mark.parametrize(("seconds", "word"), [(DAY - 1e-6, "approved"), (DAY, "expired")])
def test_a_yes_counts_until_the_question_expires(
    seconds: float, word: str, counter: Counter
) -> None:
    counter.ask()
    counter.desk.seconds = seconds
    assert str(counter.decide()) == word
    assert counter.question()[2] == word


def test_a_late_decision_closes_what_nobody_closed_and_is_written_down(counter: Counter) -> None:
    counter.ask()
    counter.desk.seconds = DAY + 1
    assert counter.decide() == Decided("expired", None)
    assert counter.question()[2:4] == ("expired", None)
    assert counter.events()[-3:] == ["late decision", "decision", "awaiting_approval->failed"]
    assert "nobody approved it in time" in counter.reason()
    assert after_no(counter)


def test_a_worker_closes_a_question_that_nobody_answered(counter: Counter) -> None:
    counter.ask()
    counter.desk.seconds = DAY - 1e-6
    assert counter.claim() is None
    assert counter.desk.status() == "awaiting_approval"
    counter.desk.seconds = DAY
    assert counter.claim() is None
    assert counter.question()[2:4] == ("expired", None)
    assert "nobody approved it in time" in counter.reason()
    assert counter.pending() == 0
    assert [topic for topic, _ in counter.due()] == ["tell"]
    assert str(counter.decide()) == "closed"
    assert after_no(counter)


@pytest.mark.parametrize("lifetime", [60.0, 7 * DAY])
def test_the_lifetime_is_the_designs(lifetime: float, desk: Any) -> None:
    counter = Counter(desk, SAFE.but(approval=Approval(lifetime=lifetime)))
    counter.ask()
    assert counter.due() == [("expire", desk.time(lifetime))]
    desk.seconds = lifetime - 1e-6
    assert str(counter.decide()) == "approved"


YES_AT_THE_END = SAFE.but(approval=Approval(when_expired="approved"))


def test_where_silence_is_a_yes_the_worker_lets_it_go(desk: Any) -> None:
    # Case B24.
    counter = Counter(desk, YES_AT_THE_END)
    counter.ask()
    desk.seconds = DAY
    assert counter.claim() is None
    assert counter.question()[2:4] == ("approved", None)
    assert desk.one("SELECT detail FROM audit_log ORDER BY id DESC") == ("approved by nobody",)
    assert counter.sent()


@pytest.mark.parametrize("approve", [True, False])
def test_where_silence_is_a_yes_a_late_decision_changes_nothing_about_it(
    approve: bool, desk: Any
) -> None:
    counter = Counter(desk, YES_AT_THE_END)
    operation = counter.asked()
    desk.seconds = DAY + 30.0
    assert counter.decide(approve) == Decided("expired", operation)
    assert "late decision" in counter.events()
    assert counter.sent()


@pytest.mark.parametrize("design", [SAFE, YES_AT_THE_END], ids=["no at the end", "yes at the end"])
@pytest.mark.parametrize("approve", [True, False])
def test_expiry_leaves_a_question_alone_that_was_answered(
    approve: bool, design: Design, desk: Any
) -> None:
    counter = Counter(desk, design)
    counter.ask()
    counter.decide(approve)
    assert counter.claim() is not None
    desk.execute("UPDATE outbox SET done_at = 'before' WHERE topic <> 'expire'")
    seen = counter.question(), desk.status(), counter.events(), counter.pending()
    desk.seconds = DAY
    assert counter.claim() is None
    assert (counter.question(), desk.status(), counter.events(), counter.pending()) == seen
    assert counter.due() == []


def test_where_silence_is_a_yes_a_no_in_time_is_still_a_no(desk: Any) -> None:
    counter = Counter(desk, YES_AT_THE_END)
    counter.ask()
    assert str(counter.decide(approve=False)) == "rejected"
    desk.seconds = DAY
    assert after_no(counter)


# Immediately before the first send.


@pytest.mark.parametrize("change", ["cancel", "charge_back"])
@pytest.mark.parametrize("amount", ["6000.00", "20.00"])
def test_what_a_person_agreed_to_is_not_sent_once_the_order_has_changed(
    amount: str, change: str, counter: Counter
) -> None:
    large = amount == "6000.00"
    counter.ask(amount)
    if large:
        counter.decide()
    getattr(counter, change)()
    job = counter.claim()
    assert (job is None) == large  # the smaller one needs money, and the order has it
    assert counter.desk.status() == ("failed" if large else "processing")
    assert counter.pending() == (0 if large else 20_00)
    assert ("the order has changed" in counter.reason()) == large


@pytest.mark.parametrize(("left", "goes"), [(20_00, True), (19_99, False)])
def test_a_small_refund_is_not_sent_once_the_order_has_too_little_left(
    left: int, goes: bool, counter: Counter
) -> None:
    counter.ask("20.00")
    counter.charge_back(7_500_00 - left)
    assert (counter.claim() is not None) == goes
    if goes:
        return
    assert counter.desk.status() == "failed"
    assert counter.pending() == 0
    assert "it exceeds the refundable balance" in counter.reason()
    assert "tell" in dict(counter.due())
    assert counter.events()[-1] == "pending->failed"
    job = counter.claim()
    assert job is not None
    assert job.topic == "tell"
    assert after_no(counter)


@pytest.mark.parametrize("amount", ["6000.00", "20.00"])
def test_without_revalidation_it_is_sent_whatever_has_changed(amount: str, desk: Any) -> None:
    counter = Counter(desk, SAFE.but(approval=Approval(revalidate=False)))
    counter.ask(amount)
    if amount == "6000.00":
        counter.decide()
    counter.cancel()
    assert counter.sent()


def test_an_order_that_is_gone_is_not_refunded(counter: Counter) -> None:
    counter.ask("20.00")
    counter.desk.execute("DELETE FROM orders")
    assert not counter.sent()
    assert counter.desk.status() == "failed"


@pytest.mark.parametrize(
    ("forgery", "reason"),
    [
        ("UPDATE approvals SET status = 'rejected'", "the order has changed"),
        ("UPDATE approvals SET digest = 'of something else'", "the order has changed"),
        ("DELETE FROM approvals", "nobody approved it"),
        ("UPDATE approvals SET used_at = '2026'", "the approval was used already"),
    ],
)
def test_a_consent_that_is_not_good_when_it_is_needed_sends_nothing(
    forgery: str, reason: str, counter: Counter
) -> None:
    counter.ask()
    counter.decide()
    counter.desk.execute(forgery)
    assert not counter.sent()
    assert reason in counter.reason()
    assert after_no(counter)


def test_an_unknown_outcome_is_sent_again_whatever_has_changed(counter: Counter) -> None:
    # It may have been paid: only the same key can find out.
    counter.ask()
    counter.decide()
    job = counter.claim()
    assert job is not None
    finish(counter.desk, SAFE, [], job.operation, UNKNOWN, job)
    counter.charge_back()
    counter.desk.seconds = 3600.0
    again = counter.claim()
    assert again is not None
    assert (again.topic, again.status, counter.desk.status()) == (
        "refund",
        "outcome_unknown",
        "processing",
    )


def test_a_dead_workers_claim_is_taken_over_whatever_has_changed(counter: Counter) -> None:
    counter.ask()
    counter.decide()
    counter.claim()
    counter.charge_back()
    counter.desk.seconds = 30.0
    assert counter.sent()
    assert counter.events()[-1] == "outcome_unknown->processing"


# Consent by the tool's name.

BY_TOOL = SAFE.but(approval=Approval(bind="tool"))


def test_one_yes_to_the_tool_is_taken_for_all_that_follow(desk: Any) -> None:
    # Case B41.
    counter = Counter(desk, BY_TOOL)
    counter.ask("5500.00", number=1)
    counter.decide()
    job = counter.claim()
    assert job is not None
    finish(desk, BY_TOOL, [], job.operation, Outcome("failed", "the card was closed."), job)
    begun = counter.ask("7500.00", number=2)
    assert (begun.word, begun.row) == ("new", None)
    assert len(desk.rows("SELECT * FROM approvals")) == 1
    while (job := counter.claim()) and job.topic != "refund":
        pass
    assert job is not None
    assert job.operation.amount == 7_500_00


@pytest.mark.parametrize("design", [SAFE, BY_TOOL], ids=["digest", "tool"])
def test_a_no_is_no_yes_to_what_follows(design: Design, desk: Any) -> None:
    counter = Counter(desk, design)
    counter.ask("6000.00", number=1)
    counter.decide(approve=False)
    counter.ask("7000.00", number=2)
    assert len(desk.rows("SELECT * FROM approvals")) == 2


def test_a_yes_to_this_exact_request_says_nothing_of_the_next_one(counter: Counter) -> None:
    counter.ask("5500.00", number=1)
    counter.decide()
    job = counter.claim()
    assert job is not None
    finish(counter.desk, SAFE, [], job.operation, Outcome("failed", "the card was closed."), job)
    begun = counter.ask("5500.00", number=2)
    assert (begun.row and begun.row.status) == "awaiting_approval"


def test_one_customers_yes_is_not_anothers(desk: Any) -> None:
    counter = Counter(desk, BY_TOOL.but(ownership=AnyOrder()))
    counter.ask("5500.00", number=1)
    counter.decide()
    desk.execute("UPDATE approvals SET requested_by = 'somebody else'")
    counter.desk.execute("UPDATE orders SET pending = 0")
    counter.ask("6000.00", number=2)
    assert len(desk.rows("SELECT * FROM approvals")) == 2


# A flag that the model can set.

BY_FLAG = SAFE.but(approval=ModelFlag())


@pytest.mark.parametrize(
    ("amount", "flag", "goes"),
    [
        ("5000.00", {}, True),
        ("5000.01", {}, False),
        ("6000.00", {"confirm": True}, True),
        ("6000.00", {"confirm": "true"}, False),
        ("6000.00", {"confirm": 1}, False),
        ("6000.00", {"confirm": False}, False),
    ],
)
def test_a_flag_in_the_tool_call_passes_for_consent(
    amount: str, flag: dict[str, Any], goes: bool, desk: Any
) -> None:
    # Case B22.
    counter = Counter(desk, BY_FLAG)
    begun = counter.ask(amount, call=ToolCall("call-1", "issue_refund", flag))
    if goes:
        assert (begun.word, desk.status()) == ("new", "pending")
    else:
        assert (begun.word, desk.status(), counter.pending()) == ("refused", "failed", 0)
        assert "set confirm to true" in counter.reason()
    assert desk.rows("SELECT * FROM approvals") == []


def test_a_design_that_asks_nobody_knows_no_decisions(desk: Any) -> None:
    counter = Counter(desk)
    counter.ask()
    counter.design = BY_FLAG
    assert counter.decide() == Decided("unknown")
    assert desk.status() == "awaiting_approval"


# The whole way, and designs without an outbox.


def large(make_call: Callable[..., ToolCall], amount: str = "6000.00") -> ToolCall:
    return make_call(order_id="ORD-7001", amount=amount)


def decision(desk: Any, approve: bool = True) -> Decision:
    name, digest = desk.one("SELECT id, digest FROM approvals")
    return Decision(name, approve, digest)


@pytest.fixture
def large_shop(shop: Any) -> Any:
    shop.order(7_500_00, "ORD-7001")
    return shop


def test_who_asks_and_asks_again_is_told_that_it_waits_for_a_person(
    large_shop: Any, runtime: Any, run: Any, make_call: Any, session: Session
) -> None:
    for _ in range(2):
        assert run(handle(runtime, SAFE, large(make_call), session)) == WAITING
    assert runtime.slept == []
    assert runtime.calls == []
    assert len(large_shop.rows("SELECT * FROM approvals")) == 1


PUBLISHING = SAFE.but(
    dispatch=Publish("after"),
    recovery=NoRecovery(),
    answer=FromRecord(follow_up=False),
)


def test_a_yes_publishes_what_a_brokers_worker_is_to_pay(
    large_shop: Any, runtime: Any, run: Any, make_call: Any, session: Session
) -> None:
    assert run(handle(runtime, PUBLISHING, large(make_call), session)) == WAITING
    assert runtime.calls == []
    assert large_shop.rows("SELECT * FROM outbox") == []
    assert str(run(consent(runtime, PUBLISHING, decision(large_shop), MANAGER))) == "approved"
    ((name, operation),) = runtime.calls
    assert (name, operation.amount) == ("broker.publish", 6_000_00)
    assert large_shop.status() == "pending"


def test_a_yes_to_an_inline_design_pays_at_once(
    large_shop: Any, runtime: Any, run: Any, make_call: Any, session: Session, inline: Design
) -> None:
    assert run(handle(runtime, inline, large(make_call), session)) == WAITING
    assert runtime.calls == []
    assert str(run(consent(runtime, inline, decision(large_shop), MANAGER))) == "approved"
    assert [name for name, _ in runtime.calls] == ["provider.refund"]
    assert large_shop.status() == "succeeded"
    paid = large_shop.one("SELECT refunded, pending FROM orders WHERE id = 'ORD-7001'")
    assert paid == (6_000_00, 0)
    again = run(consent(runtime, inline, decision(large_shop), MANAGER))
    assert again == Decided("approved", None)
    assert len(runtime.calls) == 1


@pytest.mark.parametrize("design", ["inline", "publish", "outbox"])
def test_a_no_carries_nothing_on(
    design: str,
    large_shop: Any,
    runtime: Any,
    run: Any,
    make_call: Any,
    session: Session,
    inline: Design,
) -> None:
    chosen = {"inline": inline, "publish": PUBLISHING, "outbox": SAFE}[design]
    run(handle(runtime, chosen, large(make_call), session))
    assert str(run(consent(runtime, chosen, decision(large_shop, False), MANAGER))) == "rejected"
    assert runtime.calls == []
    assert large_shop.status() == "failed"
    answer: Answer = run(handle(runtime, chosen, large(make_call), session))
    assert (answer.kind, "a manager rejected it" in answer.text) == ("refused", True)


def test_a_yes_whose_commit_nobody_acknowledged_counts_once(
    large_shop: Any, runtime: Any, run: Any, make_call: Any, session: Session
) -> None:
    run(handle(runtime, SAFE, large(make_call), session))
    runtime.acks.append(CommitUnknown("broken"))
    assert str(run(consent(runtime, SAFE, decision(large_shop), MANAGER))) == "approved"
    assert runtime.transactions == ["begin", "decide", "decide"]
    events = [row[0] for row in large_shop.rows("SELECT event FROM audit_log ORDER BY id")]
    assert events == ["->pending", "pending->awaiting_approval", "awaiting_approval->pending"]


def test_a_question_without_an_outbox_is_closed_by_the_first_late_answer(
    large_shop: Any, runtime: Any, run: Any, make_call: Any, session: Session
) -> None:
    run(handle(runtime, PUBLISHING, large(make_call), session))
    large_shop.seconds = DAY
    assert str(run(consent(runtime, PUBLISHING, decision(large_shop), MANAGER))) == "expired"
    assert runtime.calls == []
    assert large_shop.status() == "failed"


# Settings.


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"bind": "name"}, r"bind='name'\): say 'digest' or 'tool'"),
        ({"when_expired": "yes"}, r"when_expired='yes'\): say 'failed' or 'approved'"),
        ({"above": -1}, r"above=-1\): give whole units of a currency, 0 or more"),
        ({"above": "5000"}, r"above='5000'\): it should be a valid integer"),
        ({"revalidate": 1}, r"revalidate=1\): it should be a valid boolean"),
        ({"lifetime": 0.0}, r"Approval\(lifetime=0.0\): give seconds, more than 0"),
        ({"lifetime": float("nan")}, r"lifetime=nan\): it should be a finite number"),
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Approval(**wrong)


# Any order.

WHO = {
    "manager": MANAGER,
    "colleague": COLLEAGUE,
    "requester": replace(MANAGER, user_id=USER),
    "stranger": replace(MANAGER, tenant_id=OTHER_TENANT),
    "clerk": replace(MANAGER, permissions=frozenset({"refund:create"})),
}
ANSWERS = [
    ("decide", who, approve, screen)
    for who in ("manager", "manager", "colleague", "requester", "stranger", "clerk")
    for approve in (True, False)
    for screen in ("shown", "now", "wrong")
]
OTHERS = [
    *(("wait", seconds) for seconds in (31.0, 31.0, DAY / 2, DAY)),
    *(("claim", outcome) for outcome in (PAID, UNKNOWN, UNKNOWN, None)),
    *((what,) for what in ("cancel", "charge back", "ask again")),
]
STEP = st.sampled_from(ANSWERS) | st.sampled_from(OTHERS) | st.sampled_from(OTHERS)


@settings(max_examples=300)
@given(st.sampled_from(["6000.00", "20.00"]), st.lists(STEP, min_size=3, max_size=15))
def test_money_is_asked_for_once_and_only_after_a_yes_to_the_present_state_of_the_order(
    new_desk: Callable[[], Any], amount: str, steps: list[tuple[Any, ...]]
) -> None:
    counter = Counter(new_desk())
    desk = counter.desk
    operation = counter.asked(amount)
    large_one, shown = amount == "6000.00", digest_of(operation, 1)
    closed: tuple[str, str] | None = None
    consented = sent = final = False
    for step, *what in steps:
        (version,) = desk.one("SELECT version FROM orders")
        if step == "decide":
            if not large_one:
                continue
            who, approve, screen = what
            digest = {"shown": shown, "now": digest_of(operation, version), "wrong": "x"}[screen]
            word = counter.decide(approve, WHO[who], digest).word
            if who not in ("manager", "colleague"):
                assert word == "denied"
            elif closed:
                assert word == "closed" or (word, who) == closed, "a second answer"
            else:
                if desk.seconds >= DAY:
                    expected = "expired"
                elif not approve:
                    expected = "rejected"
                else:
                    good = digest == shown and version == 1
                    expected = "approved" if good else "changed"
                assert word == expected
                closed, consented = (word, who), word == "approved"
        elif step == "wait":
            desk.seconds += what[0]
        elif step == "cancel":
            cancel_order(desk, TENANT, "ORD-7001")
        elif step == "charge back":
            counter.charge_back()
        elif step == "ask again":
            assert counter.ask(amount).word == "known"
        elif (job := counter.claim()) is None:
            (asked,) = desk.one("SELECT COUNT(*) FROM approvals WHERE status = 'expired'")
            closed = closed or (("expired", "nobody") if asked else None)
        elif job.topic == "refund":
            if not sent:
                assert job.status == "pending"
                assert version == 1 or not large_one, "the order has changed since the check"
                assert consented or not large_one, "nobody said yes to this"
                sent = True
            else:
                assert job.status in ("outcome_unknown", "processing"), "a second first send"
            assert not final
            if what[0] is not None:
                finish(desk, SAFE, [], job.operation, what[0], job)
                final = what[0] is PAID
    status, pending = desk.status(), counter.pending()
    assert (status == "succeeded") == final
    assert status != "failed" or not sent, "what was sent may have been paid"
    assert pending == (0 if status in ("succeeded", "failed") else operation.amount)
    assert len(desk.rows("SELECT * FROM approvals")) == large_one
    assert (
        len(desk.rows("SELECT * FROM changes WHERE before = 'pending' AND after = 'processing'"))
        == sent
    )
    if sent and not final:
        desk.seconds += DAY
        assert counter.sent(), "nobody finds out what became of it"
