"""The tables, for PostgreSQL as written and for SQLite as translated."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

__all__ = ["postgresql_schema", "sqlite_schema"]

# SQLite would take any text in these columns, and turn '500' into a number in one whose
# type it does not know, so the types are named one by one.
_SQLITE = (
    (r"--[^\n]*", ""),
    (r"BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "INTEGER PRIMARY KEY"),
    (r"\b(UUID|TEXT) PRIMARY KEY", "TEXT NOT NULL PRIMARY KEY"),
    (r"\b(UUID|JSONB|TIMESTAMPTZ)\b", "TEXT"),
    (r"\bBIGINT\b", "INTEGER"),
    (r"\bDEFAULT NOW\(\)", "DEFAULT CURRENT_TIMESTAMP"),
)


@cache
def postgresql_schema() -> str:
    """schema.sql, as it is."""
    return (resources.files("simulator.service") / "schema.sql").read_text("utf-8")


@cache
def sqlite_schema() -> str:
    """schema.sql in SQLite's words."""
    text = postgresql_schema()
    for pattern, replacement in _SQLITE:
        text = re.sub(pattern, replacement, text)
    return text
