"""The MLP engine against scikit-learn's refits, and against one network at a time."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neural_network import MLPClassifier, MLPRegressor

from apiece import Dataset
from apiece.engines import RefitEngine, resolve_model
from apiece.engines._mlp import MLPEngine, SingleMLPEngine
from apiece.engines._mlp_training import NetworkSettings, initial_network
from apiece.errors import EngineError
from apiece.losses import resolve_loss
from apiece.records import Outcome, Task
from long_double import network_loss
from search import contributions

from conftest import make_blobs, make_line

# Both sum in double precision, in another order: 1e-16 a step, amplified by 200 steps and divided
# by contributions a hundred times smaller than losses.
CLOSE = 1e-9


def settings(**changes):
    return {"batch_size": 10**6, "n_iter_no_change": 10**6, "random_state": 3, **changes}


def engines(dataset, model="mlp", metric=None, make=MLPEngine):
    found = resolve_model(
        model, kind=dataset.kind, n_features=dataset.n_features, n_classes=dataset.n_classes
    )
    loss = resolve_loss(metric, kind=dataset.kind, has_proba=found.has_proba)
    assert MLPEngine.supports(dataset, found, loss) is None
    return make(dataset, found, loss), RefitEngine(dataset, found, loss)


def a_task(dataset, k=30, n=7, seed=5):
    return Task(3, np.arange(k), np.arange(k, min(k + n, dataset.n_points)), seed)


def assert_same(outcome, expected, tolerance=CLOSE):
    scale = np.abs(expected.delta).mean()
    assert outcome.loss == pytest.approx(expected.loss, rel=tolerance)
    assert_allclose(outcome.delta, expected.delta, rtol=0, atol=tolerance * scale)


def in_long_double(engine, task):
    """What the engine should find, from networks trained in long double."""
    data, settings = engine.dataset, engine.model.seeded(task.seed).get_params()
    settings["hidden_layer_sizes"] = np.atleast_1d(settings["hidden_layer_sizes"])

    def loss(rows):
        training = data.points_X[rows], data.targets(rows)
        return network_loss(training, (data.X_val, data.y_val), data.n_classes, settings)

    return Outcome(float(loss(task.subset)), contributions(data, task, loss))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_builtin_classifier_equals_its_refit(n_classes):
    blobs = make_blobs(n_classes=n_classes, d=6)
    engine, refit = engines(blobs)
    outcome = engine.run(a_task(blobs))
    assert_same(outcome, in_long_double(engine, a_task(blobs)))
    # scikit-learn rounds 1 - p, and 200 steps magnify it
    assert_same(outcome, refit.run(a_task(blobs)), tolerance=10 * CLOSE)
    assert outcome.notes == {"fits": 8, "refits": 0}


def test_the_builtin_regressor_equals_its_refit(line):
    engine, refit = engines(line)
    assert_same(engine.run(a_task(line)), refit.run(a_task(line)))


@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
@pytest.mark.parametrize("dataset", [make_blobs(), make_blobs(n_classes=3), make_line()])
def test_every_activation_and_setting_equals_a_refit(dataset, activation):
    kind = MLPClassifier if dataset.is_classification else MLPRegressor
    model = kind(
        hidden_layer_sizes=(5,),
        activation=activation,
        alpha=0.3,
        learning_rate_init=0.05,
        max_iter=40,
        beta_1=0.8,
        beta_2=0.95,
        epsilon=1e-3,
        **settings(),
    )
    engine, refit = engines(dataset, model)
    assert_same(engine.run(a_task(dataset)), refit.run(a_task(dataset)))


@pytest.mark.parametrize("metric", ["log_loss", "softmax_of_proba", "brier", "zero_one"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_metric_of_a_classifier_equals_a_refit(metric, n_classes):
    blobs = make_blobs(n_classes=n_classes, shift=0.3)
    engine, refit = engines(
        blobs, MLPClassifier(hidden_layer_sizes=8, max_iter=60, **settings()), metric
    )
    assert_same(engine.run(a_task(blobs)), refit.run(a_task(blobs)))


@pytest.mark.parametrize("metric", ["squared_error", "absolute_error"])
def test_every_metric_of_a_regressor_equals_a_refit(line, metric):
    engine, refit = engines(
        line, MLPRegressor(hidden_layer_sizes=8, max_iter=60, **settings()), metric
    )
    assert_same(engine.run(a_task(line)), refit.run(a_task(line)))


def test_a_callable_metric_sees_what_a_refit_shows_it(blobs):
    def worst(y_true, proba):
        assert proba.shape == (40, 2)
        return float(np.abs(proba[:, 1] - y_true).max())

    engine, refit = engines(
        blobs, MLPClassifier(hidden_layer_sizes=8, max_iter=60, **settings()), worst
    )
    assert_same(engine.run(a_task(blobs)), refit.run(a_task(blobs)))


def test_candidates_and_pool_points_are_valued_together(blobs):
    X = np.array([[3.0, -1.0, 0.5], [0.0, 0.0, 0.0]])
    extended = blobs.with_candidates((X, np.array([0, 1])))
    engine, refit = engines(
        extended, MLPClassifier(hidden_layer_sizes=8, max_iter=60, **settings())
    )
    task = replace(a_task(extended), points=np.array([60, 45, 61]))
    assert_same(engine.run(task), refit.run(task))


@pytest.mark.parametrize("seed", [None, 0, 7])
def test_initial_weights_are_those_of_scikit_learn(seed):
    blobs = make_blobs(n_classes=3)
    for activation in ("relu", "logistic"):
        model = MLPClassifier(
            hidden_layer_sizes=5, activation=activation, **settings(random_state=seed, max_iter=1)
        )
        engine, _ = engines(blobs, model)
        recipe = NetworkSettings.of(engine.model.seeded(11))
        assert recipe.seed == (11 if seed is None else seed)
        first, second, offset = (part[0] for part in initial_network(recipe, 3, 3))
        fitted = engine.model.seeded(11).set_params(learning_rate_init=1e-300)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted.fit(blobs.X, blobs.y)
        assert_array_equal(first.T, np.vstack([fitted.coefs_[0], fitted.intercepts_[0]]))
        assert_array_equal(second.T, fitted.coefs_[1])
        assert_array_equal(offset[:, 0], fitted.intercepts_[1])


def test_many_networks_together_equal_one_at_a_time():
    blobs = make_blobs(n=140, d=9)
    engine, _ = engines(blobs, MLPClassifier(hidden_layer_sizes=12, max_iter=100, **settings()))
    task = a_task(blobs, k=80, n=40)  # three blocks, the last one narrower
    together = engine.run(task).delta
    alone = [engine.run(replace(task, points=task.points[[i]])).delta[0] for i in range(40)]
    assert_allclose(together, alone, rtol=0, atol=CLOSE * np.abs(together).mean())


def test_one_block_is_no_wider_than_memory_allows(blobs, monkeypatch):
    engine, _ = engines(blobs, MLPClassifier(hidden_layer_sizes=8, max_iter=30, **settings()))
    expected = engine.run(a_task(blobs, n=20)).delta
    monkeypatch.setattr("apiece.engines._mlp._BLOCK_BYTES", 1)
    alone = engine.run(a_task(blobs, n=20)).delta
    assert_allclose(alone, expected, rtol=0, atol=CLOSE * np.abs(expected).mean())


def test_a_training_set_of_one_point():
    line = make_line()
    engine, refit = engines(line, MLPRegressor(hidden_layer_sizes=4, max_iter=30, **settings()))
    assert_same(engine.run(a_task(line, k=1)), refit.run(a_task(line, k=1)))


def test_a_training_set_without_some_class_is_left_to_a_refit(blobs):
    engine, refit = engines(
        blobs, MLPClassifier(hidden_layer_sizes=4, max_iter=10, **settings()), "zero_one"
    )
    task = replace(a_task(blobs), subset=np.arange(0, 20, 2), points=np.array([31, 40, 43]))
    outcome = engine.run(task)
    assert_array_equal(outcome.delta, refit.run(task).delta)
    assert outcome.notes["refits"] == 3


def test_a_network_that_fails_is_left_to_a_refit(blobs):
    calls = []

    def once(y_true, proba):
        calls.append(1)
        return np.nan if len(calls) == 3 else float(np.abs(proba[:, 1] - y_true).mean())

    engine, refit = engines(
        blobs, MLPClassifier(hidden_layer_sizes=4, max_iter=10, **settings()), once
    )
    outcome = engine.run(a_task(blobs))
    assert outcome.notes == {"fits": 8, "refits": 1}
    assert_same(outcome, refit.run(a_task(blobs)))


def test_squares_that_overflow_are_left_to_a_refit():
    X = np.random.default_rng(0).normal(size=(40, 2))
    line = Dataset.from_arrays(X, 1e200 * X[:, 0], X_val=X, y_val=X[:, 0], kind="regression")
    model = MLPRegressor(hidden_layer_sizes=4, max_iter=10, **settings())
    engine, refit = engines(line, model, "absolute_error")
    outcome = engine.run(a_task(line, k=10, n=2))
    assert outcome.notes["refits"] == 2
    assert_array_equal(outcome.delta, refit.run(a_task(line, k=10, n=2)).delta)


def test_what_diverges_in_scikit_learn_too_is_an_error_that_names_the_task():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = 1.5e308 * np.sign(X[:, 0])
    line = Dataset.from_arrays(X, y, X_val=X, y_val=X[:, 0], kind="regression")
    engine, _ = engines(line, MLPRegressor(hidden_layer_sizes=4, max_iter=10, **settings()))
    with pytest.raises(EngineError, match="task 3"):
        engine.run(a_task(line, k=10, n=2))


def test_what_a_metric_raises_is_reported(blobs):
    def broken(y_true, proba):
        raise RuntimeError("no such thing")

    engine, _ = engines(
        blobs, MLPClassifier(hidden_layer_sizes=4, max_iter=5, **settings()), broken
    )
    with pytest.raises(EngineError, match="no such thing"):
        engine.run(a_task(blobs))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"solver": "lbfgs"}, "solver is lbfgs"),
        ({"hidden_layer_sizes": (8, 8)}, "it does not have one hidden layer"),
        ({"hidden_layer_sizes": ()}, "it does not have one hidden layer"),
        ({"early_stopping": True}, "early_stopping is on"),
        ({"n_iter_no_change": 10}, "training may stop early"),
        ({"batch_size": 59}, "batches of 59 may not hold all of a training set"),
        ({"alpha": -1.0}, "scikit-learn refuses its settings"),
    ],
)
def test_other_settings_are_declined_with_the_reason(blobs, changes, reason):
    metric = resolve_loss(None, kind="classification", has_proba=True)
    model = resolve_model(
        MLPClassifier(**settings(**changes)), kind="classification", n_features=3, n_classes=2
    )
    assert reason in MLPEngine.supports(blobs, model, metric)


def test_accepted_and_declined_models(blobs, line):
    def reason(dataset, model):
        found = resolve_model(model, kind=dataset.kind, n_features=3, n_classes=dataset.n_classes)
        return MLPEngine.supports(
            dataset, found, resolve_loss(None, kind=dataset.kind, has_proba=True)
        )

    assert reason(blobs, "mlp") is None
    assert reason(line, "mlp") is None
    assert reason(blobs, MLPClassifier(n_iter_no_change=200)) is None  # 60 points: a single batch
    assert "MLPClassifier" in reason(blobs, "logistic")
    if "loss" in MLPRegressor().get_params():  # since scikit-learn 1.7
        assert reason(line, MLPRegressor(loss="poisson", **settings())) == "loss is poisson"


def test_single_precision_rounds_but_leaves_means_as_they_are():
    data = make_blobs(n=120, d=6, seed=1, shift=0.5)
    model = MLPClassifier(20, max_iter=60, learning_rate_init=0.01, **settings())
    double, _ = engines(data, model)
    single, _ = engines(data, model, make=SingleMLPEngine)
    rng = np.random.default_rng(0)
    differences, sizes = [], []
    for seed in range(12):
        order = rng.permutation(data.n_pool)
        task = Task(seed, order[:40], order[40:50], seed)
        exact, rounded = double.run(task).delta, single.run(task).delta
        differences.append(rounded - exact)
        sizes.append(exact)
    by_set = np.mean(differences, axis=1)
    assert np.any(differences)
    assert np.std(differences) < 0.05 * np.std(sizes)
    assert abs(np.mean(by_set)) < 4 * np.std(by_set, ddof=1) / len(by_set) ** 0.5
    assert np.var(np.add(sizes, differences)) == pytest.approx(np.var(sizes), rel=0.05)
