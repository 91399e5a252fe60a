"""Whether networks trained in single precision have the contributions of double precision.

At the kink of a ReLU, rounding decides on which side a point lies, so single contributions differ.
Laws and values need their means over training sets. For the same training sets and points, this
compares the engines ``mlp`` and ``mlp-single``:

- correlation: of single contributions;
- shift: mean difference over all points, in mean absolute contributions, with its standard error
  over training sets;
- z: root mean square over points of the mean difference in its standard errors. Without a shift
  it is near the given number, that of a t distribution;
- variance: that of single precision relative to double, averaged over points, with a standard
  error over training sets (jackknife);
- time: processor time relative to double precision, measured in one process.

    OMP_NUM_THREADS=1 python benchmarks/single_precision.py --data DIR [--sets miniboone imdb]

DIR holds miniboone.npz and others, with X and y.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from _results import Results
from apiece import Dataset
from apiece.collection import Design, make_plan
from apiece.engines import choose_engine

N_POOL, N_VALIDATION = 3_000, 1_000
COLUMNS = {
    "data": "{}",
    "k": "{:,}",
    "training sets": "{}",
    "points": "{}",
    "correlation": "{:.4f}",
    "shift": "{:.4f} ± {:.4f}",
    "z": "{:.2f}",
    "z expected": "{:.2f}",
    "variance": "{:.3f} ± {:.3f}",
    "time": "{:.2f}",
}


def load(path: Path) -> Dataset:
    with np.load(path) as arrays:
        X, y = (arrays[name][: N_POOL + N_VALIDATION] for name in ("X", "y"))
    X = X.astype(np.float64)
    return Dataset.from_arrays(
        X[:N_POOL], y[:N_POOL], X_val=X[N_POOL:], y_val=y[N_POOL:], standardize=True
    )


def contributions(data: Dataset, k: int, n: int, points: int, engine: str) -> tuple:
    """Return contributions, shape ``(n, points)``, and the processor time."""
    chosen, _ = choose_engine(data, model="mlp", metric="log_loss", engine=engine)
    plan = make_plan(
        Design.of([k], name="grid", n_sizes=1, samples=2 * n),
        n_pool=data.n_pool,
        points=np.arange(0, data.n_pool, data.n_pool // points)[:points],
        seed=k,
        strata=np.asarray(data.y),
    )
    delta = np.full((n, data.n_pool), np.nan)  # a point has none for the sets that hold it
    start = time.process_time()
    for i in range(n):
        delta[i, plan[i].points] = chosen.run(plan[i]).delta
    seconds = time.process_time() - start
    return delta[:, np.isfinite(delta).sum(axis=0) > 2], seconds


def compare(name: str, data: Dataset, k: int, n: int, points: int) -> list:
    double, seconds = contributions(data, k, n, points, "mlp")
    single, fewer = contributions(data, k, n, points, "mlp-single")
    known, size = np.isfinite(double), np.nanmean(np.abs(double))
    differences = single - double
    over_sets = np.nanmean(differences, axis=1) / size
    counts = known.sum(axis=0)
    z = np.nanmean(differences, axis=0) / (np.nanstd(differences, axis=0, ddof=1) / counts**0.5)
    expected = np.mean((counts - 1) / np.maximum(counts - 3, 1)) ** 0.5

    def ratio(rows: np.ndarray) -> float:
        return float(
            np.nanvar(single[rows], axis=0).mean() / np.nanvar(double[rows], axis=0).mean()
        )

    without = [ratio(np.delete(np.arange(n), i)) for i in range(n)]
    error = ((n - 1) * np.var(without)) ** 0.5
    return [
        *(name, k, n, single.shape[1], np.corrcoef(single[known], double[known])[0, 1]),
        [over_sets.mean(), over_sets.std(ddof=1) / n**0.5],
        *(np.sqrt(np.mean(z**2)), expected, [ratio(np.arange(n)), error], fewer / seconds),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the .npz files")
    parser.add_argument("--sets", nargs="+", default=["miniboone", "higgs", "imdb"])
    parser.add_argument("--k", type=int, nargs="+", default=[100, 316, 1000])
    parser.add_argument("--n", type=int, default=16, help="training sets of each size")
    parser.add_argument("--points", type=int, default=32)
    options = parser.parse_args()
    results = Results("single-precision", COLUMNS, options)
    with threadpool_limits(1):
        for name in options.sets:
            data = load(options.data / f"{name}.npz")
            for k in options.k:
                results.add(*compare(name, data, k, options.n, options.points))


if __name__ == "__main__":
    main()
