"""Who may have this refund: decided from the session, never from the arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulator.service.balance import order_of
from simulator.service.operations import Operation
from simulator.service.schemas import Session

if TYPE_CHECKING:
    from simulator.service.runtime import Transaction

__all__ = ["FromSession", "Ownership", "RefundPermission"]


@dataclass(frozen=True, slots=True)
class FromSession:
    """Tenant and user are the session's."""

    def __call__(self, session: Session) -> tuple[str, str]:
        return session.tenant_id, session.user_id


@dataclass(frozen=True, slots=True)
class RefundPermission:
    """The session may create refunds at all. Anything unclear is a no."""

    needed: str = "refund:create"

    def __call__(self, session: Session) -> bool:
        return self.needed in session.permissions


@dataclass(frozen=True, slots=True)
class Ownership:
    """The order is the tenant's and the user's own. An order that is not found is not theirs."""

    def __call__(self, tx: Transaction, operation: Operation) -> bool:
        order = order_of(tx, operation.tenant_id, operation.order_id)
        return order is not None and order[0] == operation.user_id
