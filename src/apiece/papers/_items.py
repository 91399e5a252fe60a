"""Registry of tables and figures: name, title, required runs and the function that makes it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from apiece._base.optional import optional
from apiece.papers._workspace import Workspace
from apiece.plots import style

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd


_COUNTED: Final = (  # columns that say how much was measured
    ("points", "points"),
    ("samples per size", "samples per size"),
    ("samples", "samples"),
    ("true from", "samples behind true values"),
    ("repeats", "repeats"),
)


@dataclass(frozen=True, eq=False)
class Artifact:
    """A table, its figure if there is one, and a note about how it was measured."""

    table: pd.DataFrame
    figure: Any = None
    note: str = ""

    @classmethod
    def nothing(cls) -> Artifact:
        """Return an empty table, for items whose data is missing."""
        import pandas as pd

        return cls(pd.DataFrame())


@dataclass(frozen=True)
class PaperItem:
    """A table or figure of the paper.

    Parameters
    ----------
    name, title
        ``table1``, and what it shows.
    paper
        The paper's finding in a sentence.
    scale
        Points, samples and repeats of the paper.
    note
        What its columns mean.
    needs
        The runs it is made from, as in `Workspace.settings`.
    make
        Makes it.
    finish
        Adds columns that follow from the others, such as what explains a difference.
    draw
        Draws the figure from the rows, also those that were measured before; None if it shows more
        than the rows have, so that `make` draws it.
    """

    name: str
    title: str
    paper: str
    scale: str
    note: str
    needs: tuple[str, ...]
    make: Callable[[Workspace], Artifact]
    finish: Callable[[pd.DataFrame], pd.DataFrame]
    draw: Callable[[pd.DataFrame], Any] | None

    def here(self, table: pd.DataFrame) -> str:
        """Return points, samples and repeats of some rows, in words."""
        known = [(table[name].dropna(), words) for name, words in _COUNTED if _counts(table, name)]
        return ", ".join(f"{_span(cells)} {words}" for cells, words in known if len(cells))

    def scales(self, table: pd.DataFrame) -> str:
        """Return points, samples and repeats of some rows, and those of the paper."""
        here = [self.here(table), *(() if "repeats" in table else ["one repeat"])]
        parts = {"Here": ", ".join(filter(None, here)), "In the paper": self.scale}
        return " ".join(f"{name}: {words}." for name, words in parts.items() if words)


ITEMS: Final[dict[str, PaperItem]] = {}


def paper_item(
    name: str,
    title: str,
    *needs: str,
    paper: str = "",
    scale: str = "",
    note: str = "",
    finish: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table,
    draw: Callable[[pd.DataFrame], Any] | None = None,
) -> Callable[[Callable[[Workspace], Artifact]], Callable[[Workspace], Artifact]]:
    """Register the decorated function as the maker of a table or figure."""

    def register(make: Callable[[Workspace], Artifact]) -> Callable[[Workspace], Artifact]:
        ITEMS[name] = PaperItem(name, title, paper, scale, note, needs, make, finish, draw)
        return make

    return register


def _counts(table: pd.DataFrame, name: str) -> bool:
    """Whether a column has counts; pairs of models have two in a cell."""
    return name in table and table[name].dtype.kind in "iuf"


def _span(cells: pd.Series[Any]) -> str:
    """Return the least and the largest count."""
    ends = dict.fromkeys(f"{end:,.0f}" for end in (cells.min(), cells.max()))
    return " to ".join(ends)


def names() -> tuple[str, ...]:
    """Return the names of all tables and figures, tables first, in the paper's order.

    Examples
    --------
    >>> import apiece.papers
    >>> apiece.papers.names()[:2]
    ('table1', 'table2')
    """

    def place(name: str) -> tuple[bool, bool, int]:
        digits = "".join(filter(str.isdigit, name))
        return (not digits, name.startswith("figure"), int(digits or 0))

    return tuple(sorted(ITEMS, key=place))


@contextmanager
def panels(n: int, columns: int = 3, height: float = 2.9) -> Iterator[tuple[Any, list[Any]]]:
    """Open a figure with ``n`` axes in rows, in the style of `apiece.plots`."""
    figures = optional("matplotlib.figure", extra="plots", purpose="Figures")
    columns = max(1, min(n, columns))
    rows = max(1, -(-n // columns))
    with style():
        figure = figures.Figure(figsize=(4.1 * columns, height * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
        for ax in axes[n:]:
            ax.set_visible(False)
        yield figure, axes[:n]


def count_axis(ax: Any, counts: tuple[int, ...]) -> None:
    """Make the horizontal axis a logarithmic axis of sample counts, with ticks at these counts."""
    ax.set_xscale("log")
    ax.set_xticks(counts, [f"{count:,}" for count in counts])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("samples per point")


def decades(ax: Any) -> None:
    """Mark only powers of ten on an axis of sizes, because panels are narrow."""
    ticker = optional("matplotlib.ticker", extra="plots", purpose="Figures")
    ax.xaxis.set_major_locator(ticker.LogLocator())
