"""The commands `ablations`, `crashes` and `proof`."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from simulator.cli import cli
from simulator.cli.words import scenarios_by_name
from simulator.experiments import ablation, proof
from simulator.experiments.ablation import ABLATIONS, SHOWN_BY_STORMS
from simulator.experiments.crashes import SETTINGS
from simulator.experiments.explore import Exploration
from simulator.service import designs


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--jobs", "1"])


# --- ablations -------------------------------------------------------------------------------


def test_ablations_prints_every_row_and_what_only_a_storm_shows() -> None:
    result = call("ablations")
    assert result.exit_code == 0, result.output
    for row in ABLATIONS:
        assert f"without {row.safeguard}" in result.output
    assert f"{len(ABLATIONS)} rows: as expected." in result.output
    for shown in SHOWN_BY_STORMS:
        assert f"  {shown.safeguard}: {shown.shows}\n    {shown.command}\n" in result.output


def test_ablations_names_storms_as_the_command_line_was_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REFUND_COURSE_COMMAND", "py start.py")
    monkeypatch.setattr(ablation, "ABLATIONS", ABLATIONS[:1])
    result = call("ablations")
    assert "\n    py start.py storm --retry " in result.output
    assert "python -m" not in result.output


def test_ablations_prints_the_rows_of_the_safeguards_that_are_named() -> None:
    result = call("ablations", "--row", "fencing token", "--row", "operation key")
    assert result.exit_code == 0
    # How many histories it takes changes with the steps that there are.
    assert re.sub(r"\(\d+ histories\)", "(n histories)", result.output).splitlines() == [
        "as expected  without operation key, new_thought (1 history)",
        "             no fault at all -> double_refund",
        "as expected  without fencing token, one_refund (n histories)",
        "             pause(worker-1:provider.refund, before_send, 42 s) -> books_differ",
        "as expected  without fencing token and provider key, one_refund (n histories)",
        "             pause(worker-1:provider.refund, before_send, 42 s) -> double_refund, "
        "over_refund, books_differ",
        "             without fencing token alone no double_refund: provider key covers it",
        "             the same history breaks it when only provider key is missing, too",
        "",
        "3 rows: as expected.",
    ]


def test_ablations_ends_with_code_1_if_a_row_is_not_as_expected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    safe = designs.ablations() | {"lease": designs.SAFE}
    monkeypatch.setattr(designs, "ablations", lambda: safe)
    result = call("ablations", "--row", "lease", "--row", "fingerprint")
    assert result.exit_code == 1
    assert "WRONG        without lease, one_refund" in result.output
    assert "             nothing broke\n             expected: stuck\n" in result.output
    assert "1 of 2 rows: NOT as expected." in result.output


def test_ablations_writes_its_table_and_its_pictures(tmp_path: Path) -> None:
    table, picture = tmp_path / "a.csv", tmp_path / "a.png"
    result = call("ablations", "--csv", str(table), "--picture", str(picture))
    assert result.exit_code == 0, result.output
    written = pd.read_csv(table)
    assert list(written["safeguard"]) == [row.safeguard for row in ABLATIONS]
    pictures = sorted(path.name for path in tmp_path.glob("*.png"))
    assert pictures[-1:] == ["a.png"]
    assert pictures[0] == "a-2.png"
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in pictures)


# --- crashes ---------------------------------------------------------------------------------


def test_crashes_prints_the_scenarios_each_with_a_line_a_point_and_a_column_a_design() -> None:
    result = call("crashes", "--design", "naive", "-d", "SAFE", "-d", "NAIVE")
    assert result.exit_code == 0, result.output
    lines = [re.split(r"  +", line) for line in result.output.splitlines()]
    names = [setting.name for setting in SETTINGS]
    titles = [place for place, line in enumerate(lines) if line[0] in names]
    assert [lines[place] for place in titles] == [[name] for name in names]
    for place in titles:
        assert lines[place + 1] == ["", "NAIVE", "SAFE"]
        assert lines[place + 2][0] == "no crash, no pause"
    one, outage, storm, *_ = (
        lines[begin:end] for begin, end in zip(titles, [*titles[1:], None], strict=True)
    )
    assert ["provider.refund crash after_send, after_answer", "doubled", "right"] in one
    assert ["claim crash at any point", "-", "right"] in one
    assert ["no crash, no pause", "lost", "right"] in outage
    assert ["hand_over pause at any point", "-", "right"] in outage
    assert ["note_report crash at any point", "doubled", "right"] in storm
    assert "From the worst to the best: doubled, overpaid, " in result.output


def test_crashes_takes_other_scenarios_in_their_order() -> None:
    # The second refund of $300 on $500 is let through while the first is under way.
    result = call("crashes", "-d", "PROVIDER_KEY", "-s", "two_partial_refunds", "-s", "declined")
    title, *lines = result.output.splitlines()
    assert title == "two_partial_refunds"
    assert lines.index("declined") > 10
    assert "one_refund" not in result.output
    assert "provider.refund crash before_send" in result.output
    assert "overpaid" in result.output.split("From the worst")[0]


def test_a_narrow_terminal_gets_the_designs_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = call("crashes", "-s", "one_refund", "-s", "approval_between")
    table, last = result.output.split("From the worst")
    assert max(map(len, table.splitlines())) <= 80
    assert table.count("no crash, no pause ") == table.count("\n\n") > 2 * 2
    assert last
    for design in designs.LADDER:
        assert len(re.findall(rf" {design.name}\b", table)) == 2


def test_crashes_writes_its_table_and_two_pictures_a_scenario(tmp_path: Path) -> None:
    table, picture = tmp_path / "c.csv", tmp_path / "c.svg"
    chosen = ("-d", "OUTBOX", "-s", "one_refund", "-s", "declined")
    result = call("crashes", *chosen, "--csv", str(table), "--picture", str(picture))
    assert result.exit_code == 0, result.output
    written = pd.read_csv(table)
    assert set(written["design"]) == {"OUTBOX"}
    assert list(dict.fromkeys(written["scenario"])) == ["one_refund", "declined"]
    for name in ("c.svg", "c-pause.svg", "c-2.svg", "c-pause-2.svg"):
        assert "<svg" in (tmp_path / name).read_text("utf-8")
        assert f"Drawn into {tmp_path / name}." in result.stderr


# --- proof -----------------------------------------------------------------------------------


def test_proof_prints_a_line_a_scenario() -> None:
    result = call("proof", "--max-faults", "1", "-s", "one_refund", "-s", "declined")
    assert result.exit_code == 0, result.output
    first, second = result.output.splitlines()
    assert first.startswith("SAFE, one_refund: 1")
    assert first.endswith("histories with up to 1 fault, and none broke an invariant.")
    assert second.startswith("SAFE, declined: 1")


def test_proof_takes_every_scenario_and_two_faults_by_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def prove(design, scenario, max_faults, **_: object) -> Exploration:
        asked.append((design.name, scenario.name, max_faults))
        return Exploration(design, scenario, max_faults)

    monkeypatch.setattr(proof, "prove", prove)
    assert call("proof").exit_code == 0
    # Where the agent asks only once, a wish may be lost before anybody has heard of it.
    every = [name for name in scenarios_by_name() if name != "asked_once"]
    assert asked == [("SAFE", name, 2) for name in every]


def test_proof_ends_with_code_1_at_a_counterexample_and_shows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(designs, "SAFE", designs.OUTBOX)
    result = call("proof", "-k", "1", "-s", "one_refund", "-s", "new_thought")
    assert result.exit_code == 1
    assert "is enough to break: untold." in result.output
    assert "Verdict: untold" in result.output
    assert "OUTBOX, new_thought" in result.output


# --- mistakes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ablations", "--row", "leese"], "there is no row 'leese'; did you mean 'lease'?"),
        (["ablations", "--picture", "a.gif"], "'a.gif' must end in one of .png, .svg, .pdf"),
        (["crashes", "-d", "NAIV"], "did you mean 'NAIVE'?"),
        (["crashes", "-s", "on_refund"], "there is no scenario 'on_refund'"),
        (["proof", "-k", "-1"], "-1 is not in the range x>=0."),
        (["proof", "-s", "declind"], "did you mean 'declined'?"),
    ],
)
def test_a_mistake_is_answered_with_a_sentence(arguments: list[str], sentence: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert sentence in result.output
    assert "Traceback" not in result.output
