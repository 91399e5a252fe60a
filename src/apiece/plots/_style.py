"""The one look that all figures share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.resources import files
from typing import Any, Final

from apiece._base.check import one_of
from apiece._base.optional import optional

_looks: ContextVar[tuple[str, ...]] = ContextVar("looks", default=())
LOOKS: Final = ("dark", "slide")


@contextmanager
def look(*names: str) -> Iterator[None]:
    """Draw everything inside for a dark ground (``"dark"``), for a room (``"slide"``), or both.

    Figures that the caller makes inside, for ``ax=``, have the look too.

    >>> with look("dark", "slide"):
    ...     pass
    """
    for name in names:
        one_of("look", name, LOOKS)
    token = _looks.set(names)
    try:
        with style():
            yield
    finally:
        _looks.reset(token)


@contextmanager
def style() -> Iterator[None]:
    """Draw in apiece's style; the caller's own settings come back afterwards."""
    matplotlib = optional("matplotlib.style", extra="plots", purpose="Plots")
    sheets = ["apiece.mplstyle", *(f"apiece-{name}.mplstyle" for name in _looks.get())]
    with matplotlib.context([str(files("apiece.plots") / sheet) for sheet in sheets]):
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


def thin() -> float:
    """Return the width of lines that should not outshine the others, such as error bars."""
    return 0.6 * float(_settings()["lines.linewidth"])


def signs() -> tuple[tuple[str, str], tuple[str, str]]:
    """Return colour and marker of what helps, and of what harms."""
    colors = _settings()["axes.prop_cycle"].by_key()["color"]
    return (colors[0], "o"), (colors[1], "v")


def _settings() -> Any:
    return optional("matplotlib", extra="plots", purpose="Plots").rcParams
