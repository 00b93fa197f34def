from __future__ import annotations

import inspect
import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.service import retry
from simulator.service.retry import (
    Decorrelated,
    EqualJitter,
    Exponential,
    Fixed,
    FullJitter,
    Immediate,
    LessonFormula,
    NoRetry,
    calculate_retry_delay,
    next_delay,
)

BACKOFFS = (Exponential, FullJitter, EqualJitter, Decorrelated, LessonFormula)
JITTERS = (FullJitter, EqualJitter, Decorrelated)

# Section 11 of the lesson, as published.
PUBLISHED = """\
def calculate_retry_delay(
    attempt: int, base_delay: float = 1.0, max_delay: float = 30.0
) -> float:
    # 2^attempt (1s, 2s, 4s, 8s, 16s...)
    exponential_delay = min(max_delay, base_delay * (2 ** attempt))

    # Full Jitter: randomize within the window
    jitter = random.uniform(0, exponential_delay * 0.2)

    return min(max_delay, exponential_delay + jitter)
"""


class Always:
    """Luck that draws the same number for ever."""

    def __init__(self, number: float) -> None:
        self.number = number

    def random(self) -> float:
        return self.number

    def uniform(self, a: float, b: float, /) -> float:
        return a + (b - a) * self.number


luck = st.one_of(
    st.just(Always(0.0)),
    st.just(Always(1.0 - 2.0**-53)),
    st.floats(0.0, 1.0, exclude_max=True).map(Always),
    st.integers().map(random.Random),
)
seconds = st.floats(0.0, 1e300, allow_nan=False)


@pytest.mark.parametrize("policy", BACKOFFS)
@given(attempt=st.integers(0, 10**6), base=seconds, cap=seconds, luck=luck)
def test_a_delay_is_a_number_between_nothing_and_the_cap_at_any_attempt(
    policy: type[Exponential], attempt: int, base: float, cap: float, luck: random.Random
) -> None:
    delay = policy(base, cap, max_attempts=None).delay(attempt, luck)
    assert delay is not None
    assert math.isfinite(delay)
    assert 0.0 <= delay <= cap


@pytest.mark.parametrize("policy", JITTERS)
@given(seed=st.integers(), attempt=st.integers(6, 10**6))
def test_the_jitter_is_alive_at_the_cap(policy: type[Exponential], seed: int, attempt: int) -> None:
    once = policy(1.0, 30.0, max_attempts=None)
    source = random.Random(seed)
    delays = {once.delay(attempt, source) for _ in range(100)}
    assert len(delays) > 10


def test_the_lesson_s_jitter_is_gone_at_the_cap() -> None:
    source = random.Random(1)
    delays = {LessonFormula(max_attempts=None).delay(6, source) for _ in range(1_000)}
    assert delays == {30.0}  # case B14: one distinct delay among 1,000 draws


def test_two_of_three_decorrelated_delays_at_the_cap_are_the_cap_itself() -> None:
    policy, source = Decorrelated(1.0, 30.0, max_attempts=None), random.Random(1)
    at_cap = sum(policy.after(30.0, source) == 30.0 for _ in range(10_000))
    # U(1, 90) is above 30 with probability 60/89 = 0.674; 0.019 is four standard errors
    assert abs(at_cap / 10_000 - 60 / 89) < 0.019


def test_the_published_function_is_kept_letter_for_letter() -> None:
    assert inspect.getsource(calculate_retry_delay) == PUBLISHED


@given(attempt=st.integers(0, 1_023), seed=st.integers())
def test_the_lesson_s_policy_is_the_published_function_with_luck_handed_in(
    attempt: int, seed: int
) -> None:
    random.seed(seed)
    published = calculate_retry_delay(attempt)
    assert LessonFormula(max_attempts=None).delay(attempt, random.Random(seed)) == published


def test_the_published_function_dies_at_attempt_1024() -> None:
    assert calculate_retry_delay(1_023) == 30.0
    with pytest.raises(OverflowError):  # case B37
        calculate_retry_delay(1_024)


def test_the_lesson_s_policy_dies_there_only_when_asked_to() -> None:
    assert LessonFormula(max_attempts=None).delay(1_024, random.Random(1)) == 30.0
    with pytest.raises(OverflowError):
        LessonFormula(max_attempts=None, clamped=False).delay(1_024, random.Random(1))


@pytest.mark.parametrize(
    ("policy", "low", "high"),
    [(FullJitter, 0.0, 8.0), (EqualJitter, 4.0, 8.0), (LessonFormula, 8.0, 9.6)],
)
def test_delays_are_spread_evenly_over_the_window_of_their_formula(
    policy: type[Exponential], low: float, high: float
) -> None:
    source = random.Random(1)
    drawn = [policy(max_attempts=None).delay(3, source) or 0.0 for _ in range(10_000)]
    assert low <= min(drawn)
    assert max(drawn) <= high
    width = high - low
    # mean and standard deviation of a uniform distribution, to four standard errors
    assert abs(statistics.fmean(drawn) - (low + high) / 2) < 4 * width / math.sqrt(12 * 10_000)
    assert abs(statistics.stdev(drawn) - width / math.sqrt(12)) < 0.02 * width


def test_exponential_delays_double_up_to_the_cap() -> None:
    policy, source = Exponential(max_attempts=None), random.Random(1)
    assert [policy.delay(n, source) for n in range(7)] == [1, 2, 4, 8, 16, 30, 30]


def test_decorrelated_delays_grow_by_3_over_e_in_the_typical_case() -> None:
    policy, source = Decorrelated(1.0, 1e200, max_attempts=None), random.Random(1)
    growth = []
    for _ in range(200):
        delay = 1e6  # far above the base, where the chain multiplies by U(0, 3)
        for _ in range(50):
            delay = policy.after(delay, source)
        growth.append(math.log(delay / 1e6) / 50)
    # E log U(0, 3) = log 3 - 1; the standard deviation of log U is 1
    assert abs(statistics.fmean(growth) - (math.log(3) - 1)) < 4 / math.sqrt(200 * 50)


def test_a_decorrelated_delay_has_one_law_whether_the_chain_is_remembered_or_walked_anew() -> None:
    policy, source = Decorrelated(1.0, 30.0, max_attempts=None), random.Random(1)
    walked = sorted(policy.delay(4, source) or 0.0 for _ in range(4_000))
    remembered = []
    for _ in range(4_000):
        previous = None
        for attempt in range(5):
            previous = next_delay(policy, attempt, source, previous=previous)
        remembered.append(previous or 0.0)
    remembered.sort()
    for place in (400, 1_000, 2_000, 3_000):
        # quantiles of 4,000 draws: their ranks agree to four standard errors
        rank = sum(delay <= walked[place] for delay in remembered)
        assert abs(rank - place) < 4 * math.sqrt(2 * 4_000 * 0.25)


@pytest.mark.parametrize(
    "policy",
    [Immediate(3), Fixed(2.0, 3), *(backoff(max_attempts=3) for backoff in BACKOFFS)],
)
def test_the_attempt_limit_counts_the_first_send(policy: Exponential) -> None:
    source = random.Random(1)
    assert policy.delay(0, source) is not None
    assert policy.delay(1, source) is not None
    assert policy.delay(2, source) is None  # three sends have failed
    assert next_delay(policy, 2, source, previous=1.0) is None


def test_no_retry_gives_up_at_once() -> None:
    assert NoRetry().delay(0, random.Random(1)) is None


def test_the_provider_s_wish_is_honoured_up_to_a_limit() -> None:
    fixed, source = Fixed(2.0, None), random.Random(1)
    assert next_delay(fixed, 0, source, retry_after=30.0) == 30.0
    assert next_delay(fixed, 0, source, retry_after=1.0) == 2.0
    assert next_delay(fixed, 0, source, retry_after=3600.0, longest_retry_after=60.0) == 60.0
    assert next_delay(fixed, 0, source, retry_after=30.0, longest_retry_after=0.0) == 2.0


def test_nothing_is_sent_after_the_deadline() -> None:
    fixed, source = Fixed(2.0, None), random.Random(1)
    assert next_delay(fixed, 0, source, elapsed=8.0, deadline=10.0) == 2.0
    assert next_delay(fixed, 0, source, elapsed=8.1, deadline=10.0) is None


def test_a_plain_function_is_a_policy_too() -> None:
    assert next_delay(lambda attempt, source: 1.5 * attempt, 4, random.Random(1)) == 6.0


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Exponential(base=-1.0), r"Exponential\(base=-1.0\): give seconds, 0 or more"),
        (lambda: FullJitter(cap=math.nan), r"FullJitter\(cap=nan\): it should be a finite number"),
        (lambda: Exponential(cap=math.inf), r"cap=inf"),
        (lambda: Fixed(seconds=math.inf), r"Fixed\(seconds=inf\)"),
        (lambda: Immediate(max_attempts=0), r"Immediate\(max_attempts=0\): give sends in all"),
        (lambda: Immediate().delay(-1, random.Random(1)), "attempt is -1"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused_in_a_sentence(make: object, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        make()


def test_every_policy_is_frozen_and_equal_to_its_like() -> None:
    for name in retry.__all__:
        kind = getattr(retry, name)
        if inspect.isclass(kind) and hasattr(kind, "__dataclass_fields__"):
            assert kind() == kind()
            assert kind.__dataclass_params__.frozen
