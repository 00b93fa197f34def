"""How long an unknown outcome stays unknown, and how often finding out goes wrong.

Every refund has a world of its own. If its operation ever was `outcome_unknown`, two things are
asked: how many seconds passed from the first time until it was final, or until a human was
asked, or whether neither came; and whether what was done about it was wrong.

The world writes no trace for this: its database keeps every change of state and its time. And a
history that no fault strikes is not run at all; see `calm_steps`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from math import ceil, inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.experiments.jobs import Row, run_jobs
from simulator.experiments.replay import (
    check_scenario,
    check_seed,
    check_switches,
    named_designs,
    store,
)
from simulator.experiments.simulate import several_rates, world_seed
from simulator.experiments.statistics import Rate, rate_interval
from simulator.service.checks import whole
from simulator.service.design import Design
from simulator.service.designs import SAFE
from simulator.service.keys import NoKey
from simulator.service.operations import FINAL
from simulator.service.recovery import AskThenSend, Blind, NoRecovery
from simulator.world.database import Store, read
from simulator.world.faults import Chance, Plan, Rates
from simulator.world.scenario import ProviderSettings, Scenario
from simulator.world.world import World

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "ENDS",
    "WRONG",
    "Followed",
    "Unknown",
    "follow",
    "lookups",
    "recoveries",
    "resolutions",
    "table",
]

ENDS: Mapping[str, str] = {
    "resolved": "it became final",
    "handed": "a human was asked first",
    "never": "neither, to the end of the history",
}
"""How an unknown outcome can end."""

WRONG: Mapping[str, str] = {
    "paid_again": "paid more than once, and fewer times had nobody looked into it",
    "paid_booked_failed": "booked as failed, and paid",
    "unpaid_booked_succeeded": "booked as succeeded, and never paid",
}
"""What a wrong resolution can be; of two, the first counts."""


def recoveries() -> dict[str, Design]:
    """SAFE with each way to deal with an unknown outcome, by what it does.

    The blind one sends no key to the provider: with one it would be `SameKey` without an end.
    """
    ways = {
        "same key": SAFE,
        "asks, then sends anew": SAFE.but(recovery=AskThenSend()),
        "sends blindly": SAFE.but(recovery=Blind(), key=NoKey()),
        "nobody looks": SAFE.but(recovery=NoRecovery()),
    }
    return {name: design.but(name=name) for name, design in ways.items()}


def lookups() -> dict[str, Scenario]:
    """One refund, at a provider that can be asked at once, after a minute, or not at all."""
    lags = {"exact look-up": 0.0, "look-up lags 60 s": 60.0, "no look-up": None}
    return {
        name: Scenario.one_refund().but(name=name, provider=ProviderSettings(lookup_lag=lag))
        for name, lag in lags.items()
    }


@dataclass(frozen=True, slots=True)
class Unknown:
    """One refund whose outcome was unknown for a while.

    Attributes:
        refund: its number, from 0.
        end: a key of `ENDS`.
        seconds: from the first `outcome_unknown` to that end; None if neither end came.
        wrong: a key of `WRONG`, or "".
        sends: how often the provider was sent the refund in the whole history.
        paid: how often it paid.
    """

    refund: int
    end: str
    seconds: float | None
    wrong: str
    sends: int
    paid: int


@dataclass(frozen=True)
class Followed:
    """All unknown outcomes of one design under one set of rates.

    Attributes:
        labels: `design`, `scenario` if there were several, and each rate that was varied.
        refunds: how many histories were run.
    """

    labels: Mapping[str, Any]
    refunds: int
    unknowns: tuple[Unknown, ...]

    @property
    def seconds(self) -> list[float]:
        """Of every unknown outcome, ascending: seconds until it was resolved; inf if it was not."""
        found = (one.seconds if one.end == "resolved" else None for one in self.unknowns)
        return sorted(inf if one is None else one for one in found)

    def resolved_within(self, share: float) -> float:
        """Seconds within which this share (above 0, up to 1) of all unknown outcomes was resolved.

        Those that never were count: inf if too few were resolved, NaN if nothing was unknown.
        """
        if not 0 < share <= 1:
            raise ValueError(f"resolved_within({share!r}): a share is above 0, and at most 1.")
        ordered = self.seconds
        return ordered[ceil(share * len(ordered)) - 1] if ordered else nan

    def wrong(self, kind: str | None = None) -> Rate:
        """How many of the unknown outcomes were resolved wrongly (in this way), with interval."""
        if kind is not None and kind not in WRONG:
            raise ValueError(f"{kind!r} is not one of {', '.join(WRONG)}.")
        count = sum(bool(one.wrong) if kind is None else one.wrong == kind for one in self.unknowns)
        return rate_interval(count, len(self.unknowns))


def resolutions(
    designs: Design | Iterable[Design] | Mapping[str, Design],
    rates: Rates | Iterable[Rates],
    refunds: int = 1000,
    seed: int = 1,
    scenario: Scenario | Mapping[str, Scenario] | None = None,
    n_jobs: int = 1,
    *,
    keep: str | Path | None = None,
    progress: bool = False,
) -> DataFrame:
    """How soon each design resolves unknown outcomes, and how often wrongly: see `table`.

    Args:
        designs: one, several, or several under names of your own, for example `recoveries()`.
        rates: one or several.
        refunds: histories of each design under each rates.
        seed: of all luck: refund 17 loses the same messages under every design.
        scenario: one, with a single intent; or several under names, for example `lookups()`.
        n_jobs: processes; -1 = as many as there are cores. The result does not depend on it.
        keep: a folder for results, as in `sweep`.
        progress: show a bar on stderr.

    Raises:
        ValueError: there is nothing to do, two designs have one name, or a scenario has more
            than one intent.
    """
    return table(
        follow(designs, rates, refunds, seed, scenario, n_jobs, keep=keep, progress=progress)
    )


def follow(
    designs: Design | Iterable[Design] | Mapping[str, Design],
    rates: Rates | Iterable[Rates],
    refunds: int = 1000,
    seed: int = 1,
    scenario: Scenario | Mapping[str, Scenario] | None = None,
    n_jobs: int = 1,
    *,
    keep: str | Path | None = None,
    progress: bool = False,
) -> list[Followed]:
    """What `resolutions` counts, one by one; the arguments are the same."""
    check_seed(seed)
    check_switches(progress=progress)
    named, ways = named_designs(designs), several_rates(rates)
    settings = scenario if isinstance(scenario, Mapping) else {"": scenario}
    cells = [
        (label, setting, way, name, design)
        for label, setting in settings.items()
        for way in ways
        for name, design in named
    ]
    if not cells:
        raise ValueError(
            f"there is nothing to follow: {len(named)} designs, {len(ways)} rates, "
            f"{len(settings)} scenarios. Give at least one of each."
        )
    name, times = Counter(name for name, _ in named).most_common(1)[0]
    if times > 1:
        raise ValueError(
            f"two designs are called {name!r}; give each a name of its own, in a dict."
        )
    if not whole(refunds, at_least=1):
        raise ValueError(f"refunds={refunds!r}: give 1 or more.")
    jobs = [
        {
            "design": design,
            "rates": way,
            "refunds": refunds,
            "seed": seed,
            "scenario": _one_intent(setting),
        }
        for _, setting, way, _, design in cells
    ]
    done = run_jobs(_cell, jobs, n_jobs=n_jobs, keep=keep, progress=progress, label="designs")
    varied = [
        field.name
        for field in fields(Rates)
        if any(getattr(way, field.name) != field.default for way in ways)
    ]
    return [
        Followed(
            {"design": name}
            | ({"scenario": label} if isinstance(scenario, Mapping) else {})
            | {field: getattr(way, field) for field in varied},
            refunds,
            tuple(Unknown(**row) for row in rows),
        )
        for (label, _, way, name, _), rows in zip(cells, done, strict=True)
    ]


def _one_intent(scenario: Scenario | None) -> Scenario:
    """The scenario, or a ValueError if a history of it would have several outcomes."""
    checked = check_scenario(scenario)
    if len(checked.intents) != 1:
        raise ValueError(
            f"scenario {checked.name!r} has {len(checked.intents)} intents; outcomes are followed "
            "one a world. Give a scenario with a single intent, for example Scenario.one_refund()."
        )
    return checked


def table(followed: Iterable[Followed]) -> DataFrame:
    """One row per design, scenario and rates.

    Columns: the labels; `refunds`; `unknown`, how many were unknown for a while, with their
    `share` of all refunds; how they ended, in `resolved`, `handed`, `never` (counts, see `ENDS`);
    `median`, `p90`, `p99`, seconds within which half, 90 % and 99 % of *all* of them were
    resolved (inf: fewer were; NaN: none was unknown); `wrong`, how many were resolved wrongly,
    with `rate`, `low`, `high`, their share of the unknown (Wilson, 95 %); and the kinds of `WRONG`.
    """
    from pandas import DataFrame

    rows = []
    for one in followed:
        ends = Counter(unknown.end for unknown in one.unknowns)
        wrong = one.wrong()
        rows.append(
            dict(one.labels)
            | {"refunds": one.refunds, "unknown": len(one.unknowns)}
            | {"share": len(one.unknowns) / one.refunds}
            | {end: ends[end] for end in ENDS}
            | {"median": one.resolved_within(0.5), "p90": one.resolved_within(0.9)}
            | {"p99": one.resolved_within(0.99), "wrong": wrong.count}
            | {"rate": wrong.rate, "low": wrong.low, "high": wrong.high}
            | {kind: one.wrong(kind).count for kind in WRONG}
        )
    return DataFrame(rows)


def _cell(design: Design, rates: Rates, refunds: int, seed: int, scenario: Scenario) -> list[Row]:
    with store() as database:
        return list(_unknowns(design, rates, refunds, seed, scenario, database))


def _unknowns(
    design: Design, rates: Rates, refunds: int, seed: int, scenario: Scenario, database: Store
) -> Iterator[Row]:
    calm = calm_steps(design, scenario, database)
    for number in range(refunds):
        luck = world_seed(seed, number)
        chance = Chance(rates, luck)
        if calm is not None and not any(chance.strike(*step) for step in calm):
            continue
        world = World(design, scenario, chance, luck, database, quiet=True).run()
        log = Log(world)
        found = log.first_unknown()
        if found is None:
            world.dissolve()
            continue
        operation, since = found
        end, until = log.end(operation)
        wrong = log.wrong(operation)
        sends = sum(what == "provider.refund" for _, what, *_ in world.taken)
        paid = len(world.provider.ledger)
        world.dissolve()
        if paid > 1:
            # Twice because of the resolution? The same history again, with nobody to resolve it.
            left = design.but(recovery=NoRecovery())
            alone = World(left, scenario, chance, luck, database, quiet=True).run()
            if paid > len(alone.provider.ledger):
                wrong = "paid_again"
            alone.dissolve()
        yield {
            "refund": number,
            "end": end,
            "seconds": None if until is None else (until - since) / 1e6,
            "wrong": wrong,
            "sends": sends,
            "paid": paid,
        }


Step = tuple[str, str, int, int, bool]
"""What `Chance.strike` is asked about."""


def calm_steps(design: Design, scenario: Scenario, database: Store) -> list[Step] | None:
    """The steps of the history in which nothing goes wrong; None if it depends on luck, or if
    something in it is unknown.

    Until its first fault every history is this one: where none of these steps is struck, it need
    not be run. With one answer lost in ten that saves nine histories of ten.
    """
    world = World(design, scenario, Plan(()), 0, database, quiet=True).run()
    taken, unknown = world.taken, Log(world).first_unknown() is not None
    drawn = any(world.luck_of(process).drawn for process in world.lives)
    world.dissolve()
    if unknown or drawn:
        return None
    of_any: Counter[str] = Counter()
    steps: list[Step] = []
    for process, what, nth, call, _ in taken:
        of_any[what] += 1
        steps.append((process, what, nth, of_any[what], call))
    return steps


class Log:
    """When the operations of one world changed their state. Times in microseconds."""

    def __init__(self, world: World) -> None:
        self.world = world

    @cached_property
    def changes(self) -> list[tuple[int, str, str]]:
        """(time, operation, state after), in order, of a history that is over."""
        database = self.world.database
        return [
            (time, operation, after)
            for time, (operation, _, after) in zip(database.times, database.changes, strict=True)
        ]

    def first_unknown(self) -> tuple[str, int] | None:
        """The operation that was unknown first, and when; None if none ever was."""
        for time, operation, after in self.changes:
            if after == "outcome_unknown":
                return operation, time
        return None

    def end(self, operation: str) -> tuple[str, int | None]:
        """How it ended and when: a key of `ENDS`."""
        final = next(
            (t for t, of, after in self.changes if of == operation and after in FINAL), None
        )
        asked = [
            read(opened)
            for of, topic, opened in self.world.database.rows(
                "SELECT operation_id, topic, opened_at FROM tasks"
            )
            if of == operation and topic == "refund"
        ]
        if asked and (final is None or asked[0] < final):
            return "handed", asked[0]
        return ("never", None) if final is None else ("resolved", final)

    def wrong(self, operation: str) -> str:
        """Whether the books were wrong in the end: a key of `WRONG`, or ""."""
        booked = [after for _, of, after in self.changes if of == operation][-1]
        paid = bool(self.world.provider.ledger)
        if booked == "failed" and paid:
            return "paid_booked_failed"
        if booked == "succeeded" and not paid:
            return "unpaid_booked_succeeded"
        return ""
