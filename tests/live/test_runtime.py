"""The ground itself: the driver, transactions on both databases, and what their errors mean."""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

import simulator
from simulator.live.clock import Clock
from simulator.live.database import Database, DiskFull
from simulator.live.runtime import LiveRuntime, drive
from simulator.live.stops import Stops
from simulator.live.urls import open_database
from simulator.service.errors import CommitUnknown, DatabaseUnavailable
from simulator.service.operations import Operation

USER, TENANT = "c0ffee00-1234-4abc-8def-000000001001", "7a1c0f5e-3b52-4c0e-9f0a-1d2e3f4a5b6c"
FILL = "INSERT INTO orders VALUES (:tenant, :id, :user, 'confirmed', 'USD', 50000, 0, 0, 0, 1)"
SEE = "SELECT refunded FROM orders WHERE id = :id"


def fill(tx: Any, order: str) -> None:
    tx.execute(FILL, {"tenant": TENANT, "user": USER, "id": order})


def refunded(database: Database, order: str) -> list[tuple[Any, ...]]:
    return database.rows(SEE, {"id": order})


def test_the_driver_runs_a_generator_to_its_end() -> None:
    def steps() -> Generator[Any, Any, str]:
        yield from ()
        return "done"

    assert drive(steps()) == "done"


def test_the_driver_refuses_a_generator_that_waits_for_an_event() -> None:
    def steps() -> Generator[Any, Any, None]:
        yield "an event"

    with pytest.raises(RuntimeError, match="'an event'"):
        drive(steps())


def test_a_transaction_that_raises_leaves_nothing(database: Database) -> None:
    def breaks(tx: Any) -> None:
        fill(tx, "ORD-broken")
        raise KeyError("on the way")

    with pytest.raises(KeyError):
        database.run(breaks)
    assert refunded(database, "ORD-broken") == []


def test_two_who_read_and_then_write_lose_no_update(database: Database) -> None:
    database.run(fill, ("ORD-counted",))

    def read_then_write(tx: Any) -> None:
        (before,) = tx.execute(SEE, {"id": "ORD-counted"}).fetchone()
        tx.execute(
            "UPDATE orders SET refunded = :after WHERE id = 'ORD-counted'", {"after": before + 1}
        )

    def many() -> None:
        for _ in range(20):
            database.run(read_then_write)

    threads = [threading.Thread(target=many) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refunded(database, "ORD-counted") == [(60,)]


def test_a_transaction_refused_with_40001_is_run_again(postgresql: str) -> None:
    database = open_database(postgresql, Clock.start())
    database.create()
    database.run(fill, ("ORD-refused",))
    runs = []

    def read_then_write(tx: Any, later: list[str]) -> None:
        runs.append(1)
        later.append("counted")
        (before,) = tx.execute(SEE, {"id": "ORD-refused"}).fetchone()
        if len(runs) == 1:  # another one comes in between, and commits first
            database.run(
                lambda other: other.execute(
                    "UPDATE orders SET refunded = refunded + 1 WHERE id = 'ORD-refused'"
                )
            )
        tx.execute(
            "UPDATE orders SET refunded = :after WHERE id = 'ORD-refused'", {"after": before + 1}
        )

    later: list[str] = []
    database.run(read_then_write, (later,))
    assert (len(runs), database.retried) == (2, 1)
    assert later == ["counted"], "what the first run noted was rolled back with it"
    assert refunded(database, "ORD-refused") == [(2,)]
    database.close()


def end_own_connection(database: Database, tx: Any) -> None:
    (pid,) = tx.execute("SELECT pg_backend_pid()").fetchone()
    database.rows("SELECT pg_terminate_backend(:pid)", {"pid": pid})


def test_a_connection_that_breaks_before_commit_was_not_carried_out(postgresql: str) -> None:
    database = open_database(postgresql, Clock.start())
    database.create()

    def cut_off(tx: Any) -> None:
        fill(tx, "ORD-cut")
        end_own_connection(database, tx)
        tx.execute("SELECT 1")

    with pytest.raises(DatabaseUnavailable):
        database.run(cut_off)
    assert refunded(database, "ORD-cut") == []
    database.close()


def test_a_connection_that_breaks_at_commit_leaves_it_unknown(postgresql: str) -> None:
    database = open_database(postgresql, Clock.start())
    database.create()
    open_tx: list[Any] = []

    def keep(tx: Any) -> None:
        open_tx.append(tx)
        fill(tx, "ORD-unknown")

    with pytest.raises(CommitUnknown):
        database.run(keep, inside=lambda: end_own_connection(database, open_tx[0]))
    database.close()


def test_ids_are_text_and_times_compare_on_both_databases(database: Database) -> None:
    database.run(fill, ("ORD-types",))
    ((tenant,),) = database.rows("SELECT tenant_id FROM orders WHERE id = 'ORD-types'")
    assert tenant == TENANT
    database.run(
        lambda tx: tx.execute(
            "INSERT INTO outbox (operation_id, topic, available_at, created_at) "
            "VALUES (:id, 'refund', :now, :now)",
            {"id": USER, "now": tx.time()},
        )
    )
    ((created,),) = database.rows(
        "SELECT created_at FROM outbox WHERE operation_id = :id", {"id": USER}
    )
    earlier, later = database.run(lambda tx: (tx.time(-10), tx.time(10)))
    assert earlier < created < later
    database.run(lambda tx: tx.execute("DELETE FROM outbox WHERE operation_id = :id", {"id": USER}))


def test_a_faster_clock_makes_leases_shorter_and_keeps_their_names() -> None:
    clock = Clock.start(speed=100.0)
    assert clock.real(30.0) == pytest.approx(0.3)
    before, moment = clock.now(), clock.moment()
    clock.sleep(5.0)
    assert 5.0 <= clock.now() - before < 60.0
    assert (clock.moment() - moment).total_seconds() >= 5.0


def test_settled_gives_an_operation_as_it_stands_when_time_is_over(database: Database) -> None:
    clock = Clock.start(speed=100.0)
    runtime = LiveRuntime("backend-1#1", clock, database, {})
    nobody = Operation(
        USER, TENANT, USER, "intent-x", "call-x", "ORD-x", 1, "USD", "", "no such key", "f"
    )
    assert drive(runtime.settled(nobody, 5.0)) is None


# A transaction that stays open while time passes.


def runtime_on(database: Database, stops: Stops | None = None) -> LiveRuntime:
    return LiveRuntime("backend-1#1", Clock.start(speed=100.0), database, {}, stops=stops)


def test_what_an_open_transaction_wrote_is_seen_by_itself_and_by_others_after_its_commit(
    database: Database,
) -> None:
    runtime = runtime_on(database)
    tx = drive(runtime.open("inside"))
    fill(tx, "ORD-open")
    assert tx.execute(SEE, {"id": "ORD-open"}).fetchone() == (0,)
    assert refunded(database, "ORD-open") == []
    drive(runtime.commit(tx))
    assert refunded(database, "ORD-open") == [(0,)]


def test_an_open_transaction_has_what_every_transaction_has(database: Database) -> None:
    runtime = runtime_on(database)
    runtime.memory["kept"] = 1
    tx = drive(runtime.open("inside"))
    assert tx.memory is runtime.memory
    assert tx.random is runtime.random
    assert tx.time(-10) < tx.time() < tx.time(10)
    drive(runtime.commit(tx))


def test_an_error_inside_an_open_transaction_rolls_it_back(database: Database) -> None:
    runtime = runtime_on(database)
    tx = drive(runtime.open("inside"))
    fill(tx, "ORD-half")
    with pytest.raises(database.errors):
        fill(tx, "ORD-half")  # the same again
    for late in (lambda: fill(tx, "ORD-late"), lambda: drive(runtime.commit(tx))):
        with pytest.raises(DatabaseUnavailable, match="is over"):
            late()
    assert refunded(database, "ORD-half") == refunded(database, "ORD-late") == []
    database.run(fill, ("ORD-after",))  # and nobody waits for it
    assert refunded(database, "ORD-after") == [(0,)]


def test_connections_are_used_again_after_a_commit(database: Database) -> None:
    runtime = runtime_on(database)
    first = drive(runtime.open("inside"))
    connection = first.connection
    drive(runtime.commit(first))
    second = drive(runtime.open("inside"))
    assert second.connection is connection
    other = drive_in_thread(lambda: database.rows("SELECT 1"))  # not the one that is taken
    assert other == [(1,)]
    drive(runtime.commit(second))


def drive_in_thread(act: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(act()))
    thread.start()
    thread.join(timeout=10)
    assert found, "it waits for ever"
    return found[0]


def test_the_commit_is_a_place_to_be_stopped_at_before_and_after(database: Database) -> None:
    stops = Stops()
    places: list[Any] = []
    stops.at = lambda name, place: places.append(  # type: ignore[method-assign]
        (name, place, refunded(database, "ORD-stop"))
    )
    runtime = runtime_on(database, stops)
    tx = drive(runtime.open("inside"))
    fill(tx, "ORD-stop")
    drive(runtime.commit(tx))
    assert places == [("commit", "before", []), ("commit", "after", [(0,)])]


def test_whoever_writes_the_same_row_waits_for_an_open_transaction_or_is_refused(
    database: Database,
) -> None:
    database.run(fill, ("ORD-locked",))
    runtime = runtime_on(database)
    tx = drive(runtime.open("inside"))
    add = "UPDATE orders SET refunded = refunded + 1 WHERE id = 'ORD-locked'"
    tx.execute(add)
    done: list[int] = []
    other = threading.Thread(
        target=lambda: (database.run(lambda t: t.execute(add)), done.append(1))
    )
    other.start()
    other.join(timeout=0.2)
    assert not done
    drive(runtime.commit(tx))
    other.join(timeout=10)
    assert done
    assert refunded(database, "ORD-locked") == [(2,)]


def test_an_open_transaction_whose_read_is_outdated_was_not_carried_out(postgresql: str) -> None:
    database = open_database(postgresql, Clock.start())
    database.create()
    database.run(fill, ("ORD-outdated",))
    runtime = runtime_on(database)
    tx = drive(runtime.open("inside"))
    (before,) = tx.execute(SEE, {"id": "ORD-outdated"}).fetchone()
    database.run(lambda t: t.execute("UPDATE orders SET refunded = 7 WHERE id = 'ORD-outdated'"))
    set_to = "UPDATE orders SET refunded = :after WHERE id = 'ORD-outdated'"
    with pytest.raises(Exception, match="concurrent update") as refused:
        tx.execute(set_to, {"after": before + 1})
    assert isinstance(refused.value, DatabaseUnavailable)
    assert refunded(database, "ORD-outdated") == [(7,)]
    database.close()


def test_an_open_transaction_that_is_refused_at_its_commit_was_not_carried_out(
    postgresql: str,
) -> None:
    # Write skew: each reads what the other writes. The second to commit is refused.
    database = open_database(postgresql, Clock.start())
    database.create()
    for order in ("ORD-one", "ORD-two"):
        database.run(fill, (order,))
    runtime = runtime_on(database)
    one, two = drive(runtime.open("inside")), drive(runtime.open("inside"))
    for tx, reads, writes in ((one, "ORD-one", "ORD-two"), (two, "ORD-two", "ORD-one")):
        tx.execute(SEE, {"id": reads}).fetchone()
        tx.execute("UPDATE orders SET refunded = 1 WHERE id = :id", {"id": writes})
    drive(runtime.commit(one))
    with pytest.raises(DatabaseUnavailable, match="got in the way"):
        drive(runtime.commit(two))
    assert refunded(database, "ORD-one") == [(0,)]
    assert refunded(database, "ORD-two") == [(1,)]
    database.close()


def test_a_connection_that_breaks_at_an_open_commit_leaves_it_unknown(postgresql: str) -> None:
    database = open_database(postgresql, Clock.start())
    database.create()
    runtime = runtime_on(database)
    tx = drive(runtime.open("inside"))
    fill(tx, "ORD-broke")
    end_own_connection(database, tx)
    with pytest.raises(CommitUnknown):
        drive(runtime.commit(tx))
    assert refunded(database, "ORD-broke") == []
    database.run(fill, ("ORD-next",))  # on another connection
    database.close()


def imports_of(folder: str) -> set[str]:
    found: set[str] = set()
    for path in (Path(simulator.__file__).parent / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("simulator")}


def test_the_live_ground_knows_the_service_and_nothing_else_of_the_course() -> None:
    parts = {name.split(".")[1] for name in imports_of("live")}
    assert parts == {"live", "service"}


def test_the_service_does_not_know_on_which_ground_it_stands() -> None:
    assert {name.split(".")[1] for name in imports_of("service")} == {"service"}


def test_a_full_disk_is_definite_and_loses_nothing(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'refunds.db'}", Clock.start())
    database.create()
    reports: list[Any] = []
    stops = Stops()
    stops.report = lambda *message: reports.append(message)  # type: ignore[method-assign]
    runtime = LiveRuntime("backend-1#1", Clock.start(), database, {}, stops=stops)
    drive(runtime.transact(fill, "ORD-before"))
    limit(database)

    def too_much(tx: Any) -> None:
        for number in range(10_000):
            fill(tx, f"ORD-{number}")

    with pytest.raises(DiskFull):
        drive(runtime.transact(too_much))
    assert [kind for kind, *_ in reports] == ["full"]
    assert database.rows("SELECT id FROM orders") == [("ORD-before",)]
    database.close()


def limit(database: Database) -> None:
    """As if the disk had room for a few pages more. SQLite's own limit, and its own error."""
    connect: Callable[[], Any] = database.connect

    def limited() -> Any:
        connection = connect()
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        return connection

    database.close()
    database.connect = limited  # type: ignore[method-assign]
