#!/usr/bin/env python3
"""The front door of "Exactly one refund".  Needs nothing but Python 3.11 or later.

    python3 start.py demo          a minute: the ladder of designs, counterexamples, pictures
    python3 start.py lab           the lessons, in JupyterLab
    python3 start.py test          lint, types, notebooks, unit and property tests
    python3 start.py build         make the notebooks anew from their sources in solutions/
    python3 start.py doctor        is everything here that is needed? Only looks

The commands of `python -m simulator` work here too: replay, explore, simulate,
sweep, ablations, crashes, proof, resolve, storm, live. What follows the command is passed on:
`python3 start.py demo --help`.

The first start of any but doctor installs what requirements.lock names into .venv beside this
file (about a minute, 900 MB). An active conda or virtual environment that has the packages is
used as it is. On Windows write py for python3.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
MINIMUM = (3, 11)

#: How this file is started, and the variable that tells the commands so, for their helps.
FRONT_DOOR = "py start.py" if os.name == "nt" else "python3 start.py"
FRONT_DOOR_VARIABLE = "REFUND_COURSE_COMMAND"

#: Commands of the simulator's own command line, and the extras each needs.
SIMULATOR: dict[str, tuple[str, ...]] = {
    "demo": ("analysis",),
    "replay": ("analysis",),
    "explore": ("analysis",),
    "simulate": ("analysis",),
    "sweep": ("analysis",),
    "ablations": ("analysis",),
    "crashes": ("analysis",),
    "proof": ("analysis",),
    "resolve": ("analysis",),
    "storm": ("analysis",),
    "live": ("analysis", "live"),
    "doctor": (),
}
#: Commands of the lessons' machinery: the module that runs each, and the extras it needs.
LESSONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "lab": ("simulator.lessons.lab", ("analysis", "lessons")),
    "build": ("simulator.lessons.build", ("all",)),
}

#: Settings of pip or Python that would send the installation, or an import, elsewhere.
MISLEADING = (
    "PIP_NO_DEPS",
    "PIP_PREFIX",
    "PIP_REQUIRE_HASHES",
    "PIP_ROOT",
    "PIP_TARGET",
    "PYTHONHOME",
    "PYTHONPATH",
)


class Stop(Exception):
    """The start can't go on; the message is a sentence for a person."""


# --- is this Python good enough? ------------------------------------------------------------


def too_old(version: Sequence[int]) -> str | None:
    """What to say to somebody whose Python is too old, or None if it will do."""
    if tuple(version[:2]) >= MINIMUM:
        return None
    have = ".".join(str(part) for part in version[:3])
    return (
        f"Python {MINIMUM[0]}.{MINIMUM[1]} or later is needed; this is {have}. "
        "Install a newer one (from python.org, your system's package manager, conda or uv) "
        "and start again with it, for example: python3.13 start.py demo"
    )


# --- what the project needs, and what an environment has ------------------------------------


def requirements(extras: Iterable[str]) -> list[str]:
    """The direct requirements of the project with `extras`, as pyproject.toml has them."""
    import tomllib  # here, since it came with Python 3.11

    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    own = re.compile(re.escape(project["name"]) + r"\[(.+)\]")
    found: list[str] = list(project["dependencies"])
    waiting = list(extras)
    while waiting:
        for requirement in project["optional-dependencies"][waiting.pop()]:
            nested = own.fullmatch(requirement)
            if nested:
                waiting += nested[1].split(",")
            elif requirement not in found:
                found.append(requirement)
    return found


def release(version: str) -> tuple[int, ...]:
    """The numbers of a version, without zeros at the end, so that 4 and 4.0 are equal."""
    match = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(part) for part in match[0].split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def fits(version: str, bounds: str) -> bool:
    """Whether `version` lies within `bounds`, which use `>=` and `<` only: ">=4.1,<5"."""
    for bound in filter(None, bounds.split(",")):
        if bound.startswith(">="):
            good = release(version) >= release(bound[2:])
        elif bound.startswith("<") and not bound.startswith("<="):
            good = release(version) < release(bound[1:])
        else:
            raise ValueError(f"a bound must begin with >= or <, and {bound!r} does not")
        if not good:
            return False
    return True


def lacking(needed: Iterable[str]) -> list[str]:
    """Which of the requirements this very Python does not have, in words."""
    from importlib import metadata

    missing = []
    for requirement in needed:
        name, bounds = split_requirement(requirement)
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.append(name)
            continue
        if not fits(version, bounds):
            missing.append(f"{name} {bounds} (has {version})")
    return missing


def split_requirement(requirement: str) -> tuple[str, str]:
    """`"simpy>=4.1,<5"` as `("simpy", ">=4.1,<5")`."""
    match = re.fullmatch(r"([A-Za-z0-9._-]+)\s*([<>=].*)?", requirement)
    if not match:
        raise ValueError(f"{requirement!r} is not a name with bounds")
    return match[1], (match[2] or "").replace(" ", "")


def active_environment() -> str | None:
    """The name of the environment this Python belongs to, unless it is none, or our own .venv."""
    if Path(sys.prefix).resolve() == VENV:
        return None
    conda = os.environ.get("CONDA_PREFIX")
    if conda and Path(conda).resolve() == Path(sys.prefix).resolve():
        return f"conda environment {Path(conda).name}"
    if sys.prefix != sys.base_prefix:
        return f"virtual environment {Path(sys.prefix).name}"
    return None


# --- .venv ----------------------------------------------------------------------------------


def venv_python(venv: Path = VENV, windows: bool = os.name == "nt") -> Path:
    """The interpreter of a virtual environment."""
    return venv / "Scripts" / "python.exe" if windows else venv / "bin" / "python"


def maker(root: Path = ROOT) -> str:
    """Which Python, and where: if this changes, .venv has to be made from scratch."""
    return f"{sys.implementation.cache_tag} {root}"


def wanted(root: Path = ROOT) -> str:
    """What has to be in .venv: if this changes, it is brought up to date."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "requirements.lock"):
        digest.update((root / name).read_bytes())
    return digest.hexdigest()


def state(root: Path = ROOT) -> str:
    """How .venv is: "ready", "outdated", "unusable", "foreign" or "missing".

    The stamp is written last, and a marker first, so that an installation that was cut off
    is "unusable" and done again. "foreign" was made by somebody's own hands.
    """
    venv = root / ".venv"
    if not venv.exists():
        return "missing"
    if (venv / "unfinished").exists() or not venv_python(venv).exists():
        return "unusable"
    try:
        made_by, has = (venv / "stamp").read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return "foreign"
    if made_by != maker(root):
        return "unusable"
    return "ready" if has == wanted(root) else "outdated"


def why_not(now: str, root: Path = ROOT) -> str:
    """In a sentence, why nothing can run in a .venv that is in the state `now`, and what to do."""
    install = f"{FRONT_DOOR} demo"
    venv = root / ".venv"
    if now == "missing":
        return (
            f"Not set up yet: run {install} (it installs into {venv}, once: about a minute, "
            "900 MB)."
        )
    if now == "foreign":
        return f"{venv} was not made by start.py. {install} adds to it what is missing."
    anew = f"{install} makes it anew (about a minute, 900 MB)."
    if (venv / "unfinished").exists():
        return f"The installation into {venv} was cut off. {anew}"
    if not venv_python(venv).exists():
        return f"The Python that {venv} was made with is gone. {anew}"
    tag, _, folder = (venv / "stamp").read_text("utf-8").splitlines()[0].partition(" ")
    if folder != str(root):
        return f"{venv} was made in another folder, {folder}, and moved. {anew}"
    this = ".".join(map(str, sys.version_info[:3]))
    digits = re.fullmatch(r"cpython-(\d)(\d+)", tag)
    if not digits:
        return f"{venv} was made with another Python ({tag}) than this {this}. {anew}"
    maker = f"{digits[1]}.{digits[2]}"
    same = f"py -{maker}" if os.name == "nt" else f"python{maker}"
    return (
        f"{venv} was made with Python {maker}, and this is {this}. Start with that one: "
        f"{same} start.py doctor. Or go over to this one: {anew}"
    )


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Lets one start at a time install; a second one waits."""
    with open(ROOT / ".venv.lock", "w") as file:
        if sys.platform == "win32":
            import msvcrt

            while True:
                with contextlib.suppress(OSError):
                    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                    break
        else:
            import fcntl

            # Some network file systems know no locks: then two at once is the user's risk.
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make_venv() -> None:
    """Makes .venv, or brings it up to date."""
    now = state()
    if now == "ready":  # another start was quicker
        return
    goal = wanted()  # before the installation: what is changed meanwhile is not in it
    absent = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if absent:
        raise Stop(no_venv_module(absent[0]))
    say(
        {
            "missing": "Installing into .venv, once: about a minute, 900 MB …",
            "unusable": "Making .venv anew: it is unfinished, moved, or another Python's …",
            "outdated": "Bringing .venv up to date …",
            "foreign": "Bringing .venv, which was there already, up to date …",
        }[now]
    )
    began = time.monotonic()
    if now == "unusable":
        shutil.rmtree(VENV)
    VENV.mkdir(exist_ok=True)
    if now != "foreign":
        (VENV / "unfinished").touch()
    try:
        fill_venv(now)
    except Stop:
        # pip puts back what it had taken out: what was usable before is so still.
        if now == "outdated":
            (VENV / "unfinished").unlink()
        raise
    (VENV / "stamp").write_text(f"{maker()}\n{goal}\n", "utf-8")
    with contextlib.suppress(FileNotFoundError):
        (VENV / "unfinished").unlink()
    say(f"Installed in {time.monotonic() - began:.0f} s.")


def fill_venv(now: str) -> None:
    """Puts everything into the folder .venv, which was in the state `now`."""
    if now == "foreign":
        check_foreign()
    if now != "outdated":
        base = getattr(sys, "_base_executable", None) or sys.executable
        install("making .venv", [base, "-m", "venv", str(VENV)])
    pip = [str(venv_python()), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    pip += ["--no-color", "install"]
    lock = str(ROOT / "requirements.lock")
    exact = ["--require-hashes", "--progress-bar", "off", "-r", lock]
    install("installing the packages", [*pip, "--no-compile", *exact])
    project = ["--no-deps", "--no-build-isolation", "--no-index", "-e", str(ROOT)]
    install("installing the project", pip + project)
    show_progress("  compiling")
    # What pip would do on one core, here on all; tests of the packages are left out.
    compiled = ["-m", "compileall", "-q", "-j", "0", "-x", r"[/\\]tests?[/\\]", str(VENV)]
    with child([str(venv_python()), *compiled], stdout=subprocess.DEVNULL):
        pass
    show_progress("")


def check_foreign() -> None:
    """Refuses a .venv that was made by hand with another Python: it is not ours to delete."""
    settings = (VENV / "pyvenv.cfg").read_text("utf-8")
    match = re.search(r"^version(?:_info)?\s*=\s*(\d+)\.(\d+)", settings, re.MULTILINE)
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    if version != sys.version_info[:2]:
        raise Stop(
            f"{VENV} was not made by start.py, and for Python {version[0]}.{version[1]}, not "
            f"{sys.version_info[0]}.{sys.version_info[1]}. Delete it, or activate it if it has "
            "all the packages, and start again."
        )


@contextlib.contextmanager
def child(command: list[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process that does not outlive this one: it has ended when the block is left.

    A SIGTERM to this process goes on to the child, and when that has ended this one ends. A
    Ctrl-C reaches both by itself; the child has `PATIENCE` seconds to end as it likes.

    Raises:
        SystemExit: there was a SIGTERM.
    """
    process: subprocess.Popen[Any] | None = None
    ended = False

    def end(number: int, frame: object) -> None:
        nonlocal ended
        ended = True
        if process is not None:
            process.terminate()

    before = signal.signal(signal.SIGTERM, end)
    try:
        process = subprocess.Popen(command, **options)
        try:
            if ended:
                process.terminate()
            yield process
            process.wait()
        except KeyboardInterrupt:
            end_softly(process)
            raise
        finally:
            if process.stdout is not None:
                process.stdout.close()
            if process.poll() is None:
                process.kill()
                process.wait()
    finally:
        signal.signal(signal.SIGTERM, before)
    if ended:
        raise SystemExit(128 + signal.SIGTERM)


#: Seconds that a child has, after a Ctrl-C, to end as it likes.
PATIENCE = 10.0


def end_softly(process: subprocess.Popen[Any]) -> None:
    """Waits until a process that had a Ctrl-C has ended; one that takes too long is told to."""
    with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
        process.wait(PATIENCE)
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
            process.wait(PATIENCE)


def install(what: str, command: list[str]) -> None:
    """Runs a step of the installation; what goes wrong becomes a sentence.

    Raises:
        Stop: the step failed.
    """
    environment = {k: v for k, v in os.environ.items() if k not in MISLEADING}
    environment["PIP_USER"] = "0"  # a setting of pip's own file would win otherwise
    environment["PYTHONUTF8"] = "1"
    lines: list[str] = []
    fetched = 0
    with child(
        command,
        cwd=str(ROOT),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            if line.startswith("Collecting "):
                fetched += 1
                show_progress(f"  {fetched} packages fetched")
            elif line.startswith("Installing collected packages"):
                show_progress(f"  unpacking {fetched} packages")
    show_progress("")
    if process.returncode:
        raise Stop(explain(what, "\n".join(lines)))


def show_progress(text: str) -> None:
    """Replaces the line on the screen, if there is a screen."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K" + text)
        sys.stderr.flush()


def say(text: str) -> None:
    """Says something that is not a command's output."""
    print(text, file=sys.stderr, flush=True)


# --- what went wrong, in a sentence ---------------------------------------------------------


def no_venv_module(absent: str) -> str:
    """What to say when Python came without `venv` or `ensurepip`, as Debian's does."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return (
        f"This Python ({sys.executable}) came without its module {absent}, so .venv can't be "
        f"made. On Debian or Ubuntu: sudo apt install python{version}-venv. Elsewhere install "
        "Python from python.org, or make and activate a conda environment: "
        "conda env create -f environment.yml"
    )


UNREACHABLE = (
    "The package index can't be reached. Are you online? Behind a proxy set HTTPS_PROXY, with a "
    "mirror of your own set PIP_INDEX_URL, and start again."
)
#: What a failed installation printed, and the sentence for it; the first that fits counts.
REASONS = (
    (
        r"No space left on device|Errno 28|WinError 112|Disk quota exceeded|Errno 122",
        f"The disk is full: about 1.5 GB must be free in {ROOT} and in the folder for temporary "
        "files. Make room and start again.",
    ),
    (
        r"DO NOT MATCH THE HASHES",
        "A package that was fetched is not the one that requirements.lock names (its hash "
        "differs), so it was not installed. A proxy or mirror may have changed it: try another "
        "network, and empty pip's cache with: pip cache purge",
    ),
    (
        r"NewConnectionError|ConnectTimeoutError|ReadTimeoutError|ProxyError|SSLError"
        r"|NameResolutionError|Temporary failure in name resolution|Connection refused"
        r"|Connection to .* timed out|Could not fetch URL|Network is unreachable"
        r"|RemoteDisconnected|IncompleteRead|ConnectionResetError|Connection reset"
        r"|Connection broken|40[137] Client Error|50\d Server Error",
        UNREACHABLE,
    ),
    (
        r"No matching distribution found|is not a supported wheel|metadata-generation-failed"
        r"|subprocess-exited-with-error|Failed to build|Failed building wheel",
        "There is no ready-made build of one of the packages for this Python "
        f"({sys.version.split()[0]} on {sys.platform}, {platform.machine()}), and it could not be "
        "built here. Python 3.11, 3.12 or 3.13 on a 64-bit system will do.",
    ),
    (
        r"Permission denied|Errno 13\b|Errno 30\b|Read-only file system|WinError 5\b",
        f"{VENV} can't be written. Copy the project to a folder of your own, or mend the "
        "permissions, and start again.",
    ),
)


def explain(what: str, output: str) -> str:
    """Why a step of the installation failed, from what it printed, and what to do."""
    nothing_came = not re.search(r"^ *(Downloading|Using cached) ", output, re.MULTILINE)
    if nothing_came and "(from versions: none)" in output:
        return UNREACHABLE
    for pattern, sentence in REASONS:
        if re.search(pattern, output):
            return sentence
    last = "\n".join("  " + line for line in output.splitlines()[-12:])
    return f"Something went wrong while {what}. The last that was said:\n{last}"


def explain_os_error(error: OSError) -> str:
    """The same for what the operating system refuses to this script itself."""
    if error.errno == errno.ENOENT:
        return f"{error.filename} is missing: get the project's files anew and start again."
    said = f"[Errno {error.errno}] {error.strerror}: {error.filename}"
    return explain("preparing .venv", said)


# --- commands -------------------------------------------------------------------------------


def environment_for(python: Path, own: bool) -> dict[str, str]:
    """The variables a command runs with: as if .venv, or the project, had been activated."""
    environment = dict(os.environ)
    if own:
        for name in ("PYTHONHOME", "PYTHONPATH"):
            environment.pop(name, None)
        environment["VIRTUAL_ENV"] = str(VENV)
        environment["PATH"] = str(python.parent) + os.pathsep + environment.get("PATH", "")
    else:
        # The project itself need not be installed there; notebooks' kernels inherit this.
        paths = [str(ROOT), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return environment


def choose_python(extras: Sequence[str], *, look_only: bool = False) -> tuple[Path, bool]:
    """The Python that has what is needed, and whether it is that of .venv, made if need be.

    Raises:
        Stop: it would have to be made, and `look_only`.
    """
    active = active_environment()
    if active:
        missing = lacking(requirements(extras))
        if not missing:
            return Path(sys.executable), False
        few = ", ".join(missing[:4]) + (f" and {len(missing) - 4} more" if missing[4:] else "")
        say(f"The active {active} lacks {few}; .venv is used instead.")
    now = state()
    if look_only and now == "outdated":
        say(f".venv is not up to date with the project's files; {FRONT_DOOR} demo brings it there.")
    elif look_only and now != "ready":
        raise Stop(why_not(now))
    elif now != "ready":
        with alone():
            make_venv()
    return venv_python(), True


def hand_over(command: list[str], environment: dict[str, str], folder: Path | None) -> int:
    """Runs the last command of all; on POSIX this process becomes it."""
    if folder:
        os.chdir(folder)
    if os.name == "posix":
        sys.stdout.flush()
        os.execve(command[0], command, environment)
    return run(command, environment)


def run(command: list[str], environment: dict[str, str]) -> int:
    """Runs a command to its end; its exit code."""
    with child(command, env=environment) as process:
        pass
    return int(process.returncode)


#: Options of pytest after which a path may follow: these take no value of their own.
FLAGS = re.compile(
    r"-[xvqsl]+|--(lf|last-failed|ff|failed-first|nf|new-first|sw|stepwise|pdb|co|collect-only"
    r"|exitfirst|verbose|quiet|showlocals|no-header|no-summary|no-cov)|--[a-z-]+=.*|-[nkmrpc].+"
)


def missing_paths(arguments: Sequence[str], root: Path = ROOT) -> list[str]:
    """The paths among pytest's arguments that are not there.

    What follows an option that may take a value is left to pytest.
    """
    missing = []
    before = ""
    for argument in arguments:
        if not argument.startswith(("-", "@")) and (
            not before.startswith("-") or FLAGS.fullmatch(before)
        ):
            path = argument.partition("::")[0]
            if not (root / path).exists():
                missing.append(path)
        before = argument
    return missing


def no_such_path(path: str, root: Path = ROOT) -> str:
    """What to say of a path that `test` was given and that is not there."""
    known = {file.name: file for file in (root / "tests").rglob("test_*.py")}
    near = difflib.get_close_matches(Path(path).name, known, n=1, cutoff=0.75)
    hint = f" Did you mean {known[near[0]].relative_to(root).as_posix()}?" if near else ""
    where = "" if Path(path).is_absolute() else f" in {root}"
    return f"There is no {path!r}{where}.{hint}"


#: What pytest's exit codes mean, where "FAILED" alone would mislead.
ENDINGS = {4: "pytest could not use what it was given", 5: "no test was found"}


def test_steps(arguments: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Name, and module with its arguments, of each step of `test`; `arguments` are pytest's.

    The notebooks are run and compared by tests/test_notebooks.py, so pytest comes last and
    its closing line stands just above the summary.
    """
    return [
        ("lint", ["ruff", "check", "."]),
        ("format", ["ruff", "format", "--check", "."]),
        ("types", ["mypy"]),
        ("tests", ["pytest", "-n", "2", "--dist", "loadscope", *arguments]),
    ]


def test(python: Path, environment: dict[str, str], arguments: Sequence[str]) -> int:
    """Runs every step, the later ones too when one fails, and sums up."""
    os.chdir(ROOT)
    summary = []
    for name, module in test_steps(arguments):
        print(f"\n--- {name}: python -m {' '.join(module)}", flush=True)
        began = time.monotonic()
        code = run([str(python), "-m", *module], environment)
        summary.append((name, code, time.monotonic() - began))
    print()
    for name, code, seconds in summary:
        why = ENDINGS.get(code) if name == "tests" else None
        outcome = "passed" if code == 0 else f"FAILED ({why or f'exit code {code}'})"
        print(f"{name:10} {outcome}, {seconds:.0f} s")
    return 1 if any(code for _, code, _ in summary) else 0


#: Helps of the commands that pass on all they are given to a program with a help of its own.
HELPS = {
    "test": f"""Usage: {FRONT_DOOR} test [PYTEST OPTIONS]

Lint, format, types, then every test and notebook. What follows is given to pytest:
    {FRONT_DOOR} test tests/test_cli.py -k fault""",
    "lab": f"""Usage: {FRONT_DOOR} lab [JUPYTERLAB OPTIONS]

Opens the lessons in JupyterLab, in your browser, at the one where you stopped. Ctrl+C here
closes it. What follows is given to JupyterLab:
    {FRONT_DOOR} lab --no-browser --port 9999
    {FRONT_DOOR} lab --help-all          all its options""",
}


def main(arguments: Sequence[str]) -> int:
    """Runs the command that `arguments` begin with; returns the exit code."""
    old = too_old(sys.version_info[:3])
    if old:
        say(old)
        return 1
    known = [*SIMULATOR, *LESSONS, "test"]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(__doc__)
        return 0 if arguments else 2
    command, rest = arguments[0], list(arguments[1:])
    if command not in known:
        say(f"There is no command {command!r}. Choose one of: {', '.join(known)}.")
        return 2
    if command in HELPS and rest and rest[0] in ("-h", "--help"):
        print(HELPS[command])
        return 0
    missing = missing_paths(rest) if command == "test" else []
    if missing:
        say("\n".join(map(no_such_path, missing)))
        return 2
    try:
        extras = {**SIMULATOR, **{name: extra for name, (_, extra) in LESSONS.items()}}
        doctor = command == "doctor"
        python, own = choose_python(extras.get(command, ("all",)), look_only=doctor)
        environment = environment_for(python, own)
        if command == "test":
            return test(python, environment, rest)
        environment[FRONT_DOOR_VARIABLE] = FRONT_DOOR
        if doctor:  # it changes nothing: not even compiled files are left
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
        if command in LESSONS:
            module = LESSONS[command][0]
            return hand_over([str(python), "-m", module, *rest], environment, ROOT)
        # -P: a folder named simulator in the caller's folder must not be taken for ours.
        module_arguments = ["-P", "-m", "simulator", command, *rest]
        return hand_over([str(python), *module_arguments], environment, None)
    except Stop as stop:
        say(str(stop))
        return 1
    except OSError as error:
        say(explain_os_error(error))
        return 1


def entry() -> NoReturn:
    """Ends the process with main's exit code; Ctrl-C ends it without a traceback."""
    try:
        code = main(sys.argv[1:])
    except KeyboardInterrupt:
        unfinished = (VENV / "unfinished").exists()
        say("\nStopped." + (" The next start installs anew." if unfinished else ""))
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    entry()
