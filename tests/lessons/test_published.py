"""The lesson's listings: as printed, and each keeps the promise that it makes by itself.

What they promise together is another matter: see test_traps.py.
"""

from __future__ import annotations

import inspect
import random
import re
import sqlite3
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from simulator.lessons.published import (
    CANCEL_ORDER,
    CREATE_TOOL_OPERATIONS,
    AuthContext,
    MockIdempotentStore,
    RefundRequest,
    authorize_refund,
    calculate_retry_delay,
    issue_refund,
    validate_refund_invariants,
)
from simulator.live import transactions
from simulator.service.database import sqlite_schema

# The source lesson, character for character.

SECTION_1 = """\
def issue_refund(order_id: str, amount: float):
    # Payment gateway API call and database update
    ...
"""
SECTION_6 = """\
CREATE TABLE tool_operations (
    id UUID PRIMARY KEY,
    tenant_id UUID NOT NULL,
    idempotency_key TEXT NOT NULL,
    action_type TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    status TEXT NOT NULL, -- pending, processing, succeeded, failed, outcome_unknown
    result JSONB,
    created_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),
    updated_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),

    CONSTRAINT unique_tenant_idempotency
        UNIQUE (tenant_id, idempotency_key)
);
"""
SECTION_7 = """\
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
SECTION_11 = """\
def calculate_retry_delay(
    attempt: int, base_delay: float = 1.0, max_delay: float = 30.0
) -> float:
    # 2^attempt (1s, 2s, 4s, 8s, 16s...)
    exponential_delay = min(max_delay, base_delay * (2 ** attempt))

    # Full Jitter: randomize within the window
    jitter = random.uniform(0, exponential_delay * 0.2)

    return min(max_delay, exponential_delay + jitter)
"""
SECTION_13 = """\
@dataclass(frozen=True)
class AuthContext:
    user_id: str
    tenant_id: str
    permissions: frozenset[str]


def authorize_refund(context: AuthContext) -> None:
    if "refund:create" not in context.permissions:
        raise PermissionError("Access Denied: You do not have refund privileges.")
"""
SECTION_16_SCHEMAS = """\
class RefundRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    order_id: str = Field(min_length=3, max_length=50)
    amount: Decimal = Field(gt=0, max_digits=12, decimal_places=2)
    refund_request_id: str = Field(min_length=8, max_length=100)
"""
SECTION_16_SERVICE = """\
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
"""

FULL = Decimal("500.00")
CALL = {"order_id": "ORD-1001", "amount": "500.00", "refund_request_id": "refund-A"}


# As printed.


@pytest.mark.parametrize(
    ("listing", "printed"),
    [
        ((issue_refund,), SECTION_1),
        ((calculate_retry_delay,), SECTION_11),
        ((AuthContext, authorize_refund), SECTION_13),
        ((validate_refund_invariants, MockIdempotentStore), SECTION_16_SERVICE),
    ],
)
def test_a_listing_is_kept_letter_for_letter(
    listing: tuple[Callable[..., Any], ...], printed: str
) -> None:
    assert "\n\n".join(map(inspect.getsource, listing)) == printed


def test_the_request_is_kept_letter_for_letter_but_for_a_docstring() -> None:
    source = re.sub(r'    """.*?"""\n\n', "", inspect.getsource(RefundRequest), flags=re.DOTALL)
    assert source == SECTION_16_SCHEMAS


@pytest.mark.parametrize(
    ("text", "printed"), [(CREATE_TOOL_OPERATIONS, SECTION_6), (CANCEL_ORDER, SECTION_7)]
)
def test_a_statement_is_kept_letter_for_letter(text: str, printed: str) -> None:
    assert text == printed


def test_postgresql_is_shown_the_statements_of_section_7_with_values_filled_in() -> None:
    filled = CANCEL_ORDER
    for name, value in (
        (":tenant_id", "'shop'"),
        (":order_id", "'ORD-1001'"),
        (":idempotency_key", ":client"),
    ):
        filled = filled.replace(name, value)
    lines = [line for line in filled.splitlines() if line and not line.startswith("--")]
    statements = [text.strip() for text in "\n".join(lines).split(";") if text.strip()]
    assert statements == [
        "BEGIN",
        transactions.LOCK,
        transactions.CANCEL,
        transactions.PUBLISHED,
        "COMMIT",
    ]


# Each by itself.


@pytest.mark.parametrize(
    ("requested", "paid", "already_refunded"),
    [("500.00", "500.00", "0"), ("0.01", "500.00", "499.99"), ("200", "500", "300")],
)
def test_a_refund_within_the_balance_is_valid(
    requested: str, paid: str, already_refunded: str
) -> None:
    validate_refund_invariants(Decimal(requested), Decimal(paid), Decimal(already_refunded))


@pytest.mark.parametrize(
    ("requested", "already_refunded", "sentence"),
    [
        ("600", "0", "Requested refund 600 exceeds refundable balance 500"),
        ("300.01", "200", "exceeds refundable balance 300"),
        ("0.01", "500", "exceeds refundable balance 0"),
        ("0", "0", "strictly positive"),
        ("-5", "0", "strictly positive"),
    ],
)
def test_a_refund_of_nothing_or_of_more_than_is_left_is_not(
    requested: str, already_refunded: str, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        validate_refund_invariants(Decimal(requested), Decimal(500), Decimal(already_refunded))


@given(
    requested=st.decimals(-100, 1000, places=2),
    paid=st.decimals(0, 1000, places=2),
    share=st.floats(0, 1),
)
def test_validity_is_zero_below_requested_up_to_what_remains(
    requested: Decimal, paid: Decimal, share: float
) -> None:
    refunded = (paid * Decimal(share)).quantize(Decimal("0.01"))
    try:
        validate_refund_invariants(requested, paid, refunded)
    except ValueError:
        assert not 0 < requested <= paid - refunded
    else:
        assert 0 < requested <= paid - refunded


def test_who_has_the_permission_passes_and_nobody_else() -> None:
    authorize_refund(AuthContext("user-1", "shop", frozenset({"refund:create", "order:read"})))
    for permissions in (frozenset(), frozenset({"order:read"}), frozenset({"refund:create:all"})):
        with pytest.raises(PermissionError, match="You do not have refund privileges"):
            authorize_refund(AuthContext("user-1", "shop", permissions))


def test_a_context_cannot_be_given_more_rights_later() -> None:
    context = AuthContext("user-1", "shop", frozenset())
    with pytest.raises(FrozenInstanceError):
        context.permissions = frozenset({"refund:create"})  # type: ignore[misc]


def test_the_store_gives_a_repeated_request_its_first_answer() -> None:
    store = MockIdempotentStore()
    known, first = store.get_or_create("shop", "refund-A", FULL)
    again, second = store.get_or_create("shop", "refund-A", FULL)
    assert (known, again) == (False, True)
    assert second is first


def test_the_store_notices_another_amount_under_the_same_key() -> None:
    store = MockIdempotentStore()
    _, first = store.get_or_create("shop", "refund-A", FULL)
    with pytest.raises(ValueError, match="Amount mismatch for identical key"):
        store.get_or_create("shop", "refund-A", Decimal("800.00"))
    assert store.get_or_create("shop", "refund-A", FULL) == (True, first)


def test_the_store_tells_keys_and_plain_tenants_apart() -> None:
    store = MockIdempotentStore()
    for tenant, key in (("shop", "refund-A"), ("shop", "refund-B"), ("other", "refund-A")):
        assert store.get_or_create(tenant, key, FULL)[0] is False


def test_a_well_formed_request_is_read_as_money() -> None:
    assert RefundRequest.model_validate(CALL).amount == FULL


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"currency": "USD"}, "Extra inputs are not permitted"),
        ({"tenant_id": "other"}, "Extra inputs are not permitted"),
        ({"amount": "0"}, "greater than 0"),
        ({"amount": "-5"}, "greater than 0"),
        ({"amount": "NaN"}, "finite number"),
        ({"amount": "1.234"}, "no more than 2 decimal places"),
        ({"amount": "12345678901.00"}, "no more than 10 digits before"),
        ({"order_id": "O1"}, "at least 3 characters"),
        ({"refund_request_id": "short"}, "at least 8 characters"),
    ],
)
def test_a_malformed_request_is_refused(change: dict[str, str], what: str) -> None:
    with pytest.raises(ValidationError, match=what):
        RefundRequest.model_validate(CALL | change)


@given(attempt=st.integers(0, 1023), base=st.floats(0, 10), cap=st.floats(0, 100))
def test_a_delay_is_between_the_exponential_and_a_fifth_above_it_and_never_over_the_cap(
    attempt: int, base: float, cap: float
) -> None:
    exponential = min(cap, base * 2**attempt)
    assert exponential <= calculate_retry_delay(attempt, base, cap) <= min(cap, 1.2 * exponential)


def test_delays_double_from_one_second_to_thirty() -> None:
    random.seed(1)
    for attempt, seconds in enumerate([1, 2, 4, 8, 16]):
        delays = [calculate_retry_delay(attempt) for _ in range(100)]
        assert seconds <= min(delays) < max(delays) <= 1.2 * seconds
    assert calculate_retry_delay(5) == 30


OPERATION = """
    INSERT INTO tool_operations (id, tenant_id, idempotency_key, action_type, request_hash, status)
    VALUES (:id, :tenant, :key, 'refund', 'hash', 'pending')
"""


def test_the_table_takes_one_operation_for_each_tenant_and_key() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(sqlite_schema())
    for number, (tenant, key) in enumerate([("a", "k1"), ("a", "k2"), ("b", "k1")]):
        connection.execute(OPERATION, {"id": str(number), "tenant": tenant, "key": key})
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE constraint failed"):
        connection.execute(OPERATION, {"id": "9", "tenant": "a", "key": "k1"})
    connection.close()


def test_the_stub_of_section_1_does_nothing() -> None:
    assert issue_refund("ORD-1001", 500.0) is None
