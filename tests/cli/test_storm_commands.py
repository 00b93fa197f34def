from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from simulator.cli.storm import storm
from simulator.cli.sweep import never_broken, sweep
from simulator.experiments.verdict import INVARIANTS

QUICK = ["--clients", "50", "--seeds", "2", "--jobs", "1", "--quiet"]


def test_storm_prints_one_line_a_policy() -> None:
    result = CliRunner().invoke(storm, [*QUICK, "--outage", "3"])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split()[:2] == ["policy", "answered"]
    assert [line.split()[0] for line in lines[1:]] == [
        "none",
        "immediate",
        "fixed",
        "exponential",
        "lesson",
        "equal",
        "full",
        "decorrelated",
    ]
    assert "never" in lines[1]  # calls for each answered refund, of which there is none


def test_storm_writes_its_table_its_picture_and_what_it_keeps(tmp_path: Path) -> None:
    table, picture, kept = tmp_path / "storm.csv", tmp_path / "storm.png", tmp_path / "kept"
    arguments = [*QUICK, "--retry", "full", "--retry", "lesson", "--keep", str(kept)]
    first = CliRunner().invoke(storm, [*arguments, "--csv", str(table), "--picture", str(picture)])
    assert first.exit_code == 0, first.output
    assert table.read_text().startswith("policy,seed,answered")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert len(list(kept.iterdir())) == 4
    assert CliRunner().invoke(storm, arguments).stdout == first.stdout


def test_zero_attempts_are_no_limit_and_layers_multiply() -> None:
    down = [*QUICK, "--retry", "immediate", "--outage", "900", "--horizon", "100"]
    endless = CliRunner().invoke(storm, [*down, "--attempts", "0"]).stdout.splitlines()[1].split()
    assert endless[3] == "50"  # all still waiting
    layered = CliRunner().invoke(storm, [*down, "--attempts", "2", "--layers", "3"])
    assert layered.stdout.splitlines()[1].split()[2] == "50"  # all gave up


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--capacity", "0"], "0.0 refunds a second"),
        (["--timeout", "0"], "timeout is 0.0"),
        (["--base", "-1"], "seconds=-1.0): give seconds, 0 or more"),
        (["--retry", "wishful"], "wishful"),
    ],
)
def test_storm_answers_a_mistake_with_a_sentence(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(storm, [*QUICK, *arguments])
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output


def test_sweep_prints_what_was_broken() -> None:
    arguments = ["NAIVE", "safe", "-r", "lose_response=0,0.5", "--refunds", "20"]
    result = CliRunner().invoke(sweep, [*arguments, "--jobs", "1", "--quiet"])
    assert result.exit_code == 0, result.output
    table, _ = result.stdout.split("\n\n")
    assert "double_refund" in table
    assert "SAFE" not in table


def test_sweep_says_of_each_design_what_it_never_broke_and_how_often_that_may_be_at_most() -> None:
    arguments = ["NAIVE", "safe", "-r", "lose_response=0,0.5", "--refunds", "20"]
    result = CliRunner().invoke(sweep, [*arguments, "--jobs", "1", "--quiet"])
    _, said = result.stdout.split("\n\n")
    naive, safe = " ".join(said.split()).split(" SAFE broke ")
    assert naive.startswith("NAIVE broke none of ")
    assert "lost_refund" in naive
    assert "double_refund" not in naive
    # Wilson: z^2 / (n + z^2) with z = 1.96 and n = 20 is 0.161.
    ending = "in 20 refunds at each of 2 rates: each in 16 % of them at most (95 % confidence)."
    assert naive.endswith(ending)
    assert safe == f"no invariant ({', '.join(INVARIANTS)}) {ending}"


def test_sweep_needs_no_table_when_nothing_was_broken() -> None:
    arguments = ["SAFE", "-r", "lose_response=0.5", "--refunds", "5", "--jobs", "1", "--quiet"]
    result = CliRunner().invoke(sweep, arguments)
    assert result.stdout.startswith("SAFE broke no invariant (double_refund, ")
    assert " in 5 refunds: each in 43 % of them at most" in " ".join(result.stdout.split())


def test_sweep_has_a_word_for_a_design_that_broke_everything() -> None:
    rows = [
        {"design": "NAIVE", "outcome": name, "count": 1, "rate": 1.0, "high": 1.0, "refunds": 1}
        for name in INVARIANTS
    ]
    assert list(never_broken(pd.DataFrame(rows))) == ["NAIVE broke every invariant at some rate."]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["NAVE", "-r", "crash=0.1"], "did you mean"),
        (["-r", "crahs=0.1"], "did you mean 'crash'"),
        (["-r", "crash=often"], "write crash=p,p,p"),
        (["-r", "crash=1.5"], "from 0 to 1"),
        ([], "--rate"),
    ],
)
def test_sweep_answers_a_mistake_with_a_sentence(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(sweep, arguments)
    assert result.exit_code == 2
    assert words in result.output
