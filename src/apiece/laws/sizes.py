"""Checks of cardinalities and ranges of cardinalities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from apiece._base.typing import FloatArray
from apiece.errors import CardinalityError


def check_sizes(k: npt.ArrayLike, name: str = "k") -> tuple[FloatArray, bool]:
    """Return the cardinalities as shape ``(n_k,)``, and whether a single number was given."""
    sizes = np.asarray(k, dtype=np.float64)
    if sizes.ndim > 1:
        raise CardinalityError(
            f"{name} has shape {sizes.shape}: expected a number or one axis of sizes. "
            "Flatten it first."
        )
    if not (np.isfinite(sizes) & (sizes >= 1)).all():
        bad = sizes.ravel()[~(np.isfinite(sizes) & (sizes >= 1)).ravel()][0]
        raise CardinalityError(
            f"{name} holds {bad:g}: expected sizes of at least 1, since the law counts the other "
            "training points. Pass sizes such as 1000."
        )
    return np.atleast_1d(sizes), sizes.ndim == 0


def middle(k_range: tuple[int, int]) -> float:
    """Return the geometric mean of the ends of a range of sizes.

    >>> middle((10, 1000))
    100.0
    """
    return float(np.sqrt(float(k_range[0]) * float(k_range[1])))


def check_range(sizes: tuple[int, int], name: str = "sizes") -> tuple[int, int]:
    """Return ``(k_min, k_max)`` as integers, checked.

    >>> check_range((100, 1000))
    (100, 1000)
    """
    try:
        k_min, k_max = (int(size) for size in sizes)
    except (TypeError, ValueError):
        k_min, k_max = 0, 0
    if not 1 <= k_min <= k_max:
        raise CardinalityError(
            f"{name}={sizes} is not a range of sizes: expected (k_min, k_max) with "
            f"1 <= k_min <= k_max. Pass for example {name}=(100, 1000)."
        )
    return k_min, k_max
