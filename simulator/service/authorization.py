"""Who may have this refund: decided from the session, never from the arguments."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.service.balance import OrderRow
from simulator.service.operations import Operation
from simulator.service.schemas import Session

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

    def __call__(self, order: OrderRow | None, operation: Operation) -> bool:
        return order is not None and order.user_id == operation.user_id
