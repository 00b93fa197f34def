"""A database on which two clients play, statement by statement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from simulator.live.transactions import FILL, Case, Seen, Step

__all__ = ["FRESH", "Client", "History", "Stage"]

FRESH = f"DELETE FROM orders; DELETE FROM payouts; DELETE FROM tool_operations; {FILL};"

RETRY = ("40001",)
DEADLOCK = "40P01"


@dataclass
class History:
    """What happened in one order.

    Attributes:
        lines: statement by statement.
        errors: SQLSTATEs that the clients got and did not expect.
        waited: whether a client had to wait.
        times: how often it was done in the end.
    """

    case: Case
    lines: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    waited: bool = False
    times: int = 0

    @property
    def outcome(self) -> str:
        """One of OUTCOMES."""
        if self.times > 1:
            return self.case.wrong
        if DEADLOCK in self.errors:
            return "deadlock"
        if any(error not in RETRY for error in self.errors):
            return "fails"
        return "retry" if self.errors else "right"

    def __str__(self) -> str:
        return "\n".join([*self.lines, f"done {self.times} times: {self.outcome}"])


class Client(ABC):
    """One of the two: runs its statements one by one, in a thread of its own if it can wait."""

    def __init__(self, name: str, history: History) -> None:
        self.name = name
        self.history = history
        self.seen = Seen()
        self.over = False

    def take(self, step: Step) -> None:
        """Runs a statement, unless the transaction is over or goes on without it."""
        if self.over or not step.needs(self.seen):
            return
        text = " ".join(step.sql.split())
        try:
            result = self.execute(step.sql)
        except Exception as error:
            state = self.state_of(error)
            self.history.lines.append(f"{self.name}: {text}\n   -> {state}")
            self.roll_back()
            self.over = True
            if state not in self.history.case.known:
                self.history.errors.append(state)
            return
        self.history.lines.append(f"{self.name}: {text}\n   -> {result}")
        self.over = step.sql == "COMMIT"

    @abstractmethod
    def execute(self, sql: str) -> str:
        """Runs it, notes what was seen, and returns a word about it."""

    @abstractmethod
    def state_of(self, error: Exception) -> str:
        """The SQLSTATE of an error; raises the error if it is none of the database's."""

    @abstractmethod
    def roll_back(self) -> None:
        """Ends the transaction."""

    def note(self, cursor: Any, selects: bool) -> str:
        """Remembers what a statement brought."""
        if selects:
            row = cursor.fetchone()
            self.seen.value = None if row is None else (row[0] if isinstance(row[0], int) else 1)
            return "no row" if row is None else str(row[0])
        self.seen.rows = cursor.rowcount
        return f"{cursor.rowcount} rows" if cursor.rowcount != 1 else "1 row"


class Stage(ABC):
    """A database on which two clients play."""

    product: str

    @abstractmethod
    def play(self, case: Case, level: str, order: str) -> History:
        """Runs one order from a fresh start."""
