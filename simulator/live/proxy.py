"""The network between us and the provider: a proxy on loopback that loses, breaks and delays."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from urllib.parse import parse_qsl

from simulator.live.clock import Clock
from simulator.live.stops import Stops
from simulator.live.trouble import NETWORK, Dice, Trouble
from simulator.live.web import Answered, Handler, Server, ask, serve
from simulator.service.errors import Silence

__all__ = ["start_proxy"]

PATIENCE = 60.0
"""Seconds of the wall's clock that the proxy waits for the provider."""

PASSED_ON = ("Authorization", "Idempotency-Key", "Content-Type")
PASSED_BACK = ("Content-Type", "Request-Id", "Idempotent-Replayed", "Retry-After")


def start_proxy(
    provider: str, clock: Clock, trouble: Trouble, stops: Stops | None = None
) -> Server:
    """Starts the proxy in this process, before the provider at the URL `provider`."""
    line = stops or Stops()
    dice = Dice(trouble, NETWORK, lambda kind: line.report("fault", kind))

    class ProxyHandler(Handler):
        def do_POST(self) -> None:  # noqa: N802 - the base's name
            body = self.body()
            intent = dict(parse_qsl(body.decode())).get("metadata[intent_id]", "")
            self.pass_on(body, dice.throw(intent))

        def do_GET(self) -> None:  # noqa: N802
            self.pass_on(b"", None)

        def pass_on(self, body: bytes, fault: str | None) -> None:
            if fault == "lose_request":
                return self.say_nothing()
            if fault == "reset_before":
                return self.reset()
            if fault == "slow":
                clock.sleep(trouble.slow_seconds)
            answer = self.ask_provider(body)
            if fault == "lose_response":
                return self.say_nothing()
            if answer is None or fault == "reset_after":
                return self.reset()
            headers = {name: answer.headers[name] for name in PASSED_BACK if name in answer.headers}
            return self.reply(answer.status, answer.body, headers)

        def ask_provider(self, body: bytes) -> Answered | None:
            headers = {name: self.headers[name] for name in PASSED_ON if name in self.headers}
            try:
                return ask(provider, self.command, self.path, body, headers, PATIENCE)
            except Silence:
                return None

        def reset(self) -> None:
            """Breaks the connection, so that the caller notices at once."""
            self.close_connection = True
            with suppress(OSError):
                # Lingering for 0 seconds makes close() send a reset.
                self.connection.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
                self.connection.close()

    return serve(ProxyHandler)
