"""Worlds whose every part a test can reach, and pipelines of a test's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.service.answers import Answer
from simulator.service.design import Design
from simulator.service.designs import NAIVE
from simulator.service.payment import RefundOrder
from simulator.world.database import Store
from simulator.world.faults import Fault, Plan
from simulator.world.scenario import Scenario
from simulator.world.world import World

Handle = Callable[..., Any]


def order(session: Any, amount: int = 500_00, key: str | None = None) -> RefundOrder:
    """What a pipeline of a test sends to the provider."""
    return RefundOrder(session.intent_id, "ORD-1001", amount, "USD", key)


@pytest.fixture
def store() -> Store:
    """A database of this test's own."""
    return Store()


@pytest.fixture
def world(store: Store) -> Callable[..., World]:
    """Runs one history and returns its world: world(design, *faults, scenario=…)."""

    def run(
        design: Design,
        *faults: Fault,
        scenario: Scenario | None = None,
        seed: int = 0,
        heal: bool = True,
        quiet: bool = False,
        on: Store | None = None,
    ) -> World:
        made = World(
            design,
            scenario or Scenario.one_refund(),
            Plan(faults),
            seed,
            on or store,
            heal=heal,
            quiet=quiet,
        )
        return made.run()

    return run


@pytest.fixture
def pipe() -> Callable[[Handle], Design]:
    """A design with a pipeline of the test's own, without workers."""

    def build(handle: Handle) -> Design:
        return NAIVE.but(name="mine", handle=handle)

    return build


@pytest.fixture
def send() -> Callable[..., RefundOrder]:
    return order


@pytest.fixture
def later() -> Answer:
    """An answer that claims nothing."""
    return Answer("verifying", "later")
