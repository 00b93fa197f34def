"""Checks of settings, for errors in a sentence where they are made."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

__all__ = ["fits_its_types", "needs", "positive", "text", "whole"]


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
    collections = ((name, get_origin(hint)) for name, (hint, _) in of_fields.items())
    return model, tuple((name, o) for name, o in collections if o in (tuple, frozenset))


def _shown(value: object) -> str:
    said = repr(value)
    return said if len(said) <= 80 else f"{said[:77]}..."
