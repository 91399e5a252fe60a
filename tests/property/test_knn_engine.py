"""The nearest-neighbour engine equals a refit for any data, also where distances tie."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from apiece import Dataset
from apiece.engines import Model, RefitEngine
from apiece.engines._knn import KNNEngine
from apiece.losses import resolve_loss
from apiece.records import Task


class Stable(BaseEstimator):
    """Nearest neighbours from differences; of equally distant points the earlier is nearer."""

    def __init__(self, n_neighbors=5, weights="uniform"):
        self.n_neighbors = n_neighbors
        self.weights = weights

    def fit(self, X, y):
        self.X_, self.y_, self.classes_ = X, y, np.unique(y)
        return self

    def _means(self, X, targets):
        means = []
        for row in X:
            square = ((self.X_ - row) ** 2).sum(axis=1)
            near = np.argsort(square, kind="stable")[: self.n_neighbors]
            distance, weight = np.sqrt(square[near]), np.ones(self.n_neighbors)
            if self.weights == "distance":
                is_zero = distance == 0.0
                weight = is_zero * 1.0 if is_zero.any() else 1.0 / distance
            means.append(weight @ targets[near] / weight.sum())
        return np.array(means)


class StableClassifier(ClassifierMixin, Stable):
    def predict_proba(self, X):
        return self._means(X, (self.y_[:, None] == self.classes_).astype(float))

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class StableRegressor(RegressorMixin, Stable):
    def predict(self, X):
        return self._means(X, self.y_)


@st.composite
def problems(draw, kind):
    """Points anywhere, on a grid with many ties, or in pairs, at any scale."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d, k = draw(st.sampled_from([1, 3, 20, 30])), draw(st.integers(4, 25))
    n, n_classes = k + 8, draw(st.integers(2, 4))
    X = rng.normal(size=(n + 15, d))
    shape = draw(st.sampled_from(["anywhere", "grid", "pairs"]))
    if shape == "grid":
        X = rng.integers(0, 2, X.shape).astype(float)
    elif shape == "pairs":
        X = X[rng.integers(0, len(X) // 2, len(X))]
    X *= 2.0 ** draw(st.integers(-20, 20))
    y = rng.integers(0, n_classes, len(X))
    y[:n_classes] = np.arange(n_classes)
    if kind == "regression":
        y = y + rng.normal(size=len(X))
    dataset = Dataset.from_arrays(X[:n], y[:n], X_val=X[n:], y_val=y[n:], kind=kind)
    task = Task(0, rng.permutation(k), np.arange(k, n), seed=0)
    return dataset, task, draw(st.integers(1, 4)), draw(st.sampled_from(["uniform", "distance"]))


def assert_equals_refit(dataset, task, estimator, oracle, metric):
    loss = resolve_loss(metric, kind=dataset.kind, has_proba=True)
    outcome = KNNEngine(dataset, Model("knn", estimator), loss).run(task)
    expected = RefitEngine(dataset, Model("oracle", oracle), loss).run(task)
    atol = 1e-10 * (np.abs(expected.delta).mean() + expected.loss)
    assert_allclose(outcome.delta, expected.delta, rtol=0, atol=atol)
    assert_allclose(outcome.loss, expected.loss, rtol=1e-10, atol=1e-15)


@settings(max_examples=120, deadline=None)
@given(problems("classification"), st.sampled_from(["log_loss", "softmax_of_proba", "brier"]))
def test_classification_equals_a_refit(problem, metric):
    dataset, task, n_neighbors, weights = problem
    estimator = KNeighborsClassifier(n_neighbors, weights=weights)
    assert_equals_refit(dataset, task, estimator, StableClassifier(n_neighbors, weights), metric)


@settings(max_examples=60, deadline=None)
@given(problems("classification"))
def test_labels_equal_those_of_a_refit(problem):
    dataset, task, n_neighbors, _ = problem  # sums of distance weights may tie up to rounding
    estimator = KNeighborsClassifier(n_neighbors)
    assert_equals_refit(dataset, task, estimator, StableClassifier(n_neighbors), "zero_one")


@settings(max_examples=120, deadline=None)
@given(problems("regression"), st.sampled_from(["squared_error", "absolute_error"]))
def test_regression_equals_a_refit(problem, metric):
    dataset, task, n_neighbors, weights = problem
    estimator = KNeighborsRegressor(n_neighbors, weights=weights)
    assert_equals_refit(dataset, task, estimator, StableRegressor(n_neighbors, weights), metric)
