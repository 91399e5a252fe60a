"""The refit engine against the loop that a user would write."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss, mean_absolute_error, zero_one_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from apiece.engines import choose_engine
from apiece.records import Task

from conftest import make_blobs, make_line
from oracles import refit_deltas


def a_task(dataset, k=20, points=(30, 41, 59), seed=7):
    return Task(3, np.arange(k), np.array(points), seed)


def test_deltas_are_those_of_two_fits(blobs):
    model = LogisticRegression(C=0.5, tol=1e-10)
    engine, _ = choose_engine(blobs, model=model, engine="refit")
    task = a_task(blobs)
    outcome = engine.run(task)
    loss, delta = refit_deltas(
        blobs, task, model, lambda fitted: log_loss(blobs.y_val, fitted.predict_proba(blobs.X_val))
    )
    assert outcome.loss == pytest.approx(loss, rel=1e-12)
    assert_allclose(outcome.delta, delta, rtol=1e-9, atol=1e-15)


def test_a_pipeline_is_trained_whole_for_every_contribution(blobs):
    model = make_pipeline(StandardScaler(), LogisticRegression())
    engine, _ = choose_engine(blobs, model=model, metric="zero_one", engine="refit")
    task = a_task(blobs)
    _, delta = refit_deltas(
        blobs, task, model, lambda fitted: zero_one_loss(blobs.y_val, fitted.predict(blobs.X_val))
    )
    assert_allclose(engine.run(task).delta, delta, atol=1e-15)


def test_regression_with_another_metric(line):
    model = LinearRegression()
    engine, _ = choose_engine(line, model=model, metric="absolute_error", engine="refit")
    task = a_task(line)
    _, delta = refit_deltas(
        line, task, model, lambda fit: mean_absolute_error(line.y_val, fit.predict(line.X_val))
    )
    assert_allclose(engine.run(task).delta, delta, rtol=1e-9, atol=1e-14)


def test_random_models_are_coupled_so_that_a_point_without_influence_contributes_nothing():
    blobs = make_blobs(n_classes=2)
    model = RandomForestClassifier(n_estimators=5, bootstrap=False, max_features=None, max_depth=2)
    engine, _ = choose_engine(blobs, model=model, metric="zero_one", engine="refit")
    first, again = engine.run(a_task(blobs)), engine.run(a_task(blobs))
    assert_allclose(first.delta, again.delta, atol=0)
    seeded = RandomForestClassifier(
        n_estimators=5, bootstrap=False, max_features=None, max_depth=2, random_state=7
    )
    _, delta = refit_deltas(
        blobs,
        a_task(blobs),
        seeded,
        lambda fit: zero_one_loss(blobs.y_val, fit.predict(blobs.X_val)),
    )
    assert_allclose(first.delta, delta, atol=1e-15)


def test_candidates_are_added_with_their_own_features_and_labels():
    line = make_line()
    X, y = np.array([[5.0, -3.0, 2.0]]), np.array([40.0])
    extended = line.with_candidates((X, y))
    engine, _ = choose_engine(extended, model="linear", engine="refit")
    task = Task(0, np.arange(20), np.array([60]), 0)
    fit = LinearRegression().fit(line.X[:20], line.y[:20])
    with_it = LinearRegression().fit(np.vstack([line.X[:20], X]), np.append(line.y[:20], y))
    expected = np.mean((line.y_val - fit.predict(line.X_val)) ** 2) - np.mean(
        (line.y_val - with_it.predict(line.X_val)) ** 2
    )
    assert engine.run(task).delta[0] == pytest.approx(expected, rel=1e-9)


def test_a_custom_metric_sees_codes_and_probabilities(blobs):
    seen = {}

    def metric(y, proba):
        seen["shapes"] = (y.shape, proba.shape)
        return float(np.mean(1 - proba[np.arange(len(y)), y]))

    engine, _ = choose_engine(blobs, metric=metric, engine="refit")
    assert np.isfinite(engine.run(a_task(blobs)).delta).all()
    assert seen["shapes"] == ((40,), (40, 2))
