"""Stopping a student's endless loop, from inside the process that runs it."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
from types import FrameType
from typing import Any

__all__ = ["TooLong", "limit"]

AGAIN = 0.05
"""Seconds until the loop is struck again: code of the student's may have eaten the first."""


class TooLong(BaseException):
    """The time is over. Not an Exception, so that `except Exception` does not eat it."""


def limit(seconds: float) -> _BySignal | _ByThread:
    """A context that raises TooLong in its body when that runs longer than `seconds`.

    In the main thread of a system with interval timers a signal does it; anywhere else (Windows,
    another thread) a second thread raises it at the next line of Python, and a bare `except:`
    in the loop may eat it. A call into C that never returns can't be stopped by either. The body
    is left in the middle: it must not hold anything that it alone would put back.
    """
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        return _BySignal(seconds)
    return _ByThread(seconds)


class _BySignal:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        self.body = sys._getframe(1)
        self.trace = sys.gettrace()
        self.handler = signal.signal(signal.SIGALRM, self.strike)
        signal.setitimer(signal.ITIMER_REAL, self.seconds, AGAIN)

    def __exit__(self, *error: object) -> None:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
        finally:  # once more, since a last strike may have landed on that line
            signal.setitimer(signal.ITIMER_REAL, 0)
            sys.settrace(self.trace)
            signal.signal(signal.SIGALRM, self.handler)

    def strike(self, number: int, frame: FrameType | None) -> None:
        # A bare `except:` around the loop's body would eat every strike that lands in there.
        # So from now on every line below the body raises, the one inside the `except:` too.
        sys.settrace(self.every_line)
        while frame is not None and frame is not self.body:
            frame.f_trace = self.every_line
            frame = frame.f_back
        raise TooLong

    def every_line(self, frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename == __file__:
            return None
        if event == "line":
            raise TooLong
        return self.every_line


class _ByThread:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.over = threading.Event()
        self.victim = ctypes.c_ulong(threading.get_ident())
        self.watcher = threading.Thread(target=self.watch, daemon=True, name="limit")

    def __enter__(self) -> None:
        self.watcher.start()

    def __exit__(self, *error: object) -> None:
        # A last strike may land anywhere in here, so this is done until it was done undisturbed.
        # (Not taken back with SetAsyncExc(…, NULL): CPython 3.11 then stays alarmed for ever, and
        # a traced function that is called in that state never begins.)
        undisturbed = False
        while not undisturbed:
            try:
                self.over.set()
                self.watcher.join()
                for _ in range(100):
                    pass  # a strike that was sent lands at the latest here
                undisturbed = True
            except TooLong:
                pass

    def watch(self) -> None:
        wait = self.seconds
        while not self.over.wait(wait):
            wait = AGAIN
            ctypes.pythonapi.PyThreadState_SetAsyncExc(self.victim, ctypes.py_object(TooLong))
