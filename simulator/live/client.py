"""The service's side of the line to the provider."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from simulator.live.web import Answered, ask
from simulator.service.errors import ConnectionLost, Declined, RateLimited
from simulator.service.pipeline import RefundOrder

__all__ = ["API_KEY", "HttpClient", "fields_of"]

API_KEY = "sk_test_course"
"""Opens nothing: the provider here takes every key that begins like one for tests."""


def fields_of(order: RefundOrder) -> dict[str, str]:
    """What is asked for, in the API's words."""
    return {
        "payment_intent": order.order_id,
        "amount": str(order.amount),
        "currency": order.currency.lower(),
        "metadata[intent_id]": order.intent_id,
    }


class HttpClient:
    """Plain HTTP."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, order: RefundOrder, timeout: float, sent: Callable[[], None]) -> str:
        """Asks for a refund; returns the provider's reference for it."""
        headers = {
            "Authorization": f"Bearer {API_KEY}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        if order.key is not None:
            headers["Idempotency-Key"] = order.key
        body = urlencode(fields_of(order)).encode()
        answer = ask(self.url, "POST", "/v1/refunds", body, headers, timeout, sent)
        return self._meaning(answer)

    def _meaning(self, answer: Answered) -> str:
        if answer.status == 200:
            return str(answer.json["id"])
        if answer.status == 429:
            raise RateLimited(float(answer.headers.get("Retry-After") or 1.0))
        # 409: the first request under the key is still under way. 5xx: "treat requests that
        # return 500 errors as indeterminate" (Stripe). Neither says what became of the money.
        if answer.status == 409 or answer.status >= 500:
            raise ConnectionLost(f"the provider answered {answer.status}")
        raise Declined(str(answer.json["error"]["message"]))
