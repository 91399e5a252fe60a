"""Point addition: which selection of candidates helps most, at two sizes.

The data are split anew several times into a pool, candidates, validation and test rows. In each
split laws of the candidates are fitted once; then every selection joins the same random training
sets of the pool, and the gain is measured on the test rows. Needs the folder of datasets
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
from _results import Results
from apiece.collection import Design, make_plan

N_POOL, N_TEST = 6000, 8000
WAYS = ["together, this size", "together, other size", "alone, this size", "alone, other size"]
WAYS += ["Shapley by samples"]
CHOSEN_ON = ("higgs", "magic", "adult", "imdb")  # the ways were compared on these
DEADLINE = float("inf")


def load(path: Path, split: int, options):
    """Return a standardised dataset with candidates, and test rows."""
    with np.load(path) as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(np.int64)
    order = np.random.default_rng(split).permutation(len(X))
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


def score(dataset, test, rows) -> float:
    """Return the mean log likelihood of the test rows under a model trained on rows."""
    X_test, y_test = test
    model = LogisticRegression(solver="newton-cholesky", tol=1e-8)
    margin = model.fit(dataset.points_X[rows], dataset.points_y[rows]).decision_function(X_test)
    return -np.logaddexp(0.0, np.where(y_test == 1, -margin, margin)).mean()


def measure(file: Path, dataset, test, chosen, take: int, at: int, repeats: int) -> None:
    """Add every selection to random training sets, and keep the log likelihood of the test rows."""
    if file.exists():
        return
    stop_if_late()
    candidates = np.arange(dataset.n_pool, dataset.n_points)
    plan = make_plan(
        Design.of([at], name="grid", samples=repeats),
        n_pool=dataset.n_pool,
        points=candidates,
        seed=99,
        strata=dataset.y,
    )
    picks = {word: dataset.positions(ids) for word, ids in chosen.items()}
    rows = []
    for index in range(repeats):
        picks["random"] = np.random.default_rng((99, index)).choice(candidates, take, False)
        sets = {word: np.append(plan[index].subset, more) for word, more in picks.items()}
        rows.append({word: score(dataset, test, rows) for word, rows in sets.items()})
    pd.DataFrame(rows).to_csv(file, index=False)


def show(results: Results, name: str, take: int, at: int, sizes, files: list[Path]) -> None:
    """Add gains over random candidates, and over picks together at this size, in thousandths.

    Errors are those of the mean over splits, which differ in all their rows.
    """
    files = [file for file in files if file.exists()]
    splits = pd.DataFrame([1000 * pd.read_csv(file).mean() for file in files])
    other = sizes[0] + sizes[1] - at
    ways = [f"together {at}", f"together {other}", f"alone {at}", f"alone {other}"]
    ways += ["Shapley by samples"]
    for base, word in (("random", "random"), (ways[0], WAYS[0])):
        gaps = splits[ways].sub(splits[base], axis=0)
        cells = [[gaps[way].mean(), gaps[way].sem()] for way in ways]
        results.add(name, take, at, word, *cells, len(splits))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--datasets", default="higgs,magic,adult,imdb")
    parser.add_argument("--candidates", type=int, default=500)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--take", type=int, default=20)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=40, help="training sets in each split")
    parser.add_argument("--sizes", default="100,1000")
    parser.add_argument("--validation", type=int, default=4000)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    options = parser.parse_args()
    global DEADLINE
    DEADLINE = time.monotonic() + 60 * options.minutes
    low, high = (int(size) for size in options.sizes.split(","))
    results = Results(
        f"selection-{options.take}-{low}-{high}",
        {
            "data": "{}",
            "picks": "{}",
            "added to": "{:,}",
            "gain over": "{}",
            **dict.fromkeys(WAYS, "{:.2f} ± {:.2f}"),
            "splits": "{}",
        },
        options,
        chosen_on=CHOSEN_ON,
        reported_on=options.datasets.split(","),
        has_earlier_rows=options.to.exists(),
    )
    with threadpool_limits(1):
        for name in options.datasets.split(","):
            for split in range(options.splits):
                one(name, split, (low, high), options)
            for at in (low, high):
                files = [_gains(options, name, at, split) for split in range(options.splits)]
                show(results, name, options.take, at, (low, high), files)


def one(name: str, split: int, sizes, options) -> None:
    """Measure both sizes on one split of a dataset."""
    dataset, *test = load(options.data / f"{name}.npz", split, options)
    run = apiece.collect(
        dataset,
        points=[],
        sizes=sizes,
        samples=options.samples,
        random_state=split,
        progress=False,
        to=options.to / f"{name}-{sizes[0]}-{sizes[1]}-{split}",
    )
    chosen = {}
    for at in sizes:
        file = _gains(options, name, at, split).with_suffix(".picks.csv")
        chosen |= selections(file, dataset, run, options.take, at, sizes)
    for at in sizes:
        file = _gains(options, name, at, split)
        measure(file, dataset, test, chosen, options.take, at, options.repeats)


def _gains(options, name: str, at: int, split: int) -> Path:
    return options.to / f"{name}-{options.take}-{at}-{split}.csv"


if __name__ == "__main__":
    main()
