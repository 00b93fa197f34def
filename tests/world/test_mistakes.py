"""Students' mistakes are caught, each with the words that help."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import simulator
from simulator.experiments.explore import explore
from simulator.experiments.replay import replay
from simulator.experiments.simulate import simulate
from simulator.service.answers import Answer
from simulator.service.design import PolicyMistake
from simulator.service.designs import NAIVE, SAFE
from simulator.world import faults
from simulator.world.faults import Rates
from simulator.world.mistakes import (
    ForgottenYieldFrom,
    LoopsInZeroTime,
    Mistake,
    PipelineRaised,
    YieldedSomethingElse,
)

HOUSE = Path(simulator.__file__).parent.parent
REFUND = "provider.refund"
Handle = Callable[..., Any]
LATER = Answer("verifying", "later")


def nothing(tx: Any) -> str:
    return "nothing"


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "rt.call('provider.refund', …)": lambda rt, order: rt.call(REFUND, order, timeout=2.0),
    "rt.transact(nothing, …)": lambda rt, order: rt.transact(nothing),
    "rt.sleep(1.5)": lambda rt, order: rt.sleep(1.5),
    "rt.settled(…)": lambda rt, order: rt.settled(None, 5.0),
    "rt.open('mine')": lambda rt, order: rt.open("mine"),
    "rt.commit(…)": lambda rt, order: rt.commit(None),
    "rt.received()": lambda rt, order: rt.received(),
}


@pytest.fixture
def run(pipe: Any) -> Callable[[Handle], Any]:
    return lambda handle: replay(pipe(handle))


@pytest.fixture(params=STEPS)
def step(request: pytest.FixtureRequest) -> tuple[str, Callable[[Any, Any], Any]]:
    return request.param, STEPS[request.param]


# A forgotten `yield from`.


def test_a_step_made_and_never_run_is_named_at_the_next_step(
    step: Any, run: Any, send: Any
) -> None:
    what, make = step

    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        make(rt, send(session))
        yield from rt.sleep(1.0)
        return LATER

    with pytest.raises(ForgottenYieldFrom) as mistake:
        run(handle)
    assert str(mistake.value) == (
        f"{what} was called without `yield from`, so it never happened. "
        f"Write: result = yield from {what}"
    )


def test_a_step_made_last_and_never_run_is_named_at_the_end(step: Any, run: Any, send: Any) -> None:
    what, make = step

    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.sleep(1.0)
        make(rt, send(session))
        return LATER

    with pytest.raises(ForgottenYieldFrom, match="without `yield from`") as mistake:
        run(handle)
    assert what in str(mistake.value)


def test_a_step_never_run_whose_result_is_used_is_named_too(step: Any, run: Any, send: Any) -> None:
    what, make = step

    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        row = make(rt, send(session))
        if row.status == "succeeded":
            yield from rt.sleep(1.0)
        return LATER

    with pytest.raises(ForgottenYieldFrom, match="without `yield from`") as mistake:
        run(handle)
    assert what in str(mistake.value)


def test_a_step_never_run_that_is_handed_to_a_policy_is_not_the_policys_mistake(
    run: Any,
) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.sleep(1.0)
        row = rt.settled(None, 5.0)
        return design.answer_to("known", row.status if isinstance(row, str) else row)

    with pytest.raises(ForgottenYieldFrom):
        replay(SAFE.but(handle=handle))


@pytest.mark.parametrize("caught", [Exception, pytest.param(Mistake, id="Mistake")])
def test_a_mistake_is_not_swallowed_by_an_except_of_the_code_that_makes_it(
    caught: type[Exception], run: Any, send: Any
) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        try:
            rt.call(REFUND, send(session), timeout=2.0)
            yield from rt.sleep(1.0)
        except caught:
            pass
        return LATER

    with pytest.raises(ForgottenYieldFrom):
        run(handle)


def test_a_step_that_was_run_is_never_called_forgotten(run: Any, send: Any) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        step = rt.sleep(1.0)
        yield from step
        order = rt.call(REFUND, send(session), timeout=2.0)
        yield from order
        assert (yield from rt.transact(nothing)) == "nothing"
        return LATER

    assert run(handle).trace[-1].what == "verifying"


def test_a_step_that_failed_is_not_called_forgotten(run: Any, send: Any) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        try:
            yield from rt.call(REFUND, send(session), timeout=0.001)
        except Exception:
            yield from rt.sleep(1.0)
        return LATER

    assert run(handle).trace[-1].what == "verifying"


# Other waits.


def test_yield_instead_of_yield_from_is_named(step: Any, run: Any, send: Any) -> None:
    _, make = step

    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield make(rt, send(session))
        return LATER

    with pytest.raises(YieldedSomethingElse, match=r"backend-1 .*`yield from` instead of `yield`"):
        run(handle)


@pytest.mark.parametrize("value", [None, 1.0, "a moment"])
def test_yielding_a_plain_value_is_named_with_what_to_wait_for(value: Any, run: Any) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield value
        return LATER

    with pytest.raises(YieldedSomethingElse, match=r"yielded a \w+.*rt\.sleep\(seconds\)"):
        run(handle)


def test_a_loop_in_zero_time_is_named_with_the_way_out(run: Any) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        while True:
            yield from rt.sleep(0)

    with pytest.raises(LoopsInZeroTime, match=r"backend-1 .*loops without waiting.*rt\.sleep"):
        run(handle)


def test_a_loop_that_takes_time_and_never_ends_is_a_stuck_history(run: Any) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        while True:
            yield from rt.sleep(3600.0)

    assert "stuck" in run(handle).verdict


HANGS = """
import signal
from simulator import designs, replay
from simulator.service.operations import Operation
def handle(rt, design, call, session):
    operation = Operation(*["x"] * 6, 1, "USD", "m", "k", "f")
    row = None
    while row is None:
        row = yield from rt.settled(operation, 1.0)
signal.setitimer(signal.ITIMER_VIRTUAL, 1.0)  # kills after a second of work
try:
    replay(designs.NAIVE.but(handle=handle))
except Exception as error:
    print(type(error).__name__)
"""


def test_waiting_in_a_loop_for_a_row_that_never_comes_does_not_hang() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGS], capture_output=True, text=True, cwd=HOUSE, check=False
    )
    assert done.returncode == 0


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_sleeping_for_no_possible_time_is_named(seconds: float, run: Any) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.sleep(seconds)
        return LATER

    with pytest.raises(PipelineRaised, match=r"rt\.sleep\(.*wait for 0 seconds or more"):
        run(handle)


# Pipelines that are none.


@pytest.mark.parametrize("returned", [None, LATER, "done"])
def test_a_pipeline_that_is_no_generator_is_told_how_to_be_one(returned: Any, run: Any) -> None:
    with pytest.raises(Mistake, match=r"at once. Write it as a generator.*`return Answer\(…\)`"):
        run(lambda rt, design, call, session: returned)


@pytest.mark.parametrize("returned", [None, "done", ("done", "paid"), True])
def test_a_pipeline_that_returns_no_answer_is_told_what_to_return(returned: Any, run: Any) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.sleep(1.0)
        return returned

    with pytest.raises(Mistake, match=r"has to return an Answer, for example Answer\('done'"):
        run(handle)


def test_a_pipeline_that_returns_an_answer_of_no_known_kind_is_told_the_kinds(run: Any) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.sleep(1.0)
        return Answer("paid", "hooray")

    with pytest.raises(Mistake, match="verifying"):
        run(handle)


def test_a_pipeline_that_raises_is_named_with_process_and_error(run: Any) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.sleep(1.0)
        return {}["refund"]

    with pytest.raises(
        PipelineRaised, match="In backend-1 the pipeline raised KeyError: 'refund'"
    ) as e:
        run(handle)
    assert isinstance(e.value.__cause__, KeyError)
    assert e.value.__cause__.__traceback__ is not None  # so that the line can be found


def test_a_pipeline_of_the_wrong_shape_says_so(run: Any) -> None:
    def handle(rt: Any, call: Any) -> Any:
        yield from rt.sleep(1.0)

    with pytest.raises((PipelineRaised, TypeError), match="takes 2 positional arguments"):
        run(handle)


def test_an_error_of_the_network_is_no_mistake_but_a_500_to_the_agent(run: Any, send: Any) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.call(REFUND, send(session), timeout=0.001)
        return LATER

    assert run(handle).trace[-1].text == "I have no answer yet."


# Calls and transactions.


@pytest.mark.parametrize("name", ["payments.refund", "refund", "database.begin", ""])
def test_a_call_that_nobody_answers_is_named_with_those_there_are(
    name: str, run: Any, send: Any
) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.call(name, send(session), timeout=2.0)
        return LATER

    with pytest.raises(Mistake, match=r"nobody answers such calls. There are provider\.refund"):
        run(handle)


@pytest.mark.parametrize("name", ["provider.refnd", "provider.", "provider", "customer.tell"])
def test_a_misspelt_call_is_named_and_pays_nothing(name: str, run: Any, send: Any) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.call(name, send(session), timeout=2.0)
        return LATER

    with pytest.raises(Mistake, match=r"provider\.refund"):
        run(handle)


@pytest.mark.parametrize("request_", [{"amount": 500_00}, None, "500.00", 500_00])
@pytest.mark.parametrize("name", [REFUND, "customer.notify"])
def test_a_request_that_its_receiver_cannot_read_is_named(
    name: str, request_: Any, run: Any
) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.call(name, request_, timeout=2.0)
        return LATER

    with pytest.raises(Mistake, match=name):
        run(handle)


def test_a_refund_for_an_intent_that_there_is_not_is_named(run: Any, send: Any) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        order = send(session)
        yield from rt.call(REFUND, type(order)("nobody", *list(fields(order))[1:]), timeout=2.0)
        return LATER

    with pytest.raises(Mistake, match="nobody"):
        run(handle)


def fields(order: Any) -> tuple[Any, ...]:
    return order.intent_id, order.order_id, order.amount, order.currency, order.key


def test_a_transaction_that_yields_is_named(run: Any) -> None:
    def transaction(tx: Any) -> Any:
        tx.execute("UPDATE orders SET pending = 5")
        yield

    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.transact(transaction)
        return LATER

    with pytest.raises(Mistake, match="transaction"):
        run(handle)


def test_a_transaction_may_be_any_callable(run: Any) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.transact(functools.partial(lambda tx, amount: amount, amount=5))
        return LATER

    assert run(handle).trace[-1].what == "verifying"


@pytest.mark.parametrize("transaction", [None, "begin", 5])
def test_a_transaction_that_is_no_function_is_named(transaction: Any, run: Any) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.transact(transaction)
        return LATER

    with pytest.raises(Mistake, match=r"\w"):
        run(handle)


def test_wrong_sql_is_named_with_what_the_database_said(run: Any) -> None:
    def transaction(tx: Any) -> None:
        tx.execute("SELECT * FROM refnds")

    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.transact(transaction)
        return LATER

    with pytest.raises(PipelineRaised, match="OperationalError: no such table: refnds"):
        run(handle)


# Policies.


@pytest.mark.parametrize("slot", ["key", "on_silence", "retry", "answer"])
@pytest.mark.parametrize("design", [NAIVE, SAFE], ids=lambda design: design.name)
def test_a_policy_that_raises_or_returns_nonsense_is_named_in_a_history(
    design: Any, slot: str
) -> None:
    def oops(*_: Any) -> Any:
        raise KeyError("oops")

    silent = [faults.lose_request(REFUND, nth=n) for n in range(1, 4)]
    if slot == "retry" and design is NAIVE:
        design = design.but(on_silence=lambda operation, silence: "again")
    for policy, words in ((oops, "raised KeyError: 'oops'"), (lambda *_: object(), "returned a")):
        with pytest.raises(PolicyMistake, match=f"policy `{slot}`.*{words}.*Expected"):
            replay(design.but(**{slot: policy}), faults=silent)


def test_a_mistake_comes_out_of_explore_and_simulate_as_it_is(pipe: Any) -> None:
    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        rt.sleep(1.0)
        yield from rt.sleep(1.0)
        return LATER

    with pytest.raises(ForgottenYieldFrom):
        explore(pipe(handle), max_faults=1)
    with pytest.raises(ForgottenYieldFrom):
        simulate(pipe(handle), Rates(lose_request=0.1), refunds=2)


def test_after_a_mistake_the_next_history_is_as_if_nothing_had_been(run: Any) -> None:
    before = replay(SAFE).text

    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        yield from rt.transact(nothing)
        yield 5

    for _ in range(3):
        with pytest.raises(Mistake):
            run(handle)
    assert replay(SAFE).text == before
