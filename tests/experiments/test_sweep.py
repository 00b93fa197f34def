from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simulator import designs, faults, simulate, sweep
from simulator.experiments.closed_forms import doubled_by_naive_retries

RATES = [faults.Rates(lose_response=p) for p in (0.0, 0.3)]


def test_a_sweep_is_what_simulate_says_of_each_design_and_rate() -> None:
    frame = sweep([designs.NAIVE, designs.ONE_SHOT], RATES, refunds=60, seed=3)
    for design in (designs.NAIVE, designs.ONE_SHOT):
        for rates in RATES:
            alone = simulate(design, rates, refunds=60, seed=3).frame
            part = frame[
                (frame["design"] == design.name) & (frame["lose_response"] == rates.lose_response)
            ].reset_index(drop=True)
            assert part[list(alone.columns)].equals(alone)
    assert set(frame["refunds"]) == {60}
    assert set(frame["seed"]) == {3}


def test_only_rates_that_differ_from_their_default_are_columns() -> None:
    frame = sweep(designs.ONE_SHOT, faults.Rates(lose_request=0.1), refunds=2)
    assert list(frame.columns) == [
        "design",
        "lose_request",
        "outcome",
        "count",
        "rate",
        "low",
        "high",
        "refunds",
        "seed",
    ]


def test_the_sweep_of_the_naive_design_follows_the_closed_form() -> None:
    a, b, attempts = 0.1, 0.2, 3
    # a sweep's lose_response is given that there is an answer: b = (1 - a) * p
    frame = sweep(designs.NAIVE, faults.Rates(lose_request=a, lose_response=b / (1 - a)), 1_500)
    (row,) = frame[frame["outcome"] == "double_refund"].to_dict("records")
    # the agent may submit again after three silences, which only adds doubles
    expected = doubled_by_naive_retries(a, b, attempts)
    assert row["low"] - 0.02 < expected < row["high"] + 0.02


def test_processes_and_kept_results_change_nothing(tmp_path: Path) -> None:
    arguments = ([designs.NAIVE, designs.SAFE], RATES, 20)
    frames = [
        sweep(*arguments),
        sweep(*arguments, n_jobs=2, keep=tmp_path),
        sweep(*arguments, keep=tmp_path),
    ]
    assert frames[0].equals(frames[1])
    assert frames[0].equals(frames[2])
    assert len(list(tmp_path.iterdir())) == 4


def test_a_name_of_your_own_is_the_design_s_name_in_the_frame() -> None:
    frame = sweep({"mine": designs.ONE_SHOT}, RATES[0], refunds=2)
    assert set(frame["design"]) == {"mine"}


def test_a_sweep_of_nothing_and_of_two_namesakes_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to sweep: 0 designs, 2 rates"):
        sweep([], RATES)
    with pytest.raises(ValueError, match="two designs are called 'NAIVE'"):
        sweep([designs.NAIVE, designs.NAIVE], RATES)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"designs": 5}, r"designs=5: give a list, for example \[designs\.NAIVE"),
        ({"designs": "SAFE"}, "designs='SAFE': give a list"),
        ({"designs": [designs.SAFE, 5]}, "5 is not a design"),
        ({"designs": {"mine": "SAFE"}}, "'SAFE' is not a design"),
        ({"rates": 0.1}, r"rates=0\.1: give a list, for example \[faults\.Rates"),
        ({"rates": [0.1]}, r"0\.1 is not a Rates"),
        ({"seed": None}, "seed=None: give a whole number"),
        ({"seed": 1.5}, r"seed=1\.5: give a whole number"),
        ({"progress": "no"}, "progress='no': say True or False"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(arguments: dict[str, Any], sentence: str) -> None:
    given = {"designs": designs.SAFE, "rates": faults.Rates(), "refunds": 1} | arguments
    with pytest.raises(ValueError, match=sentence):
        sweep(**given)
