"""The command line: `python3 start.py`, or `python -m simulator`.

What a command needs is imported inside it, so that `--help` is there at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from simulator.cli.history import PICTURE
from simulator.cli.live import live
from simulator.cli.resolve import resolve
from simulator.cli.storm import storm
from simulator.cli.sweep import sweep
from simulator.cli.tables import ablations, crashes, proof
from simulator.cli.words import (
    DESIGN,
    FAULT,
    KIND,
    RATE,
    SCENARIO,
    Listing,
    examples,
    program,
    rates_of,
)

if TYPE_CHECKING:
    from simulator.service.design import Design
    from simulator.world.faults import Fault
    from simulator.world.scenario import Scenario

__all__ = ["main"]


design = click.argument("design", type=DESIGN)
scenario = click.option(
    "--scenario", "-s", type=SCENARIO, default="one_refund", show_default=True, help="The setting."
)
seed = click.option("--seed", default=0, show_default=True, help="Equal seeds, equal histories.")
heal = click.option(
    "--heal/--no-heal",
    default=True,
    show_default=True,
    help="Whether what a fault broke is mended in the end.",
)
picture = click.option(
    "--picture", type=PICTURE, help="Draw the history into this file (.png, .svg or .pdf)."
)


@click.group(no_args_is_help=True)
@click.version_option(package_name="exactly-one-refund", message="%(package)s %(version)s")
def cli() -> None:
    """Exactly one refund: cause a double refund, see it, measure it, prove it gone."""


@cli.command(
    short_help="The ladder in a minute: how each rung fails, how often.",
    epilog=examples("demo", "demo --refunds 10000 --out /tmp/pictures"),
)
@click.option(
    "--out",
    default="out/demo",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the pictures; made if it is not there.",
)
@click.option(
    "--refunds",
    default=1000,
    show_default=True,
    type=click.IntRange(100, 1_000_000),
    help="Refunds that each design is measured with.",
)
@click.option("--seed", default=1, show_default=True, help="Equal seeds, equal figures.")
def demo(out: Path, refunds: int, seed: int) -> None:
    """A minute: each rung of the ladder, how it fails, and how often."""
    from simulator.cli.ladder import run

    run(out, refunds=refunds, seed=seed)


@cli.command(
    short_help="One history, with the faults that you name.",
    cls=Listing,
    explained=True,
    epilog=examples(
        "replay NAIVE --fault lose_response:provider.refund",
        "replay SAFE -s double_click -f crash:worker-1:provider.refund:after_send",
        'replay OUTBOX -f "pause(worker-1:provider.refund, after_send, 40 s)" --picture a.png',
    ),
)
@design
@scenario
@click.option(
    "--fault",
    "-f",
    "faults",
    type=FAULT,
    multiple=True,
    help="kind:step or kind:process:step, then, if need be, :2 for the second time, "
    ":after_send for the place, :40s for how long; or as histories print it. Steps are what "
    "histories show: tool.issue_refund, begin, provider.refund, finish; more with some designs. "
    "May be given more than once.",
)
@seed
@heal
@picture
def replay(
    design: Design,
    scenario: Callable[[], Scenario],
    faults: tuple[Fault, ...],
    seed: int,
    heal: bool,
    picture: Path | None,
) -> None:
    """Prints one history of DESIGN, with the faults that you name."""
    from simulator.cli.history import show
    from simulator.experiments.replay import replay as run_it

    with mistakes_explained():
        run = run_it(design, scenario(), faults, seed=seed, heal=heal)
    show(run, picture)


@cli.command(
    short_help="Every history with up to k faults, until one is wrong.",
    cls=Listing,
    epilog=examples(
        "explore NAIVE --max-faults 1",
        "explore SAFE -s two_partial_refunds --max-faults 2",
        'explore "SAFE without fencing token" --kind pause --kind crash --picture zombie.png',
    ),
)
@design
@scenario
@click.option(
    "--max-faults",
    "-k",
    default=2,
    show_default=True,
    type=click.IntRange(0),
    help="Faults in a history at most; each one more takes about a hundred times as long.",
)
@click.option(
    "--kind", "kinds", type=KIND, multiple=True, help="Only faults of this kind (repeatable)."
)
@click.option("--all", "everything", is_flag=True, help="Go on after the first counterexample.")
@seed
@heal
@picture
def explore(
    design: Design,
    scenario: Callable[[], Scenario],
    max_faults: int,
    kinds: tuple[str, ...],
    everything: bool,
    seed: int,
    heal: bool,
    picture: Path | None,
) -> None:
    """Tries every history of DESIGN with up to so many faults; prints the first that is wrong."""
    from simulator.cli.history import show
    from simulator.experiments.explore import explore as run_it

    with mistakes_explained():
        found = run_it(
            design,
            scenario(),
            max_faults=max_faults,
            kinds=kinds or None,
            heal=heal,
            seed=seed,
            stop=not everything,
            progress=sys.stderr.isatty(),
        )
    click.echo(found)
    if everything:
        for verdict, count in found.by_verdict.most_common():
            click.echo(f"{count:9,}  {verdict}")
    if found.counterexample:
        click.echo()
        show(found.counterexample, picture)
    elif picture:
        click.echo("No counterexample, so nothing was drawn.", err=True)


@cli.command(
    short_help="How often a design goes wrong, with intervals.",
    cls=Listing,
    epilog=examples(
        "simulate NAIVE --rate lose_response=0.1",
        "simulate SAFE --every 0.01 --refunds 20000",
        "simulate OUTBOX --every 0.005 --rate crash=0.05 --csv rates.csv",
    ),
)
@design
@scenario
@click.option(
    "--rate",
    "-r",
    "rates",
    type=RATE,
    multiple=True,
    help="Probability of one kind of fault, at each message between service and provider, or, "
    "with --every, at each message and step (repeatable).",
)
@click.option(
    "--every",
    type=click.FloatRange(0, 1),
    help="Probability of every kind of fault, everywhere; --rate overrides it.",
)
@click.option(
    "--refunds",
    "-n",
    default=10_000,
    show_default=True,
    type=click.IntRange(1),
    help="How many refunds, each in a world of its own.",
)
@click.option("--seed", default=1, show_default=True, help="Equal seeds, equal figures.")
@click.option(
    "--csv",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write the table into this file too.",
)
def simulate(
    design: Design,
    scenario: Callable[[], Scenario],
    rates: tuple[tuple[str, float], ...],
    every: float | None,
    refunds: int,
    seed: int,
    csv: Path | None,
) -> None:
    """Measures how often DESIGN goes wrong under faults at random, with intervals (95 %)."""
    from simulator.experiments.simulate import simulate as run_it

    if not rates and every is None:
        raise click.UsageError(
            "without a rate nothing goes wrong; give --rate lose_response=0.1 or --every 0.01"
        )
    with mistakes_explained():
        estimate = run_it(
            design,
            rates_of(rates, every),
            refunds=refunds,
            seed=seed,
            scenario=scenario(),
            progress=sys.stderr.isatty(),
        )
    click.echo(estimate)
    if csv:
        estimate.frame.to_csv(csv, index=False)


@cli.command(short_help="Is everything here that the course needs?", epilog=examples("doctor"))
@click.option(
    "--kernel/--no-kernel",
    default=True,
    show_default=True,
    help="Whether a Jupyter kernel is started to see that it starts.",
)
def doctor(kernel: bool) -> None:
    """Is everything here that the course needs? One line a finding. Changes nothing."""
    from simulator.experiments.doctor import examine

    well = True
    for finding in examine(kernel=kernel):
        click.echo(finding)
        well = well and finding.state != "bad"
    if not well:
        raise click.exceptions.Exit(1)


for command, short in (
    (sweep, "How often many designs go wrong, at many rates."),
    (storm, "What the retries of a fleet do after an outage."),
    (ablations, "What breaks without which safeguard."),
    (crashes, "What a crash does to each design, point by point."),
    (proof, "Every history of SAFE with up to k faults, everywhere."),
    (resolve, "How soon unknown outcomes are resolved, how often wrongly."),
    (live, "The same service on PostgreSQL, HTTP and SIGKILL."),
):
    command.short_help = short
    cli.add_command(command)


@contextmanager
def mistakes_explained() -> Iterator[None]:
    """Turns what the simulator refuses, in a sentence, into a mistake of whoever asked."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def main() -> None:
    """Runs the command line: a mistake is one sentence on stderr, and exit code 2."""
    try:
        code = cli.main(prog_name=program(), standalone_mode=False)
    except click.ClickException as error:
        click.echo(error.format_message(), err=True)
        code = error.exit_code
    except click.Abort:
        click.echo("Stopped.", err=True)
        code = 130
    except BrokenPipeError:  # whoever read the output has seen enough: `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except OSError as error:
        click.echo(f"{error.filename or 'A file'}: {error.strerror}.", err=True)
        code = 1
    sys.exit(code or 0)
