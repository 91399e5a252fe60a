"""How soon the points one looks for turn up when points are inspected from the worst upwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from apiece._base.typing import IntArray
from apiece.plots._style import axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def detection_curve(values: npt.ArrayLike, is_target: npt.ArrayLike) -> IntArray:
    """Count the targets among the m points of lowest value, for m = 0, 1, ..., n.

    Examples
    --------
    >>> detection_curve([0.3, -0.1, 0.2], [False, True, False])
    array([0, 1, 1, 1])
    """
    order = np.argsort(np.asarray(values), kind="stable")
    return np.concatenate([[0], np.cumsum(np.asarray(is_target, dtype=np.int64)[order])])


def plot_detection(
    values: npt.ArrayLike,
    is_target: npt.ArrayLike,
    *,
    name: str = "flipped labels",
    ax: Axes | None = None,
) -> Axes:
    """Plot how many targets are found when points are inspected from the lowest value upwards.

    Parameters
    ----------
    values
        One value per point, shape ``(n_points,)``.
    is_target
        Which points one would like to find, shape ``(n_points,)``.
    name
        What the targets are, for the axis.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> plot_detection([0.3, -0.1, 0.2], [False, True, False]).get_ylabel()
    'flipped labels found'
    """
    counts = detection_curve(values, is_target)
    inspected = np.arange(len(counts))
    with axes(ax) as ax:
        ax.plot(inspected, counts, label="lowest value first")
        ax.plot(inspected[[0, -1]], counts[[0, -1]], "--", color="0.5", label="at random")
        ax.set_xlabel("points inspected")
        ax.set_ylabel(f"{name} found")
        ax.legend(loc="lower right")
    return ax
