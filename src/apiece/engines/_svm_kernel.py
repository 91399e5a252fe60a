r"""The RBF kernel as a series in the relative change of its width.

With ``gamma="scale"`` every added point changes the width of the kernel a little,
$\gamma_z = (1 + r) \gamma$. The kernel's values then are

$$e^{-(1 + r) x} = \sum_j \frac{(-r)^j}{j!} \, x^j e^{-x}, \qquad x = \gamma \, d^2,$$

a sum of few matrices that all points share: its terms are at most $|r|^j / \sqrt{2 \pi j}$,
whatever the distance $d$.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from apiece._base.batched import dot
from apiece._base.typing import AnyArray, FloatArray, IntArray

SERIES_ERROR = 1e-15  # of sums of kernels, for each unit of weight: less than rounding


def squared_distances(A: FloatArray, B: FloatArray) -> FloatArray:
    """Squared distances between rows, shape ``(len(A), len(B))``.

    From a product of matrices, and from differences where that would lose more than three digits.
    """
    size_A, size_B = dot(A, A), dot(B, B)
    d2 = A @ (-2.0 * B.T)
    d2 += size_A[:, None]
    d2 += size_B
    i, j = np.nonzero(d2 < 1e-3 * size_A[:, None] + 1e-3 * size_B)
    if len(i) > d2.size // 16:
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(A, B, "sqeuclidean"))
    d2[i, j] = ((A[i] - B[j]) ** 2).sum(axis=1)
    return d2


@dataclass(frozen=True, eq=False)
class Rows:
    """Points, whose distances may be in a table that many machines share.

    Parameters
    ----------
    features
        Shape ``(m, d)``.
    table
        Squared distances, shape ``(n_rows, n_columns)``; None to compute them from the features.
    row, column
        Positions of the points in the table; None for points that it has no rows or columns for.
    index
        Which rows of the features the points are; None for all of them.
    """

    features: FloatArray
    table: FloatArray | None = None
    row: IntArray | None = None
    column: IntArray | None = None
    index: IntArray | None = None

    @property
    def X(self) -> FloatArray:
        """Features of the points, shape ``(n, d)``."""
        return self.features if self.index is None else self.features[self.index]

    def __len__(self) -> int:
        return len(self.features if self.index is None else self.index)

    def __getitem__(self, rows: AnyArray | slice) -> Rows:
        if self.table is None:
            return Rows(self.features[rows])
        row = None if self.row is None else self.row[rows]
        column = None if self.column is None else self.column[rows]
        index = np.arange(len(self)) if self.index is None else self.index
        return Rows(self.features, self.table, row, column, index[rows])

    def less(self, centre: FloatArray) -> Rows:
        """Return the same points with another origin."""
        return Rows(self.features - centre, self.table, self.row, self.column, self.index)

    def squared_distances(self, others: Rows) -> FloatArray:
        """Squared distances to other points, a new array of shape ``(len(self), len(others))``."""
        if self.table is not None and others.table is not None:
            if self.row is not None and others.column is not None:
                return _picked(self.table, self.row, others.column)
            if others.row is not None and self.column is not None:
                return _picked(others.table, others.row, self.column).T
        return squared_distances(self.X, others.X)


def _picked(table: FloatArray, row: IntArray, column: IntArray) -> FloatArray:
    """Some rows and columns of a table; neighbouring columns are copied together."""
    if len(column) and (np.diff(column) == 1).all():
        return np.asarray(table[row, column[0] : column[-1] + 1])
    return np.asarray(table.take(row[:, None] * table.shape[1] + column))


def n_terms(r: FloatArray, error: float) -> IntArray:
    """How many terms of the series in ``r`` leave less than ``error``, for each entry."""
    with np.errstate(divide="ignore"):
        n = np.ceil(np.log(error) / np.log(np.abs(r)))
    return np.asarray(np.maximum(n, 1), dtype=np.int64)


def kernel_terms(x: FloatArray, n: int) -> Iterator[FloatArray]:
    """Yield $x^j e^{-x}$ for $j < n$, in the shape of ``x``; the same memory each time."""
    term = np.exp(-x)
    yield term
    for _ in range(1, n):
        term *= x
        yield term


def coefficients(r: FloatArray, n: int) -> FloatArray:
    r"""Coefficients of the terms, $(-r)^j / j!$ for $j < n$, shape ``(len(r), n)``."""
    ratios = np.ones((len(r), n))
    ratios[:, 1:] = -r[:, None] / np.arange(1, n)
    return np.asarray(np.cumprod(ratios, axis=1), dtype=np.float64)


def add_products(
    total: FloatArray,
    weights: FloatArray,
    r: FloatArray,
    terms: Iterable[FloatArray],
    first: int = 0,
) -> None:
    r"""Add $\sum_j (-r)^j / j! \; W K_j$ to ``total``, each row with the terms its ``r`` needs.

    Parameters
    ----------
    total
        Shape ``(n, m)``.
    weights
        $W$, shape ``(n, w)``.
    r
        Relative changes of gamma, falling in size, shape ``(n,)``.
    terms
        $K_j$ from $j$ = ``first`` on, each of shape ``(w, m)``.
    """
    needs = n_terms(r, SERIES_ERROR)
    factor = coefficients(r, int(needs.max(initial=1)))
    for j, term in enumerate(terms, start=first):
        n = np.count_nonzero(needs > j)
        if not n:
            break  # further terms need not be computed
        total[:n] += (weights[:n] * factor[:n, j, None]) @ term
