"""What a backend does with what arrives at it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.service.answers import Answer
from simulator.service.designs import SAFE
from simulator.service.errors import DatabaseUnavailable
from simulator.world import faults
from simulator.world.mistakes import Mistake, PipelineRaised
from simulator.world.scenario import AgentSettings, Scenario

Run = Callable[..., Any]
ONCE = Scenario.one_refund().but(agent=AgentSettings(resubmits=0))


def test_every_tool_call_that_was_answered_is_remembered_with_its_answer(world: Run) -> None:
    made = world(SAFE, scenario=Scenario.changed_payload())
    assert [answer.kind for _, answer in made.backends.answers] == ["done", "conflict"]
    amounts = [request.call.arguments["amount"] for request, _ in made.backends.answers]
    assert amounts == ["500.00", "800.00"]


def test_what_a_person_decides_and_a_provider_reports_is_no_tool_call(world: Run) -> None:
    assert len(world(SAFE, scenario=Scenario.approval_between()).backends.answers) == 2
    assert len(world(SAFE, scenario=Scenario.webhook_storm()).backends.answers) == 1


@pytest.mark.parametrize("answer", [None, "done", Answer("paid", "This is paid.")])
def test_a_pipeline_that_returns_no_answer_is_told_what_to_return(
    answer: Any, world: Run, pipe: Any
) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.sleep(0.001)
        return answer

    with pytest.raises(Mistake, match="It has to return an Answer"):
        world(pipe(handle))


def test_a_pipeline_that_is_no_generator_is_told_how_to_write_one(world: Run, pipe: Any) -> None:
    with pytest.raises(Mistake, match="Write it as a generator"):
        world(pipe(lambda rt, design, call, session: Answer("done", "Paid.")))


def test_an_error_that_the_service_may_fail_with_is_a_500_to_the_caller(
    world: Run, pipe: Any
) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.sleep(0.001)
        raise DatabaseUnavailable("gone")

    made = world(pipe(handle), scenario=ONCE)
    assert [e.text for e in made.trace if (e.process, e.kind) == ("agent", "reset")] == [
        "500 Internal Server Error"
    ]
    assert made.backends.answers == []
    assert made.told[-1].kind == "verifying"


def test_any_other_error_stops_the_history_and_says_where(world: Run, pipe: Any) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.sleep(0.001)
        raise KeyError("amount")

    with pytest.raises(PipelineRaised, match="In backend-1 the pipeline raised KeyError"):
        world(pipe(handle))


def test_whoever_waits_for_a_backend_that_dies_learns_that_the_connection_broke(
    world: Run,
) -> None:
    made = world(SAFE, faults.crash("backend-1:begin", when="before"), scenario=ONCE)
    (reset,) = [e for e in made.trace if (e.process, e.kind) == ("agent", "reset")]
    (crash,) = [e for e in made.trace if e.kind == "crash"]
    assert reset.time - crash.time == 20_000


def test_a_request_at_a_dead_backends_door_is_refused_and_comes_again(world: Run) -> None:
    made = world(SAFE, faults.crash("backend-1:begin", when="before"))
    resets = [e for e in made.trace if (e.process, e.kind) == ("agent", "reset")]
    assert len(resets) > 1  # it was dead for 5 s
    assert len(made.provider.ledger) == 1


def test_a_request_at_a_paused_backends_door_is_served_when_it_goes_on(world: Run) -> None:
    scenario = Scenario.double_click()
    both = tuple(type(s)(s.intent_id, s.at, "backend-1", s.thought) for s in scenario.submissions)
    stop = faults.pause("backend-1:begin", when="before", seconds=10.0)
    made = world(SAFE, stop, scenario=scenario.but(submissions=both))
    begins = [e.time for e in made.trace if (e.kind, e.what) == ("commit", "begin")]
    assert len(begins) == 2
    assert min(begins) > 10_000_000
    assert len(made.provider.ledger) == 1


def test_a_request_at_the_door_of_one_who_dies_while_paused_hears_of_the_death(
    world: Run, pipe: Any
) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.sleep(0.1)
        if rt.now() < 1:
            rt.world.pause(rt.life, 10.0)
            rt.world.clock.after(1_000_000, lambda _: rt.world.kill(rt.life))
            yield from rt.sleep(0.01)
        return Answer("verifying", "later")

    scenario = Scenario.double_click()
    both = tuple(
        type(s)(s.intent_id, 3 * s.at, "backend-1", s.thought) for s in scenario.submissions
    )
    made = world(pipe(handle), scenario=scenario.but(submissions=both))
    resets = [e for e in made.trace if (e.process, e.kind) == ("agent", "reset")]
    assert len(resets) >= 2  # the one inside and the one at the door, at the same moment
    assert resets[0].time == resets[1].time
