"""Checks of settings, for errors in a sentence where they are made."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

__all__ = ["fits_its_types", "needs", "needs_seconds", "positive", "text", "whole"]

TEN_YEARS = 10 * 365.25 * 24 * 3600.0
"""Seconds. A design waits for nothing longer, and a calendar still has the date after it."""


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
        raise ValueError(f"{type(owner).__name__}({name}={_shown(value)}): give {what}.")


def needs_seconds(owner: object, name: str, or_none: bool = False) -> None:
    """Refuses a span of time that is none, or that leads to a date which no calendar has.

    None is taken as it is: whether it may be is a matter of the field's type.

    Args:
        or_none: whether to say that None may be given, too.

    Raises:
        ValueError: says which, and what it should be.
    """
    seconds = getattr(owner, name)
    if seconds is None:
        return
    needs(owner, name, seconds > 0, "seconds, more than 0" + (", or None" if or_none else ""))
    needs(owner, name, seconds <= TEN_YEARS, f"seconds, at most ten years ({TEN_YEARS:.0f})")


def fits_its_types(owner: object) -> None:
    """Refuses a dataclass whose fields are not of the types that they are annotated with: a
    text is no number, 1 is no True, and neither NaN nor infinity is a time.

    A list where a tuple belongs becomes one, and any collection where a frozenset does.

    Raises:
        ValueError: says which field, and what it should be.
    """
    model, collections = _model(type(owner))  # type: ignore[arg-type] # a class it is
    for name, kind in collections:
        value = getattr(owner, name)
        if isinstance(value, list | set | tuple) and not isinstance(value, kind):
            object.__setattr__(owner, name, kind(value))
    try:
        model.model_validate({name: getattr(owner, name) for name in model.model_fields})
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        name = str(first["loc"][0])
        wanted = first["msg"].replace("Input ", "it ", 1)
        raise ValueError(
            f"{type(owner).__name__}({name}={_shown(getattr(owner, name))}): {wanted}."
        ) from None


@cache
def _model(kind: Any) -> tuple[type[BaseModel], tuple[tuple[str, type], ...]]:
    """What a dataclass's fields have to be, and which of them are collections."""
    hints = get_type_hints(kind)
    of_fields: dict[str, Any] = {field.name: (hints[field.name], ...) for field in fields(kind)}
    strict = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)
    model = create_model(kind.__name__, __config__=strict, **of_fields)
    collections = ((name, _collection(hint)) for name, (hint, _) in of_fields.items())
    return model, tuple((name, kind) for name, kind in collections if kind is not None)


def _collection(hint: Any) -> type | None:
    """The kind of collection that a field holds, alone or beside others; None if it is none."""
    choices = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    kinds = (get_origin(choice) for choice in choices)
    return next((kind for kind in kinds if kind in (tuple, frozenset)), None)


def _shown(value: object) -> str:
    said = repr(value)
    return said if len(said) <= 80 else f"{said[:77]}..."
