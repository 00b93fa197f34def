"""Simulated rates against closed forms, and the score of the safe design."""

from __future__ import annotations

import subprocess
import sys

import pytest

from simulator import Scenario, designs, faults, simulate
from simulator.experiments.closed_forms import doubled_by_naive_retries
from simulator.service.retry import Immediate
from simulator.world.scenario import AgentSettings

# Wilson intervals of 99.9 %: a right simulation fails one such test in a thousand, and the
# seeds are fixed, so it fails never or always.
CONFIDENCE = 0.999
REFUNDS = 4_000


def naive(attempts: int) -> object:
    """NAIVE with so many attempts."""
    return designs.NAIVE.but(retry=Immediate(max_attempts=attempts))


@pytest.mark.parametrize("attempts", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("lose_request", "lose_response"), [(0.0, 0.1), (0.1, 0.0), (0.1, 0.2), (0.3, 0.3)]
)
def test_naive_retries_double_as_often_as_the_closed_form_says(
    attempts: int, lose_request: float, lose_response: float
) -> None:
    # reference.md, section 3: per leg, so a lost response presupposes an arrived request.
    estimate = simulate(
        naive(attempts),
        faults.Rates(lose_request=lose_request, lose_response=lose_response),
        refunds=REFUNDS,
    )
    expected = doubled_by_naive_retries(lose_request, (1 - lose_request) * lose_response, attempts)
    low, high = estimate.interval("double_refund", CONFIDENCE)
    assert low - 1e-12 <= expected <= high  # the closed form rounds, too


def test_one_attempt_loses_as_often_as_a_request_is_lost() -> None:
    estimate = simulate(designs.ONE_SHOT, faults.Rates(lose_request=0.2), refunds=REFUNDS)
    low, high = estimate.interval("lost_refund", CONFIDENCE)
    assert low <= 0.2 <= high
    assert estimate.broken["double_refund"] == 0


def test_one_attempt_lies_as_often_as_a_response_is_lost() -> None:
    estimate = simulate(designs.ONE_SHOT, faults.Rates(lose_response=0.2), refunds=REFUNDS)
    low, high = estimate.interval("false_answer", CONFIDENCE)
    assert low <= 0.2 <= high


def test_retries_until_answered_pay_as_often_as_a_geometric_series_says() -> None:
    # 30 % of requests and then of responses lost: 1/0.7 payments a refund (SD 0.78 each), of
    # which retries cut off after 12 attempts take away less than 0.001.
    estimate = simulate(
        naive(12),
        faults.Rates(lose_request=0.3, lose_response=0.3),
        refunds=REFUNDS,
        scenario=Scenario.one_refund().but(agent=AgentSettings(patience=60.0)),
    )
    mean = estimate.payments / REFUNDS
    assert mean == pytest.approx(1 / 0.7, abs=3.3 * 0.78 / REFUNDS**0.5)


def test_a_key_pays_exactly_once_at_the_same_losses() -> None:
    estimate = simulate(
        designs.SAFE, faults.Rates(lose_request=0.3, lose_response=0.3), refunds=1_000
    )
    assert estimate.payments == 1_000
    assert estimate.right == 1_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_twenty_thousand_safe_refunds_under_every_fault_are_all_right(seed: int) -> None:
    # Two halves, so that two processes share them.
    estimate = simulate(designs.SAFE, faults.Rates.all(0.02), refunds=10_000, seed=seed)
    assert estimate.right == 10_000, str(estimate)
    # None of 10,000: the rate is below 0.04 % with 95 % confidence.
    assert estimate.rate("double_refund")[2] < 0.0004
    assert estimate.time_to_answer(0.5) < 1.0
    assert estimate.time_to_answer(0.99) < 120.0
    assert len(estimate.seconds) == 10_000


def test_the_frame_has_one_row_per_invariant_with_its_interval() -> None:
    frame = simulate(designs.NAIVE, faults.Rates(lose_response=0.5), refunds=200).frame
    assert list(frame.columns) == ["outcome", "count", "rate", "low", "high"]
    assert frame.outcome.is_unique
    doubled = frame.set_index("outcome").loc["double_refund"]
    assert doubled.low < doubled.rate < doubled.high
    assert doubled["count"] == round(doubled.rate * 200)


def test_designs_under_one_seed_meet_the_same_luck() -> None:
    rates = faults.Rates(lose_response=0.2)
    naive_run = simulate(designs.NAIVE, rates, refunds=500)
    one_shot = simulate(designs.ONE_SHOT, rates, refunds=500)
    # Where the first answer is lost the one pays twice, and the other lies.
    assert naive_run.broken["double_refund"] == one_shot.broken["false_answer"]


def test_an_example_replays_what_was_counted() -> None:
    estimate = simulate(designs.NAIVE, faults.Rates(lose_response=0.1), refunds=200)
    run = estimate.example("double_refund")
    assert "double_refund" in run.verdict
    assert len(run.ledger) == 2
    with pytest.raises(ValueError, match="None of the 200 histories broke 'untold'"):
        estimate.example("untold")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"refunds": 0}, "refunds=0: give 1 or more"),
        ({"refunds": True}, "refunds=True"),
        ({"rates": 0.1}, "is not a Rates"),
        ({"seed": None}, "seed=None: give a whole number"),
        ({"seed": 1.5}, r"seed=1\.5: give a whole number"),
        ({"progress": "no"}, "progress='no': say True or False"),
        ({"design": "NAIVE"}, "'NAIVE' is not a design"),
        ({"scenario": Scenario.one_refund}, r"Call it: Scenario.one_refund\(\)"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(
    arguments: dict[str, object], sentence: str
) -> None:
    given = {"design": designs.NAIVE, "rates": faults.Rates(), "refunds": 10} | arguments
    with pytest.raises(ValueError, match=sentence):
        simulate(**given)


def test_importing_the_simulator_loads_neither_pandas_nor_matplotlib() -> None:
    code = (
        "import sys, simulator; from simulator import designs, faults, simulate, replay, explore;"
        "replay(designs.SAFE); simulate(designs.NAIVE, faults.Rates(), refunds=2);"
        "print([m for m in ('pandas', 'matplotlib', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
