"""A picture with its sentence beside it."""

from __future__ import annotations

from typing import Any

from simulator.lessons.cards import Card, at_once, code

__all__ = ["show"]


@at_once
def show(what: Any) -> Card:
    """Show a run as a diagram, or a figure of the course, and below it what there is to see.

    The sentence is text of the page: JupyterLab gives a picture no description of its own, and
    whoever can't see it, or prints it small, reads it there.

    Args:
        what: a `Run`, or a figure with a caption.
    """
    figure = what.timeline() if hasattr(what, "timeline") else what
    if not hasattr(figure, "caption"):
        given = code(repr(what)) if len(repr(what)) <= 60 else f"a {type(what).__name__}"
        return Card(
            "raised",
            f"`show` takes a run, as `replay` returns it, or a figure of the course; not {given}.",
        )
    if "".join(figure.get_supxlabel().split()) == "".join(figure.caption.split()):
        figure.supxlabel("")  # its sentence need not stand in the picture too
    never = [
        f"{code(str(fault))} never struck: that step was not taken."
        for fault in getattr(what, "unstruck", ())
    ]
    return Card("picture", " ".join([figure.caption, *never]), figure=figure)
