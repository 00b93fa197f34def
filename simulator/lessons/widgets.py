"""Buttons and fields where the page can show them, and the same in words where it can't.

Radio buttons and fields are the browser's own: Tab reaches each, Space chooses a button, Enter
ends a number. (JupyterLab keeps the arrow keys to itself, for going from cell to cell.) Every
question says how it is answered by a plain call: a page without widgets (or a reader of the
file) shows that text in the widget's place.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from simulator.lessons.cards import Card, in_notebook
from simulator.lessons.course import Option

__all__ = ["ask_choice", "ask_number", "listed", "number_from", "number_text", "range_text"]


def listed(options: Mapping[str, Option] | Mapping[str, str]) -> list[str]:
    """The options, a line each."""
    return [
        f"**{letter})** {option if isinstance(option, str) else option.text}"
        for letter, option in options.items()
    ]


def ask_choice(
    asks: str,
    options: Mapping[str, str],
    answered: Callable[[str], str],
    otherwise: str,
) -> None:
    """Ask with radio buttons; `answered` takes the letter and returns what to say then."""
    words = Card(
        "prediction",
        asks,
        (*listed(options), f"No buttons here? Write your letter into the call: `{otherwise}`"),
    )
    made = _widgets()
    if made is None:
        print(words)
        return
    buttons = made.RadioButtons(
        options=[(f"{letter}) {text}", letter) for letter, text in options.items()],
        index=None,
        layout=made.Layout(width="auto"),
    )
    _show(made, words, asks, buttons, answered, otherwise, "Do the buttons not work?")


def ask_number(
    asks: str,
    unit: str,
    low: float,
    high: float,
    answered: Callable[[float], str],
    otherwise: str,
) -> None:
    """Ask with a field that takes a number from `low` to `high`, and a button beside it."""
    words = Card(
        "prediction",
        asks,
        (f"{range_text(low, high, unit)} No field here? Write it into the call: `{otherwise}`",),
    )
    made = _widgets()
    if made is None:
        print(words)
        return
    # Text, not FloatText: an empty field is no prediction of zero.
    field = made.Text(
        placeholder=f"{number_text(low)} to {number_text(high)}",
        continuous_update=False,
        layout=made.Layout(width="9em"),
    )

    def number(text: str) -> str:
        value = number_from(text)
        if not low <= value <= high:
            return range_text(low, high, unit, value)
        return answered(value)

    fails = "Does the field not work?"
    _show(made, words, asks, field, number, otherwise, fails, after=f"{unit}, then Enter")


def number_text(value: float) -> str:
    """A number for people: 9.88, 5,000."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def range_text(low: float, high: float, unit: str, given: float = 0.0) -> str:
    """What numbers can be given, in a sentence, and how if what was `given` was none (NaN)."""
    plainly = " Write it in plain digits, like 5000." if math.isnan(given) else ""
    return f"Give a number from {number_text(low)} to {number_text(high)} ({unit}).{plainly}"


def number_from(text: str) -> float:
    """What a person means by a number: 12.5, 12,5, 5,000, 5 000, $5,000, 20 %; NaN if nothing."""
    text = re.sub(r"(?<=\d)[\s_'](?=\d{3}(?!\d))", "", text).strip(" \t\u00a0\u202f%$")
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d*)?", text):
        text = text.replace(",", "")
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return float("nan")


def _widgets() -> Any:
    """ipywidgets, or None where no page would show them."""
    if not in_notebook():
        return None
    try:
        import ipywidgets
    except ImportError:
        return None
    return ipywidgets


def _show(
    made: Any,
    words: Card,
    asks: str,
    control: Any,
    answered: Callable[[Any], str],
    otherwise: str,
    fails: str,
    after: str = "",
) -> None:
    from IPython.display import display

    status = made.HTML(
        f'<span style="opacity: 0.7">{fails} Write '
        f"<code>{html.escape(otherwise, quote=False)}</code> and run the cell.</span>"
    )

    def changed(change: dict[str, Any]) -> None:
        if change["new"] not in (None, ""):
            status.value = Card("prediction", answered(change["new"]))._repr_html_()

    control.observe(changed, "value")
    row = made.HBox([control, made.HTML(after)]) if after else control
    asked = made.HTML(Card("prediction", asks)._repr_html_())
    box = made.VBox([asked, row, status])
    # The bundle of a widget with our words instead of its repr, which says nothing to a reader.
    bundle = {**box._repr_mimebundle_(), "text/plain": str(words)}
    display(bundle, raw=True)
