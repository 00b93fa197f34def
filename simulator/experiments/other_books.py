"""What tools change beside money: stock, cancelled orders and profiles, against what was asked.

Looked at only where a scenario has such tools, or orders with goods.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from simulator.service.actions import CANCEL, DELETE_PROFILE
from simulator.service.operations import FINAL, REFUND
from simulator.world.law import CONSENT, PERMISSION, asks_consent
from simulator.world.settings import Intent
from simulator.world.world import World

if TYPE_CHECKING:
    from simulator.experiments.facts import Facts
    from simulator.world.approver import Word

__all__ = ["OtherBooks"]

OPERATIONS = """
    SELECT o.id, o.tenant_id, COALESCE(r.user_id, a.user_id), o.action_type, o.status,
           COALESCE(a.arguments, ''), COALESCE(r.intent_id, a.intent_id)
    FROM tool_operations o
    LEFT JOIN refunds r ON r.operation_id = o.id
    LEFT JOIN actions a ON a.operation_id = o.id
"""
CANCELLED = "SELECT tenant_id, id, user_id FROM orders WHERE status = 'cancelled'"

Named = tuple[str, str]
"""(tenant, order), (tenant, user) or (tenant, stock-keeping unit)."""


class OtherBooks:
    """What became of orders, goods and profiles in a finished world.

    Attributes:
        kept: whether there is anything of the kind to judge.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.kept = world.scenario.beside_money

    def unasked(self) -> bool:
        """Whether an order was cancelled, or a profile deleted, that nobody who may asked for."""
        if not self.kept:
            return False
        cancelled = {(tenant, order, user) for (tenant, order), user in self.cancelled.items()}
        return bool(cancelled - self._may_cancel or self._deleted - self._may_delete)

    def differ(self) -> bool:
        """Whether goods, orders, profiles and our record of what was done disagree."""
        if not self.kept:
            return False
        return self._goods_differ() or (self.world.design.record.durable and self._record_differs())

    def false_word(self) -> bool:
        """Whether somebody was told of what was not done (yet) that it is, or the other way."""
        if not (self.kept and self.world.design.record.durable):
            return False
        database = self.world.database
        about = {op[0]: (op[6], op[3]) for op in self._operations}
        done: dict[tuple[str, str], int] = {}
        for (operation, _, after), time in zip(database.changes, database.times, strict=True):
            if after == "succeeded" and operation in about:
                done.setdefault(about[operation], time)
        for told in self.world.told:
            if told.about not in (CANCEL, DELETE_PROFILE):
                continue
            done_at = done.get((told.intent, told.about))
            if told.kind == "done" and (done_at is None or done_at > told.time):
                return True
            if told.kind == "refused" and done_at is not None:
                return True
        return False

    def unapproved(self, facts: Facts) -> bool:
        """Whether something was done that needs a person's yes, and had none in time."""
        if not self.kept:
            return False
        for intent, what, done in self._recorded():
            if asks_consent(what, len(done)) and not self._agreed(facts, intent, done):
                return True
        for intent, what, wanted in self._wishes():
            if not asks_consent(what, len(wanted)):
                continue
            done = wanted & (set(self.cancelled) if what == CANCEL else self._deleted)
            done -= self._back_office | self._wanted_by_others(intent, what)
            if done and not self._agreed(facts, intent, done):
                return True
        return False

    def _agreed(self, facts: Facts, intent: Intent, done: set[Named]) -> bool:
        """Whether there is a good yes to what was done."""
        return any(
            self._counts(word, intent, done) and not facts.refused_before(intent.id, word.said)
            for word in self.world.decisions
        )

    def _recorded(self) -> Iterator[tuple[Intent, str, set[Named]]]:
        """What our record says was done: the intent, the tool, and the orders or the customer."""
        if not self.world.design.record.durable:
            return
        for _, tenant, user, action, status, arguments, intent_id in self._operations:
            if action == REFUND or status != "succeeded":
                continue
            names = json.loads(arguments)["order_ids"] if action == CANCEL else [user]
            intent = self.world.scenario.intent(intent_id)
            yield intent, action, {(tenant, name) for name in names}

    def mismatched(self) -> bool:
        """Whether a call that named other orders than the one before it was not refused."""
        if not (self.kept and self.world.design.record.durable):
            return False
        recorded = {
            op[6]: frozenset(json.loads(op[5])["order_ids"])
            for op in self._operations
            if op[3] == CANCEL
        }
        for request, answer in self.world.backends.answers:
            first = recorded.get(request.session.intent_id)
            if request.call.name != CANCEL or first is None:
                continue
            if answer.kind in ("done", "verifying") and _names(request.call.arguments) != first:
                return True
        return False

    def _counts(self, word: Word, intent: Intent, done: set[Named]) -> bool:
        """Whether this is a good yes to what was done, and came before it."""
        in_time = any(
            consent.entitled and (consent.intent_id, consent.time) == (intent.id, word.said)
            for consent in self.world.consents
        )
        yes = word.intent_id == intent.id and word.yes and word.entitled
        return yes and in_time and not done & word.gone

    def lost(self, facts: Facts) -> bool:
        """Whether a wish of another tool was not fulfilled though nothing spoke against it.

        A refund of the same order or customer may: it is not looked at more closely.
        """
        if not self.kept:
            return False
        for intent, what, wanted in self._wishes():
            if intent.id not in self.world.submitted or intent.id in facts.intents_tasked:
                continue
            if not self._mine(intent, what, wanted) or self._spoken_against(intent, what, wanted):
                continue
            asks = asks_consent(what, len(wanted))
            if asks and not facts.agrees(intent, CONSENT[what]):
                continue
            if asks and what == CANCEL and facts.changed_since(intent, wanted):
                continue
            if not wanted <= (set(self.cancelled) if what == CANCEL else self._deleted):
                return True
        return False

    def _mine(self, intent: Intent, what: str, wanted: set[Named]) -> bool:
        """Whether what is wanted is the customer's own."""
        orders = self.world.scenario.orders
        mine = {(o.tenant_id, o.id) for o in orders if o.user_id == intent.user_id}
        customers = {(order.tenant_id, order.user_id) for order in orders}
        return bool(wanted) and wanted <= (mine if what == CANCEL else customers)

    def _spoken_against(self, intent: Intent, what: str, wanted: set[Named]) -> bool:
        refunds = [self.world.scenario.intent(name) for name in self._refund_intents]
        of_refunds = {
            (refund.tenant_id, refund.order_id if what == CANCEL else refund.user_id)
            for refund in refunds
        }
        others = self._wanted_by_others(intent, what)
        return bool(wanted & (of_refunds | others | self._back_office))

    def _wanted_by_others(self, intent: Intent, what: str) -> set[Named]:
        """What other wishes of the same kind name, too."""
        found: set[Named] = set()
        for other, tool, wanted in self._wishes():
            if tool == what and other.id != intent.id:
                found |= wanted
        return found

    @cached_property
    def _refund_intents(self) -> frozenset[str]:
        return self.world.scenario.refund_intents

    def _wishes(self) -> Iterator[tuple[Intent, str, set[Named]]]:
        """Each intent of another tool, where its session allows it and its calls agree: the
        tool, and the orders or the customer that they name.
        """
        scenario = self.world.scenario
        for intent in scenario.intents:
            calls = {
                (each.tool, tuple(sorted(_names(dict(each.arguments)))))
                for each in scenario.submissions
                if each.intent_id == intent.id
            }
            if len(calls) != 1:
                continue
            ((what, names),) = calls
            if what not in (CANCEL, DELETE_PROFILE):
                continue
            if PERMISSION[what] not in intent.permissions:
                continue
            named = names if what == CANCEL else (intent.user_id,)
            yield intent, what, {(intent.tenant_id, name) for name in named}

    @cached_property
    def _operations(self) -> list[Any]:
        return self.world.database.rows(OPERATIONS)

    @cached_property
    def cancelled(self) -> dict[Named, str]:
        """Cancelled orders, and whose they are."""
        rows = self.world.database.rows(CANCELLED)
        return {(tenant, order): user for tenant, order, user in rows}

    @cached_property
    def _deleted(self) -> set[Named]:
        """Customers whose profile is gone: everybody who had an order had one."""
        there = set(self.world.database.rows("SELECT tenant_id, user_id FROM profiles"))
        return {(order.tenant_id, order.user_id) for order in self.world.scenario.orders} - there

    def _asked(self, tool: str) -> Iterator[tuple[Intent, Any]]:
        """Who asked for this in a session that allows it, and what the call said."""
        scenario = self.world.scenario
        for submission in scenario.submissions:
            intent = scenario.intent(submission.intent_id)
            if submission.tool == tool and PERMISSION[tool] in intent.permissions:
                yield intent, dict(submission.arguments)

    @property
    def _may_cancel(self) -> set[tuple[str, str, str]]:
        mine = {
            (intent.tenant_id, name, intent.user_id)
            for intent, arguments in self._asked(CANCEL)
            for name in _names(arguments)
        }
        return mine | {
            (tenant, order, user)
            for (tenant, order), user in self.cancelled.items()
            if (tenant, order) in self._back_office
        }

    @property
    def _may_delete(self) -> set[Named]:
        return {(intent.tenant_id, intent.user_id) for intent, _ in self._asked(DELETE_PROFILE)}

    @cached_property
    def _back_office(self) -> set[Named]:
        """Orders that a colleague cancels."""
        outside = self.world.scenario.outside
        return {(event.tenant_id, event.order_id) for event in outside if event.what == "cancel"}

    def _goods_differ(self) -> bool:
        """Whether the stock is not the sum of what cancelled orders gave back."""
        back: Counter[Named] = Counter()
        for order in self.world.scenario.orders:
            if (order.tenant_id, order.id) in self.cancelled:
                for sku, quantity in order.lines:
                    back[order.tenant_id, sku] += quantity
        rows = self.world.database.rows("SELECT tenant_id, sku, on_hand FROM stock")
        return back != Counter({(tenant, sku): on_hand for tenant, sku, on_hand in rows})

    def _record_differs(self) -> bool:
        """Whether something was done that no operation says, or not done that one says."""
        orders: set[Named] = set()
        profiles: set[Named] = set()
        for _, tenant, user, action, status, arguments, _ in self._operations:
            if status != "succeeded":
                continue
            if action == CANCEL:
                orders |= {(tenant, name) for name in json.loads(arguments)["order_ids"]}
            elif action == DELETE_PROFILE:
                profiles.add((tenant, user))
        cancelled = set(self.cancelled)
        return (
            not orders <= cancelled <= orders | self._back_office
            or profiles != self._deleted
            or self._deleted_too_early()
        )

    def _deleted_too_early(self) -> bool:
        """Whether a profile went while a refund of its customer was open."""
        known = {op[0]: ((op[1], op[2]), op[3]) for op in self._operations}
        status: dict[str, str] = {}
        for operation, _, after in self.world.database.changes:
            if operation not in known:
                continue
            status[operation] = after
            who, action = known[operation]
            if (action, after) == (DELETE_PROFILE, "succeeded") and any(
                known[other] == (who, REFUND) and state not in FINAL
                for other, state in status.items()
            ):
                return True
        return False


def _names(arguments: Mapping[str, Any]) -> set[str]:
    """The orders that a call names, in one spelling."""
    names = arguments.get("order_ids", ())
    if not isinstance(names, list | tuple):
        return set()
    return {unicodedata.normalize("NFC", name) for name in names if isinstance(name, str)}
