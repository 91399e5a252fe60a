from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from apiece.estimators import Likelihood, LogOLS
from apiece.laws import FitStatus
from apiece.records import Contributions

import strategies

ESTIMATORS = pytest.mark.parametrize("estimator", [LogOLS(), Likelihood()], ids=["ols", "mle"])
quick = settings(deadline=None, max_examples=40)
# A law almost without noise, whose valley lies between two steps of the search's grid.
NARROW = Contributions.from_arrays(
    point=[0, 0, 0], k=[500, 503, 503], delta=[8.314e-10, 8.149e-10, 8.149e-10]
)


def assert_same_laws(actual, desired, scale=1.0):
    """Compare laws whose contributions differ in the last digit only.

    Where the likelihood is flat that digit moves the estimate, by much less than its own error:
    accept a thousandth of the standard error (nan: the point has none, and must agree).
    """
    slack = np.nan_to_num(1e-3 * np.sqrt(desired.cov[:, 1, 1]))
    assert (np.abs(actual.alpha - desired.alpha) <= 1e-6 * np.abs(desired.alpha) + slack).all()
    sizes = np.unique(np.linspace(*desired.k_range, 5).astype(int))
    slack = np.nan_to_num(1e-3 * scale * desired.stderr(sizes))
    expected = scale * desired.mean(sizes)
    assert (np.abs(actual.mean(sizes) - expected) <= 1e-6 * np.abs(expected) + slack).all()


@ESTIMATORS
@given(contributions=strategies.contributions(), scale=st.floats(1e-3, 1e3))
@quick
def test_scaling_the_utility_scales_c_and_leaves_alpha(estimator, contributions, scale):
    laws = estimator.fit(contributions)
    scaled = estimator.fit(contributions.scaled(scale))
    assert_same_laws(scaled, laws, scale)
    # Noise at the middle size; sigma itself is an extrapolation to one training point.
    noise = laws.sigma * laws.k_ref ** (-laws.beta / 2)
    scaled_noise = scaled.sigma * scaled.k_ref ** (-scaled.beta / 2)
    assert_allclose(scaled_noise, scale * noise, rtol=1e-4)


@ESTIMATORS
@given(contributions=strategies.contributions(), seed=st.integers(0, 1000))
@quick
def test_the_order_of_rows_and_points_does_not_matter(estimator, contributions, seed):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(contributions))
    place = rng.permutation(contributions.n_points)
    shuffled = Contributions.from_arrays(
        task=contributions.task[rows],
        k=contributions.k[rows],
        point=place[contributions.point[rows]],
        delta=contributions.delta[rows],
    )
    laws, other = estimator.fit(contributions), estimator.fit(shuffled)
    assert_same_laws(other.select(place), laws)


@ESTIMATORS
@given(contributions=strategies.nasty_contributions())
@settings(deadline=None, max_examples=150)
def test_every_point_with_three_contributions_has_finite_parameters(estimator, contributions):
    laws = estimator.fit(contributions)
    assert np.isfinite(laws.params).all()
    assert np.isfinite(laws.mean([1, 100, 100_000])).all()
    assert not np.isinf(laws.stderr([1, 100, 1000])).any()
    assert not np.isinf(laws.cov).any()
    assert FitStatus.TOO_FEW not in laws.status.tolist()
    if isinstance(estimator, Likelihood):
        assert np.isfinite(laws.sigma).all()
        assert np.isfinite(laws.beta).all()


@pytest.mark.parametrize("prior_sd", [None, 0.5])
@given(contributions=strategies.nasty_contributions(scales=(1.0, 1e-6)))
@example(contributions=NARROW)
@settings(deadline=None, max_examples=100)
def test_the_likelihood_is_never_worse_than_a_dense_grid(prior_sd, contributions):
    laws = Likelihood(prior_sd=prior_sd).fit(contributions)
    k_ref = laws.k_ref
    for point in range(laws.n_points):
        if laws.status[point] in (FitStatus.ALL_ZERO, FitStatus.ONE_SIZE):
            continue
        rows = contributions.point == point
        k, delta = contributions.k[rows], contributions.delta[rows]
        axis = np.linspace(0, np.exp(2.0), 60)
        grid = objective(k, delta, *np.meshgrid(axis, axis), k_ref, prior_sd)
        found = objective(k, delta, laws.alpha[point], laws.beta[point], k_ref, prior_sd)
        # Without noise there is no decay of it: beta is where the rounding errors leave it.
        slack = 1e-3 if laws.status[point] == FitStatus.EXACT else 1e-8
        assert found <= grid.min() + slack * max(1.0, abs(grid.min()))


def objective(k, delta, alpha, beta, k_ref, prior_sd):
    """Negative log likelihood of raw contributions, from the paper's formulas, up to a constant.

    It includes the documented floor of the noise, a share 1e-24 of the sum of squares.
    """
    x = np.log(k / k_ref)
    unit = np.abs(delta).max()
    y, alpha, beta = delta / unit, np.asarray(alpha)[..., None], np.asarray(beta)[..., None]
    w, u = np.exp(beta * x), np.exp(-alpha * x)
    c = (w * u * y).sum(-1, keepdims=True) / (w * u**2).sum(-1, keepdims=True)
    q = (w * (y - c * u) ** 2).sum(-1) + 1e-24 * (w * y**2).sum(-1)
    prior = ((alpha - 1) ** 2 + (beta / 2 - 1) ** 2)[..., 0] / (2 * (prior_sd or np.inf) ** 2)
    return len(k) / 2 * np.log(q) - beta[..., 0] / 2 * x.sum() + prior
