"""Death and pause, seen from the code that dies: a crash is SIGKILL."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from simulator.experiments.replay import replay
from simulator.experiments.verdict import judge
from simulator.service.answers import Answer
from simulator.service.design import Design
from simulator.service.designs import NAIVE, SAFE
from simulator.service.operations import DurableRecord
from simulator.service.outbox import Outbox
from simulator.world import faults
from simulator.world.clock import Dead
from simulator.world.database import Store
from simulator.world.faults import CALL_PLACES, TRANSACTION_PLACES, Plan
from simulator.world.scenario import AgentSettings, Scenario, Submission
from simulator.world.world import World

Run = Callable[..., Any]
REFUND = "provider.refund"
ONCE = Scenario.one_refund().but(agent=AgentSettings(resubmits=0))


def clinging(log: list[str], send: Any) -> Callable[..., Any]:
    """A pipeline that tries by all means to do something when it is killed."""

    def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
        try:
            yield from rt.call(REFUND, send(session), timeout=2.0)
            log.append("answered")
        except BaseException as error:
            log.append(f"except {type(error).__name__}")
            raise
        finally:
            log.append("finally")
        return Answer("verifying", "later")

    return handle


@pytest.mark.parametrize("when", CALL_PLACES)
def test_neither_except_nor_finally_of_the_killed_runs_while_the_run_is_alive(
    when: str, pipe: Any, send: Any
) -> None:
    log: list[str] = []
    run = replay(pipe(clinging(log, send)), ONCE, faults=[faults.crash(REFUND, when=when)])
    gc.collect()
    assert log == []
    assert "dies" in run.text
    assert log == []


def test_they_run_only_when_the_next_history_takes_the_database(
    world: Run, pipe: Any, send: Any, store: Store
) -> None:
    log: list[str] = []
    made = world(pipe(clinging(log, send)), faults.crash(REFUND, when="after_send"), scenario=ONCE)
    judge(made)
    del made
    gc.collect()
    assert log == []
    store.clean(ONCE.orders)
    assert log == ["except GeneratorExit", "finally"]


def test_whoever_waits_when_the_history_ends_is_not_woken_to_clean_up_either(
    world: Run, pipe: Any
) -> None:
    log: list[str] = []

    def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
        try:
            yield from rt.received()  # nothing ever comes
        finally:
            log.append("finally")
        return Answer("verifying", "later")

    made = world(pipe(handle), scenario=ONCE)
    gc.collect()
    assert log == []
    assert made.told[-1].text == "I have no answer yet."


# The handles of the dead.


def test_the_handles_of_the_dead_do_nothing_any_more(
    world: Run, pipe: Any, send: Any, store: Store
) -> None:
    heard: list[str] = []

    def insert(tx: Any) -> None:
        tx.execute("INSERT INTO tasks VALUES ('dead', 'refund', 'I am dead', 'now')")

    def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
        tx = yield from rt.open("mine")
        try:
            yield from rt.call(REFUND, send(session), timeout=2.0)
        finally:
            for act in (
                lambda: (yield from rt.transact(insert)),
                lambda: (yield from rt.call(REFUND, send(session), timeout=2.0)),
                lambda: (yield from rt.call("customer.notify", None, timeout=2.0)),
                lambda: (yield from rt.sleep(1.0)),
                lambda: (yield from rt.commit(tx)),
                lambda: (yield from rt.open("another")),
                lambda: (yield from rt.settled(None, 1.0)),
                lambda: (yield from rt.received()),
            ):
                try:
                    yield from act()
                except BaseException as error:
                    heard.append(type(error).__name__)
            try:
                tx.execute("INSERT INTO tasks VALUES ('dead', 'refund', 'I am dead', 'now')")
            except BaseException as error:
                heard.append(type(error).__name__)
        return Answer("done", "I am dead")

    died = faults.crash(REFUND, when="after_send")
    before = world(pipe(handle), died, scenario=ONCE)
    trace, ledger = list(before.trace), list(before.provider.ledger)
    after = world(SAFE)
    assert heard == ["Dead"] * 8 + ["RuntimeError"]
    assert (before.trace, before.provider.ledger) == (trace, ledger)
    undisturbed = world(SAFE, on=Store())
    assert after.trace == undisturbed.trace
    assert after.database.rows("SELECT * FROM tasks") == []


def test_a_handle_that_survives_its_process_is_inert(world: Run, pipe: Any, send: Any) -> None:
    kept: list[Any] = []

    def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
        kept.append(rt)
        yield from rt.call(REFUND, send(session), timeout=2.0)
        return Answer("verifying", "later")

    made = world(pipe(handle), faults.crash(REFUND), scenario=ONCE)
    steps = list(made.steps)
    for use in (
        lambda rt: rt.call(REFUND, None, timeout=1.0),
        lambda rt: rt.transact(len),
        lambda rt: rt.sleep(1.0),
        lambda rt: rt.settled(None, 1.0),
        lambda rt: rt.due(),
        lambda rt: rt.received(),
        lambda rt: rt.open("x"),
    ):
        with pytest.raises(Dead):
            use(kept[0])
    assert made.steps == steps


def test_no_except_exception_of_the_dying_catches_its_death() -> None:
    assert not issubclass(Dead, Exception)


def test_code_that_refuses_to_be_closed_stops_nobody(world: Run, pipe: Any, send: Any) -> None:
    def stubborn(rt: Any, design: Design, call: Any, session: Any) -> Any:
        try:
            yield from rt.call(REFUND, send(session), timeout=2.0)
        finally:
            raise LookupError("never!")
        return Answer("verifying", "later")

    world(pipe(stubborn), faults.crash(REFUND, when="after_send"), scenario=ONCE)
    assert judge(world(SAFE)) == frozenset()


# The same instant.


class KillsTheBackend(DurableRecord):
    """Kills the backend that waits for the outcome, in the instant that makes it final."""

    worlds: ClassVar[list[World]] = []

    def finish(self, *arguments: Any, **more: Any) -> str | None:
        world = self.worlds[-1]
        world.kill(world.lives["backend-1"])
        return super().finish(*arguments, **more)


def test_killed_while_waiting_for_what_somebody_else_brings_about_in_the_same_instant(
    store: Store,
) -> None:
    design = SAFE.but(record=KillsTheBackend())
    made = World(design, ONCE, Plan(()), 0, store)
    KillsTheBackend.worlds.append(made)
    made.run()
    (final,) = [e.time for e in made.trace if e.what == "processing->succeeded"]
    (crash,) = [e.time for e in made.trace if e.kind == "crash"]
    assert crash == final
    assert [e for e in made.trace if (e.process, e.kind) == ("backend-1", "response")] == []
    assert [e.what for e in made.trace if (e.process, e.kind) == ("agent", "reset")] == [
        "tool.issue_refund"
    ]
    assert not made.capped


@pytest.mark.parametrize("step", ["claim", "finish", REFUND, "customer.notify"])
@pytest.mark.parametrize("after", [True, False])
def test_between_its_death_and_its_restart_a_process_does_nothing(
    after: bool, step: str, world: Run
) -> None:
    call = "." in step
    places = CALL_PLACES if call else TRANSACTION_PLACES
    made = world(SAFE, faults.crash(f"worker-1:{step}", when=places[-1 if after else 0]))
    (crash,) = [n for n, e in enumerate(made.trace) if e.kind == "crash"]
    (restart,) = [n for n, e in enumerate(made.trace) if e.kind == "restart"]
    assert made.trace[restart].time - made.trace[crash].time == 5_000_000
    between = [e.kind for e in made.trace[crash + 1 : restart] if e.process == "worker-1"]
    assert set(between) <= {"arrive", "lost"}  # what others do to it
    assert judge(made) == frozenset()


# Zombies.


ZOMBIE = faults.pause(f"worker-1:{REFUND}", when="after_answer", seconds=60.0)


def zombie_lease() -> float:
    assert isinstance(SAFE.dispatch, Outbox)
    assert SAFE.dispatch.lease is not None
    return SAFE.dispatch.lease


def test_a_worker_that_pauses_past_its_lease_comes_back_and_its_write_is_fenced_off(
    world: Run,
) -> None:
    assert zombie_lease() < ZOMBIE.seconds
    made = world(SAFE, ZOMBIE)
    finishes = [e for e in made.trace if (e.kind, e.what) == ("commit", "finish")]
    assert [e.process for e in finishes] == ["worker-2", "worker-1"]  # it did try
    assert [e.what for e in made.trace if e.kind == "state"] == [
        "->pending",
        "pending->processing",
        "processing->outcome_unknown",
        "outcome_unknown->processing",
        "processing->succeeded",
    ]
    assert len(made.provider.ledger) == 1
    assert judge(made) == frozenset()


def test_without_a_fence_the_zombie_writes_over_what_the_other_has_written(world: Run) -> None:
    # Not paid, then paused: the zombie brings home a failure that the other has mended.
    unfenced = SAFE.but(dispatch=Outbox(fence=False))
    assert judge(world(unfenced, ZOMBIE)) >= {"books_differ"}


def test_a_zombie_that_pauses_before_it_sends_sends_when_it_comes_back_and_pays_nothing(
    world: Run,
) -> None:
    made = world(SAFE, faults.pause(f"worker-1:{REFUND}", when="before_send", seconds=60.0))
    sent = [e.process for e in made.trace if (e.kind, e.what) == ("request", REFUND)]
    assert sent == ["worker-2", "worker-1"]
    assert len(made.provider.ledger) == 1
    assert [e.kind for e in made.trace if e.kind == "replayed"] == ["replayed"]


def test_a_pause_shorter_than_the_lease_changes_nothing_but_the_time(world: Run) -> None:
    made = world(SAFE, faults.pause(f"worker-1:{REFUND}", when="after_answer", seconds=10.0))
    assert [e.process for e in made.trace if (e.kind, e.what) == ("commit", "finish")] == [
        "worker-1"
    ]


# Requests to the dead and the paused.


def test_a_call_to_a_dead_instance_breaks_and_to_a_paused_one_waits(
    world: Run, pipe: Any, send: Any
) -> None:
    served: list[tuple[float, str]] = []

    def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
        served.append((round(rt.now(), 2), call.call_id[-1]))
        yield from rt.call("customer.notify", word(), timeout=2.0)
        return Answer("verifying", "later")

    scenario = ONCE.but(
        submissions=(
            Submission("intent-1"),
            Submission("intent-1", at=1.0, thought=2),
            Submission("intent-1", at=2.0, thought=3),
        )
    )
    died = faults.crash("customer.notify", when="before_send")
    made = world(pipe(handle), died, scenario=scenario)
    assert served == [(0.02, "1")]
    assert [e.time for e in made.trace if (e.process, e.kind) == ("agent", "reset")] == [
        40_000,
        1_040_000,
        2_040_000,
    ]
    served.clear()
    stopped = faults.pause("customer.notify", when="before_send", seconds=10.0)
    world(pipe(handle), stopped, scenario=scenario)
    assert served == [(0.02, "1"), (10.02, "2"), (10.02, "3")]  # in the order of their coming


def word() -> Any:
    from simulator.service.worker import Message

    return Message("intent-1", Answer("verifying", "later"))


def test_a_call_that_waited_for_a_paused_process_is_cut_off_when_that_process_dies(
    world: Any,
) -> None:
    # The second click waits at the door; what the first does when it goes on kills backend-1.
    scenario = Scenario(
        submissions=(Submission("intent-1"), Submission("intent-1", at=1.0, thought=2)),
        agent=AgentSettings(resubmits=0, patience=100.0),
    )
    made = world(
        NAIVE,
        faults.pause("backend-1:begin", when="after", seconds=10.0),
        faults.crash("backend-1:provider.refund", when="before_send"),
        scenario=scenario,
    )
    cut_off = [e.time for e in made.trace if e.kind == "reset" and e.process == "agent"]
    assert len(cut_off) == 2
    assert all(time < 11_000_000 for time in cut_off)
