"""A random search for wrong numbers, against oracles in extended precision.

    python benchmarks/wrong_numbers.py --problems 10000 --seed 8000000

Problems and oracles are those of `tests/search.py`. A problem counts as wrong if a contribution
without a mark is off by more than 1e-4 of the mean size of contributions.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from _results import ROOT, Results

sys.path.insert(0, str(ROOT / "tests"))
import search

COLUMNS = {
    "kind": "{}",
    "problems judged": "{:,}",
    "contributions marked": "{:.2%}",
    "problems wrong": "{}",
    "largest error": "{:.0e}",
    "not judged": "{}",
}
NAMES = {
    "logistic2": "logistic, 2 classes",
    "logistic3": "logistic, 3 classes",
    "logistic5": "logistic, 5 classes",
    "poisson": "Poisson",
    "linear": "least squares",
    "ridge": "ridge",
    "knn": "nearest neighbours",
    "svm": "SVM",
    "platt": "SVM with probabilities",
    "mlp": "network",
    "svm3": "SVM, 3 classes",
    "platt3": "SVM with probabilities, 3 classes",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=10_000, help="over all kinds")
    parser.add_argument("--kind", choices=list(search.KINDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted call")
    options = parser.parse_args()
    kinds, seeds = search.plan(options.problems, options.kind, options.seed)
    results = Results("wrong-numbers", COLUMNS, options)
    if options.resume:
        results.resume()
    n_wrong = sum(row["problems wrong"] for row in results.content["rows"])
    with ProcessPoolExecutor(options.jobs) as pool:
        for kind in kinds:
            if results.has(kind=NAMES[kind]):
                continue
            found = search.find(kind, seeds, judged_by=partial(pool.map, chunksize=20))
            results.add(NAMES[kind], *found[1:])
            n_wrong += found.wrong
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
