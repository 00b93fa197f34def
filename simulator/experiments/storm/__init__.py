"""Retry storms: many clients, one provider with a capacity, and what retries do to it.

`storm` runs one and returns a `Load`. The parts, one idea a file: `luck` (who draws what),
`traffic` (how many refunds are wanted), `guards` (budgets and breakers), `provider` (capacity,
queue, outages), `fleet` (the clients), `run` (the function), `load` (the result).
"""

from __future__ import annotations

from simulator.experiments.storm.guards import (
    BotocoreBudget,
    CircuitBreaker,
    Guard,
    RetryBreaker,
    TokenBucket,
)
from simulator.experiments.storm.load import Load
from simulator.experiments.storm.luck import Luck
from simulator.experiments.storm.provider import Provider
from simulator.experiments.storm.run import storm
from simulator.experiments.storm.traffic import Spike, UpAndDown

__all__ = [
    "BotocoreBudget",
    "CircuitBreaker",
    "Guard",
    "Load",
    "Luck",
    "Provider",
    "RetryBreaker",
    "Spike",
    "TokenBucket",
    "UpAndDown",
    "storm",
]
