"""What lesson 00, start here, asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.lessons.course import Choice, FunctionExercise, Lesson, Mistake, Option

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["LESSON", "is_cents"]


def is_cents(value: object) -> bool:
    """Whether a value can be an amount of cents: a whole number, and not True or False."""
    return isinstance(value, int) and not isinstance(value, bool)


def _payments() -> SearchStrategy[tuple[list[int]]]:
    from hypothesis import strategies as st

    return st.tuples(st.lists(st.sampled_from([50_000, 30_000, 1_999]), max_size=5))


def _total_paid(payments: list[int]) -> int:
    return sum(payments)


def _because(payments: list[int]) -> str:
    if not payments:
        return "Nothing was paid, so the total is zero."
    if len(payments) == 1:
        return f"There was one payment, of {payments[0]}."
    return f"{' + '.join(map(str, payments))} = {sum(payments)}."


LESSON = Lesson(
    number="00",
    name="start here",
    file="00_start_here",
    predictions=(
        Choice(
            name="first-refund",
            asks="Nothing goes wrong. How much money does the provider send to Mira?",
            options={
                "a": Option("nothing", "Somebody has to send it, and here somebody does."),
                "b": Option(
                    "$500",
                    "One request, one payment, one answer. Remember this picture: every other "
                    "one in the course is this one with something broken.",
                    500,
                ),
                "c": Option("$1,000", "That needs something to go wrong. Wait for lesson 01."),
            },
        ),
    ),
    exercises=(
        FunctionExercise(
            name="total_paid",
            task="take a list of payments, in cents, and return their total, in cents",
            arguments=_payments,
            examples=(
                ([50_000],),
                ([50_000, 30_000],),
                ([50_000, 50_000],),
                ([],),
                ([1_999, 50_000, 30_000, 1_999],),
            ),
            reference=_total_paid,
            returns="a whole number of cents",
            minutes=1.0,
            accepts=is_cents,
            costs="a total that is wrong is how a double payment stays unseen.",
            because=_because,
            mistakes=(
                Mistake(
                    lambda payments: sum(set(payments)),
                    "A set keeps one of two equal payments. But two payments of $500 are $1,000 "
                    "gone: this is the very mistake that the course is about.",
                ),
                Mistake(
                    lambda payments: len(payments),
                    "That is how many payments there were, not how much they came to.",
                ),
                Mistake(
                    lambda payments: max(payments, default=0),
                    "That is the largest payment. The small ones cost money as well.",
                ),
                Mistake(
                    lambda payments: payments[0] if payments else None,
                    "Is your `return` inside the loop? Then the function ends in the first round, "
                    "and with an empty list it never gets there.",
                ),
                Mistake(
                    lambda payments: sum(payments) // 100,
                    "You turned cents into dollars, and lost what is less than a dollar. The total "
                    "stays in cents.",
                ),
                Mistake(
                    lambda payments: payments[0] if payments else 0,
                    "That is the first payment only. What was sent after it is gone too. Is your "
                    "`return` inside the loop?",
                ),
                Mistake(
                    lambda payments: payments[-1] if payments else 0,
                    "That is the last payment only. Do you overwrite the total in your loop, "
                    "instead of adding to it?",
                ),
                Mistake(
                    lambda payments: 50_000,
                    "That is right for one refund of $500, and for nothing else.",
                ),
            ),
            hints=(
                "You want one number from a list of numbers. Python has a word for it.",
                "The word is `sum`. It copes with an empty list too.",
                "Replace the line with `return sum(payments)`.",
            ),
        ),
    ),
)
