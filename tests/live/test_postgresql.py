"""A PostgreSQL server without an administrator, and nothing left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simulator.live import postgresql as module
from simulator.live.clock import Clock
from simulator.live.postgresql import candidates, temporary_server
from simulator.live.problems import Problem
from simulator.live.urls import open_database

STARTS = """
import sys, time
from simulator.live.postgresql import temporary_server
with temporary_server() as url:
    print(url, flush=True)
    {then}
"""


@pytest.fixture(autouse=True)
def _needs_a_server(postgresql: str) -> None:
    """These tests start servers of their own, where one can be had at all."""


def folder_of(url: str) -> Path:
    return Path(url.partition("host=")[2].partition("&")[0])


def servers_in(folder: Path) -> list[str]:
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in listing.stdout.splitlines() if str(folder) in line]


def test_it_runs_on_a_socket_as_an_ordinary_user_and_is_gone_afterwards() -> None:
    with temporary_server() as url:
        folder = folder_of(url)
        database = open_database(url, Clock.start())
        (port,) = database.rows("SELECT current_setting('listen_addresses')")
        assert port == ("",), "it can be reached through its socket only"
        assert (folder / "data").stat().st_uid != 0
        database.close()
        assert servers_in(folder)
    assert not folder.exists()
    assert not servers_in(folder)


@pytest.mark.parametrize("name", ["the machine's own", "the package's"])
def test_each_server_that_is_here_makes_our_tables(name: str) -> None:
    package = name == "the package's"
    found = [path for path in candidates() if ("pginstall" in path.parts) == package]
    if not found:
        pytest.skip(f"no server: {name}")
    with temporary_server(found[0]) as url:
        database = open_database(url, Clock.start())
        database.create()
        assert database.rows("SELECT COUNT(*) FROM tool_operations") == [(0,)]
        assert database.product().startswith("PostgreSQL 1")
        database.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_behind_when_we_are_killed_or_interrupted(number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STARTS.format(then="time.sleep(60)")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    folder = folder_of(process.stdout.readline().strip())
    assert servers_in(folder)
    process.send_signal(number)
    process.wait(20)
    process.stdout.close()
    end = time.monotonic() + 20
    while (folder.exists() or servers_in(folder)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not folder.exists()
    assert not servers_in(folder)


def test_where_there_is_no_server_a_sentence_says_what_can_be_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "candidates", lambda: iter(()))
    with pytest.raises(Problem, match=r"no PostgreSQL server on this machine.*--database"):
        module.find_binaries()


def test_a_server_that_does_not_start_is_a_sentence_with_its_reason(tmp_path: Path) -> None:
    # For root the installation is copied first: an ordinary user may not look into this folder.
    binaries = tmp_path / "pginstall" / "bin"
    binaries.mkdir(parents=True)
    for name in ("initdb", "postgres"):
        (binaries / name).write_text("#!/bin/sh\necho 'no room for a cluster' >&2\nexit 1\n")
        (binaries / name).chmod(0o755)
    with pytest.raises(Problem, match=r"did not start: no room for a cluster"):
        temporary_server(binaries).__enter__()


def test_an_installation_that_only_its_owner_may_use_is_copied_for_everybody(
    tmp_path: Path,
) -> None:
    hidden = tmp_path / "hidden"
    binaries = hidden / "pginstall" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "postgres").touch(mode=0o700)
    hidden.chmod(0o700)
    assert not module.open_to_all(binaries)
    folder = tmp_path / "run"
    folder.mkdir()
    copy = module.copied(binaries, folder / "pginstall")
    assert (copy / "postgres").stat().st_mode & 0o777 == 0o755
    assert copy.stat().st_mode & 0o005 == 0o005
