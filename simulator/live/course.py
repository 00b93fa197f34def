"""How a campaign goes: agents submit, a killer kills, and all comes to rest."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

from tqdm import tqdm

from simulator.live.database import Database
from simulator.live.people import Agent, Customers, Wish
from simulator.live.processes import Crew
from simulator.live.stops import CALL_PLACES, TRANSACTION_PLACES
from simulator.service.design import Design
from simulator.service.outbox import Outbox

__all__ = ["OPEN", "Course", "steps_of"]

AT_LEAST = 1.0
"""Seconds of the wall's clock that a process gets to come to the step where it is to stop."""

REST = 1_000.0
"""Seconds of the service without any progress, after which a run will never come to its end.
The safe design waits 300 s between two looks into an outcome that it could not find out."""

REST_WITHOUT_OUTBOX = 30.0
"""The same where no worker looks into anything again: longer than a call and its retries."""

UNDONE = """
    SELECT COUNT(*) FROM outbox
    WHERE done_at IS NULL AND dead_at IS NULL AND available_at IS NOT NULL
"""
OPEN = """
    SELECT COUNT(*) FROM tool_operations o
    WHERE o.status NOT IN ('succeeded', 'failed')
      AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.operation_id = o.id)
"""


def steps_of(design: Design) -> list[tuple[str, str, str]]:
    """Every place where a process of this design can be made to stop:
    ("backend" | "worker" | "provider", step, place).
    """
    backend: list[tuple[str, tuple[str, ...]]] = [("begin", TRANSACTION_PLACES)]
    worker: list[tuple[str, tuple[str, ...]]] = []
    provider: list[tuple[str, tuple[str, ...]]] = [("effect", ("before", "after"))]
    if design.dispatch.inline:
        backend += [("provider.refund", CALL_PLACES), ("finish", TRANSACTION_PLACES)]
    elif isinstance(design.dispatch, Outbox):
        worker = [
            ("claim", TRANSACTION_PLACES),
            ("provider.refund", CALL_PLACES),
            ("finish", TRANSACTION_PLACES),
        ]
        if getattr(design.answer, "follow_up", False):
            worker += [("customer.notify", CALL_PLACES), ("mark_told", TRANSACTION_PLACES)]
    else:
        backend.append(("broker.publish", CALL_PLACES))
        worker = [
            ("start", TRANSACTION_PLACES),
            ("provider.refund", CALL_PLACES),
            ("finish", TRANSACTION_PLACES),
        ]
    roles = {"backend": backend, "worker": worker, "provider": provider}
    return [
        (role, step, place)
        for role, steps in roles.items()
        for step, places in steps
        for place in places
    ]


class Course:
    """One campaign, from the first submission to its rest."""

    def __init__(
        self,
        design: Design,
        kills: int,
        agents: int,
        seed: int,
        crew: Crew,
        database: Database,
        wishes: list[Wish],
        customers: Customers,
        bar: tqdm[Any],
    ) -> None:
        self.design = design
        self.kills = kills
        self.agents = agents
        self.seed = seed
        self.crew = crew
        self.database = database
        self.wishes = wishes
        self.interrupted = False
        self.agent = Agent(crew.setting.clock, customers, crew.addresses, self.over)
        self.bar = bar
        self.submitted = 0
        self.answered = 0
        self.hungry = 0
        self._lock = threading.Condition()

    def run(self) -> bool:
        """Submits, kills, and waits for the end; whether everything came to rest."""
        killer = threading.Thread(target=self._kill, daemon=True)
        killer.start()
        try:
            with ThreadPoolExecutor(self.agents) as pool:
                try:
                    list(pool.map(self._submit, range(len(self.wishes))))
                except BaseException:
                    self.interrupted = True
                    raise
        finally:
            killer.join()
        rested = self._rest()
        self.crew.check()
        return rested

    def over(self) -> bool:
        """Whether the run ends early: nobody waits for its end any more, or it cannot go on."""
        return self.interrupted or self.crew.problem is not None

    def _submit(self, number: int) -> None:
        with self._lock:
            # Refunds wait for their share of the kills, so that neither runs out first.
            while not self._may_begin(number) and not self.over():
                self._lock.wait(0.01)
            if self.over():
                return
            self.submitted += 1
        self.agent.submit(self.wishes[number], number)
        with self._lock:
            self.answered += 1
            self.bar.update()
            self.bar.set_postfix(kills=len(self.crew.deaths))

    def _may_begin(self, number: int) -> bool:
        share = (number - self.agents) * self.kills / max(1, len(self.wishes))
        return len(self.crew.deaths) + self.hungry >= share

    def _kill(self) -> None:
        chance = random.Random(self.seed)
        steps = steps_of(self.design)
        chance.shuffle(steps)
        for number in count():
            if len(self.crew.deaths) >= self.kills or self.over():
                return
            if number % 2 or self.answered == len(self.wishes):
                # When all are answered, hardly anybody comes by a named step any more.
                self._kill_at_random(chance)
            else:
                self._kill_at(*steps[number // 2 % len(steps)])

    def _names(self, role: str) -> list[str]:
        everybody = {"backend": self.crew.backends, "worker": self.crew.workers}
        return everybody.get(role, ["provider"])

    def _kill_at(self, role: str, what: str, place: str) -> None:
        crew, names = self.crew, self._names(role)
        for _ in range(3):
            before = len(crew.deaths)
            crew.stop_at(names, what, place)
            with crew.changed:
                crew.changed.wait_for(lambda: len(crew.deaths) > before, AT_LEAST)  # noqa: B023
            crew.stop_nowhere(names)
            if len(crew.deaths) > before:
                return
            self.hungry += 1  # nobody got there: more refunds are needed
        crew.kill(names[0])

    def _kill_at_random(self, chance: random.Random) -> None:
        names = self.crew.backends + self.crew.workers
        time.sleep(chance.uniform(0, 0.1))
        self.crew.kill(chance.choice(names))

    def _rest(self) -> bool:
        """Waits until nothing is left to do; whether that came about.

        Without an outbox nobody looks at a refund again: what is then left stays so.
        """
        outbox = isinstance(self.design.dispatch, Outbox)
        clock, patience = self.crew.setting.clock, REST if outbox else REST_WITHOUT_OUTBOX
        left, since = self._left(), clock.now()
        while left and clock.now() < since + patience and not self.over():
            time.sleep(0.05)
            before, left = left, self._left()
            if left < before:
                since = clock.now()
        return not left or not outbox

    def _left(self) -> int:
        return sum(int(self.database.rows(query)[0][0]) for query in (UNDONE, OPEN))
