from __future__ import annotations

import re
import sqlite3
from typing import Any

import pytest

from simulator.service.database import postgresql_schema, sqlite_schema

# Section 6 of the source lesson, character for character.
PUBLISHED = """\
CREATE TABLE tool_operations (
    id UUID PRIMARY KEY,
    tenant_id UUID NOT NULL,
    idempotency_key TEXT NOT NULL,
    action_type TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    status TEXT NOT NULL, -- pending, processing, succeeded, failed, outcome_unknown
    result JSONB,
    created_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),
    updated_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),

    CONSTRAINT unique_tenant_idempotency
        UNIQUE (tenant_id, idempotency_key)
);
"""
NUMBERS = ("BIGINT", "INTEGER")
INSERT = """
    INSERT INTO tool_operations (id, tenant_id, idempotency_key, action_type, request_hash, status)
    VALUES (:id, :tenant, :key, 'refund', 'hash', 'pending')
"""


def tables() -> dict[str, dict[str, str]]:
    """{table: {column: PostgreSQL type}} as schema.sql writes them."""
    found: dict[str, dict[str, str]] = {}
    for table, body in re.findall(
        r"CREATE TABLE (\w+) \((.*?)\n\);", postgresql_schema(), re.DOTALL
    ):
        found[table] = dict(re.findall(r"^    ([a-z_]+) ([A-Z]+)", body, re.MULTILINE))
    return found


@pytest.fixture
def sqlite() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(sqlite_schema())
    return connection


def columns(sqlite: sqlite3.Connection, table: str) -> list[Any]:
    return sqlite.execute(f"PRAGMA table_info({table})").fetchall()


def test_the_lessons_table_is_used_as_published() -> None:
    assert PUBLISHED in postgresql_schema()


def test_schema_sql_has_these_tables() -> None:
    assert set(tables()) == {
        "tool_operations",
        "refunds",
        "actions",
        "orders",
        "order_lines",
        "stock",
        "profiles",
        "outbox",
        "tasks",
        "approvals",
        "webhook_events",
        "audit_log",
    }


@pytest.mark.parametrize("table", sorted(tables()))
def test_a_column_holds_numbers_in_sqlite_exactly_when_it_does_in_postgresql(
    table: str, sqlite: sqlite3.Connection
) -> None:
    ours = {name: kind for _, name, kind, *_ in columns(sqlite, table)}
    assert ours == {
        name: "INTEGER" if kind in NUMBERS else "TEXT" for name, kind in tables()[table].items()
    }


@pytest.mark.parametrize("table", sorted(tables()))
def test_500_stays_text_wherever_it_is_not_an_amount(
    table: str, sqlite: sqlite3.Connection
) -> None:
    # An unknown type such as UUID or JSONB has numeric affinity in SQLite: '500' becomes 500,
    # and '00500' the same number.
    kinds = tables()[table]
    values = {name: 1 if kind in NUMBERS else "00500" for name, kind in kinds.items()}
    sqlite.execute(
        f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(':' + n for n in values)})",
        values,
    )
    for name, kind in kinds.items():
        stored = sqlite.execute(f"SELECT {name}, typeof({name}) FROM {table}").fetchone()
        assert stored == ((1, "integer") if kind in NUMBERS else ("00500", "text")), name


@pytest.mark.parametrize("table", sorted(tables()))
def test_no_part_of_a_primary_key_may_be_null(table: str, sqlite: sqlite3.Connection) -> None:
    # SQLite allows NULL in a primary key unless the column says NOT NULL; PostgreSQL never does.
    keys = [(name, kind, notnull) for _, name, kind, notnull, _, pk in columns(sqlite, table) if pk]
    assert keys
    for name, kind, notnull in keys:
        assert notnull or kind == "INTEGER", name  # an INTEGER PRIMARY KEY is the row's number


def test_an_operation_without_an_id_is_refused(sqlite: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="NOT NULL"):
        sqlite.execute(INSERT, {"id": None, "tenant": "t", "key": "k"})


@pytest.mark.parametrize("missing", ["tenant", "key"])
def test_an_operation_without_tenant_or_key_is_refused(
    missing: str, sqlite: sqlite3.Connection
) -> None:
    values = {"id": "1", "tenant": "t", "key": "k", missing: None}
    with pytest.raises(sqlite3.IntegrityError, match="NOT NULL"):
        sqlite.execute(INSERT, values)


def test_one_key_names_one_operation_of_a_tenant(sqlite: sqlite3.Connection) -> None:
    sqlite.execute(INSERT, {"id": "1", "tenant": "t", "key": "k"})
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        sqlite.execute(INSERT, {"id": "2", "tenant": "t", "key": "k"})


def test_two_tenants_may_use_the_same_key(sqlite: sqlite3.Connection) -> None:
    sqlite.execute(INSERT, {"id": "1", "tenant": "t", "key": "k"})
    sqlite.execute(INSERT, {"id": "2", "tenant": "u", "key": "k"})
    assert sqlite.execute("SELECT COUNT(*) FROM tool_operations").fetchone() == (2,)


def test_a_key_that_looks_like_a_number_is_not_the_number(sqlite: sqlite3.Connection) -> None:
    sqlite.execute(INSERT, {"id": "1", "tenant": "t", "key": "500"})
    sqlite.execute(INSERT, {"id": "2", "tenant": "t", "key": "500.0"})
    sqlite.execute(INSERT, {"id": "3", "tenant": "t", "key": "5e2"})
    assert sqlite.execute("SELECT COUNT(*) FROM tool_operations").fetchone() == (3,)


def test_the_audit_log_numbers_its_rows_in_order(sqlite: sqlite3.Connection) -> None:
    for event in ("first", "second", "third"):
        sqlite.execute(
            "INSERT INTO audit_log (at, intent_id, event, detail) VALUES ('t', 'i', ?, '')",
            (event,),
        )
    assert sqlite.execute("SELECT id, event FROM audit_log ORDER BY id").fetchall() == [
        (1, "first"),
        (2, "second"),
        (3, "third"),
    ]


def test_nothing_that_only_postgresql_understands_is_left() -> None:
    words = r"\b(UUID|JSONB|TIMESTAMPTZ|BIGINT|NOW\(\)|GENERATED|IDENTITY)"
    assert re.search(words, postgresql_schema())
    assert not re.search(words, sqlite_schema())
