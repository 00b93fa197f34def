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
    "approver",
    "back office",
    "backend-1",
    "backend-2",
    "broker",
    "worker-1",
    "worker-2",
    "database",
    "provider",
)
"""From left to right: a refund travels from the customer to the provider."""

ISSUE_REFUND = "tool.issue_refund"
"""The call of the agent that asks for money."""

LATE = 1_000_000
"""Microseconds on the way from which on a message counts as late and gets a row at its end."""

MOST_ROWS = 150
"""A history with more rows than this (one that never ends) is shown without its middle."""

LONGEST_ROUND = 6
FEWEST_ROUNDS = 3
"""From so many equal rounds on (of at most six rows each) those between are left out."""

_ROUTINE = frozenset(
    {"request", "response", "cut", "reset", "timeout", "commit", "rollback", "ack_lost", "limited"}
)

_PEERS = frozenset({"submit", "request", "response", "commit", "rollback", "ack_lost"})
_RECEIPTS = frozenset({"read", "taken"})


@dataclass(frozen=True)
class Row:
    """One row of the picture.

    Attributes:
        place: index in the trace of the event that it shows.
        time: microseconds since the history began.
        mark: what is drawn; mostly the kind of the event. "cut" is a message that is lost,
            "late" the arrival of one that is late, "again" money for an intent that was
            paid before, "rounds" stands for rows that are left out.
        process: whose lane.
        peer: the lane at the other end, if any.
        what: the call, transaction or statement.
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
    what: str = ""
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
    """Return the processes that occur, in the order of the lanes; unknown ones come last.

    Where a refund was asked for, the provider has a lane though it be empty: nothing was paid.
    """
    seen = dict.fromkeys(event.process for event in trace)
    seen |= dict.fromkeys(event.peer for event in trace if event.kind in _PEERS and event.peer)
    if any(event.what == ISSUE_REFUND and event.kind == "request" for event in trace):
        seen["provider"] = None
    known = [name for name in LANES if name in seen]
    return (*known, *(name for name in seen if name not in LANES))


def payments(trace: Sequence[Event]) -> dict[int, tuple[int, int]]:
    """Map the index of every effect to (how often, how much) its intent was paid by then."""
    often: Counter[str] = Counter()
    much: Counter[str] = Counter()
    found: dict[int, tuple[int, int]] = {}
    for place, event in enumerate(trace):
        if event.kind == "effect" and event.peer:
            found[place] = (1, event.amount)  # without us, and to no intent
        elif event.kind == "effect":
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
        intents: a short name for every intent's id; by default, and only if there are
            several, the id if it is short, else "refund 1" and so on.
        detail: "story" leaves out what other rows imply; "all" gives every event its row.

    Raises:
        ValueError: `detail` is neither.
    """
    if detail not in ("story", "all"):
        raise ValueError(f'detail is {detail!r}: choose "story" or "all".')
    everything = detail == "all"
    # Where each message arrives or is lost, and where it was sent.
    arrivals = _by_message(trace, "arrive", "lost")
    sent = _by_message(trace, "request", "response")
    names = _names(trace, intents)
    paid = payments(trace)
    rows: list[Row] = []
    for place, event in enumerate(trace):
        row = _row(place, event, trace, arrivals, names, paid, everything)
        if row is not None:
            rows.append(row)
        late = None if everything else _late(place, event, trace, sent)
        if late is not None:
            rows.append(late)
    rows = _merge_states(rows, everything)
    rows = _merge_faults(rows)
    if not everything:
        rows = [row for row in rows if row.fault or not _dull(row)]
        rows = _folded(rows)
    return Picture(lanes_of(trace), tuple(_shortened(rows)), _spans(trace))


def _folded(rows: Sequence[Row]) -> list[Row]:
    """Show the first and the last of many equal rounds, and how many lie between."""
    kept: list[Row] = []
    signs = [_sign(row) for row in rows]
    at = 0
    while at < len(rows):
        length, rounds = _rounds(signs, at)
        if rounds < FEWEST_ROUNDS:
            kept.append(rows[at])
            at += 1
            continue
        end = at + length * rounds
        kept += rows[at : at + length]
        word = "time" if length == 1 else "round"
        words = f"{rounds - 2} more {word}{'s' if rounds > 3 else ''} like this"
        kept.append(replace(rows[at + length], mark="rounds", peer="", text=words))
        kept += rows[end - length : end]
        at = end
    return kept


def _sign(row: Row) -> tuple[str, ...] | None:
    """Return what makes two rows alike; None for rows that are never left out."""
    if row.fault or row.mark not in _ROUTINE:
        return None
    return (row.mark, row.process, row.peer, row.text)


def _rounds(signs: Sequence[tuple[str, ...] | None], at: int) -> tuple[int, int]:
    """Return length and number of the equal rounds that begin here, most rows first."""
    best = (1, 1)
    for length in range(1, LONGEST_ROUND + 1):
        one = signs[at : at + length]
        if len(one) < length or None in one:
            break
        rounds = 1
        while signs[at + rounds * length : at + (rounds + 1) * length] == one:
            rounds += 1
        # One row in the place of one would be no gain.
        gain = rounds >= FEWEST_ROUNDS and length * (rounds - 2) > 1
        if gain and length * rounds > best[0] * best[1]:
            best = (length, rounds)
    return best


def _shortened(rows: Sequence[Row]) -> list[Row]:
    """Leave out the middle of a history that nobody would read to its end."""
    if len(rows) <= MOST_ROWS:
        return list(rows)
    head, tail = rows[: 2 * MOST_ROWS // 3], rows[-MOST_ROWS // 3 :]
    left_out = len(rows) - len(head) - len(tail)
    first = rows[len(head)]
    gap = replace(
        first,
        mark="rounds",
        peer="",
        fault="",
        until=-1,
        text=f"{left_out:,} more rows are left out",
    )
    return [*head, gap, *tail]


def _by_message(trace: Sequence[Event], *kinds: str) -> dict[int, int]:
    """Map the number of every message to the index of its event of these kinds."""
    return {
        event.message: place
        for place, event in enumerate(trace)
        if event.kind in kinds and event.message
    }


def _names(trace: Sequence[Event], given: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return a name for every intent, if there are several; else none is needed."""
    if given is not None:
        return given
    about = (event for event in trace if event.kind in _ABOUT)
    ids = list(
        dict.fromkeys(_intent(each) for each in about if not (each.kind == "effect" and each.peer))
    )
    return (
        {one: one if len(one) <= 12 else f"refund {n}" for n, one in enumerate(ids, 1)}
        if (len(ids) > 1)
        else {}
    )


_ABOUT = frozenset({"submit", "effect", "told"})


def _intent(event: Event) -> str:
    """Return the id of the intent that a wish, a payment or a statement is about."""
    return {"submit": event.what, "told": event.peer}.get(event.kind, event.text)


def _plain(what: str) -> str:
    """Leave out of a call's name who is called, which the arrow says: provider.refund."""
    return what.rsplit(".", 1)[-1]


def _row(
    place: int,
    event: Event,
    trace: Sequence[Event],
    arrivals: Mapping[int, int],
    names: Mapping[str, str],
    paid: Mapping[int, tuple[int, int]],
    everything: bool,
) -> Row | None:
    """Return the row that shows one event, None if others imply it."""
    kind, process, peer = event.kind, event.process, event.peer
    row = Row(place, event.time, kind, process, peer, event.what)
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
        whose = event.peer or names.get(_intent(event), "")
        if times > 1:
            text = "paid again" if times == 2 else f"paid {times} times"
            return replace(row, mark="again", text=text, small=f"{money(total, short=True)} in all")
        return replace(row, text=f"{money(event.amount, short=True)} paid", small=whose)
    if kind in ("submit", "told"):
        whose = names.get(_intent(event), "")
        said = quoted(event.text or event.what)
        return replace(row, text=f"{whose}: {said}" if whose else said)
    if kind == "timeout":
        return replace(row, text=f"no answer {event.text}".rstrip())
    if kind == "fault":
        return replace(row, text=event.text, small=event.text)
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
        "rollback": f"{what} rolled back: {event.text}" if event.text else f"{what} rolled back",
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


def _message(
    row: Row,
    event: Event,
    trace: Sequence[Event],
    arrivals: Mapping[int, int],
) -> Row:
    answer = event.kind == "response"
    end = arrivals.get(event.message, -1)
    row = replace(row, answer=answer, text=_label(event), until=end)
    if end >= 0 and trace[end].kind == "lost":
        return replace(row, mark="cut", small=trace[end].text or "lost", until=-1)
    return row


def _dull(row: Row) -> bool:
    """Tell whether an answer says no more than that it was received."""
    return row.mark == "response" and row.text in _RECEIPTS


def _label(event: Event) -> str:
    """Return what a message says: the call and its sum, or the answer."""
    if event.kind == "response":
        return event.text or _plain(event.what)
    call_id, colon, rest = event.text.partition(": ")
    said = rest.rpartition(" ")[2] if colon and call_id else event.text
    return f"{_plain(event.what)} {said}".strip()


def _late(place: int, event: Event, trace: Sequence[Event], sent: Mapping[int, int]) -> Row | None:
    """Return a row for an arrival that comes long after anybody would look for it."""
    if event.kind != "arrive" or event.message not in sent:
        return None
    message = trace[sent[event.message]]
    if event.time - message.time < LATE:
        return None
    return Row(
        place,
        event.time,
        "late",
        event.process,
        event.peer,
        event.what,
        text=f"arrives {duration(event.time - message.time)} later",
        answer=message.kind == "response",
    )


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


_SHOWN_BY: dict[str, tuple[str, bool | None]] = {
    "lose_request": ("cut", False),
    "lose_response": ("cut", True),
    "reset": ("cut", None),
    "duplicate_request": ("request", False),
    "delay_request": ("request", False),
    "delay_response": ("response", True),
    "crash": ("crash", None),
    "pause": ("pause", None),
    "crash_provider": ("down", None),
    "provider_down": ("down", None),
    "database_down": ("down", None),
    "lose_commit_ack": ("ack_lost", None),
}
"""For every kind of fault: the mark in which it shows, and whether that is an answer."""

_ELSEWHERE = {
    "crash_provider": "provider",
    "provider_down": "provider",
    "database_down": "database",
}


def _merge_faults(rows: Sequence[Row]) -> list[Row]:
    """Hang every fault on the row in which it shows; one that never shows has its own."""
    merged = list(rows)
    gone: set[int] = set()
    for index, fault in enumerate(rows):
        if fault.mark != "fault":
            continue
        said = fault_words(fault.text)
        merged[index] = replace(fault, text=said)
        shown = _shown(index, merged)
        if shown is not None:
            merged[shown] = replace(merged[shown], fault=said)
            gone.add(index)
    return [row for index, row in enumerate(merged) if index not in gone]


def _shown(index: int, rows: Sequence[Row]) -> int | None:
    """Return the row in which a fault shows: before the struck step is taken once more."""
    fault = rows[index]
    kind = fault.small.partition("(")[0]
    if kind not in _SHOWN_BY:
        return None
    mark, answer = _SHOWN_BY[kind]
    struck = _ELSEWHERE.get(kind, fault.process)
    found: int | None = None
    for place in range(index + 1, len(rows)):
        row = rows[place]
        same_step = row.what == fault.what and fault.process in (row.process, row.peer)
        if same_step and row.mark in ("request", "cut") and not row.answer:
            if row.time > fault.time and mark not in ("crash", "pause"):
                return found
            if kind == "duplicate_request" and row.mark == "request":
                found = place  # the copy is the later of the two
                continue
        where = row.process == struck if mark in ("crash", "pause", "down") else same_step
        if where and row.mark == mark and answer in (None, row.answer) and not row.fault:
            return place
    return found


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
