"""Asking the provider: for the money, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.service import silence
from simulator.service.design import Design
from simulator.service.designs import NAIVE, SAFE
from simulator.service.errors import CallTimeout, ConnectionLost, Declined, RateLimited
from simulator.service.operations import Operation
from simulator.service.outbox import Outbox
from simulator.service.payment import (
    PROVIDER_TIMEOUT,
    Accepted,
    CameToNothing,
    FindRefund,
    ask,
    pay,
)
from simulator.service.recovery import AskThenSend, Blind, SameKey
from simulator.service.retry import Fixed, NoRetry

Make = Callable[..., Operation]
ASKING = SAFE.but(recovery=AskThenSend())


def names(runtime: Any) -> list[str]:
    return [name for name, _ in runtime.calls]


# The money.


def paid(runtime: Any, run: Any, design: Design, operation: Any, *answers: Any) -> Any:
    runtime.answers += answers
    return run(pay(runtime, design, operation))


def test_the_provider_is_sent_the_same_key_on_every_attempt(
    runtime: Any, run: Any, make_operation: Any
) -> None:
    design = SAFE.but(on_silence=silence.again, retry=Fixed(1.0, 5))
    outcome = paid(
        runtime, run, design, make_operation(), CallTimeout("2 s"), RateLimited(1.0), "REF-7"
    )
    assert (outcome.status, outcome.detail) == ("succeeded", "REF-7")
    assert {order.key for _, order in runtime.calls} == {make_operation().key}
    assert len(runtime.calls) == 3


def test_a_decline_is_a_failure_with_its_reason(
    runtime: Any, run: Any, make_operation: Any
) -> None:
    outcome = paid(runtime, run, SAFE, make_operation(), Declined("the card was closed."))
    assert (outcome.status, outcome.detail) == ("failed", "the card was closed.")
    assert len(runtime.calls) == 1


@pytest.mark.parametrize("error", [CallTimeout("2 s"), ConnectionLost("reset")])
def test_silence_is_unknown_and_not_sent_again_in_the_same_breath(
    error: Exception, runtime: Any, run: Any, make_operation: Any
) -> None:
    assert paid(runtime, run, SAFE, make_operation(), error).status == "outcome_unknown"
    assert len(runtime.calls) == 1


def test_silence_is_what_the_design_says_it_is(
    runtime: Any, run: Any, make_operation: Any, inline: Design
) -> None:
    design = inline.but(on_silence=silence.failed)
    assert paid(runtime, run, design, make_operation(), CallTimeout("2 s")).status == "failed"


def test_a_rate_limit_is_waited_out_even_if_the_retry_policy_is_hastier(
    runtime: Any, run: Any, make_operation: Any
) -> None:
    design = SAFE.but(retry=Fixed(0.5, 5))
    outcome = paid(runtime, run, design, make_operation(), RateLimited(3.0), "REF-1")
    assert outcome.status == "succeeded"
    assert runtime.slept == [3.0]


def test_a_rate_limit_does_not_make_a_slow_retry_policy_hastier(
    runtime: Any, run: Any, make_operation: Any
) -> None:
    design = SAFE.but(retry=Fixed(5.0, 5))
    paid(runtime, run, design, make_operation(), RateLimited(3.0), "REF-1")
    assert runtime.slept == [5.0]


def test_a_rate_limit_to_the_end_says_nothing_about_earlier_sends(
    runtime: Any, run: Any, make_operation: Any
) -> None:
    # A 429 on a replay says nothing about the first send (reference, section 4).
    design = SAFE.but(retry=NoRetry())
    assert (
        paid(runtime, run, design, make_operation(), RateLimited(1.0)).status == "outcome_unknown"
    )


def test_a_worker_does_not_sleep_past_its_own_lease(
    runtime: Any, run: Any, make_operation: Any
) -> None:
    assert isinstance(SAFE.dispatch, Outbox)
    paid(runtime, run, SAFE, make_operation(), RateLimited(60.0), "REF-1")
    assert SAFE.dispatch.lease is not None
    assert sum(runtime.slept) + 2 * PROVIDER_TIMEOUT < SAFE.dispatch.lease


def test_a_blind_retry_ends_with_its_policy(runtime: Any, run: Any, make_operation: Any) -> None:
    answers = [CallTimeout("2 s")] * 9
    outcome = paid(runtime, run, NAIVE, make_operation(), *answers)
    assert outcome.status == "failed"
    assert len(runtime.calls) == 3  # Immediate(max_attempts=3)


def test_earlier_rounds_count_for_the_retry_policy(
    runtime: Any, run: Any, make_operation: Any
) -> None:
    runtime.answers += [CallTimeout("2 s")] * 9
    run(pay(runtime, NAIVE, make_operation(), tries=2))
    assert len(runtime.calls) == 1


def test_what_is_sent_says_which_refund_of_which_order_and_how_much(
    runtime: Any, run: Any, make_operation: Any
) -> None:
    paid(runtime, run, SAFE, make_operation(), "REF-1")
    ((name, order),) = runtime.calls
    assert name == "provider.refund"
    assert (order.intent_id, order.order_id, order.amount, order.currency) == (
        "intent-1",
        "ORD-1001",
        500_00,
        "USD",
    )


# What became of it?


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("REF-1", "succeeded"),
        (CallTimeout("2 s"), "outcome_unknown"),
        (ConnectionLost("reset"), "outcome_unknown"),
        (RateLimited(1.0), "outcome_unknown"),
        (Declined("there is no way to ask for a refund."), "unanswerable"),
        (None, "not_found"),
        (Accepted("REF-1"), "outcome_unknown"),
        (CameToNothing("the bank returned the money."), "failed"),
    ],
)
def test_an_answer_to_the_question_is_taken_for_what_it_says(
    answer: Any, status: str, runtime: Any, run: Any, make_operation: Make
) -> None:
    runtime.answers.append(answer)
    assert run(ask(runtime, SAFE, make_operation())).status == status
    assert runtime.calls == [("provider.find", FindRefund("intent-1"))]


# Whom a recovery asks before it sends.


def test_a_recovery_that_asks_first_does_not_send_what_was_found(
    runtime: Any, run: Any, make_operation: Make
) -> None:
    runtime.answers += ["REF-1"]
    assert run(pay(runtime, ASKING, make_operation(), 1, unknown=True)).status == "succeeded"
    assert names(runtime) == ["provider.find"]


def test_a_recovery_that_asks_first_sends_nothing_while_nobody_answers(
    runtime: Any, run: Any, make_operation: Make
) -> None:
    runtime.answers += [CallTimeout("2 s")]
    outcome = run(pay(runtime, ASKING, make_operation(), 1, unknown=True))
    assert outcome.status == "outcome_unknown"
    assert names(runtime) == ["provider.find"]


def test_a_recovery_that_takes_not_found_for_never_sends_anew_under_a_new_key(
    runtime: Any, run: Any, make_operation: Make
) -> None:
    runtime.answers += [None, "REF-2"]
    assert run(pay(runtime, ASKING, make_operation(), 1, unknown=True)).status == "succeeded"
    assert names(runtime) == ["provider.find", "provider.refund"]
    assert runtime.calls[1][1].key not in (None, make_operation().key)


@pytest.mark.parametrize("recovery", [AskThenSend(), SameKey(), Blind()])
def test_a_first_send_asks_nobody(
    recovery: Any, runtime: Any, run: Any, make_operation: Make
) -> None:
    run(pay(runtime, SAFE.but(recovery=recovery), make_operation()))
    assert names(runtime) == ["provider.refund"]
    assert runtime.calls[0][1].key == make_operation().key


@pytest.mark.parametrize("recovery", [SameKey(), Blind()])
def test_who_sends_the_same_key_again_need_not_ask(
    recovery: Any, runtime: Any, run: Any, make_operation: Make
) -> None:
    run(pay(runtime, SAFE.but(recovery=recovery), make_operation(), 3, unknown=True))
    assert names(runtime) == ["provider.refund"]
    assert runtime.calls[0][1].key == make_operation().key
