"""Search for wrong numbers: random hostile problems against oracles in extended precision.

    python tests/search.py 10000 [--kind logistic2] [--seed 0] [--show]

Problems are drawn over engines, classes, scales, penalties, collinear and repeated rows and almost
separable classes. The oracles (`long_double.py`) are Newton's method, elimination, an interior
point method, direct neighbours and a plain training by Adam, none of scikit-learn. The
table says by kind how many problems were judged, how many contributions the engine marked, and how
many problems hold an unmarked contribution that is off by more than 1e-4 of the mean size of
contributions. The exit code is 1 if there are any. `benchmarks/wrong_numbers.py` keeps the table
as a file.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from apiece import Dataset
from apiece.engines import CoupledFolds, choose_engine
from apiece.errors import EngineError
from apiece.records import Task
from long_double import (
    LONG,
    Unsolved,
    log_proba,
    logistic_fit,
    logits,
    network_loss,
    newton,
    solve,
    svm_log_odds,
    svm_scores,
)

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


def pool_of(rng: np.random.Generator, fewest: int = 6) -> tuple[int, np.ndarray, str]:
    k = int(rng.integers(fewest, 41))
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


def support_vectors(rng: np.random.Generator, metric: str, n_classes: int = 2) -> Problem | None:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    k, X, words = pool_of(rng, fewest=12)
    if rng.random() < 0.2:  # many dimensions, in which all points are far from each other
        X, words = rng.normal(size=(len(X), 60)), f"k={k} d=60"
    y = two_classes(rng, X)
    if n_classes > 2:
        y = y + (X[:, 0] > np.median(X[:, 0]))
    y[: 2 * n_classes], y[-n_classes:] = np.arange(2 * n_classes) % n_classes, np.arange(n_classes)
    dataset, task = split(X, y, k, "classification")
    C = 10.0 ** rng.integers(-4, 7)
    width = float(rng.choice([0.1, 1.0, 10.0]))
    gamma = rng.choice(["scale", "auto", "number"])
    gamma = width / (X.shape[1] * X.var()) if gamma == "number" else str(gamma)
    words += f" C={C:g} gamma={gamma if isinstance(gamma, str) else f'{width:g} * scale'} {metric}"
    find = svm_scores if metric == "hinge" else svm_log_odds

    def loss(rows: np.ndarray) -> Any:
        margins = find(dataset.points_X[rows], dataset.targets(rows), dataset.X_val, C, gamma)
        if n_classes > 2:
            return loss_of_classes(margins, dataset.y_val, metric)
        signed = np.where(dataset.y_val == 1, 1, -1) * margins.ravel()
        if metric == "hinge":
            return np.maximum(1 - signed, 0).mean()
        logp = np.minimum(-np.log1p(np.exp(-signed)), np.log1p(-LONG(np.finfo(float).eps)))
        return -np.maximum(logp, np.log(LONG(np.finfo(float).eps))).mean()

    expected = contributions(dataset, task, loss)
    model = SVC(C=C, gamma=gamma)
    if metric != "hinge":
        model = CalibratedClassifierCV(model, ensemble=False, cv=CoupledFolds())
    return Problem(dataset, task, model, metric, expected, words)


def loss_of_classes(margins: np.ndarray, y: np.ndarray, metric: str) -> Any:
    """Hinge loss of scores, or log loss of log odds against all other classes."""
    rows = np.arange(len(y))
    if metric == "hinge":
        others = margins.copy()
        others[rows, y] = -np.inf
        return np.maximum(1 - margins[rows, y] + others.max(axis=1), 0).mean()
    p = 1 / (1 + np.exp(-margins))
    true = p[rows, y] / p.sum(axis=1)
    return -np.log(np.maximum(true, LONG(np.finfo(float).eps))).mean()


def two_classes(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    spread = X.std(axis=0)
    scores = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1) @ rng.normal(size=X.shape[1])
    return (scores + 10.0 ** rng.uniform(-3, 1) * rng.logistic(size=len(X)) > 0).astype(int)


def network(rng: np.random.Generator) -> Problem | None:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    k, X, words = pool_of(rng)
    n_classes = int(rng.choice([0, 2, 3]))
    settings: dict[str, Any] = {
        "hidden_layer_sizes": (int(rng.integers(1, 9)),),
        "activation": str(rng.choice(["relu", "tanh", "logistic", "identity"])),
        "alpha": 10.0 ** rng.integers(-5, 2),
        "learning_rate_init": 10.0 ** rng.uniform(-4, -0.5),
        "beta_1": float(rng.choice([0.5, 0.9])),
        "beta_2": float(rng.choice([0.9, 0.999])),
        "epsilon": 1e-8,
        "max_iter": int(rng.integers(5, 121)),
        "random_state": int(rng.integers(1000)),
    }
    noise = 10.0 ** rng.uniform(-3, 1)
    if n_classes == 0:
        y = two_classes(rng, X) + noise * rng.normal(size=len(X))
    else:
        y = two_classes(rng, X) + (n_classes > 2) * (X[:, 0] > np.median(X[:, 0]))
        y[:n_classes] = y[-n_classes:] = np.arange(n_classes)
    dataset, task = split(X, y, k, "classification" if n_classes else "regression")

    def loss(rows: np.ndarray) -> Any:
        training = dataset.points_X[rows], dataset.targets(rows)
        scoring = dataset.X_val, dataset.y_val
        return network_loss(training, scoring, n_classes, settings)

    expected = contributions(dataset, task, loss)
    kind = MLPClassifier if n_classes else MLPRegressor
    model = kind(batch_size=10**9, n_iter_no_change=10**9, **settings)
    words += f" {n_classes} classes {settings}"
    return Problem(
        dataset, task, model, "log_loss" if n_classes else "squared_error", expected, words
    )


KINDS: dict[str, Callable[[np.random.Generator], Problem | None]] = {
    "logistic2": lambda rng: logistic(rng, 2),
    "logistic3": lambda rng: logistic(rng, 3),
    "logistic5": lambda rng: logistic(rng, 5),
    "poisson": poisson,
    "linear": lambda rng: least_squares(rng, None),
    "ridge": lambda rng: least_squares(rng, 1.0),
    "knn": neighbours,
    "svm": lambda rng: support_vectors(rng, "hinge"),
    "platt": lambda rng: support_vectors(rng, "log_loss"),
    "mlp": network,
    "svm3": lambda rng: support_vectors(rng, "hinge", 3),
    "platt3": lambda rng: support_vectors(rng, "log_loss", 3),
}


def judge(kind: str, seed: int) -> tuple[str, int, float, str]:
    """Return what came of a problem, how many contributions were marked, and the worst error."""
    rng = np.random.default_rng([list(KINDS).index(kind), seed])
    try:
        with np.errstate(all="ignore"):
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


class Found(NamedTuple):
    """What a search found among problems of one kind."""

    kind: str
    judged: int
    marked: float  # share of contributions
    wrong: int
    worst: float
    others: str


def find(
    kind: str, seeds: range, *, is_shown: bool = True, judged_by: Callable[..., Any] = map
) -> Found:
    """Judge problems of a kind, by a `map` that may use several processes."""
    counts = dict.fromkeys(("right", "wrong", "unsolved", "flat", "refused"), 0)
    marked, worst = 0, 0.0
    results = judged_by(judge, itertools.repeat(kind), seeds)
    for seed, (result, n_marked, error, words) in zip(seeds, results, strict=True):
        counts[result] += 1
        marked, worst = marked + n_marked, max(worst, error)
        if result == "wrong" and is_shown:
            print(f"  {kind}:{seed} error {error:.1e}  {words}", file=sys.stderr, flush=True)
    judged = counts["right"] + counts["wrong"]
    others = [f"{counts[name]} {name}" for name in ("unsolved", "flat", "refused") if counts[name]]
    share = marked / max(1, judged * N_POINTS)
    return Found(kind, judged, share, counts["wrong"], worst, ", ".join(others) or "none")


def plan(problems: int, kind: str | None, seed: int) -> tuple[list[str], range]:
    """Return the kinds to search, and the seeds of each."""
    kinds = [kind] if kind else list(KINDS)
    return kinds, range(seed, seed - (-problems // len(kinds)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", type=int)
    parser.add_argument("--kind", choices=list(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="print every wrong problem")
    options = parser.parse_args()
    kinds, seeds = plan(options.problems, options.kind, options.seed)
    n_wrong = 0
    print(f"{'kind':<10} {'judged':>7} {'marked':>7} {'wrong':>6} {'worst':>8}  not judged")
    for kind in kinds:
        _, judged, share, wrong, worst, others = find(kind, seeds, is_shown=options.show)
        print(
            f"{kind:<10} {judged:>7} {share:>7.2%} {wrong:>6} {worst:>8.1e}  {others}", flush=True
        )
        n_wrong += wrong
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
