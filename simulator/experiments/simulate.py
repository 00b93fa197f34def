"""Thousands of refunds under random faults, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

from simulator.experiments.replay import (
    check_design,
    check_scenario,
    check_seed,
    check_switches,
    several,
    store,
)
from simulator.experiments.run import Run
from simulator.experiments.statistics import rate_interval
from simulator.experiments.verdict import INVARIANTS, judge
from simulator.service.checks import whole
from simulator.service.design import Design
from simulator.world.faults import Chance, Rates
from simulator.world.scenario import Scenario
from simulator.world.world import World

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Estimate", "simulate", "world_seed"]


def world_seed(seed: int, number: int) -> int:
    """The seed of the world of refund `number`: the same for every design."""
    return int.from_bytes(blake2b(f"{seed}/{number}".encode(), digest_size=6).digest(), "big")


@dataclass
class Estimate:
    """How often which invariant was broken.

    Attributes:
        refunds: how many histories were run, each in a world of its own.
        broken: histories per invariant.
        right: histories that broke none.
        seconds: time from the wish to the first final answer, of every intent that got one.
        examples: for each broken invariant the number of the first history that broke it.
        payments: payments by the provider, in all histories together.
    """

    design: Design
    rates: Rates
    scenario: Scenario
    refunds: int
    seed: int
    broken: Counter[str] = field(default_factory=Counter)
    right: int = 0
    seconds: list[float] = field(default_factory=list)
    examples: dict[str, int] = field(default_factory=dict)
    payments: int = 0

    @property
    def frame(self) -> pd.DataFrame:
        """One row per invariant: outcome, count, rate, low, high (Wilson, 95 %)."""
        import pandas as pd

        rows = []
        for name in INVARIANTS:
            rate = rate_interval(self.broken[name], self.refunds)
            rows.append((name, rate.count, rate.rate, rate.low, rate.high))
        return pd.DataFrame(rows, columns=["outcome", "count", "rate", "low", "high"])

    def rate(self, outcome: str) -> tuple[float, float, float]:
        """(rate, low, high) of one invariant."""
        if outcome not in INVARIANTS:
            raise ValueError(f"{outcome!r} is no invariant. They are: {', '.join(INVARIANTS)}.")
        found = rate_interval(self.broken[outcome], self.refunds)
        return found.rate, found.low, found.high

    def interval(self, outcome: str, confidence: float = 0.95) -> tuple[float, float]:
        """The Wilson interval of one invariant's rate."""
        found = rate_interval(self.broken[outcome], self.refunds, confidence)
        return found.low, found.high

    def time_to_answer(self, share: float) -> float:
        """Seconds within which this share (0 to 1) of the answered customers had a final
        answer; NaN if nobody had one.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"time_to_answer({share!r}): a share is between 0 and 1.")
        if not self.seconds:
            return float("nan")
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def example(self, outcome: str) -> Run:
        """The first history that broke this invariant, replayed with the same luck."""
        if outcome not in self.examples:
            raise ValueError(f"None of the {self.refunds:,} histories broke {outcome!r}.")
        return run_one(
            self.design, self.rates, self.scenario, world_seed(self.seed, self.examples[outcome])
        )

    def __repr__(self) -> str:
        return f"<Estimate: {self.design.name}, {self.refunds:,} refunds, {self.right:,} right>"

    def __str__(self) -> str:
        lines = [
            f"{self.design.name}, {self.scenario.name}, {self.rates}: {self.refunds:,} refunds, "
            f"{self.right:,} right"
        ]
        for name in INVARIANTS:
            if self.broken[name]:
                rate, low, high = self.rate(name)
                lines.append(
                    f"  {name:<20} {self.broken[name]:>7,}  {rate:.3%}  ({low:.3%} to {high:.3%})"
                )
        lines.append(
            f"  final answer after   {self.time_to_answer(0.5):.2f} s (median), "
            f"{self.time_to_answer(0.99):.2f} s (99 %)"
        )
        return "\n".join(lines)


def simulate(
    design: Design,
    rates: Rates,
    refunds: int = 10_000,
    seed: int = 1,
    scenario: Scenario | None = None,
    progress: bool = False,
) -> Estimate:
    """Runs `refunds` histories, each in a world of its own, under faults at random rates.

    Args:
        design: for example `designs.NAIVE`.
        rates: for example `faults.Rates(lose_response=0.01)`.
        refunds: how many, 1 or more.
        seed: equal seeds give every design the same luck at the same steps.
        scenario: by default `Scenario.one_refund()`.
        progress: whether to show a bar on stderr when it takes more than two seconds.

    Raises:
        ValueError: an argument is not what it should be.
        PolicyMistake, Mistake: the design cannot be run; the message says why.
    """
    check_design(design)
    scenario = check_scenario(scenario)
    check_seed(seed)
    check_switches(progress=progress)
    check_rates(rates)
    if not whole(refunds, at_least=1):
        raise ValueError(f"refunds={refunds!r}: give 1 or more.")
    estimate = Estimate(design, rates, scenario, refunds, seed)
    numbers: Iterable[int] = range(refunds)
    if progress:
        from tqdm import tqdm

        numbers = tqdm(numbers, desc=design.name, delay=2, unit=" refunds", leave=False)
    with store() as database:
        for number in numbers:
            luck = world_seed(seed, number)
            world = World(design, scenario, Chance(rates, luck), luck, database, quiet=True)
            _count(estimate, world.run(), number)
            world.dissolve()
    return estimate


def check_rates(rates: object) -> None:
    """Raises a ValueError that says how rates are written, if this is none."""
    if not isinstance(rates, Rates):
        raise ValueError(f"{rates!r} is not a Rates. Write faults.Rates(lose_response=0.01).")


def several_rates(rates: Rates | Iterable[Rates]) -> list[Rates]:
    """One or several, checked."""
    if isinstance(rates, Rates):
        return [rates]
    ways = list(several("rates", rates, "[faults.Rates(lose_response=0.01)]"))
    for way in ways:
        check_rates(way)
    return ways


def _count(estimate: Estimate, world: World, number: int) -> None:
    verdict = judge(world)
    for name in verdict:
        estimate.broken[name] += 1
        estimate.examples.setdefault(name, number)
    estimate.right += not verdict
    estimate.payments += len(world.provider.ledger)
    answered: set[str] = set()
    for told in world.told:
        if told.kind in ("done", "refused") and told.intent not in answered:
            answered.add(told.intent)
            estimate.seconds.append((told.time - world.submitted[told.intent]) / 1e6)


def run_one(design: Design, rates: Rates, scenario: Scenario, luck: int) -> Run:
    """One history at random rates, for looking at; its faults are those that struck."""
    with store() as database:
        world = World(design, scenario, Chance(rates, luck), luck, database)
        run = Run.of(world, ())
        run.faults = tuple(fault for _, fault in run.struck)
        return run
