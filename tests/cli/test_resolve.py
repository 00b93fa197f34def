from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from simulator.cli.resolve import resolve

QUICK = ["--refunds", "40", "--jobs", "1", "--quiet"]


def test_resolve_prints_one_line_for_each_way_and_look_up() -> None:
    result = CliRunner().invoke(resolve, [*QUICK, "-r", "lose_response=0.5"])
    assert result.exit_code == 0, result.output
    head, *lines = result.stdout.splitlines()
    assert head.split()[:3] == ["scenario", "design", "unknown"]
    assert len(lines) == 2 * 4
    safe, asks, blind, nobody = lines[:4]
    assert "= 0.0% (0.0% to" in safe
    assert "= 0.0% (0.0% to" in asks  # the look-up is exact, and nothing travels late
    assert "= 100.0% (" in blind
    assert nobody.split().count("never") == 3  # median, p90, p99
    assert "= 0.0%" not in lines[5]  # the look-up lags


def test_resolve_writes_its_table_and_its_picture(tmp_path: Path) -> None:
    csv, picture = tmp_path / "table.csv", tmp_path / "resolved.png"
    arguments = ["SAFE", "--lookup", "exact", "-r", "lose_response=0.5", *QUICK]
    result = CliRunner().invoke(resolve, [*arguments, "--csv", str(csv), "--picture", str(picture)])
    assert result.exit_code == 0, result.output
    assert csv.read_text().startswith("design,scenario,lose_response,refunds,unknown,share")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_resolve_says_nothing_of_outcomes_that_were_never_unknown() -> None:
    result = CliRunner().invoke(resolve, ["ONE_SHOT", "-l", "exact", "--every", "0", *QUICK])
    assert result.stdout.splitlines()[1].split()[-8:] == ["0", "0", "0", "0", "-", "-", "-", "-"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["SAVE"], "did you mean 'SAFE'"),
        (["-r", "lose_respons=0.1"], "did you mean 'lose_response'"),
        (["SAFE", "SAFE"], "two designs are called 'SAFE'"),
        (["--lookup", "psychic"], "psychic"),
        (["ONE_SHOT", "--every", "0", "-l", "exact", "--picture", "{}/x.png"], "no outcome was"),
    ],
)
def test_resolve_answers_a_mistake_with_a_sentence(
    arguments: list[str], words: str, tmp_path: Path
) -> None:
    given = [argument.format(tmp_path) for argument in arguments]
    result = CliRunner().invoke(resolve, [*given, *QUICK])
    assert result.exit_code == 2, result.output
    assert words in result.output
    assert "Traceback" not in result.output
