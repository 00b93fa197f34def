from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.world.settings import (
    AgentSettings,
    ApproverSettings,
    Intent,
    Order,
    Outside,
    ProviderSettings,
    Submission,
    WebhookSettings,
)

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Intent("intent-1", amount=-1), r"Intent\(amount=-1\): give whole minor units"),
        (lambda: Intent("intent-1", amount=0), r"Intent\(amount=0\)"),
        (
            lambda: Intent("intent-1", amount=500.0),
            r"Intent\(amount=500\.0\): it should be a valid integer",
        ),
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
        (lambda: ProviderSettings(semantics="stripe"), r"semantics='stripe'\): .*stripe-v1, "),
        (lambda: ProviderSettings(errors=-1), r"ProviderSettings\(errors=-1\)"),
        (lambda: ProviderSettings(error_when="during"), r"error_when='during'\): .*'before' or"),
        (lambda: ProviderSettings(settles_after=0), r"ProviderSettings\(settles_after=0\)"),
        (lambda: ProviderSettings(duplicate_window=-1), r"ProviderSettings\(duplicate_window=-1"),
        (lambda: ApproverSettings(delay=0), r"ApproverSettings\(delay=0\): .*more than 0"),
        (lambda: ApproverSettings(says=(("intent-1", "maybe"),)), r"'yes', 'no' or 'nothing'"),
        (lambda: ApproverSettings(second_thoughts=0), r"second_thoughts=0\): .*or None"),
        (lambda: Outside("steal", at=1.0), r"Outside\(what='steal'\): .*cancel, refund, charge"),
        (lambda: Outside("cancel", at=0), r"Outside\(at=0\)"),
        (lambda: Outside("refund", at=1.0), r"Outside\(amount=0\): .*1 or more"),
        (lambda: Outside("chargeback", at=1.0, amount=1.5), r"Outside\(amount=1\.5\)"),
        (lambda: WebhookSettings(created=(-1.0,)), r"WebhookSettings\(created=\(-1\.0,\)\)"),
        (lambda: WebhookSettings(succeeded=(INF,)), r"WebhookSettings\(succeeded="),
        (lambda: WebhookSettings(patience=0), r"WebhookSettings\(patience=0\)"),
        (lambda: WebhookSettings(tries=0), r"WebhookSettings\(tries=0\)"),
        (lambda: WebhookSettings(misreports=-1), r"misreports=-1\): .*0 or more, or None"),
        (lambda: WebhookSettings(misreports=50.0), r"WebhookSettings\(misreports=50\.0\)"),
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
    assert ProviderSettings(settles_after=0.1, duplicate_window=0.1, errors=0)
    assert WebhookSettings(created=(), succeeded=(0, 0.0), failed=(), tries=1, misreports=0)
    assert Outside("cancel", at=0.1)
    assert Outside("refund", at=0.1, amount=1)


# What the model writes beside, or in place of, what it should.


def test_arguments_are_kept_as_sorted_pairs_so_that_submissions_can_be_compared() -> None:
    one = Submission("intent-1", arguments={"b": [1, [2]], "a": True})
    other = Submission("intent-1", arguments={"a": True, "b": [1, [2]]})
    assert one == other
    assert hash(one) == hash(other)
    assert one.arguments == (("a", True), ("b", (1, (2,))))


def test_submissions_with_other_arguments_are_other_submissions() -> None:
    plain = Submission("intent-1")
    assert plain != Submission("intent-1", arguments={"confirm": True})
    assert plain != Submission("intent-1", tool="delete_profile")
    assert plain == Submission("intent-1", arguments={})


def test_an_approver_says_yes_about_what_nobody_named() -> None:
    person = ApproverSettings(says=(("intent-2", "no"), ("intent-3", "nothing")))
    assert [person.answer(f"intent-{n}") for n in (1, 2, 3)] == ["yes", "no", "nothing"]
