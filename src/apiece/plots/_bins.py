"""Means in bins of size, in place of samples that are too many or too noisy to draw one by one."""

from __future__ import annotations

import numpy as np

from apiece._base.typing import AnyArray, FloatArray


def in_bins(
    k: AnyArray, value: FloatArray, n_bins: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return size, mean and standard error of values in log-spaced bins that hold two or more.

    Parameters
    ----------
    k
        Sizes, shape ``(n,)``; a bin's is the geometric mean of those in it.
    value
        What is averaged, shape ``(n,)``.
    n_bins
        How many bins; grids of fewer sizes keep them.
    """
    if not len(k):
        return np.empty(0), np.empty(0), np.empty(0)
    sizes = np.unique(k)
    edges = (
        sizes[1:] if len(sizes) <= n_bins else np.geomspace(k.min(), k.max() + 1, n_bins + 1)[1:-1]
    )
    place = np.searchsorted(edges, k, side="right")
    parts = [place == b for b in range(len(edges) + 1) if (place == b).sum() > 1]
    size = np.array([np.exp(np.log(k[part]).mean()) for part in parts])
    mean = np.array([value[part].mean() for part in parts])
    error = np.array([value[part].std(ddof=1) / np.sqrt(part.sum()) for part in parts])
    return size, mean, error
