"""Plans of trainings, and runs of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.tree import DecisionTreeClassifier

import apiece
from apiece.collection._design import Design
from apiece.collection._trainings import TrainingPlan, plan_trainings
from apiece.errors import CardinalityError, PlanError, StoreError

SETTINGS = {
    "model": DecisionTreeClassifier(max_depth=3),
    "engine": "reuse",
    "metric": "brier",
    "sizes": (10, 40),
    "random_state": 0,
    "progress": False,
}


def table(n=120, **options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, "yes", "no")
    return apiece.Dataset.from_arrays(X, y, **options)


@pytest.fixture(scope="module")
def data():
    return table(validation=0)


def plan(data, trainings=200, sizes=(10, 40)):
    design = Design.of(sizes, samples=trainings)
    return plan_trainings(design, data, np.arange(data.n_points), seed=1, rotates=True)


def test_every_training_is_drawn_from_all_points_and_scored_outside(data):
    found = plan(data)
    assert isinstance(found, TrainingPlan)
    held = np.zeros(data.n_points)
    for index in range(len(found)):
        task = found[index]
        assert len(np.unique(task.subset)) == task.cardinality
        assert not np.isin(task.points, task.subset).any()
        assert len(np.unique(data.y[task.subset])) == 2
        held[task.subset] += 1
    assert held.min() > 0
    classes = [np.mean(data.y[found[index].subset]) for index in range(50)]
    assert np.std(classes) > 0.02  # numbers of points of a class vary


def test_more_trainings_begin_with_the_fewer(data):
    few, many = plan(data, 20), plan(data, 40)
    for index in range(20):
        assert_array_equal(few[index].subset, many[index].subset)


def test_a_missing_class_is_put_in():
    y = np.zeros(400, dtype=int)
    y[:5] = 1
    rare = apiece.Dataset.from_arrays(np.arange(400.0)[:, None], y, validation=0)
    found = plan(rare, 50)
    assert all(y[found[index].subset].max() == 1 for index in range(50))


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"sizes": (10, 115)}, CardinalityError, "expected at most 90"),
        ({"sizes": (2, 40)}, CardinalityError, "too few for 2 classes"),
        ({"share": 3}, PlanError, "Leave share out"),
        ({"trainings": 0}, PlanError, "asks for nothing"),
        ({"engine": "refit", "trainings": 10}, PlanError, "counts contributions"),
        ({"samples": 10}, PlanError, r"samples=10 .* Pass trainings= \(--trainings\)"),
        ({"samples": 10, "trainings": 30}, PlanError, "counts trainings"),
    ],
)
def test_what_does_not_fit_is_refused(data, options, error, match):
    with pytest.raises(error, match=match):
        apiece.collect(data, **SETTINGS | options)


def test_groups_are_refused():
    grouped = table(validation=0.2, random_state=0)
    with pytest.raises(PlanError, match="values single points"):
        apiece.collect(grouped, groups=np.arange(grouped.n_pool) % 4, **SETTINGS)


def test_a_metric_that_is_no_mean_of_rows_needs_a_validation_set(data):
    def metric(y, proba):
        return float(np.max(np.abs(proba[:, 1] - y)))

    with pytest.raises(apiece.errors.ModelError, match="not a mean over rows"):
        apiece.collect(data, trainings=30, **SETTINGS | {"metric": metric})
    kept = table(validation=0.3, random_state=0)
    run = apiece.collect(kept, trainings=30, **SETTINGS | {"metric": metric})
    assert len(run.trainings()) == 30


def test_a_run_grows_and_stays_the_same(data, tmp_path):
    apiece.collect(data, trainings=40, to=tmp_path / "run", **SETTINGS)
    grown = apiece.collect(data, trainings=80, to=tmp_path / "run", **SETTINGS)
    whole = apiece.collect(data, trainings=80, **SETTINGS)
    for name in ("task", "k", "loss", "row_loss"):
        assert_array_equal(getattr(grown.trainings(), name), getattr(whole.trainings(), name))
    assert_array_equal(grown.trainings().trained.position, whole.trainings().trained.position)


def test_all_verbs_take_a_run_of_trainings(data, tmp_path):
    run = apiece.collect(data, trainings=80, to=tmp_path / "run", **SETTINGS)
    assert "80 of 80 trainings" in repr(run)
    laws = run.laws()
    assert laws.attrs["estimator"] == "reuse"
    assert laws.scope == "population"
    assert_array_equal(apiece.open(tmp_path / "run").laws().params, laws.params)
    assert len(apiece.value(run)) == 120
    assert len(apiece.select(run, take=5, at=40)) == 5
    assert apiece.aggregate(run).mean(30) > 0
    apiece.report(run, laws, to=tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 1000
    assert len(apiece.value(run, source="samples")) == 120


def test_candidates_enter_training_sets_and_do_not_score():
    base = table(validation=0)
    X, y = np.random.default_rng(1).normal(size=(10, 3)), np.array(["yes", "no"] * 5)
    run = apiece.collect(base, candidates=(X, y), trainings=60, points=[0, 1], **SETTINGS)
    found = run.trainings()
    assert run.laws().n_points == 12
    assert found.trained.position.max() >= 120
    inside = found.scored.position < 120
    mean = np.bincount(found.scored.owner[inside], found.row_loss[inside]) / np.bincount(
        found.scored.owner[inside]
    )
    np.testing.assert_allclose(found.loss, mean, rtol=1e-5)


def test_other_runs_hold_no_trainings(data):
    run = apiece.collect(data, sizes=(10, 40), samples=3, random_state=0, progress=False)
    with pytest.raises(StoreError, match="holds contributions"):
        run.trainings()
