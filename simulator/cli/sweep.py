"""The command `sweep`: many designs, many rates, all cores."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simulator.cli.storm import csv, jobs, keep, quiet
from simulator.cli.words import DESIGN, Listing, examples, fault_kinds, suggestion

if TYPE_CHECKING:
    from pandas import DataFrame

    from simulator.service.design import Design
    from simulator.world.faults import Rates

__all__ = ["never_broken", "sweep"]


class _RateValues(click.ParamType):  # type: ignore[type-arg] # generic since click 8.2 or later
    """A kind of fault and the probabilities to try: `lose_response=0,0.1,0.2`."""

    name = "kind=p,p,…"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[float, ...]]:
        """Kind and probabilities."""
        if isinstance(value, tuple):  # click asks again about what it was given
            return value
        kind, _, numbers = value.partition("=")
        kind = kind.strip()
        if kind not in fault_kinds():
            self.fail(f"there is no fault {kind!r}; {suggestion(kind, fault_kinds())}")
        try:
            chosen = tuple(float(number) for number in numbers.split(","))
        except ValueError:
            chosen = (-1.0,)
        if not all(0 <= p <= 1 for p in chosen):
            self.fail(f"{value!r}: write {kind}=p,p,p with probabilities p from 0 to 1")
        return kind, chosen


@click.command(
    "sweep",
    cls=Listing,
    names=("designs", "faults"),
    epilog=examples(
        "sweep NAIVE SAFE --rate lose_response=0,0.01,0.1",
        "sweep --rate crash=0.01 --refunds 100000 --keep out/sweep",
    ),
)
@click.argument("designs", nargs=-1, type=DESIGN)
@click.option(
    "--rate",
    "-r",
    "rates",
    type=_RateValues(),
    multiple=True,
    required=True,
    help="Probabilities of a fault, at each message between service and provider; several "
    "kinds are combined, each with each.",
)
@click.option(
    "--refunds",
    default=1_000,
    show_default=True,
    type=click.IntRange(1),
    help="How many of each design at each rate.",
)
@click.option("--seed", default=1, show_default=True, help="Equal seeds, equal figures.")
@click.option(
    "--all", "everything", is_flag=True, help="Print the rows of what was never broken, too."
)
@jobs
@keep
@csv
@quiet
def sweep(
    designs: tuple[Design, ...],
    rates: tuple[tuple[str, tuple[float, ...]], ...],
    refunds: int,
    seed: int,
    everything: bool,
    jobs: int,
    keep: Path | None,
    csv: Path | None,
    quiet: bool,
) -> None:
    """How often each DESIGN (default: the whole ladder) breaks which invariant."""
    from simulator.experiments.sweep import sweep as run_sweep
    from simulator.service.designs import LADDER

    frame = run_sweep(
        designs or LADDER,
        grid(rates),
        refunds=refunds,
        seed=seed,
        n_jobs=jobs,
        keep=keep,
        progress=not quiet,
    )
    if csv is not None:
        frame.to_csv(csv, index=False)
    shown = frame if everything else frame[frame["count"] > 0]
    if not shown.empty:
        click.echo(shown.drop(columns=["refunds", "seed"]).to_string(index=False) + "\n")
    for sentence in never_broken(frame):
        click.echo(textwrap.fill(sentence, 96, subsequent_indent="    "))


def never_broken(frame: DataFrame) -> Iterator[str]:
    """For each design of a sweep's table, in a sentence, what it never broke at any of the rates.

    No violation in n refunds is not none at all: the sentence has the upper end of the interval
    (Wilson, 95 %), which is the same for each rate.
    """
    for design, rows in frame.groupby("design", sort=False):
        counts = rows.groupby("outcome", sort=False)["count"].sum()
        never = [str(outcome) for outcome, count in counts.items() if not count]
        if not never:
            yield f"{design} broke every invariant at some rate."
            continue
        rates = len(rows) // len(counts)
        refunds = int(rows["refunds"].iloc[0])
        high = float(rows.loc[rows["count"] == 0, "high"].max())
        what = (
            f"no invariant ({', '.join(never)})"
            if len(never) == len(counts)
            else f"none of {', '.join(never)}"
        )
        yield (
            f"{design} broke {what} in {refunds:,} refunds"
            f"{f' at each of {rates} rates' if rates > 1 else ''}: each in "
            f"{100 * high:.2g} % of them at most (95 % confidence)."
        )


def grid(rates: Iterable[tuple[str, tuple[float, ...]]]) -> list[Rates]:
    """Every combination of the probabilities; of a kind that is given twice, the last counts."""
    from simulator.world.faults import Rates

    values = dict(rates)
    made: list[Rates] = []
    for chosen in product(*values.values()):
        given: dict[str, Any] = dict(zip(values, chosen, strict=True))
        made.append(Rates(**given))
    return made
