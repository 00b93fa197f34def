from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from simulator.experiments.budgets import budgets
from simulator.experiments.layers import layers_by_attempts
from simulator.experiments.metastable import collapse, hysteresis, state_map
from simulator.experiments.occ import compare
from simulator.experiments.outage import at_the_cap, policies, storms, summary
from simulator.experiments.storm import storm
from simulator.experiments.style import CourseFigure, png
from simulator.lessons import storm_plots
from simulator.service.retry import FullJitter, LessonFormula


def outage_figure() -> CourseFigure:
    ways = policies()
    loads = {name: storm(1_000, ways[name]) for name in ("none", "lesson", "full", "immediate")}
    return storm_plots.calls_after_outage(loads, capacity=125.0)


def beat_figure() -> CourseFigure:
    runs = {
        "the lesson's formula": at_the_cap(LessonFormula(max_attempts=None), clients=200),
        "full jitter": at_the_cap(FullJitter(max_attempts=None), clients=200),
    }
    return storm_plots.beat(runs)


def contention_figure() -> CourseFigure:
    sizes = (5, 20)
    return storm_plots.contention(
        compare(sizes, repetitions=3),
        busy=compare(sizes, repetitions=3, service=0.002),
        service=0.002,
    )


def layers_figure() -> CourseFigure:
    return storm_plots.layers_heat(layers_by_attempts(layers=(1, 2), attempts=(1, 3)))


def states_figure() -> CourseFigure:
    return storm_plots.state_heat(state_map(offered=(130, 280, 310), triggers=(0.0, 2.0)))


def hysteresis_figure() -> CourseFigure:
    return storm_plots.hysteresis_loop(
        {
            "a long queue": hysteresis(steps=3, hold=10.0, seeds=(1, 2)),
            "a short queue": hysteresis(steps=3, hold=10.0, seeds=(1, 2), queue_limit=150),
        }
    )


def doubles_figure() -> CourseFigure:
    bare, keyed = (
        summary(storms(policies(), clients=1_000, seeds=(1, 2), key=key)) for key in (False, True)
    )
    return storm_plots.doubles_and_load(bare, keyed=keyed)


def collapse_figure() -> CourseFigure:
    return storm_plots.collapse_runs(
        [collapse(backoff=False, seed=seed) for seed in (1, 2)],
        [collapse(backoff=True, seed=seed) for seed in (1, 2)],
    )


def budgets_figure() -> CourseFigure:
    return storm_plots.budget_curves(budgets((0.1, 0.5), seeds=(1, 2)))


FIGURES: dict[Callable[[], CourseFigure], str] = {
    outage_figure: "lesson is the slowest",
    beat_figure: "With the lesson's formula they come in beats",
    contention_figure: "With a server that does 500 requests/s, 20 clients are done first with",
    layers_figure: "3 attempts in each of 2 layers make 9 calls of one refund; in 1 layer they",
    states_figure: "At 280/s of 300/s a freeze of 2 s is enough",
    hysteresis_figure: "With a short queue the way down is the way up",
    doubles_figure: "0 % under full. With a key (hollow) the waves are the same, and 0 %.",
    collapse_figure: "of 2 runs in which clients send again at once",
    budgets_figure: "three retries bring success from 50 % to 9",
}


@pytest.mark.parametrize("make", FIGURES)
def test_a_figure_says_what_it_shows_and_stays_out_of_pyplot(
    make: Callable[[], CourseFigure],
) -> None:
    figure = make()
    assert FIGURES[make] in figure.caption
    assert figure.caption.endswith(".")
    assert png(figure, dpi=30).startswith(b"\x89PNG")
    named = [axes for axes in figure.axes if axes.get_visible()]
    assert named
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_equal_data_gives_equal_pictures() -> None:
    assert png(layers_figure()) == png(layers_figure())


def test_the_numbers_in_a_sentence_are_those_of_the_data() -> None:
    load = storm(200, FullJitter())
    other = storm(200, LessonFormula())
    figure = storm_plots.calls_after_outage({"full": load, "lesson": other}, capacity=125.0)
    for number in (load.time_to_drain, other.time_to_drain, other.peak, load.peak):
        assert f"{number:.0f}" in figure.caption


def test_a_policy_that_never_ends_is_said_to_wait_for_ever() -> None:
    load = storm(10, FullJitter(max_attempts=None), horizon=5.0)
    assert "10 of 10 wait for ever" in storm_plots.calls_after_outage({"full": load}, 125.0).caption
