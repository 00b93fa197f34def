"""What may go wrong, one fault at a time or at random rates.

A step is `process:what`, for example `worker-1:provider.refund`. A fault names it whole, or
by `what` alone for any process; `nth` counts from 1, across the lives of a process. At most
one fault strikes a step. Every constructor returns a `Fault` for `replay(..., faults=[...])`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from simulator.world.checks import positive, text, whole
from simulator.world.luck import draw

__all__ = [
    "CALL_KINDS",
    "KINDS",
    "TRANSACTION_KINDS",
    "Fault",
    "Plan",
    "Rates",
    "crash",
    "crash_provider",
    "database_down",
    "delay_request",
    "delay_response",
    "duplicate_request",
    "lose_commit_ack",
    "lose_request",
    "lose_response",
    "pause",
    "provider_down",
    "reset",
]


def is_call(step: str) -> bool:
    """Whether a step is a call: those have a dot, transactions are named like functions."""
    return "." in str(step).split(":")[-1]


RESTART_AFTER = 5.0
"""Seconds after which a crashed process or provider is up again."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        kind: a member of `KINDS`.
        step: `process:what` or `what`.
        nth: which time the step is taken, from 1.
        when: where in the step, for kinds that have more than one place; else "".
        seconds: how long, for kinds that last; else 0.
    """

    kind: str
    step: str
    nth: int = 1
    when: str = ""
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(
                f"There is no fault {self.kind!r}. The faults are: {', '.join(KINDS)}."
            )
        if not text(self.step) or not self.step.split(":")[-1]:
            raise ValueError(
                f"{self.kind}({self.step!r}): name a step, for example 'provider.refund' or "
                "'worker-1:provider.refund'."
            )
        self._fits_step()
        if not whole(self.nth, at_least=1):
            raise ValueError(f"{self.kind}(nth={self.nth!r}): steps are counted 1, 2, 3, …")
        places = PLACES.get(self.kind, ("",))
        if self.kind in ("crash", "pause"):
            places = CALL_PLACES if is_call(self.step) else TRANSACTION_PLACES
        if self.when not in places:
            raise ValueError(
                f"{self.kind}(when={self.when!r}): say one of "
                + ", ".join(repr(place) for place in places)
                + "."
            )
        if self.kind in LASTING:
            if not positive(self.seconds):
                raise ValueError(
                    f"{self.kind}(seconds={self.seconds!r}): it lasts more than 0 seconds, "
                    "and ends."
                )
        elif self.seconds:
            raise ValueError(f"{self.kind} takes no seconds.")

    def _fits_step(self) -> None:
        """Refuses what cannot happen at such a step: a transaction sends no request."""
        call = is_call(self.step)
        if self.kind not in (CALL_KINDS if call else TRANSACTION_KINDS):
            what = "a call" if call else "a transaction"
            raise ValueError(
                f"{self.kind}({self.step!r}): that step is {what}, which cannot suffer this. "
                "Calls have a dot in their name, like provider.refund; transactions have "
                "none, like begin."
            )
        if self.kind in PROVIDER_KINDS and not self.step.split(":")[-1].startswith("provider."):
            raise ValueError(
                f"{self.kind}({self.step!r}): name a call of the provider, like provider.refund."
            )

    def __str__(self) -> str:
        words = [self.step]
        if self.nth != 1:
            words.append(f"nth={self.nth}")
        if self.when:
            words.append(self.when)
        if self.seconds:
            words.append(f"{self.seconds:g} s")
        return f"{self.kind}({', '.join(words)})"


CALL_PLACES = ("before_send", "after_send", "after_answer")
TRANSACTION_PLACES = ("before", "after")

PLACES: dict[str, tuple[str, ...]] = {
    "reset": ("before", "after"),
    "crash": TRANSACTION_PLACES + CALL_PLACES,
    "pause": TRANSACTION_PLACES + CALL_PLACES,
    "crash_provider": ("before", "after"),
    "lose_commit_ack": ("before", "after"),
}
LASTING = frozenset({"delay_request", "delay_response", "pause", "provider_down", "database_down"})

CALL_KINDS = (
    "lose_request",
    "lose_response",
    "duplicate_request",
    "reset",
    "delay_request",
    "delay_response",
    "crash",
    "pause",
    "crash_provider",
    "provider_down",
)
PROVIDER_KINDS = ("crash_provider", "provider_down")
TRANSACTION_KINDS = ("crash", "pause", "lose_commit_ack", "database_down")
KINDS = tuple(dict.fromkeys(CALL_KINDS + TRANSACTION_KINDS))


def lose_request(step: str, nth: int = 1) -> Fault:
    """The request of a call never arrives."""
    return Fault("lose_request", step, nth)


def lose_response(step: str, nth: int = 1) -> Fault:
    """The request arrives and is carried out; its answer never arrives."""
    return Fault("lose_response", step, nth)


def duplicate_request(step: str, nth: int = 1) -> Fault:
    """The network delivers the request twice."""
    return Fault("duplicate_request", step, nth)


def reset(step: str, nth: int = 1, when: str = "after") -> Fault:
    """The connection breaks "before" the request arrives, or "after" it was carried out.

    The caller learns at once that it broke, and not which of the two it was.
    """
    return Fault("reset", step, nth, when)


def delay_request(step: str, nth: int = 1, seconds: float = 3.0) -> Fault:
    """The request arrives `seconds` late. Past the caller's timeout it is a request that
    everybody has given up, and that is carried out all the same.
    """
    return Fault("delay_request", step, nth, seconds=seconds)


def delay_response(step: str, nth: int = 1, seconds: float = 3.0) -> Fault:
    """The answer arrives `seconds` late."""
    return Fault("delay_response", step, nth, seconds=seconds)


def crash(step: str, nth: int = 1, when: str | None = None) -> Fault:
    """The process dies as under SIGKILL, and is restarted after 5 s.

    Args:
        when: of a transaction "before" or "after" its commit; of a call "before_send",
            "after_send" or "after_answer". By default "after", or "after_answer".
    """
    return Fault("crash", step, nth, _place(step, when))


def pause(step: str, nth: int = 1, when: str | None = None, seconds: float = 40.0) -> Fault:
    """The process stops for `seconds` and goes on with what it knew. `when` as in `crash`."""
    return Fault("pause", step, nth, _place(step, when), seconds)


def crash_provider(step: str, nth: int = 1, when: str = "after") -> Fault:
    """The provider dies "before" or "after" it has paid; it is up again after 5 s."""
    return Fault("crash_provider", step, nth, when)


def provider_down(step: str, nth: int = 1, seconds: float = 10.0) -> Fault:
    """From this call on the provider refuses connections, for `seconds`."""
    return Fault("provider_down", step, nth, seconds=seconds)


def database_down(step: str, nth: int = 1, seconds: float = 10.0) -> Fault:
    """From this transaction on the database refuses connections, for `seconds`."""
    return Fault("database_down", step, nth, seconds=seconds)


def lose_commit_ack(step: str, nth: int = 1, when: str = "after") -> Fault:
    """The connection breaks during COMMIT, "before" or "after" it took effect."""
    return Fault("lose_commit_ack", step, nth, when)


def _place(step: str, when: str | None) -> str:
    if when is not None:
        return when
    return "after_answer" if is_call(step) else "after"


class Plan:
    """A list of faults, each struck once at its step.

    Raises:
        ValueError: two faults name one step.
    """

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        if isinstance(faults, Fault):
            raise ValueError(f"faults={faults}: give a list of faults, [{faults}].")
        self.faults = tuple(faults)
        self._by_step: dict[tuple[str, int], Fault] = {}
        for fault in self.faults:
            if not isinstance(fault, Fault):
                raise ValueError(
                    f"faults=[{fault!r}]: make a fault with faults.lose_response(step) and "
                    "the like."
                )
            place = (fault.step, fault.nth)
            if place in self._by_step:
                raise ValueError(
                    f"Two faults name step {fault.step!r}, time {fault.nth}: "
                    f"{self._by_step[place]} and {fault}. At most one can strike."
                )
            self._by_step[place] = fault

    def strike(
        self, process: str, what: str, nth: int, nth_of_any: int, call: bool
    ) -> Fault | None:
        """The fault for this step, if there is one."""
        if not self._by_step:
            return None
        return self._by_step.get((f"{process}:{what}", nth)) or self._by_step.get(
            (what, nth_of_any)
        )


@dataclass(frozen=True)
class Rates:
    """Probabilities, per message, transaction or step, each from 0 to 1.

    `lose_response` is the probability that an answer is lost, given that there is one. By
    default only the messages between the service and the provider are at risk (`where`), so
    that a rate can be compared with a closed form; with where="everywhere" it is also the
    agent's tool calls, the customer's messages, and everything else.

    Attributes:
        lose_request, lose_response, duplicate_request, reset, delay_request, delay_response:
            per message.
        crash, pause: per call and per transaction, at one of its places.
        crash_provider, provider_down: per call of the provider.
        database_down, lose_commit_ack: per transaction.
        delay_seconds, pause_seconds, down_seconds: how long, each drawn evenly from 0 to
            twice this.
        where: "provider" or "everywhere".
    """

    lose_request: float = 0.0
    lose_response: float = 0.0
    duplicate_request: float = 0.0
    reset: float = 0.0
    delay_request: float = 0.0
    delay_response: float = 0.0
    crash: float = 0.0
    pause: float = 0.0
    crash_provider: float = 0.0
    provider_down: float = 0.0
    database_down: float = 0.0
    lose_commit_ack: float = 0.0
    delay_seconds: float = 5.0
    pause_seconds: float = 30.0
    down_seconds: float = 30.0
    where: str = "provider"

    def __post_init__(self) -> None:
        for kind in KINDS:
            p = getattr(self, kind)
            if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
                raise ValueError(f"Rates({kind}={p!r}): a probability is between 0 and 1.")
        for field in ("delay_seconds", "pause_seconds", "down_seconds"):
            if not positive(getattr(self, field)):
                raise ValueError(f"Rates({field}={getattr(self, field)!r}): more than 0 seconds.")
        if self.where not in ("provider", "everywhere"):
            raise ValueError(f"Rates(where={self.where!r}): say 'provider' or 'everywhere'.")

    @cached_property
    def at_risk(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The kinds that can strike a call, and those that can strike a transaction."""
        return (
            tuple(kind for kind in CALL_KINDS if getattr(self, kind) > 0),
            tuple(kind for kind in TRANSACTION_KINDS if getattr(self, kind) > 0),
        )

    def __str__(self) -> str:
        given = [
            f"{field.name}={getattr(self, field.name)}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"Rates({', '.join(given)})"

    @classmethod
    def all(cls, p: float) -> Rates:
        """Every fault with probability `p`, everywhere."""
        given: dict[str, Any] = dict.fromkeys(KINDS, p)
        return cls(where="everywhere", **given)


class Chance:
    """Draws faults at the given rates, for one world."""

    def __init__(self, rates: Rates, seed: int) -> None:
        self.seed = seed
        self.everywhere = rates.where == "everywhere"
        self.rates = rates
        self._call, self._transaction = rates.at_risk

    def strike(
        self, process: str, what: str, nth: int, nth_of_any: int, call: bool
    ) -> Fault | None:
        """The fault for this step, if the dice say so; kinds are tried in a fixed order."""
        kinds = self._call if call else self._transaction
        if not kinds:
            return None
        provider = what.startswith("provider.")
        if call and not provider and not self.everywhere:
            return None
        for kind in kinds:
            if call and not provider and kind in PROVIDER_KINDS:
                continue
            if draw(self.seed, kind, what, nth_of_any) < getattr(self.rates, kind):
                return self._make(kind, process, what, nth, nth_of_any, call)
        return None

    def _make(
        self, kind: str, process: str, what: str, nth: int, nth_of_any: int, call: bool
    ) -> Fault:
        rates = self.rates

        def even(name: str) -> float:
            return draw(self.seed, name, kind, what, nth_of_any)

        when, seconds = "", 0.0
        if kind in PLACES:
            places = PLACES[kind]
            if kind in ("crash", "pause"):
                places = CALL_PLACES if call else TRANSACTION_PLACES
            when = places[int(even("place") * len(places))]
        if kind in LASTING:
            mean = (
                rates.delay_seconds
                if kind.startswith("delay")
                else rates.pause_seconds
                if kind == "pause"
                else rates.down_seconds
            )
            seconds = max(0.001, 2 * mean * even("seconds"))
        return Fault(kind, f"{process}:{what}", nth, when, seconds)


Striker = Callable[[str, str, int, int, bool], Fault | None]
