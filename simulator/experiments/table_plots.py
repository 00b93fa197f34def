"""Pictures of the crash table and of the ablation table.

Made to be read from the last row, and without colour: every cell says its word, and the graver
the word, the darker the cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib.patches import FancyBboxPatch, Rectangle

from simulator.experiments.crashes import (
    FAULTS,
    NOT_TAKEN,
    OUTCOMES,
    Places,
    alike,
    crash_grid,
    outcome_of,
)
from simulator.experiments.style import (
    FAINT,
    INK,
    PAPER,
    CourseFigure,
    course_style,
    new_figure,
    shorten,
    width_of,
    wrap,
)
from simulator.experiments.words import fault_words, listing, sentence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

__all__ = ["ablation_pictures", "crash_picture"]

MARGIN = 24.0  # points, like all lengths here
EDGE = 3.0
BODY, SMALL, TITLE = 19.0, 16.0, 26.0

HATCH = "#D2D2D2"

MEANINGS = {
    "doubled": "paid more than once",
    "overpaid": "more than was captured",
    "not allowed": "paid without the right or the consent",
    "lost": "owed and never paid",
    "stuck": "never final, and nobody asked",
    "falsely told": "told what is not true",
    "untold": "not told how it ended",
    "books differ": "our books are not the provider's",
    "other": "another invariant was broken",
}
PLACES = {
    "before": "before commit",
    "after": "after commit",
    "before_send": "before sending",
    "after_send": "after sending",
    "after_answer": "after the answer",
}
TITLES = {
    "crash": "One process is killed, at every point of the way",
    "pause": "One process stops past its lease, at every point of the way",
}


class Shade(NamedTuple):
    """How a cell looks."""

    face: str
    ink: str
    weight: str = "bold"
    hatch: str = ""


_MONEY = Shade("#9C2A12", PAPER)
_WAITING = Shade("#E39B00", INK)
_WORDS = Shade("#A9DCF8", INK)
_BOOKS = Shade("#ECECEC", INK, hatch="//")
SHADES = {
    "doubled": _MONEY,
    "overpaid": _MONEY,
    "not allowed": _MONEY,
    "lost": _WAITING,
    "stuck": _WAITING,
    "falsely told": _WORDS,
    "untold": _WORDS,
    "books differ": _BOOKS,
    "other": _BOOKS,
    "right": Shade(PAPER, INK, "normal"),
    NOT_TAKEN: Shade(PAPER, FAINT, "normal"),
}


class Sheet:
    """A page that is written on from the top, in points."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.figure, axes = new_figure(width / 72, height / 72, layout=None)
        self.axes: Axes = axes
        axes.set_position((0, 0, 1, 1))
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        axes.set_axis_off()

    def text(self, x: float, y: float, text: str, size: float = BODY, **options: Any) -> None:
        """One line of text; `y` is its middle."""
        given: dict[str, Any] = {"color": INK, "va": "center", "parse_math": False} | options
        self.axes.text(x, y, text, fontsize=size, **given)

    def lines(self, x: float, y: float, lines: Sequence[str], size: float, **options: Any) -> None:
        """Several lines of text; `y` is the middle of them all."""
        for place, line in enumerate(lines):
            self.text(x, y + (place - (len(lines) - 1) / 2) * 1.2 * size, line, size, **options)

    def rule(self, y: float, colour: str = INK, width: float = 1.2) -> None:
        """A line across the page."""
        self.axes.plot((MARGIN, self.width - MARGIN), (y, y), color=colour, linewidth=width)


def crash_picture(
    table: DataFrame, fault: str = "crash", scenario: str | None = None
) -> CourseFigure:
    """The crash table of one scenario as a grid: a row per point of the way, a column per design.

    The first row is the history without the crash. Neighbouring points of one step at which all
    designs fare alike share a row; steps that none of the designs takes are left out, and designs
    that take none.

    Args:
        table: what `crash_table` gave.
        fault: "crash" or "pause".
        scenario: as in the column `scenario` of the table; by default the first.

    Returns:
        The figure. Its caption says which designs are right everywhere, and what the words mean.

    Raises:
        ValueError: there is no such fault, or no such scenario, in the table.
    """
    if fault not in set(table["fault"]):
        raise ValueError(f"The table has no fault {fault!r}; there are {' and '.join(FAULTS)}.")
    scenarios = list(dict.fromkeys(table["scenario"]))
    setting = scenarios[0] if scenario is None else scenario
    if setting not in scenarios:
        raise ValueError(f"The table has no scenario {setting!r}; there are {listing(scenarios)}.")
    chosen = table[(table["fault"] == fault) & (table["scenario"] == setting)]
    grid = crash_grid(chosen)
    taken = grid != NOT_TAKEN
    grid = grid.loc[taken.any(axis=1), taken.any(axis=0)]
    first = dict(zip(chosen["design"], chosen["without"], strict=True))
    without = {name: first[name] for name in grid.columns}
    rows = [Places(f"no {fault}", fault, (), False, tuple(without.values())), *alike(grid)]
    step_room, place_room, column, high = 206.0, 200.0, 118.0, 38.0
    left = MARGIN + step_room + place_room
    heads = [_broken(name, column - 6) for name in grid.columns]
    head = 1.2 * SMALL * max(map(len, heads)) + 16
    width = max(left + column * len(heads) + MARGIN, 11 * 72.0)
    said = _said(grid, without, fault)
    below = wrap(said, width - 2 * MARGIN, SMALL)
    under = wrap(_setting(setting), width - 2 * MARGIN, BODY)
    top = MARGIN + 34 + 1.2 * BODY * len(under)
    height = top + head + high * len(rows) + 1.35 * SMALL * len(below) + 16 + MARGIN
    sheet = Sheet(width, height)
    with course_style():
        sheet.lines(MARGIN, MARGIN + 12, [TITLES[fault]], TITLE, fontweight="bold")
        sheet.lines(MARGIN, MARGIN + 34 + 0.6 * BODY * len(under), under, BODY)
        for place, name in enumerate(heads):
            middle = left + column * (place + 0.5)
            sheet.lines(middle, top + head / 2, name, SMALL, ha="center", fontweight="bold")
        y = top + head
        for step, same in groupby(rows, key=lambda row: row.step):
            sheet.rule(y)
            for number, row in enumerate(same):
                middle = y + high / 2
                if number == 0:
                    sheet.text(MARGIN, middle, step, BODY, fontweight="bold")
                lines = wrap(_where(row), place_room - 8, SMALL) if row.when else []
                sheet.lines(MARGIN + step_room, middle, lines, SMALL)
                for place, word in enumerate(row.words):
                    _cell(sheet, left + column * place, y, column, high, word)
                y += high
        sheet.rule(y)
        sheet.lines(MARGIN, y + 12 + 0.6 * SMALL * len(below), below, SMALL)
    sheet.figure.caption = said
    return sheet.figure


def _setting(scenario: str) -> str:
    """A scenario of the table, with what went wrong before in words."""
    name, _, before = scenario.partition(" after ")
    return f"{name}, after {_happened(before)}" if before else name


def _where(row: Places) -> str:
    """The places of a row, in words."""
    if row.everywhere:
        return "at any point"
    said = listing([PLACES[place] for place in row.when], "or")
    return said.replace("after sending or after the", "after sending or")


def _cell(sheet: Sheet, x: float, y: float, width: float, height: float, word: str) -> None:
    shade = SHADES[word]
    sheet.axes.add_patch(
        Rectangle(
            (x + EDGE / 2, y + EDGE / 2),
            width - EDGE,
            height - EDGE,
            facecolor=shade.face,
            edgecolor=HATCH if shade.hatch else shade.face,
            hatch=shade.hatch,
            linewidth=0,
        )
    )
    room = width - 8
    size = BODY if width_of(word, BODY, bold=True) < room else SMALL
    lines = _broken(word, room, size)
    options = {"color": shade.ink, "fontweight": shade.weight, "ha": "center"}
    sheet.lines(x + width / 2, y + height / 2, lines, size, **options)


def _broken(name: str, room: float, size: float = SMALL) -> list[str]:
    """A name in as few lines as fit, broken behind underscores or at spaces."""
    spaced = wrap(name.replace("_", "_ "), room, size, bold=True)
    return [re.sub("_ ", "_", line) for line in spaced]


def _said(grid: DataFrame, without: Mapping[str, str], fault: str) -> str:
    """What to see, and what the words in the cells mean."""
    happened = "one crash" if fault == "crash" else "one long pause"
    anyway = [name for name in grid.columns if without[name] != "right"]
    wrong = {
        name: int((~grid[name].isin(["right", NOT_TAKEN])).sum())
        for name in grid.columns
        if name not in anyway
    }
    right = [name for name in wrong if not wrong[name]]
    parts = []
    if right:
        be = "is" if len(right) == 1 else "are"
        parts.append(f"{listing(right)} {be} right wherever it strikes.")
    if any(wrong.values()):
        points = {name: int((grid[name] != NOT_TAKEN).sum()) for name in wrong}
        worst = max(wrong, key=lambda name: wrong[name] / points[name])
        parts.append(
            f"Most often wrong is {worst}: at {wrong[worst]} of its {points[worst]} points "
            f"{happened} is enough."
        )
    if anyway:
        all_others = len(anyway) > 1 and len(right + anyway) == len(grid.columns) > len(anyway)
        who = "All others" if all_others else listing(anyway)
        parts.append(f"{who} {'goes' if len(anyway) == 1 else 'go'} wrong without it, too.")
    found = {word for name in grid.columns for word in (*grid[name], without[name])}
    meanings = [f"{word}: {MEANINGS[word]}" for word in OUTCOMES if word in found & set(MEANINGS)]
    if NOT_TAKEN in found:
        meanings.append(f"{NOT_TAKEN}: not a step of this design")
    if meanings:
        parts.append(sentence("; ".join(meanings)))
    return " ".join(parts)


def ablation_pictures(table: DataFrame, rows: int = 12) -> list[CourseFigure]:
    """The ablation table, on as many pages as it takes to stay readable.

    Args:
        table: what `ablation_table` gave.
        rows: how many a page has at most.

    Returns:
        The pages. Each one's caption says how to read it, and which rows are not as expected.

    Raises:
        ValueError: the table is empty, or a page has no rows.
    """
    if table.empty or rows < 1:
        raise ValueError(f"{len(table)} rows, {rows} a page: there is nothing to draw.")
    pages = -(-len(table) // rows)
    each = -(-len(table) // pages)  # pages of equal length, not one full and one nearly empty
    return [
        _ablation_page(table.iloc[first : first + each], f"{page} of {pages}" if pages > 1 else "")
        for page, first in enumerate(range(0, len(table), each), 1)
    ]


_NAME, _WHERE, _AFTER, _BREAKS = 300.0, 232.0, 340.0, 500.0


def _ablation_page(table: DataFrame, page: str) -> CourseFigure:
    records: list[dict[str, Any]] = table.to_dict("records")  # type: ignore[assignment]
    texts = [_texts(record) for record in records]
    heights = [
        max(22.0 * max(len(lines) for lines in parts[:3]), 36.0 * len(parts[3])) + 16
        for parts in texts
    ]
    said = _ablation_said(records)
    width = 2 * MARGIN + _NAME + _WHERE + _AFTER + _BREAKS
    below = wrap(said, width - 2 * MARGIN, SMALL)
    top = MARGIN + 84
    sheet = Sheet(width, top + sum(heights) + 1.35 * SMALL * len(below) + 20 + MARGIN)
    stops = [MARGIN, MARGIN + _NAME, MARGIN + _NAME + _WHERE, MARGIN + _NAME + _WHERE + _AFTER]
    with course_style():
        title = "Take one safeguard away: what breaks"
        sheet.text(MARGIN, MARGIN + 12, title, TITLE, fontweight="bold")
        if page:
            sheet.text(width - MARGIN, MARGIN + 12, page, BODY, ha="right")
        for stop, head in zip(stops, ("SAFE without", "where", "after", "breaks"), strict=True):
            sheet.text(stop, top - 18, head, SMALL, color="#4A4A4A")
        y = top
        for record, parts, high in zip(records, texts, heights, strict=True):
            sheet.rule(y, FAINT, 0.8)
            middle = y + high / 2
            rest = parts[0][1:]
            level = middle - 0.6 * SMALL * len(rest)
            sheet.text(stops[0], level, parts[0][0], BODY, fontweight="bold")
            sheet.lines(stops[0], middle + 0.6 * BODY, rest, SMALL)
            sheet.lines(stops[1], middle, parts[1], SMALL)
            sheet.lines(stops[2], middle, parts[2], SMALL)
            for place, chips in enumerate(parts[3]):
                level = middle + 36.0 * (place - (len(parts[3]) - 1) / 2)
                x = stops[3]
                for chip in chips:
                    x = _chip(sheet, x, level, chip, chip in record["expected"].split(" or ")) + 8
            y += high
        sheet.rule(y)
        sheet.lines(MARGIN, y + 14 + 0.6 * SMALL * len(below), below, SMALL)
    sheet.figure.caption = said
    return sheet.figure


def _texts(record: dict[str, Any]) -> tuple[list[str], list[str], list[str], list[list[str]]]:
    """The lines of each column; of the last, the chips of each line."""
    name = [shorten(record["safeguard"], _NAME - 14, BODY, bold=True)]
    if record["covered_by"]:
        covers = record["covered_by"].split(", ")
        shown = "both" if len(covers) == 1 else "all"
        words = f"(covered by {listing(covers)}; shown without {shown})"
        name += wrap(words, _NAME - 14, SMALL)
    after = wrap(_happened(record["faults"]), _AFTER - 14, SMALL)
    chips: list[list[str]] = [[]]
    if not record["as_expected"]:
        missing = not set(record["expected"].split(" or ")) & set(record["breaks"].split(", "))
        chips = [[f"✗ expected: {record['expected']}" if missing else "✗ not covered"], []]
    room = 0.0
    for word in record["breaks"].split(", ") if record["breaks"] else ["nothing"]:
        wide = width_of(word, SMALL, True) + 28
        if chips[-1] and room + wide > _BREAKS:
            chips.append([])
        room = wide + (room if chips[-1] else 0.0)
        chips[-1].append(word)
    return name, wrap(record["scenario"], _WHERE - 14, SMALL), after, chips


def _happened(faults: str) -> str:
    """Faults in words, with their steps."""
    if not faults:
        return "any fault that was tried"
    if faults == "none":
        return "no fault at all"
    said = []
    for fault in re.split(r", (?=[a-z_]+\()", faults):
        step = re.match(r"\w+\((?:[\w-]+:)?([\w.]+)", fault)
        said.append(f"{step[1]}: {fault_words(fault)}" if step else fault_words(fault))
    return listing(said)


def _chip(sheet: Sheet, x: float, y: float, word: str, expected: bool) -> float:
    """An invariant that broke, or a remark; returns where it ends."""
    wide = width_of(word, SMALL, True) + 20
    shade = SHADES[outcome_of([word])] if expected else Shade(PAPER, INK, "normal")
    unexpected = word.startswith("✗")
    sheet.axes.add_patch(
        FancyBboxPatch(
            (x + 4, y - 12),
            wide - 8,
            24,
            boxstyle="round,pad=4",
            facecolor=INK if unexpected else shade.face,
            edgecolor=HATCH if shade.hatch else INK if expected else FAINT,
            hatch=shade.hatch,
            linewidth=1.0,
        )
    )
    ink = PAPER if unexpected else shade.ink
    weight = "bold" if unexpected else shade.weight
    sheet.text(x + wide / 2, y, word, SMALL, ha="center", color=ink, fontweight=weight)
    return x + wide


def _ablation_said(records: Sequence[dict[str, Any]]) -> str:
    wrong = [record["safeguard"] for record in records if not record["as_expected"]]
    covered = [record["safeguard"] for record in records if record["covered_by"]]
    parts = [
        "Each row has the smallest history that shows the loss. Filled: what the safeguard is "
        "there for; outlined: what breaks with it."
    ]
    if covered:
        parts.append(
            "Where another safeguard covers it, the loss of one does not break this, and the "
            "history is of both."
        )
    if wrong:
        parts.append(f"Not as expected: {listing(wrong)}.")
    return " ".join(parts)
