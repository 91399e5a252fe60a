from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from apiece.engines import METRICS, resolve_metric
from apiece.errors import ModelError, UnknownNameError

RNG = np.random.default_rng(0)
PROBA = RNG.dirichlet(np.ones(4), size=50)
CODES = RNG.integers(4, size=50)


def test_log_loss_is_that_of_scikit_learn_also_where_a_probability_is_zero():
    proba = PROBA.copy()
    proba[0] = np.eye(4)[(CODES[0] + 1) % 4]
    ours = METRICS["log_loss"].loss(CODES, proba)
    assert ours == pytest.approx(sk.log_loss(CODES, proba, labels=range(4)), rel=1e-12)
    assert np.isfinite(ours)


def test_brier_is_that_of_scikit_learn_for_two_classes_and_for_more():
    binary = PROBA[:, :2] / PROBA[:, :2].sum(axis=1, keepdims=True)
    y = CODES % 2
    expected = sk.brier_score_loss(y, binary[:, 1])
    assert METRICS["brier"].loss(y, binary) == pytest.approx(expected, rel=1e-12)
    one_hot = np.eye(4)[CODES]
    assert METRICS["brier"].loss(CODES, PROBA) == pytest.approx(
        ((PROBA - one_hot) ** 2).sum(axis=1).mean(), rel=1e-12
    )


def test_softmax_of_proba_takes_probabilities_for_logits():
    softmax = np.exp(PROBA) / np.exp(PROBA).sum(axis=1, keepdims=True)
    expected = -np.log(softmax[np.arange(50), CODES]).mean()
    assert METRICS["softmax_of_proba"].loss(CODES, PROBA) == pytest.approx(expected, rel=1e-12)


def test_zero_one_squared_and_absolute_error_are_those_of_scikit_learn():
    y, prediction = RNG.normal(size=(2, 30))
    assert METRICS["squared_error"].loss(y, prediction) == pytest.approx(
        sk.mean_squared_error(y, prediction)
    )
    assert METRICS["absolute_error"].loss(y, prediction) == pytest.approx(
        sk.mean_absolute_error(y, prediction)
    )
    labels = PROBA.argmax(axis=1)
    assert METRICS["zero_one"].loss(CODES, labels) == pytest.approx(sk.zero_one_loss(CODES, labels))


def test_hinge_is_that_of_scikit_learn_for_two_classes_and_for_more():
    decision = RNG.normal(size=(50, 4)) * 2
    y = CODES % 2
    expected = sk.hinge_loss(y, decision[:, 0])
    assert METRICS["hinge"].loss(y, decision[:, 0]) == pytest.approx(expected, rel=1e-12)
    expected = sk.hinge_loss(CODES, decision, labels=range(4))
    assert METRICS["hinge"].loss(CODES, decision) == pytest.approx(expected, rel=1e-12)


def test_the_default_metric_follows_the_kind_of_data():
    assert resolve_metric(None, kind="classification", has_proba=True).name == "log_loss"
    assert resolve_metric(None, kind="regression", has_proba=False).name == "squared_error"


def test_a_callable_gets_probabilities_labels_or_values_as_the_model_has_them():
    def loss(y, prediction):
        return 0.0

    cases = [("classification", True), ("classification", False), ("regression", False)]
    needs = [resolve_metric(loss, kind=kind, has_proba=proba).needs for kind, proba in cases]
    assert needs == ["proba", "label", "value"]


def test_two_lambdas_are_not_taken_for_each_other():
    first = resolve_metric(lambda y, p: 1.0, kind="regression", has_proba=False)
    second = resolve_metric(lambda y, p: 2.0, kind="regression", has_proba=False)
    assert first.name != second.name


def test_a_metric_for_the_other_kind_of_data_is_refused_with_those_that_fit():
    with pytest.raises(ModelError, match="squared_error, absolute_error"):
        resolve_metric("log_loss", kind="regression", has_proba=False)


def test_a_misspelt_metric_is_told_its_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'log_loss'"):
        resolve_metric("logloss", kind="classification", has_proba=True)


def test_a_metric_that_is_neither_name_nor_callable_is_refused():
    with pytest.raises(ModelError, match="expected a name"):
        resolve_metric(3, kind="regression", has_proba=False)
