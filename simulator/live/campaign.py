"""Many refunds at once, while processes are killed; then the four accounts.

Half of the kills come at named steps: a process is told where to stop, says that it is there,
and is killed. The others come at random moments.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from tqdm import tqdm

from simulator.live.accounts import Accounts, counted, read_accounts
from simulator.live.clock import Clock
from simulator.live.database import Database, SqliteFile, open_database
from simulator.live.people import Agent, Customers, Wish, start_customers
from simulator.live.problems import Problem
from simulator.live.processes import Crew, Death, Setting
from simulator.live.stops import CALL_PLACES, TRANSACTION_PLACES
from simulator.live.trouble import DEFINITE, Trouble
from simulator.service.design import Design
from simulator.service.outbox import Outbox
from simulator.service.schemas import money

__all__ = ["Campaign", "Report", "steps_of"]

AMOUNT = 50_00
CAPTURED = 500_00
"""Minor units: ten refunds of $50 share an order of $500, and so its balance."""

AGENTS = 6
"""Refunds under way at once."""

AT_LEAST = 1.0
"""Seconds of the wall's clock that a process gets to come to the step where it is to stop."""

REST = 1_000.0
"""Seconds of the service without any progress, after which a run will never come to its end.
The safe design waits 300 s between two looks into an outcome that it could not find out."""

FILL_ORDER = """
    INSERT INTO orders VALUES
        (:tenant_id, :id, :user_id, 'confirmed', 'USD', :captured, 0, 0)
"""
UNDONE = """
    SELECT COUNT(*) FROM outbox
    WHERE done_at IS NULL AND dead_at IS NULL AND available_at IS NOT NULL
"""
OPEN = """
    SELECT COUNT(*) FROM tool_operations o
    WHERE o.status NOT IN ('succeeded', 'failed')
      AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.operation_id = o.id)
"""


def steps_of(design: Design) -> list[tuple[str, str, str]]:
    """Every place where a process of this design can be made to stop:
    ("backend" | "worker" | "provider", step, place).
    """
    backend: list[tuple[str, tuple[str, ...]]] = [("begin", TRANSACTION_PLACES)]
    worker: list[tuple[str, tuple[str, ...]]] = []
    provider: list[tuple[str, tuple[str, ...]]] = [("effect", ("before", "after"))]
    if design.dispatch.inline:
        backend += [("provider.refund", CALL_PLACES), ("finish", TRANSACTION_PLACES)]
    elif isinstance(design.dispatch, Outbox):
        worker = [
            ("claim", TRANSACTION_PLACES),
            ("provider.refund", CALL_PLACES),
            ("finish", TRANSACTION_PLACES),
        ]
        if getattr(design.answer, "follow_up", False):
            worker += [("customer.notify", CALL_PLACES), ("mark_told", TRANSACTION_PLACES)]
    else:
        backend.append(("broker.publish", CALL_PLACES))
        worker = [
            ("start", TRANSACTION_PLACES),
            ("provider.refund", CALL_PLACES),
            ("finish", TRANSACTION_PLACES),
        ]
    roles = {"backend": backend, "worker": worker, "provider": provider}
    return [
        (role, step, place)
        for role, steps in roles.items()
        for step, places in steps
        for place in places
    ]


@dataclass
class Report:
    """What came of a campaign.

    Attributes:
        accounts: the four.
        deaths: who was killed, and where.
        faults: how often each kind of trouble struck.
        silences: sends to the provider that ended without an answer.
        rested: whether everything came to its end in time.
        seconds: of the wall's clock.
        product: the database.
    """

    design: Design
    accounts: Accounts
    deaths: list[Death]
    faults: Counter[str]
    silences: int
    rested: bool
    seconds: float
    product: str
    trouble: Trouble

    @property
    def findings(self) -> dict[str, list[str]]:
        """What is wrong; see `Accounts.findings`."""
        found = self.accounts.findings()
        if not self.rested:
            found.setdefault("stuck", []).append("the whole run")
        return found

    @property
    def late(self) -> int:
        """Silences that no fault of ours explains: kills, and answers of a busy machine."""
        silent = sum(count for kind, count in self.faults.items() if kind not in DEFINITE)
        return max(0, self.silences - silent)

    def __str__(self) -> str:
        accounts = self.accounts
        lines = [
            f"{self.design.name} on {self.product}: {len(accounts.owed)} refunds of "
            f"{money(AMOUNT)} on {len(accounts.captured)} orders, {self.trouble}, "
            f"{len(self.deaths)} kills, {self.seconds:.0f} s"
        ]
        if self.deaths:
            who = Counter(death.process for death in self.deaths)
            at = Counter(death.what or "random moments" for death in self.deaths)
            words = ", ".join(f"{name} {count}" for name, count in sorted(who.items()))
            places = ", ".join(f"{name} {count}" for name, count in sorted(at.items()))
            lines += [f"  killed               {words}", f"  at                   {places}"]
        if self.faults or self.silences:
            lines.append(
                f"  sends in silence     {self.silences}, of which {self.silences - self.late} by "
                f"these faults: {counted(self.faults)}"
            )
        lines += accounts.lines()
        if not self.rested:
            lines.append("  It did not come to rest.")
        return "\n".join(lines)


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
                course = Course(self, crew, database, wishes, customers, bar)
                rested = course.run()
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


class Course:
    """How a campaign goes, once everybody is up."""

    def __init__(
        self,
        campaign: Campaign,
        crew: Crew,
        database: Database,
        wishes: list[Wish],
        customers: Customers,
        bar: tqdm[Any],
    ) -> None:
        self.campaign = campaign
        self.crew = crew
        self.database = database
        self.wishes = wishes
        self.interrupted = False
        self.agent = Agent(crew.setting.clock, customers, crew.addresses, self.over)
        self.bar = bar
        self.submitted = 0
        self.answered = 0
        self.hungry = 0
        self._lock = threading.Condition()

    def run(self) -> bool:
        """Submits, kills, and waits for the end; whether everything came to rest."""
        killer = threading.Thread(target=self._kill, daemon=True)
        killer.start()
        try:
            with ThreadPoolExecutor(self.campaign.agents) as pool:
                try:
                    list(pool.map(self._submit, range(len(self.wishes))))
                except BaseException:
                    self.interrupted = True
                    raise
        finally:
            killer.join()
        rested = self._rest()
        self.crew.check()
        return rested

    def over(self) -> bool:
        """Whether the run ends early: nobody waits for its end any more, or it cannot go on."""
        return self.interrupted or self.crew.problem is not None

    def _submit(self, number: int) -> None:
        with self._lock:
            # Refunds wait for their share of the kills, so that neither runs out first.
            while not self._may_begin(number) and not self.over():
                self._lock.wait(0.01)
            if self.over():
                return
            self.submitted += 1
        self.agent.submit(self.wishes[number], number)
        with self._lock:
            self.answered += 1
            self.bar.update()
            self.bar.set_postfix(kills=len(self.crew.deaths))

    def _may_begin(self, number: int) -> bool:
        kills = self.campaign.kills
        share = (number - self.campaign.agents) * kills / max(1, len(self.wishes))
        return len(self.crew.deaths) + self.hungry >= share

    def _kill(self) -> None:
        chance = random.Random(self.campaign.seed)
        steps = steps_of(self.campaign.design)
        chance.shuffle(steps)
        for number in count():
            if len(self.crew.deaths) >= self.campaign.kills or self.over():
                return
            if number % 2 or self.answered == len(self.wishes):
                # When all are answered, hardly anybody comes by a named step any more.
                self._kill_at_random(chance)
            else:
                self._kill_at(*steps[number // 2 % len(steps)])

    def _names(self, role: str) -> list[str]:
        everybody = {"backend": self.crew.backends, "worker": self.crew.workers}
        return everybody.get(role, ["provider"])

    def _kill_at(self, role: str, what: str, place: str) -> None:
        crew, names = self.crew, self._names(role)
        for _ in range(3):
            before = len(crew.deaths)
            crew.stop_at(names, what, place)
            with crew.changed:
                crew.changed.wait_for(lambda: len(crew.deaths) > before, AT_LEAST)  # noqa: B023
            crew.stop_nowhere(names)
            if len(crew.deaths) > before:
                return
            self.hungry += 1  # nobody got there: more refunds are needed
        crew.kill(names[0])

    def _kill_at_random(self, chance: random.Random) -> None:
        names = self.crew.backends + self.crew.workers
        time.sleep(chance.uniform(0, 0.1))
        self.crew.kill(chance.choice(names))

    def _rest(self) -> bool:
        """Waits until nothing is left to do."""
        clock = self.crew.setting.clock
        left, since = self._left(), clock.now()
        while left and clock.now() < since + REST and not self.over():
            time.sleep(0.05)
            before, left = left, self._left()
            if left < before:
                since = clock.now()
        return not left

    def _left(self) -> int:
        design = self.campaign.design
        if isinstance(design.dispatch, Outbox):
            return int(self.database.rows(UNDONE)[0][0]) + int(self.database.rows(OPEN)[0][0])
        return 0
