"""Search for wrong numbers: random hostile problems against oracles in extended precision.

    python tests/search.py 10000 [--kind logistic2] [--seed 0] [--show]

Problems are drawn over engines, classes, scales, penalties, collinear and repeated rows and almost
separable classes. The oracles are Newton's method, pivoted QR and direct neighbours, written here
in long double, none of scikit-learn. The table says by kind how many problems were judged, how
many contributions the engine marked, and how many problems hold an unmarked contribution that is
off by more than 1e-4 of the mean size of contributions. The exit code is 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from apiece import Dataset
from apiece.engines import choose_engine
from apiece.errors import EngineError
from apiece.records import Task

LONG = np.longdouble
LIMIT = 1e-4  # of the mean size of contributions
FEWEST = 1e-7  # mean size of contributions below which a problem is not judged
N_POINTS, N_VALIDATION = 6, 12


class Problem(NamedTuple):
    """A dataset, a task, a model, and the contributions that an oracle gives; nan for none."""

    dataset: Dataset
    task: Task
    model: Any
    metric: str
    expected: np.ndarray
    words: str


class Unsolved(Exception):
    """The oracle did not reach its own tolerance."""


def solve(matrix: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """Solve a symmetric system in long double, by elimination with diagonal scaling and pivots."""
    scale = 1 / np.sqrt(np.maximum(np.diag(matrix), LONG(1e-4000)))
    A = np.column_stack([matrix * scale[:, None] * scale, sides * scale])
    n = len(A)
    for j in range(n):
        best = j + int(np.argmax(np.abs(A[j:, j])))
        if A[best, j] == 0:
            raise Unsolved
        A[[j, best]] = A[[best, j]]
        A[j + 1 :] -= (A[j + 1 :, j] / A[j, j])[:, None] * A[j]
    x = np.zeros(n, dtype=LONG)
    for j in range(n - 1, -1, -1):
        x[j] = (A[j, -1] - A[j, j + 1 : n] @ x[j + 1 :]) / A[j, j]
    return x * scale


def newton(
    derivatives: Callable[[np.ndarray], tuple[Any, np.ndarray, np.ndarray]], theta: np.ndarray
) -> np.ndarray:
    """Minimise a convex function from its derivatives, to a relative decrement of 1e-13."""
    value, gradient, hessian = derivatives(theta)
    for _ in range(400):
        step = -solve(hessian, gradient)
        decrement = -(gradient @ step)
        if not np.isfinite(decrement) or decrement < 0:
            raise Unsolved
        if decrement < 1e-26 * max(1, abs(value)):
            return theta + step
        size = LONG(1)
        for _ in range(80):
            new = derivatives(theta + size * step)
            # near the optimum values differ by rounding, and the slope decides
            if new[0] <= value - size * decrement / 4 or abs(new[1] @ step) <= decrement / 2:
                break
            size /= 2
        else:
            raise Unsolved
        theta, (value, gradient, hessian) = theta + size * step, new
    raise Unsolved


def logits(theta: np.ndarray, X: np.ndarray, n_classes: int) -> np.ndarray:
    """Margins against the last class, or the log odds of class 1; shape ``(n, K)``."""
    if n_classes == 2:
        return np.column_stack([np.zeros(len(X), dtype=LONG), X @ theta])
    free = X @ theta.reshape(n_classes - 1, -1).T
    return np.column_stack([free, np.zeros(len(X), dtype=LONG)])


def log_proba(margins: np.ndarray) -> np.ndarray:
    top = margins.max(axis=1, keepdims=True)
    return margins - top - np.log(np.exp(margins - top).sum(axis=1, keepdims=True))


def logistic_fit(X: np.ndarray, y: np.ndarray, C: float, n_classes: int) -> np.ndarray:
    """Parameters at the optimum; rows of ``X`` end with a one, whose weight is not penalised."""
    p, m = X.shape[1], 1 if n_classes == 2 else n_classes - 1
    free = np.append(np.ones(p - 1, dtype=LONG), LONG(0))
    J = np.eye(m, dtype=LONG) - (LONG(0) if m == 1 else LONG(1) / n_classes)
    penalty = np.kron(J, np.diag(free))
    truth = np.eye(n_classes, dtype=LONG)[y]
    codes = slice(1, 2) if n_classes == 2 else slice(0, m)

    def derivatives(theta: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
        logp = log_proba(logits(theta, X, n_classes))
        pi = np.exp(logp)
        value = -C * (logp * truth).sum() + theta @ penalty @ theta / 2
        # 1 - p from the other classes, which keeps its digits
        rest = np.stack([np.delete(pi, c, axis=1).sum(axis=1) for c in range(n_classes)], axis=1)
        pull, own = np.where(truth == 1, -rest, pi)[:, codes], pi[:, codes]
        gradient = C * (pull.T @ X).ravel() + penalty @ theta
        bent = -own[:, :, None] * own[:, None, :]
        index = np.arange(own.shape[1])
        bent[:, index, index] = own * rest[:, codes]
        hessian = C * np.einsum("iab,ip,iq->apbq", bent, X, X).reshape(len(theta), -1)
        return value, gradient, hessian + penalty

    return newton(derivatives, np.zeros(m * p, dtype=LONG))


def with_ones(X: np.ndarray, centre: np.ndarray) -> np.ndarray:
    return np.column_stack([X.astype(LONG) - centre, np.ones(len(X), dtype=LONG)])


def contributions(dataset: Dataset, task: Task, loss: Callable[[np.ndarray], Any]) -> np.ndarray:
    """By how much the loss of a fit on D falls with each point, from a function of rows."""
    losses = [loss(task.subset)]
    losses += [loss(np.append(task.subset, point)) for point in task.points]
    return np.array([float(losses[0] - after) for after in losses[1:]])


def draw_features(rng: np.random.Generator, n: int) -> tuple[np.ndarray, str]:
    d = int(rng.integers(1, 7))
    X = rng.normal(size=(n, d))
    kind = rng.choice(["plain", "offset", "binary", "wide", "tiny", "huge", "collinear", "repeats"])
    if kind == "offset":
        X += 10.0 ** rng.integers(1, 5)
    elif kind == "binary":
        X = (X > 0).astype(float)
    elif kind == "wide":
        X *= 10.0 ** rng.uniform(-4, 4, size=d)
    elif kind == "tiny":
        X *= 1e-6
    elif kind == "huge":
        X *= 1e4
    elif kind == "collinear":
        X[:, -1] = X[:, 0] + 10.0 ** rng.uniform(-9, -1) * X[:, -1]
    elif kind == "repeats":
        X = X[rng.integers(0, max(2, n // 3), size=n)]
    return X, str(kind)


def pool_of(rng: np.random.Generator) -> tuple[int, np.ndarray, str]:
    k = int(rng.integers(6, 41))
    X, words = draw_features(rng, k + N_POINTS + N_VALIDATION)
    return k, X, f"k={k} d={X.shape[1]} {words}"


def split(X: np.ndarray, y: np.ndarray, k: int, kind: str) -> tuple[Dataset, Task]:
    n = k + N_POINTS
    dataset = Dataset.from_arrays(
        X[:n], y[:n], X_val=X[n:], y_val=y[n:], kind=kind, standardize=False
    )
    return dataset, Task(0, np.arange(k), np.arange(k, n), 0)


def logistic(rng: np.random.Generator, n_classes: int) -> Problem | None:
    from sklearn.linear_model import LogisticRegression

    k, X, words = pool_of(rng)
    spread = X.std(axis=0)
    scores = (
        (X - X.mean(axis=0))
        / np.where(spread > 0, spread, 1)
        @ rng.normal(size=(X.shape[1], n_classes))
    )
    noise = 10.0 ** rng.uniform(-3, 1)
    y = (scores + noise * rng.gumbel(size=scores.shape)).argmax(axis=1)
    y[:n_classes] = y[-n_classes:] = np.arange(n_classes)
    C = 10.0 ** rng.integers(-4, 11)
    dataset, task = split(X, y, k, "classification")
    centre = X[:k].astype(LONG).mean(axis=0)
    all_X, V = with_ones(dataset.points_X, centre), with_ones(dataset.X_val, centre)

    def loss(rows: np.ndarray) -> Any:
        theta = logistic_fit(all_X[rows], dataset.targets(rows), C, n_classes)
        logp = log_proba(logits(theta, V, n_classes))
        true = logp[np.arange(len(V)), dataset.y_val]
        return -np.maximum(true, np.log(LONG(np.finfo(float).eps))).mean()

    expected = contributions(dataset, task, loss)
    return Problem(dataset, task, LogisticRegression(C=C), "log_loss", expected, f"{words} C={C:g}")


def poisson(rng: np.random.Generator) -> Problem | None:
    from sklearn.linear_model import PoissonRegressor

    k, X, words = pool_of(rng)
    spread = X.std(axis=0)
    unit = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)
    y = rng.poisson(np.exp(rng.uniform(-1, 3) + 0.7 * unit @ rng.normal(size=X.shape[1])))
    dataset, task = split(X, y.astype(float), k, "regression")
    alpha = 10.0 ** rng.integers(-9, 4)
    centre = X[:k].astype(LONG).mean(axis=0)
    all_X, V = with_ones(dataset.points_X, centre), with_ones(dataset.X_val, centre)
    free = np.append(np.ones(X.shape[1], dtype=LONG), LONG(0))

    def loss(rows: np.ndarray) -> Any:
        A, b = all_X[rows], dataset.targets(rows).astype(LONG)
        if not b.any():
            raise Unsolved
        penalty = LONG(alpha) * len(b) * free

        def derivatives(theta: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
            margins = A @ theta
            mean = np.exp(margins)
            value = (mean - b * margins).sum() + penalty @ theta**2 / 2
            hessian = (A * mean[:, None]).T @ A + np.diag(penalty)
            return value, A.T @ (mean - b) + penalty * theta, hessian

        theta = newton(derivatives, np.append(np.zeros(X.shape[1]), np.log(b.mean())).astype(LONG))
        mean, target = np.exp(V @ theta), dataset.y_val.astype(LONG)
        return ((target - mean) ** 2).mean()

    expected = contributions(dataset, task, loss)
    model = PoissonRegressor(alpha=alpha)
    return Problem(dataset, task, model, "squared_error", expected, f"{words} alpha={alpha:.0e}")


def least_squares(rng: np.random.Generator, alpha: float | None) -> Problem | None:
    from sklearn.linear_model import LinearRegression, Ridge

    k, X, words = pool_of(rng)
    spread = X.std(axis=0)
    y = X @ (rng.normal(size=X.shape[1]) / np.where(spread > 0, spread, 1))
    y += 10.0 ** rng.uniform(-3, 1) * rng.normal(size=len(X))
    dataset, task = split(X, y, k, "regression")
    weight = 0.0 if alpha is None else 10.0 ** rng.uniform(-6, 4)
    centre = X[:k].astype(LONG).mean(axis=0)
    all_X, V = with_ones(dataset.points_X, centre), with_ones(dataset.X_val, centre)
    penalty = np.append(np.full(X.shape[1], LONG(weight)), LONG(0))

    def loss(rows: np.ndarray) -> Any:
        A, b = all_X[rows], dataset.targets(rows).astype(LONG)
        matrix, sides = A.T @ A + np.diag(penalty), A.T @ b
        theta = solve(matrix, sides)
        theta = theta + solve(matrix, sides - matrix @ theta)
        left = matrix @ theta - sides
        if not np.abs(left).max() <= 1e-15 * np.abs(sides).max():
            raise Unsolved
        return ((dataset.y_val.astype(LONG) - V @ theta) ** 2).mean()

    if weight == 0.0 and np.linalg.matrix_rank(all_X[task.subset].astype(float), rtol=1e-9) < len(
        penalty
    ):
        return None  # which of many solutions is meant is a matter of the library
    expected = contributions(dataset, task, loss)
    model = LinearRegression() if alpha is None else Ridge(alpha=weight)
    return Problem(dataset, task, model, "squared_error", expected, f"{words} alpha={weight:.1g}")


def neighbours(rng: np.random.Generator) -> Problem | None:
    from sklearn.neighbors import KNeighborsRegressor

    k, X, words = pool_of(rng)
    y = rng.normal(size=len(X))
    dataset, task = split(X, y, k, "regression")
    K = int(rng.integers(1, 6))

    def loss(rows: np.ndarray) -> Any:
        P, V = dataset.points_X[rows].astype(LONG), dataset.X_val.astype(LONG)
        distance = ((V[:, None] - P) ** 2).sum(axis=2)
        near = np.argsort(distance, axis=1, kind="stable")[:, :K]
        return ((dataset.y_val - dataset.targets(rows)[near].mean(axis=1)) ** 2).mean()

    expected = contributions(dataset, task, loss)
    model = KNeighborsRegressor(K, algorithm="brute")
    return Problem(dataset, task, model, "squared_error", expected, f"{words} K={K}")


KINDS: dict[str, Callable[[np.random.Generator], Problem | None]] = {
    "logistic2": lambda rng: logistic(rng, 2),
    "logistic3": lambda rng: logistic(rng, 3),
    "logistic5": lambda rng: logistic(rng, 5),
    "poisson": poisson,
    "linear": lambda rng: least_squares(rng, None),
    "ridge": lambda rng: least_squares(rng, 1.0),
    "knn": neighbours,
}


def judge(kind: str, seed: int) -> tuple[str, int, float, str]:
    """Return what came of a problem, how many contributions were marked, and the worst error."""
    rng = np.random.default_rng([list(KINDS).index(kind), seed])
    try:
        problem = KINDS[kind](rng)
    except Unsolved:
        problem = None
    if problem is None:
        return "unsolved", 0, 0.0, ""
    scale = np.abs(problem.expected).mean()
    if not scale > FEWEST:
        return "flat", 0, 0.0, problem.words
    engine, _ = choose_engine(problem.dataset, model=problem.model, metric=problem.metric)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            delta = engine.run(problem.task).delta
        except EngineError:
            return "refused", 0, 0.0, problem.words
    is_marked = np.isnan(delta)
    error = float(np.abs(delta - problem.expected)[~is_marked].max(initial=0.0) / scale)
    return ("wrong" if error > LIMIT else "right"), int(is_marked.sum()), error, problem.words


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", type=int)
    parser.add_argument("--kind", choices=list(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="print every wrong problem")
    options = parser.parse_args()
    kinds = [options.kind] if options.kind else list(KINDS)
    n_wrong, each = 0, -(-options.problems // len(kinds))
    print(f"{'kind':<10} {'judged':>7} {'marked':>7} {'wrong':>6} {'worst':>8}  not judged")
    for kind in kinds:
        counts = dict.fromkeys(("right", "wrong", "unsolved", "flat", "refused"), 0)
        marked, worst = 0, 0.0
        for seed in range(options.seed, options.seed + each):
            result, n_marked, error, words = judge(kind, seed)
            counts[result] += 1
            marked, worst = marked + n_marked, max(worst, error)
            if result == "wrong" and options.show:
                print(f"  {kind}:{seed} error {error:.1e}  {words}")
        judged = counts["right"] + counts["wrong"]
        share = marked / max(1, judged * N_POINTS)
        others = ", ".join(f"{counts[name]} {name}" for name in ("unsolved", "flat", "refused"))
        print(f"{kind:<10} {judged:>7} {share:>7.2%} {counts['wrong']:>6} {worst:>8.1e}  {others}")
        n_wrong += counts["wrong"]
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
