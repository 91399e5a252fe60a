"""How much memory the engines take for a million points, beyond the features themselves.

Each engine values N points with 256 features against one D of 500, in a process of its own; the
peak of its resident memory during the task, less what it held before, is what it took (Linux).

    python benchmarks/memory.py [--points 1000000] [--only logistic]
"""

from __future__ import annotations

import argparse
import multiprocessing
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from _results import Results
from apiece import Dataset
from apiece.engines import choose_engine
from apiece.records import Task

N_FEATURES, N_VALIDATION, K = 256, 1_000, 500
CASES = {
    "linear": ("ridge", 1),
    "logistic": ("logistic", 2),
    "logistic, 10 classes": ("logistic", 10),
    "knn": ("knn", 2),
    "first-order": ("logistic", 2),
    "svm": ("svm", 2),
}
SHARE = {"logistic, 10 classes": 0.05, "svm": 0.02}  # of the points, where one takes milliseconds


def resident(field: str) -> float:
    """Resident memory of this process in MB: now (VmRSS), or at its peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def measure(name: str, n: int, answers: multiprocessing.Queue[tuple[str, float, float]]) -> None:
    model, n_classes = CASES[name]
    rng = np.random.default_rng(0)
    X = np.empty((n + N_VALIDATION, N_FEATURES))
    for rows in np.array_split(X, max(1, n // 50_000)):  # nothing else is as large
        rows[:] = rng.standard_normal(rows.shape)
    score = X[:, :8].sum(axis=1)
    y = score if n_classes == 1 else np.digitize(score, np.linspace(-4, 4, n_classes + 1)[1:-1])
    data = Dataset.from_arrays(X[:n], y[:n], X_val=X[n:], y_val=y[n:])
    engine, _ = choose_engine(data, model=model, engine=name.split(",")[0])
    with threadpool_limits(1):
        engine.run(Task(0, np.arange(K), np.arange(K, K + 100), 0))  # loads what it loads once
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        before = resident("VmRSS")
        engine.run(Task(0, np.arange(K), np.arange(K, n), 0))
    answers.put((name, resident("VmHWM") - before, X.nbytes / 2**20))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="part of a case's name")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    columns = {"engine": "{}", "points": "{:,}"}
    columns |= {"features, MB": "{:,.0f}", "peak beyond them, MB": "{:,.0f}"}
    results = Results("memory", columns, options)
    for name in CASES:
        if options.only not in name:
            continue
        n = int(options.points * SHARE.get(name, 1.0))
        answers = context.Queue()
        child = context.Process(target=measure, args=(name, n, answers))
        child.start()
        _, grown, features = answers.get()
        child.join()
        results.add(name, n, features, grown)


if __name__ == "__main__":
    main()
