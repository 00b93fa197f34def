"""Equal seeds, equal text: in every process, on every version of Python.

The files beside this one were written with `REWRITE_HISTORIES=1 python -m pytest …`. They are
compared here on every version that the tests run on. To compare two versions on one machine,
name another interpreter, with the project's packages, in OTHER_PYTHON.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

import simulator
from simulator.experiments.simulate import run_one, world_seed
from simulator.experiments.verdict import judge
from simulator.service.designs import LADDER, SAFE
from simulator.world.faults import Chance
from simulator.world.scenario import Scenario
from simulator.world.trace import KINDS
from simulator.world.world import World

HERE = Path(__file__).parent / "histories"
HOUSE = Path(simulator.__file__).parent.parent
MADE = run_path(str(HERE / "make.py"))
HISTORIES, ROUGH = MADE["HISTORIES"], MADE["ROUGH"]


@pytest.mark.parametrize("name", sorted(HISTORIES))
def test_a_history_reads_as_it_was_written_down(name: str) -> None:
    path = HERE / f"{name}.txt"
    text = HISTORIES[name]().text + "\n"
    if os.environ.get("REWRITE_HISTORIES"):
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8"), "REWRITE_HISTORIES=1 writes the files anew"


MAKE = "import make; print(make.text(), end='')"


def printed(python: str, hashseed: str, program: str = MAKE) -> str:
    """What another interpreter makes of the same histories."""
    done = subprocess.run(
        [python, "-c", program],
        env={
            **os.environ,
            "PYTHONHASHSEED": hashseed,
            "PYTHONPATH": f"{HOUSE}{os.pathsep}{HERE}",
            "PYTHONIOENCODING": "utf-8",
        },
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("hashseed", ["0", "4242"])
def test_equal_seeds_give_equal_text_in_other_processes_with_other_hashes(hashseed: str) -> None:
    assert printed(sys.executable, hashseed) == MADE["text"]()


NEW = (
    "asked_once",
    "injected_arguments",
    "approval_between",
    "cancelled_meanwhile",
    "webhook_storm",
    "returned_by_the_bank",
    "poisoned_event",
)
"""Scenarios with people, reports, other permissions, and money that goes without us."""

LATER = f"""
from simulator.experiments.simulate import run_one, world_seed
from simulator.service.designs import SAFE
from simulator.world.faults import Rates
from simulator.world.scenario import Scenario

for name in {NEW}:
    for number in range(2):
        luck = world_seed(6, number)
        print(run_one(SAFE, Rates.all(0.05 * number), getattr(Scenario, name)(), luck).text)
"""


def test_scenarios_with_people_and_reports_read_alike_in_every_process() -> None:
    texts = {printed(sys.executable, hashseed, LATER) for hashseed in ("0", "1", "4242")}
    (text,) = texts
    assert text.count("Verdict:") == 2 * len(NEW)
    for sign in ("approver", "webhook.report", "back office", "poison", "FAULT"):
        assert sign in text


@pytest.mark.skipif("OTHER_PYTHON" not in os.environ, reason="OTHER_PYTHON names no interpreter")
def test_equal_seeds_give_equal_text_on_another_version_of_python() -> None:
    assert printed(os.environ["OTHER_PYTHON"], "1") == MADE["text"]()


@pytest.mark.parametrize("design", LADDER, ids=lambda design: design.name)
def test_a_history_is_the_same_the_second_time(design: Any) -> None:
    for number in range(3):
        luck = world_seed(2, number)
        first, second = (run_one(design, ROUGH, Scenario.double_click(), luck) for _ in range(2))
        assert first.text == second.text


def test_another_seed_is_another_history() -> None:
    texts = {run_one(SAFE, ROUGH, Scenario.one_refund(), luck).text for luck in range(8)}
    assert len(texts) == 8


# What holds of every history, whatever goes wrong in it.


def rough(number: int, store: Any, quiet: bool = False) -> World:
    scenarios = (Scenario.double_click, Scenario.two_partial_refunds, Scenario.new_thought)
    luck = world_seed(9, number)
    scenario = scenarios[number % 3]()
    design = LADDER[number % len(LADDER)]
    return World(design, scenario, Chance(ROUGH, luck), luck, store, quiet=quiet).run()


MANY = range(60)


@pytest.mark.parametrize("number", MANY[::6])
def test_a_history_that_writes_no_trace_is_otherwise_the_same(number: int, store: Any) -> None:
    loud = rough(number, store)
    seen = judge(loud), loud.steps, loud.told, loud.provider.ledger, loud.struck, loud.submitted
    quiet = rough(number, store, quiet=True)
    assert quiet.trace == []
    assert seen == (
        judge(quiet),
        quiet.steps,
        quiet.told,
        quiet.provider.ledger,
        quiet.struck,
        quiet.submitted,
    )


def test_every_event_is_of_a_known_kind_and_time_never_runs_backwards(store: Any) -> None:
    for number in MANY:
        trace = rough(number, store).trace
        assert {event.kind for event in trace} <= set(KINDS)
        times = [event.time for event in trace]
        assert times == sorted(times)


def test_every_message_leaves_once_and_arrives_once_or_is_lost_or_is_still_under_way(
    store: Any,
) -> None:
    for number in MANY:
        sent: dict[int, Any] = {}
        ended: set[int] = set()
        for event in rough(number, store).trace:
            if event.kind in ("request", "response"):
                assert event.message not in sent
                sent[event.message] = event
            elif event.kind in ("arrive", "lost"):
                assert event.message not in ended
                ended.add(event.message)
                left = sent[event.message]  # nothing arrives that was never sent
                assert (event.process, event.peer) == (left.peer, left.process)
                assert event.what == left.what
                assert event.time > left.time or event.kind == "lost"
        assert set(sent) >= ended


def test_the_dead_and_the_paused_do_nothing(store: Any) -> None:
    acts = {"request", "response", "commit", "rollback", "timeout", "reset", "ack_lost", "state"}
    stopped_somebody = 0
    for number in MANY:
        stopped: set[str] = set()
        for event in rough(number, store).trace:
            if event.kind in ("crash", "pause"):
                stopped.add(event.process)
                stopped_somebody += 1
            elif event.kind in ("restart", "resume"):
                stopped.discard(event.process)
            else:
                assert not (event.process in stopped and event.kind in acts), event
    assert stopped_somebody > 30


def test_a_provider_or_database_that_is_down_pays_and_commits_nothing(store: Any) -> None:
    outages = 0
    for number in MANY:
        down: set[str] = set()
        for event in rough(number, store).trace:
            if event.kind == "down":
                down.add(event.process)
                outages += 1
            elif event.kind == "up":
                down.discard(event.process)
            elif event.kind in ("effect", "replayed", "declined"):
                assert "provider" not in down
            elif event.kind in ("commit", "state"):
                assert "database" not in down
    assert outages > 30


def test_money_in_the_trace_is_money_in_the_ledger(store: Any) -> None:
    for number in MANY:
        made = rough(number, store)
        shown = [(e.time, e.amount, e.text) for e in made.trace if e.kind == "effect"]
        assert shown == [(e.time, e.amount, e.intent) for e in made.provider.ledger]
