"""Pictures of lesson 02: how often each design goes wrong, how, and how soon.

Every figure's `caption` says in a sentence what to see; its numbers are those of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, log
from typing import TYPE_CHECKING, Any

from simulator.experiments.style import (
    FAINT,
    INK,
    PAPER,
    CourseFigure,
    caption,
    course_style,
    direct_label,
    intervals,
    looks,
    new_figure,
    percent,
)
from simulator.experiments.words import listing

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["OUTCOMES", "by_attempts", "days_to_even_odds", "first_double", "rate_grid"]

Formula = Callable[[float], float]

OUTCOMES: Mapping[str, str] = {
    "double_refund": "paid twice",
    "lost_refund": "never paid",
    "false_answer": "told untruly",
}
"""What is counted, in a manager's words."""

_COLUMNS = ("design", "x", "outcome", "rate", "low", "high")
_DENSE = 60  # points of a formula's line


def rate_grid(
    frames: Mapping[str, pd.DataFrame],
    formulas: Mapping[tuple[str, str], Mapping[str, Formula]],
    *,
    draw_caption: bool = True,
) -> CourseFigure:
    """Draw the rate of each outcome (rows) over the probability of each fault (columns).

    Args:
        frames: from the name of each fault to its counts: one row for each design, x (0 to 1)
            and outcome, with the columns design, x, outcome, rate, low, high.
        formulas: (fault, outcome) -> design -> what theory says, from x to a rate.
        draw_caption: also write the caption below the picture.

    Returns:
        The figure. Its caption says where each design does worst at the largest x, and how many
        of the intervals the formulas pass through.

    Raises:
        ValueError: there is no fault to draw, or a frame lacks a column.
    """
    if not frames:
        raise ValueError("rate_grid needs the counts of at least one fault.")
    for fault, frame in frames.items():
        if missing := [column for column in _COLUMNS if column not in frame.columns]:
            raise ValueError(
                f"The counts of {fault!r} have no column {listing(missing, 'or')}: "
                f"rate_grid needs {listing(_COLUMNS)}."
            )
    names = list(dict.fromkeys(name for frame in frames.values() for name in frame["design"]))
    figure, grid = _panels(len(frames), draw_caption)
    styles = looks(names)
    worst: dict[str, tuple[float, str, str]] = dict.fromkeys(names, (0.0, "", ""))
    drawn = inside = 0
    top = max(float(frame["high"].max()) for frame in frames.values())
    for column, (fault, frame) in enumerate(frames.items()):
        grid[0][column].set_title(fault, fontsize=15, loc="center", pad=8)
        for row, outcome in enumerate(OUTCOMES):
            axes = grid[row][column]
            for place, name in enumerate(names):
                mine = frame[(frame["design"] == name) & (frame["outcome"] == outcome)]
                formula = formulas.get((fault, outcome), {}).get(name)
                rows = _series(mine)
                shift = 0.009 * (place - (len(names) - 1) / 2)
                _draw(axes, rows, styles[name], formula, shift)
                if rows[1][-1] > worst[name][0]:
                    worst[name] = (rows[1][-1], fault, outcome)
                if formula is not None:
                    drawn += len(rows[0])
                    inside += _through(rows, formula)
            axes.set_ylim(-0.02, top * 1.04)
    _legend(figure, styles)
    largest = max(float(frame["x"].max()) for frame in frames.values())
    caption(figure, _worst(worst, largest) + _passes(inside, drawn), draw=draw_caption)
    return figure


def _panels(columns: int, room: bool) -> tuple[CourseFigure, Any]:
    height = 8.6 if room else 7.6
    figure, grid = new_figure(11.5, height, rows=len(OUTCOMES), columns=columns, sharex=True)
    if columns == 1:
        grid = grid.reshape(len(OUTCOMES), 1)
    for row, word in enumerate(OUTCOMES.values()):
        for column in range(columns):
            axes = grid[row][column]
            percent(axes.xaxis)
            percent(axes.yaxis)
            axes.tick_params(labelsize=12, labelleft=column == 0)
            axes.tick_params(axis="x", labelsize=11)
        grid[row][0].set_ylabel(word)
    for axes in grid[-1]:
        axes.set_xlabel("probability", fontsize=13)
    return figure, grid


Series = tuple[list[float], list[float], list[float], list[float]]


def _series(rows: pd.DataFrame) -> Series:
    rows = rows.sort_values("x")
    x, rate, low, high = ([float(v) for v in rows[name]] for name in ("x", "rate", "low", "high"))
    return x, rate, low, high


def _draw(axes: Any, series: Series, look: Any, formula: Formula | None, shift: float = 0.0) -> Any:
    """Points with intervals, and the formula's line; points are moved aside to be seen."""
    x, rate, low, high = series
    if formula is not None:
        dense = [x[-1] * step / _DENSE for step in range(_DENSE + 1)]
        axes.plot(dense, [formula(one) for one in dense], **look.line(marker=False))
    beside = [one + shift for one in x]
    axes.vlines(beside, low, high, colors=look.colour, linewidth=1.6)
    (points,) = axes.plot(beside, rate, **(look.points() | {"markersize": 8}))
    return points


def _through(series: Series, formula: Formula) -> int:
    x, _, low, high = series
    slack = 1e-9
    found = zip(x, low, high, strict=True)
    return sum(lo - slack <= formula(one) <= hi + slack for one, lo, hi in found)


def _legend(figure: CourseFigure, styles: Mapping[str, Any]) -> None:
    from matplotlib.lines import Line2D

    with course_style():
        handles = [Line2D([], [], label=name, **look.line()) for name, look in styles.items()]
        figure.legend(
            handles=handles,
            loc="outside upper center",
            ncols=len(handles),
            frameon=False,
            handlelength=2.8,
            fontsize=13,
        )


def _worst(worst: Mapping[str, tuple[float, str, str]], largest: float) -> str:
    said = [
        f"{name} is at its worst with {100 * rate:.0f} % {OUTCOMES[outcome]} ({fault})"
        if rate
        else f"{name} does nothing wrong"
        for name, (rate, fault, outcome) in worst.items()
    ]
    return f"With each fault at {100 * largest:.0f} %, {listing(said)}"


def _passes(inside: int, drawn: int) -> str:
    if not drawn:
        return "."
    return f"; the formulas (lines) pass through {inside} of {drawn} counted intervals."


def by_attempts(
    frame: pd.DataFrame,
    formulas: Mapping[str, Callable[[int], float]],
    *,
    draw_caption: bool = True,
) -> CourseFigure:
    """Draw each outcome's rate over the number of attempts that the service may make.

    Args:
        frame: one row for each number of attempts (`x`, from 1) and outcome, with the columns
            x, outcome, rate, low, high.
        formulas: outcome -> what theory says, from attempts to a rate.
        draw_caption: also write the caption below the picture.

    Returns:
        The figure. Its caption compares the smallest with the largest number of attempts.
    """
    figure, axes = new_figure(
        10.0, 6.2 if draw_caption else 5.4, xlabel="attempts at most", ylabel="share of refunds"
    )
    lines, said = [], []
    drawn = inside = 0
    for outcome, look in looks(OUTCOMES).items():
        series = _series(frame[frame["outcome"] == outcome])
        x, rate, low, high = series
        formula = formulas[outcome]

        def at(attempts: float, formula: Callable[[int], float] = formula) -> float:
            return formula(round(attempts))

        axes.plot(x, [at(n) for n in x], **(look.line(marker=False) | {"alpha": 0.55}))
        intervals(axes, x, low, high, look)
        (points,) = axes.plot(x, rate, label=OUTCOMES[outcome], **look.points())
        lines.append(points)
        drawn += len(x)
        inside += _through(series, at)
        said.append(f"{OUTCOMES[outcome]} {_share(rate[0])} and {_share(rate[-1])}")
    axes.set_xticks(sorted(set(frame["x"])))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
    percent(axes.yaxis)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    first, last = min(frame["x"]), max(frame["x"])
    sentence = f"With {first:.0f} and with {last:.0f} attempts: {listing(said)}"
    caption(figure, sentence + _passes(inside, drawn), draw=draw_caption)
    direct_label(axes, lines)
    return figure


def _share(value: float) -> str:
    per_cent = 100 * value
    return f"{per_cent:.0f} %" if per_cent == 0 or per_cent >= 9.5 else f"{per_cent:.1f} %"


def days_to_even_odds(a_day: int, probability: float) -> int:
    """The first day on which "it has happened by now" is at least as likely as not.

    Args:
        a_day: refunds a day.
        probability: that one refund is paid twice, above 0 and below 1.
    """
    return ceil(log(0.5) / (a_day * log(1 - probability)))


def first_double(
    shops: Sequence[int], probability: float, *, days: int = 250, draw_caption: bool = True
) -> CourseFigure:
    """Draw how likely it is, day by day, that a refund has been paid twice by now.

    Args:
        shops: refunds a day, one line for each.
        probability: that one refund is paid twice, independently of the others.
        days: how far the picture goes, from day 1 (its scale is logarithmic).
        draw_caption: also write the caption below the picture.

    Returns:
        The figure. Its caption says for each shop on which day the odds are even.
    """
    figure, axes = new_figure(
        10.0,
        6.2 if draw_caption else 5.4,
        xlabel="working days",
        ylabel="at least one paid twice by then",
    )
    said = []
    styles = looks([f"{a_day:,} a day" for a_day in shops])
    for a_day, (name, look) in zip(shops, styles.items(), strict=True):
        x = list(range(1, days + 1))
        y = [1 - (1 - probability) ** (a_day * day) for day in x]
        marks = [day - 1 for day in (1, 2, 5, 10, 20, 50, 100, 200) if day <= days]
        axes.plot(x, y, markevery=marks, **look.line())
        even = days_to_even_odds(a_day, probability)
        said.append(f"day {even} at {name}")
        if even <= days:
            ring = y[even - 1]
            axes.plot([even], [ring], "o", ms=15, mfc="none", mec=INK, mew=2, zorder=5)
            axes.annotate(
                f"{name}:\nday {even}",
                (even, ring),
                xytext=(16, -14),
                textcoords="offset points",
                va="top",
                fontsize=14,
                fontweight="bold",
                parse_math=False,
                backgroundcolor=PAPER,
                zorder=4,
            )
    axes.axhline(0.5, color=FAINT, linewidth=1.4, zorder=0.5)
    axes.text(days, 0.515, "even odds", ha="right", color=INK, fontsize=12)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlim(0.9, days * 1.05)
    axes.set_ylim(0, 1.03)
    percent(axes.yaxis)
    sentence = (
        f"One refund in {1 / probability:,.0f} is paid twice. That it has happened is as likely "
        f"as not (ringed) on {listing(said)}."
    )
    caption(figure, sentence, draw=draw_caption)
    return figure
