"""Each invariant is broken here by a design that has earned it, and by no other cause."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from simulator import Design, Scenario, designs, faults, replay
from simulator.experiments.verdict import (
    ALWAYS,
    AT_QUIESCENCE,
    INVARIANTS,
    Verdict,
    sentences,
)
from simulator.service import silence
from simulator.service.answers import Answer, FromRecord
from simulator.service.outbox import Outbox
from simulator.service.recovery import NoRecovery, SameKey
from simulator.service.schemas import RefundRequest, Session, ToolCall, parse_refund
from simulator.world.faults import Fault
from simulator.world.scenario import USER, Intent, Order, ProviderSettings, Submission

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
