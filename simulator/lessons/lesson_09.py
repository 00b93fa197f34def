"""What lesson 09, backoff and jitter, asks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from simulator.experiments.storm import Load, storm
from simulator.lessons.backoff import LIBRARIES
from simulator.lessons.course import (
    Choice,
    FunctionExercise,
    Judgement,
    Lesson,
    MeasuredExercise,
    Mistake,
    Number,
    Option,
    Question,
    SortExercise,
)
from simulator.service.retry import FullJitter, ceiling

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["GOALS", "LESSON", "OUTAGE"]

# ------------------------------------------------------------------------- full_jitter

MILLION = 1_000_000


def _draws() -> SearchStrategy[tuple[int, float, float, float]]:
    from hypothesis import strategies as st

    return st.tuples(
        st.one_of(st.integers(0, 8), st.sampled_from([30, 1023, 1024, 1025, 5000])),
        st.sampled_from([1.0, 0.05, 0.5, 2.0]),
        st.sampled_from([30.0, 20.0, 0.5, 3600.0]),
        st.sampled_from([0.5, 0.0, 0.25, 0.9, 0.999]),
    )


def _full_jitter(attempt: int, base: float, cap: float, luck: float) -> float:
    return luck * ceiling(attempt, base, cap)


def _steps(attempt: int, base: float, cap: float, luck: float) -> str:
    power = f"{base:g} · 2^{attempt}"
    if attempt <= 30:
        power += f" = {base * 2.0**attempt:,.4g}"
    below = ceiling(attempt, base, cap)
    return f"The ceiling is min({cap:g}, {power}) = {below:g} s, and `luck` says where below it."


def _power(attempt: int) -> float:
    return 2.0 ** min(attempt, 1000)


FULL_JITTER = FunctionExercise(
    name="full_jitter",
    task="give a delay that lies the share `luck` of the way from 0 to the ceiling "
    "min(cap, base · 2^attempt), for every attempt from 0 to 1,000,000",
    arguments=_draws,
    examples=(
        (0, 1.0, 30.0, 0.5),
        (3, 1.0, 30.0, 0.5),
        (10, 1.0, 30.0, 0.5),
        (3, 0.05, 20.0, 0.25),
        (4, 2.0, 30.0, 0.9),
        (0, 2.0, 0.5, 0.5),
        (2, 1.0, 30.0, 0.0),
        (1023, 1.0, 30.0, 0.25),
        (1024, 1.0, 30.0, 0.25),
        (MILLION, 0.05, 20.0, 0.5),
    ),
    reference=_full_jitter,
    returns="a finite number of seconds",
    accepts=lambda value: (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    ),
    costs="a fleet whose delays are alike comes back as one wave, the provider works for people "
    "who have stopped waiting, and what it pays for them is sent again.",
    because=_steps,
    same=lambda got, expected: math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-12),
    raised={
        "OverflowError": "The ceiling should be the cap by then. But the power is computed first, "
        "and a float ends near 1.8e308, just below 2^1024: the retry loop that was to outlast "
        "a long outage dies of it. Twisted, stamina and others had this very bug. Keep the "
        "exponent small before you take the power."
    },
    mistakes=(
        Mistake(
            lambda n, base, cap, luck: min(cap, min(cap, base * _power(n)) * (1 + 0.2 * luck)),
            "That is the lesson's formula: a fifth of jitter on top, and then the cap cuts it "
            "off. At the cap nothing is left of it. Let luck choose below the ceiling.",
        ),
        Mistake(
            lambda n, base, cap, luck: min(cap, luck * base * _power(n)),
            "You let luck act before the cap. After a few attempts nearly every product is above "
            "the cap and is cut off to the same number: the beat is back. First the cap, then "
            "luck.",
        ),
        Mistake(
            lambda n, base, cap, luck: min(cap, base * _power(n)),
            "That is the ceiling itself, without luck: all who failed together come back together.",
        ),
        Mistake(
            lambda n, base, cap, luck: min(cap, base * _power(n)) * (1 + luck) / 2,
            "That is equal jitter: half of the wait is certain. Full jitter begins at 0.",
        ),
        Mistake(
            lambda n, base, cap, luck: luck * base * _power(n),
            "There is no cap in it. After attempt 20 it would wait for days.",
        ),
        Mistake(
            lambda n, base, cap, luck: luck * min(cap, base * _power(n + 1)),
            "Your power is one step ahead: attempt 0, the first failure, has the ceiling `base`.",
        ),
        Mistake(
            lambda n, base, cap, luck: luck * min(cap, base * 2.0 ** (min(n, 1000) - 1)),
            "Your power is one step behind: attempt 0, the first failure, has the ceiling `base`.",
        ),
        Mistake(
            lambda n, base, cap, luck: luck * min(cap, base * (2 ^ n)),
            "`2 ^ attempt` is no power in Python: `^` is a bitwise operation. A power is `**`.",
        ),
        Mistake(
            lambda n, base, cap, luck: luck * min(cap, base * n),
            "That grows by the same step each time. It should double.",
        ),
        Mistake(
            lambda n, base, cap, luck: luck * cap,
            "That spreads over the whole cap from the first failure on. It keeps a customer "
            "waiting for long after one lost message.",
        ),
    ),
    hints=(
        "Three steps, in this order: the power, the cap, and then luck. And ask of the first: how "
        "large does it get at attempt 1,024?",
        "The ceiling is `min(cap, base * 2.0**attempt)`, and the delay `luck * ceiling`. For the "
        "large attempts let the exponent be `min(attempt, 1000)`.",
        "`return luck * min(cap, base * 2.0 ** min(attempt, 1000))`.",
    ),
)

# --------------------------------------------------------------------------- find_bugs

OUT_OF_RANGE = "`attempt` is a whole number from 0 to 1,000,000, `luck` a number from 0 up to 1."


def _symptom(name: str, attempt: int, luck: float) -> str:
    """What is wrong with this call, in words; empty if nothing is."""
    formula, called = LIBRARIES[name], f"`library_{name.lower()}({attempt}, {luck:g})`"
    try:
        delay = formula(attempt, luck)
    except OverflowError:
        return f"{called} raises OverflowError, and the retry loop is dead."
    if delay < 0:
        return f"{called} gives {delay:g} s, and `time.sleep` refuses a negative number."
    if formula(attempt, 0.0) == formula(attempt, 0.999):
        return f"{called} gives {delay:g} s, and so it does with any other luck: one beat."
    return ""


def _close(name: str, attempt: int, luck: float) -> str:
    """A word for who is close, or what was seen."""
    if name == "A" and attempt >= 900:
        return "Warm. Where does a float end?"
    if name == "B" and attempt == 4:
        return "Almost: look one attempt further, where the power alone is above the cap."
    if name == "C" and attempt == 0:
        return "The right attempt. What happens with more luck?"
    low, high = sorted(LIBRARIES[name](attempt, share) for share in (0.0, 0.999))
    return f"With other luck it gives {low:.1f} to {high:.1f} s: nothing is wrong there."


def _judge_bugs(answer: Any) -> Judgement | None:
    if not isinstance(answer, dict):
        return Judgement(
            False, ("I expected a dict from A, B and C to a pair (attempt, luck) each.",)
        )
    given = {name: answer.get(name, ...) for name in LIBRARIES}
    if all(call is ... or call == (..., ...) for call in given.values()):
        return None
    found: list[str] = []
    for name, call in given.items():
        if call is ... or call == (..., ...):
            return Judgement(False, (*found, f"{name} has no call yet."))
        attempt, luck = call if isinstance(call, tuple | list) and len(call) == 2 else (None, None)
        if (
            not isinstance(attempt, int)
            or not isinstance(luck, int | float)
            or not (0 <= attempt <= MILLION and 0 <= luck < 1)
        ):
            return Judgement(False, (f"{name} is {call!r}. {OUT_OF_RANGE}",))
        symptom = _symptom(name, attempt, luck)
        if not symptom:
            delay = LIBRARIES[name](attempt, luck)
            return Judgement(
                False,
                (
                    *found,
                    f"`library_{name.lower()}({attempt}, {luck:g})` gives {delay:.4g} s, between "
                    f"0 and the cap. {_close(name, attempt, luck)}",
                ),
            )
        found.append(symptom)
    return Judgement(True, tuple(found))


FIND_BUGS = MeasuredExercise(
    name="find_bugs",
    task="name for each of the three libraries a call (attempt, luck) that shows what is wrong "
    "with it: it raises, it gives a negative delay, or it gives everybody the same delay",
    judge=_judge_bugs,
    costs="such a line is read by many and tried by nobody: it fails on the one day when the "
    "outage is long.",
    hints=(
        "Each has one of the three faults. Go through the attempts: 0, then those just around the "
        "cap, then very large ones. Luck may be anything from 0 up to 1.",
        "A takes its power before the cap, and in floats. B adds luck before the cap. C takes "
        "luck off a delay that may be shorter than it.",
        '`"A": (1024, 0.5), "B": (5, 0.5), "C": (0, 0.9)`.',
    ),
    minutes=6.0,
)

# -------------------------------------------------------------------------- tune_retry

OUTAGE = 30.0  # seconds
CLIENTS = 1_000
CAPACITY = 125.0  # refunds a second
GOALS = {"drain": 25.0, "wave": 120.0, "calls": 7.0, "attempts": 20}
RUNS = 5


def _worst(policy: Any) -> tuple[list[Load], dict[str, float]]:
    loads = [
        storm(CLIENTS, policy, outages=((0.0, OUTAGE),), horizon=120.0, seed=seed)
        for seed in range(1, RUNS + 1)
    ]
    worst = {
        "lost": max(load.gave_up + load.waiting for load in loads),
        "drain": max(load.time_to_drain for load in loads),
        "wave": max(load.peak for load in loads),
        "calls": max(load.calls_per_refund for load in loads),
    }
    return loads, worst


def _judge_tuned(answer: Any) -> Judgement:
    from simulator.lessons.storm_plots import calls_after_outage

    if not callable(getattr(answer, "delay", None)) or isinstance(answer, type):
        return Judgement(
            False,
            ("I expected a policy with its numbers, such as `FullJitter(base=1.0, cap=30.0, …)`.",),
        )
    sends = getattr(answer, "max_attempts", 1)
    if sends is None or sends > GOALS["attempts"]:
        return Judgement(
            False,
            (
                f"`max_attempts` is {sends}. Let it end after {GOALS['attempts']:.0f}: a refund "
                "that can never succeed would be sent for ever, by every customer who has one.",
            ),
        )
    loads, worst = _worst(answer)
    figure = calls_after_outage({type(answer).__name__: loads[0]}, CAPACITY)
    figure.supxlabel("")  # the sentences are on the card
    drain = f"{worst['drain']:.0f} s" if worst["drain"] < math.inf else "not within 90 s"
    measured = (
        f"The worst of {RUNS} runs: {worst['lost']:,} of {CLIENTS:,} without an answer (0), "
        f"drained {drain} after the outage (at most {GOALS['drain']:.0f}), highest wave "
        f"{worst['wave']:.0f} calls a second (at most {GOALS['wave']:.0f}), "
        + (
            f"{worst['calls']:.1f} calls for each refund (at most {GOALS['calls']:.0f})."
            if worst["calls"] < math.inf
            else "and nobody answered."
        )
    )
    missed = _missed(answer, worst)
    return Judgement(not missed, (measured, *((missed,) if missed else ())), figure)


def _missed(policy: Any, worst: dict[str, float]) -> str:
    """Words for the first goal that was missed."""
    if worst["wave"] > GOALS["wave"]:
        if not isinstance(policy, FullJitter):
            return (
                f"The wave is too high. `{type(policy).__name__}` leaves those who failed together "
                "too close together; which policy spreads them over the whole wait?"
            )
        return (
            "The wave is too high. At the end of the outage each client waits somewhere within one "
            "cap: the shorter the cap, the closer they come."
        )
    if worst["lost"]:
        return (
            "Some customers got no answer. Their sends were used up while the provider was still "
            "down: allow more of them, or make the first waits longer."
        )
    if worst["drain"] > GOALS["drain"]:
        return (
            "It takes too long. When the provider is back, the last client still sleeps through "
            "what is left of its wait, and that is up to one cap."
        )
    if worst["calls"] > GOALS["calls"]:
        return (
            "Too many calls. The first few come so fast that none of them can meet a provider that "
            "is back: which number makes the early waits longer?"
        )
    return ""


TUNE_RETRY = MeasuredExercise(
    name="tune_retry",
    task="be a policy under which, after 30 s of outage, in each of five runs, all 1,000 customers "
    "are answered within 25 s, no second has more than 120 calls, a refund takes at most 7 calls, "
    "and nobody sends more than 20 times",
    judge=_judge_tuned,
    costs="too slow, and customers ask again; too fast, and the wave is paid for and never heard.",
    hints=(
        "Begin with `FullJitter(base=1.0, cap=30.0, max_attempts=20)` and change one number at a "
        "time. Which goal does each of them move?",
        "The cap decides two things: the last customer waits up to one cap, and the wave is about "
        "1,000 calls in half a cap plus one second. The base decides how many early calls are in "
        "vain.",
        "`FullJitter(base=2.0, cap=20.0, max_attempts=20)`.",
    ),
)

# ----------------------------------------------------------------------- choose_policy

CHOOSE = SortExercise(
    name="choose_policy",
    task="choose how each of the three places should retry",
    groups=("two quick tries", "full jitter, long", "no retry"),
    right={
        "Pip's chat": "two quick tries",
        "the outbox worker": "full jitter, long",
        "the worker's HTTP library": "no retry",
    },
    because={
        "Pip's chat": "Mira looks at the screen. A lost message deserves a second try; after that "
        "she is told the truth, that it is being verified, and the worker goes on.",
        "the outbox worker": "Nobody waits on the line, the row must be dealt with however long "
        "the outage is, and the key makes it safe.",
        "the worker's HTTP library": "The worker above it retries already. Three attempts in each "
        "of five layers are 243 calls for one refund (Amazon Builders' Library): retry in one.",
    },
    mistakes={
        ("Pip's chat", "full jitter, long"): "A minute later Mira has closed the window. What she "
        "gets by waiting is nothing that a follow-up message would not give her.",
        ("Pip's chat", "no retry"): 'Then every lost message becomes a "we\'ll let you know". One '
        "second try costs her a second or two, and saves nearly all of them.",
        ("the outbox worker", "two quick tries"): "In an outage of a minute both are over after "
        "two seconds, and every refund of that minute ends with a human.",
        ("the outbox worker", "no retry"): "Then each lost message ends with a human, and the "
        "outbox was built in vain.",
        ("the worker's HTTP library", "two quick tries"): "It looks harmless. But the worker "
        "retries too, and the two multiply: twice the calls, just when there are too many.",
        ("the worker's HTTP library", "full jitter, long"): "Then each of the worker's attempts "
        "is a whole series of attempts. The worker can't see them, nor count them, nor end them.",
    },
    costs="a storm is made of retries that looked harmless where they were written.",
    hints=(
        "Ask of each place: who waits for it, and who retries if it doesn't?",
        "Somebody watches the chat, nobody watches the worker, and above the library there is "
        "somebody who retries already.",
        "Quick for the chat, long for the worker, and one of them gets none.",
    ),
    minutes=4.0,
)

# -------------------------------------------------------------------------- the lesson

LESSON = Lesson(
    number="09",
    name="backoff and jitter",
    file="09_backoff_and_jitter",
    questions=(
        Question(
            name="blind-replay",
            asks="A look-up and a refund both time out. Which may simply be sent again?",
            options={
                "a": Option(
                    "both: a timeout means that nothing happened",
                    "It means that nothing came. The refund may have been paid.",
                ),
                "b": Option(
                    "the look-up; the refund only with the same key as before",
                    "A read changes nothing. A write is repeated only where the provider can see "
                    "that it is the same one.",
                ),
                "c": Option(
                    "neither",
                    "A look-up can be repeated as often as you like, and a refund with its key.",
                ),
            },
            right="b",
        ),
        Question(
            name="same-key-again",
            asks="The fifth attempt of a refund is sent. Which idempotency key does it carry?",
            options={
                "a": Option(
                    "a new one: it is a new request",
                    "To the provider it would then be a new refund, and be paid.",
                ),
                "b": Option(
                    "that of the first attempt",
                    "The key belongs to the wish, not to the attempt.",
                ),
                "c": Option(
                    "none, the fifth is too late for one",
                    "Without a key it is paid whatever came of the first four.",
                ),
            },
            right="b",
        ),
    ),
    predictions=(
        Number(
            name="fixed-pause",
            asks="A thousand customers, a provider that is down for 10 s and then does 125 refunds "
            "a second; each of them sends again after 1 s, up to twelve times in all. How many of "
            "the thousand get an answer?",
            unit="customers",
            low=0,
            high=1000,
            says="They come as one block of a thousand. In the second that a client waits, the "
            "provider does 125; for the others it works after they have stopped waiting, and "
            "then they send again.",
            slack=50,
        ),
        Choice(
            name="lowest-wave",
            asks="Seven ways to retry after the same outage. Under which is the highest second "
            "after it the lowest, among those that answer everybody?",
            options={
                "a": Option(
                    "exponential",
                    "Waiting longer, all equally long, is not spreading out.",
                    "exponential",
                ),
                "b": Option(
                    "the lesson's formula",
                    "It is labelled full jitter, and spreads over a fifth of the wait.",
                    "lesson",
                ),
                "c": Option(
                    "equal jitter",
                    "Equal jitter leaves the lower half of the window empty.",
                    "equal",
                ),
                "d": Option(
                    "full jitter",
                    "Full jitter uses the whole window, from 0 up.",
                    "full",
                ),
                "e": Option(
                    "decorrelated jitter",
                    "Its delays never fall below the base, and grow by luck.",
                    "decorrelated",
                ),
            },
        ),
        Number(
            name="seconds-with-calls",
            asks="After five minutes of outage everybody waits at the cap of 30 s, with the "
            "lesson's formula. In how many of the last 60 seconds before the provider is back "
            "does any of the thousand call at all?",
            unit="of 60 seconds",
            low=0,
            high=60,
            says="In all the others the line is silent, and in these it is full.",
            slack=4,
        ),
        Choice(
            name="where-luck-goes",
            asks="The formula draws its luck anew for every customer. Why do they still come "
            "together?",
            options={
                "a": Option(
                    "a fifth is too little luck for a thousand customers",
                    "A fifth of 30 s are six seconds, and the silence would be shorter by as much.",
                ),
                "b": Option(
                    "`random.uniform` gives many customers the same number",
                    "It gives everybody another one; look at attempts 2 and 4.",
                ),
                "c": Option(
                    "what luck adds is cut off again",
                    "At the cap the last line is min(30, 30 + something), and that is 30.",
                ),
                "d": Option(
                    "the outage has synchronised their clocks",
                    "It made them start together. Whether they stay together is up to the delays.",
                ),
            },
        ),
        Choice(
            name="first-to-finish",
            asks="In the famous figure 190 clients change the same row of a database. Which of its "
            "policies has them all done first?",
            options={
                "a": Option(
                    "full jitter",
                    "Full jitter needs few writes. That is not what was asked.",
                    "full",
                ),
                "b": Option(
                    "equal jitter", "Equal jitter always waits for half of its ceiling.", "equal"
                ),
                "c": Option(
                    "decorrelated jitter",
                    "Decorrelated jitter is fast, and still it waits.",
                    "decorrelated",
                ),
                "d": Option(
                    "no backoff at all",
                    "A try in vain costs nothing on this server, so who never waits is done first, "
                    "with four times the writes.",
                    "none",
                ),
            },
        ),
        Number(
            name="after-the-freeze",
            asks="200 refunds a second are wanted, and 300 can be done. Everybody retries once. "
            "The provider freezes for 10 s and goes on. A minute later, how many of the 200 a "
            "second are answered in time?",
            unit="a second",
            low=0,
            high=300,
            says="400 calls a second come, and 300 can be done. The queue is longer than anybody's "
            "patience, so each answer comes too late, and each late answer makes a retry.",
            slack=20,
        ),
        Choice(
            name="what-ends-it",
            asks="One of these four leaves the service locked up. Which?",
            options={
                "a": Option(
                    "the one retry waits with full jitter",
                    "Jitter moves the second call, and does not remove it: 400 a second are 400 a "
                    "second, whenever they come.",
                    "one retry with full jitter",
                ),
                "b": Option(
                    "nobody retries", "Without retries 200 come, and 200 fit into 300.", "no retry"
                ),
                "c": Option(
                    "a budget: retries are at most a tenth of all refunds",
                    "With a budget 220 come, and they fit into 300.",
                    "a budget",
                ),
                "d": Option(
                    "the provider drops what nobody waits for any more",
                    "A provider that sheds works for people who are still there.",
                    "shedding",
                ),
            },
        ),
        Number(
            name="jitter-and-money",
            asks="Full jitter, the outage, no key, and one answer in a hundred is lost. How many "
            "of the 1,000 refunds are paid twice, on average?",
            unit="of 1,000",
            low=0,
            high=1000,
            says="As many as answers are lost. When a retry comes changes nothing about what it "
            "does.",
            slack=5,
        ),
        Number(
            name="plateau",
            asks="500 refunds are in the outbox, the provider has been down for minutes, the "
            "worker's policy is full jitter up to 30 s, and a timeout takes 1 s. How many calls a "
            "second?",
            unit="calls a second",
            low=0,
            high=500,
            says="Each waits 15 s on average, and 1 s for the answer that never comes: one call in "
            "16 s, and 500 / 16 is 31.",
            close=0.15,
        ),
    ),
    exercises=(FULL_JITTER, FIND_BUGS, TUNE_RETRY, CHOOSE),
)
