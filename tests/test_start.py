"""start.py: what it decides, and what it says when something is in its way."""

from __future__ import annotations

import ast
import errno
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("start", ROOT / "start.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


start = load()


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(folder / "start.py"), *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what start.py reads, in a folder with a space in its name."""
    root = tmp_path / "a course"
    root.mkdir()
    for name in ("start.py", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, root)
    return root


@pytest.fixture
def installed(project: Path) -> Path:
    """The same, with a .venv that looks finished."""
    python = start.venv_python(project / ".venv")
    python.parent.mkdir(parents=True)
    python.touch()
    stamp = f"{start.maker(project)}\n{start.wanted(project)}\n"
    (project / ".venv" / "stamp").write_text(stamp)
    return project


# --- Python's age ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", [(3, 9, 18), (3, 10, 13), (2, 7, 18)])
def test_an_old_python_is_told_what_is_needed_and_what_it_is(version: tuple[int, ...]) -> None:
    said = start.too_old(version)
    assert said.startswith("Python 3.11 or later is needed; this is " + ".".join(map(str, version)))


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 13, 5), (4, 0, 0)])
def test_a_new_python_will_do(version: tuple[int, ...]) -> None:
    assert start.too_old(version) is None


def test_the_script_can_be_read_by_a_python_that_is_too_old_to_run_it() -> None:
    ast.parse((ROOT / "start.py").read_text("utf-8"), feature_version=(3, 8))


def test_the_oldest_python_is_the_one_of_pyproject() -> None:
    assert 'requires-python = ">=3.11"' in (ROOT / "pyproject.toml").read_text("utf-8")
    assert start.MINIMUM == (3, 11)


# --- doctor only looks -----------------------------------------------------------------------


def without_environment(
    folder: Path, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs start.py as a Python that belongs to no environment, whatever runs these tests."""
    code = "import runpy, sys; sys.prefix = sys.base_prefix; sys.argv = sys.argv[1:]; "
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    return subprocess.run(
        [sys.executable, "-c", code, str(folder / "start.py"), *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    """Every file and folder below, with when it was changed and what is in it."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mtime_ns,
            path.read_text("utf-8", errors="replace") if path.is_file() else "",
        )
        for path in folder.rglob("*")
    }


def of_another_python(venv: Path) -> None:
    stamp = venv / "stamp"
    stamp.write_text(stamp.read_text().replace(sys.implementation.cache_tag or "", "cpython-399"))


def of_another_implementation(venv: Path) -> None:
    stamp = venv / "stamp"
    stamp.write_text(stamp.read_text().replace(sys.implementation.cache_tag or "", "pypy311-pp73"))


def moved(venv: Path) -> None:
    stamp = venv / "stamp"
    stamp.write_text(stamp.read_text().replace(str(venv.parent), "/home/a/elsewhere"))


@pytest.mark.parametrize(
    ("happened", "said"),
    [
        (shutil.rmtree, "Not set up yet: run python3 start.py demo"),
        (of_another_python, "was made with Python 3.99, and this is 3."),
        (of_another_implementation, "was made with another Python (pypy311-pp73) than this 3."),
        (moved, "was made in another folder, /home/a/elsewhere, and moved."),
        (lambda venv: (venv / "unfinished").touch(), "was cut off. python3 start.py demo makes"),
        (lambda venv: start.venv_python(venv).unlink(), "was made with is gone. python3 start.py"),
        (lambda venv: (venv / "stamp").unlink(), "was not made by start.py. python3 start.py demo"),
    ],
)
@pytest.mark.skipif(os.name != "posix", reason="Windows says py for python3")
def test_doctor_says_why_a_venv_will_not_do_and_changes_nothing(
    installed: Path, happened: Callable[[Path], object], said: str
) -> None:
    happened(installed / ".venv")
    before = contents(installed)
    result = without_environment(installed, "doctor")
    assert contents(installed) == before
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.returncode == 1


@pytest.mark.skipif(os.name != "posix", reason="a script stands for the environment's Python")
def test_doctor_looks_at_a_venv_that_is_not_up_to_date_and_changes_nothing(
    installed: Path,
) -> None:
    python = start.venv_python(installed / ".venv")
    python.write_text("#!/bin/sh\necho looked at: $@, written: $PYTHONDONTWRITEBYTECODE\n")
    python.chmod(0o755)
    with open(installed / "pyproject.toml", "a") as file:
        file.write("\n# changed\n")
    before = contents(installed)
    result = without_environment(installed, "doctor", "--no-kernel", PYTHONDONTWRITEBYTECODE="")
    assert contents(installed) == before
    said = ".venv is not up to date with the project's files; python3 start.py demo brings it there"
    assert said in result.stderr
    assert result.stdout == "looked at: -P -m simulator doctor --no-kernel, written: 1\n"


# --- is .venv as it should be? ---------------------------------------------------------------


def test_a_finished_venv_is_ready(installed: Path) -> None:
    assert start.state(installed) == "ready"


def test_no_venv_is_missing(project: Path) -> None:
    assert start.state(project) == "missing"


@pytest.mark.parametrize("name", ["pyproject.toml", "requirements.lock"])
def test_a_changed_file_makes_it_outdated(installed: Path, name: str) -> None:
    with open(installed / name, "a") as file:
        file.write("\n# changed\n")
    assert start.state(installed) == "outdated"


def test_an_installation_that_was_cut_off_is_done_again(installed: Path) -> None:
    (installed / ".venv" / "unfinished").touch()
    assert start.state(installed) == "unusable"


def test_a_venv_that_was_moved_is_made_anew(installed: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    installed.rename(moved)
    assert start.state(moved) == "unusable"


def test_a_venv_of_another_python_is_made_anew(installed: Path) -> None:
    stamp = installed / ".venv" / "stamp"
    stamp.write_text(stamp.read_text().replace(sys.implementation.cache_tag, "cpython-399"))
    assert start.state(installed) == "unusable"


def test_a_venv_whose_python_was_removed_is_made_anew(installed: Path) -> None:
    python = start.venv_python(installed / ".venv")
    python.unlink()
    python.symlink_to(installed / "gone")
    assert start.state(installed) == "unusable"


@pytest.mark.parametrize("stamp", [None, "", "one line\n"])
def test_a_venv_that_somebody_made_is_not_deleted(installed: Path, stamp: str | None) -> None:
    path = installed / ".venv" / "stamp"
    path.unlink()
    if stamp is not None:
        path.write_text(stamp)
    assert start.state(installed) == "foreign"


def test_windows_has_its_python_in_another_place() -> None:
    assert start.venv_python(Path("v"), windows=True) == Path("v/Scripts/python.exe")
    assert start.venv_python(Path("v"), windows=False) == Path("v/bin/python")


# --- does an active environment have the packages? --------------------------------------------


@pytest.mark.parametrize(
    ("version", "bounds", "good"),
    [
        ("4.1.2", ">=4.1,<5", True),
        ("4.1", ">=4.1.0,<5", True),
        ("4.1.0", ">=4.1,<5", True),
        ("5.0", ">=4.1,<5", False),
        ("4.0.9", ">=4.1,<5", False),
        ("4.10", ">=4.9,<5", True),
        ("2026.1.post2", ">=2025,<2027", True),
        ("1.0", "", True),
    ],
)
def test_versions_are_compared_as_numbers(version: str, bounds: str, good: bool) -> None:
    assert start.fits(version, bounds) is good


@pytest.mark.parametrize("bound", ["==1", "<=2", "~=1.4", "!=3"])
def test_a_bound_that_it_does_not_know_is_refused(bound: str) -> None:
    with pytest.raises(ValueError, match="must begin with >= or <"):
        start.fits("1.0", bound)


def test_what_is_lacking_is_named() -> None:
    lacking = start.lacking(["pytest>=1,<99", "pytest>=98", "no-such-package>=1"])
    assert lacking == [f"pytest >=98 (has {pytest.__version__})", "no-such-package"]


def test_the_environment_of_the_tests_lacks_nothing() -> None:
    assert start.lacking(start.requirements(["all"])) == []


def test_extras_are_added_to_the_core_once() -> None:
    core = start.requirements([])
    everything = start.requirements(["all"])
    assert core
    assert set(core) < set(everything)
    assert len(everything) == len(set(everything))
    assert not [line for line in everything if "[" in line]


@pytest.mark.parametrize(
    ("prefix", "base", "conda", "name"),
    [
        ("/usr", "/usr", None, None),
        ("/home/a/env", "/usr", None, "virtual environment env"),
        ("/home/a/conda/envs/x", "/home/a/conda/envs/x", "/home/a/conda/envs/x", "conda"),
        ("/usr", "/usr", "/home/a/conda", None),
        (str(ROOT / ".venv"), "/usr", None, None),
    ],
)
def test_an_active_environment_is_recognised(
    monkeypatch: pytest.MonkeyPatch, prefix: str, base: str, conda: str | None, name: str | None
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(sys, "base_prefix", base)
    if conda is None:
        monkeypatch.delenv("CONDA_PREFIX", raising=False)
    else:
        monkeypatch.setenv("CONDA_PREFIX", conda)
    active = start.active_environment()
    assert active is None if name is None else active.startswith(name)


def test_an_active_environment_that_has_everything_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "active_environment", lambda: "virtual environment mine")
    assert start.choose_python(["all"]) == (Path(sys.executable), False)


def test_an_active_environment_that_lacks_something_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(start, "active_environment", lambda: "virtual environment mine")
    monkeypatch.setattr(start, "requirements", lambda extras: ["no-such-package>=1"])
    monkeypatch.setattr(start, "state", lambda: "ready")
    assert start.choose_python(["all"]) == (start.venv_python(), True)
    said = "The active virtual environment mine lacks no-such-package; .venv is used instead.\n"
    assert capsys.readouterr().err == said


def test_the_users_own_paths_do_not_leak_into_the_venv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/opt/something/else")
    environment = start.environment_for(start.venv_python(), own=True)
    assert "PYTHONPATH" not in environment
    assert environment["PATH"].startswith(str(start.venv_python().parent))


def test_an_environment_that_lacks_only_the_project_finds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/opt/mine")
    environment = start.environment_for(Path(sys.executable), own=False)
    assert environment["PYTHONPATH"].split(os.pathsep) == [str(ROOT), "/opt/mine"]


# --- what goes wrong is said in a sentence ----------------------------------------------------


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("ERROR: Could not install packages: [Errno 28] No space left on device", "The disk is"),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
            "A package that was fetched is not the one",
        ),
        (
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError("
            "'Failed to establish a new connection: [Errno 111] Connection refused')'\n"
            "ERROR: No matching distribution found for appnope==1.0.0",
            "The package index can't be reached",
        ),
        (
            "ERROR: Could not find a version that satisfies click==8.5.1 (from versions: none)\n"
            "ERROR: No matching distribution found for click==8.5.1",
            "The package index can't be reached",
        ),
        (
            "  Downloading click-8.5.1-py3-none-any.whl (108 kB)\n"
            "ERROR: Could not find a version that satisfies numpy==2.4.6 (from versions: none)\n"
            "ERROR: No matching distribution found for numpy==2.4.6",
            "There is no ready-made build",
        ),
        ("error: subprocess-exited-with-error\n  error: command 'gcc' failed", "There is no ready"),
        ("PermissionError: [Errno 13] Permission denied: 'x'", str(ROOT / ".venv") + " can't be"),
        ("ERROR: something new", "Something went wrong while testing. The last that was said:"),
    ],
)
def test_what_pip_says_becomes_a_sentence(output: str, sentence: str) -> None:
    assert start.explain("testing", output).startswith(sentence)


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "The disk is full"),
        (errno.EDQUOT, "The disk is full"),
        (errno.EACCES, "can't be written"),
        (errno.EROFS, "can't be written"),
        (errno.ENOENT, "requirements.lock is missing"),
    ],
)
def test_what_the_system_refuses_becomes_a_sentence(number: int, sentence: str) -> None:
    error = OSError(number, os.strerror(number), "requirements.lock")
    assert sentence in start.explain_os_error(error)


def absent(name: str) -> Callable[[str], object]:
    return lambda asked: None if asked == name else object()


@pytest.mark.parametrize("name", ["venv", "ensurepip"])
def test_a_python_without_venv_is_told_which_package_brings_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", absent(name))
    monkeypatch.setattr(start, "state", lambda: "missing")
    monkeypatch.setattr(start, "VENV", project / ".venv")
    with pytest.raises(start.Stop, match=rf"without its module {name}.*apt install python3"):
        start.make_venv()
    assert not (project / ".venv").exists()


def test_an_update_that_fails_leaves_what_was_usable(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(now: str) -> None:
        assert (installed / ".venv" / "unfinished").exists()
        raise start.Stop("The package index can't be reached.")

    monkeypatch.setattr(start, "state", lambda: "outdated")
    monkeypatch.setattr(start, "VENV", installed / ".venv")
    monkeypatch.setattr(start, "fill_venv", fail)
    with pytest.raises(start.Stop):
        start.make_venv()
    assert not (installed / ".venv" / "unfinished").exists()


def test_a_venv_made_by_hand_for_another_python_is_refused(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (installed / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\nversion_info = 3.9.2\n")
    monkeypatch.setattr(start, "VENV", installed / ".venv")
    with pytest.raises(start.Stop, match=r"not made by start\.py, and for Python 3\.9"):
        start.check_foreign()


def test_a_command_that_does_not_exist_is_answered_with_those_that_do(project: Path) -> None:
    result = run(project, "dmeo")
    assert result.returncode == 2
    assert result.stderr.startswith("There is no command 'dmeo'. Choose one of: demo, ")
    assert result.stdout == ""
    assert not (project / ".venv").exists()


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), ([], 2)])
def test_help_lists_every_command(project: Path, arguments: list[str], code: int) -> None:
    result = run(project, *arguments)
    assert result.returncode == code
    for command in [*start.SIMULATOR, *start.LESSONS, "test"]:
        assert re.search(rf"\b{command}\b", result.stdout)


@pytest.mark.slow
def test_without_a_network_it_says_so_and_begins_anew_next_time(project: Path) -> None:
    offline = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0", "PIP_NO_CACHE_DIR": "1"}
    offline |= {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": ""}
    # An active environment with the packages would do without a network.
    result = without_environment(project, "demo", **offline)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("The package index can't be reached.")
    assert "Traceback" not in result.stderr
    assert (project / ".venv" / "unfinished").exists()


# --- the steps of `test` ---------------------------------------------------------------------


def test_every_step_runs_and_one_failure_is_enough(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [("lint", ["ruff"]), ("types", ["mypy"]), ("tests", ["pytest"])]
    codes = iter([0, 1, 0])
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(start, "test_steps", lambda arguments: steps)
    monkeypatch.setattr(start, "run", lambda command, environment: next(codes))
    assert start.test(Path("python"), {}, []) == 1
    summary = [line.split(",")[0] for line in capsys.readouterr().out.splitlines()[-3:]]
    assert summary == [
        "lint       passed",
        "types      FAILED (exit code 1)",
        "tests      passed",
    ]


def test_arguments_are_for_pytest_and_pytest_comes_last() -> None:
    steps = dict(start.test_steps(["-k", "retry"]))
    assert list(steps) == ["lint", "format", "types", "tests"]
    assert steps["tests"][-2:] == ["-k", "retry"]
    assert "retry" not in str([steps[name] for name in ("lint", "format", "types")])


def test_help_of_test_says_what_it_does_and_runs_nothing() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "start.py"), "test", "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    assert done.stdout.startswith("Usage: python3 start.py test [PYTEST OPTIONS]")
    assert "---" not in done.stdout


def test_a_test_that_is_not_there_is_said_so_before_anything_is_run(installed: Path) -> None:
    (installed / "tests" / "cli").mkdir(parents=True)
    (installed / "tests" / "cli" / "test_tables.py").touch()
    given = ["tests/test_table.py::test_a", "-x", "tests/cli/test_tables.py", "elsewhere"]
    result = run(installed, "test", *given)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        f"There is no 'tests/test_table.py' in {installed}. Did you mean tests/cli/test_tables.py?",
        f"There is no 'elsewhere' in {installed}.",
    ]


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("-k fault", []),
        ("-m slow --durations 5", []),
        ("--junitxml out/report.xml tests", []),
        ("start.py::test_a[x/y]", []),
        ("-xvs nowhere", ["nowhere"]),
        ("--lf -n2 nowhere", ["nowhere"]),
        ("-k fault nowhere/a.py::b", ["nowhere/a.py"]),
    ],
)
def test_only_what_can_be_a_path_is_looked_for(line: str, missing: list[str]) -> None:
    assert start.missing_paths(line.split()) == missing


def test_no_test_found_is_said_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(start, "test_steps", lambda arguments: [("tests", ["pytest"])])
    monkeypatch.setattr(start, "run", lambda command, environment: 5)
    assert start.test(Path("python"), {}, []) == 1
    assert "tests      FAILED (no test was found), " in capsys.readouterr().out


# --- helps, and the way back to the front door -----------------------------------------------


def front_door(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run(ROOT, *arguments, COLUMNS="100")


@pytest.mark.parametrize("command", ["replay", "sweep", "proof", "live", "build"])
@pytest.mark.skipif(os.name != "posix", reason="Windows says py for python3")
def test_helps_name_the_program_as_it_was_started(command: str) -> None:
    result = front_door(command, "--help")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"Usage: python3 start.py {command} [OPTIONS]")
    assert "python -m" not in result.stdout


def test_help_of_lab_is_short_and_starts_nothing(project: Path) -> None:
    result = run(project, "lab", "--help")
    assert result.returncode == 0
    assert result.stdout.startswith(f"Usage: {start.FRONT_DOOR} lab [JUPYTERLAB OPTIONS]")
    assert not (project / ".venv").exists()


# --- whoever ends start.py ends what it started ------------------------------------------------

CHILD = """
import signal, sys, time
def end(*_):
    print("child ends", flush=True)
    time.sleep(0.3)
    print("child has ended", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, end)
print("child is there", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")
@pytest.mark.parametrize(
    ("ending", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"]
)
def test_a_signal_ends_what_was_started_and_waits_for_it(
    tmp_path: Path, ending: signal.Signals, code: int
) -> None:
    (tmp_path / "child.py").write_text(CHILD)
    (tmp_path / "begin.py").write_text(
        "import runpy, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's job ignores it
        f"start = runpy.run_path({str(ROOT / 'start.py')!r}, run_name='start')\n"
        "def main(arguments):\n"
        "    return start['run']([sys.executable, *arguments], None)\n"
        "start['entry'].__globals__['main'] = main\n"
        "start['entry']()\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "begin.py"), str(tmp_path / "child.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "child is there\n"
    if ending == signal.SIGINT:
        os.killpg(process.pid, ending)  # as a terminal does
    else:
        process.send_signal(ending)
    said, _ = process.communicate(timeout=30)
    assert said.startswith("child ends\nchild has ended\n")
    assert "Traceback" not in said
    assert process.returncode == code


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")
def test_ending_the_start_ends_the_lab(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with open(log, "w") as file:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "start.py"), "lab", "--no-browser", "--port", "0"],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "HOME": str(tmp_path), "REFUND_COURSE_PROGRESS": str(tmp_path)},
        )
    address = None
    while address is None and process.poll() is None:
        time.sleep(0.1)
        address = re.search(r"http://127\.0\.0\.1:\d+/", log.read_text())
    assert address is not None, log.read_text()
    urllib.request.urlopen(f"{address[0]}api", timeout=20)
    process.terminate()
    process.wait(timeout=30)
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"{address[0]}api", timeout=20)
    assert "Traceback" not in log.read_text()
