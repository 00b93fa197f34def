"""The command `resolve`: how soon unknown outcomes are resolved, and how often wrongly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from simulator.cli.history import PICTURE
from simulator.cli.storm import csv, jobs, keep, quiet
from simulator.cli.words import DESIGN, RATE, Listing, examples, rates_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from simulator.service.design import Design

__all__ = ["resolve"]

LOOKUPS = {
    "exact": "exact look-up",
    "lagging": "look-up lags 60 s",
    "missing": "no look-up",
}


@click.command(
    "resolve",
    cls=Listing,
    names=("designs", "faults"),
    short_help="How soon unknown outcomes are resolved, how often wrongly.",
    epilog=examples(
        "resolve",
        "resolve --rate delay_request=0.2 --refunds 10000",
        'resolve SAFE "SAFE without provider key" --lookup missing',
        "resolve --picture resolved.png",
    ),
)
@click.argument("designs", nargs=-1, type=DESIGN)
@click.option(
    "--rate",
    "-r",
    "rates",
    type=RATE,
    multiple=True,
    help="Probability of a fault on the way to the provider; may be given more than once. "
    "Default: lose_response=0.1 and delay_request=0.1 (by up to 10 s).",
)
@click.option("--every", type=click.FloatRange(0, 1), help="Probability of all faults, everywhere.")
@click.option(
    "--lookup",
    "-l",
    "chosen",
    type=click.Choice(list(LOOKUPS)),
    multiple=True,
    help="When the provider can be asked: at once, after a minute, never (slow: some designs "
    "then ask for a week). May be given more than once. Default: exact and lagging.",
)
@click.option(
    "--refunds",
    default=1_000,
    show_default=True,
    type=click.IntRange(1),
    help="How many of each design with each look-up.",
)
@click.option("--seed", default=1, show_default=True, help="Equal seeds, equal figures.")
@click.option(
    "--picture", type=PICTURE, help="Draw the share resolved over time (.png, .svg or .pdf)."
)
@jobs
@keep
@csv
@quiet
def resolve(
    designs: tuple[Design, ...],
    rates: tuple[tuple[str, float], ...],
    every: float | None,
    chosen: tuple[str, ...],
    refunds: int,
    seed: int,
    picture: Path | None,
    jobs: int,
    keep: Path | None,
    csv: Path | None,
    quiet: bool,
) -> None:
    """How soon each DESIGN resolves its unknown outcomes, and how often wrongly.

    Without a DESIGN: SAFE, and SAFE with three other ways to deal with them.
    """
    from simulator.experiments.resolution import follow, lookups, recoveries, table

    if not rates and every is None:
        rates = (("lose_response", 0.1), ("delay_request", 0.1))
    settings = lookups()
    try:
        followed = follow(
            designs or recoveries(),
            rates_of(rates, every),
            refunds=refunds,
            seed=seed,
            scenario={
                LOOKUPS[name]: settings[LOOKUPS[name]] for name in chosen or list(LOOKUPS)[:2]
            },
            n_jobs=jobs,
            keep=keep,
            progress=not quiet,
        )
    except ValueError as mistake:
        raise click.UsageError(str(mistake)) from mistake
    frame = table(followed)
    click.echo(text(frame))
    if csv is not None:
        frame.to_csv(csv, index=False)
    if picture is not None:
        from simulator.experiments.resolution_plots import resolved_over_time

        try:
            resolved_over_time(followed).savefig(picture)
        except ValueError as mistake:
            raise click.UsageError(str(mistake)) from mistake


def text(frame: DataFrame) -> str:
    """One line a design and look-up; times in seconds, wrong ones with their 95 % interval."""
    shown = frame[["scenario", "design", "unknown", "resolved", "handed", "never"]].copy()
    for column in ("median", "p90", "p99"):
        shown[f"{column} s"] = [_seconds(value) for value in frame[column]]
    shown["wrong"] = [
        f"{count} = {rate:.1%} ({low:.1%} to {high:.1%})" if unknown else "-"
        for count, rate, low, high, unknown in zip(
            frame["wrong"],
            frame["rate"],
            frame["low"],
            frame["high"],
            frame["unknown"],
            strict=True,
        )
    ]
    return shown.to_string(index=False)


def _seconds(value: float) -> str:
    return "-" if value != value else "never" if value == float("inf") else f"{value:.2f}"
