"""How many times faster the exact engines are than refitting, and how exact they are.

For each model and a few sizes k: one D, 1,000 points (192 for networks) valued against it by the
engine; the same D and some of the same points by two scikit-learn fits each with default settings,
plus scoring on 1,000 validation points, which is what a user would do instead. One process, one
BLAS thread, and processor time, which others on the machine disturb least. The error is the largest
difference from a fully converged refit, relative to the mean size of a contribution.

    python benchmarks/engines.py --data DIR [--only higgs] [--first-order]

With --first-order: how well influence functions agree with exact contributions, and how many times
faster than the exact engine they are.

DIR holds higgs.npz, imdb.npz and cifar10.npz, each with X and y (see docs/explanation/engines.md).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from _results import Results
from apiece import Dataset
from apiece.collection import log_spaced
from apiece.engines import CoupledFolds, Model, RefitEngine, choose_engine, resolve_model
from apiece.losses import resolve_loss
from apiece.records import Task

N_POOL, N_VALIDATION, N_POINTS = 3_000, 1_000, 1_000


@dataclass(frozen=True)
class Case:
    """A model on a dataset."""

    name: str
    data: str
    model: Any  # what a user would fit, with scikit-learn's default settings
    converged: dict[str, Any]  # settings that take it all the way
    metric: str = "log_loss"
    standardize: bool = True
    prepare: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]] = lambda X, y: (X, y)
    n_refits: int = 10
    n_points: int = N_POINTS  # fewer where one takes long


LOGISTIC = {"solver": "newton-cholesky", "tol": 1e-13, "max_iter": 1_000}


NETWORK = resolve_model("mlp", kind="classification", n_features=1, n_classes=2).estimator


def mass_from_the_rest(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A regression with 28 features: a mass from the other columns and the label."""
    return np.column_stack([np.delete(X, 21, axis=1), y]), X[:, 21]


CASES = [
    Case(
        "ridge, 28 features",
        "higgs",
        Ridge(),
        {},
        metric="squared_error",
        prepare=mass_from_the_rest,
    ),
    Case(
        "5 nearest neighbours, 256 features",
        "imdb",
        KNeighborsClassifier(),
        {},
        standardize=False,
    ),
    Case("logistic, 28 features", "higgs", LogisticRegression(), LOGISTIC),
    Case(
        "logistic, 256 features as they are",
        "imdb",
        LogisticRegression(),
        LOGISTIC,
        standardize=False,
    ),
    Case(
        "logistic, 256 features standardised",
        "imdb",
        LogisticRegression(),
        LOGISTIC,
    ),
    Case(
        "SVM, calibrated, 28 features",
        "higgs",
        CalibratedClassifierCV(SVC(), ensemble=False, cv=CoupledFolds()),
        {"estimator__tol": 1e-10},
    ),
    Case(
        "SVM, calibrated, 10 classes, 256 features",
        "cifar10",
        CalibratedClassifierCV(SVC(), ensemble=False, cv=CoupledFolds()),
        {"estimator__tol": 1e-10},
        n_refits=4,
        n_points=200,
    ),
    Case(
        "logistic, 10 classes, 256 features as they are",
        "cifar10",
        LogisticRegression(),
        LOGISTIC,
        standardize=False,
        n_refits=5,
    ),
    Case(
        "logistic, 10 classes, 256 features standardised",
        "cifar10",
        LogisticRegression(),
        LOGISTIC,
        n_refits=5,
    ),
    *(
        Case(f"MLP, {n} features", data, NETWORK, {}, n_refits=3, n_points=192)
        for n, data in ((28, "higgs"), (256, "imdb"))
    ),
]


def load(case: Case, folder: Path) -> Dataset:
    with np.load(folder / f"{case.data}.npz") as arrays:
        rows = slice(0, N_POOL + N_VALIDATION)
        X, y = case.prepare(arrays["X"][rows].astype(np.float64), arrays["y"][rows])
    return Dataset.from_arrays(
        X[:N_POOL],
        y[:N_POOL],
        X_val=X[N_POOL:],
        y_val=y[N_POOL:],
        standardize=case.standardize,
    )


def seconds(work: Callable[[], object], at_least: float = 0.3) -> float:
    """Processor time of one call, the best of several."""
    times = []
    while len(times) < 2 or sum(times) < at_least:
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def measure(case: Case, dataset: Dataset, k: int) -> dict[str, float]:
    engine, _ = choose_engine(dataset, model=case.model, metric=case.metric)
    if engine.name == "refit":
        raise SystemExit(f"{case.name}: no fast engine was chosen")
    order = np.random.default_rng(k).permutation(N_POOL)
    task = Task(0, order[:k], np.sort(order[k : k + case.n_points]), 0)
    outcome = engine.run(task)
    fast = seconds(lambda: engine.run(task)) / case.n_points

    metric = resolve_loss(case.metric, kind=dataset.kind, has_proba=engine.model.has_proba)
    few = replace(task, points=task.points[:: case.n_points // case.n_refits])
    exact_model = Model("converged", clone(case.model).set_params(**case.converged))
    exact = RefitEngine(dataset, exact_model, metric).run(few)
    error = np.abs(outcome.delta[:: case.n_points // case.n_refits] - exact.delta).max()

    refit = RefitEngine(dataset, Model("default", case.model), metric)

    def two_fits_each() -> None:
        for point in few.points:
            refit.run(replace(few, points=np.array([point])))

    slow = seconds(two_fits_each) / len(few.points)
    V, change = dataset.X_val, np.random.default_rng(0).normal(size=(dataset.n_features, N_POINTS))
    return {
        "fast": fast,
        "slow": slow,
        "error": error / np.abs(exact.delta).mean(),
        "product": seconds(lambda: V @ change, 0.05) / N_POINTS,
        "refits": outcome.notes.get("refits", 0),
        "certificate": outcome.certificate,
    }


def agreement(case: Case, dataset: Dataset, k: int) -> dict[str, float]:
    order = np.random.default_rng(k).permutation(N_POOL)
    task = Task(0, order[:k], np.sort(order[k : k + N_POINTS]), 0)
    engines = [
        choose_engine(dataset, model=case.model, metric=case.metric, engine=name)[0]
        for name in ("first-order", "auto")
    ]
    near, exact = (engine.run(task).delta for engine in engines)
    ranks = [delta.argsort().argsort() for delta in (near, exact)]
    first, second = (seconds(lambda engine=engine: engine.run(task)) for engine in engines)
    return {
        "pearson": float(np.corrcoef(near, exact)[0, 1]),
        "spearman": float(np.corrcoef(*ranks)[0, 1]),
        "slope": float(near @ exact / (exact @ exact)),
        "ratio": second / first,
    }


def first_order(cases: list[Case], options: argparse.Namespace) -> None:
    columns = {"model": "{}", "data": "{}", "k": "{:,}", "Pearson": "{:.3f}", "Spearman": "{:.3f}"}
    columns |= {"slope": "{:.2f}", "times as fast as exact": "{:.1f}"}
    results = Results("first-order", columns, options)
    for case in cases:
        dataset = load(case, options.data)
        for k in log_spaced(100, 1000, options.sizes):
            row = agreement(case, dataset, k)
            scores = row["pearson"], row["spearman"], row["slope"], row["ratio"]
            results.add(case.name, case.data, k, *scores)


def exact(cases: list[Case], options: argparse.Namespace) -> None:
    columns = {"model": "{}", "data": "{}", "k": "{:,}", "engine, µs": "{:.1f}"}
    columns |= {"refits, ms": "{:.2f}", "ratio": "{:,.0f}", "error": "{:.0e}"}
    results = Results("engines", columns | {"products": "{:.1f}", "refitted": "{:.0f}"}, options)
    if options.resume:
        results.resume()
    for case in cases:
        if results.has(model=case.name, k="all"):
            continue
        dataset = load(case, options.data)
        rows = []
        for k in log_spaced(100, 1000, options.sizes):
            row = measure(case, dataset, k)
            rows.append(row)
            times = 1e6 * row["fast"], 1e3 * row["slow"], row["slow"] / row["fast"]
            products = row["fast"] / row["product"]
            results.add(case.name, case.data, k, *times, row["error"], products, row["refits"])
        ratio = sum(row["slow"] for row in rows) / sum(row["fast"] for row in rows)
        worst = max(row["error"] for row in rows)
        refitted = sum(row["refits"] for row in rows)
        results.add(case.name, case.data, "all", None, None, ratio, worst, None, refitted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the .npz files")
    parser.add_argument("--only", default="", help="part of a case's name or dataset")
    parser.add_argument("--sizes", type=int, default=4, help="how many sizes in 100..1000")
    parser.add_argument("--first-order", action="store_true", help="judge influence functions")
    parser.add_argument("--resume", action="store_true", help="keep models that the file has")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cases = [case for case in CASES if options.only in case.name or options.only in case.data]
    with threadpool_limits(1):
        if options.first_order:
            convex = [case for case in cases if type(case.model) in (Ridge, LogisticRegression)]
            first_order(convex, options)
        else:
            exact(cases, options)


if __name__ == "__main__":
    main()
