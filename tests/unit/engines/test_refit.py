from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import hinge_loss, log_loss, mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

import apiece
from apiece import Dataset
from apiece.engines import choose_engine
from apiece.errors import ApieceWarning, EngineError, ModelError
from apiece.records import Task

from conftest import make_blobs

TASK = Task(5, np.arange(20), np.array([30, 31]), 0)


class Fragile(ClassifierMixin, BaseEstimator):
    """Fails when the training set has an odd number of points."""

    def fit(self, X, y):
        if len(y) % 2:
            raise ValueError("odd")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


def test_a_fit_that_raises_is_named_with_its_task_and_point(blobs):
    engine, _ = choose_engine(blobs, model=Fragile(), engine="refit")
    with pytest.raises(EngineError, match=r"Fragile failed on task 5 \(k=20\) with point .*odd"):
        engine.run(TASK)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_loss_that_is_not_a_number_is_an_error_not_a_value(blobs, bad):
    engine, _ = choose_engine(blobs, metric=lambda y, p: bad, engine="refit")
    with pytest.raises(EngineError, match=r"is (nan|inf) on task 5 \(k=20\)"):
        engine.run(TASK)


def test_a_model_without_probabilities_is_refused_under_log_loss(blobs):
    with pytest.raises(ModelError, match=r"no predict_proba.*zero_one"):
        choose_engine(blobs, model=LinearSVC(), metric="log_loss")
    engine, _ = choose_engine(blobs, model=LinearSVC(), metric="zero_one")
    assert np.isfinite(engine.run(TASK).delta).all()


def test_a_model_without_decision_values_is_refused_under_hinge(blobs):
    with pytest.raises(ModelError, match=r"tree has no decision_function.*zero_one"):
        choose_engine(blobs, model="tree", metric="hinge")


def test_hinge_takes_decision_values(blobs):
    engine, _ = choose_engine(blobs, model=LinearSVC(C=0.1), metric="hinge")
    machine = LinearSVC(C=0.1, random_state=0).fit(blobs.X[:20], blobs.y[:20])
    expected = hinge_loss(blobs.y_val, machine.decision_function(blobs.X_val))
    assert engine.run(TASK).loss == pytest.approx(expected, rel=1e-6)


def test_hinge_needs_no_calibration_so_a_calibrated_model_is_taken_without(blobs):
    engine, _ = choose_engine(blobs, model="svm", metric="hinge", engine="refit")
    assert type(engine.model.estimator) is SVC
    assert engine.model.name == "svm"
    several = CalibratedClassifierCV(SVC())  # an ensemble of machines has no one decision value
    with pytest.raises(ModelError, match="no decision_function"):
        choose_engine(blobs, model=several, metric="hinge")


def test_decision_values_of_another_shape_are_an_error():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), np.arange(80) % 4
    four = Dataset.from_arrays(X[:50], y[:50], X_val=X[50:], y_val=y[50:], kind="classification")
    pairs = SVC(decision_function_shape="ovo")
    engine, _ = choose_engine(four, model=pairs, metric="hinge")
    with pytest.raises(EngineError, match=r"decision_function returned shape \(30, 6\)"):
        engine.run(TASK)


def test_fits_that_stop_short_are_counted(blobs):
    model = LogisticRegression(max_iter=1, tol=1e-12)
    engine, _ = choose_engine(blobs, model=model, engine="refit")
    assert engine.run(TASK).notes == {"fits": 3, "unconverged": 3}


@pytest.mark.parametrize("engine", ["refit", "reuse"])
def test_networks_of_a_fixed_length_do_not_stop_short(blobs, engine):
    chosen, _ = choose_engine(blobs, model="mlp(alpha=0.1)", engine=engine)
    assert chosen.run(TASK).notes["unconverged"] == 0


def test_the_choice_of_engine_gives_its_reason(blobs):
    _, reason = choose_engine(blobs, model="tree")
    assert "tree" in reason
    engine, reason = choose_engine(blobs, engine="refit")
    assert (engine.name, reason) == ("refit", "as requested")


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("forest", "no faster exact engine for forest"),
        (
            "svm(kernel='linear')",
            "engine 'svm' cannot compute it: kernel is 'linear'; it is for 'rbf'",
        ),
        (
            LogisticRegression(class_weight="balanced"),
            "engine 'logistic' cannot compute it: class_weight is set",
        ),
    ],
)
def test_auto_says_why_it_refits(model, why):
    engine, reason = choose_engine(make_blobs(n_classes=3), model=model)
    assert (engine.name, reason) == ("refit", why)


class Overwriting(LogisticRegression):
    """Fits as its base class does, then destroys the arrays that it was given."""

    def fit(self, X, y):
        super().fit(X.copy(), y.copy())
        X[:], y[:] = 0.0, 0
        return self


def losses_of_plain_refits(dataset, model, task, loss):
    """Return the loss of a fit on D and of a fit on D and each point, all from fresh arrays."""
    losses = []
    for more in ([], *([point] for point in task.points)):
        rows = np.concatenate([task.subset, more]).astype(int)
        losses.append(loss(clone(model).fit(dataset.points_X[rows], dataset.targets(rows))))
    return np.array(losses)


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(copy=False), LogisticRegression()),
        make_pipeline(MinMaxScaler(copy=False), LogisticRegression()),
        Overwriting(),
    ],
)
def test_a_classifier_that_overwrites_its_data_does_not_touch_later_fits(blobs, model):
    task = Task(0, np.arange(20), np.arange(30, 40), 0)
    losses = losses_of_plain_refits(
        blobs, model, task, lambda f: log_loss(blobs.y_val, f.predict_proba(blobs.X_val))
    )
    outcome = choose_engine(blobs, model=model, engine="refit")[0].run(task)
    np.testing.assert_allclose(outcome.delta, losses[0] - losses[1:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("model", [Ridge(copy_X=False), PLSRegression(n_components=2, copy=False)])
@pytest.mark.parametrize("engine", ["refit", "auto"])
def test_a_regressor_that_overwrites_its_data_does_not_touch_later_fits(line, model, engine):
    task = Task(0, np.arange(20), np.arange(30, 40), 0)
    losses = losses_of_plain_refits(
        line, model, task, lambda f: mean_squared_error(line.y_val, f.predict(line.X_val))
    )
    outcome = choose_engine(line, model=model, engine=engine)[0].run(task)
    np.testing.assert_allclose(outcome.delta, losses[0] - losses[1:], rtol=0, atol=1e-12)


def test_influence_functions_survive_a_model_that_overwrites_its_data(line):
    one, other = (
        choose_engine(line, model=Ridge(copy_X=copy), engine="first-order")[0].run(TASK).delta
        for copy in (True, False)
    )
    np.testing.assert_array_equal(one, other)


def test_a_linear_run_whose_refits_stop_early_ends_with_a_warning(line):
    X, X_val = (np.column_stack([X, X[:, 0]]) * [1, 1, 1e-3, 1] for X in (line.X, line.X_val))
    collinear = Dataset.from_arrays(X, line.y, X_val=X_val, y_val=line.y_val, kind="regression")
    model = Ridge(alpha=0, solver="sag", tol=1e-14)
    with (
        pytest.warns(ApieceWarning, match=r"of [\d,]+ fits stopped before convergence"),
        pytest.warns(ApieceWarning, match="4 contributions could not be computed"),
    ):
        run = apiece.collect(
            collinear, model=model, sizes=(10, 12), samples=2, points=[0, 1], random_state=0
        )
    assert run.manifest.engine.name == "linear"
    assert run.is_complete
    assert run.progress().notes["uncertified"] == 4
    assert len(run.contributions()) == 0
