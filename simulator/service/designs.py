"""Designs with names: a ladder from the naive to the safe, one idea after the other."""

from __future__ import annotations

from simulator.service import silence
from simulator.service.answers import FromRecord, Optimistic
from simulator.service.approval import Approval, NoApproval
from simulator.service.audit import AuditAfterwards, AuditInTransaction, NoAudit
from simulator.service.authorization import Anyone, AnyOrder, FromArguments
from simulator.service.balance import CheckThenAct, NoBalance, Reserved
from simulator.service.design import Design
from simulator.service.keys import ModelKey, NoKey, OperationKey
from simulator.service.operations import DurableRecord, MemoryRecord, NoRecord
from simulator.service.outbox import Inline, Outbox, Publish
from simulator.service.recovery import AskThenSend, Blind, NoRecovery, SameKey
from simulator.service.retry import FullJitter, Immediate, NoRetry
from simulator.service.retry_limits import Budget, Deadline
from simulator.service.schemas import FreeDict
from simulator.service.webhooks import BookByReference, ByOperation, IgnoreWebhooks

__all__ = [
    "DURABLE_RECORD",
    "LADDER",
    "MEMORY_RECORD",
    "MODEL_KEY",
    "NAIVE",
    "ONE_SHOT",
    "OUTBOX",
    "PROVIDER_KEY",
    "PUBLISH_AFTER_COMMIT",
    "RESERVED",
    "SAFE",
    "ablations",
]

NAIVE = Design(
    name="NAIVE",
    record=NoRecord(),
    balance=NoBalance(),
    approval=NoApproval(),
    key=NoKey(),
    dispatch=Inline(),
    on_silence=silence.again,
    recovery=NoRecovery(),
    retry=Immediate(max_attempts=3),
    answer=Optimistic(),
    audit=NoAudit(),
    webhook=IgnoreWebhooks(),
)
"""No answer? Send it again."""

ONE_SHOT = NAIVE.but(name="ONE_SHOT", on_silence=silence.failed, retry=NoRetry())
"""No answer? Then it failed."""

MODEL_KEY = NAIVE.but(name="MODEL_KEY", key=ModelKey())
"""Blind retry, under the key that the model wrote into its call."""

MEMORY_RECORD = NAIVE.but(name="MEMORY_RECORD", record=MemoryRecord())
"""A dict that remembers which refunds were asked for. The provider gets no key."""

DURABLE_RECORD = NAIVE.but(name="DURABLE_RECORD", record=DurableRecord())
"""The dict becomes a table with a UNIQUE constraint and a fingerprint."""

PROVIDER_KEY = DURABLE_RECORD.but(name="PROVIDER_KEY", key=OperationKey())
"""The provider gets the operation's key, the same on every attempt."""

RESERVED = PROVIDER_KEY.but(name="RESERVED", balance=Reserved())
"""The amount is taken out of the balance before the provider is asked."""

PUBLISH_AFTER_COMMIT = RESERVED.but(
    name="PUBLISH_AFTER_COMMIT",
    dispatch=Publish("after"),
    answer=FromRecord(follow_up=False),
)
"""A worker asks the provider; a message tells it to, sent after the commit."""

OUTBOX = PUBLISH_AFTER_COMMIT.but(name="OUTBOX", dispatch=Outbox(fence=False), recovery=Blind())
"""The message becomes a row in the same transaction, with a lease."""

SAFE = Design(
    name="SAFE",
    record=DurableRecord(),
    balance=Reserved(),
    approval=Approval(),
    key=OperationKey(),
    dispatch=Outbox(lease=30.0, fence=True, max_attempts=8),
    on_silence=silence.outcome_unknown,
    recovery=SameKey(),
    retry=Budget(Deadline(FullJitter(base=1.0, cap=30.0, max_attempts=8), seconds=20.0)),
    answer=FromRecord(follow_up=True),
    audit=AuditInTransaction(),
    webhook=ByOperation(),
)
"""Silence is unknown, and found out; claims are fenced; the customer is told in the end."""

LADDER: tuple[Design, ...] = (
    NAIVE,
    ONE_SHOT,
    MODEL_KEY,
    MEMORY_RECORD,
    DURABLE_RECORD,
    PROVIDER_KEY,
    RESERVED,
    PUBLISH_AFTER_COMMIT,
    OUTBOX,
    SAFE,
)


def ablations() -> dict[str, Design]:
    """SAFE without one safeguard, by the name of what is missing."""
    without = {
        "schema": SAFE.but(schema=FreeDict()),
        "identity from the session": SAFE.but(identity=FromArguments()),
        "permission": SAFE.but(permission=Anyone()),
        "ownership": SAFE.but(ownership=AnyOrder()),
        "provider key": SAFE.but(key=NoKey()),
        "operation key": SAFE.but(key=ModelKey()),
        "fingerprint": SAFE.but(record=DurableRecord(fingerprint=False)),
        "insert first": SAFE.but(record=DurableRecord(claim="upsert")),
        "tombstone": SAFE.but(record=DurableRecord(keep=24 * 3600.0)),
        "durable record": SAFE.but(
            record=MemoryRecord(),
            balance=CheckThenAct(),
            dispatch=Inline(),
            recovery=NoRecovery(),
            answer=FromRecord(follow_up=False),
            audit=NoAudit(),
        ),
        "reservation": SAFE.but(balance=CheckThenAct()),
        "approval": SAFE.but(approval=NoApproval()),
        "approval digest": SAFE.but(approval=Approval(bind="tool")),
        "approval expiry": SAFE.but(approval=Approval(when_expired="approved")),
        "revalidation": SAFE.but(approval=Approval(revalidate=False)),
        "outbox": SAFE.but(
            dispatch=Publish("after"),
            recovery=NoRecovery(),
            answer=FromRecord(follow_up=False),
        ),
        "outbox, published before": SAFE.but(
            dispatch=Publish("before"),
            recovery=NoRecovery(),
            answer=FromRecord(follow_up=False),
        ),
        "lease": SAFE.but(dispatch=Outbox(lease=None)),
        "fencing token": SAFE.but(dispatch=Outbox(fence=False)),
        "dead letter": SAFE.but(dispatch=Outbox(max_attempts=None)),
        "outcome_unknown": SAFE.but(on_silence=silence.failed),
        "recovery": SAFE.but(recovery=NoRecovery()),
        "same-key recovery": SAFE.but(recovery=AskThenSend()),
        "settlement": SAFE.but(recovery=SameKey(waits_for_settlement=False)),
        "webhooks by operation": SAFE.but(webhook=BookByReference()),
        "answer from the record": SAFE.but(answer=Optimistic()),
        "follow-up": SAFE.but(answer=FromRecord(follow_up=False)),
        "audit in the transaction": SAFE.but(audit=AuditAfterwards()),
    }
    return {name: design.but(name=f"SAFE without {name}") for name, design in without.items()}
