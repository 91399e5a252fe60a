"""The linear engine equals a refit for any data, size, scale and penalty."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge

from apiece import Dataset
from apiece.engines import Model, RefitEngine
from apiece.engines._linear import LinearEngine
from apiece.losses import resolve_loss
from apiece.records import Task


@st.composite
def problems(draw, *, most_decades):
    """Rows with features of different scales, perhaps duplicated, constant or collinear."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d, k = draw(st.integers(1, 8)), draw(st.integers(1, 20))
    n = k + 6
    X = rng.normal(size=(n + 12, d))
    y = X @ rng.normal(size=d) + rng.normal(size=len(X))
    shape = draw(st.sampled_from(["plain", "duplicated", "constant", "collinear"]))
    if shape == "duplicated":
        X[k : k + 3] = X[rng.integers(0, k, 3)]
    elif shape == "constant":
        X[:, 0] = 1.0
    elif shape == "collinear":
        X[:, -1] = X[:, 0]
    X *= 10.0 ** rng.uniform(-most_decades, most_decades, d)
    dataset = Dataset.from_arrays(X[:n], y[:n], X_val=X[n:], y_val=y[n:], kind="regression")
    return dataset, Task(0, rng.permutation(k), np.arange(k, n), seed=0)


METRICS = st.sampled_from(["squared_error", "absolute_error"])


def assert_equals_refit(problem, estimator, oracle, metric, doubt=1e-7):
    dataset, task = problem
    loss = resolve_loss(metric, kind="regression", has_proba=False)
    outcome = LinearEngine(dataset, Model("model", estimator), loss).run(task)
    expected = RefitEngine(dataset, Model("oracle", oracle), loss).run(task)
    # a refit subtracts two losses, which costs some 1e-16 of them
    atol = doubt * np.abs(expected.delta).mean() + 1e-11 * expected.loss
    assert_allclose(outcome.delta, expected.delta, rtol=0, atol=atol)
    assert_allclose(outcome.loss, expected.loss, rtol=1e-9)


@settings(max_examples=120, deadline=None)
@given(problems(most_decades=3), st.floats(-4, 4), st.booleans(), METRICS)
def test_ridge_equals_a_refit(problem, exponent, has_intercept, metric):
    estimator = Ridge(alpha=10.0**exponent, fit_intercept=has_intercept)
    oracle = clone(estimator).set_params(solver="svd")  # more accurate than the default
    # features that are rounded to 1e-16 move coefficients by this much where D leaves them open
    doubt = 1e-9 + 1e-14 * np.square(problem[0].points_X).sum() / estimator.alpha
    assert_equals_refit(problem, estimator, oracle, metric, doubt)


@settings(max_examples=120, deadline=None)
@given(problems(most_decades=2), st.booleans(), METRICS)
def test_least_squares_equals_a_refit(problem, has_intercept, metric):
    estimator = LinearRegression(fit_intercept=has_intercept)
    assert_equals_refit(problem, estimator, estimator, metric)


@settings(max_examples=60, deadline=None)
@given(problems(most_decades=1), st.integers(-20, 20), st.integers(-20, 20))
def test_powers_of_two_scale_features_for_nothing_and_the_loss_by_their_square(problem, a, b):
    dataset, task = problem
    scaled = Dataset.from_arrays(
        dataset.X * 2.0**a,
        dataset.y * 2.0**b,
        X_val=dataset.X_val * 2.0**a,
        y_val=dataset.y_val * 2.0**b,
        kind="regression",
    )
    model, loss = (
        Model("linear", LinearRegression()),
        resolve_loss(None, kind="regression", has_proba=False),
    )
    expected = LinearEngine(dataset, model, loss).run(task)
    outcome = LinearEngine(scaled, model, loss).run(task)
    assert_allclose(outcome.delta, expected.delta * 4.0**b, rtol=1e-12)
