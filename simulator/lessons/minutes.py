"""How long a lesson takes, computed, so that the number at its head stays true.

Reading: 200 words a minute. Brysbaert (2019, a meta-analysis of 190 studies) finds 238 for
English non-fiction; prose that is worked through goes slower. The other figures are round
ones from watching people work, and are to be corrected by anyone who measures them.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator.lessons.source import Source

__all__ = ["minutes", "words"]

WORDS_A_MINUTE = 200
RUN = 0.4  # run a cell and read what comes out
ANSWER = 0.75  # a prediction, or a question about the lesson before
EXERCISE = 5.0

CALL = re.compile(r"^(?P<name>predict\.choice|predict\.number|question|check)\(", re.MULTILINE)


def words(source: Source) -> int:
    """The words of prose that a student reads: Markdown cells, without code blocks."""
    count = 0
    for cell in source.side("student"):
        if cell.markdown:
            count += len(re.sub(r"```.*?```", " ", cell.prose(), flags=re.DOTALL).split())
    return count


def minutes(source: Source) -> int:
    """Minutes for one lesson, rounded up to a multiple of five."""
    total = words(source) / WORDS_A_MINUTE
    for cell in source.side("student"):
        if not cell.markdown:
            calls = [match["name"] for match in CALL.finditer(cell.code("student"))]
            total += RUN
            total += EXERCISE * calls.count("check")
            total += ANSWER * (len(calls) - calls.count("check"))
    return 5 * math.ceil(total / 5)
