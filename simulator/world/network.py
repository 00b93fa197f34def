"""Messages: they take time, and may be lost, late, doubled, or cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulator.service.errors import ConnectionLost
from simulator.world.clock import Life, microseconds
from simulator.world.faults import Fault

if TYPE_CHECKING:
    from simulator.world.world import World

__all__ = ["Exchange"]

AGAIN_AFTER = 20_000
"""Microseconds after which a doubled request arrives the second time."""


class Exchange:
    """One request and its answer.

    Args:
        client: the life that sent it.
        server: lane of whoever is to receive it.
        name: of the call.
        reply: the SimPy event that the client waits for; it gets the answer, or an exception
            as its value.
        leg: microseconds one way.
        fault: what will go wrong with it, if anything.
    """

    __slots__ = ("client", "fault", "leg", "name", "over", "reply", "request", "server", "world")

    def __init__(
        self,
        world: World,
        client: Life,
        server: str,
        name: str,
        request: Any,
        reply: Any,
        leg: int,
        fault: Fault | None,
    ) -> None:
        self.world = world
        self.client = client
        self.server = server
        self.name = name
        self.request = request
        self.reply = reply
        self.leg = leg
        self.fault = fault
        self.over = False

    def send(self) -> None:
        """Puts the request on its way."""
        world, fault = self.world, self.fault
        message = world.message()
        label = world.label(self.request)
        world.note(self.client.process, "request", self.name, self.server, message, text=label)
        kind = "" if fault is None else fault.kind
        if kind == "lose_request" or (kind == "reset" and fault and fault.when == "before"):
            world.note(self.server, "lost", self.name, self.client.process, message)
            if kind == "reset":
                self._tell_broken()
            return
        leg = self.leg
        if kind == "delay_request" and fault is not None:
            leg += microseconds(fault.seconds)
        world.clock.after(leg, lambda _: self._arrive(message))
        if kind == "duplicate_request":
            again = world.message()
            world.note(self.client.process, "request", self.name, self.server, again, text=label)
            copy = Exchange(
                world, self.client, self.server, self.name, self.request, None, self.leg, None
            )
            world.clock.after(leg + AGAIN_AFTER, lambda _: copy._arrive(again))

    def _arrive(self, message: int) -> None:
        self.world.note(self.server, "arrive", self.name, self.client.process, message)
        self.world.serve(self)

    def respond(self, answer: Any) -> None:
        """Puts the answer on its way back; an exception is an answer too."""
        if self.over:
            return
        self.over = True
        world, fault = self.world, self.fault
        message = world.message()
        said = "" if world.quiet else str_of(answer)
        world.note(self.server, "response", self.name, self.client.process, message, text=said)
        kind = "" if fault is None else fault.kind
        if kind == "lose_response" or kind == "reset":
            world.note(self.client.process, "lost", self.name, self.server, message)
            if kind == "reset":
                self._tell_broken()
            return
        leg = self.leg
        if kind == "delay_response" and fault is not None:
            leg += microseconds(fault.seconds)
        world.clock.after(leg, lambda _: self._arrive_back(message, answer))

    def broken(self) -> None:
        """The server is gone, or never was there: the client learns that it broke."""
        if not self.over:
            self.over = True
            self._tell_broken()

    def _tell_broken(self) -> None:
        error = ConnectionLost(f"the connection to {self.server} broke")
        self.world.clock.after(self.leg, lambda _: self._give(error))

    def _arrive_back(self, message: int, answer: Any) -> None:
        self.world.note(self.client.process, "arrive", self.name, self.server, message)
        self._give(answer)

    def _give(self, answer: Any) -> None:
        if self.reply is not None and not self.reply.triggered:
            self.reply.succeed(answer)


def str_of(answer: Any) -> str:
    """What an answer says, in short."""
    kind = getattr(answer, "kind", None)
    return str(answer) if kind is None else str(kind)
