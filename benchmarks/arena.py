"""Train on the first k points of an order, for all k: whose order gives the best models?

The arena of SeqDataVal (Table 3): 500 training rows, 50 validation rows, 500 test rows, logistic
regression, test accuracy averaged over the sizes of the top k. Every method gets the training and
the validation rows, and at most 1,000 model fits (`sequence` takes about 160). Published means are
for their versions of the data and their sizes; so that they can be compared, chance is run here
too, and the lead over chance stands next to the lead of the best published method.

    nice -n 10 python benchmarks/arena.py --data DIR --published published_seqdataval_table3.csv
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import apiece
from _results import Results, summary
from apiece.uses import baselines, sequence
from decisions import load as load_table

SETS = ("electricity", "fried", "miniboone", "digits")
CHOSEN_ON = ("electricity",)
WAYS = ("sequence", "random", "data_oob", "knn_shapley", "leave_one_out")
N, N_VALIDATION, N_TEST = 500, 50, 500


def load(name: str, folder: Path, seed: int):
    """Return standardised rows in a random order; fried has two classes, split at the median."""
    if name == "fried":
        X, quantity = make_friedman1(4_000, noise=1.0, random_state=0)
        y = (quantity > np.median(quantity)).astype(np.int64)
        order = np.random.default_rng(seed).permutation(len(X))
        X, y = X[order], y[order]
    else:
        X, y = load_table(name, folder, seed)
    spread = X[:N].std(axis=0)
    return (X - X[:N].mean(axis=0)) / np.where(spread > 0, spread, 1.0), y


def orders(dataset, seed: int) -> dict[str, np.ndarray]:
    """Return positions of the points, best first, by method."""
    values = {
        "random": baselines.random_values(dataset, random_state=seed),
        "data_oob": baselines.data_oob(dataset, n_models=200, random_state=seed),
        "knn_shapley": baselines.knn_shapley(dataset),
    }
    if dataset.n_classes == 2:  # with more classes it takes minutes
        values["leave_one_out"] = baselines.leave_one_out(dataset, model="logistic")
    found = {way: np.argsort(-table["value"], kind="stable") for way, table in values.items()}
    found = {way: np.asarray(order) for way, order in found.items()}
    ours = sequence(dataset, model="logistic", random_state=seed)
    return {"sequence": dataset.positions(ours.index)} | found


def accuracy(X, y, rows, test) -> float:
    """Return the test accuracy of a model of some rows."""
    if len(np.unique(y[rows])) < 2:
        return float((y[test] == y[rows][0]).mean())
    return LogisticRegression(max_iter=1_000).fit(X[rows], y[rows]).score(X[test], y[test])


def one(name: str, seed: int, options) -> dict[str, float]:
    """Return the mean accuracy over sizes by method, of one draw."""
    X, y = load(name, options.data, seed)
    end = N + N_VALIDATION
    dataset = apiece.Dataset.from_arrays(X[:N], y[:N], X_val=X[N:end], y_val=y[N:end])
    test = slice(end, end + N_TEST)
    sizes = range(options.step, N + 1, options.step)
    return {
        way: float(np.mean([accuracy(X, y, order[:k], test) for k in sizes]))
        for way, order in orders(dataset, seed).items()
    }


def published(file: Path, name: str) -> dict[str, float]:
    """Return published means by method."""
    with file.open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["dataset"].lower() == name]
    return {row["method"]: float(row["paper_mean"]) for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--published", type=Path, required=True)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--step", type=int, default=25, help="between sizes")
    options = parser.parse_args()
    results = Results(
        "arena",
        {
            "data": "{}",
            **dict.fromkeys(WAYS, "{:.3f} ± {:.3f}"),
            "lead over random": "{:+.3f} ± {:.3f}",
            "published random": "{:.3f}",
            "published best": "{:.3f}",
            "published Bipartite": "{:.3f}",
            "published lead": "{:+.3f}",
        },
        options,
        chosen_on=CHOSEN_ON,
        reported_on=options.sets.split(","),
    )
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in options.sets.split(","):
            found = [one(name, seed, options) for seed in range(options.seeds)]
            cells = [summary([each[way] for each in found if way in each]) for way in WAYS]
            lead = summary([each["sequence"] - each["random"] for each in found])
            known = published(options.published, name)
            best = max(known.values())
            before = [known["Random"], best, known["Bipartite"], best - known["Random"]]
            results.add(name, *cells, lead, *before)


if __name__ == "__main__":
    main()
