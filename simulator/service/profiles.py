"""A customer's profile, and its permanent deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator.service.runtime import Transaction

__all__ = ["delete_profile", "profile_exists"]

EXISTS = "SELECT 1 FROM profiles WHERE tenant_id = :tenant_id AND user_id = :user_id"
DELETE = "DELETE FROM profiles WHERE tenant_id = :tenant_id AND user_id = :user_id"
OPEN_REFUNDS = """
    SELECT COUNT(*) FROM tool_operations o JOIN refunds r ON r.operation_id = o.id
    WHERE o.tenant_id = :tenant_id AND r.user_id = :user_id
      AND o.status NOT IN ('succeeded', 'failed')
"""


def profile_exists(tx: Transaction, tenant_id: str, user_id: str) -> bool:
    """Whether there is (still) such a profile."""
    which = {"tenant_id": tenant_id, "user_id": user_id}
    return tx.execute(EXISTS, which).fetchone() is not None


def delete_profile(tx: Transaction, tenant_id: str, user_id: str) -> str | None:
    """Deletes name and address for ever. Returns why not, or None: it is done.

    Orders, operations and the audit log stay: the law wants them kept, and they name the
    customer by an id that says nothing any more. Not while a refund is open: whom would we tell?
    """
    which = {"tenant_id": tenant_id, "user_id": user_id}
    if tx.execute(OPEN_REFUNDS, which).fetchone()[0]:
        return "a refund of this customer is still open."
    return None if tx.execute(DELETE, which).rowcount == 1 else "there is no such profile."
