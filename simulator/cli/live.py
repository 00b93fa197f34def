"""The command `live`, with what needs the simulator as well as the real parts."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.cli.history import PICTURE
from simulator.cli.words import examples
from simulator.live.command import EXAMPLES, database_option, live, url_of

__all__ = ["live"]

live.epilog = examples(*EXAMPLES)


@live.command(short_help="What the simulator predicts, beside what is measured.")
@database_option
@click.option(
    "--refunds",
    default=200,
    show_default=True,
    type=click.IntRange(10, 100_000),
    help="Real refunds for each of the nine points.",
)
@click.option(
    "--speed",
    default=8.0,
    show_default=True,
    type=click.FloatRange(0.1, 50),
    help="Seconds of the service in one of the wall's clock.",
)
@click.option("--seed", default=1, show_default=True, help="Of all luck.")
@click.option(
    "--picture",
    type=PICTURE,
    default="simulated-and-measured.png",
    show_default=True,
    help="Draw the figure into this file.",
)
def rates(database: str, refunds: int, speed: float, seed: int, picture: Path) -> None:
    """What the simulator predicts, beside what is measured for real: one figure.

    Three designs at three rates of lost messages, with intervals. Takes some minutes: a real
    timeout has to be waited for.
    """
    from simulator.lessons.live_plots import measure, simulated_and_measured

    with url_of(database) as url:
        frame = measure(
            refunds=refunds,
            database=url,
            speed=speed,
            seed=seed,
            progress=True,
            say=lambda line: click.echo(line),
        )
    figure = simulated_and_measured(frame)
    figure.savefig(picture)
    click.echo(f"\n{figure}\nDrawn into {picture}.")
