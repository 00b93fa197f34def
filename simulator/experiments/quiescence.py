"""The invariants that are judged at quiescence: what must be so once everything has healed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import inf

from simulator.experiments.facts import Facts
from simulator.service.operations import FINAL, REFUND

__all__ = ["AT_QUIESCENCE", "stuck"]


def lost_refund(facts: Facts) -> bool:
    """An owed intent was not paid, and no true refusal was given.

    What somebody wanted of another tool, and nothing spoke against, is lost as well.
    """
    if facts.beside_money.lost(facts):
        return True
    return any(
        intent.owed
        and not facts.paid[intent.id]
        and intent.id not in facts.intents_tasked
        and intent.id in facts.world.submitted
        and not facts.may_be_refused(intent)
        and not facts.hopeless(intent.id)
        for intent in facts.world.scenario.intents
    )


def untold(facts: Facts) -> bool:
    """The outcome is final, and the last word is not.

    Where nothing went wrong a call that comes again is answered with the recorded outcome, too;
    and "being verified" is said only of what is open, or a human's.
    """
    if not facts.world.struck and _put_off(facts):
        return True
    if facts.world.design.record.durable and _promised(facts):
        return True
    ended = {op[3] for op in facts.operations if op[4] in FINAL}
    for intent in facts.world.scenario.intents:
        final = facts.paid[intent.id] or intent.id in ended | facts.world.provider.declined
        last = facts.last_word(intent.id)
        if final and last not in ("done", "refused") and intent.id not in facts.intents_tasked:
            return True
    return False


def _put_off(facts: Facts) -> bool:
    """Whether a call that came after its operation was final was told to wait, or nothing, or
    that it is forbidden by now.
    """
    database, backends = facts.world.database, facts.world.backends
    about = {op[0]: (op[3], op[5]) for op in facts.operations}
    final: dict[tuple[str, str], int] = {}
    for (operation, _, after), time in zip(database.changes, database.times, strict=True):
        if after in FINAL and operation in about:
            final.setdefault(about[operation], time)
    for (request, answer), arrived in zip(backends.answers, backends.arrivals, strict=True):
        tool = request.call.name
        what = request.session.intent_id, REFUND if tool == "issue_refund" else tool
        says_nothing = answer.kind in ("verifying", "info") or answer.code == "forbidden"
        if says_nothing and final.get(what, inf) < arrived:
            return True
    return False


def _promised(facts: Facts) -> bool:
    """Whether somebody was promised a word, and there is nothing that it could come from."""
    open_intents = {op[3] for op in facts.operations if op[4] not in FINAL}
    answered = {
        request.session.intent_id
        for request, answer in facts.world.backends.answers
        if answer.kind == "verifying"
    }
    return any(
        facts.last_word(intent_id) == "verifying"
        for intent_id in answered - open_intents - facts.intents_tasked
    )


def stuck(facts: Facts) -> bool:
    """Not final and no task, or the history never came to rest."""
    return facts.world.capped or any(
        op[4] not in FINAL and op[0] not in facts.tasked for op in facts.operations
    )


def needless_task(facts: Facts) -> bool:
    """A human was asked although all healed within the key's lifetime."""
    asked = [operation for operation in facts.operations if operation[0] in facts.tasked]
    if facts.never_heals or all(facts.needs_a_person(operation) for operation in asked):
        return False
    broken_for = sum(fault.seconds for _, fault in facts.world.struck)
    return broken_for < facts.world.scenario.provider.key_lifetime / 2


def books_differ(facts: Facts) -> bool:
    """Our books and the provider's ledger disagree, where no human is looking into it.

    Goods in stock, cancelled orders and profiles are books too: they have to be as our own
    record says, and no profile may go while a refund of its customer is open.
    """
    if facts.beside_money.differ():
        return True
    open_orders = {
        (op[1], op[2]) for op in facts.operations if op[4] not in FINAL or op[0] in facts.tasked
    }
    for tenant, order, refunded, pending in facts.world.database.rows(
        "SELECT tenant_id, id, refunded + disputed, pending FROM orders"
    ):
        if (tenant, order) not in open_orders and (
            refunded != facts.paid_on.get((tenant, order), 0) or pending != 0
        ):
            return True
    states: dict[str, set[str]] = {}
    for _, _, _, intent_id, status, action in facts.operations:
        if action != REFUND or intent_id in facts.intents_tasked:
            continue
        states.setdefault(intent_id, set()).add(status)
    return any(
        (status == {"succeeded"} and not facts.paid[intent_id])
        or (status == {"failed"} and facts.paid[intent_id] > 0)
        for intent_id, status in states.items()
    )


REFUSALS = ("denied", "refused", "conflict", "invalid")


def audit_gap(facts: Facts) -> bool:
    """An effect, a refusal, a change of state or a task without its audit row.

    Judged of designs that keep a log: one that keeps none makes no such promise.
    """
    world = facts.world
    if not world.design.audit.kept:
        return False
    logged: Counter[tuple[str, str]] = Counter()
    succeeded: set[str] = set()
    refused: set[str] = set()
    for operation, intent, event in world.database.rows(
        "SELECT operation_id, intent_id, event FROM audit_log"
    ):
        logged[operation, event] += 1
        if event.endswith("->succeeded"):
            succeeded.add(intent)
        elif event in REFUSALS or event.endswith("->failed"):
            refused.add(intent)
    changed = Counter(
        (operation, f"{before or ''}->{after}")
        for operation, before, after in world.database.changes
    )
    if changed - logged:
        return True
    asked = sum(count for (_, event), count in logged.items() if event == "task")
    if asked < len(world.database.tasks):
        return True
    open_intents = {op[3] for op in facts.operations if op[4] not in FINAL}
    paid = [intent for intent, count in facts.paid.items() if count]
    if any(
        intent not in succeeded and intent not in open_intents | facts.intents_tasked
        for intent in paid
    ):
        return True
    return any(
        answer.kind in ("refused", "conflict", "invalid")
        and request.session.intent_id not in refused
        for request, answer in world.backends.answers
    )


AT_QUIESCENCE: tuple[Callable[[Facts], bool], ...] = (
    lost_refund,
    untold,
    needless_task,
    books_differ,
    audit_gap,
)
