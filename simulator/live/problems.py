"""What keeps the live ground from going on, said in a sentence."""

from __future__ import annotations

__all__ = ["Problem"]


class Problem(Exception):
    """The live ground can't go on; the message is a sentence: what is wrong, and what to do."""
