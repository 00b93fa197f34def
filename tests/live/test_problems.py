"""Bad input and bad luck: a sentence, and nothing lost."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result

from simulator.live.campaign import Campaign
from simulator.live.clock import Clock
from simulator.live.command import live
from simulator.live.ledger import payments
from simulator.live.postgres import SCHEMA, without_password
from simulator.live.problems import Problem
from simulator.live.trouble import Trouble
from simulator.live.urls import open_database
from simulator.service import designs


def started(url: str) -> None:
    database = open_database(url, Clock.start())
    try:
        database.create()
    finally:
        database.close()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("mysql://host/name", r"'mysql://host/name' is no database that can be used here"),
        ("", r"'' is no database"),
        ("sqlite:refunds.db", r"names no file. Write three slashes"),
        ("sqlite:///", r"names no file"),
        ("sqlite:////no/such/folder/refunds.db", r"folder /no/such/folder does not exist"),
        ("sqlite:////tmp", r"/tmp is a folder"),
        ("postgresql://me:secret@127.0.0.1:9/none", r"me:…@127.0.0.1:9/none.*Check the URL"),
        ("postgresql:///none?host=/no/such/folder", r"Check the URL"),
        ("postgresql://[", r"Check the URL"),
    ],
)
def test_a_url_that_leads_nowhere_is_a_sentence(url: str, sentence: str) -> None:
    with pytest.raises(Problem, match=sentence) as caught:
        started(url)
    assert "secret" not in str(caught.value)


def test_a_password_is_never_shown() -> None:
    assert without_password("postgresql://me:a:b@c@host/x") == "postgresql://me:…@host/x"
    assert (
        without_password("postgresql:///x?password=p&host=h") == "postgresql:///x?password=…&host=h"
    )


def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "thesis.doc"
    path.write_text("three years of work " * 100)
    with pytest.raises(Problem, match=r"not one of SQLite's. It was left as it is"):
        started(f"sqlite:///{path}")
    assert path.read_text() == "three years of work " * 100


OLD = "CREATE TABLE tool_operations (id TEXT); INSERT INTO tool_operations VALUES ('one');"


def test_an_older_schema_in_a_file_is_a_sentence_and_its_rows_stay(tmp_path: Path) -> None:
    path = tmp_path / "refunds.db"
    connection = sqlite3.connect(path)
    connection.executescript(OLD)
    with pytest.raises(Problem, match=r"another version of this program.*left as they are.*rm "):
        started(f"sqlite:///{path}")
    assert connection.execute("SELECT id FROM tool_operations").fetchall() == [("one",)]
    connection.close()


@pytest.fixture
def admin(postgresql: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("CREATE DATABASE elsewhere")
        yield connection
        connection.execute("DROP DATABASE elsewhere WITH (FORCE)")


def elsewhere(url: str, user: str = "refunds") -> str:
    return url.replace("/postgres?", "/elsewhere?").replace("user=refunds", f"user={user}")


@pytest.mark.usefixtures("admin")
def test_an_older_schema_in_postgresql_is_a_sentence_and_its_rows_stay(postgresql: str) -> None:
    url = elsewhere(postgresql)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {SCHEMA}".encode())
        connection.execute(f"SET search_path TO {SCHEMA}".encode())
        connection.execute(OLD.encode())
        with pytest.raises(Problem, match=r"another version.*DROP SCHEMA exactly_one_refund"):
            started(url)
        assert connection.execute("SELECT id FROM tool_operations").fetchall() == [("one",)]


def test_no_right_to_make_tables_is_a_sentence(
    postgresql: str, admin: psycopg.Connection[tuple[object, ...]]
) -> None:
    admin.execute("CREATE ROLE guest LOGIN")
    try:
        with pytest.raises(Problem, match=r"does not let you make tables.*GRANT CREATE"):
            started(elsewhere(postgresql, "guest"))
    finally:
        admin.execute("DROP ROLE guest")


def test_a_database_that_ends_its_connections_is_a_sentence(postgresql: str) -> None:
    with pytest.raises(Problem, match=r'database "nowhere" does not exist'):
        started(postgresql.replace("/postgres?", "/nowhere?"))


def test_a_port_in_use_is_a_sentence_and_nobody_stays_behind() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Problem, match=rf"Port {port} on 127.0.0.1 cannot be had .*another"):
            Campaign(designs.SAFE, refunds=1, port=port).run()


def test_a_named_file_is_kept_and_takes_a_second_run(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'refunds.db'}"
    for run in (1, 2):
        report = Campaign(designs.SAFE, url, refunds=3).run()
        assert report.findings == {}, str(report)
        with sqlite3.connect(tmp_path / "refunds.db") as connection:
            found = connection.execute("SELECT COUNT(*) FROM tool_operations").fetchone()
        connection.close()
        assert found == (3 * run,)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 600 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(folder)]
    if sys.platform != "linux" or os.geteuid() != 0 or subprocess.run(mount).returncode != 0:
        pytest.skip("a small disk can be had by root on Linux only")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_stops_the_run_with_a_sentence_and_loses_nothing(small_disk: Path) -> None:
    path = small_disk / "refunds.db"
    url = f"sqlite:///{path}"
    with pytest.raises(Problem, match=r"There is no room left for .*Make room, and start again"):
        Campaign(designs.SAFE, url, refunds=2_000).run()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    statuses = dict(
        connection.execute("SELECT status, COUNT(*) FROM tool_operations GROUP BY status")
    )
    connection.close()
    assert statuses["succeeded"] > 0
    remount = ["mount", "-o", "remount,size=20m", str(small_disk)]
    subprocess.run(remount, check=True)
    # The next run finds what was promised in the file, and carries it out besides its own.
    report = Campaign(designs.SAFE, url, refunds=3).run()
    assert report.findings == {}, str(report)
    paid = [payment.intent_id for payment in payments(small_disk / "refunds.db.ledger")]
    assert len(set(paid)) == len(paid), "and pays nothing twice"
    connection = sqlite3.connect(path)
    rows = connection.execute(
        "SELECT intent_id, status FROM tool_operations o JOIN refunds r ON o.id = r.operation_id"
    ).fetchall()
    connection.close()
    assert sorted(rows) == sorted((intent, "succeeded") for intent in paid)


def test_unfinished_refunds_whose_ledger_is_gone_are_not_paid_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'refunds.db'}"
    started(url)
    connection = sqlite3.connect(tmp_path / "refunds.db")
    with connection:
        connection.execute(
            "INSERT INTO tool_operations VALUES "
            "('i', 't', 'k', 'refund', 'h', 'outcome_unknown', NULL, '2026', '2026')"
        )
    connection.close()
    with pytest.raises(Problem, match=r"has 1 unfinished refunds of an earlier run"):
        Campaign(designs.SAFE, url, refunds=3).run()


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        ({"lose_request": 1.5}, r"lose_request=1.5.*between 0 and 1"),
        ({"script": {"rain": (1,)}}, r"'rain'.*the faults are lose_request"),
    ],
)
def test_trouble_that_cannot_be_is_a_sentence(trouble: dict[str, float], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Trouble(**trouble)  # type: ignore[arg-type]


# The command.


def run(*arguments: str) -> Result:
    return CliRunner().invoke(live, arguments, catch_exceptions=False)


def test_the_command_says_that_the_accounts_agree() -> None:
    result = run("--design", "SAFE", "--refunds", "12", "--kills", "3")
    assert result.exit_code == 0, result.output
    assert "SAFE on SQLite" in result.output
    assert "The four accounts agree. No refund was paid twice, none was lost." in result.output


def test_the_command_shows_what_the_naive_design_pays() -> None:
    result = run("--design", "naive", "--refunds", "20", "--kills", "0", "--loss", "0.5")
    assert result.exit_code == 0, result.output
    assert "refunds were paid more than once" in result.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--design", "BRAVE"], "'BRAVE' is no rung of the ladder: NAIVE, ONE_SHOT"),
        (["--database", "mysql://x"], "is no database that can be used here"),
        (["--refunds", "0"], "0 is not in the range"),
        (["--kills", "-1"], "-1 is not in the range"),
        (["--loss", "2"], "2.0 is not in the range"),
        (["interleavings", "--example", "rain", "SERIALIZABLE", "right"], "no such case"),
    ],
)
def test_bad_input_to_the_command_is_a_sentence(arguments: list[str], sentence: str) -> None:
    result = run(*arguments)
    assert result.exit_code in (1, 2)
    assert sentence in " ".join(result.output.split())
