"""The space-time diagram of a history: who did what, when, and what it cost.

Every process has a lane, time runs down the page. Downwards, because a lane then has
room for words beside every mark, and because a long history scrolls in a notebook as
text does. Rows are spaced evenly, with the true times at the left: between two of them
may lie a millisecond or an hour. Where a second or more passes with nothing to see, the
lanes are broken and the time that passes is written.

Every row has a band of its own, so that no label can meet another; only arrows cross
bands, and they run below the labels.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from matplotlib.collections import LineCollection

from simulator.experiments.description import describe
from simulator.experiments.style import (
    CourseFigure,
    course_style,
    new_figure,
    printable,
    shorten,
    width_of,
    wrap,
)
from simulator.experiments.timeline_pen import (
    BODY,
    CARE,
    HARM,
    LANE,
    LINE,
    LOUD,
    QUIET,
    SMALL,
    TRAVEL,
    Pen,
)
from simulator.experiments.timeline_rows import Picture, Row, arrange
from simulator.experiments.words import clock, rough
from simulator.world.trace import Event

__all__ = ["describe", "draw"]

# Distances, in points.
GUTTER: Final = 92.0  # for the times
PITCH: Final = 134.0  # from lane to lane
EDGE: Final = 8.0  # kept free along the canvas
TOP: Final = 34.0  # from the lanes' names to the first row
FLAGGED: Final = 27.0  # what a flag adds to its row
BREAK: Final = 26.0
TALL: Final = 620.0  # from here on the names stand below the lanes too

PAUSE: Final = 1_000_000
"""Microseconds without an event from which on the lanes are broken."""

_TRANSACTIONS: Final = frozenset({"commit", "rollback", "ack_lost"})
_ARROWS: Final = _TRANSACTIONS | {"request", "response", "cut"}
_CARDS: Final = {
    "task": "task",
    "replayed": "replayed",
    "declined": "refused",
    "limited": "refused",
    "error": "refused",
}
_MEANINGS: Final = {
    "fault": "what we broke",
    "cut": "lost on the way",
    "timeout": "stopped waiting",
    "crash": "process dies",
    "pause": "process stands still",
    "commit": "transaction committed",
    "break": "time passes",
}


def draw(
    trace: Sequence[Event],
    *,
    title: str | None = None,
    note: str = "",
    intents: Mapping[str, str] | None = None,
    detail: str = "story",
) -> CourseFigure:
    """Draw a history as a space-time diagram.

    Args:
        trace: the history, in the order of its events.
        title: above the picture.
        note: a sentence below the title, and at the end of the caption: what went wrong.
        intents: a short name for every intent's id, written at its payments. By default,
            and only if there are several, the id if it is short, else "refund 1" and so on.
        detail: "story" leaves out what other rows imply; "all" gives every event a row.

    Returns:
        A figure that pyplot knows nothing of; its `caption` is `describe(trace)`, and the note.

    Raises:
        ValueError: `detail` is neither "story" nor "all".
    """
    picture = arrange(trace, intents=intents, detail=detail)
    rows = tuple(
        replace(row, text=printable(row.text), small=printable(row.small)) for row in picture.rows
    )
    with course_style():
        sheet = _Sheet(replace(picture, rows=rows), printable(title or ""), printable(note))
        figure = sheet.paint()
    figure.caption = f"{describe(trace)} {note}".strip()
    return figure


class _Sheet:
    """One picture in the making. Coordinates are points; x runs right, y runs down."""

    def __init__(self, picture: Picture, title: str, note: str) -> None:
        self.picture = picture
        self.x = {name: GUTTER + (n + 0.5) * PITCH for n, name in enumerate(picture.lanes)}
        self.width = GUTTER + max(len(self.x), 3) * PITCH + EDGE
        self.title = wrap(title, self.width - 2 * EDGE, LOUD, True) if title else []
        self.note = wrap(note, self.width - 2 * EDGE, BODY, True) if note else []
        self.head = EDGE + len(self.title) * 26 + len(self.note) * LINE + (22 if note else 18)
        self.words = [self._words(row) for row in picture.rows]
        self.tops: list[float] = []
        self.breaks: list[tuple[float, int]] = []
        self.bottom = self._stack()
        self.tall = self.bottom - self.head > TALL
        self.foot = self.bottom + (34.0 if self.tall else 6.0)
        self.legend = self._legend()
        self.height = self.foot + len(self.legend) * 26 + (10 if self.legend else 0)

    # Layout -------------------------------------------------------------------------

    def _words(self, row: Row) -> list[str]:
        """Break a row's text into lines that fit where they will stand."""
        if row.mark in ("submit", "told"):
            return wrap(row.text, min(330.0, self.width - GUTTER - EDGE - 20))
        if row.mark in _CARDS:
            return wrap(row.text, 200.0)
        if row.mark in ("effect", "again", "fault"):
            return [row.text]
        if row.mark in _ARROWS:
            reach = abs(self.x[row.process] - self.x.get(row.peer, self.x[row.process]))
            return wrap(row.text, max(reach - 16, 2.2 * PITCH))
        return wrap(row.text, self._beside(row)[0], BODY, row.mark in ("crash", "pause", "down"))

    def _beside(self, row: Row) -> tuple[float, str, float]:
        """Return the room beside a mark on a lane, the alignment, and where text begins."""
        x = self.x[row.process]
        right, left = self.width - EDGE - x - 16, x - GUTTER - 16
        needed = width_of(row.text, BODY, True)
        if right >= min(needed, left):
            return right, "left", x + 16
        return left, "right", x - 16

    def _height(self, index: int) -> float:
        row = self.picture.rows[index]
        text = LINE * len(self.words[index])
        if row.mark == "again":
            high = 66.0
        elif row.mark == "effect":
            high = 54.0 if row.small else 40.0
        elif row.mark in ("submit", "told"):
            high = text + 21
        elif row.mark in _CARDS:
            high = text + 16
        elif row.mark in _ARROWS:
            high = text + (17 if row.mark in _TRANSACTIONS else 15)
        else:
            high = text + 9
        return high + (FLAGGED if row.fault else 0.0)

    def _stack(self) -> float:
        """Place the rows below each other, with breaks between them; return the lowest y."""
        y, before = self.head + TOP, 0
        for index, row in enumerate(self.picture.rows):
            if row.time - before >= PAUSE:
                self.breaks.append((y + BREAK / 2, row.time - before))
                y += BREAK
            before = row.time
            self.tops.append(y)
            y += self._height(index)
        return y + 6

    def _middle(self, index: int) -> float:
        """Return the y of the mark of a row."""
        return self.tops[index] + (FLAGGED if self.picture.rows[index].fault else 0.0) + LINE / 2

    def _y(self, place: int) -> float:
        """Return the y at which this index of the trace is shown, or would be."""
        places = [row.place for row in self.picture.rows]
        index = bisect_left(places, place)
        if index < len(places) and places[index] == place:
            return self._middle(index)
        if index == 0:
            return self.head + TOP
        return self.tops[index - 1] + self._height(index - 1) - 2

    # Painting -----------------------------------------------------------------------

    def paint(self) -> CourseFigure:
        figure, axes = new_figure(self.width / 72, self.height / 72, layout=None)
        axes.set_position((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, self.width)
        axes.set_ylim(self.height, 0)
        self.pen = Pen(axes, GUTTER - 4, self.width - EDGE)
        for n, line in enumerate(self.title):
            self.pen.text(EDGE, EDGE + 12 + 26 * n, line, size=LOUD, bold=True)
        for n, line in enumerate(self.note):
            y = EDGE + 26 * len(self.title) + LINE * (n + 0.5)
            self.pen.text(EDGE, y, line, bold=True)
        self._lanes()
        for y, gap in self.breaks:
            self._time(y, f"+ {rough(gap)}", color=CARE, bold=True)
            for x in self.x.values():
                self.pen.gap(x, y)
        said = ""
        for index, row in enumerate(self.picture.rows):
            if clock(row.time) != said:
                said = clock(row.time)
                self._time(self._middle(index), said)
            self._row(index, row)
        self._paint_legend()
        return figure

    def _time(self, y: float, text: str, color: str = QUIET, bold: bool = False) -> None:
        self.pen.text(GUTTER - 14, y, text, size=SMALL, ha="right", color=color, bold=bold)

    def _lanes(self) -> None:
        self._time(self.head, "time")
        segments: list[Any] = []
        for name, x in self.x.items():
            y = self.head + 14
            for span in self.picture.spans:
                if span.process != name:
                    continue
                begin = self._y(span.begin)
                end = self.bottom if span.end < 0 else self._y(span.end)
                segments.append([(x, y), (x, begin)])
                if span.mark == "crash":
                    self.pen.dead(x, begin, end)
                else:
                    self.pen.hatched(x, begin, end, "////" if span.mark == "pause" else "xxxx")
                y = end
            segments.append([(x, y), (x, self.bottom)])
            self.pen.name(x, self.head, PITCH - 14, name)
            if self.tall:
                self.pen.name(x, self.bottom + 14, PITCH - 14, name)
        self.pen.axes.add_collection(
            LineCollection(segments, colors=LANE, linewidths=2.0, zorder=1), autolim=False
        )

    def _row(self, index: int, row: Row) -> None:
        top = self.tops[index]
        if row.fault:
            self.pen.flag(self._struck(row), top + 1, row.fault)
            top += FLAGGED
        lines = self.words[index]
        x = self.x[row.process]
        if row.mark in ("request", "response", "cut"):
            self._message(row, top, lines)
        elif row.mark in _TRANSACTIONS:
            there = self.x.get(row.peer or "database", x)
            self.pen.transaction(x, there, top + LINE * len(lines) + 8, row.mark)
            self._centred((x + there) / 2, top, lines, self._clear(row, there))
        elif row.mark == "effect":
            self.pen.paid(x, top + 4, row.text, row.small)
        elif row.mark == "again":
            self.pen.paid_again(x, top + 4, row.text, row.small)
        elif row.mark in ("submit", "told"):
            self.pen.bubble(x, top + 2, lines, heard=row.mark == "told")
        elif row.mark in _CARDS:
            self.pen.card(x, top + 4, lines, _CARDS[row.mark])
        elif row.mark == "fault":
            self.pen.flag(x, top + 1, row.text, stem=0)
        else:
            self._lone(row, x, top + LINE / 2, lines)

    def _struck(self, row: Row) -> float:
        """Return the x of what a fault struck."""
        return self._cut_at(row) if row.mark == "cut" else self.x[row.process]

    def _cut_at(self, row: Row) -> float:
        here = self.x[row.process]
        return here + 0.62 * (self.x.get(row.peer, here + PITCH) - here)

    def _message(self, row: Row, top: float, lines: Sequence[str]) -> None:
        here = self.x[row.process]
        there = self.x.get(row.peer, here + PITCH / 2)
        start = top + LINE * len(lines) + 2
        if row.mark == "cut":
            end = self._cut_at(row)
            self.pen.cut((here, start), (end, start + 7), row.answer)
            self._centred((here + end) / 2, top, lines, None)
            if not row.fault:
                side = 1 if there > here else -1
                room = self.pen.right - end if side > 0 else end - self.pen.left
                self.pen.text(
                    end + side * 13,
                    start + 6,
                    shorten(row.small, room - 13, SMALL),
                    size=SMALL,
                    ha="left" if side > 0 else "right",
                    color=HARM,
                    ground=True,
                )
            return
        end_y = max(self._y(row.until), start + 10) if row.until >= 0 else start + 10
        self.pen.arrow((here, start), (there, end_y), row.answer)
        # A steep arrow leaves its middle far below: its words stay near its beginning.
        steep = end_y - start > 60
        reach = min(abs(there - here), PITCH) if steep else abs(there - here)
        middle = here + (reach if there > here else -reach) / 2
        self._centred(middle, top, lines, self._clear(row, there))

    def _clear(self, row: Row, there: float) -> tuple[float, int] | None:
        """Return the x that words must leave free for a flag's stem, and the side they are on."""
        x = self.x[row.process]
        return (x, 1 if there > x else -1) if row.fault else None

    def _centred(
        self, middle: float, top: float, lines: Sequence[str], clear: tuple[float, int] | None
    ) -> None:
        """Write lines around a middle, moved as far as the canvas and a stem demand."""
        width = max(width_of(line) for line in lines)
        left = middle - width / 2
        if clear is not None:
            x, side = clear
            left = max(left, x + 8) if side > 0 else min(left, x - 8 - width)
        left = self.pen.within(left, width)
        for n, line in enumerate(lines):
            self.pen.text(left + width / 2, top + LINE * (n + 0.5), line, ha="center", ground=True)

    def _lone(self, row: Row, x: float, y: float, lines: Sequence[str]) -> None:
        """Draw what concerns one lane only: a mark on it, and words beside it."""
        pen = self.pen
        marks: dict[str, tuple[Callable[..., None], tuple[float, ...], str]] = {
            "timeout": (pen.clock, (9.0,), CARE),
            "reset": (pen.cross, (5.0, 3.0), HARM),
            "crash": (pen.cross, (9.0, 5.5), HARM),
            "pause": (pen.halt, (), "#1A1A1A"),
            "down": (pen.halt, (), "#1A1A1A"),
            "restart": (pen.start, (), QUIET),
            "resume": (pen.start, (), QUIET),
            "up": (pen.start, (), QUIET),
            "late": (pen.drop, (), TRAVEL),
            "rounds": (pen.ellipsis, (), QUIET),
        }
        mark, sizes, color = marks.get(row.mark, (pen.dot, (), QUIET))
        mark(x, y, *sizes)
        _, ha, at = self._beside(row)
        bold = row.mark in ("crash", "pause", "down")
        for n, line in enumerate(lines):
            pen.text(at, y + LINE * n, line, ha=ha, color=color, bold=bold, ground=True)

    # Legend -------------------------------------------------------------------------

    def _legend(self) -> list[list[tuple[str, str]]]:
        """Return lines of (mark, words) for the marks that occur."""
        occurring = {row.mark for row in self.picture.rows}
        occurring |= {"fault"} if any(row.fault for row in self.picture.rows) else set()
        occurring |= {"break"} if self.breaks else set()
        lines: list[list[tuple[str, str]]] = []
        room = 0.0
        for mark, words in _MEANINGS.items():
            if mark not in occurring:
                continue
            width = width_of(words, SMALL) + 52
            if width > room:
                lines.append([])
                room = self.width - GUTTER - EDGE
            lines[-1].append((mark, words))
            room -= width
        return lines

    def _paint_legend(self) -> None:
        for n, line in enumerate(self.legend):
            x, y = GUTTER + 10, self.foot + 16 + 26 * n
            for mark, words in line:
                self._sample(mark, x, y)
                self.pen.text(x + 18, y, words, size=SMALL, color=QUIET)
                x += width_of(words, SMALL) + 52

    def _sample(self, mark: str, x: float, y: float) -> None:
        pen = self.pen
        if mark == "fault":
            pen.small_flag(x, y)
        elif mark == "cut":
            pen.cut((x - 14, y), (x + 4, y), answer=False)
        elif mark == "timeout":
            pen.clock(x, y, 8.0)
        elif mark == "crash":
            pen.cross(x, y, 7.0, 4.5)
        elif mark == "pause":
            pen.hatched(x, y - 9, y + 9, "////")
        elif mark == "commit":
            pen.tick(x, y)
        else:
            pen.gap(x, y)
