"""A history as text."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from simulator import Scenario, designs, faults, replay
from simulator.experiments.transcript import MOST_LINES, transcript
from simulator.experiments.words import (
    clock,
    counted,
    duration,
    fault_words,
    listing,
    money,
    quoted,
    rough,
)
from simulator.world.trace import KINDS, Event


def test_the_thousand_dollar_refund_reads_as_a_story() -> None:
    run = replay(designs.NAIVE, faults=[faults.lose_response("provider.refund")])
    assert (
        transcript(run.trace)
        == """\
seconds  who           what happens
------------------------------------------------------------
  0.000  customer      asks: “Please refund $500.00 of order ORD-1001.”
  0.000  agent      -> backend-1  tool.issue_refund: call-intent-1-1: refund 500.00  #1
  0.020  backend-1  <- agent  tool.issue_refund  #1 arrives
  0.022  backend-1  =  commits begin
  0.022  backend-1  !! FAULT at provider.refund: answer lost
  0.022  backend-1  -> provider  provider.refund: $500.00, no key  #2
  0.072  provider   <- backend-1  provider.refund  #2 arrives
  0.172  provider   $  PAYS $500.00: intent-1
  0.172  provider   -> backend-1  answer to provider.refund: REF-1 $500.00  #3
  0.172  backend-1  x  never gets provider.refund of provider  #3
  2.022  backend-1  x  stops waiting for the answer to provider.refund
  2.022  backend-1  -> provider  provider.refund: $500.00, no key  #4
  2.072  provider   <- backend-1  provider.refund  #4 arrives
  2.172  provider   $  PAYS $500.00: intent-1
  2.172  provider   -> backend-1  answer to provider.refund: REF-2 $500.00  #5
  2.222  backend-1  <- provider  provider.refund  #5 arrives
  2.224  backend-1  =  commits finish
  2.224  backend-1  -> agent  answer to tool.issue_refund: done  #6
  2.244  agent      <- backend-1  tool.issue_refund  #6 arrives
  2.244  customer      hears: “Your refund has been paid.”"""
    )


def test_every_kind_of_event_has_a_line_and_words_of_its_own() -> None:
    trace = [Event(0, "agent", kind, "a.b", "provider", 0, 100, "") for kind in KINDS]
    lines = transcript(trace).splitlines()[2:]
    assert len(lines) == len(KINDS)
    assert len(set(lines)) == len(KINDS)


def test_a_kind_that_nobody_foresaw_is_written_as_it_is() -> None:
    assert transcript([Event(0, "agent", "dream", "sheep", text="electric")]).endswith(
        "dream sheep electric"
    )


def test_an_event_is_one_line_whatever_its_text_holds() -> None:
    text = transcript([Event(0, "agent", "error", "x", text="first\nsecond")])
    assert text.splitlines()[-1].endswith("fails: first second")


def test_columns_stand_below_each_other() -> None:
    run = replay(designs.SAFE, Scenario.double_click(), [faults.crash("provider.refund")])
    head, _, *lines = transcript(run.trace).splitlines()
    column = head.index("who")
    processes = {event.process for event in run.trace}
    assert {line[column:].split()[0] for line in lines} == processes
    assert all(line[column - 1] == " " for line in lines)


def test_nothing_happened_is_said_so() -> None:
    assert transcript([]) == "Nothing happened."


def test_a_history_without_end_is_written_without_its_middle() -> None:
    trace = [Event(n, "agent", "note", "", text=f"line {n}") for n in range(10_000)]
    lines = transcript(trace).splitlines()
    assert len(lines) == 2 + MOST_LINES + 1
    assert f"{10_000 - MOST_LINES:,} more events" in transcript(trace)
    assert lines[2].endswith("line 0")
    assert lines[-1].endswith("line 9999")
    place = next(n for n, line in enumerate(lines) if "more events" in line)
    before, after = int(lines[place - 1].split()[-1]), int(lines[place + 1].split()[-1])
    assert after - before == 10_000 - MOST_LINES + 1


def test_a_history_of_just_the_longest_length_is_written_whole() -> None:
    trace = [Event(n, "agent", "note", "", text="x") for n in range(MOST_LINES)]
    assert "more events" not in transcript(trace)


def test_equal_seeds_give_equal_text_whatever_the_hash_seed() -> None:
    program = (
        "from simulator import Scenario, designs, faults, replay;"
        "print(replay(designs.SAFE, Scenario.new_thought(), "
        "[faults.pause('provider.refund')], seed=7))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(texts) == 1
    assert " at 0x" not in texts.pop()


@pytest.mark.parametrize(
    ("amount", "short", "said"),
    [
        (500_00, False, "$500.00"),
        (500_00, True, "$500"),
        (1_234_567_89, True, "$1,234,567.89"),
        (5, False, "$0.05"),
        (-20_00, True, "-$20"),
    ],
)
def test_money_is_written_in_dollars(amount: int, short: bool, said: str) -> None:
    assert money(amount, short=short) == said


@pytest.mark.parametrize(
    ("microseconds", "exact", "round_", "at"),
    [
        (0, "0 ms", "0 ms", "0.000 s"),
        (40_000, "40 ms", "40 ms", "0.040 s"),
        (2_000_000, "2 s", "2 s", "2.000 s"),
        (31_460_000, "31.5 s", "31.5 s", "31.460 s"),
        (90_000_000, "1 min 30 s", "1.5 min", "90.000 s"),
        (3_605_000_000, "1 h 5 s", "1 h", "1:00:05 h"),
        (90_000_000_000, "25 h", "25 h", "25:00:00 h"),
    ],
)
def test_times_are_written_for_people(microseconds: int, exact: str, round_: str, at: str) -> None:
    assert (duration(microseconds), rough(microseconds), clock(microseconds)) == (exact, round_, at)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lose_response(provider.refund)", "answer lost"),
        ("delay_request(agent:tool.issue_refund, nth=2, 90000 s)", "request late by 25 h"),
        ("crash(finish, before)", "killed before its commit"),
        ("pause(worker-1:x.y, after_send, 40 s)", "stopped for 40 s after sending"),
        ("lose_commit_ack(begin, after)", "committed, answer lost"),
        ("meteor_strike", "meteor strike"),
        ("", ""),
    ],
)
def test_faults_are_said_in_words(text: str, said: str) -> None:
    assert fault_words(text) == said


def test_every_fault_there_is_has_words() -> None:
    for kind in faults.KINDS:
        assert fault_words(kind) != kind.replace("_", " ") or kind in (
            "provider_down",
            "database_down",
        )


def test_lists_and_quotations_are_joined_as_people_do() -> None:
    assert listing([]) == ""
    assert listing(["a"]) == "a"
    assert listing(["a", "b", "c"]) == "a, b and c"
    assert quoted("“hello”") == quoted("hello") == "“hello”"


@pytest.mark.parametrize(
    ("number", "what", "said"),
    [
        (0, "fault", "0 faults"),
        (1, "fault", "1 fault"),
        (1200, "fault", "1,200 faults"),
        (1, "history", "1 history"),
        (2, "history", "2 histories"),
    ],
)
def test_one_is_no_plural(number: int, what: str, said: str) -> None:
    assert counted(number, what) == said
