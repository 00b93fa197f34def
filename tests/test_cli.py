"""The command line: what it answers, above all to mistakes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pandas as pd
import pytest

from simulator.cli import cli, history, ladder, main
from simulator.cli.words import DESIGN, FAULT, RATE, designs_by_name, rates_of, scenarios_by_name
from simulator.experiments import doctor, timeline
from simulator.experiments.explore import faults_at
from simulator.experiments.replay import replay
from simulator.experiments.simulate import simulate
from simulator.experiments.verdict import INVARIANTS, Verdict
from simulator.service import designs
from simulator.world import faults
from simulator.world.scenario import Scenario

ROOT = Path(__file__).parents[1]
COMMANDS = sorted(cli.commands)


class Result:
    """What a call of the command line left."""

    def __init__(self, code: object, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


Call = Callable[..., Result]


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Call:
    """Calls the command line in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def call_it(*arguments: str) -> Result:
        monkeypatch.setattr(sys, "argv", ["simulator", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Result(ended.value.code, said.out, said.err)

    return call_it


# --- help ------------------------------------------------------------------------------------


def test_the_commands_are_those_of_the_design() -> None:
    named = {"demo", "replay", "explore", "simulate", "sweep", "storm", "doctor"}
    assert named <= set(COMMANDS)
    # start.py passes them on, and has its own list to do so without an import.
    listed = re.search(r"^SIMULATOR.*?^}", (ROOT / "start.py").read_text("utf-8"), re.M | re.S)
    assert listed is not None
    assert set(re.findall(r'^    "(\w+)":', listed[0], re.M)) == set(COMMANDS)


def test_help_lists_every_command_in_a_line(call: Call) -> None:
    result = call("--help")
    assert result.code == 0
    for command in COMMANDS:
        assert re.search(rf"^  {command} +\w.*[^.]\.$|^  {command} +\w.*\?$", result.out, re.M)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(call: Call, command: str) -> None:
    result = call(command, "--help")
    assert result.code == 0
    assert f"python -m simulator {command}" in result.out


def test_help_of_replay_says_what_every_scenario_and_every_fault_is(call: Call) -> None:
    said = " ".join(call("replay", "--help").out.split())
    assert " double_click The customer clicks twice, 50 ms apart; two instances get" in said
    assert (
        " lose_response The request arrives and is carried out; its answer never arrives." in said
    )
    for name in (*scenarios_by_name(), *faults.KINDS):
        assert re.search(rf" {name} [A-Z]", said), name


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("explore", ["designs", "scenarios", "faults"]),
        ("simulate", ["designs", "scenarios", "faults"]),
        ("sweep", ["designs", "faults"]),
        ("resolve", ["designs", "faults"]),
        ("crashes", ["designs", "scenarios"]),
        ("proof", ["scenarios"]),
    ],
)
def test_helps_name_what_can_be_named_and_say_where_it_is_explained(
    call: Call, command: str, named: list[str]
) -> None:
    _, names = call(command, "--help").out.split("Names:")
    assert re.findall(r"^  (\w+)  +\w", names, re.M) == named
    assert names.endswith("What they mean: python -m simulator replay --help\n")


def test_every_option_of_every_command_is_explained() -> None:
    live = cli.commands["live"]
    assert isinstance(live, click.Group)
    for name, command in [*cli.commands.items(), *live.commands.items()]:
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help, f"{name} {option.name}"


def test_pictures_by_default_need_no_folder_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    live = cli.commands["live"]
    assert isinstance(live, click.Group)
    (picture,) = (each for each in live.commands["rates"].params if each.name == "picture")
    assert picture.type.convert(picture.default, picture, None) == Path(str(picture.default))


def examples() -> list[str]:
    """Every example of the helps but the demo's and the storms', the long ones made short."""
    found = []
    for name in ("replay", "explore", "simulate", "doctor"):
        for line in (cli.commands[name].epilog or "").splitlines():
            if "python -m simulator" in line:
                short = re.sub(r"--max-faults \d", "--max-faults 1", line.strip())
                found.append(f"{short} -n 200" if name == "simulate" else short)
    return found


@pytest.mark.parametrize("example", examples())
def test_the_examples_of_the_help_work(call: Call, example: str) -> None:
    result = call(*shlex.split(example)[3:])
    assert result.code == 0, result.err
    assert result.out


def test_help_is_there_at_once_because_nothing_heavy_is_loaded_for_it() -> None:
    code = (
        "import sys, simulator.cli\n"
        "heavy = {'pandas', 'matplotlib', 'numpy', 'scipy', 'simpy', 'pydantic'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_without_a_command_it_shows_the_help(call: Call) -> None:
    result = call()
    assert result.code == 2
    assert "Commands:" in result.out + result.err


# --- mistakes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("dmeo", "No such command 'dmeo'. Did you mean 'demo'?"),
        ("replay", "Missing argument 'DESIGN'."),
        ("replay NAIV", "there is no design 'NAIV'; did you mean 'NAIVE'?"),
        ("replay xyz", "there is no design 'xyz'; choose one of NAIVE, ONE_SHOT, "),
        ("explore 'safe without leese'", "did you mean 'SAFE without lease'?"),
        ("replay NAIVE -s on_refund", "there is no scenario 'on_refund'; did you mean 'one_ref"),
        ("replay NAIVE --senario x", "No such option '--senario'. Did you mean '--scenario'?"),
        ("replay NAIVE -f lose_respons:x", "there is no fault 'lose_respons'; did you mean 'lose_"),
        (
            "replay NAIVE -f ?",
            "'?' is no fault; write kind:step, as in lose_response:provider.refund",
        ),
        ("replay NAIVE -f crash", "'crash' names no step; write crash:step"),
        ("replay NAIVE -f crash:a:b:c", "'crash:a:b:c' names no step"),
        ("replay NAIVE -f crash:begin:2s", "'crash:begin:2s': crash takes no seconds"),
        ("replay NAIVE -f crash:begin:0", "crash(nth=0): steps are counted 1, 2, 3"),
        ("replay NAIVE -f reset:provider.refund:after_send", "reset(when='after_send'): say one"),
        ("replay NAIVE -f crash:begin -f crash:begin", "Two faults name step 'begin', time 1"),
        ("replay NAIVE --picture a.gif", "'a.gif' must end in one of .png, .svg, .pdf"),
        ("replay NAIVE --picture no/a.png", "the folder 'no' does not exist; make it first"),
        ("explore NAIVE --kind crush", "there is no fault 'crush'; did you mean 'crash'?"),
        ("explore NAIVE -k -1", "-1 is not in the range x>=0."),
        ("simulate NAIVE", "without a rate nothing goes wrong; give --rate lose_response=0.1"),
        ("simulate NAIVE -r crash", "'crash': write crash=p with a probability p from 0 to 1"),
        ("simulate NAIVE -r crash=2", "'crash=2': write crash=p with a probability p from 0 to 1"),
        ("simulate NAIVE -r crash=nan", "'crash=nan': write crash=p with a probability"),
        ("simulate NAIVE --every 1.5", "1.5 is not in the range 0<=x<=1."),
        ("simulate NAIVE --every 0.1 -n 0", "0 is not in the range x>=1."),
        ("demo --refunds 3", "3 is not in the range 100<=x<=1000000."),
    ],
)
def test_a_mistake_is_answered_with_one_sentence_and_exit_code_2(
    call: Call, line: str, sentence: str
) -> None:
    result = call(*shlex.split(line))
    assert sentence in result.err
    assert result.err.count("\n") == 1
    assert result.out == ""
    assert result.code == 2


def test_a_fault_that_finds_no_step_is_not_passed_over(call: Call) -> None:
    result = call("replay", "SAFE", "-f", "lose_response:provider.refnd")
    assert (
        "There is no step 'provider.refnd', time 1: did you mean 'provider.refund'?" in result.err
    )
    assert result.code == 2
    assert result.out == ""
    result = call("replay", "NAIVE", "-f", "lose_response:provider.refund:7")
    assert "There is no step 'provider.refund', time 7: it was taken 1 time." in result.err
    assert result.code == 0


def test_what_cannot_be_written_is_said_without_a_traceback(call: Call, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    result = call("demo", "--out", "taken/pictures")
    assert result.code == 1
    assert result.err == "taken/pictures: Not a directory.\n"


def test_ctrl_c_is_quiet(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("simulator.experiments.explore.explore", interrupted)
    result = call("explore", "NAIVE")
    assert result.code == 130
    assert result.err.strip() == "Stopped."


@pytest.mark.skipif(os.name != "posix", reason="pipes break otherwise elsewhere")
def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = f"{shlex.quote(sys.executable)} -m simulator explore SAFE -k 1 --all | true"
    said = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT, check=True)
    assert said.stderr == ""


# --- names and faults as people write them ----------------------------------------------------


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("NAIVE", "NAIVE"),
        ("naive", "NAIVE"),
        ("publish-after-commit", "PUBLISH_AFTER_COMMIT"),
        ("SAFE without fencing token", "SAFE without fencing token"),
        ("safe-without-fencing-token", "SAFE without fencing token"),
    ],
)
def test_designs_are_found_however_they_are_spelled(written: str, name: str) -> None:
    assert DESIGN.convert(written, None, None).name == name


def test_every_rung_and_every_ablation_has_a_name_of_its_own() -> None:
    assert len(designs_by_name()) == len(designs.LADDER) + len(designs.ablations())


def test_every_scenario_without_arguments_can_be_named() -> None:
    found = scenarios_by_name()
    assert {"one_refund", "double_click", "two_partial_refunds", "new_thought"} <= set(found)
    for name, make in found.items():
        assert make().name == name


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ("lose_response:provider.refund", faults.lose_response("provider.refund")),
        ("lose_response:provider.refund:2", faults.lose_response("provider.refund", nth=2)),
        ("crash:worker-1:finish", faults.crash("worker-1:finish")),
        ("crash:worker-1:finish:1:after", faults.crash("worker-1:finish", when="after")),
        ("crash:finish:before:3", faults.crash("finish", nth=3, when="before")),
        (
            "pause:worker-1:provider.refund:after_send:40.5s",
            faults.pause("worker-1:provider.refund", when="after_send", seconds=40.5),
        ),
        ("crash(worker-1:begin, nth=2, before)", faults.crash("worker-1:begin", 2, "before")),
    ],
)
def test_faults_can_be_written_in_short(written: str, fault: faults.Fault) -> None:
    assert FAULT.convert(written, None, None) == fault


def test_every_fault_can_be_written_as_histories_print_it() -> None:
    scenario = Scenario.double_click()
    run = replay(designs.SAFE, scenario)
    tried = [fault for step in run.steps for fault in faults_at(step, designs.SAFE, scenario)]
    assert {fault.kind for fault in tried} == set(faults.KINDS)
    for fault in tried:
        assert FAULT.convert(str(fault), None, None) == fault


def test_single_rates_win_over_the_rate_of_every_fault() -> None:
    rates = rates_of([RATE.convert("crash=0.5", None, None)], every=0.01)
    assert (rates.crash, rates.pause, rates.where) == (0.5, 0.01, "everywhere")
    alone = rates_of([("crash", 0.5)], every=None)
    assert alone == faults.Rates(crash=0.5)


# --- what the commands print ------------------------------------------------------------------


def test_replay_prints_the_history_and_its_verdict(call: Call) -> None:
    result = call("replay", "NAIVE", "-f", "lose_response:provider.refund")
    fault = faults.lose_response("provider.refund")
    assert result.out == replay(designs.NAIVE, faults=[fault]).text + "\n"
    assert "Verdict: double_refund" in result.out
    assert result.err == ""


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_replay_draws_into_a_file(call: Call, tmp_path: Path, suffix: str) -> None:
    begins = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    result = call("replay", "ONE_SHOT", "--picture", f"history{suffix}")
    assert result.code == 0
    assert (tmp_path / f"history{suffix}").read_bytes().startswith(begins[suffix])


def test_a_picture_says_in_words_what_went_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drawn = []
    draw = timeline.draw
    monkeypatch.setattr(timeline, "draw", lambda *a, **k: drawn.append(draw(*a, **k)) or drawn[-1])
    for loses in ([faults.lose_response("provider.refund")], []):
        history.draw(replay(designs.NAIVE, faults=loses), tmp_path / "a.png")
    wrong, right = (
        " ".join(text.get_text() for text in figure.axes[0].texts[:3]) for figure in drawn
    )
    assert "seed 0 What went wrong: paid more than once; more given back than was cap" in wrong
    assert "seed 0 All is right in the end." in right
    assert str(drawn[0]).endswith("our books and the provider's differ.")


def test_every_invariant_has_its_words_for_a_picture() -> None:
    assert tuple(history.IN_SHORT) == INVARIANTS
    assert history.went_wrong(Verdict(["stuck", "lost_refund"])) == (
        "What went wrong: never paid though owed; never finished."
    )


def test_explore_prints_the_smallest_counterexample(call: Call) -> None:
    result = call("explore", "NAIVE", "--max-faults", "1")
    assert result.code == 0
    assert result.out.startswith("NAIVE, one_refund: 3 histories. lose_response(")
    assert "$  PAYS $500.00" in result.out


def test_explore_says_when_there_is_nothing_to_show(call: Call) -> None:
    result = call("explore", "SAFE", "-k", "0", "--picture", "a.png")
    assert result.out == (
        "SAFE, one_refund: 1 history with up to 0 faults, and none broke an invariant.\n"
    )
    assert result.err == "No counterexample, so nothing was drawn.\n"


def test_explore_goes_on_and_counts_when_asked_to(call: Call) -> None:
    result = call("explore", "ONE_SHOT", "-k", "1", "--all", "--kind", "lose_response")
    counts = re.findall(r"^ *(\d+)  (.+)$", result.out, re.M)
    assert sum(int(count) for count, _ in counts) > 1
    assert {"right", "false_answer"} & {verdict.split(",")[0] for _, verdict in counts}


def test_simulate_prints_shares_with_intervals_and_writes_the_table(
    call: Call, tmp_path: Path
) -> None:
    result = call("simulate", "NAIVE", "-r", "lose_response=0.1", "-n", "400", "--csv", "a.csv")
    assert re.search(r"double_refund +\d+ +[\d.]+%  \([\d.]+% to [\d.]+%\)", result.out)
    frame = pd.read_csv(tmp_path / "a.csv")
    assert list(frame.columns) == ["outcome", "count", "rate", "low", "high"]
    row = frame.set_index("outcome").loc["double_refund"]
    # A lost answer is paid again: with one loss in ten, about one refund in ten.
    assert row["low"] < 0.1 < row["high"]


# --- demo ------------------------------------------------------------------------------------


def test_every_rung_but_the_last_falls_with_one_fault_in_the_demo() -> None:
    found = ladder.counterexamples(designs.LADDER[:-1])
    for exploration in found:
        assert exploration.counterexample is not None, exploration.design.name
        assert len(exploration.counterexample.faults) <= 1
    assert set(ladder.IDEAS) == {design.name for design in designs.LADDER}


def test_the_demo_prints_and_draws_every_rung(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ladder, "MAX_FAULTS", 1)
    result = call("demo", "--refunds", "100", "--out", "pictures")
    assert result.code == 0
    for number, design in enumerate(designs.LADDER, 1):
        assert f"=== {number}. {design.name}: {ladder.IDEAS[design.name]}" in result.out
        assert re.search(rf"^{design.name} +[\d.]", result.out, re.M)
    pictures = sorted((tmp_path / "pictures").iterdir())
    assert [path.name[:3] for path in pictures] == [f"{n:02d}-" for n in range(1, 11)]
    for path in pictures:
        assert path.read_bytes().startswith(b"\x89PNG")
    safe = re.search(r"^SAFE  +(.*)$", result.out, re.M)
    assert safe is not None
    assert safe[1].split()[:6] == ["0"] * 6
    assert str(tmp_path / "pictures") in result.out.splitlines()[-1]
    assert result.err == ""


def test_the_table_has_a_share_and_its_interval_in_every_column() -> None:
    rates = faults.Rates(lose_response=0.5)
    estimate = simulate(designs.NAIVE, rates, refunds=50)
    head, shares, intervals = ladder.table([estimate]).splitlines()
    assert head.split() == [*ladder.COLUMNS, "answer"]
    rate, low, high = estimate.rate("double_refund")
    assert shares.split()[1] == ladder.share(rate)
    assert intervals.split()[0] == f"{ladder.share(low)}–{ladder.share(high)}"
    assert len({len(line) for line in (head, shares, intervals)}) == 1


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0, "0"), (0.00001, "0"), (0.0004, "0.04"), (0.00949, "0.9"), (0.0995, "10"), (1, "100")],
)
def test_shares_are_short_and_rounded(fraction: float, text: str) -> None:
    assert ladder.share(fraction) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.244, "0.24 s"), (9.999, "10.00 s"), (63.2, "63 s")]
)
def test_times_are_short(seconds: float, text: str) -> None:
    assert ladder.waited(seconds) == text


def test_nobody_answered_is_not_a_number_of_seconds() -> None:
    assert ladder.waited(float("nan")) == "never"


# --- doctor ----------------------------------------------------------------------------------


def test_the_doctor_finds_everything_that_the_tests_run_with(call: Call) -> None:
    result = call("doctor")
    assert result.code == 0, result.out
    assert "good    Jupyter kernel" in result.out
    lines = result.out.splitlines()
    assert len(lines) > 20
    assert all(re.match(r"(good|absent)  ", line) for line in lines)


def test_the_doctor_fails_and_says_what_to_do_when_something_is_missing(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = ["no-such-package>=1,<2", "click>=98,<99", "click>=1,<2"]
    monkeypatch.setattr(doctor, "requirements", lambda: needed)
    result = call("doctor", "--no-kernel")
    assert result.code == 1
    bad = [line for line in result.out.splitlines() if line.startswith("bad")]
    assert len(bad) == 3
    assert all("python3 start.py demo" in line for line in bad)


@pytest.mark.parametrize(
    "finding",
    [
        doctor.python((3, 10, 13)),
        doctor.sqlite((3, 31, 1)),
        doctor.writable(ROOT / "no such folder"),
        doctor.jupyter_kernel("no-such-kernel"),
    ],
)
def test_every_bad_finding_has_its_advice(finding: doctor.Finding) -> None:
    assert finding.state == "bad"
    assert finding.advice
    assert "\n" not in str(finding)


def test_the_doctor_leaves_nothing_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("IPYTHONDIR", raising=False)
    found = [finding for finding in doctor.examine() if finding.about == "Jupyter kernel"]
    assert [finding.state for finding in found] == ["good"]
    assert "IPYTHONDIR" not in os.environ
    assert [str(path) for path in tmp_path.rglob("*") if not path.is_dir()] == []
    assert not (tmp_path / ".ipython").exists()


def test_what_only_some_things_need_is_no_failure() -> None:
    finding = doctor.optional("Nothing", ("no-such-program",), "nobody needs it")
    assert finding.state == "absent"


def test_the_doctor_knows_what_is_needed_without_the_sources(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = ["click<9,>=8.1", "pandas<4,>=3.0; extra == 'analysis'", "exactly-one-refund[test]"]
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: lines)
    assert doctor.requirements() == ["click<9,>=8.1", "pandas<4,>=3.0"]
