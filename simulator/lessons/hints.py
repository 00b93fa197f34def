"""Hints in stages: each call shows one more."""

from __future__ import annotations

from simulator.lessons import course
from simulator.lessons.cards import Card, at_once

__all__ = ["hint", "left"]

_shown: dict[str, int] = {}


@at_once
def hint(name: str) -> Card:
    """Show the next hint of an exercise, with those already seen."""
    try:
        hints = course.exercise(name).hints
    except course.UnknownNameError as error:
        return Card("raised", str(error))
    shown = _shown[name] = min(_shown.get(name, 0) + 1, len(hints))
    more = len(hints) - shown
    after = (
        f"There are {more} more: call `hint` again."
        if more > 1
        else ("There is one more: call `hint` again." if more else "That was the last hint.")
    )
    numbered = [f"{number}. {text}" for number, text in enumerate(hints[:shown], start=1)]
    return Card("hint", f"Hint {shown} of {len(hints)}", (*numbered, after))


def left(name: str) -> str:
    """How to ask for the next hint, in a sentence."""
    hints = course.exercise(name).hints
    if _shown.get(name, 0) < len(hints):
        return f'Stuck? `hint("{name}")` gives one hint at a time.'
    return f'All hints are out; `hint("{name}")` shows them again.'
