"""Figures in notebooks, without pyplot.

A figure that pyplot knows is shown twice when a cell returns it, and IPython shows one that
pyplot does not know only as text. This registers a picture for matplotlib's `Figure`, by name,
so that matplotlib is loaded only once there is a figure.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["register"]


def png(figure: Figure) -> bytes:
    """The figure as PNG; equal figures give equal bytes under one version of matplotlib."""
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight", metadata={"Software": None})
    return file.getvalue()


def register() -> None:
    """Make notebooks show figures that pyplot does not know; outside of IPython do nothing."""
    try:
        from IPython import get_ipython
    except ImportError:
        return
    shell = get_ipython()
    if shell is not None:
        formatter = shell.display_formatter.formatters["image/png"]
        formatter.for_type_by_name("matplotlib.figure", "Figure", png)
