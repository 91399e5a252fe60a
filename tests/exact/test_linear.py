"""The linear engine against a refit, and against rational arithmetic where a refit is inexact."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Lasso, LinearRegression, Ridge

from apiece import Dataset
from apiece.engines import RefitEngine, _linear, resolve_model
from apiece.engines._linear import LinearEngine
from apiece.errors import EngineError
from apiece.losses import resolve_loss
from apiece.records import Task

from conftest import make_blobs, make_line


def cubed(y, prediction):
    return float(np.mean(np.abs(y - prediction) ** 3))


def dataset_of(X, y, n_val=20):
    return Dataset.from_arrays(
        X[:-n_val], y[:-n_val], X_val=X[-n_val:], y_val=y[-n_val:], kind="regression"
    )


def random_rows(n=70, d=4, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.arange(1.0, d + 1) + noise * rng.normal(size=n)


def engine_of(dataset, estimator, metric=None):
    model = resolve_model(estimator, kind="regression", n_features=1, n_classes=0)
    loss = resolve_loss(metric, kind="regression", has_proba=False)
    assert LinearEngine.supports(dataset, model, loss) is None
    return LinearEngine(dataset, model, loss)


def assert_equals_refit(dataset, estimator, k, metric=None, tolerance=1e-10, n_marked=0):
    """Return the outcome after comparing contributions, but the marked, to their mean size."""
    engine = engine_of(dataset, estimator, metric)
    task = Task(0, np.arange(k), np.arange(k, dataset.n_points), seed=0)
    outcome = engine.run(task)
    expected = RefitEngine(dataset, engine.model, engine.metric).run(task)
    scale = np.abs(expected.delta).mean()
    is_marked = np.isnan(outcome.delta)
    assert is_marked.sum() == n_marked
    delta = np.where(is_marked, expected.delta, outcome.delta)
    assert_allclose(delta, expected.delta, rtol=0, atol=tolerance * scale)
    assert outcome.loss == pytest.approx(expected.loss, rel=tolerance)
    return outcome


def rational_deltas(dataset, task, *, alpha, has_intercept=True):
    """Solve the normal equations in rational numbers."""

    def rows_of(X):
        return [[*map(Fraction, row.tolist()), *[Fraction(1)] * has_intercept] for row in X]

    def loss_of(H, g):
        size = len(g)
        M = [[*H[i], g[i]] for i in range(size)]
        for i in range(size):
            for j in range(i + 1, size):
                factor = M[j][i] / M[i][i]
                M[j] = [a - factor * b for a, b in zip(M[j], M[i], strict=True)]
        theta = [Fraction(0)] * size
        for i in reversed(range(size)):
            known = sum(M[i][j] * theta[j] for j in range(i + 1, size))
            theta[i] = (M[i][size] - known) / M[i][i]
        errors = (
            sum(a * b for a, b in zip(row, theta, strict=True)) - target
            for row, target in zip(V, y_val, strict=True)
        )
        return sum(error**2 for error in errors) / len(V)

    def add(H, g, row, target):
        H = [[H[i][j] + row[i] * row[j] for j in range(len(g))] for i in range(len(g))]
        return H, [a + b * target for a, b in zip(g, row, strict=True)]

    V, y_val = rows_of(dataset.X_val), list(map(Fraction, dataset.y_val.tolist()))
    size, d = len(V[0]), dataset.n_features
    H = [[Fraction(alpha) * (i == j and i < d) for j in range(size)] for i in range(size)]
    g = [Fraction(0)] * size
    for row, target in zip(rows_of(dataset.X[task.subset]), dataset.y[task.subset], strict=True):
        H, g = add(H, g, row, Fraction(float(target)))
    base, delta = loss_of(H, g), []
    points = zip(rows_of(dataset.features(task.points)), dataset.targets(task.points), strict=True)
    for row, target in points:
        delta.append(float(base - loss_of(*add(H, g, row, Fraction(float(target))))))
    return np.array(delta)


def assert_equals_rational(X, y, k, alpha, tolerance, n_points=3):
    dataset = dataset_of(X, y, n_val=10)
    estimator = Ridge(alpha=alpha) if alpha else LinearRegression()
    task = Task(0, np.arange(k), np.arange(k, k + n_points), seed=0)
    outcome = engine_of(dataset, estimator).run(task)
    expected = rational_deltas(dataset, task, alpha=alpha)
    scale = np.abs(expected).mean()
    assert_allclose(outcome.delta, expected, rtol=0, atol=tolerance * scale)
    assert outcome.notes["refits"] == 0
    return outcome


@pytest.mark.parametrize("metric", ["squared_error", "absolute_error", cubed])
@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize("alpha", [None, 0.0, 1e-4, 1.0, 1e4])
def test_deltas_match_a_refit(alpha, has_intercept, metric):
    line = make_line()
    estimator = (
        LinearRegression(fit_intercept=has_intercept)
        if alpha is None
        else Ridge(alpha=alpha, fit_intercept=has_intercept)
    )
    outcome = assert_equals_refit(line, estimator, 25, metric)
    assert outcome.notes == {"refits": 0}
    assert outcome.certificate < 1e-12


@pytest.mark.parametrize("metric", ["squared_error", "absolute_error", cubed])
@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize("k", [1, 2, 5, 8, 9, 10])
def test_with_fewer_points_than_features_the_shortest_solution_is_updated(k, has_intercept, metric):
    dataset = dataset_of(*random_rows(d=8))
    estimator = LinearRegression(fit_intercept=has_intercept)
    assert assert_equals_refit(dataset, estimator, k, metric).notes["refits"] == 0
    ridge = Ridge(alpha=0.1, fit_intercept=has_intercept)
    assert assert_equals_refit(dataset, ridge, k, metric).notes["refits"] == 0


@pytest.mark.parametrize("estimator", [LinearRegression(), Ridge(alpha=0.01)])
@pytest.mark.parametrize("k", [8, 30])
def test_duplicated_points_inside_and_outside_of_d(estimator, k):
    X, y = random_rows(d=12)
    X[2:4] = X[:2]
    X[35:45] = X[:10]
    y[35:40] = y[:5]
    assert assert_equals_refit(dataset_of(X, y), estimator, k).notes["refits"] == 0


@pytest.mark.parametrize("estimator", [LinearRegression(), Ridge(alpha=0.01)])
@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize("k", [4, 30])
def test_constant_and_collinear_features(estimator, has_intercept, k):
    X, y = random_rows(d=6)
    X[:, 5] = X[:, 4] + X[:, 3]
    X[:, 0] = 3.1
    fit = type(estimator)(**{**estimator.get_params(), "fit_intercept": has_intercept})
    assert assert_equals_refit(dataset_of(X, y), fit, k).notes["refits"] == 0


def test_a_feature_that_only_the_new_point_moves():
    X, y = random_rows(d=4)
    X[:30, 2] = 0.1
    X[30:40, 2] = 0.1
    outcome = assert_equals_refit(dataset_of(X, y), LinearRegression(), 30)
    assert outcome.notes["refits"] == 0


def test_a_training_set_without_any_spread_predicts_its_mean():
    X, y = random_rows(d=3)
    X[:45] = (0.1, 0.2, 0.3)
    dataset = dataset_of(X, y)
    task = Task(0, np.arange(30), np.arange(30, 50), seed=0)
    outcome = engine_of(dataset, LinearRegression()).run(task)
    loss = np.mean((dataset.y_val - y[:30].mean()) ** 2)
    expected = [
        loss - np.mean((dataset.y_val - np.append(y[:30], y[i]).mean()) ** 2) for i in range(30, 45)
    ]
    assert outcome.loss == pytest.approx(loss, rel=1e-12)
    assert_allclose(outcome.delta[:15], expected, rtol=1e-9)
    assert np.isfinite(outcome.delta).all()


@pytest.mark.parametrize("alpha", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("k", [3, 30])
def test_ridge_with_features_of_extreme_scales_is_exact(alpha, k):
    X, y = random_rows(n=60)
    assert_equals_rational(X * [1e-8, 1e8, 1.0, 1e3], y, k, alpha, 1e-10)


@pytest.mark.parametrize("alpha", [0.0, 1e-4, 1.0])
def test_a_mean_far_from_zero_costs_no_digits(alpha):
    X, y = random_rows(n=60)
    assert_equals_rational(X + 1e6, y + 1e3, 30, alpha, 1e-11)


@pytest.mark.parametrize("alpha", [1e-4, 1.0])
def test_nearly_collinear_features_are_exact_with_a_penalty(alpha):
    X, y = random_rows(n=60)
    X[:, 3] = X[:, 2] + 1e-5 * X[:, 3]
    # the condition is 1e7 at most, which costs half of the digits
    assert_equals_rational(1e3 * X, y, 30, alpha, 1e-7)


def test_a_noiseless_target_keeps_the_digits_that_it_has():
    X, y = random_rows(n=60, noise=1e-6)
    # contributions are 1e-12 of the squared target; the certificate says how far they are known
    outcome = assert_equals_rational(X, y, 30, 0.0, 1e-6)
    assert 1e-12 < outcome.certificate < 1e-8


def test_least_squares_drops_features_that_a_refit_drops():
    X, y = random_rows()
    dataset = dataset_of(X * [1e-8, 1e8, 1e8, 1e-8], y)
    assert assert_equals_refit(dataset, LinearRegression(), 30).notes["refits"] == 0


@pytest.mark.parametrize("spread", [1e-6, 1e-9, 1e-12])
def test_contributions_are_marked_where_scikit_learn_drops_a_direction_that_has_spread(spread):
    X, y = random_rows()
    rng = np.random.default_rng(1)
    X[:, 3] = X[:, 2] + spread * rng.normal(size=len(X))
    outcome = assert_equals_refit(dataset_of(X, y), LinearRegression(), 30, n_marked=20)
    assert outcome.notes["refits"] == 20


def test_only_the_point_that_is_too_far_out_is_refitted_and_marked():
    X, y = random_rows()
    X[45] = 1e9
    outcome = assert_equals_refit(dataset_of(X, y), LinearRegression(), 30, n_marked=1)
    assert outcome.notes["refits"] == 1
    ridge = assert_equals_refit(dataset_of(X, y), Ridge(), 30, tolerance=1e-6)
    assert ridge.notes["refits"] == 0


def test_without_a_penalty_ridge_is_refitted_where_it_has_no_unique_solution():
    dataset = dataset_of(*random_rows(d=8))
    assert assert_equals_refit(dataset, Ridge(alpha=0), 5).notes["refits"] == 45


@pytest.mark.parametrize("solver", ["svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga"])
def test_any_solver_has_the_same_optimum(solver):
    line = make_line()
    engine = engine_of(line, Ridge(solver=solver))
    task = Task(0, np.arange(25), np.arange(25, 60), seed=0)
    expected = engine_of(line, Ridge()).run(task).delta
    assert_allclose(engine.run(task).delta, expected, rtol=0)


def test_candidates_are_valued_with_their_own_features_and_targets():
    line = make_line().with_candidates((np.array([[5.0, -3.0, 2.0]]), np.array([40.0])))
    assert_equals_refit(line, LinearRegression(), 20)


def test_blocks_do_not_change_the_answer(monkeypatch):
    line = make_line()
    task = Task(0, np.arange(25), np.arange(25, 60), seed=0)
    for metric in ("squared_error", "absolute_error", cubed):
        whole = engine_of(line, "ridge", metric).run(task).delta
        with monkeypatch.context() as small:
            small.setattr(_linear, "_BLOCK", 9)
            parts = engine_of(line, "ridge", metric).run(task).delta
        assert_allclose(parts, whole, rtol=0, atol=1e-12 * np.abs(whole).mean())


def test_a_task_without_points_has_a_loss():
    line = make_line()
    outcome = engine_of(line, "linear").run(Task(0, np.arange(20), np.arange(0), seed=0))
    assert outcome.delta.shape == (0,)
    assert np.isfinite(outcome.loss)


def test_a_metric_that_fails_is_reported_with_task_and_point():
    line = make_line()

    def fussy(y, prediction):
        if abs(prediction[0] - start) > 1e-6:
            raise ZeroDivisionError("no")
        return 1.0

    start = LinearRegression().fit(line.X[:20], line.y[:20]).predict(line.X_val[:1])[0]
    with pytest.raises(EngineError, match=r"task 3 \(k=20\) with point .*: ZeroDivisionError: no"):
        engine_of(line, "linear", fussy).run(Task(3, np.arange(20), np.array([30]), seed=0))


@pytest.mark.parametrize("model", ["linear", "ridge"])
@pytest.mark.parametrize("k", [3, 30])
def test_numbers_whose_squares_overflow_are_left_to_a_refit(model, k):
    X, y = random_rows()
    dataset = dataset_of(X * 1e200, y)
    engine, task = engine_of(dataset, model), Task(0, np.arange(k), np.array([40]), seed=0)
    try:
        expected = RefitEngine(dataset, engine.model, engine.metric).run(task)
    except EngineError:
        with pytest.raises(EngineError, match="task 0"):
            engine.run(task)
    else:
        assert_allclose(engine.run(task).delta, expected.delta)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize("k", [3, 30])
def test_one_point_that_over_or_underflows_is_left_to_a_refit(scale, k):
    X, y = random_rows()
    X[:k] *= 0.0 if scale < 1 else 1.0
    X[40] *= scale
    dataset = dataset_of(X, y)
    engine = engine_of(dataset, LinearRegression())
    outcome = engine.run(Task(0, np.arange(k), np.array([41, 42]), seed=0))
    assert outcome.notes["refits"] == 0
    task = Task(0, np.arange(k), np.array([40]), seed=0)
    try:
        expected = RefitEngine(dataset, engine.model, engine.metric).run(task)
    except EngineError:
        with pytest.raises(EngineError, match="with point"):
            engine.run(task)
    else:
        assert_allclose(engine.run(task).delta, expected.delta)


def test_a_penalty_too_small_to_matter_leaves_duplicates_exact():
    X, y = random_rows(n=40, d=3)
    X[1:4] = X[0]
    # the condition of the normal equations is 1e12
    assert_equals_rational(X * [1.0, 1e5, 1e6], y, 1, 1.0, 1e-11)


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        ("linear", None),
        ("ridge", None),
        (Ridge(alpha=3.0, solver="sag"), None),
        (Ridge(alpha=np.float32(2), fit_intercept=False), None),
        (Lasso(), "Lasso is not least squares or ridge"),
        (LinearRegression(positive=True), "positive=True"),
        (Ridge(positive=True), "positive=True"),
        (Ridge(alpha=[1.0]), "alpha is not a single number"),
        (Ridge(alpha=-1.0), "alpha is -1.0"),
        (Ridge(alpha=float("nan")), "alpha is nan"),
        (Ridge(solver="lbfgs"), "solver='lbfgs' needs positive=True"),
        (Ridge(solver="saga", max_iter=5), "max_iter=5 may stop solver='saga' early"),
        (type("Mine", (Ridge,), {})(), "Mine is not least squares or ridge"),
    ],
)
def test_models_are_recognised_by_type_and_settings(line, estimator, reason):
    model = resolve_model(estimator, kind="regression", n_features=3, n_classes=0)
    metric = resolve_loss(None, kind="regression", has_proba=False)
    assert LinearEngine.supports(line, model, metric) == reason


def test_classes_and_many_features_are_not_supported(line, monkeypatch):
    model = resolve_model("ridge", kind="regression", n_features=3, n_classes=0)
    metric = resolve_loss(None, kind="regression", has_proba=False)
    assert LinearEngine.supports(make_blobs(), model, metric) == "the data is not a regression"
    monkeypatch.setattr(_linear, "_MOST_FEATURES", 2)
    assert LinearEngine.supports(line, model, metric) == "3 features are more than 2"
