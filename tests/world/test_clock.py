"""Tasks die and pause at delivery, on SimPy's public API alone."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.world.clock import BudgetUsed, Clock, Life, Task, microseconds
from simulator.world.mistakes import LoopsInZeroTime, YieldedSomethingElse

Steps = Generator[Any, Any, Any]


class Bench:
    """A clock, and tasks that write into one log."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.log: list[Any] = []
        self.ends: list[tuple[Any, BaseException | None]] = []
        self.graveyard: list[Any] = []

    def life(self, name: str = "victim") -> Life:
        return Life(name, 1)

    def task(self, life: Life, steps: Steps) -> Task:
        task = Task(self.clock, life, steps, lambda value, error: self.ends.append((value, error)))
        task.start()
        return task

    def kill(self, life: Life) -> None:
        """Kills, and keeps the dead, as a world does: forgotten, they would be closed."""
        self.graveyard += [task.generator for task in life.kill()]

    def waiting(self, *events: Any) -> Steps:
        """Waits for one event after the other, and logs what it hears, however it ends."""
        try:
            for event in events:
                try:
                    self.log.append((yield event))
                except ValueError as error:
                    self.log.append(f"caught {error}")
        except BaseException as error:
            self.log.append(f"except {type(error).__name__}")
            raise
        finally:
            self.log.append("finally")


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_task_runs_from_event_to_event_to_its_end(bench: Bench) -> None:
    one, two = bench.clock.timeout(5, "a"), bench.clock.timeout(9, "b")
    bench.task(bench.life(), bench.waiting(one, two))
    bench.clock.run()
    assert bench.log == ["a", "b", "finally"]
    assert bench.ends == [(None, None)]
    assert bench.clock.now == 9


def test_a_task_returns_its_value_or_hands_on_its_error(bench: Bench) -> None:
    def returns() -> Steps:
        yield bench.clock.timeout(1)
        return 42

    def fails() -> Steps:
        yield bench.clock.timeout(2)
        raise LookupError("gone")

    bench.task(bench.life(), returns())
    bench.task(bench.life(), fails())
    bench.clock.run()
    (value, none), (nothing, error) = bench.ends
    assert (value, none, nothing) == (42, None, None)
    assert isinstance(error, LookupError)


def test_an_event_that_has_happened_already_is_delivered(bench: Bench) -> None:
    event = bench.clock.event()
    event.succeed("early")
    bench.clock.run()
    bench.task(bench.life(), bench.waiting(event))
    bench.clock.run()
    assert bench.log == ["early", "finally"]


def test_a_failed_event_is_thrown_into_the_task_that_waits_for_it(bench: Bench) -> None:
    event = bench.clock.event()
    bench.task(bench.life(), bench.waiting(event))
    event.fail(ValueError("no"))
    bench.clock.run()
    assert bench.log == ["caught no", "finally"]


# Death.


def test_who_is_killed_hears_nothing_of_what_it_waited_for(bench: Bench) -> None:
    life, event = bench.life(), bench.clock.event()
    bench.task(life, bench.waiting(event))
    bench.clock.after(1, lambda _: bench.kill(life))
    bench.clock.after(2, lambda _: event.succeed("late"))
    bench.clock.run()
    assert bench.log == []
    assert bench.ends == []


@pytest.mark.parametrize("killer_first", [True, False])
def test_killed_in_the_instant_in_which_another_process_triggers_the_event(
    killer_first: bool, bench: Bench
) -> None:
    # SimPy's Process would be resumed: the event is on its way when the interrupt comes.
    life, event = bench.life(), bench.clock.event()
    bench.task(life, bench.waiting(event))

    def other() -> Steps:
        yield bench.clock.timeout(10)
        if killer_first:
            bench.kill(life)
        event.succeed("paid")
        if not killer_first:
            bench.kill(life)

    bench.task(bench.life("other"), other())
    bench.clock.run()
    assert bench.log == []


def test_killed_by_an_earlier_waiter_of_the_very_event_that_is_being_processed(
    bench: Bench,
) -> None:
    # The callbacks of the event are being called: taking one off the list comes too late.
    life, event = bench.life(), bench.clock.event()

    def killer() -> Steps:
        yield event
        bench.kill(life)

    bench.task(bench.life("other"), killer())
    bench.task(life, bench.waiting(event))
    event.succeed("both hear it")
    bench.clock.run()
    assert bench.log == []


@pytest.mark.parametrize("how", ["before", "same instant", "after"])
def test_a_failure_of_what_the_dead_waited_for_stops_nobody(how: str, bench: Bench) -> None:
    life, event = bench.life(), bench.clock.event()
    bench.task(life, bench.waiting(event))
    bench.task(bench.life("other"), bench.waiting(bench.clock.timeout(100, "alive")))
    at = {"before": 5, "same instant": 10, "after": 15}[how]
    bench.clock.after(at, lambda _: bench.kill(life))
    bench.clock.after(10, lambda _: event.fail(ValueError("late")) if not life.alive else None)
    bench.clock.after(20, lambda _: None if event.triggered else event.fail(ValueError("late")))
    bench.clock.run()
    assert event.triggered
    assert bench.log == ["alive", "finally"]


def test_a_failure_that_nobody_ever_waited_for_does_stop_the_run(bench: Bench) -> None:
    # So that the test above can fail.
    bench.clock.event().fail(ValueError("nobody's"))
    with pytest.raises(ValueError, match="nobody's"):
        bench.clock.run()


def test_neither_except_nor_finally_of_the_killed_runs_while_it_lies_in_the_graveyard(
    bench: Bench,
) -> None:
    life = bench.life()
    task = bench.task(life, bench.waiting(bench.clock.event()))
    bench.kill(life)
    del task
    bench.clock.run()
    gc.collect()
    assert bench.log == []
    bench.graveyard.clear()
    gc.collect()
    assert bench.log == ["except GeneratorExit", "finally"]  # the test can tell


def test_all_tasks_of_a_process_die_with_it_and_no_other(bench: Bench) -> None:
    life, other = bench.life(), bench.life("other")
    for owner in (life, other, life):
        bench.task(owner, bench.waiting(bench.clock.timeout(5, owner.process)))
    bench.kill(life)
    assert len(bench.graveyard) == 2
    bench.clock.run()
    assert bench.log == ["other", "finally"]


def test_a_task_that_kills_its_own_process_goes_no_further(bench: Bench) -> None:
    life = bench.life()

    def suicide() -> Steps:
        yield bench.clock.timeout(1)
        bench.kill(life)
        yield bench.clock.timeout(1)
        bench.log.append("alive")

    bench.task(life, suicide())
    bench.clock.run()
    assert bench.log == []


def test_what_hangs_on_a_life_is_cleaned_up_when_it_ends_once(bench: Bench) -> None:
    life = bench.life()
    life.on_death.append(lambda: bench.log.append("cleaned"))
    bench.kill(life)
    bench.kill(life)
    assert bench.log == ["cleaned"]


# Pause.


def test_a_paused_process_gets_its_events_in_order_when_it_resumes(bench: Bench) -> None:
    life = bench.life()
    for name, at in (("c", 30), ("a", 10), ("b", 20)):
        bench.task(life, bench.waiting(bench.clock.timeout(at, name)))
    life.paused = True
    bench.clock.after(100, lambda _: (bench.log.append("resume"), life.resume()))
    bench.clock.run()
    assert [entry for entry in bench.log if entry != "finally"] == ["resume", "a", "b", "c"]


def test_a_paused_process_catches_its_failed_events_when_it_resumes(bench: Bench) -> None:
    life, event = bench.life(), bench.clock.event()
    bench.task(life, bench.waiting(event))
    life.paused = True
    event.fail(ValueError("reset"))
    bench.clock.after(100, lambda _: life.resume())
    bench.clock.run()
    assert bench.log == ["caught reset", "finally"]


def test_paused_again_while_it_resumes_the_rest_waits_in_order_for_the_next_time(
    bench: Bench,
) -> None:
    life = bench.life()

    def pauses(name: str, at: int) -> Steps:
        yield bench.clock.timeout(at)
        bench.log.append((name, int(bench.clock.now)))
        life.paused = True
        bench.clock.after(100, lambda _: life.resume())

    for name, at in (("a", 10), ("b", 20)):
        bench.task(life, pauses(name, at))
    for name, at in (("c", 30), ("d", 40)):
        bench.task(life, bench.waiting(bench.clock.timeout(at, (name, at))))
    life.paused = True
    bench.clock.after(1000, lambda _: life.resume())
    late = bench.clock.timeout(1050, "e, during the second pause")
    bench.task(life, bench.waiting(late))
    bench.clock.run()
    assert [entry for entry in bench.log if entry != "finally"] == [
        ("a", 1000),
        ("b", 1100),
        ("c", 30),
        ("d", 40),
        "e, during the second pause",
    ]
    assert bench.clock.now == 1200


def test_killed_while_paused_it_gets_nothing_when_it_would_have_resumed(bench: Bench) -> None:
    life = bench.life()
    bench.task(life, bench.waiting(bench.clock.timeout(10, "a")))
    life.paused = True
    bench.clock.after(50, lambda _: bench.kill(life))
    bench.clock.after(100, lambda _: life.resume())
    bench.clock.run()
    assert bench.log == []


def test_killed_by_its_own_first_step_after_a_pause_it_takes_no_second(bench: Bench) -> None:
    life = bench.life()

    def suicide() -> Steps:
        yield bench.clock.timeout(10)
        bench.kill(life)
        yield bench.clock.event()

    bench.task(life, suicide())
    bench.task(life, bench.waiting(bench.clock.timeout(20, "b")))
    life.paused = True
    bench.clock.after(100, lambda _: life.resume())
    bench.clock.run()
    assert bench.log == []


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 40)), max_size=3),
)
def test_pauses_delay_events_and_never_lose_double_or_reorder_them(
    times: list[int], pauses: list[tuple[int, int]]
) -> None:
    bench = Bench()
    life = bench.life()
    for number, at in enumerate(times):
        bench.task(life, bench.waiting(bench.clock.timeout(at, (at, number))))

    def stop(until: int) -> Callable[[Any], None]:
        def pause(_: Any) -> None:
            if not life.paused:
                life.paused = True
                bench.clock.after(until, lambda _: life.resume())

        return pause

    for at, long in pauses:
        bench.clock.after(at, stop(long))
    bench.clock.run()
    heard = [entry for entry in bench.log if entry != "finally"]
    assert heard == sorted((at, number) for number, at in enumerate(times))


# Limits.


def test_every_step_takes_at_least_a_microsecond() -> None:
    assert microseconds(0) == microseconds(1e-9) == 1
    assert microseconds(0.05) == 50_000
    assert isinstance(microseconds(2.0), int)


def test_a_task_that_goes_on_while_no_time_passes_is_named(bench: Bench) -> None:
    def loops() -> Steps:
        yield bench.clock.timeout(7_000_000)
        while True:
            yield bench.clock.timeout(0)

    bench.task(bench.life("worker-1"), loops())
    with pytest.raises(LoopsInZeroTime, match=r"worker-1 took .* clock stood at 7 s.*rt\.sleep"):
        bench.clock.run()


def test_many_steps_that_take_time_are_no_loop(bench: Bench) -> None:
    def works() -> Steps:
        for _ in range(5_000):
            yield bench.clock.timeout(1)

    bench.task(bench.life(), works())
    bench.clock.run()
    assert bench.ends == [(None, None)]


def test_many_tasks_in_one_instant_are_no_loop(bench: Bench) -> None:
    event = bench.clock.event()
    for _ in range(3_000):
        bench.task(bench.life(), bench.waiting(event))
    event.succeed("all")
    bench.clock.run()
    assert bench.log.count("all") == 3_000


def test_a_history_that_never_ends_uses_up_its_budget() -> None:
    bench = Bench()
    bench.clock = Clock(budget=100)

    def goes_on() -> Steps:
        while True:
            yield bench.clock.timeout(1)

    bench.task(bench.life(), goes_on())
    with pytest.raises(BudgetUsed):
        bench.clock.run()
    assert bench.clock.now < 200


def test_a_task_that_goes_on_past_the_cap_ends_the_history() -> None:
    bench = Bench()
    bench.clock = Clock(cap=1_000)
    bench.task(bench.life(), bench.waiting(bench.clock.timeout(1_000, "in time")))
    bench.clock.run()
    assert bench.log == ["in time", "finally"]
    bench.task(bench.life(), bench.waiting(bench.clock.timeout(1, "too late")))
    with pytest.raises(BudgetUsed):
        bench.clock.run()


@pytest.mark.parametrize("value", [None, 5, "rt.sleep(1)", object()])
def test_waiting_for_what_is_no_event_is_named(value: Any, bench: Bench) -> None:
    def yields() -> Steps:
        yield value

    with pytest.raises(
        YieldedSomethingElse, match=rf"backend-1 yielded a {type(value).__name__}.*`yield from rt"
    ):
        bench.task(bench.life("backend-1"), yields())


def test_yield_instead_of_yield_from_is_told_from_other_values(bench: Bench) -> None:
    def yields() -> Steps:
        yield bench.waiting()

    with pytest.raises(YieldedSomethingElse, match="Write `yield from` instead of `yield`"):
        bench.task(bench.life("backend-1"), yields())


def test_time_is_whole_microseconds_all_along(bench: Bench) -> None:
    def works() -> Steps:
        for seconds in (0.1, 0.2, 1 / 3):
            yield bench.clock.timeout(microseconds(seconds))
            bench.log.append(bench.clock.now)

    bench.task(bench.life(), works())
    bench.clock.run()
    assert bench.log == [100_000, 300_000, 633_333]
    assert all(isinstance(now, int) for now in bench.log)
