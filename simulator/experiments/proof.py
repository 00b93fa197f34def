"""Every history with up to k faults, on many cores: what `explore` finds, sooner.

The histories with k faults are those with k - 1, each extended by a fault at each of its later
steps; what extends one history has nothing to do with what extends another. So the histories
with k - 1 faults are dealt out in small piles. Piles are read in the order in which `explore`
goes, and reading stops where it would: the counts and the counterexample are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tqdm import tqdm

from simulator.experiments.explore import Exploration, try_plan, wanted_kinds
from simulator.experiments.jobs import Row, run_jobs
from simulator.experiments.replay import check_design, check_scenario, check_switches, replay
from simulator.experiments.words import counted
from simulator.service.design import Design
from simulator.world.faults import Fault
from simulator.world.scenario import Scenario

__all__ = ["prove"]

Plan = tuple[Fault, ...]

PILE = 10
"""Histories that one job extends at most: about a second of work."""

ROUND = 8
"""Jobs per process between two looks at whether a counterexample was found."""


def prove(
    design: Design,
    scenario: Scenario | None = None,
    max_faults: int = 2,
    n_jobs: int = 1,
    kinds: Iterable[str] | None = None,
    progress: bool = False,
) -> Exploration:
    """Tries no fault, then every one, then every two, up to `max_faults`, on many cores.

    Stops at the first counterexample. The result is that of `explore(design, scenario,
    max_faults, kinds)`, and does not depend on `n_jobs`.

    Args:
        design, scenario: as in `replay`.
        max_faults: 0 or more. Each one more multiplies the histories by about a hundred.
        n_jobs: processes; -1 = as many as there are cores.
        kinds: names of fault kinds to try; by default all.
        progress: show a bar on stderr.

    Raises:
        ValueError: an argument is not what it should be.
        PolicyMistake, Mistake: the design cannot be run; the message says why.
    """
    check_design(design)
    scenario = check_scenario(scenario)
    check_switches(progress=progress)
    wanted = wanted_kinds(kinds, max_faults)
    found = Exploration(design, scenario, max_faults)
    _, verdict = try_plan(found, (), True, 0, ())
    if verdict:
        found.counterexample = replay(design, scenario)
        return found
    parents: list[Plan] = [()]
    for count in range(1, max_faults + 1):
        children: list[Plan] = []
        for pile in _read(found, parents, count, wanted, n_jobs, progress):
            found.schedules += sum(pile["by_verdict"].values())
            found.by_verdict.update(pile["by_verdict"])
            if pile["wrong"] is not None:
                found.counterexample = replay(design, scenario, pile["wrong"])
                return found
            children += pile["children"]
        parents = children
    found.complete = True
    return found


def _read(
    found: Exploration,
    parents: Sequence[Plan],
    count: int,
    kinds: tuple[str, ...],
    n_jobs: int,
    progress: bool,
) -> Iterator[Row]:
    """What the piles of one number of faults came to, in order."""
    from joblib import effective_n_jobs

    processes = effective_n_jobs(n_jobs)
    at_once = ROUND * processes if processes > 1 else 1
    size = max(1, min(PILE, len(parents) // (4 * at_once)))
    jobs: list[dict[str, Any]] = [
        {
            "design": found.design,
            "scenario": found.scenario,
            "parents": parents[first : first + size],
            "kinds": kinds,
            "last": count == found.max_faults,
        }
        for first in range(0, len(parents), size)
    ]
    title = f"{found.design.name}, {found.scenario.name}, {counted(count, 'fault')}"
    bar = tqdm(desc=title, total=len(parents), unit="", delay=2, leave=False, disable=not progress)
    with bar:
        for first in range(0, len(jobs), at_once):
            some = jobs[first : first + at_once]
            for job, rows in zip(some, run_jobs(_extend, some, n_jobs=n_jobs), strict=True):
                bar.update(len(job["parents"]))
                yield from rows


def _extend(
    design: Design, scenario: Scenario, parents: Sequence[Plan], kinds: tuple[str, ...], last: bool
) -> list[Row]:
    """Runs all that extends these plans by one fault, up to the first that is wrong."""
    counted = Exploration(design, scenario, 0)
    children: list[Plan] = []
    for parent in parents:
        again = Exploration(design, scenario, 0)  # the parent has been counted before
        for plan in try_plan(again, parent, True, 0, kinds)[0]:
            _, verdict = try_plan(counted, plan, True, 0, ())
            if verdict:
                return [{"by_verdict": counted.by_verdict, "wrong": plan, "children": []}]
            if not last:
                children.append(plan)
    return [{"by_verdict": counted.by_verdict, "wrong": None, "children": children}]
