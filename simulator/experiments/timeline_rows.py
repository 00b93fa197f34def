"""From a trace to the rows of its picture: what is shown, what belongs together, what it says.

No drawing here and no matplotlib: `timeline` draws what this module has decided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from simulator.experiments.words import duration, fault_words, money, quoted
from simulator.world.trace import Event

__all__ = ["LANES", "Picture", "Row", "Span", "arrange", "lanes_of", "payments"]

LANES = (
    "customer",
    "agent",
    "backend-1",
    "backend-2",
    "worker-1",
    "worker-2",
    "database",
    "provider",
)
"""From left to right: a refund travels from the customer to the provider."""

LATE = 1_000_000
"""Microseconds on the way from which on a message counts as late and gets a row at its end."""

_FAULT_WINDOW = 4  # events between a fault and the event that shows it


@dataclass(frozen=True)
class Row:
    """One row of the picture.

    Attributes:
        place: index in the trace of the event that it shows.
        time: microseconds since the history began.
        mark: what is drawn; mostly the kind of the event. "cut" is a message that is lost,
            "copy" and "late" are second and late arrivals, "again" is money for an intent
            that was paid before.
        process: whose lane.
        peer: the lane at the other end, if any.
        text: the label.
        small: a second label, in small type.
        fault: what was injected here, if anything.
        until: index of the arrival, for messages that arrive.
        answer: whether a message is an answer.
    """

    place: int
    time: int
    mark: str
    process: str
    peer: str = ""
    text: str = ""
    small: str = ""
    fault: str = ""
    until: int = -1
    answer: bool = False


@dataclass(frozen=True)
class Span:
    """A stretch of a lane that is dead ("crash"), stopped ("pause") or "down".

    Attributes:
        process: whose lane.
        mark: crash, pause or down.
        begin: index in the trace.
        end: index in the trace, or -1 if it lasts to the end of the history.
    """

    process: str
    mark: str
    begin: int
    end: int = -1


@dataclass(frozen=True)
class Picture:
    """What is to be drawn: lanes from left to right, rows from top to bottom, spans of lanes."""

    lanes: tuple[str, ...]
    rows: tuple[Row, ...]
    spans: tuple[Span, ...] = field(default=())


def lanes_of(trace: Sequence[Event]) -> tuple[str, ...]:
    """Return the processes that occur, in the order of the lanes; unknown ones come last."""
    seen = dict.fromkeys(name for event in trace for name in (event.process, event.peer) if name)
    known = [name for name in LANES if name in seen]
    return (*known, *(name for name in seen if name not in LANES))


def payments(trace: Sequence[Event]) -> dict[int, tuple[int, int]]:
    """Map the index of every effect to (how often, how much) its intent was paid by then."""
    often: Counter[str] = Counter()
    much: Counter[str] = Counter()
    found: dict[int, tuple[int, int]] = {}
    for place, event in enumerate(trace):
        if event.kind == "effect":
            often[event.text] += 1
            much[event.text] += event.amount
            found[place] = (often[event.text], much[event.text])
    return found


def arrange(
    trace: Sequence[Event],
    *,
    intents: Mapping[str, str] | None = None,
    detail: str = "story",
) -> Picture:
    """Decide what the picture of a history shows.

    Args:
        trace: the history.
        intents: a short name for every intent's id; by default, and only if several are
            paid, "refund 1", "refund 2" in the order of the first payment.
        detail: "story" leaves out what other rows imply; "all" gives every event its row.

    Raises:
        ValueError: `detail` is neither.
    """
    if detail not in ("story", "all"):
        raise ValueError(f'detail is {detail!r}: choose "story" or "all".')
    everything = detail == "all"
    arrivals = _arrivals(trace)
    names = _names(trace, intents)
    paid = payments(trace)
    rows: list[Row] = []
    for place, event in enumerate(trace):
        row = _row(place, event, trace, arrivals, names, paid, everything)
        if row is not None:
            rows.append(row)
        rows.extend(_second_arrivals(place, event, trace, arrivals))
    rows = _merge_states(rows, everything)
    rows = _merge_faults(rows)
    return Picture(lanes_of(trace), tuple(rows), _spans(trace))


def _arrivals(trace: Sequence[Event]) -> dict[int, list[int]]:
    """Map every message to the indices of its arrivals, or of its loss."""
    found: dict[int, list[int]] = {}
    for place, event in enumerate(trace):
        if event.kind in ("arrive", "lost") and event.message:
            found.setdefault(event.message, []).append(place)
    return found


def _names(trace: Sequence[Event], given: Mapping[str, str] | None) -> Mapping[str, str]:
    if given is not None:
        return given
    ids = list(dict.fromkeys(event.text for event in trace if event.kind == "effect"))
    return {one: f"refund {number}" for number, one in enumerate(ids, 1)} if len(ids) > 1 else {}


def _plain(what: str) -> str:
    """Say the name of a call or transaction in words: provider.refund becomes "refund"."""
    return what.rsplit(".", 1)[-1].replace("_", " ")


def _row(
    place: int,
    event: Event,
    trace: Sequence[Event],
    arrivals: Mapping[int, Sequence[int]],
    names: Mapping[str, str],
    paid: Mapping[int, tuple[int, int]],
    everything: bool,
) -> Row | None:
    """Return the row that shows one event, None if others imply it."""
    kind, process, peer = event.kind, event.process, event.peer
    row = Row(place, event.time, kind, process, peer)
    if kind in ("request", "response"):
        return _message(row, event, trace, arrivals)
    if kind == "arrive":
        return replace(row, text=f"{_plain(event.what)} arrives") if everything else None
    if kind == "lost":
        return None  # the message's own row ends in a cross
    if kind == "state":
        return replace(row, text=event.what.replace("->", " → "), small=event.text)
    if kind == "effect":
        times, total = paid[place]
        whose = names.get(event.text, "")
        if times > 1:
            text = "paid again" if times == 2 else f"paid {times} times"
            return replace(row, mark="again", text=text, small=f"{money(total, short=True)} in all")
        return replace(row, text=f"{money(event.amount, short=True)} paid", small=whose)
    if kind in ("submit", "told"):
        return replace(row, text=quoted(event.text or event.what), small=event.what)
    if kind == "timeout":
        return replace(row, text=_waited(place, event, trace))
    if kind == "fault":
        return replace(row, text=event.text, small=event.what)
    return replace(row, text=_words(event))


def _words(event: Event) -> str:
    """Return the label of an event that needs no other to be understood."""
    what = _plain(event.what)
    said = {
        "replayed": "already paid: same answer",
        "declined": event.text or "declined",
        "limited": event.text or "too many requests",
        "reset": "connection broken",
        "commit": what,
        "rollback": f"{what} rolled back",
        "ack_lost": f"{what}: how did it end?",
        "crash": f"{event.process} dies",
        "restart": "starts again",
        "pause": f"{event.process} stops",
        "resume": "goes on",
        "down": f"{event.process} is down",
        "up": "is back",
        "task": f"a human must look: {event.text or what}",
        "error": event.text or "error",
    }
    return said.get(event.kind, event.text or what)


def _waited(place: int, event: Event, trace: Sequence[Event]) -> str:
    for earlier in reversed(trace[:place]):
        if (earlier.kind, earlier.process, earlier.what) == ("request", event.process, event.what):
            return f"no answer for {duration(event.time - earlier.time)}"
    return "no answer"


def _message(
    row: Row, event: Event, trace: Sequence[Event], arrivals: Mapping[int, Sequence[int]]
) -> Row:
    answer = event.kind == "response"
    ends = arrivals.get(event.message, ())
    row = replace(row, answer=answer, text=event.text or _plain(event.what))
    if not ends:
        return row  # still under way when the history ends
    if trace[ends[0]].kind == "lost":
        return replace(row, mark="cut", small=trace[ends[0]].text or "lost")
    return replace(row, until=ends[0])


def _second_arrivals(
    place: int, event: Event, trace: Sequence[Event], arrivals: Mapping[int, Sequence[int]]
) -> list[Row]:
    """Return a row for an arrival that is not where one would look for it: late, or a copy."""
    if event.kind != "arrive" or not event.message:
        return []
    ends = arrivals[event.message]
    sent = next(
        (
            one
            for one in trace
            if one.message == event.message and one.kind in ("request", "response")
        ),
        None,
    )
    if sent is None:
        return []
    answer = sent.kind == "response"
    row = Row(place, event.time, "late", event.process, event.peer, answer=answer)
    if place != ends[0]:
        return [replace(row, mark="copy", text=f"{_plain(event.what)} once more")]
    if event.time - sent.time >= LATE:
        return [replace(row, text=f"arrives {duration(event.time - sent.time)} late")]
    return []


def _merge_states(rows: Sequence[Row], everything: bool) -> list[Row]:
    """Write changes of state at the commit that made them, in the same instant."""
    if everything:
        return list(rows)
    merged: list[Row] = []
    waiting: list[Row] = []
    for row in rows:
        if row.mark == "state":
            last = merged[-1] if merged else None
            if last is not None and last.mark == "commit" and last.time == row.time:
                merged[-1] = _with_state(last, row)
            else:
                waiting.append(row)
            continue
        if row.mark == "commit" and waiting and waiting[-1].time == row.time:
            for state in waiting:
                row = _with_state(row, state)
            waiting = []
        merged.extend(waiting)
        waiting = []
        merged.append(row)
    return merged + waiting


def _with_state(commit: Row, state: Row) -> Row:
    """Add the state that is reached; the one before is that of the commit before."""
    reached = state.text.rpartition("→")[2].strip()
    return replace(commit, text=f"{commit.text}{',' if ':' in commit.text else ':'} {reached}")


_SHOWS = {
    "crash": ("crash",),
    "pause": ("pause",),
    "lose": ("cut",),
    "reset": ("cut", "reset", "request", "response"),
    "delay": ("request", "response"),
    "duplicate": ("request", "response"),
    "down": ("down",),
    "commit": ("ack_lost",),
}
"""Which marks show a fault whose text contains the word."""


def _merge_faults(rows: Sequence[Row]) -> list[Row]:
    """Hang every fault on the row in which it shows, if that is near; else it has its own."""
    merged = list(rows)
    for index, fault in enumerate(rows):
        if fault.mark != "fault":
            continue
        marks = {mark for word, shown in _SHOWS.items() if word in fault.text for mark in shown}
        window = range(max(0, index - _FAULT_WINDOW), min(len(rows), index + _FAULT_WINDOW + 1))
        near = [
            at
            for at in window
            if merged[at].mark in marks
            and merged[at].time == fault.time
            and not merged[at].fault
            and fault.process in (merged[at].process, merged[at].peer)
        ]
        if near:
            at = min(near, key=lambda one: abs(one - index))
            merged[at] = replace(merged[at], fault=fault_words(fault.text))
            merged[index] = replace(fault, mark="gone")
    return [
        replace(row, text=fault_words(row.text)) if row.mark == "fault" else row
        for row in merged
        if row.mark != "gone"
    ]


_ENDS = {"crash": "restart", "pause": "resume", "down": "up"}


def _spans(trace: Sequence[Event]) -> tuple[Span, ...]:
    open_spans: dict[tuple[str, str], int] = {}
    done: list[Span] = []
    for place, event in enumerate(trace):
        if event.kind in _ENDS:
            open_spans.setdefault((event.process, event.kind), place)
        for begin, end in _ENDS.items():
            if event.kind == end and (event.process, begin) in open_spans:
                start = open_spans.pop((event.process, begin))
                done.append(Span(event.process, begin, start, place))
    done.extend(Span(process, mark, start) for (process, mark), start in open_spans.items())
    return tuple(sorted(done, key=lambda span: span.begin))
