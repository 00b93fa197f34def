from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from math import sqrt

import pytest

from simulator.experiments.replay import store
from simulator.service.designs import NAIVE
from simulator.world.faults import Plan
from simulator.world.luck import Luck, draw
from simulator.world.scenario import Scenario
from simulator.world.world import World

CODE = """
from simulator.world.luck import Luck, draw
luck = Luck(7, "random", "worker-1")
here = draw(1, "lose_response", "provider.refund", 1)
print(here, luck.random(), luck.uniform(2, 5))
"""


def test_equal_places_draw_equal_numbers_in_every_process() -> None:
    outputs = set()
    for hashseed in ("0", "1", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", CODE],
            env={"PYTHONHASHSEED": hashseed, "PYTHONPATH": ":".join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(done.stdout.strip())
    luck = Luck(7, "random", "worker-1")
    here = (
        draw(1, "lose_response", "provider.refund", 1),
        luck.random(),
        luck.uniform(2, 5),
    )
    assert outputs == {" ".join(map(str, here))}


def test_a_draw_is_the_same_on_every_day() -> None:
    # Written down once: every figure in the lessons depends on it.
    assert draw(1, "lose_response", "provider.refund", 1) == 0.47878440762117935


@pytest.mark.parametrize(
    "other",
    [
        (2, "lose_response", "provider.refund", 1),
        (1, "lose_request", "provider.refund", 1),
        (1, "lose_response", "customer.notify", 1),
        (1, "lose_response", "provider.refund", 2),
        (1, "lose_response", "provider.refund"),
    ],
)
def test_another_seed_place_or_time_draws_another_number(other: tuple[int, ...]) -> None:
    assert draw(*other) != draw(1, "lose_response", "provider.refund", 1)


def test_a_draw_in_one_place_shifts_no_other() -> None:
    one, undisturbed = Luck(1, "worker-1"), Luck(1, "worker-1")
    other = Luck(1, "worker-2")
    drawn = []
    for _ in range(5):
        other.random()
        drawn.append(one.random())
        other.uniform(0, 9)
    assert drawn == [undisturbed.random() for _ in range(5)]


def test_a_stream_does_not_repeat_itself() -> None:
    luck = Luck(1, "worker-1")
    assert len({luck.random() for _ in range(1_000)}) == 1_000


def test_draws_are_between_0_and_1_and_spread_evenly() -> None:
    # 20,000 draws in 20 classes: chi-square with 19 degrees of freedom is below 43.8 in 999 of
    # 1,000 cases; the seed is fixed, so it either is or is not.
    count = 20_000
    classes = Counter(int(draw(11, "even", k) * 20) for k in range(count))
    assert set(classes) == set(range(20))
    expected = count / 20
    assert sum((n - expected) ** 2 / expected for n in classes.values()) < 43.8


@pytest.mark.parametrize("place", [("a",), ("lose_response", "provider.refund")])
def test_the_mean_of_many_draws_is_a_half(place: tuple[str, ...]) -> None:
    # Standard error of the mean of n uniform numbers: 1 / sqrt(12 n); four of them either way.
    count = 10_000
    mean = sum(draw(3, *place, k) for k in range(count)) / count
    assert abs(mean - 0.5) < 4 / sqrt(12 * count)


def test_neighbouring_draws_and_neighbouring_seeds_are_unrelated() -> None:
    # Correlation of n unrelated pairs has standard error 1 / sqrt(n).
    count = 10_000
    stream = [draw(5, "x", k) - 0.5 for k in range(count)]
    seeds = [draw(k, "x", 1) - 0.5 for k in range(count)]
    for numbers in (stream, seeds):
        correlation = 12 * sum(a * b for a, b in pairwise(numbers)) / (count - 1)
        assert abs(correlation) < 4 / sqrt(count)


def test_uniform_keeps_to_its_bounds() -> None:
    luck = Luck(1, "x")
    numbers = [luck.uniform(2.0, 5.0) for _ in range(1_000)]
    assert 2.0 <= min(numbers) < 2.1
    assert 4.9 < max(numbers) < 5.0


def test_ids_are_uuids_and_never_come_twice() -> None:
    with store() as database:
        world = World(NAIVE, Scenario.one_refund(), Plan(), 1, database)
        ids = [world.new_id() for _ in range(1_000)]
    assert len(set(ids)) == 1_000
    form = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert all(re.fullmatch(form, text) for text in ids)
