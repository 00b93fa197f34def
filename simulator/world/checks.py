"""Checks of settings, for errors in a sentence where they are made."""

from __future__ import annotations

__all__ = ["needs", "positive", "text", "whole"]


def whole(number: object, at_least: int) -> bool:
    """Whether this is a whole number (True is none) and not below `at_least`."""
    return isinstance(number, int) and not isinstance(number, bool) and number >= at_least


def positive(seconds: object) -> bool:
    """Whether this is a number above 0, and finite."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return number and 0 < float(seconds) < float("inf")  # type: ignore[arg-type]


def text(value: object) -> bool:
    """Whether this is a text."""
    return isinstance(value, str)


def needs(owner: object, name: str, fits: bool, what: str) -> None:
    """Refuses a setting that makes no sense.

    Raises:
        ValueError: says which, and what it should be.
    """
    if not fits:
        value = getattr(owner, name)
        raise ValueError(f"{type(owner).__name__}({name}={value!r}): give {what}.")
