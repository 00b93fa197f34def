"""How long a lesson takes, computed, so that the number at its head stays true.

Reading: 200 words a minute. Brysbaert (2019, a meta-analysis of 190 studies) finds 238 for
English non-fiction; prose that is worked through goes slower. The other figures are round
ones from watching people work, and are to be corrected by anyone who measures them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from simulator.lessons import course

if TYPE_CHECKING:
    from simulator.lessons.source import Source

__all__ = ["minutes", "words"]

WORDS_A_MINUTE = 200
RUN = 0.25  # run a cell and read what comes out
ANSWER = 0.75  # a prediction, or a question about the lesson before

ASKED = re.compile(r"^(?:predict\.choice|predict\.number|question)\(", re.MULTILINE)
CHECKED = re.compile(r'^check\("(\w+)"', re.MULTILINE)


def words(source: Source) -> int:
    """The words of prose that a student reads: Markdown cells, without code blocks."""
    count = 0
    for cell in source.side("student"):
        if cell.markdown:
            count += len(re.sub(r"```.*?```", " ", cell.prose(), flags=re.DOTALL).split())
    return count


def minutes(source: Source) -> int:
    """Minutes for one lesson, to the nearest five; at least five."""
    total = words(source) / WORDS_A_MINUTE
    for cell in source.side("student"):
        if not cell.markdown:
            code = cell.code("student")
            total += RUN + ANSWER * len(ASKED.findall(code))
            total += sum(course.exercise(name).minutes for name in CHECKED.findall(code))
    return max(5, 5 * round(total / 5))
