"""What lesson 09 tries out: three libraries' formulas, a student's own, a freeze; its pictures."""

from __future__ import annotations

import random
from typing import Any

import pytest

from simulator.experiments.outage import at_the_cap
from simulator.experiments.storm import TokenBucket
from simulator.experiments.style import png
from simulator.lessons import backoff, lesson_09, show
from simulator.lessons.backoff_plots import delay_cloud, recovery
from simulator.lessons.storm_plots import beat, calls_after_outage
from simulator.service.retry import FullJitter, Immediate, LessonFormula, NoRetry


def full_jitter(attempt: int, base: float, cap: float, luck: float) -> float:
    return luck * min(cap, base * 2.0 ** min(attempt, 1000))


@pytest.mark.parametrize(
    ("name", "fine", "broken"),
    [
        ("A", [(0, 0.5), (9, 0.9), (1023, 0.5)], [(1024, 0.5), (1_000_000, 0.0)]),
        ("B", [(0, 0.5), (4, 0.9)], [(5, 0.0), (1024, 0.5), (1_000_000, 0.9)]),
        ("C", [(0, 0.5), (1, 0.99), (1024, 0.9)], [(0, 0.51), (0, 0.99)]),
    ],
)
def test_each_library_has_its_one_fault_and_no_other(
    name: str, fine: list[tuple[int, float]], broken: list[tuple[int, float]]
) -> None:
    assert [call for call in fine if lesson_09._symptom(name, *call)] == []
    assert [call for call in broken if not lesson_09._symptom(name, *call)] == []
    for attempt, luck in fine:
        assert 0 <= backoff.LIBRARIES[name](attempt, luck) <= 30


def test_a_stub_is_not_drawn_and_a_formula_is() -> None:
    broken: list[Any] = [lambda *_: ..., lambda attempt: 1.0, lambda *_: None]
    for no_formula in broken:
        runs = backoff.returning(no_formula)
        assert list(runs) == ["the lesson's formula"]
        assert beat(runs).caption.endswith("in 82 % of the seconds.")
    runs = backoff.returning(full_jitter)
    assert list(runs) == ["the lesson's formula", "your full_jitter"]
    course = at_the_cap(FullJitter(max_attempts=None))
    assert runs["your full_jitter"].series.equals(course.series)


def test_a_formula_that_goes_wild_is_kept_within_a_year() -> None:
    assert backoff.Own(lambda *arguments: -3.0).delay(0, random.Random(1)) == 0.0
    assert backoff.Own(lambda *arguments: 1e300).delay(0, random.Random(1)) == 365 * 86_400


def late(**settings: object) -> float:
    load = backoff.after_freeze(**settings)  # type: ignore[arg-type]
    return float(load.series["goodput"].iloc[-10:].mean())


def test_a_freeze_locks_up_whoever_retries_once_with_or_without_jitter() -> None:
    # 200/s of 300/s with one retry are 400/s: HotOS 2021's vulnerable range, 150 to 300/s
    assert late(retry=Immediate(2)) == 0
    assert late(retry=FullJitter(max_attempts=2)) == 0


@pytest.mark.parametrize(
    "settings",
    [{"retry": NoRetry()}, {"guard": TokenBucket}, {"sheds": True}, {"queue_limit": 150}],
    ids=str,
)
def test_less_work_ends_it(settings: dict[str, object]) -> None:
    assert late(**settings) == pytest.approx(200, rel=0.1)


def test_below_half_the_capacity_nothing_locks_up() -> None:
    assert late(offered=100.0, seconds=60.0) == pytest.approx(100, rel=0.1)


def test_the_cloud_says_what_is_left_of_the_jitter_at_the_cap() -> None:
    figure = delay_cloud(
        {"lesson": LessonFormula(max_attempts=None), "full": FullJitter(max_attempts=None)}
    )
    assert "0.0 s apart with lesson, 29." in figure.caption
    assert png(figure, dpi=30).startswith(b"\x89PNG")


def test_the_picture_of_the_ways_out_names_who_is_stuck_and_who_is_back() -> None:
    runs = {
        "at once": backoff.after_freeze(seconds=40.0),
        "shedding": backoff.after_freeze(seconds=40.0, sheds=True),
    }
    caption = recovery(runs, offered=200, capacity=300).caption
    assert caption.endswith("Still locked up at the end: at once. Back: shedding.")


def test_a_picture_that_is_shown_has_its_sentence_once() -> None:
    load = at_the_cap(FullJitter(max_attempts=None), clients=20)
    figure = calls_after_outage({"full": load}, capacity=125.0)
    assert figure.get_supxlabel()
    assert figure.caption in str(show(figure))
    assert not figure.get_supxlabel()


def test_the_goals_of_tuning_need_all_three_numbers() -> None:
    right = FullJitter(base=2.0, cap=20.0, max_attempts=20)
    assert lesson_09._judge_tuned(right).right
    for cap, base, sends in ((30.0, 2.0, 20), (12.0, 2.0, 20), (20.0, 0.5, 20), (20.0, 2.0, 7)):
        assert not lesson_09._judge_tuned(FullJitter(base, cap, sends)).right
    # not a needle: its neighbours are right as well
    for cap, base, sends in ((18.0, 2.0, 20), (22.0, 2.0, 20), (20.0, 4.0, 20), (20.0, 3.0, 15)):
        assert lesson_09._judge_tuned(FullJitter(base, cap, sends)).right


def test_the_plateau_is_clients_over_half_the_cap_plus_the_timeout() -> None:
    load = at_the_cap(FullJitter(max_attempts=None), clients=500)
    assert load.series["calls"].loc[150:299].mean() == pytest.approx(500 / 16, rel=0.05)
