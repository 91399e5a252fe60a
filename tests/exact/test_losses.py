"""A loss that the package does not know, through every engine, against plain refits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from apiece import Loss
from apiece.engines import RefitEngine, choose_engine, choose_group_engine
from apiece.records import Task

from conftest import make_blobs, make_line


class Cubic(Loss):
    """Gives a loss by row, and no more."""

    name, needs = "cubic", "value"

    def rows(self, y, prediction):
        return np.abs(y - prediction) ** 3


class Worst(Loss):
    """Is not a mean over rows."""

    name, needs = "worst", "value"

    def value(self, y, prediction):
        return float(np.abs(y - prediction).max())


class Missed(Loss):
    """Gives a loss of probabilities by row, and no more."""

    name, needs = "missed", "proba"

    def rows(self, y, prediction):
        return 1.0 - prediction[np.arange(len(y)), y] ** 2


class WorstClass(Loss):
    """Is not a mean over rows: the largest of the mean losses of the classes."""

    name, needs = "worst_class", "proba"

    def value(self, y, prediction):
        missed = 1.0 - prediction[np.arange(len(y)), y]
        return float(max(missed[y == label].mean() for label in np.unique(y)))


class Refused(Loss):
    """Counts labels that are wrong by their square."""

    name, needs = "refused", "label"

    def rows(self, y, prediction):
        return (y - prediction) ** 2.0


MLP = MLPClassifier(4, batch_size=10**6, max_iter=20, n_iter_no_change=20, random_state=0)
CASES = [
    (LogisticRegression(tol=1e-10, solver="newton-cholesky"), Missed(), 2, "logistic"),
    (LogisticRegression(tol=1e-10, solver="newton-cholesky"), WorstClass(), 2, "logistic"),
    (LogisticRegression(tol=1e-10, solver="newton-cholesky"), Missed(), 3, "logistic"),
    (LogisticRegression(tol=1e-10, solver="newton-cholesky"), WorstClass(), 3, "logistic"),
    (LogisticRegression(tol=1e-10, solver="newton-cholesky"), Refused(), 3, "logistic"),
    (KNeighborsClassifier(), Missed(), 3, "knn"),
    (KNeighborsClassifier(), WorstClass(), 2, "knn"),
    (KNeighborsRegressor(), Cubic(), 0, "knn"),
    (MLP, Missed(), 2, "mlp"),
    (SVC(tol=1e-8), Refused(), 2, "svm"),
    (Ridge(), Cubic(), 0, "linear"),
    (Ridge(), Worst(), 0, "linear"),
]


@pytest.mark.parametrize(("model", "loss", "n_classes", "name"), CASES)
def test_a_loss_of_the_user_gives_the_contributions_of_refits(model, loss, n_classes, name):
    dataset = make_blobs(n_classes=n_classes) if n_classes else make_line()
    task = Task(0, np.arange(30), np.arange(30, 60), 0)
    engine, _ = choose_engine(dataset, model=model, metric=loss)
    assert engine.name == name
    slow = RefitEngine(dataset, engine.model, loss).run(task)
    fast = engine.run(task)
    scale = np.abs(slow.delta).mean() or 1.0
    np.testing.assert_allclose(fast.delta, slow.delta, rtol=0, atol=1e-5 * scale)
    assert fast.loss == pytest.approx(slow.loss, rel=1e-6)


@pytest.mark.parametrize(("model", "loss"), [(Ridge(), Cubic()), (Ridge(), Worst())])
def test_groups_take_a_loss_of_the_user(model, loss):
    dataset = make_line()
    groups = (np.arange(30, 35), np.arange(40, 44))
    task = Task(0, np.arange(30), np.arange(2), 0, groups)
    engine, _ = choose_group_engine(dataset, model=model, metric=loss)

    def of(rows):
        fitted = Ridge().fit(dataset.X[rows], dataset.y[rows])
        return loss.value(dataset.y_val, fitted.predict(dataset.X_val))

    expected = [of(np.arange(30)) - of(np.r_[np.arange(30), group]) for group in groups]
    np.testing.assert_allclose(engine.run(task).delta, expected, rtol=1e-8)
