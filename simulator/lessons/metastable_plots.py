"""Pictures of overload that outlives its cause (from `simulator.experiments.metastable`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.patches import Rectangle

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
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from simulator.experiments.storm import Load

__all__ = ["collapse_runs", "hysteresis_loop", "state_heat"]

STATE_LOOKS = {  # colour and hatch; light to dark is good to bad, and each cell says its name
    "stable": ("#F4F8FC", ""),
    "vulnerable": ("#84D0F7", "//"),
    "metastable": ("#003F78", ""),
    "overloaded": ("#8C8C8C", "xx"),
}


def state_heat(frame: DataFrame, *, capacity: float = 300.0, retries: int = 1) -> CourseFigure:
    """Offered load against trigger: stable, vulnerable, metastable (from `state_map`)."""
    data: Any = frame
    offered, triggers = sorted(data["offered"].unique()), sorted(data["trigger"].unique())
    figure, axes = new_figure(
        13.0,
        6.8,
        xlabel="offered load (queries/s)",
        ylabel="the database was frozen for (s)",
    )
    with course_style():
        axes.grid(visible=False)
        for row in data.itertuples():
            x, y = offered.index(row.offered), triggers.index(row.trigger)
            colour, hatch = STATE_LOOKS[row.state]
            axes.add_patch(
                Rectangle(
                    (x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor=PAPER, hatch=hatch, lw=2
                )
            )
            paper = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.5, "alpha": 0.9}
            axes.text(
                x,
                y,
                row.state,
                ha="center",
                va="center",
                fontsize=12.5,
                color=PAPER if row.state == "metastable" else INK,
                bbox=paper if hatch else None,
            )
        axes.set_xlim(-0.5, len(offered) - 0.5)
        axes.set_ylim(-0.5, len(triggers) - 0.5)
        axes.set_xticks(range(len(offered)), [f"{value:g}" for value in offered])
        axes.set_yticks(range(len(triggers)), [f"{value:g}" for value in triggers])
        axes.tick_params(length=0)
        for limit, words in (
            (capacity / (1 + retries), "below: fits with all retries"),
            (capacity, "all it can do"),
        ):
            at = sum(value < limit for value in offered) - 0.5
            axes.axvline(at, color=INK, linewidth=3)
            axes.annotate(
                f"{limit:g}/s: {words}",
                (at, len(triggers) - 0.5),
                xytext=(0, 6),
                textcoords="offset points",
                ha="center",
                fontsize=14,
                annotation_clip=False,
            )
    caption(figure, _states(data, capacity, retries))
    return figure


def _states(data: Any, capacity: float, retries: int) -> str:
    stuck = data[data["state"] == "metastable"]
    if stuck.empty:
        return "No trigger locked it up."
    worst = stuck[stuck["offered"] == stuck["offered"].max()].sort_values("trigger").iloc[0]
    below = data[data["offered"] * (1 + retries) < capacity]
    return (
        f"At {worst['offered']:g}/s of {capacity:g}/s a freeze of {worst['trigger']:g} s is "
        f"enough: 40 s after it is over, {100 * worst['share']:.0f} % of the queries are answered "
        f"in time. Below {capacity / (1 + retries):g}/s it was locked up in "
        f"{(below['state'] == 'metastable').sum()} of {len(below)} cells."
    )


def hysteresis_loop(frames: Mapping[str, DataFrame], *, capacity: float = 300.0) -> CourseFigure:
    """Goodput over offered load, on the way up and on the way down (from `hysteresis`).

    Args:
        frames: runs by name, for example with a long and with a short queue.
        capacity: queries a second that the server can do.
    """
    figure, grid = new_figure(
        6.2 * len(frames) + 1.0,
        6.4,
        columns=len(frames),
        xlabel="offered load (queries/s)",
        ylabel="answered in time (queries/s)",
    )
    panels = list(getattr(grid, "flat", [grid]))
    branches = looks(["up", "down"])
    sentences = []
    with course_style():
        for axes, (name, frame) in zip(panels, frames.items(), strict=True):
            data: Any = frame
            highest = data["offered"].max()
            axes.plot([0, highest], [0, highest], color=FAINT, linewidth=1.5, linestyle=(0, (2, 3)))
            for branch, look in branches.items():
                part = data[data["branch"] == branch]
                axes.plot(part["offered"], part["goodput"], label=branch, **look.line())
                intervals(axes, part["offered"], part["low"], part["high"], look)
            axes.set_title(name, fontsize=16)
            axes.set_xlim(0, 1.05 * highest)
            axes.set_ylim(-0.04 * highest, 1.15 * capacity)
            ways = data.pivot(index="offered", columns="branch", values="goodput").dropna()
            at = (ways["up"] - ways["down"]).idxmax()
            up, down = ways.at[at, "up"], ways.at[at, "down"]
            if down > 0.9 * up:
                sentences.append(f"With {name} the way down is the way up.")
            else:
                sentences.append(
                    f"With {name}, of {at:g} queries a second {up:.0f} are answered in time on the "
                    f"way up, {down:.0f} on the way down."
                )
                _say(axes, "up", (at, up), (-14, 8), "right", branches["up"].colour)
                _say(axes, "down", (at, down), (-4, 14), "center", "#8A5E00")
    caption(figure, " ".join(sentences))
    return figure


def _say(
    axes: Any, word: str, at: tuple[float, float], away: tuple[int, int], side: str, colour: str
) -> None:
    axes.annotate(
        word,
        at,
        xytext=away,
        textcoords="offset points",
        ha=side,
        fontweight="bold",
        fontsize=17,
        color=colour,
    )


def collapse_runs(without: Sequence[Load], backoff: Sequence[Load]) -> CourseFigure:
    """Goodput through a spike, without and with backoff, one line a run (from `collapse`)."""
    figure, axes = new_figure(11.0, 6.0, xlabel="time (s)", ylabel="answered in time (requests/s)")
    names = {"again at once": without, "backoff\nwith jitter": backoff}
    with course_style():
        axes.axvspan(20, 25, color="#E3E3E3", linewidth=0)
        for (name, runs), look in zip(names.items(), looks(names).values(), strict=True):
            for number, load in enumerate(runs):
                smooth = load.series["goodput"].rolling(5, center=True, min_periods=1).mean()
                axes.plot(
                    smooth.index,
                    smooth,
                    label=name if number == 0 else "_",
                    **look.line(marker=False) | {"linewidth": 1.6},
                )
        axes.set_ylim(0, None)
        axes.text(22.5, 2, "twice the\ntraffic", ha="center", fontsize=14)
        direct_label(axes)
    late = [float(load.series["goodput"].loc[40:79].mean()) for load in without]
    better = [float(load.series["goodput"].loc[40:79].mean()) for load in backoff]
    stuck = sum(goodput < 20 for goodput in late)
    caption(
        figure,
        f"A spike of five seconds: of {len(late)} runs in which clients send again at once, "
        f"{stuck} are still stuck 15 s after it; with backoff "
        f"{sum(goodput < 20 for goodput in better)} of {len(better)} are, and on average "
        f"{sum(better) / len(better):.0f} requests a second are answered in time.",
    )
    return figure
