"""Who may have this refund: to be decided from the session, never from the arguments."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.service.balance import OrderRow
from simulator.service.checks import fits_its_types
from simulator.service.operations import Operation
from simulator.service.schemas import Session, ToolCall

__all__ = ["AnyOrder", "Anyone", "FromArguments", "FromSession", "Ownership", "RefundPermission"]


@dataclass(frozen=True, slots=True)
class FromSession:
    """Tenant and user are the session's."""

    def __call__(self, session: Session, call: ToolCall) -> tuple[str, str]:
        return session.tenant_id, session.user_id


@dataclass(frozen=True, slots=True)
class FromArguments:
    """Tenant and user are what the model wrote; the session's only where it wrote nothing.

    Case B23: whoever can speak to the model can name another shop.
    """

    def __call__(self, session: Session, call: ToolCall) -> tuple[str, str]:
        tenant = call.arguments.get("tenant_id", session.tenant_id)
        return str(tenant), str(call.arguments.get("user_id", session.user_id))


@dataclass(frozen=True, slots=True)
class RefundPermission:
    """The session may create refunds at all. Anything unclear is a no."""

    needed: str = "refund:create"

    def __post_init__(self) -> None:
        fits_its_types(self)

    def __call__(self, session: Session) -> bool:
        return self.needed in session.permissions


@dataclass(frozen=True, slots=True)
class Anyone:
    """Asks for no permission."""

    def __call__(self, session: Session) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Ownership:
    """The order is the tenant's and the user's own. An order that is not found is not theirs."""

    def __call__(self, order: OrderRow | None, operation: Operation) -> bool:
        return order is not None and order.user_id == operation.user_id


@dataclass(frozen=True, slots=True)
class AnyOrder:
    """Every order of the tenant will do, whoever asks (trap 12 of the lesson's listing)."""

    def __call__(self, order: OrderRow | None, operation: Operation) -> bool:
        return order is not None
