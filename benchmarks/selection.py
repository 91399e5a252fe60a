"""Point addition: which selection of 20 candidates helps most, at 100 and at 1,000 points.

Laws of the candidates are fitted once; then every selection joins the same random training sets,
and the gain is measured on test rows that had no part in it. Needs the folder of datasets
(`--data`), each an npz with `X` and `y`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import apiece
from apiece.sampling import Design, make_plan

N_POOL, N_VALIDATION, N_TEST, SIZES = 6000, 1000, 4000, (100, 1000)


def load(path: Path, n_candidates: int, seed: int):
    """Return a standardised dataset with candidates, and test rows beside it."""
    with np.load(path) as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(np.int64)
    order = np.random.default_rng(seed).permutation(len(X))
    cuts = np.cumsum([N_POOL, n_candidates, N_VALIDATION, N_TEST])
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


def by_kernel(dataset, laws, take: int, at: int, width: float = 1.0):
    """Pick one by one, discounting by an RBF kernel the points of a class that are like picks."""
    rows = dataset.positions(laws.ids)
    X, y = dataset.features(rows), dataset.targets(rows)
    square = (X**2).sum(axis=1)
    far = np.maximum(square[:, None] + square - 2 * X @ X.T, 0.0)
    alike = np.exp(-far / (2 * width * np.median(far))) * (y[:, None] == y)
    value, left, picks = laws.mean(at), np.ones(len(rows)), []
    for _ in range(take):
        gain = value * left
        gain[picks] = -np.inf
        picks.append(int(np.argmax(gain)))
        left *= 1 - alike[picks[-1]]
    return laws.ids[picks]


def selections(dataset, run, laws, take: int, at: int):
    """Return ids by selection, and the seconds that the redundancy-aware one took."""
    other = SIZES[0] + SIZES[1] - at
    started = time.perf_counter()
    aware = apiece.select(laws, take=take, at=at, redundancy="aware", dataset=dataset).index
    seconds = time.perf_counter() - started
    shapley = apiece.value(run, sizes=SIZES, source="samples")
    return {
        "at this size": apiece.select(laws, take=take, at=at).index,
        "at the other size": apiece.select(laws, take=take, at=other).index,
        "Shapley by samples": shapley.nlargest(take, "value").index,
        "balanced classes": apiece.select(laws, take=take, at=at, quotas="balanced").index,
        "kernel on features": by_kernel(dataset, laws, take, at),
        "redundancy aware": aware,
    }, seconds


def gain(dataset, test, subset, picks):
    """Return by how much the picks lower the log loss, and raise the accuracy, on test rows."""
    X_test, y_test = test

    def score(rows):
        model = LogisticRegression(solver="newton-cholesky", tol=1e-8)
        proba = model.fit(dataset.points_X[rows], dataset.points_y[rows]).predict_proba(X_test)
        true = np.clip(proba[np.arange(len(y_test)), y_test], 1e-15, 1)
        return -np.log(true).mean(), (proba.argmax(axis=1) == y_test).mean()

    before, after = score(subset), score(np.concatenate([subset, picks]))
    return before[0] - after[0], after[1] - before[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--datasets", default="higgs,magic,adult,imdb")
    parser.add_argument("--candidates", type=int, default=500)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--take", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--at", type=int, choices=SIZES, action="append")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name in options.datasets.split(","):
        dataset, *test = load(options.data / f"{name}.npz", options.candidates, options.seed)
        with threadpool_limits(1):
            run = apiece.collect(
                dataset,
                points=[],
                sizes=SIZES,
                samples=options.samples,
                random_state=0,
                progress=False,
            )
            laws = apiece.fit(run)
            for at in options.at or SIZES:
                compare(name, dataset, test, run, laws, at, options)


def compare(name, dataset, test, run, laws, at: int, options) -> None:
    chosen, seconds = selections(dataset, run, laws, options.take, at)
    plan = make_plan(
        Design.of([at], name="grid", samples=options.repeats),
        n_pool=dataset.n_pool,
        points=np.arange(dataset.n_pool, dataset.n_points),
        seed=99,
        strata=dataset.y,
    )
    rng = np.random.default_rng(99)
    rows: dict[str, list] = {word: [] for word in (*chosen, "random")}
    for index in range(options.repeats):
        subset = plan[index].subset
        picks = {word: dataset.positions(ids) for word, ids in chosen.items()}
        picks["random"] = dataset.n_pool + rng.choice(options.candidates, options.take, False)
        for word in rows:
            rows[word].append(gain(dataset, test, subset, picks[word]))
    print(f"\n{name}, {options.take} points added to {at:,} (aware: {seconds:.0f} s)")
    print("| selection | log loss gained, 1/1000 | over random | accuracy, % | over random |")
    print("| --- | --- | --- | --- | --- |")
    chance = np.array(rows["random"])
    for word, gains in rows.items():
        mean = np.mean(gains, axis=0) * [1000, 100]
        over = (np.array(gains) - chance) * [1000, 100]
        error = over.std(axis=0) / np.sqrt(len(over))
        print(
            f"| {word} | {mean[0]:.2f} | {over[:, 0].mean():.2f} ± {error[0]:.2f} "
            f"| {mean[1]:.2f} | {over[:, 1].mean():.2f} ± {error[1]:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
