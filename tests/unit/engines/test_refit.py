from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import hinge_loss
from sklearn.svm import SVC, LinearSVC

from apiece import Dataset
from apiece.engines import choose_engine
from apiece.errors import EngineError, ModelError
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


def test_the_choice_of_engine_gives_its_reason(blobs):
    _, reason = choose_engine(blobs, model="tree")
    assert "tree" in reason
    engine, reason = choose_engine(blobs, engine="refit")
    assert (engine.name, reason) == ("refit", "as asked")


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("forest", "no faster exact engine for forest"),
        ("svm", "engine 'svm' cannot compute it: it is for two classes, not 3"),
        (
            LogisticRegression(class_weight="balanced"),
            "engine 'logistic' cannot compute it: class_weight is set",
        ),
    ],
)
def test_auto_says_why_it_refits(model, why):
    engine, reason = choose_engine(make_blobs(n_classes=3), model=model)
    assert (engine.name, reason) == ("refit", why)
