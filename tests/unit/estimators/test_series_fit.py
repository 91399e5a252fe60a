from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from apiece import synthetic
from apiece.estimators import Likelihood
from apiece.laws import FitStatus, Laws, Series
from apiece.records import Contributions


@pytest.fixture(scope="module")
def truth():
    return synthetic.random_laws(4, family="series", random_state=3)


@pytest.mark.parametrize("family", [Series(), Series((2, 4)), Series((3,))])
def test_coefficients_and_covariance_are_those_of_weighted_least_squares(truth, family):
    table = synthetic.sample(truth, samples=60, random_state=4)
    laws = Likelihood(family=family).fit(table)
    for point in range(4):
        mine = table.point == point
        k, y = table.k[mine].astype(float), table.delta[mine]
        root = k ** (laws.beta[point] / 2)
        design = family.basis(k) * root[:, None]
        expected, *_ = np.linalg.lstsq(design, y * root, rcond=None)
        assert_allclose(laws.params[point], expected, rtol=1e-6)
        s2 = ((y * root - design @ expected) ** 2).sum() / (60 - len(family.terms))
        assert_allclose(laws.cov[point], s2 * np.linalg.inv(design.T @ design), rtol=1e-5)
    assert_allclose(laws.df, 60 - len(family.terms) - 1)


def test_a_series_without_noise_is_found_exactly():
    truth = Laws.from_arrays(family="series", params=[[1.0, -20.0, 100.0]], sigma=0.0, beta=2.0)
    laws = Likelihood(family="series").fit(synthetic.sample(truth, samples=40))
    assert_allclose(laws.params, truth.params, rtol=1e-6)
    assert laws.status[0] == FitStatus.EXACT


def test_a_point_that_helps_small_sets_and_hurts_large_ones_keeps_both_signs():
    truth = Laws.from_arrays(family=Series((2, 4)), params=[[-0.1, 30.0]], sigma=0.05, beta=2.0)
    laws = Likelihood(family=Series((2, 4))).fit(synthetic.sample(truth, samples=400))
    assert laws.mean(100)[0] > 0 > laws.mean(1000)[0]


def test_two_sizes_give_a_curve_through_both_but_no_interval():
    table = Contributions.from_arrays(
        point=[0] * 6, k=[100, 100, 100, 400, 400, 400], delta=[3.0, 2.0, 4.0, 1.0, 0.5, 1.5]
    )
    laws = Likelihood(family="series").fit(table)
    assert_allclose(laws.mean([100, 400])[0], [3.0, 1.0], rtol=1e-6)
    assert np.isnan(laws.interval(100)[0]).all()
