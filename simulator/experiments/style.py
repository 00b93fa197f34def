"""One look for every figure of the course.

Made for a lecture hall and for a printer without colour: large type, dark ink, and
for every series a colour *and* a marker *and* a dash. The colours are those of Okabe
and Ito (jfly.uni-koeln.de/color, 2008), moved in lightness until any two also differ
in grey by at least 7 units of CIE L*; a test holds that, and that they stay apart for
the three kinds of colour blindness.

Figures are `matplotlib.figure.Figure`, never registered with pyplot: nothing leaks,
nothing is global, and equal data gives equal bytes.

    figure, axes = new_figure(xlabel="response lost (probability)", ylabel="refunds paid twice")
    for name, look in looks(["naive", "safe"]).items():
        axes.plot(x, y[name], label=name, **look.line())
        intervals(axes, x, low[name], high[name], look)
    direct_label(axes)
    caption(figure, "With one answer in five lost, one refund in six is paid twice.")
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter

__all__ = [
    "COLOURS",
    "FAINT",
    "FAMILY",
    "INK",
    "LOOKS",
    "PAPER",
    "RC",
    "CourseFigure",
    "Look",
    "band",
    "caption",
    "course_style",
    "direct_label",
    "intervals",
    "looks",
    "new_figure",
    "percent",
    "png",
    "printable",
    "shorten",
    "width_of",
    "wrap",
]

INK = "#1A1A1A"
"""Text, axes, and whatever is not a series."""

FAINT = "#8C8C8C"
"""Help lines: readable when looked for, silent otherwise."""

PAPER = "#FFFFFF"

FAMILY = "DejaVu Sans"
"""Comes with matplotlib, so it is the same everywhere."""

COLOURS = ("#003F78", "#DE9700", "#B0361A", "#84D0F7", "#009E73", "#A6588F", "#000000")
"""Blue, orange, vermilion, sky, green, purple, black; neighbours far apart in grey."""

_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DASHES: tuple[Any, ...] = (
    "-",
    (0, (6, 2)),
    (0, (2, 1.5)),
    (0, (7, 2, 1.5, 2)),
    (0, (4, 1.5)),
    (0, (1, 1.2)),
    (0, (7, 2, 1.5, 2, 1.5, 2)),
)

RC: dict[str, Any] = {
    "font.family": [FAMILY],
    "font.size": 14,
    "axes.titlesize": 18,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 14,
    "axes.labelsize": 15,
    "axes.labelpad": 8,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.linewidth": 1.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.9,
    "xtick.labelsize": 14,
    "ytick.labelsize": 14,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "figure.dpi": 100,
    "savefig.dpi": 100,
}
"""Settings of a figure, in force while it is made; the reader's own stay untouched."""


@lru_cache(maxsize=1)
def _ruler() -> Any:
    make: Any = RendererAgg  # has no types
    return make(16, 16, 100)


@lru_cache(maxsize=8192)
def width_of(text: str, size: float = 14.0, bold: bool = False) -> float:
    """Return how wide one line of text is, in points."""
    font = FontProperties(family=FAMILY, size=size, weight="bold" if bold else "normal")
    width, _, _ = _ruler().get_text_width_height_descent(text, font, False)
    return float(width) * 72 / 100


@lru_cache(maxsize=1)
def _letters() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties(family=FAMILY))).get_charmap())


@lru_cache(maxsize=4096)
def printable(text: str) -> str:
    """Replace what the font has no letter for, so that it is seen to be missing."""
    known = _letters()
    return "".join(
        letter
        if ord(letter) in known and letter.isprintable()
        else " "
        if letter.isspace()
        else "□"
        for letter in text
    )


def wrap(text: str, room: float, size: float = 14.0, bold: bool = False) -> list[str]:
    """Break text into lines no wider than `room` points; a word longer than that is cut."""
    lines: list[str] = []
    # A no-break space holds a number and its unit together.
    for word in re.split(r"[ \t\n]+", text.strip()):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size, bold) <= room:
            lines[-1] = longer
            continue
        rest = word
        while width_of(rest, size, bold) > room and len(rest) > 4:
            keep = len(rest) - 1
            while keep > 4 and width_of(rest[:keep], size, bold) > room:
                keep -= 1
            lines.append(rest[:keep])
            rest = rest[keep:]
        lines.append(rest)
    return lines or [""]


def shorten(text: str, room: float, size: float = 14.0, bold: bool = False) -> str:
    """Cut one line of text to `room` points, with an ellipsis where it was cut."""
    if width_of(text, size, bold) <= room:
        return text
    while text and width_of(f"{text}…", size, bold) > room:
        text = text[:-1]
    return f"{text}…"


def course_style() -> AbstractContextManager[None]:
    """Return a context in which matplotlib follows `RC`."""
    settings: Any = RC  # matplotlib's stubs want every name as a literal
    return mpl.rc_context(settings)


@dataclass(frozen=True)
class Look:
    """How one series looks: any one of the three would be enough to tell it apart."""

    colour: str
    marker: str
    dash: Any

    def line(self, *, marker: bool = True) -> dict[str, Any]:
        """Return keywords for `axes.plot`."""
        return {
            "color": self.colour,
            "linestyle": self.dash,
            "linewidth": 2.6,
            "markersize": 9,
            "marker": self.marker if marker else "None",
            "markeredgecolor": PAPER,
            "markeredgewidth": 1.0,
        }

    def points(self) -> dict[str, Any]:
        """Return keywords for `axes.plot`, for measured points without a line."""
        return self.line() | {"linestyle": "None"}


LOOKS = tuple(Look(*parts) for parts in zip(COLOURS, _MARKERS, _DASHES, strict=True))


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Give every name its look, in the order of the names.

    From the eighth name on the colours begin again with other markers and dashes; a
    figure with that many lines is better split.
    """
    found: dict[str, Look] = {}
    for name in dict.fromkeys(names):
        lap, place = divmod(len(found), len(LOOKS))
        shifted = LOOKS[(place + 3 * lap) % len(LOOKS)]
        found[name] = Look(COLOURS[place], shifted.marker, shifted.dash)
    return found


class CourseFigure(Figure):
    """A figure that shows itself in a notebook, and can say in words what it shows.

    A plain `Figure` is shown only after pyplot was imported. This one brings its own
    picture, and its text form is its caption: for readers who can't see the picture,
    and for comparisons of outputs, which look at text only.
    """

    caption: str = ""

    def __repr__(self) -> str:
        return self.caption or f"<figure with {len(self.axes)} axes>"

    __str__ = __repr__

    def _repr_png_(self) -> bytes:
        return png(self)


def png(figure: Figure, *, dpi: float | None = None) -> bytes:
    """Return the figure as PNG; equal figures give equal bytes on one machine."""
    buffer = io.BytesIO()
    with course_style():
        figure.savefig(buffer, format="png", dpi=dpi or "figure", metadata={"Software": None})
    return buffer.getvalue()


def new_figure(
    width: float = 10.0,
    height: float = 5.6,
    *,
    rows: int = 1,
    columns: int = 1,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    sharex: bool = False,
    layout: str | None = "constrained",
) -> tuple[CourseFigure, Any]:
    """Make a figure in the course's style.

    Args:
        width: inches; a page's width is 10.
        height: inches.
        rows: how many axes below each other.
        columns: how many beside each other. One in all gives a single `Axes`, more give
            the array of `Figure.subplots`.
        title: above the first axes, at the left.
        xlabel: with the unit in brackets; stands below the last row.
        ylabel: with the unit in brackets; stands beside the first column.
        sharex: whether axes in a column share their x-axis.
        layout: matplotlib's layout engine, or None to place axes by hand.

    Returns:
        The figure and its axes.
    """
    with course_style():
        figure = CourseFigure(figsize=(width, height), layout=layout)  # type: ignore[arg-type]
        FigureCanvasAgg(figure)
        grid = figure.subplots(rows, columns, squeeze=False, sharex=sharex)
        for axes in grid.flat:
            # "$500 became $1,000" is no formula.
            for text in (axes.set_title(""), axes.xaxis.label, axes.yaxis.label):
                text.set_parse_math(False)
        if title is not None:
            grid[0, 0].set_title(title)
        for column in range(columns):
            if xlabel is not None:
                grid[-1, column].set_xlabel(xlabel)
        if ylabel is not None:
            for row in range(rows):
                grid[row, 0].set_ylabel(ylabel)
    return figure, grid[0, 0] if rows == columns == 1 else grid


def percent(axis: Any, digits: int = 0) -> None:
    """Write an axis of fractions (0 to 1) in per cent: `percent(axes.yaxis)`."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.{digits}f} %"))


def intervals(
    axes: Axes, x: Sequence[float], low: Sequence[float], high: Sequence[float], look: Look
) -> None:
    """Draw one vertical interval with caps at each x, in the look of its series.

    Args:
        axes: where.
        x: where, in data units.
        low: lower ends, as many as x.
        high: upper ends, as many as x.
        look: the series the intervals belong to.
    """
    axes.vlines(x, low, high, colors=look.colour, linewidth=2.0)
    for ends in (low, high):
        axes.plot(
            x,
            ends,
            linestyle="None",
            marker="_",
            color=look.colour,
            markersize=9,
            markeredgewidth=2,
        )


def band(
    axes: Axes, x: Sequence[float], low: Sequence[float], high: Sequence[float], look: Look
) -> None:
    """Draw an interval along a dense series as a band, edged so that it survives grey."""
    axes.fill_between(x, low, high, color=look.colour, alpha=0.18, linewidth=0)
    for edge in (low, high):
        axes.plot(x, edge, color=look.colour, linewidth=0.8, marker="None")


def direct_label(
    axes: Axes,
    lines: Sequence[Line2D] | None = None,
    *,
    labels: Sequence[str] | None = None,
    size: float = 14,
) -> list[Annotation]:
    """Write each series' name at the end of its line, instead of a legend.

    Call it last, when data and limits are complete. Labels stand in one column right
    of the axes, in the order of the lines' ends, moved apart until none overlaps and
    joined to their line's end by a thin rule where it helps.

    Args:
        axes: in a figure with constrained layout, which makes room for the labels.
        lines: the series; by default every line of `axes` that has a label.
        labels: what to write; by default each line's own label. May have line breaks.
        size: of the type, in points.

    Returns:
        The labels, from bottom to top.
    """
    if lines is None:
        lines = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    names = [str(line.get_label()) for line in lines] if labels is None else list(labels)
    if len(names) != len(lines):
        raise ValueError(
            f"There are {len(lines)} lines but {len(names)} labels: give one label for each line."
        )
    figure = axes.figure
    with course_style():
        # The axes keep their limits, and have their final height, before ends are measured.
        axes.set_xlim(axes.get_xlim())
        axes.set_ylim(axes.get_ylim())
        figure.draw_without_rendering()  # type: ignore[union-attr]
        frame = axes.get_window_extent()
        to_points = 72.0 / figure.dpi

        ends: list[tuple[float, float, float, int]] = []
        for place, line in enumerate(lines):
            data: Any = line.get_xydata()
            shown = [row for row in data if row[0] == row[0] and row[1] == row[1]]
            if not shown:
                continue
            x, y = shown[-1]
            pixel = axes.transData.transform((x, y))
            level = min(max(float(pixel[1]), frame.y0), frame.y1)
            ends.append((level, float(x), float(y), place))
        ends.sort(key=lambda end: (end[0], end[3]))

        heights = [1.25 * size * (names[end[3]].count("\n") + 1) / to_points for end in ends]
        levels = _spread([end[0] for end in ends], heights, frame.y0, frame.y1)
        made: list[Annotation] = []
        for (_, x, y, place), level in zip(ends, levels, strict=True):
            colour = lines[place].get_color()
            made.append(
                axes.annotate(
                    names[place],
                    xy=(x, y),
                    xytext=(1.03, (level - frame.y0) / frame.height),
                    textcoords="axes fraction",
                    va="center",
                    ha="left",
                    fontsize=size,
                    fontweight="bold",
                    color=_readable(colour),
                    annotation_clip=False,
                    parse_math=False,
                    arrowprops={
                        "arrowstyle": "-",
                        "color": colour,
                        "linewidth": 1.0,
                        "shrinkA": 2,
                        "shrinkB": 6,
                    },
                )
            )
    return made


def _readable(colour: Any) -> str:
    """Darken a light colour, which does for a line but not for letters on white."""
    red, green, blue = mpl.colors.to_rgb(colour)
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    share = min(1.0, 0.42 / light) if light else 1.0
    return mpl.colors.to_hex((red * share, green * share, blue * share))


def _spread(
    wanted: Sequence[float], heights: Sequence[float], low: float, high: float
) -> list[float]:
    """Move ascending centres as little as needed until boxes of these heights are apart.

    Boxes stay within [low, high] where they fit; where they don't, they grow out of it
    on both sides alike.
    """
    blocks: list[list[int]] = []
    centres: list[float] = []
    for place, _ in enumerate(wanted):
        blocks.append([place])
        centres.append(_settle(blocks[-1], wanted, heights, low, high))
        while len(blocks) > 1 and _touch(blocks[-2:], centres[-2:], heights):
            last = blocks.pop()
            centres.pop()
            blocks[-1].extend(last)
            centres[-1] = _settle(blocks[-1], wanted, heights, low, high)
    levels: list[float] = []
    for block, centre in zip(blocks, centres, strict=True):
        edge = centre - sum(heights[place] for place in block) / 2
        for place in block:
            levels.append(edge + heights[place] / 2)
            edge += heights[place]
    return levels


def _settle(
    block: Sequence[int],
    wanted: Sequence[float],
    heights: Sequence[float],
    low: float,
    high: float,
) -> float:
    """Return the centre of a block of touching boxes that is best for all its members."""
    total = sum(heights[place] for place in block)
    edge = 0.0
    offsets = []
    for place in block:
        offsets.append(wanted[place] - (edge + heights[place] / 2))
        edge += heights[place]
    centre = sum(offsets) / len(offsets) + total / 2
    if total >= high - low:
        return (low + high) / 2
    return min(max(centre, low + total / 2), high - total / 2)


def _touch(
    blocks: Sequence[Sequence[int]], centres: Sequence[float], heights: Sequence[float]
) -> bool:
    below, above = (sum(heights[place] for place in block) / 2 for block in blocks)
    return centres[0] + below > centres[1] - above


def caption(figure: CourseFigure, sentence: str, *, draw: bool = True) -> str:
    """Give a figure the sentence that says what to see.

    Build it from the data where it states a number. It becomes the figure's text form;
    with `draw` it is also written below the axes, wrapped to the figure's width.

    Returns:
        The sentence.
    """
    figure.caption = sentence
    if draw:
        with course_style():
            # A number stays with its unit.
            held = re.sub(r"(?<=\d) (?=%|m?s\b|min\b|h\b)", "\u00a0", sentence)
            figure.supxlabel(
                "\n".join(wrap(held, figure.get_figwidth() * 72 * 0.97)),
                x=0.015,
                ha="left",
                fontsize=14.0,
                linespacing=1.35,
                color=INK,
                parse_math=False,
            )
    return sentence
