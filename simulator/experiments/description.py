"""A history in a few sentences: what its picture shows, for people who can't see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from simulator.experiments.timeline_rows import payments
from simulator.experiments.words import (
    clock,
    duration,
    fault_words,
    listing,
    money,
    quoted,
    sentence,
)
from simulator.world.trace import Event

__all__ = ["describe"]

_TIMES = {1: "once", 2: "twice", 3: "three times"}


def describe(trace: Sequence[Event]) -> str:
    """Say in two to five plain sentences what happens in a history.

    Computed from the trace alone: who asks, what was broken on purpose, who waited in
    vain or died, what the provider paid, and what the customer heard last.
    """
    if not trace:
        return "Nothing happens. The history is empty."
    parts = (_asked(trace), _broken(trace), _suffered(trace), _paid(trace), _ended(trace))
    return " ".join(part for part in parts if part)


def _times(count: int) -> str:
    return _TIMES.get(count, f"{count} times")


def _asked(trace: Sequence[Event]) -> str:
    asked = [event for event in trace if event.kind == "submit"]
    if not asked:
        return f"Nobody asks for anything in the {duration(trace[-1].time)} of this history."
    words = list(dict.fromkeys(event.text for event in asked))
    if len(words) == 1:
        how = "" if len(asked) == 1 else f" {_times(len(asked))}"
        return sentence(f"the customer asks{how}: {quoted(words[0] or asked[0].what)}")
    return sentence(f"the customer asks {_times(len(asked))}, first {quoted(words[0])}")


def _broken(trace: Sequence[Event]) -> str:
    faults = [event for event in trace if event.kind == "fault"]
    if not faults:
        return "Nothing is broken on purpose."
    said = [f"{fault_words(event.text)} ({event.what} of {event.process})" for event in faults]
    return f"What we broke: {listing(said)}."


def _suffered(trace: Sequence[Event]) -> str:
    said: list[str] = []
    waited: dict[tuple[str, str], int] = {}
    for event in trace:
        if event.kind == "timeout":
            waited[(event.process, event.what)] = waited.get((event.process, event.what), 0) + 1
    for (process, what), count in waited.items():
        sent = sum(
            (event.process, event.what, event.kind) == (process, what, "request") for event in trace
        )
        again = f" and sends {what} {_times(sent)} in all" if sent > 1 else ""
        said.append(f"{process} waits in vain {_times(count)} for {what}{again}")
    died = Counter(event.process for event in trace if event.kind == "crash")
    back = Counter(event.process for event in trace if event.kind == "restart")
    for process, count in died.items():
        after = "starts again" if back[process] else "stays dead"
        said.append(f"{process} dies{'' if count == 1 else f' {_times(count)}'} and {after}")
    paused = dict.fromkeys(event.process for event in trace if event.kind == "pause")
    said.extend(f"{process} stands still for a while" for process in paused)
    return sentence("; ".join(said)) if said else ""


def _paid(trace: Sequence[Event]) -> str:
    totals = payments(trace)
    if not totals:
        refused = sum(event.kind == "declined" for event in trace)
        return "The provider pays nothing" + (", and says so." if refused else ".")
    ours = [place for place in totals if not trace[place].peer]
    others = [trace[place] for place in totals if trace[place].peer]
    without_us = "".join(
        f" Without us it pays {money(e.amount)} at {clock(e.time)} ({e.peer})." for e in others
    )
    if not ours:
        return f"The provider pays nothing that we asked for.{without_us}"
    said = []
    for intent in dict.fromkeys(trace[place].text for place in ours):
        places = [place for place in ours if trace[place].text == intent]
        first = trace[places[0]]
        if len(places) == 1:
            said.append(f"{money(first.amount)} at {clock(first.time)}")
            continue
        later = listing([clock(trace[place].time) for place in places[1:]])
        said.append(
            f"{money(first.amount)} at {clock(first.time)} and again at {later}, "
            f"{money(totals[places[-1]][1])} in all for one intent"
        )
    spared = sum(event.kind == "replayed" for event in trace)
    record = f"; it answers {_times(spared)} from its record and moves nothing" if spared else ""
    once = " once" if len(said) == 1 and len(ours) == 1 else ""
    return f"The provider pays{once}: {'; for another intent '.join(said)}{record}.{without_us}"


def _ended(trace: Sequence[Event]) -> str:
    told = [event for event in trace if event.kind == "told"]
    tasks = sum(event.kind == "task" for event in trace)
    human = f" {tasks} question{'s wait' if tasks > 1 else ' waits'} for a human." if tasks else ""
    if not told:
        return f"The customer hears nothing by {clock(trace[-1].time)}.{human}"
    last = told[-1]
    word = (
        f"the last word to the customer, at {clock(last.time)}, is {quoted(last.text or last.what)}"
    )
    return sentence(word) + human
