"""The source lesson's listings, letter for letter: to be run, and to be criticised.

Nothing here is mended. `tests/lessons/test_published.py` compares every listing with the
lesson's text and shows that it keeps its own promise; `tests/lessons/test_traps.py` shows what
each of them leaves open. The service does not use them, but for three that are good as they
stand or needed as they were: `RefundRequest`, `calculate_retry_delay` and the table, which are
taken from there.
"""

# As it was printed: without docstrings, with Dict, and an __init__ that says no type.
# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: D101, D103, UP006, UP035

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Dict

from simulator.service.database import postgresql_schema
from simulator.service.retry import calculate_retry_delay
from simulator.service.schemas import RefundRequest

__all__ = [
    "CANCEL_ORDER",
    "CREATE_TOOL_OPERATIONS",
    "AuthContext",
    "MockIdempotentStore",
    "RefundRequest",
    "authorize_refund",
    "calculate_retry_delay",
    "issue_refund",
    "validate_refund_invariants",
]

CREATE_TOOL_OPERATIONS = re.findall(
    r"^CREATE TABLE tool_operations \(.*?^\);\n", postgresql_schema(), re.DOTALL | re.MULTILINE
)[0]
"""Section 6: the table, cut out of the service's own tables."""

CANCEL_ORDER = """\
BEGIN;

-- 1. Row-level lock to serialize concurrent access
SELECT id, status FROM orders
WHERE tenant_id = :tenant_id AND id = :order_id
FOR UPDATE;

-- 2. Conditional status update
UPDATE orders
SET status = 'cancelled'
WHERE tenant_id = :tenant_id AND id = :order_id AND status = 'confirmed';

-- 3. Record operation log atomically
INSERT INTO tool_operations (tenant_id, idempotency_key, action_type, status)
VALUES (:tenant_id, :idempotency_key, 'cancel_order', 'succeeded');

COMMIT;
"""
"""Section 7: one transaction that cancels an order and says so."""


# fmt: off

# Section 1.
def issue_refund(order_id: str, amount: float):
    # Payment gateway API call and database update
    ...


# Section 13.
@dataclass(frozen=True)
class AuthContext:
    user_id: str
    tenant_id: str
    permissions: frozenset[str]


def authorize_refund(context: AuthContext) -> None:
    if "refund:create" not in context.permissions:
        raise PermissionError("Access Denied: You do not have refund privileges.")


# Section 16, app/refund_service.py.
def validate_refund_invariants(
    requested: Decimal, paid: Decimal, already_refunded: Decimal
) -> None:
    if requested <= 0:
        raise ValueError("Refund amount must be strictly positive.")

    remaining = paid - already_refunded
    if requested > remaining:
        raise ValueError(
            f"Requested refund {requested} exceeds refundable balance {remaining}."
        )


class MockIdempotentStore:
    def __init__(self):
        self._operations: Dict[str, Dict[str, Any]] = {}

    def get_or_create(
        self, tenant_id: str, idempotency_key: str, amount: Decimal
    ) -> tuple[bool, Dict[str, Any]]:
        full_key = f"{tenant_id}:{idempotency_key}"
        if full_key in self._operations:
            existing = self._operations[full_key]
            # Detect payload tampering (Conflict Detection)
            if existing["amount"] != amount:
                raise ValueError("Idempotency conflict: Amount mismatch for identical key.")
            return True, existing

        op = {
            "status": "succeeded",
            "amount": amount,
            "refund_reference": f"REF-{idempotency_key[:8]}",
        }
        self._operations[full_key] = op
        return False, op
# fmt: on
