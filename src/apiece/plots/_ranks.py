"""Rank against size: which points rise and which fall as the dataset grows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from apiece._base.typing import FloatArray, IntArray
from apiece.laws import Laws
from apiece.laws.beyond import quiet
from apiece.plots._style import axes, signs, size_axis
from apiece.records import small_print

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def ranks(laws: Laws, k: FloatArray) -> IntArray:
    """Rank the points at each size, 1 for the most valuable; those without a law come last.

    Parameters
    ----------
    laws
        Fitted laws.
    k
        Cardinalities, shape ``(n_k,)``.

    Returns
    -------
    IntArray
        Shape ``(n_points, n_k)``.

    Examples
    --------
    >>> laws = Laws.from_arrays(c=[1.0, 100.0], alpha=[1.0, 2.0])
    >>> ranks(laws, np.array([10.0, 1000.0])).tolist()
    [[2, 1], [1, 2]]
    """
    order = np.argsort(-laws.mean(k), axis=0, kind="stable")  # nan sorts last
    return np.asarray(np.argsort(order, axis=0) + 1)


def plot_ranks(
    laws: Laws,
    points: Sequence[object] | None = None,
    *,
    most: int = 5,
    until: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the rank of points against size: by default those that rise and fall the most.

    Parameters
    ----------
    laws
        Fitted laws.
    points
        Ids of the points to show; None for the ``most`` that rise and the ``most`` that fall.
    most
        How many of each.
    until
        Draw up to this cardinality, dashed beyond the sampled range; by default up to the size of
        the pool.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> laws = Laws.from_arrays(c=[1.0, 100.0], alpha=[1.0, 2.0])
    >>> plot_ranks(laws, until=5000).get_ylabel()
    'rank among 2 points'
    """
    k_min, k_max = laws.k_range
    inner = np.geomspace(k_min, k_max, 60)
    end = max(until or laws.k_pool, k_max)
    beyond = np.geomspace(k_max, end, 30)
    with quiet():  # what is extrapolated is drawn dashed
        inside, outside = ranks(laws, inner), ranks(laws, beyond)
    if points is None:
        rise = np.where(laws.has_law, inside[:, 0] - outside[:, -1], 0)
        order = np.argsort(-rise, kind="stable")
        ends = np.concatenate([order[:most], order[len(order) - most :]])
        rows = [row for row in dict.fromkeys(ends.tolist()) if rise[row] != 0]
    else:
        rows = [laws.place(point) for point in points]
    with axes(ax) as ax:
        (up, _), (down, _) = signs()
        labels = _apart(outside[rows, -1], laws.n_points / 25)
        for row, place in zip(rows, labels, strict=True):
            rises = outside[row, -1] <= inside[row, 0]
            color = up if rises else down
            ax.plot(inner, inside[row], color=color, alpha=0.8)
            if end > k_max:
                ax.plot(beyond, outside[row], "--", color=color, alpha=0.8)
            ax.annotate(
                f" {laws.ids[row]} {'▲' if rises else '▼'}",
                (beyond[-1], place),
                color=color,
                va="center",
                fontsize="small",
                annotation_clip=False,
            )
        size_axis(ax)
        ax.set_ylim(laws.n_points + 1, 0)
        ax.set_ylabel(f"rank among {laws.n_points:,} points")
        note = small_print(laws.attrs)
        if note:
            ax.set_title(note)
    return ax


def _apart(places: IntArray, gap: float) -> FloatArray:
    """Move labels down until each is a gap below the one above it.

    >>> _apart(np.array([5, 1, 2]), 2.0).tolist()
    [5.0, 1.0, 3.0]
    """
    moved = places.astype(np.float64)
    order = np.argsort(moved, kind="stable")
    for above, below in itertools.pairwise(order):
        moved[below] = max(moved[below], moved[above] + gap)
    return moved
