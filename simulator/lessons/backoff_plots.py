"""Pictures of lesson 09: where delays fall, and how overload ends."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from simulator.experiments.style import (
    INK,
    CourseFigure,
    caption,
    course_style,
    looks,
    new_figure,
)
from simulator.service.retry import RetryPolicy

if TYPE_CHECKING:
    from simulator.experiments.storm import Load

__all__ = ["delay_cloud", "recovery"]

OUTAGE = "#E3E3E3"


def delay_cloud(
    policies: Mapping[str, RetryPolicy],
    *,
    cap: float = 30.0,
    attempts: int = 9,
    clients: int = 120,
    seed: int = 1,
) -> CourseFigure:
    """A dot for the delay of each of many clients after each failed attempt, a panel a policy.

    Args:
        policies: by name, without a limit on attempts.
        cap: seconds, drawn as a line.
        attempts: how many failed attempts to show, from 0.
        clients: dots for each.
        seed: of all luck.
    """
    figure, grid = new_figure(
        5.6 * len(policies) + 1.0,
        5.6,
        columns=len(policies),
        xlabel="failed attempt, counted from 0",
        ylabel="delay before the next send (s)",
    )
    panels = list(getattr(grid, "flat", [grid]))
    widths = {}
    with course_style():
        for axes, (name, policy), look in zip(
            panels, policies.items(), looks(policies).values(), strict=True
        ):
            luck, aside = Random(seed), Random(seed + 1)
            for attempt in range(attempts):
                delays = [policy.delay(attempt, luck) or 0.0 for _ in range(clients)]
                places = [attempt + aside.uniform(-0.32, 0.32) for _ in delays]
                axes.plot(places, delays, **_dots(look))
                widths[name] = max(delays) - min(delays)
            axes.axhline(cap, color=INK, linewidth=1, linestyle=(0, (4, 3)))
            axes.set_title(name, fontsize=16)
            axes.set_xticks(range(attempts))
            axes.set_ylim(-1, 1.13 * cap)
        panels[0].annotate(
            "the cap",
            (-0.4, cap),
            xytext=(0, 6),
            textcoords="offset points",
            fontsize=14,
        )
    said = ", ".join(f"{width:.1f} s apart with {name}" for name, width in widths.items())
    caption(
        figure,
        f"After attempt {attempts - 1} the shortest and the longest of {clients} delays are "
        f"{said}.",
    )
    return figure


def _dots(look: Any) -> dict[str, Any]:
    return {
        "linestyle": "None",
        "marker": "o",
        "markersize": 3.5,
        "alpha": 0.55,
        "color": look.colour,
        "markeredgewidth": 0,
    }


def recovery(runs: Mapping[str, Load], *, offered: float, capacity: float) -> CourseFigure:
    """Calls and goodput through a freeze, a small picture for each way out, on one scale.

    Args:
        runs: by name, of one length.
        offered: refunds a second that are wanted.
        capacity: refunds a second that the provider can do.
    """
    rows = -(-len(runs) // 2)
    figure, grid = new_figure(
        12.0, 2.5 * rows + 1.4, rows=rows, columns=2, sharex=True, xlabel="time (s)"
    )
    panels = list(grid.flat)
    line, area = looks(["calls", "answered in time"]).values()
    late = {name: float(load.series["goodput"].iloc[-10:].mean()) for name, load in runs.items()}
    top = max(float(load.series["calls"].max()) for load in runs.values())
    with course_style():
        for axes, (name, load) in zip(panels, runs.items(), strict=False):
            series = load.series
            axes.axvspan(load.outage, load.after, color=OUTAGE, linewidth=0)
            times = series.index.to_numpy()
            axes.fill_between(times, series["goodput"], step="post", color=area.colour, linewidth=0)
            axes.step(times, series["calls"], where="post", color=line.colour, linewidth=2)
            axes.axhline(capacity, color=INK, linewidth=1, linestyle=(0, (4, 3)))
            axes.set_xlim(0, load.horizon)
            axes.set_ylim(0, 1.08 * top)
            axes.set_title(f"{name}: {late[name]:.0f}/s at the end", fontsize=14, pad=6)
        for axes in panels[len(runs) :]:
            axes.set_visible(False)
        first = next(iter(runs.values()))
        panels[0].text(
            (first.outage + first.after) / 2, 0.06 * top, "frozen", ha="center", fontsize=13
        )
        panels[0].annotate(
            f"it can do {capacity:.0f}/s",
            (first.horizon, capacity),
            xytext=(-4, 5),
            textcoords="offset points",
            ha="right",
            fontsize=13,
        )
        figure.supylabel("a second: calls (line), answered in time (filled)", fontsize=15)
    stuck = [name for name, goodput in late.items() if goodput < offered / 2]
    back = [name for name, goodput in late.items() if goodput > 0.9 * offered]
    caption(
        figure,
        f"{offered:.0f} a second are wanted and {capacity:.0f} can be done."
        + _listed("Still locked up at the end: ", stuck)
        + _listed("Back: ", back),
    )
    return figure


def _listed(title: str, names: list[str]) -> str:
    return f" {title}{'; '.join(names)}." if names else ""
