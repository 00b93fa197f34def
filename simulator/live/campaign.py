"""Many refunds at once, while processes are killed; then the four accounts.

Half of the kills come at named steps: a process is told where to stop, says that it is there,
and is killed. The others come at random moments.
"""

from __future__ import annotations

import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from simulator.live.accounts import read_accounts
from simulator.live.clock import Clock
from simulator.live.course import OPEN, Course
from simulator.live.database import Database
from simulator.live.people import Customers, Wish, start_customers
from simulator.live.problems import Problem
from simulator.live.processes import Crew, Setting
from simulator.live.report import Report
from simulator.live.sqlite_file import SqliteFile
from simulator.live.trouble import Trouble
from simulator.live.urls import open_database
from simulator.service.design import Design

__all__ = ["Campaign", "Report"]

AMOUNT = 50_00
CAPTURED = 500_00
"""Minor units: ten refunds of $50 share an order of $500, and so its balance."""

AGENTS = 6
"""Refunds under way at once."""

FILL_ORDER = """
    INSERT INTO orders
        (tenant_id, id, user_id, status, currency, captured, refunded, pending)
    VALUES
        (:tenant_id, :id, :user_id, 'confirmed', 'USD', :captured, 0, 0)
"""


@dataclass
class Campaign:
    """A run: so many refunds, so many kills.

    Attributes:
        design: the service under trial.
        database: URL of the database; None: a SQLite file that is removed afterwards.
        refunds, kills: how many.
        trouble: what goes wrong between us and the provider besides.
        speed: seconds of the service in one of the wall's clock.
        seed: of the order of kills, and of all luck but that of the machine.
        client: "http" or "stripe".
        ledger: the provider's file; by default beside a SQLite file that you name, and else
            one that is removed afterwards.
        port: the provider's; 0 takes a free one.
        agents: refunds under way at once.
        workers: processes that carry out what the outbox promises.
        shared_orders: whether ten refunds share an order; else each has one of its own, on
            which the amount would fit ten times.
        progress: whether to show a line about how it goes, on stderr.
    """

    design: Design
    database: str | None = None
    refunds: int = 200
    kills: int = 0
    trouble: Trouble = field(default_factory=Trouble)
    speed: float = 10.0
    seed: int = 1
    client: str = "http"
    ledger: Path | None = None
    port: int = 0
    agents: int = AGENTS
    workers: int = 2
    shared_orders: bool = True
    progress: bool = False

    def run(self) -> Report:
        """Runs it to its end.

        Raises:
            Problem: it cannot be run, or not to its end; a sentence says why.
        """
        with tempfile.TemporaryDirectory(prefix="refunds-") as folder:
            return self._run(Path(folder))

    def _run(self, folder: Path) -> Report:
        began = time.monotonic()
        clock = Clock.start(self.speed)
        url = self.database or f"sqlite:///{folder / 'refunds.db'}"
        database = open_database(url, clock)
        database.create()
        product = database.product()
        ledger = self._ledger(database, folder)
        wishes, captured = self._wishes(database)
        customers = Customers(clock)
        people = start_customers(customers)
        setting = Setting(
            self.design,
            url,
            ledger,
            (folder,),
            clock,
            self.trouble,
            people.url,
            self.client,
            self.port,
            self.seed,
        )
        try:
            with Crew(setting, workers=self.workers) as crew, self._bar() as bar:
                rested = Course(
                    self.design,
                    self.kills,
                    self.agents,
                    self.seed,
                    crew,
                    database,
                    wishes,
                    customers,
                    bar,
                ).run()
            accounts = read_accounts(
                self.design, wishes, AMOUNT, captured, database, ledger, customers.told
            )
        finally:
            people.stop()
            database.close()
        return Report(
            self.design,
            accounts,
            crew.deaths,
            crew.faults,
            crew.silences,
            rested,
            time.monotonic() - began,
            product,
            self.trouble,
        )

    def _ledger(self, database: Database, folder: Path) -> Path:
        """Where the provider keeps its books: as long as the database keeps ours."""
        path = self.ledger or folder / "ledger.db"
        if self.ledger is None and isinstance(database, SqliteFile) and self.database is not None:
            path = database.path.with_name(f"{database.path.name}.ledger")
        unfinished = int(database.rows(OPEN)[0][0])
        if unfinished and not path.exists():
            raise Problem(
                f"{database.name()} has {unfinished} unfinished refunds of an earlier run, and "
                "the ledger of the provider that may have paid them is not here. Name it with "
                "--ledger, or name another database."
            )
        return path

    def _wishes(self, database: Database) -> tuple[list[Wish], dict[str, int]]:
        """Orders in the database, and what is wanted of them. Names are new in every run."""
        run = uuid.uuid4().hex[:8]
        tenant, user = str(uuid.uuid4()), str(uuid.uuid4())
        wishes, captured = [], {}
        on_each = CAPTURED // AMOUNT if self.shared_orders else 1
        for number in range(self.refunds):
            order = f"ORD-{run}-{number // on_each + 1}"
            captured[order] = CAPTURED
            amount = f"{AMOUNT // 100}.{AMOUNT % 100:02}"
            wishes.append(Wish(f"intent-{run}-{number + 1}", tenant, user, order, amount))

        def fill(tx: Any) -> None:
            for order in captured:
                tx.execute(
                    FILL_ORDER,
                    {"tenant_id": tenant, "id": order, "user_id": user, "captured": CAPTURED},
                )

        database.run(fill)
        return wishes, captured

    @contextmanager
    def _bar(self) -> Iterator[tqdm[Any]]:
        with tqdm(
            total=self.refunds,
            desc=self.design.name,
            unit=" refunds",
            disable=None if self.progress else True,  # None: if nobody watches
            file=sys.stderr,
            leave=False,
        ) as bar:
            yield bar
