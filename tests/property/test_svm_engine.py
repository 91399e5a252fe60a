"""The SVM engine equals an interior point method for any data, size, scale and C."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import check_grad
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import SVC

from apiece import Dataset
from apiece.engines import CoupledFolds, Model, SVMEngine
from apiece.engines._platt import fit_sigmoids
from apiece.engines._svm_kernel import Rows, add_products, kernel_terms, n_terms, squared_distances
from apiece.engines._svm_machine import Machine
from apiece.losses import LOSSES
from apiece.records import Task
from long_double import Unsolved, svm_decision, svm_log_odds, svm_scores


@st.composite
def problems(draw, n_classes=2):
    """Points anywhere, with heavy tails, far apart, repeated, or of a rare class, at any scale."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d, k = draw(st.sampled_from([1, 2, 5, 20, 60])), draw(st.integers(12, 50))
    shape = draw(st.sampled_from(["plain", "heavy", "separable", "pairs", "rare"]))
    n = k + 6
    X = rng.standard_t(2 if shape == "heavy" else 30, size=(n + 25, d))
    y = (X[:, 0] * (1e3 if shape == "separable" else 2) + rng.logistic(size=len(X)) > 0).astype(int)
    if n_classes > 2:
        y += X[:, -1] > 0.5 * X.std()
    if shape == "pairs":
        rows = rng.integers(0, len(X) // 2, len(X))
        X, y = X[rows], np.where(rng.random(len(X)) < 0.8, y[rows], y)
    if shape == "rare":
        y[: k - 4] = 0
    y[: 2 * n_classes], y[n : n + n_classes] = np.tile(np.arange(n_classes), 2), range(n_classes)
    X *= 10.0 ** draw(st.integers(-6, 6))
    X += draw(st.sampled_from([0.0, 100.0])) * X.std()
    dataset = Dataset.from_arrays(X[:n], y[:n], X_val=X[n:], y_val=y[n:], kind="classification")
    return dataset, Task(0, np.arange(k), np.arange(k, n), seed=0)


@settings(max_examples=50)
@given(
    problem=problems(),
    log_c=st.floats(-4, 4),
    width=st.sampled_from([None, 0.1, 1.0, 10.0]),
    metric=st.sampled_from(["log_loss", "brier", "hinge"]),
)
def test_contributions_match_a_refit_on_any_data(problem, log_c, width, metric):
    dataset, task = problem
    C = 10.0**log_c
    gamma = "scale" if width is None else width / (dataset.n_features * dataset.X.var())
    machine, margins = SVC(C=C, gamma=gamma), svm_decision
    if metric != "hinge":
        machine = CalibratedClassifierCV(machine, ensemble=False, cv=CoupledFolds())
        margins = svm_log_odds
    fast = SVMEngine(dataset, Model("svm", machine), LOSSES[metric]).run(task)
    if fast.notes.get("refits") == len(task.points) or np.isnan(fast.delta).all():
        return  # degenerate as a whole: left to scikit-learn, or marked

    def loss(rows):
        training = dataset.features(rows), dataset.targets(rows)
        found = margins(*training, dataset.X_val, C, gamma).astype(float)
        return LOSSES[metric].of_margins(dataset.y_val, found[None])[0]

    try:
        base = loss(task.subset)
        slow = np.array([base - loss(np.append(task.subset, point)) for point in task.points])
    except Unsolved:
        return
    known = ~np.isnan(fast.delta)
    limit = 1e-4 * np.abs(slow).mean() + 1e-11
    assert_allclose(fast.delta[known], slow[known], rtol=0, atol=limit)


@settings(max_examples=30)
@given(
    problem=problems(n_classes=3),
    log_c=st.floats(-2, 2),
    width=st.sampled_from([None, 0.1, 1.0, 10.0]),
    metric=st.sampled_from(["log_loss", "hinge"]),
)
def test_contributions_of_several_classes_match_a_refit_on_any_data(problem, log_c, width, metric):
    dataset, task = problem
    C = 10.0**log_c
    gamma = "scale" if width is None else width / (dataset.n_features * dataset.X.var())
    machine, find = SVC(C=C, gamma=gamma), svm_scores
    if metric != "hinge":
        machine = CalibratedClassifierCV(machine, ensemble=False, cv=CoupledFolds())
        find = svm_log_odds
    fast = SVMEngine(dataset, Model("svm", machine), LOSSES[metric]).run(task)
    if fast.notes.get("refits") == len(task.points) or np.isnan(fast.delta).all():
        return  # degenerate as a whole: left to scikit-learn, or marked

    def loss(rows):
        found = find(dataset.features(rows), dataset.targets(rows), dataset.X_val, C, gamma)
        if metric != "hinge":
            proba = 1 / (1 + np.exp(-found))
            found = proba / proba.sum(axis=1, keepdims=True)
        return LOSSES[metric].value(dataset.y_val, found.astype(float))

    try:
        base = loss(task.subset)
        slow = np.array([base - loss(np.append(task.subset, point)) for point in task.points])
    except Unsolved:
        return
    known = ~np.isnan(fast.delta)
    limit = 1e-4 * np.abs(slow).mean() + 1e-11
    assert_allclose(fast.delta[known], slow[known], rtol=0, atol=limit)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(4, 40),
    d=st.integers(1, 40),
    log_c=st.floats(-3, 3),
    spread=st.floats(1e-5, 0.05),
)
def test_a_machine_at_another_width_is_the_one_trained_there(seed, n, d, log_c, spread):
    rng = np.random.default_rng(seed)
    X, V, C = rng.normal(size=(n, d)), rng.normal(size=(7, d)), 10.0**log_c
    y = np.where(np.arange(n) < 2, [1, -1] * (n // 2) + [1] * (n % 2), rng.choice([-1, 1], n))
    y = y.astype(float)

    def machine(gamma, reach):
        bound = np.full(n, C)
        return Machine(Rows(X), y, bound, Rows(V), C=C, gamma=gamma, reach=reach)

    gamma = (1 + np.append(0.0, rng.uniform(-spread, spread, 6))) / d
    found = machine(1 / d, spread).widen(gamma)
    for decision, error, width in zip(found.decision, found.error, gamma, strict=True):
        direct = machine(width, 0.0)
        off = np.abs(decision - direct.decision_out).max()
        assert off <= 2 * (error + direct.error) + 1e-12 * C


@given(r=st.lists(st.floats(-0.06, 0.06), min_size=1, max_size=5), seed=st.integers(0, 1000))
def test_the_kernels_series_gives_the_kernel_at_another_width(r, seed):
    rng = np.random.default_rng(seed)
    changes = np.array(sorted(r, key=abs, reverse=True))
    x = rng.exponential(size=(4, 3)) * 10.0 ** rng.integers(-3, 3)
    weights = rng.normal(size=(len(changes), 4))
    total = np.zeros((len(changes), 3))
    n = int(n_terms(changes, 1e-10).max())
    add_products(total, weights, changes, kernel_terms(x, n))
    expected = [w @ np.exp(-(1 + change) * x) for w, change in zip(weights, changes, strict=True)]
    assert_allclose(total, expected, rtol=0, atol=1e-9)


@given(scale=st.integers(-8, 8), offset=st.sampled_from([0.0, 1e3, 1e7]), seed=st.integers(0, 1000))
def test_squared_distances_keep_their_digits(scale, offset, seed):
    rng = np.random.default_rng(seed)
    A = (rng.normal(size=(6, 3)) + offset) * 10.0**scale
    B = np.concatenate([A[:2], A[2:4] * (1 + 1e-9), rng.normal(size=(40, 3)) * 10.0**scale])
    expected = ((A[:, None] - B) ** 2).sum(axis=2)
    assert_allclose(squared_distances(A, B), expected, rtol=1e-11, atol=0)


@given(
    seed=st.integers(0, 1000),
    n=st.integers(4, 60),
    signal=st.floats(-30, 30),
    n_positive=st.integers(1, 3),
)
def test_the_sigmoid_is_where_the_gradient_vanishes(seed, n, signal, n_positive):
    rng = np.random.default_rng(seed)
    is_positive = np.arange(n) < n_positive
    f = rng.normal(size=n) + signal * is_positive
    f = (f - f.mean()) / f.std()
    ab, left = fit_sigmoids(f[None], is_positive[None])
    high, low = (n_positive + 1) / (n_positive + 2), 1 / (n - n_positive + 2)
    target = np.where(is_positive, high, low)

    def loss(w):
        return np.logaddexp(0, w[0] * f + w[1]).sum() - target @ (w[0] * f + w[1])

    def gradient(w):
        surplus = expit(w[0] * f + w[1]) - target
        return np.array([surplus @ f, surplus.sum()])

    assert left[0] < 1e-8
    assert_allclose(gradient(ab[0]), 0.0, atol=1e-9)
    assert check_grad(loss, gradient, np.array([0.3, -0.2])) < 1e-4
