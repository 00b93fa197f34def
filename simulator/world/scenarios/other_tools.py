"""Tools beside the refund: cancelled orders with their goods, and deleted profiles."""

from __future__ import annotations

from typing import Self

from simulator.world.scenarios.base import BaseScenario
from simulator.world.settings import OTHER_USER, Intent, Order, Outside, Submission

__all__ = ["ToolScenarios"]


class ToolScenarios(BaseScenario):
    """The part of `Scenario` that is about them."""

    @classmethod
    def cancelled_orders(cls) -> Self:
        """Two orders are cancelled with their goods, all or nothing, after a person's consent;
        and the call comes again.
        """
        books = {"order_ids": ["ORD-1001", "ORD-1002"]}
        return cls(
            name="cancelled_orders",
            orders=(
                Order(lines=(("LANTERN-1", 2),)),
                Order("ORD-1002", lines=(("LANTERN-1", 1), ("BOOK-7", 3))),
            ),
            intents=(Intent("intent-1", owed=False, permissions=frozenset({"order:cancel"})),),
            submissions=(
                Submission("intent-1", tool="cancel_orders", arguments=books),
                Submission(
                    "intent-1",
                    at=10.0,
                    instance="backend-2",
                    tool="cancel_orders",
                    arguments=books,
                ),
            ),
        )

    @classmethod
    def deleted_profile(cls) -> Self:
        """A customer wants to be forgotten while a refund of hers is still on its way."""
        return cls(
            name="deleted_profile",
            intents=(
                Intent("intent-1"),
                Intent("intent-2", owed=False, permissions=frozenset({"profile:delete"})),
            ),
            submissions=(
                Submission("intent-1"),
                Submission("intent-2", at=0.02, instance="backend-2", tool="delete_profile"),
            ),
        )

    @classmethod
    def cancelled_before(cls) -> Self:
        """A colleague cancels an order and puts its goods back. Then the customer asks for it."""
        return cls(
            name="cancelled_before",
            orders=(Order(lines=(("LANTERN-1", 2),)),),
            intents=(Intent("intent-1", owed=False, permissions=frozenset({"order:cancel"})),),
            submissions=(
                Submission(
                    "intent-1",
                    at=60.0,
                    tool="cancel_orders",
                    arguments={"order_ids": ["ORD-1001"]},
                ),
            ),
            outside=(Outside("cancel", at=1.0),),
        )

    @classmethod
    def strangers_goods(cls) -> Self:
        """A letter to the model made it cancel another customer's order; then somebody cancels,
        and somebody deletes, whose session may not. Only the last wish is honest: a customer's,
        to be forgotten.
        """
        cancels, deletes = frozenset({"order:cancel"}), frozenset({"profile:delete"})
        reads = frozenset({"order:read"})

        def cancel(intent_id: str, at: float, order_id: str) -> Submission:
            wanted = {"order_ids": [order_id]}
            return Submission(intent_id, at=at, tool="cancel_orders", arguments=wanted)

        return cls(
            name="strangers_goods",
            orders=(
                Order(lines=(("LANTERN-1", 2),)),
                Order("ORD-1002", user_id=OTHER_USER, lines=(("BOOK-7", 3),)),
            ),
            intents=(
                Intent("intent-1", owed=False, permissions=cancels),
                Intent("intent-2", owed=False, permissions=reads),
                Intent("intent-3", owed=False, permissions=reads, user_id=OTHER_USER),
                Intent("intent-4", owed=False, permissions=deletes),
            ),
            submissions=(
                cancel("intent-1", 0.0, "ORD-1002"),
                cancel("intent-2", 10.0, "ORD-1001"),
                Submission("intent-3", at=20.0, tool="delete_profile"),
                Submission("intent-4", at=30.0, tool="delete_profile"),
            ),
        )
