"""The picture of unknown outcomes: which share of them is resolved, over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from simulator.experiments.resolution import Followed
from simulator.experiments.statistics import Rate, rate_interval
from simulator.experiments.style import (
    CourseFigure,
    Look,
    caption,
    direct_label,
    intervals,
    looks,
    new_figure,
    percent,
)
from simulator.experiments.words import listing, rough

__all__ = ["resolved_over_time"]

_TICKS = (0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 86400.0)
"""Seconds with a label on the axis, as far as it reaches."""

_POINTS = 6
_SIGNS = {"o": "●", "s": "■", "^": "▲", "D": "◆", "v": "▼", "P": "✚", "X": "✖"}


def resolved_over_time(followed: Sequence[Followed], *, draw_caption: bool = True) -> CourseFigure:
    """Draw the share of unknown outcomes that are resolved, over the time since they came up.

    Resolved is not resolved rightly: each label says how many of a design's were wrong.
    Intervals are for 95 % (Wilson), each for the time at which it stands; designs that had the
    same luck move together, so theirs say nothing about the difference between two lines.

    Args:
        followed: from `resolution.follow`, under one set of rates; one panel a scenario.
        draw_caption: also write the caption below the picture.

    Returns:
        The figure. Its caption says how soon half of each design's were resolved, in the first
        panel, and how many wrongly, in the worst.

    Raises:
        ValueError: nothing was unknown, or a design comes twice in one scenario.
    """
    panels: dict[str, dict[str, Followed]] = {}
    for one in followed:
        panel = panels.setdefault(str(one.labels.get("scenario", "")), {})
        name = str(one.labels["design"])
        if name in panel:
            raise ValueError(
                f"{name!r} was followed twice in one scenario; the figure shows one set of rates."
            )
        panel[name] = one
    ends = [seconds for one in followed for seconds in one.seconds if seconds < inf]
    if not any(one.unknowns for one in followed):
        raise ValueError("no outcome was unknown: there is nothing to draw. Give higher rates.")
    left, right = min([0.2, *ends]) / 1.5, max([10.0, *ends]) * 1.5
    height = 3.4 * len(panels) + (2.4 if draw_caption else 1.0)
    figure, grid = new_figure(
        10.5,
        height,
        rows=len(panels),
        xlabel="time since the outcome became unknown",
        ylabel="resolved",
        sharex=True,
    )
    styles = looks(name for panel in panels.values() for name in panel)
    every: list[Any] = [grid] if len(panels) == 1 else list(grid[:, 0])
    for axes, scenario in zip(every, panels, strict=True):
        axes.set_title(scenario, fontsize=15)
        axes.set_xscale("log")
        axes.set_xlim(left, right)
        axes.set_ylim(-0.03, 1.05)
        axes.set_xticks([t for t in _TICKS if left <= t <= right], minor=False)
        axes.xaxis.set_major_formatter(lambda value, _: rough(round(value * 1e6)))
        axes.minorticks_off()
        percent(axes.yaxis)
    caption(figure, _sentence(panels), draw=draw_caption)
    for axes, panel in zip(every, panels.values(), strict=True):
        lines, labels = [], []
        for place, (name, one) in enumerate(panel.items()):
            if one.unknowns:
                lines.append(_curve(axes, one, left, right, styles[name]))
                _points(axes, one, left, right, styles[name], place)
                sign = _SIGNS[styles[name].marker]
                labels.append(f"{sign} {name}:\n{_share(one.wrong().rate)} wrong")
        for label in direct_label(axes, lines, labels=labels, size=13):
            # Lines end together at 100 %: rules to them would cross the labels between.
            if label.arrow_patch is not None:
                label.arrow_patch.set_visible(False)
    return figure


def _curve(axes: Any, one: Followed, left: float, right: float, look: Look) -> Any:
    """The empirical distribution as steps; what is never resolved never rises."""
    total = len(one.unknowns)
    x, y = [left], [0.0]
    for done, seconds in enumerate(one.seconds, start=1):
        if seconds < inf:
            x += [seconds, seconds]
            y += [(done - 1) / total, done / total]
    (line,) = axes.plot([*x, right], [*y, y[-1]], **look.line(marker=False))
    return line


def _points(axes: Any, one: Followed, left: float, right: float, look: Look, place: int) -> None:
    """The series' marker and interval at a few times, each a little beside its neighbour's."""
    step = (right / left) ** (1 / (_POINTS + 1))
    x = [left * step ** (nth + 1 + 0.09 * place) for nth in range(_POINTS)]
    found = [rate_interval(sum(s <= time for s in one.seconds), len(one.unknowns)) for time in x]
    intervals(axes, x, [rate.low for rate in found], [rate.high for rate in found], look)
    axes.plot(x, [rate.rate for rate in found], **look.points())


def _share(rate: float) -> str:
    per_cent = 100 * rate
    return f"{per_cent:.0f} %" if per_cent in (0, 100) or per_cent >= 9.5 else f"{per_cent:.1f} %"


def _sentence(panels: Mapping[str, Mapping[str, Followed]]) -> str:
    halves = {
        name: one.resolved_within(0.5)
        for name, one in next(iter(panels.values())).items()
        if one.unknowns
    }
    soon = [f"{rough(round(half * 1e6))} ({name})" for name, half in halves.items() if half < inf]
    never = [name for name, half in halves.items() if half == inf]
    worst: dict[str, Rate] = {}
    for panel in panels.values():
        for name, one in panel.items():
            wrong = one.wrong()
            if one.unknowns and (name not in worst or wrong.rate > worst[name].rate):
                worst[name] = wrong
    said = [
        f"{_share(wrong.rate)} ({name}" + ("" if wrong.count else f"; at most {_share(wrong.high)}")
        for name, wrong in worst.items()
    ]
    sentence = f"Half of the unknown outcomes are resolved within {listing(soon)}" if soon else ""
    if never:
        sentence += f"; never: {listing(never)}" if soon else "Half are never resolved"
    return f"{sentence}. Resolved wrongly, at the worst: {listing([f'{one})' for one in said])}."
