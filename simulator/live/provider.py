"""The payment provider: an HTTP server that speaks as much of Stripe's first API as refunds need.

`POST /v1/refunds` with `Idempotency-Key`, `GET /v1/refunds/{id}`, `GET /v1/refunds`. A key is
kept for 24 h; the first result under it is replayed, a 500 included; other parameters under it
are an error; one in progress is 409; a 429 is answered before the key is looked at, and is not
stored (Stripe's API reference, "Idempotent requests", and its guide to low-level errors).
Like a payout, it pays what it is asked to pay, and checks no balance.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from simulator.live.clock import Clock
from simulator.live.ledger import Ledger, Payment
from simulator.live.stops import Stops
from simulator.live.trouble import AT_THE_DOOR, AT_WORK, Dice, Trouble
from simulator.live.web import Handler, Server, serve

__all__ = ["KEY_LIFETIME", "Provider", "start_provider"]

KEY_LIFETIME = 24 * 3600.0
"""Seconds of the service for which a key is remembered."""

RETRY_AFTER = 1
"""What a 429 asks for, in seconds."""


class Provider:
    """What the server does, whatever asks it."""

    def __init__(
        self, path: Path, clock: Clock, trouble: Trouble, stops: Stops | None = None
    ) -> None:
        self.ledger = Ledger(path)
        self.clock = clock
        self.trouble = trouble
        self.stops = stops or Stops()
        self.at_the_door = Dice(trouble, AT_THE_DOOR, self._struck)
        self.at_work = Dice(trouble, AT_WORK, self._struck)
        self.working: set[str] = set()

    def _struck(self, kind: str) -> None:
        self.stops.report("fault", kind)

    def refund(self, form: dict[str, str], key: str | None) -> tuple[int, str, bool] | None:
        """(status, body, whether replayed), or None: never answer."""
        fault = self.at_the_door.throw(form.get("metadata[intent_id]", ""))
        if fault == "too_many":
            return 429, _error("invalid_request_error", "Too many requests.", "rate_limit"), False
        answer = self._carry_out(form, None) if key is None else self._under_key(form, key)
        return None if fault == "withhold" else answer

    def _under_key(self, form: dict[str, str], key: str) -> tuple[int, str, bool]:
        with self.ledger.lock:
            if key in self.working:
                text = "Another request with this key is in progress."
                return 409, _error("idempotency_error", text, "idempotency_key_in_use"), False
            self.working.add(key)
        try:
            stored = self.ledger.stored(key, since=self.clock.now() - KEY_LIFETIME)
            if stored is None:
                return self._carry_out(form, key)
            parameters, status, body = stored
            if parameters != _canonical(form):
                text = "The key was used with other parameters."
                return 400, _error("idempotency_error", text), False
            return status, body, True
        finally:
            self.working.discard(key)

    def _carry_out(self, form: dict[str, str], key: str | None) -> tuple[int, str, bool]:
        problem = _invalid(form)
        if problem is not None:
            return 400, _error("invalid_request_error", problem), False  # not stored
        intent_id = form.get("metadata[intent_id]", "")
        fault = self.at_work.throw(intent_id)
        now = self.clock.now()
        payment: Payment | None = None
        if intent_id in self.trouble.declines:
            status, body = 402, _error("card_error", "The card was closed.", "card_declined")
        elif fault == "error_before":
            status, body = 500, _error("api_error", "Something went wrong on our side.")
        else:
            payment = Payment(
                0,
                now,
                f"re_{uuid.uuid4().hex[:24]}",
                intent_id,
                form["payment_intent"],
                int(form["amount"]),
                form.get("currency", "usd").upper(),
                key,
            )
            status, body = 200, json.dumps(refund_object(payment))
            if fault == "error_after":
                status, body = 500, _error("api_error", "Something went wrong on our side.")
        self.stops.at("effect", "before")
        self.ledger.write(payment, key, (_canonical(form), status, body), now)
        self.stops.at("effect", "after")
        return status, body, False

    def retrieve(self, reference: str) -> tuple[int, str]:
        """One refund."""
        found = self.ledger.find(reference)
        if found is None:
            text = f"No such refund: '{reference}'"
            return 404, _error("invalid_request_error", text, "resource_missing")
        return 200, json.dumps(refund_object(found))

    def listed(self, query: dict[str, str]) -> tuple[int, str]:
        """One page of refunds, newest first: `payment_intent`, `limit`, `starting_after`."""
        limit = min(100, int(query.get("limit", "10")))
        last = self.ledger.find(query.get("starting_after", ""))
        before = None if last is None else last.number
        found = self.ledger.listed(query.get("payment_intent"), before, limit + 1)
        value = {
            "object": "list",
            "url": "/v1/refunds",
            "has_more": len(found) > limit,
            "data": [refund_object(payment) for payment in found[:limit]],
        }
        return 200, json.dumps(value)


def refund_object(payment: Payment) -> dict[str, Any]:
    """A refund as Stripe shows it, in part."""
    return {
        "id": payment.reference,
        "object": "refund",
        "amount": payment.amount,
        "currency": payment.currency.lower(),
        "payment_intent": payment.order_id,
        "metadata": {"intent_id": payment.intent_id},
        "status": "succeeded",
        "created": int(payment.at),
    }


def _canonical(form: dict[str, str]) -> str:
    # Metadata moves no money, and is no part of what a key stands for (as in world/).
    return json.dumps(sorted(item for item in form.items() if not item[0].startswith("metadata")))


def _error(kind: str, message: str, code: str | None = None) -> str:
    error = {"type": kind, "message": message}
    if code is not None:
        error["code"] = code
    return json.dumps({"error": error})


def _invalid(form: dict[str, str]) -> str | None:
    if not form.get("payment_intent"):
        return "Missing required param: payment_intent."
    amount = form.get("amount", "")
    if not amount.isascii() or not amount.isdigit() or int(amount) == 0:
        return f"Invalid positive integer: amount={amount!r}."
    return None


def start_provider(
    path: Path, clock: Clock, trouble: Trouble, port: int = 0, stops: Stops | None = None
) -> Server:
    """Starts the server in this process; returns it (`.url`, `.shutdown()`)."""
    provider = Provider(path, clock, trouble, stops)

    class ProviderHandler(Handler):
        def do_POST(self) -> None:  # noqa: N802 - the base's name
            body = self.body().decode()
            if urlsplit(self.path).path != "/v1/refunds":
                return self.unknown()
            if not self.authorized():
                return None
            answer = provider.refund(dict(parse_qsl(body)), self.headers.get("Idempotency-Key"))
            if answer is None:
                return self.say_nothing()
            status, text, replayed = answer
            headers = {"Request-Id": f"req_{uuid.uuid4().hex[:14]}"}
            if replayed:
                headers["Idempotent-Replayed"] = "true"
            if status == 429:
                headers["Retry-After"] = str(RETRY_AFTER)
            return self.reply(status, text.encode(), headers)

        def do_GET(self) -> None:  # noqa: N802
            parts = urlsplit(self.path)
            if not self.authorized():
                return
            if parts.path == "/v1/refunds":
                status, text = provider.listed(dict(parse_qsl(parts.query)))
            elif parts.path.startswith("/v1/refunds/"):
                status, text = provider.retrieve(parts.path.rsplit("/", 1)[1])
            else:
                self.unknown()
                return
            self.reply(status, text.encode())

        def authorized(self) -> bool:
            if self.headers.get("Authorization", "").startswith("Bearer sk_test_"):
                return True
            self.reply(401, _error("invalid_request_error", "Invalid API key.").encode())
            return False

        def unknown(self) -> None:
            text = f"Unrecognized request URL ({self.command}: {self.path})."
            self.reply(404, _error("invalid_request_error", text).encode())

    server = serve(ProviderHandler, port)
    server.closing = provider.ledger.connection.close
    return server
