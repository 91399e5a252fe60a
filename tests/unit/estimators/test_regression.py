from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from apiece import synthetic
from apiece.estimators import Bayes, _regression
from apiece.estimators._reader import blank, loss, trained
from apiece.estimators._regression import predict_from_features
from apiece.estimators._small_models import learn, predict_with_small_models
from apiece.laws import Laws, Series


def logistic_points(n, d, n_classes=2, seed=0):
    """Points, labels that a linear model predicts, and laws that are linear in its gradient."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    logits = X @ rng.standard_normal((d, n_classes)) / np.sqrt(d)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    error = p - np.eye(n_classes)[y]
    gradient = (error[:, :, None] * X[:, None, :]).reshape(n, -1)
    height = gradient @ rng.standard_normal(gradient.shape[1])
    return X, y, height / height.std()


def sampled(height, samples=10, noise=3.0, seed=1):
    laws = Laws.from_arrays(c=300 * height, alpha=1.0, sigma=300 * noise, beta=2.0)
    return laws, synthetic.sample(laws, samples=samples, random_state=seed, shared=False)


def predicted(table, X, y, **options):
    plain = Bayes().fit(table)
    params = predict_from_features(table, plain, X, y, **options)
    return Series().mean(params, np.array([300.0]))[:, 0]


@pytest.mark.parametrize(("d", "n_classes"), [(5, 2), (4, 3)], ids=["two classes", "three"])
def test_laws_that_follow_the_gradient_are_predicted_without_a_look(d, n_classes):
    X, y, height = logistic_points(600, d, n_classes)
    _, table = sampled(height, noise=1.0)
    assert np.corrcoef(predicted(table, X, y), height)[0, 1] > 0.9


def test_with_the_longest_of_many_directions_predictions_stay_alike(monkeypatch):
    X, y, height = logistic_points(400, 12, n_classes=4)
    _, table = sampled(height, noise=1.0)
    every = predicted(table, X, y)
    monkeypatch.setattr(_regression, "_WIDEST", 30)  # of 39, the constants' included
    assert np.corrcoef(predicted(table, X, y), every)[0, 1] > 0.8


def test_a_point_has_no_say_in_what_features_tell_of_it():
    X, y, height = logistic_points(200, 3)
    _, table = sampled(height)
    plain = Bayes().fit(table)
    changed = table.__class__.from_arrays(
        point=table.point,
        k=table.k,
        task=table.task,
        delta=np.where(table.point == 7, table.delta + 0.1 * table.delta.std(), table.delta),
    )
    one, two = (predict_from_features(each, plain, X, y) for each in (table, changed))
    assert_allclose(two[7], one[7])
    assert np.abs(two - one).max() > 0


def test_quantities_as_targets_are_read_too():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 3))
    noise = rng.standard_normal(400)
    height = noise * X[:, 0] + 0.5 * (X**2).sum(axis=1)
    _, table = sampled(height / height.std(), noise=1.0)
    prediction = predicted(table, X, X @ [1.0, -1.0, 0.5] + noise, kind="regression")
    assert np.corrcoef(prediction, height)[0, 1] > 0.8


def test_features_that_say_nothing_do_little_harm():
    X, y, height = logistic_points(300, 4)
    truth, table = sampled(np.random.default_rng(4).permutation(height))
    alone, informed = Bayes().fit(table), Bayes().fit(table, X=X, y=y)

    def error(laws):
        return np.sqrt(((laws.mean(300) - truth.mean(300)) ** 2).mean())

    assert error(informed) < 1.05 * error(alone)


def test_points_are_predicted_by_models_that_have_not_seen_them_and_are_as_small():
    X, y, _ = logistic_points(400, 8, seed=5)
    reader = blank(X, y, np.array([0, 1]))
    prediction = predict_with_small_models(reader, X, y, 100, [40, 150])
    assert [output.shape for output in prediction.outputs] == [(100, 2)] * 2
    assert_allclose([np.exp(output).sum(axis=1) for output in prediction.outputs], 1.0)
    small, large = (loss(output, y[:100], reader) for output in prediction.outputs)
    # Models that know a point by heart would be right about it; larger ones know more.
    seen = trained(reader.standard(X), y, 1.0, reader)
    assert loss(reader.standard(X[:100]) @ seen, y[:100], reader) < large < small
    changed = predict_with_small_models(reader, X, np.append(1 - y[:1], y[1:]), 100, [40, 150])
    for before, after in zip(prediction.outputs, changed.outputs, strict=True):
        assert_allclose(after[0], before[0])  # its own label is not used for its prediction
        assert np.abs(after - before).max() > 1e-3


def test_units_in_which_a_penalised_learner_sees_the_features_are_found():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((2000, 40)) * np.r_[np.full(5, 3.0), np.full(35, 0.01)]
    y = (X[:, :5].sum(axis=1) + rng.standard_normal(2000) > 0).astype(int)
    reader = blank(X, y, np.array([0, 1]))
    as_they_came = np.column_stack([X, np.ones(len(X))])
    assert_allclose(predict_with_small_models(reader, X, y, 2000, [60]).x, as_they_came)
    even = reader.standard(X)
    label = (even[:, :40].sum(axis=1) + rng.standard_normal(2000) > 0).astype(int)
    assert_allclose(predict_with_small_models(reader, X, label, 2000, [60]).x, even)


@pytest.mark.parametrize("unit", [1e-60, 1.0, 1e60])
def test_features_of_any_size_are_read(unit):
    X, y, height = logistic_points(150, 3, seed=7)
    _, table = sampled(height, noise=1.0)
    prediction = predicted(table, unit * X, y)
    assert np.isfinite(prediction).all()
    assert np.corrcoef(prediction, height)[0, 1] > 0.5


@pytest.mark.parametrize("is_raw", [False, True])
def test_a_reader_says_of_new_points_what_its_models_say(is_raw):
    rng = np.random.default_rng(8)
    spread = np.r_[np.full(4, 3.0), np.full(30, 0.01)]
    X = 5.0 + rng.standard_normal((900, 34)) * spread
    signal = (X - 5.0) / spread
    y = (signal[:, : 4 if is_raw else 34].sum(axis=1) > 0).astype(int)
    reader, _ = learn(X[:600], y[:600], np.array([0, 1]), 60)
    assert reader.coef.shape == (24, 35, 2)
    one = np.sqrt(X[:600].var(axis=0).mean())
    assert_allclose(reader.unit, one if is_raw else X[:600].std(axis=0))
    prediction = predict_with_small_models(
        blank(X[:600], y[:600], np.array([0, 1])), X[:600], y[:600], 600, [60]
    )
    is_seen_raw = np.allclose(prediction.x[:, :-1], X[:600])
    assert is_seen_raw == is_raw
    # Models that have not seen a point are some of all models, and those are alike.
    both = reader.predict(X[:600])[:, 1], np.exp(prediction.outputs[0])[:, 1]
    assert np.abs(both[0] - both[1]).mean() < 0.05
    assert ((reader.predict(X[600:])[:, 1] > 0.5) == y[600:]).mean() > 0.8
