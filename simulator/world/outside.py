"""What happens to an order without us: a colleague's hand, the bank, the provider's dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulator.service.balance import BOOK
from simulator.service.cancellation import cancel_order

if TYPE_CHECKING:
    from simulator.service.runtime import Transaction
    from simulator.world.runtime import VirtualRuntime
    from simulator.world.settings import Outside
    from simulator.world.world import World

__all__ = ["happen"]

TRY_AGAIN = 60.0
TRIES = 3000


def happen(rt: VirtualRuntime, world: World, event: Outside) -> Any:
    """Waits for its time, and lets it happen."""
    yield from rt.sleep(event.at)
    if event.what != "cancel":
        source = "chargeback" if event.what == "chargeback" else "by hand"
        world.provider.by_hand(event.order_id, event.tenant_id, event.amount, source)
        return
    for _ in range(TRIES):
        # Cancelled in our books and paid back at the dashboard, in one instant: what could
        # go wrong between the two is the colleague's story, not this one.
        amount = world.in_one_instant("back office", cancel_and_pay, world, event)
        if amount is not None:
            return
        yield from rt.sleep(TRY_AGAIN)


def cancel_and_pay(tx: Transaction, world: World, event: Outside) -> int | None:
    """The colleague's click; None if the order cannot be cancelled now."""
    order = cancel_order(tx, event.tenant_id, event.order_id)
    if order is None:
        return None
    left = max(0, order.captured - order.refunded - order.disputed)
    which = {"tenant_id": event.tenant_id, "order_id": event.order_id}
    tx.execute(BOOK, {**which, "amount": left})
    if left:
        world.provider.by_hand(event.order_id, event.tenant_id, left, "cancellation", booked=True)
    return left
