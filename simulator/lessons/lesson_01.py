"""What lesson 01, the thousand-dollar refund, asks."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from simulator.lessons.course import (
    Choice,
    FunctionExercise,
    Lesson,
    Mistake,
    Number,
    Option,
    Question,
    SortExercise,
)
from simulator.lessons.lesson_00 import is_cents

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from simulator.experiments.run import Run

__all__ = ["LESSON"]

Payments = list[tuple[str, int]]

# ----------------------------------------------------------------------------- overpaid


def _ledgers() -> SearchStrategy[tuple[Payments, dict[str, int]]]:
    from hypothesis import strategies as st

    names = st.sampled_from(["refund-1", "refund-2", "refund-3"])
    amounts = st.sampled_from([50_000, 30_000])
    owed = st.dictionaries(names, amounts, max_size=3)
    return st.tuples(st.lists(st.tuples(names, amounts), max_size=4), owed)


def _sums(paid: Payments) -> Counter[str]:
    sums: Counter[str] = Counter()
    for refund, amount in paid:
        sums[refund] += amount
    return sums


def _overpaid(paid: Payments, owed: dict[str, int]) -> int:
    return sum(max(0, total - owed.get(refund, 0)) for refund, total in _sums(paid).items())


def _per_refund(paid: Payments, owed: dict[str, int]) -> str:
    if not paid:
        return "Nothing was paid, so nothing was paid too much."
    parts = []
    for refund in dict.fromkeys(name for name, _ in paid):
        total = sum(amount for name, amount in paid if name == refund)
        right = owed.get(refund, 0)
        extra = f"{total - right:,} too much" if total > right else "nothing too much"
        parts.append(f"`{refund}` was paid {total:,} and is owed {right:,}: {extra}.")
    return " ".join(parts)


def _doubled(paid: Payments, owed: dict[str, int]) -> Run | None:
    """A history with such a ledger: one refund, paid twice."""
    counts = Counter(refund for refund, _ in paid)
    if not any(count > 1 and refund in owed for refund, count in counts.items()):
        return None
    from simulator import designs, faults, replay

    return replay(designs.NAIVE, faults=[faults.lose_response("provider.refund")])


def _only_owed(paid: Payments, owed: dict[str, int]) -> int:
    return _overpaid([(refund, amount) for refund, amount in paid if refund in owed], owed)


def _all_of_repeated(paid: Payments, owed: dict[str, int]) -> int:
    counts = Counter(refund for refund, _ in paid)
    return sum(amount for refund, amount in paid if counts[refund] > 1)


def _after_the_first(paid: Payments, owed: dict[str, int]) -> int:
    seen: set[str] = set()
    total = 0
    for refund, amount in paid:
        if refund in seen:
            total += amount
        seen.add(refund)
    return total


OVERPAID = FunctionExercise(
    name="overpaid",
    task="say how many cents were paid too much: `paid` is a list of (refund, cents), `owed` a "
    "dict from refund to cents",
    arguments=_ledgers,
    examples=(
        ([("refund-1", 50_000), ("refund-1", 50_000)], {"refund-1": 50_000}),
        ([("refund-1", 50_000)], {"refund-1": 50_000}),
        ([], {"refund-1": 50_000}),
        (
            [("refund-1", 50_000), ("refund-1", 50_000)],
            {"refund-1": 50_000, "refund-2": 50_000},
        ),
        (
            [("refund-1", 50_000), ("refund-2", 50_000)],
            {"refund-1": 50_000, "refund-2": 50_000},
        ),
        ([("refund-3", 30_000)], {"refund-1": 50_000}),
        ([("refund-1", 30_000), ("refund-1", 30_000)], {"refund-1": 50_000}),
        ([("refund-1", 50_000)] * 3 + [("refund-2", 30_000)], {"refund-1": 50_000}),
    ),
    reference=_overpaid,
    returns="a whole number of cents",
    accepts=is_cents,
    costs="what this number does not show is money that has left the shop and that nobody "
    "will ask back.",
    because=_per_refund,
    raised={
        "KeyError": "You asked a dict for a key that it does not have: a refund's sum that has not "
        "begun, or a refund that nobody owes. `.get(key, 0)` gives zero then.",
    },
    history=_doubled,
    mistakes=(
        Mistake(
            lambda paid, owed: sum(t - owed.get(name, 0) for name, t in _sums(paid).items()),
            "You count a refund that was paid in part as less than nothing, and it hides another "
            "that was paid too much. What is missing here makes up for nothing there: "
            "`max(0, …)`, refund by refund.",
        ),
        Mistake(
            lambda paid, owed: sum(abs(t - owed.get(name, 0)) for name, t in _sums(paid).items()),
            "`abs` counts what is still missing as paid too much. Below what is owed the answer is "
            "zero: `max(0, …)`.",
        ),
        Mistake(
            lambda paid, owed: sum(
                max(0, cents - owed.get(name, 0)) for name, cents in dict(paid).items()
            ),
            "Do you make a dict of the payments, as `dict(paid)` does? A dict keeps one value for "
            "each refund, the last: the second payment takes the place of the first instead of "
            "being added.",
        ),
        Mistake(
            lambda paid, owed: _overpaid(paid, owed) // 100,
            "You turned cents into dollars. Tomas asks for cents, and so do the books.",
        ),
        Mistake(
            lambda paid, owed: sum(cents for _, cents in paid) - sum(owed.values()),
            "You compare two grand totals. A refund that was never paid then hides one that was "
            "paid twice, and the result can even be negative. Compare refund by refund.",
        ),
        Mistake(
            lambda paid, owed: max(0, sum(cents for _, cents in paid) - sum(owed.values())),
            "You compare two grand totals. A refund that was never paid then hides one that was "
            "paid twice. Compare refund by refund.",
        ),
        Mistake(
            lambda paid, owed: sum(cents for _, cents in paid) - sum({cents for _, cents in paid}),
            "You took equal amounts for the same refund. Two customers may each be owed $500: "
            "what makes two payments one refund is the refund's name, never the amount.",
        ),
        Mistake(
            lambda paid, owed: len(paid) - len({refund for refund, _ in paid}),
            "That is how many payments came twice. The bookkeeper asks how many cents.",
        ),
        Mistake(
            lambda paid, owed: sum(max(0, cents - owed.get(refund, 0)) for refund, cents in paid),
            "You look at each payment alone, and each one alone is fine. Only their sum is not. "
            "Add up what each refund got before you compare.",
        ),
        Mistake(
            _all_of_repeated,
            "You count all payments of a refund that was paid twice. One of them was owed: only "
            "what goes beyond it is too much.",
        ),
        Mistake(
            _after_the_first,
            "You count every payment after a refund's first. But a refund may be paid in two "
            "parts, and a first payment may be wrong already. Compare with what is owed.",
        ),
        Mistake(
            _only_owed,
            "You look only at refunds that are owed. Money paid for a refund that nobody asked "
            "for is all too much.",
        ),
        Mistake(
            lambda paid, owed: sum(cents for _, cents in paid),
            "That is everything that was paid, what was owed included.",
        ),
    ),
    hints=(
        "Take it in two steps: first, for each refund, how much was paid in all; then, for each "
        "refund, how much of that is more than what is owed.",
        "For the first step make a dict from refund to its sum, and add each payment to it. For "
        "the second, `owed.get(refund, 0)` is what is owed, zero for an unknown refund.",
        "With `sums` from the first step: "
        "`return sum(max(0, total - owed.get(refund, 0)) for refund, total in sums.items())`.",
    ),
)

# -------------------------------------------------------------------- expected_payments


def _losses() -> SearchStrategy[tuple[float, int]]:
    from hypothesis import strategies as st

    return st.tuples(st.sampled_from([0.5, 0.0, 1.0, 0.1, 0.01, 0.2, 0.9]), st.integers(1, 6))


def _expected_payments(p: float, attempts: int) -> float:
    """By going through the cases, so that it does not share a formula with the student.

    Paid exactly k times, for k below `attempts`: k - 1 answers lost and then one that came.
    """
    average = 0.0
    for k in range(1, attempts):
        average += k * p ** (k - 1) * (1 - p)
    return average + attempts * p ** (attempts - 1)


def _by_attempt(p: float, attempts: int) -> str:
    ordinals = ["first", "second", "third", "fourth", "fifth", "sixth"]
    parts = [
        f"the {ordinals[k]} is sent (and paid) with probability {p**k:.4g}" for k in range(attempts)
    ]
    return "Of the attempts, " + ", ".join(parts) + ". The average is their sum."


def _is_number(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value)  # type: ignore[arg-type]


EXPECTED = FunctionExercise(
    name="expected_payments",
    task="say how many times a refund is paid on average, when each answer is lost with "
    "probability `p` and the service sends at most `attempts` times",
    arguments=_losses,
    examples=((0.5, 2), (0.5, 3), (0.5, 1), (0.1, 3), (0.0, 3), (1.0, 4), (0.2, 5)),
    reference=_expected_payments,
    returns="a finite number",
    accepts=_is_number,
    costs="a shop that budgets for the wrong average finds the rest missing at the end of the "
    "month.",
    because=_by_attempt,
    same=lambda got, expected: math.isclose(got, expected, rel_tol=1e-6, abs_tol=1e-9),
    mistakes=(
        Mistake(
            lambda p, attempts: p * attempts,
            "You multiply the two. But a first attempt is always sent and paid, and every further "
            "one only if all answers before it were lost.",
        ),
        Mistake(
            lambda p, attempts: p**attempts,
            "That is the probability that every answer is lost. The question is how often a refund "
            "is paid on average, once at least.",
        ),
        Mistake(
            lambda p, attempts: sum(k * p ** (k - 1) * (1 - p) for k in range(1, attempts + 1)),
            "After the last attempt the service gives up, whether that answer came or not: "
            "`attempts` payments either way. You leave out the refunds whose last answer is lost "
            "as well.",
        ),
        Mistake(
            lambda p, attempts: sum(k * p ** (k - 1) * (1 - p) for k in range(1, attempts)),
            "You leave out the refunds that use up all attempts: they are paid `attempts` times.",
        ),
        Mistake(
            lambda p, attempts: int(_expected_payments(p, attempts)),
            "You cut the average to a whole number. An average may lie between: 1.5 payments for "
            "each refund is three for two.",
        ),
        Mistake(
            lambda p, attempts: round(_expected_payments(p, attempts)),
            "You round the average to a whole number. An average may lie between: 1.5 payments for "
            "each refund is three for two.",
        ),
        Mistake(
            lambda p, attempts: 1 + p,
            "You stop at the second payment. But the second answer can be lost as well, and "
            "then a third is sent.",
        ),
        Mistake(
            lambda p, attempts: 1 + p + p**2,
            "That is the answer for exactly three attempts, always three. Let `attempts` decide.",
        ),
        Mistake(
            lambda p, attempts: 1 / (1 - p),
            "That is the average when the service never gives up. This one sends at most "
            "`attempts` times.",
        ),
        Mistake(
            lambda p, attempts: 1 + p * (attempts - 1),
            "You count every further attempt with the same probability. The third is sent only "
            "if the first answer **and** the second were lost.",
        ),
        Mistake(
            lambda p, attempts: sum(p**k for k in range(1, attempts + 1)),
            "Your sum begins one step too late: the first attempt is always sent, with "
            "probability 1, not `p`.",
        ),
        Mistake(
            lambda p, attempts: sum(p**k for k in range(attempts + 1)),
            "Your sum has one term too many: there are `attempts` sends, and the first has the "
            "power 0.",
        ),
        Mistake(
            lambda p, attempts: sum(p**k for k in range(attempts - 1)),
            "Your sum has one term too few: there are `attempts` sends, and the last has the "
            "power `attempts - 1`.",
        ),
        Mistake(
            lambda p, attempts: p ** (attempts - 1),
            "That is the probability that all attempts are used up, not how often money is paid.",
        ),
        Mistake(
            lambda p, attempts: p if attempts > 1 else 0.0,
            "That is the probability of being paid at least twice. The question is how often a "
            "refund is paid on average, once at least.",
        ),
        Mistake(
            lambda p, attempts: attempts,
            "That is the most it can be. Most of the time the first answer arrives and nothing "
            "more is sent.",
        ),
    ),
    hints=(
        "Every attempt that is sent is paid. So ask of each attempt how likely it is to be sent "
        "at all, and add these up.",
        "The first is always sent. The second is sent if one answer was lost, the third if two "
        "in a row were: 1, `p`, `p * p`, …",
        "`return sum(p**k for k in range(attempts))`.",
    ),
)

# --------------------------------------------------------------------------- sort_tools

SORT = SortExercise(
    name="sort_tools",
    task='put each of Pip\'s tools into "read" or "write"',
    groups=("read", "write"),
    right={
        "get_order_status": "read",
        "issue_refund": "write",
        "search_books": "read",
        "send_apology_email": "write",
        "estimate_refund": "read",
        "buy_return_label": "write",
        "get_voucher_code": "write",
    },
    because={
        "get_order_status": "It looks something up and leaves the world as it was.",
        "issue_refund": "Money moves. Calling it a second time moves it again.",
        "search_books": "Search as often as you like: the shelf stays as it is.",
        "send_apology_email": "A second call puts a second email in front of a customer.",
        "estimate_refund": "It computes a number and pays nobody.",
        "buy_return_label": "The carrier charges for each label.",
        "get_voucher_code": "It makes a new voucher each time: a second call, a second voucher.",
    },
    mistakes={
        ("get_voucher_code", "read"): "A name that begins with `get` promises nothing. Ask what "
        "a second call would leave behind.",
        ("send_apology_email", "read"): "None of our tables changes, that is true. A side effect "
        "is any change outside the function, and someone's mailbox is outside.",
        ("estimate_refund", "write"): "`refund` in a name does not move money yet. Ask what would "
        "be different in the world afterwards.",
        ("buy_return_label", "read"): "You get a PDF back, as from a look-up. But the carrier's "
        "books have changed, and an invoice will come.",
        ("get_order_status", "write"): "It may write a line to a log. Nobody minds if that "
        "happens twice, so it counts as a read.",
        ("search_books", "write"): "A slow read is still a read.",
        ("issue_refund", "read"): "It also returns something, as a read does. What counts is "
        "what it leaves behind.",
    },
    costs="what counts as a read is repeated without a thought when an answer is late. A write "
    "among the reads is repeated as well.",
    hints=(
        "For each tool imagine that it is called twice by mistake. Who would notice?",
        "If nobody would notice, it is a read. A mailbox, a carrier's invoice and a customer's "
        "bank account are places where someone would.",
        "Four of the seven are writes, and one of those has a name that sounds like a read.",
    ),
)

# ---------------------------------------------------------------------------- the lesson

LESSON = Lesson(
    number="01",
    name="the thousand-dollar refund",
    file="01_the_thousand_dollar_refund",
    questions=(
        Question(
            name="who-runs-a-tool",
            asks="A model answers with a tool call. Who runs the tool?",
            options={
                "a": Option(
                    "the model, on the machine where the model runs",
                    "A model only writes text. A tool call is a wish in JSON.",
                ),
                "b": Option(
                    "our backend, if it decides to",
                    "The model proposes; our code decides, runs it, and answers for it.",
                ),
                "c": Option(
                    "the customer's browser",
                    "The browser shows the conversation. It has no keys to the payment provider.",
                ),
            },
            right="b",
        ),
        Question(
            name="same-thought-twice",
            asks="The model did not see a result and calls the tool again. What will the second "
            "call look like?",
            options={
                "a": Option(
                    "the same, byte for byte",
                    "It may be. Nothing guarantees it: a model draws its words at random.",
                ),
                "b": Option(
                    "a new call with a new id, perhaps with the amount spelled another way",
                    "So nothing inside a tool call says whether it is the same wish or a new one. "
                    "Keep that in mind until lesson 04.",
                ),
                "c": Option(
                    "a call marked as a repetition",
                    "Nobody marks it. The model does not even know what became of the first.",
                ),
            },
            right="b",
        ),
        Question(
            name="who-moves-money",
            asks="In lesson 00 one refund went right. On whose line of the picture did the money "
            "move?",
            options={
                "a": Option(
                    "the agent's",
                    "The agent only asked. It never touches money.",
                ),
                "b": Option(
                    "the backend's",
                    "The backend sent a request and got an answer. Somebody else acted in between.",
                ),
                "c": Option(
                    "the provider's",
                    "Someone else's computer, behind a network: that is where the trouble begins.",
                ),
            },
            right="c",
        ),
    ),
    predictions=(
        Choice(
            name="our-books",
            asks="The provider's first answer is lost. When all is over, how much do **our own "
            "books** say was refunded?",
            options={
                "a": Option(
                    "nothing",
                    "The first answer never came, that is true. But the service asks again, hears "
                    "the second answer, and writes that down.",
                    0,
                ),
                "b": Option(
                    "$500",
                    "Books hold what the service has heard, and it has heard one answer. Of the "
                    "first payment nobody ever told it.",
                    500,
                ),
                "c": Option(
                    "$1,000",
                    "That is what left the shop. But our service can't write down a payment that "
                    "it never heard of.",
                    1000,
                ),
            },
        ),
        Choice(
            name="tell-apart",
            asks="One history loses the request, the other the answer. Can our service tell which "
            "one it is in?",
            options={
                "a": Option(
                    "yes, the waiting time differs",
                    "It waits for its timeout in both, two seconds, and then stops waiting.",
                ),
                "b": Option(
                    "yes, the error is another one",
                    "Both are the same `CallTimeout`: it says that nothing came, not why.",
                ),
                "c": Option(
                    "no",
                    "Event by event and to the microsecond, the service sees the same. So no code "
                    "in the service, however clever, can act rightly in both by looking.",
                ),
            },
        ),
        Number(
            name="rate",
            asks="Each answer is lost with a chance of one in ten. Out of 100 refunds, how many "
            "are paid at least twice?",
            unit="of 100",
            low=0,
            high=100,
            says="One lost answer is all it takes: the request was paid, and is sent again. So "
            "the rate of double refunds **is** the rate of lost answers.",
            slack=2,
        ),
        Number(
            name="rare",
            asks="Now only one answer in a thousand is lost, and the shop makes 10,000 refunds "
            "of $500 a day. How many dollars a day are paid too much?",
            unit="dollars a day",
            low=0,
            high=5_000_000,
            says="One in a thousand sounds like never. At ten thousand a day it is ten a "
            "day, of $500 each.",
            close=0.4,
            actual=10_000 * 0.001 * 500,
        ),
        Choice(
            name="at-the-timeout",
            asks="Two seconds are over and nothing came. What should the service do?",
            options={
                "a": Option(
                    "send the request again",
                    "Right when the request was lost. When the answer was lost, it pays twice.",
                ),
                "b": Option(
                    "give up and tell Mira that the refund failed",
                    "It never pays twice by itself. But when the answer was lost it has paid, and "
                    "says that it has not.",
                ),
                "c": Option(
                    "tell Mira that it is done: the provider is reliable",
                    "When the answer was lost, what Mira hears is true, though our books never "
                    "learn of the payment. When the request was lost, she waits for money that "
                    "nobody sent.",
                ),
                "d": Option(
                    "tell Mira that it is being looked into",
                    "The one honest sentence. But somebody must then look, and here nobody does: "
                    "Mira hears nothing more.",
                ),
            },
        ),
    ),
    exercises=(SORT, OVERPAID, EXPECTED),
)
