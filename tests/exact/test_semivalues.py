"""Values against brute-force enumeration of small games."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import beta

from apiece import Dataset
from apiece.uses import GivenWeights, as_semivalue, knn_shapley, leave_one_out, value_samples

from conftest import make_blobs, make_line
from oracles import game_contributions, semivalues

N = 7


def beta_weight(n, a, b):
    """What one subset of size k counts: an integral over the chance t that others are in."""
    return lambda k: beta(k + b, n - 1 - k + a) / beta(a, b)


GAMES = {
    "data-shapley": ({}, lambda k: 1 / (N * comb(N - 1, k))),
    "beta-shapley": ({"a": 4, "b": 1.5}, beta_weight(N, 4, 1.5)),
    "banzhaf": ({}, lambda k: 2.0 ** -(N - 1)),
    "loo": ({}, lambda k: float(k == N - 1)),
}


@pytest.fixture(scope="module")
def utility():
    rng = np.random.default_rng(0)
    table = {}
    return lambda s: table.setdefault(s, rng.normal())


@pytest.mark.parametrize("kind", GAMES)
def test_semivalues_of_a_random_game_equal_enumeration(utility, kind):
    settings_, weight = GAMES[kind]
    table = value_samples(game_contributions(utility, N), kind=as_semivalue(kind, **settings_), n=N)
    assert_allclose(table["value"], semivalues(utility, N, weight), atol=1e-10)


def test_weights_of_ones_own_equal_enumeration(utility):
    own = {0: 0.5, 2: -1.0, 5: 3.0}
    table = value_samples(game_contributions(utility, N), kind=GivenWeights(own))
    expected = semivalues(utility, N, lambda k: own.get(k, 0.0) / comb(N - 1, k))
    assert_allclose(table["value"], expected, atol=1e-10)


def test_shapley_values_of_a_game_sum_to_what_all_are_worth(utility):
    table = value_samples(game_contributions(utility, N), kind="data-shapley", n=N)
    everyone = utility(frozenset(range(N))) - utility(frozenset())
    assert_allclose(table["value"].sum(), everyone, atol=1e-10)


def knn_utility(dataset, n_neighbors):
    """Jia et al.'s utility as one would write it, for all validation rows."""
    centre = 0.0 if dataset.is_classification else dataset.points_y.mean()

    def utility(s):
        members, total = np.array(sorted(s), dtype=int), 0.0
        for x, t in zip(dataset.X_val, dataset.y_val, strict=True):
            far = np.linalg.norm(dataset.points_X[members] - x, axis=1)
            near = members[np.argsort(far, kind="stable")[:n_neighbors]]
            if dataset.is_classification:
                total += (dataset.points_y[near] == t).sum() / n_neighbors
            else:
                predicted = (dataset.points_y[near] - centre).sum() / n_neighbors
                total -= (predicted - (t - centre)) ** 2
        return total / len(dataset.X_val)

    return utility


@pytest.mark.parametrize("n_neighbors", [1, 2, 3, 5, N, N + 3])
@pytest.mark.parametrize("make", [make_blobs, make_line])
def test_knn_shapley_equals_enumeration(make, n_neighbors):
    dataset = make(n=N, n_val=4, seed=n_neighbors)
    expected = semivalues(knn_utility(dataset, n_neighbors), N, GAMES["data-shapley"][1])
    assert_allclose(knn_shapley(dataset, n_neighbors=n_neighbors)["value"], expected, atol=1e-10)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**16), n=st.integers(3, 6), k=st.integers(1, 7), classes=st.integers(2, 4)
)
def test_knn_shapley_of_any_classes_equals_enumeration(seed, n, k, classes):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    y[:2] = [0, 1]
    dataset = Dataset.from_arrays(
        rng.normal(size=(n, 2)),
        y,
        X_val=rng.normal(size=(3, 2)),
        y_val=[0, 1, 0],
        kind="classification",
    )
    expected = semivalues(knn_utility(dataset, k), n, lambda size: 1 / (n * comb(n - 1, size)))
    assert_allclose(knn_shapley(dataset, n_neighbors=k)["value"], expected, atol=1e-10)


def test_knn_shapley_in_blocks_is_the_same(monkeypatch):
    dataset = make_line(n=30, n_val=11)
    whole = knn_shapley(dataset)
    monkeypatch.setattr("apiece.uses._neighbours._ENTRIES", 70)
    assert_allclose(knn_shapley(dataset), whole, rtol=1e-12)


def test_candidates_play_in_the_game_of_knn_shapley():
    data = make_blobs(n=6, n_val=4)
    split = Dataset.from_arrays(
        data.X[:4],
        data.y[:4],
        X_val=data.X_val,
        y_val=data.y_val,
        candidates=(data.X[4:], data.y[4:]),
    )
    assert_allclose(knn_shapley(split)["value"], knn_shapley(data)["value"], atol=1e-12)


def test_leave_one_out_is_a_refit_without_each_point():
    from sklearn.linear_model import LinearRegression

    data = make_line(n=20, n_val=15)
    dataset = Dataset.from_arrays(
        data.X[:15],
        data.y[:15],
        X_val=data.X_val,
        y_val=data.y_val,
        candidates=(data.X[15:], data.y[15:]),
        kind="regression",
    )

    def loss(X, y):
        return np.mean((LinearRegression().fit(X, y).predict(data.X_val) - data.y_val) ** 2)

    X, y = data.X[:15], data.y[:15]
    without = [loss(np.delete(X, i, 0), np.delete(y, i)) - loss(X, y) for i in range(15)]
    added = [
        loss(X, y) - loss(np.vstack([X, data.X[i]]), np.append(y, data.y[i])) for i in range(15, 20)
    ]
    table = leave_one_out(dataset, model="linear")
    assert_allclose(table["value"], [*without, *added], atol=1e-10)
