"""Amortized laws against Monte Carlo truth: Distributional Shapley from few contributions.

For each dataset 500 points, logistic regression, sizes 100 to 1,000. A run with thousands of tasks
that all points share is split: the last two thirds give the truth, contributions to learn from are
drawn from the first third. "own D": every point has its own random tasks, which two points seldom
share, the paper's design; "shared D": the same tasks for all points. The Pearson correlation with
the true value (mean of psi over all sizes), and how many 90 % intervals hold the true psi at three
sizes, where the truth is the mean contribution in a band of sizes.

    python benchmarks/amortized.py --data DIR --runs RUNS [--only magic] [--draws 2]

DIR holds higgs.npz, magic.npz, imdb.npz and adult.npz with X and y. RUNS keeps the runs, which are
collected where they are missing (minutes to half an hour each).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import apiece
from apiece.estimators import Amortized
from apiece.records import Contributions

N_POOL, N_VALIDATION, N_POINTS = 10_000, 1_000, 500
SIZES = np.arange(100, 1001)
BANDS = ((100, 150), (280, 380), (850, 1001))
CASES = {
    "magic": "softmax_of_proba",
    "higgs": "log_loss",
    "adult": "softmax_of_proba",
    "imdb": "softmax_of_proba",
}
NETWORKS = {
    "series": Amortized(family="series"),
    "power": Amortized(),
    "paper's network": Amortized(network="paper"),
}


def read(data: Path, name: str) -> apiece.Dataset:
    with np.load(data / f"{name}.npz") as file:
        X, y = file["X"].astype(np.float64), file["y"]
    end = N_POOL + N_VALIDATION
    return apiece.Dataset.from_arrays(
        X[:N_POOL],
        y[:N_POOL],
        X_val=X[N_POOL:end],
        y_val=y[N_POOL:end],
        standardize=True,
        kind="classification",
    )


def table_of(dataset: apiece.Dataset, folder: Path, metric: str, samples: int):
    """Contributions as a matrix, tasks by points, with each task's size; nan where z is in D."""
    if (folder / "manifest.json").exists():
        run = apiece.open(folder)
    else:
        run = apiece.collect(
            dataset,
            model="logistic",
            sizes=(100, 1000),
            samples=samples,
            metric=metric,
            points=range(N_POINTS),
            random_state=0,
            to=folder,
        )
    rows = run.contributions()
    delta = np.full((rows.task.max() + 1, N_POINTS), np.nan)
    k = np.zeros(len(delta))
    delta[rows.task, rows.point], k[rows.task] = rows.delta, rows.k
    return delta[k > 0], k[k > 0]


def mean_over_sizes(delta: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Monte Carlo value; a point is in a D of k points with probability k / n, so weigh that up."""
    weight = np.isfinite(delta) / (1 - k / N_POOL)[:, None]
    return (np.nan_to_num(delta) * weight).sum(axis=0) / weight.sum(axis=0)


def draw(delta, k, samples: int, shared: bool, rng: np.random.Generator) -> Contributions:
    n_tasks, n = delta.shape
    if shared:
        pick = np.repeat(rng.choice(n_tasks, (samples, 1), replace=False), n, axis=1)
        task = np.repeat(np.arange(samples)[:, None], n, axis=1)
    else:
        pick = rng.permuted(np.tile(np.arange(n_tasks)[:, None], n), axis=0)[:samples]
        task = np.arange(samples * n).reshape(samples, n)
    chosen = np.take_along_axis(delta, pick, axis=0)
    known = np.isfinite(chosen)
    point = np.broadcast_to(np.arange(n), known.shape)
    return Contributions.from_arrays(
        point=point[known],
        k=k[pick][known],
        delta=chosen[known],
        task=task[known],
        ids=np.arange(n),
    )


def measure(dataset, delta, k, *, samples: int, shared: bool, draws: int, networks) -> dict:
    third = len(delta) // 3
    truth = mean_over_sizes(delta[third:], k[third:])
    bands = [(k[third:] >= low) & (k[third:] < high) for low, high in BANDS]
    psi = np.stack([np.nanmean(delta[third:][band], axis=0) for band in bands], axis=1)
    middles = np.array([k[third:][band].mean() for band in bands])
    X, y = dataset.X[:N_POINTS], dataset.y[:N_POINTS]
    more = dataset.X[N_POINTS:], dataset.y[N_POINTS:]
    found: dict[str, list[tuple[float, ...]]] = {}
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        contributions = draw(delta[:third], k[:third], samples, shared, rng)
        n = np.bincount(contributions.point, minlength=N_POINTS)
        average = np.bincount(contributions.point, contributions.delta, N_POINTS) / n
        blank = (np.nan,) * 4
        found.setdefault("Monte Carlo", []).append((np.corrcoef(average, truth)[0, 1], *blank))
        for name in networks:
            begin = time.perf_counter()
            laws = NETWORKS[name].fit(contributions, X, y, more=more)
            seconds = time.perf_counter() - begin
            low, high = laws.interval(middles)
            covered = ((low <= psi) & (psi <= high)).mean(axis=0)
            r = np.corrcoef(laws.mean(SIZES).mean(axis=1), truth)[0, 1]
            found.setdefault(name, []).append((r, *covered, seconds))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=list(CASES))
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--samples", type=int, nargs="*", default=[10, 50])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--truth", type=int, default=2000, help="samples of a missing run")
    options = parser.parse_args()
    print("| data, loss | design | samples | estimator | correlation | coverage | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in options.only:
        metric = CASES[name]
        dataset = read(options.data, name)
        table = table_of(dataset, options.runs / f"{name}-{metric}", metric, options.truth)
        for samples in options.samples:
            for shared in (False, True):
                found = measure(
                    dataset,
                    *table,
                    samples=samples,
                    shared=shared,
                    draws=options.draws,
                    networks=options.networks,
                )
                design = "shared D" if shared else "own D"
                for estimator, rows in found.items():
                    r, *covered, seconds = np.mean(rows, axis=0)
                    hits = "" if np.isnan(seconds) else " ".join(f"{c:.2f}" for c in covered)
                    clock = "" if np.isnan(seconds) else f"{seconds:.0f}"
                    print(
                        f"| {name}, {metric} | {design} | {samples} | {estimator} | {r:.3f} | "
                        f"{hits} | {clock} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
