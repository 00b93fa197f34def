"""Questions about the lesson before: what one calls back to mind stays (Wilson 2019)."""

from __future__ import annotations

from simulator.lessons import course, widgets
from simulator.lessons.cards import Card, at_once
from simulator.lessons.logbook import record

__all__ = ["question"]


@at_once
def question(name: str, answer: str | None = None) -> Card | None:
    """Ask a question, or judge an answer to it, with the reason either way.

    Args:
        name: which question.
        answer: the option's letter; None asks with buttons.
    """
    try:
        asked = course.question(name)
    except course.UnknownNameError as error:
        return Card("raised", str(error))
    if answer is None:
        widgets.ask_choice(
            asked.asks,
            {letter: option.text for letter, option in asked.options.items()},
            lambda letter: _judge(asked, letter),
            otherwise=f'question("{name}", "b")',
        )
        return None
    letter = str(answer).strip().lower()
    if letter not in asked.options:
        return Card(
            "question",
            f"There is no option {answer!r}.",
            (f"Choose one of {', '.join(asked.options)}.", *widgets.listed(asked.options)),
        )
    return Card("question", asked.asks, (_judge(asked, letter),))


def _judge(asked: course.Question, letter: str) -> str:
    option = asked.options[letter]
    record("questions", asked.name, letter)
    verdict = "Right" if letter == asked.right else "Not this one"
    return f"**{letter}**, {option.text}. **{verdict}.** {option.says}"
