"""The commands `ablations`, `crashes` and `proof`: what breaks without which safeguard, what a
crash does to which design, and that nothing within a bound breaks the safe one.

What a command needs is imported inside it, so that `--help` is there at once.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simulator.cli.history import PICTURE
from simulator.cli.storm import csv, jobs
from simulator.cli.words import (
    DESIGN,
    MODULE,
    SCENARIO,
    Listing,
    examples,
    program,
    scenarios_by_name,
    suggestion,
)
from simulator.experiments.words import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from simulator.service.design import Design
    from simulator.world.scenario import Scenario

__all__ = ["ablations", "crashes", "proof"]


@click.command(
    "ablations",
    epilog=examples(
        "ablations",
        'ablations --row "fencing token" --row lease',
        "ablations --csv ablations.csv --picture ablations.png",
    ),
)
@click.option(
    "--row",
    "names",
    metavar="SAFEGUARD",
    multiple=True,
    help="Only the rows of this safeguard (repeatable); without --row all are shown, with "
    "their names.",
)
@jobs
@csv
@click.option(
    "--picture",
    type=PICTURE,
    help="Draw the table into this file (.png, .svg or .pdf); more pages get -2, -3 …",
)
def ablations(names: tuple[str, ...], jobs: int, csv: Path | None, picture: Path | None) -> None:
    """Takes every safeguard away from SAFE; what breaks, and after how little?

    Exit code 1 if a row is not as expected.
    """
    from simulator.experiments.ablation import ABLATIONS, SHOWN_BY_STORMS, ablation_table

    known = {row.safeguard: None for row in ABLATIONS}
    for name in names:
        if name not in known:
            raise click.UsageError(f"there is no row {name!r}; {suggestion(name, known)}")
    rows = [row for row in ABLATIONS if not names or row.safeguard in names]
    try:
        table = ablation_table(rows, n_jobs=jobs, progress=sys.stderr.isatty())
    except ValueError as mistake:
        raise click.UsageError(str(mistake)) from mistake
    for record in table.to_dict("records"):
        click.echo(_said(record))
    wrong = table[~table["as_expected"]]
    ending = f"\n{len(wrong)} of {len(table)} rows" if len(wrong) else f"\n{len(table)} rows"
    click.echo(f"{ending}: {'NOT ' if len(wrong) else ''}as expected.")
    if not names:
        click.echo("\nThese spare the provider, not the money; a storm shows them:")
        for shown in SHOWN_BY_STORMS:
            command = shown.command.replace(MODULE, program())
            click.echo(f"  {shown.safeguard}: {shown.shows}\n    {command}")
    if csv is not None:
        table.to_csv(csv, index=False)
    if picture is not None:
        from simulator.experiments.table_plots import ablation_pictures

        pages = enumerate(ablation_pictures(table), 1)
        _draw({"" if page == 1 else f"-{page}": figure for page, figure in pages}, picture)
    if len(wrong):
        raise click.exceptions.Exit(1)


def _said(record: Mapping[Any, Any]) -> str:
    """A row of the ablation table in two lines, or three."""
    missing = [record["safeguard"], *filter(None, record["covered_by"].split(", "))]
    histories = record["histories"]
    tried = counted(histories, "history")
    lines = [
        f"{'as expected' if record['as_expected'] else 'WRONG':11}  "
        f"without {' and '.join(missing)}, {record['scenario']} ({tried})"
    ]
    indent = " " * 13
    if record["breaks"]:
        faults = "no fault at all" if record["faults"] == "none" else record["faults"]
        lines.append(f"{indent}{faults} -> {record['breaks']}")
    else:
        lines.append(f"{indent}nothing broke")
    if not record["as_expected"]:
        lines.append(f"{indent}expected: {record['expected']}")
    if record["covered_by"] and record["as_expected"]:
        lines.append(
            f"{indent}without {record['safeguard']} alone no {record['expected']}: "
            f"{record['covered_by']} covers it"
        )
    if record["note"]:
        lines.append(f"{indent}{record['note']}")
    return "\n".join(lines)


@click.command(
    "crashes",
    cls=Listing,
    names=("designs", "scenarios"),
    epilog=examples(
        "crashes",
        "crashes --scenario two_partial_refunds --design RESERVED",
        "crashes --csv crashes.csv --picture crashes.png",
    ),
)
@click.option(
    "--scenario",
    "-s",
    "settings",
    type=SCENARIO,
    multiple=True,
    help="Only this setting (repeatable). Default: the five that together have every step of "
    "SAFE; in one of them database and provider were away before.",
)
@click.option(
    "--design",
    "-d",
    "designs",
    type=DESIGN,
    multiple=True,
    help="Only this design (repeatable). Default: the whole ladder.",
)
@jobs
@csv
@click.option(
    "--picture",
    type=PICTURE,
    help="Draw the crashes into this file (.png, .svg or .pdf), and the pauses into another "
    "that ends in -pause; further settings get -2, -3 …",
)
def crashes(
    settings: tuple[Callable[[], Scenario], ...],
    designs: tuple[Design, ...],
    jobs: int,
    csv: Path | None,
    picture: Path | None,
) -> None:
    """Kills or stops one process at every point of the way; what becomes of the refund?"""
    from simulator.experiments.crashes import FAULTS, OUTCOMES, SETTINGS, crash_table
    from simulator.service.designs import LADDER

    chosen = tuple(dict.fromkeys(designs)) or LADDER
    where = [setting() for setting in dict.fromkeys(settings)] or SETTINGS
    table = crash_table(chosen, where, n_jobs=jobs, progress=sys.stderr.isatty())
    room = shutil.get_terminal_size((200, 50)).columns
    scenarios = list(dict.fromkeys(table["scenario"]))
    for scenario in scenarios:
        click.echo(click.wrap_text(scenario, room, subsequent_indent="  "))
        for block in _blocks(*_lines(table[table["scenario"] == scenario]), room):
            click.echo(f"{block}\n")
    click.echo(f"From the worst to the best: {', '.join(OUTCOMES)}; -: not a step of the design.")
    if csv is not None:
        table.to_csv(csv, index=False)
    if picture is not None:
        from simulator.experiments.table_plots import crash_picture

        pages = {
            f"{'' if fault == FAULTS[0] else f'-{fault}'}{'' if page == 1 else f'-{page}'}": (
                crash_picture(table, fault, scenario)
            )
            for page, scenario in enumerate(scenarios, 1)
            for fault in FAULTS
        }
        _draw(pages, picture)


def _lines(table: DataFrame) -> tuple[list[str], list[list[str]]]:
    """What is to be printed of one scenario: the left column, and that of each design."""
    from simulator.experiments.crashes import alike, crash_grid

    rows = alike(crash_grid(table))
    left = ["", "no crash, no pause"]
    for row in rows:
        places = "at any point" if row.everywhere else ", ".join(row.when)
        left.append(f"{row.step} {row.fault} {places}")
    without = dict(zip(table["design"], table["without"], strict=True))
    columns = [
        [name, word, *(row.words[place] for row in rows)]
        for place, (name, word) in enumerate(without.items())
    ]
    return left, columns


def _blocks(left: list[str], columns: list[list[str]], room: int) -> Iterator[str]:
    """Text: as many columns beside each other as fit into `room` characters."""
    margin = max(map(len, left))
    while columns:
        taken, used = 0, margin
        for column in columns:
            used += 2 + max(map(len, column))
            if taken and used > room:
                break
            taken += 1
        block, columns = columns[:taken], columns[taken:]
        widths = [margin, *(max(map(len, column)) for column in block)]
        yield "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in zip(left, *block, strict=True)
        )


def _draw(figures: Mapping[str, Figure], path: Path) -> None:
    """Writes figures into files named after `path`, each with its ending of the name."""
    from simulator.experiments.style import course_style

    for ending, figure in figures.items():
        file = path.with_stem(path.stem + ending)
        with course_style():
            figure.savefig(file)
        click.echo(f"Drawn into {file}.", err=True)


@click.command(
    "proof",
    cls=Listing,
    names=("scenarios",),
    epilog=examples(
        "proof --max-faults 1",
        "proof",
        "proof --max-faults 3 -s one_refund -s double_click \\\n"
        "      -s two_partial_refunds -s resubmitted_elsewhere",
    ),
)
@click.option(
    "--max-faults",
    "-k",
    default=2,
    show_default=True,
    type=click.IntRange(0),
    help="Faults in a history at most. Two take 10 to 60 s a scenario on one core, and each "
    "further one about a hundred times as long: three take 10 minutes (one_refund) to an "
    "hour (two_partial_refunds).",
)
@click.option(
    "--scenario",
    "-s",
    "settings",
    type=SCENARIO,
    multiple=True,
    help="Only this setting (repeatable). Default: all in which the agent asks until it is "
    "answered; a wish that never reached us no design can keep.",
)
@jobs
def proof(max_faults: int, settings: tuple[Callable[[], Scenario], ...], jobs: int) -> None:
    """Tries every history of SAFE with up to so many faults, in every setting.

    The processes share the histories of one setting, so that a single one is done sooner, too.
    Exit code 1 if a history breaks an invariant.
    """
    from simulator.experiments.proof import prove
    from simulator.service.designs import SAFE

    right = True
    chosen = [setting() for setting in settings] or [
        setting for make in scenarios_by_name().values() if (setting := make()).agent.resubmits
    ]
    for setting in chosen:
        found = prove(SAFE, setting, max_faults, n_jobs=jobs, progress=sys.stderr.isatty())
        click.echo(found)
        if found.counterexample is not None:
            click.echo(f"\n{found.counterexample.text}\n")
            right = False
    if not right:
        raise click.exceptions.Exit(1)
