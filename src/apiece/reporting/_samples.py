"""What was sampled, summarised for a page: means by size of every point, and of the loss."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from apiece._base.typing import AnyArray, FloatArray, IntArray, Places
from apiece.errors import DataError
from apiece.records import Table

N_BINS: Final = 8
MOST_RAW: Final = 400_000  # contributions that a page carries one by one: 3 MB


class BinnedMeans(NamedTuple):
    """Means in log-spaced bins of size, with standard errors; nan where fewer than two fall.

    ``k`` has shape ``(n_bins,)``, the geometric mean of the sizes in each bin; ``mean`` and
    ``error`` have shape ``(n_rows, n_bins)``.
    """

    k: FloatArray
    mean: FloatArray
    error: FloatArray

    def of(self, rows: IntArray) -> BinnedMeans:
        """Return the means of some rows, nan for -1."""
        known = (rows >= 0)[:, None]
        return BinnedMeans(
            self.k, *(np.where(known, column[rows], np.nan) for column in (self.mean, self.error))
        )


def places(table: Table, ids: AnyArray) -> IntArray:
    """Return where the points named ``ids`` are in a table, -1 if nowhere, shape ``(n_ids,)``.

    Raises
    ------
    DataError
        If none of the ids is known.
    """
    if np.array_equal(table.ids.astype(str), ids.astype(str)):
        return np.arange(len(ids))
    place = {name: row for row, name in enumerate(table.ids.astype(str).tolist())}
    found = np.array([place.get(name, -1) for name in ids.astype(str).tolist()], dtype=np.int64)
    if len(ids) and (found < 0).all():
        raise DataError(
            f"none of the laws' ids, such as {ids[0]!r}, is a point of the run: expected the laws "
            "that were fitted to it. Pass the run and the laws of one collection."
        )
    return found


def means_by_size(table: Table, n_bins: int = N_BINS) -> BinnedMeans:
    """Average the contributions of every point in bins of size that all points share."""
    bins = _Bins.of(*table.sizes(), n_bins)
    parts = [bins.means(part.point, part.k, part.delta, part.n_points) for part in table.parts()]
    return BinnedMeans(bins.k, *(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def loss_by_size(table: Table, n_bins: int = N_BINS) -> BinnedMeans:
    """Average the loss of the model trained on D alone, one value per task, in bins of size."""
    losses = table.losses()
    k, n = losses.k[0], losses.n[0]
    bins = _Bins.of(k, n, n_bins)
    place = bins.place(k)

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(place, values, len(bins.k)).astype(np.float64)

    number = total(n)
    mean = total(n * losses.mean[0]) / number
    squares = total(losses.m2[0] + n * (losses.mean[0] - mean[place]) ** 2)
    return BinnedMeans(bins.k, *(row[None] for row in _mean_and_error(number, mean, squares)))


class Raw(NamedTuple):
    """Contributions sorted by point: those of point i are ``start[i] .. start[i + 1] - 1``."""

    start: IntArray
    k: IntArray
    delta: FloatArray


def raw(table: Table, points: IntArray) -> Raw | None:
    """Return the contributions of points one by one, or None if they are too many for a page."""
    known = np.flatnonzero(points >= 0)
    counts = np.zeros(len(points), dtype=np.int64)
    counts[known] = table.counts()[points[known]]
    if counts.sum() > MOST_RAW:
        return None
    rows = table.of(Places(points[known]))
    order = np.argsort(rows.point, kind="stable")
    start = np.concatenate([[0], np.cumsum(counts)])
    return Raw(start, rows.k[order], rows.delta[order])


class _Bins(NamedTuple):
    """Bins of size that hold something: their borders, and the geometric mean of what is there."""

    edges: FloatArray
    k: FloatArray

    @classmethod
    def of(cls, sizes: IntArray | FloatArray, counts: IntArray | FloatArray, n_bins: int) -> _Bins:
        """Cut the distinct sizes, rising, each with its count."""
        if not len(sizes):
            return cls(np.empty(0), np.empty(0))
        if len(sizes) <= n_bins:  # a grid: each size is a bin of its own
            return cls(np.asarray(sizes[1:], np.float64), np.asarray(sizes, np.float64))
        edges = np.geomspace(sizes[0], sizes[-1] + 1, n_bins + 1)[1:-1]
        place = np.searchsorted(edges, sizes, side="right")
        number = np.bincount(place, counts, n_bins)
        kept = number > 0
        centre = np.bincount(place, counts * np.log(sizes), n_bins)[kept] / number[kept]
        return cls(edges[kept[1:]], np.exp(centre))

    def place(self, k: IntArray | FloatArray) -> IntArray:
        """Return the bin of each size."""
        return np.asarray(np.searchsorted(self.edges, k, side="right"), dtype=np.int64)

    def means(
        self, row: Places, k: IntArray, value: FloatArray, n_rows: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return means and standard errors by row and bin, each ``(n_rows, n_bins)``."""
        shape = (n_rows, len(self.k))
        cell, n_cells = row * shape[1] + self.place(k), n_rows * shape[1]
        n = np.bincount(cell, minlength=n_cells)
        mean = np.bincount(cell, value, n_cells) / np.maximum(n, 1)
        squares = np.bincount(cell, (value - mean[cell]) ** 2, n_cells).astype(np.float64)
        mean, error = _mean_and_error(n, mean, squares)
        return mean.reshape(shape), error.reshape(shape)


def _mean_and_error(
    n: FloatArray | IntArray, mean: FloatArray, squares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return means and standard errors from sums of squares, nan where fewer than two fall."""
    enough = n > 1
    error = np.sqrt(squares / np.maximum(n - 1, 1) / np.maximum(n, 1))
    return np.where(enough, mean, np.nan), np.where(enough, error, np.nan)
