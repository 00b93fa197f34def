"""A provider that says no and pays, and one whose keys do not know their endpoint."""

from __future__ import annotations

from typing import Any

import pytest

from simulator import Scenario, explore
from simulator.service.answers import Answer
from simulator.service.designs import SAFE
from simulator.service.errors import Declined
from simulator.service.payment import RefundOrder
from simulator.service.webhooks import IgnoreWebhooks
from simulator.world.settings import ProviderSettings, WebhookSettings


def test_what_was_refused_and_paid_is_a_question_for_a_human_whatever_goes_wrong_once() -> None:
    scenario = Scenario.one_refund().but(
        provider=ProviderSettings(
            contradicts=frozenset({"intent-1"}), webhooks=WebhookSettings(succeeded=(84.0,))
        )
    )
    found = explore(SAFE, scenario, max_faults=1)
    assert found.counterexample is None, str(found.counterexample)
    deaf = explore(SAFE.but(webhook=IgnoreWebhooks()), scenario, max_faults=0)
    assert deaf.counterexample is not None
    assert {"false_answer", "books_differ"} <= deaf.counterexample.verdict


@pytest.mark.parametrize(("covers", "answer"), [(True, Declined), (False, str)])
def test_a_key_belongs_to_an_endpoint_unless_the_provider_says_otherwise(
    covers: bool, answer: type, world: Any, pipe: Any
) -> None:
    heard: list[Any] = []

    def handle(rt: Any, design: Any, call: Any, session: Any) -> Any:
        order = RefundOrder(session.intent_id, "ORD-1001", 500_00, "USD", "k")
        for name in ("provider.quote", "provider.refund"):
            try:
                heard.append((yield from rt.call(name, order, timeout=2.0)))
            except Declined as error:
                heard.append(error)
        return Answer("verifying", "later")

    provider = ProviderSettings(covers_endpoint=covers)
    made = world(pipe(handle), scenario=Scenario.one_refund().but(provider=provider))
    assert heard[0] == "QUOTE $500.00"
    assert isinstance(heard[1], answer)
    assert made.provider.ledger == [], "neither pays"
