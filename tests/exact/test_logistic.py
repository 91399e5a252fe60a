"""The logistic engine against a converged refit, in the regimes where it could go wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from apiece import Dataset
from apiece.engines import (
    LogisticEngine,
    Model,
    RefitEngine,
    _glm_fit,
    _glm_joining,
    choose_engine,
)
from apiece.engines._logistic import converged
from apiece.errors import ModelError
from apiece.losses import LOSSES, resolve_loss
from apiece.records import Task


def data(n=120, d=5, seed=0, shift=1.0, scale=None, n_val=50):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + n_val, d))
    if scale is not None:
        X = X * scale
    w = rng.normal(size=d) / np.abs(X).mean(axis=0)
    y = (X @ w * shift + rng.logistic(size=len(X)) > 0).astype(int)
    y[:2] = y[n : n + 2] = [0, 1]
    return Dataset.from_arrays(X[:n], y[:n], X_val=X[n:], y_val=y[n:], kind="classification")


def compare(dataset, k, *, metric="log_loss", tolerance=1e-5, points=None, **settings):
    model = Model("logistic", LogisticRegression(**settings))
    loss = resolve_loss(metric, kind="classification", has_proba=True)
    task = Task(0, np.arange(k), np.arange(k, k + 15) if points is None else points, 0)
    fast = LogisticEngine(dataset, model, loss).run(task)
    slow = RefitEngine(dataset, converged(model), loss).run(task)
    scale = np.abs(slow.delta).mean()
    assert fast.loss == pytest.approx(slow.loss, rel=1e-9, abs=1e-12)
    assert_allclose(fast.delta, slow.delta, rtol=0, atol=tolerance * scale + 1e-12)
    return fast


@pytest.mark.parametrize("k", [10, 40, 100])
@pytest.mark.parametrize("metric", ["log_loss", "brier", "softmax_of_proba", "zero_one", "hinge"])
def test_contributions_are_those_of_a_converged_refit(k, metric):
    compare(data(), k, metric=metric)


def test_floating_point_flags_do_not_stop_what_is_checked_row_by_row():
    dataset = data(n=160, shift=200.0)
    settings = Model("logistic", LogisticRegression(C=1e6))
    loss = resolve_loss("log_loss", kind="classification", has_proba=True)
    engine, task = (
        LogisticEngine(dataset, settings, loss),
        Task(0, np.arange(60), np.arange(60, 90), 0),
    )
    calm = engine.run(task)
    with np.errstate(all="raise"):
        assert_allclose(engine.run(task).delta, calm.delta, rtol=0, atol=0)


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_any_regularisation_with_or_without_intercept(C, fit_intercept):
    compare(data(), 60, C=C, fit_intercept=fit_intercept)


def test_more_features_than_points_and_separable_classes():
    fast = compare(data(d=200, shift=3.0), 60, C=1.0)
    assert fast.notes["refits"] == 0


def test_separable_data_with_hardly_any_penalty():
    compare(data(d=3, shift=200.0), 60, C=1e4)


def test_constant_collinear_and_duplicated_columns():
    dataset = data()
    X, X_val = (
        np.column_stack([A, np.full(len(A), 3.0), A[:, 0], A[:, 1] - A[:, 2]])
        for A in (dataset.X, dataset.X_val)
    )
    compare(Dataset.from_arrays(X, dataset.y, X_val=X_val, y_val=dataset.y_val), 50)


def test_duplicated_points_also_with_the_other_label():
    dataset = data()
    X, y = dataset.X.copy(), dataset.y.copy()
    X[61:65] = X[:4]
    y[61:65] = 1 - y[:4]
    X[65:70] = X[5:10]
    compare(Dataset.from_arrays(X, y, X_val=dataset.X_val, y_val=dataset.y_val), 60)


@pytest.mark.parametrize("scale", [np.logspace(-3, 3, 5), 100.0, 1e-3])
def test_extreme_scales(scale):
    compare(data(scale=scale), 60)


def test_an_outlying_point_moves_the_model_a_lot_and_is_still_exact():
    dataset = data()
    X = dataset.X.copy()
    X[70:74] *= 50
    outcome = compare(
        Dataset.from_arrays(X, dataset.y, X_val=dataset.X_val, y_val=dataset.y_val),
        60,
        points=np.arange(68, 76),
    )
    assert outcome.certificate < 1e-5


def test_a_custom_metric_sees_probabilities():
    compare(data(), 50, metric=lambda y, p: float(np.mean(np.abs(p[:, 1] - y) ** 1.5)))


def test_clipped_losses_are_clipped_as_in_the_refit():
    dataset = data(shift=300.0)
    X_val = dataset.X_val * 1e4
    compare(
        Dataset.from_arrays(dataset.X, dataset.y, X_val=X_val, y_val=dataset.y_val), 60, C=100.0
    )


def test_imbalanced_classes():
    dataset = data(n=200)
    order = np.argsort(dataset.y, kind="stable")
    zeros, ones = order[dataset.y[order] == 0], order[dataset.y[order] == 1]
    rows = np.concatenate([zeros[:80], ones[:30]])
    few = Dataset.from_arrays(
        dataset.X[rows], dataset.y[rows], X_val=dataset.X_val, y_val=dataset.y_val
    )
    subset = np.concatenate([np.arange(60), [80]])
    model = Model("logistic", LogisticRegression())
    task = Task(0, subset, np.array([70, 71, 90, 100]), 0)
    fast = LogisticEngine(few, model, LOSSES["log_loss"]).run(task)
    slow = RefitEngine(few, converged(model), LOSSES["log_loss"]).run(task)
    assert_allclose(fast.delta, slow.delta, atol=1e-5 * np.abs(slow.delta).mean())


def test_points_that_cannot_be_updated_are_fitted_from_scratch_and_counted(monkeypatch):
    dataset = data()
    model = Model("logistic", LogisticRegression())
    engine = LogisticEngine(dataset, model, LOSSES["log_loss"])
    task = Task(0, np.arange(50), np.arange(50, 60), 0)
    expected = engine.run(task).delta
    for name in ("_NEAR", "_FAR"):
        monkeypatch.setattr(_glm_joining, name, _glm_joining._Range(0.0, 0, 0.0))
    monkeypatch.setattr(_glm_joining, "_NEWTON_STEPS", 1)
    outcome = engine.run(task)
    assert outcome.notes["refits"] == 10
    assert_allclose(outcome.delta, expected, atol=1e-6 * np.abs(expected).mean())


def test_what_cannot_be_fitted_is_marked_and_never_passed_as_exact(monkeypatch):
    dataset = data()
    engine = LogisticEngine(dataset, Model("x", LogisticRegression()), LOSSES["log_loss"])
    task = Task(0, np.arange(50), np.arange(50, 60), 0)
    monkeypatch.setattr(_glm_fit, "_NEWTON_STEPS", 1)
    outcome = engine.run(task)
    assert np.isnan(outcome.delta).all()
    assert np.isfinite(outcome.loss)
    assert outcome.certificate == np.inf
    groups = (np.arange(50, 55), np.arange(55, 60))
    assert np.isnan(engine.join_groups(replace(task, points=np.arange(2), rows=groups)).delta).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"class_weight": "balanced"}, "class_weight"),
        ({"solver": "liblinear"}, "liblinear"),
        ({"C": np.inf}, "C is inf"),
        ({"l1_ratio": 0.5, "solver": "saga"}, "l1_ratio"),
    ],
)
def test_settings_that_are_not_supported_are_refitted_with_a_reason(settings, words):
    dataset = data()
    estimator = LogisticRegression(**settings)
    assert words in LogisticEngine.supports(dataset, Model("x", estimator), LOSSES["log_loss"])
    assert choose_engine(dataset, model=estimator)[0].name == "refit"
    with pytest.raises(ModelError, match=words):
        choose_engine(dataset, model=estimator, engine="logistic")


def test_auto_picks_it_for_the_name_and_for_a_plain_estimator():
    for model in ("logistic", LogisticRegression(C=0.3)):
        engine, reason = choose_engine(data(), model=model)
        assert engine.name == "logistic"
        assert "exact" in reason
