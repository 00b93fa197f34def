"""Designs that do too little, or say too much: nobody is paid twice, and all of them are wrong.

A judge who only counts payments calls a service right that refuses everybody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator import Design, Scenario, designs, explore, faults, replay
from simulator.service import actions, approval, schemas, worker
from simulator.service.answers import VERIFYING, Answer, FromRecord
from simulator.service.approval import Approval, Decided, ModelFlag
from simulator.service.operations import REFUND, DurableRecord, Row
from simulator.service.recovery import SameKey
from simulator.service.schemas import InvalidRequest, Session, ToolCall
from simulator.world.scenario import (
    ApproverSettings,
    Intent,
    Order,
    Outside,
    ProviderSettings,
    Submission,
    WebhookSettings,
)
from simulator.world.settings import OTHER_USER

SAFE = designs.SAFE
ONE = Scenario.one_refund()


def broken(design: Design, scenario: Scenario) -> frozenset[str]:
    """What a design breaks though nothing goes wrong."""
    found = explore(design, scenario, max_faults=0).counterexample
    return frozenset() if found is None else found.verdict


# Whoever asks for what is theirs gets it.


def unreadable(call: ToolCall, session: Session) -> Any:
    raise InvalidRequest("No.", "amount", "invalid")


@pytest.mark.parametrize(
    "scenario", [ONE, Scenario.double_click(), Scenario.late_redelivery(), Scenario.webhook_storm()]
)
def test_a_service_that_can_read_no_call_loses_every_refund(scenario: Scenario) -> None:
    assert "lost_refund" in broken(SAFE.but(schema=unreadable), scenario)


def test_a_service_that_reads_only_small_amounts_loses_the_others() -> None:
    def small(call: ToolCall, session: Session) -> Any:
        request = SAFE.schema(call, session)
        if request.amount >= 100:
            raise InvalidRequest("Too much.", "amount", "out_of_range")
        return request

    assert "lost_refund" in broken(SAFE.but(schema=small), ONE)


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount": "5e2"},
        {"amount": "-500.00"},
        {"order_id": "ORD-1002"},
        {"order_id": "ORD-9999"},
        {"note": "please"},
    ],
)
def test_what_no_service_could_carry_out_is_not_lost(wrong: dict[str, Any]) -> None:
    # The agent was told what is wrong, and does not correct it.
    scenario = ONE.but(
        orders=(Order(), Order("ORD-1002", user_id=OTHER_USER)),
        submissions=(Submission("intent-1", arguments=wrong),),
    )
    run = replay(SAFE, scenario)
    assert run.verdict == frozenset()
    assert run.ledger.empty
    corrected = scenario.but(submissions=(*scenario.submissions, Submission("intent-1", at=10.0)))
    assert broken(SAFE.but(schema=unreadable), corrected) == {"lost_refund"}


@pytest.mark.parametrize(
    "approval", [ModelFlag(), Approval(lifetime=1.0)], ids=["asks for a flag", "asks for a second"]
)
def test_a_refund_that_a_manager_would_agree_to_is_owed(approval: Any) -> None:
    design = SAFE.but(approval=approval)
    assert "lost_refund" in broken(design, Scenario.approval_between())


@pytest.mark.parametrize("word", ["changed", "denied", "closed"])
def test_a_service_that_takes_no_yes_loses_what_was_agreed_to(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approval, "decide", lambda *_: Decided(word))
    assert "lost_refund" in broken(SAFE, Scenario.approval_between())


@pytest.mark.parametrize(
    "person",
    [
        ApproverSettings(says=(("intent-1", "no"),)),
        ApproverSettings(says=(("intent-1", "nothing"),)),
        ApproverSettings(permissions=frozenset({"refund:create"})),
        ApproverSettings(delay=25 * 3600.0),
    ],
    ids=["no", "nothing", "may not", "a day late"],
)
def test_without_a_good_yes_a_refusal_is_true(person: ApproverSettings) -> None:
    scenario = Scenario.second_thoughts().but(approver=person)
    assert broken(SAFE, scenario) == frozenset()
    assert replay(SAFE, scenario).ledger.empty


@pytest.mark.parametrize("scenario", [Scenario.cancelled_orders(), Scenario.strangers_goods()])
def test_an_action_that_nothing_speaks_against_is_owed_too(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert broken(SAFE, scenario) == frozenset()
    monkeypatch.setattr(actions, "cancel_orders", lambda *_: "not today.")
    monkeypatch.setattr(actions, "delete_profile", lambda *_: "not today.")
    assert "lost_refund" in broken(SAFE, scenario)


def test_a_profile_that_may_not_go_yet_is_not_lost() -> None:
    run = replay(SAFE, Scenario.deleted_profile())
    assert run.verdict == frozenset()


# A no is final, and a yes comes first.


def test_a_no_that_leaves_the_question_open_is_no_no(monkeypatch: pytest.MonkeyPatch) -> None:
    close = approval._close

    def forgetful(tx: Any, d: Any, notes: Any, operation: Any, which: str, status: str, who: Any):  # type: ignore[no-untyped-def]
        if status != "rejected":
            close(tx, d, notes, operation, which, status, who)

    assert broken(SAFE, Scenario.second_thoughts()) == frozenset()
    monkeypatch.setattr(approval, "_close", forgetful)
    assert broken(SAFE, Scenario.second_thoughts()) == {"unapproved_refund"}


@pytest.mark.parametrize("scenario", [Scenario.cancelled_orders(), Scenario.strangers_goods()])
def test_what_was_done_before_the_yes_was_done_without_it(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = approval.ask

    def afterwards(tx: Any, d: Any, notes: Any, operation: Any) -> bool:
        if operation.action == REFUND:
            return ask(tx, d, notes, operation)
        question = {
            "id": f"approval-{operation.id}",
            "operation_id": operation.id,
            "digest": approval.present(tx, operation),
            "requested_by": operation.user_id,
            "expires_at": tx.time(d.approval.lifetime),
        }
        tx.execute(approval.INSERT, question)
        return False  # done at once; the manager is asked all the same

    monkeypatch.setattr(approval, "ask", afterwards)
    assert "unapproved_refund" in broken(SAFE, scenario)


def test_where_nothing_is_recorded_an_action_needs_its_yes_as_well() -> None:
    assert "unapproved_refund" in broken(designs.NAIVE, Scenario.cancelled_orders())


# A repetition gets what is recorded.


@pytest.mark.parametrize(
    "scenario", [Scenario.double_click(), Scenario.late_redelivery(), Scenario.new_thought()]
)
def test_a_mismatch_is_none_where_all_calls_are_the_same(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DurableRecord, "look", lambda *_: "conflict")
    assert "false_answer" in broken(SAFE, scenario)


def test_a_mismatch_is_one_where_they_are_not() -> None:
    assert broken(SAFE, Scenario.changed_payload()) == frozenset()


@pytest.mark.parametrize("scenario", [Scenario.resubmitted_elsewhere(), Scenario.late_redelivery()])
def test_who_asks_again_when_all_is_over_is_told_how_it_ended(scenario: Scenario) -> None:
    class Later(FromRecord):
        def __call__(self, begun: str, row: Row | None) -> Answer:
            return VERIFYING if begun == "known" else FromRecord.__call__(self, begun, row)

    assert broken(SAFE.but(answer=Later()), scenario) == {"untold"}


def test_one_order_in_two_spellings_is_one_order() -> None:
    composed, decomposed = "ORD-\u00e9-1", "ORD-e\u0301-1"
    scenario = ONE.but(
        orders=(Order(composed),),
        intents=(Intent("intent-1", order_id=composed),),
        submissions=(
            Submission("intent-1", arguments={"order_id": decomposed}),
            Submission("intent-1", at=10.0),
        ),
    )
    assert broken(SAFE, scenario) == frozenset()


# What a call says wrongly is no word on the refund.

TWO_SHOPPERS = (Order(), Order("ORD-1002", user_id=OTHER_USER))


@pytest.mark.parametrize("other", ["ORD-1002", "ORD-9999"])
@pytest.mark.parametrize("first", [True, False])
def test_a_wrong_order_takes_no_word_back_and_says_none(other: str, first: bool) -> None:
    wrong = {"order_id": other}
    scenario = ONE.but(
        orders=TWO_SHOPPERS,
        submissions=(
            Submission("intent-1", arguments=wrong if first else {}),
            Submission("intent-1", at=10.0, thought=2, arguments={} if first else wrong),
        ),
    )
    run = replay(SAFE, scenario)
    assert run.verdict == frozenset()
    assert list(run.ledger.intent) == ["intent-1"]
    kinds = list(run.answers.answer)
    assert kinds == (["refused", "done"] if first else ["done", "conflict"])


@pytest.mark.parametrize("first", [True, False])
def test_a_strangers_order_among_those_to_cancel_takes_no_word_back(first: bool) -> None:
    mine, both = {"order_ids": ["ORD-1001"]}, {"order_ids": ["ORD-1001", "ORD-1002"]}
    calls = (both, mine) if first else (mine, both)
    scenario = Scenario(
        orders=TWO_SHOPPERS,
        intents=(Intent("intent-1", owed=False, permissions=frozenset({"order:cancel"})),),
        submissions=tuple(
            Submission("intent-1", at=10.0 * n, thought=n + 1, tool="cancel_orders", arguments=call)
            for n, call in enumerate(calls)
        ),
    )
    run = replay(SAFE, scenario)
    assert run.verdict == frozenset()
    kinds = list(run.answers.answer)
    assert kinds == (["refused", "done"] if first else ["done", "conflict"])


# What else happens to the order.


def test_a_refund_beside_the_cancellation_of_its_order_is_paid() -> None:
    scenario = ONE.but(
        intents=(
            Intent("intent-1"),
            Intent("intent-2", owed=False, permissions=frozenset({"order:cancel"})),
        ),
        submissions=(
            Submission("intent-1"),
            Submission(
                "intent-2",
                at=0.0005,
                instance="backend-2",
                tool="cancel_orders",
                arguments={"order_ids": ["ORD-1001"]},
            ),
        ),
    )
    run = replay(SAFE, scenario)
    assert run.verdict == frozenset()
    assert list(run.ledger.intent) == ["intent-1"]
    assert explore(SAFE, scenario, max_faults=1).counterexample is None


@pytest.mark.parametrize(
    "provider",
    [
        ProviderSettings(declines=frozenset({"intent-1"}), work=1.5),
        ProviderSettings(
            settles_after=3600.0,
            fails_to_settle=frozenset({"intent-1"}),
            webhooks=WebhookSettings(),
        ),
    ],
    ids=["declined", "returned by the bank"],
)
def test_what_was_held_for_another_refund_was_not_there(provider: ProviderSettings) -> None:
    scenario = Scenario.two_partial_refunds().but(provider=provider)
    run = replay(SAFE, scenario)
    assert run.verdict == frozenset()
    assert run.ledger.empty


def test_what_waits_for_a_manager_is_held_too() -> None:
    scenario = Scenario(
        orders=(Order("ORD-7001", captured=7_500_00),),
        intents=(
            Intent("intent-1", order_id="ORD-7001", amount=6_000_00),
            Intent("intent-2", order_id="ORD-7001", amount=2_000_00),
        ),
        submissions=(Submission("intent-1"), Submission("intent-2", at=10.0)),
        approver=ApproverSettings(says=(("intent-1", "no"),)),
    )
    assert broken(SAFE, scenario) == frozenset()


def test_a_balance_that_nobody_holds_refuses_nobody() -> None:
    class Stingy(type(SAFE.balance)):  # type: ignore[misc]
        def take(self, tx: Any, operation: Any) -> bool:
            return False

    assert "lost_refund" in broken(SAFE.but(balance=Stingy()), Scenario.two_equal_refunds())


# Texts that nobody reads.


@pytest.mark.parametrize(
    "text",
    [
        "\ud800abc",
        "\x00",
        "x" * 10_000_000,
        "",
        "ключ",
        pytest.param(10**5000, id="a number"),
        None,
    ],
)
def test_whatever_a_model_writes_for_a_key_the_refund_is_paid(text: Any) -> None:
    scenario = ONE.but(submissions=(Submission("intent-1", arguments={"refund_request_id": text}),))
    run = replay(SAFE, scenario)
    assert run.verdict == frozenset()
    assert len(run.ledger) == 1


def test_an_amount_of_thousands_of_digits_is_refused_in_words() -> None:
    scenario = ONE.but(submissions=(Submission("intent-1", arguments={"amount": 10**5000}),))
    run = replay(SAFE, scenario)
    assert run.verdict == frozenset()
    assert list(run.answers.answer) == ["invalid"]
    assert "huge number" in str(run)


@pytest.mark.parametrize("make", [lambda: Scenario.cancelled_orders(), lambda: ONE])
def test_a_call_id_that_no_database_keeps_is_kept_as_a_digest(
    make: Callable[[], Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = make()
    call = type(scenario).call

    def odd(self: Scenario, submission: Submission) -> ToolCall:
        made = call(self, submission)
        return ToolCall("\ud800", made.name, made.arguments)

    monkeypatch.setattr(type(scenario), "call", odd)
    assert replay(SAFE, scenario).verdict == frozenset()


def test_the_log_says_who_said_no() -> None:
    run = replay(SAFE, Scenario.second_thoughts())
    (detail,) = run.audit.detail[run.audit.event == "decision"]
    assert detail.startswith("rejected by ")


def test_a_task_without_its_row_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    down = [faults.provider_down("provider.refund", seconds=30 * 3600.0)]
    assert "audit_gap" not in replay(SAFE, ONE, down).verdict
    entry = worker.Notes.entry

    def silent(self: Any, intent: str, operation: Any, event: str, detail: str) -> None:
        if event != "task":
            entry(self, intent, operation, event, detail)

    monkeypatch.setattr(worker.Notes, "entry", silent)
    assert "audit_gap" in replay(SAFE, ONE, down).verdict


# The judge has a law of its own.


def test_a_service_that_reads_no_hundred_anywhere_loses_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parse = schemas._check_amount

    def small(amount: Any) -> None:
        parse(amount)
        if float(amount) >= 100:
            raise InvalidRequest("Too much.", "amount", "out_of_range")

    monkeypatch.setattr(schemas, "_check_amount", small)
    assert "lost_refund" in broken(SAFE, ONE)


@pytest.mark.parametrize(
    ("what", "law", "scenario", "breaks"),
    [
        ("BULK", 3, "cancelled_orders", "unapproved_refund"),
        ("action_asks_consent", lambda *_: False, "strangers_goods", "unapproved_refund"),
    ],
)
def test_a_service_with_a_milder_law_is_found(
    what: str, law: Any, scenario: str, breaks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, what, law)
    if what == "action_asks_consent":
        monkeypatch.setattr(approval, what, law)
    assert breaks in broken(SAFE, getattr(Scenario, scenario)())


def test_whoever_may_ask_may_not_for_that_approve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approval, "permission", lambda action: f"{action}:create")
    assert "unapproved_refund" in broken(SAFE, Scenario.consent_without_right())


@pytest.mark.parametrize("scenario", [Scenario.injected_arguments(), Scenario.without_permission()])
def test_a_promise_that_nothing_can_keep_is_none(scenario: Scenario) -> None:
    class Never(FromRecord):
        def __call__(self, begun: str, row: Row | None) -> Answer:
            if begun in ("denied", "invalid"):
                return VERIFYING
            return FromRecord.__call__(self, begun, row)

    assert "untold" in broken(SAFE.but(answer=Never()), scenario)


@pytest.mark.parametrize("scenario", [Scenario.resubmitted_elsewhere(), Scenario.late_redelivery()])
def test_thanks_are_no_answer(scenario: Scenario) -> None:
    class Thanks(FromRecord):
        def __call__(self, begun: str, row: Row | None) -> Answer:
            return Answer("info", "Thanks.") if begun == "known" else FromRecord()(begun, row)

    assert "untold" in broken(SAFE.but(answer=Thanks()), scenario)


# What SAFE has to be right in.


@pytest.mark.parametrize("window", [1.0, 3.0])
def test_where_one_request_at_a_time_is_taken_asking_does_not_take_its_place(
    window: float,
) -> None:
    busy = ONE.but(provider=ProviderSettings(limit=1, limit_window=window))
    down = [faults.provider_down("provider.refund", seconds=42.0)]
    run = replay(SAFE, busy, down)
    assert run.verdict == frozenset()
    assert len(run.ledger) == 1


@pytest.mark.parametrize("intents", [5, 8])
def test_a_queue_before_a_slow_provider_is_worked_off(intents: int) -> None:
    names = [f"intent-{number}" for number in range(1, intents + 1)]
    scenario = Scenario(
        intents=tuple(Intent(name, amount=50_00) for name in names),
        submissions=tuple(Submission(name) for name in names),
        provider=ProviderSettings(limit=1, limit_window=60.0),
    )
    run = replay(SAFE, scenario)
    assert run.verdict == frozenset()
    assert len(run.ledger) == intents


def test_of_two_refunds_that_stand_in_each_others_way_one_is_paid() -> None:
    scenario = Scenario.charged_back_in_between().but(
        intents=(Intent("intent-1", amount=250_00), Intent("intent-2", amount=250_00)),
        submissions=(Submission("intent-1"), Submission("intent-2")),
    )
    assert explore(SAFE, scenario, max_faults=1).counterexample is None
    stopped = faults.pause("worker-1:claim", when="after", seconds=5.0)
    assert len(replay(SAFE, scenario, [stopped]).ledger) == 2  # the chargeback, and one of them


@pytest.mark.parametrize("webhooks", [WebhookSettings(), None], ids=["reports", "silence"])
def test_what_was_accepted_by_a_provider_that_cannot_be_asked_waits_for_its_report(
    webhooks: WebhookSettings | None,
) -> None:
    provider = ProviderSettings(settles_after=48 * 3600.0, lookup_lag=None, webhooks=webhooks)
    run = replay(SAFE, ONE.but(provider=provider))
    assert run.verdict == frozenset()
    assert run.tasks.empty == (webhooks is not None)


def test_a_bulk_cancellation_of_an_order_that_changed_meanwhile_may_be_refused() -> None:
    taken = Outside("chargeback", at=30.0, amount=1_00)
    scenario = Scenario.cancelled_orders().but(
        outside=(taken,), provider=ProviderSettings(webhooks=WebhookSettings())
    )
    assert broken(SAFE, scenario) == frozenset()


def test_two_tools_for_one_wish_are_two_things() -> None:
    scenario = Scenario(
        orders=(Order(), Order("ORD-1002")),
        intents=(Intent("intent-1", permissions=frozenset({"refund:create", "order:cancel"})),),
        submissions=(
            Submission("intent-1"),
            Submission(
                "intent-1",
                at=10.0,
                tool="cancel_orders",
                arguments={"order_ids": ["ORD-1001", "ORD-1002"]},
            ),
        ),
    )
    assert broken(SAFE, scenario) == frozenset()


def test_two_things_from_outside_in_one_instant_are_two() -> None:
    scenario = Scenario(
        submissions=(Submission("intent-1", at=60.0),),
        outside=(Outside("cancel", at=1.0), Outside("chargeback", at=1.0, amount=100_00)),
        provider=ProviderSettings(webhooks=WebhookSettings()),
    )
    assert broken(SAFE, scenario) == frozenset()


def test_a_colleague_pays_no_negative_sum() -> None:
    scenario = Scenario(
        intents=(Intent("intent-1", amount=300_00),),
        outside=(
            Outside("chargeback", at=30.0, amount=250_00),
            Outside("cancel", at=300.0),
        ),
        provider=ProviderSettings(webhooks=WebhookSettings()),
    )
    run = replay(SAFE, scenario)
    assert run.verdict == frozenset()
    assert min(run.ledger.amount) > 0


def test_one_refund_that_never_heals_excuses_no_question_about_another() -> None:
    hasty = SAFE.but(recovery=SameKey(horizon=0.5))
    for scenario in (Scenario.poisoned_event(), Scenario.two_equal_refunds()):
        found = explore(hasty, scenario, max_faults=1, breaks=["needless_task"])
        assert found.counterexample is not None


CANCELS = frozenset({"order:cancel"})


def cancelling(*calls: tuple[str, ...]) -> Scenario:
    """One wish, and its calls ten seconds apart, each with the orders that it names."""
    return Scenario(
        orders=(Order(), Order("ORD-1002")),
        intents=(Intent("intent-1", owed=False, permissions=CANCELS),),
        submissions=tuple(
            Submission(
                "intent-1",
                at=10.0 * number,
                thought=number + 1,
                tool="cancel_orders",
                arguments={"order_ids": list(orders)},
            )
            for number, orders in enumerate(calls)
        ),
    )


def test_another_order_to_cancel_is_another_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = cancelling(("ORD-1001",), ("ORD-1002",))
    assert broken(SAFE, scenario) == frozenset()
    monkeypatch.setattr(DurableRecord, "look", lambda *_: "known")
    assert broken(SAFE, scenario) == {"conflict_ignored"}


def test_a_second_call_of_one_order_excuses_no_two(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = cancelling(("ORD-1001", "ORD-1002"), ("ORD-1001",))
    assert broken(SAFE, scenario) == frozenset()
    monkeypatch.setattr(actions, "BULK", 3)
    assert "unapproved_refund" in broken(SAFE, scenario)
