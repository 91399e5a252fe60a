"""The nearest-neighbour engine against a refit, task by task."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, RadiusNeighborsClassifier

from apiece import Dataset
from apiece.engines import RefitEngine, _knn, resolve_model
from apiece.engines._knn import KNNEngine
from apiece.errors import EngineError
from apiece.losses import resolve_loss
from apiece.records import Task

from conftest import make_blobs, make_line

CLASSIFIED = ["log_loss", "softmax_of_proba", "brier", "zero_one"]


def half_squared(y, proba):
    return float(np.mean(1.0 - proba[np.arange(len(y)), y]) ** 2)


def median_error(y, prediction):
    return float(np.median(np.abs(y - prediction)))


def engine_of(dataset, estimator, metric=None):
    model = resolve_model(
        estimator, kind=dataset.kind, n_features=dataset.n_features, n_classes=dataset.n_classes
    )
    loss = resolve_loss(metric, kind=dataset.kind, has_proba=True)
    assert KNNEngine.supports(dataset, model, loss) is None
    return KNNEngine(dataset, model, loss)


def assert_equals_refit(dataset, estimator, metric=None, k=20, n_points=12, tolerance=1e-10):
    engine = engine_of(dataset, estimator, metric)
    last = np.arange(dataset.n_points - n_points, dataset.n_points)
    task = Task(0, np.arange(k), last, seed=0)
    outcome = engine.run(task)
    expected = RefitEngine(dataset, engine.model, engine.metric).run(task)
    scale = np.abs(expected.delta).mean() or 1.0
    assert_allclose(outcome.delta, expected.delta, rtol=0, atol=tolerance * scale)
    assert outcome.loss == pytest.approx(expected.loss, rel=tolerance)
    assert outcome.notes == {"refits": 0}
    return outcome


def rows_with_twins(d, n_val=30):
    """Validation rows that equal points of D, others that equal valued points."""
    rng = np.random.default_rng(d)
    X, X_val = rng.normal(size=(40, d)), rng.normal(size=(n_val, d))
    X_val[:8], X_val[8:16] = X[:8], X[-8:]
    X[1] = X[0]
    return X, X_val, rng


@pytest.mark.parametrize("metric", [*CLASSIFIED, half_squared])
@pytest.mark.parametrize("weights", ["uniform", "distance", None])
@pytest.mark.parametrize("d", [3, 24])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_classification_matches_a_refit(n_classes, d, weights, metric):
    blobs = make_blobs(d=d, n_classes=n_classes)
    outcome = assert_equals_refit(blobs, KNeighborsClassifier(weights=weights), metric)
    assert outcome.certificate <= 1e-11


@pytest.mark.parametrize("metric", ["squared_error", "absolute_error", median_error])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("d", [3, 24])
def test_regression_matches_a_refit(d, weights, metric):
    assert_equals_refit(make_line(d=d), KNeighborsRegressor(weights=weights), metric)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("n_neighbors", [1, 2, 19, 20])
def test_neighbourhoods_of_any_size(n_neighbors, weights):
    estimator = KNeighborsClassifier(n_neighbors, weights=weights)
    for d in (3, 24):
        assert_equals_refit(make_blobs(d=d), estimator)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize(
    "settings",
    [
        {"p": 1},
        {"p": 3},
        {"p": float("inf")},
        {"metric": "euclidean"},
        {"metric": "l2", "algorithm": "ball_tree"},
        {"metric": "manhattan", "algorithm": "brute"},
        {"metric": "cityblock"},
        {"metric": "chebyshev", "leaf_size": 3},
        {"algorithm": "kd_tree", "n_jobs": 2},
    ],
)
def test_distances_and_algorithms(settings, weights):
    for d in (3, 24):
        assert_equals_refit(make_blobs(d=d), KNeighborsClassifier(weights=weights, **settings))


@pytest.mark.parametrize("n_neighbors", [1, 5])
@pytest.mark.parametrize("d", [3, 24])
def test_points_at_distance_zero_share_all_the_weight(d, n_neighbors):
    X, X_val, rng = rows_with_twins(d)
    y, y_val = rng.integers(0, 3, len(X)), rng.integers(0, 3, len(X_val))
    y[:4] = 0, 0, 1, 2  # twins agree, so it does not matter which of them is nearer
    dataset = Dataset.from_arrays(X, y, X_val=X_val, y_val=y_val, kind="classification")
    # scikit-learn's brute force rounds a distance of zero to something else, a tree does not
    estimator = KNeighborsClassifier(n_neighbors, weights="distance", algorithm="kd_tree")
    for metric in (*CLASSIFIED, half_squared):
        assert_equals_refit(dataset, estimator, metric)
    targets = Dataset.from_arrays(X, y + X[:, 0], X_val=X_val, y_val=y_val + 0.5)
    regressor = KNeighborsRegressor(n_neighbors, weights="distance", algorithm="kd_tree")
    assert_equals_refit(targets, regressor)


@pytest.mark.parametrize("offset", [1e4, 1e8])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_a_mean_far_from_zero_does_not_blur_neighbourhoods(offset, weights):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 24)) + offset, np.arange(80) % 2
    X[30] = -1e10  # far from everything, and in the way of a common centre
    dataset = Dataset.from_arrays(X[:50], y[:50], X_val=X[50:], y_val=y[50:], kind="classification")
    assert_equals_refit(dataset, KNeighborsClassifier(weights=weights, algorithm="kd_tree"), k=31)


def test_features_of_extreme_scales():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 24)) * 10.0 ** np.linspace(-8, 8, 24), np.arange(80) % 2
    dataset = Dataset.from_arrays(X[:50], y[:50], X_val=X[50:], y_val=y[50:], kind="classification")
    assert_equals_refit(dataset, KNeighborsClassifier(weights="distance", algorithm="kd_tree"))


@pytest.mark.parametrize("d", [2, 30])
def test_of_equally_distant_points_the_earlier_in_d_is_nearer_and_the_new_one_last(d):
    X = np.zeros((6, d))
    X[:, 0] = [1.0, -1.0, 1.0, -1.0, 0.5, 1.0]
    y, y_val = np.array([0, 1, 1, 0, 1, 1]), np.array([0, 1])
    dataset = Dataset.from_arrays(X, y, X_val=np.zeros((2, d)), y_val=y_val, kind="classification")
    engine = engine_of(dataset, KNeighborsClassifier(2), "brier")
    outcome = engine.run(Task(0, np.array([2, 0, 1, 3]), np.array([4, 5]), seed=0))
    # the neighbours are points 2 and 0, of classes 1 and 0; point 4 replaces point 0
    assert outcome.loss == pytest.approx(0.25)
    assert_allclose(outcome.delta, [0.25 - 0.5, 0.0], atol=1e-15)


def test_duplicated_points_tie_exactly_with_many_features():
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(30, 40)), rng.normal(size=(50, 40))
    X[10:30] = X[:10].repeat(2, axis=0)
    y = np.arange(30) % 2
    dataset = Dataset.from_arrays(X, y, X_val=X_val, y_val=np.arange(50) % 2, kind="classification")
    engine = engine_of(dataset, KNeighborsClassifier(1), "zero_one")
    outcome = engine.run(Task(0, np.arange(10), np.arange(10, 30), seed=0))
    assert_array_equal(outcome.delta, 0.0)  # a twin of the nearest does not replace it


def test_candidates_are_valued_with_their_own_features_and_labels():
    blobs = make_blobs(d=24)
    extended = blobs.with_candidates((blobs.X_val[:5] + 0.01, np.array([0, 1, 0, 1, 0])))
    assert_equals_refit(extended, KNeighborsClassifier(), n_points=5)


@pytest.mark.parametrize("metric", ["log_loss", "zero_one", half_squared])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_blocks_and_a_table_of_distances_do_not_change_the_answer(metric, weights, monkeypatch):
    blobs = make_blobs(d=24, n_classes=3)
    estimator = KNeighborsClassifier(weights=weights)
    task = Task(0, np.arange(25), np.arange(25, 60), seed=0)
    engine = engine_of(blobs, estimator, metric)
    whole = engine.run(task).delta
    assert engine._space.table is not None
    monkeypatch.setattr(_knn, "_BLOCK", 100)
    monkeypatch.setattr(_knn, "_TABLE", 0)
    engine = engine_of(blobs, estimator, metric)
    assert_allclose(engine.run(task).delta, whole, rtol=0, atol=1e-12 * np.abs(whole).mean())
    assert engine._space.table is None


def test_a_pickled_engine_leaves_its_table_behind(blobs):
    engine = engine_of(blobs, "knn")
    size = len(pickle.dumps(engine))
    engine.run(Task(0, np.arange(20), np.arange(20, 60), seed=0))
    assert len(pickle.dumps(engine)) == size


def test_too_few_points_fail_as_a_refit_does(blobs):
    engine = engine_of(blobs, KNeighborsClassifier(7))
    with pytest.raises(EngineError, match=r"task 4 \(k=6\).*Expected n_neighbors <= n_samples_fit"):
        engine.run(Task(4, np.arange(6), np.array([30]), seed=0))


def test_a_training_set_that_lacks_a_class_fails_as_a_refit_does(blobs):
    of_one_class = np.flatnonzero(blobs.y == 0)[:10]
    task = Task(4, of_one_class, np.array([59]), seed=0)
    with pytest.raises(EngineError, match=r"task 4 \(k=10\)"):
        engine_of(blobs, "knn").run(task)
    labels = engine_of(blobs, "knn", "zero_one")  # which need no probability of the other class
    expected = RefitEngine(blobs, labels.model, labels.metric).run(task).delta
    assert_allclose(labels.run(task).delta, expected)


def test_a_metric_that_fails_is_reported_with_task_and_point():
    line = make_line()
    start = KNeighborsRegressor().fit(line.X[:20], line.y[:20]).predict(line.X_val)

    def fussy(y, prediction):
        if not np.allclose(prediction, start):
            raise ZeroDivisionError("no")
        return 1.0

    task = Task(3, np.arange(20), np.arange(20, 60), seed=0)
    with pytest.raises(EngineError, match=r"task 3 \(k=20\) with point .*: ZeroDivisionError: no"):
        engine_of(line, "knn", fussy).run(task)


def test_numbers_whose_squares_overflow_are_left_to_a_refit():
    blobs = make_blobs()
    huge = Dataset.from_arrays(
        blobs.X * 1e200,
        blobs.y,
        X_val=blobs.X_val * 1e200,
        y_val=blobs.y_val,
        kind="classification",
    )
    engine = engine_of(huge, KNeighborsClassifier(algorithm="brute"))
    task = Task(0, np.arange(20), np.arange(20, 24), seed=0)
    outcome = engine.run(task)
    assert outcome.notes["refits"] == 4
    assert_array_equal(
        outcome.delta, RefitEngine(huge, engine.model, engine.metric).run(task).delta
    )


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        ("knn", None),
        (KNeighborsClassifier(np.int64(3), p=1.5, leaf_size=2), None),
        (KNeighborsClassifier(weights=lambda distance: distance), "weights is a callable"),
        (KNeighborsClassifier(weights="rank"), "weights is 'rank'"),
        (KNeighborsClassifier(0), "n_neighbors is 0"),
        (KNeighborsClassifier(2.5), "n_neighbors is 2.5"),
        (KNeighborsClassifier(metric_params={"w": [1.0]}), "metric_params are given"),
        (KNeighborsClassifier(metric="cosine"), "metric='cosine'"),
        (KNeighborsClassifier(p=0.5), "metric='minkowski', p=0.5"),
        (RadiusNeighborsClassifier(), "RadiusNeighborsClassifier is not a nearest-neighbour model"),
        (
            type("Mine", (KNeighborsClassifier,), {})(),
            "Mine is not a nearest-neighbour model",
        ),
    ],
)
def test_models_are_recognised_by_type_and_settings(blobs, estimator, reason):
    model = resolve_model(estimator, kind="classification", n_features=3, n_classes=2)
    metric = resolve_loss(None, kind="classification", has_proba=True)
    assert KNNEngine.supports(blobs, model, metric) == reason
