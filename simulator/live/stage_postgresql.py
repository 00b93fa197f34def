"""Two transactions on PostgreSQL, each on a connection and in a thread of its own."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from simulator.live.problems import Problem
from simulator.live.stage import FRESH, Client, History, Stage
from simulator.live.transactions import CASES, TABLES, Case, Seen, Step

__all__ = ["PostgreSQLStage"]

SCHEMA = "exactly_one_refund_interleavings"

PATIENCE = 5.0
"""Seconds within which a statement must end, or be seen to wait for the other client."""


class PostgreSQLClient(Client):
    """A connection, and the thread that waits in it."""

    def __init__(self, name: str, connection: Any) -> None:
        super().__init__(name, History(CASES[0]))
        self.connection = connection
        self.pid = connection.info.backend_pid
        self.steps: SimpleQueue[Step | None] = SimpleQueue()
        self.idle = threading.Event()
        self.idle.set()
        self.waiting = 0
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def start(self, history: History, level: str) -> None:
        """Opens a transaction."""
        self.history, self.seen, self.over = history, Seen(), False
        self.connection.execute(f"BEGIN ISOLATION LEVEL {level}".encode())

    def give(self, step: Step) -> None:
        """A statement to run as soon as those before it are done."""
        self.waiting += 1
        self.idle.clear()
        self.steps.put(step)

    def _work(self) -> None:
        while (step := self.steps.get()) is not None:
            self.take(step)
            self.waiting -= 1
            if not self.waiting:
                self.idle.set()

    def execute(self, sql: str) -> str:
        if sql == "COMMIT":
            self.connection.execute("COMMIT")
            return "committed"
        statement = sql.replace(":client", f"'{self.name}'").encode()
        cursor = self.connection.execute(statement)
        return self.note(cursor, cursor.description is not None)

    def state_of(self, error: Exception) -> str:
        state = getattr(error, "sqlstate", None)
        if state is None:
            raise error
        return str(state)

    def roll_back(self) -> None:
        self.connection.execute("ROLLBACK")


class PostgreSQLStage(Stage):
    """Three connections: two clients, and one that watches. Tables in a schema of their own."""

    def __init__(self, url: str) -> None:
        import psycopg

        self.psycopg = psycopg
        self.url = url

    def __enter__(self) -> PostgreSQLStage:
        try:
            self.watch = self.psycopg.connect(self.url, autocommit=True, connect_timeout=5)
            self.watch.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())
            self.watch.execute(f"CREATE SCHEMA {SCHEMA}".encode())
            self.watch.execute(f"SET search_path TO {SCHEMA}".encode())
            self.watch.execute(TABLES.encode())
        except self.psycopg.Error as error:
            line = str(error).strip().splitlines()[0]
            raise Problem(f"PostgreSQL cannot be used for the interleavings: {line}.") from error
        self.product = f"PostgreSQL {self.watch.info.server_version // 10000}"
        self.clients = {name: PostgreSQLClient(name, self._connect()) for name in "AB"}
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.clients.values():
            client.steps.put(None)
            client.thread.join(PATIENCE)
            client.connection.close()
        self.watch.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())
        self.watch.close()

    def _connect(self) -> Any:
        connection = self.psycopg.connect(self.url, autocommit=True)
        connection.execute(f"SET search_path TO {SCHEMA}; SET synchronous_commit TO off".encode())
        with suppress(self.psycopg.errors.InsufficientPrivilege):
            # By default it looks for deadlocks after a second of waiting.
            connection.execute("SET deadlock_timeout = '5ms'")
        return connection

    def play(self, case: Case, level: str, order: str) -> History:
        self.watch.execute(FRESH.encode())
        history = History(case)
        steps = {name: iter(case.steps) for name in "AB"}
        for client in self.clients.values():
            client.start(history, level)
        for name in order:
            self.clients[name].give(next(steps[name]))
            for client in self.clients.values():
                history.waited |= not self._settled(client)
        for client in self.clients.values():
            if not client.idle.wait(PATIENCE):
                raise Problem(f"{case.name} on {level}, order {order}: it never came to an end.")
        row = self.watch.execute(case.done.encode()).fetchone()
        history.times = int(row[0]) if row else 0
        return history

    def _settled(self, client: PostgreSQLClient) -> bool:
        """Waits until the client is idle (True), or waits for the other (False)."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if client.idle.wait(0.002):
                return True
            row = self.watch.execute("SELECT pg_blocking_pids(%s)", [client.pid]).fetchone()
            if row and row[0]:
                return client.idle.is_set()
        raise Problem("A statement neither ended nor waited for the other client.")
