"""HTTP as every part here needs it: small servers, and one request at a time.

The client is urllib3, used below its pool: a connection of its own for every request, no
retries that nobody asked for, and a place between "sent" and "answered" to be killed at.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

from simulator.live.problems import Problem
from simulator.service.errors import CallTimeout, ConnectionLost

__all__ = ["Answered", "Handler", "Server", "ask", "serve"]


class Answered:
    """An HTTP answer."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


def ask(
    url: str,
    method: str,
    path: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    timeout: float = 5.0,
    sent: Callable[[], None] = lambda: None,
) -> Answered:
    """Sends one request and waits for its answer.

    Raises:
        CallTimeout: no answer within `timeout` seconds.
        ConnectionLost: the connection broke, or there was none.
    """
    from urllib3.connection import HTTPConnection
    from urllib3.exceptions import HTTPError

    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)
    end = time.monotonic() + timeout
    try:
        connection.request(method, path, body=body, headers=dict(headers or {}))
        sent()
        if connection.sock is not None:
            connection.sock.settimeout(max(0.001, end - time.monotonic()))
        response = connection.getresponse()
        return Answered(response.status, response.headers, response.data)
    except TimeoutError as error:
        raise CallTimeout(f"no answer from {parts.netloc} within {timeout:g} s") from error
    except (OSError, HTTPException, HTTPError) as error:
        raise ConnectionLost(f"{parts.netloc}: {error or type(error).__name__}") from error
    finally:
        connection.close()


class Server(ThreadingHTTPServer):
    """A server on loopback with a thread for every connection."""

    daemon_threads = True
    request_queue_size = 128
    closing: Callable[[], None] = staticmethod(lambda: None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that has gone away is nothing to report; anything else is."""
        import sys

        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """Where it can be reached."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Takes no more requests, and closes what it holds open."""
        self.shutdown()
        self.server_close()
        self.closing()


class Handler(BaseHTTPRequestHandler):
    """Reads requests and sends JSON; subclasses say what to do."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm: ClassVar[bool] = True

    def body(self) -> bytes:
        """The body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def reply(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Answers; in silence if nobody listens any more."""
        with suppress(OSError):
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                **(headers or {}),
                "Content-Length": str(len(body)),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    def reply_json(self, status: int, value: Any) -> None:
        """Answers with JSON."""
        self.reply(status, json.dumps(value).encode())

    def say_nothing(self) -> None:
        """Leaves the caller waiting until it goes away."""
        self.close_connection = True
        with suppress(OSError):
            self.connection.settimeout(60.0)
            while self.connection.recv(4096):
                pass

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Keeps quiet."""


def serve(handler: type[Handler], port: int = 0) -> Server:
    """Starts a server on loopback in a thread; `port` 0 takes a free one.

    Raises:
        Problem: the port is in use, or not for us.
    """
    try:
        server = Server(("127.0.0.1", port), handler)
    except OSError as error:
        raise Problem(
            f"Port {port} on 127.0.0.1 cannot be had ({error.strerror}). Stop what uses it, or "
            "name another port; 0 takes a free one."
        ) from error
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server
