"""What lesson 09 tries out: a student's formula, three libraries' formulas, a freeze.

The three are formulas of real libraries, retold in one notation: `attempt` counts failures from
0, `luck` is a number in [0, 1), the base is 1 s and the cap 30 s. Each has one fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simulator.experiments.metastable import hysteresis
from simulator.experiments.occ import POLICIES, race
from simulator.experiments.outage import at_the_cap
from simulator.experiments.statistics import mean_interval
from simulator.experiments.storm import Guard, Load, Provider, storm
from simulator.experiments.storm.guards import GuardFactory
from simulator.service.retry import Immediate, LessonFormula, Random01, Retry

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "LIBRARIES",
    "Own",
    "after_freeze",
    "differences",
    "library_a",
    "library_b",
    "library_c",
    "returning",
    "up_and_down",
]

CAP = 30.0  # seconds
ONCE_MORE = Immediate(max_attempts=2)


def library_a(attempt: int, luck: float) -> float:
    """Anywhere below the ceiling."""
    ceiling = min(30.0, 2.0**attempt)
    return luck * ceiling


def library_b(attempt: int, luck: float) -> float:
    """The power, up to ten seconds of jitter on top, and never above the cap."""
    delay = 2.0 ** min(attempt, 60)
    return min(30.0, delay + luck * 10.0)


def library_c(attempt: int, luck: float) -> float:
    """The power, never above the cap, less up to two seconds of jitter."""
    delay = min(30.0, 2.0 ** min(attempt, 60))
    return delay - luck * 2.0


LIBRARIES: dict[str, Callable[[int, float], float]] = {
    "A": library_a,  # Twisted (issue 9476), stamina (104), elastic-transport-python (111)
    "B": library_b,  # the order of steps in urllib3's `Retry.get_backoff_time`; case B14
    "C": library_c,  # Caldera (issue 75)
}


@dataclass(frozen=True)
class Own:
    """A student's `full_jitter(attempt, base, cap, luck)` as a policy; no limit on attempts."""

    formula: Callable[[int, float, float, float], Any]
    base: float = 1.0
    cap: float = CAP

    def delay(self, attempt: int, random: Random01) -> float:
        """Seconds; kept between 0 and a year, so that any formula can be drawn."""
        seconds = float(self.formula(attempt, self.base, self.cap, random.random()))
        return min(max(seconds, 0.0), 365 * 86_400.0)


def returning(full_jitter: Callable[[int, float, float, float], Any]) -> dict[str, Load]:
    """A fleet at the cap: with the lesson's formula, and with the student's, once it is one.

    Returns:
        Runs for `storm_plots.beat`.
    """
    runs = {"the lesson's formula": at_the_cap(LessonFormula(max_attempts=None))}
    try:
        tried = [full_jitter(attempt, 1.0, CAP, 0.5) for attempt in (0, 5, 900)]
    except Exception:
        return runs  # its check has said what is wrong with it
    if not all(isinstance(seconds, int | float) for seconds in tried):
        return runs
    return runs | {"your full_jitter": at_the_cap(Own(full_jitter))}


def after_freeze(
    retry: Retry = ONCE_MORE,
    *,
    offered: float = 200.0,
    guard: GuardFactory = Guard,
    seconds: float = 80.0,
    seed: int = 1,
    **provider: Any,
) -> Load:
    """A provider of 300 refunds a second, frozen from second 10 to 20 (HotOS 2021's example).

    Args:
        retry: of the clients, who wait 1 s.
        offered: refunds a second that are wanted.
        guard: makes a budget; ten processes have one each.
        seconds: of the run.
        seed: of all luck.
        **provider: more settings of the provider, such as `sheds=True`.
    """
    return storm(
        int(1.2 * offered * seconds) + 100,
        retry,
        provider=Provider(service=1 / 300, outage="frozen", **provider),
        outages=((10.0, 20.0),),
        arrivals=offered,
        guard=guard,
        guards=10,
        horizon=seconds,
        seed=seed,
    )


def up_and_down(queue_limit: int) -> DataFrame:
    """`hysteresis` in small: seven loads up, six down, 10 s each, three runs a point."""
    return hysteresis(steps=6, hold=10.0, seeds=(1, 2, 3), queue_limit=queue_limit)


def differences(clients: int, races: int) -> DataFrame:
    """What the article on jitter says of equal, full and decorrelated, as differences.

    Races in pairs, with the same luck, on a server without limits (see `occ`).

    Args:
        clients: of each race.
        races: of each policy.

    Returns:
        Two rows, `mean, low, high` (95 %, Student's t): below zero contradicts the article.
    """
    from pandas import DataFrame

    full, equal, decorrelated = (
        [race(clients, POLICIES[name], seed=seed) for seed in range(1, races + 1)]
        for name in ("full", "equal", "decorrelated")
    )
    writes = [float(a.calls - b.calls) for a, b in zip(equal, full, strict=True)]
    seconds = [a.seconds - b.seconds for a, b in zip(full, decorrelated, strict=True)]
    pairs = {"writes, equal - full": writes, "seconds, full - decorrelated": seconds}
    found = {name: mean_interval(values) for name, values in pairs.items()}
    return DataFrame(
        [{"mean": one.mean, "low": one.low, "high": one.high} for one in found.values()],
        index=list(found),
    )
