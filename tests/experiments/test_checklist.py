"""The production checklist of section 18 of the source lesson: each item with evidence from a run.

An item is a claim about the safe service. Its evidence is what a run left behind, and a design
for which the same evidence is missing.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from simulator import Design, Scenario, designs, faults, replay
from simulator.experiments.crashes import crash_table
from simulator.experiments.layers import layered
from simulator.experiments.replay import store
from simulator.experiments.run import Run
from simulator.experiments.storm import Load, Provider, storm
from simulator.experiments.storm.guards import TokenBucket
from simulator.service.approval import Approval
from simulator.service.keys import digest, operation_key
from simulator.service.operations import FINAL, DurableRecord, is_legal
from simulator.service.outbox import Inline, Outbox
from simulator.service.recovery import AskOnly, SameKey
from simulator.service.retry import FullJitter, Immediate, LessonFormula, Retry
from simulator.service.retry_limits import Budget, Deadline
from simulator.world import provider
from simulator.world.database import read
from simulator.world.fault import Fault
from simulator.world.faults import Plan
from simulator.world.network import Exchange
from simulator.world.scenario import (
    TENANT,
    AgentSettings,
    ApproverSettings,
    Intent,
    Order,
    ProviderSettings,
    Submission,
    WebhookSettings,
)
from simulator.world.settings import OTHER_TENANT, USER
from simulator.world.world import World

ABLATED = designs.ablations()
ONE = Scenario.one_refund()
LOST = faults.lose_response("provider.refund")
HOUR = faults.provider_down("provider.refund", seconds=3600.0)
DARK = faults.provider_down("provider.refund", seconds=60.0)  # for ever, with heal=False
BETWEEN = faults.crash("provider.refund", when="after_answer")

LARGE = ONE.but(
    name="large",
    orders=(Order("ORD-7001", captured=7_500_00),),
    intents=(Intent("intent-1", order_id="ORD-7001", amount=6_000_00),),
)

# Histories of many kinds, for items that have to hold in all of them.
HISTORIES: dict[str, tuple[Scenario, Sequence[Fault]]] = {
    "calm": (ONE, []),
    "response lost": (ONE, [LOST]),
    "request lost": (ONE, [faults.lose_request("provider.refund")]),
    "crash between": (ONE, [BETWEEN]),
    "crash after commit": (ONE, [faults.crash("begin", when="after")]),
    "crash before commit": (ONE, [faults.crash("begin", when="before")]),
    "pause past the lease": (
        ONE,
        [faults.pause("provider.refund", when="before_send", seconds=42.0)],
    ),
    "hour": (ONE, [HOUR]),
    "commit not acknowledged": (ONE, [faults.lose_commit_ack("finish")]),
    "double click": (Scenario.double_click(), []),
    "two partial": (Scenario.two_partial_refunds(), []),
    "changed payload": (Scenario.changed_payload(), []),
    "late": (Scenario.late_redelivery(), []),
    "declined": (Scenario.declined(), []),
    "injected": (Scenario.injected_arguments(), []),
    "approval": (Scenario.approval_between(), []),
    "cancelled": (Scenario.cancelled_meanwhile(), []),
    "poisoned": (Scenario.poisoned_event(), []),
    "webhooks": (Scenario.webhook_storm(), [LOST]),
    "returned": (Scenario.returned_by_the_bank(), []),
}
every_history = pytest.mark.parametrize("history", HISTORIES)


@contextmanager
def world_after(
    design: Design, scenario: Scenario = ONE, *what: Fault, heal: bool = True
) -> Iterator[World]:
    """The world when its history is over, tables and all."""
    plan = Plan(what)
    with store() as database:
        yield World(design, scenario, plan, 0, database, heal).run()


def right(history: str) -> Run:
    """One of the histories, of the safe service."""
    scenario, what = HISTORIES[history]
    run = replay(designs.SAFE, scenario, what)
    assert run.verdict == frozenset()
    assert not run.unstruck
    return run


def sends(run: Run) -> list[float]:
    """When the provider was sent a refund, in seconds."""
    return [step.time / 1e6 for step in run.steps if step.what == "provider.refund"]


def told(run: Run) -> list[str]:
    """Kinds of statements, in order."""
    return list(run.told.statement)


class Seen(NamedTuple):
    """What the provider sees of a request, and whether a transaction is open at that time."""

    name: str
    key: str | None
    transaction: bool


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Seen]:
    """Every request that arrives at the provider."""
    requests: list[Seen] = []
    receive = provider.Provider.receive

    def spy(self: provider.Provider, exchange: Exchange) -> None:
        key = getattr(exchange.request, "key", None)
        requests.append(Seen(exchange.name, key, self.world.database.holder is not None))
        receive(self, exchange)

    monkeypatch.setattr(provider.Provider, "receive", spy)
    return requests


# --- Side effects listed and classified ------------------------------------------------------

CALLS = {
    "provider.refund": "moves money",
    "provider.find": "reads",
    "customer.notify": "writes to a person",
}


@every_history
def test_every_side_effect_is_on_the_list(history: str) -> None:
    made = {
        step.what
        for step in right(history).steps
        if step.call and step.process.startswith(("backend", "worker"))
    }
    assert made <= CALLS.keys()


def test_what_is_listed_as_reading_changes_nothing_at_the_provider() -> None:
    asks = designs.SAFE.but(recovery=AskOnly())
    for fault, paid in ((faults.lose_request("provider.refund"), 0), (LOST, 1)):
        run = replay(asks, ONE, [fault])
        assert [step.what for step in run.steps].count("provider.find") >= 1
        assert len(sends(run)) == 1
        assert len(run.ledger) == paid


def test_a_tool_that_is_not_on_the_list_is_refused_and_logged() -> None:
    wrong = ONE.but(
        intents=(Intent("intent-1", owed=False),),
        submissions=(
            Submission(
                "intent-1",
                tool="empty_the_account",
                arguments={"order_id": "ORD-1001", "amount": "500.00"},
            ),
        ),
    )
    run = replay(designs.SAFE, wrong)
    assert run.verdict == frozenset()
    assert run.ledger.empty
    assert list(run.audit.event) == ["invalid"]
    assert replay(ABLATED["schema"], wrong).verdict == {"unauthorized_refund"}


# --- Keys owned by the application -----------------------------------------------------------


def test_the_key_is_the_applications_whatever_the_model_writes() -> None:
    own = operation_key(TENANT, "refund", "intent-1")
    spelled = Scenario.new_thought()
    invented = ONE.but(submissions=(Submission("intent-1", model_key="key-of-the-model"),))
    for scenario in (ONE, spelled, invented, Scenario.double_click()):
        run = replay(designs.SAFE, scenario)
        assert list(run.ledger.key) == [own]
    assert list(replay(designs.MODEL_KEY, invented).ledger.key) == ["key-of-the-model"]
    assert "double_refund" in replay(designs.MODEL_KEY, spelled).verdict


# --- Fingerprint and 409 ---------------------------------------------------------------------


def test_another_payload_under_a_key_is_a_409_and_the_fingerprint_decides() -> None:
    run = right("changed payload")
    assert told(run)[-1] == "conflict"
    assert run.told.text.iloc[-1].startswith("409 Conflict")
    assert list(run.audit.event)[-1] == "conflict"
    spelled_anew = replay(designs.SAFE, Scenario.new_thought())
    assert "conflict" not in told(spelled_anew), "200.0 and 200.00 are one payload"
    blind = replay(ABLATED["fingerprint"], Scenario.changed_payload())
    assert blind.verdict == {"conflict_ignored"}


# --- Durable record with UNIQUE --------------------------------------------------------------


def test_the_table_refuses_a_second_row_of_one_tenant_and_key() -> None:
    with world_after(designs.SAFE) as world:
        (row,) = world.database.rows("SELECT tenant_id, idempotency_key FROM tool_operations")
        insert = """
            INSERT INTO tool_operations
                (id, tenant_id, idempotency_key, action_type, request_hash, status)
            VALUES (?, ?, ?, 'refund', 'hash', 'pending')
        """
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
            world.database.connection.execute(insert, ("another", *row))
        world.database.connection.execute(insert, ("another", OTHER_TENANT, row[1]))


def test_the_record_outlives_the_process_that_wrote_it() -> None:
    elsewhere = Scenario.resubmitted_elsewhere()
    crash = faults.crash("tool.issue_refund", when="after_answer")
    dies = faults.crash("backend-1:begin", when="after")
    for fault in (crash, dies):
        run = replay(designs.SAFE, elsewhere, [fault])
        assert run.verdict == frozenset()
        assert not run.unstruck
        assert (len(run.ledger), len(run.books)) == (1, 1)
    assert "double_refund" in replay(designs.MEMORY_RECORD, elsewhere, [BETWEEN]).verdict


# --- Transitions checked ---------------------------------------------------------------------


@every_history
def test_every_change_of_state_is_in_the_table_and_nothing_leaves_a_final_state(
    history: str,
) -> None:
    scenario, what = HISTORIES[history]
    with world_after(designs.SAFE, scenario, *what) as world:
        for _, before, after in world.database.changes:
            assert is_legal(before, after)
            assert before not in FINAL


def test_without_checks_a_zombie_leaves_a_final_state() -> None:
    zombie = [
        faults.lose_response("worker-1:provider.refund"),
        faults.pause("worker-1:finish", when="before", seconds=42.0),
    ]
    with world_after(ABLATED["fencing token"], ONE, *zombie) as world:
        assert any(before in FINAL for _, before, _ in world.database.changes)


# --- One transaction for record, balance, outbox ---------------------------------------------

TABLES = "tool_operations", "refunds", "outbox", "audit_log"
NO_WORKER = (
    faults.crash("worker-1:claim", when="before"),
    faults.crash("worker-2:claim", when="before"),
)


def written(design: Design, *what: Fault) -> dict[str, int]:
    """Rows in each table, and what is taken out of the balance, when nothing heals."""
    with world_after(design, Scenario.asked_once(), *what, heal=False) as world:
        rows = world.database.rows
        found = {table: rows(f"SELECT COUNT(*) FROM {table}")[0][0] for table in TABLES}
        return found | {"pending": rows("SELECT pending FROM orders")[0][0]}


def test_record_balance_and_promise_are_all_there_or_none_of_them() -> None:
    nothing = dict.fromkeys((*TABLES, "pending"), 0)
    everything = dict.fromkeys(TABLES, 1) | {"pending": 500_00}
    before = faults.crash("begin", when="before")
    after = faults.crash("begin", when="after")
    assert written(designs.SAFE, before) == nothing
    assert written(designs.SAFE, after, *NO_WORKER) == everything
    not_committed = faults.lose_commit_ack("begin", when="before")
    committed = faults.lose_commit_ack("begin", when="after")
    assert written(designs.SAFE, committed, *NO_WORKER)["tool_operations"] == 1
    assert written(designs.SAFE, not_committed, *NO_WORKER) == everything, "it was begun again"

    promised_later = written(ABLATED["outbox"], after)
    assert (promised_later["tool_operations"], promised_later["outbox"]) == (1, 0)
    assert written(designs.PROVIDER_KEY, after)["pending"] == 0
    assert written(ABLATED["audit in the transaction"], after, *NO_WORKER)["audit_log"] == 0


# --- Provider called outside any transaction, with the key, on every attempt -----------------


@every_history
def test_the_provider_is_called_outside_any_transaction_and_with_one_key(
    history: str, seen: list[Seen]
) -> None:
    scenario, _ = HISTORIES[history]
    run = right(history)
    assert not any(request.transaction for request in seen)
    keys = [request.key for request in seen if request.name == "provider.refund"]
    own = {operation_key(intent.tenant_id, "refund", intent.id) for intent in scenario.intents}
    assert set(keys) <= own
    # What was sent and never arrived is seen in the trace alone, by the beginning of its key.
    sent = [e.text for e in run.trace if (e.kind, e.what) == ("request", "provider.refund")]
    assert all(text.rpartition("key ")[2] in {key[:8] for key in own} for text in sent)
    assert len(sent) >= len(keys)


def test_an_hour_of_attempts_is_one_key_and_one_effect(seen: list[Seen]) -> None:
    run = right("hour")
    keys = [request.key for request in seen if request.name == "provider.refund"]
    assert len(keys) == len(sends(run)) > 5
    assert set(keys) == set(run.ledger.key) == {operation_key(TENANT, "refund", "intent-1")}


def test_the_spy_sees_a_call_inside_a_transaction_and_a_call_without_a_key(
    seen: list[Seen],
) -> None:
    replay(designs.PROVIDER_KEY.but(dispatch=Inline(inside=True)))
    assert [request.transaction for request in seen] == [True]
    seen.clear()
    run = replay(designs.NAIVE, ONE, [LOST])
    assert [request.key for request in seen] == [None, None]
    assert "double_refund" in run.verdict


# --- Silence is unknown ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "silence",
    [
        LOST,
        faults.lose_request("provider.refund"),
        faults.reset("provider.refund"),
        faults.reset("provider.refund", when="before"),
        faults.delay_response("provider.refund", seconds=20.0),
        faults.crash_provider("provider.refund"),
        HOUR,
    ],
    ids=lambda fault: f"{fault.kind}_{fault.when}",
)
def test_after_silence_the_state_is_unknown_and_nothing_final_is_said_before_it_is_known(
    silence: Fault,
) -> None:
    run = replay(designs.SAFE, ONE, [silence])
    assert run.verdict == frozenset()
    changes = [event.what for event in run.trace if event.kind == "state"]
    assert changes[2] == "processing->outcome_unknown"
    known = next(e.time / 1e6 for e in run.trace if e.what.endswith("->succeeded"))
    final = run.told[run.told.statement != "verifying"]
    assert (final.time > known).all()
    broken = replay(ABLATED["outcome_unknown"], ONE, [silence]).verdict
    assert broken & {"false_answer", "lost_refund"}


# --- Reconciler with alarm and human task ----------------------------------------------------


def test_what_stays_unknown_becomes_a_task_with_its_reason_before_the_key_is_forgotten() -> None:
    run = replay(designs.SAFE, ONE, [DARK], heal=False)
    assert run.verdict == frozenset()
    assert list(run.tasks.topic) == ["refund"]
    assert "outcome is unknown" in run.tasks.reason[0]
    assert list(run.books.status) == ["outcome_unknown"]
    assert str(run.books.pending[0]) == "500.00", "it stays reserved"
    (alarm,) = [event for event in run.trace if event.kind == "task"]
    assert alarm.time / 1e6 < ONE.provider.key_lifetime
    assert run.audit.event.iloc[-1] == "task"
    assert told(run) == ["verifying"]
    for name in ("recovery", "lease"):
        left = replay(ABLATED[name], ONE, [faults.crash("worker-1:claim")], heal=False)
        assert "stuck" in left.verdict
        assert left.tasks.empty


def test_what_heals_in_time_is_reconciled_without_a_human() -> None:
    for history in ("response lost", "request lost", "crash between", "hour"):
        assert right(history).tasks.empty
    hasty = designs.SAFE.but(recovery=SameKey(horizon=2.0))
    blind = ONE.but(provider=ProviderSettings(lookup_lag=None))
    assert replay(hasty, blind, [LOST]).verdict == {"needless_task"}


# --- Retries bounded, jitter alive at the cap, one layer -------------------------------------


def dark_sends(retry: Retry) -> list[float]:
    """The sends of a backend that retries by itself, to a provider that never answers."""
    design = designs.PROVIDER_KEY.but(retry=retry)
    return sends(replay(design, Scenario.asked_once(), [DARK], heal=False))


def test_attempts_deadline_and_budget_each_bound_the_sends() -> None:
    eager = Immediate(max_attempts=100)
    assert len(dark_sends(eager)) == 100
    assert len(dark_sends(Immediate(max_attempts=3))) == 3
    in_time = dark_sends(Deadline(eager, seconds=1.0))
    assert 1 < len(in_time) < 100
    assert in_time[-1] - in_time[0] <= 1.0
    assert len(dark_sends(Budget(eager, capacity=70.0, cost=14.0))) == 1 + 70 // 14


def test_the_safe_service_sends_a_bounded_number_of_times_and_then_asks_a_human() -> None:
    run = replay(designs.SAFE, ONE, [DARK], heal=False)
    assert isinstance(designs.SAFE.retry, Budget)
    assert isinstance(designs.SAFE.retry.policy, Deadline)
    policy = designs.SAFE.retry.policy.policy
    assert isinstance(policy, FullJitter)
    quick = [time for time in sends(run) if time < 8 * 30.0]
    assert len(quick) == policy.max_attempts == 8
    horizon, every = designs.SAFE.recovery.horizon, designs.SAFE.recovery.every
    assert horizon is not None
    assert every is not None
    assert len(sends(run)) <= len(quick) + horizon / every
    assert sends(run)[-1] < horizon
    endless = designs.NAIVE.but(retry=lambda attempt, random: 0.0)
    assert replay(endless, ONE, [DARK], heal=False).verdict == {"stuck"}


def waits_at_the_cap(retry: Callable[[int], Any]) -> list[float]:
    """How long the 12th wait is in 40 worlds, with a cap of 30 s reached after the 5th."""
    found = []
    for seed in range(40):
        design = designs.PROVIDER_KEY.but(retry=retry(13))
        run = replay(design, Scenario.asked_once(), [DARK], seed=seed, heal=False)
        times = sends(run)
        found.append(times[12] - times[11])
    return found


def test_jitter_is_alive_at_the_cap() -> None:
    # 40 uniform draws from 0 to 30 s: a mean outside 15 ± 5.5 s has a chance of 6e-5 (4 sigma).
    waits = waits_at_the_cap(lambda attempts: FullJitter(base=1.0, cap=30.0, max_attempts=attempts))
    assert max(waits) < 30.2
    assert 9.5 < sum(waits) / 40 < 20.5
    assert max(waits) - min(waits) > 15.0
    published = waits_at_the_cap(lambda attempts: LessonFormula(max_attempts=attempts))
    assert max(published) - min(published) < 0.1, "the lesson's own formula has none there"


def test_retries_live_in_one_layer() -> None:
    slow = ONE.but(provider=ProviderSettings(work=10.0))
    patient = slow.but(agent=AgentSettings(resubmits=0))
    fickle = slow.but(agent=AgentSettings(patience=1.0, resubmits=5))

    def load(design: Design, scenario: Scenario) -> int:
        return len(sends(replay(design, scenario)))

    assert load(designs.SAFE, patient) == load(designs.SAFE, fickle), "calls end at the record"
    assert load(designs.NAIVE, patient) == 3
    assert load(designs.NAIVE, fickle) == (1 + 5) * 3, "layers multiply"
    assert [layered(layers, 3).calls / 10 for layers in (1, 3)] == [3, 27]


# --- Leases fenced ---------------------------------------------------------------------------


def test_a_write_under_a_lease_that_was_taken_over_changes_nothing() -> None:
    scenario, what = HISTORIES["pause past the lease"]
    with world_after(designs.SAFE, scenario, *what) as world:
        (token,) = world.database.rows("SELECT token FROM outbox WHERE topic = 'refund'")
        assert token == (2,), "every claim has a number of its own"
        ends = [after for _, _, after in world.database.changes if after in FINAL]
        assert ends == ["succeeded"]
        writes = [what for process, what, *_ in world.taken if process == "worker-1"]
        assert "finish" in writes, "the zombie tried"
        assert world.database.rows("SELECT refunded, pending FROM orders") == [(500_00, 0)]
    with world_after(ABLATED["fencing token"], scenario, *what) as world:
        assert world.database.rows("SELECT refunded, pending FROM orders") == [(1000_00, -500_00)]


# --- Dead letters watched --------------------------------------------------------------------


def test_a_dead_letter_is_counted_set_aside_and_put_before_a_human() -> None:
    with world_after(designs.SAFE, Scenario.poisoned_event()) as world:
        buried = world.database.rows(
            "SELECT claims, dead_at IS NOT NULL FROM outbox WHERE done_at IS NULL"
        )
        assert buried == [(designs.SAFE.dispatch.max_attempts + 1, 1)]
        watched = world.database.rows(
            "SELECT reason FROM tasks JOIN outbox USING (operation_id, topic) WHERE dead_at > ''"
        )
        assert watched == [("Claimed 8 times without a result (dead letter).",)]
    # A lease of six hours, or the week of the history would be 20,000 claims.
    for_ever = designs.SAFE.but(dispatch=Outbox(lease=6 * 3600.0, max_attempts=None))
    assert replay(for_ever, Scenario.poisoned_event()).verdict == {"stuck"}


# --- Permissions from the session, fail closed -----------------------------------------------


@pytest.mark.parametrize(
    "session",
    [
        {"permissions": frozenset()},
        {"permissions": frozenset({""})},
        {"permissions": frozenset({"refund:create:none", "REFUND:CREATE", "refund:*"})},
        {"tenant_id": "", "user_id": "", "permissions": frozenset()},
        {"tenant_id": "", "user_id": ""},
        {"user_id": ""},
        {"tenant_id": ""},
    ],
    ids=lambda session: ", ".join(session) if isinstance(session, dict) else None,
)
@pytest.mark.parametrize("claimed", [False, True], ids=["silent", "model claims the right"])
def test_a_session_that_does_not_clearly_allow_it_is_a_no(
    session: dict[str, Any], claimed: bool
) -> None:
    injected = {"tenant_id": TENANT, "user_id": USER, "permissions": ["refund:create"]}
    scenario = ONE.but(
        intents=(Intent("intent-1", owed=False, **session),),
        submissions=(Submission("intent-1", arguments=injected if claimed else {}),),
    )
    run = replay(designs.SAFE, scenario)
    assert run.verdict == frozenset()
    assert run.ledger.empty
    assert told(run) in (["refused"], ["invalid"])
    assert set(run.audit.event) <= {"denied", "invalid"}
    assert len(run.audit) == 1
    open_doors = designs.SAFE.but(
        schema=ABLATED["schema"].schema,
        identity=lambda session, call: (TENANT, USER),
        permission=ABLATED["permission"].permission,
    )
    assert "unauthorized_refund" in replay(open_doors, scenario).verdict


# --- Approval bound, expiring, revalidated ---------------------------------------------------


def test_an_approval_is_bound_to_one_operation_its_exact_request_and_state_and_used_once() -> None:
    with world_after(designs.SAFE, LARGE) as world:
        ((bound_to, status, used, *fields),) = world.database.rows(
            """SELECT digest, a.status, used_at IS NOT NULL, o.tenant_id, order_id, amount, currency
               FROM approvals a JOIN tool_operations o ON o.id = a.operation_id
               JOIN refunds r ON r.operation_id = o.id"""
        )
        covered = digest("refund", *fields, "", 1)
        assert bound_to == covered, "exactly what is asked for, and the order's version"
        assert (status, used) == ("approved", 1)
    by_tool = replay(ABLATED["approval digest"], Scenario.approval_between())
    assert by_tool.verdict == {"unapproved_refund"}
    assert len(by_tool.ledger) == 2
    assert len(right("approval").ledger) == 1


def test_an_approval_expires_to_no() -> None:
    unanswered = LARGE.but(approver=ApproverSettings(says=(("intent-1", "nothing"),)))
    run = replay(designs.SAFE, unanswered)
    assert run.verdict == frozenset()
    assert run.ledger.empty
    assert told(run) == ["verifying", "refused"]
    lifetime = designs.SAFE.approval.lifetime
    assert run.told.time.iloc[-1] == pytest.approx(lifetime, abs=1.0)
    soon = designs.SAFE.but(approval=Approval(lifetime=30.0))
    assert replay(soon, LARGE).ledger.empty, "the yes comes after a minute"
    assert replay(ABLATED["approval expiry"], unanswered).verdict == {"unapproved_refund"}


def test_an_approval_is_looked_at_again_before_the_money_moves() -> None:
    run = right("cancelled")
    assert run.told.text.iloc[-1].endswith("the order has changed since it was asked for.")
    assert "over_refund" in replay(ABLATED["revalidation"], Scenario.cancelled_meanwhile()).verdict


# --- Audit complete --------------------------------------------------------------------------


@every_history
def test_the_history_rebuilt_from_the_audit_log_is_the_history(history: str) -> None:
    scenario, what = HISTORIES[history]
    with world_after(designs.SAFE, scenario, *what) as world:
        rows = world.database.rows("SELECT operation_id, event FROM audit_log ORDER BY id")
        rebuilt = [
            (operation, event.partition("->")[0] or None, event.partition("->")[2])
            for operation, event in rows
            if "->" in event
        ]
        assert rebuilt == world.database.changes
        last = {operation: after for operation, _, after in rebuilt}
        recorded = world.database.rows("SELECT id, status FROM tool_operations")
        assert last == dict(recorded)
        tasks = [event for _, event in rows].count("task")
        assert tasks == world.database.rows("SELECT COUNT(*) FROM tasks")[0][0]


@every_history
def test_every_effect_and_every_refusal_has_its_audit_row(history: str) -> None:
    run = right(history)
    by_intent = {intent: set(rows.event) for intent, rows in run.audit.groupby("intent")}
    for effect in run.ledger[run.ledger.key.notna()].itertuples():
        assert any(event.endswith("->succeeded") for event in by_intent[effect.intent])
    for word in run.told[run.told.statement.isin(("refused", "conflict", "invalid"))].itertuples():
        events = by_intent[word.intent]
        assert events & {"denied", "refused", "conflict", "invalid"} or any(
            event.endswith("->failed") for event in events
        )


def test_a_log_that_is_written_afterwards_misses_what_a_crash_cut_off() -> None:
    crash = faults.crash("worker-1:finish", when="after")
    assert replay(ABLATED["audit in the transaction"], ONE, [crash]).verdict == {"audit_gap"}
    assert replay(designs.SAFE, ONE, [crash]).verdict == frozenset()


# --- Answers from the record -----------------------------------------------------------------


@every_history
def test_every_final_statement_was_in_the_record_before_it_was_said(history: str) -> None:
    run = right(history)
    said = run.told[run.told.statement.isin(("done", "refused"))]
    for word in said.itertuples():
        what = "->succeeded" if word.statement == "done" else "->failed"
        rows = run.audit[run.audit.intent == word.intent]
        in_time = rows[rows["at"].map(seconds) <= word.time].event
        refused = {"denied", "refused"} if word.statement == "refused" else set()
        assert refused & set(in_time) or in_time.str.endswith(what).any()


def seconds(at: str) -> float:
    """Seconds since the history began, of a time as the database stores it."""
    return read(at) / 1e6


def test_an_answer_that_is_hoped_for_is_false_while_nobody_knows() -> None:
    assert replay(ABLATED["answer from the record"], ONE, [HOUR]).verdict == {"false_answer"}
    assert told(right("hour")) == ["verifying", "done"]


# --- Key retention longer than the longest redelivery ----------------------------------------


@pytest.mark.parametrize("hours", [1, 23, 25, 6 * 24])
def test_a_redelivery_is_recognised_however_late_it_comes(hours: int) -> None:
    late = Scenario.late_redelivery().but(
        submissions=(
            Submission("intent-1"),
            Submission("intent-1", at=hours * 3600.0, instance="backend-2"),
        )
    )
    run = replay(designs.SAFE, late)
    assert run.verdict == frozenset()
    assert len(run.ledger) == 1
    assert told(run)[-1] == "done"
    assert designs.SAFE.record == DurableRecord(keep=None), "its tombstones are kept for ever"
    short = designs.SAFE.but(record=DurableRecord(keep=(hours - 0.5) * 3600.0))
    forgets = "double_refund" in replay(short, late).verdict
    assert forgets == (hours > 24), "within 24 h the provider's own memory covers it"


def test_nothing_is_sent_under_a_key_that_the_provider_may_have_forgotten() -> None:
    horizon = designs.SAFE.recovery.horizon
    assert horizon is not None
    assert horizon < ONE.provider.key_lifetime - 3600.0
    paid_then_dark = [LOST, faults.provider_down("provider.refund", nth=2, seconds=30 * 3600.0)]
    run = replay(designs.SAFE, ONE, paid_then_dark)
    assert run.verdict == frozenset()
    assert len(run.ledger) == 1
    assert sends(run)[-1] < horizon
    careless = designs.SAFE.but(recovery=SameKey(horizon=100 * 3600.0))
    assert "double_refund" in replay(careless, ONE, paid_then_dark).verdict


# --- Load test past the knee -----------------------------------------------------------------

CAPACITY = 50.0  # refunds a second


EAGER = Immediate(max_attempts=3)
CAREFUL = FullJitter(base=1.0, cap=30.0, max_attempts=3)


def load(offered: float, retry: Retry, queue: int | None = None, **settings: Any) -> Load:
    """Forty seconds of traffic: Poisson arrivals, exponential service, clients who wait 1 s."""
    return storm(
        int(offered * 40),
        retry,
        provider=Provider(service=1.0 / CAPACITY, law="exponential", queue_limit=queue),
        outages=(),
        arrivals=offered,
        timeout=1.0,
        horizon=40.0,
        **settings,
    )


def goodput(run: Load) -> float:
    """Answered refunds a second in the second half of the run."""
    return float(run.series.goodput.loc[20:39].mean())


def test_past_the_knee_goodput_collapses_without_bounds_and_stays_with_them() -> None:
    below = load(0.5 * CAPACITY, EAGER, key=True)
    assert goodput(below) == pytest.approx(0.5 * CAPACITY, rel=0.15)
    past = load(1.3 * CAPACITY, EAGER, key=True)
    assert goodput(past) < 0.1 * CAPACITY
    assert past.calls > 2.5 * past.asked
    bounded = load(1.3 * CAPACITY, CAREFUL, queue=10, guard=TokenBucket, key=True)
    assert goodput(bounded) > 0.9 * CAPACITY
    assert bounded.calls < 1.15 * bounded.asked, "the budget lets a tenth be sent again"


def test_past_the_knee_a_key_keeps_every_refund_single() -> None:
    assert load(1.3 * CAPACITY, EAGER, key=True).double_refunds == 0
    assert load(1.3 * CAPACITY, EAGER, key=False).double_refunds > 1_000


# --- Crash test at every step ----------------------------------------------------------------


@pytest.mark.parametrize(
    "scenario",
    [
        ONE,
        LARGE,
        ONE.but(name="webhooks", provider=ProviderSettings(webhooks=WebhookSettings())),
    ],
    ids=lambda scenario: scenario.name,
)
def test_a_crash_or_a_long_pause_at_every_step_leaves_the_safe_service_right(
    scenario: Scenario,
) -> None:
    table = crash_table([designs.SAFE], scenario)
    assert set(table.outcome) == {"right"}, table[table.outcome != "right"]
    steps = {(step.what, step.call) for step in replay(designs.SAFE, scenario).steps}
    assert len(table) >= sum(4 for _ in steps)


def test_the_crash_test_finds_what_is_wrong_with_the_designs_below() -> None:
    table = crash_table([designs.NAIVE, designs.RESERVED, designs.OUTBOX])
    found = {name: Counter(rows.outcome) for name, rows in table.groupby("design")}
    assert found["NAIVE"]["doubled"] > 0
    assert found["RESERVED"]["stuck"] > 0
    assert found["OUTBOX"]["untold"] > 0
