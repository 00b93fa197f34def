"""When idle workers look at the outbox.

A real worker polls, or listens. Simulating polls that find nothing would fill every history
with them, so an idle worker is woken when a look would find a row: right after the commit
that made it due, or when its time has come. Each worker has a small lag of its own, so the
first takes the work and the others see that it is taken.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from simulator.service import outbox
from simulator.world.clock import Clock, Life
from simulator.world.database import VirtualDatabase, VirtualTransaction, read
from simulator.world.luck import Luck

__all__ = ["Wakeup"]

FIRST_LAG = 1_000
NEXT_LAG = 50_000


class Wakeup:
    """Knows who waits for work, and wakes them in time.

    Args:
        takes_over: whether a claim whose lease has ended counts as work.
    """

    def __init__(self, clock: Clock, database: VirtualDatabase, takes_over: bool) -> None:
        self.clock = clock
        self.database = database
        self.takes_over = takes_over
        self.reader = VirtualTransaction(database.connection, 0, {}, Luck(0))
        self.waiting: dict[str, tuple[Life, Any]] = {}
        self.looks: dict[str, int] = {}
        self._known: int | None = None
        self._fresh = False

    def wait(self, life: Life) -> Any:
        """The event that happens when this worker's look finds something."""
        event = self.clock.event()
        self.waiting[life.process] = (life, event)
        self._plan()
        return event

    def changed(self) -> None:
        """Something was committed: plan who looks when."""
        self._fresh = False
        self._plan()

    def _plan(self) -> None:
        if not self.waiting:
            return
        due = self._due()
        if due is None:
            return
        now = int(self.clock.now)
        for process in self.waiting:
            at = max(due, now) + self._lag(process)
            planned = self.looks.get(process)
            if planned is None or at < planned or planned < now:
                self.looks[process] = at
                self.clock.after(at - now, partial(self._look, process, at))

    def _look(self, process: str, planned: int, _: Any) -> None:
        if self.looks.get(process) == planned:
            del self.looks[process]
        if process not in self.waiting:
            return
        life, event = self.waiting[process]
        if not life.alive:
            del self.waiting[process]
            return
        due = self._due()
        if due is not None and due <= self.clock.now:
            del self.waiting[process]
            event.succeed()
        elif due is not None:
            self._plan()

    def _due(self) -> int | None:
        database = self.database
        if not database.up or database.holder is not None:
            return None  # the end of that is a change, and calls `changed`
        if not self._fresh:
            text = outbox.next_due(self.reader, self.takes_over)
            self._known = None if text is None else read(text)
            self._fresh = True
        return self._known

    @staticmethod
    def _lag(process: str) -> int:
        number = int(process.rsplit("-", 1)[1])
        return FIRST_LAG + (number - 1) * NEXT_LAG
