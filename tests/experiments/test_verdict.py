"""Each invariant is broken here by a design that has earned it, and by no other cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from simulator import Design, Scenario, designs, faults, replay
from simulator.experiments.replay import store
from simulator.experiments.verdict import (
    ALWAYS,
    AT_QUIESCENCE,
    INVARIANTS,
    Verdict,
    judge,
    sentences,
)
from simulator.service import approval, profiles, silence
from simulator.service.answers import Answer, FromRecord
from simulator.service.approval import Approval
from simulator.service.authorization import AnyOrder, FromArguments
from simulator.service.balance import NoBalance
from simulator.service.keys import NoKey
from simulator.service.outbox import Outbox
from simulator.service.recovery import AskOnly, NoRecovery, SameKey
from simulator.service.schemas import FreeDict, RefundRequest, Session, ToolCall, parse_refund
from simulator.service.webhooks import IgnoreWebhooks
from simulator.world.approver import Consent
from simulator.world.faults import Fault, Plan
from simulator.world.provider import Effect
from simulator.world.scenario import (
    USER,
    ApproverSettings,
    Intent,
    Order,
    Outside,
    ProviderSettings,
    Submission,
    WebhookSettings,
)
from simulator.world.settings import MANAGER
from simulator.world.world import World

SOMEBODY_ELSE = "deadbeef-1234-4abc-8def-000000009999"
NOT_MINE = Scenario(
    name="not_mine",
    orders=(Order(user_id=SOMEBODY_ELSE),),
    intents=(Intent("intent-1", user_id=USER, owed=False),),
    submissions=(Submission("intent-1"),),
)
LOST = faults.lose_response("provider.refund")
ABLATED = designs.ablations()

CASES: list[tuple[str, Design, Scenario, Sequence[Fault]]] = [
    ("double_refund", designs.NAIVE, Scenario.one_refund(), [LOST]),
    ("over_refund", designs.PROVIDER_KEY, Scenario.two_partial_refunds(), []),
    ("unauthorized_refund", designs.SAFE.but(ownership=lambda tx, op: True), NOT_MINE, []),
    ("unapproved_refund", ABLATED["approval"], Scenario.approval_between(), []),
    ("conflict_ignored", ABLATED["fingerprint"], Scenario.changed_payload(), []),
    (
        # The zombie wakes up, sends again, hears nothing, and writes that over the result.
        "illegal_transition",
        ABLATED["fencing token"],
        Scenario.one_refund(),
        [
            faults.lose_response("worker-1:provider.refund"),
            faults.pause("worker-1:finish", when="before", seconds=42),
        ],
    ),
    ("false_answer", designs.ONE_SHOT, Scenario.one_refund(), [LOST]),
    (
        "lost_refund",
        designs.ONE_SHOT,
        Scenario.one_refund(),
        [faults.lose_request("provider.refund")],
    ),
    ("untold", designs.OUTBOX, Scenario.one_refund(), [faults.crash("worker-1:claim")]),
    ("stuck", ABLATED["lease"], Scenario.one_refund(), [faults.crash("worker-1:claim")]),
    (
        "needless_task",
        # Too early for a provider that cannot be asked: a human is, and all was well.
        designs.SAFE.but(recovery=SameKey(horizon=2.0)),
        Scenario.one_refund().but(provider=ProviderSettings(lookup_lag=None)),
        [LOST],
    ),
    ("books_differ", designs.NAIVE, Scenario.one_refund(), [LOST]),
    (
        "audit_gap",
        ABLATED["audit in the transaction"],
        Scenario.one_refund(),
        [faults.crash("worker-1:finish", when="after")],
    ),
]


@pytest.mark.parametrize(("name", "design", "scenario", "struck"), CASES)
def test_the_invariant_is_seen_to_break(
    name: str, design: Design, scenario: Scenario, struck: Sequence[Fault]
) -> None:
    run = replay(design, scenario, struck)
    assert not run.unstruck
    assert name in run.verdict, f"{run}"


@pytest.mark.parametrize(("name", "design", "scenario", "struck"), CASES)
def test_the_safe_design_breaks_nothing_under_the_same_faults(
    name: str, design: Design, scenario: Scenario, struck: Sequence[Fault]
) -> None:
    assert replay(designs.SAFE, scenario, struck).verdict == frozenset()


def test_every_invariant_has_a_case() -> None:
    assert {case[0] for case in CASES} == set(INVARIANTS)
    judged = {check.__name__ for check in ALWAYS + AT_QUIESCENCE} | {"stuck"}
    assert judged == set(INVARIANTS)


def test_a_true_refusal_is_no_loss() -> None:
    run = replay(designs.SAFE, Scenario.declined())
    assert run.verdict == frozenset()
    assert run.ledger.empty
    assert set(run.told.statement) == {"refused"}


def test_of_two_refunds_that_exceed_the_order_either_may_win() -> None:
    run = replay(designs.SAFE, Scenario.two_partial_refunds())
    assert run.verdict == frozenset()
    assert len(run.ledger) == 1
    assert set(run.told.statement) == {"done", "refused"}


def test_done_before_the_money_moved_is_false_even_if_it_moves_later() -> None:
    hopeful = designs.SAFE.but(answer=lambda begun, row: Answer("done", "Paid!"))
    slow = [faults.pause("worker-1:provider.refund", when="before_send", seconds=20)]
    run = replay(hopeful, faults=slow)
    assert "false_answer" in run.verdict
    assert len(run.ledger) == 1


def test_an_open_question_is_an_answer_to_a_fault_that_never_heals() -> None:
    dark = [faults.provider_down("provider.refund", seconds=60)]
    run = replay(designs.SAFE, faults=dark, heal=False)
    assert run.verdict == frozenset()
    assert list(run.tasks.topic) == ["refund"]
    assert [event.what for event in run.trace if event.kind == "task"] == ["refund"]
    unasked = designs.SAFE.but(
        recovery=NoRecovery(), on_silence=silence.outcome_unknown, answer=FromRecord(False)
    )
    assert "stuck" in replay(unasked, faults=dark, heal=False).verdict


def test_an_hour_without_the_provider_needs_no_human() -> None:
    run = replay(designs.SAFE, faults=[faults.provider_down("provider.refund", seconds=3600)])
    assert run.verdict == frozenset()
    assert run.tasks.empty
    assert run.time_to_answer["intent-1"] > 3600


def test_a_history_that_never_rests_is_stuck() -> None:
    restless = designs.NAIVE.but(retry=lambda attempt, random: 0.0)
    dark = [faults.provider_down("provider.refund", seconds=60)]
    assert replay(restless, faults=dark, heal=False).verdict == {"stuck"}


def test_a_rate_limit_is_waited_for_and_is_no_loss() -> None:
    busy = Scenario.two_partial_refunds().but(
        orders=(Order(captured=600_00),), provider=ProviderSettings(limit=1, limit_window=5.0)
    )
    run = replay(designs.SAFE, busy)
    assert run.verdict == frozenset()
    assert len(run.ledger) == 2
    assert any(event.kind == "limited" for event in run.trace)


def test_a_verdict_says_what_broke_in_a_fixed_order() -> None:
    assert str(Verdict({"untold", "double_refund"})) == "double_refund, untold"
    assert str(Verdict()) == "right"


def test_an_outbox_without_a_lease_is_taken_over_by_nobody() -> None:
    run = replay(
        designs.SAFE.but(dispatch=Outbox(lease=None)), faults=[faults.crash("worker-1:claim")]
    )
    assert run.verdict == {"lost_refund", "stuck"}


def test_paying_another_sum_than_was_asked_for_is_unauthorized() -> None:
    def a_tenth(call: ToolCall, session: Session) -> RefundRequest:
        request = parse_refund(call, session)
        return request.model_copy(update={"amount": request.amount / 10})

    assert "unauthorized_refund" in replay(designs.SAFE.but(schema=a_tenth)).verdict


def test_what_a_human_has_to_decide_stays_reserved_and_a_refusal_beside_it_is_true() -> None:
    run = replay(
        designs.SAFE,
        Scenario.two_partial_refunds(),
        [faults.provider_down("worker-1:provider.refund", seconds=90_000)],
    )
    assert run.verdict == frozenset()
    assert len(run.tasks) == 1


def test_every_judged_invariant_has_its_sentence() -> None:
    said = sentences()
    assert list(said) == list(INVARIANTS)
    assert all(sentence.endswith(".") for sentence in said.values())
    assert said["double_refund"] == "An intent was paid more than once."


# Consent: somebody else's, with the right, in time, for exactly this, to the order as it was.

LARGE = Scenario(
    orders=(Order("ORD-7001", captured=7_500_00), Order("ORD-7002", captured=7_500_00)),
    intents=(Intent("intent-1", order_id="ORD-7001", amount=6_000_00),),
)
REPORTING = ProviderSettings(webhooks=WebhookSettings())


def judged(consents: Sequence[Consent], paid_at: int = 100, **changes: object) -> Verdict:
    """A world in which one thing happened: $6,000 were paid. With other facts, by hand."""
    with store() as database:
        world = World(designs.NAIVE, LARGE, Plan(()), 0, database)
        fields = {"order_id": "ORD-7001", "amount": 6_000_00, "currency": "USD"} | changes
        (intent,) = LARGE.intents
        effect = Effect(paid_at, "intent-1", key=None, tenant_id=intent.tenant_id, **fields)  # type: ignore[arg-type]
        world.provider.ledger.append(effect)
        world.consents += consents
        return judge(world)


YES = Consent(50, "intent-1", "ORD-7001", 6_000_00, "USD", until=200, asked=10, entitled=True)


def test_a_consent_for_exactly_this_is_enough() -> None:
    assert "unapproved_refund" not in judged([YES])


@pytest.mark.parametrize(
    "consents",
    [
        [],
        [YES._replace(amount=6_000_01)],
        [YES._replace(amount=5_999_99)],
        [YES._replace(order_id="ORD-7002")],
        [YES._replace(currency="EUR")],
        [YES._replace(intent_id="intent-2")],
        [YES._replace(entitled=False)],
        [YES._replace(time=101)],  # after the payment
        [YES._replace(amount=1), YES._replace(time=101)],  # two that are wrong are none
    ],
)
def test_any_other_consent_is_none(consents: list[Consent]) -> None:
    assert "unapproved_refund" in judged(consents)


def test_a_good_consent_is_not_spoilt_by_a_bad_one_beside_it() -> None:
    assert "unapproved_refund" not in judged([YES._replace(amount=1), YES])


@pytest.mark.parametrize(
    "approver",
    [ApproverSettings(user_id=USER), ApproverSettings(permissions=frozenset({"refund:create"}))],
)
def test_whoever_may_not_consent_does_not_even_if_the_design_lets_him(
    approver: ApproverSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert replay(designs.SAFE, LARGE.but(approver=approver)).verdict == frozenset()
    # A design to which every session is another manager's.
    honest = approval.decide

    def anybody(tx: Any, d: Any, later: Any, decision: Any, session: Session) -> Any:
        right = frozenset({"refund:approve"})
        manager = Session(MANAGER, session.tenant_id, right, session.intent_id)
        return honest(tx, d, later, decision, manager)

    monkeypatch.setattr(approval, "decide", anybody)
    assert replay(designs.SAFE, LARGE.but(approver=approver)).verdict == {"unapproved_refund"}


def test_a_consent_that_comes_late_is_none() -> None:
    late = LARGE.but(approver=ApproverSettings(delay=90.0), consent_within=60.0)
    patient = Approval(lifetime=60.0, when_expired="approved")
    assert replay(designs.SAFE.but(approval=patient), late).verdict == {"unapproved_refund"}
    assert replay(designs.SAFE.but(approval=Approval(lifetime=60.0)), late).verdict == frozenset()
    assert replay(designs.SAFE.but(approval=Approval(lifetime=91.0)), late).verdict == frozenset()


def chargeback(at: float, provider: ProviderSettings = REPORTING) -> Scenario:
    """The bank takes $1,000 of $7,500 back. The manager looks after 60 s, and says yes."""
    out = Outside("chargeback", at=at, order_id="ORD-7001", amount=1_000_00)
    return LARGE.but(outside=(out,), provider=provider)


@pytest.mark.parametrize(("at", "paid"), [(30.0, 0), (90.0, 1)])
def test_an_order_that_was_touched_since_the_question_is_not_what_was_consented_to(
    at: float, paid: int
) -> None:
    stale = designs.SAFE.but(approval=Approval(revalidate=False))
    run = replay(stale, chargeback(at))
    assert run.verdict == (frozenset() if paid else {"unapproved_refund"})
    safe = replay(designs.SAFE, chargeback(at))
    assert safe.verdict == frozenset()
    assert sum(safe.ledger.intent == "intent-1") == paid


def test_what_nobody_told_us_or_not_yet_no_check_can_find() -> None:
    silent = replay(designs.SAFE, chargeback(30.0, ProviderSettings()))
    assert "unapproved_refund" not in silent.verdict
    # Consent, chargeback, payment, and only then its report.
    assert replay(designs.SAFE, chargeback(60.05)).verdict == frozenset()


def test_who_asks_when_the_report_was_booked_already_asks_about_the_order_as_it_is() -> None:
    # The report is booked, but its receipt reaches the provider after the question was asked.
    trouble = [
        faults.pause("agent:tool.issue_refund", when="before_send", seconds=55),
        faults.database_down("backend-1:begin", seconds=42),
    ]
    run = replay(designs.SAFE, chargeback(60.05), trouble)
    assert run.verdict == frozenset()
    assert list(run.ledger.intent) == ["", "intent-1"]


def test_what_was_sent_once_cannot_be_called_back() -> None:
    lost = [faults.lose_request("provider.refund")]
    run = replay(designs.SAFE, chargeback(60.3), lost)
    assert run.verdict == frozenset()
    assert list(run.ledger.intent) == ["", "intent-1"]


def test_a_refusal_without_consent_is_true_and_one_with_it_is_not() -> None:
    no = LARGE.but(approver=ApproverSettings(says=(("intent-1", "no"),)))
    assert replay(designs.SAFE, no).verdict == frozenset()
    small = no.but(consent_above=6_000)  # nobody has to be asked
    assert replay(designs.SAFE, small).verdict == {"lost_refund"}
    # Agreed to, and then given up at the first silence.
    gives_up = designs.SAFE.but(on_silence=silence.failed)
    run = replay(gives_up, LARGE, [faults.lose_request("provider.refund")])
    assert run.verdict == {"lost_refund"}


@pytest.mark.parametrize(("amount", "said"), [(100_00, "done"), (400_00, "refused")])
def test_a_chargeback_that_leaves_enough_refuses_no_refund_and_one_that_does_not_does(
    amount: int, said: str
) -> None:
    late = [faults.pause("backend-1:begin", when="before", seconds=5)]
    taken = Outside("chargeback", at=3.0, amount=amount)
    scenario = Scenario(
        intents=(Intent("intent-1", amount=200_00),), outside=(taken,), provider=REPORTING
    )
    run = replay(designs.SAFE, scenario, late)
    assert run.verdict == frozenset()
    assert set(run.told.statement) == {said}
    before = replay(designs.SAFE, scenario)
    assert set(before.told.statement) == {"done"}


# Identity: what was injected.

INJECTED = Scenario.injected_arguments()


@pytest.mark.parametrize(
    ("design", "number"),
    [
        (designs.SAFE.but(identity=FromArguments(), schema=FreeDict()), 0),
        (designs.SAFE.but(ownership=AnyOrder()), 1),
        (designs.SAFE.but(permission=lambda session: True), 2),
    ],
)
def test_each_injection_is_unauthorized_where_its_own_safeguard_is_missing(
    design: Design, number: int
) -> None:
    for each, submission in enumerate(INJECTED.submissions):
        run = replay(design, INJECTED.but(submissions=(submission,)))
        assert ("unauthorized_refund" in run.verdict) == (each == number)
    assert replay(designs.SAFE, INJECTED).verdict == frozenset()


def test_nothing_that_nobody_owes_may_be_paid_even_if_it_is_exactly_what_was_asked_for() -> None:
    unowed = Scenario(intents=(Intent("intent-1", owed=False),))
    assert replay(designs.SAFE, unowed).verdict == {"unauthorized_refund"}


# Money that goes without us.


# Asked for at one second: known before, under way to us, and after.
@pytest.mark.parametrize(("at", "broken"), [(0.5, True), (0.99, False), (60.0, False)])
def test_what_we_knew_was_taken_counts_and_what_is_taken_after_us_is_not_our_doing(
    at: float, broken: bool
) -> None:
    taken = Outside("chargeback", at=at, amount=1)
    scenario = Scenario.one_refund().but(
        submissions=(Submission("intent-1", at=1.0),), outside=(taken,), provider=REPORTING
    )
    unreserved = designs.SAFE.but(balance=NoBalance(), approval=Approval(revalidate=False))
    assert ("over_refund" in replay(unreserved, scenario).verdict) == broken


def test_a_cancellation_that_pays_too_much_has_read_our_wrong_books() -> None:
    # Paid at 60 s while a refund that was taken for a failure is paid as well.
    cancel = Outside("cancel", at=60.0)
    scenario = Scenario(intents=(Intent("intent-1", amount=200_00),), outside=(cancel,))
    lost = [faults.lose_response("provider.refund")]
    gives_up = designs.SAFE.but(on_silence=silence.failed)
    assert "over_refund" in replay(gives_up, scenario, lost).verdict
    assert replay(designs.SAFE, scenario, lost).verdict == frozenset()


def test_what_the_bank_took_is_in_the_books_as_disputed() -> None:
    taken = Outside("chargeback", at=60.0, amount=100_00)
    scenario = Scenario(
        intents=(Intent("intent-1", amount=200_00),), outside=(taken,), provider=REPORTING
    )
    assert replay(designs.SAFE, scenario).verdict == frozenset()
    deaf = designs.SAFE.but(webhook=IgnoreWebhooks())
    assert replay(deaf, scenario).verdict == {"books_differ"}


# A human who is needed.


def test_where_keys_mean_nothing_a_lost_request_is_left_to_a_human() -> None:
    # "Not found" is no proof, and a second send might be a second payment.
    keyless = Scenario(provider=ProviderSettings(semantics="none"))
    lost = [faults.lose_request("provider.refund")]
    run = replay(designs.SAFE.but(recovery=AskOnly()), keyless, lost)
    assert run.verdict == frozenset()
    assert (len(run.ledger), len(run.tasks)) == (0, 1)
    lost = [faults.lose_response("provider.refund")]
    assert "double_refund" in replay(designs.SAFE, keyless, lost).verdict


@pytest.mark.parametrize(
    ("scenario", "needed"),
    [
        (Scenario.poisoned_event(), True),
        (Scenario.one_refund().but(provider=ProviderSettings(errors=1)), True),
        (Scenario.one_refund().but(provider=ProviderSettings(errors=1, semantics="ietf")), True),
        (
            Scenario.one_refund().but(provider=ProviderSettings(errors=1, semantics="stripe-v2")),
            False,
        ),
    ],
)
def test_a_human_is_needed_where_no_time_mends_it(scenario: Scenario, needed: bool) -> None:
    run = replay(designs.SAFE, scenario)
    assert run.verdict == frozenset()
    assert len(run.tasks) == needed
    asks_soon = designs.SAFE.but(recovery=SameKey(horizon=0.5))
    assert ("needless_task" in replay(asks_soon, scenario).verdict) == (not needed)


def test_a_request_without_the_key_that_was_asked_for_is_no_true_refusal() -> None:
    asks_for_keys = Scenario.one_refund().but(provider=ProviderSettings(semantics="ietf"))
    assert "lost_refund" in replay(designs.SAFE.but(key=NoKey()), asks_for_keys).verdict
    assert replay(designs.SAFE, asks_for_keys).verdict == frozenset()


# What tools change beside money.

CANCEL, FORGET = Scenario.cancelled_orders(), Scenario.deleted_profile()


def tampered(scenario: Scenario, *statements: str) -> Verdict:
    """The verdict on the safe design, after somebody has changed the data by hand."""
    with store() as database:
        world = World(designs.SAFE, scenario, Plan(()), 0, database).run()
        for statement in statements:
            world.database.connection.execute(statement)
        return judge(world)


@pytest.mark.parametrize("scenario", [CANCEL, FORGET, Scenario.cancelled_before()])
def test_data_that_nobody_has_touched_are_as_the_record_says(scenario: Scenario) -> None:
    assert tampered(scenario) == frozenset()


@pytest.mark.parametrize(
    ("scenario", "statement"),
    [
        (CANCEL, "UPDATE stock SET on_hand = on_hand + 1 WHERE sku = 'BOOK-7'"),
        (CANCEL, "UPDATE stock SET on_hand = on_hand - 1 WHERE sku = 'BOOK-7'"),
        (CANCEL, "DELETE FROM stock"),
        (CANCEL, "UPDATE orders SET status = 'confirmed' WHERE id = 'ORD-1002'"),
        (
            CANCEL.but(orders=(Order(), Order("ORD-1002"))),  # without goods
            "UPDATE orders SET status = 'confirmed'",
        ),
        (CANCEL, "UPDATE tool_operations SET status = 'failed'"),
        (FORGET, "UPDATE tool_operations SET status = 'failed' WHERE action_type <> 'refund'"),
        (
            FORGET,
            "INSERT INTO profiles SELECT tenant_id, user_id, 'Mira', 'mira@example.org' "
            "FROM orders",
        ),
        (
            # Its customer has asked for nothing of the kind, and the goods are right.
            Scenario.cancelled_before(),
            "UPDATE orders SET status = 'confirmed'",
        ),
    ],
)
def test_goods_orders_and_profiles_that_are_not_as_the_record_says_are_books_that_differ(
    scenario: Scenario, statement: str
) -> None:
    assert "books_differ" in tampered(scenario, statement)


def test_goods_are_judged_where_there_is_no_record_too() -> None:
    unrecorded = designs.NAIVE.but(name="counts twice")
    goods = Scenario.one_refund().but(orders=(Order(lines=(("LANTERN-1", 2),)),))
    assert replay(unrecorded, goods).verdict == frozenset()
    with store() as database:
        world = World(unrecorded, goods, Plan(()), 0, database).run()
        world.database.connection.execute("UPDATE stock SET on_hand = 2")
        assert judge(world) == {"books_differ"}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE orders SET status = 'cancelled'",  # the stranger's too
        "DELETE FROM profiles",  # the same
    ],
)
def test_what_becomes_of_strangers_goods_and_profiles_needs_their_own_wish(
    statement: str,
) -> None:
    scenario = Scenario.strangers_goods()
    assert "unauthorized_refund" not in tampered(scenario)
    assert "unauthorized_refund" in tampered(scenario, statement)


def test_a_colleagues_cancellation_needs_no_customers_wish() -> None:
    back_office = Scenario.cancelled_before()
    assert "unauthorized_refund" not in tampered(back_office)
    assert "unauthorized_refund" in tampered(
        back_office.but(outside=(), intents=(Intent("intent-1", owed=False),)),
        "UPDATE orders SET status = 'cancelled'",
    )


@pytest.mark.parametrize(
    ("says", "word", "false"),
    [
        ("yes", "done", False),
        ("yes", "refused", True),
        ("no", "refused", False),
        ("no", "done", True),
    ],
)
def test_a_word_about_another_tool_has_to_be_true_as_well(
    says: str, word: str, false: bool
) -> None:
    asked = CANCEL.but(approver=ApproverSettings(says=(("intent-1", says),)))
    with store() as database:
        world = World(designs.SAFE, asked, Plan(()), 0, database).run()
        assert judge(world) == frozenset()
        world.tell("intent-1", Answer(word, "By the way."), "cancel_orders")
        assert ("false_answer" in judge(world)) == false


def test_a_profile_may_not_go_while_a_refund_of_its_customer_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = FORGET.but(provider=ProviderSettings(settles_after=3600.0, webhooks=WebhookSettings()))
    assert replay(designs.SAFE, slow).verdict == frozenset()
    monkeypatch.setattr(profiles, "OPEN_REFUNDS", "SELECT 0")
    assert replay(designs.SAFE, slow).verdict == {"books_differ"}
    assert replay(designs.SAFE, FORGET).verdict == frozenset(), "it was paid before"


def test_another_customers_open_refund_keeps_nobody_from_being_forgotten() -> None:
    theirs = Order("ORD-1002", user_id=SOMEBODY_ELSE)
    intent = Intent("intent-1", order_id="ORD-1002", user_id=SOMEBODY_ELSE)
    slow = FORGET.but(
        orders=(Order(), theirs),
        intents=(intent, *FORGET.intents[1:]),
        provider=ProviderSettings(settles_after=3600.0, webhooks=WebhookSettings()),
    )
    run = replay(designs.SAFE, slow)
    assert run.verdict == frozenset()
    assert set(run.told.statement[run.told.intent == "intent-2"]) == {"verifying", "done"}
