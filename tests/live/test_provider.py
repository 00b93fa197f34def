"""The provider's server, the proxy before it, and the plain client."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from simulator.live.client import API_KEY, HttpClient
from simulator.live.clock import Clock
from simulator.live.ledger import Ledger, Payment, payments
from simulator.live.provider import Provider, start_provider
from simulator.live.proxy import start_proxy
from simulator.live.trouble import Trouble
from simulator.live.web import Server, ask
from simulator.service.errors import CallTimeout, ConnectionLost, Declined, RateLimited
from simulator.service.payment import FindRefund, RefundOrder

ORDER = RefundOrder("intent-1", "ORD-1001", 500_00, "USD", "key-1")


@dataclass
class Line:
    """A provider, a proxy before it, and a client."""

    provider: Server
    proxy: Server
    path: Path

    def refund(self, order: RefundOrder = ORDER, timeout: float = 5.0) -> str:
        return HttpClient(self.proxy.url).refund(order, timeout, lambda: None)

    def paid(self) -> int:
        return len(payments(self.path))


@pytest.fixture
def line(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Line]:
    trouble: Trouble = getattr(request, "param", Trouble())
    clock = Clock.start(speed=10.0)
    path = tmp_path / "ledger.db"
    with (
        start_provider(path, clock, trouble) as provider,
        start_proxy(provider.url, clock, trouble) as proxy,
    ):
        yield Line(provider, proxy, path)


def once(kind: str) -> Trouble:
    """This fault strikes the first request, and no other."""
    return Trouble(script={kind: (1,)})


def test_a_key_pays_once_and_its_answer_is_replayed(line: Line) -> None:
    assert line.refund() == line.refund()
    assert line.paid() == 1


def test_without_a_key_every_request_pays(line: Line) -> None:
    order = changed(key=None)
    assert line.refund(order) != line.refund(order)
    assert line.paid() == 2


def test_a_replayed_answer_says_that_it_is_one(line: Line) -> None:
    headers = {"Authorization": f"Bearer {API_KEY}", "Idempotency-Key": "k"}
    body = b"payment_intent=ORD-1001&amount=100"
    answers = [
        ask(line.proxy.url, "POST", "/v1/refunds", body, headers, timeout=5.0) for _ in range(2)
    ]
    assert [answer.headers.get("Idempotent-Replayed") for answer in answers] == [None, "true"]
    assert answers[0].body == answers[1].body


@pytest.mark.parametrize("change", [{"amount": 800_00}, {"order_id": "ORD-2"}])
def test_another_payload_under_the_key_is_refused(line: Line, change: dict[str, object]) -> None:
    line.refund()
    with pytest.raises(Declined, match="other parameters"):
        line.refund(changed(**change))
    assert line.paid() == 1


def changed(**change: object) -> RefundOrder:
    values = {name: getattr(ORDER, name) for name in RefundOrder.__annotations__}
    return RefundOrder(**{**values, **change})


@pytest.mark.parametrize("line", [once("too_many")], indirect=True)
def test_a_429_moves_nothing_and_is_not_stored_under_the_key(line: Line) -> None:
    with pytest.raises(RateLimited) as caught:
        line.refund()
    assert caught.value.retry_after == 1
    assert line.paid() == 0
    line.refund()
    assert line.paid() == 1


@pytest.mark.parametrize(
    ("line", "payments_made"),
    [(once("error_before"), 0), (once("error_after"), 1)],
    indirect=["line"],
)
def test_a_500_is_no_refusal_and_is_replayed_under_its_key(line: Line, payments_made: int) -> None:
    for _ in range(2):
        with pytest.raises(ConnectionLost, match="500"):
            line.refund()
    assert line.paid() == payments_made


@pytest.mark.parametrize(
    ("line", "error", "payments_made"),
    [
        (once("lose_request"), CallTimeout, 0),
        (once("reset_before"), ConnectionLost, 0),
        (once("lose_response"), CallTimeout, 1),
        (once("reset_after"), ConnectionLost, 1),
        (once("withhold"), CallTimeout, 1),
    ],
    indirect=["line"],
)
def test_after_each_silence_the_money_is_where_the_fault_says(
    line: Line, error: type[Exception], payments_made: int
) -> None:
    with pytest.raises(error):
        line.refund(timeout=0.3)
    assert line.paid() == payments_made
    line.refund()
    assert line.paid() == 1, "the second send has the same key"


@pytest.mark.parametrize("line", [once("slow")], indirect=True)
def test_a_slow_request_is_carried_out_after_everybody_has_given_up(line: Line) -> None:
    with pytest.raises(CallTimeout):
        line.refund(timeout=0.1)
    assert line.paid() == 0
    end = time.monotonic() + 5
    while line.paid() == 0 and time.monotonic() < end:
        time.sleep(0.02)
    assert line.paid() == 1


@pytest.mark.parametrize("line", [Trouble(declines=frozenset({"intent-1"}))], indirect=True)
def test_a_decline_is_definite_and_replayed(line: Line) -> None:
    for _ in range(2):
        with pytest.raises(Declined, match="card was closed"):
            line.refund()
    assert line.paid() == 0


def test_a_key_in_progress_is_silence_and_no_refusal(tmp_path: Path) -> None:
    provider = Provider(tmp_path / "ledger.db", Clock.start(), Trouble())
    form = {"payment_intent": "ORD-1001", "amount": "100"}
    provider.working.add("key-1")
    answer = provider.refund(form, "key-1")
    assert answer is not None
    assert answer[0] == 409
    assert payments(tmp_path / "ledger.db") == []
    provider.ledger.connection.close()


def test_the_provider_forgets_a_key_after_24_hours_of_the_services_clock(tmp_path: Path) -> None:
    provider = Provider(tmp_path / "ledger.db", Clock.start(), Trouble())
    form = {"payment_intent": "ORD-1001", "amount": "100"}
    hour = 3600.0
    begin = provider.clock.origin
    for hours, payments_made in [(0, 1), (23.9, 1), (24.1, 2)]:
        provider.clock = Clock(begin - hours * hour)
        provider.refund(form, "key-1")
        assert len(payments(tmp_path / "ledger.db")) == payments_made, f"after {hours} h"
    provider.ledger.connection.close()


@pytest.mark.parametrize("amount", ["", "0", "-5", "1.5", "٣"])
def test_an_amount_that_is_none_is_refused_and_not_stored(line: Line, amount: str) -> None:
    headers = {"Authorization": f"Bearer {API_KEY}", "Idempotency-Key": "k"}
    body = f"payment_intent=ORD-1001&amount={amount}".encode()
    answer = ask(line.proxy.url, "POST", "/v1/refunds", body, headers, timeout=5.0)
    assert answer.status == 400
    good = ask(
        line.proxy.url,
        "POST",
        "/v1/refunds",
        body[: -len(amount.encode()) or None] + b"7",
        headers,
        timeout=5.0,
    )
    assert good.status == 200


def test_nobody_is_paid_without_a_key_to_the_api(line: Line) -> None:
    answer = ask(line.proxy.url, "POST", "/v1/refunds", b"payment_intent=O&amount=1", timeout=5.0)
    assert answer.status == 401
    assert line.paid() == 0


@pytest.mark.parametrize("number", [1, 2, 250])
def test_a_refund_is_found_by_its_intent_on_whatever_page_it_is(line: Line, number: int) -> None:
    ledger = Ledger(line.path)
    for each in range(250):
        payment = Payment(0, 0.0, f"re_{each + 1}", f"intent-{each + 1}", "O", 1, "USD", None)
        ledger.write(payment, None, ("", 200, ""), 0.0)
    ledger.connection.close()
    client = HttpClient(line.proxy.url)
    found = client.find(FindRefund(f"intent-{number}"), 5.0, lambda: None)
    assert found == f"re_{number}"
    assert client.find(FindRefund("intent-251"), 5.0, lambda: None) is None


def test_a_provider_that_is_not_there_is_silence() -> None:
    with pytest.raises(ConnectionLost):
        HttpClient("http://127.0.0.1:9").refund(ORDER, 1.0, lambda: None)
