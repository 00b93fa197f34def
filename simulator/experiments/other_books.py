"""What tools change beside money: stock, cancelled orders and profiles, against what was asked.

Looked at only where a scenario has such tools, or orders with goods.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from simulator.service.actions import CANCEL, DELETE_PROFILE
from simulator.service.operations import FINAL, REFUND
from simulator.service.tools import TOOLS
from simulator.world.settings import Intent
from simulator.world.world import World

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
        cancelled = {(tenant, order, user) for (tenant, order), user in self._cancelled.items()}
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

    @cached_property
    def _operations(self) -> list[Any]:
        return self.world.database.rows(OPERATIONS)

    @cached_property
    def _cancelled(self) -> dict[Named, str]:
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
            if submission.tool == tool and TOOLS[tool].permission in intent.permissions:
                yield intent, dict(submission.arguments)

    @property
    def _may_cancel(self) -> set[tuple[str, str, str]]:
        mine = {
            (intent.tenant_id, unicodedata.normalize("NFC", name), intent.user_id)
            for intent, arguments in self._asked(CANCEL)
            for name in arguments.get("order_ids", ())
            if isinstance(name, str)
        }
        return mine | {
            (tenant, order, user)
            for (tenant, order), user in self._cancelled.items()
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
            if (order.tenant_id, order.id) in self._cancelled:
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
        cancelled = set(self._cancelled)
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
