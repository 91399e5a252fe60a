"""Point addition: which selection of candidates helps most, at two sizes.

Laws of the candidates are fitted once; then every selection joins the same random training sets,
and the gain is measured on test rows that had no part in it. Needs the folder of datasets
(`--data`), each an npz with `X` and `y`. Runs and gains are kept in `--to`, so that a benchmark
that was interrupted goes on where it was; `--minutes` ends it early.

    python benchmarks/selection.py --data DIR --to runs/selection
    python benchmarks/selection.py --data DIR --to runs/selection --take 50 --sizes 200,2000
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import apiece
from apiece.sampling import Design, make_plan

N_POOL, N_TEST = 6000, 8000
DEADLINE = float("inf")


def load(path: Path, options):
    """Return a standardised dataset with candidates, and test rows beside it."""
    with np.load(path) as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(np.int64)
    order = np.random.default_rng(options.seed).permutation(len(X))
    cuts = np.cumsum([N_POOL, options.candidates, options.validation, N_TEST])
    pool, candidates, validation, test = np.split(order[: cuts[-1]], cuts[:-1])
    X = (X - X[pool].mean(axis=0)) / np.where(X[pool].std(axis=0) > 0, X[pool].std(axis=0), 1.0)
    dataset = apiece.Dataset.from_arrays(
        X[pool],
        y[pool],
        X_val=X[validation],
        y_val=y[validation],
        candidates=(X[candidates], y[candidates]),
    )
    return dataset, X[test], y[test]


def selections(file: Path, dataset, run, take: int, at: int, sizes) -> dict[str, list[int]]:
    """Return the ids that each way of selecting picks at a size, from the file if it has them."""
    if file.exists():
        return {word: ids.tolist() for word, ids in pd.read_csv(file).items()}
    stop_if_late()
    laws, started = apiece.fit(run), time.process_time()
    asked = {"take": take, "at": at, "dataset": dataset}
    chosen = {
        f"together {at}": apiece.select(laws, **asked, redundancy="aware").index,
        f"alone {at}": apiece.select(laws, **asked, redundancy="none").index,
        "Shapley by samples": apiece.value(run, sizes=sizes, source="samples")
        .nlargest(take, "value")
        .index,
    }
    took = time.process_time() - started
    print(f"# {file.stem}: {took:.0f} s of processor time", file=sys.stderr)
    pd.DataFrame(chosen).to_csv(file, index=False)
    return chosen


def stop_if_late() -> None:
    if time.monotonic() > DEADLINE:
        sys.exit("# time is up; repeat the command to go on")


def score(dataset, test, rows):
    """Return the log likelihood of every test row under a model trained on rows."""
    X_test, y_test = test
    model = LogisticRegression(solver="newton-cholesky", tol=1e-8)
    margin = model.fit(dataset.points_X[rows], dataset.points_y[rows]).decision_function(X_test)
    return -np.logaddexp(0.0, np.where(y_test == 1, -margin, margin))


def measure(file: Path, dataset, test, chosen, take: int, at: int, repeats: int) -> None:
    """Add every selection to training sets that the file lacks, and keep the gains.

    The file holds ``sets``, the mean log likelihood of the test rows by training set and selection,
    and ``rows``, the sum over training sets by selection and test row.
    """
    plan = make_plan(
        Design.of([at], name="grid", samples=repeats),
        n_pool=dataset.n_pool,
        points=np.arange(dataset.n_pool, dataset.n_points),
        seed=99,
        strata=dataset.y,
    )
    picks = {word: dataset.positions(ids) for word, ids in chosen.items()}
    names = [*picks, "random"]
    sets, rows = np.empty((0, len(names))), np.zeros((len(names), len(test[1])))
    if file.exists():
        with np.load(file) as known:
            sets, rows = known["sets"], known["rows"]
    while len(sets) < repeats:
        stop_if_late()
        for _ in range(20):
            subset, rng = plan[len(sets)].subset, np.random.default_rng((99, len(sets)))
            picks["random"] = rng.choice(np.arange(dataset.n_pool, dataset.n_points), take, False)
            told = [score(dataset, test, np.append(subset, picks[word])) for word in names]
            rows += np.stack(told)
            sets = np.vstack([sets, np.mean(told, axis=1)])
        np.savez(file, sets=sets, rows=rows, names=names)


def show(name: str, take: int, at: int, sizes, file: Path) -> None:
    """Print gains over random candidates, and over picks together at this size, in thousandths."""
    with np.load(file) as known:
        sets, names = 1000 * known["sets"], known["names"].tolist()
        rows = 1000 * known["rows"] / len(sets)
    other = sizes[0] + sizes[1] - at
    ways = [f"together {at}", f"together {other}", f"alone {at}", f"alone {other}"]
    ways += ["Shapley by samples"]

    def gap(word: str, base: str) -> str:
        """Write a difference, whose error has two parts: from training sets and test rows."""
        one, two = names.index(word), names.index(base)
        by_set, by_row = sets[:, one] - sets[:, two], rows[one] - rows[two]
        error = np.hypot(by_set.std(ddof=1) / len(sets) ** 0.5, by_row.std() / len(by_row) ** 0.5)
        return f"{by_set.mean():.2f} ± {error:.2f}"

    print(f"# {len(sets)} training sets; {', '.join(ways)}")
    for base in ("random", ways[0]):
        cells = [gap(word, base) for word in ways]
        print(f"| {name}, {take} to {at:,}, over {base} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--datasets", default="higgs,magic,adult,imdb")
    parser.add_argument("--candidates", type=int, default=500)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--take", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--sizes", default="100,1000")
    parser.add_argument("--validation", type=int, default=4000)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    global DEADLINE
    DEADLINE = time.monotonic() + 60 * options.minutes
    low, high = (int(size) for size in options.sizes.split(","))
    with threadpool_limits(1):
        for name in options.datasets.split(","):
            one(name, (low, high), options)


def one(name: str, sizes, options) -> None:
    """Measure both sizes on one dataset."""
    dataset, *test = load(options.data / f"{name}.npz", options)
    run = apiece.collect(
        dataset,
        points=[],
        sizes=sizes,
        samples=options.samples,
        random_state=0,
        progress=False,
        to=options.to / f"{name}-{sizes[0]}-{sizes[1]}",
    )
    chosen = {}
    for at in sizes:
        file = options.to / f"{name}-{options.take}-{at}.picks.csv"
        chosen |= selections(file, dataset, run, options.take, at, sizes)
    for at in sizes:
        file = options.to / f"{name}-{options.take}-{at}.npz"
        measure(file, dataset, test, chosen, options.take, at, options.repeats)
        show(name, options.take, at, sizes, file)


if __name__ == "__main__":
    main()
