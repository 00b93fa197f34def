"""The five ways in which a tool call fails: what naive code does with each, and what the safe does.

Of every mode: exactly what the provider paid, in order, and exactly what the customer was told.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from simulator import Design, Scenario, designs, faults, replay
from simulator.experiments.run import Run
from simulator.world.fault import Fault
from simulator.world.scenario import Submission

ABLATED = designs.ablations()
ONE = Scenario.one_refund()
AT_ONCE = Scenario.two_partial_refunds().but(
    submissions=(Submission("intent-1"), Submission("intent-2", at=0.05, instance="backend-2"))
)


def paid(run: Run) -> list[str]:
    """What the provider paid, in order."""
    return [str(amount) for amount in run.ledger.amount]


def told(run: Run) -> list[str]:
    """What the customer was told, in order. A second message of the same words is a nuisance,
    and no new statement.
    """
    words = list(run.told.statement)
    return [word for place, word in enumerate(words) if words[place - 1 : place] != [word]]


def struck(design: Design, scenario: Scenario, *what: Fault) -> Run:
    """A history in which every fault did strike."""
    run = replay(design, scenario, what)
    assert not run.unstruck
    return run


def seen_by(run: Run, process: str, until: str) -> list[tuple[int, str, str]]:
    """All that a process could notice before the first event of kind `until`, and this one."""
    events = [
        (event.time, event.kind, event.what)
        for event in run.trace
        if event.process == process and event.kind not in ("fault", "lost")
    ]
    kinds = [kind for _, kind, _ in events]
    return events[: kinds.index(until) + 1]


# --- 1. The request is lost ------------------------------------------------------------------


def test_a_lost_request_is_sent_again_and_paid_once_by_both() -> None:
    lost = faults.lose_request("provider.refund")
    for design in (designs.NAIVE, designs.SAFE):
        run = struck(design, ONE, lost)
        assert run.verdict == frozenset()
        assert paid(run) == ["500.00"]
        assert told(run) == ["done"]


def test_a_request_lost_on_its_way_to_the_backend_is_paid_once_by_both() -> None:
    lost = faults.lose_request("tool.issue_refund")
    for design in (designs.NAIVE, designs.SAFE):
        run = struck(design, ONE, lost)
        assert run.verdict == frozenset()
        assert paid(run) == ["500.00"]
        assert told(run) == ["done"]


def test_whoever_takes_a_lost_request_for_a_failure_or_gives_it_up_loses_the_refund() -> None:
    for design in (designs.ONE_SHOT, ABLATED["outcome_unknown"]):
        run = struck(design, ONE, faults.lose_request("provider.refund"))
        assert "lost_refund" in run.verdict
        assert paid(run) == []
        assert told(run) == ["refused"]


# --- 2. The response is lost -----------------------------------------------------------------


def test_after_a_lost_response_naive_code_pays_twice_and_says_done() -> None:
    run = struck(designs.NAIVE, ONE, faults.lose_response("provider.refund"))
    assert paid(run) == ["500.00", "500.00"]
    assert list(run.ledger.key) == [None, None]
    assert told(run) == ["done"]
    assert str(run.books.refunded[0]) == "500.00", "our own books know nothing of the second"
    assert run.verdict == {"double_refund", "over_refund", "books_differ"}


def test_after_a_lost_response_the_safe_service_pays_once_and_says_done() -> None:
    run = struck(designs.SAFE, ONE, faults.lose_response("provider.refund"))
    assert run.verdict == frozenset()
    assert paid(run) == ["500.00"]
    assert told(run) == ["done"]
    assert [event.kind for event in run.trace if event.process == "provider"].count("replayed") == 1


def test_a_response_lost_on_its_way_to_the_agent_makes_naive_code_pay_twice() -> None:
    lost = faults.lose_response("tool.issue_refund")
    naive, safe = struck(designs.NAIVE, ONE, lost), struck(designs.SAFE, ONE, lost)
    assert paid(naive) == ["500.00", "500.00"]
    assert told(naive) == ["done"]
    assert paid(safe) == ["500.00"]
    assert told(safe) == ["done"]
    assert safe.verdict == frozenset()


@pytest.mark.parametrize("design", [designs.NAIVE, designs.SAFE], ids=lambda design: design.name)
def test_a_caller_cannot_tell_a_lost_request_from_a_lost_response(design: Design) -> None:
    caller = "backend-1" if design.dispatch.inline else "worker-1"
    request = struck(design, ONE, faults.lose_request("provider.refund"))
    response = struck(design, ONE, faults.lose_response("provider.refund"))
    assert seen_by(request, caller, "timeout") == seen_by(response, caller, "timeout")
    answered = [event.kind for event in request.trace if event.process == "provider"]
    assert answered != [event.kind for event in response.trace if event.process == "provider"]


# --- 3. The process dies between effect and record -------------------------------------------

BETWEEN = faults.crash("provider.refund", when="after_answer")


def test_a_death_between_effect_and_record_makes_naive_code_pay_twice() -> None:
    run = struck(designs.NAIVE, ONE, BETWEEN)
    assert paid(run) == ["500.00", "500.00"]
    assert told(run) == ["done"]
    assert "double_refund" in run.verdict


def test_after_a_death_between_effect_and_record_the_safe_service_finds_out_and_pays_once() -> None:
    run = struck(designs.SAFE, ONE, BETWEEN)
    assert run.verdict == frozenset()
    assert paid(run) == ["500.00"]
    assert told(run) == ["verifying", "done"]
    assert list(run.books.status) == ["succeeded"]


@pytest.mark.parametrize(
    ("design", "broken"),
    [
        (designs.DURABLE_RECORD, "stuck"),
        (designs.OUTBOX, "untold"),
        (ABLATED["provider key"], "double_refund"),
        (ABLATED["recovery"], "stuck"),
        (ABLATED["lease"], "stuck"),
    ],
    ids=lambda part: getattr(part, "name", part),
)
def test_a_death_between_effect_and_record_needs_record_key_lease_and_recovery(
    design: Design, broken: str
) -> None:
    assert broken in struck(design, ONE, BETWEEN).verdict


# --- 4. The same intent is submitted again ---------------------------------------------------

AGAIN: dict[str, tuple[Scenario, list[str]]] = {
    "the customer clicks twice": (Scenario.double_click(), ["500.00"]),
    "the agent thinks anew": (Scenario.new_thought(), ["200.00"]),
    "the agent submits the same call elsewhere": (Scenario.resubmitted_elsewhere(), ["500.00"]),
    "a queue delivers again a day later": (Scenario.late_redelivery(), ["200.00"]),
}


@pytest.mark.parametrize("who", AGAIN)
def test_an_intent_that_is_submitted_again_is_paid_again_by_naive_code(who: str) -> None:
    scenario, once = AGAIN[who]
    run = struck(designs.NAIVE, scenario)
    assert paid(run) == once * 2
    assert told(run) == ["done"]
    assert "double_refund" in run.verdict


@pytest.mark.parametrize("who", AGAIN)
def test_an_intent_that_is_submitted_again_is_paid_once_by_the_safe_service(who: str) -> None:
    scenario, once = AGAIN[who]
    run = struck(designs.SAFE, scenario)
    assert run.verdict == frozenset()
    assert paid(run) == once
    assert told(run) == ["done"]
    assert len(run.books) == 1, "one intent, one operation"


@pytest.mark.parametrize(
    ("who", "design"),
    [
        ("the customer clicks twice", designs.MEMORY_RECORD),
        ("the agent thinks anew", designs.MODEL_KEY),
        ("the agent thinks anew", ABLATED["operation key"]),
        ("the agent submits the same call elsewhere", designs.MEMORY_RECORD),
        ("a queue delivers again a day later", ABLATED["tombstone"]),
        ("a queue delivers again a day later", ABLATED["durable record"]),
    ],
    ids=lambda part: getattr(part, "name", part),
)
def test_every_second_submission_finds_the_design_that_forgets_it(who: str, design: Design) -> None:
    run = struck(design, AGAIN[who][0])
    assert "double_refund" in run.verdict
    assert len(run.ledger) == 2


def test_two_honest_wishes_of_the_same_amount_are_no_repetition() -> None:
    for design in (designs.NAIVE, designs.SAFE):
        run = struck(design, Scenario.two_equal_refunds())
        assert run.verdict == frozenset()
        assert paid(run) == ["200.00", "200.00"]


# --- 5. Two run at once on the same state ----------------------------------------------------


def test_two_at_once_on_one_balance_get_more_out_of_naive_code_than_was_captured() -> None:
    run = struck(designs.NAIVE, AT_ONCE)
    assert paid(run) == ["300.00", "300.00"], "of 500.00 that were captured"
    assert list(run.told.statement) == ["done", "done"]
    assert run.verdict == {"over_refund"}


def test_of_two_at_once_on_one_balance_the_safe_service_pays_one_and_refuses_one() -> None:
    run = struck(designs.SAFE, AT_ONCE)
    assert run.verdict == frozenset()
    assert paid(run) == ["300.00"]
    last = run.told.groupby("intent").statement.last()
    assert sorted(last) == ["done", "refused"]
    assert last[run.ledger.intent[0]] == "done"


@pytest.mark.parametrize("name", ["reservation", "durable record"])
def test_a_balance_that_is_checked_and_not_reserved_is_spent_twice(name: str) -> None:
    assert struck(ABLATED[name], AT_ONCE).verdict == {"over_refund"}


CALM: Sequence[Scenario] = (ONE, Scenario.two_equal_refunds())


@pytest.mark.parametrize("scenario", CALM, ids=lambda scenario: scenario.name)
def test_without_any_of_the_five_naive_and_safe_do_the_same(scenario: Scenario) -> None:
    naive, safe = struck(designs.NAIVE, scenario), struck(designs.SAFE, scenario)
    assert naive.verdict == safe.verdict == frozenset()
    assert paid(naive) == paid(safe)
    assert told(naive) == told(safe) == ["done"]
