"""What people write on the command line, turned into designs, scenarios, faults and rates.

Every mistake is answered with one sentence that says what was written and what would be right.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from simulator.service.design import Design
    from simulator.world.faults import Fault, Rates
    from simulator.world.scenario import Scenario

__all__ = [
    "DESIGN",
    "FAULT",
    "KIND",
    "RATE",
    "SCENARIO",
    "designs_by_name",
    "rates_of",
    "scenarios_by_name",
    "suggestion",
]


def designs_by_name() -> dict[str, Design]:
    """The rungs of the ladder, and SAFE without each of its safeguards."""
    from simulator.service import designs

    found = {design.name: design for design in designs.LADDER}
    return found | {design.name: design for design in designs.ablations().values()}


def scenarios_by_name() -> dict[str, Callable[[], Scenario]]:
    """The scenarios that need no arguments."""
    from simulator.world.scenario import ready_scenarios

    return ready_scenarios()


def fault_kinds() -> tuple[str, ...]:
    """The kinds of fault that there are."""
    from simulator.world.faults import KINDS

    return KINDS


def _plain(name: str) -> str:
    """A name without what people write differently: case, and what stands between words."""
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()


def suggestion(name: str, names: Iterable[str]) -> str:
    """Which of the names may have been meant, as the end of a sentence; else all of them."""
    known = {_plain(known): known for known in names}
    near = difflib.get_close_matches(_plain(name), known, n=1)
    if near:
        return f"did you mean {known[near[0]]!r}?"
    return f"choose one of {', '.join(known.values())}."


class _Named(click.ParamType):  # type: ignore[type-arg] # generic since click 8.2 or later
    """A value that is chosen by its name."""

    def __init__(self, what: str, values: Callable[[], Mapping[str, Any]]) -> None:
        self.name = what
        self._values = values

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value with this name, however it is spelled: safe, "SAFE without lease"."""
        values = self._values()
        for name, known in values.items():
            if _plain(name) == _plain(str(value)):
                return known
        return self.fail(f"there is no {self.name} {value!r}; {suggestion(value, values)}")


class _Fault(click.ParamType):  # type: ignore[type-arg] # generic since click 8.2 or later
    """A fault, as it is printed in histories, or with colons.

    `lose_response(provider.refund, nth=2)` is also `lose_response:provider.refund:2`;
    `pause(worker-1:provider.refund, after_send, 40 s)` is also
    `pause:worker-1:provider.refund:after_send:40s`.
    """

    name = "fault"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fault:
        """The fault that the text names."""
        from simulator.world import faults

        match = re.fullmatch(r"\s*([a-z_]+)\s*(?:\((.*)\)|:(.*))?\s*", value)
        if not match:
            self.fail(
                f"{value!r} is no fault; write kind:step, as in lose_response:provider.refund"
            )
        kind, printed, short = match.groups()
        if kind not in faults.KINDS:
            self.fail(f"there is no fault {kind!r}; {suggestion(kind, faults.KINDS)}")
        words = [word.strip() for word in re.split(",", printed) if word] if printed else []
        words += short.split(":") if short else []
        given: dict[str, Any] = {}
        while words and (option := self._option(words[-1])):
            given.update([option])
            words.pop()
        step = ":".join(words)
        if not step or len(step.split(":")) > 2 or " " in step:
            self.fail(
                f"{value!r} names no step; write {kind}:step or {kind}:process:step, as in "
                f"{kind}:worker-1:provider.refund"
            )
        make = getattr(faults, kind)
        possible = inspect.signature(make).parameters
        for name in given:
            if name not in possible:
                self.fail(f"{value!r}: {kind} takes no {name}")
        try:
            fault: Fault = make(step, **given)
        except ValueError as error:
            self.fail(str(error))
        return fault

    @staticmethod
    def _option(word: str) -> tuple[str, int | float | str] | None:
        """What stands behind the step: how often, where, how long."""
        from simulator.world import faults

        if nth := re.fullmatch(r"(?:nth=)?(\d+)", word):
            return "nth", int(nth[1])
        if seconds := re.fullmatch(r"(\d+(?:\.\d+)?) ?s", word):
            return "seconds", float(seconds[1])
        places = {place for places in faults.PLACES.values() for place in places}
        return ("when", word) if word in places else None


class _Rate(click.ParamType):  # type: ignore[type-arg] # generic since click 8.2 or later
    """A kind of fault and its probability: `lose_response=0.1`."""

    name = "kind=probability"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, float]:
        """Kind and probability."""
        if isinstance(value, tuple):  # click asks again about what it was given
            return value
        kind, _, number = value.partition("=")
        kind = kind.strip()
        if kind not in fault_kinds():
            self.fail(f"there is no fault {kind!r}; {suggestion(kind, fault_kinds())}")
        try:
            probability = float(number)
        except ValueError:
            probability = -1.0
        if not 0 <= probability <= 1:
            self.fail(f"{value!r}: write {kind}=p with a probability p from 0 to 1")
        return kind, probability


DESIGN = _Named("design", designs_by_name)
SCENARIO = _Named("scenario", scenarios_by_name)
KIND = _Named("fault", lambda: {kind: kind for kind in fault_kinds()})
FAULT = _Fault()
RATE = _Rate()


def rates_of(pairs: Iterable[tuple[str, float]], every: float | None) -> Rates:
    """The rates that were asked for.

    Args:
        pairs: kinds and probabilities; they win over `every`. Alone they count for the messages
            between the service and the provider.
        every: the probability of every kind of fault, everywhere; or None.
    """
    from simulator.world.faults import Rates

    if every is None:
        return Rates(**dict(pairs))  # type: ignore[arg-type] # their names were checked
    return replace(Rates.all(every), **dict(pairs))  # type: ignore[arg-type]
