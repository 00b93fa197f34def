"""Places where a process can be made to stop, so that it is killed exactly there.

Whoever wants to kill arms a place: `("provider.refund", "after_send")`. The process that gets
there says so, and waits for the SIGKILL. No sleep has to be right for this.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NoReturn

__all__ = ["CALL_PLACES", "TRANSACTION_PLACES", "Stops"]

CALL_PLACES = ("before_send", "after_send", "after_answer")
TRANSACTION_PLACES = ("before", "inside", "after")
"""Of a transaction: before BEGIN, before COMMIT with all statements done, after COMMIT."""


class Stops:
    """The end of the line to the parent that a process holds; without a line it never stops.

    If the line breaks, the parent is gone: the process calls `orphaned`, and ends itself.
    """

    def __init__(
        self, line: Connection | None = None, orphaned: Callable[[], None] = lambda: None
    ) -> None:
        self._line = line
        self._orphaned = orphaned
        self._armed: tuple[str, str] | None = None
        self._sending = threading.Lock()
        if line is not None:
            threading.Thread(target=self._listen, args=(line,), daemon=True).start()

    def at(self, what: str, place: str) -> None:
        """Says that the process has come to this place; stops for ever if it is the armed one."""
        if self._armed == (what, place):
            self.report("stopped", what, place)
            threading.Event().wait()

    def report(self, *message: Any) -> None:
        """Tells the parent something."""
        if self._line is not None:
            with self._sending:
                try:
                    self._line.send(message)
                except OSError:
                    # The parent is gone. Whoever listens notices, too, and ends this process.
                    threading.Event().wait()

    def _listen(self, line: Connection) -> NoReturn:
        while True:
            try:
                self._armed = line.recv()
            except (EOFError, OSError):
                try:
                    self._orphaned()
                finally:
                    os._exit(0)
