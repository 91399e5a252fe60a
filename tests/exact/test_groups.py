"""Groups through every engine, against training with and without the group."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.metrics import log_loss

import apiece
from apiece.engines import choose_group_engine
from apiece.engines._refit import predicted
from apiece.errors import ModelError
from apiece.losses import LOSSES
from apiece.records import Task


def data(kind, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(140, 4))
    if kind == "regression":
        y = X @ np.arange(1.0, 5.0) + rng.normal(size=140)
    else:
        y = (X @ rng.normal(size=(4, n_classes)) + rng.gumbel(size=(140, n_classes))).argmax(axis=1)
    return apiece.Dataset.from_arrays(
        *(X[:80], y[:80]),
        X_val=X[80:120],
        y_val=y[80:120],
        candidates=(X[120:], y[120:]),
        kind=kind,
    )


def group_task():
    """Two groups of the pool, one of candidates, and one of both, of different sizes."""
    rows = (np.arange(40, 52), np.array([60]), np.arange(80, 100), np.array([70, 71, 90]))
    return Task(3, np.arange(40), np.arange(4), seed=11, rows=rows)


@pytest.mark.filterwarnings("ignore:Got `batch_size`", "ignore:Stochastic Optimizer")
@pytest.mark.parametrize(
    ("model", "kind", "n_classes", "tolerance"),
    [
        ("linear", "regression", 0, 1e-9),
        ("ridge", "regression", 0, 1e-9),
        ("logistic", "classification", 2, 1e-7),
        ("logistic", "classification", 3, 1e-7),
        ("knn", "classification", 2, 1e-12),
        ("svm", "classification", 2, 1e-3),  # libsvm stops at 1e-3 of the margins
        ("mlp", "classification", 2, 1e-6),
        ("tree", "classification", 2, 1e-12),
    ],
)
def test_a_group_contributes_what_training_with_it_gains(model, kind, n_classes, tolerance):
    dataset = data(kind, n_classes)
    engine, _ = choose_group_engine(dataset, model=model, metric=None)
    task = group_task()
    outcome = engine.run(task)

    def loss(rows):
        X, y = dataset.points_X[rows], dataset.points_y[rows]
        fitted = clone(engine.model.seeded(task.seed)).fit(X, y)
        return engine.metric.value(
            dataset.y_val, predicted(fitted, dataset.X_val, dataset, engine.metric)
        )

    before = loss(task.subset)
    after = [loss(np.concatenate([task.subset, rows])) for rows in task.rows]
    assert_allclose(outcome.loss, before, rtol=tolerance)
    assert_allclose(outcome.delta, before - np.array(after), atol=tolerance * before)
    assert np.isnan(outcome.certificate) or outcome.certificate < 1e-3


def wide(rank, fit_intercept=True, seed=0):
    """A regression on 30 features that span ``rank`` dimensions."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(140, rank)) @ rng.normal(size=(rank, 30))
    y = X @ rng.normal(size=30) + rng.normal(size=140) + 5.0 * fit_intercept
    return apiece.Dataset.from_arrays(
        *(X[:100], y[:100]), X_val=X[100:], y_val=y[100:], kind="regression"
    )


@pytest.mark.parametrize("k", [12, 60])
@pytest.mark.parametrize("rank", [8, 30])
@pytest.mark.parametrize("alpha", [0.0, 1e-8, 1.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("metric", ["squared_error", "absolute_error"])
def test_linear_updates_hold_where_features_are_collinear_or_points_few(
    k, rank, alpha, fit_intercept, metric
):
    from sklearn.linear_model import LinearRegression, Ridge

    model = Ridge(alpha=alpha, solver="svd", fit_intercept=fit_intercept)
    if not alpha:
        model = LinearRegression(fit_intercept=fit_intercept)
    dataset = wide(rank, fit_intercept)
    engine, _ = choose_group_engine(dataset, model=model, metric=metric)
    refit, _ = choose_group_engine(dataset, model=model, metric=metric, engine="refit")
    task = Task(0, np.arange(k), np.arange(2), 1, rows=(np.arange(60, 75), np.arange(75, 100)))
    found, expected = engine.run(task), refit.run(task)
    # losses of nearly singular fits have few digits themselves
    scale = max(expected.loss, np.abs(expected.delta).max())
    assert_allclose(found.delta, expected.delta, atol=1e-6 * scale)


@pytest.mark.parametrize("metric", ["log_loss", "brier", "zero_one", "hinge", "softmax_of_proba"])
def test_warm_fits_equal_refits_also_on_separable_data(metric):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(140, 60))
    y = (X[:, 0] + 0.2 * rng.normal(size=140) > 0).astype(int)
    dataset = apiece.Dataset.from_arrays(X[:100], y[:100], X_val=X[100:], y_val=y[100:])
    engine, _ = choose_group_engine(dataset, metric=metric)
    refit, _ = choose_group_engine(dataset, metric=metric, engine="refit")
    task = Task(0, np.arange(30), np.arange(2), 1, rows=(np.arange(30, 70), np.arange(70, 72)))
    assert_allclose(engine.run(task).delta, refit.run(task).delta, atol=1e-7)


def test_a_group_of_one_row_is_a_point():
    dataset = data("classification")
    engine, _ = choose_group_engine(dataset)
    points = np.array([50, 60, 85])
    task = Task(0, np.arange(40), points, seed=1, rows=tuple(points[:, None]))
    single = engine.engine.run(Task(0, np.arange(40), points, seed=1))
    assert_allclose(engine.run(task).delta, single.delta, atol=1e-8)


def test_contributions_of_rows_one_after_the_other_sum_to_that_of_the_group():
    dataset = data("classification")
    engine, _ = choose_group_engine(dataset)
    rows, subset, total = np.arange(40, 47), np.arange(40), 0.0
    whole = engine.run(Task(0, subset, np.array([0]), 1, rows=(rows,))).delta[0]
    for row in rows:
        total += engine.engine.run(Task(0, subset, np.array([row]), 1)).delta[0]
        subset = np.append(subset, row)
    assert_allclose(total, whole, atol=1e-8)


def test_an_approximate_engine_is_refused():
    with pytest.raises(ModelError, match="approximates single points"):
        choose_group_engine(data("classification"), engine="first-order")


def test_a_collected_group_is_what_scikit_learn_gains_from_it():
    """End to end: the stored contribution, from the plan's own training set."""
    rng = np.random.default_rng(1)
    dataset = data("classification")
    names = rng.choice(["a", "b", "c"], size=dataset.n_points)
    run = apiece.collect(
        dataset, groups=names, sizes=(20, 30), samples=3, random_state=0, progress=False
    )
    from sklearn.linear_model import LogisticRegression

    from apiece.collection import Design
    from apiece.collection._groups import make_group_plan

    rows = tuple(np.flatnonzero(names == name) for name in "abc")
    plan = make_group_plan(
        Design.of((20, 30), samples=3),
        n_pool=80,
        names=list("abc"),
        rows=rows,
        group_size=None,
        seed=0,
        strata=dataset.y,
        class_names=[0, 1],
    )
    model = LogisticRegression(solver="newton-cholesky", tol=1e-12)

    def loss(rows):
        fitted = clone(model).fit(dataset.points_X[rows], dataset.points_y[rows])
        return log_loss(dataset.y_val, fitted.predict_proba(dataset.X_val))

    table = run.contributions()
    assert LOSSES["log_loss"].name == run.manifest.metric
    for task_index, k, point, delta in zip(
        table.task, table.k, table.point, table.delta, strict=True
    ):
        subset = plan[int(task_index)].subset
        assert len(subset) == k
        gained = loss(subset) - loss(np.concatenate([subset, rows[point]]))
        assert_allclose(delta, gained, atol=1e-8)
