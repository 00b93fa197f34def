"""How money, times and statements are said, the same way in text and in pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = [
    "clock",
    "counted",
    "duration",
    "fault_words",
    "listing",
    "money",
    "quoted",
    "rough",
    "sentence",
]

_SECOND = 1_000_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE


def money(amount: int, *, short: bool = False) -> str:
    """Write minor units of USD: 50000 is "$500.00"; "$500" when `short` and whole."""
    sign = "-" if amount < 0 else ""
    whole, cents = divmod(abs(amount), 100)
    if short and not cents:
        return f"{sign}${whole:,}"
    return f"{sign}${whole:,}.{cents:02d}"


def counted(number: int, what: str) -> str:
    """Write how many: "1 fault", "2 faults", "1,200 histories"."""
    if number == 1:
        return f"1 {what}"
    return f"{number:,} {what[:-1] + 'ies' if what.endswith('y') else what + 's'}"


def duration(microseconds: int) -> str:
    """Write a length of time for a person: "40 ms", "2 s", "31.5 s", "1 h 5 min"."""
    if microseconds < _SECOND:
        return f"{_round(microseconds / 1000)} ms"
    if microseconds < _MINUTE:
        return f"{_round(microseconds / _SECOND)} s"
    hours, rest = divmod(round(microseconds / _SECOND), 3600)
    minutes, seconds = divmod(rest, 60)
    parts = [(hours, "h"), (minutes, "min"), (seconds, "s")]
    said = [f"{number} {unit}" for number, unit in parts if number]
    return " ".join(said[:2])


def _round(number: float) -> str:
    """Keep three digits at most, and no zeros that say nothing."""
    digits = 0 if number >= 100 else 1 if number >= 10 else 2
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def rough(microseconds: int) -> str:
    """Write a length of time in one unit, with three digits: "40 ms", "1.5 min", "25 h"."""
    for length, unit in ((_HOUR, "h"), (_MINUTE, "min")):
        if microseconds >= length:
            return f"{_round(microseconds / length)} {unit}"
    return duration(microseconds)


def clock(microseconds: int) -> str:
    """Write a time since the start of the history: "0.040 s", "31.207 s", "1:00:05 h"."""
    if microseconds < _HOUR:
        return f"{microseconds / _SECOND:.3f} s"
    hours, rest = divmod(round(microseconds / _SECOND), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d} h"


def listing(parts: Sequence[str], word: str = "and") -> str:
    """Join for a sentence: "a", "a and b", "a, b and c"."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def sentence(text: str) -> str:
    """Begin with a capital, and end with one full stop."""
    stop = "" if text.endswith((".", ".”")) else "."
    return f"{text[:1].upper()}{text[1:]}{stop}"


def quoted(text: str) -> str:
    """Put what somebody says in quotation marks, once."""
    return f"“{text.strip().strip('“”')}”"


_FAULTS = {
    "lose_request": "request lost",
    "lose_response": "answer lost",
    "duplicate_request": "request doubled",
    "reset": "connection broken{place}",
    "delay_request": "request late{time}",
    "delay_response": "answer late{time}",
    "crash": "killed{place}",
    "pause": "stopped{time}{place}",
    "crash_provider": "provider killed{place}",
    "provider_down": "provider down{time}",
    "database_down": "database down{time}",
    "lose_commit_ack": "{place}answer lost",
}
_PLACES = {
    "before_send": " before sending",
    "after_send": " after sending",
    "after_answer": " after the answer",
    "before": " before it happened",
    "after": " after it happened",
}
_PLACES_OF = {
    ("crash", "before"): " before its commit",
    ("crash", "after"): " after its commit",
    ("pause", "before"): " before its commit",
    ("pause", "after"): " after its commit",
    ("crash_provider", "before"): " before it paid",
    ("crash_provider", "after"): " after it paid",
    ("lose_commit_ack", "before"): "not committed, ",
    ("lose_commit_ack", "after"): "committed, ",
    ("reset", "before"): " on the way there",
    ("reset", "after"): " on the way back",
}
_FAULT = re.compile(r"(?P<kind>[a-z_]+)(?:\((?P<rest>.*)\))?\s*$")
_SECONDS = re.compile(r"([\d.e+-]+) s")


def fault_words(text: str) -> str:
    """Say a fault in words: "delay_request(provider.refund, 3 s)" is "request late by 3 s"."""
    found = _FAULT.match(text)
    if found is None or found["kind"] not in _FAULTS:
        return text.replace("_", " ")
    kind, place, time = found["kind"], "", ""
    for part in (found["rest"] or "").split(","):
        word = part.strip()
        if word in _PLACES:
            place = _PLACES_OF.get((kind, word), _PLACES[word])
        seconds = _SECONDS.fullmatch(word)
        if seconds:
            link = "by" if kind.startswith("delay") else "for"
            time = f" {link} {duration(round(float(seconds[1]) * _SECOND))}"
    return _FAULTS[kind].format(place=place, time=time)
