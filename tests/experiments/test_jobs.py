from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from simulator.experiments import jobs
from simulator.experiments.jobs import describe, run_jobs
from simulator.service.retry import FullJitter, Immediate

JOBS = [{"number": number} for number in range(6)]


def square(number: int) -> list[dict[str, Any]]:
    return [{"number": number, "square": number**2}]


class Interrupted(Exception):
    """Somebody stopped the sweep."""


ASKED: list[int] = []
STOP_AT: list[int] = []


def work(number: int) -> list[dict[str, Any]]:
    """Squares, remembers what it was asked, and is stopped at one of them."""
    ASKED.append(number)
    if number in STOP_AT:
        raise Interrupted
    return square(number)


def asked(stop_at: int | None = None, keep: Path | None = None) -> list[int]:
    """Which jobs are worked on in a sweep that is stopped at one of them."""
    ASKED.clear()
    STOP_AT[:] = [] if stop_at is None else [stop_at]
    if stop_at is None:
        assert run_jobs(work, JOBS, keep=keep) == [square(number) for number in range(6)]
    else:
        with pytest.raises(Interrupted):
            run_jobs(work, JOBS, keep=keep)
    return list(ASKED)


def test_results_come_in_the_order_of_the_jobs_on_any_number_of_processes() -> None:
    expected = [square(number) for number in range(6)]
    assert run_jobs(square, JOBS) == expected
    assert run_jobs(square, JOBS, n_jobs=2) == expected


def test_a_sweep_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    assert asked(stop_at=3, keep=tmp_path) == [0, 1, 2, 3]
    assert asked(keep=tmp_path) == [3, 4, 5]
    assert asked(keep=tmp_path) == []
    assert asked() == [0, 1, 2, 3, 4, 5]


def test_a_stop_leaves_no_half_file_behind(tmp_path: Path) -> None:
    asked(stop_at=3, keep=tmp_path)
    kept = [json.loads(path.read_text()) for path in tmp_path.iterdir()]
    assert sorted(file["rows"][0]["number"] for file in kept) == [0, 1, 2]


def test_results_of_other_code_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(keep=tmp_path)
    monkeypatch.setattr(jobs, "code_version", lambda: "another version")
    assert asked(keep=tmp_path) == [0, 1, 2, 3, 4, 5]


def test_another_job_is_another_file(tmp_path: Path) -> None:
    run_jobs(square, [{"number": 1}], keep=tmp_path)
    run_jobs(square, [{"number": 2}], keep=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_bar_counts_what_was_kept_already(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_jobs(square, JOBS[:4], keep=tmp_path)
    run_jobs(square, JOBS, keep=tmp_path, progress=True, label="squares")
    shown = capsys.readouterr().err
    assert "squares" in shown
    assert "4/6" in shown
    assert "6/6" in shown


def power(exponent: int) -> Callable[[int], int]:
    return lambda base: base**exponent


def test_values_are_described_alike_in_every_process_and_unlike_each_other() -> None:
    values = [
        FullJitter(),
        FullJitter(cap=31.0),
        Immediate(3),
        [FullJitter()],
        {"cap": 30.0},
        {"cap": 31.0},
        {1, 2},
        square,
        Interrupted,
        random,
        power(2),
        power(3),
        partial(power, 2),
        partial(power, 3),
        None,
        "30.0",
        30.0,
    ]
    words = [describe(value) for value in values]
    assert len(set(words)) == len(words)
    assert not any(" at 0x" in word for word in words)
    assert describe(FullJitter()) == describe(FullJitter())
    assert describe({3, 1, 2}) == describe({2, 3, 1})
