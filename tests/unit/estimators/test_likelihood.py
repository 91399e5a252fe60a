from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from apiece import synthetic
from apiece.errors import FitError
from apiece.estimators import Likelihood
from apiece.estimators._profile import Samples, profile
from apiece.laws import FitStatus, Laws
from apiece.laws.student import normal_width_factor, quantile
from apiece.records import Contributions

UPPER = np.exp(2.0)


def nll(params, k, delta, prior_sd):
    """The paper's negative log likelihood of raw contributions, all four parameters free."""
    c, alpha, log_sigma, beta = params
    residual = (delta - c * k**-alpha) ** 2
    prior = 0.0 if prior_sd is None else ((alpha - 1) ** 2 + (beta / 2 - 1) ** 2) / prior_sd**2
    return (
        log_sigma - beta / 2 * np.log(k) + residual / 2 * np.exp(-2 * log_sigma) * k**beta
    ).sum() + prior / 2


@pytest.mark.parametrize("prior_sd", [None, 0.5])
@pytest.mark.parametrize("samples", [8, 40, 300])
def test_fits_agree_with_a_general_optimiser_over_all_four_parameters(samples, prior_sd):
    truth = synthetic.random_laws(6, random_state=5)
    contributions = synthetic.sample(truth, samples=samples, random_state=6)
    laws = Likelihood(prior_sd=prior_sd).fit(contributions)
    for point in range(truth.n_points):
        rows = contributions.point == point
        # Sizes around one, so that the general optimiser sees no extreme scales.
        k, unit = contributions.k[rows] / laws.k_ref, np.abs(contributions.delta[rows]).max()
        delta = contributions.delta[rows] / unit
        ours = np.array(
            [
                laws.mean(laws.k_ref)[point] / unit,
                laws.alpha[point],
                np.log(laws.sigma[point] / unit) - laws.beta[point] / 2 * np.log(laws.k_ref),
                laws.beta[point],
            ]
        )
        bounds = [(None, None), (0, UPPER), (-20, 20), (0, UPPER)]
        best = min(
            (
                minimize(nll, start, (k, delta, prior_sd), method="L-BFGS-B", bounds=bounds)
                for start in (
                    ours,
                    [0.1, 1, 0, 2],
                    [-0.1, 1, 0, 2],
                    [0.1, 3, 0, 1],
                    [-0.1, 3, 0, 4],
                )
            ),
            key=lambda found: found.fun,
        )
        # L-BFGS-B stops at relative changes of 2e-9 in the objective.
        assert nll(ours, k, delta, prior_sd) <= best.fun + 1e-6
        assert_allclose(ours[[0, 1, 3]], best.x[[0, 1, 3]], rtol=2e-3, atol=2e-3)


def test_derivatives_of_the_profile_match_finite_differences():
    rng = np.random.default_rng(0)
    contributions = synthetic.sample(synthetic.random_laws(5), samples=60, random_state=1)
    moments = contributions.scaled(1e4).moments()
    samples = Samples.of(moments, 316.0, precision=30.0)
    theta = rng.uniform(0.3, 4.0, (5, 2))
    at = profile(samples, theta)
    for j in range(2):
        step = np.zeros(2)
        step[j] = 1e-5
        up, down = profile(samples, theta + step), profile(samples, theta - step)
        # Central differences: rounding of f (1e-13) over the step gives 1e-8.
        assert_allclose(at.gradient[:, j], (up.f - down.f) / 2e-5, rtol=1e-6, atol=1e-6)
        slope = (up.gradient - down.gradient) / 2e-5
        assert_allclose(at.hessian[:, :, j], slope, rtol=1e-5, atol=1e-5)


def test_repeated_sizes_and_single_rows_give_the_same_law():
    truth = synthetic.random_laws(4, random_state=7)
    contributions = synthetic.sample(truth, samples=100, design="grid", n_sizes=5)
    laws = Likelihood().fit(contributions)
    # The same likelihood, written out row by row without moments.
    for point in range(4):
        rows = contributions.point == point
        k, delta = contributions.k[rows], contributions.delta[rows]
        w, u = k ** laws.beta[point], k ** -laws.alpha[point]
        c = (w * u * delta).sum() / (w * u * u).sum()
        assert_allclose(laws.c[point], c, rtol=1e-9)
        sigma = np.sqrt((w * (delta - c * u) ** 2).mean())
        assert_allclose(laws.sigma[point], sigma, rtol=1e-9)


@pytest.mark.parametrize("prior_sd", [None, 0.5, 0.05])
def test_the_covariance_is_the_inverse_information(prior_sd):
    truth = synthetic.random_laws(3, random_state=8)
    contributions = synthetic.sample(truth, samples=150, random_state=9)
    laws = Likelihood(prior_sd=prior_sd).fit(contributions)
    for point in range(3):
        k = contributions.k[contributions.point == point].astype(float)
        gradient = laws.family.gradient(laws.params[point : point + 1], k, laws.k_ref)[0]
        noise = laws.sigma[point] ** 2 * k ** -laws.beta[point] * 150 / 147
        information = gradient.T @ (gradient / noise[:, None])
        if prior_sd is not None:  # which is known, whatever is known of the noise
            information[1, 1] += prior_sd**-2 / normal_width_factor(laws.df[point])
        assert_allclose(laws.cov[point], np.linalg.inv(information), rtol=1e-8)


@pytest.mark.parametrize("design", ["uniform", "grid"])
def test_laws_without_noise_are_recovered(design):
    alpha = np.array([0.0, 0.4, 1.0, 1.31, 2.7, 6.5])
    truth = Laws.from_arrays(c=[1.0, -2.0, 3.0, -4e-3, 5e5, 1e9], alpha=alpha, sigma=0.0, beta=2.0)
    laws = Likelihood().fit(synthetic.sample(truth, samples=30, design=design))
    assert_allclose(laws.alpha, alpha, rtol=1e-6, atol=1e-6)
    assert_allclose(laws.c, truth.c, rtol=1e-6)
    assert set(laws.status) == {FitStatus.EXACT}
    assert (np.abs(laws.sigma * 300.0 ** (-laws.beta / 2)) < 1e-8 * np.abs(laws.mean(300))).all()


def test_each_point_is_marked_with_how_it_went():
    contributions = Contributions.from_arrays(
        point=[0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4],
        k=[10, 20, 10, 10, 10, 10, 20, 40, 10, 20, 40, 80, 10, 20, 40, 80],
        delta=[1.0, 0.5, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.1, 0.25, 0.3, 0.9, 0.8, 0.4, 0.2, 0.1],
        ids=["few", "one", "zero", "rising", "exact", "none"],
    )
    laws = Likelihood().fit(contributions)
    assert laws.status.tolist() == [
        FitStatus.TOO_FEW,
        FitStatus.ONE_SIZE,
        FitStatus.ALL_ZERO,
        FitStatus.AT_BOUND,
        FitStatus.EXACT,
        FitStatus.TOO_FEW,
    ]
    assert np.isnan(laws.params[[0, 5]]).all()
    assert np.isnan(laws.sigma[[0, 5]]).all()
    assert np.isfinite(laws.params[1:5]).all()
    assert (laws.alpha[1], laws.beta[1]) == (1.0, 2.0)
    assert_allclose(laws.mean(10)[1], 2.0)
    assert_allclose(laws.sigma[1] ** 2 * 10.0**-2, 2 / 3)
    assert_array_equal(laws.mean([10, 500])[2], 0.0)
    assert laws.alpha[3] == 0.0
    assert_array_equal(laws.n_samples, [2, 3, 3, 4, 4, 0])


def test_blocks_set_memory_and_not_results():
    truth = synthetic.random_laws(20, random_state=10)
    contributions = synthetic.sample(truth, samples=30, random_state=11)
    whole, parts = Likelihood().fit(contributions), Likelihood(block=60).fit(contributions)
    assert_allclose(parts.params, whole.params, rtol=1e-9)
    assert_allclose(parts.cov, whole.cov, rtol=1e-9)
    assert_array_equal(parts.status, whole.status)


def test_the_bound_limits_both_exponents():
    truth = Laws.from_arrays(c=[1e6], alpha=[3.0], sigma=[1e4], beta=[5.0])
    contributions = synthetic.sample(truth, samples=200)
    laws = Likelihood(bound=0.0).fit(contributions)
    assert_allclose([laws.alpha[0], laws.beta[0]], [1.0, 1.0])
    assert laws.status.tolist() == [FitStatus.AT_BOUND]


def test_laws_remember_where_they_come_from():
    contributions = synthetic.sample(synthetic.random_laws(2), samples=10, random_state=12)
    attrs = Likelihood(max_steps=50).fit(contributions).attrs
    assert attrs["estimator"] == "likelihood"
    assert attrs["settings"]["max_steps"] == 50
    assert attrs["seed"] == 12
    assert {"version", "created", "design"} <= set(attrs)


@pytest.mark.parametrize(
    ("delta", "k", "words"),
    [
        ([1.0, np.nan, 2.0], [1, 2, 3], "1 of 3 contributions are not finite"),
        ([1.0, np.inf, 2.0], [1, 2, 3], "not finite"),
        ([1.0, 1e160, 2.0], [1, 2, 3], "1e[+]160"),
        ([1.0, 1.0, 2.0], [1, 0, 3], "k=0"),
        ([], [], "no contributions"),
    ],
)
def test_contributions_that_cannot_be_fitted_are_refused(delta, k, words):
    contributions = Contributions.from_arrays(point=[0] * len(k), k=k, delta=delta)
    with pytest.raises(FitError, match=words):
        Likelihood().fit(contributions)


def test_a_narrow_prior_holds_the_decays_and_a_wide_one_lets_go():
    truth = Laws.from_arrays(c=[300.0] * 50, alpha=1.6, sigma=300.0, beta=3.0)
    contributions = synthetic.sample(truth, samples=30, random_state=13)
    held, plain = (Likelihood(prior_sd=sd).fit(contributions) for sd in (1e-4, None))
    assert_allclose(held.alpha, 1.0, atol=1e-4)
    assert_allclose(held.beta, 2.0, atol=1e-4)
    wide = Likelihood(prior_sd=1e4).fit(contributions)
    assert_allclose(wide.params, plain.params, rtol=1e-5)


def test_a_point_without_signal_has_the_slope_of_the_prior_and_an_interval():
    truth = Laws.from_arrays(c=[0.0] * 200, alpha=1.0, sigma=1.0, beta=2.0)
    laws = Likelihood().fit(synthetic.sample(truth, samples=10, random_state=14))
    assert (np.abs(laws.alpha - 1) < 1.5).all()
    assert np.isfinite(laws.interval([100, 1000])).all()
    # What it does not know of the slope is the prior's width, not Student's.
    reach = quantile(0.9, laws.df) * np.sqrt(laws.cov[:, 1, 1])
    assert_allclose([np.median(reach), reach.max()], 1.645 * 0.5, rtol=0.03)


@pytest.mark.parametrize(
    "settings", [{"bound": 9.0}, {"tolerance": 0.0}, {"max_steps": 0}, {"prior_sd": 0.0}]
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(FitError, match="expected"):
        Likelihood(**settings)
