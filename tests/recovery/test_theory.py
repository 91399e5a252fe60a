"""The engines against asymptotic theory: what a point contributes to a large training set."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from apiece import Dataset
from apiece.engines import choose_engine
from apiece.errors import DataError
from apiece.records import Task
from apiece.uses import theory

N_POOL = 20_000


def mean_contributions(dataset, model, k, n_draws, seed):
    """Mean contribution of every candidate over random training sets of size k."""
    engine, _ = choose_engine(dataset, model=model)
    rng = np.random.default_rng(seed)
    points = np.arange(dataset.n_pool, dataset.n_points)
    total = np.zeros(len(points))
    for index in range(n_draws):
        subset = rng.choice(dataset.n_pool, k, replace=False, shuffle=False)
        total += engine.run(Task(index, subset, points, 0)).delta
    return total / n_draws


@pytest.fixture(scope="module")
def regression():
    """Normal data, and a loss that is exactly the distance to the pool's optimum.

    Three validation rows have the second moments of the pool, and no noise. Candidates come in
    pairs with noise +e and -e, whose odd part of the contribution cancels.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_POOL, 3)) @ np.diag([1.0, 2.0, 0.5])
    y = X @ [1.0, -1.0, 2.0] + rng.normal(size=N_POOL)
    optimum, *_ = np.linalg.lstsq(X, y, rcond=None)
    V = np.sqrt(3) * np.linalg.cholesky(X.T @ X / N_POOL).T
    C = np.repeat(rng.normal(size=(24, 3)) @ np.diag([1.0, 2.0, 0.5]), 2, axis=0)
    noise = np.repeat(np.tile([0.0, 0.7, 1.0, 2.5], 6), 2) * np.tile([1, -1], 24)
    return Dataset.from_arrays(
        X,
        y,
        X_val=V,
        y_val=V @ optimum,
        candidates=(C, C @ optimum + noise),
        kind="regression",
    )


@pytest.mark.slow
def test_least_squares_contributions_decay_as_two_and_with_the_predicted_scale(regression):
    from sklearn.linear_model import LinearRegression

    expected = theory(regression, fit_intercept=False).iloc[N_POOL:]
    assert_allclose(expected["a2"], 0.0, atol=1e-9)
    in_pairs = expected["a4"].to_numpy().reshape(-1, 2).mean(axis=1)
    model = LinearRegression(fit_intercept=False)
    psi = {
        k: mean_contributions(regression, model, k, 1500, seed=k).reshape(-1, 2).mean(axis=1)
        for k in (100, 400)
    }
    # Corrections are of the order of 3 parameters over k: a few percent at 400.
    slope = (psi[400] * 400**2) @ in_pairs / (in_pairs @ in_pairs)
    assert_allclose(slope, 1.0, atol=0.1)
    assert np.corrcoef(psi[400], in_pairs)[0, 1] > 0.98
    alpha = np.log((psi[100] @ in_pairs) / (psi[400] @ in_pairs)) / np.log(4)
    assert_allclose(alpha, 2.0, atol=0.1)


@pytest.mark.slow
def test_fitted_laws_of_least_squares_find_alpha_two_and_the_predicted_c(regression):
    """Points without noise of their own, whose contributions vary least."""
    from sklearn.linear_model import LinearRegression

    import apiece

    run = apiece.collect(
        regression,
        model=LinearRegression(fit_intercept=False),
        points=[],
        sizes=(100, 1000),
        samples=800,
        random_state=0,
        progress=False,
    )
    laws = apiece.fit(run, family="power")
    expected = theory(regression, fit_intercept=False).iloc[N_POOL:]
    calm = np.abs(expected["residual"].to_numpy()) < 0.1
    assert calm.sum() == 12
    assert_allclose(np.median(laws.alpha[calm]), 2.0, atol=0.1)
    # At the geometric mean size, where c and alpha are separated best.
    ratio = laws.mean(laws.k_ref)[calm] * laws.k_ref**2 / expected["a4"][calm]
    assert_allclose(np.median(ratio), 1.0, atol=0.1)


def test_noise_beyond_twice_the_variance_harms(regression):
    table = theory(regression, fit_intercept=False).iloc[N_POOL:]
    noise = np.abs(table["residual"])
    assert (table["a4"][noise < 1.3] > 0).all()
    assert (table["a4"][noise > 1.5] < 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_a_finite_validation_set_leaves_the_predicted_coefficient_of_one_over_k(model):
    rng = np.random.default_rng(1)
    X, V, C = (rng.normal(size=(n, 2)) for n in (N_POOL, 40, 60))

    def targets(rows):
        score = rows @ [1.0, -0.5] + 0.2
        if model == "linear":
            return score + rng.normal(size=len(rows))
        return (rng.random(len(rows)) < 1 / (1 + np.exp(-score))).astype(int)

    dataset = Dataset.from_arrays(
        X,
        targets(X),
        X_val=V,
        y_val=targets(V),
        candidates=(C, targets(C)),
        kind="regression" if model == "linear" else "classification",
    )
    expected = theory(dataset)["a2"].iloc[N_POOL:].to_numpy()
    k = 2000
    measured = k * mean_contributions(dataset, model, k, 50, seed=2)
    # Noise of the gradient at f_D, 1/sqrt(k) next to 1/sqrt(40), over 50 draws: 2 %.
    assert np.corrcoef(measured, expected)[0, 1] > 0.99
    assert_allclose(measured @ expected / (expected @ expected), 1.0, atol=0.06)


def test_theory_of_separable_classes_is_finite():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 2))
    dataset = Dataset.from_arrays(X, (X[:, 0] > 0).astype(int), validation=20)
    assert np.isfinite(theory(dataset)).all().all()


def test_theory_of_many_classes_is_refused():
    from conftest import make_blobs

    with pytest.raises(DataError, match="3 classes"):
        theory(make_blobs(n_classes=3))
