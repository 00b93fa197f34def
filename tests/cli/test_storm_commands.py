from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from simulator.cli.storm import storm
from simulator.cli.sweep import sweep

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
    assert "double_refund" in result.stdout
    assert "SAFE" not in result.stdout


def test_sweep_says_when_nothing_was_broken() -> None:
    arguments = ["SAFE", "-r", "lose_response=0.5", "--refunds", "5", "--jobs", "1", "--quiet"]
    result = CliRunner().invoke(sweep, arguments)
    assert "No invariant was broken in 5 refunds of each design." in result.stdout


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
