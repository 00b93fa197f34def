"""The same line to the provider, spoken by Stripe's own Python client."""

from __future__ import annotations

import threading
from collections.abc import Callable

import stripe

from simulator.live.client import API_KEY
from simulator.service.errors import CallTimeout, ConnectionLost, Declined, RateLimited
from simulator.service.payment import FindRefund, RefundOrder

__all__ = ["StripeClient", "meaning", "stripe_at"]

DEFINITE = (
    stripe.CardError,
    stripe.IdempotencyError,
    stripe.InvalidRequestError,
    stripe.AuthenticationError,
    stripe.PermissionError,
)
"""Errors that say: this request was refused, and moved nothing."""


def stripe_at(url: str, timeout: float) -> stripe.StripeClient:
    """Stripe's client, pointed at our server, with `timeout` in seconds of the wall's clock.

    By default it retries twice of its own accord. One layer of retries is enough: ours.
    """
    return stripe.StripeClient(
        API_KEY,
        base_addresses={"api": url},
        max_network_retries=0,
        http_client=stripe.RequestsClient(timeout=timeout),
    )


class StripeClient:
    """Asks for refunds through Stripe's client.

    If it is given no key it invents one for every call, which protects its own retries and
    nothing else: a design without a key pays twice with it, too.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._clients: dict[float, stripe.StripeClient] = {}
        self._lock = threading.Lock()

    def refund(self, order: RefundOrder, timeout: float, sent: Callable[[], None]) -> str:
        """Asks for a refund; returns the provider's reference for it.

        Stripe's client sends and waits in one go, so `sent` comes with the answer.
        """
        try:
            refund = self._client(timeout).v1.refunds.create(
                {
                    "payment_intent": order.order_id,
                    "amount": order.amount,
                    "currency": order.currency.lower(),
                    "metadata": {"intent_id": order.intent_id},
                },
                {} if order.key is None else {"idempotency_key": order.key},
            )
        except stripe.StripeError as error:
            raise meaning(error) from error
        finally:
            sent()
        return refund.id

    def find(self, question: FindRefund, timeout: float, sent: Callable[[], None]) -> str | None:
        """The reference of an intent's refund; None if the provider lists none."""
        try:
            pages = self._client(timeout).v1.refunds.list({"limit": 100})
            for refund in pages.auto_paging_iter():
                metadata = refund.to_dict()["metadata"]
                if metadata.get("intent_id") == question.intent_id:
                    return str(refund.id)
        except stripe.StripeError as error:
            raise meaning(error) from error
        finally:
            sent()
        return None

    def _client(self, timeout: float) -> stripe.StripeClient:
        with self._lock:
            if timeout not in self._clients:
                self._clients[timeout] = stripe_at(self.url, timeout)
            return self._clients[timeout]


def meaning(error: stripe.StripeError) -> Exception:
    """What an error of Stripe's client tells the service about the money."""
    if isinstance(error, stripe.RateLimitError):
        return RateLimited(float((error.headers or {}).get("Retry-After") or 1.0))
    if isinstance(error, DEFINITE):
        return Declined(str(error.user_message or error))
    if isinstance(error, stripe.APIConnectionError) and "Timeout" in str(error):
        return CallTimeout(str(error))
    # No connection, a key in progress (409), or a 500: "indeterminate", as Stripe's guide says.
    return ConnectionLost(str(error))
