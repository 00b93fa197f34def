"""A history on the screen, and in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from simulator.cli.words import suggestion
from simulator.experiments.words import counted

if TYPE_CHECKING:
    from pathlib import Path

    from simulator.experiments.run import Run
    from simulator.experiments.verdict import Verdict

__all__ = ["PICTURE", "draw", "show", "went_wrong"]

FORMATS = (".png", ".svg", ".pdf")


class _Picture(click.Path):
    """A file that a picture can be written to."""

    def __init__(self) -> None:
        from pathlib import Path

        super().__init__(dir_okay=False, path_type=Path)

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        """The path, if its name says which kind of picture it is to be."""
        path: Path = super().convert(value, param, ctx)  # type: ignore[arg-type,assignment]
        if path.suffix.lower() not in FORMATS:
            self.fail(f"{str(path)!r} must end in one of {', '.join(FORMATS)}")
        if not path.absolute().parent.is_dir():
            self.fail(f"the folder {str(path.parent)!r} does not exist; make it first")
        return path


PICTURE = _Picture()


#: What each invariant's name means where there is room for a few words only.
IN_SHORT = {
    "double_refund": "paid more than once",
    "over_refund": "more given back than was captured",
    "unauthorized_refund": "paid without the right for it",
    "unapproved_refund": "done without a person's consent",
    "conflict_ignored": "a request with another payload not refused",
    "illegal_transition": "a change of state that must not be",
    "false_answer": "the customer told what is not true",
    "lost_refund": "never paid though owed",
    "untold": "the customer not told how it ended",
    "stuck": "never finished",
    "needless_task": "a human asked without need",
    "books_differ": "our books and the provider's differ",
    "audit_gap": "something missing in the audit log",
}


def went_wrong(verdict: Verdict) -> str:
    """A verdict as a sentence for a picture."""
    said = [words for name, words in IN_SHORT.items() if name in verdict]
    return f"What went wrong: {'; '.join(said)}." if said else "All is right in the end."


def show(run: Run, picture: Path | None) -> None:
    """Prints a history, and draws it if that is wanted.

    Says, on stderr, which faults never struck and which steps there were. A step that was never
    taken at all is a bad argument: the history would look like a design that withstands it.
    """
    steps = [name for step in run.steps for name in (step.name, step.what)]
    unknown = False
    for fault in run.unstruck:
        times = steps.count(fault.step)
        unknown = unknown or not times
        hint = f"it was taken {counted(times, 'time')}." if times else suggestion(fault.step, steps)
        click.echo(f"There is no step {fault.step!r}, time {fault.nth}: {hint}", err=True)
    if unknown:
        raise click.exceptions.Exit(2)
    click.echo(run.text)
    if picture:
        draw(run, picture)
        click.echo(f"Drawn into {picture}.", err=True)


def draw(run: Run, path: Path) -> None:
    """Draws a history as a space-time diagram into a file (.png, .svg or .pdf)."""
    from simulator.experiments.style import course_style, png

    figure = run.timeline(title=run.headline, note=went_wrong(run.verdict))
    if path.suffix.lower() == ".png":
        path.write_bytes(png(figure))
    else:
        with course_style():
            figure.savefig(path)
