"""Idle workers look when a look would find something, and never wait for what is not theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.experiments.verdict import judge
from simulator.service.answers import Answer
from simulator.service.designs import SAFE
from simulator.service.outbox import Outbox
from simulator.service.pipeline import handle as course
from simulator.service.recovery import NoRecovery, SameKey
from simulator.service.retry import Fixed, NoRetry
from simulator.world import faults
from simulator.world.scenario import AgentSettings, Intent, Order, Scenario, Submission

Run = Callable[..., Any]
REFUND = "provider.refund"


def claims(world: Any) -> list[tuple[float, str]]:
    return [
        (e.time / 1e6, e.process) for e in world.trace if (e.kind, e.what) == ("commit", "claim")
    ]


def test_a_worker_claims_right_after_the_commit_that_made_work(world: Run) -> None:
    made = world(SAFE)
    begun = next(e.time for e in made.trace if (e.kind, e.what) == ("commit", "begin")) / 1e6
    first = claims(made)[0]
    assert first[1] == "worker-1"
    assert begun < first[0] < begun + 0.01


def test_no_worker_looks_while_there_is_nothing_to_find(world: Run) -> None:
    # Two rows, the refund and the word to the customer: two claims, and no idle polling.
    assert len(claims(world(SAFE))) == 2


def test_the_steps_of_a_history_do_not_grow_with_the_time_it_waits(world: Run) -> None:
    counts = set()
    for wait in (10.0, 1_000.0, 50_000.0):
        design = SAFE.but(retry=Fixed(wait, 8))
        counts.add(len(world(design, faults.lose_request(REFUND)).steps))
    assert len(counts) == 1


@pytest.mark.parametrize("wait", [1.0, 7.5, 300.0])
def test_work_that_is_due_later_is_claimed_when_it_is_due(wait: float, world: Run) -> None:
    made = world(SAFE.but(retry=Fixed(wait, 8)), faults.lose_request(REFUND))
    finished = next(e.time for e in made.trace if (e.kind, e.what) == ("commit", "finish")) / 1e6
    again = claims(made)[1][0]
    assert finished + wait <= again < finished + wait + 0.1


def test_a_lease_is_taken_over_when_it_ends(world: Run) -> None:
    assert isinstance(SAFE.dispatch, Outbox)
    assert SAFE.dispatch.lease is not None
    made = world(SAFE, faults.crash(f"worker-1:{REFUND}", when="before_send"))
    (first, _), (second, _) = claims(made)[:2]
    assert first + SAFE.dispatch.lease <= second < first + SAFE.dispatch.lease + 0.1


def test_a_lease_that_nobody_may_take_over_wakes_nobody(world: Run) -> None:
    design = SAFE.but(recovery=NoRecovery())
    made = world(design, faults.crash(f"worker-1:{REFUND}", when="before_send"))
    assert len(claims(made)) == 1
    assert "stuck" in judge(made)


@pytest.mark.parametrize("worker", ["worker-1", "worker-2"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_worker_killed_or_paused_takes_no_work_with_it(
    times: int, worker: str, world: Run
) -> None:
    # Cases B16 and B62: what a dead or absent waiter was promised is lost to all others.
    idle = [faults.crash(f"{worker}:mark_told", nth=n) for n in range(1, times + 1)]
    scenario = Scenario(
        orders=(Order(captured=900_00),),
        intents=tuple(Intent(f"intent-{n}", amount=100_00) for n in range(1, 7)),
        submissions=tuple(
            Submission(f"intent-{n}", at=3.0 * n, instance=f"backend-{1 + n % 2}")
            for n in range(1, 7)
        ),
    )
    made = world(SAFE, *idle, scenario=scenario)
    assert judge(made) == frozenset()
    assert len(made.provider.ledger) == 6


def test_when_the_database_comes_up_again_work_goes_on(world: Run) -> None:
    made = world(SAFE, faults.database_down("claim", seconds=100.0))
    assert judge(made) == frozenset()
    assert 100.0 < claims(made)[0][0] < 131.0


def open_for(seconds: float, then: str) -> Callable[..., Any]:
    """The course's pipeline; backend-2 only holds a transaction open, and commits or dies."""

    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        if not rt.owner.startswith("backend-2"):
            return (yield from course(rt, design, call, session))
        tx = yield from rt.open("holding")
        yield from rt.sleep(seconds)
        if then == "dies":
            yield from rt.call("customer.notify", None, timeout=1.0)
        yield from rt.commit(tx)
        return Answer("verifying", "later")

    return handle


@pytest.mark.parametrize(
    "then",
    [
        "commits",
        "dies",
    ],
)
def test_work_that_fell_due_while_a_transaction_was_open_is_claimed_when_it_is_closed(
    then: str, world: Run
) -> None:
    # Silence at 2.03 s, due again at 5.03; backend-2 holds the database from 2.5 to 12.5.
    scenario = Scenario(
        intents=(Intent("intent-1"), Intent("intent-2", owed=False)),
        submissions=(
            Submission("intent-1"),
            Submission("intent-2", at=2.5, instance="backend-2"),
        ),
        agent=AgentSettings(resubmits=0),
    )
    design = SAFE.but(handle=open_for(10.0, then), retry=Fixed(3.0, 8))
    plan = [
        faults.lose_request(REFUND),
        faults.crash("backend-2:customer.notify", when="before_send"),
    ]
    made = world(design, *plan[: 2 if then == "dies" else 1], scenario=scenario)
    again = claims(made)[1][0]
    assert 12.5 < again < 12.7


def test_a_row_that_is_never_due_again_ends_the_history(world: Run) -> None:
    design = SAFE.but(recovery=SameKey(horizon=50.0, every=30.0), retry=NoRetry())
    made = world(design, *[faults.lose_request(REFUND, nth=n) for n in range(1, 9)])
    assert not made.capped
    assert made.database.rows("SELECT topic FROM tasks") == [("refund",)]
