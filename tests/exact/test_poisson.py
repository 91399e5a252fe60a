"""Poisson regression against converged refits of scikit-learn, and through the front door."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance

import apiece
from apiece import Dataset
from apiece.engines import PoissonEngine, RefitEngine, choose_engine, resolve_model
from apiece.losses import LOSSES
from apiece.records import Task


def counts(n=90, d=4, seed=0, scale=0.5, n_val=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + n_val, d))
    y = rng.poisson(np.exp(1.0 + scale * X @ rng.normal(size=d))).astype(float)
    return Dataset.from_arrays(X[:n], y[:n], X_val=X[n:], y_val=y[n:], kind="regression")


def converged(**settings):
    return PoissonRegressor(solver="newton-cholesky", tol=1e-12, max_iter=1_000, **settings)


def compare(dataset, k, *, metric="poisson_deviance", tolerance=1e-5, points=None, **settings):
    model = converged(**settings)
    points = np.arange(k, dataset.n_points) if points is None else points
    task = Task(0, np.arange(k), points, 0)
    engine, reason = choose_engine(dataset, model=model, metric=metric)
    assert (engine.name, reason) == ("poisson", "exact and fast for PoissonRegressor")
    fast, slow = engine.run(task), RefitEngine(dataset, engine.model, engine.metric).run(task)
    scale = np.abs(slow.delta).mean()
    assert_allclose(fast.delta, slow.delta, rtol=0, atol=tolerance * scale)
    assert fast.loss == pytest.approx(slow.loss, rel=1e-7)
    return fast


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("metric", ["poisson_deviance", "squared_error", "absolute_error"])
def test_contributions_equal_those_of_a_refit(alpha, metric):
    for k in (12, 60):
        outcome = compare(counts(), k, alpha=alpha, metric=metric)
        assert outcome.certificate < 1e-5
        assert outcome.notes == {"refits": 0}


def test_it_holds_without_an_intercept_and_with_more_features_than_points():
    compare(counts(), 50, fit_intercept=False)
    compare(counts(d=30, scale=0.1), 15, alpha=0.1)


def test_features_far_from_zero_cost_no_digits():
    plain = counts()
    moved = Dataset.from_arrays(
        plain.X + 1e4, plain.y, X_val=plain.X_val + 1e4, y_val=plain.y_val, kind="regression"
    )
    task = Task(0, np.arange(40), np.arange(40, 90), 0)
    one, other = (
        choose_engine(data, model=PoissonRegressor(), metric="poisson_deviance")[0].run(task).delta
        for data in (plain, moved)
    )
    assert_allclose(other, one, rtol=0, atol=1e-6 * np.abs(one).mean())


def test_an_outlier_moves_the_model_as_far_as_a_refit():
    plain = counts()
    X, y = plain.X.copy(), plain.y.copy()
    X[80], y[80], y[81] = 6.0, 0.0, 500.0
    dataset = Dataset.from_arrays(X, y, X_val=plain.X_val, y_val=plain.y_val, kind="regression")
    compare(dataset, 30, alpha=1e-3, points=np.arange(75, 90))


def test_a_training_set_without_a_single_count_is_marked():
    plain = counts()
    y = plain.y.copy()
    y[:20] = 0.0
    dataset = Dataset.from_arrays(
        plain.X, y, X_val=plain.X_val, y_val=plain.y_val, kind="regression"
    )
    engine, _ = choose_engine(dataset, model="poisson")
    outcome = engine.run(Task(0, np.arange(20), np.arange(60, 65), 0))
    assert np.isnan(outcome.delta).all()
    assert np.isfinite(outcome.loss)


def test_the_loss_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, mean = rng.poisson(2.0, size=50).astype(float), rng.uniform(0.1, 5.0, size=50)
    loss = LOSSES["poisson_deviance"]
    assert loss.value(y, mean) == pytest.approx(mean_poisson_deviance(y, mean), rel=1e-13)
    h = 1e-6
    numeric = (loss.rows(y, mean + h) - loss.rows(y, mean - h)) / (2 * h)
    assert_allclose(loss.slope(y, mean)[:, 0], numeric, atol=1e-5)
    series = loss.margin_series(y, np.log(mean), 10)
    change = loss.rows(y, mean * np.exp(0.5)) - loss.rows(y, mean)
    assert_allclose(0.5 ** np.arange(11) @ series, change, rtol=1e-8)


@pytest.mark.parametrize(
    ("model", "data", "words"),
    [
        (PoissonRegressor(alpha=np.inf), counts(), "alpha is inf"),
        ("ridge", counts(), "ridge is not PoissonRegressor"),
    ],
)
def test_what_it_does_not_support_it_says(model, data, words):
    found = resolve_model(model, kind="regression", n_features=4, n_classes=0)
    assert PoissonEngine.supports(data, found, LOSSES["squared_error"]) == words


def test_negative_targets_are_left_to_scikit_learn_to_refuse():
    plain = counts()
    dataset = Dataset.from_arrays(
        plain.X, plain.y - 1, X_val=plain.X_val, y_val=plain.y_val, kind="regression"
    )
    engine, reason = choose_engine(dataset, model="poisson")
    assert engine.name == "refit"
    assert "some targets are negative" in reason


def test_a_run_of_counts_from_one_line():
    run = apiece.collect(
        counts(),
        model="poisson",
        metric="poisson_deviance",
        sizes=(10, 40),
        samples=5,
        random_state=0,
    )
    assert run.manifest.engine.name == "poisson"
    assert len(run.contributions()) > 0
