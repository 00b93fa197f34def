"""Two transactions, statement by statement, in every order, on a real database.

Each order of the statements of clients A and B is run on two connections. A statement that
blocks is noticed (`pg_blocking_pids`), and its client waits while the other goes on, as it
would in life.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from simulator.live.stage import Stage
from simulator.live.stage_postgresql import PostgreSQLStage
from simulator.live.stage_sqlite import SQLiteStage
from simulator.live.transactions import CASES, Case

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LEVELS", "OUTCOMES", "SQLITE", "Interleavings", "interleavings", "orders_of"]

LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
SQLITE = ("SQLite BEGIN", "SQLite BEGIN IMMEDIATE")
OUTCOMES = ("right", "over-refund", "doubled", "false success", "retry", "deadlock", "fails")
"""retry: a client got 40001 (SQLite: "database is locked") and nothing else went wrong.
fails: a statement is refused whenever it is run."""


def orders_of(first: int, second: int) -> Iterator[str]:
    """Every order of `first` turns of A and `second` of B: "AABB", "ABAB" and so on."""
    for places in combinations(range(first + second), first):
        yield "".join("A" if place in places else "B" for place in range(first + second))


@dataclass
class Interleavings:
    """What came of every order, for every case on every level.

    Attributes:
        outcomes: how many orders ended in which outcome, by (case, level).
        waited: in how many orders a client had to wait, by (case, level).
        examples: the first order that ended so, as a text, by (case, level, outcome).
        product: the database.
    """

    outcomes: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    waited: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str, str], str] = field(default_factory=dict)
    product: str = ""

    @property
    def frame(self) -> pd.DataFrame:
        """One row for every outcome that occurred: case, level, outcome, orders, of, waited."""
        import pandas as pd

        rows = [
            (case, level, outcome, count, sum(counts.values()), self.waited[case, level])
            for (case, level), counts in self.outcomes.items()
            for outcome, count in counts.items()
        ]
        return pd.DataFrame(rows, columns=["case", "level", "outcome", "orders", "of", "waited"])

    def example(self, case: str, level: str, outcome: str) -> str:
        """The first order of this case that ended so, statement by statement.

        Raises:
            ValueError: none did.
        """
        found = self.examples.get((case, level, outcome))
        if found is None:
            raise ValueError(f"No order of {case!r} on {level} ended in {outcome!r}.")
        return found

    def cell(self, case: str, level: str) -> str:
        """For example: 8 right, 12 over-refund."""
        counts = self.outcomes.get((case, level))
        if counts is None:
            return "–"
        if len(counts) == 1:
            return f"always {next(iter(counts))}"
        return ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name])

    def __str__(self) -> str:
        levels = list(dict.fromkeys(level for _, level in self.outcomes))
        cases = list(dict.fromkeys(case for case, _ in self.outcomes))
        table = [["", *levels]]
        table += [[case, *(self.cell(case, level) for level in levels)] for case in cases]
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
            for row in table
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([*lines, "", self.product])


def interleavings(
    url: str | None,
    cases: Sequence[Case] = CASES,
    levels: Sequence[str] = LEVELS,
    sqlite: bool = True,
) -> Interleavings:
    """Runs every order of every case.

    Args:
        url: of a PostgreSQL database; None: SQLite only.
        cases: which.
        levels: of isolation, on PostgreSQL.
        sqlite: whether to run them on SQLite, too.

    Raises:
        Problem: the database cannot be used.
    """
    found = Interleavings()
    products = []
    if url is not None:
        with PostgreSQLStage(url) as stage:
            products.append(stage.product)
            for case in cases:
                for level in levels:
                    run_case(found, stage, case, level)
    if sqlite:
        with SQLiteStage() as small:
            products.append(small.product)
            for case in cases:
                if small.knows(case):
                    for level in SQLITE:
                        run_case(found, small, case, level)
    found.product = ", ".join(products)
    return found


def run_case(found: Interleavings, stage: Stage, case: Case, level: str) -> None:
    """Runs all orders of one case on one level."""
    counts = found.outcomes.setdefault((case.name, level), Counter())
    turns = len(case.steps)
    for order in orders_of(turns, turns):
        history = stage.play(case, level, order)
        outcome = history.outcome
        counts[outcome] += 1
        found.waited[case.name, level] += history.waited
        found.examples.setdefault((case.name, level, outcome), str(history))
