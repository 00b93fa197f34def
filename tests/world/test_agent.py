"""The agent: it asks, waits, asks again, and tells what it hears."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from simulator.experiments.explore import explore
from simulator.service.answers import Answer
from simulator.service.designs import SAFE
from simulator.service.keys import ArgumentsHash
from simulator.service.schemas import FreeDict, minor_units, parse_refund
from simulator.world import faults
from simulator.world.agent import rethought
from simulator.world.scenario import AgentSettings, Intent, Order, Scenario, Submission
from simulator.world.scenarios.base import spellings

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
    assert (arguments["amount"] != others["amount"]) == again
    assert Decimal(str(arguments["amount"])) == Decimal(str(others["amount"])) == 500


@pytest.mark.parametrize(
    ("amount", "currency", "ways"),
    [
        (500_00, "USD", ["500.00", "500", "500.0", 500]),
        (19_90, "EUR", ["19.90", "19.9", 19.9]),
        (19_99, "USD", ["19.99", 19.99]),
        (500, "JPY", ["500", 500]),
        (500_000, "KWD", ["500.000", "500", "500.0", "500.00", 500]),
        (1_234_567, "KWD", ["1234.567", 1234.567]),
    ],
)
def test_with_every_thought_it_writes_the_same_money_another_way(
    amount: int, currency: str, ways: list[Any], world: Run, answers: Any
) -> None:
    asked: list[Any] = []
    scenario = Scenario(
        orders=(Order(captured=amount, currency=currency),),
        intents=(Intent("intent-1", amount=amount, currency=currency),),
        agent=AgentSettings(new_thought=True),
    )
    world(answers(asked), *losing(*range(1, len(ways) + 1)), scenario=scenario)
    written = [arguments["amount"] for *_, arguments in asked]
    assert written == [*ways, ways[0]]
    assert [type(way) for way in written[:-1]] == [type(way) for way in ways]


def test_where_no_float_is_exact_enough_there_is_one_way_to_write_it() -> None:
    assert spellings(10**17 + 1, "USD") == ("1000000000000000.01",)


@pytest.mark.parametrize("schema", [parse_refund, FreeDict()])
@pytest.mark.parametrize(
    ("amount", "currency"),
    [(500_00, "USD"), (19_99, "USD"), (19_90, "EUR"), (500, "JPY"), (19_990, "KWD")],
)
def test_every_way_to_write_it_is_read_as_the_same_money(
    amount: int, currency: str, schema: Any
) -> None:
    submission = Submission("intent-1")
    scenario = Scenario(
        orders=(Order(captured=amount, currency=currency),),
        intents=(Intent("intent-1", amount=amount, currency=currency),),
    )
    session = scenario.session("intent-1")
    for times in range(5):
        call = scenario.call(rethought(scenario, submission, times))
        assert minor_units(schema(call, session).amount, currency) == amount


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"amount": "800.00"}, ["800.00", "800", "800.0", 800]),
        ({"amount": "800.0"}, ["800.0", 800, "800.00", "800"]),
        ({"amount": "0800"}, ["0800"] * 4),  # nobody knows what that would be, spelled anew
        ({"amount": "8.001"}, ["8.001"] * 4),
        ({"amount": "all"}, ["all"] * 4),
        ({"amount": "NaN"}, ["NaN"] * 4),
        ({"arguments": {"amount": "1.00"}}, ["1.00"] * 4),
    ],
)
def test_what_the_submission_says_to_write_stays_the_same_money(
    given: dict[str, Any], written: list[Any], world: Run, answers: Any
) -> None:
    asked: list[Any] = []
    scenario = Scenario(
        submissions=(Submission("intent-1", **given),), agent=AgentSettings(new_thought=True)
    )
    world(answers(asked), *losing(1, 2, 3), scenario=scenario)
    assert [arguments["amount"] for *_, arguments in asked] == written


def test_other_tools_are_called_anew_with_their_own_arguments() -> None:
    scenario = Scenario.cancelled_before()
    (submission,) = scenario.submissions
    anew = rethought(scenario, submission, 3)
    assert anew.arguments == submission.arguments
    assert scenario.call(anew).call_id != scenario.call(submission).call_id


def test_a_key_of_the_arguments_does_not_outlive_a_thought_and_the_operations_does() -> None:
    # Asked for once: what comes again comes from the agent that heard nothing.
    scenario = Scenario.new_thought().but(submissions=(Submission("intent-1"),))
    hashed = SAFE.but(name="hash of the arguments", key=ArgumentsHash())
    found = explore(hashed, scenario, max_faults=1, stop=False)
    assert any("double_refund" in verdict for verdict in found.by_verdict)
    repeating = scenario.but(agent=AgentSettings())
    assert explore(hashed, repeating, max_faults=1).counterexample is None
    for setting in (scenario, Scenario.new_thought()):
        right = explore(SAFE, setting, max_faults=1)
        assert right.counterexample is None
        assert right.schedules > 100


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
