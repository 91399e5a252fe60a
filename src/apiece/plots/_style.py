"""The style that all figures share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from apiece._base.check import one_of
from apiece._base.optional import optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_themes: ContextVar[tuple[str, ...]] = ContextVar("themes", default=())
Theme = Literal["dark", "slide"]
THEMES: Final[tuple[str, ...]] = get_args(Theme)


@contextmanager
def theme(*names: Theme) -> Iterator[None]:
    """Draw figures for a dark background (``"dark"``), for slides (``"slide"``), or both.

    The theme also applies to figures that the caller makes inside the ``with`` block.

    Examples
    --------
    >>> with theme("dark", "slide"):
    ...     pass
    """
    for name in names:
        one_of("theme", name, THEMES)
    token = _themes.set(names)
    try:
        with style():
            yield
    finally:
        _themes.reset(token)


@contextmanager
def style() -> Iterator[None]:
    """Draw in the style of apiece; matplotlib's settings are restored afterwards.

    Examples
    --------
    >>> with style():
    ...     pass
    """
    matplotlib = optional("matplotlib.style", extra="plots", purpose="Plots")
    sheets = ["apiece.mplstyle", *(f"apiece-{name}.mplstyle" for name in _themes.get())]
    with matplotlib.context([str(files("apiece.plots") / sheet) for sheet in sheets]):
        yield


def size_axis(ax: Any) -> None:
    """Make the horizontal axis a logarithmic axis of cardinalities, with plain numbers."""
    ticker = optional("matplotlib.ticker", extra="plots", purpose="Plots")
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
    ax.xaxis.set_minor_formatter(ticker.NullFormatter())
    ax.set_xlabel("cardinality k")


@contextmanager
def axes(ax: Axes | None) -> Iterator[Axes]:
    """Draw on given axes, or on those of a new figure, in the style of apiece."""
    with style():
        pyplot = optional("matplotlib.pyplot", extra="plots", purpose="Plots")
        yield pyplot.subplots(layout="constrained")[1] if ax is None else ax


def thin() -> float:
    """Return the width of thin lines, such as error bars."""
    return 0.6 * float(_settings()["lines.linewidth"])


def signs() -> tuple[tuple[str, str], tuple[str, str]]:
    """Return colour and marker of what helps, and of what harms."""
    colors = _settings()["axes.prop_cycle"].by_key()["color"]
    return (colors[0], "o"), (colors[1], "v")


def _settings() -> Any:
    return optional("matplotlib", extra="plots", purpose="Plots").rcParams
