"""Uses of data that sets no rows aside: rows of the table score the others."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import apiece
from apiece import experiments, uses
from apiece.uses._redundancy import GreedySelector


def make(n=120, seed=0, n_candidates=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + n_candidates, 3))
    y = (X[:, 0] + 0.7 * rng.normal(size=len(X)) > 0).astype(int)
    more = (X[n:], y[n:]) if n_candidates else None
    return apiece.Dataset.from_arrays(X[:n], y[:n], candidates=more)


def test_neighbours_of_every_row_value_the_others():
    data = make(n=24, n_candidates=3)
    total, count = np.zeros((2, 27))
    for row in range(24):
        others = np.delete(np.arange(27), row)
        alone = apiece.Dataset.from_arrays(
            data.points_X[others],
            data.points_y[others],
            X_val=data.X[[row]],
            y_val=data.y[[row]],
            kind="classification",
        )
        total[others] += uses.knn_shapley(alone, n_neighbors=3)["value"].to_numpy()
        count[others] += 1
    assert_allclose(uses.knn_shapley(data, n_neighbors=3)["value"], total / count, atol=1e-12)


def test_leave_one_out_is_the_mean_over_folds_of_other_rows():
    data = make(n=40, n_candidates=2)
    folds = uses._baselines._folds(data, 0)
    assert_array_equal(np.sort(np.concatenate(folds)), np.arange(40))
    assert all(abs(data.y[fold].mean() - data.y.mean()) < 0.15 for fold in folds)

    def loss(rows, fold):
        model = LogisticRegression(tol=1e-10, max_iter=10_000)
        fitted = model.fit(data.points_X[rows], data.points_y[rows])
        return log_loss(data.y[fold], fitted.predict_proba(data.X[fold]), labels=[0, 1])

    def contribution(point, fold):
        rows = np.setdiff1d(np.arange(40), np.append(fold, point))
        return loss(rows, fold) - loss(np.append(rows, point), fold)

    values = uses.leave_one_out(data, model="logistic", random_state=0)["value"]
    for point in (0, 7, 41):
        gains = [contribution(point, fold) for fold in folds if point not in fold]
        assert len(gains) == (4 if point < 40 else 5)
        assert_allclose(values[point], np.mean(gains), atol=1e-6)


def test_theory_of_the_population_has_no_first_order_part():
    data = make()
    assert (uses.theory(data)["a2"] == 0).all()
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2))
    line = apiece.Dataset.from_arrays(X, X[:, 0] + rng.normal(size=80))
    found = uses.theory(line)
    assert (found["a2"] == 0).all()
    assert found["a4"].abs().min() > 0


@pytest.mark.parametrize("n_candidates", [0, 12])
def test_picks_neither_train_before_they_join_nor_score(monkeypatch, n_candidates):
    data = make(n_candidates=n_candidates)
    points = np.arange(data.n_pool, data.n_points) if n_candidates else np.arange(30)
    together = GreedySelector(
        dataset=data,
        ids=data.ids[points],
        sizes=(40, 40),
        draws=6,
        most=3,
        model="logistic",
        metric=None,
        engine="auto",
        seed=0,
    )
    seen = []

    def run(number, task, picked, valued):
        seen.append((task, together.position[picked], valued))
        return -np.abs(valued - 5.0)  # the nearer to point 5, the better

    monkeypatch.setattr(together, "_run", run)
    rules = uses.make_rules(
        uses.Limits(take=3),
        ids=data.ids[points],
        labels=None,
        is_known=np.ones(len(points), dtype=bool),
    )
    assert len(together.pick(rules).rows) == 3
    how_often = dict.fromkeys(points.tolist(), 0)
    for task, picked, valued in seen:
        apart = np.concatenate([task.subset, task.scoring])
        assert len(np.unique(apart)) == len(apart)
        assert not np.isin(np.concatenate([picked, valued]), apart).any()
        assert len(task.subset) == 40
        if not len(picked):
            for point in valued.tolist():
                how_often[point] += 1
    assert min(how_often.values()) >= 2


def test_a_point_and_its_copies_are_not_picked_together():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4))
    y = X @ np.array([1.0, 2.0, 0.0, -1.0]) + 0.3 * rng.normal(size=200)
    far = 6.0 * np.eye(4)[[0, 0, 0, 1]] + 0.01 * rng.normal(size=(4, 4))  # three of a kind
    goal = far @ np.array([1.0, 2.0, 0.0, -1.0])
    data = apiece.Dataset.from_arrays(X, y, candidates=(far, goal))
    settings = {"sizes": (8, 40), "samples": 60, "model": "linear", "points": []}
    run = apiece.collect(data, random_state=0, progress=False, **settings)
    picks = apiece.select(run, take=2, at=10, dataset=data, redundancy="aware", draws=40)
    assert set(picks.index) & {203}
    assert picks["value"].sum() > 0
    assert picks.attrs["scope"] == "population"


def test_experiments_test_on_rows_that_have_no_part_in_the_values():
    data = make(n=200)
    found = experiments.removal(
        data, shares=(0.2,), n=100, samples=5, repeats=2, methods=("law", "random"), progress=False
    )
    assert set(found.samples["method"]) == {"law", "random"}
    trial = experiments._trial.Trial.of(data, model="auto", metric=None, seed=0)
    assert trial.dataset.n_pool == 160
    assert len(trial.y_test) == 40
    assert abs(trial.y_test.mean() - data.y.mean()) < 0.05
    together = np.concatenate([trial.dataset.X, trial.X_test])
    assert_array_equal(np.unique(together, axis=0), np.unique(data.X, axis=0))
    bought = experiments.acquire(
        data, at=40, budget=4, steps=1, repeats=2, n_candidates=20, samples=5, progress=False
    )
    assert set(bought.samples["method"]) == {"scaling", "aware", "shapley", "random"}
    with pytest.raises(apiece.PlanError, match="30 rows: expected at least 50"):
        experiments.removal(make(n=30), progress=False)
