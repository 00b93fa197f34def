"""The judge's own law: what is allowed, and what needs a person, in this shop.

It is written down here once more, and not looked up in the service: a judge who asks the accused
for the law finds nobody guilty. A test compares the two.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

__all__ = ["CONSENT", "DECIMALS", "PERMISSION", "TRANSITIONS", "asks_consent", "readable"]

PERMISSION = {
    "issue_refund": "refund:create",
    "cancel_orders": "order:cancel",
    "delete_profile": "profile:delete",
}
"""What a session has to allow, by tool."""

CONSENT = {
    "refund": "refund:approve",
    "cancel_orders": "cancel_orders:approve",
    "delete_profile": "delete_profile:approve",
}
"""What the session of a person who decides has to allow, by kind of operation."""

DECIMALS = {"USD": 2, "EUR": 2, "JPY": 0, "KWD": 3}
"""Decimals of each currency (ISO 4217)."""

TRANSITIONS = frozenset(
    {
        ("", "pending"),
        ("pending", "processing"),
        ("pending", "awaiting_approval"),
        ("pending", "failed"),
        ("awaiting_approval", "pending"),
        ("awaiting_approval", "failed"),
        ("processing", "succeeded"),
        ("processing", "failed"),
        ("processing", "outcome_unknown"),
        ("outcome_unknown", "processing"),
        ("outcome_unknown", "succeeded"),
        ("outcome_unknown", "failed"),
    }
)
"""The changes of state that there are; "" is before the first."""

BULK = 2
"""From so many orders on a cancellation needs a person's consent."""

FIELDS = frozenset({"order_id", "amount", "refund_request_id"})
PLAIN = re.compile(r"(0|[1-9][0-9]{0,9})(?:\.([0-9]+))?")


def asks_consent(kind: str, orders: int) -> bool:
    """Whether an action may not be done without a person's consent, naming so many orders."""
    return kind == "delete_profile" or (kind == "cancel_orders" and orders >= BULK)


def readable(arguments: Any) -> tuple[str, Decimal] | None:
    """Order and amount of a call for a refund that every service has to be able to read; None if
    it leaves any doubt: other fields, another spelling of money than plain digits, an odd id.
    """
    if not isinstance(arguments, Mapping) or not FIELDS >= arguments.keys() >= {
        "order_id",
        "amount",
    }:
        return None
    order, amount = arguments["order_id"], arguments["amount"]
    if not isinstance(order, str) or not order.isprintable():
        return None
    order = unicodedata.normalize("NFC", order)
    number = isinstance(amount, str | int | float) and not isinstance(amount, bool)
    if not number or not 3 <= len(order) <= 50 or (isinstance(amount, int) and amount >= 10**10):
        return None
    plain = PLAIN.fullmatch(str(amount))
    if plain is None or len(plain[2] or "") > 3 or not Decimal(plain[0]):
        return None
    return order, Decimal(plain[0])
