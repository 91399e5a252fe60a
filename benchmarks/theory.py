r"""The paper's theorems: predicted constants and exponents against measured contributions.

Theorem 1, least squares, the loss is the distance to the optimum: expected contributions are
(2 sigma² - e²) x' Sigma^-1 x / k². Theorem 2 (1), M-estimators on a finite validation set: they are
g' V^-1 grad l(z) / k with g the gradient of the validation loss at the optimum. Theorem 2 (2), g is
zero: for every training set D a contribution is g_D' V^-1 grad l(z) / k with g_D the gradient at
f_D, so its spread over D falls as k^-1.5.

A constant is the slope of k^exponent times the measured mean contribution on the prediction, over
points: 1 if the theorem holds at that k. Its error comes from batches of training sets. Data are
synthetic, since the theorems speak of a population that must be known.

    OMP_NUM_THREADS=1 python benchmarks/theory.py [--draws 1600]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from threadpoolctl import threadpool_limits

from _results import Results
from apiece import Dataset
from apiece.engines import choose_engine
from apiece.records import Task
from apiece.uses import theory

N_POOL = 20_000
N_BATCHES = 16


def contributions(
    dataset: Dataset, model: Any, k: int, n_draws: int, metric: str | None = None
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return contributions ``(n_draws, n_candidates)`` to random training sets, and the sets."""
    engine, _ = choose_engine(dataset, model=model, metric=metric)
    rng = np.random.default_rng(k)
    points = np.arange(dataset.n_pool, dataset.n_points)
    sets = [rng.choice(dataset.n_pool, k, replace=False, shuffle=False) for _ in range(n_draws)]
    tasks = (Task(index, each, points, 0) for index, each in enumerate(sets))
    return np.array([engine.run(task).delta for task in tasks]), sets


def slope(y: np.ndarray, x: np.ndarray) -> float:
    return float((y @ x) / (x @ x))


def with_error(statistic: Callable[[np.ndarray], float], draws: np.ndarray) -> list[float]:
    """Return a statistic of the mean over draws, and its standard error from batches of them."""
    batches = [statistic(part.mean(axis=0)) for part in np.array_split(draws, N_BATCHES)]
    return [statistic(draws.mean(axis=0)), float(np.std(batches, ddof=1) / N_BATCHES**0.5)]


def exponent_between(
    sizes: tuple[int, int], found: dict[int, list[float]], power: float
) -> list[float]:
    """Return the exponent that two constants imply, and its error."""
    (low, low_error), (high, high_error) = (found[k] for k in sizes)
    step = np.log(sizes[1] / sizes[0])
    error = np.hypot(low_error / low, high_error / high) / step
    return [power - np.log(high / low) / step, error]


def least_squares() -> Dataset:
    """Normal data; validation rows with the pool's second moments and no noise.

    Candidates come in pairs with noise +e and -e, whose odd part of the contribution cancels.
    """
    rng = np.random.default_rng(0)
    scales = np.diag([1.0, 2.0, 0.5])
    X = rng.normal(size=(N_POOL, 3)) @ scales
    y = X @ [1.0, -1.0, 2.0] + rng.normal(size=N_POOL)
    optimum, *_ = np.linalg.lstsq(X, y, rcond=None)
    V = np.sqrt(3) * np.linalg.cholesky(X.T @ X / N_POOL).T
    C = np.repeat(rng.normal(size=(24, 3)) @ scales, 2, axis=0)
    noise = np.repeat(np.tile([0.0, 0.7, 1.0, 2.5], 6), 2) * np.tile([1, -1], 24)
    return Dataset.from_arrays(
        X,
        y,
        X_val=V,
        y_val=V @ optimum,
        candidates=(C, C @ optimum + noise),
        kind="regression",
    )


def two_features(kind: str, n_val: int | None) -> Dataset:
    """Two normal features; targets linear or logistic; the pool itself validates without n_val."""
    rng = np.random.default_rng(1)
    n_pool = N_POOL if n_val else 4_000
    X, V, C = (rng.normal(size=(n, 2)) for n in (n_pool, n_val or 1, 60))

    def targets(rows: np.ndarray) -> np.ndarray:
        score = rows @ [1.0, -0.5] + 0.2
        if kind == "linear":
            return score + rng.normal(size=len(rows))
        return (rng.random(len(rows)) < 1 / (1 + np.exp(-score))).astype(int)

    y, y_val = targets(X), targets(V)
    return Dataset.from_arrays(
        X,
        y,
        X_val=V if n_val else X,
        y_val=y_val if n_val else y,
        candidates=(C, targets(C)),
        kind="regression" if kind == "linear" else "classification",
    )


def theorem_1(results: Results, n_draws: int) -> None:
    data = least_squares()
    expected = theory(data, fit_intercept=False)["a4"].iloc[N_POOL:].to_numpy()
    in_pairs = expected.reshape(-1, 2).mean(axis=1)
    found = {}
    for k in (50, 100, 200, 400):
        delta, _ = contributions(data, LinearRegression(fit_intercept=False), k, n_draws)
        pairs = k**2 * delta.reshape(n_draws, -1, 2).mean(axis=2)
        found[k] = with_error(partial(slope, x=in_pairs), pairs)
        related = np.corrcoef(pairs.mean(axis=0), in_pairs)[0, 1]
        results.add("1", "least squares", f"constant at k = {k}", 1, found[k], related)
    results.add(
        *("1", "least squares", "exponent, k = 100 to 400", 2),
        *(exponent_between((100, 400), found, 2), None),
    )


def theorem_2_finite(results: Results, n_draws: int) -> None:
    for kind in ("linear", "logistic"):
        data = two_features(kind, 40)
        expected = theory(data)["a2"].iloc[N_POOL:].to_numpy()
        found = {}
        for k in (200, 500, 2000):
            delta, _ = contributions(data, kind, k, max(N_BATCHES, n_draws // 8))
            found[k] = with_error(partial(slope, x=expected), k * delta)
            related = np.corrcoef(delta.mean(axis=0), expected)[0, 1]
            name = {"linear": "least squares", "logistic": "logistic regression"}[kind]
            results.add("2 (1)", name, f"constant at k = {k:,}", 1, found[k], related)
        results.add(
            *("2 (1)", name, "exponent, k = 500 to 2,000", 1),
            *(exponent_between((500, 2000), found, 1), None),
        )


def theorem_2_population(results: Results, n_draws: int) -> None:
    """For single training sets: prediction from the gradient at f_D, measured contribution."""
    data = two_features("logistic", None)
    X, y = (np.column_stack([data.X, np.ones(data.n_pool)]), np.asarray(data.y, float))
    C = np.column_stack([data.points_X[data.n_pool :], np.ones(60)])
    c_y = np.asarray(data.points_y[data.n_pool :], float)

    def fitted(rows: np.ndarray) -> np.ndarray:
        model = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(data.X[rows], y[rows])
        return np.append(model.coef_[0], model.intercept_)

    def mu(rows: np.ndarray, theta: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-rows @ theta))

    best = fitted(np.arange(data.n_pool))
    p = mu(X, best)
    hessian = (X * (p * (1 - p))[:, None]).T @ X / len(X)
    steps = np.linalg.solve(hessian, (C * (mu(C, best) - c_y)[:, None]).T)  # V^-1 grad l(z)
    spread = {}
    for k in (200, 400, 800):
        delta, sets = contributions(data, "logistic", k, max(N_BATCHES, n_draws // 4), "log_loss")
        slopes = np.array([X.T @ (mu(X, fitted(D)) - y) / len(X) for D in sets])
        predicted = slopes @ steps / k
        centred = [part - part.mean(axis=0) for part in (delta, predicted)]
        batches = zip(*(np.array_split(part, N_BATCHES) for part in centred), strict=True)
        each = [slope(a.ravel(), b.ravel()) for a, b in batches]
        constant = slope(*(part.ravel() for part in centred))
        error = float(np.std(each, ddof=1) / N_BATCHES**0.5)
        related = np.corrcoef(*(part.ravel() for part in centred))[0, 1]
        cells = ("2 (2)", "logistic regression", f"constant for single sets, k = {k}", 1)
        results.add(*cells, [constant, error], related)
        parts = np.array_split(delta, N_BATCHES)
        sds = [np.sqrt(part.var(axis=0, ddof=1).mean()) for part in parts]
        spread[k] = [np.sqrt(delta.var(axis=0, ddof=1).mean()), np.std(sds) / N_BATCHES**0.5]
    results.add(
        *("2 (2)", "logistic regression", "exponent of the spread, k = 200 to 800", 1.5),
        *(exponent_between((200, 800), spread, 0), None),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1600, help="training sets at each size")
    options = parser.parse_args()
    columns = {
        "theorem": "{}",
        "model": "{}",
        "what": "{}",
        "predicted": "{}",
        "measured": "{:.2f} ± {:.2f}",
        "correlation over points": "{:.3f}",
    }
    results = Results("theory", columns, options)
    with threadpool_limits(1):
        theorem_1(results, options.draws)
        theorem_2_finite(results, options.draws)
        theorem_2_population(results, options.draws)


if __name__ == "__main__":
    main()
