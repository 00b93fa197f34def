"""What people write on the command line, turned into designs, scenarios, faults and rates.

Every mistake is answered with one sentence that says what was written and what would be right.
"""

from __future__ import annotations

import difflib
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    "MODULE",
    "RATE",
    "SCENARIO",
    "Listing",
    "designs_by_name",
    "examples",
    "program",
    "rates_of",
    "scenarios_by_name",
    "suggestion",
]


MODULE = "python -m simulator"
"""How the command line is started without start.py."""


def program() -> str:
    """What people write before a command: start.py says so to whoever comes through it."""
    return os.environ.get("REFUND_COURSE_COMMAND", MODULE)


def examples(*lines: str) -> str:
    """An epilog of commands, each in the way that the reader came, that click does not re-wrap."""
    return "\b\nExamples:\n" + "\n".join(f"  {program()} {line}" for line in lines)


class Listing(click.Command):
    """A command whose help ends with the names that can be used.

    Args:
        names: which: of "designs", "scenarios" and "faults".
        explained: also say of scenarios and faults what they are.
    """

    def __init__(
        self,
        *args: Any,
        names: Sequence[str] = ("designs", "scenarios", "faults"),
        explained: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.names = names
        self.explained = explained

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Adds the names to the examples."""
        from simulator.service import designs
        from simulator.world import faults

        super().format_epilog(ctx, formatter)
        scenarios = scenarios_by_name()
        kinds = {kind: getattr(faults, kind) for kind in fault_kinds()}
        rows: list[tuple[str, str]] = []
        if "designs" in self.names:
            rows += [
                ("designs", ", ".join(design.name for design in designs.LADDER)),
                ("", f'or "SAFE without X", where X is {"; ".join(designs.ablations())}'),
            ]
        for name, meant in (("scenarios", scenarios), ("faults", kinds)):
            if name in self.names and not self.explained:
                rows.append((name, ", ".join(meant)))
        with formatter.section("Names"):
            formatter.write_dl(rows)
        if not self.explained:
            formatter.write_paragraph()
            formatter.write_text(f"What they mean: {program()} replay --help")
            return
        for title, meant in (("Scenarios", scenarios), ("Faults", kinds)):
            with formatter.section(title):
                formatter.write_dl([(name, _first_sentence(made)) for name, made in meant.items()])
        formatter.write_paragraph()
        formatter.write_text(f"What each design tries, and how it fails: {program()} demo")


def _first_sentence(made: Callable[..., Any]) -> str:
    """What the docstring says first, without marks of code."""
    said = " ".join((made.__doc__ or "").split())
    said = said.replace("`seconds`", "some seconds").replace("`", "")
    return said.split(". ")[0].rstrip(".") + "."


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
