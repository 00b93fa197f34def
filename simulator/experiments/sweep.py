"""Many designs under many rates of faults, on as many cores as there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.experiments.jobs import Row, run_jobs
from simulator.experiments.replay import check_seed, check_switches, named_designs
from simulator.experiments.simulate import several_rates, simulate
from simulator.service.design import Design
from simulator.world.faults import Rates
from simulator.world.scenario import Scenario

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["sweep"]


def sweep(
    designs: Design | Iterable[Design] | Mapping[str, Design],
    rates: Rates | Iterable[Rates],
    refunds: int = 10_000,
    seed: int = 1,
    scenario: Scenario | None = None,
    n_jobs: int = 1,
    *,
    keep: str | Path | None = None,
    progress: bool = False,
) -> DataFrame:
    """How often each design breaks which invariant, over the rates of the faults.

    Every design meets the same luck: refund number 17 loses the same messages under all of them.

    Args:
        designs: one, several, or several under names of your own.
        rates: one or several, for example [faults.Rates(lose_response=p) for p in (0, 0.1, 0.2)].
        refunds: histories of each design under each rates, every one in a world of its own.
        seed: of all luck.
        scenario: by default one refund.
        n_jobs: processes; -1 = as many as there are cores. The result does not depend on it.
        keep: a folder for results: what it has already is not worked out again, so that a sweep
            that was stopped goes on there. Results of other versions of the code are not used.
        progress: show a bar on stderr.

    Returns:
        Tidy: one row per design, rates and outcome, with the columns `design`; one for each rate
        that is not at its default everywhere; `outcome, count, rate, low, high` (Wilson, 95 %);
        `refunds, seed`.

    Raises:
        ValueError: there is nothing to sweep, or two designs have the same name.
    """
    from pandas import DataFrame

    check_seed(seed)
    check_switches(progress=progress)
    named, ways = named_designs(designs), several_rates(rates)
    if not named or not ways:
        raise ValueError(
            f"there is nothing to sweep: {len(named)} designs, {len(ways)} rates. Give at least "
            "one of each."
        )
    twice = sorted({name for name, _ in named if [other for other, _ in named].count(name) > 1})
    if twice:
        raise ValueError(
            f"two designs are called {twice[0]!r}; give each a name of its own, in a dict."
        )
    jobs = [
        {"design": design, "rates": way, "refunds": refunds, "seed": seed, "scenario": scenario}
        for way in ways
        for _, design in named
    ]
    done = run_jobs(_cell, jobs, n_jobs=n_jobs, keep=keep, progress=progress, label="designs")
    varied = [
        field.name
        for field in fields(Rates)
        if any(getattr(way, field.name) != field.default for way in ways)
    ]
    labels = [
        {"design": name} | {field: getattr(way, field) for field in varied}
        for way in ways
        for name, _ in named
    ]
    return DataFrame(
        [
            label | row | {"refunds": refunds, "seed": seed}
            for label, rows in zip(labels, done, strict=True)
            for row in rows
        ]
    )


def _cell(
    design: Design, rates: Rates, refunds: int, seed: int, scenario: Scenario | None
) -> list[Row]:
    frame = simulate(design, rates, refunds=refunds, seed=seed, scenario=scenario).frame
    rows: list[dict[Any, Any]] = frame.to_dict("records")
    return [{str(key): _plain(value) for key, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    """A number of Python's own, which JSON can keep."""
    return value.item() if hasattr(value, "item") else value
