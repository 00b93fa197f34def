"""What the notebooks import.

- `predict.choice("our-books")` before a run, and `predict.reveal("our-books", amount)` after it
- `question("who-runs-a-tool")`: about the lesson before
- `show(run)`: a history as a picture, with its sentence beside it
- `check("overpaid", overpaid)`: not attempted, right, wrong or raised
- `hint("overpaid")`: one more hint at each call
- `progress()`: how far you have come
"""

from __future__ import annotations

from simulator.lessons import predict
from simulator.lessons.checking import check
from simulator.lessons.hints import hint
from simulator.lessons.logbook import progress
from simulator.lessons.pictures import show
from simulator.lessons.questions import question

__all__ = ["check", "hint", "predict", "progress", "question", "show"]
