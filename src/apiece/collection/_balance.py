r"""Class balance: how many points of each class a training set of size k holds.

The paper draws D with the classes in the pool's proportions, so that no class is ever missing.
With class sizes $N_c$ in a pool of $N$, the shares are $k N_c / N$, rounded by largest remainder
within $1 \le n_c \le N_c - 1$: every class is present, and one point of each valued class stays
out to be valued. Within a class all subsets are equally likely; so, given that $z$ is not in $D$,
$D$ is uniform over the balanced subsets without $z$.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from apiece._base.typing import IntArray
from apiece.errors import CardinalityError


def allocate(k: int, class_sizes: IntArray, most: IntArray) -> IntArray:
    """Split ``k`` among the classes in proportion, each between 1 and ``most``.

    >>> allocate(10, np.array([50, 30, 20]), np.array([49, 29, 19]))
    array([5, 3, 2])
    >>> allocate(3, np.array([98, 1, 1]), np.array([97, 1, 1]))
    array([1, 1, 1])
    """
    share = k * class_sizes / class_sizes.sum()
    counts: IntArray = np.clip(np.floor(share).astype(np.int64), 1, most)
    while (missing := k - counts.sum()) != 0:
        step = 1 if missing > 0 else -1
        can_move = counts < most if step > 0 else counts > 1
        gap = np.where(can_move, step * (share - counts), -np.inf)
        counts[np.argmax(gap)] += step
    return counts


def check_sizes(
    k_min: int, k_max: int, class_sizes: IntArray, most: IntArray, names: Sequence[object] | None
) -> None:
    """Raise a clear error unless every size from ``k_min`` to ``k_max`` can be drawn.

    Parameters
    ----------
    k_min, k_max
        Smallest and largest size of the design.
    class_sizes
        Points of each class in the pool, shape ``(n_classes,)``; one entry for regression.
    most
        The most that D may hold of each class, shape ``(n_classes,)``.
    names
        Labels of the classes for the message, or None for regression.
    """
    n_classes, n_pool = len(class_sizes), int(class_sizes.sum())
    for index in np.flatnonzero(most < 1).tolist():
        name = f"class {names[index]!r}" if names is not None else "the pool"
        raise CardinalityError(
            f"{name} has {class_sizes[index]} points to draw from: expected at least 2, one that "
            "is always in the training set and one that stays out to be valued. Add points of "
            "that class, or remove it from the data."
        )
    if k_min < n_classes:
        raise CardinalityError(
            f"k_min={k_min} is too small for {n_classes} classes: expected at least {n_classes}, "
            "since every training set holds a point of each class. Raise k_min "
            f"(sizes=({n_classes}, ...), or --sizes {n_classes}:...)."
        )
    if k_max > most.sum():
        stays_out = "one point stays out to be valued"
        if n_classes > 1:
            stays_out = "one point of each class stays out to be valued"
        raise CardinalityError(
            f"k_max={k_max} does not fit a pool of {n_pool:,} points: expected k_max <= "
            f"{most.sum()}, since {stays_out}. Lower k_max, or pass more points."
        )
