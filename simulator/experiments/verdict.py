"""The verdict on a history: which invariants it broke.

Each invariant is a function of the finished world that says whether it was broken. The first
group is judged always; the second at quiescence, when everything has healed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import cached_property, lru_cache
from math import inf
from typing import Any

from simulator.experiments.other_books import OtherBooks
from simulator.service.actions import action_asks_consent
from simulator.service.operations import FINAL, REFUND, is_legal
from simulator.service.schemas import EXPONENTS, InvalidRequest, minor_units
from simulator.world.provider import Effect
from simulator.world.scenario import Intent
from simulator.world.world import World

__all__ = ["ALWAYS", "AT_QUIESCENCE", "INVARIANTS", "Facts", "Verdict", "judge", "sentences"]


class Verdict(frozenset[str]):
    """Names of the invariants that were broken; empty when all is right."""

    def __str__(self) -> str:
        return ", ".join(name for name in INVARIANTS if name in self) or "right"

    def __repr__(self) -> str:
        return f"Verdict({str(self)!r})"


OPERATIONS = """
    SELECT o.id, o.tenant_id, COALESCE(r.order_id, ''), COALESCE(r.intent_id, a.intent_id),
           o.status, o.action_type
    FROM tool_operations o
    LEFT JOIN refunds r ON r.operation_id = o.id
    LEFT JOIN actions a ON a.operation_id = o.id
    ORDER BY COALESCE(r.call_id, a.call_id)
"""


class Facts:
    """What is true of a finished world, looked up once.

    Attributes:
        ours: payments that we asked for. paid: how many per intent.
        paid_on: minor units per (tenant, order), whoever moved them.
        outside: payments that the bank, or somebody at the dashboard, made without us.
        never_heals: whether the scenario holds what no time mends: a poisoned event, an error
            that the provider replays, keys that mean nothing, a rule of its own against
            duplicates.
        refunds: ids of the intents for which the agent calls issue_refund.
        beside_money: what became of orders, goods and profiles.
        operations: (id, tenant, order, intent, status, action) as our database has them.
        tasked: ids of operations with an open question for a human.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        rows = world.database.rows
        self.paid: dict[str, int] = {intent.id: 0 for intent in world.scenario.intents}
        self.paid_on: dict[tuple[str, str], int] = {}
        self.ours: list[Effect] = []
        self.outside: list[Effect] = []
        for effect in world.provider.ledger:
            order = (effect.tenant_id, effect.order_id)
            self.paid_on[order] = self.paid_on.get(order, 0) + effect.amount
            if not effect.source:
                self.ours.append(effect)
                self.paid[effect.intent] += 1
            elif effect.source != "cancellation":
                self.outside.append(effect)
        self.operations: list[Any] = []
        self.tasked: set[str] = set()
        if world.design.record.durable:
            self.tasked = {row[0] for row in rows("SELECT operation_id FROM tasks")}
            self.operations = rows(OPERATIONS)
        provider = world.scenario.provider
        forgets = provider.semantics == "none"  # what was lost cannot be told from what was not
        replays_errors = provider.errors > 0 and provider.semantics in ("stripe-v1", "ietf")
        self.never_heals = (
            bool(world.scenario.poison)
            or replays_errors
            or forgets
            or provider.duplicate_window is not None
            or bool(provider.contradicts)
        )
        self.intents_tasked = {op[3] for op in self.operations if op[0] in self.tasked}
        self.refunds = world.scenario.refund_intents
        self.beside_money = OtherBooks(world)
        self.captured = {(o.tenant_id, o.id): o.captured for o in world.scenario.orders}

    def unread(self, intent_id: str) -> bool:
        """Whether no call for this could be read: the agent was told what to correct, and has
        not.
        """
        kinds = {
            answer.kind
            for request, answer in self.world.backends.answers
            if request.session.intent_id == intent_id
        }
        return kinds == {"invalid"}

    @cached_property
    def first_begun(self) -> dict[str, int]:
        """Microseconds at which each intent was first taken up to be sent."""
        begun: dict[str, int] = {}
        intent_of = {op[0]: op[3] for op in self.operations}
        database = self.world.database
        for (operation, _, after), time in zip(database.changes, database.times, strict=True):
            if after == "processing" and operation in intent_of:
                begun.setdefault(intent_of[operation], time)
        return begun

    def last_word(self, intent_id: str) -> str | None:
        """The kind of the last statement about the wish itself; None if there was none."""
        about = REFUND if intent_id in self.refunds else self.world.scenario.tool_of(intent_id)
        words = [
            told.kind
            for told in self.world.told
            if told.intent == intent_id and told.about == about and told.kind not in OF_THE_CALL
        ]
        return words[-1] if words else None

    def may_be_refused(self, intent: Intent) -> bool:
        """Whether a refusal of this intent was true: declined, too much, never owed, or of an
        order that changed under it.
        """
        order = (intent.tenant_id, intent.order_id)
        # What waits for a human's decision stays reserved, and cannot be promised twice.
        waiting = sum(
            other.amount
            for other in self.world.scenario.intents
            if other.id in self.intents_tasked
            and (other.tenant_id, other.order_id) == order
            and not self.paid[other.id]
        )
        remaining = self.captured.get(order, 0) - self.paid_on.get(order, 0) - waiting
        return (
            not intent.owed
            or intent.id in self.world.provider.declined
            or remaining < intent.amount
            or (self.needs_consent(intent) and not self.may_go(intent))
            or any(
                change[:2] == order and change.known >= self.world.submitted[intent.id]
                for change in self.world.provider.changes
            )
        )

    def changed(self, tenant: str, order: str, since: float, until: float) -> bool:
        """Whether money of this order went without us between two times, and we knew of it.
        What nobody told us no check can find.
        """
        return any(
            change[:2] == (tenant, order) and since <= change.time and change.known <= until
            for change in self.world.provider.changes
        )

    def known_at(self, effect: Effect) -> float:
        """Microseconds at which we knew of money that went without us; never: infinite."""
        which = (effect.tenant_id, effect.order_id, effect.time)
        changes = self.world.provider.changes
        return min((change.known for change in changes if change[:3] == which), default=inf)

    def needs_consent(self, intent: Intent) -> bool:
        """Whether the shop lets nobody refund this much alone."""
        limit = self.world.scenario.consent_above * 10 ** EXPONENTS[intent.currency]
        return bool(intent.amount > limit)

    def may_go(self, intent: Intent) -> bool:
        """Whether somebody was told that this refund is approved."""
        return intent.id in self.world.agreed


def double_refund(facts: Facts) -> bool:
    """An intent was paid more than once."""
    return any(count > 1 for count in facts.paid.values())


def over_refund(facts: Facts) -> bool:
    """An order got back more than was captured.

    What the bank or a colleague took before us counts, if somebody had told us by the time that
    the refund was taken up to be sent. That they took too much, after us, does not.
    """
    ours: defaultdict[tuple[str, str], int] = defaultdict(int)
    for effect in facts.world.provider.ledger:
        if effect.source not in ("", "cancellation"):
            continue
        order = (effect.tenant_id, effect.order_id)
        ours[order] += effect.amount
        known = 0
        if facts.outside:
            begun = facts.first_begun.get(effect.intent, effect.time)
            known = sum(
                other.amount
                for other in facts.outside
                if (other.tenant_id, other.order_id) == order and facts.known_at(other) <= begun
            )
        if ours[order] + known > facts.captured.get(order, 0):
            return True
    return False


def unauthorized_refund(facts: Facts) -> bool:
    """Paid without the right for exactly this: to nobody's wish, or another sum or order.

    An order that is cancelled, or a profile deleted, needs a wish as well.
    """
    if facts.beside_money.unasked():
        return True
    for effect in facts.ours:
        intent = facts.world.scenario.intent(effect.intent)
        asked = (intent.order_id, intent.amount, intent.currency)
        if not intent.owed or (effect.order_id, effect.amount, effect.currency) != asked:
            return True
    return False


OF_THE_CALL = ("conflict", "invalid", "info")
"""Kinds of answers that say nothing of the refund itself."""

ACTIONS_DONE = """
    SELECT a.intent_id, o.action_type, a.arguments
    FROM tool_operations o JOIN actions a ON a.operation_id = o.id WHERE o.status = 'succeeded'
"""


def unapproved_refund(facts: Facts) -> bool:
    """Paid, cancelled or deleted without a person's consent for exactly this, as it was then."""
    world = facts.world
    if len(facts.refunds) < len(world.scenario.intents):
        agreed = {consent.intent_id for consent in world.consents if consent.entitled}
        if any(
            action_asks_consent(action, arguments) and intent_id not in agreed
            for intent_id, action, arguments in world.database.rows(ACTIONS_DONE)
        ):
            return True
    for effect in facts.ours:
        if not facts.needs_consent(world.scenario.intent(effect.intent)):
            continue
        what = (effect.intent, effect.order_id, effect.amount, effect.currency)
        # From the moment on when it is taken up to be sent, nobody can call it back.
        begun = min(effect.time, facts.first_begun.get(effect.intent, effect.time))
        if not any(
            consent[1:5] == what
            and consent.entitled
            and consent.time <= begun
            and not facts.changed(effect.tenant_id, effect.order_id, consent.asked, begun)
            for consent in world.consents
        ):
            return True
    return False


def conflict_ignored(facts: Facts) -> bool:
    """A request came again with another payload, and was not refused."""
    scenario = facts.world.scenario
    for request, answer in facts.world.backends.answers:
        intent = scenario.intent(request.session.intent_id)
        if request.call.name != "issue_refund" or not intent.owed:
            continue
        if answer.kind in ("done", "verifying") and _differs(request.call.arguments, intent):
            return True
    return False


def _differs(arguments: Any, intent: Intent) -> bool:
    amount = _amount(str(arguments.get("amount")), intent.currency)
    return amount != intent.amount or arguments.get("order_id") != intent.order_id


@lru_cache
def _amount(text: str, currency: str) -> int | None:
    try:
        return minor_units(Decimal(text), currency)
    except (InvalidOperation, InvalidRequest):
        return None


def illegal_transition(facts: Facts) -> bool:
    """A state changed against the table, a final one included."""
    return any(not is_legal(before, after) for _, before, after in facts.world.database.changes)


def false_answer(facts: Facts) -> bool:
    """A final statement was untrue when made, or is at the end."""
    world = facts.world
    if facts.beside_money.false_word():
        return True
    first_paid: dict[str, int] = {}
    for effect in facts.ours:
        first_paid.setdefault(effect.intent, effect.time)
    for told in world.told:
        if told.about != REFUND:
            continue
        paid_at = first_paid.get(told.intent)
        if told.kind == "done" and (paid_at is None or paid_at > told.time):
            return True
        if told.kind == "refused" and paid_at is not None:
            # The provider said no, and then paid. A human knows of it, so it is no lie of ours.
            contradicted = told.intent in world.scenario.provider.contradicts
            if not (contradicted and told.intent in facts.intents_tasked):
                return True
    return False


def lost_refund(facts: Facts) -> bool:
    """An owed intent was not paid, and no true refusal was given."""
    return any(
        intent.owed
        and not facts.paid[intent.id]
        and intent.id not in facts.intents_tasked
        and intent.id in facts.world.submitted
        and not facts.may_be_refused(intent)
        and not facts.unread(intent.id)
        for intent in facts.world.scenario.intents
    )


def untold(facts: Facts) -> bool:
    """The outcome is final, and the last word is not."""
    ended = {op[3] for op in facts.operations if op[4] in FINAL}
    for intent in facts.world.scenario.intents:
        final = facts.paid[intent.id] or intent.id in ended | facts.world.provider.declined
        last = facts.last_word(intent.id)
        if final and last not in ("done", "refused") and intent.id not in facts.intents_tasked:
            return True
    return False


def stuck(facts: Facts) -> bool:
    """Not final and no task, or the history never came to rest."""
    return facts.world.capped or any(
        op[4] not in FINAL and op[0] not in facts.tasked for op in facts.operations
    )


def needless_task(facts: Facts) -> bool:
    """A human was asked although all healed within the key's lifetime."""
    if not facts.tasked or facts.never_heals:
        return False
    broken_for = sum(fault.seconds for _, fault in facts.world.struck)
    return broken_for < facts.world.scenario.provider.key_lifetime / 2


def books_differ(facts: Facts) -> bool:
    """Our books and the provider's ledger disagree, where no human is looking into it.

    Goods in stock, cancelled orders and profiles are books too: they have to be as our own
    record says, and no profile may go while a refund of its customer is open.
    """
    if facts.beside_money.differ():
        return True
    open_orders = {
        (op[1], op[2]) for op in facts.operations if op[4] not in FINAL or op[0] in facts.tasked
    }
    for tenant, order, refunded, pending in facts.world.database.rows(
        "SELECT tenant_id, id, refunded + disputed, pending FROM orders"
    ):
        if (tenant, order) not in open_orders and (
            refunded != facts.paid_on.get((tenant, order), 0) or pending != 0
        ):
            return True
    states: dict[str, set[str]] = {}
    for _, _, _, intent_id, status, action in facts.operations:
        if action != REFUND or intent_id in facts.intents_tasked:
            continue
        states.setdefault(intent_id, set()).add(status)
    return any(
        (status == {"succeeded"} and not facts.paid[intent_id])
        or (status == {"failed"} and facts.paid[intent_id] > 0)
        for intent_id, status in states.items()
    )


REFUSALS = ("denied", "refused", "conflict", "invalid")


def audit_gap(facts: Facts) -> bool:
    """An effect, a refusal or a change of state without its audit row.

    Judged of designs that keep a log: one that keeps none makes no such promise.
    """
    world = facts.world
    if not world.design.audit.kept:
        return False
    logged: Counter[tuple[str, str]] = Counter()
    succeeded: set[str] = set()
    refused: set[str] = set()
    for operation, intent, event in world.database.rows(
        "SELECT operation_id, intent_id, event FROM audit_log"
    ):
        logged[operation, event] += 1
        if event.endswith("->succeeded"):
            succeeded.add(intent)
        elif event in REFUSALS or event.endswith("->failed"):
            refused.add(intent)
    changed = Counter(
        (operation, f"{before or ''}->{after}")
        for operation, before, after in world.database.changes
    )
    if changed - logged:
        return True
    open_intents = {op[3] for op in facts.operations if op[4] not in FINAL}
    paid = [intent for intent, count in facts.paid.items() if count]
    if any(
        intent not in succeeded and intent not in open_intents | facts.intents_tasked
        for intent in paid
    ):
        return True
    return any(
        answer.kind in ("refused", "conflict", "invalid")
        and request.session.intent_id not in refused
        for request, answer in world.backends.answers
    )


ALWAYS: tuple[Callable[[Facts], bool], ...] = (
    double_refund,
    over_refund,
    unauthorized_refund,
    unapproved_refund,
    conflict_ignored,
    illegal_transition,
    false_answer,
)
AT_QUIESCENCE: tuple[Callable[[Facts], bool], ...] = (
    lost_refund,
    untold,
    needless_task,
    books_differ,
    audit_gap,
)
INVARIANTS: tuple[str, ...] = (
    "double_refund",
    "over_refund",
    "unauthorized_refund",
    "unapproved_refund",
    "conflict_ignored",
    "illegal_transition",
    "false_answer",
    "lost_refund",
    "untold",
    "stuck",
    "needless_task",
    "books_differ",
    "audit_gap",
)


def sentences() -> dict[str, str]:
    """What each invariant stands for, in a sentence, in the order of `INVARIANTS`."""
    checks = {check.__name__: check for check in (*ALWAYS, stuck, *AT_QUIESCENCE)}
    return {
        name: (checks[name].__doc__ or "").split("\n")[0] for name in INVARIANTS if name in checks
    }


def judge(world: World) -> Verdict:
    """The verdict on a world whose history is over.

    Where a fault was left for ever (`heal=False`) only safety is judged, and that whatever is
    not final has a task, if the database is there to write one.
    """
    facts = Facts(world)
    broken = [check.__name__ for check in ALWAYS if check(facts)]
    if (world.heal or world.database.up) and stuck(facts):
        broken.append("stuck")
    if world.heal and not world.capped:
        broken += [check.__name__ for check in AT_QUIESCENCE if check(facts)]
    return Verdict(broken)
