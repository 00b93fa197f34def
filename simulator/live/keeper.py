"""Keeps one PostgreSQL server for its parent, and removes it when the parent is gone.

Started as a script, as a process of its own session, so that neither Ctrl-C nor the parent's
crash reaches it before it has tidied up. Reads one line of JSON, `{"bin": …, "folder": …,
"user": …}`; writes "ready", or "failed: …"; ends, with the server and the folder, when its
standard input does. Needs nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

STARTING = 30.0
STOPPING = 10.0

SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "32MB",
    "max_connections": "100",
    # A crash of the machine would be another matter. Nothing here survives its folder.
    "fsync": "off",
}


def main() -> None:
    """Starts the server, waits for the end of standard input, removes everything."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A parent that is gone is noticed by the end of standard input, and by nothing else.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    order = json.loads(sys.stdin.readline())
    folder = Path(order["folder"])
    server: subprocess.Popen[bytes] | None = None
    try:
        server = start(Path(order["bin"]), folder, order["user"])
        wait_until_ready(server, folder)
        say("ready")
        sys.stdin.read()
    except (OSError, subprocess.SubprocessError, RuntimeError) as error:
        say(f"failed: {reason(error)}")
    finally:
        if server is not None:
            stop(server)
        shutil.rmtree(folder, ignore_errors=True)


def start(binaries: Path, folder: Path, user: str | None) -> subprocess.Popen[bytes]:
    """Makes a cluster in the folder and starts its server, as `user` if that is given."""
    running: dict[str, Any] = {"cwd": folder, "stdin": subprocess.DEVNULL}
    if user is not None:
        import pwd

        entry = pwd.getpwnam(user)
        running |= {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    data = str(folder / "data")
    environment = {**os.environ, "HOME": str(folder), "LC_ALL": "C", "TZ": "UTC"}
    subprocess.run(
        [
            binaries / "initdb",
            *("--pgdata", data, "--username", "refunds", "--auth", "trust"),
            *("--encoding", "UTF8", "--no-locale", "--no-sync", "--no-instructions"),
        ],
        check=True,
        capture_output=True,
        env=environment,
        **running,
    )
    command = [str(binaries / "postgres"), "-D", data, "-k", str(folder)]
    for name, value in SETTINGS.items():
        command += ["-c", f"{name}={value}"]
    with open(folder / "log", "wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, **running)


def wait_until_ready(server: subprocess.Popen[bytes], folder: Path) -> None:
    """Returns when the server takes connections."""
    end = time.monotonic() + STARTING
    note = folder / "data" / "postmaster.pid"
    while time.monotonic() < end:
        if server.poll() is not None:
            raise RuntimeError((folder / "log").read_text("utf-8", "replace"))
        # The server writes its state into the last line of this file.
        if note.exists() and note.read_text("utf-8", "replace").rstrip().endswith("ready"):
            return
        time.sleep(0.02)
    raise RuntimeError(f"it did not come up within {STARTING:g} s")


def stop(server: subprocess.Popen[bytes]) -> None:
    """A fast shutdown; if that takes too long, an end."""
    server.send_signal(signal.SIGINT)
    try:
        server.wait(STOPPING)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def reason(error: Exception) -> str:
    """The last line that says something."""
    text = str(error)
    if isinstance(error, subprocess.CalledProcessError):
        text = (error.stderr or b"").decode("utf-8", "replace") or text
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def say(text: str) -> None:
    """Tells the parent, if it is still there."""
    with contextlib.suppress(OSError):
        print(text, flush=True)


if __name__ == "__main__":
    main()
