"""What the lessons' helpers say: a card with a title and a few short paragraphs.

A card is text first, so that it reads the same in a terminal, in a notebook that shows no
HTML, and to a screen reader; colour and frame only repeat what the title says in words.
"""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Card", "at_once", "code", "in_notebook"]

P = ParamSpec("P")
MaybeCard = TypeVar("MaybeCard", bound="Card | None")

# Okabe and Ito's colour-blind-safe colours; the mark says the same without any colour.
LOOKS = {
    "right": ("✓", "#009E73"),
    "wrong": ("✗", "#D55E00"),
    "raised": ("!", "#D55E00"),
    "not attempted": ("…", "#0072B2"),
    "prediction": ("?", "#0072B2"),
    "result": ("=", "#0072B2"),
    "hint": ("→", "#CC79A7"),
    "question": ("?", "#0072B2"),
    "progress": ("#", "#0072B2"),
    "picture": ("↑", "#999999"),
}


def in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel, where cards and widgets can be shown."""
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    return hasattr(get_ipython(), "kernel")


@dataclass(frozen=True)
class Card:
    """A card to show.

    Attributes:
        kind: a key of `LOOKS`.
        title: one line that says it all.
        paragraphs: text with `code` in backticks and **bold**; a paragraph that is indented
            by four blanks keeps its lines. Somebody else's text goes through `code`.
        figure: a picture that belongs to it, shown below.
    """

    kind: str
    title: str
    paragraphs: tuple[str, ...] = ()
    figure: Figure | None = None
    _shown_in: list[int] = field(default_factory=list, init=False, repr=False, compare=False)
    """The cell that has shown it already: as the last value there it need not show again."""

    def __str__(self) -> str:
        mark, _ = LOOKS[self.kind]
        return "\n".join([f"{mark} {_plain(self.title)}", *map(_plain, self.paragraphs)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        mark, colour = LOOKS[self.kind]
        body = "".join(_as_html(text) for text in self.paragraphs)
        title = f'<span style="color: {colour}">{mark}</span> {_inline(self.title)}'
        if self.kind != "picture":
            title = f"<b>{title}</b>"
        return (
            f'<div style="border-left: 5px solid {colour}; padding: 4px 0 4px 14px; '
            f'margin: 4px 0; max-width: 50em; line-height: 1.5">'
            f'<p style="margin: 2px 0">{title}</p>{body}</div>'
        )

    def _ipython_display_(self) -> None:
        """Show the card, then its figure: Jupyter calls this for a cell's last value."""
        if not in_notebook():
            print(self)
            return
        from IPython import get_ipython
        from IPython.display import display

        cell = [get_ipython().execution_count]
        if self._shown_in == cell:
            return
        self._shown_in[:] = cell
        bundle: dict[str, Any] = {"text/plain": str(self), "text/html": self._repr_html_()}
        shown = [(bundle, True), (self.figure, False)]
        # A picture's words stand below it; a check's picture below its words.
        for thing, raw in reversed(shown) if self.kind == "picture" else shown:
            if thing is not None:
                display(thing, raw=raw)


def at_once(call: Callable[P, MaybeCard]) -> Callable[P, MaybeCard]:
    """Let a function show its card when it is called, wherever in a notebook's cell that is."""

    @functools.wraps(call)
    def shown(*arguments: P.args, **named: P.kwargs) -> MaybeCard:
        card = call(*arguments, **named)
        if card is not None and in_notebook():
            card._ipython_display_()
        return card

    return shown


def code(text: str) -> str:
    """Somebody's text as a piece of code: its own backticks and stars stay what they are."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, blank = "`" * (longest + 1), " " * (longest > 0)
    return f"{fence}{blank}{text}{blank}{fence}"


CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)


def _marked(text: str, code: str, bold: str) -> str:
    """Put code and bold into templates; what looks like bold inside of code is none."""
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        inside = found[2]
        if len(found[1]) > 1 and inside.startswith(" ") and inside.endswith(" "):
            inside = inside[1:-1]
        kept.append(code.format(inside))
        return f"\0{len(kept) - 1}\0"

    text = CODE.sub(keep, text)
    text = re.sub(r"\*\*(.+?)\*\*", lambda found: bold.format(found[1]), text)
    return re.sub(r"\0(\d+)\0", lambda found: kept[int(found[1])], text)


def _plain(text: str) -> str:
    return text if text.startswith("    ") else _marked(text, "`{}`", "{}")


def _inline(text: str) -> str:
    text = _marked(html.escape(text, quote=False), "<code>{}</code>", "<b>{}</b>")
    # Alone in its element a dollar is money; two in one text would be a formula to Jupyter.
    return text.replace("$", "<span>$</span>")


def _as_html(text: str) -> str:
    if text.startswith("    "):
        kept = html.escape("\n".join(line[4:] for line in text.split("\n")), quote=False)
        return f'<pre style="margin: 4px 0">{kept}</pre>'
    return f'<p style="margin: 4px 0">{_inline(text)}</p>'
