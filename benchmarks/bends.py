"""Do curves bend more than a law can? The best series law through the truth itself.

The truth of 200 points at seven sizes is measured as in ``truth.py``, from rows that are not in the
table. The series law nearest to each true curve has no noise to speak of: what it misses, no
estimator with this law can find from any number of contributions. It is found by least squares with
the weights of noise whose variance falls as 1/k^2.5, as it does for small models, and of noise that
is the same at all sizes, as for the 257 parameters of IMDB. ``r with 150`` is the correlation over
points of the truth with that at 150 training rows; where it is negative, points that help at one
size harm at the other.
``parameters`` is how many a model has: curves bend where training sets have about as many rows.

    python benchmarks/bends.py --data DIR
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

import apiece
import truth
from _results import Results
from apiece.laws import Series

SIZES = (100, 150, 220, 320, 470, 680, 1000)
WAYS = {"falling noise": 2.5, "even noise": 0.0}  # decay of the variance of contributions


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=["imdb", "twonorm", "magic"])
    parser.add_argument("--rows", type=int, default=3500)
    parser.add_argument("--truth", type=int, default=150, help="training sets of each size")
    options = parser.parse_args()
    warnings.simplefilter("ignore", apiece.ApieceWarning)
    columns = {"data": "{}", "parameters": "{:,}", "k": "{:,}", "r with 150": "{:.2f}"}
    columns |= {f"R2, {way}": "{:.2f}" for way in WAYS} | {"reliability of truth": "{:.2f}"}
    results = Results("bends", columns, options, reported_on=set(options.sets))
    basis = Series().basis(np.array(SIZES, dtype=float))
    for name in options.sets:
        data = truth.standardised(truth.load(options.data, name, 0), options.rows)
        others, valued = slice(options.rows, None), slice(truth.N_VALUED)
        psi, error = truth.measured(data, others, valued, options.truth, sizes=SIZES)
        laws = [nearest(psi, basis, decay) for decay in WAYS.values()]
        n_classes = 1 if data.is_regression else len(np.unique(data.y))
        n_parameters = (data.X.shape[1] + 1) * (n_classes if n_classes > 2 else 1)
        for j, k in enumerate(SIZES):
            total = ((psi[j] - psi[j].mean()) ** 2).sum()
            r2 = [1 - float(((psi[j] - law[j]) ** 2).sum() / total) for law in laws]
            r = float(np.corrcoef(psi[j], psi[1])[0, 1])
            noise = float((error[j] ** 2).mean() / psi[j].var())
            results.add(name, n_parameters, k, r, *r2, 1 - noise)


def nearest(psi: np.ndarray, basis: np.ndarray, decay: float) -> np.ndarray:
    """Return the sums of terms nearest to curves, for noise whose variance falls as 1/k^decay."""
    weight = np.array(SIZES, dtype=float)[:, None] ** (decay / 2)
    params, *_ = np.linalg.lstsq(weight * basis, weight * psi, rcond=None)
    return basis @ params


if __name__ == "__main__":
    main()
