"""Mistakes of whoever wrote the code under trial, said in a sentence."""

from __future__ import annotations

from typing import Any

from simulator.service.design import PolicyMistake
from simulator.service.errors import (
    CommitUnknown,
    DatabaseUnavailable,
    Declined,
    RateLimited,
    Silence,
)
from simulator.service.policy import restored

__all__ = [
    "SERVICE_ERRORS",
    "EndsItself",
    "ForgottenYieldFrom",
    "LoopsInZeroTime",
    "Mistake",
    "PipelineRaised",
    "YieldedSomethingElse",
    "YieldsInside",
    "explained",
]

SERVICE_ERRORS = (Silence, Declined, RateLimited, DatabaseUnavailable, CommitUnknown)
"""What a process may fail with: whoever waits for it gets no answer, and it goes on or restarts."""


class Mistake(Exception):
    """Code under trial cannot be run as it is. The message says what to do."""

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (type(self), str(self))


class ForgottenYieldFrom(Mistake):
    """A step of the runtime was made and never run."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} was called without `yield from`, so it never happened. "
            f"Write: result = yield from {what}"
        )


class YieldsInside(Mistake):
    """A transaction is a generator."""

    def __init__(self, generator: object) -> None:
        name = getattr(generator, "__name__", "it")
        super().__init__(
            f"The transaction {name} contains `yield`, so nothing in it was run. A transaction "
            "is a plain function that runs in one instant: wait before it, or after it."
        )


class YieldedSomethingElse(Mistake):
    """A task yielded what is no event."""

    def __init__(self, who: str, value: object) -> None:
        hint = (
            " Write `yield from` instead of `yield`."
            if hasattr(value, "send")
            else " Wait with `yield from rt.sleep(seconds)`, rt.call(…) or rt.transact(…)."
        )
        super().__init__(
            f"{who} yielded a {type(value).__name__}, and only the runtime's own steps can be "
            f"waited for.{hint}"
        )


class EndsItself(Mistake):
    """A transaction tried to commit or roll back by itself."""

    def __init__(self, statement: str) -> None:
        super().__init__(
            f"A transaction executed {statement.strip()!r}. The runtime begins and commits it: "
            "return from the function to commit, raise an exception to roll back."
        )


class LoopsInZeroTime(Mistake):
    """A task goes on and on while no time passes."""

    def __init__(self, who: str, steps: int, time: int) -> None:
        super().__init__(
            f"{who} took {steps:,} steps while the clock stood at {time / 1e6:g} s: it loops "
            "without waiting. Wait between two turns, for example with "
            "`yield from rt.sleep(1.0)`."
        )


class PipelineRaised(Mistake):
    """Code that runs in a process raised what nobody there handles."""

    def __init__(self, process: str, error: BaseException) -> None:
        super().__init__(f"In {process} the pipeline raised {type(error).__name__}: {error}")
        self.__cause__ = error


def explained(process: str, error: BaseException) -> BaseException:
    """What to raise for an error that no process may fail with."""
    if isinstance(error, Mistake | PolicyMistake):
        return error
    return PipelineRaised(process, error)
