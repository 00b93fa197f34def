from __future__ import annotations

import math
import random
import statistics
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import designs
from simulator.experiments.storm import BotocoreBudget
from simulator.experiments.storm.provider import LIMITED, SILENCE
from simulator.service.retry import (
    Decorrelated,
    EqualJitter,
    Exponential,
    Fixed,
    FullJitter,
    Immediate,
    LessonFormula,
    NoRetry,
    Random01,
    Retry,
    bounded_wait,
    next_delay,
)
from simulator.service.retry_limits import (
    LONGEST_RETRY_AFTER,
    Budget,
    Deadline,
    ReadRetry,
    RetryAfter,
    Wait,
    give_back,
    next_wait,
    spend,
    succeeded,
    tokens_left,
)

attempts = st.integers(0, 10**6)
seconds = st.floats(0.0, 1e9)
headers = st.none() | seconds
policies: st.SearchStrategy[Any] = st.sampled_from(
    [
        Immediate(None),
        Fixed(2.0, None),
        Exponential(max_attempts=None),
        FullJitter(max_attempts=None),
        EqualJitter(max_attempts=None),
        LessonFormula(max_attempts=None),
        Decorrelated(max_attempts=None),
        FullJitter(max_attempts=8),
        NoRetry(),
    ]
)
limits: st.SearchStrategy[Callable[[Any], Any]] = st.one_of(
    seconds.map(lambda s: lambda policy: Deadline(policy, s)),
    seconds.map(lambda s: lambda policy: RetryAfter(policy, s)),
)


@st.composite
def limited(draw: st.DrawFn, inner: st.SearchStrategy[Any] = policies) -> Any:
    """A policy within up to six limits, one budget at most."""
    policy = draw(inner)
    wrap = draw(st.lists(limits, max_size=5))
    if draw(st.booleans()):
        wrap.insert(draw(st.integers(0, len(wrap))), lambda policy: Budget(policy))
    for limit in wrap:
        policy = limit(policy)
    return policy


def ask(
    policy: Retry,
    attempt: int = 0,
    elapsed: float = 0.0,
    header: float | None = None,
    memory: dict[str, Any] | None = None,
    seed: int = 1,
    **more: float,
) -> Wait:
    return next_wait(
        policy,
        attempt,
        elapsed,
        header,
        {} if memory is None else memory,
        random.Random(seed),
        **more,
    )


@given(limited(), attempts, seconds, headers, st.integers())
def test_a_wait_is_a_finite_number_or_a_reason_at_any_attempt(
    policy: Any, attempt: int, elapsed: float, header: float | None, seed: int
) -> None:
    wait = ask(policy, attempt, elapsed, header, seed=seed)
    if wait.seconds is None:
        assert wait.why in ("attempts", "deadline", "budget")
        assert wait.sentence.endswith(".")
        assert wait.cost == 0.0
    else:
        assert 0 <= wait.seconds < math.inf
        assert wait.why == wait.sentence == ""


@given(policies, seconds, attempts, seconds, headers, st.integers())
def test_no_retry_begins_after_the_deadline_whatever_the_provider_asks(
    inner: Any, limit: float, attempt: int, elapsed: float, header: float | None, seed: int
) -> None:
    wait = ask(Deadline(inner, limit), attempt, elapsed, header, seed=seed)
    if wait.seconds is not None:
        assert elapsed + wait.seconds <= limit
    free = ask(inner, attempt, elapsed, header, seed=seed)
    if free.seconds is not None and elapsed + free.seconds <= limit:
        assert wait == free  # a deadline that is not reached changes nothing


@given(seconds, headers, seconds)
def test_a_wait_is_never_earlier_than_the_provider_asked_as_far_as_the_bound(
    own: float, header: float | None, bound: float
) -> None:
    wait = bounded_wait(own, header, bound)
    assert own <= wait <= max(own, bound)
    if header is not None:
        assert wait >= min(header, bound)
    # the storm's clients wait as long: `next_delay` has the same rule
    fixed = Fixed(own, None)
    assert wait == next_delay(
        fixed, 0, random.Random(1), retry_after=header, longest_retry_after=bound
    )


def test_of_nested_limits_the_strictest_holds() -> None:
    policy = Deadline(RetryAfter(Deadline(RetryAfter(Fixed(1.0, None), 9.0), 7.0), 5.0), 100.0)
    assert ask(policy, header=60.0).seconds == 5.0
    assert ask(policy, elapsed=2.0, header=60.0).seconds == 5.0
    assert ask(policy, elapsed=2.1, header=60.0) == Wait(None, "deadline", 5.0)


def test_without_a_word_about_it_a_header_is_honoured_for_an_hour_at_most() -> None:
    assert ask(Fixed(1.0, None), header=30.0).seconds == 30.0
    assert ask(Fixed(1.0, None), header=1e9).seconds == LONGEST_RETRY_AFTER
    assert ask(RetryAfter(Fixed(1.0, None), longest=0.0), header=30.0).seconds == 1.0
    assert ask(RetryAfter(Fixed(1.0, None), longest=math.inf), header=1e9).seconds == 1e9


def test_a_lease_that_would_run_out_ends_the_round_and_costs_nothing() -> None:
    memory: dict[str, Any] = {}
    policy = Budget(Fixed(2.0, None))
    assert ask(policy, elapsed=9.0, memory=memory, until=10.0) == Wait(None, "lease")
    assert tokens_left(policy, memory) == 500.0
    assert ask(policy, elapsed=8.0, memory=memory, until=10.0).seconds == 2.0


class Counting:
    """A policy that counts how often it is asked."""

    def __init__(self, sends: int, pause: float = 0.0) -> None:
        self.sends, self.pause, self.asked = sends, pause, 0

    def delay(self, attempt: int, random: Random01) -> float | None:
        self.asked += 1
        return self.pause if attempt + 1 < self.sends else None


@given(st.integers(1, 12), st.data())
def test_limits_around_limits_are_one_layer_and_attempts_do_not_multiply(
    sends: int, data: st.DataObject
) -> None:
    counting = Counting(sends)
    policy: Any = data.draw(limited(st.just(counting)))
    memory: dict[str, Any] = {}
    sent = 1
    while ask(policy, sent - 1, memory=memory).seconds is not None:
        sent += 1
    assert sent == counting.asked == sends  # no delay here is long enough for a deadline


@given(st.data())
def test_the_policy_inside_is_asked_once_even_where_a_limit_says_no(data: st.DataObject) -> None:
    counting = Counting(2, pause=1.0)
    ask(data.draw(limited(st.just(counting))))
    assert counting.asked == 1


@given(limited(), attempts, st.integers())
def test_a_limit_answers_delay_as_the_policy_inside_does(
    policy: Any, attempt: int, seed: int
) -> None:
    inner = policy
    while isinstance(inner, Deadline | RetryAfter | Budget):
        inner = inner.policy
    assert policy.delay(attempt, random.Random(seed)) == inner.delay(attempt, random.Random(seed))


def test_a_chain_of_delays_is_not_cut_short_by_the_limits_around_it() -> None:
    policy = Deadline(Decorrelated(1.0, 1e6, max_attempts=None), math.inf)
    late = [ask(policy, 30, seed=seed).seconds or 0.0 for seed in range(300)]
    # 1.10 times a step in the typical case: 1.10 ** 30 = 17 s; a first delay is U(1, 3)
    assert statistics.median(late) > 5.0


def test_a_plain_function_may_be_limited_too_and_is_checked() -> None:
    assert ask(Deadline(lambda attempt, luck: 1.5 * attempt, 10.0), 4).seconds == 6.0
    assert ask(Deadline(lambda attempt, luck: 1.5 * attempt, 5.0), 4).why == "deadline"
    for nonsense in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="the retry policy returned"):
            ask(lambda attempt, luck, nonsense=nonsense: nonsense)


# The budget.

events = st.lists(
    st.sampled_from(["silence", "throttled", "success", "success after"]), max_size=200
)
costs = st.integers(0, 50)


@given(events, st.integers(0, 200), costs, costs, costs)
def test_a_bucket_is_never_below_0_never_above_its_capacity_and_no_token_is_lost(
    events: list[str], capacity: int, cost: int, throttled: int, gain: int
) -> None:
    budget = Budget(Immediate(None), capacity, cost, throttled, gain)
    memory: dict[str, Any] = {}
    spent = given = overflow = last = 0.0
    for event in events:
        before = tokens_left(budget, memory)
        if event.startswith("success"):
            paid = last if event == "success after" else 0.0
            succeeded(budget, memory, paid)
            given += paid or gain
            overflow += max(0.0, before + (paid or gain) - capacity)
        else:
            wait = ask(budget, header=0.0 if event == "throttled" else None, memory=memory)
            price = throttled if event == "throttled" else cost
            assert (wait.seconds is None) == (price > before)
            spent += wait.cost
            last = wait.cost or last
        assert 0 <= tokens_left(budget, memory) <= capacity
    assert tokens_left(budget, memory) == capacity - spent + given - overflow


@given(st.lists(st.sampled_from([SILENCE, LIMITED, None]), max_size=300))
def test_the_service_and_the_storm_count_the_same_tokens(events: list[str | None]) -> None:
    storm = BotocoreBudget(size=500, cost=5, timeout_cost=14)
    budget, memory = Budget(Immediate(None)), dict[str, Any]()
    failure: str | None = None
    paid = 0.0
    for event in events:
        if event is None:
            storm.succeeded(0.0, failure)
            succeeded(budget, memory, paid)
            failure, paid = None, 0.0
            continue
        wait = ask(budget, header=1.0 if event == LIMITED else None, memory=memory)
        assert storm.may_retry(0.0, event) == (wait.seconds is not None)
        if wait.seconds is not None:
            failure, paid = event, wait.cost
    assert tokens_left(budget, memory) == storm.tokens


@pytest.mark.parametrize(
    ("budget", "header", "retries"),
    [
        (Budget(Immediate(None)), None, 35),
        (Budget(Immediate(None)), 0.0, 100),
        (Budget(Immediate(None), cost=10, throttled=5), None, 50),  # botocore before 1.44.0
    ],
)
def test_an_empty_bucket_is_reached_after_as_many_retries_as_derived(
    budget: Budget, header: float | None, retries: int
) -> None:
    memory: dict[str, Any] = {}
    done = 0
    while (wait := ask(budget, done, header=header, memory=memory)).seconds is not None:
        done += 1
    assert done == retries  # section 2 of the reference
    assert wait.why == "budget"


def test_a_success_gives_back_the_last_cost_or_one() -> None:
    assert spend(13.0, 14.0) is None
    assert spend(14.0, 14.0) == 0.0
    assert give_back(100.0, 500.0, cost=14.0, gain=1.0) == 114.0
    assert give_back(100.0, 500.0, cost=0.0, gain=1.0) == 101.0
    assert give_back(499.0, 500.0, cost=14.0, gain=1.0) == 500.0


def test_a_retry_that_another_limit_forbids_costs_nothing() -> None:
    for policy in (
        Budget(Deadline(Fixed(5.0, None), 4.0)),
        Deadline(Budget(Fixed(5.0, None)), 4.0),
    ):
        memory: dict[str, Any] = {}
        assert ask(policy, memory=memory).why == "deadline"
        assert memory == {}
    memory = {}
    assert ask(Budget(NoRetry()), memory=memory).why == "attempts"
    assert memory == {}


def test_the_bucket_is_the_process_s_and_dies_with_its_memory() -> None:
    one, other = Budget(Immediate(None), 14.0), Budget(Fixed(1.0, None), 14.0)
    memory: dict[str, Any] = {}
    assert ask(one, memory=memory).seconds == 0.0
    assert ask(other, memory=memory).why == "budget"
    assert ask(one, memory={}).seconds == 0.0
    assert ask(Budget(Immediate(None), 14.0, name="bank"), memory=memory).seconds == 0.0


def test_threads_of_one_process_spend_each_token_once() -> None:
    budget, memory = Budget(Immediate(None), capacity=3_000.0, cost=1.0), dict[str, Any]()
    got: list[int] = []

    def spender() -> None:
        got.append(sum(ask(budget, memory=memory).seconds is not None for _ in range(1_000)))

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that threads take turns within a few instructions
    try:
        threads = [threading.Thread(target=spender) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(usual)
    assert sum(got) == 3_000
    assert tokens_left(budget, memory) == 0.0


# Reads.


def test_a_read_is_sent_three_times_at_most_within_seconds() -> None:
    luck = random.Random(1)
    delays = [ReadRetry().delay(attempt, luck) for attempt in range(5)]
    assert [delay is None for delay in delays] == [False, False, True, True, True]
    assert 0 <= (delays[0] or 0.0) <= 0.1
    assert 0 <= (delays[1] or 0.0) <= 0.2
    assert ReadRetry(attempts=1).delay(0, luck) is None


@given(attempts, st.integers())
def test_a_read_never_waits_longer_than_its_cap(attempt: int, seed: int) -> None:
    delay = ReadRetry(attempts=10**7).delay(attempt, random.Random(seed))
    assert delay is not None
    assert 0 <= delay <= 1.0


# Case B77: the provider answers 429 with Retry-After 30 until 30 s are over.


def rounds(policy: Retry, queue: bool, header: float = 30.0) -> tuple[str, float, int]:
    """How it ends, after how many seconds and sends; a durable queue begins one more round."""
    now, sends, luck = 0.0, 0, random.Random(1)
    for _ in range(2 if queue else 1):
        begun = now
        for attempt in range(100):
            sends += 1
            if now >= header:
                return "succeeded", now, sends
            wait = next_wait(policy, attempt, now - begun, header - now, {}, luck)
            if wait.seconds is None:
                break
            now += wait.seconds
        now += wait.not_before or 0.0
    return "failed", now, sends


def test_a_header_that_is_ignored_fails_within_seconds_though_a_wait_would_have_helped() -> None:
    ignoring = RetryAfter(Fixed(2.0, max_attempts=3), longest=0.0)
    assert rounds(ignoring, queue=False) == ("failed", 4.0, 3)


def test_a_header_longer_than_the_deadline_is_the_durable_queue_s_and_succeeds_then() -> None:
    patient = Deadline(FullJitter(max_attempts=3), seconds=10.0)
    assert rounds(patient, queue=True) == ("succeeded", 30.0, 2)  # no send in the forbidden time


def test_a_header_within_the_deadline_is_waited_for() -> None:
    assert rounds(Deadline(FullJitter(max_attempts=3), 60.0), queue=False) == (
        "succeeded",
        30.0,
        2,
    )


# Everything else.


def test_a_design_takes_a_limit_as_its_retry_policy_and_limits_are_equal_to_their_like() -> None:
    def make() -> Budget:
        return Budget(Deadline(RetryAfter(FullJitter(), 60.0), 20.0))

    assert make() == make()
    assert hash(make()) == hash(make())
    assert designs.SAFE.but(retry=make()) == designs.SAFE.but(retry=make())
    with pytest.raises(AttributeError):
        make().capacity = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Deadline(FullJitter(), -1.0), r"Deadline\(seconds=-1.0\)"),
        (lambda: Deadline(FullJitter(), math.nan), r"Deadline\(seconds=nan\)"),
        (lambda: Deadline(FullJitter, 1.0), "with its parentheses"),  # type: ignore[arg-type]
        (lambda: RetryAfter(FullJitter(), "30"), r"RetryAfter\(longest='30'\)"),  # type: ignore[arg-type]
        (lambda: Budget(3), "Budget\\(3\\): give a retry policy"),  # type: ignore[arg-type]
        (lambda: Budget(FullJitter(), cost=-1), r"Budget\(cost=-1\)"),
        (lambda: Budget(Deadline(Budget(FullJitter()), 1.0)), "paid twice"),
        (lambda: ReadRetry(attempts=0), r"ReadRetry\(attempts=0\): give a whole number"),
        (lambda: ask(FullJitter(), -1), "attempt is -1"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(
    make: Callable[[], object], what: str
) -> None:
    with pytest.raises(ValueError, match=what):
        make()
