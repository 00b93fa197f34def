"""A person's consent, before more money moves than an agent may move alone.

    pending ──> awaiting_approval ──> pending (approved) ──> processing ──> …
                      └──> failed (rejected, expired, or the order has changed)

A consent covers exactly what the person saw: the tool, its arguments, the tenant, and the
order as it was then. It is given once, used once, and silence is a no. It is looked at again
immediately before the money is asked for, because time has passed since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from simulator.service.actions import action_asks_consent, perform, state_of
from simulator.service.audit import Notes
from simulator.service.balance import TOO_MUCH, order_of
from simulator.service.checks import fits_its_types, needs, needs_seconds
from simulator.service.conclusion import fail
from simulator.service.keys import digest
from simulator.service.operations import REFUND, Operation, move
from simulator.service.outbox import LOAD, Outbox, enqueue, promise
from simulator.service.schemas import EXPONENTS, Session

if TYPE_CHECKING:
    from simulator.service.design import Design
    from simulator.service.runtime import Transaction

__all__ = [
    "Approval",
    "Decided",
    "Decision",
    "ModelFlag",
    "NoApproval",
    "act",
    "ask",
    "decide",
    "expire",
    "objection",
    "permission",
]

INSERT = """
    INSERT INTO approvals (id, operation_id, digest, requested_by, status, expires_at)
    VALUES (:id, :operation_id, :digest, :requested_by, 'open', :expires_at)
"""
FIND = """
    SELECT a.operation_id, a.digest, a.requested_by, a.status, a.expires_at, a.decided_by
    FROM approvals a JOIN tool_operations o ON o.id = a.operation_id
    WHERE a.id = :id
"""
OF_OPERATION = """
    SELECT id, digest, status, expires_at, used_at FROM approvals
    WHERE operation_id = :operation_id
"""
CLOSE = """
    UPDATE approvals SET status = :status, decided_by = :decided_by, decided_at = :now
    WHERE id = :id AND status = 'open'
"""
USE = "UPDATE approvals SET used_at = :now WHERE id = :id AND used_at IS NULL"
EVER_APPROVED = """
    SELECT 1 FROM approvals a JOIN tool_operations o ON o.id = a.operation_id
    WHERE a.requested_by = :requested_by AND a.status = 'approved' AND o.action_type = :action
    LIMIT 1
"""


def permission(action: str) -> str:
    """What a session has to allow for a person to decide about such an operation."""
    return f"{action}:approve"


def exceeds(operation: Operation, above: int) -> bool:
    """Whether the amount is more than `above` whole units of its currency."""
    return bool(operation.amount > above * 10 ** EXPONENTS[operation.currency])


ABOVE = "whole units of a currency, 0 or more"


@dataclass(frozen=True, slots=True)
class NoApproval:
    """Asks nobody, and looks at nothing again."""

    asks: ClassVar[bool] = False
    revalidate: ClassVar[bool] = False

    def needed(self, operation: Operation, arguments: Mapping[str, Any]) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class ModelFlag:
    """Takes `confirm: true` in the tool call for a person's consent: the model can write it too.

    Case B22. Without the flag the call is refused, and says which flag is missing.

    Attributes:
        above: whole units of the currency that may be refunded without it.
    """

    above: int = 5_000
    asks: ClassVar[bool] = False
    revalidate: ClassVar[bool] = False

    def __post_init__(self) -> None:
        fits_its_types(self)
        needs(self, "above", self.above >= 0, ABOVE)

    def needed(self, operation: Operation, arguments: Mapping[str, Any]) -> bool:
        return exceeds(operation, self.above) and arguments.get("confirm") is not True


@dataclass(frozen=True, slots=True)
class Approval:
    """Asks a person, and holds the operation until the answer: a large refund, the cancellation
    of several orders, the deletion of a profile.

    Attributes:
        above: whole units of the currency that may be refunded without asking.
        bind: what a consent covers: a "digest" of the exact request and the order's state, or
            the "tool" by its name, for ever (case B41).
        lifetime: seconds after which a question that nobody answered is closed.
        when_expired: what that means: "failed", or "approved" (case B24).
        revalidate: whether it is looked at again, at the decision and immediately before the
            first send: that the order is as the person saw it; and of a small refund, for
            which nobody was asked, that the balance still covers it.
    """

    above: int = 5_000
    bind: str = "digest"
    lifetime: float = 24 * 3600.0
    when_expired: str = "failed"
    revalidate: bool = True
    asks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        fits_its_types(self)
        needs(self, "above", self.above >= 0, ABOVE)
        for name, allowed in (
            ("bind", ("digest", "tool")),
            ("when_expired", ("failed", "approved")),
        ):
            if (value := getattr(self, name)) not in allowed:
                raise ValueError(
                    f"Approval({name}={value!r}): say {allowed[0]!r} or {allowed[1]!r}."
                )
        needs_seconds(self, "lifetime")

    def needed(self, operation: Operation, arguments: Mapping[str, Any]) -> bool:
        if operation.action != REFUND:
            return action_asks_consent(operation.action, operation.arguments)
        return exceeds(operation, self.above)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person answers.

    Attributes:
        approval_id: which question.
        approve: yes or no.
        digest: of what the person's screen showed.
    """

    approval_id: str
    approve: bool
    digest: str


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of a decision: "approved", "rejected", "expired" or "changed" (the question is
    closed now), "closed" (it was before, and stays as it was), "denied" or "unknown".

    Attributes:
        operation: what may go on, if this decision made it so.
    """

    word: str
    operation: Operation | None = None

    def __str__(self) -> str:
        return self.word


def digest_of(operation: Operation, state: str | int) -> str:
    """What a consent covers, from what will be done and not from what was once noted of it.

    `state` is that of what is changed: the version of the order, for a refund.
    """
    return digest(
        operation.action,
        operation.tenant_id,
        operation.order_id,
        operation.amount,
        operation.currency,
        operation.arguments,
        state,
    )


def present(tx: Transaction, operation: Operation) -> str:
    """What a consent would cover now."""
    return digest_of(operation, state_of(tx, operation))


def ask(tx: Transaction, d: Design, notes: Notes, operation: Operation) -> bool:
    """Puts the question, and promises that it ends. False if no answer is needed any more."""
    approval = d.approval
    assert isinstance(approval, Approval)
    if approval.bind == "tool":
        which = {"requested_by": operation.user_id, "action": operation.action}
        if tx.execute(EVER_APPROVED, which).fetchone() is not None:
            return False
    tx.execute(
        INSERT,
        {
            "id": f"approval-{operation.id}",
            "operation_id": operation.id,
            "digest": present(tx, operation),
            "requested_by": operation.user_id,
            "expires_at": tx.time(approval.lifetime),
        },
    )
    move(tx, operation.id, "pending", "awaiting_approval")
    notes.add(operation, "pending->awaiting_approval")
    if isinstance(d.dispatch, Outbox):
        enqueue(tx, operation.id, "expire", approval.lifetime)
    return True


def decide(
    tx: Transaction, d: Design, later: list[tuple[Any, ...]], decision: Decision, session: Session
) -> Decided:
    """Takes a person's answer: the first one counts, and only in time."""
    approval = d.approval
    notes = Notes(tx, d, later)
    found = tx.execute(FIND, {"id": decision.approval_id}).fetchone()
    if found is None or not isinstance(approval, Approval):
        return Decided("unknown")
    operation_id, asked, requested_by, status, expires_at, decided_by = found
    operation = _load(tx, operation_id)
    if (
        permission(operation.action) not in session.permissions
        or session.tenant_id != operation.tenant_id
        or session.user_id == requested_by
    ):
        notes.add(operation, "denied", "this person may not decide")
        return Decided("denied")
    wanted = "approved" if decision.approve else "rejected"
    if status != "open":
        if decided_by == session.user_id and status in (wanted, "changed"):
            return Decided(status)  # the same answer again: its first receipt was lost
        notes.add(operation, "late decision", f"{wanted}, after it was {status}")
        return Decided("closed")
    if expires_at <= tx.time():
        notes.add(operation, "late decision", f"{wanted}, after it had expired")
        expire(tx, d, notes, operation)
        goes_on = approval.when_expired == "approved"
        return Decided("expired", operation if goes_on else None)
    if wanted == "approved" and approval.revalidate:
        as_seen = asked == decision.digest == present(tx, operation)
        wanted = wanted if as_seen else "changed"
    _close(tx, d, notes, operation, decision.approval_id, wanted, session.user_id)
    return Decided(wanted, operation if wanted == "approved" else None)


REASONS = {
    "rejected": "a manager rejected it.",
    "expired": "nobody approved it in time.",
    "changed": "the order has changed since it was asked for.",
}


def _close(
    tx: Transaction,
    d: Design,
    notes: Notes,
    operation: Operation,
    approval_id: str,
    status: str,
    person: str | None,
) -> None:
    values = {"id": approval_id, "status": status, "decided_by": person, "now": tx.time()}
    tx.execute(CLOSE, values)
    if status == "approved":
        move(tx, operation.id, "awaiting_approval", "pending")
        notes.add(operation, "awaiting_approval->pending", f"approved by {person or 'nobody'}")
        promise(tx, d, notes, operation)
    else:
        notes.add(operation, "decision", f"{status} by {person or 'nobody'}")
        fail(tx, d, notes, operation, "awaiting_approval", REASONS[status])


def expire(tx: Transaction, d: Design, notes: Notes, operation: Operation) -> None:
    """Closes a question that nobody has answered in time."""
    approval = d.approval
    assert isinstance(approval, Approval)
    found = tx.execute(OF_OPERATION, {"operation_id": operation.id}).fetchone()
    if found is None or found[2] != "open":
        return
    status = "approved" if approval.when_expired == "approved" else "expired"
    _close(tx, d, notes, operation, found[0], status, None)


def objection(tx: Transaction, d: Design, operation: Operation) -> str | None:
    """Why this must not be sent for the first time, now; None if nothing speaks against it.

    A consent that is good is used up.
    """
    if not d.approval.revalidate:
        return None
    needed = d.approval.needed(operation, {})
    if operation.action == REFUND:
        order = order_of(tx, operation.tenant_id, operation.order_id)
        if order is None or not d.owns(order, operation):
            return REASONS["changed"]
        if not needed and not d.balance.holds(order, operation):
            return TOO_MUCH
        if needed and order.version != operation.order_version:
            return REASONS["changed"]
    if not needed:
        return None
    found = tx.execute(OF_OPERATION, {"operation_id": operation.id}).fetchone()
    if found is None:
        # Only where a consent once given covers everything there is none of its own.
        return None if getattr(d.approval, "bind", "") == "tool" else "nobody approved it."
    approval_id, asked, status, _, _ = found
    if status != "approved" or asked != present(tx, operation):
        return REASONS["changed"]
    used = tx.execute(USE, {"id": approval_id, "now": tx.time()})
    return None if used.rowcount == 1 else "the approval was used already."


def _load(tx: Transaction, operation_id: str) -> Operation:
    *fields, _, _ = tx.execute(LOAD, {"operation_id": operation_id}).fetchone()
    return Operation(*fields)


def act(tx: Transaction, d: Design, later: list[tuple[Any, ...]], operation: Operation) -> None:
    """Carries out what moves no money and may go on now, unless something speaks against it."""
    notes = Notes(tx, d, later)
    reason = objection(tx, d, operation)
    if reason is not None:
        fail(tx, d, notes, operation, "pending", reason)
    else:
        perform(tx, d, notes, operation)
