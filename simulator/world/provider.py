"""The payment provider: it moves money, and remembers keys if it is sent any.

The record of a key is atomic with the effect: there is no payment without its key, and no key
without its result. What a key means is a setting (`ProviderSettings.semantics`), after the
interfaces that there are: Stripe's first (at least 24 h; the first result is replayed, errors
too), its second (failed work is tried again), the IETF's draft, and none.
"""

from __future__ import annotations

from collections import defaultdict, deque
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simulator.service.errors import Declined, InProgress, RateLimited, ServerError
from simulator.service.payment import Accepted, CameToNothing
from simulator.service.schemas import money
from simulator.world.clock import microseconds
from simulator.world.faults import RESTART_AFTER, Fault

if TYPE_CHECKING:
    from simulator.service.payment import RefundOrder
    from simulator.world.network import Exchange
    from simulator.world.world import World

__all__ = ["Change", "Effect", "Provider"]

RETURNED = "the bank returned the money."
NO_KEY = "400: an idempotency key is missing."
DUPLICATE = "it looks like a duplicate."
OTHER_PARAMETERS = "the idempotency key was used with other parameters."


class Effect(NamedTuple):
    """Money moved. `time` in microseconds, `amount` in minor units.

    Attributes:
        intent: whose; "" if nobody asked us for it.
        source: "" if we asked for it, else "cancellation", "by hand" or "chargeback".
        reference: the provider's name for it.
    """

    time: int
    intent: str
    order_id: str
    amount: int
    currency: str
    key: str | None
    source: str = ""
    tenant_id: str = ""
    reference: str = ""


class Change(NamedTuple):
    """Money of an order that went without a request of ours. Times in microseconds.

    Attributes:
        known: when we had confirmed to know of it.
        reference: the provider's name for it.
    """

    tenant_id: str
    order_id: str
    time: int
    known: int
    reference: str = ""


class Transfer:
    """A refund that the provider has taken on.

    Attributes:
        accepted, ended: when; microseconds.
        state: "pending", "paid" or "failed".
    """

    __slots__ = ("accepted", "ended", "order", "reference", "state")

    def __init__(self, order: RefundOrder, reference: str, now: int) -> None:
        self.order = order
        self.reference = reference
        self.accepted = now
        self.ended: float = inf
        self.state = "pending"

    def end(self, state: str, now: int) -> None:
        """It is paid, or has failed."""
        self.state, self.ended = state, now

    def said(self, seen: float = inf) -> Any:
        """What the provider says of it to whoever asks, as far as it sees at that time."""
        state = self.state if self.ended <= seen else "pending"
        if state == "paid":
            return self.reference
        return CameToNothing(RETURNED) if state == "failed" else Accepted(self.reference)

    def replayed(self) -> Any:
        """What it answers to the same request again."""
        return Declined(RETURNED) if self.state == "failed" else self.said()


class Provider:
    """One provider, in one world.

    Attributes:
        ledger: what it paid, in order.
        declined: intents that it refused, definitely.
        changes: what went without us, and we came to know.
        up: whether it takes connections.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.settings = world.scenario.provider
        self.ledger: list[Effect] = []
        self.declined: set[str] = set()
        self.changes: list[Change] = []
        self.keys: dict[str, tuple[str, RefundOrder, Any, int]] = {}
        self.transfers: list[Transfer] = []
        self.sends: defaultdict[str, int] = defaultdict(int)
        self.recent: deque[int] = deque()
        self.up = True
        self.working: list[Exchange] = []
        self.leg = microseconds(self.settings.leg)
        self._references = 0
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
        if self._in_progress(exchange):
            self.world.note("provider", "limited", exchange.name, text="409 in progress")
            exchange.respond(InProgress(1.0))
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

    def _in_progress(self, exchange: Exchange) -> bool:
        """Whether another request with the same key is being worked on."""
        key = getattr(exchange.request, "key", None)
        if key is None or self.settings.semantics == "none":
            return False
        return any(getattr(other.request, "key", None) == key for other in self.working)

    def _find(self, intent_id: str) -> Any:
        """What it says when asked for a refund: its reference, that it is accepted or came to
        nothing, None, or that it is not asked.
        """
        lag = self.settings.lookup_lag
        if lag is None:
            return Declined("there is no way to ask for a refund.")
        seen = int(self.world.clock.now) - round(lag * 1_000_000)
        for effect in self.ledger:
            if effect.intent == intent_id and effect.time <= seen:
                return effect.reference
        for transfer in self.transfers:
            if transfer.order.intent_id == intent_id and transfer.accepted <= seen:
                return transfer.said(seen)
        return None

    def _new_reference(self, amount: int, currency: str) -> str:
        self._references += 1
        return f"REF-{self._references} {money(amount, currency)}"

    def _answer(self, name: str, order: Any) -> Any:
        if name == "provider.find":
            return self._find(order.intent_id)
        semantics = self.settings.semantics
        if order.key is None and semantics == "ietf":
            return self._reject(name, NO_KEY)
        if order.key is None or semantics == "none":
            _, result = self._carry(name, order)
            return result.said() if isinstance(result, Transfer) else result
        now = int(self.world.clock.now)
        found = self.keys.get(order.key)
        if found is not None and now - found[3] < self._lifetime:
            endpoint, first, result, _ = found
            elsewhere = endpoint != name and self.settings.covers_endpoint
            if elsewhere or _parameters(first) != _parameters(order):
                return self._reject(name, OTHER_PARAMETERS)
            again = semantics == "stripe-v2" and isinstance(result, Exception)
            if not again:
                self.world.note("provider", "replayed", name, text=order.intent_id)
                return result.replayed() if isinstance(result, Transfer) else result
        done, result = self._carry(name, order)
        # What is kept is what was answered, an error too; or, the other way, what was done.
        self.keys[order.key] = (name, order, done if semantics == "stripe-v2" else result, now)
        return result.replayed() if isinstance(result, Transfer) else result

    def _carry(self, name: str, order: RefundOrder) -> tuple[Any, Any]:
        """Carries out a request that no key stands for: what was done, and what is answered."""
        settings = self.settings
        if name == "provider.quote":
            quote = f"QUOTE {money(order.amount, order.currency)}"
            return quote, quote
        self.sends[order.intent_id] += 1
        fails = self.sends[order.intent_id] <= settings.errors
        if fails and settings.error_when == "before":
            error = self._fail(name)
            return error, error
        result: Any = self._refuse(name, order)
        if result is None and settings.settles_after is not None:
            result = self._accept(order, settings.settles_after)
        elif result is None:
            result = self._pay(name, order)
        return result, (self._fail(name) if fails else result)

    def _fail(self, name: str) -> ServerError:
        self.world.note("provider", "error", name, text="500 Internal Server Error")
        return ServerError("the provider answered 500")

    def _decline(self, name: str, order: RefundOrder, reason: str) -> Declined:
        """A no to the refund."""
        self.declined.add(order.intent_id)
        return self._reject(name, reason)

    def _reject(self, name: str, reason: str) -> Declined:
        """A no to this request, which is no word about the refund that it asks for."""
        self.world.note("provider", "declined", name, text=reason)
        return Declined(reason)

    def _refuse(self, name: str, order: RefundOrder) -> Declined | None:
        """The provider's own rules, if one of them forbids this refund."""
        settings = self.settings
        if order.intent_id in settings.declines:
            return self._decline(name, order, "the card was closed.")
        if order.intent_id in settings.contradicts:
            self._pay_later(order, settings.contradicts_after)
            return self._decline(name, order, "the bank refused it.")
        if settings.duplicate_window is None and not settings.checks_balance:
            return None
        which = (self.world.scenario.intent(order.intent_id).tenant_id, order.order_id)
        of_order = self._of_order(which)
        if settings.duplicate_window is not None:
            since = int(self.world.clock.now) - microseconds(settings.duplicate_window)
            if any(amount == order.amount and time > since for amount, time in of_order):
                # No word on what is owed: another one like it was paid just now.
                self.world.note("provider", "declined", name, text=DUPLICATE)
                return Declined(DUPLICATE, takes_for_duplicate=True)
        if settings.checks_balance:
            orders = self.world.scenario.orders
            captured = sum(each.captured for each in orders if (each.tenant_id, each.id) == which)
            if sum(amount for amount, _ in of_order) + order.amount > captured:
                return self._decline(name, order, "it is more than was captured.")
        return None

    def _of_order(self, which: tuple[str, str]) -> list[tuple[int, int]]:
        """What it has paid of an order, or has taken on to pay: (minor units, when)."""
        paid = [(e.amount, e.time) for e in self.ledger if (e.tenant_id, e.order_id) == which]
        return paid + [
            (transfer.order.amount, transfer.accepted)
            for transfer in self.transfers
            if transfer.state == "pending"
            and self.world.scenario.intent(transfer.order.intent_id).tenant_id == which[0]
            and transfer.order.order_id == which[1]
        ]

    def _pay(self, name: str, order: RefundOrder) -> str:
        return self._move(name, order, self._new_reference(order.amount, order.currency))

    def _move(self, name: str, order: RefundOrder, reference: str) -> str:
        effect = self._effect(order, reference)
        self.ledger.append(effect)
        self.world.note("provider", "effect", name, amount=order.amount, text=order.intent_id)
        self.world.report("created", effect)
        self.world.report("succeeded", effect)
        return reference

    def _pay_later(self, order: RefundOrder, seconds: float) -> None:
        """Pays what was refused."""

        def pay(_: Any) -> None:
            self._pay("settlement", order)

        self.world.clock.after(microseconds(seconds), pay)

    def _effect(self, order: RefundOrder, reference: str) -> Effect:
        """The money that this order moves, now."""
        return Effect(
            int(self.world.clock.now),
            order.intent_id,
            order.order_id,
            order.amount,
            order.currency,
            order.key,
            tenant_id=self.world.scenario.intent(order.intent_id).tenant_id,
            reference=reference,
        )

    def _accept(self, order: RefundOrder, seconds: float) -> Transfer:
        """Takes a refund on; the money moves later, or not at all."""
        world = self.world
        reference = self._new_reference(order.amount, order.currency)
        transfer = Transfer(order, reference, int(world.clock.now))
        self.transfers.append(transfer)
        world.note("provider", "note", "provider.refund", text="accepted, to be paid later")

        def settle(_: Any) -> None:
            if order.intent_id in self.settings.fails_to_settle:
                transfer.end("failed", int(world.clock.now))
                self._decline("settlement", order, RETURNED)
                world.report("failed", self._effect(order, reference))
            else:
                transfer.end("paid", int(world.clock.now))
                self._move("settlement", order, reference)

        world.clock.after(microseconds(seconds), settle)
        return transfer

    def by_hand(
        self, order_id: str, tenant_id: str, amount: int, source: str, booked: bool = False
    ) -> None:
        """Money that goes without a request of ours.

        `booked`: our books have it already, so its report would be no news to them.
        """
        world = self.world
        (currency,) = {
            order.currency
            for order in world.scenario.orders
            if (order.id, order.tenant_id) == (order_id, tenant_id)
        }
        now = int(world.clock.now)
        reference = self._new_reference(amount, currency)
        effect = Effect(now, "", order_id, amount, currency, None, source, tenant_id, reference)
        self.ledger.append(effect)
        world.note("provider", "effect", source, peer=source, amount=amount, text=order_id)
        if booked:
            self.changes.append(Change(tenant_id, order_id, now, now, reference))
        else:
            kind = "disputed" if source == "chargeback" else "refunded"
            world.report(kind, effect)

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


def _parameters(order: RefundOrder) -> tuple[str, int, str]:
    """What has to be equal under one key."""
    return order.order_id, order.amount, order.currency
