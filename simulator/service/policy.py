"""Asking a policy, and what to say when it raises or returns what its slot has no use for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["PolicyMistake", "ask_policy", "restored", "shortened"]


class PolicyMistake(Exception):
    """A policy raised, or returned what its slot has no use for.

    Attributes:
        slot: the slot of the design.
        called_with: the arguments.
        returned: what came back, or the exception.
        expected: what the slot needs.
    """

    def __init__(self, slot: str, called_with: tuple[Any, ...], returned: Any, expected: str):
        arguments = ", ".join(shortened(argument) for argument in called_with)
        if isinstance(returned, BaseException):
            outcome = f"raised {type(returned).__name__}: {returned}"
        else:
            outcome = f"returned {shortened(returned)}"
        super().__init__(
            f"The design's policy `{slot}`, called with ({arguments}), {outcome}. "
            f"Expected: {expected}."
        )
        self.slot = slot
        self.called_with = called_with
        self.returned = returned
        self.expected = expected

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (type(self), str(self))


def restored(kind: type[Exception], message: str) -> Exception:
    """A mistake that comes from another process: its sentence is all that travels."""
    mistake = kind.__new__(kind, message)
    Exception.__init__(mistake, message)
    return mistake


def shortened(value: Any) -> str:
    """A value for a message: at most 160 characters, without addresses."""
    text = repr(value)
    if " object at 0x" in text:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 160 else text[:157] + "..."


def ask_policy(slot: str, policy: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Calls the policy of a slot.

    Raises:
        PolicyMistake: it raised.
    """
    try:
        return policy(*arguments)
    except Exception as error:
        raise PolicyMistake(slot, arguments, error, "a value, not an exception") from error
