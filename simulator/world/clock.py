"""Processes that live, pause and die, and the tasks that run in them, on SimPy.

SimPy's own `Process` resumes its generator from a callback of the event that it waits for.
Interrupting it, or taking that callback away, comes too late for an event that is being
processed, and leaves a failed event with nobody to catch it. So a `Task` drives its generator
itself and asks at delivery whether it may: a dead one is never resumed, whatever it waited
for; a paused one gets its events when it resumes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import lru_cache
from typing import Any

from simpy import Environment, Timeout

from simulator.world.mistakes import ForgottenYieldFrom, LoopsInZeroTime, YieldedSomethingElse

__all__ = ["BudgetUsed", "Clock", "Dead", "Life", "Task", "microseconds"]

STEPS_IN_ONE_INSTANT = 2_000
"""More deliveries to one task than this at one time of the clock are a loop."""


@lru_cache
def microseconds(seconds: float) -> int:
    """Seconds as the clock counts them, at least 1: no step takes no time."""
    return max(1, round(seconds * 1_000_000))


class BudgetUsed(Exception):
    """A history went on for longer than any that ends."""


class Clock(Environment):
    """SimPy's environment, its time in microseconds, with a cap and a budget of steps.

    Attributes:
        cap: time after which a task that still goes on never ends.
        budget: how many more events tasks may be given before the history counts as endless.
    """

    def __init__(self, cap: int = 2**62, budget: int = 60_000) -> None:
        super().__init__(0)
        self.cap = cap
        self.budget = budget

    def after(self, delay: int, act: Callable[[Any], None]) -> None:
        """Calls `act(event)` in `delay` microseconds."""
        Timeout(self, delay).callbacks.append(act)


class Dead(BaseException):
    """Raised in whoever uses a handle of a dead process, so that nothing comes of it.

    A `BaseException`: no `except Exception` of the code under trial may catch it.
    """


class Life:
    """One life of a process: what it knows, whether it may act, and the tasks it runs.

    Attributes:
        process: the process's name, for example worker-1.
        number: which life it is, from 1.
        alive: False from the moment it is killed.
        paused: whether it is paused.
        memory: what dies with it.
        tasks: those not ended yet.
        current: the one that is running right now.
        on_death: what the world around it does when it dies.
    """

    __slots__ = (
        "alive",
        "current",
        "inbox",
        "memory",
        "number",
        "on_death",
        "paused",
        "process",
        "tasks",
    )

    def __init__(self, process: str, number: int) -> None:
        self.process = process
        self.number = number
        self.alive = True
        self.paused = False
        self.memory: dict[str, Any] = {}
        self.tasks: list[Task] = []
        self.inbox: list[Callable[[], None]] = []
        self.on_death: list[Callable[[], None]] = []
        self.current: Task | None = None

    @property
    def owner(self) -> str:
        """Name and number: who holds a claim."""
        return f"{self.process}#{self.number}"

    def resume(self) -> None:
        """Lets it go on: everything that happened meanwhile is delivered, in order."""
        self.paused = False
        waiting, self.inbox = self.inbox, []
        for position, deliver in enumerate(waiting):
            if self.paused:  # paused again by one of its own steps
                self.inbox = waiting[position:] + self.inbox
                return
            if self.alive:
                deliver()

    def kill(self) -> list[Task]:
        """SIGKILL: nothing of it runs any more. Returns the tasks, whose generators are left
        suspended: closing them would run their `finally`.
        """
        self.alive = False
        self.current = None
        self.inbox.clear()
        tasks, self.tasks = self.tasks, []
        cleanup, self.on_death = self.on_death, []
        for clean in cleanup:
            clean()
        return tasks


class Task:
    """Drives one generator in one life of a process.

    Args:
        env: the clock.
        life: whose task it is.
        generator: yields SimPy events.
        ended: called with (result, error) when the generator has returned or raised.
    """

    __slots__ = (
        "count",
        "ended",
        "env",
        "generator",
        "instant",
        "life",
        "made",
        "mistake",
        "on_end",
    )

    def __init__(
        self,
        env: Clock,
        life: Life,
        generator: Generator[Any, Any, Any],
        ended: Callable[[Any, BaseException | None], None],
    ) -> None:
        self.env = env
        self.life = life
        self.generator = generator
        self.ended = ended
        self.on_end: list[Callable[[], None]] = []
        self.made: tuple[str, Any] | None = None
        self.mistake: ForgottenYieldFrom | None = None
        self.instant = -1.0
        self.count = 0
        life.tasks.append(self)

    def start(self) -> None:
        """Lets the generator run to its first wait."""
        self._advance(None, True)

    def deliver(self, event: Any) -> None:
        """Gives the event to the generator, if there is still somebody to give it to."""
        event.defused = True  # a failure is the task's to handle; a dead one handles nothing
        life = self.life
        if not life.alive:
            return
        if life.paused:
            life.inbox.append(lambda: self.deliver(event))
            return
        self._advance(event.value, event.ok)

    def _advance(self, value: Any, ok: bool) -> None:
        life = self.life
        self.env.budget -= 1
        now = self.env.now
        if self.env.budget < 0 or now > self.env.cap:
            raise BudgetUsed
        life.current = self
        if now != self.instant:
            self.instant, self.count = now, 0
        self.count += 1
        if self.count > STEPS_IN_ONE_INSTANT:
            raise LoopsInZeroTime(life.process, self.count, int(now))
        try:
            target = self.generator.send(value) if ok else self.generator.throw(value)
            if self.mistake is not None:
                raise self.mistake
        except StopIteration as stop:
            self._end(stop.value, None)
            return
        except Dead:
            return
        except Exception as error:
            self._end(None, error)
            return
        if not life.alive:
            return
        try:
            callbacks = target.callbacks
        except AttributeError:
            raise YieldedSomethingElse(life.process, target) from None
        if callbacks is None:  # it has happened already
            self.env.after(0, lambda _: self.deliver(target))
        else:
            callbacks.append(self.deliver)

    def making(self, what: str, step: Any) -> None:
        """Remembers a step that the runtime hands out, to notice if it is never run."""
        self.check_made()
        self.made = (what, step)

    def check_made(self) -> None:
        """Raises ForgottenYieldFrom if the last step was never run."""
        if self.made is not None:
            what, step = self.made
            self.made = None
            if step.gi_frame is not None and not (step.gi_suspended or step.gi_running):
                step.close()
                # Kept, too: an `except` of the code that made the mistake may swallow it.
                self.mistake = ForgottenYieldFrom(what)
                raise self.mistake

    def _end(self, value: Any, error: BaseException | None) -> None:
        # A step that was never run explains whatever came of using it as its own result.
        self.life.tasks.remove(self)
        for clean in self.on_end:
            clean()
        if self.mistake is None:
            self.check_made()
        self.ended(value, self.mistake or error)
