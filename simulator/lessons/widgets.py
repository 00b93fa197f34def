"""Buttons and fields where the page can show them, and the same in words where it can't.

Radio buttons and fields are the browser's own: Tab reaches each, Space chooses a button, Enter
ends a number. (JupyterLab keeps the arrow keys to itself, for going from cell to cell.) Every
question says how it is answered by a plain call: a page without widgets (or a reader of the
file) shows that text in the widget's place.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any

from simulator.lessons.cards import Card, in_notebook
from simulator.lessons.course import Option

__all__ = ["ask_choice", "ask_number", "listed"]


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
    _show(made, words, asks, buttons, answered, otherwise)


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
        (f"A number of {unit}. No field here? Write it into the call: `{otherwise}`",),
    )
    made = _widgets()
    if made is None:
        print(words)
        return
    # Text, not FloatText: an empty field is no prediction of zero.
    field = made.Text(
        placeholder=f"{low:g} to {high:g}", continuous_update=False, layout=made.Layout(width="9em")
    )

    def number(text: str) -> str:
        try:
            value = float(text.replace(",", ".").strip(" %$"))
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            return f"Write a number from {low:g} to {high:g} ({unit})."
        return answered(value)

    _show(made, words, asks, field, number, otherwise, after=f"{unit}, then Enter")


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
    after: str = "",
) -> None:
    from IPython.display import display

    status = made.HTML(
        f'<span style="opacity: 0.7">No buttons that work? Write '
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
