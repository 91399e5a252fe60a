from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from apiece import synthetic
from apiece.errors import FitError
from apiece.estimators import LogOLS
from apiece.laws import FitStatus, Laws
from apiece.records import Contributions


@pytest.fixture(scope="module")
def grid():
    """Contributions of 30 points on a grid of 6 sizes, 40 samples each."""
    truth = synthetic.random_laws(30, random_state=1)
    return synthetic.sample(truth, samples=240, design="grid", n_sizes=6, random_state=2)


def naive(contributions, point):
    """Means and variances by size, one point, straight from the rows."""
    rows = contributions.point == point
    k, delta = contributions.k[rows], contributions.delta[rows]
    sizes = np.unique(k)
    groups = [delta[k == size] for size in sizes]
    return sizes, np.array([g.mean() for g in groups]), np.array([g.var(ddof=1) for g in groups])


def test_slopes_are_those_of_a_line_through_the_logs(grid):
    laws = LogOLS().fit(grid)
    for point in range(grid.n_points):
        k, mean, variance = naive(grid, point)
        slope, intercept = np.polyfit(np.log(k), np.log(np.abs(mean)), 1)
        assert_allclose(laws.alpha[point], -slope, rtol=1e-9)
        fitted = intercept + slope * np.log(k)
        y = np.log(np.abs(mean))
        r2 = 1 - ((y - fitted) ** 2).sum() / ((y - y.mean()) ** 2).sum()
        assert_allclose(laws.r2[point], r2, rtol=1e-6, atol=1e-9)
        assert_allclose(laws.beta[point], -np.polyfit(np.log(k), np.log(variance), 1)[0], rtol=1e-9)


def test_c_is_refitted_in_the_original_space(grid):
    laws = LogOLS().fit(grid)
    for point in range(grid.n_points):
        k, mean, variance = naive(grid, point)
        u, v = k ** -laws.alpha[point], k ** -laws.beta[point]
        assert_allclose(laws.c[point], (mean @ u) / (u @ u), rtol=1e-9)
        assert_allclose(laws.sigma[point] ** 2, (variance @ v) / (v @ v), rtol=1e-9)


def test_overall_r2_is_the_mean_over_sizes_of_r2_across_points(grid):
    laws = LogOLS().fit(grid)
    tables = [naive(grid, point) for point in range(grid.n_points)]
    sizes = tables[0][0]
    for seen, predicted, suffix in (
        (np.array([t[1] for t in tables]), laws.mean(sizes), ""),
        (
            np.array([t[2] for t in tables]),
            laws.sigma[:, None] ** 2 * sizes ** -laws.beta[:, None],
            "_variance",
        ),
    ):
        r2 = 1 - ((seen - predicted) ** 2).sum(axis=0) / ((seen - seen.mean(axis=0)) ** 2).sum(
            axis=0
        )
        by_size = laws.diagnostics[f"r2{suffix}_by_size"]
        assert_allclose(by_size["k"], sizes)
        assert_allclose(by_size["r2"], r2, rtol=1e-9)
        assert_allclose(laws.diagnostics[f"overall_r2{suffix}"], r2.mean(), rtol=1e-9)


def test_the_covariance_is_that_of_ordinary_least_squares(grid):
    laws = LogOLS().fit(grid)
    for point in range(5):
        k, mean, _ = naive(grid, point)
        x, y = np.log(k / laws.k_ref), np.log(np.abs(mean))
        design = np.stack([np.ones_like(x), -x], axis=1)
        _, rss, *_ = np.linalg.lstsq(design, y, rcond=None)
        cov = rss[0] / (len(x) - 2) * np.linalg.inv(design.T @ design)
        jacobian = np.diag([laws.mean(laws.k_ref)[point], 1.0])
        assert_allclose(laws.cov[point], jacobian @ cov @ jacobian, rtol=1e-6)


def test_laws_without_noise_are_recovered_to_rounding():
    truth = Laws.from_arrays(c=[0.3, -2.0], alpha=[0.8, 1.7], sigma=0.0, beta=2.0)
    laws = LogOLS().fit(synthetic.sample(truth, samples=20, design="grid"))
    assert_allclose(laws.c, truth.c, rtol=1e-9)
    assert_allclose(laws.alpha, truth.alpha, rtol=1e-9)
    assert_allclose(laws.r2, 1.0)
    assert laws.status.tolist() == [FitStatus.EXACT] * 2
    assert_allclose(laws.diagnostics["overall_r2"], 1.0)


def test_many_sizes_are_merged_into_bins_and_the_attributes_say_so():
    truth = synthetic.random_laws(50, random_state=3)
    contributions = synthetic.sample(truth, samples=400, random_state=4)
    laws = LogOLS(bins=8).fit(contributions)
    merged = laws.attrs["settings"]["merged_sizes"]
    assert len(merged) == len(laws.diagnostics["r2_by_size"]["k"]) == 8
    assert merged == sorted(set(merged))
    few = LogOLS().fit(synthetic.sample(truth, samples=40, design="grid"))
    assert few.attrs["settings"]["merged_sizes"] is None


def test_zero_means_are_left_out_of_the_line_and_kept_in_the_refit():
    contributions = Contributions.from_arrays(
        point=[0] * 4, k=[10, 20, 40, 80], delta=[0.8, 0.0, 0.2, 0.1]
    )
    laws = LogOLS().fit(contributions)
    assert_allclose(laws.alpha, 1.0)
    u = 1 / np.array([10, 20, 40, 80])
    assert_allclose(laws.c, (u @ [0.8, 0.0, 0.2, 0.1]) / (u @ u))


def test_each_point_is_marked_with_how_it_went():
    contributions = Contributions.from_arrays(
        point=[0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3],
        k=[10, 20, 10, 10, 10, 10, 20, 40, 1000, 1001, 1000],
        delta=[1.0, 0.5, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0, 1e-5, 1.5],
        ids=["few", "one", "zero", "steep", "none"],
    )
    laws = LogOLS().fit(contributions)
    assert laws.status.tolist() == [
        FitStatus.TOO_FEW,
        FitStatus.ONE_SIZE,
        FitStatus.ALL_ZERO,
        FitStatus.AT_BOUND,
        FitStatus.TOO_FEW,
    ]
    assert_array_equal(laws.n_samples, [2, 3, 3, 3, 0])
    assert np.isnan(laws.params[[0, 4]]).all()
    assert_allclose(laws.mean(10)[1], 2.0)
    assert laws.alpha[1] == 1.0
    assert_array_equal(laws.mean(10)[2], 0.0)


def test_the_variance_needs_two_samples_at_two_sizes():
    contributions = Contributions.from_arrays(point=[0] * 3, k=[10, 20, 40], delta=[1.0, 0.6, 0.2])
    laws = LogOLS().fit(contributions)
    assert np.isnan([laws.sigma, laws.beta]).all()
    assert "sigma" not in laws.provides
    assert laws.diagnostics["overall_r2_variance"] is None


@pytest.mark.parametrize("settings", [{"max_sizes": 1}, {"bins": 0}])
def test_settings_without_two_sizes_are_refused(settings):
    with pytest.raises(FitError, match="two sizes"):
        LogOLS(**settings)
