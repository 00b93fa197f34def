"""One history: equal for equal seeds, and open to every question about it."""

from __future__ import annotations

import os
import subprocess
import sys
from decimal import Decimal

import pytest

from simulator import Scenario, designs, faults, replay

LOST = faults.lose_response("provider.refund")


def test_the_story_of_the_course() -> None:
    run = replay(designs.NAIVE, faults=[LOST])
    assert list(run.ledger.columns) == ["intent", "order_id", "amount", "currency", "time", "key"]
    assert list(run.ledger.amount) == [Decimal("500.00"), Decimal("500.00")]
    assert set(run.ledger.order_id) == {"ORD-1001"}
    assert list(run.told.columns) == ["time", "intent", "statement", "text"]
    assert list(run.books.refunded) == [Decimal("500.00")], "our books know of one"
    assert {"double_refund", "over_refund", "books_differ"} == run.verdict


def test_a_history_without_faults_is_right_under_every_rung() -> None:
    for design in designs.LADDER:
        run = replay(design)
        assert run.verdict == frozenset(), (design.name, run.verdict)
        assert list(run.ledger.amount) == [Decimal("500.00")]
        assert list(run.told.statement)[-1] == "done"


CODE = """
from simulator import designs, faults, replay, Scenario
for design in (designs.NAIVE, designs.SAFE):
    print(replay(design, Scenario.double_click(), [faults.crash("provider.refund")], seed=7))
"""


@pytest.mark.parametrize("hash_seed", ["0", "1", "4242"])
def test_equal_seeds_give_the_same_text_in_every_process(hash_seed: str) -> None:
    here = "\n".join(
        str(replay(design, Scenario.double_click(), [faults.crash("provider.refund")], seed=7))
        for design in (designs.NAIVE, designs.SAFE)
    )
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == here


def test_another_seed_is_another_history_where_there_is_chance() -> None:
    first, second = (replay(designs.SAFE, faults=[LOST], seed=seed).text for seed in (1, 2))
    assert first != second


def test_a_fault_that_never_strikes_is_said() -> None:
    run = replay(designs.NAIVE, faults=[faults.lose_response("provider.refund", nth=9)])
    assert run.unstruck == run.faults
    assert "never struck: that step was not taken" in run.text


def test_a_fault_names_a_step_of_one_process_or_of_any() -> None:
    anyone = replay(designs.SAFE, faults=[faults.crash("provider.refund", when="before_send")])
    one = replay(
        designs.SAFE, faults=[faults.crash("worker-1:provider.refund", when="before_send")]
    )
    nobody = replay(designs.SAFE, faults=[faults.crash("worker-2:provider.refund")])
    assert anyone.steps == one.steps
    assert [event.kind for event in anyone.trace] == [event.kind for event in one.trace]
    assert nobody.unstruck


def test_times_are_counted_across_the_lives_of_a_process() -> None:
    run = replay(
        designs.SAFE,
        Scenario.one_refund().but(workers=1),
        faults=[
            faults.crash("worker-1:claim", nth=1, when="before"),
            faults.crash("worker-1:claim", nth=2, when="before"),
        ],
    )
    assert not run.unstruck
    assert run.verdict == frozenset()


def test_the_trace_is_the_same_when_nobody_listens() -> None:
    from simulator.experiments.replay import store
    from simulator.experiments.verdict import judge
    from simulator.world.faults import Plan
    from simulator.world.world import World

    outcomes = []
    for quiet in (False, True):
        with store() as database:
            world = World(
                designs.OUTBOX, Scenario.one_refund(), Plan([LOST]), 0, database, quiet=quiet
            ).run()
            outcomes.append((judge(world), world.told, world.provider.ledger, world.steps))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"design": "SAFE"}, "'SAFE' is not a design"),
        ({"scenario": "one_refund"}, "'one_refund' is not a scenario"),
        ({"faults": ["lose_response"]}, r"make a fault with faults\.lose_response"),
        ({"faults": [...]}, r"faults=\[Ellipsis\]: make a fault with"),
        ({"faults": None}, r"faults=None: give a list, for example \[faults\.lose_response"),
        ({"faults": 5}, "faults=5: give a list"),
        ({"faults": "lose_response"}, "faults='lose_response': give a list"),
        ({"faults": LOST}, r"faults=lose_response\(provider\.refund\): give a list"),
        ({"heal": "no"}, "heal='no': say True or False"),
        ({"heal": None}, "heal=None: say True or False"),
        ({"seed": None}, "seed=None: give a whole number"),
        ({"seed": 1.5}, r"seed=1\.5: give a whole number"),
        ({"seed": True}, "seed=True: give a whole number"),
        ({"faults": [LOST, LOST]}, "Two faults name step 'provider.refund'"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(
    arguments: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        replay(**({"design": designs.NAIVE} | arguments))
