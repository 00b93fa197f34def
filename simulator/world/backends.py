"""The backends: each request that arrives at one is a task in its life."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from simulator.service import pipeline, tools, webhooks
from simulator.service.answers import KINDS, Answer
from simulator.service.design import Design
from simulator.service.errors import ConnectionLost
from simulator.world.agent import ToolRequest
from simulator.world.approver import DecisionRequest
from simulator.world.clock import Life
from simulator.world.mistakes import SERVICE_ERRORS, Mistake, explained
from simulator.world.network import Exchange
from simulator.world.reports import ReportRequest
from simulator.world.runtime import VirtualRuntime

if TYPE_CHECKING:
    from simulator.world.world import World

__all__ = ["Backends"]


class Backends:
    """What the backends are busy with.

    Attributes:
        answers: (request, answer) of every tool call that was answered.
        arrivals: when each of these requests had arrived; microseconds.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.answers: list[tuple[ToolRequest, Answer]] = []
        self.arrivals: list[int] = []
        self._served: dict[Life, list[Exchange]] = {}

    def serve(self, exchange: Exchange) -> None:
        """A request has arrived at its instance."""
        life = self.world.lives[exchange.server]
        if not life.alive:
            exchange.broken()
            return
        serving = self._served.setdefault(life, [])
        serving.append(exchange)
        if life.paused:
            # It waits at the door, and learns of the death of whoever should have opened.
            def later() -> None:
                serving.remove(exchange)
                self.serve(exchange)

            life.inbox.append(later)
            return

        arrived = int(self.world.clock.now)

        def ended(answer: Any, error: BaseException | None) -> None:
            serving.remove(exchange)
            if error is None:
                self._checked(exchange.request, answer, arrived)
                exchange.respond(answer)
            elif isinstance(error, SERVICE_ERRORS):
                self.world.note(life.process, "error", type(error).__name__, text=str(error))
                exchange.respond(ConnectionLost("500 Internal Server Error"))
            else:
                raise explained(life.process, error)

        runtime = VirtualRuntime(self.world, life)
        self.world.run_task(life, steps_for(runtime, self.world.design, exchange.request), ended)

    def dropped(self, life: Life) -> None:
        """A backend has died: whoever waits for it learns that the connection broke."""
        for exchange in self._served.pop(life, []):
            exchange.broken()

    def _checked(self, request: Any, answer: Any, arrived: int) -> None:
        if not isinstance(request, ToolRequest):
            return
        if not isinstance(answer, Answer) or answer.kind not in KINDS:
            raise Mistake(
                f"The pipeline returned {answer!r} to the agent. It has to return an "
                "Answer, for example Answer('done', 'Your refund has been paid.'). "
                f"Kinds of answers: {', '.join(sorted(KINDS))}."
            )
        self.answers.append((request, answer))
        self.arrivals.append(arrived)


def steps_for(runtime: VirtualRuntime, design: Design, request: Any) -> Generator[Any, Any, Any]:
    """What a backend does with a request."""
    if isinstance(request, DecisionRequest):
        return pipeline.consent(runtime, design, request.decision, request.session)
    if isinstance(request, ReportRequest):
        return webhooks.receive(runtime, design, request.report)
    handle = design.handle or tools.handle
    generator = handle(runtime, design, request.call, request.session)
    if not hasattr(generator, "send"):
        raise Mistake(
            f"The pipeline returned {generator!r} at once. Write it as a generator: it "
            "waits with `yield from rt.call(…)` and ends with `return Answer(…)`."
        )
    return generator
