"""Exactly one refund: the simulator.

    from simulator import designs, replay, explore, simulate, sweep, storm, Scenario, faults

Names are loaded when they are first used, so that `import simulator` is quick and loads
neither pandas nor matplotlib.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.experiments.explore import explore
    from simulator.experiments.replay import replay
    from simulator.experiments.simulate import simulate
    from simulator.experiments.storm import storm
    from simulator.experiments.sweep import sweep
    from simulator.service import designs
    from simulator.service.design import Design
    from simulator.world import faults
    from simulator.world.scenario import Scenario

__all__ = [
    "Design",
    "Scenario",
    "designs",
    "explore",
    "faults",
    "replay",
    "simulate",
    "storm",
    "sweep",
]

_HOME = {
    "Design": "simulator.service.design",
    "Scenario": "simulator.world.scenario",
    "designs": "simulator.service",
    "explore": "simulator.experiments.explore",
    "faults": "simulator.world",
    "replay": "simulator.experiments.replay",
    "simulate": "simulator.experiments.simulate",
    "storm": "simulator.experiments.storm",
    "sweep": "simulator.experiments.sweep",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"simulator has no {name!r}. It has: {', '.join(sorted(_HOME))}.")
    home = _HOME[name]
    if name in ("designs", "faults"):
        value: Any = import_module(f"{home}.{name}")
    else:
        value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOME))
