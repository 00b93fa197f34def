"""One PostgreSQL server for all tests that want one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.live.clock import Clock
from simulator.live.database import Database
from simulator.live.postgresql import temporary_server
from simulator.live.problems import Problem
from simulator.live.urls import open_database


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a database that is used by nobody else."""
    try:
        server = temporary_server()
        url = server.__enter__()
    except Problem as problem:
        if os.environ.get("REQUIRE_POSTGRESQL") == "1":
            raise
        pytest.skip(f"No PostgreSQL: {problem}")
    try:
        yield url
    finally:
        server.__exit__(None, None, None)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """Each of the two databases in turn, with our tables."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'refunds.db'}"
    else:
        url = request.getfixturevalue("postgresql")
    opened = open_database(url, Clock.start())
    opened.create()
    yield opened
    opened.close()
