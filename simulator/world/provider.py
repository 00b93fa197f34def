"""The payment provider: it moves money, and remembers keys if it is sent any.

The record of a key is atomic with the effect: there is no payment without its key, and no key
without its result. The same key with other parameters is an error. After its lifetime a key
is forgotten, and the next request under it is a new one (Stripe's first API: at least 24 h).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from simulator.service.errors import Declined, RateLimited
from simulator.service.schemas import money
from simulator.world.clock import microseconds
from simulator.world.faults import RESTART_AFTER, Fault

if TYPE_CHECKING:
    from simulator.service.payment import RefundOrder
    from simulator.world.network import Exchange
    from simulator.world.world import World

__all__ = ["Effect", "Provider"]


class Effect(NamedTuple):
    """Money moved. `time` in microseconds, `amount` in minor units."""

    time: int
    intent: str
    order_id: str
    amount: int
    currency: str
    key: str | None


class Provider:
    """One provider, in one world.

    Attributes:
        ledger: what it paid, in order.
        declined: intents that it refused, definitely.
        up: whether it takes connections.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.settings = world.scenario.provider
        self.ledger: list[Effect] = []
        self.declined: set[str] = set()
        self.keys: dict[str, tuple[RefundOrder, Any, int]] = {}
        self.recent: deque[int] = deque()
        self.up = True
        self.working: list[Exchange] = []
        self.leg = microseconds(self.settings.leg)
        self._work = microseconds(self.settings.work)
        self._lifetime = microseconds(self.settings.key_lifetime)

    def receive(self, exchange: Exchange) -> None:
        """Takes a request that has arrived."""
        if not self.up:
            exchange.broken()
            return
        busy = self._too_many()
        if busy is not None:
            self.world.note("provider", "limited", exchange.name, text=str(busy))
            exchange.respond(busy)
            return
        self.working.append(exchange)
        self.world.clock.after(self._work, lambda _: self._carry_out(exchange))

    def _carry_out(self, exchange: Exchange) -> None:
        if exchange not in self.working:
            return  # the provider died with it in hand
        self.working.remove(exchange)
        fault: Fault | None = exchange.fault
        dies = fault.when if fault is not None and fault.kind == "crash_provider" else None
        if dies == "before":
            self.working.append(exchange)
            self.go_down(RESTART_AFTER, crashed=True)
            return
        result = self._answer(exchange.name, exchange.request)
        if dies == "after":
            self.working.append(exchange)
            self.go_down(RESTART_AFTER, crashed=True)
            return
        exchange.respond(result)

    def _find(self, intent_id: str) -> Any:
        """What it says when asked for a refund: its reference, None, or that it is not asked."""
        lag = self.settings.lookup_lag
        if lag is None:
            return Declined("there is no way to ask for a refund.")
        seen = int(self.world.clock.now) - round(lag * 1_000_000)
        for number, effect in enumerate(self.ledger):
            if effect.intent == intent_id and effect.time <= seen:
                return self._reference(number + 1, effect.amount, effect.currency)
        return None

    @staticmethod
    def _reference(number: int, amount: int, currency: str) -> str:
        return f"REF-{number} {money(amount, currency)}"

    def _answer(self, name: str, order: Any) -> Any:
        world, now = self.world, int(self.world.clock.now)
        if name == "provider.find":
            return self._find(order.intent_id)
        if order.key is not None:
            found = self.keys.get(order.key)
            if found is not None and now - found[2] < self._lifetime:
                first, result, _ = found
                if (first.order_id, first.amount, first.currency) != (
                    order.order_id,
                    order.amount,
                    order.currency,
                ):
                    reason = "the idempotency key was used with other parameters."
                    world.note("provider", "declined", name, text=reason)
                    return Declined(reason)
                world.note("provider", "replayed", name, text=order.intent_id)
                return result
        result = self._pay(name, order, now)
        if order.key is not None:
            self.keys[order.key] = (order, result, now)
        return result

    def _pay(self, name: str, order: RefundOrder, now: int) -> Any:
        if order.intent_id in self.settings.declines:
            self.declined.add(order.intent_id)
            reason = "the card was closed."
            self.world.note("provider", "declined", name, text=reason)
            return Declined(reason)
        self.ledger.append(
            Effect(now, order.intent_id, order.order_id, order.amount, order.currency, order.key)
        )
        self.world.note("provider", "effect", name, amount=order.amount, text=order.intent_id)
        return self._reference(len(self.ledger), order.amount, order.currency)

    def _too_many(self) -> RateLimited | None:
        limit = self.settings.limit
        if limit is None:
            return None
        now, window = int(self.world.clock.now), microseconds(self.settings.limit_window)
        while self.recent and now - self.recent[0] >= window:
            self.recent.popleft()
        if len(self.recent) >= limit:
            return RateLimited((self.recent[0] + window - now) / 1_000_000)
        self.recent.append(now)
        return None

    def go_down(self, seconds: float, crashed: bool = False) -> None:
        """Refuses connections for `seconds`; what it was working on is lost."""
        world = self.world
        if not self.up:
            return
        self.up = False
        world.note("provider", "down", "crash" if crashed else "outage")
        working, self.working = self.working, []
        for exchange in working:
            exchange.broken()
        if world.heal:
            world.clock.after(microseconds(seconds), self._come_up)

    def _come_up(self, _: Any) -> None:
        self.up = True
        self.world.note("provider", "up", "")
