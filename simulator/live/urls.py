"""Which database a URL names."""

from __future__ import annotations

from simulator.live.clock import Clock
from simulator.live.database import Database
from simulator.live.postgres import PostgreSQL, without_password
from simulator.live.problems import Problem
from simulator.live.sqlite_file import SqliteFile
from simulator.service.errors import DatabaseUnavailable

__all__ = ["open_database"]


def open_database(url: str, clock: Clock) -> Database:
    """The database that a URL names: sqlite:///file, or postgresql://user@host/name.

    Raises:
        Problem: the URL names no database that we know, or it cannot be reached.
    """
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        database: Database = _sqlite_file(url, clock)
    elif scheme in ("postgresql", "postgres"):
        try:
            database = PostgreSQL(url, clock)
        except ImportError as error:
            raise Problem(
                "PostgreSQL needs the package psycopg. Install the extra: "
                'python -m pip install "exactly-one-refund[live]"'
            ) from error
    else:
        raise Problem(
            f"{without_password(url)!r} is no database that can be used here. Write "
            "sqlite:///refunds.db for a file, or postgresql://user@host/name."
        )
    try:
        database.rows("SELECT 1")
    except DatabaseUnavailable as error:
        raise database.why_not(error.__cause__ or error) from error
    except database.errors as error:
        raise database.why_not(error) from error
    return database


def _sqlite_file(url: str, clock: Clock) -> SqliteFile:
    if not url.startswith("sqlite:///") or not url.removeprefix("sqlite:///"):
        raise Problem(
            f"{url!r} names no file. Write three slashes and a path: sqlite:///refunds.db "
            "(four for one that begins at the root: sqlite:////tmp/refunds.db)."
        )
    database = SqliteFile(url, clock)
    if not database.path.parent.is_dir():
        raise Problem(
            f"The folder {database.path.parent} does not exist. Make it, or name another file."
        )
    if database.path.is_dir():
        raise Problem(f"{database.path} is a folder. Name a file in it.")
    return database
