"""One fault: what it is, at which step it strikes, and what it needs to make sense."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.service.checks import positive, text, whole

__all__ = [
    "CALL_KINDS",
    "CALL_PLACES",
    "KINDS",
    "LASTING",
    "PLACES",
    "PROVIDER_KINDS",
    "RESTART_AFTER",
    "TRANSACTION_KINDS",
    "TRANSACTION_PLACES",
    "Fault",
    "is_call",
]

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
