"""What tools change in our own database: recorded, consented to, done once, and audited."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from simulator.service import actions
from simulator.service.answers import FromRecord, answer_about
from simulator.service.approval import Approval, NoApproval
from simulator.service.balance import DISPUTE, CheckThenAct
from simulator.service.cancellation import cancel_order
from simulator.service.designs import SAFE
from simulator.service.errors import CommitUnknown, DatabaseUnavailable
from simulator.service.operations import MemoryRecord, Row
from simulator.service.outbox import Inline, Outbox, look
from simulator.service.recovery import NoRecovery
from simulator.service.worker import act, claim

TENANT = "7a1c0f5e-3b52-4c0e-9f0a-1d2e3f4a5b6c"
OTHER_TENANT = "11111111-2222-4333-8444-555555555555"
OTHER_USER = "c0ffee00-1234-4abc-8def-000000001002"
BOTH = ("ORD-1001", "ORD-1002")
UNTOUCHED = {"ORD-1001": ("confirmed", 1), "ORD-1002": ("confirmed", 1)}
CANCELLED = {"ORD-1001": ("cancelled", 2), "ORD-1002": ("cancelled", 2)}
STOCK = {"LANTERN-1": 10, "BOOK-7": 0}
BACK = {"LANTERN-1": 13, "BOOK-7": 3}
DONE = "Done: the orders are cancelled, and their goods are back in stock."


def nothing_changed(tools: Any) -> bool:
    return tools.orders() == UNTOUCHED and tools.stock() == STOCK


# One order: at once.


def test_one_order_is_cancelled_at_once_and_the_answer_is_final(tools: Any) -> None:
    answer = tools.cancel("ORD-1001")
    assert (answer.kind, answer.text, answer.version) == ("done", DONE, 2)
    assert tools.orders() == UNTOUCHED | {"ORD-1001": ("cancelled", 2)}
    assert tools.stock() == {"LANTERN-1": 12, "BOOK-7": 0}
    assert tools.runtime.transactions == ["begin_action"]
    assert tools.runtime.calls == []
    assert tools.events() == ["->pending", "pending->processing", "processing->succeeded"]
    assert tools.desk.rows("SELECT topic FROM outbox") == [("tell",)]


def test_what_cannot_be_done_is_refused_for_good_with_its_reason(tools: Any) -> None:
    cancel_order(tools.desk, TENANT, "ORD-1001")
    before = (tools.orders(), tools.stock())
    answer = tools.cancel("ORD-1001")
    assert (answer.kind, answer.text) == ("refused", "It was refused: order ORD-1001 is cancelled.")
    assert tools.events()[-1] == "processing->failed"
    assert (tools.orders(), tools.stock()) == before
    # The record is final: the same intent is never looked at again.
    tools.desk.execute("UPDATE orders SET status = 'confirmed'")
    assert tools.cancel("ORD-1001") == answer
    assert tools.orders()["ORD-1001"][0] == "confirmed"


@pytest.mark.parametrize("stranger", ["ORD-1003", "ORD-2001", "ORD-9999"])
@pytest.mark.parametrize("place", [0, 1])
def test_one_order_of_a_stranger_and_nothing_is_cancelled_or_recorded(
    stranger: str, place: int, tools: Any
) -> None:
    before = tools.dump(but=["audit_log"])
    names = ["ORD-1001"]
    names.insert(place, stranger)
    answer = tools.cancel(*names)
    assert (answer.kind, "403" in answer.text) == ("refused", True)
    assert tools.dump(but=["audit_log"]) == before
    assert tools.events() == ["denied"]


# Found again by its key.


def test_the_same_intent_again_gets_the_recorded_answer_and_puts_nothing_back_again(
    tools: Any,
) -> None:
    first = tools.cancel("ORD-1001")
    before = tools.dump()
    for _ in range(3):
        assert tools.cancel("ORD-1001") == first
    assert tools.dump() == before


def test_the_same_call_again_while_a_person_is_asked_asks_nobody_twice(tools: Any) -> None:
    first = tools.cancel(*BOTH)
    before = tools.dump()
    assert tools.cancel(*BOTH) == first
    assert tools.dump() == before


def test_the_order_of_the_arguments_and_duplicates_make_no_other_request(tools: Any) -> None:
    first = tools.cancel(*BOTH)
    before = tools.dump()
    for names in itertools.permutations([*BOTH, "ORD-1001"]):
        assert tools.cancel(*names) == first
    assert tools.dump() == before


def test_one_order_named_twice_is_one_order(tools: Any) -> None:
    assert tools.cancel("ORD-1001", "ORD-1001").kind == "done"
    assert tools.stock() == {"LANTERN-1": 12, "BOOK-7": 0}


@pytest.mark.parametrize("names", [("ORD-1002",), BOTH])
def test_the_same_intent_with_other_orders_is_a_409_and_cancels_nothing_more(
    names: tuple[str, ...], tools: Any
) -> None:
    # So a bulk cancellation cannot be cut into pieces that need nobody's consent.
    tools.cancel("ORD-1001")
    before = tools.dump(but=["audit_log"])
    answer = tools.cancel(*names)
    assert (answer.kind, "409" in answer.text) == ("conflict", True)
    assert tools.dump(but=["audit_log"]) == before
    assert tools.events()[-1] == "conflict"


def test_two_intents_two_tools_and_two_tenants_are_apart(tools: Any) -> None:
    tools.desk.order(order_id="ORD-1001", tenant_id=OTHER_TENANT)
    assert tools.cancel("ORD-1001").kind == "done"
    elsewhere = replace(tools.session, tenant_id=OTHER_TENANT)
    assert tools.cancel("ORD-1001", session=elsewhere).kind == "done"
    assert tools.cancel("ORD-1002", session=replace(tools.session, intent_id="intent-2")).kind == (
        "done"
    )
    assert tools.call("delete_profile").kind == "verifying"
    refund = tools.call("issue_refund", order_id="ORD-1001", amount="5.00")
    assert refund.kind == "verifying"
    assert len(tools.desk.rows("SELECT * FROM tool_operations")) == 5


def test_a_commit_that_nobody_acknowledged_is_run_again_and_changes_things_once(
    tools: Any,
) -> None:
    tools.runtime.acks.append(CommitUnknown("broken"))
    assert tools.cancel("ORD-1001").kind == "done"
    assert tools.runtime.transactions == ["begin_action", "begin_action"]
    assert tools.stock() == {"LANTERN-1": 12, "BOOK-7": 0}
    assert tools.unaudited() == set()


@pytest.mark.parametrize("table", ["audit_log", "actions", "outbox", "stock"])
def test_if_one_row_cannot_be_written_none_is(table: str, tools: Any) -> None:
    others = [name for name in tools.TABLES if name != table]
    before = {name: tools.desk.rows(f"SELECT * FROM {name}") for name in others}
    tools.desk.execute(f"ALTER TABLE {table} RENAME TO elsewhere")
    with pytest.raises(Exception, match="no such table"):
        tools.cancel("ORD-1001")
    assert {name: tools.desk.rows(f"SELECT * FROM {name}") for name in others} == before


# Consent.


def test_two_orders_wait_for_a_person_and_nothing_is_changed_meanwhile(tools: Any) -> None:
    answer = tools.cancel(*BOTH)
    assert (answer.kind, answer.version) == ("verifying", 1)
    assert "approval" in answer.text
    assert tools.statuses() == ["awaiting_approval"]
    assert nothing_changed(tools)
    assert tools.work() == []
    assert nothing_changed(tools)


def test_after_a_yes_a_worker_cancels_both_and_the_customer_is_told(tools: Any) -> None:
    tools.cancel(*BOTH)
    assert tools.decide() == "approved"
    assert nothing_changed(tools)  # the worker does it, in a transaction of its own
    (job,) = tools.work()
    assert job.topic == "tell"
    assert answer_about(job.operation, Row.read(job.status, job.result)).text == DONE
    assert (tools.orders(), tools.stock()) == (CANCELLED, BACK)
    assert tools.events() == [
        "->pending",
        "pending->awaiting_approval",
        "awaiting_approval->pending",
        "pending->processing",
        "processing->succeeded",
    ]
    assert tools.unaudited() == set()
    assert tools.cancel(*BOTH).text == DONE
    assert tools.stock() == BACK


def test_a_consent_is_used_up_by_the_cancellation(tools: Any) -> None:
    tools.cancel(*BOTH)
    tools.decide()
    tools.desk.seconds = 5.0
    tools.work()
    assert tools.desk.one("SELECT used_at FROM approvals") == (tools.desk.time(),)


def test_a_consent_that_was_used_before_carries_nothing_more(tools: Any) -> None:
    tools.cancel(*BOTH)
    tools.decide()
    tools.desk.execute("UPDATE approvals SET used_at = '2026-01-05'")
    tools.work()
    assert tools.statuses() == ["failed"]
    assert nothing_changed(tools)


def test_without_the_approvals_row_nothing_is_carried_out(tools: Any) -> None:
    tools.cancel(*BOTH)
    tools.decide()
    tools.desk.execute("DELETE FROM approvals")
    tools.work()
    assert tools.statuses() == ["failed"]
    assert nothing_changed(tools)


def test_a_no_is_final(tools: Any) -> None:
    tools.cancel(*BOTH)
    assert tools.decide(approve=False) == "rejected"
    assert tools.decide(approve=True) == "closed"
    other = replace(tools.manager, user_id="deca0de0-1234-4abc-8def-000000000008")
    assert tools.decide(approve=True, who=other) == "closed"
    tools.work()
    assert nothing_changed(tools)
    answer = tools.cancel(*BOTH)
    assert (answer.kind, "rejected" in answer.text) == ("refused", True)


@pytest.mark.parametrize(
    "who",
    [
        {"user_id": "c0ffee00-1234-4abc-8def-000000001001"},
        {"tenant_id": OTHER_TENANT},
        {"permissions": frozenset()},
        {"permissions": frozenset({"refund:approve", "delete_profile:approve"})},
        {"permissions": frozenset({"order:cancel"})},
    ],
)
def test_neither_the_one_who_asked_nor_a_stranger_may_say_yes(
    who: dict[str, Any], tools: Any
) -> None:
    tools.cancel(*BOTH)
    assert tools.decide(who=replace(tools.manager, **who)) == "denied"
    assert tools.statuses() == ["awaiting_approval"]
    assert tools.events()[-1] == "denied"
    tools.work()
    assert nothing_changed(tools)


def test_silence_is_a_no(tools: Any) -> None:
    tools.cancel(*BOTH)
    tools.desk.seconds = Approval().lifetime
    assert tools.decide() == "expired"
    tools.work()
    assert tools.statuses() == ["failed"]
    assert nothing_changed(tools)


def test_a_question_that_nobody_answers_is_closed_by_a_worker(tools: Any) -> None:
    tools.cancel(*BOTH)
    tools.desk.seconds = Approval().lifetime - 1
    tools.work()
    assert tools.statuses() == ["awaiting_approval"]
    tools.desk.seconds = Approval().lifetime
    (told,) = tools.work()
    assert (told.topic, tools.statuses()) == ("tell", ["failed"])
    assert nothing_changed(tools)
    assert tools.unaudited() == set()


def changed(tools: Any, how: str) -> None:
    """One of the two orders is no longer what the person saw."""
    if how == "cancelled":
        cancel_order(tools.desk, TENANT, "ORD-1002")
    elif how == "shipped":
        tools.desk.execute("UPDATE orders SET status = 'shipped' WHERE id = 'ORD-1001'")
    elif how == "disputed":
        tools.desk.execute(DISPUTE, {"tenant_id": TENANT, "order_id": "ORD-1001", "amount": 1})
    else:
        tools.desk.execute("DELETE FROM orders WHERE id = 'ORD-1002'")


@pytest.mark.parametrize("how", ["cancelled", "shipped", "disputed", "gone"])
def test_a_consent_covers_the_orders_only_as_they_were_when_it_was_asked_for(
    how: str, tools: Any
) -> None:
    tools.cancel(*BOTH)
    changed(tools, how)
    before = (tools.orders(), tools.stock())
    assert tools.decide() == "changed"
    tools.work()
    assert tools.statuses() == ["failed"]
    assert (tools.orders(), tools.stock()) == before


@pytest.mark.parametrize("how", ["cancelled", "shipped", "disputed", "gone"])
def test_a_consent_is_looked_at_again_immediately_before_the_cancellation(
    how: str, tools: Any
) -> None:
    tools.cancel(*BOTH)
    assert tools.decide() == "approved"
    changed(tools, how)
    before = (tools.orders(), tools.stock())
    tools.work()
    assert tools.statuses() == ["failed"]
    assert (tools.orders(), tools.stock()) == before
    assert tools.desk.one("SELECT used_at FROM approvals") == (None,)


def test_a_refund_that_began_after_the_yes_stops_the_cancellation_of_both(tools: Any) -> None:
    tools.cancel(*BOTH)
    tools.decide()
    asked = replace(tools.session, intent_id="intent-2")
    tools.call("issue_refund", asked, order_id="ORD-1002", amount="5.00")
    tools.desk.execute(
        "UPDATE tool_operations SET status = 'processing' WHERE action_type = 'refund'"
    )
    tools.work(rounds=1)
    assert sorted(tools.statuses()) == ["failed", "processing"]
    assert nothing_changed(tools)


def test_what_the_screen_showed_has_to_be_what_was_asked_for(tools: Any) -> None:
    tools.cancel(*BOTH)
    shown = tools.desk.one("SELECT digest FROM approvals")[0]
    assert tools.decide(digest=shown + " ") == "changed"
    assert nothing_changed(tools)


def test_two_requests_for_other_orders_never_have_one_digest(tools: Any) -> None:
    names = [f"ORD-300{n}" for n in range(4)]
    for name in names:
        tools.desk.order(order_id=name)
    for number, pair in enumerate(itertools.combinations(names, 2)):
        tools.cancel(*pair, session=replace(tools.session, intent_id=f"intent-{number}"))
    digests = tools.desk.rows("SELECT DISTINCT digest FROM approvals")
    assert len(digests) == 6


def test_a_yes_twice_cancels_once(tools: Any) -> None:
    tools.cancel(*BOTH)
    assert [tools.decide(), tools.decide()] == ["approved", "approved"]
    tools.work()
    assert tools.decide() == "approved"  # the receipt was lost: said again, done no more
    tools.work()
    assert tools.stock() == BACK
    assert tools.events().count("processing->succeeded") == 1


def test_a_database_that_goes_away_while_a_worker_cancels_leaves_all_for_the_next_try(
    tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools.cancel(*BOTH)
    tools.decide()
    real, tries = actions.cancel_orders, []

    def broken(tx: Any, tenant_id: str, names: Any) -> str | None:
        reason = real(tx, tenant_id, names)
        tries.append(reason)
        if len(tries) == 1:
            raise DatabaseUnavailable("in the middle")
        return reason

    monkeypatch.setattr(actions, "cancel_orders", broken)
    before = tools.dump(but=["outbox"])
    with pytest.raises(DatabaseUnavailable):
        tools.work(rounds=1)
    assert tools.dump(but=["outbox"]) == before
    tools.desk.seconds += 30.0
    tools.work()
    assert tries == [None, None]
    assert (tools.orders(), tools.stock()) == (CANCELLED, BACK)


@pytest.mark.parametrize("revalidate", [True, False])
def test_a_row_that_two_workers_have_seen_is_carried_out_once(
    revalidate: bool, tools: Any, run: Any
) -> None:
    # Where looking and claiming are two statements, the second claims what is done (case B55).
    tools.design = SAFE.but(dispatch=Outbox(atomic=False), approval=Approval(revalidate=revalidate))
    tools.cancel(*BOTH)
    tools.decide()
    found = look(tools.desk, takes_over=True)
    assert found is not None
    assert found[1] == "act"
    for worker in ("worker-1#1", "worker-2#1"):
        job = run(tools.runtime.transact(claim, tools.design, [], worker, found))
        if worker == "worker-1#1":
            run(tools.runtime.transact(act, tools.design, [], job))
            assert (tools.orders(), tools.stock()) == (CANCELLED, BACK)
            before = tools.dump(but=["outbox"])
    assert job is None
    assert tools.dump(but=["outbox"]) == before


@pytest.mark.parametrize("fence", [True, False])
def test_of_two_workers_that_claimed_the_same_row_one_carries_it_out(
    fence: bool, tools: Any, run: Any
) -> None:
    tools.design = SAFE.but(dispatch=Outbox(atomic=False, fence=fence))
    tools.cancel(*BOTH)
    tools.decide()
    found = look(tools.desk, takes_over=True)
    jobs = [
        run(tools.runtime.transact(claim, tools.design, [], worker, found))
        for worker in ("worker-1#1", "worker-2#1")
    ]
    for job, done in zip(jobs, (not fence, True), strict=True):
        run(tools.runtime.transact(act, tools.design, [], job))
        assert ((tools.orders(), tools.stock()) == (CANCELLED, BACK)) == done
    assert tools.events().count("processing->succeeded") == 1


# Without consent.


def test_a_design_that_asks_nobody_cancels_in_bulk_at_once(tools: Any) -> None:
    tools.design = SAFE.but(approval=NoApproval())
    assert tools.cancel(*BOTH).kind == "done"
    assert tools.desk.rows("SELECT * FROM approvals") == []
    assert (tools.orders(), tools.stock()) == (CANCELLED, BACK)


def test_a_design_that_looks_at_nothing_again_still_changes_all_or_nothing(tools: Any) -> None:
    tools.design = SAFE.but(approval=Approval(revalidate=False))
    tools.cancel(*BOTH)
    tools.decide()
    changed(tools, "cancelled")
    before = (tools.orders(), tools.stock())
    tools.work()
    assert tools.statuses() == ["failed"]
    assert (tools.orders(), tools.stock()) == before


# Without a durable record.

WITHOUT_RECORD = SAFE.but(
    record=MemoryRecord(),
    balance=CheckThenAct(),
    dispatch=Inline(),
    recovery=NoRecovery(),
    answer=FromRecord(follow_up=False),
)


def test_what_needs_consent_is_refused_where_no_record_could_wait_for_it(tools: Any) -> None:
    tools.design = WITHOUT_RECORD
    answers = [tools.cancel(*BOTH) for _ in range(2)]
    assert answers[0].kind == "refused"
    assert "nobody could be asked" in answers[0].text
    assert answers[1] == answers[0]
    assert tools.desk.rows("SELECT * FROM approvals") == []
    assert nothing_changed(tools)


def test_a_record_in_memory_remembers_how_an_action_ended(tools: Any) -> None:
    tools.design = WITHOUT_RECORD
    assert [tools.cancel("ORD-1001").text for _ in range(2)] == [DONE] * 2
    assert tools.orders() == UNTOUCHED | {"ORD-1001": ("cancelled", 2)}
