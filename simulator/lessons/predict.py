"""Predictions: said before a run, recorded, and set beside the result after it.

Predicting before one watches is what makes watching teach (Crouch 2004; Miller 2013).

    predict.choice("our-books")          buttons where they show
    predict.choice("our-books", "b")     the same anywhere
    predict.number("rate")               a field where it shows; `predict.number("rate", 12)`
    predict.reveal("our-books", amount)  the prediction beside what came out
"""

from __future__ import annotations

from typing import Any

from simulator.lessons import widgets
from simulator.lessons.cards import Card, at_once, code
from simulator.lessons.course import Choice, Number, UnknownNameError, prediction
from simulator.lessons.logbook import load, record
from simulator.lessons.widgets import number_from, number_text, range_text

__all__ = ["choice", "number", "reveal"]

_said: dict[str, Any] = {}
"""This session's predictions: they hold where no file can be written."""

_seen: set[str] = set()
"""Whose result was shown in this session: what is said afterwards is no prediction."""


@at_once
def choice(name: str, answer: str | None = None) -> Card | None:
    """Predict by choosing an option.

    Args:
        name: which prediction.
        answer: the option's letter; None asks with buttons.
    """
    asked = _asked(name, Choice)
    if isinstance(asked, Card):
        return asked
    if answer is None:
        widgets.ask_choice(
            asked.asks,
            {letter: option.text for letter, option in asked.options.items()},
            lambda letter: _keep(asked, letter),
            otherwise=f'predict.choice("{name}", "b")',
        )
        return None
    letter = str(answer).strip().lower()
    if letter not in asked.options:
        return Card(
            "prediction",
            f"There is no option {answer!r}.",
            (f"Choose one of {', '.join(asked.options)}.", *widgets.listed(asked.options)),
        )
    return Card("prediction", asked.asks, (_keep(asked, letter),))


@at_once
def number(name: str, answer: float | str | None = None) -> Card | None:
    """Predict a number, in the unit that the prediction names."""
    asked = _asked(name, Number)
    if isinstance(asked, Card):
        return asked
    if answer is None:
        widgets.ask_number(
            asked.asks,
            asked.unit,
            asked.low,
            asked.high,
            lambda value: _keep(asked, value),
            otherwise=f'predict.number("{name}", 12)',
        )
        return None
    try:
        value = number_from(answer) if isinstance(answer, str) else float(answer)
    except (TypeError, ValueError):
        value = float("nan")
    if not asked.low <= value <= asked.high:
        return Card(
            "prediction",
            f"{code(repr(answer))} can't be it.",
            (range_text(asked.low, asked.high, asked.unit, value),),
        )
    return Card("prediction", asked.asks, (_keep(asked, value),))


@at_once
def reveal(name: str, actual: Any = None) -> Card:
    """Set the prediction beside what came out.

    Args:
        name: which prediction.
        actual: what came out: the letter or the value of an option, or the number. None says
            that no option was right, or that the number is the one that the lesson has.

    Raises:
        ValueError: no option stands for `actual`, or the lesson has no number of its own.
    """
    try:
        asked = prediction(name)
    except UnknownNameError as error:
        return Card("raised", str(error))
    said = _said.get(name, load()["predictions"].get(name))
    _seen.add(name)
    if isinstance(asked, Choice):
        return _reveal_choice(asked, said, actual)
    actual = asked.actual if actual is None else actual
    if actual is None:
        raise ValueError(f"What came out of {name!r}? Give the number as the second argument.")
    return _reveal_number(asked, said, float(actual))


def _asked(name: str, kind: type[Any]) -> Any:
    """The prediction of that name and kind, or a card that says what is wrong with the name."""
    try:
        asked = prediction(name)
    except UnknownNameError as error:
        return Card("raised", str(error))
    if not isinstance(asked, kind):
        other = "choice" if isinstance(asked, Choice) else "number"
        return Card("raised", f'"{name}" is asked with `predict.{other}`.')
    return asked


def _keep(asked: Choice | Number, answer: Any) -> str:
    """Record a prediction; the sentence to show."""
    if isinstance(asked, Choice):
        said = f"**{answer}**, {asked.options[answer].text}"
    else:
        said = f"**{number_text(answer)} {asked.unit}**"
    if asked.name in _seen:
        return f"You have seen the result by now, so this is not recorded: {said}."
    _said[asked.name] = answer
    record("predictions", asked.name, answer)
    return f"Recorded, you predict: {said}."


def _nothing() -> str:
    """What is said where nothing was predicted; at length only once."""
    if len(_seen) > 1:
        return "You made no prediction."
    return (
        "You made no prediction. That is allowed, and costs you the best part: who guesses first "
        "remembers more. Guess before the next one."
    )


def _reveal_choice(asked: Choice, said: Any, actual: Any) -> Card:
    if actual is None:
        if said not in asked.options:
            return Card(
                "result", asked.asks, ("None of them is right in every history.", _nothing())
            )
        chosen = asked.options[said]
        return Card("result", asked.asks, (f"You chose **{said}**, {chosen.text}.", chosen.says))
    right = None
    for letter, option in asked.options.items():
        if actual == letter or (option.value is not None and option.value == actual):
            right = letter
    if right is None:
        raise ValueError(f"No option of {asked.name!r} stands for {actual!r}.")
    answer = asked.options[right]
    came = f"The answer: **{right}**, {answer.text}."
    if said not in asked.options:
        lines = (came, answer.says, _nothing())
    elif said == right:
        lines = (f"You predicted **{said}**, and so it was.", came, answer.says)
    else:
        option = asked.options[said]
        lines = (f"You predicted **{said}**, {option.text}.", came, option.says + " " + answer.says)
    return Card("result", asked.asks, tuple(line for line in lines if line))


def _reveal_number(asked: Number, said: Any, actual: float) -> Card:
    came = f"What came out: **{number_text(actual)} {asked.unit}**."
    if not isinstance(said, int | float):
        return Card("result", asked.asks, (came, asked.says, _nothing()))
    gap = abs(said - actual)
    if number_text(said) == number_text(actual):
        judged = "Exactly."
    elif gap <= max(asked.slack, asked.close * abs(actual)):
        judged = "That is close."
    elif said > 0 and actual > 0:
        larger, times = max(said, actual), max(said, actual) / min(said, actual)
        shown = f"{times:,.1f}".removesuffix(".0")
        judged = f"Your number is {shown} times too {'high' if larger == said else 'low'}."
    else:
        judged = f"That is {number_text(gap)} {asked.unit} apart."
    said_line = f"You predicted **{number_text(said)} {asked.unit}**."
    lines = (said_line, f"{came} {judged}", asked.says)
    return Card("result", asked.asks, tuple(line for line in lines if line))
