from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from apiece import Dataset, PlanError
from apiece.uses import sequence


def table(seed=0, n=300):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 1_000, 5))
    y = (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=len(X)) > 0).astype(int)
    return X[:n], y[:n], X[n:], y[n:]


def test_the_first_points_train_a_better_model_than_random_ones():
    X, y, X_test, y_test = table()
    data = Dataset.from_arrays(X, y, validation=0, ids=[f"row {i}" for i in range(300)])
    order = sequence(data)
    assert sorted(order.index) == sorted(data.ids)
    assert order["rank"].tolist() == list(range(1, 301))
    rows = data.positions(order.index)[:20]

    def score(rows):
        return LogisticRegression().fit(X[rows], y[rows]).score(X_test, y_test)

    rng = np.random.default_rng(0)
    by_chance = [score(rng.choice(300, 20, replace=False)) for _ in range(20)]
    assert score(rows) > np.quantile(by_chance, 0.8)


def test_wrong_labels_come_late_whoever_scores_them():
    X, y, X_test, y_test = table(seed=1)
    y[:30] = 1 - y[:30]
    for more in ({"validation": 0}, {"X_val": X_test[:50], "y_val": y_test[:50]}):
        rank = sequence(Dataset.from_arrays(X, y, **more))["rank"].sort_index().to_numpy()
        assert rank[:30].mean() > 170


def test_values_can_be_ordered_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 4))
    y = X @ [1.0, 2.0, 0.0, 0.0] + rng.normal(size=700)
    order = sequence(Dataset.from_arrays(X[:200], y[:200], validation=0), model="ridge")
    rows = order.index.to_numpy()[:15].astype(int)

    def error(rows):
        return ((Ridge().fit(X[rows], y[rows]).predict(X[200:]) - y[200:]) ** 2).mean()

    by_chance = [error(rng.choice(200, 15, replace=False)) for _ in range(20)]
    assert error(rows) < np.median(by_chance)


def test_too_few_points_are_refused():
    with pytest.raises(PlanError, match="expected at least 10"):
        sequence(Dataset.from_arrays(np.arange(6.0)[:, None], [0, 1] * 3, validation=0))
