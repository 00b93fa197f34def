"""The command `storm`, and the options that it shares with `sweep`.

What a command needs is imported inside it, so that `--help` is there at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simulator.cli.words import examples

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["csv", "jobs", "keep", "quiet", "storm"]

POLICY_NAMES = (
    "none",
    "immediate",
    "fixed",
    "exponential",
    "lesson",
    "equal",
    "full",
    "decorrelated",
)

jobs = click.option(
    "--jobs", "-j", default=-1, show_default=True, help="Processes; -1 = all cores."
)
keep = click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for results: a sweep that was stopped goes on where it was.",
)
csv = click.option(
    "--csv",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the table into this file, too.",
)
quiet = click.option("--quiet", "-q", is_flag=True, help="No bar on stderr.")


@click.command(
    "storm",
    epilog=examples(
        "storm",
        "storm --retry lesson --retry full --outage 300 --attempts 0",
        "storm --clients 10000 --capacity 1250 --seeds 100 --keep out/storms",
    ),
)
@click.option(
    "--retry",
    "-r",
    "names",
    type=click.Choice(POLICY_NAMES),
    multiple=True,
    help="A way to retry; may be given more than once. Default: all eight. The last three wait "
    "at random (jitter); lesson is the formula of lesson 16.11, with its faults.",
)
@click.option(
    "--clients",
    default=1_000,
    show_default=True,
    type=click.IntRange(1),
    help="How many want a refund, one each.",
)
@click.option("--capacity", default=125.0, show_default=True, help="Refunds/s the provider can do.")
@click.option("--outage", default=10.0, show_default=True, help="Seconds it is down at first.")
@click.option("--timeout", default=1.0, show_default=True, help="Seconds a client waits.")
@click.option(
    "--base", default=1.0, show_default=True, help="Seconds of the first delay, or its upper limit."
)
@click.option("--cap", default=30.0, show_default=True, help="Seconds of the longest delay.")
@click.option(
    "--attempts",
    default=12,
    show_default=True,
    type=click.IntRange(0),
    help="Sends in all, the first included; 0 = no limit.",
)
@click.option(
    "--layers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 6),
    help="Callers above each other that all retry in this way: their sends multiply.",
)
@click.option(
    "--queue",
    type=click.IntRange(0),
    help="Requests that may wait at the provider; default: any number.",
)
@click.option("--shed", is_flag=True, help="Drop requests whose client no longer waits.")
@click.option("--key", is_flag=True, help="Clients send an idempotency key.")
@click.option("--horizon", default=900.0, show_default=True, help="Seconds until the run ends.")
@click.option(
    "--seeds", default=10, show_default=True, type=click.IntRange(1), help="Runs of each way."
)
@click.option(
    "--seed", default=1, show_default=True, help="The first run's; the others count on from it."
)
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw calls over time into this file (.png, .svg or .pdf).",
)
@jobs
@keep
@csv
@quiet
def storm(
    names: tuple[str, ...],
    clients: int,
    capacity: float,
    outage: float,
    timeout: float,
    base: float,
    cap: float,
    attempts: int,
    layers: int,
    queue: int | None,
    shed: bool,
    key: bool,
    horizon: float,
    seeds: int,
    seed: int,
    picture: Path | None,
    jobs: int,
    keep: Path | None,
    csv: Path | None,
    quiet: bool,
) -> None:
    """An outage ends; what do the retries of a fleet do to the provider, and to the money?"""
    from simulator.experiments.outage import policies, storms, summary
    from simulator.experiments.storm import Provider

    if not capacity > 0:
        raise click.BadParameter(f"{capacity} refunds a second; it must be more than 0.")
    try:
        every = policies(base, cap, attempts or None)
        chosen = {
            name: every[name] if layers == 1 else [every[name]] * layers
            for name in names or POLICY_NAMES
        }
        settings: dict[str, Any] = {
            "provider": Provider(service=1.0 / capacity, queue_limit=queue, sheds=shed),
            "outages": ((0.0, outage),) if outage else (),
            "timeout": timeout,
            "key": key,
            "horizon": horizon,
        }
        frame = storms(
            chosen,
            clients=clients,
            seeds=range(seed, seed + seeds),
            n_jobs=jobs,
            keep=keep,
            progress=not quiet,
            **settings,
        )
    except ValueError as mistake:
        raise click.UsageError(str(mistake)) from mistake
    click.echo(table(summary(frame)))
    if csv is not None:
        frame.to_csv(csv, index=False)
    if picture is not None:
        from simulator.experiments.storm import storm as run_storm
        from simulator.lessons.storm_plots import calls_after_outage

        loads = {
            name: run_storm(clients, retry, seed=seed, **settings) for name, retry in chosen.items()
        }
        calls_after_outage(loads, capacity).savefig(picture)


def table(means: DataFrame) -> str:
    """Means with their intervals, one line a policy."""
    columns = {
        "answered": ("answered", ".0f"),
        "gave up": ("gave_up", ".0f"),
        "waiting": ("waiting", ".0f"),
        "calls a refund": ("calls_per_refund", ".2f"),
        "peak /s": ("peak", ".0f"),
        "drained s": ("time_to_drain", ".0f"),
        "slowest s": ("slowest", ".0f"),
        "paid twice": ("double_refunds", ".0f"),
    }
    rows = [["policy", *columns]]
    for policy, found in means.groupby("policy", sort=False):
        by_metric: Any = found.set_index("metric")
        row = [str(policy)]
        for metric, spec in columns.values():
            mean, low, high = (
                float(by_metric.at[metric, part]) for part in ("mean", "low", "high")
            )
            if mean == float("inf"):
                row.append("never")
            elif f"{low:{spec}}" == f"{high:{spec}}" or low == -float("inf"):
                row.append(f"{mean:{spec}}")
            else:
                row.append(f"{mean:{spec}} ({low:{spec}} to {high:{spec}})")
        rows.append(row)
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
