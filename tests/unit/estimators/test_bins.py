from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from apiece.estimators._bins import Bins
from apiece.records import Contributions


def test_few_sizes_keep_a_bin_each():
    bins = Bins.of(np.array([30, 10, 20, 10]), max_sizes=3, n_bins=2)
    assert_array_equal(bins.k, [10, 20, 30])
    assert bins.is_exact


def test_empty_bins_disappear_without_moving_sizes_elsewhere():
    k = np.array([1, 2, 900, 950, 1000])
    bins = Bins.of(k, max_sizes=2, n_bins=10)
    assert_allclose(bins.k, [1, 2, (900 * 950 * 1000) ** (1 / 3)])
    contributions = Contributions.from_arrays(point=[0] * 5, k=k, delta=[1, 2, 3, 4, 8])
    merged = bins.merge(contributions.moments())
    assert_array_equal(merged.n, [[1, 1, 3]])
    assert_allclose(merged.mean, [[1, 2, 5]])
    assert_allclose(merged.m2, [[0, 0, 14]])


def test_merged_moments_are_those_of_the_rows_together():
    rng = np.random.default_rng(0)
    point, k, delta = rng.integers(0, 4, 300), rng.integers(100, 1000, 300), rng.normal(size=300)
    bins = Bins.of(k, max_sizes=20, n_bins=7)
    moments = Contributions.from_arrays(point=point, k=k, delta=delta).moments()
    merged = bins.merge(moments, point_k=True)
    cell = np.searchsorted(bins.edges, k, side="right")
    for i in range(4):
        for j in range(len(bins)):
            rows = (point == i) & (cell == j)
            assert merged.n[i, j] == rows.sum()
            if rows.any():
                assert_allclose(merged.mean[i, j], delta[rows].mean())
                assert_allclose(merged.m2[i, j], rows.sum() * delta[rows].var(), atol=1e-12)
                assert_allclose(merged.k[i, j], np.exp(np.log(k[rows]).mean()))
