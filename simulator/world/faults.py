"""What may go wrong, one fault at a time or at random rates.

A step is `process:what`, for example `worker-1:provider.refund`. A fault names it whole, or
by `what` alone for any process; `nth` counts from 1, across the lives of a process. At most
one fault strikes a step. Every constructor returns a `Fault` for `replay(..., faults=[...])`.
"""

from __future__ import annotations

from collections.abc import Iterable

from simulator.world.fault import (
    CALL_KINDS,
    CALL_PLACES,
    KINDS,
    LASTING,
    PLACES,
    PROVIDER_KINDS,
    RESTART_AFTER,
    TRANSACTION_KINDS,
    TRANSACTION_PLACES,
    Fault,
    is_call,
)
from simulator.world.rates import Chance, Rates

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
    "Chance",
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
