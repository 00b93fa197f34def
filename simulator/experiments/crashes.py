"""The crash table: a process dies, or stops for long, at every point of the way. What comes of it?

The points are those of fault-free histories: before and after the commit of every transaction,
and before a call is sent, after it, and after its answer. Each cell of the table is a history of
its own, replayed and judged; nothing in it is written down beforehand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from simulator.experiments.explore import faults_at
from simulator.experiments.jobs import Row, run_jobs
from simulator.experiments.replay import check_scenario, check_switches, named_designs, replay
from simulator.service.design import Design
from simulator.service.designs import LADDER, SAFE
from simulator.world.faults import Fault
from simulator.world.scenario import Scenario

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["FAULTS", "NOT_TAKEN", "OUTCOMES", "crash_grid", "crash_table", "outcome_of"]

FAULTS = ("crash", "pause")
"""What happens to the process: SIGKILL, or a pause past the lease of its claims."""

RIGHT = "right"
OTHER = "other"
NOT_TAKEN = "-"
"""Where a design does not take the step."""

WORDS: dict[str, tuple[str, ...]] = {
    "doubled": ("double_refund",),
    "overpaid": ("over_refund",),
    "not allowed": ("unauthorized_refund", "unapproved_refund"),
    "lost": ("lost_refund",),
    "stuck": ("stuck",),
    "falsely told": ("false_answer",),
    "untold": ("untold",),
    "books differ": ("books_differ",),
}

OUTCOMES = (*WORDS, OTHER, RIGHT)
"""The words of the cells, from the worst to the best.

Money that left and should not have comes first, then money that is owed and does not come, then
what the customer was told, then our own records. "other" is what has no word of its own: a
conflict ignored, an illegal change of state, a needless task, a gap in the audit log.
"""


def outcome_of(broken: Collection[str]) -> str:
    """The worst that a history did, in a word of `OUTCOMES`.

    Args:
        broken: names of invariants, as a verdict has them.
    """
    if not broken:
        return RIGHT
    for word, invariants in WORDS.items():
        if any(name in broken for name in invariants):
            return word
    return OTHER


def crash_table(
    designs: Design | Iterable[Design] | Mapping[str, Design] = LADDER,
    scenario: Scenario | None = None,
    n_jobs: int = 1,
    progress: bool = False,
) -> DataFrame:
    """One crash, or one pause past the lease, at every point of every design's way.

    A step that a history takes more than once is tried each time, and the worst counts.

    Args:
        designs: one, several, or several under names of your own. Each is tried along the steps
            of its own fault-free history.
        scenario: by default one refund.
        n_jobs: processes; -1 = as many as there are cores. The result does not depend on it.
        progress: show a bar on stderr.

    Returns:
        Tidy: one row per point and design. Columns `step` (what is done, by whichever process),
        `fault` (crash or pause), `when` (the place in the step), `design`, `outcome` (a word of
        `OUTCOMES`, or "-" where the design does not take the step), `broken` (all invariants
        that the worst history broke) and `history` (its fault). Points are in the order of
        SAFE's way; a step that SAFE does not take comes after the one that leads to it.

    Raises:
        ValueError: there is no design, or two have one name.
        PolicyMistake, Mistake: a design cannot be run; the message says why.
    """
    from pandas import DataFrame

    check_switches(progress=progress)
    designs = [design.but(name=name) for name, design in named_designs(designs)]
    names = [design.name for design in designs]
    if not names:
        raise ValueError("there is no design to try: give one or more.")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two designs are called {twice[0]!r}; give each a name of its own.")
    setting = check_scenario(scenario)
    jobs: list[dict[str, Any]] = [{"design": design, "scenario": setting} for design in designs]
    done = run_jobs(_column, jobs, n_jobs=n_jobs, progress=progress, label="designs")
    cells = {
        (cell["step"], cell["fault"], cell["when"], name): cell
        for name, column in zip(names, done, strict=True)
        for cell in column
    }
    safe = done[names.index(SAFE.name)] if SAFE.name in names else _column(SAFE, setting)
    points = {
        (cell["step"], cell["fault"], cell["when"]): None
        for column in (safe, *done)
        for cell in column
    }
    order = _order([cell["step"] for cell in column] for column in (safe, *done))
    return DataFrame(
        [
            cells.get((*point, name)) or _cell(*point, name, NOT_TAKEN)
            for point in sorted(points, key=lambda point: order.index(point[0]))
            for name in names
        ]
    )


def _order(ways: Iterable[Sequence[str]]) -> list[str]:
    """Every step once, those of the first way in its order, others after what led to them."""
    order: list[str] = []
    for way in ways:
        place = 0
        for step in way:
            if step not in order:
                order.insert(place, step)
            place = order.index(step) + 1
    return order


def _column(design: Design, scenario: Scenario) -> list[Row]:
    """The cells of one design, in the order of its steps."""
    worst: dict[tuple[str, str, str], Row] = {}
    for step in replay(design, scenario).steps:
        for fault in _longest(faults_at(step, design, scenario, FAULTS)):
            verdict = replay(design, scenario, [fault]).verdict
            point = (step.what, fault.kind, fault.when)
            outcome = outcome_of(verdict)
            known = worst.get(point)
            if known is None or OUTCOMES.index(outcome) < OUTCOMES.index(known["outcome"]):
                broken = str(verdict) if verdict else ""
                worst[point] = _cell(*point, design.name, outcome, broken, str(fault))
    return list(worst.values())


def _cell(
    step: str, fault: str, when: str, design: str, outcome: str, broken: str = "", history: str = ""
) -> Row:
    return {
        "step": step,
        "fault": fault,
        "when": when,
        "design": design,
        "outcome": outcome,
        "broken": broken,
        "history": history,
    }


def _longest(faults: Iterable[Fault]) -> list[Fault]:
    """Of pauses at one place the longest: past the lease."""
    found: dict[tuple[str, str], Fault] = {}
    for fault in faults:
        known = found.setdefault((fault.kind, fault.when), fault)
        if fault.seconds > known.seconds:
            found[fault.kind, fault.when] = fault
    return list(found.values())


def crash_grid(table: DataFrame) -> DataFrame:
    """The table as people read it: a row per point, a column per design, a word in each cell.

    Args:
        table: what `crash_table` gave.

    Returns:
        Columns: the designs in the order of the table; index: (step, fault, when).
    """
    designs = list(dict.fromkeys(table["design"]))
    points = table[["step", "fault", "when"]].drop_duplicates()
    wide = table.pivot(index=["step", "fault", "when"], columns="design", values="outcome")
    return wide.loc[list(points.itertuples(index=False, name=None)), designs]
