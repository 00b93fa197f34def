"""The pictures of the storm, each with the sentence that says what to see.

Every function takes what an experiment gave (`simulator.experiments.outage`, `occ`,
`metastable`, `layers`, `budgets`) and returns a figure that pyplot does not know. Numbers in a
sentence come from the data. Here: after an outage; the others are in `contention_plots` and
`metastable_plots`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from simulator.experiments.style import (
    INK,
    PAPER,
    CourseFigure,
    caption,
    course_style,
    intervals,
    looks,
    new_figure,
    percent,
)
from simulator.lessons.contention_plots import budget_curves, contention, layers_heat
from simulator.lessons.metastable_plots import collapse_runs, hysteresis_loop, state_heat

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from simulator.experiments.storm import Load

__all__ = [
    "beat",
    "budget_curves",
    "calls_after_outage",
    "collapse_runs",
    "contention",
    "doubles_and_load",
    "hysteresis_loop",
    "layers_heat",
    "state_heat",
]

OUTAGE = "#E3E3E3"


def calls_after_outage(
    loads: Mapping[str, Load], capacity: float, *, until: float | None = None
) -> CourseFigure:
    """Calls and goodput over time, one small picture for each policy, all on one scale.

    Args:
        loads: runs of the same storm, by policy.
        capacity: refunds a second that the provider can do.
        until: seconds to show; by default until all but the slowest have ended, or at most until
            140 s after the outage.
    """
    ends = sorted(load.horizon for load in loads.values())
    if until is None:
        after = max(load.after for load in loads.values())
        until = min(after + 140.0, ends[-2] if len(ends) > 1 else ends[-1]) + 5
    columns = 2 if len(loads) > 3 else 1
    rows = -(-len(loads) // columns)
    figure, grid = new_figure(
        12.0 if columns == 2 else 10.0,
        max(4.6, 2.3 * rows + 1.4),
        rows=rows,
        columns=columns,
        sharex=True,
        xlabel="time since the first wish (s)",
    )
    panels = list(getattr(grid, "flat", [grid]))
    shown = {name: _seconds(load, 0.0, until) for name, load in loads.items()}
    top = max(calls.max() for _, calls, _ in shown.values())
    line, area = looks(["calls", "answered in time"]).values()
    with course_style():
        for axes, (name, load) in zip(panels, loads.items(), strict=False):
            times, calls, goodput = shown[name]
            axes.axvspan(load.outage, load.after, color=OUTAGE, linewidth=0)
            axes.fill_between(times, goodput, step="post", color=area.colour, linewidth=0)
            axes.step(times, calls, where="post", color=line.colour, linewidth=2)
            axes.axhline(capacity, color=INK, linewidth=1, linestyle=(0, (4, 3)))
            axes.set_xlim(0, until)
            axes.set_ylim(0, 1.08 * top)
            axes.set_title(f"{name}: {_end(load)}", fontsize=14, pad=6)
        for empty, above in zip(panels[len(loads) :], panels[len(loads) - columns :], strict=False):
            empty.set_visible(False)
            above.tick_params(labelbottom=True)
            above.set_xlabel(empty.get_xlabel())
        first, load = panels[0], next(iter(loads.values()))
        length = load.after - load.outage
        grey = {"facecolor": OUTAGE, "edgecolor": "none", "pad": 1.5}
        down = load.outage + 0.2 * length
        first.text(down, top / 2, "down", va="center", fontsize=13, bbox=grey)
        # Where no calls run through the words; if they do everywhere, in the last panel.
        quiet = [
            a for a, name in zip(panels, loads, strict=False) if _ends_below(shown[name], capacity)
        ]
        (quiet or panels[: len(loads)][-1:])[0].annotate(
            f"it can do {capacity:.0f}/s",
            (until, capacity),
            xytext=(-4, 5),
            textcoords="offset points",
            ha="right",
            fontsize=14,
        )
        end = " " if rows > 2 else "\n"
        figure.supylabel(f"a second: calls (line),{end}answered in time (filled)", fontsize=15)
    caption(figure, _after_outage(loads))
    return figure


def _after_outage(loads: Mapping[str, Load]) -> str:
    finished = {name: load for name, load in loads.items() if not load.gave_up and not load.waiting}
    if len(finished) < 2:
        return "; ".join(f"{name}: {_end(load)}" for name, load in loads.items()) + "."
    slow = max(finished, key=lambda name: finished[name].time_to_drain)
    fast = min(finished, key=lambda name: finished[name].time_to_drain)
    high = max(finished, key=lambda name: finished[name].peak)
    low = min(finished, key=lambda name: finished[name].peak)
    return (
        f"Of those that answer everybody, {slow} is the slowest, "
        f"{finished[slow].time_to_drain:.0f} s after the outage, and {fast} the fastest, "
        f"{finished[fast].time_to_drain:.0f} s; "
        f"{high} has the highest wave after it, {finished[high].peak:,.0f} calls in a second, and "
        f"{low} the lowest, {finished[low].peak:.0f}."
    )


def _end(load: Load) -> str:
    if load.waiting:
        return f"{load.waiting:,} of {load.asked:,} wait for ever"
    if load.gave_up:
        return f"{load.gave_up:,} of {load.asked:,} gave up"
    return f"{load.time_to_drain:.0f} s, {load.calls_per_refund:.1f} calls a refund"


def _seconds(load: Load, begin: float, end: float) -> tuple[Any, Any, Any]:
    """Times, calls and goodput from `begin` to `end`, with zeros where the run was over."""
    step = load.resolution
    rows = [at * step for at in range(int(begin / step), int(end / step) + 1)]
    series = load.series.reindex(rows, fill_value=0.0)
    return series.index.to_numpy(), series["calls"].to_numpy(), series["goodput"].to_numpy()


def _ends_below(shown: tuple[Any, Any, Any], level: float) -> bool:
    """Whether the calls of the last two fifths stay below a level."""
    _, calls, _ = shown
    return bool(calls[3 * len(calls) // 5 :].max() < level)


def beat(loads: Mapping[str, Load], *, before: float = 100.0, after: float = 50.0) -> CourseFigure:
    """Calls a second around the end of a long outage: beats against a spread (case B14).

    Args:
        loads: runs by name, from `at_the_cap`.
        before: seconds to show before the provider comes back.
        after: seconds to show after that.
    """
    figure, grid = new_figure(
        10.0,
        2.6 * len(loads) + 1.6,
        rows=len(loads),
        sharex=True,
        xlabel="time since the provider came back (s)",
    )
    panels = list(getattr(grid, "flat", [grid]))
    shown = {}
    for name, load in loads.items():
        times, calls, _ = _seconds(load, load.after - before, load.after + after)
        shown[name] = (times - load.after, calls)
    top = max(calls.max() for _, calls in shown.values())
    peaks = {name: float(calls[times < 0].max()) for name, (times, calls) in shown.items()}
    with course_style():
        for axes, (name, (times, calls)), look in zip(
            panels, shown.items(), looks(loads).values(), strict=True
        ):
            axes.axvspan(-before, 0, color=OUTAGE, linewidth=0)
            axes.bar(times, calls, width=1.0, align="edge", color=look.colour, linewidth=0)
            axes.set_xlim(-before, after)
            axes.set_ylim(0, 1.1 * top)
            title = f"{name}: up to {peaks[name]:.0f} calls in one second"
            axes.set_title(title, fontsize=14, pad=6)
        panels[0].text(0.99 * -before, 1.05 * top, "down", va="top", fontsize=14)
        figure.supylabel("calls a second", fontsize=15)
    high, low = (pick(peaks, key=lambda name: peaks[name]) for pick in (max, min))
    times, calls = shown[high]
    quiet = float((calls[times < 0] == 0).mean())
    sentence = (
        f"Everybody has backed off to the cap. With {high} they come in beats: {peaks[high]:.0f} "
        f"calls in one second, and none at all in {100 * quiet:.0f} % of the seconds"
    )
    if high != low:
        sentence += f"; with {low} never more than {peaks[low]:.0f} in one second"
    caption(figure, f"{sentence}.")
    return figure


def doubles_and_load(
    frame: DataFrame, *, keyed: DataFrame | None = None, capacity: float = 125.0
) -> CourseFigure:
    """The highest wave after the outage against refunds paid twice, of the same runs.

    Args:
        frame: from `outage.summary`, of runs without a key. Policies under which nobody was
            answered are left out.
        keyed: the same with an idempotency key: hollow marks.
        capacity: what the provider does in the second that clients wait.
    """
    figure, axes = new_figure(
        11.0,
        6.8,
        xlabel="highest wave after the outage (calls in one second)",
        ylabel="refunds paid more than once",
    )
    points, hollow = _means(frame), {} if keyed is None else _means(keyed)
    with course_style():
        axes.set_xscale("log")
        for (name, found), look in zip(points.items(), looks(points).values(), strict=True):
            peak, rate = found["peak"], found["double_refund_rate"]
            if name in hollow:
                x, y = (hollow[name][m]["mean"] for m in ("peak", "double_refund_rate"))
                axes.plot(
                    [peak["mean"], x], [rate["mean"], y], color=look.colour, lw=1, ls=(0, (2, 3))
                )
                axes.plot([x], [y], **_big(look) | _HOLLOW | {"markeredgecolor": look.colour})
            axes.plot([peak["mean"]], [rate["mean"]], label=name, **_big(look))
            intervals(axes, [peak["mean"]], [rate["low"]], [rate["high"]], look)
            axes.hlines(rate["mean"], peak["low"], peak["high"], colors=look.colour, linewidth=2)
        _name_points(axes, points)
        axes.axvline(capacity, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        axes.text(0.97 * capacity, 0.5, "it can do\nso many in\none wait", ha="right", va="center")
        axes.set_ylim(-0.06, 1.04)
        percent(axes.yaxis)
        ticks = (50, 100, 200, 300, 500, 1000, 2000, 5000)
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.xaxis.set_minor_formatter("")
        peaks = [found["peak"]["mean"] for found in points.values()]
        axes.set_xlim(0.55 * min(capacity, *peaks), 2.2 * max(peaks))
    rates = {name: found["double_refund_rate"]["mean"] for name, found in points.items()}
    worst, best = (pick(rates, key=lambda name: rates[name]) for pick in (max, min))
    sentence = (
        f"A wave that the provider can't do within one wait is paid, but not heard, and sent "
        f"again: {100 * rates[worst]:.0f} % paid twice under {worst}, {100 * rates[best]:.0f} % "
        f"under {best}."
    )
    if hollow:
        most = max(found["double_refund_rate"]["mean"] for found in hollow.values())
        sentence += f" With a key (hollow) the waves are the same, and {100 * most:.0f} %."
    caption(figure, sentence)
    return figure


_HOLLOW = {"markerfacecolor": PAPER, "markeredgewidth": 2.5}


def _big(look: Any) -> dict[str, Any]:
    return {**look.points(), "markersize": 15}


def _means(frame: DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """By policy and metric: mean, low, high; only of policies that answered somebody."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    rows: list[dict[Any, Any]] = frame.to_dict("records")
    for row in rows:
        by_metric = found.setdefault(str(row["policy"]), {})
        by_metric[row["metric"]] = {end: float(row[end]) for end in ("mean", "low", "high")}
    return {name: by for name, by in found.items() if isfinite(by["calls_per_refund"]["mean"])}


def _name_points(axes: Axes, points: Mapping[str, Any]) -> None:
    """Write the names beside the points; those at the same place share one line."""
    places: dict[tuple[float, float], list[str]] = {}
    for name, found in points.items():
        x, y = found["peak"]["mean"], found["double_refund_rate"]["mean"]
        same = [at for at in places if abs(x / at[0] - 1) < 0.05 and abs(y - at[1]) < 0.02]
        places.setdefault(same[0] if same else (x, y), []).append(name)
    right = max(x for x, _ in places)
    for (x, y), names in places.items():
        if y < 0.05 or len(names) > 1:
            away, side = (0, 14), "center"
        elif x > 0.6 * right:
            away, side = (-16, -5), "right"
        else:
            away, side = (16, -5), "left"
        axes.annotate(
            ", ".join(names),
            (x, y),
            xytext=away,
            textcoords="offset points",
            ha=side,
            fontsize=15,
            fontweight="bold",
        )
