from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from sklearn import metrics as sk

from apiece._base.code import code_digest
from apiece.errors import ModelError, UnknownNameError
from apiece.losses import LOSSES, Loss, LossName, resolve_loss

RNG = np.random.default_rng(0)
PROBA = RNG.dirichlet(np.ones(4), size=50)
CODES = RNG.integers(4, size=50)


def test_log_loss_is_that_of_scikit_learn_also_where_a_probability_is_zero():
    proba = PROBA.copy()
    proba[0] = np.eye(4)[(CODES[0] + 1) % 4]
    ours = LOSSES["log_loss"].value(CODES, proba)
    assert ours == pytest.approx(sk.log_loss(CODES, proba, labels=range(4)), rel=1e-12)
    assert np.isfinite(ours)


def test_brier_is_that_of_scikit_learn_for_two_classes_and_for_more():
    binary = PROBA[:, :2] / PROBA[:, :2].sum(axis=1, keepdims=True)
    y = CODES % 2
    expected = sk.brier_score_loss(y, binary[:, 1])
    assert LOSSES["brier"].value(y, binary) == pytest.approx(expected, rel=1e-12)
    one_hot = np.eye(4)[CODES]
    assert LOSSES["brier"].value(CODES, PROBA) == pytest.approx(
        ((PROBA - one_hot) ** 2).sum(axis=1).mean(), rel=1e-12
    )


def test_softmax_of_proba_takes_probabilities_for_logits():
    softmax = np.exp(PROBA) / np.exp(PROBA).sum(axis=1, keepdims=True)
    expected = -np.log(softmax[np.arange(50), CODES]).mean()
    assert LOSSES["softmax_of_proba"].value(CODES, PROBA) == pytest.approx(expected, rel=1e-12)


def test_zero_one_squared_and_absolute_error_are_those_of_scikit_learn():
    y, prediction = RNG.normal(size=(2, 30))
    assert LOSSES["squared_error"].value(y, prediction) == pytest.approx(
        sk.mean_squared_error(y, prediction)
    )
    assert LOSSES["absolute_error"].value(y, prediction) == pytest.approx(
        sk.mean_absolute_error(y, prediction)
    )
    labels = PROBA.argmax(axis=1)
    assert LOSSES["zero_one"].value(CODES, labels) == pytest.approx(sk.zero_one_loss(CODES, labels))


def test_hinge_is_that_of_scikit_learn_for_two_classes_and_for_more():
    decision = RNG.normal(size=(50, 4)) * 2
    y = CODES % 2
    expected = sk.hinge_loss(y, decision[:, 0])
    assert LOSSES["hinge"].value(y, decision[:, 0]) == pytest.approx(expected, rel=1e-12)
    expected = sk.hinge_loss(CODES, decision, labels=range(4))
    assert LOSSES["hinge"].value(CODES, decision) == pytest.approx(expected, rel=1e-12)


def test_the_default_metric_follows_the_kind_of_data():
    assert resolve_loss(None, kind="classification", has_proba=True).name == "log_loss"
    assert resolve_loss(None, kind="regression", has_proba=False).name == "squared_error"


def test_a_callable_gets_probabilities_labels_or_values_as_the_model_has_them():
    def loss(y, prediction):
        return 0.0

    cases = [("classification", True), ("classification", False), ("regression", False)]
    needs = [resolve_loss(loss, kind=kind, has_proba=proba).needs for kind, proba in cases]
    assert needs == ["proba", "label", "value"]


def test_two_lambdas_are_not_taken_for_each_other():
    first = resolve_loss(lambda y, p: 1.0, kind="regression", has_proba=False)
    second = resolve_loss(lambda y, p: 2.0, kind="regression", has_proba=False)
    assert code_digest(first) != code_digest(second)


def test_a_metric_for_the_other_kind_of_data_is_refused_with_those_that_fit():
    with pytest.raises(ModelError, match="squared_error, absolute_error"):
        resolve_loss("log_loss", kind="regression", has_proba=False)


def test_a_misspelt_metric_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match="Did you mean 'log_loss'"):
        resolve_loss("logloss", kind="classification", has_proba=True)


def test_a_metric_that_is_neither_name_nor_callable_is_refused():
    with pytest.raises(ModelError, match="expected a name"):
        resolve_loss(3, kind="regression", has_proba=False)


@pytest.mark.parametrize("name", LOSSES)
def test_the_value_is_the_mean_of_the_rows(name):
    loss = LOSSES[name]
    prediction = {
        "proba": PROBA,
        "label": PROBA.argmax(axis=1),
        "decision": PROBA,
        "value": PROBA[:, 0],
    }[loss.needs]
    y = CODES.astype(float) if loss.needs == "value" else CODES
    assert loss.is_mean_of_rows
    assert loss.value(y, prediction) == pytest.approx(loss.rows(y, prediction).mean(), rel=1e-14)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", ["log_loss", "brier", "softmax_of_proba"])
def test_the_slope_is_the_derivative_by_the_margins(name, n_classes):
    loss, h = LOSSES[name], 1e-6
    y, margins = CODES % n_classes, RNG.normal(size=(50, n_classes))

    def rows(margins):
        e = np.exp(margins)
        return loss.rows(y, e / e.sum(axis=1, keepdims=True))

    e = np.exp(margins)
    slope = loss.slope(y, e / e.sum(axis=1, keepdims=True))
    columns = [1] if n_classes == 2 else range(n_classes)
    for place, column in enumerate(columns):
        step = h * np.eye(n_classes)[column]
        numeric = (rows(margins + step) - rows(margins - step)) / (2 * h)
        np.testing.assert_allclose(slope[:, place], numeric, atol=1e-8)


@pytest.mark.parametrize("name", ["squared_error", "absolute_error"])
def test_the_slope_is_the_derivative_by_the_value(name):
    loss, y, value, h = LOSSES[name], RNG.normal(size=30), RNG.normal(size=30), 1e-6
    numeric = (loss.rows(y, value + h) - loss.rows(y, value - h)) / (2 * h)
    np.testing.assert_allclose(loss.slope(y, value)[:, 0], numeric, atol=1e-8)
    change = RNG.normal(size=(4, 30))
    expected = [loss.value(y, value) - loss.value(y, value + row) for row in change]
    np.testing.assert_allclose(loss.fall(y, value, change), expected, atol=1e-14)


def test_a_loss_needs_rows_or_a_value():
    with pytest.raises(TypeError, match="neither rows nor value"):
        type("Empty", (Loss,), {"name": "empty"})


def test_a_loss_is_named_by_its_class_unless_it_says_so():
    class Mine(Loss):
        def value(self, y, prediction):
            return 0.0

    assert Mine().name.endswith("Mine")
    assert not Mine().is_mean_of_rows
    assert resolve_loss(Mine(), kind="classification", has_proba=True).name == Mine().name


def test_a_loss_of_another_kind_of_data_is_refused():
    with pytest.raises(ModelError, match="is for regression"):
        resolve_loss(LOSSES["squared_error"], kind="classification", has_proba=True)


def test_the_type_of_names_lists_every_loss_and_every_everyday_name():
    everyday = set(get_args(LossName)) - set(LOSSES)
    assert set(LOSSES) < set(get_args(LossName))
    kinds = {"accuracy": "classification", "mse": "regression", "mae": "regression"}
    assert everyday == set(kinds)
    for name, kind in kinds.items():
        assert resolve_loss(name, kind=kind, has_proba=True).name in LOSSES
