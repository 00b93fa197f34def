"""The agent: it asks, waits, asks again, and tells what it hears."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from simulator.service.answers import Answer
from simulator.world import faults
from simulator.world.scenario import AgentSettings, Scenario, Submission

Run = Callable[..., Any]
TOOL = "tool.issue_refund"


@pytest.fixture
def answers(pipe: Any) -> Callable[..., Any]:
    """A design that answers at once, and notes who was asked what, when."""

    def build(asked: list[Any], kind: str = "done") -> Any:
        def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
            asked.append((round(rt.now(), 3), rt.owner, call.call_id, dict(call.arguments)))
            yield from rt.sleep(0.001)
            return Answer(kind, f"This is {kind}.")

        return pipe(handle)

    return build


def losing(*nths: int) -> list[Any]:
    return [faults.lose_response(TOOL, nth=n) for n in nths]


def test_it_tells_the_customer_what_it_was_answered(world: Run, answers: Any) -> None:
    made = world(answers([], kind="verifying"))
    assert [(t.intent, t.kind, t.text) for t in made.told] == [
        ("intent-1", "verifying", "This is verifying.")
    ]


def test_after_silence_it_asks_again_and_waits_longer_each_time_two_hours_at_most(
    world: Run, answers: Any
) -> None:
    asked: list[Any] = []
    scenario = Scenario().but(agent=AgentSettings(patience=15.0, resubmits=15))
    world(answers(asked), *losing(*range(1, 16)), scenario=scenario)
    times = [at for at, *_ in asked]
    waits = [round(b - a - 15.0, 3) for a, b in pairwise(times)]
    assert waits == [*(2**turn for turn in range(13)), 7200, 7200]
    assert len(asked) == 16


def test_when_it_has_asked_often_enough_it_says_that_it_has_no_answer(
    world: Run, answers: Any
) -> None:
    asked: list[Any] = []
    scenario = Scenario().but(agent=AgentSettings(resubmits=2))
    made = world(answers(asked), *losing(1, 2, 3), scenario=scenario)
    assert len(asked) == 3
    assert [(t.kind, t.text) for t in made.told] == [("verifying", "I have no answer yet.")]


@pytest.mark.parametrize("again", [True, False])
def test_it_repeats_its_call_or_thinks_anew(again: bool, world: Run, answers: Any) -> None:
    asked: list[Any] = []
    scenario = Scenario().but(agent=AgentSettings(new_thought=again))
    world(answers(asked), *losing(1), scenario=scenario)
    (_, _, first, arguments), (_, _, second, others) = asked
    assert (first != second) == again
    assert (arguments["refund_request_id"] != others["refund_request_id"]) == again
    assert arguments["order_id"] == others["order_id"]
    assert arguments["amount"] == others["amount"]


def test_it_can_ask_another_instance_after_silence(world: Run, answers: Any) -> None:
    asked: list[Any] = []
    scenario = Scenario().but(agent=AgentSettings(elsewhere=True), backends=3)
    world(answers(asked), *losing(1, 2, 3), scenario=scenario)
    assert [owner for _, owner, *_ in asked] == [
        "backend-1#1",
        "backend-2#1",
        "backend-3#1",
        "backend-1#1",
    ]


def test_a_broken_connection_is_silence_to_it_too(world: Run, answers: Any) -> None:
    asked: list[Any] = []
    made = world(answers(asked), faults.reset(TOOL, when="after"))
    assert len(asked) == 2
    assert made.told[-1].kind == "done"


def test_an_agent_that_died_asks_again_when_it_is_back(world: Run, answers: Any) -> None:
    asked: list[Any] = []
    made = world(answers(asked), faults.crash(TOOL, when="after_answer"))
    assert len(asked) == 2
    assert [t.kind for t in made.told] == ["done"]


def test_an_agent_that_had_told_the_answer_does_not_ask_again(world: Run, answers: Any) -> None:
    asked: list[Any] = []
    scenario = Scenario.one_refund().but(
        submissions=(Submission("intent-1"), Submission("intent-1", at=10.0, thought=2))
    )
    world(answers(asked), faults.crash(TOOL, nth=2, when="after_answer"), scenario=scenario)
    assert [call_id[-1] for _, _, call_id, _ in asked] == ["1", "2", "2"]


def test_a_submission_can_wait_for_the_one_before(world: Run, answers: Any) -> None:
    asked: list[Any] = []
    both = (
        Submission("intent-1"),
        Submission("intent-1", at=10.0, thought=2, after_answer=True),
    )
    world(answers(asked), *losing(1), scenario=Scenario(submissions=both))
    assert [call_id[-1] for _, _, call_id, _ in asked] == ["1", "1", "2"]
    assert asked[-1][0] == pytest.approx(16.061, abs=0.05)


def test_an_older_statement_never_takes_back_a_newer_one(world: Run, pipe: Any) -> None:
    newest = iter((2, 1))

    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.sleep(0.001)
        version = next(newest)
        return Answer("done" if version == 2 else "verifying", "text", version=version)

    made = world(pipe(handle), scenario=Scenario.resubmitted_elsewhere())
    assert [t.kind for t in made.told] == ["done"]
    assert [e.text for e in made.trace if (e.process, e.kind) == ("customer", "note")] != []
