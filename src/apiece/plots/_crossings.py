"""Where points change places: pairs whose order swaps, and the size at which it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from apiece.laws import Laws
from apiece.plots._style import axes, signs, size_axis, thin
from apiece.records import small_print
from apiece.uses import crossings

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_crossings(
    laws: Laws,
    *,
    pairs: Sequence[tuple[object, object]] | None = None,
    most: int = 12,
    sizes: tuple[int, int] | None = None,
    level: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Plot the sizes at which pairs of points change places, the clearest pair on top.

    A row reads from left to right: up to the mark the point named on the left is worth more, beyond
    it the one on the right. The bar is the interval of the size, and the sampled sizes are shaded.
    The numbers are those of `apiece.uses.crossings`.

    Parameters
    ----------
    laws
        Fitted laws.
    pairs
        Pairs of ids; None for the clearest swaps. Pairs that do not cross are left out.
    most
        How many pairs to draw if none are given.
    sizes
        Range of sizes between whose ends pairs swap; the sampled one by default.
    level
        Coverage of the interval.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> laws = Laws.from_arrays(c=[1.0, 20.0], alpha=[1.0, 1.5])
    >>> plot_crossings(laws, pairs=[(1, 0)]).get_xlabel()
    'cardinality k'
    """
    table = crossings(laws, pairs=pairs, most=most, sizes=sizes, level=level)
    table = table[np.isfinite(table["at"])].reset_index(drop=True)
    ends = laws.k_range if sizes is None else sizes
    rows = np.arange(len(table))
    with axes(ax) as ax:
        ax.axvspan(*laws.k_range, color="0.5", alpha=0.1, linewidth=0, label="sampled sizes")
        (color, _), _ = signs()
        low, at, high = (table[name].to_numpy(np.float64) for name in ("low", "at", "high"))
        known = np.isfinite(low) & np.isfinite(high)
        ax.hlines(
            rows[known],
            np.maximum(low[known], 1.0),
            high[known],
            alpha=0.4,
            linewidth=6 * thin(),
            color=color,
            label=f"{level:.0%} interval" if known.any() else "",
        )
        ax.plot(at, rows, "o", color=color, label="change places")
        size_axis(ax)
        reach = [*ends, *(at / 1.1).tolist(), *(at * 1.1).tolist()]
        ax.set_xlim(max(1.0, min(reach) / 1.05), max(reach) * 1.05)
        ax.set_ylim(len(table) - 0.4, -0.6)
        ax.set_yticks(rows, [str(name) for name in table["first"]])
        ax.set_ylabel("worth more below")
        right = ax.secondary_yaxis("right")
        right.set_yticks(rows, [str(name) for name in table["second"]])
        right.set_ylabel("worth more beyond")
        right.tick_params(length=0)
        ax.grid(visible=False, axis="y")
        lines = ["no pair changes places" if table.empty else None, small_print(laws.attrs)]
        words = "\n".join(line for line in lines if line) or None
        ax.legend(
            title=words, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, borderaxespad=0.2
        )
    return ax
