"""The one look that all figures share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from apiece._optional import optional


@contextmanager
def style() -> Iterator[None]:
    """Draw in apiece's style; the caller's own settings come back afterwards."""
    matplotlib = optional("matplotlib.style", extra="plots", purpose="Plots")
    with matplotlib.context(str(files("apiece.plots") / "apiece.mplstyle")):
        yield


def size_axis(ax: Any) -> None:
    """Make the horizontal axis one of cardinalities: logarithmic, with plain numbers."""
    ticker = optional("matplotlib.ticker", extra="plots", purpose="Plots")
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
    ax.xaxis.set_minor_formatter(ticker.NullFormatter())
    ax.set_xlabel("cardinality k")


def new_axes() -> Any:
    """Return the axes of a new figure."""
    pyplot = optional("matplotlib.pyplot", extra="plots", purpose="Plots")
    return pyplot.subplots(layout="constrained")[1]
