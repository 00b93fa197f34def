"""What people ask for, and of which world: the setting of a history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.world.scenarios.consents import ConsentScenarios
from simulator.world.scenarios.other_tools import ToolScenarios
from simulator.world.scenarios.outsiders import OutsideScenarios
from simulator.world.scenarios.providers import ProviderScenarios
from simulator.world.scenarios.refunds import RefundScenarios
from simulator.world.scenarios.rights import RightsScenarios
from simulator.world.settings import (
    ORDER_ID,
    TENANT,
    USER,
    AgentSettings,
    ApproverSettings,
    Intent,
    Order,
    Outside,
    ProviderSettings,
    Submission,
    WebhookSettings,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ORDER_ID",
    "TENANT",
    "USER",
    "AgentSettings",
    "ApproverSettings",
    "Intent",
    "Order",
    "Outside",
    "ProviderSettings",
    "Scenario",
    "Submission",
    "WebhookSettings",
    "ready_scenarios",
]


class Scenario(
    RefundScenarios,
    ProviderScenarios,
    RightsScenarios,
    OutsideScenarios,
    ConsentScenarios,
    ToolScenarios,
):
    """A setting: orders, intents, what is submitted when, and to whom.

    Write your own with the constructor, or change one: `Scenario.one_refund().but(...)`.

    Attributes:
        name: for tables and figures.
        orders, intents, submissions: see there.
        agent, provider, approver: see there.
        outside: what happens to the orders without us.
        poison: intents whose event kills every worker that is about to send it.
        consent_above: whole units of a currency that the shop lets nobody refund alone.
        consent_within: seconds after its question within which a person's yes has to count.
        backends, workers: how many processes of each.

    Raises:
        ValueError: a submission names an intent that does not exist, or an intent an order.
    """


def ready_scenarios() -> dict[str, Callable[[], Scenario]]:
    """The scenarios that need no arguments, by name; the plainest come first."""
    return {
        name: getattr(Scenario, name)
        for group in Scenario.__bases__
        for name, method in vars(group).items()
        if isinstance(method, classmethod)
    }
