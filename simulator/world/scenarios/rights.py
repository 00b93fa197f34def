"""Calls for what the session, or the customer, has no right to."""

from __future__ import annotations

from typing import Self

from simulator.world.scenarios.base import BaseScenario
from simulator.world.settings import OTHER_TENANT, OTHER_USER, Intent, Order, Submission

__all__ = ["RightsScenarios"]


class RightsScenarios(BaseScenario):
    """The part of `Scenario` that is about them."""

    @classmethod
    def injected_arguments(cls) -> Self:
        """Nobody is owed anything: a letter to the model made it call. Once for an order of
        another shop, once for another customer's, once in a session that may not refund.
        """
        return cls(
            name="injected_arguments",
            orders=(
                Order(),
                Order("ORD-1002", user_id=OTHER_USER),
                Order("ORD-2001", tenant_id=OTHER_TENANT, user_id=OTHER_USER),
            ),
            intents=(
                Intent("intent-1", order_id="ORD-2001", owed=False),
                Intent("intent-2", order_id="ORD-1002", owed=False),
                Intent("intent-3", owed=False, permissions=frozenset({"order:read"})),
            ),
            submissions=(
                Submission(
                    "intent-1", arguments={"tenant_id": OTHER_TENANT, "user_id": OTHER_USER}
                ),
                Submission("intent-2", at=10.0),
                Submission("intent-3", at=20.0),
            ),
        )

    @classmethod
    def without_permission(cls) -> Self:
        """Three sessions ask for a refund, and none may: one may nothing at all, one may read
        refunds, one may cancel orders.
        """
        sessions = (frozenset[str](), frozenset({"refund:read"}), frozenset({"order:cancel"}))
        names = [f"intent-{number + 1}" for number in range(len(sessions))]
        return cls(
            name="without_permission",
            intents=tuple(
                Intent(name, amount=100_00, owed=False, permissions=permissions)
                for name, permissions in zip(names, sessions, strict=True)
            ),
            submissions=tuple(Submission(name, at=10.0 * at) for at, name in enumerate(names)),
        )
