"""Stopping a student's endless loop, from inside the process that runs it."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["TooLong", "limit"]

AGAIN = 0.05
"""Seconds until the loop is struck again: a bare `except:` inside it may have eaten the first."""


class TooLong(BaseException):
    """The time is over. Not an Exception, so that `except Exception` does not eat it."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise TooLong in the body when it runs longer than `seconds`.

    In the main thread of a system with interval timers a signal does it; anywhere else (Windows,
    another thread) a second thread raises it at the next line of Python. A single call into C
    that never returns can't be stopped by either.
    """
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        with _by_signal(seconds):
            yield
    else:
        with _by_thread(seconds):
            yield


@contextmanager
def _by_signal(seconds: float) -> Iterator[None]:
    def strike(number: int, frame: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, strike)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:  # twice, since a last strike may land on the first
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _by_thread(seconds: float) -> Iterator[None]:
    victim = ctypes.c_ulong(threading.get_ident())
    over = threading.Event()
    lock = threading.Lock()  # held while striking, so that nothing is struck once `over` is set

    def strike() -> None:
        wait = seconds
        while not over.wait(wait):
            wait = AGAIN
            with lock:
                if not over.is_set():
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(victim, ctypes.py_object(TooLong))

    watcher = threading.Thread(target=strike, daemon=True, name="limit")
    watcher.start()
    try:
        yield
    finally:
        with lock:
            over.set()
            # Takes back a strike that was sent and has not landed yet.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(victim, None)
        watcher.join()
