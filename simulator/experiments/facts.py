"""What is true of a world whose history is over: what was paid, asked, told and changed."""

from __future__ import annotations

from functools import cached_property
from math import inf
from typing import Any

from simulator.experiments.other_books import OtherBooks
from simulator.service.operations import FINAL, REFUND
from simulator.service.schemas import ToolCall
from simulator.world import law
from simulator.world.provider import Effect
from simulator.world.scenario import Intent, Order
from simulator.world.world import World

__all__ = ["Facts"]

OPERATIONS = """
    SELECT o.id, o.tenant_id, COALESCE(r.order_id, ''), COALESCE(r.intent_id, a.intent_id),
           o.status, o.action_type
    FROM tool_operations o
    LEFT JOIN refunds r ON r.operation_id = o.id
    LEFT JOIN actions a ON a.operation_id = o.id
    ORDER BY COALESCE(r.call_id, a.call_id)
"""

OF_THE_CALL = ("conflict", "invalid", "info")
"""Kinds of answers that say nothing of the refund itself."""


class Facts:
    """What is true of a finished world, looked up once.

    Attributes:
        ours: payments that we asked for. paid: how many per intent.
        paid_on: minor units per (tenant, order), whoever moved them.
        outside: payments that the bank, or somebody at the dashboard, made without us.
        never_heals: whether the scenario holds for every refund what no time mends: an error that
            the provider replays, keys that mean nothing, a rule of its own against duplicates.
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
        hidden = provider.error_when == "before" or provider.lookup_lag is None
        deaf = provider.lookup_lag is None and provider.webhooks is None
        self.never_heals = (
            (replays_errors and hidden)
            or forgets
            or provider.duplicate_window is not None
            # The money comes in days, and nobody can ask, or is told, when it has come.
            or (provider.settles_after is not None and deaf)
        )
        self.intents_tasked = {op[3] for op in self.operations if op[0] in self.tasked}
        self.refunds = world.scenario.refund_intents
        self.beside_money = OtherBooks(world)
        self.captured = {(o.tenant_id, o.id): o.captured for o in world.scenario.orders}

    def needs_a_person(self, operation: Any) -> bool:
        """Whether no time mends what befell this operation: a poisoned event, a provider that
        contradicts itself or reports what is wrong, too much money that left, whoever paid it.
        """
        _, tenant, order, intent, _, _ = operation
        scenario = self.world.scenario
        reports = scenario.provider.webhooks
        which = tenant, order
        return (
            intent in scenario.poison | scenario.provider.contradicts
            or (reports is not None and reports.misreports is not None)
            or self.paid[intent] > 1
            or self.paid_on.get(which, 0) > self.captured.get(which, 0)
        )

    def hopeless(self, intent_id: str) -> bool:
        """Whether nobody could carry out a call for this, whichever was made: it cannot be read,
        the session has no right to it, or the order is not the customer's.
        """
        return not any(self.doable(call, intent_id) for call in self.calls(intent_id))

    def calls(self, intent_id: str) -> list[ToolCall]:
        """What the agent calls for this, in its first thoughts."""
        scenario = self.world.scenario
        mine = (each for each in scenario.submissions if each.intent_id == intent_id)
        return [scenario.call(each) for each in mine]

    def doable(self, call: ToolCall, intent_id: str) -> bool:
        """Whether this is a call for a refund that can be read, and touches what it may."""
        intent = self.world.scenario.intent(intent_id)
        read = law.readable(call.arguments)
        if law.PERMISSION["issue_refund"] not in intent.permissions or read is None:
            return False
        order = self.orders.get((intent.tenant_id, read[0]))
        if order is None or order.user_id != intent.user_id or call.name != "issue_refund":
            return False
        decimals, amount = law.DECIMALS[order.currency], read[1]
        written = -int(amount.as_tuple().exponent)
        return written <= max(2, decimals) and bool(amount * 10**decimals % 1 == 0)

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
            or self._was_taken(intent)
            or (self.needs_consent(intent) and not self._stays_agreed(intent))
        )

    def _was_taken(self, intent: Intent) -> bool:
        """Whether too little was left of the order when our record refused this, because of what
        was paid by then, or was still open and might have been.
        """
        order = (intent.tenant_id, intent.order_id)
        mine = {op[0] for op in self.operations if op[3] == intent.id}
        others = {
            op[0]: self.world.scenario.intent(op[3]).amount
            for op in self.operations
            if (op[1], op[2]) == order and op[3] != intent.id
        }
        taken: dict[str, int] = {}
        database = self.world.database
        for (operation, _, after), time in zip(database.changes, database.times, strict=True):
            if operation in others:
                taken[operation] = 0 if after in FINAL else others[operation]
            elif operation in mine and after == "failed":
                paid = sum(
                    effect.amount
                    for effect in self.world.provider.ledger
                    if (effect.tenant_id, effect.order_id) == order and effect.time <= time
                )
                return self.captured[order] - paid - sum(taken.values()) < intent.amount
        return False

    def _stays_agreed(self, intent: Intent) -> bool:
        """Whether a person with the right agrees to this, soon, and to what the order still is."""
        order = (intent.tenant_id, intent.order_id)
        return (
            self.agrees(intent, law.CONSENT[REFUND])
            and not self.changed_since(intent, {order})
            and order not in self.beside_money.cancelled
        )

    def changed_since(self, intent: Intent, orders: set[tuple[str, str]]) -> bool:
        """Whether we came to know of money of these orders that went without us, after this was
        asked for.
        """
        asked = self.world.submitted[intent.id]
        changes = self.world.provider.changes
        return any(change[:2] in orders and change.known >= asked for change in changes)

    def agrees(self, intent: Intent, needed: str) -> bool:
        """Whether a person with the right says yes to this intent, and says it in time.

        Whoever was told "approved" has agreed. Nobody is at fault who was asked, or heard, late
        because of a fault. Who is never asked, though nothing went wrong, would have agreed.
        """
        if any(w.intent_id == intent.id and w.heard == "approved" for w in self.world.decisions):
            return True
        person, within = self.world.scenario.approver, self.world.scenario.consent_within
        entitled = needed in person.permissions and person.user_id != intent.user_id
        if person.answer(intent.id) != "yes" or not entitled or person.delay >= within:
            return False
        for word in self.world.decisions:
            if word.intent_id == intent.id and word.yes:
                heard = inf if word.answered is None else word.answered
                return heard - word.asked < within * 1e6 or not self.world.struck
        return True

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
        changes = self.world.provider.changes
        return min((c.known for c in changes if c.reference == effect.reference), default=inf)

    def needs_consent(self, intent: Intent) -> bool:
        """Whether the shop lets nobody refund this much alone."""
        limit = self.world.scenario.consent_above * 10 ** law.DECIMALS[intent.currency]
        return bool(intent.amount > limit)

    def refused_before(self, intent_id: str, time: int) -> bool:
        """Whether a person with the right had said no by then, and knew that it was heard."""
        return any(
            word.intent_id == intent_id
            and word.entitled
            and not word.yes
            and word.answered is not None
            and word.answered <= time
            for word in self.world.decisions
        )

    @cached_property
    def orders(self) -> dict[tuple[str, str], Order]:
        """The scenario's orders, by tenant and id."""
        return {(order.tenant_id, order.id): order for order in self.world.scenario.orders}
