"""Incidents that happened to real systems, each as a scenario, a design and a few faults.

An incident names the policies that were to blame, on an otherwise safe design. Its history ends
as the report says; the same history with those policies replaced by the safe ones ends right.
Amounts are the report's own where it gives any, and $200 on an order of $500 where it gives
none. Where a policy is none of the service's, it is written here, as small as it can be.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cache
from typing import Any

import pytest

from simulator import Design, Scenario, designs, faults, replay
from simulator.experiments.run import Run
from simulator.service import pipeline, silence
from simulator.service.answers import Answer, FromRecord, Optimistic
from simulator.service.approval import Approval, ModelFlag, NoApproval
from simulator.service.authorization import FromArguments
from simulator.service.balance import (
    BOOK,
    CheckThenAct,
    NoBalance,
    OrderRow,
    Reserved,
    order_of,
)
from simulator.service.keys import (
    DateStamped,
    ModelKeyPerAttempt,
    NoKey,
    OrderAmountKey,
    ProcessKey,
    RowId,
    TimeStamped,
    ToolCallId,
)
from simulator.service.once import once
from simulator.service.operations import DurableRecord, NoRecord, Operation
from simulator.service.outbox import Inline, Outbox, Publish
from simulator.service.payment import RefundOrder, pay
from simulator.service.recovery import Blind, NoRecovery, SameKey
from simulator.service.schemas import FreeDict, Session, ToolCall
from simulator.service.webhooks import BookByReference, ByOperation, IgnoreWebhooks
from simulator.world.fault import Fault
from simulator.world.settings import (
    OTHER_TENANT,
    OTHER_USER,
    TENANT,
    AgentSettings,
    ApproverSettings,
    Intent,
    Order,
    Outside,
    ProviderSettings,
    Submission,
    WebhookSettings,
)

SAFE = designs.SAFE
HOUR = 3600.0


@dataclass(frozen=True)
class Outcome:
    """What a history came to, as words.

    Attributes:
        paid: what the provider paid, in order, by whose wish ever; "nothing".
        refunded: what our books say went back, of all orders together.
        told: what each customer was told, in order, without repetitions; intents apart by ";".
        unfinished: operations that are not final, and that no human was asked about.
        tasks: questions for a human.
    """

    paid: str
    refunded: str
    told: str
    unfinished: int = 0
    tasks: int = 0

    @classmethod
    def of(cls, run: Run) -> Outcome:
        tasked = len(run.tasks)
        is_open = [status not in ("succeeded", "failed") for status in run.books.status.dropna()]
        return cls(
            paid=" ".join(map(str, run.ledger.amount)) or "nothing",
            refunded=str(run.books.drop_duplicates("order_id").refunded.sum()),
            told="; ".join(words(run, intent.id) for intent in run.scenario.intents),
            unfinished=sum(is_open) - sum(run.tasks.topic == "refund"),
            tasks=tasked,
        )


def words(run: Run, intent_id: str) -> str:
    """What was said about an intent, without repetitions."""
    said = list(run.told.statement[run.told.intent == intent_id])
    return ", ".join(word for place, word in enumerate(said) if said[place - 1 : place] != [word])


@dataclass(frozen=True)
class Incident:
    """One incident.

    Attributes:
        id: of the report, with a letter where it has several variants.
        design: the faulty one: `safe` but for the policies that were to blame.
        outcome: what the report says it came to.
        right: what it should have come to.
        breaks: invariants that the faulty design breaks; it may break others besides.
        safe: SAFE, or SAFE with the limits that the shop in the report had.
    """

    id: str
    title: str
    scenario: Scenario
    design: Design
    faults: tuple[Fault, ...]
    outcome: Outcome
    right: Outcome
    breaks: frozenset[str]
    safe: Design = SAFE

    def to_blame(self) -> list[str]:
        """The slots in which the faulty design is not the safe one."""
        return [
            field.name
            for field in fields(Design)
            if field.name != "name"
            and getattr(self.design, field.name) != getattr(self.safe, field.name)
        ]


# --- What incidents are made of ----------------------------------------------------------------


def shop(
    amount: int,
    captured: int,
    *submissions: Submission,
    **settings: Any,
) -> Scenario:
    """One intent on one order; amounts in cents."""
    return Scenario(
        orders=(Order(captured=captured),),
        intents=(Intent("intent-1", amount=amount),),
        submissions=submissions or (Submission("intent-1"),),
        **settings,
    )


def usual(*submissions: Submission, **settings: Any) -> Scenario:
    """$200 of $500, where the report has no amounts."""
    return shop(200_00, 500_00, *submissions, **settings)


TWO_TRIES = Scenario(
    orders=(Order(captured=40_00),),
    intents=(Intent("intent-1", amount=40_00), Intent("intent-2", amount=40_00)),
    submissions=(Submission("intent-1"), Submission("intent-2", at=60.0)),
)

ASKED = Submission("intent-1")
ASKED_AGAIN = Submission("intent-1", at=60.0, thought=2, after_answer=True)


def broken(*names: str) -> frozenset[str]:
    return frozenset(names)


def asking_above(limit: int, **settings: Any) -> Design:
    """SAFE in a shop that lets nobody refund more than so many whole units alone."""
    return SAFE.but(name="SAFE", approval=Approval(above=limit, **settings))


INLINE: dict[str, Any] = {
    "dispatch": Inline(),
    "recovery": NoRecovery(),
    "answer": FromRecord(follow_up=False),
}
"""The backend does all itself: no outbox, and so nobody who recovers or tells later."""

NOTHING_KEPT: dict[str, Any] = {
    **INLINE,
    "record": NoRecord(),
    "balance": CheckThenAct(),
}


def published(when: str) -> dict[str, Any]:
    """A message to a broker in place of the outbox's row."""
    return {**INLINE, "dispatch": Publish(when)}


@dataclass(frozen=True)
class PerInvocation:
    """Every time that the tool is called it mints a key, for record and provider alike."""

    def __call__(self, operation: Operation, attempt: int) -> str:
        return operation.key

    def identity(self, operation: Operation, call: ToolCall) -> str:
        return operation.id


def order_and_amount(operation: Operation, attempt: int) -> str:
    """What the provider is sent; our own record tells the two refunds apart."""
    return f"{operation.order_id}+{operation.amount}"


def quote_first(rt: Any, design: Design, call: ToolCall, session: Session) -> Any:
    """Asks what the refund would cost, and sends the same object, key and all, to be refunded."""
    amount = int(Decimal(call.arguments["amount"]) * 100)
    key = f"{session.tenant_id}-{session.intent_id}"
    order = RefundOrder(session.intent_id, call.arguments["order_id"], amount, "USD", key)
    yield from rt.call("provider.quote", order, timeout=2.0)
    yield from rt.call("provider.refund", order, timeout=2.0)
    return Answer("done", "Your refund has been paid.")


def one_key_for_the_order(operation: Operation, attempt: int) -> str:
    """A key that outlives the decision."""
    return f"refund-of-{operation.order_id}"


@dataclass(frozen=True)
class BookedFirst(NoBalance):
    """Books before the provider is asked, and does not look at the answer."""

    def take(self, tx: Any, operation: Operation) -> bool:
        tx.execute(
            BOOK,
            {
                "tenant_id": operation.tenant_id,
                "order_id": operation.order_id,
                "amount": operation.amount,
            },
        )
        return True

    def settle(self, tx: Any, operation: Operation, before: str, status: str) -> None:
        pass


@dataclass(frozen=True)
class FloatTolerance(CheckThenAct):
    """Compares dollars as floats, and lets five cents pass."""

    def take(self, tx: Any, operation: Operation) -> bool:
        row = order_of(tx, operation.tenant_id, operation.order_id)
        assert row is not None
        return self.holds(row, operation)

    def holds(self, order: OrderRow, operation: Operation) -> bool:
        return operation.amount / 100 - (order.captured - order.refunded) / 100 <= 0.05


@dataclass(frozen=True)
class Unrounded(Reserved):
    """What was captured is kept as the sum of prices with fractions of a cent."""

    captured: Decimal = Decimal("87.957975")

    def take(self, tx: Any, operation: Operation) -> bool:
        return operation.amount <= self.captured * 100 and Reserved.take(self, tx, operation)


@dataclass(frozen=True)
class LatestArguments(DurableRecord):
    """A call that comes again brings its arguments with it, into a refund that was consented to."""

    fingerprint: bool = False

    def begin(self, tx: Any, operation: Operation) -> str:
        word = DurableRecord.begin(self, tx, operation)
        if word == "known":
            for statement in NEW_ARGUMENTS:
                tx.execute(statement, operation._asdict())
        return word


NEW_ARGUMENTS = (
    "UPDATE refunds SET order_id = :order_id, amount = :amount WHERE intent_id = :intent_id",
    "UPDATE tool_operations SET request_hash = :fingerprint WHERE idempotency_key = :key",
)


def paid_before_it_is_written(rt: Any, d: Design, call: ToolCall, session: Any) -> Any:
    """A pipeline that pays, then writes its row, and leaves the rest to the provider's report."""
    request = d.parse(call, session)
    tenant_id, user_id = d.whose(session, call)
    admitted = pipeline.Admitted(
        id=rt.new_id(),
        tenant_id=tenant_id,
        user_id=user_id,
        intent_id=session.intent_id,
        call_id=call.call_id,
        order_id=request.order_id,
        amount=request.amount,
        model_key="",
        call=call,
    )
    yield from pay(rt, d, admitted.operation(d, None))
    begun = yield from once(rt, d, pipeline.begin, admitted)
    return d.answer_to(begun.word, begun.row)


def gate_of_one_transport(rt: Any, d: Design, call: ToolCall, session: Any) -> Any:
    """backend-2 streams its answers, and the gate is in the code of those who do not."""
    if rt.owner.startswith("backend-2"):
        d = d.but(approval=NoApproval())
    answer = yield from pipeline.handle(rt, d, call, session)
    return answer


def lost_acknowledgements(*steps: str, times: int) -> tuple[Fault, ...]:
    """Commits that fail, the first so many times. SAFE's steps have other names."""
    return tuple(
        faults.lose_commit_ack(step, nth, "before") for step in steps for nth in range(1, times + 1)
    )


# --- Keys --------------------------------------------------------------------------------------

TWO_OF_TEN = Scenario(
    orders=(Order(captured=20_00),),
    intents=(Intent("intent-1", amount=10_00), Intent("intent-2", amount=10_00)),
    submissions=(Submission("intent-1"), Submission("intent-2", at=600.0)),
)
ANSWER_LOST = (faults.lose_response("provider.refund"),)
DIES_AFTER_SENDING = (faults.crash("provider.refund", when="after_send"),)

KEYS = (
    Incident(
        "B05",
        "The key is the id of a row that the error path deletes",
        usual(ASKED, ASKED_AGAIN),
        SAFE.but(key=RowId(), on_silence=silence.forgotten),
        ANSWER_LOST,
        outcome=Outcome("200.00 200.00", "200.00", "verifying, done"),
        right=Outcome("200.00", "200.00", "done"),
        breaks=broken("double_refund"),
    ),
    Incident(
        "B07a",
        "A key of order and amount merges two honest refunds; the shop records both",
        TWO_OF_TEN,
        SAFE.but(key=order_and_amount),
        (),
        outcome=Outcome("10.00", "20.00", "done; done"),
        right=Outcome("10.00 10.00", "20.00", "done; done"),
        breaks=broken("lost_refund", "books_differ"),
    ),
    Incident(
        "B07b",
        "The same key in the shop's own record: the second refund is answered with the first",
        TWO_OF_TEN,
        SAFE.but(key=OrderAmountKey()),
        (),
        outcome=Outcome("10.00", "10.00", "done; done"),
        right=Outcome("10.00 10.00", "20.00", "done; done"),
        breaks=broken("lost_refund", "false_answer"),
    ),
    Incident(
        "B07c",
        "No key of the action: what is delivered twice is paid twice",
        shop(10_00, 20_00),
        SAFE.but(key=PerInvocation()),
        (faults.duplicate_request("tool.issue_refund"),),
        outcome=Outcome("10.00 10.00", "20.00", "done"),
        right=Outcome("10.00", "10.00", "done"),
        breaks=broken("double_refund"),
    ),
    Incident(
        "B09a",
        "An in-progress marker that is kept wedges the refund",
        usual(),
        SAFE.but(dispatch=Outbox(lease=None)),
        DIES_AFTER_SENDING,
        outcome=Outcome("200.00", "0.00", "verifying", unfinished=1),
        right=Outcome("200.00", "200.00", "verifying, done"),
        breaks=broken("stuck", "untold"),
    ),
    Incident(
        "B09b",
        "An in-progress marker that expires runs twice, without a key at the provider",
        usual(),
        SAFE.but(key=NoKey()),
        DIES_AFTER_SENDING,
        outcome=Outcome("200.00 200.00", "200.00", "verifying, done"),
        right=Outcome("200.00", "200.00", "verifying, done"),
        breaks=broken("double_refund"),
    ),
    Incident(
        "B10",
        "A key with the date in it: two payouts across midnight",
        # Histories begin at 09:00; the answer to a request of 23:59:59 is lost.
        usual(Submission("intent-1", at=15 * HOUR - 1.0)),
        SAFE.but(key=DateStamped()),
        ANSWER_LOST,
        outcome=Outcome("200.00 200.00", "200.00", "done"),
        right=Outcome("200.00", "200.00", "done"),
        breaks=broken("double_refund"),
    ),
    Incident(
        "B25",
        "The tool's description tells the model to mint a fresh key each time",
        usual(agent=AgentSettings(new_thought=True)),
        SAFE.but(key=ModelKeyPerAttempt()),
        (faults.lose_response("tool.issue_refund"),),
        outcome=Outcome("200.00 200.00", "400.00", "done"),
        right=Outcome("200.00", "200.00", "done"),
        breaks=broken("double_refund"),
    ),
    Incident(
        "B31a",
        "A 503 from before the effect is remembered: who asks again gets the 503 again",
        usual(ASKED, ASKED_AGAIN, provider=ProviderSettings(semantics="stripe-v2", errors=1)),
        SAFE.but(on_silence=silence.failed),
        (),
        outcome=Outcome("nothing", "0.00", "refused"),
        right=Outcome("200.00", "200.00", "done"),
        breaks=broken("lost_refund"),
    ),
    Incident(
        "B31b",
        "A 504 from after the effect is not remembered: who asks again is paid again",
        usual(
            ASKED,
            ASKED_AGAIN,
            provider=ProviderSettings(semantics="stripe-v2", errors=1, error_when="after"),
        ),
        SAFE.but(on_silence=silence.forgotten, key=NoKey()),
        (),
        outcome=Outcome("200.00 200.00", "200.00", "verifying, done"),
        right=Outcome("200.00", "200.00", "done"),
        breaks=broken("double_refund"),
    ),
    Incident(
        "B47",
        "SELECT FOR UPDATE on a row that does not exist yet locks nothing",
        usual(ASKED, Submission("intent-1", at=0.5, instance="backend-2")),
        SAFE.but(**INLINE, record=DurableRecord(claim="look up"), key=RowId()),
        # Between its look and its insert the first is overtaken.
        (faults.pause("backend-1:begin", when="before", seconds=1.0),),
        outcome=Outcome("200.00 200.00", "200.00", "done"),
        right=Outcome("200.00", "200.00", "done"),
        breaks=broken("double_refund"),
    ),
    Incident(
        "B61",
        "The SDK's retry switch overwrites the caller's key",
        usual(),
        SAFE.but(key=ProcessKey()),
        # Its retries end without an answer, and the application is started anew.
        (*ANSWER_LOST, faults.crash("finish", when="before")),
        outcome=Outcome("200.00 200.00", "200.00", "verifying, done"),
        right=Outcome("200.00", "200.00", "verifying, done"),
        breaks=broken("double_refund"),
    ),
    Incident(
        "B66",
        "ON CONFLICT DO UPDATE turns 'completed' back into 'in progress', and then into 'failed'",
        shop(500_00, 500_00, ASKED, Submission("intent-1", at=10.0, instance="backend-2")),
        SAFE.but(record=DurableRecord(claim="upsert")),
        (),
        outcome=Outcome("500.00", "500.00", "done, refused"),
        right=Outcome("500.00", "500.00", "done"),
        breaks=broken("illegal_transition", "books_differ"),
    ),
    Incident(
        "B68",
        "The key outlives the decision: a new try after a definite no gets the old no",
        TWO_TRIES.but(provider=ProviderSettings(declines=frozenset({"intent-1"}))),
        SAFE.but(key=one_key_for_the_order),
        (),
        outcome=Outcome("nothing", "0.00", "refused; refused"),
        right=Outcome("40.00", "40.00", "refused; done"),
        breaks=broken("lost_refund"),
    ),
    Incident(
        "B10b",
        "The provider keeps a temporary no under the key, long after it would say yes",
        TWO_TRIES.but(provider=ProviderSettings(declines=frozenset({"intent-1"}))),
        SAFE.but(key=order_and_amount),
        (),
        outcome=Outcome("nothing", "0.00", "refused; refused"),
        right=Outcome("40.00", "40.00", "refused; done"),
        breaks=broken("lost_refund"),
    ),
    Incident(
        "B33",
        "The provider's own rule against duplicates swallows the second honest refund",
        TWO_OF_TEN.but(provider=ProviderSettings(duplicate_window=HOUR)),
        SAFE.but(balance=BookedFirst(), recovery=Blind()),
        (),
        outcome=Outcome("10.00", "20.00", "done; refused"),
        right=Outcome("10.00", "10.00", "done; verifying", tasks=1),
        breaks=broken("lost_refund", "books_differ"),
    ),
    Incident(
        "B64",
        "A key that was used for a quote is sent with the refund, and answers with the quote",
        usual(provider=ProviderSettings(covers_endpoint=False)),
        SAFE.but(handle=quote_first),
        (),
        outcome=Outcome("nothing", "0.00", "done"),
        right=Outcome("200.00", "200.00", "done"),
        breaks=broken("lost_refund", "false_answer"),
    ),
    Incident(
        "B88",
        "Key present, lock absent: both look it up, both find none, both pay",
        usual(ASKED, Submission("intent-1", instance="backend-2")),
        SAFE.but(**INLINE, record=DurableRecord(claim="look up"), key=NoKey()),
        (),
        outcome=Outcome("200.00 200.00", "200.00", "done"),
        right=Outcome("200.00", "200.00", "done"),
        breaks=broken("double_refund"),
    ),
    Incident(
        "B89",
        "Date.now() inside the key",
        usual(),
        SAFE.but(key=TimeStamped()),
        (faults.delay_response("provider.refund", seconds=12.0),),
        outcome=Outcome("200.00 200.00", "200.00", "done"),
        right=Outcome("200.00", "200.00", "done"),
        breaks=broken("double_refund"),
    ),
)

# --- Unknown outcome, settlement, retries that nobody sees -------------------------------------

UNKNOWN = (
    Incident(
        "B08",
        "'Failed' is three things; the wrong one is queued again under a new key",
        usual(ASKED, ASKED_AGAIN),
        SAFE.but(on_silence=silence.failed, record=DurableRecord(claim="upsert"), key=RowId()),
        (faults.reset("provider.refund"),),
        # One failure and one success in our history, two payouts in the provider's.
        outcome=Outcome("200.00 200.00", "200.00", "refused, done"),
        right=Outcome("200.00", "200.00", "done"),
        breaks=broken("double_refund", "false_answer"),
    ),
    Incident(
        "B18",
        "Slow success, impatient human: a click after 30 s, the charge after 40 s",
        usual(agent=AgentSettings(patience=30.0, resubmits=1)),
        SAFE.but(key=PerInvocation()),
        (faults.delay_request("tool.issue_refund", seconds=40.0),),
        outcome=Outcome("200.00 200.00", "400.00", "done"),
        right=Outcome("200.00", "200.00", "done"),
        breaks=broken("double_refund"),
    ),
    Incident(
        "B20",
        "Charge first, book later, the book cannot be written, loop",
        shop(20_00, 500_00, agent=AgentSettings(resubmits=2)),
        SAFE.but(**NOTHING_KEPT, key=NoKey()),
        lost_acknowledgements("finish", times=3),
        outcome=Outcome("20.00 20.00 20.00", "0.00", "verifying"),
        right=Outcome("20.00", "20.00", "verifying, done"),
        breaks=broken("double_refund", "books_differ"),
    ),
    Incident(
        "B34",
        "Accepted is not settled: the refund fails days later and nobody notices",
        shop(
            50_00,
            500_00,
            provider=ProviderSettings(
                settles_after=72 * HOUR,
                fails_to_settle=frozenset({"intent-1"}),
                webhooks=WebhookSettings(),
            ),
        ),
        SAFE.but(recovery=SameKey(waits_for_settlement=False), webhook=IgnoreWebhooks()),
        (),
        outcome=Outcome("nothing", "50.00", "done"),
        right=Outcome("nothing", "0.00", "verifying, refused"),
        breaks=broken("false_answer", "books_differ"),
    ),
    Incident(
        "B70",
        "Refused at once, and carried out seven seconds later",
        usual(
            provider=ProviderSettings(
                contradicts=frozenset({"intent-1"}),
                contradicts_after=7.0,
                webhooks=WebhookSettings(succeeded=(84.0,)),
            )
        ),
        SAFE.but(webhook=IgnoreWebhooks()),
        (),
        outcome=Outcome("200.00", "0.00", "refused"),
        right=Outcome("200.00", "0.00", "refused", tasks=1),
        breaks=broken("false_answer", "books_differ"),
    ),
    Incident(
        "B48",
        "COMMIT acknowledged to nobody: what is run again books a second time",
        usual(),
        SAFE.but(**NOTHING_KEPT),
        (faults.lose_commit_ack("finish"),),
        outcome=Outcome("200.00", "400.00", "done"),
        right=Outcome("200.00", "200.00", "done"),
        breaks=broken("books_differ"),
    ),
    Incident(
        "B59",
        "Ledger first, provider second, its refusal ignored",
        shop(40_00, 50_00, provider=ProviderSettings(declines=frozenset({"intent-1"}))),
        SAFE.but(balance=BookedFirst()),
        (),
        outcome=Outcome("nothing", "40.00", "refused"),
        right=Outcome("nothing", "0.00", "refused"),
        breaks=broken("books_differ"),
    ),
    Incident(
        "B78",
        "Something below you retries POST",
        usual(),
        SAFE.but(key=NoKey()),
        (faults.duplicate_request("provider.refund"),),
        outcome=Outcome("200.00 200.00", "200.00", "done"),
        right=Outcome("200.00", "200.00", "done"),
        breaks=broken("double_refund"),
    ),
)

# --- Webhooks ----------------------------------------------------------------------------------

WEBHOOKS = (
    Incident(
        "B04",
        "The webhook overtakes the answer, and the refund is booked twice",
        shop(
            3_92,
            50_00,
            provider=ProviderSettings(webhooks=WebhookSettings(succeeded=(0.2,))),
        ),
        SAFE.but(webhook=BookByReference()),
        (faults.delay_response("provider.refund", seconds=1.8),),
        outcome=Outcome("3.92", "7.84", "done"),
        right=Outcome("3.92", "3.92", "done"),
        breaks=broken("books_differ"),
    ),
    Incident(
        "B29",
        "An early webhook is acknowledged with 200, and gone for ever",
        usual(
            Submission("intent-1", instance="backend-2"),
            provider=ProviderSettings(webhooks=WebhookSettings(succeeded=(0.5,))),
        ),
        SAFE.but(**INLINE, handle=paid_before_it_is_written, webhook=ByOperation(on_unknown=200)),
        (faults.pause("begin", when="before", seconds=3.0),),
        outcome=Outcome("200.00", "0.00", "verifying", unfinished=1),
        right=Outcome("200.00", "200.00", "done"),
        breaks=broken("stuck"),
    ),
    Incident(
        "B49",
        "The marker comes before the handler: the redelivery is told 'done'",
        # Somebody refunds 100 by hand; only a webhook can tell our books.
        shop(
            500_00,
            500_00,
            Submission("intent-1", at=600.0),
            provider=ProviderSettings(webhooks=WebhookSettings()),
            outside=(Outside("refund", at=60.0, amount=100_00),),
        ),
        SAFE.but(webhook=ByOperation(marker_first=True)),
        (faults.crash("note_report", when="before"),),
        outcome=Outcome("100.00 500.00", "500.00", "done"),
        right=Outcome("100.00", "100.00", "refused"),
        breaks=broken("over_refund", "books_differ"),
    ),
)

# --- Races -------------------------------------------------------------------------------------

RACES = (
    Incident(
        "B02",
        "The framework's conflict retry wraps the call: one row, three charges",
        shop(10_00, 500_00),
        SAFE.but(**{**INLINE, "dispatch": Inline(inside=True)}, key=NoKey()),
        lost_acknowledgements("commit", "finish", times=2),
        outcome=Outcome("10.00 10.00 10.00", "10.00", "done"),
        right=Outcome("10.00", "10.00", "verifying, done"),
        breaks=broken("double_refund", "books_differ"),
    ),
    Incident(
        "B03",
        "Two partial refunds at once both pass the balance check",
        Scenario(
            orders=(Order(captured=100_00),),
            intents=(Intent("intent-A", amount=60_00), Intent("intent-B", amount=60_00)),
            submissions=(Submission("intent-A"), Submission("intent-B", instance="backend-2")),
        ),
        SAFE.but(balance=CheckThenAct()),
        (),
        outcome=Outcome("60.00 60.00", "120.00", "done; done"),
        right=Outcome("60.00", "60.00", "done; refused"),
        breaks=broken("over_refund"),
    ),
    Incident(
        "B80",
        "The side effect comes before the change of state: a second click finds 'pending'",
        shop(500_00, 500_00, ASKED, Submission("intent-1", at=1.0, thought=2)),
        SAFE.but(**NOTHING_KEPT, key=NoKey()),
        (faults.delay_response("provider.refund", seconds=1.8),),
        outcome=Outcome("500.00 500.00", "500.00", "done"),
        right=Outcome("500.00", "500.00", "done"),
        breaks=broken("double_refund", "over_refund"),
    ),
)

# --- Outbox and workers ------------------------------------------------------------------------

POISON = [f"intent-{number:02}" for number in range(1, 11)]
FROZEN = (faults.pause("provider.refund", when="before_send", seconds=45.0),)

WORKERS = (
    Incident(
        "B13a",
        "A reaped worker comes back, pays again and overwrites its successor",
        usual(),
        SAFE.but(key=NoKey(), dispatch=Outbox(fence=False)),
        FROZEN,
        outcome=Outcome("200.00 200.00", "400.00", "verifying, done"),
        right=Outcome("200.00", "200.00", "verifying, done"),
        breaks=broken("double_refund", "books_differ"),
    ),
    Incident(
        "B13b",
        "With a key at the provider it pays nothing, and still overwrites",
        usual(),
        SAFE.but(dispatch=Outbox(fence=False)),
        FROZEN,
        outcome=Outcome("200.00", "400.00", "verifying, done"),
        right=Outcome("200.00", "200.00", "verifying, done"),
        breaks=broken("books_differ"),
    ),
    Incident(
        "B32",
        "Sent is not delivered: the broker never had the event, and nobody sends it again",
        usual(),
        SAFE.but(**published("after")),
        # SAFE has no broker: its worker loses the request to the provider.
        (faults.lose_request("broker.publish"), faults.lose_request("provider.refund")),
        outcome=Outcome("nothing", "0.00", "verifying", unfinished=1),
        right=Outcome("200.00", "200.00", "done"),
        breaks=broken("lost_refund", "stuck"),
    ),
    Incident(
        "B52",
        "An event is sent out of a transaction that then comes to nothing",
        shop(60_00, 50_00),
        SAFE.but(**published("before")),
        (),
        outcome=Outcome("60.00", "0.00", "refused"),
        right=Outcome("nothing", "0.00", "refused"),
        breaks=broken("over_refund", "books_differ", "false_answer"),
    ),
    Incident(
        "B54",
        "Ten poison rows stop every customer",
        Scenario(
            orders=(Order(captured=1000_00),),
            intents=tuple(Intent(intent, amount=10_00) for intent in [*POISON, "intent-11"]),
            submissions=tuple(
                Submission(intent, at=0.1 * turn)
                for turn, intent in enumerate([*POISON, "intent-11"])
            ),
            poison=frozenset(POISON),
            workers=1,
        ),
        SAFE.but(dispatch=Outbox(max_attempts=None)),
        (),
        outcome=Outcome("nothing", "0.00", "; ".join(["verifying"] * 11), unfinished=11),
        right=Outcome(
            "10.00", "10.00", "; ".join([*["verifying"] * 10, "verifying, done"]), tasks=10
        ),
        breaks=broken("stuck"),
    ),
    Incident(
        "B55",
        "Two pollers read the same row before either marks it",
        usual(),
        SAFE.but(key=NoKey(), dispatch=Outbox(atomic=False)),
        # For a twentieth of a second, between the first one's look and its mark.
        (faults.pause("worker-1:claim", when="before", seconds=0.05),),
        outcome=Outcome("200.00 200.00", "200.00", "done"),
        right=Outcome("200.00", "200.00", "done"),
        breaks=broken("double_refund"),
    ),
    Incident(
        "B73",
        "Acknowledge first: killed worker, vanished refund",
        usual(),
        SAFE.but(**published("after")),
        (faults.crash("provider.refund", when="before_send"),),
        outcome=Outcome("nothing", "0.00", "verifying", unfinished=1),
        right=Outcome("200.00", "200.00", "verifying, done"),
        breaks=broken("lost_refund", "stuck"),
    ),
    Incident(
        "B74",
        "A dead node's work is taken over an hour later, beyond the key's time",
        usual(provider=ProviderSettings(key_lifetime=0.5 * HOUR)),
        SAFE.but(dispatch=Outbox(lease=HOUR)),
        (faults.crash("provider.refund"),),
        outcome=Outcome("200.00 200.00", "200.00", "verifying, done"),
        right=Outcome("200.00", "200.00", "verifying, done"),
        breaks=broken("double_refund"),
    ),
)

# --- Agents ------------------------------------------------------------------------------------

ANSWERS_TO_THE_AGENT_LOST = tuple(faults.lose_response("tool.issue_refund", nth) for nth in (1, 2))
ENTITLED_TO_240 = Scenario(
    orders=(Order(captured=240_00),),
    intents=(Intent("intent-240", amount=240_00), Intent("intent-050", amount=50_00)),
    submissions=(
        Submission("intent-240"),
        Submission("intent-240", at=10.0, thought=2),
        Submission("intent-050", at=20.0),
    ),
    consent_above=100,
    approver=ApproverSettings(delay=HOUR),
)

AGENTS = (
    Incident(
        "B01",
        "A refund tool that cannot carry a key: three calls, three refunds",
        shop(10_00, 100_00),
        SAFE.but(**NOTHING_KEPT, key=NoKey()),
        ANSWERS_TO_THE_AGENT_LOST,
        outcome=Outcome("10.00 10.00 10.00", "30.00", "done"),
        right=Outcome("10.00", "10.00", "done"),
        breaks=broken("double_refund"),
    ),
    Incident(
        "B06",
        "Resuming after a human's answer runs the sibling tools again",
        Scenario(
            orders=(Order(captured=100_00),),
            intents=(Intent("intent-A", amount=30_00),),
            submissions=(Submission("intent-A"), Submission("intent-A", at=600.0)),
        ),
        SAFE.but(key=PerInvocation()),
        (),
        outcome=Outcome("30.00 30.00", "60.00", "done"),
        right=Outcome("30.00", "30.00", "done"),
        breaks=broken("double_refund"),
    ),
    Incident(
        "B12a",
        "Eligibility is a flag that was computed once: the same refund twice",
        shop(84_00, 84_00, ASKED, Submission("intent-1", at=60.0, thought=2)),
        SAFE.but(balance=NoBalance(), key=ToolCallId()),
        (),
        outcome=Outcome("84.00 84.00", "168.00", "done"),
        right=Outcome("84.00", "84.00", "done"),
        breaks=broken("double_refund", "over_refund"),
    ),
    Incident(
        "B12b",
        "Approvals pile up against one entitlement, and all are granted later",
        ENTITLED_TO_240,
        asking_above(100).but(balance=NoBalance(), key=ToolCallId()),
        (),
        outcome=Outcome("50.00 240.00 240.00", "530.00", "verifying, done; done"),
        right=Outcome("240.00", "240.00", "verifying, done; refused"),
        breaks=broken("double_refund", "over_refund"),
        safe=asking_above(100),
    ),
    Incident(
        "B15",
        "The checkpoint is written before the step's result, and the agent dies in between",
        usual(),
        SAFE.but(key=PerInvocation()),
        (faults.crash("agent:tool.issue_refund"),),
        outcome=Outcome("200.00 200.00", "400.00", "done"),
        right=Outcome("200.00", "200.00", "done"),
        breaks=broken("double_refund"),
    ),
    Incident(
        "B17",
        "Deduplicating on the model's tool-call id: a run that is run again has new ones",
        shop(100_00, 500_00, agent=AgentSettings(new_thought=True, resubmits=2)),
        SAFE.but(key=ToolCallId()),
        ANSWERS_TO_THE_AGENT_LOST,
        outcome=Outcome("100.00 100.00 100.00", "300.00", "done"),
        right=Outcome("100.00", "100.00", "done"),
        breaks=broken("double_refund"),
    ),
    Incident(
        "B82",
        "Failure narrated as success",
        usual(provider=ProviderSettings(declines=frozenset({"intent-1"}))),
        SAFE.but(answer=Optimistic()),
        (faults.provider_down("provider.refund"),),
        outcome=Outcome("nothing", "0.00", "done"),
        right=Outcome("nothing", "0.00", "verifying, refused"),
        breaks=broken("false_answer"),
    ),
)

# --- Approval ----------------------------------------------------------------------------------

TWO_ORDERS = (Order("ORD-0001", captured=100_00), Order("ORD-0002", captured=900_00))

APPROVAL = (
    Incident(
        "B11",
        "A human approves one set of arguments, the runtime executes another",
        Scenario(
            orders=TWO_ORDERS,
            intents=(Intent("intent-1", order_id="ORD-0001", amount=100_00),),
            submissions=(
                Submission("intent-1"),
                # On resume, after the yes and before the money.
                Submission(
                    "intent-1",
                    at=70.0,
                    thought=2,
                    arguments={"order_id": "ORD-0002", "amount": "900.00"},
                ),
            ),
            consent_above=0,
            workers=1,
        ),
        asking_above(0, revalidate=False).but(record=LatestArguments()),
        (faults.pause("claim", when="before", seconds=20.0),),
        outcome=Outcome("900.00", "900.00", "verifying, done"),
        right=Outcome("100.00", "100.00", "verifying, conflict, done"),
        breaks=broken("unapproved_refund", "unauthorized_refund"),
        safe=asking_above(0),
    ),
    Incident(
        "B22",
        "A confirmation flag that the model can set is no confirmation",
        Scenario(
            orders=(Order("ORD-0009", captured=500_00),),
            intents=(Intent("intent-1", order_id="ORD-0009", owed=False),),
            submissions=(Submission("intent-1", arguments={"confirm": True}),),
            consent_above=100,
        ),
        asking_above(100).but(approval=ModelFlag(above=100), schema=FreeDict()),
        (),
        outcome=Outcome("500.00", "500.00", "done"),
        right=Outcome("nothing", "0.00", "invalid"),
        breaks=broken("unapproved_refund"),
        safe=asking_above(100),
    ),
    Incident(
        "B24",
        "The approval times out after 60 s, and the action runs anyway; at 90 s comes the no",
        shop(
            300_00,
            500_00,
            consent_above=100,
            approver=ApproverSettings(delay=90.0, says=(("intent-1", "no"),)),
        ),
        asking_above(100, lifetime=60.0, when_expired="approved"),
        (),
        outcome=Outcome("300.00", "300.00", "verifying, done"),
        right=Outcome("nothing", "0.00", "verifying, refused"),
        breaks=broken("unapproved_refund"),
        safe=asking_above(100, lifetime=60.0),
    ),
    Incident(
        "B40",
        "What was approved has changed meanwhile: the order is cancelled and paid back by hand",
        shop(
            400_00,
            500_00,
            consent_above=100,
            outside=(Outside("cancel", at=60.0),),
            approver=ApproverSettings(delay=120.0),
        ),
        asking_above(100, revalidate=False),
        (),
        outcome=Outcome("500.00 400.00", "900.00", "verifying, done"),
        right=Outcome("500.00", "500.00", "verifying, refused"),
        breaks=broken("over_refund"),
        safe=asking_above(100),
    ),
    Incident(
        "B41",
        "Approve 5 once, and 900 needs no approval: matched by the tool's name",
        Scenario(
            orders=TWO_ORDERS,
            intents=(
                Intent("intent-1", order_id="ORD-0001", amount=5_00),
                Intent("intent-2", order_id="ORD-0002", amount=900_00),
            ),
            submissions=(Submission("intent-1"), Submission("intent-2", at=600.0)),
            consent_above=0,
            approver=ApproverSettings(says=(("intent-2", "nothing"),)),
        ),
        asking_above(0, bind="tool"),
        (),
        outcome=Outcome("5.00 900.00", "905.00", "verifying, done; done"),
        right=Outcome("5.00", "5.00", "verifying, done; verifying, refused"),
        breaks=broken("unapproved_refund"),
        safe=asking_above(0),
    ),
    Incident(
        "B81",
        "The streaming path has no approval gate",
        Scenario(
            orders=(Order("ORD-7001", captured=7_500_00),),
            intents=(Intent("intent-1", order_id="ORD-7001", amount=6_000_00),),
            submissions=(Submission("intent-1", instance="backend-2"),),
            approver=ApproverSettings(says=(("intent-1", "no"),)),
        ),
        SAFE.but(handle=gate_of_one_transport, approval=Approval(revalidate=False)),
        (),
        outcome=Outcome("6000.00", "6000.00", "done"),
        right=Outcome("nothing", "0.00", "verifying, refused"),
        breaks=broken("unapproved_refund"),
    ),
)

# --- Authorization and money -------------------------------------------------------------------

OTHERS = (
    Incident(
        "B23",
        "The tenant's id is taken from the tool's arguments",
        Scenario(
            orders=(
                Order(),
                Order("B-17", tenant_id=OTHER_TENANT, user_id=OTHER_USER, captured=100_00),
            ),
            intents=(Intent("intent-1", order_id="B-17", amount=40_00, owed=False),),
            submissions=(
                Submission(
                    "intent-1", arguments={"tenant_id": OTHER_TENANT, "user_id": OTHER_USER}
                ),
            ),
        ),
        SAFE.but(identity=FromArguments(), schema=FreeDict()),
        (),
        outcome=Outcome("40.00", "40.00", "done"),
        right=Outcome("nothing", "0.00", "invalid"),
        breaks=broken("unauthorized_refund"),
    ),
    Incident(
        "B43",
        "Yen times one hundred",
        Scenario(
            orders=(Order(captured=60_000, currency="JPY"),),
            intents=(Intent("intent-1", amount=500, currency="JPY"),),
            consent_above=100_000,
        ),
        asking_above(100_000).but(schema=FreeDict(scale="hundred")),
        (),
        outcome=Outcome("50000", "50000", "done"),
        right=Outcome("500", "500", "done"),
        breaks=broken("unauthorized_refund"),
        safe=asking_above(100_000),
    ),
    Incident(
        "B45a",
        "A float threshold: the same overage of 0.05, opposite outcomes",
        Scenario(
            orders=(Order("ORD-0050", captured=50_00), Order("ORD-0010", captured=10_00)),
            intents=(
                Intent("intent-50", order_id="ORD-0050", amount=50_05),
                Intent("intent-10", order_id="ORD-0010", amount=10_05),
            ),
            submissions=(Submission("intent-50"), Submission("intent-10", at=10.0)),
        ),
        SAFE.but(balance=FloatTolerance()),
        (),
        outcome=Outcome("50.05", "50.05", "done; refused"),
        right=Outcome("nothing", "0.00", "refused; refused"),
        breaks=broken("over_refund"),
    ),
    Incident(
        "B45b",
        "int(19.99 * 100) is 1998: a cent lost with every refund",
        shop(19_99, 19_99),
        SAFE.but(schema=FreeDict(cents="truncate")),
        (),
        outcome=Outcome("19.98", "19.98", "done"),
        right=Outcome("19.99", "19.99", "done"),
        breaks=broken("unauthorized_refund"),
    ),
    Incident(
        "B86",
        "A residue below a cent blocks the full refund",
        shop(87_96, 87_96),
        SAFE.but(balance=Unrounded()),
        (),
        outcome=Outcome("nothing", "0.00", "refused"),
        right=Outcome("87.96", "87.96", "done"),
        breaks=broken("lost_refund"),
    ),
)

INCIDENTS = (*KEYS, *UNKNOWN, *WEBHOOKS, *RACES, *WORKERS, *AGENTS, *APPROVAL, *OTHERS)


BY_ID = {incident.id: incident for incident in INCIDENTS}


@cache
def history(incident: Incident, safe: bool = False) -> Run:
    """The incident's history, with the faulty design or with the safe one."""
    return replay(incident.safe if safe else incident.design, incident.scenario, incident.faults)


def faulty(incident_id: str) -> Run:
    return history(BY_ID[incident_id])


def safe(incident_id: str) -> Run:
    return history(BY_ID[incident_id], safe=True)


every_incident = pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident.id)


@every_incident
def test_the_faulty_design_comes_to_what_the_report_says(incident: Incident) -> None:
    run = history(incident)
    assert Outcome.of(run) == incident.outcome
    assert incident.breaks
    assert incident.breaks <= run.verdict


@every_incident
def test_the_safe_service_comes_to_what_is_right_in_the_same_history(incident: Incident) -> None:
    run = history(incident, safe=True)
    assert Outcome.of(run) == incident.right
    assert run.verdict == frozenset()


@every_incident
def test_what_goes_wrong_strikes_the_safe_service_too(incident: Incident) -> None:
    if incident.faults:
        assert history(incident).struck
        assert history(incident, safe=True).struck


@every_incident
def test_every_policy_that_is_blamed_is_to_blame(incident: Incident) -> None:
    """With any one of them replaced by the safe one, it does not come to what the report says."""
    assert incident.outcome != incident.right
    blamed = incident.to_blame()
    assert blamed
    for slot in blamed:
        # What recovers, and who tells later, come and go with the outbox.
        slots = ("dispatch", "recovery", "answer") if slot == "dispatch" else (slot,)
        try:
            mended = incident.design.but(**{slot: getattr(incident.safe, slot) for slot in slots})
        except ValueError:
            continue  # it makes no sense without the others
        run = replay(mended, incident.scenario, incident.faults)
        assert Outcome.of(run) != incident.outcome, slot


def test_every_incident_has_an_id_of_its_own() -> None:
    assert len(BY_ID) == len(INCIDENTS)


# --- What else reports say ---------------------------------------------------------------------


def times(run: Run) -> list[float]:
    """When the provider paid, seconds."""
    return list(run.ledger.time)


def keys(run: Run) -> list[str]:
    return list(run.ledger.key)


def test_b06_without_a_replay_of_the_step_nothing_is_paid_twice() -> None:
    incident = BY_ID["B06"]
    once_only = incident.scenario.but(submissions=incident.scenario.submissions[:1])
    assert Outcome.of(replay(incident.design, once_only)).paid == "30.00"


def test_b08_our_history_shows_one_failure_and_one_success_the_providers_two_payouts() -> None:
    run = faulty("B08")
    ends = [event.split("->")[1] for event in run.audit.event if event.startswith("processing")]
    assert ends == ["failed", "succeeded"]
    assert len(run.ledger) == 2
    assert len(set(keys(run))) == 2


def test_b10_the_two_payouts_lie_on_two_days() -> None:
    before, after = times(faulty("B10"))
    assert before < 15 * HOUR < after < before + 20.0


def test_b13_the_late_worker_releases_what_its_successor_had_released() -> None:
    for incident_id in ("B13a", "B13b"):
        assert [str(pending) for pending in faulty(incident_id).books.pending] == ["-200.00"]
        assert [str(pending) for pending in safe(incident_id).books.pending] == ["0.00"]


def test_b15_with_the_result_written_first_the_same_design_pays_once() -> None:
    incident = BY_ID["B15"]
    run = replay(incident.design, incident.scenario)
    assert Outcome.of(run).paid == "200.00"
    assert run.verdict == frozenset()


def test_b17_the_guard_sees_three_ids_for_one_request() -> None:
    assert keys(faulty("B17")) == [f"call-intent-1-{thought}" for thought in (1, 11, 21)]


def test_b18_the_second_click_is_charged_before_the_first() -> None:
    second, first = times(faulty("B18"))
    assert 30.0 < second < 40.0 < first < 41.0


def test_b23_the_attempt_is_in_the_log_as_one_security_event() -> None:
    (detail,) = safe("B23").audit.detail
    assert "The model may not set tenant_id" in detail


def test_b24_the_late_no_is_refused_and_recorded() -> None:
    for run in (faulty("B24"), safe("B24")):
        assert list(run.audit.event).count("late decision") == 1
    (paid_at,) = times(faulty("B24"))
    assert 60.0 < paid_at < 90.0


def test_b29_a_report_that_is_answered_with_404_comes_again_and_ends_the_refund() -> None:
    def reports(run: Run) -> int:
        return [step.what for step in run.steps].count("webhook.report")

    assert reports(faulty("B29")) == 1
    incident = BY_ID["B29"]
    mended = incident.design.but(webhook=ByOperation())
    run = replay(mended, incident.scenario, incident.faults)
    assert reports(run) == 2
    assert list(run.books.status) == ["succeeded"]


def test_b61_the_wire_shows_the_applications_key_on_every_attempt_only_when_it_is_safe() -> None:
    assert len(set(keys(faulty("B61")))) == 2
    (on_the_wire,) = keys(safe("B61"))
    operation = Operation("", TENANT, "", "intent-1", "", "", 0, "USD", "", "", "")
    assert on_the_wire == SAFE.key_for(operation, 0)


def test_b74_the_takeover_comes_after_an_hour_and_half_a_minute_is_enough() -> None:
    _, again = times(faulty("B74"))
    assert again > HOUR
    told = safe("B74").told
    assert told.time[told.statement == "done"].max() < 40.0


def test_b78_our_own_log_has_one_call() -> None:
    run = faulty("B78")
    assert [step.what for step in run.steps].count("provider.refund") == 1
    assert len(run.ledger) == 2
