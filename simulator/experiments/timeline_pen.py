"""The marks of the space-time diagram, each with a shape of its own.

Coordinates are points (1/72 inch); x runs right, y runs down. A mark knows where it is
drawn and nothing of histories: `timeline` decides what stands where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Polygon, Rectangle

from simulator.experiments.style import FAMILY, INK, PAPER, shorten, width_of

__all__ = ["BODY", "CARE", "HARM", "LANE", "LINE", "LOUD", "QUIET", "SMALL", "TRAVEL", "Pen"]

# Inks. Each stands for one thing, and none is needed to tell marks apart.
TRAVEL: Final = "#003F78"  # messages
HARM: Final = "#A32A12"  # lost, dead, paid twice
MONEY: Final = "#00694C"
CARE: Final = "#8A5A00"  # waiting
FLAG: Final = "#FFD66B"  # what we broke on purpose
SPEECH: Final = "#E4F1FA"
LANE: Final = "#9A9A9A"
QUIET: Final = "#4A4A4A"

# Type, in points.
BODY: Final = 14.0
SMALL: Final = 12.0
LOUD: Final = 18.0
LINE: Final = 18.0  # from one line of BODY to the next

_ANSWER: Final = (0, (5, 2.5))
_INJECTED: Final = (0, (4, 2))


class Pen:
    """Draws marks on axes whose unit is the point.

    Attributes:
        left: no mark with words begins left of it.
        right: none ends right of it.
    """

    def __init__(self, axes: Axes, left: float, right: float) -> None:
        self.axes = axes
        self.left = left
        self.right = right

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = BODY,
        bold: bool = False,
        ha: str = "left",
        color: str = INK,
        ground: bool = False,
        z: float = 6.0,
    ) -> None:
        """Write one line, its middle at y; `ground` hides the lines below it."""
        self.axes.text(
            x,
            y,
            text,
            fontsize=size,
            fontfamily=FAMILY,
            ha=ha,
            va="center_baseline",
            color=color,
            fontweight="bold" if bold else "normal",
            parse_math=False,
            zorder=z,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.0} if ground else None,
        )

    def line(self, x: Sequence[float], y: Sequence[float], **given: Any) -> None:
        """Draw a line through points."""
        look: dict[str, Any] = {"color": INK, "linewidth": 2.0, "zorder": 3.0} | given
        self.axes.plot(x, y, **look)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        face: str,
        edge: str = INK,
        line: float = 1.6,
        dash: Any = "-",
        corner: float = 5.0,
    ) -> None:
        """Draw a box with round corners, its upper left at (x, y)."""
        self.axes.add_artist(
            FancyBboxPatch(
                (x, y),
                width,
                height,
                boxstyle=f"round,pad=0,rounding_size={corner}",
                facecolor=face,
                edgecolor=edge,
                linewidth=line,
                linestyle=dash,
                zorder=5,
            )
        )

    def shape(self, points: Sequence[tuple[float, float]], *, face: str = INK, **look: Any) -> None:
        """Fill a polygon."""
        self.axes.add_artist(
            Polygon(
                points, closed=True, **({"facecolor": face, "edgecolor": face, "zorder": 6} | look)
            )
        )

    def circle(self, x: float, y: float, radius: float, edge: str, line: float = 2.2) -> None:
        """Draw a white disc with an edge."""
        self.axes.add_artist(
            Circle((x, y), radius, facecolor=PAPER, edgecolor=edge, linewidth=line, zorder=6)
        )

    def within(self, left: float, width: float) -> float:
        """Move a left edge as little as needed to keep the width on the sheet."""
        return max(min(left, self.right - width), self.left)

    # Marks on one lane ---------------------------------------------------------------

    def name(self, x: float, y: float, width: float, name: str) -> None:
        """Draw the name of a lane, centred at (x, y)."""
        self.box(x - width / 2, y - 14, width, 28, face="#2B2B2B", edge="#2B2B2B", corner=4)
        words = shorten(name, width - 8, BODY, True)
        self.text(x, y, words, bold=True, ha="center", color=PAPER)

    def cross(self, x: float, y: float, half: float, line: float) -> None:
        """Draw the cross of what is lost or dead."""
        for way in (1, -1):
            self.line(
                [x - half, x + half],
                [y - way * half, y + way * half],
                color=HARM,
                linewidth=line,
                zorder=7,
                solid_capstyle="round",
            )

    def clock(self, x: float, y: float, radius: float) -> None:
        """Draw the clock of somebody who stops waiting."""
        self.circle(x, y, radius, CARE, 2.4)
        self.line(
            [x, x, x + 0.5 * radius], [y - 0.65 * radius, y, y], color=CARE, linewidth=2.0, zorder=7
        )

    def halt(self, x: float, y: float) -> None:
        """Draw the two bars of a process that stops."""
        for shift in (-3.5, 3.5):
            self.line([x + shift] * 2, [y - 7, y + 7], linewidth=3.6, zorder=6)

    def start(self, x: float, y: float) -> None:
        """Draw the ring of a process that goes on."""
        self.circle(x, y, 5.0, INK)

    def dot(self, x: float, y: float) -> None:
        """Draw a mark without a meaning of its own."""
        self.line([x], [y], marker="D", markersize=6, color="#6A6A6A", zorder=5)

    def ellipsis(self, x: float, y: float) -> None:
        """Draw the three dots of what is left out."""
        self.axes.add_artist(
            Rectangle((x - 5, y - 9), 10, 18, facecolor=PAPER, edgecolor="none", zorder=2)
        )
        self.line([x] * 3, [y - 6, y, y + 6], linestyle="None", marker="o", markersize=4, zorder=5)

    def drop(self, x: float, y: float) -> None:
        """Draw the mark of a message that arrives late, or once more."""
        self.shape([(x - 6, y - 5), (x + 6, y - 5), (x, y + 6)], face=TRAVEL)

    def dead(self, x: float, begin: float, end: float) -> None:
        """Draw a lane on which nobody lives."""
        self.line([x, x], [begin, end], color=LANE, linestyle=(0, (1, 4)), zorder=1)

    def hatched(self, x: float, begin: float, end: float, hatch: str) -> None:
        """Draw a lane that stands still ("////") or is down ("xxxx")."""
        self.axes.add_artist(
            Rectangle(
                (x - 7, begin),
                14,
                max(end - begin, 1.0),
                facecolor="#EFEFEF",
                edgecolor="#6A6A6A",
                hatch=hatch,
                linewidth=1.0,
                zorder=1.5,
            )
        )

    def gap(self, x: float, y: float) -> None:
        """Break a lane: time passes here with nothing to see."""
        self.axes.add_artist(
            Rectangle((x - 8, y - 4), 16, 8, facecolor=PAPER, edgecolor="none", zorder=2)
        )
        for shift in (-4.0, 4.0):
            self.line(
                [x - 7, x - 2.5, x + 2.5, x + 7],
                [y + shift + wave for wave in (1.5, -2.5, 2.5, -1.5)],
                color="#6A6A6A",
                linewidth=1.4,
                zorder=2.5,
            )

    # Marks between lanes -------------------------------------------------------------

    def arrow(self, start: tuple[float, float], end: tuple[float, float], answer: bool) -> None:
        """Draw a message: a solid arrow asks, a dashed one answers."""
        self.axes.add_artist(
            FancyArrowPatch(
                start,
                end,
                arrowstyle="-|>,head_length=9,head_width=4.5",
                mutation_scale=1.0,
                shrinkA=0,
                shrinkB=0,
                color=TRAVEL,
                linewidth=2.0,
                linestyle=_ANSWER if answer else "-",
                zorder=3,
            )
        )

    def cut(self, start: tuple[float, float], end: tuple[float, float], answer: bool) -> None:
        """Draw a message that is lost on its way."""
        self.line(
            [start[0], end[0]],
            [start[1], end[1]],
            color=TRAVEL,
            linestyle=_ANSWER if answer else "-",
        )
        self.cross(*end, 7.0, 4.0)

    def transaction(self, here: float, there: float, y: float, outcome: str) -> None:
        """Join a process with the database: outcome commit, rollback or ack_lost."""
        self.line([here, there], [y, y], linewidth=1.5, linestyle=(0, (1, 1.5)))
        self.line([here], [y], marker="o", markersize=6, zorder=4)
        if outcome == "commit":
            self.tick(there, y)
            return
        self.axes.add_artist(
            Rectangle(
                (there - 7, y - 7), 14, 14, facecolor=PAPER, edgecolor=INK, linewidth=1.8, zorder=5
            )
        )
        if outcome == "rollback":
            self.cross(there, y, 4.0, 2.4)
        else:
            self.text(there, y, "?", bold=True, ha="center", z=7)

    def tick(self, x: float, y: float) -> None:
        """Draw the box of a transaction that was committed."""
        self.axes.add_artist(Rectangle((x - 7, y - 7), 14, 14, facecolor=INK, zorder=5))
        self.line(
            [x - 4, x - 1, x + 4.5], [y, y + 3.5, y - 4], color=PAPER, linewidth=2.2, zorder=6
        )

    # Marks with words in them --------------------------------------------------------

    def bolt(self, x: float, y: float) -> None:
        """Draw the bolt of what was injected."""
        outline = ((2, -8), (-5, 1), (-1, 1), (-3, 8), (5, -2), (1, -2))
        self.shape([(x + dx, y + dy) for dx, dy in outline], linewidth=0, zorder=7)

    def flag(self, x: float, top: float, text: str, stem: float = 8.0) -> None:
        """Draw what was injected, 22 points high, with a stem to what it struck."""
        text = shorten(text, self.right - self.left - 31, BODY, True)
        width = width_of(text, BODY, True) + 31
        left = self.within(x - width / 2, width)
        if stem:
            self.line([x, x], [top + 20, top + 22 + stem], linewidth=1.8, zorder=4.5)
        self.box(left, top, width, 22, face=FLAG, line=1.8, dash=_INJECTED)
        self.bolt(left + 13, top + 11)
        self.text(left + 23, top + 11, text, bold=True)

    def small_flag(self, x: float, y: float) -> None:
        """Draw a flag without words."""
        self.box(x - 10, y - 10, 20, 20, face=FLAG, dash=_INJECTED)
        self.bolt(x, y)

    def bubble(self, x: float, top: float, lines: Sequence[str], *, heard: bool) -> None:
        """Draw what somebody at x says (white) or hears; 19 points higher than its lines."""
        face = SPEECH if heard else PAPER
        width = max(width_of(line) for line in lines) + 20
        left = self.within(x - 30, width)
        low = top + len(lines) * LINE + 8
        self.box(left, top, width, low - top, face=face, line=1.8, corner=8)
        self.shape(
            [(x - 6, low - 1), (x, low + 10), (x + 8, low - 1)],
            face=face,
            edgecolor=INK,
            linewidth=1.8,
            zorder=4.9,
        )
        self.axes.add_artist(
            Rectangle((x - 6, low - 3), 14, 3, facecolor=face, edgecolor="none", zorder=5.1)
        )
        for place, line in enumerate(lines):
            self.text(left + 10, top + 4 + LINE * (place + 0.5), line)

    def paid(self, x: float, top: float, text: str, whose: str) -> float:
        """Draw money that moves for the first time; returns the height."""
        whose = shorten(whose, 2 * width_of(text, LOUD, True), SMALL)
        width = 48 + max(width_of(text, LOUD, True), width_of(whose, SMALL))
        high = 46.0 if whose else 32.0
        left = self.within(x - width / 2, width)
        middle = top + high / 2
        self.box(left, top, width, high, face="#DDF3EA", edge=MONEY, line=3.0, corner=7)
        self.coin(left + 22, middle, MONEY)
        self.text(left + 39, middle - (8 if whose else 0), text, size=LOUD, bold=True, color=MONEY)
        if whose:
            self.text(left + 39, middle + 12, whose, size=SMALL, color=INK)
        return high

    def paid_again(self, x: float, top: float, text: str, total: str) -> float:
        """Draw money that moves though it had moved before; returns the height."""
        width = 58 + max(width_of(text, LOUD, True), width_of(total, LOUD, True))
        left = self.within(x - width / 2, width)
        self.box(left, top, width, 58, face=HARM, line=3.2, corner=7)
        self.coin(left + 21, top + 23, INK)
        self.coin(left + 31, top + 35, INK)
        self.text(left + 49, top + 18, text, size=LOUD, bold=True, color=PAPER)
        self.text(left + 49, top + 41, total, size=LOUD, bold=True, color=PAPER)
        return 58.0

    def coin(self, x: float, y: float, ink: str) -> None:
        """Draw a coin."""
        self.circle(x, y, 11.0, ink, 2.0)
        self.text(x, y, "$", bold=True, ha="center", color=ink)

    def card(self, x: float, top: float, lines: Sequence[str], icon: str) -> None:
        """Draw a card of 8 points more than its lines: icon task, replayed or refused."""
        width = max(width_of(line) for line in lines) + 38
        high = len(lines) * LINE + 8
        left = self.within(x - width / 2, width)
        human = icon == "task"
        self.box(
            left,
            top,
            width,
            high,
            face="#FFF6E0" if human else PAPER,
            line=2.8 if human else 1.8,
            dash="-" if human else (0, (3, 1.5)),
        )
        at, middle = left + 16, top + high / 2
        if human:
            self.person(at, middle)
        elif icon == "replayed":
            self.circle(at, middle, 8.0, MONEY)
            for shift in (-2.2, 2.2):
                self.line([at - 4, at + 4], [middle + shift] * 2, color=MONEY, zorder=7)
        else:
            self.circle(at, middle, 8.0, HARM, 2.6)
            self.line([at - 4.5, at + 4.5], [middle] * 2, color=HARM, linewidth=2.8, zorder=7)
        for place, line in enumerate(lines):
            self.text(left + 30, top + 4 + LINE * (place + 0.5), line)

    def person(self, x: float, y: float) -> None:
        """Draw a human, who is asked."""
        self.axes.add_artist(Circle((x, y - 5), 4.2, color=INK, zorder=6))
        self.shape([(x - 7.5, y + 8), (x - 4, y + 0.5), (x + 4, y + 0.5), (x + 7.5, y + 8)])
