"""One history, replayed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from simulator.experiments.run import Run
from simulator.service.design import Design
from simulator.world.database import Store
from simulator.world.faults import Fault, Plan
from simulator.world.scenario import Scenario
from simulator.world.world import World

__all__ = ["replay", "store"]

T = TypeVar("T")

_STORES: list[Store] = []


@contextmanager
def store() -> Iterator[Store]:
    """A database that nobody else uses meanwhile; a new one costs 0.3 ms, so they are kept."""
    try:
        taken = _STORES.pop()
    except IndexError:
        taken = Store()
    yield taken
    # Only after a history that ended well: what an exception left behind is nobody's.
    _STORES.append(taken)


def replay(
    design: Design,
    scenario: Scenario | None = None,
    faults: Sequence[Fault] = (),
    seed: int = 0,
    heal: bool = True,
) -> Run:
    """Runs one history from beginning to end.

    Args:
        design: for example `designs.NAIVE`.
        scenario: by default `Scenario.one_refund()`.
        faults: for example `[faults.lose_response("provider.refund")]`.
        seed: of the little luck there is (ids, jitter). Equal seeds give equal histories.
        heal: whether what a fault broke is mended in the end; False leaves it for ever.

    Raises:
        ValueError: an argument is not what it should be.
        PolicyMistake, Mistake: the design cannot be run; the message says why.
    """
    check_design(design)
    scenario = check_scenario(scenario)
    check_seed(seed)
    check_switches(heal=heal)
    plan = Plan(several("faults", faults, '[faults.lose_response("provider.refund")]'))
    with store() as database:
        return Run.of(World(design, scenario, plan, seed, database, heal), plan.faults)


def check_design(design: object) -> None:
    """Raises a ValueError that says what a design is, if this is none."""
    if not isinstance(design, Design):
        raise ValueError(
            f"{design!r} is not a design. Use one of designs.LADDER, for example "
            "designs.NAIVE, or build one with Design(…)."
        )


def check_seed(seed: object) -> None:
    """Raises a ValueError if the seed is no whole number."""
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ValueError(f"seed={seed!r}: give a whole number; equal seeds give equal luck.")


def check_switches(**switches: object) -> None:
    """Raises a ValueError if one of them is neither True nor False: "no" would count as True."""
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise ValueError(f"{name}={value!r}: say True or False.")


def several(name: str, values: Iterable[T], example: str) -> Iterable[T]:
    """The values; raises a ValueError if they are not several, but a text or a single thing."""
    given: object = values
    if isinstance(given, str) or not isinstance(given, Iterable):
        said = repr(given) if isinstance(given, str) else str(given)
        raise ValueError(f"{name}={said}: give a list, for example {example}.")
    return values


def named_designs(
    designs: Design | Iterable[Design] | Mapping[str, Design],
) -> list[tuple[str, Design]]:
    """One design or several, each with its own name, or with the one that a dict gives it.

    Raises:
        ValueError: they are not several, or one of them is no design.
    """
    if isinstance(designs, Design):
        designs = [designs]
    if isinstance(designs, Mapping):
        given = list(designs.items())
    else:
        each = several("designs", designs, "[designs.NAIVE, designs.SAFE]")
        given = [(getattr(design, "name", ""), design) for design in each]
    for _, design in given:
        check_design(design)
    return given


def check_scenario(scenario: object) -> Scenario:
    """The scenario, by default one refund; raises a ValueError if it is something else."""
    if scenario is None:
        return Scenario.one_refund()
    if not isinstance(scenario, Scenario):
        hint = " Call it: Scenario.one_refund()." if callable(scenario) else ""
        raise ValueError(f"{scenario!r} is not a scenario.{hint}")
    return scenario
