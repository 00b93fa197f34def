"""The histories whose text is kept beside this file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulator.experiments.replay import replay
from simulator.experiments.simulate import run_one, world_seed
from simulator.service.designs import NAIVE, OUTBOX, SAFE
from simulator.world import faults
from simulator.world.faults import Rates
from simulator.world.scenario import Scenario

ROUGH = Rates.all(0.08)

HISTORIES: dict[str, Callable[[], Any]] = {
    "naive_lost_response": lambda: replay(NAIVE, faults=[faults.lose_response("provider.refund")]),
    "outbox_pause": lambda: replay(
        OUTBOX,
        Scenario.double_click(),
        faults=[faults.pause("worker-1:provider.refund", when="after_answer", seconds=60.0)],
    ),
    "safe_rough": lambda: run_one(SAFE, ROUGH, Scenario.two_partial_refunds(), world_seed(1, 4)),
}


def text() -> str:
    """All of them, one after the other."""
    return "".join(f"{name}\n{make().text}\n" for name, make in sorted(HISTORIES.items()))
