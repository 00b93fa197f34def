"""The person who is asked for consent: slow, absent, or of two minds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from simulator.service.approval import Decision
from simulator.service.errors import Silence
from simulator.service.schemas import Session
from simulator.world.database import read
from simulator.world.law import CONSENT

if TYPE_CHECKING:
    from simulator.world.runtime import VirtualRuntime
    from simulator.world.world import World

__all__ = ["Consent", "DecisionRequest", "Question", "Word", "consider"]

PATIENCE = 15.0
TRIES = 25
LONGEST_WAIT = 2 * 3600.0
LOOK_AGAIN = 60.0


class Question(NamedTuple):
    """What the person's screen shows; no order and no amount if it is about something else."""

    approval_id: str
    digest: str
    action: str
    tenant_id: str
    intent_id: str
    order_id: str
    amount: int
    currency: str
    expires_at: int
    asked_at: int


QUESTION = """
    SELECT a.id, a.digest, o.action_type, o.tenant_id, COALESCE(r.intent_id, n.intent_id),
           COALESCE(r.order_id, ''), COALESCE(r.amount, 0), COALESCE(r.currency, ''),
           a.expires_at, o.created_at
    FROM approvals a
    JOIN tool_operations o ON o.id = a.operation_id
    LEFT JOIN refunds r ON r.operation_id = a.operation_id
    LEFT JOIN actions n ON n.operation_id = a.operation_id
    WHERE a.id = ?
"""


class Consent(NamedTuple):
    """A yes, given in time to exactly what was seen. `time` in microseconds.

    Attributes:
        until: when the question was closed.
        asked: when it was asked: the order as it was then is what was seen.
        entitled: whether this person may say yes: somebody else than who asks, with the right.
    """

    time: int
    intent_id: str
    order_id: str
    amount: int
    currency: str
    until: int
    asked: int
    entitled: bool


@dataclass(slots=True)
class Word:
    """A person's yes or no about an intent. Times in microseconds.

    Attributes:
        asked, said, answered: when the question was put, when the word was said, and when the
            service had confirmed it (None: it has not).
        heard: what the service answered: "approved", "rejected", …; "" until then.
        gone: what was cancelled or deleted by the time that it was said, as in `gone_by_now`.
    """

    intent_id: str
    yes: bool
    entitled: bool
    asked: int
    said: int
    gone: frozenset[tuple[str, str]] = frozenset()
    answered: int | None = None
    heard: str = ""


class DecisionRequest:
    """A decision on its way to an instance, and the session that it travels with."""

    __slots__ = ("decision", "instance", "session")

    def __init__(self, decision: Decision, session: Session, instance: str) -> None:
        self.decision = decision
        self.session = session
        self.instance = instance


CANCELLED = "SELECT tenant_id, id FROM orders WHERE status = 'cancelled'"
PROFILES = "SELECT tenant_id, user_id FROM profiles"


def gone_by_now(world: World) -> frozenset[tuple[str, str]]:
    """(tenant, id) of the orders that are cancelled, and of the customers without a profile."""
    rows = world.database.rows
    customers = {(order.tenant_id, order.user_id) for order in world.scenario.orders}
    return frozenset(map(tuple, rows(CANCELLED))) | (customers - set(map(tuple, rows(PROFILES))))


def consider(rt: VirtualRuntime, world: World, approval_id: str) -> Any:
    """One question: a look at it after a while, an answer, and perhaps second thoughts."""
    settings = world.scenario.approver
    yield from rt.sleep(settings.delay)
    while not world.database.up or world.database.holder is not None:
        yield from rt.sleep(LOOK_AGAIN)
    shown = world.database.connection.execute(QUESTION, (approval_id,)).fetchone()
    if shown is None:
        world.answered(approval_id, "gone")  # somebody removed what was asked about
        return
    question = Question._make((*shown[:-2], *map(read, shown[-2:])))
    says = settings.answer(question.intent_id)
    if says == "nothing":
        world.answered(approval_id, "nothing")
        return
    yield from _answer(rt, world, question, says == "yes")
    if settings.second_thoughts is not None:
        yield from rt.sleep(settings.second_thoughts)
        yield from _answer(rt, world, question, says == "no")


def _answer(rt: VirtualRuntime, world: World, question: Question, approve: bool) -> Any:
    settings = world.scenario.approver
    session = Session(
        settings.user_id, question.tenant_id, settings.permissions, question.intent_id
    )
    decision = Decision(question.approval_id, approve, question.digest)
    world.note("approver", "note", "decides", text="says yes" if approve else "says no")
    entitled = (
        CONSENT[question.action] in settings.permissions
        and settings.user_id != world.scenario.intent(question.intent_id).user_id
    )
    now = int(world.clock.now)
    gone = gone_by_now(world) if world.scenario.beside_money else frozenset[Any]()
    word = Word(question.intent_id, approve, entitled, question.asked_at, now, gone)
    world.decisions.append(word)
    if approve and world.clock.now < question.expires_at:
        world.consents.append(
            Consent(
                now,
                question.intent_id,
                question.order_id,
                question.amount,
                question.currency,
                question.expires_at,
                question.asked_at,
                entitled,
            )
        )
    for attempt in range(TRIES):
        try:
            request = DecisionRequest(decision, session, "backend-1")
            decided = yield from rt.call("approval.decide", request, PATIENCE)
        except Silence:
            yield from rt.sleep(min(LONGEST_WAIT, 2.0**attempt))
            continue
        world.answered(question.approval_id, decided.word)
        word.answered, word.heard = int(world.clock.now), decided.word
        return
