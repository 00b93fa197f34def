"""Pictures of contention, budgets and layers (tables A and B, `layers`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter

from simulator.experiments.closed_forms import calls_with_retries, success_with_retries
from simulator.experiments.style import (
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

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["budget_curves", "contention", "layers_heat"]

BLUES = LinearSegmentedColormap.from_list("course", ["#F4F8FC", "#84B6DE", "#003F78"])
"""Light to dark: it stays in order without colour."""


def contention(
    frame: DataFrame, *, busy: DataFrame | None = None, service: float = 0.0
) -> CourseFigure:
    """Calls and completion time over the number of clients (table A).

    Args:
        frame: from `occ.compare`, for a server without limits.
        busy: the same for a server that needs `service` seconds a request; a second row.
        service: seconds, for the title.
    """
    frames: dict[str, Any] = {"a server without limits": frame}
    if busy is not None:
        frames[f"a server that does {1 / service:,.0f} requests/s"] = busy
    figure, grid = new_figure(
        14.0,
        4.6 * len(frames) + 1.2,
        rows=len(frames),
        columns=2,
        xlabel="clients that change one row",
    )
    panels = grid.reshape(len(frames), 2)
    metrics = {"calls": "writes, all clients", "seconds": "until all are done (s)"}
    with course_style():
        for row, (title, data) in zip(panels, frames.items(), strict=True):
            for axes, (metric, label) in zip(row, metrics.items(), strict=True):
                for name, look in looks(data["policy"]).items():
                    part = data[(data["policy"] == name) & (data["metric"] == metric)]
                    axes.plot(part["clients"], part["mean"], label=name, **look.line())
                    intervals(axes, part["clients"], part["low"], part["high"], look)
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
                axes.set_ylabel(label)
            row[0].set_title(title, fontsize=16)
            for axes in row:
                direct_label(axes)
    caption(figure, _contention(frames))
    return figure


def _contention(frames: Mapping[str, Any]) -> str:
    parts = []
    for title, data in frames.items():
        most = data["clients"].max()
        mean = data[data["clients"] == most].pivot(index="policy", columns="metric", values="mean")
        first, least = mean["seconds"].idxmin(), mean["calls"].idxmin()
        parts.append(
            f"With {title}, {most} clients are done first with {first} "
            f"({mean.at[first, 'seconds']:.1f} s, {mean.at[first, 'calls']:,.0f} writes) and with "
            f"the fewest writes with {least} ({mean.at[least, 'calls']:,.0f} writes, "
            f"{mean.at[least, 'seconds']:.1f} s)."
        )
    return " ".join(parts)


def budget_curves(frame: DataFrame) -> CourseFigure:
    """Success and load over the failure rate (table B, from `budgets.budgets`)."""
    data: Any = frame
    figure, grid = new_figure(
        14.0, 6.0, columns=2, xlabel="the provider refuses a send (probability)"
    )
    rates = sorted(data["failure_rate"].unique())
    parts = {
        "success": ("refunds that succeed", success_with_retries),
        "load": ("sends for each refund", calls_with_retries),
    }
    with course_style():
        for axes, (metric, (label, closed_form)) in zip(grid.flat, parts.items(), strict=True):
            for name, look in looks(data["rule"]).items():
                part = data[(data["rule"] == name) & (data["metric"] == metric)]
                axes.plot(part["failure_rate"], part["mean"], label=name, **look.line())
                intervals(axes, part["failure_rate"], part["low"], part["high"], look)
            for retries in (0, 3):
                axes.plot(
                    rates,
                    [closed_form(rate, retries) for rate in rates],
                    linestyle="None",
                    marker="o",
                    markersize=17,
                    markerfacecolor="none",
                    markeredgecolor=INK,
                )
            axes.set_ylabel(label)
            percent(axes.xaxis)
        percent(grid.flat[0].yaxis)
        for axes in grid.flat:
            direct_label(axes)
    last = data[data["failure_rate"] == rates[-1]].set_index(["rule", "metric"])["mean"]
    caption(
        figure,
        f"When {100 * rates[-1]:.0f} % of the sends are refused, three retries bring success from "
        f"{100 * last['none', 'success']:.0f} % to {100 * last['3 retries', 'success']:.0f} % for "
        f"{last['3 retries', 'load']:.2f} times the load; a token bucket gives "
        f"{100 * last['token bucket', 'success']:.0f} % for {last['token bucket', 'load']:.2f}. "
        f"Rings: the closed forms 1 - p^(N+1) and the sum of p^i.",
    )
    return figure


def layers_heat(frame: DataFrame) -> CourseFigure:
    """Calls for one refund: layers of retries against attempts in each (from `layers`)."""
    table: Any = frame.pivot(index="layers", columns="attempts", values="calls")
    figure, axes = new_figure(9.0, 6.4, xlabel="attempts in each layer", ylabel="layers that retry")
    shade = LogNorm(1.0, float(table.to_numpy().max()))
    with course_style():
        axes.grid(visible=False)
        for row, deep in enumerate(table.index):
            for column, often in enumerate(table.columns):
                calls = table.at[deep, often]
                dark = float(shade(calls))
                axes.add_patch(
                    Rectangle(
                        (column - 0.5, row - 0.5),
                        1,
                        1,
                        facecolor=BLUES(dark),
                        edgecolor=PAPER,
                        lw=3,
                    )
                )
                axes.text(
                    column,
                    row,
                    f"{calls:,.0f}",
                    ha="center",
                    va="center",
                    fontsize=19,
                    color=PAPER if dark > 0.55 else INK,
                )
        axes.set_xlim(-0.5, len(table.columns) - 0.5)
        axes.set_ylim(-0.5, len(table.index) - 0.5)
        axes.set_xticks(range(len(table.columns)), [f"{name}" for name in table.columns])
        axes.set_yticks(range(len(table.index)), [f"{name}" for name in table.index])
        axes.tick_params(length=0)
    deep, often = table.index.max(), table.columns.max()
    few = table.index.min()
    caption(
        figure,
        f"While the provider is down, {often} attempts in each of {deep} layers make "
        f"{table.at[deep, often]:,.0f} calls of one refund; in {few} layer they make "
        f"{table.at[few, often]:,.0f}.",
    )
    return figure
