"""The fourteen traps in the lesson's own listings: each is sprung, and beside it the service.

Every test has two halves. The first runs a listing as it was printed, on an input that anybody
could meet, and says what comes out. The second puts the same question to the service.
"""

from __future__ import annotations

import inspect
import random
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from simulator import Scenario, designs, explore, replay
from simulator.lessons.published import (
    CANCEL_ORDER,
    AuthContext,
    MockIdempotentStore,
    RefundRequest,
    authorize_refund,
    calculate_retry_delay,
    issue_refund,
    validate_refund_invariants,
)
from simulator.live.clock import Clock
from simulator.live.sqlite_file import SqliteFile
from simulator.service.balance import Reserved
from simulator.service.keys import fingerprint, operation_key
from simulator.service.operations import DurableRecord, Operation, Row, move
from simulator.service.retry import FullJitter
from simulator.service.schemas import InvalidRequest, Session, ToolCall, minor_units, parse_refund
from simulator.service.tool_schema import RefundArguments
from simulator.world.settings import OTHER_TENANT, OTHER_USER, TENANT, USER, Intent, Order

FULL = Decimal("500.00")


@pytest.fixture
def books(tmp_path: Path) -> Iterator[SqliteFile]:
    """The service's tables in a file, with three orders of $500 in three states."""
    database = SqliteFile(f"sqlite:///{tmp_path / 'shop.db'}", Clock.start())
    database.create()
    for order_id, status in (
        ("ORD-1001", "confirmed"),
        ("ORD-1002", "cancelled"),
        ("ORD-1003", "shipped"),
    ):
        database.run(
            lambda tx, *values: tx.execute(
                "INSERT INTO orders (tenant_id, id, user_id, status, currency, captured, refunded, "
                "pending) VALUES (:tenant, :id, :user, :status, 'USD', 50000, 0, 0)",
                dict(zip(("tenant", "user", "id", "status"), values, strict=True)),
            ),
            (TENANT, USER, order_id, status),
        )
    yield database
    database.close()


def an_operation(
    number: int = 1,
    tenant_id: str = TENANT,
    order_id: str = "ORD-1001",
    amount: int = 500_00,
    key: str = "refund-A",
) -> Operation:
    """What a backend makes of a tool call; every call has a number of its own."""
    return Operation(
        id=f"aaaaaaaa-0000-4000-8000-{number:012d}",
        tenant_id=tenant_id,
        user_id=USER,
        intent_id=f"intent-{number}",
        call_id=f"call-{number}",
        order_id=order_id,
        amount=amount,
        currency="USD",
        model_key="",
        key=key,
        fingerprint=fingerprint(tenant_id, "refund", order_id, amount, "USD"),
    )


def cancel(books: SqliteFile, block: str, order_id: str) -> None:
    """Runs the block of section 7. SQLite locks the whole file, and knows no FOR UPDATE."""
    values = {
        "tenant_id": TENANT,
        "order_id": order_id,
        "idempotency_key": f"cancel-{order_id}",
        "id": "aaaaaaaa-0000-4000-8000-000000000001",
        "request_hash": "hash",
    }

    def statements(tx: Any) -> None:
        for statement in block.replace("FOR UPDATE", "").split(";"):
            if statement.strip() not in ("BEGIN", "COMMIT", ""):
                tx.execute(statement, values)

    books.run(statements)


def at_the_same_time(*calls: Callable[[], Any]) -> list[Any]:
    """What each call returned, each from a thread of its own."""
    with ThreadPoolExecutor(len(calls)) as pool:
        running = [pool.submit(call) for call in calls]
        return [future.result(timeout=30) for future in running]


def test_trap_1_the_jitter_is_not_full_is_gone_at_the_cap_and_the_exponent_overflows() -> None:
    random.seed(1)
    assert min(calculate_retry_delay(3) for _ in range(1_000)) >= 8.0, "nobody comes earlier"
    assert {calculate_retry_delay(5) for _ in range(1_000)} == {30.0}, "all come at once"
    with pytest.raises(OverflowError):
        calculate_retry_delay(1_024)

    policy, luck = FullJitter(base=1.0, cap=30.0, max_attempts=None), random.Random(1)
    assert isinstance(designs.SAFE.retry.policy.policy, FullJitter), "within budget and deadline"
    assert min(policy.delay(3, luck) or 0.0 for _ in range(1_000)) < 0.1
    at_the_cap = {policy.delay(5, luck) for _ in range(1_000)}
    assert len(at_the_cap) == 1_000
    assert 0 <= (policy.delay(1_024, luck) or 0.0) <= 30


def test_trap_2_the_insert_of_section_7_fails_on_the_table_of_section_6(books: SqliteFile) -> None:
    with pytest.raises(sqlite3.IntegrityError, match=r"NOT NULL .*tool_operations\.id"):
        cancel(books, CANCEL_ORDER, "ORD-1001")
    with_an_id = CANCEL_ORDER.replace("(tenant_id", "(id, tenant_id").replace(
        "(:tenant_id", "(:id, :tenant_id"
    )
    with pytest.raises(sqlite3.IntegrityError, match=r"NOT NULL .*tool_operations\.request_hash"):
        cancel(books, with_an_id, "ORD-1001")
    # What it promises holds: all or nothing.
    assert books.rows("SELECT status FROM orders WHERE id = 'ORD-1001'") == [("confirmed",)]

    assert books.run(DurableRecord().begin, (an_operation(),)) == "new"
    assert books.rows("SELECT status FROM tool_operations") == [("pending",)]


MENDED = CANCEL_ORDER.replace("(tenant_id", "(id, request_hash, tenant_id").replace(
    "(:tenant_id", "(:id, :request_hash, :tenant_id"
)
"""Section 7 without trap 2."""


@pytest.mark.parametrize(
    ("order_id", "status"), [("ORD-1002", "cancelled"), ("ORD-1003", "shipped")]
)
def test_trap_3_a_cancellation_that_changed_nothing_is_recorded_as_succeeded(
    order_id: str, status: str, books: SqliteFile
) -> None:
    cancel(books, MENDED, order_id)
    assert books.rows("SELECT action_type, status FROM tool_operations") == [
        ("cancel_order", "succeeded")
    ]
    assert books.rows(f"SELECT status FROM orders WHERE id = '{order_id}'") == [(status,)]

    refund = an_operation(number=2)
    books.run(DurableRecord().begin, (refund,))
    books.run(move, (refund.id, "pending", "failed"))
    assert books.run(move, (refund.id, "processing", "succeeded")) is False, "0 rows: it says so"
    assert books.run(DurableRecord().row, (refund,)) == Row("failed")
    too_much = Scenario.one_refund().but(intents=(Intent("intent-1", amount=800_00, owed=False),))
    run = replay(designs.SAFE, too_much)
    assert (list(run.books.status), set(run.told.statement)) == (["failed"], {"refused"})


def test_trap_4_another_instance_or_another_life_of_the_process_remembers_nothing() -> None:
    first, second = MockIdempotentStore(), MockIdempotentStore()
    answers = [store.get_or_create("shop", "refund-A", FULL)[0] for store in (first, second)]
    assert answers == [False, False], "new, and new again"

    elsewhere = Scenario.resubmitted_elsewhere()
    assert "double_refund" in replay(designs.MEMORY_RECORD, elsewhere).verdict
    run = replay(designs.SAFE, elsewhere)
    assert (run.verdict, list(run.ledger.amount)) == (frozenset(), [FULL])


def test_trap_5_another_order_under_the_same_key_gets_the_first_orders_answer(
    books: SqliteFile,
) -> None:
    store = MockIdempotentStore()
    # The store is not told which order; the caller has no way to say so.
    assert list(inspect.signature(store.get_or_create).parameters) == [
        "tenant_id",
        "idempotency_key",
        "amount",
    ]
    _, for_1001 = store.get_or_create("shop", "refund-A", FULL)
    known, for_1003 = store.get_or_create("shop", "refund-A", FULL)
    assert known
    assert for_1003 is for_1001, "ORD-1003 is told that it was refunded"

    record = DurableRecord()
    assert books.run(record.begin, (an_operation(1, order_id="ORD-1001"),)) == "new"
    assert books.run(record.begin, (an_operation(2, order_id="ORD-1003"),)) == "conflict"
    assert books.run(record.begin, (an_operation(3, order_id="ORD-1001"),)) == "known"


def test_trap_6_it_says_succeeded_before_any_provider_was_called(books: SqliteFile) -> None:
    _, answer = MockIdempotentStore().get_or_create("shop", "refund-A", FULL)
    assert answer["status"] == "succeeded"

    books.run(DurableRecord().begin, (an_operation(),))
    assert books.run(DurableRecord().row, (an_operation(),)) == Row("pending")
    run = replay(designs.SAFE, Scenario.declined())
    assert set(run.told.statement) == {"refused"}, "the provider said no, and so do we"
    assert run.verdict == frozenset()


def test_trap_7_two_tenants_whose_names_and_keys_run_together_share_an_answer(
    books: SqliteFile,
) -> None:
    one, other = ("shop:refund", "refund-1"), ("shop", "refund:refund-1")
    store = MockIdempotentStore()
    _, first = store.get_or_create(*one, FULL)
    assert store.get_or_create(*other, FULL) == (True, first)

    assert operation_key(one[0], "refund", one[1]) != operation_key(other[0], "refund", other[1])
    for number, (tenant_id, key) in enumerate((one, other)):
        operation = an_operation(number, tenant_id=tenant_id, key=key)
        assert books.run(DurableRecord().begin, (operation,)) == "new", "two columns, not one text"


def test_trap_8_keys_that_begin_alike_share_a_reference() -> None:
    store = MockIdempotentStore()
    references = {
        store.get_or_create("shop", f"refund-ORD-{number}", FULL)[1]["refund_reference"]
        for number in range(1001, 1101)
    }
    assert references == {"REF-refund-O"}, "a hundred refunds, one reference"

    keys = {operation_key(TENANT, "refund", f"refund-ORD-{number}") for number in range(1001, 1101)}
    assert len({key[:8] for key in keys}) == 100
    run = replay(designs.SAFE, Scenario.two_equal_refunds())
    paid = run.audit[run.audit.event.str.endswith("succeeded")]
    assert len(set(paid.detail)) == len(set(run.ledger.key)) == 2


class Meeting(dict[str, Any]):
    """A dict in which two look-ups always end before either of them goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.barrier = Barrier(2, timeout=30)

    def __contains__(self, key: object) -> bool:
        found = super().__contains__(key)
        self.barrier.wait()
        return found


def test_trap_9_two_threads_both_find_nothing_and_both_are_new(books: SqliteFile) -> None:
    store = MockIdempotentStore()
    store._operations = Meeting()

    def click() -> bool:
        return store.get_or_create("shop", "refund-A", FULL)[0]

    assert at_the_same_time(click, click) == [False, False], "both will pay"

    barrier, record = Barrier(2, timeout=30), DurableRecord()

    def begin(number: int) -> Any:
        assert books.run(record.row, (an_operation(number),)) is None
        barrier.wait()  # as above: both have looked, and neither has written
        return books.run(record.begin, (an_operation(number),))

    answers = at_the_same_time(lambda: begin(1), lambda: begin(2))
    assert sorted(answers) == ["known", "new"], "whatever they saw, UNIQUE decides"
    assert replay(designs.SAFE, Scenario.double_click()).verdict == frozenset()


def test_trap_10_a_float_is_no_money_and_two_decimals_are_not_every_currencys() -> None:
    assert inspect.signature(issue_refund).parameters["amount"].annotation == "float"
    assert int(4.35 * 100) == 434, "a cent is gone"
    with pytest.raises(ValueError, match=r"exceeds refundable balance 0\.0999"):
        validate_refund_invariants(0.1, 0.3, 0.2)  # type: ignore[arg-type]
    half_a_yen = {"order_id": "ORD-1001", "amount": "500.50", "refund_request_id": "refund-A"}
    assert RefundRequest.model_validate(half_a_yen).amount == Decimal("500.50")
    with pytest.raises(ValueError, match="no more than 2 decimal places"):
        RefundRequest.model_validate(half_a_yen | {"amount": "1.234"})  # dinars have three

    assert minor_units(Decimal("4.35"), "USD") == 435
    assert minor_units(Decimal("1.234"), "KWD") == 1_234
    with pytest.raises(InvalidRequest, match=r"500\.50 JPY is not a whole number"):
        minor_units(Decimal("500.50"), "JPY")
    for currency, amount in (("JPY", Decimal(500)), ("KWD", Decimal("1.234"))):
        units = minor_units(amount, currency)
        run = replay(
            designs.SAFE,
            Scenario.one_refund().but(
                orders=(Order(captured=units, currency=currency),),
                intents=(Intent("intent-1", amount=units, currency=currency),),
            ),
        )
        # The schema of the service is the published one, so it refuses the third decimal.
        assert set(run.ledger.amount) <= {amount}, "this, or nothing"


def test_trap_11_the_model_writes_the_key_and_writes_another_at_the_next_thought() -> None:
    schema = RefundRequest.model_json_schema()
    assert "refund_request_id" in schema["required"], "what the model is told to fill in"
    store = MockIdempotentStore()
    thoughts = [store.get_or_create("shop", key, FULL)[0] for key in ("refund-A", "refund-B")]
    assert thoughts == [False, False], "one wish, two refunds"

    assert "refund_request_id" not in RefundArguments.model_json_schema()["properties"]
    session = Session(USER, TENANT, frozenset({"refund:create"}), "intent-1")
    for key in ("refund-A", "refund-B"):
        arguments = {"order_id": "ORD-1001", "amount": "500.00", "refund_request_id": key}
        request = parse_refund(ToolCall("call-1", "issue_refund", arguments), session)
        assert request.refund_request_id == "intent-1", "the session's, whatever the model wrote"
    assert "double_refund" in replay(designs.MODEL_KEY, Scenario.new_thought()).verdict
    assert replay(designs.SAFE, Scenario.new_thought()).verdict == frozenset()


@pytest.mark.parametrize(
    "stranger",
    [
        pytest.param({"tenant_id": OTHER_TENANT, "user_id": OTHER_USER}, id="another tenant"),
        pytest.param({"user_id": OTHER_USER}, id="another customer of the same shop"),
    ],
)
def test_trap_12_a_stranger_with_the_permission_may_refund_anybodys_order(
    stranger: dict[str, str],
) -> None:
    # It is told who is asking, and not for which order: it cannot refuse.
    assert list(inspect.signature(authorize_refund).parameters) == ["context"]
    authorize_refund(
        AuthContext(
            user_id=stranger["user_id"],
            tenant_id=stranger.get("tenant_id", TENANT),
            permissions=frozenset({"refund:create"}),
        )
    )

    asks = Scenario.one_refund().but(intents=(Intent("intent-1", owed=False, **stranger),))
    run = replay(designs.SAFE, asks)
    assert (len(run.ledger), set(run.told.statement)) == (0, {"refused"})
    assert run.verdict == frozenset()


def test_trap_12_without_the_question_whose_order_it_is_the_refund_is_paid() -> None:
    asks = Scenario.one_refund().but(
        intents=(Intent("intent-1", owed=False, user_id=OTHER_USER),),
    )
    nobody_asks = designs.SAFE.but(ownership=lambda order, operation: True)
    assert "unauthorized_refund" in replay(nobody_asks, asks).verdict


def test_trap_13_two_refunds_checked_against_one_snapshot_exceed_the_balance(
    books: SqliteFile,
) -> None:
    paid, refunded = Decimal(500), Decimal(0)
    wishes = [Decimal(300), Decimal(300)]
    for wish in wishes:  # both look before either is booked
        validate_refund_invariants(wish, paid, refunded)
    assert sum(wishes) > paid
    # It has no word for what is pending or disputed: with 300 on the way, all 500 are free.
    assert list(inspect.signature(validate_refund_invariants).parameters) == [
        "requested",
        "paid",
        "already_refunded",
    ]

    take = Reserved().take
    answers = [books.run(take, (an_operation(n, amount=300_00),)) for n in (1, 2)]
    assert answers == [True, False]
    in_dispute = "UPDATE orders SET pending = 0, disputed = 30000 WHERE id = 'ORD-1001'"
    books.run(lambda tx: tx.execute(in_dispute))
    assert books.run(take, (an_operation(3, amount=300_00),)) is False
    partial = Scenario.two_partial_refunds()
    unreserved = explore(designs.ablations()["reservation"], partial, max_faults=1)
    assert unreserved.counterexample is not None
    assert "over_refund" in unreserved.counterexample.verdict
    assert replay(designs.SAFE, partial, unreserved.counterexample.faults).verdict == frozenset()


def test_trap_14_a_finished_full_refund_that_is_repeated_is_refused_for_lack_of_balance() -> None:
    store = MockIdempotentStore()

    def as_section_15_draws_it(already_refunded: Decimal) -> tuple[bool, dict[str, Any]]:
        validate_refund_invariants(FULL, FULL, already_refunded)  # step 5
        return store.get_or_create("shop", "refund-A", FULL)  # step 6

    _, answer = as_section_15_draws_it(already_refunded=Decimal(0))
    with pytest.raises(ValueError, match=r"500\.00 exceeds refundable balance 0\.00"):
        as_section_15_draws_it(already_refunded=FULL)
    assert store.get_or_create("shop", "refund-A", FULL) == (True, answer), "it was there"

    run = replay(designs.SAFE, Scenario.resubmitted_elsewhere())
    assert set(run.told.statement) == {"done"}
    assert run.told.time.max() > 10, "the repetition has got its answer"
    assert (run.verdict, list(run.ledger.amount)) == (frozenset(), [FULL])
