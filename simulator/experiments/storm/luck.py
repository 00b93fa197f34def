"""Luck that stays with its owner: every client draws from streams of its own.

One more draw by one client shifts nobody else's, and the n-th send of a client has the same
luck under every policy, so that two runs differ only by what was changed. A stream is one
64-bit number (SplitMix64: Steele, Lea, Flood, OOPSLA 2014), small enough for a million clients
and the same in every process, whatever PYTHONHASHSEED is.
"""

from __future__ import annotations

from math import log

__all__ = ["ARRIVAL", "BACKOFF", "SEND", "THINK", "Luck"]

# What a draw is for. Each purpose has its own stream.
ARRIVAL, BACKOFF, SEND, THINK = range(4)

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
UNIT = 2.0**-53


def mix(number: int) -> int:
    """A 64-bit number that looks unlike `number` and all its neighbours."""
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & MASK
    return number ^ (number >> 31)


class Luck:
    """A stream of random numbers, named by a seed and a path of whole numbers.

    It has what a retry policy asks for: `random()` in [0, 1) and `uniform(a, b)`.
    """

    __slots__ = ("state",)

    def __init__(self, seed: int, *path: int) -> None:
        self.state = mix((seed + GOLDEN) & MASK)
        if path:
            self.state = self.branch(*path).state

    def branch(self, *path: int) -> Luck:
        """The stream that `path` names below this one, which must not have been drawn from."""
        state = self.state
        for step in path:
            state = mix((state ^ step) + GOLDEN & MASK)
        branch = Luck.__new__(Luck)
        branch.state = state
        return branch

    def random(self) -> float:
        """The next number, in [0, 1)."""
        self.state = state = (self.state + GOLDEN) & MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
        return ((state ^ (state >> 31)) >> 11) * UNIT

    def uniform(self, a: float, b: float, /) -> float:
        """The next number, between `a` and `b`."""
        return a + (b - a) * self.random()

    def exponential(self, mean: float) -> float:
        """The next waiting time of a process without memory, with this mean."""
        return -mean * log(1.0 - self.random())
