"""Stripe's own Python client, pointed at our server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import stripe

from simulator.live.campaign import Campaign
from simulator.live.clock import Clock
from simulator.live.ledger import payments
from simulator.live.provider import start_provider
from simulator.live.proxy import start_proxy
from simulator.live.stripe_client import StripeClient, stripe_at
from simulator.live.trouble import Trouble
from simulator.service import designs
from simulator.service.errors import CallTimeout, ConnectionLost, Declined, RateLimited
from simulator.service.payment import FindRefund, RefundOrder

ASKED = {"payment_intent": "ORD-1001", "amount": 500_00}


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    trouble: Trouble = getattr(request, "param", Trouble())
    clock = Clock.start(speed=10.0)
    with (
        start_provider(tmp_path / "ledger.db", clock, trouble) as provider,
        start_proxy(provider.url, clock, trouble) as proxy,
    ):
        yield proxy.url


def once(kind: str) -> Trouble:
    """This fault strikes the first request: a client that retried by itself would succeed."""
    return Trouble(script={kind: (1,)})


def refund(url: str, key: str | None = "key-1", amount: int = 500_00, timeout: float = 5.0) -> str:
    order = RefundOrder("intent-1", "ORD-1001", amount, "USD", key)
    return StripeClient(url).refund(order, timeout, lambda: None)


def test_a_refund_is_created_retrieved_and_listed(url: str) -> None:
    client = stripe_at(url, timeout=5.0)
    created = client.v1.refunds.create(
        {"payment_intent": "ORD-1001", "amount": 500_00, "metadata": {"intent_id": "intent-1"}},
        {"idempotency_key": "key-1"},
    )
    assert (created.object, created.status, created.amount) == ("refund", "succeeded", 500_00)
    found = client.v1.refunds.retrieve(created.id)
    assert found.metadata is not None
    assert found.metadata["intent_id"] == "intent-1"
    listed = client.v1.refunds.list({"payment_intent": "ORD-1001"})
    assert [entry.id for entry in listed.data] == [created.id]


def test_a_refund_is_found_by_its_intent_on_whatever_page_it_is(url: str) -> None:
    client = StripeClient(url)
    references = [
        client.refund(RefundOrder(f"intent-{n}", "O", 1, "USD", None), 5.0, lambda: None)
        for n in range(102)
    ]
    assert client.find(FindRefund("intent-0"), 5.0, lambda: None) == references[0]
    assert client.find(FindRefund("intent-200"), 5.0, lambda: None) is None


def test_a_refund_that_does_not_exist_is_an_invalid_request(url: str) -> None:
    with pytest.raises(stripe.InvalidRequestError, match="No such refund") as caught:
        stripe_at(url, timeout=5.0).v1.refunds.retrieve("re_nothing")
    assert caught.value.code == "resource_missing"


def test_one_key_is_one_payment_for_stripes_client_too(url: str, tmp_path: Path) -> None:
    assert refund(url) == refund(url)
    assert len(payments(tmp_path / "ledger.db")) == 1


def test_the_key_that_stripes_client_invents_protects_nobody_who_asks_twice(
    url: str, tmp_path: Path
) -> None:
    assert refund(url, key=None) != refund(url, key=None)
    keys = [payment.key for payment in payments(tmp_path / "ledger.db")]
    assert len(set(keys)) == 2
    assert None not in keys, "it does send one"


def test_another_amount_under_the_key_is_stripes_idempotency_error(
    url: str, tmp_path: Path
) -> None:
    refund(url)
    with pytest.raises(Declined, match="other parameters") as caught:
        refund(url, amount=800_00)
    assert isinstance(caught.value.__cause__, stripe.IdempotencyError)
    assert len(payments(tmp_path / "ledger.db")) == 1


@pytest.mark.parametrize(
    ("url", "meaning", "cause", "payments_made"),
    [
        (Trouble(declines=frozenset({"intent-1"})), Declined, stripe.CardError, 0),
        (once("too_many"), RateLimited, stripe.RateLimitError, 0),
        (once("error_before"), ConnectionLost, stripe.APIError, 0),
        (once("error_after"), ConnectionLost, stripe.APIError, 1),
        (once("reset_before"), ConnectionLost, stripe.APIConnectionError, 0),
        (once("reset_after"), ConnectionLost, stripe.APIConnectionError, 1),
        (once("lose_response"), CallTimeout, stripe.APIConnectionError, 1),
        (once("withhold"), CallTimeout, stripe.APIConnectionError, 1),
    ],
    indirect=["url"],
)
def test_each_error_of_stripes_client_tells_the_service_what_it_knows(
    url: str,
    meaning: type[Exception],
    cause: type[stripe.StripeError],
    payments_made: int,
    tmp_path: Path,
) -> None:
    with pytest.raises(meaning) as caught:
        refund(url, timeout=0.3)
    assert isinstance(caught.value.__cause__, cause)
    assert len(payments(tmp_path / "ledger.db")) == payments_made, "and it has not retried"


def test_a_wrong_api_key_is_refused(url: str) -> None:
    client = stripe.StripeClient(
        "sk_live_not_here", base_addresses={"api": url}, max_network_retries=0
    )
    with pytest.raises(stripe.AuthenticationError):
        client.v1.refunds.create({"payment_intent": "ORD-1001", "amount": 1})


def test_the_safe_design_is_right_with_stripes_client_under_losses() -> None:
    trouble = Trouble(lose_response=0.3, reset_after=0.1, too_many=0.1)
    report = Campaign(
        designs.SAFE, refunds=30, kills=4, trouble=trouble, client="stripe", speed=10.0
    ).run()
    assert report.findings == {}, str(report)
    assert sum(map(len, report.accounts.paid.values())) == 30
