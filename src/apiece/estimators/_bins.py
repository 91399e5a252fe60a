"""Bins of sizes: the moments of nearby cardinalities merged into one.

A uniform design visits nearly every size once. If a method needs several contributions at a size
(logarithms of means), or a rough first estimate, sizes are merged into bins that are equally wide
on a log scale; the size of a bin is the geometric mean of the sizes in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apiece._base.typing import FloatArray, IntArray
from apiece.records import Moments


@dataclass(frozen=True)
class Bins:
    """Bins of cardinalities, the same for all points.

    Parameters
    ----------
    edges
        Borders between the bins, shape ``(n_bins - 1,)``.
    k
        Size of each bin, shape ``(n_bins,)``.
    is_exact
        Whether each bin holds a single size.
    """

    edges: FloatArray
    k: FloatArray
    is_exact: bool

    def __len__(self) -> int:
        return len(self.k)

    @classmethod
    def of(cls, k: IntArray, *, max_sizes: int, n_bins: int) -> Bins:
        """Make one bin per size, or ``n_bins`` if there are more than ``max_sizes`` sizes.

        >>> Bins.of(np.array([10, 20, 20]), max_sizes=2, n_bins=1).k
        array([10., 20.])
        >>> Bins.of(np.array([10, 20, 40]), max_sizes=2, n_bins=1).k
        array([20.])
        """
        return cls.of_counts(*np.unique(k, return_counts=True), max_sizes=max_sizes, n_bins=n_bins)

    @classmethod
    def of_counts(cls, sizes: IntArray, counts: IntArray, *, max_sizes: int, n_bins: int) -> Bins:
        """Do the same from the distinct sizes, rising, and how often each occurs."""
        log_k = np.log(sizes)
        if len(sizes) <= max_sizes:
            return cls((sizes[1:] + sizes[:-1]) / 2, sizes.astype(np.float64), True)
        edges = np.exp(np.linspace(log_k[0], log_k[-1], n_bins + 1)[1:-1])
        total = np.bincount(_bin(sizes, edges), counts, minlength=n_bins)
        middle = np.bincount(_bin(sizes, edges), counts * log_k, minlength=n_bins)
        is_used = total > 0
        # The first bin holds the smallest size; an empty one later goes with its lower border.
        return cls(edges[is_used[1:]], np.exp(middle[is_used] / total[is_used]), False)

    def merge(self, moments: Moments, *, point_k: bool = False) -> Moments:
        r"""Merge the moments of the sizes in each bin; every column is one bin for all points.

        With $n_j$, mean $\bar\Delta_j$ and sum of squares $M_j$ of the sizes in a bin, the bin has
        $n = \sum n_j$, $\bar\Delta = \sum n_j\bar\Delta_j / n$ and
        $M = \sum M_j + \sum n_j(\bar\Delta_j - \bar\Delta)^2$. Its size is the same for all points,
        or with ``point_k`` the geometric mean over the contributions of the point in it.
        """
        shape = (len(moments), len(self))
        cell = (np.arange(shape[0])[:, None] * shape[1] + _bin(moments.k, self.edges)).ravel()

        def total(values: FloatArray) -> FloatArray:
            flat = np.bincount(cell, values.ravel(), minlength=shape[0] * shape[1])
            return flat.astype(np.float64).reshape(shape)

        n = total(moments.n)
        mean = total(moments.n * moments.mean) / np.maximum(n, 1.0)
        shift = moments.mean - mean.ravel()[cell].reshape(moments.mean.shape)
        m2 = total(moments.m2 + moments.n * shift**2)
        k = np.broadcast_to(self.k, shape)
        if point_k:
            log_k = total(moments.n * np.log(moments.k)) / np.maximum(n, 1.0)
            k = np.where(n > 0, np.exp(log_k), 1.0)
        return Moments(k, n, mean, m2)


def _bin(k: FloatArray | IntArray, edges: FloatArray) -> IntArray:
    """Return the bin of each size; a size on a border belongs to the upper bin."""
    return np.asarray(np.searchsorted(edges, k, side="right"), dtype=np.int64)
