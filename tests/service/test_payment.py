"""Asking the provider: for the money, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.service import silence
from simulator.service.design import Design
from simulator.service.designs import NAIVE, SAFE
from simulator.service.errors import CallTimeout, ConnectionLost, Declined, RateLimited
from simulator.service.keys import NoKey, ProcessKey, TimeStamped
from simulator.service.operations import Operation
from simulator.service.outbox import Outbox
from simulator.service.payment import (
    PROVIDER_TIMEOUT,
    SETTLEMENT_CHECK,
    Accepted,
    CameToNothing,
    FindRefund,
    Outcome,
    ask,
    pay,
)
from simulator.service.recovery import AskOnly, AskThenSend, Blind, SameKey
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
    assert run(ask(runtime, make_operation())).status == status
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


# Accepted is not paid.

UNKNOWN = "outcome_unknown"
TRUSTING = SAFE.but(recovery=SameKey(waits_for_settlement=False))


def test_what_is_only_accepted_is_looked_into_hours_later(
    runtime: Any, run: Any, make_operation: Make
) -> None:
    # Case B34.
    outcome = paid(runtime, run, SAFE, make_operation(), Accepted("REF-1"))
    assert outcome == Outcome(
        "outcome_unknown",
        "REF-1, accepted, and not paid yet.",
        again_in=SETTLEMENT_CHECK,
        pending=True,
    )
    assert len(runtime.calls) == 1


def test_who_does_not_wait_for_settlement_takes_accepted_for_paid(
    runtime: Any, run: Any, make_operation: Make
) -> None:
    outcome = paid(runtime, run, TRUSTING, make_operation(), Accepted("REF-1"))
    assert (outcome.status, outcome.detail, outcome.pending) == ("succeeded", "REF-1", False)


@pytest.mark.parametrize("recovery", [AskThenSend(), AskOnly(), SameKey()])
def test_every_recovery_but_the_blind_waits_for_settlement(
    recovery: Any, runtime: Any, run: Any, make_operation: Make
) -> None:
    design = SAFE.but(recovery=recovery)
    assert paid(runtime, run, design, make_operation(), Accepted("REF-1")).pending
    blind = SAFE.but(recovery=Blind())
    assert paid(runtime, run, blind, make_operation(), Accepted("REF-1")).status == "succeeded"


def test_asked_about_what_is_under_way_the_provider_says_not_yet(
    runtime: Any, run: Any, make_operation: Make
) -> None:
    runtime.answers.append(Accepted("REF-1"))
    outcome = run(ask(runtime, make_operation()))
    assert (outcome.pending, outcome.again_in) == (True, SETTLEMENT_CHECK)


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (CameToNothing("the bank returned the money."), "the bank returned the money."),
        (None, "the provider knows of no such refund."),
        (Declined("there is no way to ask for a refund."), "there is no way to ask for a refund."),
        ("REF-1", "REF-1"),
    ],
)
def test_an_answer_to_the_question_keeps_its_words(
    answer: Any, detail: str, runtime: Any, run: Any, make_operation: Make
) -> None:
    runtime.answers.append(answer)
    outcome = run(ask(runtime, make_operation()))
    assert (outcome.detail, outcome.pending) == (detail, False)


def test_the_providers_words_can_be_read() -> None:
    assert str(Accepted("REF-1")) == "REF-1, accepted"
    assert str(CameToNothing("the bank returned the money.")) == "the bank returned the money."


# A decline after silence.

BAD = Declined("it looks like a duplicate.")


def declined_after_silence(runtime: Any, run: Any, design: Any, operation: Any, found: Any) -> Any:
    runtime.answers += [BAD, found]
    return run(pay(runtime, design, operation, 1, unknown=True))


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ("REF-1", "succeeded"),
        (Accepted("REF-1"), "outcome_unknown"),
        (CallTimeout("2 s"), "outcome_unknown"),
        (RateLimited(1.0), "outcome_unknown"),
        (CameToNothing("returned."), "failed"),
        (None, "failed"),
        (Declined("there is no way to ask."), "failed"),
    ],
)
def test_a_decline_after_silence_is_a_failure_only_if_the_first_was_not_paid(
    found: Any, status: str, runtime: Any, run: Any, make_operation: Make
) -> None:
    outcome = declined_after_silence(runtime, run, SAFE, make_operation(), found)
    assert outcome.status == status
    assert names(runtime) == ["provider.refund", "provider.find"]
    if found is None or isinstance(found, Declined):
        assert outcome.detail == BAD.reason


def test_a_decline_after_silence_proves_nothing_without_a_key_or_an_answer(
    runtime: Any, run: Any, make_operation: Make
) -> None:
    # The provider refuses a duplicate of what it paid, and cannot be asked.
    design = SAFE.but(key=NoKey())
    no_answer = Declined("there is no way to ask.")
    outcome = declined_after_silence(runtime, run, design, make_operation(), no_answer)
    assert (outcome.status, outcome.detail) == ("outcome_unknown", BAD.reason)


def test_a_decline_after_silence_in_the_same_round_is_looked_into_too(
    runtime: Any, run: Any, make_operation: Make
) -> None:
    design = SAFE.but(on_silence=silence.again, retry=Fixed(1.0, 5))
    outcome = paid(runtime, run, design, make_operation(), CallTimeout("2 s"), BAD, "REF-1")
    assert (outcome.status, outcome.detail) == ("succeeded", "REF-1")


def test_a_blind_recovery_takes_a_decline_after_silence_for_a_failure(
    runtime: Any, run: Any, make_operation: Make
) -> None:
    design = SAFE.but(recovery=Blind())
    outcome = declined_after_silence(runtime, run, design, make_operation(), "REF-1")
    assert (outcome.status, names(runtime)) == ("failed", ["provider.refund"])


def test_a_first_decline_asks_nobody(runtime: Any, run: Any, make_operation: Make) -> None:
    assert paid(runtime, run, SAFE, make_operation(), BAD, "REF-1").status == "failed"
    assert names(runtime) == ["provider.refund"]


DUPLICATE = Declined("it looks like another one.", takes_for_duplicate=True)


@pytest.mark.parametrize(
    ("found", "status", "for_a_person"),
    [
        (None, "outcome_unknown", True),
        (Declined("there is no way to ask."), "outcome_unknown", True),
        (CallTimeout("2 s"), "outcome_unknown", False),
        ("REF-1", "succeeded", False),
        (CameToNothing("returned."), "failed", False),
    ],
)
@pytest.mark.parametrize("unknown", [False, True])
def test_what_is_refused_as_a_duplicate_is_no_failure_until_the_provider_says_of_what(
    unknown: bool,
    found: Any,
    status: str,
    for_a_person: bool,
    runtime: Any,
    run: Any,
    make_operation: Make,
) -> None:
    runtime.answers += [DUPLICATE, found]
    outcome = run(pay(runtime, SAFE, make_operation(), int(unknown), unknown=unknown))
    assert (outcome.status, outcome.for_a_person) == (status, for_a_person)
    assert names(runtime) == ["provider.refund", "provider.find"]
    if for_a_person:
        assert outcome.detail == DUPLICATE.reason


def test_a_blind_recovery_takes_a_duplicate_for_a_failure(
    runtime: Any, run: Any, make_operation: Make
) -> None:
    design = SAFE.but(recovery=Blind())
    assert paid(runtime, run, design, make_operation(), DUPLICATE).status == "failed"
    assert names(runtime) == ["provider.refund"]


def test_who_asks_first_and_cannot_ask_sends_nothing(
    runtime: Any, run: Any, make_operation: Make
) -> None:
    runtime.answers += [Declined("there is no way to ask."), "REF-2"]
    outcome = run(pay(runtime, ASKING, make_operation(), 1, unknown=True))
    assert outcome.status == "outcome_unknown"
    assert names(runtime) == ["provider.find"]


# When to come back.


def test_who_gives_up_says_when_the_provider_wants_to_be_asked_again(
    runtime: Any, run: Any, make_operation: Make
) -> None:
    outcome = paid(runtime, run, SAFE, make_operation(), RateLimited(60.0))
    assert (outcome.status, outcome.again_in) == ("outcome_unknown", 60.0)
    assert "after the deadline" in outcome.detail
    without = SAFE.but(retry=Fixed(1.0, 5))
    outcome = paid(runtime, run, without, make_operation(), RateLimited(60.0))
    assert (outcome.status, outcome.again_in) == ("outcome_unknown", 60.0)
    assert "outlast the lease" in outcome.detail
    assert runtime.slept == []


def test_who_has_no_lease_waits_for_as_long_as_the_provider_asks(
    runtime: Any, run: Any, make_operation: Make
) -> None:
    design = SAFE.but(dispatch=Outbox(lease=None), retry=Fixed(1.0, 5))
    assert paid(runtime, run, design, make_operation(), RateLimited(60.0)).status == "succeeded"
    assert runtime.slept == [60.0]


def test_a_rate_limit_to_the_end_is_a_failure_where_nobody_looks_again(
    runtime: Any, run: Any, make_operation: Make, inline: Design
) -> None:
    design = inline.but(retry=NoRetry())
    assert paid(runtime, run, design, make_operation(), RateLimited(1.0)).status == "failed"


def test_a_key_may_depend_on_the_clock_and_on_the_process(
    runtime: Any, run: Any, make_operation: Make
) -> None:
    runtime.desk.seconds = 5.0
    paid(runtime, run, SAFE.but(key=TimeStamped()), make_operation(), "REF-1")
    paid(runtime, run, SAFE.but(key=ProcessKey()), make_operation(), "REF-1")
    assert [order.key for _, order in runtime.calls] == [
        f"{make_operation().key}-5000",
        ProcessKey().by(make_operation(), 0, runtime.owner),
    ]


@pytest.mark.parametrize(
    ("found", "status"), [("REF-1", "succeeded"), (None, "failed"), (CallTimeout("2 s"), UNKNOWN)]
)
def test_without_a_key_an_answer_to_the_question_still_counts(
    found: Any, status: str, runtime: Any, run: Any, make_operation: Make
) -> None:
    design = SAFE.but(key=NoKey())
    assert declined_after_silence(runtime, run, design, make_operation(), found).status == status


@pytest.mark.parametrize(("seconds", "status"), [(26.1, UNKNOWN), (0.0, "failed")])
def test_who_lets_go_because_of_the_lease_does_not_call_it_a_failure(
    seconds: float, status: str, runtime: Any, run: Any, make_operation: Make
) -> None:
    # Silence that is simply sent again ends as a failure when the tries are used up.
    design = SAFE.but(on_silence=silence.again, retry=Fixed(seconds, 2))
    outcome = paid(runtime, run, design, make_operation(), *[CallTimeout("2 s")] * 9)
    assert outcome.status == status
