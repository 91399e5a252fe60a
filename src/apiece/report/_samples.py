"""What was sampled, summarised for a page: means by size of every point, and of the loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from apiece._typing import AnyArray, FloatArray, IntArray
from apiece.errors import DataError
from apiece.records import Contributions

N_BINS: Final = 8
MOST_RAW: Final = 400_000  # contributions that a page carries one by one: 3 MB


class Means(NamedTuple):
    """Means in log-spaced bins of size, with standard errors; nan where fewer than two fall.

    ``k`` has shape ``(n_bins,)``, the geometric mean of the sizes in each bin; ``mean`` and
    ``error`` have shape ``(n_rows, n_bins)``.
    """

    k: FloatArray
    mean: FloatArray
    error: FloatArray


def aligned(contributions: Contributions, ids: AnyArray) -> Contributions:
    """Return the contributions of the points named ``ids``, numbered in that order.

    Raises
    ------
    DataError
        If none of the ids is known.
    """
    if np.array_equal(contributions.ids.astype(str), ids.astype(str)):
        return contributions
    place = {name: row for row, name in enumerate(ids.astype(str).tolist())}
    row = np.array([place.get(name, -1) for name in contributions.ids.astype(str).tolist()])
    if len(ids) and (row < 0).all():
        raise DataError(
            f"none of the laws' ids, such as {ids[0]!r}, is a point of the run: expected the laws "
            "that were fitted to it. Pass the run and the laws of one collection."
        )
    kept = contributions.where(row[contributions.point] >= 0)
    return replace(kept, point=row[kept.point], ids=ids)


def means_by_size(contributions: Contributions, n_bins: int = N_BINS) -> Means:
    """Average the contributions of every point in bins of size that all points share."""
    return _binned(
        contributions.point, contributions.k, contributions.delta, contributions.n_points, n_bins
    )


def loss_by_size(contributions: Contributions, n_bins: int = N_BINS) -> Means:
    """Average the loss of the model trained on D alone, one value a task, in bins of size."""
    _, first = np.unique(contributions.task, return_index=True)
    known = first[np.isfinite(contributions.loss[first])]
    one = np.zeros(len(known), dtype=np.int64)
    return _binned(one, contributions.k[known], contributions.loss[known], 1, n_bins)


class Raw(NamedTuple):
    """Contributions sorted by point: those of point i are ``start[i] .. start[i + 1] - 1``."""

    start: IntArray
    k: IntArray
    delta: FloatArray


def raw(contributions: Contributions) -> Raw | None:
    """Return the contributions one by one, or None if they are too many for a page."""
    if len(contributions) > MOST_RAW:
        return None
    order = np.argsort(contributions.point, kind="stable")
    counts = np.bincount(contributions.point, minlength=contributions.n_points)
    start = np.concatenate([[0], np.cumsum(counts)])
    return Raw(start, contributions.k[order], contributions.delta[order])


def _binned(row: IntArray, k: IntArray, value: FloatArray, n_rows: int, n_bins: int) -> Means:
    if not len(k):
        return Means(np.empty(0), np.empty((n_rows, 0)), np.empty((n_rows, 0)))
    sizes = np.unique(k)
    if len(sizes) <= n_bins:  # a grid: each size is a bin of its own
        bins, n_bins = np.searchsorted(sizes, k), len(sizes)
    else:
        edges = np.geomspace(k.min(), k.max() + 1, n_bins + 1)
        bins = np.clip(np.searchsorted(edges, k, side="right") - 1, 0, n_bins - 1)
    per_bin = np.bincount(bins, minlength=n_bins)
    centre = np.exp(np.bincount(bins, np.log(k), n_bins) / np.maximum(per_bin, 1))
    cell = row * n_bins + bins
    shape = (n_rows, n_bins)
    n = np.bincount(cell, minlength=n_rows * n_bins)
    enough = n > 1
    mean = np.bincount(cell, value, n_rows * n_bins) / np.maximum(n, 1)
    squares = np.bincount(cell, (value - mean[cell]) ** 2, n_rows * n_bins)
    error = np.sqrt(squares / np.maximum(n - 1, 1) / np.maximum(n, 1))
    keep = per_bin > 0
    return Means(
        centre[keep],
        np.where(enough, mean, np.nan).reshape(shape)[:, keep],
        np.where(enough, error, np.nan).reshape(shape)[:, keep],
    )
