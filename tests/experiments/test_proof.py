"""Every history within a bound, on many cores: the same as on one."""

from __future__ import annotations

from typing import Any

import pytest

from simulator import Scenario, designs, explore
from simulator.experiments.proof import prove
from simulator.service.design import Design

CASES = [
    (designs.SAFE, Scenario.one_refund, 1),
    (designs.SAFE, Scenario.declined, 0),
    (designs.NAIVE, Scenario.one_refund, 3),
    (designs.OUTBOX, Scenario.one_refund, 2),
    (designs.MODEL_KEY, Scenario.new_thought, 2),
    (designs.ablations()["audit in the transaction"], Scenario.one_refund, 1),
]


def same(
    design: Design, scenario: Scenario, max_faults: int, n_jobs: int, kinds: Any = None
) -> int:
    """Compares with `explore`, and returns how many histories there were."""
    one = explore(design, scenario, max_faults, kinds)
    many = prove(design, scenario, max_faults, n_jobs=n_jobs, kinds=kinds)
    assert many.schedules == one.schedules
    assert many.by_verdict == one.by_verdict
    assert str(many.counterexample) == str(one.counterexample)
    assert many.complete == one.complete
    assert str(many) == str(one)
    return many.schedules


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(("design", "scenario", "max_faults"), CASES)
def test_a_proof_is_what_explore_finds(design, scenario, max_faults, n_jobs) -> None:
    same(design, scenario(), max_faults, n_jobs)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_counterexample_behind_many_right_histories_is_the_first_one(n_jobs) -> None:
    kinds = ("duplicate_request", "delay_request")
    design = designs.ablations()["tombstone"]
    assert same(design, Scenario.two_partial_refunds(), 2, n_jobs, kinds) > 50


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(("max_faults", "kinds"), [(2, "crash"), (3, "lose_response")])
def test_histories_with_several_faults_are_all_tried(n_jobs, max_faults, kinds) -> None:
    assert same(designs.SAFE, Scenario.one_refund(), max_faults, n_jobs, kinds) >= 20


def test_a_kind_of_fault_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="no fault 'crush'"):
        prove(designs.SAFE, kinds=["crush"])
    with pytest.raises(ValueError, match=r"kinds=\(\) names no fault"):
        prove(designs.SAFE, kinds=())
    with pytest.raises(ValueError, match="progress='no': say True or False"):
        prove(designs.SAFE, progress="no")


@pytest.mark.parametrize("wrong", [-1, 1.5, True, None])
def test_a_number_of_faults_that_is_none_is_refused(wrong) -> None:
    with pytest.raises(ValueError, match="give 0, 1, 2"):
        prove(designs.SAFE, max_faults=wrong)
