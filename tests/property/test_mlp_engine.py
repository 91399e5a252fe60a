"""Laws of the MLP engine for any small network and data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.neural_network import MLPClassifier, MLPRegressor

from apiece import Dataset
from apiece.engines import resolve_model
from apiece.engines._mlp import MLPEngine
from apiece.losses import resolve_loss
from apiece.records import Task
from long_double import network_loss
from search import contributions


@st.composite
def problems(draw):
    """A tiny network, data of any scale, and a task: collinear, constant, duplicated, d > k."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes = draw(st.sampled_from([0, 2, 3]))
    d, k = draw(st.integers(1, 12)), draw(st.integers(4, 20))
    X = rng.normal(size=(k + 20, d)) * 10.0 ** draw(st.integers(-3, 3))
    y = rng.normal(size=len(X)) if n_classes == 0 else np.arange(len(X)) % n_classes
    match draw(st.sampled_from(["plain", "constant", "collinear", "duplicates"])):
        case "constant":
            X[:, 0] = 1.0
        case "collinear":
            X[:, -1] = X[:, 0]
        case "duplicates":
            X[k : k + 3] = X[:3]
    options = {
        "hidden_layer_sizes": (draw(st.integers(1, 9)),),
        "activation": draw(st.sampled_from(["relu", "relu", "tanh", "logistic", "identity"])),
        "alpha": draw(st.sampled_from([0.0, 1e-4, 0.01, 10.0])),
        "learning_rate_init": draw(st.sampled_from([0.001, 0.01, 0.3])),
        "max_iter": draw(st.integers(1, 12)),
        "batch_size": 1000,
        "n_iter_no_change": 1000,
        "random_state": draw(st.sampled_from([None, 0, 5])),
    }
    dataset = Dataset.from_arrays(
        X[: k + 10],
        y[: k + 10],
        X_val=X[k + 10 :],
        y_val=y[k + 10 :],
        kind="classification" if n_classes else "regression",
    )
    model = resolve_model(
        (MLPClassifier if n_classes else MLPRegressor)(**options),
        kind=dataset.kind,
        n_features=d,
        n_classes=n_classes,
    )
    metric = resolve_loss(None, kind=dataset.kind, has_proba=bool(n_classes))
    points = np.arange(k, k + draw(st.integers(1, 10)))
    return dataset, model, metric, Task(0, np.arange(k), points, draw(st.integers(0, 99)))


# A dozen steps amplify rounding little. Contributions can be as small as rounding itself, so errors
# are also compared with the loss.
def assert_close(delta, expected, loss):
    scale = np.abs(expected).mean() + 1e-4 * abs(loss)
    assert_allclose(delta, expected, rtol=0, atol=1e-7 * scale)


# scikit-learn is no reference here: it computes 1 - p and 1 - tanh^2, which lose their digits when
# units saturate, and the steps magnify that to all of a contribution (0.9 of the mean was seen).
@given(problem=problems())
@settings(max_examples=60, deadline=None)
def test_contributions_equal_those_of_networks_trained_in_long_double(problem):
    dataset, model, metric, task = problem
    assert MLPEngine.supports(dataset, model, metric) is None
    outcome = MLPEngine(dataset, model, metric).run(task)
    settings, scoring = model.seeded(task.seed).get_params(), (dataset.X_val, dataset.y_val)

    def loss(rows):
        training = dataset.points_X[rows], dataset.targets(rows)
        return network_loss(training, scoring, dataset.n_classes, settings)

    expected = contributions(dataset, task, loss)
    known = ~np.isnan(outcome.delta)  # others are decided by rounding
    if known.any():
        assert_close(outcome.delta[known], expected[known], outcome.loss)
        assert_allclose(outcome.loss, float(loss(task.subset)), rtol=1e-9)


@given(problem=problems(), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_the_order_of_points_and_training_set_does_not_matter(problem, seed):
    dataset, model, metric, task = problem
    engine = MLPEngine(dataset, model, metric)
    outcome = engine.run(task)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(task.points))
    other = replace(task, subset=rng.permutation(task.subset), points=task.points[order])
    again, before = engine.run(other).delta, outcome.delta[order]
    known = ~np.isnan(again + before)  # others are decided by rounding
    if known.any():
        assert_close(again[known], before[known], outcome.loss)
