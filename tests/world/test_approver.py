"""The person who is asked: when, for what, and what becomes of the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.service import pipeline
from simulator.service.approval import Approval, NoApproval
from simulator.service.designs import SAFE
from simulator.world import faults
from simulator.world.scenario import ApproverSettings, Intent, Order, Scenario, Submission

Run = Callable[..., Any]
DECIDE = "approval.decide"
DAY = 24 * 3600.0


def asking(amount: int = 6_000_00, **approver: Any) -> Scenario:
    """A refund of $6,000 of $7,500, and the person who is asked about it."""
    return Scenario(
        orders=(Order("ORD-7001", captured=7_500_00),),
        intents=(Intent("intent-1", order_id="ORD-7001", amount=amount),),
        approver=ApproverSettings(**approver),
    )


def asking_twice(at: float) -> Scenario:
    """Two such refunds, the second at a time."""
    return Scenario(
        orders=tuple(Order(f"ORD-700{n}", captured=7_500_00) for n in (1, 2)),
        intents=tuple(
            Intent(f"intent-{n}", order_id=f"ORD-700{n}", amount=6_000_00) for n in (1, 2)
        ),
        submissions=(Submission("intent-1"), Submission("intent-2", at=at)),
    )


def states(made: Any) -> list[str]:
    return [after for _, _, after in made.database.changes]


def said(made: Any) -> list[tuple[float, str]]:
    return [
        (e.time / 1e6, e.text) for e in made.trace if (e.process, e.what) == ("approver", "decides")
    ]


@pytest.mark.parametrize("delay", [1.0, 60.0, 3 * 3600.0])
def test_a_question_is_answered_after_its_delay_and_not_before(delay: float, world: Run) -> None:
    made = world(SAFE, scenario=asking(delay=delay))
    ((at, word),) = said(made)
    assert word == "says yes"
    assert at == pytest.approx(delay, abs=0.1)
    assert at >= delay
    (effect,) = made.provider.ledger
    assert effect.time / 1e6 > at


def agreed(made: Any) -> set[str]:
    """Intents to which a person who may had said yes, and knew that it was heard."""
    return {
        word.intent_id
        for word in made.decisions
        if word.yes and word.entitled and word.answered is not None
    }


@pytest.mark.parametrize(
    ("word", "end", "paid"),
    [("yes", "succeeded", 1), ("no", "failed", 0), ("nothing", "failed", 0)],
)
def test_only_a_yes_moves_money(word: str, end: str, paid: int, world: Run) -> None:
    made = world(SAFE, scenario=asking(says=(("intent-1", word),)))
    assert len(made.provider.ledger) == paid
    assert states(made)[-1] == end
    assert len(said(made)) == (word != "nothing")
    assert len(made.consents) == paid
    assert agreed(made) == ({"intent-1"} if paid else set())


def test_what_nobody_answers_ends_when_the_question_does(world: Run) -> None:
    made = world(SAFE, scenario=asking(says=(("intent-1", "nothing"),)))
    (ended,) = [e.time / 1e6 for e in made.trace if e.what == "awaiting_approval->failed"]
    assert ended == pytest.approx(DAY, abs=1.0)
    assert made.told[-1].kind == "refused"


@pytest.mark.parametrize(("first", "paid"), [("yes", 1), ("no", 0)])
def test_second_thoughts_are_sent_and_come_too_late(first: str, paid: int, world: Run) -> None:
    made = world(SAFE, scenario=asking(says=(("intent-1", first),), second_thoughts=30.0))
    (at, one), (later, two) = said(made)
    assert {one, two} == {"says yes", "says no"}
    assert one == f"says {first}"
    assert later - at == pytest.approx(30.0, abs=0.1)
    assert len(made.provider.ledger) == paid


def test_a_refund_that_needs_no_consent_is_shown_to_nobody(world: Run) -> None:
    made = world(SAFE, scenario=asking(amount=5_000_00))
    assert said(made) == []
    assert len(made.provider.ledger) == 1
    assert world(SAFE, scenario=asking(amount=5_000_01)).consents


def test_a_design_without_approval_has_nobody_to_ask(world: Run) -> None:
    made = world(SAFE.but(approval=NoApproval()), scenario=asking())
    assert "approver" not in made.lives
    assert not [e for e in made.trace if e.process == "approver"]
    assert made.consents == []


def test_a_consent_says_who_gave_it_when_and_for_what(world: Run) -> None:
    (consent,) = world(SAFE, scenario=asking()).consents
    assert consent.time / 1e6 == pytest.approx(60.0, abs=0.1)
    assert consent.until / 1e6 == pytest.approx(DAY, abs=0.1)
    assert consent[1:5] == ("intent-1", "ORD-7001", 6_000_00, "USD")


@pytest.mark.parametrize("lifetime", [59.0, 61.0])
def test_a_yes_after_the_question_was_closed_is_no_consent(lifetime: float, world: Run) -> None:
    made = world(SAFE.but(approval=Approval(lifetime=lifetime)), scenario=asking())
    assert [word for _, word in said(made)] == ["says yes"]
    assert len(made.consents) == len(made.provider.ledger) == (lifetime > 60)


@pytest.mark.parametrize("fault", [faults.lose_request, faults.lose_response, faults.reset])
def test_a_decision_that_gets_no_answer_is_sent_again_and_counts_once(
    fault: Any, world: Run
) -> None:
    made = world(SAFE, fault(DECIDE), scenario=asking())
    assert len([s for s in made.steps if s.name == f"approver:{DECIDE}"]) == 2
    assert len(said(made)) == 1  # the person clicked once; the app repeats it
    assert len(made.provider.ledger) == 1
    assert agreed(made) == {"intent-1"}


@pytest.mark.parametrize("when", ["before_send", "after_send", "after_answer"])
def test_an_approver_that_died_in_the_middle_is_asked_again(when: str, world: Run) -> None:
    made = world(SAFE, faults.crash(f"approver:{DECIDE}", when=when), scenario=asking())
    first, again = said(made)
    assert again[0] - first[0] == pytest.approx(65.0, abs=1.0)  # restart, and its delay anew
    assert len([s for s in made.steps if s.what == DECIDE]) == 2
    assert states(made) == ["pending", "awaiting_approval", "pending", "processing", "succeeded"]
    assert len(made.provider.ledger) == 1


def test_an_approver_that_had_its_answer_is_not_asked_again_after_a_crash(world: Run) -> None:
    made = world(SAFE, faults.crash(f"approver:{DECIDE}", nth=2), scenario=asking_twice(100.0))
    assert [s.nth for s in made.steps if s.what == DECIDE] == [1, 2, 3]
    assert [consent.intent_id for consent in made.consents] == ["intent-1", "intent-2", "intent-2"]
    assert len(made.provider.ledger) == 2


def test_a_question_that_arises_while_the_approver_is_dead_is_seen_after_the_restart(
    world: Run,
) -> None:
    # The first decision kills the approver at 60 s; the second question comes at 62 s.
    made = world(
        SAFE, faults.crash(f"approver:{DECIDE}", when="before_send"), scenario=asking_twice(62.0)
    )
    assert agreed(made) == {"intent-1", "intent-2"}
    assert len(made.provider.ledger) == 2


def test_whoever_looks_while_the_database_is_down_looks_again(world: Run) -> None:
    # It goes down at the second submission (59 s) and is up again at 159 s.
    scenario = asking().but(
        submissions=(Submission("intent-1"), Submission("intent-1", at=59.0, thought=2))
    )
    down = faults.database_down("backend-1:begin", nth=2, seconds=100.0)
    made = world(SAFE, down, scenario=scenario)
    ((at, _),) = said(made)
    assert at == pytest.approx(180.0, abs=1.0)  # 60, 120: down; 180: up
    assert len(made.provider.ledger) == 1


def test_a_question_about_what_was_removed_is_dropped(world: Run) -> None:
    def removed(tx: Any) -> None:
        tx.execute("DELETE FROM approvals")
        tx.execute("DELETE FROM outbox")

    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        answer = yield from pipeline.handle(rt, design, call, session)
        yield from rt.transact(removed)
        return answer

    made = world(SAFE.but(handle=handle), scenario=asking())
    assert said(made) == []
    assert made.provider.ledger == []
    assert not made.capped


@pytest.mark.parametrize(
    "settings", [{"permissions": frozenset[str]()}, {"user_id": Intent("intent-1").user_id}]
)
def test_the_answer_of_one_who_may_not_decide_is_denied(
    settings: dict[str, Any], world: Run
) -> None:
    made = world(SAFE, scenario=asking(**settings))
    assert made.provider.ledger == []
    assert agreed(made) == set()
    assert [(word.yes, word.entitled) for word in made.decisions] == [(True, False)]
    assert states(made)[-1] == "failed"
