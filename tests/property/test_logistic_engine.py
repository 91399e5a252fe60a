from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from apiece import Dataset
from apiece.engines import LogisticEngine, Model, RefitEngine
from apiece.engines._glm_fit import _start, fit_base
from apiece.engines._link import LOG, LOGIT
from apiece.engines._logistic import converged
from apiece.losses import LOSSES
from apiece.losses._series import sigmoid, sigmoid_series
from apiece.records import Task


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    d=st.integers(1, 30),
    k=st.integers(4, 40),
    log_c=st.floats(-4, 4),
    log_scale=st.floats(-2, 2),
    shift=st.floats(0, 20),
    fit_intercept=st.booleans(),
    metric=st.sampled_from(["log_loss", "brier", "softmax_of_proba"]),
)
@example(1185, 8, 28, -1.3105578939950577, 1.9535199514861938, 11.0454945, True, "softmax_of_proba")
@example(7195, 7, 25, 3.4931621997415387, 1.5569796413703645, 17.7020528, False, "softmax_of_proba")
@example(35, 14, 36, -0.6906445561798815, 1.5694289269426664, 6.4135568, False, "softmax_of_proba")
def test_contributions_match_a_refit_on_any_data(
    seed, d, k, log_c, log_scale, shift, fit_intercept, metric
):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, size=(k + 30, d)) * 10**log_scale
    y = (X[:, 0] * shift / 10**log_scale + rng.logistic(size=len(X)) > 0).astype(int)
    y[:2] = y[-2:] = [0, 1]
    dataset = Dataset.from_arrays(
        X[: k + 6], y[: k + 6], X_val=X[k + 6 :], y_val=y[k + 6 :], kind="classification"
    )
    model = Model("logistic", LogisticRegression(C=10**log_c, fit_intercept=fit_intercept))
    task = Task(0, np.arange(k), np.arange(k, k + 6), 0)
    fast = LogisticEngine(dataset, model, LOSSES[metric]).run(task)
    refits = [
        converged(model).estimator.fit(X[rows], y[rows])
        for rows in ([*range(k)], *([*range(k), point] for point in task.points))
    ]
    losses = [
        LOSSES[metric].value(dataset.y_val, refit.predict_proba(dataset.X_val)) for refit in refits
    ]
    delta = losses[0] - np.array(losses[1:])
    rounding = 1e-9 + 3e-15 * 10 ** (log_c + 2 * log_scale)  # of the refits
    assert_allclose(fast.delta, delta, rtol=0, atol=2e-5 * np.abs(delta).mean() + rounding)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    d=st.integers(1, 20),
    k=st.integers(6, 40),
    n_classes=st.integers(3, 5),
    log_c=st.floats(-4, 4),
    log_scale=st.floats(-2, 2),
    shift=st.floats(0, 20),
    fit_intercept=st.booleans(),
    metric=st.sampled_from(["log_loss", "brier", "softmax_of_proba"]),
)
def test_contributions_match_a_refit_with_any_number_of_classes(
    seed, d, k, n_classes, log_c, log_scale, shift, fit_intercept, metric
):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, size=(k + 30, d)) * 10**log_scale
    scores = np.outer(X[:, 0] * shift / 10**log_scale, np.arange(n_classes))
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    y[:n_classes] = y[-n_classes:] = np.arange(n_classes)
    dataset = Dataset.from_arrays(
        X[: k + 6], y[: k + 6], X_val=X[k + 6 :], y_val=y[k + 6 :], kind="classification"
    )
    model = Model("logistic", LogisticRegression(C=10**log_c, fit_intercept=fit_intercept))
    task = Task(0, np.arange(k), np.arange(k, k + 6), 0)
    fast = LogisticEngine(dataset, model, LOSSES[metric]).run(task)
    slow = RefitEngine(dataset, converged(model), LOSSES[metric]).run(task)
    scale = np.abs(slow.delta).mean() + 1e-7 * slow.loss
    assert_allclose(fast.delta, slow.delta, rtol=0, atol=2e-5 * scale + 1e-12)


@given(m=st.floats(-30, 30), eta=st.floats(-0.8, 0.8), y=st.integers(0, 1))
def test_series_give_the_change_of_every_smooth_loss(m, eta, y):
    powers = eta ** np.arange(11)
    assert_allclose(
        sigmoid_series(np.array([m]))[:, 0] @ powers, sigmoid(np.array([m + eta]))[0], atol=3e-6
    )
    for name in ("log_loss", "brier", "softmax_of_proba"):
        series = LOSSES[name].margin_series(np.array([y]), np.array([m]), 10)
        p = sigmoid(np.array([m, m + eta]))
        q = sigmoid(-np.array([m, m + eta]))
        before, after = (
            LOSSES[name].value(np.array([y]), np.array([[q[i], p[i]]])) for i in (0, 1)
        )
        assert_allclose(series[:, 0] @ powers, after - before, atol=3e-6)


@given(
    m=st.floats(1e-3, 12) | st.floats(-12, -1e-3),
    eta=st.floats(1e-4, 20) | st.floats(-20, -1e-4),
)
def test_the_remainder_keeps_its_digits_far_from_the_optimum(m, eta):
    # one point of D with the given margin: x = 1, and C such that m is its optimum
    y = float(m > 0)
    C = abs(m) / sigmoid(np.array([-abs(m)]))[0]
    base = fit_base(np.ones((1, 1)), np.array([y]), np.ones(1), C)
    assert base is not None
    m = base.margins.astype(np.longdouble)
    first = 1 / (1 + np.exp(-m))
    moved = 1 / (1 + np.exp(-m - eta))
    exact = C * (moved - first - first * (1 - first) * eta)
    found = LOGIT.response(base.margins, C).far(np.array([[eta]], dtype=np.float32))
    curved = C * first * (1 - first) * eta**2 / 2  # what cancels where the second derivative does
    assert_allclose(found[0], exact.astype(float), atol=1e-5 * float(min(curved[0], C)), rtol=1e-5)


@given(
    margin=st.floats(-60, 60),
    log_beta=st.floats(-6, 6),
    log_c=st.floats(-4, 4),
    y=st.integers(0, 1),
    start=st.none() | st.floats(0, 1),
)
@example(-5.5370838112486265, np.log10(11.536804391871843), 0.0, 1, 1.0)
@example(37.506364450409954, np.log10(149.8826528848877), 0.0, 1, None)
def test_the_weight_of_a_joining_point_solves_its_equation(margin, log_beta, log_c, y, start):
    C, beta, sign = 10.0**log_c, 10.0**log_beta, 2 * y - 1
    before, pull = sign * margin, C * beta
    root = brentq(
        lambda w: w - before - pull * expit(-w), before - 1, before + pull + 1, xtol=1e-13
    )
    found = LOGIT.proximal(
        np.array([margin]),
        np.array([beta]),
        np.array([float(y)]),
        C,
        start=None if start is None else np.array([sign * C * start]),
    )
    assert_allclose(found, sign * C * expit(-root), rtol=1e-9)


@given(
    seed=st.integers(0, 10_000),
    k=st.integers(2, 12),
    more=st.integers(1, 10),
    log_c=st.floats(-3, 2),
    has_intercept=st.booleans(),
)
def test_with_few_rows_the_fit_starts_at_its_optimum(seed, k, more, log_c, has_intercept):
    rng = np.random.default_rng(seed)
    X, C = rng.normal(size=(k, k + more)), 10.0**log_c
    y, penalty = rng.integers(2, size=k).astype(float), np.ones(k + more)
    y[:2] = [0, 1]
    if has_intercept:
        X[:, -1], penalty[-1] = 1.0, 0.0
    theta = _start(X, y, penalty, C)
    gradient = C * X.T @ (expit(X @ theta) - y) + penalty * theta
    assert np.abs(theta).max() > 0
    assert_allclose(gradient, 0, atol=1e-9 * (1 + C))


def test_rows_that_overflow_leave_the_start_at_zero():
    X = np.full((2, 3), 1e200)
    with np.errstate(over="ignore", invalid="ignore"):
        assert_allclose(_start(X, np.array([0.0, 1.0]), np.ones(3), 1.0), 0.0)


@given(
    margin=st.floats(-20, 20),
    log_beta=st.floats(-6, 12),
    y=st.integers(0, 1_000),
    start=st.none() | st.floats(-2, 2),
)
@example(margin=0.9153295, log_beta=8.1, y=17, start=None)  # was off by 7e-5
def test_the_weight_of_a_joining_count_solves_its_equation(margin, log_beta, y, start):
    beta = 10.0**log_beta
    found = LOG.proximal(
        np.array([margin]),
        np.array([beta]),
        np.array([float(y)]),
        1.0,
        start=None if start is None else np.array([start]),
    )
    long = np.longdouble
    w = min(long(max(margin, np.log(max(y, 1e-300)))), long(margin) + long(beta) * y)
    for _ in range(200):  # Newton's method from above the root
        w -= (w - margin - beta * (y - np.exp(w))) / (1 + beta * np.exp(w))
    # the weight to 1e-8 of itself, as far as the change of the margin allows: w - margin is rounded
    rounding = 1e-15 * (abs(margin) + abs(w) + 1) / beta
    largest = y + np.exp(margin)
    assert_allclose(
        found, float((w - margin) / beta), rtol=1e-8, atol=float(min(rounding, 1e-9 * largest))
    )


@given(m=st.floats(-10, 10), eta=st.floats(1e-4, 19) | st.floats(-19, -1e-4))
def test_the_remainder_of_counts_keeps_its_digits(m, eta):
    response = LOG.response(np.array([m]), 1.0)
    long = np.longdouble(np.float32(eta))
    exact = float(np.exp(np.longdouble(m)) * (np.expm1(long) - long))
    assert_allclose(response.far(np.array([[eta]], dtype=np.float32))[0], exact, rtol=1e-5)
    assert_allclose(response.exact(np.array([[float(np.float32(eta))]]))[0], exact, rtol=1e-7)
