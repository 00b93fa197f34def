"""A history as text: one line an event, in columns, equal for equal histories."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simulator.experiments.words import fault_words, money, quoted
from simulator.world.trace import Event

__all__ = ["transcript"]


MOST_LINES = 400
"""A history with more events than this (one that never ends) is written without its middle."""


def transcript(trace: Sequence[Event], most: int = MOST_LINES) -> str:
    """Write a history for people to read.

    Every event is one line: the seconds since the history began, the process, what it
    did. Money stands out in capitals, what was broken on purpose begins with `!!`, what
    went wrong by itself or in consequence with `x`. Messages carry a number, `#3`, by
    which to find where they arrived. Nothing in the text depends on the machine or the
    run: equal traces give equal text.

    Args:
        trace: the history.
        most: how many events are written; of a longer history the first two thirds of
            these and the last third, and how many are left out.

    Returns:
        The lines, with a head; "Nothing happened." for an empty history.
    """
    if not trace:
        return "Nothing happened."
    left_out = max(0, len(trace) - most)
    head = most - most // 3 if left_out else len(trace)
    shown = [*trace[:head], *trace[head + left_out :]]
    rows = [(f"{event.time / 1_000_000:.3f}", event.process, _said(event)) for event in shown]
    times = max(len("seconds"), *(len(row[0]) for row in rows))
    names = max(len("who"), *(len(row[1]) for row in rows))
    lines = [f"{'seconds':>{times}}  {'who':<{names}}     what happens"]
    lines.append("-" * (times + 2 + names + 2 + 40))
    for time, name, (sign, words) in rows:
        lines.append(f"{time:>{times}}  {name:<{names}}  {sign:<2} {words}".rstrip())
    if left_out:
        lines.insert(2 + head, f"{'...':>{times}}  {left_out:,} more events")
    return "\n".join(lines)


def _number(event: Event) -> str:
    return f"  #{event.message}" if event.message else ""


def _with(words: str, text: str) -> str:
    return f"{words}: {text}" if text else words


_SAID: dict[str, Callable[[Event], tuple[str, str]]] = {
    "submit": lambda e: ("", f"asks: {quoted(e.text or e.what)}"),
    "request": lambda e: ("->", _with(f"{e.peer}  {e.what}", e.text) + _number(e)),
    "response": lambda e: ("->", _with(f"{e.peer}  answer to {e.what}", e.text) + _number(e)),
    "arrive": lambda e: ("<-", f"{e.peer}  {e.what}{_number(e)} arrives"),
    "lost": lambda e: ("x", _with(f"never gets {e.what} of {e.peer}", e.text) + _number(e)),
    "timeout": lambda e: ("x", f"stops waiting for the answer to {e.what}"),
    "reset": lambda e: ("x", f"connection broken during {e.what}"),
    "commit": lambda e: ("=", _with(f"commits {e.what}", e.text)),
    "rollback": lambda e: ("x", _with(f"{e.what} is rolled back", e.text)),
    "ack_lost": lambda e: ("x", f"will not learn how {e.what} ended"),
    "effect": lambda e: ("$", _with(f"PAYS {money(e.amount)}", _whose(e))),
    "replayed": lambda e: ("=", _with("answers from its record, moves nothing", e.text)),
    "declined": lambda e: ("x", _with("declines", e.text)),
    "limited": lambda e: ("x", _with("too many requests", e.text)),
    "crash": lambda e: ("x", "dies"),
    "restart": lambda e: ("", "starts again, with an empty memory"),
    "pause": lambda e: ("x", "stops, with all it knows"),
    "resume": lambda e: ("", "goes on, with all it knew"),
    "down": lambda e: ("x", "goes down"),
    "up": lambda e: ("", "is up again"),
    "state": lambda e: ("=", _with(f"state {e.what}", e.text)),
    "task": lambda e: ("?", _with("a human must look", e.text or e.what)),
    "told": lambda e: ("", f"hears: {quoted(e.text or e.what)}"),
    "fault": lambda e: ("!!", f"FAULT at {e.what}: {fault_words(e.text)}"),
    "error": lambda e: ("x", _with("fails", e.text)),
    "note": lambda e: ("", e.text or e.what),
}


def _whose(event: Event) -> str:
    """Whose a payment is: an intent's, or what of an order's nobody asked us for."""
    return f"{event.text}, {event.peer}" if event.peer else event.text


def _said(event: Event) -> tuple[str, str]:
    """Return the sign before an event's words, and the words."""
    speak = _SAID.get(event.kind)
    if speak is None:
        return "", " ".join(part for part in (event.kind, event.what, event.text) if part)
    sign, words = speak(event)
    return sign, " ".join(words.split("\n"))
