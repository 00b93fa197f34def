"""start.py: what it decides, and what it says when something is in its way."""

from __future__ import annotations

import ast
import errno
import importlib.util
import os
import re
import shutil
import subprocess
import sys
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
    code = "import runpy, sys; sys.prefix = sys.base_prefix; sys.argv = sys.argv[1:]; "
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    result = subprocess.run(
        [sys.executable, "-c", code, str(project / "start.py"), "demo"],
        env={**os.environ, **offline},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
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
    monkeypatch.setattr(subprocess, "call", lambda command, env: next(codes))
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
