"""What lesson 02, five ways a tool call fails, asks."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

from simulator.lessons.course import (
    Choice,
    FunctionExercise,
    Lesson,
    Mistake,
    Number,
    Option,
    Question,
)

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from simulator.experiments.run import Run

__all__ = ["LESSON"]

# ---------------------------------------------------------------------------- name_mode

ROUND = ["asked", "sent", "paid", "heard", "booked"]
GAVE_UP = {
    "lost request": ["asked", "sent", "booked"],
    "lost response": ["asked", "sent", "paid", "booked"],
}

LOGS: dict[str, list[list[str]]] = {
    "none": [ROUND],
    "lost request": [
        ["asked", "sent", "sent", "paid", "heard", "booked"],
        GAVE_UP["lost request"],
        ["asked", "sent", "sent", "sent", "paid", "heard", "booked"],
    ],
    "lost response": [
        ["asked", "sent", "paid", "sent", "paid", "heard", "booked"],
        GAVE_UP["lost response"],
        ["asked", "sent", "paid", "sent", "paid", "sent", "paid", "heard", "booked"],
    ],
    "death": [
        ["asked", "sent", "paid", "heard", "died", *ROUND],
        ["asked", "sent", "paid", "died", *ROUND],
        ["asked", "sent", "died", "paid", *ROUND],
        ["asked", "sent", "paid", "heard", "died"],
    ],
    "again": [ROUND * 2, ROUND * 3],
    "at once": [
        ["asked", "asked", "sent", "sent", "paid", "paid", "heard", "heard", "booked", "booked"],
        ["asked", "sent", "asked", "sent", "paid", "paid", "heard", "booked", "heard", "booked"],
        ["asked", "sent", "paid", "heard", "asked", "booked", "sent", "paid", "heard", "booked"],
    ],
}
MODES = tuple(LOGS)


def _logs() -> SearchStrategy[tuple[list[str]]]:
    from hypothesis import strategies as st

    every = sorted((log for logs in LOGS.values() for log in logs), key=len)
    return st.tuples(st.sampled_from(every))


def _name_mode(log: list[str]) -> str:
    if "died" in log:
        return "death"
    if log.count("asked") > 1:
        second = log.index("asked", log.index("asked") + 1)
        return "again" if "booked" in log[:second] else "at once"
    if log.count("paid") < log.count("sent"):
        return "lost request"
    if log.count("heard") < log.count("paid"):
        return "lost response"
    return "none"


_WHY_MODE = {
    "none": "Asked, sent, paid, heard and booked, each once: nothing went wrong.",
    "lost request": "Something was sent that was never paid: that request did not arrive.",
    "lost response": "Something was paid that the service never heard of, and nobody died: that "
    "answer did not arrive.",
    "death": "The service died before it had booked. All that follows comes from that.",
    "again": "The refund was booked before it was asked for a second time.",
    "at once": "The second call came while the first was not booked yet.",
}


def _history_of(log: list[str]) -> Run | None:
    """The history behind such a log: by NAIVE, or by ONE_SHOT where nobody sent again."""
    from simulator import Scenario, designs, faults, replay

    lost = {"lost request": faults.lose_request, "lost response": faults.lose_response}
    mode = _name_mode(log)
    if mode in lost:
        gave_up = log.count("sent") == 1
        design = designs.ONE_SHOT if gave_up else designs.NAIVE
        return replay(design, faults=[lost[mode]("provider.refund")])
    if mode == "death":
        return replay(designs.NAIVE, faults=[faults.crash("provider.refund")])
    if mode == "again":
        return replay(designs.NAIVE, Scenario.resubmitted_elsewhere())
    return replay(designs.NAIVE, Scenario.double_click()) if mode == "at once" else None


def _by_payments(log: list[str]) -> str:
    return "lost response" if log.count("paid") > 1 else _name_mode(log)


def _by_sends(log: list[str]) -> str:
    return "lost request" if log.count("sent") > 1 else _name_mode(log)


def _without_death(log: list[str]) -> str:
    return _name_mode([word for word in log if word != "died"])


def _two_calls_are(mode: str) -> Any:
    def like(log: list[str]) -> str:
        found = _name_mode(log)
        return mode if found in ("again", "at once") else found

    return like


def _lost_is(mode: str) -> Any:
    def like(log: list[str]) -> str:
        found = _name_mode(log)
        return mode if found in ("lost request", "lost response") else found

    return like


def _only_if_repeated(log: list[str]) -> str:
    found = _name_mode(log)
    alone = found in ("lost request", "lost response") and log.count("sent") == 1
    return "none" if alone else found


NAME_MODE = FunctionExercise(
    name="name_mode",
    task='read a log and name what went wrong: "lost request", "lost response", "death", "again", '
    '"at once", or "none"',
    arguments=_logs,
    examples=tuple((log,) for logs in LOGS.values() for log in logs),
    reference=_name_mode,
    returns='one of "lost request", "lost response", "death", "again", "at once" and "none"',
    accepts=lambda got: got in MODES,
    costs="each of the five has another cure. Who names the wrong one builds the wrong cure, and "
    "the money goes on leaving.",
    because=lambda log: _WHY_MODE[_name_mode(log)],
    history=_history_of,
    mistakes=(
        Mistake(
            _by_payments,
            "You go by the damage. Paid twice is what four of the five modes look like in the "
            "end; look for what came first.",
        ),
        Mistake(
            lambda log: "lost response" if log.count("paid") > 1 else "none",
            "You look for the damage alone. Four of the five modes can end in two payments, and "
            "some logs are wrong without a second one. Look for what came first.",
        ),
        Mistake(
            _by_sends,
            "A second `sent` says that the service heard nothing. Whether the request or the "
            "answer was lost, `paid` tells you.",
        ),
        Mistake(
            _without_death,
            "You do not look at `died`. The second call and the missing answer are consequences "
            "of the death: ask for it first.",
        ),
        Mistake(
            _two_calls_are("again"),
            "You call every second call `again`. Look at when it came: was the first already "
            "booked?",
        ),
        Mistake(
            _two_calls_are("at once"),
            "You call every second call `at once`. If the first was booked by then, nothing ran "
            "at the same time.",
        ),
        Mistake(
            _lost_is("lost response"),
            "You take every silence for a lost response. Where more was sent than paid, the "
            "request itself was lost.",
        ),
        Mistake(
            _lost_is("lost request"),
            "You take every silence for a lost request. Where all that was sent was paid, the "
            "request did arrive.",
        ),
        Mistake(
            _only_if_repeated,
            "You look for a second attempt. A service that gives up makes none, and the message "
            "was lost all the same. Compare the counts.",
        ),
    ),
    hints=(
        "Some words explain others: a death explains a second call, and a second call explains a "
        "second payment. Ask for the causes first.",
        'In order: `"died" in log`; then more than one `"asked"`, and whether `"booked"` stands '
        "before the second; then fewer `paid` than `sent`; then fewer `heard` than `paid`.",
        'For the second call: `second = log.index("asked", log.index("asked") + 1)`, and then '
        '`return "again" if "booked" in log[:second] else "at once"`.',
    ),
)

# ------------------------------------------------------------------------- what_it_knows

SILENT = ("timeout", "reset", "error 500")
HEARD = ("paid", "declined", "no connection", *SILENT)


def _heard() -> SearchStrategy[tuple[list[str]]]:
    from hypothesis import strategies as st

    return st.tuples(st.lists(st.sampled_from(HEARD), max_size=3))


def _what_it_knows(heard: list[str]) -> str:
    if "paid" in heard:
        return "done"
    return "unknown" if any(word in SILENT for word in heard) else "not done"


def _why_known(heard: list[str]) -> str:
    if not heard:
        return "Nothing was sent, so nothing can have been done."
    if "paid" in heard:
        return 'One "paid" settles it, whatever else came.'
    silent = next((word for word in heard if word in SILENT), None)
    if silent is None:
        return "Each send was definitely not carried out: refused, or never on its way."
    if len(heard) == 1:
        return f'After "{silent}" the provider may have paid, or not.'
    return f'The send that ended in "{silent}" may have been paid; no other one tells.'


def _silent_history(heard: list[str]) -> Run | None:
    """What a lone timeout can mean: paid, and nothing heard."""
    if heard not in (["timeout"], ["reset"]):
        return None
    from simulator import designs, faults, replay

    broken = {"timeout": faults.lose_response, "reset": faults.reset}[heard[0]]
    return replay(designs.ONE_SHOT, faults=[broken("provider.refund")])


def _without(*words: str) -> Any:
    return lambda heard: _what_it_knows([word for word in heard if word not in words])


def _refusal_settles(heard: list[str]) -> str:
    return "not done" if "declined" in heard and "paid" not in heard else _what_it_knows(heard)


def _silence_beats_all(heard: list[str]) -> str:
    return "unknown" if any(word in SILENT for word in heard) else _what_it_knows(heard)


def _never_sent_is_unknown(heard: list[str]) -> str:
    return _what_it_knows(["timeout" if word == "no connection" else word for word in heard])


def _empty_is_unknown(heard: list[str]) -> str:
    return _what_it_knows(heard) if heard else "unknown"


KNOWS = FunctionExercise(
    name="what_it_knows",
    task="say what the service knows after its sends, from what each of them came back with: "
    '"done", "not done" or "unknown"',
    arguments=_heard,
    examples=(
        *(([word],) for word in HEARD),
        ([],),
        (["timeout", "paid"],),
        (["timeout", "declined"],),
        (["declined", "timeout"],),
        (["timeout", "no connection"],),
        (["no connection", "declined"],),
        (["no connection", "paid"],),
        (["error 500", "no connection"],),
    ),
    reference=_what_it_knows,
    returns='"done", "not done" or "unknown"',
    accepts=lambda got: got in ("done", "not done", "unknown"),
    costs="what is wrongly taken for `not done` is paid again; what is wrongly taken for `done` is "
    "never paid; and for what is `unknown` without need a human spends a quarter of an hour.",
    because=_why_known,
    history=_silent_history,
    mistakes=(
        Mistake(
            _without(*SILENT),
            "You take silence for a no. After a timeout, a reset or an error 500 the provider may "
            "have paid. Of 21 published systems that were run under such faults, 18 made this "
            "mistake.",
        ),
        Mistake(
            _without("reset"),
            "A connection that breaks while you wait is no refusal: the request may have arrived "
            "before it broke.",
        ),
        Mistake(
            _without("error 500"),
            "An error 500 is an answer, and says nothing about the money. Stripe writes: treat "
            "requests that return 500 errors as indeterminate.",
        ),
        Mistake(
            lambda heard: _what_it_knows(heard[-1:]),
            "You look at the last send alone. That one was not carried out says nothing about the "
            "ones before it.",
        ),
        Mistake(
            lambda heard: _what_it_knows(heard[:1]),
            "You look at the first send alone. A later one can settle the matter, or open it.",
        ),
        Mistake(
            _refusal_settles,
            '"declined" is about that one send. If an earlier one ended in silence, that one may '
            "have been paid.",
        ),
        Mistake(
            _silence_beats_all,
            'One "paid" is enough to know that it is done. (That it was not done **twice** you '
            "still don't know.)",
        ),
        Mistake(
            _never_sent_is_unknown,
            'With "no connection" nothing ever left the house: the one failure that is harmless to '
            "repeat.",
        ),
        Mistake(
            _empty_is_unknown,
            "Before anything was sent, you know for sure: not done.",
        ),
        Mistake(
            lambda heard: "done" if _what_it_knows(heard) == "unknown" else _what_it_knows(heard),
            "You hope. After a silence the provider has *probably* paid, and that is not knowing.",
        ),
    ),
    hints=(
        "Sort the six words first. Which of them say yes, which a definite no, and which say "
        "nothing about the money?",
        'Then think of several sends: one "paid" settles it. Without one, a single silent send is '
        "enough to know nothing.",
        'First `if "paid" in heard: return "done"`; then `return "unknown"` if any word of `heard` '
        'is "timeout", "reset" or "error 500"; else `return "not done"`.',
    ),
)

# ------------------------------------------------------------------------------ p_double


SHOWN = 1 - 0.25 - 0.1875
"""The `s` of the notebook, which a function that forgets its own `s` finds there."""


def _sends() -> SearchStrategy[tuple[float, float, int]]:
    from hypothesis import strategies as st

    shares = st.sampled_from([0.1, 0.2, 0.0, 0.25, 0.5])
    return st.tuples(shares, shares, st.integers(1, 5))


def _p_double(a: float, b: float, n: int) -> float:
    """By going through all ways of n sends, so that it shares no formula with the student."""
    ends = {"lost": a, "unheard": b, "answered": 1.0 - a - b}
    total = 0.0
    for way in product(ends, repeat=n):
        sends = way[: way.index("answered") + 1] if "answered" in way else way
        if len(sends) - sends.count("lost") >= 2:
            total += math.prod(ends[end] for end in way)
    return total


def _parts(a: float, b: float, n: int) -> tuple[float, float, float]:
    """Never paid; once and heard; once and unheard."""
    return (a**n, (1 - a - b) * sum(a**k for k in range(n)), n * a ** (n - 1) * b)


def _why_double(a: float, b: float, n: int) -> str:
    never, heard, unheard = _parts(a, b, n)
    return (
        f"Never paid: {never:.4g}. Paid once and heard: {heard:.4g}. Paid once and unheard: "
        f"{unheard:.4g}. The rest is paid twice or more."
    )


def _is_number(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value)  # type: ignore[arg-type]


def _rest(weights: tuple[float, float, float]) -> Any:
    """1 minus the three parts, each times its weight: 0 where a student forgot one."""

    def like(a: float, b: float, n: int) -> float:
        return 1 - sum(w * part for w, part in zip(weights, _parts(a, b, n), strict=True))

    return like


P_DOUBLE = FunctionExercise(
    name="p_double",
    task="give the probability that a refund is paid twice or more, when each send's request is "
    "lost with probability `a`, its answer with probability `b`, and at most `n` sends are made",
    arguments=_sends,
    examples=(
        (0.25, 0.25, 2),
        (0.25, 0.25, 1),
        (0.25, 0.25, 3),
        (0.0, 0.5, 3),
        (0.5, 0.0, 3),
        (0.5, 0.5, 4),
        (0.2, 0.1, 5),
    ),
    reference=_p_double,
    returns="a finite number",
    accepts=_is_number,
    costs="a manager decides by this number what a cure may cost.",
    because=_why_double,
    same=lambda got, expected: math.isclose(got, expected, rel_tol=1e-6, abs_tol=1e-9),
    mistakes=(
        Mistake(
            lambda a, b, n: b,
            "That holds when no request is lost and two sends are allowed. A lost request gives "
            "the refund one more chance to go wrong, and takes one attempt away.",
        ),
        Mistake(
            lambda a, b, n: b / (1 - a),
            "That is the answer for a service that never gives up. This one sends at most `n` "
            "times.",
        ),
        Mistake(
            _rest((0, 1, 0)),
            "You took away only one of the three harmless cases: paid once, and heard. A refund "
            "that is never paid is not paid twice either.",
        ),
        Mistake(
            _rest((0, 1, 1)),
            "You forgot the refunds that are never paid because all `n` requests are lost.",
        ),
        Mistake(
            _rest((1, 1, 0)),
            "You forgot the refunds that are paid once and never heard of, because all other "
            "requests were lost.",
        ),
        Mistake(
            _rest((1, 0, 1)),
            "You forgot the most frequent case: paid once, and heard.",
        ),
        Mistake(
            lambda a, b, n: 1 - a**n - (1 - a - b) * sum(a**k for k in range(n)) - a ** (n - 1) * b,
            "The one request that arrives, unheard, can be any of the `n`: first, second, …, last.",
        ),
        *(
            Mistake(
                like,
                "You use the `s` of the notebook, which belongs to one `a` and one `b`. Work it "
                "out inside the function: `s = 1 - a - b`.",
            )
            for like in (
                lambda a, b, n: (
                    1 - a**n - SHOWN * sum(a**k for k in range(n)) - n * a ** (n - 1) * b
                ),
                lambda a, b, n: 1 - a**3 - SHOWN * (1 + a + a**2) - 3 * a**2 * b,
            )
        ),
        Mistake(
            lambda a, b, n: 1 - a**3 - (1 - a - b) * (1 + a + a**2) - 3 * a**2 * b,
            "That is the formula for exactly three sends, always three. Let `n` decide.",
        ),
        Mistake(
            lambda a, b, n: 1 - a**n - (1 - a - b) - n * a ** (n - 1) * b,
            "Being answered at the first send is not the only good end: requests may be lost "
            "before it. That is a sum over how many were.",
        ),
        Mistake(
            lambda a, b, n: (
                1 - a**n - (1 - a - b) * sum(a**k for k in range(1, n + 1)) - n * a ** (n - 1) * b
            ),
            "Your sum begins one step too late: before the answered send, 0 to `n - 1` requests "
            "were lost.",
        ),
        Mistake(
            lambda a, b, n: 1 - _p_double(a, b, n),
            "That is the probability that all is well. You were asked for the rest.",
        ),
    ),
    hints=(
        "Count what is harmless, and take it from 1. The three steps above are the three harmless "
        "cases for `n = 3`; put `n` where the 3 comes from.",
        "Never paid: `a**n`. Paid once, heard: `s` times the sum of `a**k` for k from 0 to n - 1. "
        "Paid once, unheard: n places for the one that arrives, and n - 1 lost requests.",
        "With `s = 1 - a - b`: "
        "`return 1 - a**n - s * sum(a**k for k in range(n)) - n * a**(n - 1) * b`.",
    ),
)

# -------------------------------------------------------------------------- fewest_faults

Tried = list[tuple[list[str], frozenset[str]]]

LOST, DEAD = "lose_response", "crash"
LIE, TWICE = "false_answer", "double_refund"


def _tried() -> SearchStrategy[tuple[Tried, str]]:
    from hypothesis import strategies as st

    faults = st.lists(st.sampled_from([LOST, DEAD]), max_size=3)
    verdict = st.frozensets(st.sampled_from([LIE, TWICE, "lost_refund"]), max_size=2)
    return st.tuples(
        st.lists(st.tuples(faults, verdict), max_size=4), st.sampled_from([LIE, TWICE])
    )


def _fewest_faults(tried: Tried, broken: str) -> int | None:
    return min((len(faults) for faults, verdict in tried if broken in verdict), default=None)


def _why_fewest(tried: Tried, broken: str) -> str:
    counts = [len(faults) for faults, verdict in tried if broken in verdict]
    if not counts:
        return f"No history in the list breaks `{broken}`."
    listed = ", ".join(str(count) for count in counts)
    return f"The histories that break `{broken}` have this many faults: {listed}."


def _first(tried: Tried, broken: str) -> int | None:
    return next((len(faults) for faults, verdict in tried if broken in verdict), None)


def _lie_of_one_fault(tried: Tried, broken: str) -> Run | None:
    if _fewest_faults(tried, broken) != 1 or broken != LIE:
        return None
    from simulator import designs, faults, replay

    return replay(designs.ONE_SHOT, faults=[faults.lose_response("provider.refund")])


FEWEST = FunctionExercise(
    name="fewest_faults",
    task="say how few faults are enough to break `broken`: `tried` is a list of (faults, verdict), "
    "a list of faults and a set of names. If no history breaks it, return -1",
    arguments=_tried,
    examples=(
        ([([], frozenset()), ([LOST], frozenset({LIE}))], LIE),
        ([([LOST, DEAD], frozenset({LIE})), ([DEAD], frozenset({LIE}))], LIE),
        ([([LOST], frozenset({TWICE})), ([LOST, DEAD], frozenset({LIE}))], LIE),
        ([([LOST, DEAD], frozenset({LIE, "lost_refund"}))], LIE),
        ([([], frozenset())], LIE),
        ([([], frozenset({TWICE})), ([LOST], frozenset({TWICE}))], TWICE),
        ([], LIE),
        ([([DEAD, LOST, DEAD], frozenset({TWICE})), ([LOST, LOST], frozenset({TWICE}))], TWICE),
    ),
    reference=lambda tried, broken: (
        -1 if _fewest_faults(tried, broken) is None else _fewest_faults(tried, broken)
    ),
    returns="a whole number",
    accepts=lambda got: isinstance(got, int) and not isinstance(got, bool),
    costs="the fewest faults are the likeliest way to lose money. Who overlooks it repairs the "
    "second likeliest.",
    because=_why_fewest,
    history=_lie_of_one_fault,
    mistakes=(
        Mistake(
            lambda tried, broken: min((len(f) for f, v in tried if v), default=-1),
            "You take any broken history. Asked for are those that break `broken`.",
        ),
        Mistake(
            lambda tried, broken: min((len(f) for f, _ in tried), default=-1),
            "You take the histories that broke nothing as well.",
        ),
        Mistake(
            lambda tried, broken: -1 if _first(tried, broken) is None else _first(tried, broken),
            "You take the first that breaks it. The list is in no order: a later one may need "
            "fewer faults.",
        ),
        Mistake(
            lambda tried, broken: min((len(f) for f, v in tried if v == {broken}), default=-1),
            "You take only histories that break this and nothing else. Most break several at once: "
            "use `in`, not `==`.",
        ),
        Mistake(
            lambda tried, broken: max((len(f) for f, v in tried if broken in v), default=-1),
            "You take the most faults, not the fewest.",
        ),
        Mistake(
            lambda tried, broken: sum(broken in v for _, v in tried),
            "That is how many histories break it. The question is how few faults it takes.",
        ),
        Mistake(
            lambda tried, broken: min((len(f) for f, v in tried if broken in v), default=0),
            "For a list in which nothing breaks you say 0 faults. That would mean: it breaks by "
            "itself. Say -1.",
        ),
    ),
    hints=(
        "Two steps: keep the histories whose verdict contains `broken`; of those, the smallest "
        "number of faults.",
        "`[len(faults) for faults, verdict in tried if broken in verdict]` are the numbers. Mind "
        "the case in which there are none.",
        "`return min((len(faults) for faults, verdict in tried if broken in verdict), "
        "default=-1)`.",
    ),
)

# ---------------------------------------------------------------------------- the lesson

LESSON = Lesson(
    number="02",
    name="five ways a tool call fails",
    file="02_five_ways_a_tool_call_fails",
    questions=(
        Question(
            name="what-a-timeout-says",
            asks="Your service sent a request, waited two seconds, and got a timeout. What does it "
            "know?",
            options={
                "a": Option(
                    "the refund was not paid",
                    "It would be so, had the request been lost. Had the answer been lost, the "
                    "service would have seen the same.",
                ),
                "b": Option(
                    "nothing came back",
                    "And no more than that. It is not even known which of the two messages was "
                    "lost.",
                ),
                "c": Option(
                    "the provider is down",
                    "A provider that is up and well, and has just paid, looks the same from here.",
                ),
            },
            right="b",
        ),
        Question(
            name="blind-retry-share",
            asks="A service retries blindly, and one answer in a hundred is lost. How many refunds "
            "are paid twice?",
            options={
                "a": Option(
                    "one in ten thousand: two things must go wrong",
                    "One lost answer is enough: the second payment needs no second fault.",
                ),
                "b": Option(
                    "one in a hundred",
                    "The share of double refunds **is** the share of lost answers.",
                ),
                "c": Option(
                    "three in a hundred: it sends three times",
                    "The later sends only happen after a loss. The first loss decides.",
                ),
            },
            right="b",
        ),
    ),
    predictions=(
        Number(
            name="modes-that-double",
            asks="Your service retries blindly (NAIVE). In how many of the five modes does it pay "
            "Mira twice?",
            unit="of 5",
            low=0,
            high=5,
            says="All but the lost request: the one mode in which sending again is just right.",
            close=0,
        ),
        Choice(
            name="careful-crash",
            asks="ONE_SHOT sends a request once, and never again. It has been paid for and "
            "answered, and now the service dies before it has written that down. How much leaves "
            "the shop?",
            options={
                "a": Option(
                    "nothing",
                    "The provider had paid before anybody died.",
                    0,
                ),
                "b": Option(
                    "$500: it never sends twice",
                    "**It** never does. But it is not alone: Pip gets no answer and calls the tool "
                    "again, and the new life of the service knows nothing of the old one.",
                    500,
                ),
                "c": Option(
                    "$1,000",
                    "The service sent once in each of two lives. What is not written down did not "
                    "happen, as far as the second one can tell.",
                    1000,
                ),
            },
        ),
        Choice(
            name="one-unheard",
            asks="Three sends. How likely is it that exactly one is paid, its answer lost, and "
            "both other requests lost?",
            options={
                "a": Option(
                    "a² · b",
                    "That is one order, for example lost, lost, unheard. The unheard one can also "
                    "be the first or the second.",
                ),
                "b": Option(
                    "3 · a² · b",
                    "Two lost requests, one lost answer, and three places for it.",
                ),
                "c": Option(
                    "b",
                    "That is one send alone. Here the two others have to be lost as well.",
                ),
            },
        ),
        Number(
            name="even-odds",
            asks="Lantern Books makes 40 refunds a day, and one in a thousand is paid twice. After "
            "how many working days has it more likely happened than not?",
            unit="working days",
            low=1,
            high=10_000,
            says="Less than a month, at a shop with two people at the desk. A rare event needs "
            "only enough tries.",
            close=0.25,
        ),
        Choice(
            name="more-attempts",
            asks="Requests and answers get lost. We allow the service 1, 2, … 6 attempts. What "
            "becomes of the refunds?",
            options={
                "a": Option(
                    "fewer are paid twice, and fewer are never paid",
                    "Each further attempt pays a refund that was lost, and pays again one that was "
                    "not. It cannot tell which is which.",
                ),
                "b": Option(
                    "more are paid twice, and fewer are never paid",
                    "A dial, with a wrong at each end. You can choose which wrong.",
                ),
                "c": Option(
                    "more are paid twice, and more are never paid",
                    "More attempts do help those whose request was lost.",
                ),
            },
        ),
        Choice(
            name="least-bad",
            asks="Ines may have one of the four by noon. Which one do you give her?",
            options={
                "a": Option(
                    "NAIVE",
                    "Hardly a customer is left without money, and the shop pays for it: the most "
                    "double refunds of the four, and nobody writes to you about those.",
                ),
                "b": Option(
                    "ONE_SHOT",
                    "Fewer double refunds than NAIVE, but far from none: Pip and Mira ask again "
                    "even if the service does not. And it turns away people whom it has paid.",
                ),
                "c": Option(
                    "DURABLE_RECORD",
                    "Asking again is cured. What happens between the service and the provider is "
                    "not: there it still repeats itself.",
                ),
                "d": Option(
                    "PROVIDER_KEY",
                    "It loses no money, and that is the best of the four. But a refund whose "
                    "service dies is stuck, and its customer is told that it was paid.",
                ),
            },
        ),
    ),
    exercises=(NAME_MODE, KNOWS, P_DOUBLE, FEWEST),
)
