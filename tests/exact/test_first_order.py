"""Influence functions against the derivative they are, taken numerically from weighted refits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from apiece.engines import choose_engine
from apiece.errors import EngineError, ModelError
from apiece.records import Task

from conftest import make_blobs, make_line

TIGHT = {"solver": "newton-cholesky", "tol": 1e-14, "max_iter": 1_000}


def derivative(engine, task, weight=1e-4):
    """The fall of the loss for a point of small weight, per unit of weight, to second order."""
    data = engine.dataset
    X, y = data.X[task.subset], data.y[task.subset]
    predict = "predict_proba" if engine.metric.needs == "proba" else "predict"

    def loss(w, x, target):
        weights = np.append(np.ones(len(y)), w)
        fitted = clone(engine.model.estimator).fit(
            np.vstack([X, x]), np.append(y, target), sample_weight=weights
        )
        return engine.metric.value(data.y_val, getattr(fitted, predict)(data.X_val))

    none, half, whole = (
        np.array([loss(w, x, t) for x, t in zip(*rows(data, task), strict=True)])
        for w in (0.0, weight / 2, weight)
    )
    return (4 * (none - half) - (none - whole)) / weight  # Richardson: the error is of weight^2


def rows(data, task):
    return data.features(task.points), data.targets(task.points)


CASES = [
    (LogisticRegression(**TIGHT), "log_loss", 2),
    (LogisticRegression(C=30.0, **TIGHT), "brier", 2),
    (LogisticRegression(fit_intercept=False, **TIGHT), "softmax_of_proba", 2),
    (LogisticRegression(**TIGHT), "log_loss", 4),
    (LogisticRegression(C=0.1, **TIGHT), "brier", 3),
    (LogisticRegression(**TIGHT), "softmax_of_proba", 3),
]


@pytest.mark.parametrize(("model", "metric", "n_classes"), CASES)
def test_classifiers_get_the_derivative_of_the_loss_by_the_weight_of_a_point(
    model, metric, n_classes
):
    data = make_blobs(n_classes=n_classes, n=90, n_val=40)
    engine, _ = choose_engine(data, model=model, metric=metric, engine="first-order")
    task = Task(0, np.arange(70), np.arange(70, 78), 0)
    expected = derivative(engine, task)
    # A difference quotient of weight 1e-4 keeps six digits of the largest derivative.
    assert_allclose(engine.run(task).delta, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("metric", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("model", [LinearRegression(), Ridge(alpha=3.0, fit_intercept=False)])
def test_regressions_get_the_derivative_of_the_loss_by_the_weight_of_a_point(model, metric):
    data = make_line(n=60, n_val=30)
    engine, _ = choose_engine(data, model=model, metric=metric, engine="first-order")
    task = Task(0, np.arange(40), np.arange(40, 48), 0)
    expected = derivative(engine, task)
    assert_allclose(engine.run(task).delta, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_far_offsets_of_the_features_change_nothing():
    data = make_line(n=60, n_val=30)
    moved = replace(data, rows=data.points_X + 1e5, rows_val=data.X_val + 1e5)
    task = Task(0, np.arange(40), np.arange(40, 60), 0)
    near, far = (
        choose_engine(d, model="linear", engine="first-order")[0].run(task).delta
        for d in (data, moved)
    )
    assert_allclose(far, near, rtol=0, atol=1e-6 * np.abs(near).max())


def test_fewer_points_than_features_give_finite_numbers():
    data = make_line(n=60, n_val=30, d=50)
    engine, _ = choose_engine(data, model="linear", engine="first-order")
    assert np.isfinite(engine.run(Task(0, np.arange(20), np.arange(20, 60), 0)).delta).all()


def test_it_comes_close_to_exact_contributions_and_closer_with_more_points():
    data = make_blobs(n=700, n_val=200)
    engines = [choose_engine(data, engine=name)[0] for name in ("first-order", "auto")]
    correlation = []
    for k in (20, 400):
        task = Task(0, np.arange(k), np.arange(k, 700), 0)
        near, exact = (engine.run(task).delta for engine in engines)
        correlation.append(np.corrcoef(near, exact)[0, 1])
    assert correlation[1] > correlation[0]
    assert correlation[1] > 0.99


def test_auto_never_picks_it_where_nothing_exact_is_fast():
    data = make_blobs(n=60, n_val=30)
    engine, _ = choose_engine(data, model="tree", engine="auto")
    assert engine.name == "refit"
    assert choose_engine(data, model="logistic")[0].is_exact


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"metric": "zero_one"}, "no derivative"),
        ({"model": "tree"}, "is not LogisticRegression"),
        ({"model": LogisticRegression(class_weight="balanced")}, "class_weight"),
    ],
)
def test_what_it_cannot_approximate_is_refused(settings, words):
    with pytest.raises(ModelError, match=words):
        choose_engine(make_blobs(n=60, n_val=30), engine="first-order", **settings)


def test_a_class_that_is_missing_from_the_training_set_is_an_error():
    data = make_blobs(n=60, n_val=30, n_classes=3)
    of_two = np.flatnonzero(data.y != 2)
    engine, _ = choose_engine(data, engine="first-order")
    with pytest.raises(EngineError, match="lacks a class"):
        engine.run(Task(0, of_two, np.flatnonzero(data.y == 2), 0))
