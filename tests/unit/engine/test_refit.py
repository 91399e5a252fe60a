from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from apiece.engine import choose_engine
from apiece.errors import EngineError, ModelError
from apiece.records import Task

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


def test_fits_that_stop_short_are_counted(blobs):
    model = LogisticRegression(max_iter=1, tol=1e-12)
    engine, _ = choose_engine(blobs, model=model, engine="refit")
    assert engine.run(TASK).notes == {"fits": 3, "unconverged": 3}


def test_the_choice_of_engine_gives_its_reason(blobs):
    _, reason = choose_engine(blobs, model="tree")
    assert "tree" in reason
    engine, reason = choose_engine(blobs, engine="refit")
    assert (engine.name, reason) == ("refit", "as asked")
