"""A design: one policy for every slot of the pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from simulator.service import silence as silences
from simulator.service.answers import KINDS, Answer, FromRecord
from simulator.service.approval import Approval, ModelFlag, NoApproval
from simulator.service.audit import AuditAfterwards, AuditInTransaction, NoAudit
from simulator.service.authorization import FromSession, Ownership, RefundPermission
from simulator.service.balance import CheckThenAct, NoBalance, OrderRow, Reserved
from simulator.service.checks import needs, text
from simulator.service.errors import Silence
from simulator.service.keys import OperationKey
from simulator.service.operations import (
    DurableRecord,
    MemoryRecord,
    NoRecord,
    Operation,
    Row,
)
from simulator.service.outbox import Inline, Outbox, Publish
from simulator.service.policy import PolicyMistake, ask_policy, shortened
from simulator.service.recovery import AskOnly, AskThenSend, Blind, NoRecovery, SameKey
from simulator.service.retry import FullJitter, Random01
from simulator.service.schemas import (
    InvalidRequest,
    RefundRequest,
    Session,
    ToolCall,
    parse_refund,
)
from simulator.service.webhooks import BookByReference, ByOperation, IgnoreWebhooks

if TYPE_CHECKING:
    from simulator.service.runtime import Transaction

__all__ = ["Design", "PolicyMistake"]

SILENCES = ("again", "failed", "forgotten", "outcome_unknown")


@dataclass(frozen=True)
class Design:
    """A refund service, as the list of its policies. The defaults are the safe ones.

    Change one with `design.but(key=NoKey())`. Slots that decide without writing (`schema`,
    `identity`, `permission`, `ownership`, `key`, `on_silence`, `retry`, `answer`) also take a
    plain function.

    Attributes:
        name: how tables and figures call it.
        schema: (ToolCall, Session) -> RefundRequest; raises InvalidRequest.
        identity: (Session, ToolCall) -> (tenant, user).
        permission: (Session) -> bool, of refunds; other tools name theirs in `tools.TOOLS`.
        ownership: (OrderRow | None, Operation) -> bool.
        record: NoRecord, MemoryRecord or DurableRecord.
        balance: NoBalance, CheckThenAct or Reserved.
        approval: NoApproval, ModelFlag or Approval.
        key: (Operation, attempt) -> the key that the provider is sent, or None.
        dispatch: Inline, Publish or Outbox.
        on_silence: (Operation, Silence) -> "again", "failed", "forgotten" or
            "outcome_unknown".
        recovery: NoRecovery, Blind, AskThenSend, AskOnly or SameKey.
        retry: (attempt, random) -> seconds to wait, or None to give up; or an object whose
            `delay` does that.
        answer: ("new" | "known" | ..., Row | None) -> Answer.
        audit: NoAudit, AuditAfterwards or AuditInTransaction.
        webhook: IgnoreWebhooks, BookByReference or ByOperation.
        handle: a pipeline of your own, for exercises: (runtime, design, call, session) ->
            generator that returns an Answer. None: the course's.

    Raises:
        ValueError: two policies make no sense together.
    """

    name: str = "unnamed"
    schema: Callable[[ToolCall, Session], RefundRequest] = parse_refund
    identity: Callable[[Session, ToolCall], tuple[str, str]] = FromSession()
    permission: Callable[[Session], bool] = RefundPermission()
    ownership: Callable[[OrderRow | None, Operation], bool] = Ownership()
    record: NoRecord | MemoryRecord | DurableRecord = DurableRecord()
    balance: NoBalance | CheckThenAct | Reserved = Reserved()
    approval: NoApproval | ModelFlag | Approval = Approval()
    key: Callable[[Operation, int], str | None] = OperationKey()
    dispatch: Inline | Publish | Outbox = Outbox()
    on_silence: Callable[[Operation, Silence], str] = silences.outcome_unknown
    recovery: NoRecovery | Blind | AskThenSend | AskOnly | SameKey = SameKey()
    retry: Any = FullJitter(base=1.0, cap=30.0, max_attempts=8)
    answer: Callable[[str, Row | None], Answer] = FromRecord()
    audit: NoAudit | AuditAfterwards | AuditInTransaction = AuditInTransaction()
    webhook: IgnoreWebhooks | BookByReference | ByOperation = ByOperation()
    handle: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        needs(self, "name", text(self.name), "a text")
        for slot, allowed in _CLASSES.items():
            if not isinstance(policy := getattr(self, slot), allowed):
                names = ", ".join(kind.__name__ for kind in allowed)
                raise ValueError(
                    f"Design {self.name!r}: {slot}={shortened(policy)} is none of {names}."
                    + (" Write it with parentheses." if isinstance(policy, type) else "")
                )
        decides = ("schema", "identity", "permission", "ownership", "key", "on_silence", "answer")
        for slot in decides:
            self._callable(slot)
        if isinstance(self.retry, type) or not callable(getattr(self.retry, "delay", self.retry)):
            self._callable("retry")
        if self.handle is not None:
            self._callable("handle")
        for wrong, sentence in (
            (
                isinstance(self.dispatch, Outbox) and not self.record.durable,
                "an outbox row belongs to a durable record: set record=DurableRecord(), "
                "or dispatch=Inline()",
            ),
            (
                isinstance(self.dispatch, Publish) and not self.record.durable,
                "a worker in another process finds nothing in this one's memory: set "
                "record=DurableRecord(), or dispatch=Inline()",
            ),
            (
                isinstance(self.balance, Reserved) and not self.record.durable,
                "a reservation that no record remembers is never released: set "
                "record=DurableRecord(), or balance=CheckThenAct()",
            ),
            (
                self.record.looks_first and not self.dispatch.inline,
                "a record that is looked up before it is written belongs to code that does "
                "all itself: set dispatch=Inline(), or record=DurableRecord()",
            ),
            (
                self.record.looks_first and getattr(self.dispatch, "inside", False),
                "a look in a transaction of its own is never made where all is one: set "
                "dispatch=Inline(), or record=DurableRecord()",
            ),
            (
                self.recovery.takes_over and not isinstance(self.dispatch, Outbox),
                "recovery works on the rows of an outbox: set dispatch=Outbox(), "
                "or recovery=NoRecovery()",
            ),
            (
                getattr(self.answer, "follow_up", False) and not isinstance(self.dispatch, Outbox),
                "a follow-up message is sent through the outbox: set dispatch=Outbox(), "
                "or answer=FromRecord(follow_up=False)",
            ),
        ):
            if wrong:
                raise ValueError(f"Design {self.name!r} makes no sense: {sentence}.")

    def _callable(self, slot: str) -> None:
        policy = getattr(self, slot)
        if not callable(policy) or isinstance(policy, type):
            raise ValueError(
                f"Design {self.name!r}: {slot}={shortened(policy)} cannot be called. "
                "Give a function, or a policy with its parentheses."
            )

    def but(self, **changes: Any) -> Design:
        """The same design with some slots changed; `name` too, unless you give one."""
        unknown = changes.keys() - {field.name for field in fields(self)}
        if unknown:
            raise ValueError(
                f"A design has no slot {sorted(unknown)[0]!r}. Its slots: "
                + ", ".join(field.name for field in fields(self)[1:])
                + "."
            )
        changes.setdefault("name", f"{self.name}, changed")
        return replace(self, **changes)

    @property
    def takes_over(self) -> bool:
        """Whether a claim whose lease has ended may be claimed anew."""
        return self.recovery.takes_over

    def identified(self, operation: Operation, call: ToolCall) -> Operation:
        """The operation with the key of our own record, if the slot `key` has one of its own."""
        identity = getattr(self.key, "identity", None)
        if identity is None:
            return operation
        return operation._replace(key=str(identity(operation._replace(key=""), call)))

    def may(self, session: Session) -> bool:
        """What the slot `permission` says, checked."""
        return self._yes_or_no("permission", (session,))

    def owns(self, order: OrderRow | None, operation: Operation) -> bool:
        """What the slot `ownership` says, checked."""
        return self._yes_or_no("ownership", (order, operation))

    def _yes_or_no(self, slot: str, arguments: tuple[Any, ...]) -> bool:
        answer = ask_policy(slot, getattr(self, slot), arguments)
        if not isinstance(answer, bool):
            raise PolicyMistake(slot, arguments, answer, "True or False")
        return answer

    def parse(self, call: ToolCall, session: Session) -> RefundRequest:
        """What the slot `schema` makes of a call, checked.

        Raises:
            InvalidRequest: the call does not fit.
        """
        try:
            request = self.schema(call, session)
        except InvalidRequest:
            raise
        except Exception as error:
            expected = "a RefundRequest, or InvalidRequest"
            raise PolicyMistake("schema", (call, session), error, expected) from error
        if not isinstance(request, RefundRequest):
            raise PolicyMistake("schema", (call, session), request, "a RefundRequest")
        return request

    def whose(self, session: Session, call: ToolCall) -> tuple[str, str]:
        """What the slot `identity` says, checked: (tenant, user)."""
        found = ask_policy("identity", self.identity, (session, call))
        if (
            not isinstance(found, tuple)
            or len(found) != 2
            or not all(isinstance(part, str) for part in found)
        ):
            raise PolicyMistake("identity", (session, call), found, "two texts: (tenant, user)")
        return found

    def begin_record(self, tx: Transaction, operation: Operation) -> str:
        """What the slot `record` says of an operation, checked."""
        word = self.record.begin(tx, operation)
        if word not in ("new", "known", "conflict"):
            raise PolicyMistake("record", (operation,), word, "'new', 'known' or 'conflict'")
        return word

    def key_for(
        self, operation: Operation, attempt: int, now: float = 0.0, owner: str = ""
    ) -> str | None:
        """What the slot `key` says, checked. Policies that look at the clock have a method `at`
        and are told `now`; those of one life of a process have `by`, and are told whose.
        """
        arguments: tuple[Any, ...] = (operation, attempt)
        policy = getattr(self.key, "at", None) or getattr(self.key, "by", None)
        if policy is not None:
            arguments = (*arguments, now if hasattr(self.key, "at") else owner)
        key = ask_policy("key", policy or self.key, arguments)
        if key is not None and (not isinstance(key, str) or not 1 <= len(key) <= 255):
            raise PolicyMistake("key", arguments, key, "a text of 1 to 255 characters, or None")
        return key

    def status_after(self, operation: Operation, silence: Silence) -> str:
        """What the slot `on_silence` says, checked."""
        status = ask_policy("on_silence", self.on_silence, (operation, silence))
        if status not in SILENCES:
            raise PolicyMistake(
                "on_silence",
                (operation, silence),
                status,
                "'again', 'failed', 'forgotten' or 'outcome_unknown'",
            )
        return str(status)

    def delay_after(self, attempt: int, random: Random01) -> float | None:
        """What the slot `retry` says, checked: seconds, or None to give up."""
        policy = getattr(self.retry, "delay", self.retry)
        delay = ask_policy("retry", policy, (attempt, random))
        if delay is None:
            return None
        number = isinstance(delay, int | float) and not isinstance(delay, bool)
        if not number or not 0 <= delay < float("inf"):
            raise PolicyMistake(
                "retry", (attempt, random), delay, "seconds, a number from 0 up, or None"
            )
        return float(delay)

    def answer_to(self, begun: str, row: Row | None) -> Answer:
        """What the slot `answer` says, checked."""
        answer = ask_policy("answer", self.answer, (begun, row))
        if not isinstance(answer, Answer) or answer.kind not in KINDS:
            raise PolicyMistake(
                "answer", (begun, row), answer, f"an Answer of kind {', '.join(sorted(KINDS))}"
            )
        return answer


_CLASSES: dict[str, tuple[type, ...]] = {
    "record": (NoRecord, MemoryRecord, DurableRecord),
    "balance": (NoBalance, CheckThenAct, Reserved),
    "approval": (NoApproval, ModelFlag, Approval),
    "dispatch": (Inline, Publish, Outbox),
    "recovery": (NoRecovery, Blind, AskThenSend, AskOnly, SameKey),
    "audit": (NoAudit, AuditAfterwards, AuditInTransaction),
    "webhook": (IgnoreWebhooks, BookByReference, ByOperation),
}
