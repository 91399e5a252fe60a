"""Everyday measures of a model, against scikit-learn's own cross-validation."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, log_loss, r2_score, roc_auc_score
from sklearn.svm import LinearSVC

import apiece
from apiece.errors import PlanError
from apiece.uses import quality
from apiece.uses._plausible import roughly


def data(n_classes):
    rng = np.random.default_rng(0)
    y = np.arange(300) % n_classes
    X = rng.normal(size=(300, 3)) + 1.5 * np.eye(3)[y % 3]
    return apiece.Dataset.from_arrays(X, y, validation=60, random_state=0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_measures_are_those_of_scikit_learn(n_classes):
    found = quality(data(n_classes), LogisticRegression())
    target, proba = found.target, found.outside
    label = proba.argmax(axis=1)
    assert len(target) == 300  # scoring rows count too
    average = "binary" if n_classes == 2 else "macro"
    area = proba[:, 1] if n_classes == 2 else proba
    expected = {
        "accuracy": accuracy_score(target, label),
        "f1": f1_score(target, label, average=average),
        "roc_auc": roc_auc_score(target, area, multi_class="ovr"),
        "log_loss": log_loss(target, proba),
    }
    assert found.metrics == pytest.approx(expected)
    assert 0.5 < found.metrics["accuracy"] < 0.95


def test_quantities_have_r2_and_an_error_in_their_own_units():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = 1000 * (X @ [1.0, 2.0] + rng.normal(size=200))
    found = quality(apiece.Dataset.from_arrays(X, y, validation=0), "ridge")
    assert found.metrics["r2"] == pytest.approx(r2_score(found.target, found.outside))
    assert 800 < found.metrics["rmse"] < 1200
    table = found.table()
    np.testing.assert_allclose(table["predicted"] + table["residual"], y)


def test_predictions_are_made_without_the_row():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=200)  # labels that nothing predicts
    X = rng.normal(size=(200, 3))
    found = quality(apiece.Dataset.from_arrays(X, y, validation=0), "tree")
    # A tree knows every row it has seen; 200 coin tosses have a deviation of 0.035.
    assert 0.35 < found.metrics["accuracy"] < 0.65


def test_something_else_than_data_is_refused():
    with pytest.raises(PlanError, match="expected a dataset"):
        quality([1, 2, 3])


def test_a_model_without_probabilities_has_no_log_loss():
    found = quality(data(2), LinearSVC())
    assert set(found.metrics) == {"accuracy", "f1"}
    assert found.metrics["accuracy"] == accuracy_score(found.target, found.outside.argmax(axis=1))


@pytest.mark.filterwarnings("error")
def test_pictures_in_single_precision_are_measured_without_warnings_of_the_solver():
    digits = load_digits()
    chosen = np.flatnonzero(digits.target < 5)[:500]
    rows = ((digits.data[chosen] / 17).astype(np.float32), digits.target[chosen])
    found = quality(apiece.Dataset.from_arrays(*rows, standardize=True))
    assert found.metrics["accuracy"] > 0.95


def test_a_solver_of_the_users_own_stays():
    model = LogisticRegression(solver="saga", l1_ratio=1.0, tol=1e-5, max_iter=2000)
    assert roughly(model).get_params()["solver"] == "saga"  # lbfgs knows no L1 penalty
    assert quality(data(2), model).metrics["accuracy"] > 0.6
