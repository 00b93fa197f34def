from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.world.settings import AgentSettings, Intent, Order, ProviderSettings, Submission

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Intent("intent-1", amount=-1), r"Intent\(amount=-1\): give whole minor units"),
        (lambda: Intent("intent-1", amount=0), r"Intent\(amount=0\)"),
        (lambda: Intent("intent-1", amount=500.0), r"Intent\(amount=500\.0\): .*whole"),
        (lambda: Intent("intent-1", amount=True), r"Intent\(amount=True\)"),
        (lambda: Intent("intent-1", currency="XXX"), r"Intent\(currency='XXX'\): .*USD"),
        (lambda: Order(captured=-1), r"Order\(captured=-1\)"),
        (lambda: Order(captured=500.0), r"Order\(captured=500\.0\)"),
        (lambda: Order(currency="usd"), r"Order\(currency='usd'\)"),
        (lambda: Submission("intent-1", at=-1.0), r"Submission\(at=-1\.0\): give seconds"),
        (lambda: Submission("intent-1", at=INF), r"Submission\(at=inf\)"),
        (lambda: AgentSettings(patience=0), r"AgentSettings\(patience=0\): .*more than 0"),
        (lambda: AgentSettings(resubmits=-1), r"AgentSettings\(resubmits=-1\): .*whole number"),
        (lambda: AgentSettings(resubmits=1.5), r"AgentSettings\(resubmits=1\.5\)"),
        (lambda: ProviderSettings(limit=0), r"ProviderSettings\(limit=0\): .*1 or more, or None"),
        (lambda: ProviderSettings(leg=-0.1), r"ProviderSettings\(leg=-0\.1\)"),
        (lambda: ProviderSettings(work=NAN), r"ProviderSettings\(work=nan\)"),
        (lambda: ProviderSettings(key_lifetime=-1), r"ProviderSettings\(key_lifetime=-1\)"),
        (lambda: ProviderSettings(limit_window=0), r"ProviderSettings\(limit_window=0\)"),
        (lambda: ProviderSettings(lookup_lag=-1), r"ProviderSettings\(lookup_lag=-1\)"),
        (lambda: ProviderSettings(leg="0.1"), r"ProviderSettings\(leg='0\.1'\)"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_with_its_value(
    make: Callable[[], Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_the_least_that_makes_sense_is_allowed() -> None:
    assert Intent("intent-1", amount=1)
    assert Order(captured=0)
    assert Submission("intent-1", at=0)
    assert AgentSettings(patience=0.001, resubmits=0)
    assert ProviderSettings(limit=1, lookup_lag=0)
    assert ProviderSettings(limit=None, lookup_lag=None)
