"""The pipeline on plain ground: every transaction and every call is counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from simulator.service.answers import Answer
from simulator.service.approval import Approval, ModelFlag
from simulator.service.audit import AuditAfterwards, AuditInTransaction
from simulator.service.authorization import FromArguments
from simulator.service.balance import NoBalance
from simulator.service.design import Design
from simulator.service.designs import NAIVE, SAFE
from simulator.service.errors import (
    CallTimeout,
    CommitUnknown,
    ConnectionLost,
    DatabaseUnavailable,
    Declined,
)
from simulator.service.keys import NoKey, RowId
from simulator.service.operations import DurableRecord, NoRecord, Row
from simulator.service.outbox import Inline, Outbox, Publish
from simulator.service.pipeline import carry_on, handle
from simulator.service.recovery import NoRecovery
from simulator.service.schemas import FreeDict, Session, ToolCall
from simulator.service.silence import forgotten

Call = Callable[..., ToolCall]
OTHER = "11111111-2222-4333-8444-555555555555"
TABLES = ("tool_operations", "refunds", "outbox", "tasks", "audit_log")


def nothing_written(desk: Any, *but: str) -> bool:
    return all(
        not desk.rows(f"SELECT * FROM {table}") for table in TABLES if table not in but
    ) and desk.balance() == (0, 0)


# Steps 1 to 6: before anything is paid.


def test_look_up_balance_and_promise_are_one_transaction(
    runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    assert run(handle(runtime, SAFE, make_call(), session)).kind == "verifying"
    assert runtime.transactions == ["begin"]
    assert runtime.desk.status() == "pending"
    assert runtime.desk.balance() == (0, 500_00)
    assert runtime.desk.rows("SELECT topic FROM outbox") == [("refund",)]


def test_if_the_promise_cannot_be_written_nothing_is(
    runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    runtime.desk.execute("DROP TABLE outbox")
    with pytest.raises(Exception, match="no such table: outbox"):
        run(handle(runtime, SAFE, make_call(), session))
    runtime.desk.execute("CREATE TABLE outbox (x)")
    assert nothing_written(runtime.desk)


def test_the_backend_of_the_safe_design_never_calls_the_provider(
    runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    run(handle(runtime, SAFE, make_call(), session))
    assert runtime.calls == []


def test_the_same_call_again_is_known_and_changes_nothing(
    runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    run(handle(runtime, SAFE, make_call(), session))
    seen = [runtime.desk.rows(f"SELECT * FROM {table}") for table in TABLES]
    again = run(handle(runtime, SAFE, make_call(call_id="call-2", amount="500"), session))
    assert again.kind == "verifying"
    assert [runtime.desk.rows(f"SELECT * FROM {table}") for table in TABLES] == seen
    assert runtime.desk.balance() == (0, 500_00)


def test_a_finished_full_refund_asked_for_again_gets_its_recorded_answer(
    runtime: Any, run: Any, make_call: Call, session: Session, inline: Design
) -> None:
    # Trap 14: the lesson checks the balance before it looks for the duplicate.
    assert run(handle(runtime, inline, make_call(), session)).kind == "done"
    assert runtime.desk.balance() == (500_00, 0)
    assert run(handle(runtime, inline, make_call(call_id="call-2"), session)).kind == "done"
    assert len(runtime.calls) == 1


def test_another_payload_under_the_key_is_refused_with_409_and_logged(
    runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    run(handle(runtime, SAFE, make_call(), session))
    answer = run(handle(runtime, SAFE, make_call(amount="499.99"), session))
    assert answer.kind == "conflict"
    assert "409" in answer.text
    assert runtime.desk.rows("SELECT event FROM audit_log") == [("->pending",), ("conflict",)]
    assert runtime.desk.balance() == (0, 500_00)


def test_more_than_the_balance_is_refused_for_good_and_nothing_is_sent(
    runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    answer = run(handle(runtime, SAFE, make_call(amount="500.01"), session))
    assert answer.kind == "refused"
    assert "refundable balance" in answer.text
    assert runtime.desk.status() == "failed"
    assert runtime.desk.balance() == (0, 0)
    assert runtime.desk.rows("SELECT topic FROM outbox") == [("tell",)]


@pytest.mark.parametrize("permissions", [frozenset(), frozenset({"refund:read"})])
def test_without_the_permission_nothing_but_the_log_is_written(
    permissions: frozenset[str], runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    answer = run(handle(runtime, SAFE, make_call(), replace(session, permissions=permissions)))
    assert (answer.kind, "403" in answer.text) == ("refused", True)
    assert runtime.desk.rows("SELECT event FROM audit_log") == [("denied",)]
    assert nothing_written(runtime.desk, "audit_log")


@pytest.mark.parametrize("who", [{"tenant_id": OTHER}, {"user_id": OTHER}])
def test_somebody_elses_order_is_denied_and_nothing_but_the_log_is_written(
    who: dict[str, str], runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    answer = run(handle(runtime, SAFE, make_call(), replace(session, **who)))
    assert (answer.kind, "403" in answer.text) == ("refused", True)
    assert nothing_written(runtime.desk, "audit_log")


def test_a_tenant_in_the_arguments_is_refused(
    runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    answer = run(handle(runtime, SAFE, make_call(tenant_id=OTHER), session))
    assert (answer.kind, "tenant_id" in answer.text) == ("invalid", True)
    assert nothing_written(runtime.desk, "audit_log")


@pytest.mark.parametrize("amount", ["0", "-1", "NaN", "Infinity", "1.001", "much"])
def test_an_impossible_amount_is_refused_and_logged(
    amount: str, runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    answer = run(handle(runtime, SAFE, make_call(amount=amount), session))
    assert (answer.kind, "Argument amount" in answer.text) == ("invalid", True)
    assert runtime.desk.rows("SELECT event, operation_id FROM audit_log") == [("invalid", None)]
    assert nothing_written(runtime.desk, "audit_log")


def test_an_amount_that_the_orders_currency_cannot_express_is_refused(
    desk: Any, runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    # The schema allows two decimals; only the order says that it was paid in yen.
    desk.execute("UPDATE orders SET currency = 'JPY', captured = 500")
    answer = run(handle(runtime, SAFE, make_call(amount="499.50"), session))
    assert answer.kind == "invalid"


@pytest.mark.parametrize(
    ("currency", "amount"), [("USD", "500.000"), ("JPY", "500.5"), ("JPY", "500.000")]
)
def test_decimals_that_the_orders_currency_does_not_have_reserve_nothing(
    currency: str, amount: str, runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    runtime.desk.execute(f"UPDATE orders SET currency = '{currency}'")
    answer = run(handle(runtime, SAFE, make_call(amount=amount), session))
    assert (answer.kind, runtime.desk.balance()) == ("invalid", (0, 0))
    assert runtime.desk.rows("SELECT * FROM tool_operations") == []


def test_a_dinar_has_a_thousand_fils_from_the_call_to_the_provider(
    runtime: Any, run: Any, make_call: Call, session: Session, inline: Design
) -> None:
    runtime.desk.execute("UPDATE orders SET currency = 'KWD', captured = 5000")
    assert run(handle(runtime, inline, make_call(amount="1.234"), session)).kind == "done"
    ((_, order),) = runtime.calls
    assert (order.amount, order.currency) == (1234, "KWD")
    assert runtime.desk.balance() == (1234, 0)


@pytest.mark.parametrize("amount", ["500", "500.0", "500.00"])
def test_the_amount_is_counted_in_the_orders_currency(
    amount: str, runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    runtime.desk.execute("UPDATE orders SET currency = 'JPY', captured = 500")
    run(handle(runtime, SAFE, make_call(amount=amount), session))
    assert runtime.desk.one("SELECT amount, currency FROM refunds") == (500, "JPY")


# Inline: steps 7 and 8 while the caller waits.


@pytest.mark.parametrize(
    ("answer", "kind", "status", "balance"),
    [
        ("REF-1", "done", "succeeded", (500_00, 0)),
        (Declined("the card was closed."), "refused", "failed", (0, 0)),
        (CallTimeout("2 s"), "verifying", "outcome_unknown", (0, 500_00)),
        (ConnectionLost("reset"), "verifying", "outcome_unknown", (0, 500_00)),
    ],
)
def test_the_books_and_the_answer_follow_the_provider(
    answer: Any,
    kind: str,
    status: str,
    balance: tuple[int, int],
    runtime: Any,
    run: Any,
    make_call: Call,
    session: Session,
    inline: Design,
) -> None:
    runtime.answers.append(answer)
    assert run(handle(runtime, inline, make_call(), session)).kind == kind
    assert runtime.desk.status() == status
    assert runtime.desk.balance() == balance
    assert runtime.transactions == ["begin", "finish"]


def test_every_change_of_state_is_logged_in_its_own_transaction(
    runtime: Any, run: Any, make_call: Call, session: Session, inline: Design
) -> None:
    run(handle(runtime, inline, make_call(), session))
    assert runtime.desk.rows("SELECT event FROM audit_log ORDER BY id") == [
        ("->pending",),
        ("pending->processing",),
        ("processing->succeeded",),
    ]


def test_an_answer_policy_that_returns_no_answer_is_named(
    runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    with pytest.raises(Exception, match=r"policy `answer`"):
        run(handle(runtime, SAFE.but(answer=lambda begun, row: "done"), make_call(), session))


# The database.


def test_a_commit_that_nobody_acknowledged_is_run_again_and_changes_things_once(
    runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    runtime.acks.append(CommitUnknown("broken"))
    assert run(handle(runtime, SAFE, make_call(), session)).kind == "verifying"
    assert runtime.transactions == ["begin", "begin"]
    assert len(runtime.desk.rows("SELECT * FROM tool_operations")) == 1
    assert runtime.desk.balance() == (0, 500_00)
    assert runtime.desk.rows("SELECT event FROM audit_log") == [("->pending",)]


def test_an_unacknowledged_finish_books_once(
    runtime: Any, run: Any, make_call: Call, session: Session, inline: Design
) -> None:
    runtime.acks += [None, CommitUnknown("broken")]
    run(handle(runtime, inline, make_call(), session))
    assert runtime.transactions == ["begin", "finish", "finish"]
    assert runtime.desk.balance() == (500_00, 0)


def test_while_the_database_is_down_a_durable_design_waits_longer_and_longer(
    runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    runtime.refusals += [DatabaseUnavailable("down")] * 5
    run(handle(runtime, SAFE, make_call(), session))
    assert runtime.slept == [0.5, 1.0, 2.0, 4.0, 8.0]


def test_a_process_that_cannot_reach_the_database_gives_up_within_half_a_lease(
    runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    runtime.refusals += [DatabaseUnavailable("down")] * 9
    with pytest.raises(DatabaseUnavailable):
        run(handle(runtime, SAFE, make_call(), session))
    assert isinstance(SAFE.dispatch, Outbox)
    assert SAFE.dispatch.lease is not None
    assert sum(runtime.slept) <= SAFE.dispatch.lease / 2 + 1


def test_a_design_without_a_record_does_not_repeat_what_may_have_been_done(
    runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    runtime.acks += [None, CommitUnknown("broken")]
    with pytest.raises(CommitUnknown):
        run(handle(runtime, NAIVE, make_call(), session))
    assert runtime.transactions == ["begin", "finish"]


# Publishing.


def publishing(when: str) -> Design:
    return SAFE.but(
        dispatch=Publish(when),
        recovery=NoRecovery(),
        answer=lambda begun, row: Answer("verifying", "later"),
    )


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_message_is_published_on_the_side_of_the_commit_that_the_design_says(
    when: str, runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    order: list[str] = []
    call, transact = runtime.call, runtime.transact

    def noted_call(name: str, request: Any, timeout: float) -> Any:
        order.append(name)
        return call(name, request, timeout)

    def noted_transact(transaction: Any, *rest: Any) -> Any:
        order.append(transaction.__name__)
        return transact(transaction, *rest)

    runtime.call, runtime.transact = noted_call, noted_transact
    run(handle(runtime, publishing(when), make_call(), session))
    steps = ["broker.publish", "begin"]
    assert order == (steps if when == "before" else steps[::-1])


def test_a_known_refund_is_not_published_again(
    runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    for _ in range(2):
        run(handle(runtime, publishing("after"), make_call(), session))
    assert [name for name, _ in runtime.calls] == ["broker.publish"]


# The naive path is the same code.


def test_the_naive_design_writes_nothing_down_and_pays_every_call(
    runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    assert NAIVE.record == NoRecord()
    assert NAIVE.balance == NoBalance()
    for _ in range(2):
        assert run(handle(runtime, NAIVE, make_call(), session)).kind == "done"
    assert len(runtime.calls) == 2
    assert {order.key for _, order in runtime.calls} == {None}
    assert runtime.desk.rows("SELECT * FROM tool_operations") == []
    assert runtime.desk.balance() == (1000_00, 0)


@pytest.mark.parametrize("word", [None, "knwon", "Known", True])
def test_a_record_that_says_an_unknown_word_is_named(
    word: Any, runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    class Careless(DurableRecord):
        def begin(self, tx: Any, operation: Any) -> str:
            super().begin(tx, operation)
            return word

    with pytest.raises(Exception, match=r"`record`"):
        run(handle(runtime, SAFE.but(record=Careless()), make_call(), session))


@pytest.mark.parametrize("slot", ["schema", "identity", "permission", "ownership"])
def test_a_policy_of_the_first_steps_that_raises_is_named(
    slot: str, runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    def oops(*_: Any) -> Any:
        raise KeyError("oops")

    with pytest.raises(Exception, match=f"policy `{slot}`"):
        run(handle(runtime, SAFE.but(**{slot: oops}), make_call(), session))


@pytest.mark.parametrize(
    ("slot", "value"),
    [
        ("schema", {}),
        ("identity", None),
        ("identity", "tenant"),
        ("permission", "no"),
        ("permission", None),
        ("ownership", None),
        ("ownership", 1),
    ],
)
def test_a_policy_of_the_first_steps_that_returns_the_wrong_type_is_named(
    slot: str, value: Any, runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    with pytest.raises(Exception, match=f"policy `{slot}`"):
        run(handle(runtime, SAFE.but(**{slot: lambda *_: value}), make_call(), session))


# Consent. More in test_approval.py.


def test_a_request_is_checked_against_the_order_as_it_is_now(
    runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    runtime.desk.execute("UPDATE orders SET version = 4")
    run(handle(runtime, SAFE, make_call(), session))
    assert runtime.desk.one("SELECT order_version FROM refunds") == (4,)


@pytest.mark.parametrize("kind", ["a durable record", "no record"])
def test_a_flag_that_the_model_did_not_set_is_asked_for_and_nothing_is_taken(
    kind: str, runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    base = SAFE if kind == "a durable record" else NAIVE.but(audit=AuditInTransaction())
    answer = run(handle(runtime, base.but(approval=ModelFlag(above=499)), make_call(), session))
    assert (answer.kind, "set confirm to true" in answer.text) == ("refused", True)
    assert runtime.desk.balance() == (0, 0)
    assert runtime.calls == []
    events = [row[0] for row in runtime.desk.rows("SELECT event FROM audit_log ORDER BY id")]
    durable = base is SAFE
    assert events == (["->pending", "pending->failed"] if durable else ["refused"])
    assert runtime.desk.rows("SELECT topic FROM outbox") == ([("tell",)] if durable else [])


def test_no_consent_is_needed_twice_for_what_is_known(
    runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    flagged = SAFE.but(approval=ModelFlag(above=499))
    assert run(handle(runtime, flagged, make_call(confirm=True), session)).kind == "invalid"
    free = flagged.but(schema=FreeDict())
    assert run(handle(runtime, free, make_call(confirm=True), session)).kind == "verifying"
    assert run(handle(runtime, free, make_call(), session)).kind == "verifying"
    assert runtime.desk.status() == "pending"


# What the backend itself does.


@pytest.mark.parametrize("when", ["after", "before"])
def test_what_may_go_on_is_published_only_by_who_publishes_after(
    when: str, runtime: Any, run: Any, make_operation: Any
) -> None:
    assert run(carry_on(runtime, publishing(when), make_operation())) is None
    assert len(runtime.calls) == (when == "after")


def test_what_goes_on_through_the_outbox_is_the_workers(
    runtime: Any, run: Any, make_operation: Any
) -> None:
    assert run(carry_on(runtime, SAFE, make_operation())) is None
    assert (runtime.calls, runtime.transactions) == ([], [])


def test_what_goes_on_inline_is_over_then(
    runtime: Any, run: Any, make_operation: Any, inline: Design
) -> None:
    DurableRecord().begin(runtime.desk, make_operation())
    runtime.desk.execute("UPDATE tool_operations SET status = 'processing'")
    row = run(carry_on(runtime, inline, make_operation()))
    assert row == Row("succeeded", {"detail": "REF-1"})
    assert runtime.desk.status() == "succeeded"


# Looking up first.


def looking(inline: Design) -> Design:
    return inline.but(record=DurableRecord(claim="look up"))


def test_who_looks_up_first_does_it_in_a_transaction_of_its_own(
    runtime: Any, run: Any, make_call: Call, session: Session, inline: Design
) -> None:
    assert run(handle(runtime, looking(inline), make_call(), session)).kind == "done"
    assert runtime.transactions == ["look_up", "begin", "finish"]
    assert run(handle(runtime, looking(inline), make_call(), session)).kind == "done"
    assert runtime.transactions[3:] == ["look_up"]
    assert len(runtime.calls) == 1


def test_who_looks_up_first_compares_the_payload_too(
    runtime: Any, run: Any, make_call: Call, session: Session, inline: Design
) -> None:
    run(handle(runtime, looking(inline), make_call(amount="300.00"), session))
    other = make_call(amount="200.00")
    assert run(handle(runtime, looking(inline), other, session)).kind == "conflict"
    assert len(runtime.calls) == 1
    assert runtime.desk.rows("SELECT event FROM audit_log")[-1] == ("conflict",)
    careless = inline.but(record=DurableRecord(claim="look up", fingerprint=False))
    assert run(handle(runtime, careless, other, session)).kind == "done"
    assert len(runtime.calls) == 1


def test_two_who_looked_before_either_wrote_both_pay(
    runtime: Any, run: Any, make_call: Call, session: Session, inline: Design
) -> None:
    # Cases B47, B88: the second comes between the look of the first and its write.
    design, transact = looking(inline).but(balance=NoBalance()), runtime.transact
    met: list[Answer] = []

    def meets(transaction: Any, *arguments: Any) -> Any:
        result = yield from transact(transaction, *arguments)
        if transaction.__name__ == "look_up" and not met:
            runtime.transact = transact
            met.append(run(handle(runtime, design, make_call(call_id="call-2"), session)))
        return result

    runtime.transact = meets
    assert run(handle(runtime, design, make_call(), session)).kind == "done"
    assert [answer.kind for answer in met] == ["done"]
    assert len(runtime.calls) == 2
    assert len(runtime.desk.rows("SELECT * FROM tool_operations")) == 1


def test_who_looks_up_first_finds_nothing_of_an_amount_that_cannot_be(
    runtime: Any, run: Any, make_call: Call, session: Session, inline: Design
) -> None:
    runtime.desk.execute("UPDATE orders SET currency = 'JPY', captured = 500")
    answer = run(handle(runtime, looking(inline), make_call(amount="499.50"), session))
    assert answer.kind == "invalid"
    assert runtime.transactions == ["look_up", "begin"]


# The call inside the transaction.


def inside(inline: Design, **settings: Any) -> Design:
    return inline.but(dispatch=Inline(inside=True, **settings))


def test_the_call_inside_the_transaction_pays_and_books_in_one(
    runtime: Any, run: Any, make_call: Call, session: Session, inline: Design
) -> None:
    for _ in range(2):
        assert run(handle(runtime, inside(inline), make_call(), session)).kind == "done"
    assert runtime.transactions == ["open inside"] * 2
    assert len(runtime.calls) == 1
    assert runtime.desk.status() == "succeeded"
    assert runtime.desk.balance() == (500_00, 0)


def test_a_log_that_is_written_afterwards_is_written_after_the_call_inside_too(
    runtime: Any, run: Any, make_call: Call, session: Session, inline: Design
) -> None:
    design = inside(inline).but(audit=AuditAfterwards())
    runtime.acks.append(DatabaseUnavailable("conflict"))
    assert run(handle(runtime, design, make_call(), session)).kind == "done"
    assert runtime.transactions == ["open inside"] * 2 + ["write_audit"]
    events = [event for (event,) in runtime.desk.rows("SELECT event FROM audit_log")]
    assert events == ["->pending", "pending->processing", "processing->succeeded"]


@pytest.mark.parametrize("failures", [1, 2])
def test_a_transaction_that_is_run_again_pays_again(
    failures: int, runtime: Any, run: Any, make_call: Call, session: Session, inline: Design
) -> None:
    # Case B02: one row, three charges.
    design = inside(inline).but(key=NoKey())
    runtime.acks += [DatabaseUnavailable("conflict")] * failures
    assert run(handle(runtime, design, make_call(), session)).kind == "done"
    assert len(runtime.calls) == 1 + failures
    assert runtime.slept == [1.0] * failures
    assert len(runtime.desk.rows("SELECT * FROM tool_operations")) == 1
    assert runtime.desk.balance() == (500_00, 0)


@pytest.mark.parametrize("error", [DatabaseUnavailable("conflict"), CommitUnknown("broken")])
@pytest.mark.parametrize("reruns", [0, 2])
def test_a_framework_gives_up_after_its_reruns(
    reruns: int,
    error: Exception,
    runtime: Any,
    run: Any,
    make_call: Call,
    session: Session,
    inline: Design,
) -> None:
    runtime.acks += [error] * 9
    with pytest.raises(type(error)):
        run(handle(runtime, inside(inline, reruns=reruns), make_call(), session))
    assert 9 - len(runtime.acks) == 1 + reruns


def test_what_is_refused_inside_the_transaction_is_not_sent(
    runtime: Any, run: Any, make_call: Call, session: Session, inline: Design
) -> None:
    answer = run(handle(runtime, inside(inline), make_call(amount="500.01"), session))
    assert answer.kind == "refused"
    assert runtime.calls == []


def test_what_waits_for_a_person_is_not_sent_inside_the_transaction(
    runtime: Any, run: Any, make_call: Call, session: Session, inline: Design
) -> None:
    design = inside(inline).but(approval=Approval(above=499))
    run(handle(runtime, design, make_call(), session))
    assert runtime.calls == []


# Silence that tidies up.


def test_a_row_that_silence_removes_is_new_for_the_next_call(
    runtime: Any, run: Any, make_call: Call, session: Session, inline: Design
) -> None:
    # Case B05.
    design = inline.but(on_silence=forgotten, key=RowId())
    runtime.answers.append(CallTimeout("2 s"))
    run(handle(runtime, design, make_call(), session))
    assert runtime.desk.rows("SELECT * FROM tool_operations") == []
    assert runtime.desk.rows("SELECT * FROM refunds") == []
    assert runtime.desk.balance() == (0, 0)
    assert run(handle(runtime, design, make_call(call_id="call-2"), session)).kind == "done"
    assert len({order.key for _, order in runtime.calls}) == 2


# Identity.


def test_who_believes_the_arguments_refunds_another_tenants_order(
    runtime: Any, run: Any, make_call: Call, session: Session
) -> None:
    # Case B23.
    runtime.desk.order(tenant_id=OTHER, user_id=OTHER)
    design = SAFE.but(identity=FromArguments(), schema=FreeDict())
    call = make_call(tenant_id=OTHER, user_id=OTHER)
    assert run(handle(runtime, design, call, session)).kind == "verifying"
    assert runtime.desk.rows("SELECT tenant_id FROM tool_operations") == [(OTHER,)]
    reserved = runtime.desk.rows("SELECT tenant_id FROM orders WHERE pending > 0")
    assert reserved == [(OTHER,)]


def test_a_message_before_the_commit_guesses_the_currency_and_breaks_nothing_if_it_cannot(
    desk: Any, runtime: Any, run: Any, make_call: Call, session: Session, inline: Design
) -> None:
    desk.execute("UPDATE orders SET currency = 'KWD'")
    hasty = inline.but(dispatch=Publish("before"))
    run(handle(runtime, hasty, make_call(amount="1.500"), session))
    assert runtime.calls == [], "1.500 is no amount of dollars"
    assert desk.rows("SELECT amount, currency FROM refunds") == [(1500, "KWD")]
