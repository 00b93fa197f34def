"""However a run ends: nobody goes on without it, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ps names sessions on Linux only")

COMMAND = [
    *(sys.executable, "-c", "from simulator.live.command import live; live()"),
    *("--design", "SAFE", "--refunds", "5000", "--kills", "0"),
]


def processes_of(session: int) -> list[str]:
    """Who still lives of those that were started in this session."""
    listing = subprocess.run(
        ["ps", "-eo", "sid=,stat=,args="], capture_output=True, text=True, check=True
    )
    lines = [line.split(None, 2) for line in listing.stdout.splitlines()]
    return [args for sid, state, args in lines if int(sid) == session and state[0] != "Z"]


def wait_until(condition: object, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:  # type: ignore[operator]
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nobody_and_nothing_stays_when_a_run_is_killed_or_interrupted(
    number: signal.Signals, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        COMMAND,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    wait_until(lambda: len(processes_of(process.pid)) >= 7)
    assert len(processes_of(process.pid)) >= 7, "provider, proxy, 2 backends, 2 workers, we"
    wait_until(lambda: list(tmp_path.glob("refunds-*/ledger.db")))
    time.sleep(0.3)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    wait_until(lambda: not processes_of(process.pid) and not list(tmp_path.iterdir()))
    assert processes_of(process.pid) == []
    assert list(tmp_path.iterdir()) == []
    assert "Traceback" not in errors


ORPHAN = """
import time
from multiprocessing import Pipe
from simulator.live.stops import Stops

class Slow(Stops):
    def _listen(self, line):
        time.sleep(0.5)
        super()._listen(line)

ours, theirs = Pipe()
theirs.close()
Slow(ours).report("problem", "the folder is gone")
print("went on")
"""


def test_whoever_has_nobody_to_report_to_any_more_ends_without_a_word() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ORPHAN], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
