"""A message broker that forgets a message as soon as a worker has taken it."""

from __future__ import annotations

from collections import deque
from typing import Any

from simulator.service.operations import Operation
from simulator.world.clock import Clock, Life

__all__ = ["Broker"]


class Broker:
    """Hands each message to the worker that has waited longest."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.messages: deque[Operation] = deque()
        self.waiting: deque[tuple[Life, Any]] = deque()

    def publish(self, operation: Operation) -> None:
        """Takes a message."""
        self.messages.append(operation)
        self._hand_out()

    def take(self, life: Life) -> Any:
        """The event that gives this worker its next message."""
        event = self.clock.event()
        self.waiting.append((life, event))
        self._hand_out()
        return event

    def _hand_out(self) -> None:
        while self.messages and self.waiting:
            life, event = self.waiting.popleft()
            if life.alive:
                event.succeed(self.messages.popleft())
