"""Retries in several layers multiply: 3 attempts in 5 layers are 243 calls (Builders' Library)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simulator.experiments.storm import Load, Provider, storm
from simulator.service.retry import Immediate

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["layered", "layers_by_attempts"]


def layered(
    layers: int, attempts: int, *, failure_rate: float = 1.0, clients: int = 10, seed: int = 1
) -> Load:
    """Clients behind `layers` layers, each of which sends up to `attempts` times.

    Args:
        layers: how many; 1 or more.
        attempts: of each layer, the first send included.
        failure_rate: the probability that the provider refuses a call; 1 = it is down.
        clients: how many refunds are wanted.
        seed: of all luck.
    """
    return storm(
        clients,
        [Immediate(attempts)] * layers,
        provider=Provider(servers=None, service=0.0, failure_rate=failure_rate),
        outages=(),
        seed=seed,
    )


def layers_by_attempts(
    layers: Sequence[int] = (1, 2, 3, 4, 5),
    attempts: Sequence[int] = (1, 2, 3, 4),
    *,
    failure_rate: float = 1.0,
    clients: int = 10,
    seed: int = 1,
) -> DataFrame:
    """Calls for each refund: one row per pair, columns `layers, attempts, calls`."""
    from pandas import DataFrame

    rows = []
    for deep in layers:
        for often in attempts:
            load = layered(deep, often, failure_rate=failure_rate, clients=clients, seed=seed)
            rows.append({"layers": deep, "attempts": often, "calls": load.calls / load.asked})
    return DataFrame(rows)
