"""How many refunds are wanted, over time: steady, with a spike, up and down.

A traffic is called with a time in seconds and gives refunds a second. The gap to the next refund
is drawn at the rate of the moment, as in mbrooker/simulator_example: fine while the rate changes
little from one refund to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Spike", "Traffic", "UpAndDown"]

Traffic = Callable[[float], float]


@dataclass(frozen=True)
class Spike:
    """`base` refunds a second, but `peak` from `start` on for `width` seconds."""

    base: float
    peak: float
    start: float
    width: float

    def __call__(self, time: float) -> float:
        """Refunds a second at `time`."""
        return self.peak if self.start <= time <= self.start + self.width else self.base


@dataclass(frozen=True)
class UpAndDown:
    """From `low` up to `high` in `steps` steps and down again, `hold` seconds on each step."""

    low: float
    high: float
    steps: int
    hold: float

    @property
    def seconds(self) -> float:
        """How long it takes."""
        return (2 * self.steps + 1) * self.hold

    def __call__(self, time: float) -> float:
        """Refunds a second at `time`."""
        step = min(int(time / self.hold), 2 * self.steps)
        height = min(step, 2 * self.steps - step)
        return self.low + (self.high - self.low) * height / self.steps
