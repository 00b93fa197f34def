"""What the caller is told, and with which right.

An answer policy is called with what `begin` found ("new", "known", "refused", "conflict",
"denied", "invalid") and the operation's row, if any, and returns an `Answer`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from simulator.service.checks import fits_its_types
from simulator.service.operations import REFUND, Operation, Row

__all__ = [
    "CONFLICT",
    "FORBIDDEN",
    "KINDS",
    "Answer",
    "FromRecord",
    "Optimistic",
    "answer_about",
    "from_row",
]

KINDS = frozenset({"done", "refused", "verifying", "conflict", "invalid", "info"})


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    Attributes:
        kind: "done" and "refused" are final; "verifying" promises that a final one follows;
            "conflict" and "invalid" speak of this call only, not of the refund: a corrected
            call may follow; "info" is what a read found. A refusal with the code "forbidden"
            speaks of what may be touched, and of no refund either.
        text: words for the customer.
        version: how far the record had come (1 open, 2 final). The customer's app never shows
            an older statement about a refund after a newer one, so an answer that was under
            way for long cannot take back the follow-up that overtook it. None: always shown.
        retry_after: seconds after which it is worth asking again; None: never.
        code: for programs: "forbidden", "awaiting_approval", or what is wrong with an invalid
            call; see `InvalidRequest`.
        field: of an invalid call, which argument is wrong.
    """

    kind: str
    text: str
    version: int | None = None
    retry_after: float | None = None
    field: str | None = None
    code: str | None = None


DONE = Answer("done", "Your refund has been paid.", version=2)
VERIFYING = Answer(
    "verifying", "Your refund is being verified. We will tell you.", version=1, retry_after=30.0
)
WAITING = Answer(
    "verifying",
    "Your refund waits for a manager's approval. We will tell you.",
    version=1,
    retry_after=3600.0,
    code="awaiting_approval",
)
CONFLICT = Answer(
    "conflict", "409 Conflict: Payload Mismatch. This request was made with other details."
)


def _refused(reason: str, code: str | None = None) -> Answer:
    return Answer("refused", f"Your refund was refused: {reason}", version=2, code=code)


FORBIDDEN = _refused("403 Forbidden.", "forbidden")


def from_row(row: Row | None) -> Answer:
    """What the record allows one to say."""
    if row is not None and row.status == "awaiting_approval":
        return WAITING
    if row is None or not row.final:
        return VERIFYING
    if row.status == "succeeded":
        return DONE
    return _refused(str((row.result or {}).get("detail", "it failed.")))


def answer_about(operation: Operation, row: Row | None) -> Answer:
    """The same of any operation, in its own words."""
    if operation.action == REFUND:
        return from_row(row)
    if row is not None and row.status == "awaiting_approval":
        return replace(WAITING, text="It waits for a manager's approval. We will tell you.")
    if row is None or not row.final:
        return replace(VERIFYING, text="It is being done. We will tell you.")
    detail = str((row.result or {}).get("detail", ""))
    if row.status == "succeeded":
        return Answer("done", f"Done: {detail}", version=2)
    return Answer("refused", f"It was refused: {detail}", version=2)


def _without_record(begun: str, row: Row | None) -> Answer | None:
    if begun == "conflict":
        return CONFLICT
    if begun == "invalid" and row is not None and row.result is not None:
        said = row.result
        text = f"422 Unprocessable: {said.get('detail', 'it cannot be read.')}"
        return Answer("invalid", text, field=said.get("field"), code=said.get("code"))
    if begun == "denied":
        return FORBIDDEN
    if begun == "refused" and row is None:
        return _refused("it exceeds the refundable balance of the order.")
    return None


@dataclass(frozen=True, slots=True)
class Optimistic:
    """Says what one hopes: what was seen before is done, and what is not known is done too."""

    follow_up: ClassVar[bool] = False

    def __call__(self, begun: str, row: Row | None) -> Answer:
        answer = _without_record(begun, row)
        if answer is not None:
            return answer
        return from_row(row) if row is not None and row.status == "failed" else DONE


@dataclass(frozen=True, slots=True)
class FromRecord:
    """Says what the record says.

    Attributes:
        follow_up: whether a message follows when the outcome becomes final.
    """

    follow_up: bool = True

    def __post_init__(self) -> None:
        fits_its_types(self)

    def __call__(self, begun: str, row: Row | None) -> Answer:
        return _without_record(begun, row) or from_row(row)
