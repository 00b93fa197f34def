"""One database for many histories: what a history leaves, and who waits for whom."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.service.answers import Answer
from simulator.service.design import Design
from simulator.service.designs import LADDER, NAIVE, PROVIDER_KEY, SAFE
from simulator.service.errors import CommitUnknown, ConnectionLost, DatabaseUnavailable
from simulator.service.keys import NoKey, OperationKey
from simulator.service.outbox import Inline
from simulator.world import faults
from simulator.world.clock import Clock, Life
from simulator.world.database import EPOCH, Store, VirtualDatabase, read, written
from simulator.world.luck import Luck
from simulator.world.mistakes import Mistake
from simulator.world.scenario import AgentSettings, Order, Scenario, Submission

Run = Callable[..., Any]
TABLES = (
    "tool_operations",
    "refunds",
    "outbox",
    "tasks",
    "approvals",
    "webhook_events",
    "audit_log",
)
PARTIAL = Scenario.two_partial_refunds()


def contents(store: Store) -> dict[str, list[Any]]:
    return {
        table: store.connection.execute(f"SELECT * FROM {table}").fetchall()
        for table in (*TABLES, "orders")
    }


# Times.


@given(st.integers(0, 10**14), st.integers(0, 10**14))
def test_times_sort_as_text_as_they_do_as_numbers(one: int, other: int) -> None:
    assert (written(one) < written(other)) == (one < other)


@given(st.integers(0, 10**14))
def test_a_time_is_read_back_as_it_was_written(microseconds: int) -> None:
    assert read(written(microseconds)) == microseconds


def test_every_history_begins_at_the_same_hour() -> None:
    assert written(0) == EPOCH.isoformat(timespec="microseconds")
    assert len({len(written(n)) for n in (0, 1, 10**6, 10**12)}) == 1


# One history after the other.


@pytest.mark.parametrize("design", LADDER, ids=lambda design: design.name)
def test_a_history_leaves_nothing_behind(design: Design, world: Run, store: Store) -> None:
    store.clean(Scenario().orders)
    fresh = contents(store)
    world(design, scenario=Scenario())
    store.clean(Scenario().orders)
    assert contents(store) == fresh


@pytest.mark.parametrize(
    "fault",
    [
        faults.crash("begin"),
        faults.crash("worker-1:provider.refund", when="after_send"),
        faults.pause("finish", when="before", seconds=50),
        faults.lose_commit_ack("claim"),
        faults.database_down("finish", seconds=50),
    ],
    ids=str,
)
@pytest.mark.parametrize("heal", [True, False])
def test_a_history_on_a_used_database_is_the_same_as_on_a_new_one(
    heal: bool, fault: Any, world: Run, store: Store
) -> None:
    world(SAFE, fault, scenario=PARTIAL, heal=heal)
    again = world(SAFE, faults.lose_response("provider.refund"))
    fresh = world(SAFE, faults.lose_response("provider.refund"), on=Store())
    assert again.trace == fresh.trace
    assert again.database.changes == fresh.database.changes


def test_a_history_with_other_orders_finds_only_its_own(world: Run, store: Store) -> None:
    other = Scenario(orders=(Order(captured=900_00), Order("ORD-2")))
    for scenario in (Scenario(), other, Scenario(), PARTIAL):
        made = world(NAIVE, scenario=scenario)
        ids = [row[0] for row in made.database.rows("SELECT id FROM orders ORDER BY id")]
        assert ids == [order.id for order in scenario.orders]
    captured = "SELECT captured FROM orders WHERE id = 'ORD-1001'"
    assert world(NAIVE, scenario=other).database.rows(captured) == [(900_00,)]


def holding(rt: Any, design: Design, call: Any, session: Any) -> Any:
    """Opens a transaction, writes, and waits for ever."""
    tx = yield from rt.open("holding")
    tx.execute("UPDATE orders SET pending = 77")
    yield from rt.sleep(1e5)
    return Answer("verifying", "later")


def test_what_a_history_left_open_is_gone_in_the_next(world: Run, pipe: Any, store: Store) -> None:
    # The history ends while the transaction is open: its holder sleeps for ever after a pause.
    hold = pipe(holding)
    world(hold, faults.crash("tool.issue_refund"), heal=False)
    made = world(SAFE)
    assert made.database.rows("SELECT pending, refunded FROM orders") == [(0, 500_00)]


def test_a_history_that_a_mistake_has_ended_leaves_nothing_behind(
    world: Run, pipe: Any, store: Store
) -> None:
    def forgets(tx: Any) -> None:
        tx.execute("UPDATE orders SET pending = 77")

    def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
        yield from rt.transact(forgets)
        tx = yield from rt.open("holding")
        tx.execute("UPDATE orders SET refunded = 88")
        raise LookupError("mine")

    with pytest.raises(Mistake, match="LookupError: mine"):
        world(pipe(handle))
    made = world(NAIVE, faults.lose_request("tool.issue_refund"), heal=False)
    assert made.database.rows("SELECT pending, refunded FROM orders") == [(0, 500_00)]


@pytest.mark.parametrize("statement", ["COMMIT", "ROLLBACK", "END", "RELEASE history"])
def test_a_transaction_that_ends_itself_does_no_harm_to_later_histories(
    statement: str, world: Run, pipe: Any, later: Answer
) -> None:
    # The listing of the lesson's section 7 ends with COMMIT; a student types it in.
    def ends_itself(tx: Any) -> None:
        tx.execute("UPDATE orders SET pending = 77")
        tx.execute(statement)

    def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
        yield from rt.transact(ends_itself)
        return later

    with pytest.raises(Mistake, match=statement.split()[0]):
        world(pipe(handle))
    assert world(SAFE).database.rows("SELECT pending FROM orders") == [(0,)]


# Transactions of an instant.


@pytest.fixture
def database(store: Store) -> VirtualDatabase:
    store.clean(Scenario().orders)
    return VirtualDatabase(Clock(), store, lambda changes: None)


def run(database: VirtualDatabase, transaction: Callable[[Any], Any]) -> Any:
    return database.run(transaction, (), {}, Luck(0))


def set_pending(amount: int) -> Callable[[Any], None]:
    def transaction(tx: Any) -> None:
        tx.execute("UPDATE orders SET pending = :amount", {"amount": amount})

    return transaction


def pending(database: VirtualDatabase) -> int:
    return int(database.rows("SELECT pending FROM orders")[0][0])


@pytest.mark.parametrize("error", [KeyError("oops"), KeyboardInterrupt()])
def test_a_transaction_that_raises_is_rolled_back_whole(
    error: BaseException, database: VirtualDatabase
) -> None:
    def fails(tx: Any) -> None:
        set_pending(5)(tx)
        raise error

    with pytest.raises(type(error)):
        run(database, fails)
    assert pending(database) == 0
    run(database, set_pending(7))
    assert pending(database) == 7


def test_a_broken_constraint_rolls_the_whole_transaction_back(database: VirtualDatabase) -> None:
    def collides(tx: Any) -> None:
        set_pending(5)(tx)
        tx.execute("INSERT INTO orders SELECT * FROM orders")

    with pytest.raises(sqlite3.IntegrityError):
        run(database, collides)
    assert pending(database) == 0


def test_a_transaction_cannot_be_used_when_it_is_over(database: VirtualDatabase) -> None:
    kept: list[Any] = []
    run(database, kept.append)
    with pytest.raises(RuntimeError, match="This transaction is over"):
        set_pending(5)(kept[0])
    with pytest.raises(RuntimeError, match="This transaction is over"):
        kept[0].execute("SELECT 1")


def test_a_transaction_returns_what_its_function_returns(database: VirtualDatabase) -> None:
    assert run(database, lambda tx: ("two", "things")) == ("two", "things")


def test_only_committed_changes_of_state_are_seen(database: VirtualDatabase) -> None:
    insert = (
        "INSERT INTO tool_operations "
        "(id, tenant_id, idempotency_key, action_type, request_hash, status) "
        "VALUES (:id, 't', :id, 'refund', 'h', 'pending')"
    )

    def inserts(tx: Any) -> None:
        tx.execute(insert, {"id": "1"})
        tx.execute("UPDATE tool_operations SET status = 'processing'")
        tx.execute("UPDATE tool_operations SET status = 'processing'")

    def fails(tx: Any) -> None:
        tx.execute(insert, {"id": "2"})
        raise KeyError

    with pytest.raises(KeyError):
        run(database, fails)
    run(database, inserts)
    assert database.changes == [("1", None, "pending"), ("1", "pending", "processing")]


# Transactions that stay open.


def test_an_open_transaction_is_rolled_back_when_its_holder_dies(
    database: VirtualDatabase,
) -> None:
    life = Life("backend-1", 1)
    tx = database.open(life, Luck(0))
    set_pending(5)(tx)
    life.kill()
    assert pending(database) == 0
    assert database.holder is None
    with pytest.raises(RuntimeError, match="is over"):
        tx.execute("SELECT 1")


def test_who_dies_after_its_commit_rolls_nothing_back_and_frees_nobody_elses_lock(
    database: VirtualDatabase,
) -> None:
    one, other = Life("backend-1", 1), Life("backend-2", 1)
    tx = database.open(one, Luck(0))
    set_pending(5)(tx)
    database.close(tx, commit=True)
    database.open(other, Luck(0))
    one.kill()
    assert pending(database) == 5
    assert database.holder is other


def opens(log: list[Any], wait: float, crash: bool = False) -> Callable[..., Any]:
    """A pipeline that holds a transaction open for some seconds."""

    def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
        name = rt.owner.split("#")[0] + "/" + call.call_id[-1]
        tx = yield from rt.open("payment")
        log.append((round(rt.now(), 3), name, "in"))
        tx.execute("UPDATE orders SET pending = pending + 1")
        yield from rt.sleep(wait)
        if crash and name.startswith("backend-1"):
            yield from rt.call("customer.notify", None, timeout=1.0)
        yield from rt.commit(tx)
        log.append((round(rt.now(), 3), name, "out"))
        return Answer("verifying", "later")

    return handle


QUEUE = Scenario(
    submissions=tuple(
        Submission("intent-1", at, instance, thought)
        for thought, (at, instance) in enumerate(
            [(0.0, "backend-1"), (0.3, "backend-2"), (0.2, "backend-2"), (0.1, "backend-2")], 1
        )
    ),
    agent=AgentSettings(resubmits=0),
)


def test_whoever_waits_for_an_open_transaction_is_let_in_first_come_first_served(
    world: Run, pipe: Any
) -> None:
    log: list[Any] = []
    made = world(pipe(opens(log, wait=1.0)), scenario=QUEUE)
    names = [name for _, name, what in log if what == "in"]
    assert names == ["backend-1/1", "backend-2/4", "backend-2/3", "backend-2/2"]
    assert [what for _, _, what in log] == ["in", "out"] * 4
    assert made.database.rows("SELECT pending FROM orders") == [(4,)]


def test_a_lock_held_at_the_kill_is_released_to_the_first_who_waits(world: Run, pipe: Any) -> None:
    log: list[Any] = []
    died = faults.crash("backend-1:customer.notify", when="before_send")
    made = world(pipe(opens(log, wait=1.0, crash=True)), died, scenario=QUEUE)
    entered = [(at, name) for at, name, what in log if what == "in"]
    assert entered[:2] == [(0.022, "backend-1/1"), (1.022, "backend-2/4")]
    assert made.database.rows("SELECT pending FROM orders") == [(3,)]  # the first was rolled back


def test_a_waiter_that_is_paused_or_dead_holds_up_nobody_behind_it(world: Run, pipe: Any) -> None:
    log: list[Any] = []

    def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
        if call.call_id.endswith("4"):
            yield from rt.transact(waits_then_stops)
        return (yield from opens(log, wait=1.0)(rt, design, call, session))

    def waits_then_stops(tx: Any) -> None:
        pass

    scenario = QUEUE.but(
        backends=3,
        submissions=(
            Submission("intent-1", 0.0, "backend-1", 1),
            Submission("intent-1", 0.1, "backend-3", 4),
            Submission("intent-1", 0.2, "backend-2", 2),
        ),
    )
    for fault in (
        faults.pause("waits_then_stops", when="before", seconds=20),
        faults.crash("waits_then_stops", when="before"),
    ):
        log.clear()
        world(pipe(handle), fault, scenario=scenario)
        entered = [name for _, name, what in log if what == "in"]
        assert entered[:2] == ["backend-1/1", "backend-2/2"]


def test_everybody_elses_transactions_wait_for_an_open_one(world: Run, pipe: Any) -> None:
    log: list[Any] = []

    def short(tx: Any) -> None:
        log.append("short")

    def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
        if call.call_id.endswith("1"):
            return (yield from opens(log, wait=5.0)(rt, design, call, session))
        yield from rt.transact(short)
        log.append(round(rt.now(), 3))
        return Answer("verifying", "later")

    scenario = QUEUE.but(submissions=QUEUE.submissions[:2])
    world(pipe(handle), scenario=scenario)
    assert log[0] == (0.022, "backend-1/1", "in")
    assert "short" in log[1:]
    assert log.index("short") > 0
    assert 5.0 < next(entry for entry in log if isinstance(entry, float)) < 5.1


def test_a_database_that_goes_down_sends_away_those_who_wait_for_their_turn(
    world: Run, pipe: Any
) -> None:
    heard: list[Any] = []

    def short(tx: Any) -> None:
        heard.append("short")

    def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
        if call.call_id.endswith("1"):
            return (yield from opens([], wait=5.0)(rt, design, call, session))
        try:
            yield from rt.transact(short)
        except Exception as error:
            heard.append((type(error).__name__, round(rt.now(), 1)))
        return Answer("verifying", "later")

    scenario = QUEUE.but(
        submissions=(*QUEUE.submissions[:2], Submission("intent-1", 1.0, "backend-2", 9))
    )
    world(pipe(handle), faults.database_down("short", nth=2, seconds=1.0), scenario=scenario)
    assert heard == [("DatabaseUnavailable", 1.0)] * 2


@pytest.mark.parametrize("how", ["returns", "raises"])
def test_a_transaction_that_its_handler_forgot_is_rolled_back_when_the_handler_ends(
    how: str, world: Run, pipe: Any, later: Answer
) -> None:
    # As a connection pool does with a connection that comes back with an open transaction.
    entered: list[float] = []

    def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
        tx = yield from rt.open("payment")
        entered.append(rt.now())
        tx.execute("UPDATE orders SET pending = pending + 1")
        if how == "raises":
            raise ConnectionLost("in the middle of it")
        return later

    scenario = QUEUE.but(submissions=QUEUE.submissions[:2], agent=AgentSettings(resubmits=0))
    made = world(pipe(handle), scenario=scenario)
    assert len(entered) == 2
    assert made.database.rows("SELECT pending FROM orders") == [(0,)]


def test_a_database_that_went_down_commits_no_open_transaction(world: Run, pipe: Any) -> None:
    log: list[Any] = []

    def short(tx: Any) -> None:
        pass

    def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
        if call.call_id.endswith("1"):
            return (yield from opens(log, wait=5.0)(rt, design, call, session))
        yield from rt.transact(short)
        return Answer("verifying", "later")

    scenario = QUEUE.but(submissions=QUEUE.submissions[:2])
    made = world(pipe(handle), faults.database_down("short", seconds=60.0), scenario=scenario)
    assert made.database.rows("SELECT pending FROM orders") == [(0,)]


# The commit of an open transaction is a step of its own.


def once(log: list[Any]) -> Callable[..., Any]:
    """A pipeline that writes in an open transaction, and notes how its commit ended."""

    def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
        tx = yield from rt.open("payment")
        tx.execute("UPDATE orders SET pending = pending + 1")
        try:
            yield from rt.commit(tx)
            log.append((round(rt.now(), 3), "committed"))
        except (DatabaseUnavailable, CommitUnknown) as error:
            log.append((round(rt.now(), 3), type(error).__name__))
        return Answer("verifying", "later")

    return handle


ONE = Scenario.one_refund().but(agent=AgentSettings(resubmits=0))


@pytest.mark.parametrize(
    ("fault", "rows", "ended"),
    [
        (None, 1, [(0.024, "committed")]),
        (faults.crash("commit", when="before"), 0, []),
        (faults.crash("commit", when="after"), 1, []),
        (faults.pause("commit", when="before", seconds=10.0), 1, [(10.024, "committed")]),
        (faults.pause("commit", when="after", seconds=10.0), 1, [(10.024, "committed")]),
        (faults.lose_commit_ack("commit", when="before"), 0, [(5.024, "CommitUnknown")]),
        (faults.lose_commit_ack("commit", when="after"), 1, [(5.024, "CommitUnknown")]),
        (faults.database_down("commit", seconds=10.0), 0, [(0.024, "DatabaseUnavailable")]),
    ],
    ids=lambda value: str(value) if isinstance(value, faults.Fault) else None,
)
def test_whatever_befalls_a_commit_everything_is_written_or_nothing(
    fault: Any, rows: int, ended: list[Any], world: Run, pipe: Any
) -> None:
    log: list[Any] = []
    made = world(pipe(once(log)), *[fault] * (fault is not None), scenario=ONE)
    assert len(made.struck) == (fault is not None)
    assert made.database.rows("SELECT pending FROM orders") == [(rows,)]
    assert log == ended
    assert made.database.holder is None
    (step,) = [each for each in made.steps if each.what == "commit"]
    assert (step.process, step.call) == ("backend-1", False)


@pytest.mark.parametrize(
    ("fault", "next_in"),
    [
        (faults.pause("backend-1:commit", when="before", seconds=10.0), 11.024),
        (faults.crash("backend-1:commit", when="before"), 1.022),
        (faults.lose_commit_ack("backend-1:commit", when="before"), 1.024),
        (faults.lose_commit_ack("backend-1:commit", when="after"), 1.024),
    ],
    ids=str,
)
def test_a_lock_is_held_until_its_commit_is_over_in_the_database(
    fault: Any, next_in: float, world: Run, pipe: Any
) -> None:
    log: list[Any] = []

    def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
        try:
            return (yield from opens(log, wait=1.0)(rt, design, call, session))
        except CommitUnknown:
            return Answer("verifying", "later")

    world(pipe(handle), fault, scenario=QUEUE)
    entered = [(at, name) for at, name, what in log if what == "in"]
    assert entered[1] == (pytest.approx(next_in), "backend-2/4")


# A call inside the transaction (case B02).


@pytest.mark.parametrize(("when", "charges"), [("before", 2), ("after", 1)])
def test_a_transaction_that_is_run_again_has_one_row_and_may_have_two_charges(
    when: str, charges: int, world: Run
) -> None:
    design = PROVIDER_KEY.but(name="inside", key=NoKey(), dispatch=Inline(inside=True))
    made = world(design, faults.lose_commit_ack("commit", when=when))
    rows = made.database.rows("SELECT status FROM tool_operations")
    assert rows == [("succeeded",)]
    # Rolled back, it is charged again. Committed, the second run finds its row.
    assert len(made.provider.ledger) == charges


def test_a_database_that_fails_at_every_commit_charges_at_every_run(world: Run) -> None:
    design = PROVIDER_KEY.but(name="inside", key=NoKey(), dispatch=Inline(inside=True, reruns=2))
    lost = [faults.lose_commit_ack("commit", nth=nth, when="before") for nth in (1, 2, 3)]
    made = world(design, *lost, scenario=ONE)
    assert made.database.rows("SELECT COUNT(*) FROM tool_operations") == [(0,)]
    assert len(made.provider.ledger) == 3
    keyed = design.but(key=OperationKey())
    assert len(world(keyed, *lost, scenario=ONE).provider.ledger) == 1
