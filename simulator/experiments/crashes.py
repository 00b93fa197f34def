"""The crash table: a process dies, or stops for long, at every point of the way. What comes of it?

The points are before and after the commit of every transaction, and before a call is sent, after
it, and after its answer. Each cell of the table is a history of its own, replayed and judged;
nothing in it is written down beforehand.

No single history takes every step: people decide only where consent is needed, and the provider
is asked only where it was silent. So the points are those of several scenarios, and of one in
which something has gone wrong already. The calls of the provider itself, its reports, are no
points: what is tested is our processes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from simulator.experiments.explore import faults_at
from simulator.experiments.jobs import Row, run_jobs
from simulator.experiments.replay import check_scenario, check_switches, named_designs, replay
from simulator.experiments.run import Run
from simulator.service.design import Design
from simulator.service.designs import LADDER, SAFE
from simulator.world import faults
from simulator.world.faults import Fault
from simulator.world.scenario import Scenario

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "FAULTS",
    "NOT_TAKEN",
    "OUTCOMES",
    "SETTINGS",
    "Prepared",
    "alike",
    "crash_grid",
    "crash_table",
    "outcome_of",
]

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


Point = tuple[str, str, str]
"""What is done, what happens to the process, and where in the step."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A scenario in which something may have gone wrong already.

    Attributes:
        scenario: the setting.
        faults: what has gone wrong; the crash comes after the last of them that strikes.
    """

    scenario: Scenario
    faults: tuple[Fault, ...] = ()

    @property
    def name(self) -> str:
        """As in the column `scenario` of the table."""
        after = f" after {', '.join(map(str, self.faults))}" if self.faults else ""
        return f"{self.scenario.name}{after}"


SETTINGS = (
    Prepared(Scenario.one_refund()),
    # For 19.5 h nobody can claim the refund, then the provider is away until the 20 h are over
    # for which SAFE sends at all: sent, sent again, asked about, and left to a person.
    Prepared(
        Scenario.one_refund(),
        (
            faults.database_down("claim", seconds=19.5 * 3600),
            faults.provider_down("provider.refund", seconds=4 * 3600.0),
        ),
    ),
    Prepared(Scenario.webhook_storm()),
    Prepared(Scenario.approval_between()),
    Prepared(Scenario.charged_back_in_between()),
    Prepared(Scenario.strangers_goods()),
)
"""Where `crash_table` looks by default: together they have every step that SAFE can take.

Each has steps, or tasks of the worker, that those before it do not have: the first all of a plain
refund; then asking the provider and handing over to a person; its reports; a manager's yes and a
question that expires; a refund that is called off before it is sent; the other tools, and refusals.
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
    scenario: Scenario | Prepared | Sequence[Scenario | Prepared] | None = None,
    n_jobs: int = 1,
    progress: bool = False,
) -> DataFrame:
    """One crash, or one pause past the lease, at every point of every design's way.

    A step that a history takes more than once is tried each time, and the worst counts.

    Args:
        designs: one, several, or several under names of your own; each is tried along the steps
            of its own histories.
        scenario: one, or several; by default all of `SETTINGS`.
        n_jobs: processes; -1 = as many as there are cores. The result does not depend on it.
        progress: show a bar on stderr.

    Returns:
        Tidy: one row per scenario, point and design. Columns `scenario` (its name, and what went
        wrong before), `step` (what is done, by whichever process), `fault` (crash or pause),
        `when` (the place in the step), `design`, `outcome` (a word of `OUTCOMES`, or "-" where
        the design does not take the step), `without` (what its history comes to without the
        crash or pause), `broken` (all invariants that the worst history broke) and `history` (the
        faults of that history). Points are in the order of SAFE's way; a step that SAFE does not
        take comes after the one that leads to it.

    Raises:
        ValueError: there is no design or no scenario, or two have one name.
        PolicyMistake, Mistake: a design cannot be run; the message says why.
    """
    from pandas import DataFrame

    check_switches(progress=progress)
    settings = _settings(scenario)
    designs = [design.but(name=name) for name, design in named_designs(designs)]
    names = _names("design", designs)
    jobs: list[dict[str, Any]] = [
        {"design": design, "setting": setting} for setting in settings for design in designs
    ]
    done = iter(run_jobs(_column, jobs, n_jobs=n_jobs, progress=progress, label="designs"))
    return DataFrame(
        [
            row
            for setting in settings
            for row in _rows(setting, {name: next(done) for name in names})
        ]
    )


def _settings(
    scenario: Scenario | Prepared | Sequence[Scenario | Prepared] | None,
) -> tuple[Prepared, ...]:
    if scenario is None:
        return SETTINGS
    given = scenario if isinstance(scenario, list | tuple) else [scenario]
    settings = tuple(
        each if isinstance(each, Prepared) else Prepared(check_scenario(each)) for each in given
    )
    _names("scenario", settings)
    return settings


def _names(what: str, things: Sequence[Design | Prepared]) -> list[str]:
    names = [thing.name for thing in things]
    if not names:
        raise ValueError(f"there is no {what} to try: give one or more.")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two {what}s are called {twice[0]!r}; give each a name of its own.")
    return names


def _rows(setting: Prepared, columns: Mapping[str, list[Row]]) -> list[Row]:
    """The rows of one scenario: the cells of each design, and where it has none."""
    safe = replay(SAFE, setting.scenario, setting.faults)
    ways = [list(dict.fromkeys(map(_point, _way(safe))))]
    cells: dict[tuple[str, str, str, str], Row] = {}
    for name, column in columns.items():
        ways.append([(cell["step"], cell["fault"], cell["when"]) for cell in column])
        cells.update(((*point, name), cell) for point, cell in zip(ways[-1], column, strict=True))
    order = _order([step for step, _, _ in way] for way in ways)
    points = dict.fromkeys(point for way in ways for point in way)
    rows: list[Row] = []
    for point in sorted(points, key=lambda point: order.index(point[0])):
        for name, column in columns.items():
            without = column[0]["without"] if column else NOT_TAKEN
            missing = _cell(setting.name, point, name, NOT_TAKEN, without)
            rows.append(cells.get((*point, name), missing))
    return rows


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


def _column(design: Design, setting: Prepared) -> list[Row]:
    """The cells of one design in one scenario, in the order of its steps."""
    plain = replay(design, setting.scenario, setting.faults)
    without = outcome_of(plain.verdict)
    worst: dict[Point, Row] = {}
    for fault in _way(plain):
        plan = (*setting.faults, fault)
        verdict = replay(design, setting.scenario, plan).verdict
        point = _point(fault)
        outcome = outcome_of(verdict)
        known = worst.get(point)
        if known is None or OUTCOMES.index(outcome) < OUTCOMES.index(known["outcome"]):
            broken = str(verdict) if verdict else ""
            history = ", ".join(map(str, plan))
            worst[point] = _cell(
                setting.name, point, design.name, outcome, without, broken, history
            )
    return list(worst.values())


def _way(run: Run) -> Iterator[Fault]:
    """What can strike a history, at each of its points; not before what has struck it already."""
    struck = [place for place, _ in run.struck]
    if run.faults and not struck:
        return  # a design that this cannot befall
    for step in run.steps[max(struck, default=-1) + 1 :]:
        yield from _longest(faults_at(step, run.design, run.scenario, FAULTS))


def _point(fault: Fault) -> Point:
    return fault.step.split(":")[-1], fault.kind, fault.when


def _cell(
    scenario: str,
    point: Point,
    design: str,
    outcome: str,
    without: str,
    broken: str = "",
    history: str = "",
) -> Row:
    step, fault, when = point
    return {
        "scenario": scenario,
        "step": step,
        "fault": fault,
        "when": when,
        "design": design,
        "outcome": outcome,
        "without": without,
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
        Columns: the designs in the order of the table; index: (scenario, step, fault, when).
    """
    index = ["scenario", "step", "fault", "when"]
    designs = list(dict.fromkeys(table["design"]))
    points = table[index].drop_duplicates()
    wide = table.pivot(index=index, columns="design", values="outcome")
    return wide.loc[list(points.itertuples(index=False, name=None)), designs]


class Places(NamedTuple):
    """Places next to each other, in one step, at which a fault comes to the same.

    Attributes:
        when: the places, in their order.
        everywhere: whether the step has no others.
        words: the outcome of each design.
    """

    step: str
    fault: str
    when: tuple[str, ...]
    everywhere: bool
    words: tuple[str, ...]


def alike(grid: DataFrame) -> list[Places]:
    """The rows of a grid of one scenario, those next to each other and alike as one."""
    cells = [
        (step, fault, when, tuple(row))
        for (_, step, fault, when), row in zip(
            grid.index, grid.itertuples(index=False), strict=True
        )
    ]
    rows: list[Places] = []
    for (step, fault), points in groupby(cells, key=lambda cell: cell[:2]):
        places = list(points)
        for words, same in groupby(places, key=lambda cell: cell[3]):
            when = tuple(place for _, _, place, _ in same)
            rows.append(Places(step, fault, when, len(when) == len(places), words))
    return rows
