"""The command `live`: the same service on real parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

__all__ = ["EXAMPLES", "database_option", "live", "url_of"]


database_option = click.option(
    "--database",
    "-d",
    default="sqlite",
    show_default=True,
    help="sqlite: a file that is removed afterwards. postgresql: a server that is started for "
    "you, and gone afterwards. Or a URL: sqlite:///refunds.db, postgresql://user@host/name.",
)


@contextmanager
def url_of(database: str) -> Iterator[str | None]:
    """The URL that `--database` stands for; a server is stopped in the end."""
    from simulator.live.postgresql import temporary_server
    from simulator.live.problems import Problem

    try:
        if database == "postgresql":
            with temporary_server() as url:
                yield url
        else:
            yield None if database == "sqlite" else database
    except Problem as problem:
        raise click.ClickException(str(problem)) from problem


EXAMPLES = (
    "live --database postgresql --refunds 200 --kills 50",
    "live --design NAIVE --kills 0 --loss 0.2",
    "live interleavings",
)
"""Commands for the help, which says before each how the command line is started."""


@click.group(invoke_without_command=True)
@database_option
@click.option(
    "--refunds", default=200, show_default=True, type=click.IntRange(1, 100_000), help="How many."
)
@click.option(
    "--kills",
    default=50,
    show_default=True,
    type=click.IntRange(0, 100_000),
    help="How often a process gets a SIGKILL: half at named steps, half at random moments.",
)
@click.option(
    "--design",
    "names",
    multiple=True,
    default=("SAFE", "NAIVE"),
    show_default=True,
    help="A rung of the ladder. May be given more than once.",
)
@click.option(
    "--loss",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Probability that an answer of the provider is lost.",
)
@click.option(
    "--client",
    default="http",
    show_default=True,
    type=click.Choice(["http", "stripe"]),
    help="Who speaks to the provider: plain HTTP, or Stripe's own Python client.",
)
@click.option(
    "--speed",
    default=10.0,
    show_default=True,
    type=click.FloatRange(0.1, 100),
    help="Seconds of the service in one of the wall's clock: leases, timeouts, waits.",
)
@click.option(
    "--ledger",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the provider's books; by default one that is as lasting as the database.",
)
@click.option(
    "--port",
    default=0,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The provider's port on loopback; 0 takes a free one.",
)
@click.option("--seed", default=1, show_default=True, help="Of the order of kills.")
@click.pass_context
def live(
    context: click.Context,
    database: str,
    refunds: int,
    kills: int,
    names: tuple[str, ...],
    loss: float,
    client: str,
    speed: float,
    ledger: Path | None,
    port: int,
    seed: int,
) -> None:
    """The same code on real parts: processes, HTTP, SQLite or PostgreSQL, SIGKILL.

    Without a subcommand: many refunds at once while processes are killed, and then four
    accounts, which agree or do not.
    """
    if context.invoked_subcommand is not None:
        return
    from simulator.live.campaign import Campaign
    from simulator.live.trouble import Trouble
    from simulator.service import designs

    ladder = {design.name: design for design in designs.LADDER}
    names = tuple(name.upper().replace("-", "_") for name in names)
    unknown = [name for name in names if name not in ladder]
    if unknown:
        raise click.BadParameter(
            f"{unknown[0]!r} is no rung of the ladder: {', '.join(ladder)}.",
            param_hint="--design",
        )
    unsafe = False
    with url_of(database) as url:
        for name in names:
            report = Campaign(
                ladder[name],
                url,
                refunds,
                kills,
                Trouble(lose_response=loss, seed=seed),
                speed,
                seed,
                client,
                ledger,
                port,
                progress=True,
            ).run()
            click.echo(f"{report}\n")
            unsafe = unsafe or (name == "SAFE" and bool(report.findings))
    if unsafe:
        context.exit(1)


@live.command(short_help="Two transactions, their statements in every order.")
@click.option(
    "--database",
    "-d",
    default="postgresql",
    show_default=True,
    help="postgresql: a server that is started for you, and gone afterwards; or the URL of one.",
)
@click.option(
    "--example",
    nargs=3,
    metavar="CASE LEVEL OUTCOME",
    help='Show one such order, for example: "no lock" "READ COMMITTED" over-refund.',
)
def interleavings(database: str, example: tuple[str, str, str] | None) -> None:
    """Two transactions, statement by statement, in every order of their statements.

    Says for six ways to guard a balance, or to do a thing once, and for the transaction of the
    lesson's section 7, what becomes of it on each level of isolation; and on SQLite.
    """
    from simulator.live.interleavings import interleavings as play
    from simulator.live.transactions import CASES

    chosen = [case for case in CASES if example is None or case.name == example[0]]
    if not chosen:
        names = ", ".join(case.name for case in CASES)
        raise click.BadParameter(f"There is no such case. Cases: {names}.", param_hint="--example")
    with url_of(database) as url:
        found = play(url, chosen)
        if example is None:
            click.echo(found)
            return
        try:
            click.echo(found.example(*example))
        except ValueError as error:
            raise click.BadParameter(f"{error}\n\n{found}", param_hint="--example") from error
