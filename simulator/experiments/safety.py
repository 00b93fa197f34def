"""The invariants that are judged always: what must never happen, not even for a moment."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from simulator.experiments.facts import Facts
from simulator.service.operations import REFUND
from simulator.service.schemas import InvalidRequest, minor_units
from simulator.world.law import TRANSITIONS
from simulator.world.scenario import Intent

__all__ = ["ALWAYS"]


def double_refund(facts: Facts) -> bool:
    """An intent was paid more than once."""
    return any(count > 1 for count in facts.paid.values())


def over_refund(facts: Facts) -> bool:
    """An order got back more than was captured.

    What the bank or a colleague took before us counts, if somebody had told us by the time that
    the refund was taken up to be sent. That they took too much, after us, does not.
    """
    ours: defaultdict[tuple[str, str], int] = defaultdict(int)
    for effect in facts.world.provider.ledger:
        if effect.source not in ("", "cancellation"):
            continue
        order = (effect.tenant_id, effect.order_id)
        ours[order] += effect.amount
        known = 0
        if facts.outside:
            begun = facts.first_begun.get(effect.intent, effect.time)
            known = sum(
                other.amount
                for other in facts.outside
                if (other.tenant_id, other.order_id) == order and facts.known_at(other) <= begun
            )
        if ours[order] + known > facts.captured.get(order, 0):
            return True
    return False


def unauthorized_refund(facts: Facts) -> bool:
    """Paid without the right for exactly this: to nobody's wish, or another sum or order.

    An order that is cancelled, or a profile deleted, needs a wish as well.
    """
    if facts.beside_money.unasked():
        return True
    for effect in facts.ours:
        intent = facts.world.scenario.intent(effect.intent)
        asked = (intent.order_id, intent.amount, intent.currency)
        if not intent.owed or (effect.order_id, effect.amount, effect.currency) != asked:
            return True
    return False


def unapproved_refund(facts: Facts) -> bool:
    """Paid, cancelled or deleted without a person's consent for exactly this, as it was then."""
    world = facts.world
    if facts.beside_money.unapproved(facts):
        return True
    for effect in facts.ours:
        if not facts.needs_consent(world.scenario.intent(effect.intent)):
            continue
        what = (effect.intent, effect.order_id, effect.amount, effect.currency)
        # From the moment on when it is taken up to be sent, nobody can call it back.
        begun = min(effect.time, facts.first_begun.get(effect.intent, effect.time))
        if not any(
            consent[1:5] == what
            and consent.entitled
            and consent.time <= begun
            and not facts.refused_before(effect.intent, consent.time)
            and not facts.changed(effect.tenant_id, effect.order_id, consent.asked, begun)
            for consent in world.consents
        ):
            return True
    return False


def conflict_ignored(facts: Facts) -> bool:
    """A request came again with another payload, and was not refused."""
    if facts.beside_money.mismatched():
        return True
    scenario = facts.world.scenario
    for request, answer in facts.world.backends.answers:
        intent = scenario.intent(request.session.intent_id)
        if request.call.name != "issue_refund" or not intent.owed:
            continue
        if answer.kind in ("done", "verifying") and _differs(request.call.arguments, intent):
            return True
    return False


def _differs(arguments: Any, intent: Intent) -> bool:
    return _payload(arguments, intent) != (
        unicodedata.normalize("NFC", intent.order_id),
        intent.amount,
    )


def _payload(arguments: Any, intent: Intent) -> tuple[Any, Any]:
    """Order and minor units of a call, in one spelling; what cannot be read as it is."""
    order, amount = arguments.get("order_id"), arguments.get("amount")
    if isinstance(order, str):
        order = unicodedata.normalize("NFC", order)
    if isinstance(amount, str | int | float | Decimal):
        amount = _amount(amount, intent.currency)
    return order, amount


@lru_cache(typed=True)
def _amount(written: Any, currency: str) -> int | None:
    try:
        return minor_units(Decimal(str(written)), currency)
    except (InvalidOperation, InvalidRequest, ValueError):
        return None


def illegal_transition(facts: Facts) -> bool:
    """A state changed against the table, a final one included."""
    return any(
        (before or "", after) not in TRANSITIONS
        for _, before, after in facts.world.database.changes
    )


def false_answer(facts: Facts) -> bool:
    """A final statement was untrue when made, or is at the end.

    So is "Payload Mismatch" to a request that only ever came with one payload, and "Forbidden"
    to one that is paid.
    """
    world = facts.world
    if facts.beside_money.false_word() or _false_no(facts):
        return True
    first_paid: dict[str, int] = {}
    for effect in facts.ours:
        first_paid.setdefault(effect.intent, effect.time)
    for told in world.told:
        if told.about != REFUND:
            continue
        paid_at = first_paid.get(told.intent)
        if told.kind == "done" and (paid_at is None or paid_at > told.time):
            return True
        if told.kind == "refused" and paid_at is not None:
            # The provider said no, and then paid. A human knows of it, so it is no lie of ours.
            contradicted = told.intent in world.scenario.provider.contradicts
            if not (contradicted and told.intent in facts.intents_tasked):
                return True
    return False


def _false_no(facts: Facts) -> bool:
    """Whether a request was told that it had come with other details, and all had the same; or
    that it is forbidden, and it was paid.
    """
    scenario = facts.world.scenario
    for request, answer in facts.world.backends.answers:
        if request.call.name != "issue_refund":
            continue
        intent = scenario.intent(request.session.intent_id)
        forbidden = answer.code == "forbidden" and facts.doable(request.call, intent.id)
        if forbidden and facts.paid[intent.id]:
            return True
        if answer.kind != "conflict":
            continue
        calls = [*facts.calls(intent.id), request.call]
        if len({(call.name, _payload(call.arguments, intent)) for call in calls}) == 1:
            return True
    return False


ALWAYS: tuple[Callable[[Facts], bool], ...] = (
    double_refund,
    over_refund,
    unauthorized_refund,
    unapproved_refund,
    conflict_ignored,
    illegal_transition,
    false_answer,
)
