"""The service's side of the line to the provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from simulator.live.web import ask
from simulator.service.errors import ConnectionLost, Declined, RateLimited
from simulator.service.payment import FindRefund, RefundOrder

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

    def refund(self, order: RefundOrder, timeout: float, sent: Callable[[], None]) -> str:
        """Asks for a refund; returns the provider's reference for it."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if order.key is not None:
            headers["Idempotency-Key"] = order.key
        body = urlencode(fields_of(order)).encode()
        return str(self._ask("POST", "", timeout, sent, body, headers)["id"])

    def find(self, question: FindRefund, timeout: float, sent: Callable[[], None]) -> str | None:
        """The reference of an intent's refund; None if the provider lists none.

        Refunds can be listed, and not searched by what we wrote on them: all pages are read.
        """
        query = {"limit": "100"}
        while True:
            page = self._ask("GET", f"?{urlencode(query)}", timeout, sent)
            for refund in page["data"]:
                if refund["metadata"].get("intent_id") == question.intent_id:
                    return str(refund["id"])
            if not page["has_more"]:
                return None
            query["starting_after"] = page["data"][-1]["id"]

    def _ask(
        self,
        method: str,
        query: str,
        timeout: float,
        sent: Callable[[], None],
        body: bytes = b"",
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Any:
        authorized = {"Authorization": f"Bearer {API_KEY}", **headers}
        answer = ask(self.url, method, f"/v1/refunds{query}", body, authorized, timeout, sent)
        if answer.status == 200:
            return answer.json
        if answer.status == 429:
            raise RateLimited(float(answer.headers.get("Retry-After") or 1.0))
        # 409: the first request under the key is still under way. 5xx: "treat requests that
        # return 500 errors as indeterminate" (Stripe). Neither says what became of the money.
        if answer.status == 409 or answer.status >= 500:
            raise ConnectionLost(f"the provider answered {answer.status}")
        raise Declined(str(answer.json["error"]["message"]))
