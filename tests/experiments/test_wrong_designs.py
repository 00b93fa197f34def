"""Wrong designs, each with the smallest search that finds it: no file of the service is unwatched.

A simulator that certifies a wrong design is worse than none. Every row below is SAFE with one
thing wrong: a policy, or one function or statement of the service. The row names the scenario
and the kinds of fault with which `explore` finds it (one fault; none where no kind is named), and
an invariant that breaks. SAFE itself is clean under exactly the same exploration, so that it is
the one thing that was found.

What no history can show, and why:

* Two lines of defence that stand in for each other are shown with both down: the digest of a
  consent and the order's version (either of them alone finds every change that a setting holds);
  the "used" mark of a consent and the state machine, which lets an operation be sent for the
  first time once (the mark alone is tested in test_approval.py); a report that comes after the
  end, and the table of transitions, which knows no way out of it (test_webhooks.py).
* An approver's session is of the question's own tenant: another shop's manager never gets to
  see the question (test_approval.py).
* Ids of tenants are UUIDs and ids of intents are unique in a world, so no other tenant's report
  can name our intent, and `Ambiguous` keys have no colon to stumble over (test_webhooks.py,
  test_keys.py). An `ObjectKey` needs a second action at the provider, and there is one.
* A report of an operation that we do not have (`on_unknown=200`), or of another sum than we
  asked for, cannot come: the row is committed before the request is sent, and the provider
  pays what it is asked (test_webhooks.py).
* An answer's kind is judged, its wording is not: a true refusal for a wrong reason is no false
  answer (test_answers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import simulator.service
from simulator import Design, Scenario, designs, explore
from simulator.service import (
    actions,
    answers,
    approval,
    authorization,
    balance,
    cancellation,
    conclusion,
    keys,
    once,
    operations,
    outbox,
    payment,
    pipeline,
    profiles,
    silence,
    tools,
    webhooks,
    worker,
)
from simulator.service.answers import FromRecord, Optimistic
from simulator.service.approval import Approval, Decision, ModelFlag, NoApproval
from simulator.service.audit import AuditAfterwards, Notes
from simulator.service.authorization import AnyOrder, FromArguments
from simulator.service.balance import Reserved
from simulator.service.keys import (
    ArgumentsHash,
    DateStamped,
    ModelKey,
    ModelKeyPerAttempt,
    NoKey,
    OrderAmountKey,
    OrderKey,
    PerAttempt,
    ProcessKey,
    RewrittenKey,
    RowId,
    TimeStamped,
    ToolCallId,
    Truncated,
)
from simulator.service.operations import DurableRecord, NoRecord, Operation
from simulator.service.outbox import Inline, Outbox
from simulator.service.payment import Outcome, RefundOrder
from simulator.service.recovery import AskOnly, AskThenSend, Blind, NoRecovery, SameKey
from simulator.service.schemas import FreeDict, RefundRequest, Session, ToolCall, parse_refund
from simulator.service.webhooks import BookByReference, ByOperation, IgnoreWebhooks

SAFE = designs.SAFE


@dataclass(frozen=True)
class Wrong:
    """A wrong design, and how it is found.

    Attributes:
        where: the file of the service that is wrong.
        what: what is wrong with it.
        scenario: the name of a ready scenario.
        breaks: an invariant.
        kinds: kinds of fault to try one of; none: no fault is needed.
        design: SAFE with another policy.
        patches: (module, name, value) of what is replaced in the service.
    """

    where: str
    what: str
    scenario: str
    breaks: str
    kinds: tuple[str, ...] = ()
    design: Design = SAFE
    patches: tuple[tuple[ModuleType | type, str, Any], ...] = ()

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def sql(module: ModuleType, name: str, old: str, new: str) -> tuple[ModuleType, str, str]:
    """A statement of the service with one part of it replaced."""
    statement = getattr(module, name)
    assert statement.count(old) >= 1, f"{module.__name__}.{name} has no {old!r} any more"
    return module, name, statement.replace(old, new)


# What is wrong, where it takes more than a word to say it.


def a_tenth(call: ToolCall, session: Session) -> RefundRequest:
    request = parse_refund(call, session)
    return request.model_copy(update={"amount": request.amount / 10})


def drops_unknown_fields(call: ToolCall, session: Session) -> RefundRequest:
    known = {name: call.arguments[name] for name in ("order_id", "amount")}
    return parse_refund(replace(call, arguments=known), session)


class NoReleaseAfterDecline(Reserved):
    def settle(self, tx: Any, operation: Operation, before: str, status: str) -> None:
        if status != "failed":
            Reserved.settle(self, tx, operation, before, status)


class ReleasesTwice(Reserved):
    def settle(self, tx: Any, operation: Operation, before: str, status: str) -> None:
        for _ in range(2):
            Reserved.settle(self, tx, operation, before, status)


class ReleasesTheUnknown(Reserved):
    """Takes silence for a no as far as the balance goes; books the payment when it shows."""

    def settle(self, tx: Any, operation: Operation, before: str, status: str) -> None:
        if status == "outcome_unknown" and before == "processing":
            Reserved.settle(self, tx, operation, before, "failed")
        elif before == "processing" or status == "succeeded":
            Reserved.settle(self, tx, operation, before, status)


class TrustsTheDecline(SameKey):
    marks_unknown = False  # type: ignore[misc]


class TakesCreatedForNews(ByOperation):
    def _of_ours(self, tx: Any, d: Design, notes: Notes, report: webhooks.Report) -> int:
        if report.kind != "created":
            return ByOperation._of_ours(self, tx, d, notes, report)
        which = {"tenant_id": report.tenant_id, "intent_id": report.intent_id}
        found = tx.execute(webhooks.FIND, which).fetchone()
        values = {"id": found[0], "after": "processing", "result": None, "now": tx.time()}
        tx.execute(operations.MOVE_UNCHECKED, values)
        return 200


class BooksTwice(ByOperation):
    """Adds what is reported to the books, whether our own answer has done so or not."""

    def _of_ours(self, tx: Any, d: Design, notes: Notes, report: webhooks.Report) -> int:
        if report.kind == "succeeded":
            which = {"tenant_id": report.tenant_id, "order_id": report.order_id}
            tx.execute(balance.BOOK, {**which, "amount": report.amount})
        return ByOperation._of_ours(self, tx, d, notes, report)


HONEST_DECIDE = approval.decide
HONEST_ASK = payment.ask
HONEST_ENTRY = Notes.entry
HONEST_FROM_ROW = answers.from_row
HONEST_MARK_TOLD = worker.mark_told


def no_is_yes(tx: Any, d: Any, later: Any, decision: Decision, session: Session) -> Any:
    return HONEST_DECIDE(tx, d, later, replace(decision, approve=True), session)


def whoever_answers(tx: Any, d: Any, later: Any, decision: Decision, session: Session) -> Any:
    everything = session.permissions | {"refund:approve"}
    return HONEST_DECIDE(tx, d, later, decision, replace(session, permissions=everything))


def whatever_it_was(tx: Any, operation_id: str, before: str, after: str, *_: Any) -> Any:
    values = {"id": operation_id, "after": after, "result": None, "now": tx.time()}
    return tx.execute(operations.MOVE_UNCHECKED, values)


def told_anyhow(tx: Any, d: Design, later: Any, job: outbox.Job, delivered: bool) -> None:
    HONEST_MARK_TOLD(tx, d, later, job, True)


def not_found_is_proof(rt: Any, operation: Operation) -> Any:
    outcome = yield from HONEST_ASK(rt, operation)
    return replace(outcome, status="failed") if outcome.status == "not_found" else outcome


def only_the_first(tx: Any, tenant_id: str, order_ids: Sequence[str]) -> str | None:
    cancellation.cancel_order(tx, tenant_id, order_ids[0])
    return None


def some_with_no_word(tx: Any, tenant_id: str, order_ids: Sequence[str]) -> str | None:
    cancellation.cancel_order(tx, tenant_id, order_ids[0])
    return "the second one could not be cancelled."


def in_cents_of_cents(
    intent_id: str, order_id: str, amount: int, currency: str, key: str | None
) -> RefundOrder:
    return RefundOrder(intent_id, order_id, amount * 100, currency, key)


def accepted_is_no(d: Design, answer: Any) -> Outcome:
    return Outcome("succeeded" if isinstance(answer, str) else "failed", str(answer))


def silently(event: str) -> Callable[..., None]:
    def entry(notes: Notes, intent_id: str, operation: str | None, what: str, detail: str) -> None:
        if what != event:
            HONEST_ENTRY(notes, intent_id, operation, what, detail)

    return entry


def anyhow(row: Any) -> answers.Answer:
    final = row is not None and row.final
    return HONEST_FROM_ROW(row) if final else answers.DONE


LOOKS_ONCE = SAFE.but(approval=Approval(revalidate=False))
"""The balance is looked at twice, when it is reserved and before the money is asked for: one
mistake alone shows only where the second look is missing."""


def no_after_all(row: Any) -> answers.Answer:
    final = row is not None and row.final
    return HONEST_FROM_ROW(row) if final else answers.FORBIDDEN


def no_balance_left(begun: str, row: Any) -> answers.Answer:
    """Trap 14: what was paid is asked for again, and there is no balance for it any more."""
    return FromRecord()("refused" if begun == "known" else begun, None if begun == "known" else row)


def nothing(*_: Any, **__: Any) -> None:
    return None


def yes(*_: Any, **__: Any) -> bool:
    return True


def no(*_: Any, **__: Any) -> bool:
    return False


INLINE = SAFE.but(
    dispatch=Inline(), recovery=NoRecovery(), answer=FromRecord(follow_up=False), key=NoKey()
)
SILENT = ("lose_response",)
CRASH = ("crash",)
DOWN = ("provider_down",)

# Positions: where, what, scenario, breaks, kinds; then what is changed.
TABLE: list[Wrong] = [
    # --- schemas.py, money.py -----------------------------------------------------------------
    Wrong(
        "schemas",
        "the amount is changed",
        "one_refund",
        "unauthorized_refund",
        design=SAFE.but(schema=a_tenth),
    ),
    Wrong(
        "schemas",
        "unknown fields are dropped, and identity reads one of them",
        "injected_arguments",
        "unauthorized_refund",
        design=SAFE.but(schema=drops_unknown_fields, identity=FromArguments()),
    ),
    Wrong(
        "schemas",
        "a float's cents are cut off",
        "uneven_amounts",
        "unauthorized_refund",
        design=SAFE.but(schema=FreeDict(cents="truncate")),
    ),
    Wrong(
        "schemas",
        "every currency has a hundred parts",
        "uneven_amounts",
        "unauthorized_refund",
        design=SAFE.but(schema=FreeDict(scale="hundred")),
    ),
    Wrong(
        "money",
        "units are taken for hundredths",
        "uneven_amounts",
        "unauthorized_refund",
        patches=((pipeline, "plain_units", lambda amount, currency: int(amount * 100)),),
    ),
    # --- authorization.py, tools.py -----------------------------------------------------------
    Wrong(
        "authorization",
        "the tenant comes from the call",
        "injected_arguments",
        "unauthorized_refund",
        design=SAFE.but(identity=FromArguments(), schema=FreeDict()),
    ),
    Wrong(
        "authorization",
        "an empty set of permissions allows all",
        "without_permission",
        "unauthorized_refund",
        design=SAFE.but(permission=lambda s: not s.permissions or "refund:create" in s.permissions),
    ),
    Wrong(
        "authorization",
        "any permission of refunds will do",
        "without_permission",
        "unauthorized_refund",
        design=SAFE.but(permission=lambda s: any(p.startswith("refund:") for p in s.permissions)),
    ),
    Wrong(
        "authorization",
        "another permission will do",
        "without_permission",
        "unauthorized_refund",
        design=SAFE.but(permission=authorization.RefundPermission("order:cancel")),
    ),
    Wrong(
        "authorization",
        "every order of the shop is everybody's",
        "injected_arguments",
        "unauthorized_refund",
        design=SAFE.but(ownership=AnyOrder()),
    ),
    Wrong(
        "authorization",
        "the order may be another customer's, for other tools too",
        "strangers_goods",
        "unauthorized_refund",
        design=SAFE.but(ownership=AnyOrder()),
    ),
    Wrong(
        "tools",
        "cancelling needs no permission",
        "strangers_goods",
        "unauthorized_refund",
        patches=(
            (
                tools,
                "TOOLS",
                {
                    **tools.TOOLS,
                    "cancel_orders": replace(tools.TOOLS["cancel_orders"], permission="order:read"),
                },
            ),
        ),
    ),
    Wrong(
        "tools",
        "deleting needs no permission",
        "strangers_goods",
        "unauthorized_refund",
        patches=(
            (
                tools,
                "TOOLS",
                {
                    **tools.TOOLS,
                    "delete_profile": replace(
                        tools.TOOLS["delete_profile"], permission="order:read"
                    ),
                },
            ),
        ),
    ),
    Wrong(
        "tools",
        "done is said before the deed",
        "cancelled_orders",
        "false_answer",
        patches=((tools, "answer_about", lambda operation, row: answers.Answer("done", "Done.")),),
    ),
    # --- keys.py ------------------------------------------------------------------------------
    *(
        Wrong("keys", type(key).__name__, scenario, breaks, kinds, SAFE.but(key=key))
        for key, scenario, breaks, kinds in (
            (NoKey(), "one_refund", "double_refund", SILENT),
            (PerAttempt(), "one_refund", "double_refund", SILENT),
            (TimeStamped(), "one_refund", "double_refund", SILENT),
            (RewrittenKey(), "one_refund", "double_refund", SILENT),
            (DateStamped(day_begins=1.0), "one_refund", "double_refund", SILENT),
            (ProcessKey(), "one_refund", "double_refund", CRASH),
            (ModelKey(), "new_thought", "double_refund", ()),
            (ModelKeyPerAttempt(), "new_thought", "double_refund", ()),
            (ToolCallId(), "new_thought", "double_refund", ()),
            (ArgumentsHash(), "new_thought", "double_refund", ()),
            (ModelKey(), "two_tenants_one_key", "lost_refund", ()),
            (OrderKey(), "two_equal_refunds", "lost_refund", ()),
            (OrderAmountKey(), "two_equal_refunds", "lost_refund", ()),
            (Truncated(length=7), "two_equal_refunds", "lost_refund", ()),
        )
    ),
    Wrong(
        "keys",
        "RowId, where an error path deletes the row",
        "resubmitted_elsewhere",
        "double_refund",
        SILENT,
        SAFE.but(key=RowId(), on_silence=silence.forgotten),
    ),
    # --- operations.py ------------------------------------------------------------------------
    Wrong(
        "operations",
        "payloads are not compared",
        "changed_payload",
        "conflict_ignored",
        design=SAFE.but(record=DurableRecord(fingerprint=False)),
    ),
    Wrong(
        "operations",
        "the fingerprint leaves the amount out",
        "changed_payload",
        "conflict_ignored",
        patches=((pipeline, "fingerprint", lambda *parts: keys.fingerprint(*parts[:3], 0, "USD")),),
    ),
    Wrong(
        "operations",
        "a duplicate sets the row back",
        "resubmitted_elsewhere",
        "illegal_transition",
        design=SAFE.but(record=DurableRecord(claim="upsert")),
    ),
    Wrong(
        "operations",
        "looked up before it is written",
        "double_click",
        "double_refund",
        ("delay_request", "pause"),
        INLINE.but(record=DurableRecord(claim="look up"), balance=balance.NoBalance()),
    ),
    Wrong(
        "operations",
        "forgotten after a day",
        "late_redelivery",
        "double_refund",
        design=SAFE.but(record=DurableRecord(keep=24 * 3600.0)),
    ),
    Wrong(
        "operations",
        "kept in memory",
        "double_click",
        "double_refund",
        design=designs.ablations()["durable record"].but(key=NoKey()),
    ),
    Wrong(
        "operations",
        "not kept at all",
        "new_thought",
        "double_refund",
        design=designs.ablations()["durable record"].but(record=NoRecord(), key=NoKey()),
    ),
    # --- balance.py ---------------------------------------------------------------------------
    Wrong(
        "balance",
        "not released after a decline",
        "declined",
        "books_differ",
        design=SAFE.but(balance=NoReleaseAfterDecline()),
    ),
    Wrong(
        "balance",
        "released twice",
        "one_refund",
        "books_differ",
        design=SAFE.but(balance=ReleasesTwice()),
    ),
    Wrong(
        "balance",
        "what is pending is ignored",
        "two_partial_refunds",
        "over_refund",
        ("delay_request", "provider_down"),
        design=LOOKS_ONCE,
        patches=(sql(balance, "RESERVE", "- pending ", ""),),
    ),
    Wrong(
        "balance",
        "what is unknown is free again",
        "two_partial_refunds",
        "over_refund",
        SILENT + DOWN,
        SAFE.but(balance=ReleasesTheUnknown()),
    ),
    Wrong(
        "balance",
        "what the bank took is ignored",
        "charged_back_before",
        "over_refund",
        design=LOOKS_ONCE,
        patches=(sql(balance, "RESERVE", "- disputed ", ""),),
    ),
    Wrong(
        "balance",
        "what was refunded is ignored",
        "refunded_by_hand",
        "over_refund",
        design=LOOKS_ONCE,
        patches=(sql(balance, "RESERVE", "- refunded ", ""),),
    ),
    Wrong(
        "balance",
        "what was paid is not booked",
        "one_refund",
        "books_differ",
        patches=(sql(balance, "RELEASE", ", refunded = refunded + :paid", ""),),
    ),
    # --- approval.py --------------------------------------------------------------------------
    Wrong(
        "approval",
        "nobody is asked",
        "approval_between",
        "unapproved_refund",
        design=SAFE.but(approval=NoApproval()),
    ),
    Wrong(
        "approval",
        "the model's flag is a consent",
        "flag_in_the_call",
        "unapproved_refund",
        design=SAFE.but(approval=ModelFlag(), schema=drops_unknown_fields),
    ),
    Wrong(
        "approval",
        "a consent is to the tool, for ever",
        "approval_between",
        "unapproved_refund",
        design=SAFE.but(approval=Approval(bind="tool")),
    ),
    Wrong(
        "approval",
        "silence is a yes",
        "approval_between",
        "unapproved_refund",
        design=SAFE.but(approval=Approval(when_expired="approved")),
    ),
    Wrong(
        "approval",
        "a no is a yes",
        "second_thoughts",
        "unapproved_refund",
        patches=((approval, "decide", no_is_yes),),
    ),
    Wrong(
        "approval",
        "the last answer wins",
        "second_thoughts",
        "illegal_transition",
        patches=(
            sql(approval, "FIND", "a.status", "'open'"),
            sql(approval, "CLOSE", "AND status = 'open'", ""),
            (approval, "move", whatever_it_was),
        ),
    ),
    Wrong(
        "approval",
        "the last answer wins, and nothing comes of it",
        "second_thoughts",
        "lost_refund",
        patches=(sql(approval, "FIND", "a.status", "'open'"),),
    ),
    Wrong(
        "approval",
        "whoever asks may say yes",
        "self_approval",
        "unapproved_refund",
        patches=(sql(approval, "FIND", "a.requested_by", "''"),),
    ),
    Wrong(
        "approval",
        "the right to say yes is not looked at",
        "consent_without_right",
        "unapproved_refund",
        patches=((approval, "decide", whoever_answers),),
    ),
    Wrong(
        "approval",
        "neither digest nor version is compared",
        "cancelled_meanwhile",
        "unapproved_refund",
        design=SAFE.but(approval=Approval(revalidate=False)),
    ),
    Wrong(
        "approval",
        "not looked at again before the first send",
        "cancelled_after_consent",
        "over_refund",
        patches=((approval, "objection", nothing),),
    ),
    Wrong(
        "approval",
        "a question never ends",
        "approval_between",
        "stuck",
        patches=((approval, "enqueue", nothing),),
    ),
    Wrong(
        "approval",
        "a bulk cancellation needs nobody",
        "cancelled_orders",
        "unapproved_refund",
        patches=((approval, "action_asks_consent", no),),
    ),
    Wrong(
        "approval",
        "a deletion needs nobody",
        "strangers_goods",
        "unapproved_refund",
        patches=((approval, "action_asks_consent", no),),
    ),
    # --- cancellation.py, actions.py, profiles.py ---------------------------------------------
    Wrong(
        "cancellation",
        "refunds under way are not looked at",
        "cancelled_under_way",
        "over_refund",
        patches=((cancellation, "UNDER_WAY", "SELECT 0"),),
    ),
    Wrong(
        "cancellation",
        "goods come back twice",
        "cancelled_orders",
        "books_differ",
        patches=(sql(cancellation, "RESTOCK", "sku, quantity", "sku, 2 * quantity"),),
    ),
    Wrong(
        "cancellation",
        "goods do not come back",
        "cancelled_orders",
        "books_differ",
        patches=(sql(cancellation, "RESTOCK", "AND order_id = :order_id", "AND 1 = 0"),),
    ),
    Wrong(
        "cancellation",
        "goods are counted anew with every order",
        "cancelled_orders",
        "books_differ",
        patches=(sql(cancellation, "RESTOCK", "stock.on_hand + ", ""),),
    ),
    Wrong(
        "cancellation",
        "a cancelled order is cancelled again",
        "cancelled_before",
        "books_differ",
        patches=(
            (cancellation, "why_not", nothing),
            sql(cancellation, "CANCEL", "AND status = 'confirmed'", ""),
        ),
    ),
    Wrong(
        "cancellation",
        "half of the orders, and it is done",
        "cancelled_orders",
        "books_differ",
        patches=((actions, "cancel_orders", only_the_first),),
    ),
    Wrong(
        "cancellation",
        "half of the orders, and it is refused",
        "cancelled_orders",
        "books_differ",
        patches=((actions, "cancel_orders", some_with_no_word),),
    ),
    Wrong(
        "actions",
        "it is done, and nothing was",
        "cancelled_orders",
        "books_differ",
        patches=((actions, "cancel_orders", nothing),),
    ),
    Wrong(
        "profiles",
        "deleted while a refund is open",
        "deleted_profile",
        "books_differ",
        DOWN,
        patches=((profiles, "OPEN_REFUNDS", "SELECT 0"),),
    ),
    Wrong(
        "profiles",
        "all of the shop's are deleted",
        "strangers_goods",
        "unauthorized_refund",
        patches=(sql(profiles, "DELETE", " AND user_id = :user_id", ""),),
    ),
    Wrong(
        "profiles",
        "it is deleted in words only",
        "deleted_profile",
        "books_differ",
        patches=((actions, "delete_profile", nothing),),
    ),
    # --- outbox.py, worker.py -----------------------------------------------------------------
    Wrong(
        "outbox",
        "two find the same row",
        "one_refund",
        "double_refund",
        ("pause", "delay_request"),
        SAFE.but(dispatch=Outbox(atomic=False), key=NoKey()),
    ),
    Wrong(
        "outbox",
        "the token is not checked",
        "one_refund",
        "books_differ",
        ("pause",),
        SAFE.but(dispatch=Outbox(fence=False)),
    ),
    Wrong(
        "outbox",
        "rows that are done are claimed again",
        "one_refund",
        "stuck",
        patches=(
            sql(
                outbox,
                "RELEASE",
                "available_at = :available_at, done_at = :done_at",
                "available_at = COALESCE(:available_at, created_at)",
            ),
        ),
    ),
    Wrong(
        "outbox",
        "there is no dead letter",
        "poisoned_event",
        "stuck",
        design=SAFE.but(dispatch=Outbox(max_attempts=None)),
    ),
    Wrong(
        "outbox",
        "a lease never ends",
        "one_refund",
        "stuck",
        CRASH,
        SAFE.but(dispatch=Outbox(lease=None)),
    ),
    Wrong(
        "outbox",
        "a lease is shorter than the call",
        "one_refund",
        "double_refund",
        design=SAFE.but(dispatch=Outbox(lease=0.1), key=NoKey()),
    ),
    Wrong(
        "outbox",
        "published after the commit",
        "one_refund",
        "stuck",
        CRASH,
        designs.ablations()["outbox"],
    ),
    Wrong(
        "outbox",
        "published before anything is checked",
        "injected_arguments",
        "unauthorized_refund",
        design=designs.ablations()["outbox, published before"],
    ),
    Wrong(
        "tasks",
        "questions for a human are dropped",
        "poisoned_event",
        "stuck",
        patches=((worker, "open_task", nothing),),
    ),
    Wrong(
        "conclusion",
        "nobody is told how it ended",
        "second_thoughts",
        "untold",
        patches=((conclusion, "conclude", nothing),),
    ),
    Wrong(
        "pipeline",
        "the promise is forgotten",
        "one_refund",
        "stuck",
        patches=((pipeline, "promise", nothing),),
    ),
    Wrong(
        "worker",
        "what is too old is sent all the same",
        "one_refund",
        "double_refund",
        ("database_down",),
        patches=((worker, "_too_late", no),),
    ),
    Wrong(
        "worker",
        "a message that is sent is a message that was read",
        "second_thoughts",
        "untold",
        ("lose_request",),
        patches=((worker, "mark_told", told_anyhow),),
    ),
    Wrong(
        "once",
        "a commit that may have failed is not tried again",
        "asked_once",
        "lost_refund",
        ("lose_commit_ack",),
        patches=((once, "DATABASE_TRIES", 1),),
    ),
    # --- payment.py, silence.py ---------------------------------------------------------------
    Wrong(
        "payment",
        "a decline after silence is trusted",
        "keys_mean_nothing",
        "false_answer",
        SILENT,
        SAFE.but(recovery=TrustsTheDecline()),
    ),
    Wrong(
        "payment",
        "accepted is taken for failed",
        "accepted_then_paid",
        "false_answer",
        patches=((payment, "_taken", accepted_is_no),),
    ),
    Wrong(
        "payment",
        "the amount is sent in another unit",
        "one_refund",
        "unauthorized_refund",
        patches=((payment, "RefundOrder", in_cents_of_cents),),
    ),
    Wrong(
        "silence",
        "silence is a failure",
        "one_refund",
        "false_answer",
        SILENT,
        SAFE.but(on_silence=silence.failed),
    ),
    Wrong(
        "silence",
        "silence removes the row",
        "one_refund",
        "lost_refund",
        ("lose_request",),
        SAFE.but(on_silence=silence.forgotten),
    ),
    # --- recovery.py --------------------------------------------------------------------------
    Wrong(
        "recovery",
        "accepted is taken for paid",
        "returned_by_the_bank",
        "false_answer",
        design=SAFE.but(recovery=SameKey(waits_for_settlement=False)),
    ),
    Wrong(
        "recovery",
        "not found is proof, and it is sent anew",
        "one_refund",
        "double_refund",
        ("delay_request",),
        SAFE.but(recovery=AskThenSend()),
    ),
    Wrong(
        "recovery",
        "not found is proof, and it has failed",
        "one_refund",
        "false_answer",
        ("delay_request",),
        SAFE.but(recovery=AskOnly()),
        ((worker, "ask", not_found_is_proof),),
    ),
    Wrong(
        "recovery",
        "the horizon is beyond the key's life",
        "one_refund",
        "double_refund",
        ("database_down",),
        SAFE.but(recovery=SameKey(horizon=30 * 24 * 3600.0)),
    ),
    Wrong(
        "recovery",
        "an expired claim is free, for ever",
        "one_refund",
        "double_refund",
        ("database_down",),
        SAFE.but(recovery=Blind()),
    ),
    Wrong(
        "recovery",
        "nothing is ever resolved",
        "one_refund",
        "stuck",
        CRASH,
        SAFE.but(recovery=NoRecovery()),
    ),
    Wrong(
        "recovery",
        "a human is asked at once",
        "one_refund",
        "needless_task",
        ("lose_request",),
        SAFE.but(recovery=SameKey(horizon=0.5)),
    ),
    # --- answers.py ---------------------------------------------------------------------------
    Wrong(
        "answers",
        "what is hoped for is said",
        "one_refund",
        "false_answer",
        DOWN,
        SAFE.but(answer=Optimistic()),
    ),
    Wrong(
        "answers",
        "being verified is taken for done",
        "one_refund",
        "false_answer",
        DOWN,
        patches=((answers, "from_row", anyhow),),
    ),
    Wrong(
        "answers",
        "being verified is taken for refused",
        "one_refund",
        "false_answer",
        DOWN,
        patches=((answers, "from_row", no_after_all),),
    ),
    Wrong(
        "answers",
        "what was done is refused when it is asked for again",
        "resubmitted_elsewhere",
        "false_answer",
        design=SAFE.but(answer=no_balance_left),
    ),
    Wrong(
        "answers",
        "no word follows",
        "one_refund",
        "untold",
        DOWN,
        SAFE.but(answer=FromRecord(follow_up=False)),
    ),
    Wrong(
        "answers",
        "an old answer takes back a newer one",
        "paid_while_answering",
        "untold",
        ("delay_response",),
        patches=((answers, "VERIFYING", replace(answers.VERIFYING, version=None)),),
    ),
    # --- audit.py -----------------------------------------------------------------------------
    Wrong(
        "audit",
        "a change has no row",
        "one_refund",
        "audit_gap",
        patches=((Notes, "entry", silently("pending->processing")),),
    ),
    Wrong(
        "audit",
        "a refusal has no row",
        "injected_arguments",
        "audit_gap",
        patches=((Notes, "entry", silently("denied")),),
    ),
    Wrong(
        "audit",
        "an unreadable call has no row",
        "flag_in_the_call",
        "audit_gap",
        patches=((Notes, "entry", silently("invalid")),),
    ),
    Wrong(
        "audit",
        "rows follow later",
        "one_refund",
        "audit_gap",
        CRASH,
        SAFE.but(audit=AuditAfterwards()),
    ),
    # --- webhooks.py --------------------------------------------------------------------------
    Wrong(
        "webhooks",
        "matched by reference",
        "webhook_storm",
        "books_differ",
        design=SAFE.but(webhook=BookByReference()),
    ),
    Wrong(
        "webhooks",
        "an older report takes back a newer one",
        "webhook_storm",
        "illegal_transition",
        design=SAFE.but(webhook=TakesCreatedForNews()),
    ),
    Wrong(
        "webhooks",
        "a report is booked beside the answer",
        "webhook_storm",
        "books_differ",
        design=SAFE.but(webhook=BooksTwice()),
    ),
    Wrong(
        "webhooks",
        "copies are taken for news",
        "refunded_by_hand",
        "books_differ",
        patches=(sql(webhooks, "SEEN", "WHERE id = :id", "WHERE id = :id AND 1 = 0"),),
    ),
    Wrong(
        "webhooks",
        "marked before it is booked",
        "refunded_by_hand",
        "books_differ",
        CRASH,
        SAFE.but(webhook=ByOperation(marker_first=True)),
    ),
    Wrong(
        "webhooks",
        "nobody listens",
        "charged_back",
        "books_differ",
        design=SAFE.but(webhook=IgnoreWebhooks()),
    ),
    Wrong(
        "webhooks",
        "what a report ends, nobody is told of",
        "accepted_then_paid",
        "untold",
        patches=((webhooks, "conclude", nothing),),
    ),
]


@lru_cache
def safe_breaks(scenario: str, kinds: tuple[str, ...]) -> str:
    """What SAFE breaks in the same exploration, as text; empty when nothing."""
    found = explore(SAFE, getattr(Scenario, scenario)(), max_faults=int(bool(kinds)), kinds=kinds)
    assert found.complete or found.counterexample is not None
    return "" if found.counterexample is None else str(found)


@pytest.mark.parametrize("wrong", TABLE, ids=str)
def test_a_wrong_design_is_found(wrong: Wrong, monkeypatch: pytest.MonkeyPatch) -> None:
    assert safe_breaks(wrong.scenario, wrong.kinds) == ""
    for owner, name, value in wrong.patches:
        monkeypatch.setattr(owner, name, value)
    found = explore(
        wrong.design,
        getattr(Scenario, wrong.scenario)(),
        max_faults=int(bool(wrong.kinds)),
        kinds=wrong.kinds,
        breaks=[wrong.breaks],
    )
    assert found.counterexample is not None, f"{found} {found.by_verdict}"


NOT_A_MATTER_OF_HISTORIES = {
    "retry": "when to try again spares the provider, and no money: shown by `storm`",
    "retry_limits": "the same",
    "envelope": "what a program reads beside the answer's kind",
    "tool_schema": "what a model is told, which nothing trusts",
    "errors": "names",
    "invalid": "a name",
    "policy": "how a slip in a policy is said",
    "runtime": "an interface",
    "checks": "how a setting is refused",
    "database": "a translation; without the UNIQUE constraint no table is made",
    "design": "slots",
    "designs": "designs",
}


def test_every_file_of_the_service_has_a_wrong_design_or_a_reason() -> None:
    (folder,) = simulator.service.__path__
    files = {path.stem for path in Path(folder).glob("*.py")} - {"__init__"}
    named = {wrong.where for wrong in TABLE}
    assert named <= files
    assert named.isdisjoint(NOT_A_MATTER_OF_HISTORIES)
    assert named | NOT_A_MATTER_OF_HISTORIES.keys() == files


def test_there_are_many_rows_and_none_twice() -> None:
    assert len({str(wrong) for wrong in TABLE if wrong.where != "keys"}) >= 45
    assert len(set(map(repr, TABLE))) == len(TABLE)
