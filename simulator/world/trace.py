"""What happened in a history, one event after the other.

The trace is the only witness: the printed history, the space-time diagram and the
lessons read it, and nothing else. Events are plain tuples, so that two histories
are equal exactly when their traces are.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["KINDS", "Event"]

KINDS: dict[str, str] = {
    "submit": "the customer asks the agent (process customer, peer agent, text what was said)",
    "request": "a message leaves `process` for `peer`; `what` names the call, `message` numbers it",
    "response": "an answer leaves `process` for `peer`; `what` names the call it answers",
    "arrive": "message `message` reaches `process` from `peer`",
    "lost": "message `message`, on its way to `process` from `peer`, will never arrive",
    "timeout": "`process` stopped waiting for the answer to `what`",
    "reset": "`process` learned that the connection of `what` broke",
    "commit": "transaction `what` of `process` was committed; peer is database",
    "rollback": "transaction `what` of `process` was rolled back or refused; peer is database",
    "ack_lost": "`process` will not learn how its transaction `what` ended",
    "effect": "the provider moved money; `amount` in minor units, `text` names the intent; if "
    "nobody asked us for it, peer says why, and `text` names the order",
    "replayed": "the provider answered from its key record, and moved nothing",
    "declined": "the provider refused, definitely; `text` says why",
    "limited": "the provider had too many requests; `text` says when to come back",
    "crash": "`process` died as under SIGKILL",
    "restart": "`process` began a new life",
    "pause": "`process` stopped, with all it knows",
    "resume": "`process` went on, with all it knew",
    "down": "`process` (provider or database) went down",
    "up": "`process` (provider or database) came back",
    "state": "an operation changed its state; `what` is 'pending->processing'",
    "task": "a question for a human was opened; `text` says which",
    "told": "the customer was told; `what` is the statement's kind, `text` its words",
    "fault": "fault `text` struck step `what` of `process`",
    "error": "`process` failed with an exception; `text` is its message",
    "note": "anything else worth reading",
}


class Event(NamedTuple):
    """One event.

    Attributes:
        time: microseconds since the history began.
        process: whose lane it belongs to: customer, agent, approver, back office, backend-1,
            backend-2, worker-1, worker-2, database or provider.
        kind: a key of `KINDS`.
        what: the name of the call, transaction or statement.
        peer: the other end of a message.
        message: number that ties `request` or `response` to its `arrive` or `lost`; 0 if none.
        amount: money, in minor units of the currency; 0 if none.
        text: words for a person.
    """

    time: int
    process: str
    kind: str
    what: str
    peer: str = ""
    message: int = 0
    amount: int = 0
    text: str = ""
