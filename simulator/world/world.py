"""One world: its processes, its network, its database, and everything that happens in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from simulator.service import payment, worker
from simulator.service.answers import Answer
from simulator.service.design import Design
from simulator.service.operations import FINAL, REFUND, DurableRecord, Operation, Row
from simulator.service.outbox import Outbox, Publish
from simulator.service.webhooks import Report
from simulator.world.agent import ToolRequest, converse
from simulator.world.approver import Consent, DecisionRequest, Word, consider
from simulator.world.backends import Backends
from simulator.world.broker import Broker
from simulator.world.clock import BudgetUsed, Clock, Life, Task, microseconds
from simulator.world.database import Change, Store, VirtualDatabase, VirtualTransaction
from simulator.world.faults import RESTART_AFTER, Fault
from simulator.world.journal import Journal
from simulator.world.luck import Luck
from simulator.world.mistakes import SERVICE_ERRORS, Mistake, explained
from simulator.world.network import Exchange
from simulator.world.outside import happen
from simulator.world.provider import Effect, Provider
from simulator.world.reports import ReportRequest, deliver
from simulator.world.runtime import VirtualRuntime
from simulator.world.scenario import Scenario, Submission
from simulator.world.wakeup import Wakeup

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["CAP", "Step", "Striker", "Told", "World"]

CAP = 7 * 24 * 3600 * 1_000_000
"""Microseconds after which a history that has not come to rest never will."""

AGENT_LEG = 20_000
"""Microseconds for a message between agent, backends, broker and customer, one way."""

SERVICES: dict[str, type] = {
    "provider.refund": payment.RefundOrder,
    "provider.quote": payment.RefundOrder,
    "provider.find": payment.FindRefund,
    "customer.notify": worker.Message,
    "broker.publish": Operation,
    "approval.decide": DecisionRequest,
    "webhook.report": ReportRequest,
}

RECORD = DurableRecord()


class Step(NamedTuple):
    """A step that a process took: a place where a fault can strike.

    Attributes:
        nth: which time this process took it, from 1.
        call: a call, or a transaction.
        time: microseconds.
    """

    process: str
    what: str
    nth: int
    call: bool
    time: int

    @property
    def name(self) -> str:
        return f"{self.process}:{self.what}"


class Told(NamedTuple):
    """A statement to the customer. `time` in microseconds.

    Attributes:
        about: the kind of operation that it speaks of: "refund", the name of another tool, or
            "access" (a 403).
    """

    time: int
    intent: str
    kind: str
    text: str
    about: str = REFUND


class Striker(Protocol):
    """Decides what goes wrong at a step."""

    def strike(
        self, process: str, what: str, nth: int, nth_of_any: int, call: bool
    ) -> Fault | None: ...


class World(Journal):
    """Everything that one history needs, and all that is known of it afterwards.

    Args:
        design: the refund service under trial.
        scenario: what is asked for.
        striker: what goes wrong.
        seed: of all luck in this world.
        store: a database that nobody else uses meanwhile.
        heal: whether the dead restart, the paused resume, and what is down comes up.
        quiet: write no trace; everything else is the same.
    """

    def __init__(
        self,
        design: Design,
        scenario: Scenario,
        striker: Striker,
        seed: int,
        store: Store,
        heal: bool = True,
        quiet: bool = False,
    ) -> None:
        super().__init__(quiet)
        self.design = design
        self.scenario = scenario
        self.striker = striker
        self.seed = seed
        self.heal = heal
        self.clock = Clock(CAP)
        self.taken: list[tuple[str, str, int, bool, int]] = []
        self.struck: list[tuple[int, Fault]] = []
        self.told: list[Told] = []
        self.intent_ids = frozenset(intent.id for intent in scenario.intents)
        self.submitted: dict[str, int] = {}
        self.capped = False
        self.lives: dict[str, Life] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._counts_of_any: dict[str, int] = {}
        self._messages = 0
        self._ids = 0
        self.consents: list[Consent] = []
        self.decisions: list[Word] = []
        self._open_questions: dict[str, str | None] = {}
        self._reports = 0
        self._unsettled: list[tuple[Operation, Any]] = []
        self._shown: dict[tuple[str, str], int] = {}
        self._begun = False
        self._luck: dict[str, Luck] = {}
        self._first: list[Task] = []
        self._turns = [self.clock.event() for _ in scenario.submissions]
        self.store = store.clean(scenario.orders)
        self.database = VirtualDatabase(self.clock, store, self._committed)
        self.wakeup: Wakeup | None = None
        if isinstance(design.dispatch, Outbox):
            self.wakeup = Wakeup(self.clock, self.database, design.takes_over)
        self.broker = Broker(self.clock)
        self.provider = Provider(self)
        self.backends = Backends(self)
        self._set_up()

    def run(self) -> World:
        """Runs the history to quiescence, or to its cap."""
        try:
            self._begun = True
            for task in self._first:
                task.start()
            self.clock.run()
        except BudgetUsed:
            self.capped = True
        finally:
            for life in self.lives.values():
                self.store.graveyard += [task.generator for task in life.kill()]
        return self

    def dissolve(self) -> None:
        """Lets go of everything, for whoever makes many worlds: their parts know the world
        that they are in, and such circles wait for the garbage collector otherwise.
        """
        vars(self).clear()

    # What was, before anything happened.

    def _set_up(self) -> None:
        for number in range(self.scenario.backends):
            self._start(f"backend-{number + 1}", 1)
        if not self.design.dispatch.inline:
            for number in range(self.scenario.workers):
                self._start(f"worker-{number + 1}", 1)
        self._start("agent", 1)
        if self.design.approval.asks:
            self._start("approver", 1)
        if self.scenario.provider.webhooks is not None:
            self._start("provider", 1)
        if self.scenario.outside:
            self._start("back office", 1)

    def _start(self, process: str, number: int) -> None:
        life = Life(process, number)
        self.lives[process] = life
        if process.startswith("backend"):
            return
        runtime = VirtualRuntime(self, life)
        if process == "approver":
            for approval_id, word in self._open_questions.items():
                if word is None:
                    self.run_task(life, consider(runtime, self, approval_id), self._ended(process))
        elif process == "back office":
            for event in self.scenario.outside:
                self.run_task(life, happen(runtime, self, event), self._ended(process))
        elif process == "agent":
            for turn, submission in enumerate(self.scenario.submissions):
                before = self._turns[turn - 1] if submission.after_answer else None
                if not self._turns[turn].triggered:
                    task = converse(runtime, self, submission, before)
                    self.run_task(life, task, self._turn_ended(turn))
        elif process.startswith("worker"):
            if isinstance(self.design.dispatch, Outbox):
                self.run_task(life, worker.work(runtime, self.design), self._main_ended(process))
            elif isinstance(self.design.dispatch, Publish):
                self.run_task(life, worker.consume(runtime, self.design), self._main_ended(process))

    def run_task(
        self,
        life: Life,
        generator: Generator[Any, Any, Any],
        ended: Callable[[Any, BaseException | None], None],
    ) -> None:
        """Runs a generator as a task of a process; from the beginning, if that is yet to come."""
        task = Task(self.clock, life, generator, ended)
        if self._begun:
            task.start()
        else:
            self._first.append(task)

    def _turn_ended(self, turn: int) -> Callable[[Any, BaseException | None], None]:
        def ended(_: Any, error: BaseException | None) -> None:
            if error is not None:
                raise error
            self._turns[turn].succeed()

        return ended

    def _ended(self, process: str) -> Callable[[Any, BaseException | None], None]:
        def ended(_: Any, error: BaseException | None) -> None:
            if error is not None:
                raise explained(process, error)

        return ended

    def _main_ended(self, process: str) -> Callable[[Any, BaseException | None], None]:
        """A worker that fails with an error of the database or the network is restarted."""

        def ended(_: Any, error: BaseException | None) -> None:
            if error is None:
                return
            if not isinstance(error, SERVICE_ERRORS):
                raise explained(process, error)
            self.note(process, "error", type(error).__name__, text=str(error))
            self.kill(self.lives[process], restart=True)

        return ended

    def luck_of(self, process: str) -> Luck:
        """The source of randomness of a process, through all its lives."""
        if process not in self._luck:
            self._luck[process] = Luck(self.seed, "random", process)
        return self._luck[process]

    @property
    def steps(self) -> list[Step]:
        """Every step that was taken, in order."""
        return [Step._make(taken) for taken in self.taken]

    # What processes do.

    def strike(self, life: Life, what: str, call: bool) -> Fault | None:
        """Counts a step, and says what goes wrong at it."""
        process = life.process
        self._counts[process, what] = nth = self._counts.get((process, what), 0) + 1
        self._counts_of_any[what] = nth_of_any = self._counts_of_any.get(what, 0) + 1
        self.taken.append((process, what, nth, call, int(self.clock.now)))
        fault = self.striker.strike(process, what, nth, nth_of_any, call)
        if fault is not None and process == "provider" and fault.kind in ("crash", "pause"):
            fault = None  # the provider has a crash of its own, `crash_provider`
        if fault is not None:
            self.struck.append((len(self.taken) - 1, fault))
            self.note(process, "fault", what, text=str(fault))
        return fault

    def break_down(self, fault: Fault) -> None:
        """Outages begin where their step begins."""
        if fault.kind == "provider_down":
            self.provider.go_down(fault.seconds)
        elif fault.kind == "database_down" and self.database.up:
            self.note("database", "down", "outage")
            self.database.go_down()
            if self.heal:
                self.clock.after(microseconds(fault.seconds), self._database_up)

    def _database_up(self, _: Any) -> None:
        self.database.up = True
        self.note("database", "up", "")
        if self.wakeup is not None:
            self.wakeup.changed()

    def kill(self, life: Life, restart: bool | None = None) -> None:
        """SIGKILL. It is restarted after a while, with nothing of what it knew.

        `restart` is by default whether faults heal; a process that gave up is always
        started anew by whoever watches it.
        """
        if not life.alive:
            return
        self.note(life.process, "crash", life.owner)
        self.store.graveyard += [task.generator for task in life.kill()]
        self.backends.dropped(life)
        if self.heal if restart is None else restart:
            self.clock.after(microseconds(RESTART_AFTER), lambda _: self._restart(life))

    def _restart(self, life: Life) -> None:
        self.note(life.process, "restart", f"{life.process}#{life.number + 1}")
        self._start(life.process, life.number + 1)

    def pause(self, life: Life, seconds: float) -> None:
        """Stops a process, with all it knows."""
        life.paused = True
        self.note(life.process, "pause", life.owner, text=f"{seconds:g} s")
        if self.heal:
            self.clock.after(microseconds(seconds), lambda _: self._resume(life))

    def _resume(self, life: Life) -> None:
        if life.alive:
            self.note(life.process, "resume", life.owner)
            life.resume()

    # Messages.

    def exchange(
        self, client: Life, name: str, request: Any, reply: Any, fault: Fault | None
    ) -> Exchange:
        """A request that is about to be sent."""
        kind = ToolRequest if name.startswith("tool.") else SERVICES.get(name)
        if kind is None:
            raise Mistake(
                f"rt.call({name!r}): nobody answers such calls. There are {', '.join(SERVICES)}, "
                "and the agent's tool.issue_refund."
            )
        if not isinstance(request, kind):
            raise Mistake(f"rt.call({name!r}, {request!r}): it takes a {kind.__name__}.")
        intent = getattr(request, "intent_id", None)
        if intent is not None and intent not in self.intent_ids:
            raise Mistake(
                f"rt.call({name!r}): there is no intent {intent!r}. The session's intent_id "
                f"names the one that was asked for, here {', '.join(sorted(self.intent_ids))}."
            )
        service = name.partition(".")[0]
        server = str(getattr(request, "instance", service))
        leg = self.provider.leg if service == "provider" else AGENT_LEG
        return Exchange(self, client, server, name, request, reply, leg, fault)

    def serve(self, exchange: Exchange) -> None:
        """A request has arrived where it was sent."""
        service = exchange.name.partition(".")[0]
        if service == "provider":
            self.provider.receive(exchange)
        elif service == "customer":
            message = exchange.request
            self.tell(message.intent_id, message.answer, message.about)
            exchange.respond("read")
        elif service == "broker":
            self.broker.publish(exchange.request)
            exchange.respond("taken")
        else:
            self.backends.serve(exchange)

    def other_instance(self, instance: str) -> str:
        """The next backend after this one."""
        number = int(instance.rsplit("-", 1)[1])
        return f"backend-{number % self.scenario.backends + 1}"

    def tell(self, intent_id: str, answer: Answer, about: str = REFUND) -> None:
        """The customer's app shows a statement, unless it has shown a newer one of the same."""
        now = int(self.clock.now)
        if answer.version is not None:
            if answer.version < self._shown.get((intent_id, about), 0):
                self.note("customer", "note", answer.kind, text="older than what was shown")
                return
            self._shown[intent_id, about] = answer.version
        self.told.append(Told(now, intent_id, answer.kind, answer.text, about))
        self.note("customer", "told", answer.kind, intent_id, text=answer.text)

    # Rows.

    def row(self, operation: Operation) -> Row | None:
        """The operation as it stands."""
        tx = VirtualTransaction(self.database.connection, 0, {}, Luck(self.seed))
        return RECORD.row(tx, operation)

    def settlement(self, operation: Operation) -> Any:
        """An event for when the operation is final; None if it is."""
        if self.database.up and self.database.holder is None:
            row = self.row(operation)
            if row is not None and row.final:
                return None
        event = self.clock.event()
        self._unsettled.append((operation, event))
        return event

    def _committed(self, changes: list[Change]) -> None:
        if len(self.database.questions) > len(self._open_questions):
            self._ask_approver()
        if self.wakeup is not None:
            self.wakeup.changed()
        if self._unsettled and any(after in FINAL for _, _, after in changes):
            waiting, self._unsettled = self._unsettled, []
            for operation, event in waiting:
                if event.triggered:
                    continue
                row = self.row(operation)
                if row is not None and row.final:
                    event.succeed()
                else:
                    self._unsettled.append((operation, event))

    # People, and the provider's own reports.

    def _ask_approver(self) -> None:
        life = self.lives["approver"]
        for approval_id in self.database.questions[len(self._open_questions) :]:
            self._open_questions[approval_id] = None
            if life.alive:
                runtime = VirtualRuntime(self, life)
                self.run_task(life, consider(runtime, self, approval_id), self._ended("approver"))

    def answered(self, approval_id: str, word: str) -> None:
        """The approver has an answer to a decision: nobody has to ask again."""
        if self._open_questions[approval_id] is None:
            self._open_questions[approval_id] = word

    def in_one_instant(self, who: str, transaction: Callable[..., Any], *arguments: Any) -> Any:
        """Runs a transaction of somebody who is not under trial; None if the database is not
        there, or the transaction changed nothing.
        """
        database = self.database
        if not database.up or database.holder is not None:
            return None
        result = database.run(transaction, arguments, {}, self.luck_of(who))
        if result is not None:
            self.note(who, "commit", transaction.__name__, "database")
            self.note_changes(who)
        return result

    def report(self, kind: str, effect: Effect) -> None:
        """The provider reports what it did, in as many copies as it is set to send."""
        settings = self.scenario.provider.webhooks
        if settings is None:
            return
        self._reports += 1
        wrong = settings.misreports if effect.intent else None
        report = Report(
            f"event-{self._reports}",
            kind,
            effect.intent,
            effect.reference,
            effect.tenant_id,
            effect.order_id,
            effect.amount if wrong is None else wrong,
            effect.currency,
        )
        name = kind if kind in ("created", "failed") else "succeeded"
        life = self.lives["provider"]
        runtime = VirtualRuntime(self, life)
        for seconds in getattr(settings, name):
            self.run_task(
                life, deliver(runtime, settings, report, seconds), self._ended("provider")
            )

    # What is counted.

    def wish(self, submission: Submission) -> str:
        """The customer asks, now. Returns the words."""
        self.submitted.setdefault(submission.intent_id, int(self.clock.now))
        return self.words(self.scenario.intent(submission.intent_id), submission)

    def new_id(self) -> str:
        """A UUID that is new in this world. Ids count up: no draw is spent on them."""
        self._ids += 1
        return f"00000000-0000-4000-8000-{self._ids:012x}"

    def message(self) -> int:
        """The number of the next message."""
        self._messages += 1
        return self._messages
