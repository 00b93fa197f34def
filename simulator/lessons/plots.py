"""Pictures of measurements for the lessons: rates over a probability, and money by run.

Both return a figure whose `caption` says in one sentence what to see; its numbers are
those of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from simulator.experiments.style import (
    FAINT,
    INK,
    CourseFigure,
    caption,
    direct_label,
    intervals,
    looks,
    new_figure,
    percent,
)
from simulator.experiments.words import listing, money

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ledger_bars", "rate_curve"]

Formula = Callable[[float], float]

_COLUMNS = ("design", "x", "outcome", "rate", "low", "high")
PAID = "#7FCFB4"
EXTRA = "#A32A12"
_DENSE = 200  # points of a formula's line


def rate_curve(
    frame: pd.DataFrame,
    *,
    closed_form: Formula | Mapping[str, Formula] | None = None,
    outcome: str = "double_refund",
    said: str = "refunds paid twice",
    where: str = "With {x} of the answers lost",
    xlabel: str = "probability that an answer is lost",
    ylabel: str = "refunds paid twice",
    title: str | None = None,
    draw_caption: bool = True,
) -> CourseFigure:
    """Draw measured rates with their intervals over a probability, and formulas as lines.

    Args:
        frame: tidy, one row for each design, x and outcome; columns design, x (0 to 1),
            outcome, rate, low, high. Other columns are ignored.
        closed_form: what theory says, from x to a rate: one function for the design that
            comes first in `frame`, or a function for each design by name. Designs without
            one have their points joined by their own dash.
        outcome: which rows of `frame` are drawn.
        said: the outcome in the caption's words.
        where: how the caption names the largest x, which is put in for {x}.
        xlabel: of the probability.
        ylabel: of the rate.
        title: above the picture.
        draw_caption: also write the caption below the picture.

    Returns:
        The figure. Its caption states every design's rate at the largest x, and how many
        of the intervals the formula's line passes through.

    Raises:
        ValueError: a column is missing, no row has this outcome, or a formula is given for
            a design that is not in `frame`.
    """
    missing = [column for column in _COLUMNS if column not in frame.columns]
    if missing:
        raise ValueError(
            f"The frame has no column {listing(missing, 'or')}: "
            f"rate_curve needs {listing(_COLUMNS)}."
        )
    rows = frame[frame["outcome"] == outcome]
    if rows.empty:
        there = listing(sorted(map(str, frame["outcome"].unique())), "or") or "nothing"
        raise ValueError(f"No row has the outcome {outcome!r}; the frame has {there}.")
    names = [str(name) for name in dict.fromkeys(rows["design"])]
    formulas = _formulas(closed_form, names)

    figure, axes = new_figure(title=title, xlabel=xlabel, ylabel=ylabel)
    said_of: list[str] = []
    through = inside = 0
    lines = []
    for name, look in looks(names).items():
        mine = rows[rows["design"] == name].sort_values("x")
        x, rate, low, high = (
            [float(v) for v in mine[column]] for column in ("x", "rate", "low", "high")
        )
        formula = formulas.get(name)
        if formula is not None:
            dense = [x[0] + (x[-1] - x[0]) * step / _DENSE for step in range(_DENSE + 1)]
            axes.plot(dense, [formula(one) for one in dense], **look.line(marker=False))
            through += len(x)
            inside += sum(
                lo <= formula(one) <= hi for one, lo, hi in zip(x, low, high, strict=True)
            )
        intervals(axes, x, low, high, look)
        (points,) = axes.plot(
            x, rate, label=name, **(look.points() if formula is not None else look.line())
        )
        lines.append(points)
        said_of.append(f"{name} {_share(rate[-1])} ({_share(low[-1])} to {_share(high[-1])})")
    percent(axes.xaxis)
    percent(axes.yaxis, digits=0 if float(rows["high"].max()) > 0.05 else 1)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    largest = float(rows["x"].max())
    sentence = f"{where.format(x=_share(largest))}, {said}: {listing(said_of)}"
    if through:
        sentence += (
            f"; the formula, drawn as a line, passes through {inside} of "
            f"{through} measured intervals"
        )
    caption(figure, f"{sentence}.", draw=draw_caption)
    direct_label(axes, lines)
    return figure


def _formulas(
    closed_form: Formula | Mapping[str, Formula] | None, names: Sequence[str]
) -> Mapping[str, Formula]:
    if closed_form is None:
        return {}
    if not isinstance(closed_form, Mapping):
        return {names[0]: closed_form}
    unknown = [name for name in closed_form if name not in names]
    if unknown:
        raise ValueError(
            f"closed_form names {listing(unknown)}, but the frame has {listing(list(names))}."
        )
    return closed_form


def _share(value: float) -> str:
    """Write a share in per cent, with as many digits as it needs to be told from 0."""
    per_cent = 100 * value
    if per_cent == round(per_cent):
        return f"{per_cent:.0f} %"
    return f"{per_cent:.1f} %" if abs(per_cent) >= 0.1 else f"{per_cent:.2g} %"


class _Intent(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def amount(self) -> int: ...
    @property
    def owed(self) -> bool: ...


class _Run(Protocol):
    """What is asked of a run: `simulator.replay` returns one."""

    @property
    def trace(self) -> Sequence[Any]: ...
    @property
    def told(self) -> pd.DataFrame: ...
    @property
    def scenario(self) -> Any: ...


def ledger_bars(
    runs: Mapping[str, _Run], *, title: str | None = None, draw_caption: bool = True
) -> CourseFigure:
    """Draw for a few runs what was owed, what was paid, and what the customer was told.

    Args:
        runs: from the name of each run to the run, as `replay` returns it.
        title: above the picture.
        draw_caption: also write the caption below the picture.

    Returns:
        The figure. What was paid beyond what was owed is dark and says how much it is. The
        caption says for every run what was owed, paid and told.

    Raises:
        ValueError: no run was given.
    """
    if not runs:
        raise ValueError("ledger_bars needs at least one run: ledger_bars({'NAIVE': run}).")
    sums = {name: _sums(run) for name, run in runs.items()}
    figure, axes = new_figure(
        8.0,
        1.3 + 1.35 * len(runs) + (0.8 if draw_caption else 0.0),
        title=title,
        xlabel="US dollars",
    )
    most = max(max(values) for values in sums.values()) or 1
    for place, (_, values) in enumerate(sums.items()):
        for row, (word, amount) in enumerate(zip(("owed", "paid", "told"), values, strict=True)):
            _bar(axes, place + 0.27 * (row - 1), word, amount, values[0], most)
    axes.set_yticks(range(len(sums)), list(sums), fontweight="bold")
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.set_ylim(len(sums) - 0.5, -0.5)
    axes.set_xlim(0, most / 100 * 1.02)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    said = [
        f"{name}: {money(owed)} owed, {money(paid)} paid, {money(told)} said to be paid"
        for name, (owed, paid, told) in sums.items()
    ]
    caption(figure, f"{'; '.join(said)}.", draw=draw_caption)
    return figure


def _sums(run: _Run) -> tuple[int, int, int]:
    """Return what was owed, paid, and told as done, in minor units."""
    intents: Sequence[_Intent] = run.scenario.intents
    owed = sum(intent.amount for intent in intents if intent.owed)
    paid = sum(event.amount for event in run.trace if event.kind == "effect")
    last = {
        str(row.intent): str(row.statement) for row in run.told.sort_values("time").itertuples()
    }
    told = sum(intent.amount for intent in intents if last.get(intent.id) == "done")
    return owed, paid, told


def _bar(axes: Any, level: float, word: str, amount: int, owed: int, most: int) -> None:
    """Draw one bar with its words; what is paid beyond what is owed stands apart."""
    extra = max(amount - owed, 0) if word == "paid" else 0
    hatch = {"owed": "", "paid": "", "told": "///"}[word]
    face = {"owed": "#C9C9C9", "paid": PAID, "told": "#FFFFFF"}[word]
    axes.barh(
        level, (amount - extra) / 100, 0.24, color=face, edgecolor=INK, linewidth=1.4, hatch=hatch
    )
    words = f"{word} {money(amount, short=True)}"
    if extra:
        axes.barh(
            level,
            extra / 100,
            0.24,
            left=(amount - extra) / 100,
            color=EXTRA,
            edgecolor=INK,
            linewidth=1.4,
        )
        words += f": {money(extra, short=True)} too much"
    axes.text(
        amount / 100 + most / 100 * 0.012,
        level,
        words,
        va="center",
        fontsize=13,
        fontweight="bold" if extra else "normal",
        color=INK if amount else FAINT,
        parse_math=False,
    )
