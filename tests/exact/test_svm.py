"""The SVM engine against an interior point method in double precision, where it could go wrong.

libsvm keeps kernels in single precision: at any ``tol`` its own contributions stray by 1e-6 to
1e-4 of their mean at C = 1, and more at larger C, so the reference is another solver.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC, LinearSVC

from apiece import Dataset
from apiece.engines import CoupledFolds, Model, RefitEngine, SVMEngine, choose_engine
from apiece.engines import _svm_machine as machine_module
from apiece.engines import _svm_small as small_module
from apiece.errors import EngineError, ModelError
from apiece.losses import LOSSES, resolve_loss
from apiece.records import Task

from oracles import CalibratedSVC, InteriorPointSVC, OneVersusOneSVC


def data(n=90, d=5, seed=0, shift=1.5, n_val=40, prepare=lambda X, y: (X, y)):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + n_val, d))
    y = (X[:, 0] * shift + X[:, -1] ** 2 - 1 + 0.5 * rng.logistic(size=len(X)) > 0).astype(int)
    y[:2] = y[n : n + 2] = [0, 1]
    X, y = prepare(X, y)
    return Dataset.from_arrays(X[:n], y[:n], X_val=X[n:], y_val=y[n:], kind="classification")


def calibrated(**settings):
    return CalibratedClassifierCV(SVC(**settings), ensemble=False, cv=CoupledFolds())


def compare(dataset, k, *, metric="log_loss", points=None, tolerance=1e-5, n_refits=0, **settings):
    needs_proba = LOSSES[metric].needs == "proba" if isinstance(metric, str) else True
    estimator = calibrated(**settings) if needs_proba else SVC(**settings)
    oracle = InteriorPointSVC(settings.get("C", 1.0), settings.get("gamma", "scale"))
    loss = resolve_loss(metric, kind="classification", has_proba=needs_proba)
    task = Task(0, np.arange(k), np.arange(k, k + 15) if points is None else points, 0)
    fast = SVMEngine(dataset, Model("svm", estimator), loss).run(task)
    reference = Model("oracle", CalibratedSVC(oracle) if needs_proba else oracle)
    slow = RefitEngine(dataset, reference, loss).run(task)
    assert fast.loss == pytest.approx(slow.loss, rel=1e-7)
    assert_allclose(fast.delta, slow.delta, rtol=0, atol=tolerance * np.abs(slow.delta).mean())
    assert fast.notes["refits"] <= n_refits
    return fast


@pytest.mark.parametrize("k", [12, 40, 70])
@pytest.mark.parametrize("metric", ["log_loss", "brier", "softmax_of_proba", "hinge", "zero_one"])
def test_contributions_are_those_of_a_converged_refit(k, metric):
    outcome = compare(data(), k, metric=metric)
    assert outcome.certificate < 1e-8


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("gamma", ["scale", "auto", 0.7])
def test_any_regularisation_and_width(C, gamma):
    compare(data(), 60, C=C, gamma=gamma, n_refits=3)


def test_a_point_beyond_the_margin_changes_nothing_if_the_width_is_fixed():
    dataset = data(shift=8.0)
    machine = SVC(gamma=0.2).fit(dataset.X[:60], dataset.y[:60])
    side = np.where(dataset.y == 1, 1.0, -1.0)
    beyond = np.flatnonzero(side * machine.decision_function(dataset.X) > 1.02)
    beyond = beyond[beyond >= 60]
    assert len(beyond) > 2
    outcome = compare(dataset, 60, metric="hinge", gamma=0.2)
    engine = SVMEngine(dataset, Model("svm", SVC(gamma=0.2)), LOSSES["hinge"])
    assert_allclose(engine.run(Task(0, np.arange(60), beyond, 0)).delta, 0.0, atol=1e-12)
    assert np.abs(outcome.delta).max() > 1e-3


def test_separable_data_with_hardly_any_penalty():
    compare(data(shift=1e3, d=3), 60, C=1e4)


def test_more_features_than_points():
    compare(data(d=100), 30)


def test_few_features_where_free_points_depend_on_each_other():
    compare(data(d=1, shift=4.0), 60, n_refits=2)
    compare(data(d=2), 70, n_refits=2)


def test_constant_features():
    def flatten(X, y):
        X[:, 2:] = 7.0
        return X, y

    compare(data(prepare=flatten), 50, n_refits=2)


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_duplicated_points_also_with_the_other_label(C):
    def repeat(X, y):
        X[10:20], y[10:20] = X[:10], y[:10]
        X[60:70], y[60:70] = X[5:15], y[5:15]
        X[70:75], y[70:75] = X[:5], 1 - y[:5]
        return X, y

    compare(data(prepare=repeat), 55, C=C, points=np.arange(58, 78), n_refits=2)


@pytest.mark.parametrize("scale", [np.logspace(-3, 3, 5), 1e3, 1e-3])
def test_extreme_scales(scale):
    compare(data(prepare=lambda X, y: (X * scale, y)), 60, n_refits=5)


def test_outliers_change_the_width_a_lot_and_are_still_exact():
    def blow_up(X, y):
        X[70:74] *= 30
        X[74:76] *= 1e4
        return X, y

    compare(data(prepare=blow_up), 60, points=np.arange(66, 78))


def test_a_class_with_fewer_members_than_folds():
    def thin_out(X, y):
        y[:60] = 0
        y[[3, 17, 40]] = 1
        return X, y

    compare(data(prepare=thin_out), 60, n_refits=3)


def test_a_point_that_opens_a_fold():
    dataset = data(n=40)
    zeros, ones = (np.flatnonzero(dataset.y == code) for code in (0, 1))
    task = Task(
        0, np.concatenate([zeros[:3], ones[:3]]), np.concatenate([zeros[5:9], ones[5:9]]), 0
    )
    fast = SVMEngine(dataset, Model("svm", calibrated()), LOSSES["brier"]).run(task)
    oracle = Model("oracle", CalibratedSVC(InteriorPointSVC()))
    slow = RefitEngine(dataset, oracle, LOSSES["brier"]).run(task)
    assert_allclose(fast.delta, slow.delta, rtol=0, atol=1e-5 * np.abs(slow.delta).mean())


def test_candidates_from_outside_the_pool():
    pool = data()
    rng = np.random.default_rng(3)
    both = Dataset.from_arrays(
        pool.X,
        pool.y,
        X_val=pool.X_val,
        y_val=pool.y_val,
        candidates=(rng.normal(size=(4, 5)) * 2, np.array([0, 1, 0, 1])),
        kind="classification",
    )
    compare(both, 60, points=np.array([70, 90, 91, 92, 93]))


def test_a_metric_of_the_users_own_sees_probabilities_or_labels():
    compare(data(), 50, metric=lambda y, p: float(np.mean(np.abs(p[:, 1] - y) ** 1.5)))
    misses = resolve_loss(
        lambda y, label: float(np.mean((y == 1) & (label == 0))),
        kind="classification",
        has_proba=False,
    )
    task = Task(0, np.arange(30), np.arange(30, 60), 0)
    fast = SVMEngine(data(), Model("svm", SVC()), misses).run(task)
    slow = RefitEngine(data(), Model("svm", SVC(tol=1e-8)), misses).run(task)
    assert_array_equal(fast.delta, slow.delta)


def test_it_equals_scikit_learns_own_calibrated_model():
    dataset, loss = data(n=150), LOSSES["log_loss"]
    task = Task(0, np.arange(100), np.arange(100, 115), 0)
    fast = SVMEngine(dataset, Model("svm", calibrated()), loss).run(task)
    slow = RefitEngine(dataset, Model("svm", calibrated(tol=1e-10)), loss).run(task)
    # scikit-learn's sigmoid stops at a gradient of 1e-6, and libsvm is in single precision
    assert_allclose(fast.delta, slow.delta, rtol=0, atol=1e-4 * np.abs(slow.delta).mean())


def test_points_that_do_not_settle_are_solved_from_scratch_and_counted(monkeypatch):
    dataset, task = data(), Task(0, np.arange(50), np.arange(50, 60), 0)
    engine = SVMEngine(dataset, Model("svm", calibrated()), LOSSES["log_loss"])
    expected = engine.run(task)
    settle = machine_module.settle

    def first_fails(tableau, batch):
        found, is_settled = settle(tableau, batch)
        is_settled[0] = False
        return found, is_settled

    monkeypatch.setattr(machine_module, "settle", first_fails)
    outcome = engine.run(task)
    assert 1 <= outcome.notes["refits"] <= 10
    assert_allclose(outcome.delta, expected.delta, atol=1e-6 * np.abs(expected.delta).mean())


def test_a_machine_that_cannot_be_solved_is_marked(monkeypatch):
    dataset, task = data(), Task(0, np.arange(50), np.arange(50, 56), 0)
    engine = SVMEngine(dataset, Model("svm", calibrated()), LOSSES["log_loss"])
    expected = engine.run(task)
    assert expected.notes == {"refits": 0}
    solve = machine_module.solve_dual
    monkeypatch.setattr(
        machine_module,
        "solve_dual",
        lambda *problem: replace(solve(*problem), error=1.0),
    )
    outcome = engine.run(task)
    assert np.isnan(outcome.delta).all()
    assert outcome.loss == pytest.approx(expected.loss, rel=1e-4)


def test_features_that_are_all_constant_are_left_to_a_refit():
    dataset = data(prepare=lambda X, y: (np.full_like(X, 3.0), y))
    engine = SVMEngine(dataset, Model("svm", SVC()), LOSSES["hinge"])
    task = Task(0, np.arange(20), np.arange(20, 24), 0)
    outcome = engine.run(task)
    assert outcome.notes["refits"] == 4
    assert_array_equal(
        outcome.delta, RefitEngine(dataset, engine.model, engine.metric).run(task).delta
    )


def test_a_fold_without_one_of_the_classes_fails_as_a_refit_does():
    dataset = data()
    one = np.flatnonzero(dataset.y == 1)[:1]
    subset = np.concatenate([np.flatnonzero(dataset.y == 0)[:20], one])
    engine = SVMEngine(dataset, Model("svm", calibrated()), LOSSES["log_loss"])
    with pytest.raises(EngineError, match=r"svm failed on task 4 \(k=21\)"):
        engine.run(Task(4, subset, np.array([80]), 0))


@pytest.mark.parametrize(
    ("estimator", "metric", "reason"),
    [
        (calibrated(), "log_loss", None),
        (calibrated(), "zero_one", None),
        (SVC(C=30, gamma=0.1), "hinge", None),
        (SVC(gamma="auto", tol=1e-9, cache_size=10), "zero_one", None),
        (SVC(), "log_loss", "needs what Model does not predict"),
        (SVC(kernel="linear"), "hinge", "kernel is 'linear'"),
        (SVC(kernel=np.dot), "hinge", "kernel is"),
        (SVC(class_weight="balanced"), "hinge", "class_weight is set"),
        (SVC(max_iter=5), "hinge", "max_iter"),
        (SVC(gamma=0.0), "hinge", "gamma is 0"),
        (SVC(C=np.inf), "hinge", "C is inf"),
        (LinearSVC(), "hinge", "not an SVC"),
        (type("Mine", (SVC,), {})(), "hinge", "not an SVC"),
        (CalibratedClassifierCV(SVC(), ensemble=False), "log_loss", "reshuffles"),
        (
            CalibratedClassifierCV(SVC(), ensemble=False, cv=StratifiedKFold(5)),
            "log_loss",
            "reshuffles",
        ),
        (CalibratedClassifierCV(SVC(), cv=CoupledFolds()), "log_loss", "ensemble"),
        (
            CalibratedClassifierCV(SVC(), ensemble=False, cv=CoupledFolds(), method="isotonic"),
            "log_loss",
            "isotonic",
        ),
    ],
)
def test_models_are_recognised_by_type_and_settings(estimator, metric, reason):
    found = SVMEngine.supports(data(), Model("Model", estimator), LOSSES[metric])
    assert found is None if reason is None else reason in found


def test_auto_picks_it_for_the_name_and_for_a_plain_estimator(blobs):
    for model, metric in (("svm", "log_loss"), ("svm", "hinge"), (SVC(C=0.3), "zero_one")):
        engine, reason = choose_engine(blobs, model=model, metric=metric)
        assert engine.name == "svm"
        assert "exact" in reason
    with pytest.raises(ModelError, match="kernel is 'linear'"):
        choose_engine(blobs, model=SVC(kernel="linear"), metric="hinge", engine="svm")


def many_classes(n_classes=3, k=40, d=5, seed=0, prepare=lambda X, y, k: None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(k + 55, d))
    y = (X @ rng.normal(size=(d, n_classes)) + rng.gumbel(size=(len(X), n_classes))).argmax(axis=1)
    y[: 2 * n_classes] = np.arange(2 * n_classes) % n_classes
    y[k : k + n_classes] = np.arange(n_classes)
    prepare(X, y, k)
    settings = {"X_val": X[k + 15 :], "y_val": y[k + 15 :], "kind": "classification"}
    return Dataset.from_arrays(X[: k + 15], y[: k + 15], **settings)


def compare_classes(dataset, k, metric="log_loss", tolerance=1e-8, **settings):
    needs_proba = LOSSES[metric].needs == "proba"
    oracle = OneVersusOneSVC(settings.get("C", 1.0), settings.get("gamma", "scale"))
    model = Model("svm", calibrated(**settings) if needs_proba else SVC(**settings))
    reference = Model("oracle", CalibratedSVC(oracle) if needs_proba else oracle)
    task = Task(0, np.arange(k), np.arange(k, k + 15), 0)
    assert SVMEngine.supports(dataset, model, LOSSES[metric]) is None
    fast = SVMEngine(dataset, model, LOSSES[metric]).run(task)
    slow = RefitEngine(dataset, reference, LOSSES[metric]).run(task)
    assert fast.loss == pytest.approx(slow.loss, rel=1e-8)
    assert_allclose(fast.delta, slow.delta, rtol=0, atol=tolerance * np.abs(slow.delta).mean())
    assert fast.notes == {"refits": 0}
    return fast


@pytest.mark.parametrize("n_classes", [3, 10])
@pytest.mark.parametrize("gamma", ["scale", "auto", 0.3])
@pytest.mark.parametrize("metric", ["log_loss", "brier", "zero_one", "hinge"])
def test_several_classes_are_those_of_a_converged_refit(n_classes, gamma, metric):
    k = 40 if n_classes == 3 else 60
    compare_classes(many_classes(n_classes, k), k, metric, gamma=gamma)


@pytest.mark.parametrize("setting", [("_CHEAP", 0.0), ("_MOST_ROUNDS", 1)])
@pytest.mark.parametrize("gamma", ["scale", 0.3])
def test_small_machines_are_solved_or_updated_to_the_same_optimum(monkeypatch, setting, gamma):
    dataset = many_classes(4, 60)
    solved = compare_classes(dataset, 60, gamma=gamma)
    monkeypatch.setattr(small_module, *setting)
    updated = compare_classes(dataset, 60, gamma=gamma)
    assert_allclose(solved.delta, updated.delta, rtol=0, atol=1e-8 * np.abs(solved.delta).mean())


@pytest.mark.parametrize("metric", ["log_loss", "hinge"])
def test_an_outlier_among_several_classes_changes_the_width_of_every_pair(metric):
    def blow_up(X, y, k):
        X[k + 3 : k + 6] *= 30

    compare_classes(many_classes(4, 48, prepare=blow_up), 48, metric)


@pytest.mark.parametrize("metric", ["log_loss", "hinge"])
def test_points_of_a_rare_class_among_several(metric):
    def thin_out(X, y, k):
        y[6:k][y[6:k] == 0] = 1  # two points of class 0 are left
        y[k : k + 4] = 0

    compare_classes(many_classes(3, 45, prepare=thin_out), 45, metric)


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_duplicated_points_of_several_classes(C):
    def repeat(X, y, k):
        X[6:12] = X[:6]  # of other classes, too
        X[k : k + 5], y[k : k + 3] = X[:5], y[:3]

    compare_classes(many_classes(3, 45, prepare=repeat), 45, C=C)


def test_several_classes_equal_scikit_learns_own_calibrated_model():
    dataset, loss = many_classes(4, 80), LOSSES["log_loss"]
    task = Task(0, np.arange(80), np.arange(80, 95), 0)
    engine = SVMEngine(dataset, Model("svm", calibrated()), loss)
    fast, slow = engine.run(task), engine.refit_engine().run(task)
    # scikit-learn's sigmoid stops at a gradient of 1e-6, and libsvm is in single precision
    assert_allclose(fast.delta, slow.delta, rtol=0, atol=1e-4 * np.abs(slow.delta).mean())


@pytest.mark.parametrize("breaks_ties", [False, True])
def test_labels_of_several_classes_are_those_of_libsvm(breaks_ties):
    dataset, loss = many_classes(5, 60, d=2), LOSSES["zero_one"]
    task = Task(0, np.arange(60), np.arange(60, 75), 0)
    engine = SVMEngine(dataset, Model("svm", SVC(break_ties=breaks_ties)), loss)
    assert_array_equal(engine.run(task).delta, engine.refit_engine().run(task).delta)


def test_a_vote_that_rounding_decides_is_marked():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    X[:, 0] = np.abs(X[:, 0]) + 0.1
    X[1::2] = X[::2] * [-1, 1]  # class 1 is the mirror image of class 0
    y = np.append(np.tile([0, 1], 10), np.full(10, 2))
    X[20:, 1] += 4
    X_val = np.array([[0.0, 0.3], [1.0, 0.5], [0.4, 3.0]])  # the first is as near to both
    dataset = Dataset.from_arrays(
        X, y, X_val=X_val, y_val=[0, 1, 2], kind="classification", standardize=False
    )
    engine = SVMEngine(dataset, Model("svm", SVC(gamma=0.5)), LOSSES["hinge"])
    outcome = engine.run(Task(0, np.arange(28), np.array([28, 29]), 0))
    assert np.isnan(outcome.delta).all()


def test_classes_that_are_missing_from_a_training_set_are_left_to_refits():
    dataset, loss = many_classes(3, 40), LOSSES["zero_one"]
    subset = np.flatnonzero(dataset.y[:40] != 2)
    task = Task(0, subset, np.arange(40, 46), 0)
    engine = SVMEngine(dataset, Model("svm", SVC()), loss)
    outcome = engine.run(task)
    assert outcome.notes["refits"] == 6
    assert_array_equal(outcome.delta, engine.refit_engine().run(task).delta)


def test_widths_that_are_hard_to_follow_are_solved_from_scratch_and_counted(monkeypatch):
    dataset, task = many_classes(3, 40), Task(0, np.arange(40), np.arange(40, 48), 0)
    engine = SVMEngine(dataset, Model("svm", calibrated()), LOSSES["log_loss"])
    expected = engine.run(task)
    follow = machine_module.Widths.stretches

    def many_are_lost(self, r):
        return ([], np.arange(len(r))) if len(r) > 2 else follow(self, r)

    monkeypatch.setattr(machine_module.Widths, "stretches", many_are_lost)
    outcome = engine.run(task)
    assert outcome.notes["refits"] > 0
    assert_allclose(outcome.delta, expected.delta, atol=1e-7 * np.abs(expected.delta).mean())


def test_so_many_classes_that_refits_are_as_fast_are_refused():
    X, y = np.random.default_rng(0).normal(size=(122, 2)), np.arange(122) % 61
    dataset = Dataset.from_arrays(X, y, X_val=X, y_val=y, kind="classification")
    found = SVMEngine.supports(dataset, Model("svm", SVC()), LOSSES["hinge"])
    assert found == "61 classes are more than 60"


def test_auto_picks_it_for_several_classes():
    dataset = many_classes(3, 40)
    assert choose_engine(dataset, model="svm")[0].name == "svm"
    assert choose_engine(dataset, model="svm", metric="hinge")[0].name == "svm"
    with pytest.raises(ModelError, match="decision_function_shape is 'ovo'"):
        choose_engine(
            dataset, model=SVC(decision_function_shape="ovo"), metric="hinge", engine="svm"
        )
