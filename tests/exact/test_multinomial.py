"""The logistic engine with more than two classes against a converged refit."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from apiece import Dataset
from apiece.engines import LogisticEngine, Model, RefitEngine, choose_engine
from apiece.engines import _logistic as logistic
from apiece.engines._logistic import converged
from apiece.errors import EngineError
from apiece.losses import LOSSES, resolve_loss
from apiece.records import Task


def data(n=120, d=5, n_classes=4, seed=0, shift=1.0, scale=1.0, n_val=50):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + n_val, d))
    scores = X @ rng.normal(size=(d, n_classes)) * shift
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    y[:n_classes] = y[n : n + n_classes] = np.arange(n_classes)
    X = X * scale
    return Dataset.from_arrays(X[:n], y[:n], X_val=X[n:], y_val=y[n:], kind="classification")


def with_points(dataset, X, y):
    return Dataset.from_arrays(
        X, y, X_val=dataset.X_val, y_val=dataset.y_val, kind="classification"
    )


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


@pytest.fixture(params=["double", "single"])
def precision(request, monkeypatch):
    """Small problems run in double precision; large ones, and these, in single."""
    if request.param == "single":
        monkeypatch.setattr(logistic, "_SMALL", 0)
    return request.param


@pytest.mark.parametrize("k", [10, 40, 100])
@pytest.mark.parametrize("metric", ["log_loss", "brier", "softmax_of_proba", "zero_one", "hinge"])
def test_contributions_are_those_of_a_converged_refit(k, metric, precision):
    compare(data(), k, metric=metric)


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_any_regularisation_with_or_without_intercept(C, fit_intercept, precision):
    outcome = compare(data(), 60, C=C, fit_intercept=fit_intercept)
    assert outcome.certificate < 1e-5


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_more_features_than_points_and_separable_classes(fit_intercept, precision):
    fast = compare(data(d=100, shift=3.0), 40, fit_intercept=fit_intercept)
    assert fast.notes["refits"] == 0


@pytest.mark.parametrize("seed", range(4))
def test_separable_data_with_hardly_any_penalty(seed):
    compare(data(d=3, shift=200.0, seed=seed), 60, C=1e4)


def test_ten_classes():
    compare(data(n=200, d=8, n_classes=10), 80)


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_constant_collinear_and_duplicated_columns(C, precision):
    dataset = data()
    X, X_val = (
        np.column_stack([A, np.full(len(A), 3.0), A[:, 0], A[:, 1] - A[:, 2]])
        for A in (dataset.X, dataset.X_val)
    )
    compare(
        Dataset.from_arrays(X, dataset.y, X_val=X_val, y_val=dataset.y_val),
        50,
        C=C,
        tolerance=5e-5 if precision == "single" and C > 1 else 1e-5,
    )


def test_duplicated_points_also_with_another_label():
    dataset = data()
    X, y = dataset.X.copy(), dataset.y.copy()
    X[61:65], y[61:65] = X[:4], (y[:4] + 1) % 4
    X[65:70], y[65:70] = X[5:10], y[5:10]
    compare(with_points(dataset, X, y), 60)


def test_a_point_that_d_holds_already_adds_no_direction_to_its_span():
    dataset = data(d=100)
    X, y = dataset.X.copy(), dataset.y.copy()
    X[40:44], y[40:44] = X[:4], y[:4]
    X[5] = X[6]  # and D is not of full rank itself
    compare(with_points(dataset, X, y), 40)


@pytest.mark.parametrize("scale", [np.logspace(-3, 3, 5), 100.0, 1e-3])
def test_extreme_scales(scale, precision):
    compare(data(scale=scale), 60)


def test_an_outlying_point_moves_the_model_a_lot_and_is_still_exact(precision):
    dataset = data()
    X = dataset.X.copy()
    X[70:74] *= 50
    compare(with_points(dataset, X, dataset.y), 60, points=np.arange(68, 76))


def test_margins_that_change_by_thousands_do_not_overflow(precision):
    dataset = data()
    X = dataset.X.copy()
    X[70:74] *= 1e5
    far = Dataset.from_arrays(
        X, dataset.y, X_val=dataset.X_val * 1e3, y_val=dataset.y_val, kind="classification"
    )
    compare(far, 60, points=np.arange(68, 76), metric="brier")


def test_a_custom_metric_sees_the_probabilities_of_all_classes():
    compare(data(), 50, metric=lambda y, p: float(np.mean(np.abs(p[:, 3] - (y == 3)) ** 1.5)))


def test_clipped_losses_are_clipped_as_in_the_refit(precision):
    dataset = data(shift=300.0)
    X_val = dataset.X_val * 20
    compare(Dataset.from_arrays(dataset.X, dataset.y, X_val=X_val, y_val=dataset.y_val), 60, C=100)


def test_candidates_outside_the_pool_are_valued():
    base = data()
    rng = np.random.default_rng(3)
    dataset = Dataset.from_arrays(
        base.X,
        base.y,
        X_val=base.X_val,
        y_val=base.y_val,
        candidates=(rng.normal(size=(6, 5)), np.array([0, 1, 2, 3, 0, 1])),
        kind="classification",
    )
    compare(dataset, 50, points=np.arange(120, 126))


def test_newtons_method_agrees_where_the_iteration_is_not_allowed(monkeypatch):
    from apiece.engines import _softmax_joining

    dataset = data()
    expected = compare(dataset, 50)
    monkeypatch.setattr(_softmax_joining, "_FAST_STEPS", 0)
    assert_allclose(compare(dataset, 50).delta, expected.delta, rtol=1e-5)


def test_points_that_cannot_be_solved_are_refitted_and_counted(monkeypatch):
    from apiece.engines import _softmax_joining

    dataset = data()
    engine = LogisticEngine(dataset, Model("x", LogisticRegression()), LOSSES["log_loss"])
    task = Task(0, np.arange(50), np.arange(50, 60), 0)
    expected = engine.run(task)
    assert expected.notes["refits"] == 0
    monkeypatch.setattr(_softmax_joining, "_FAST_STEPS", 0)
    monkeypatch.setattr(_softmax_joining, "_NEWTON_STEPS", 0)
    few = engine.run(task)
    assert few.notes["refits"] == 10
    assert_allclose(few.delta, expected.delta, atol=1e-6 * np.abs(expected.delta).mean())
    monkeypatch.setattr(logistic, "fit_softmax", lambda *_, **__: None)
    assert np.isnan(engine.run(task).delta).all()


def test_a_training_set_that_lacks_a_class_is_refitted():
    dataset = data()
    subset = np.flatnonzero(dataset.y != 2)[:40]
    task = Task(0, subset, np.setdiff1d(np.arange(120), subset)[:8], 0)
    model = Model("logistic", LogisticRegression())
    labels = LogisticEngine(dataset, model, LOSSES["zero_one"]).run(task)
    expected = RefitEngine(dataset, converged(model), LOSSES["zero_one"]).run(task)
    assert_allclose(labels.delta, expected.delta)
    assert labels.notes["refits"] == 8
    with pytest.raises(EngineError, match="predict_proba returned shape"):
        LogisticEngine(dataset, model, LOSSES["log_loss"]).run(task)


def test_settings_that_are_not_supported_are_refitted():
    dataset = data()
    for settings in ({"class_weight": "balanced"}, {"C": np.inf}):
        assert choose_engine(dataset, model=LogisticRegression(**settings))[0].name == "refit"
    wide = data(d=1_000, n_classes=10)
    words = LogisticEngine.supports(wide, Model("x", LogisticRegression()), LOSSES["log_loss"])
    assert words == "9,009 parameters are more than 8,000"


def test_auto_picks_it_for_the_name_and_for_a_plain_estimator():
    for model in ("logistic", LogisticRegression(C=0.3)):
        engine, reason = choose_engine(data(), model=model)
        assert engine.name == "logistic"
        assert "exact" in reason
