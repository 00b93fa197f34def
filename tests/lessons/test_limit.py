from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

import pytest

from simulator.lessons.limit import TooLong, limit


def turn() -> None:
    while True:
        pass


def turn_behind_except_exception() -> None:
    while True:
        try:  # noqa: SIM105
            turn()
        except Exception:
            pass


def turn_behind_bare_except() -> None:
    while True:
        try:  # noqa: SIM105
            sum(range(1000))
        except:  # noqa: E722
            pass


LOOPS = [turn, turn_behind_except_exception, turn_behind_bare_except]


@pytest.mark.parametrize("loop", LOOPS)
def test_an_endless_loop_is_stopped_in_the_main_thread(loop: Callable[[], None]) -> None:
    began = time.monotonic()
    with pytest.raises(TooLong), limit(0.1):
        loop()
    assert time.monotonic() - began < 2
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("loop", LOOPS[:2])
def test_an_endless_loop_is_stopped_in_another_thread(loop: Callable[[], None]) -> None:
    ended: list[str] = []

    def body() -> None:
        try:
            with limit(0.1):
                loop()
        except TooLong:
            ended.append("stopped")

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    thread.join(5)
    assert ended == ["stopped"]


def test_the_fallback_without_timers_stops_a_loop_in_the_main_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(signal, "setitimer")
    with pytest.raises(TooLong), limit(0.1):
        turn()


def test_what_ends_in_time_is_left_alone_afterwards() -> None:
    with limit(0.05):
        pass
    time.sleep(0.15)


def test_the_handler_of_somebody_else_is_put_back() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with limit(5):
        assert signal.getsignal(signal.SIGALRM) is not before
    assert signal.getsignal(signal.SIGALRM) == before


def test_after_one_loop_was_stopped_by_a_thread_the_next_can_be_by_a_signal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.delattr(signal, "setitimer")
        with pytest.raises(TooLong), limit(0.05):
            turn()
    began = time.monotonic()
    with pytest.raises(TooLong), limit(0.05):
        turn()
    assert time.monotonic() - began < 2
