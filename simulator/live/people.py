"""Those whom nobody kills: the customers, their agent, and a broker that forgets.

They live in the parent process and are reached over HTTP, like everybody else.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from simulator.live.clock import Clock
from simulator.live.web import Handler, Server, ask, serve
from simulator.service.answers import Answer
from simulator.service.errors import ConnectionLost, Silence
from simulator.service.operations import Operation
from simulator.service.schemas import Session, ToolCall
from simulator.service.worker import Message

__all__ = [
    "Agent",
    "BrokerClient",
    "Customers",
    "Told",
    "Wish",
    "notify",
    "session_from",
    "start_customers",
]

PATIENCE = 15.0
"""Seconds of the service for which an agent waits for its tool."""

RESUBMITS = 9
"""How often the agent submits again after silence."""

LONGEST_WAIT = 60.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What a customer wants, once. `amount` as the model writes it, for example "50.00"."""

    intent_id: str
    tenant_id: str
    user_id: str
    order_id: str
    amount: str

    def call(self) -> ToolCall:
        """The tool call that the model makes of it."""
        arguments = {
            "order_id": self.order_id,
            "amount": self.amount,
            "refund_request_id": f"refund-{self.intent_id}",
        }
        return ToolCall(f"call-{self.intent_id}", "issue_refund", arguments)

    def session(self) -> Session:
        """The session of the customer who wants it."""
        return Session(self.user_id, self.tenant_id, frozenset({"refund:create"}), self.intent_id)


@dataclass(frozen=True, slots=True)
class Told:
    """A statement that a customer has read. `at` in seconds of the service."""

    at: float
    intent_id: str
    kind: str
    text: str


class Customers:
    """What they were told, in order. Their app never shows an older statement after a newer."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.told: list[Told] = []
        self.messages: deque[dict[str, Any]] = deque()
        self._versions: dict[str, int] = {}
        self._lock = threading.Lock()

    def tell(self, intent_id: str, answer: Answer) -> None:
        """Shows a statement, unless a newer one was shown before."""
        with self._lock:
            if answer.version is not None:
                if answer.version < self._versions.get(intent_id, 0):
                    return
                self._versions[intent_id] = answer.version
            self.told.append(Told(self.clock.now(), intent_id, answer.kind, answer.text))


def start_customers(customers: Customers) -> Server:
    """Starts the server on which customers, and the broker, can be reached."""

    class PeopleHandler(Handler):
        def do_POST(self) -> None:  # noqa: N802 - the base's name
            value = json.loads(self.body() or b"null")
            if self.path == "/tell":
                customers.tell(value.pop("intent_id"), Answer(**value))
                self.reply_json(200, "read")
            elif self.path == "/publish":
                customers.messages.append(value)
                self.reply_json(200, "taken")
            elif self.path == "/take":
                self.reply_json(200, customers.messages.popleft() if customers.messages else None)
            else:
                self.reply_json(404, "unknown")

    return serve(PeopleHandler)


def notify(url: str) -> Callable[..., Any]:
    """The service's call `customer.notify`."""

    def send(message: Message, timeout: float, sent: Callable[[], None]) -> Any:
        value = {"intent_id": message.intent_id, **asdict(message.answer)}
        return _post(url, "/tell", value, timeout, sent)

    return send


class BrokerClient:
    """The service's calls `broker.publish` and `broker.take`."""

    def __init__(self, url: str) -> None:
        self.url = url

    def publish(self, operation: Operation, timeout: float, sent: Callable[[], None]) -> Any:
        """Hands over a message; the broker keeps it in memory until somebody takes it."""
        return _post(self.url, "/publish", operation._asdict(), timeout, sent)

    def take(self, nothing: None, timeout: float, sent: Callable[[], None]) -> Operation | None:
        """The next message, if there is one. Whoever takes it has the only copy."""
        value = _post(self.url, "/take", nothing, timeout, sent)
        return None if value is None else Operation(**value)


def _post(url: str, path: str, value: Any, timeout: float, sent: Callable[[], None]) -> Any:
    answer = ask(url, "POST", path, json.dumps(value).encode(), timeout=timeout, sent=sent)
    if answer.status != 200:
        raise ConnectionLost(f"{url}{path} answered {answer.status}")
    return answer.json


class Agent:
    """Submits wishes to the backends, and tells the customers what it hears.

    When it hears nothing it submits again, to the next backend, as its framework would.

    Args:
        addresses: gives the backends' URLs as they are now; a backend that is being
            restarted has None.
        over: whether the run is over, and waiting for an answer is in vain.
    """

    def __init__(
        self,
        clock: Clock,
        customers: Customers,
        addresses: Callable[[], Sequence[str | None]],
        over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.clock = clock
        self.customers = customers
        self.addresses = addresses
        self.over = over

    def submit(self, wish: Wish, first: int) -> Answer:
        """One turn, from the wish to what the customer is told; `first` picks the backend."""
        call, session = wish.call(), wish.session()
        value = {
            "call": {
                "call_id": call.call_id,
                "name": call.name,
                "arguments": dict(call.arguments),
            },
            "session": {**asdict(session), "permissions": sorted(session.permissions)},
        }
        # With a version: a follow-up may have overtaken all these tries, and is the newer word.
        answer = Answer("verifying", "I have no answer yet.", version=1)
        for turn in range(RESUBMITS + 1):
            if self.over():
                break
            addresses = self.addresses()
            try:
                url = addresses[(first + turn) % len(addresses)]
                if url is None:
                    raise ConnectionLost("nobody listens there")
                patience = self.clock.real(PATIENCE)
                answer = Answer(**_post(url, "/refund", value, patience, lambda: None))
                break
            except Silence:
                self.clock.sleep(min(LONGEST_WAIT, 2.0**turn))
        self.customers.tell(wish.intent_id, answer)
        return answer


def session_from(value: dict[str, Any]) -> Session:
    """A session as it travels."""
    return Session(**{**value, "permissions": frozenset(value["permissions"])})
