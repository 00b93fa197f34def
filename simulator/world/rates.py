"""Faults at random rates."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from simulator.service.checks import positive
from simulator.world.fault import (
    CALL_KINDS,
    CALL_PLACES,
    KINDS,
    LASTING,
    PLACES,
    PROVIDER_KINDS,
    TRANSACTION_KINDS,
    TRANSACTION_PLACES,
    Fault,
)
from simulator.world.luck import draw

__all__ = ["Chance", "Rates"]


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
