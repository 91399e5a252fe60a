"""Moments of contributions, sufficient for Gaussian likelihoods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from apiece._base.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Moments:
    """Count, mean and spread of the contributions of each point at each cardinality.

    Rows are points; each row lists that point's distinct cardinalities in rising order, padded
    with ``n = 0`` (and ``k = 1``). They are sufficient for every Gaussian likelihood.

    Parameters
    ----------
    k, n, mean, m2
        Cardinality, number of contributions, their mean, and the sum of their squared deviations
        from it; all of shape ``(n_points, n_sizes)``. Where contributions have weights, ``n`` is
        the sum of the weights.
    count
        How many contributions each point has, whatever their weights, shape ``(n_points,)``; None
        for the sum of ``n``.

    Examples
    --------
    >>> from apiece.records import Contributions
    >>> table = Contributions.from_arrays(point=[0, 0, 0], k=[9, 9, 20], delta=[1.0, 3.0, 4.0])
    >>> table.moments()
    Moments(k=array([[ 9., 20.]]), n=array([[2., 1.]]), mean=array([[2., 4.]]),
            m2=array([[2., 0.]]))
    """

    k: FloatArray
    n: FloatArray
    mean: FloatArray
    m2: FloatArray
    count: FloatArray | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.k)

    def block(self, rows: slice | IntArray | BoolArray) -> Moments:
        """Return the moments of some of the points."""
        count = None if self.count is None else self.count[rows]
        return Moments(self.k[rows], self.n[rows], self.mean[rows], self.m2[rows], count)

    def counts(self) -> FloatArray:
        """Return how many contributions each point has, shape ``(n_points,)``."""
        return np.asarray(self.n.sum(axis=1) if self.count is None else self.count)

    def sizes(self, low: int, high: int) -> Moments:
        """Return the moments of one row at the cardinalities from ``low`` to ``high``."""
        keep = (self.k[0] >= low) & (self.k[0] <= high)
        return Moments(self.k[:, keep], self.n[:, keep], self.mean[:, keep], self.m2[:, keep])

    @classmethod
    def joined(cls, parts: Iterable[Moments]) -> Moments:
        r"""Return the moments of all contributions together, from one row for each part of them.

        At each size $n = \sum_j n_j$, $\bar\Delta = \sum_j n_j \bar\Delta_j / n$ and
        $M = \sum_j M_j + \sum_j n_j (\bar\Delta_j - \bar\Delta)^2$.
        """
        rows = [np.concatenate([part.k, part.n, part.mean, part.m2]) for part in parts]
        k, n, mean, m2 = np.concatenate([np.empty((4, 0)), *rows], axis=1)
        sizes, place = np.unique(k, return_inverse=True)

        def total(values: FloatArray) -> FloatArray:
            return np.bincount(place, values).astype(np.float64)

        middle = total(n * mean) / total(n)
        spread = total(m2 + n * (mean - middle[place]) ** 2)
        return cls(sizes[None], total(n)[None], middle[None], spread[None])
