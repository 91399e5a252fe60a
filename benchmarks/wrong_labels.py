"""Who ranks wrong labels best, with the same trusted rows for everybody, and at which cost?

Of each set a table and trusted rows are drawn and some labels of the table are flipped. Every
method gets both, and trains on the trusted rows where it trains. A cell is the area under the curve
of right against wrong labels, mean ± standard error over draws; times are processor time over that
of the self-confidence of logistic regression and a forest in five folds, which is cleanlab's
pipeline.

    nice -n 10 python benchmarks/wrong_labels.py --data DIR
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

import apiece
from _results import Results, summary
from apiece import uses
from apiece.uses import baselines
from decisions import corrupted, load

CHOSEN_ON = ("magic", "electricity", "spambase", "pol", "miniboone")
APART = ("adult", "imdb", "cifar10", "digits", "breast_cancer", "rings", "steps", "twenty")
METHODS: dict[str, Callable] = {
    "plausibility": lambda data, seed: uses.plausibility(data, random_state=seed)["plausibility"],
    "self_confidence": lambda data, seed: baselines.self_confidence(data, random_state=seed),
    "data_oob": lambda data, seed: baselines.data_oob(data, random_state=seed),
    "knn_shapley": lambda data, _: baselines.knn_shapley(data),
}


def one(name: str, share: float, seed: int, options) -> dict[str, tuple[float, float]]:
    """Return the area under the curve and the seconds of every method."""
    X, y = load(name, options.data, seed)
    n, end = options.n, options.n + options.trusted
    spread = X[:n].std(axis=0)
    X = (X - X[:n].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    noisy, is_wrong = corrupted(y[:n], share, seed, int(y.max()) + 1)
    dataset = apiece.Dataset.from_arrays(X[:n], noisy, X_val=X[n:end], y_val=y[n:end])
    found = {}
    for method, call in METHODS.items():
        started = time.process_time()
        table = call(dataset, seed)
        seconds = time.process_time() - started
        value = np.asarray(table).reshape(len(noisy), -1)[:, 0]
        found[method] = roc_auc_score(~is_wrong, value), seconds
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default=",".join((*APART, *CHOSEN_ON)))
    parser.add_argument("--flipped", default="0.05,0.1,0.2")
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--trusted", type=int, default=150)
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    sets = options.sets.split(",")
    columns = {"data": "{}", "wrong": "{:.0%}"} | dict.fromkeys(METHODS, "{:.3f} ± {:.3f}")
    columns |= {"lead over the best other": "{:+.3f} ± {:.3f}"}
    columns |= {f"{method}, time": "{:.2f}" for method in METHODS if method != "self_confidence"}
    results = Results("wrong-labels", columns, options, chosen_on=CHOSEN_ON, reported_on=sets)
    with threadpool_limits(1):
        one(sets[0], 0.1, 99, options)  # loads and warms what is loaded once
        for name in sets:
            for share in map(float, options.flipped.split(",")):
                found = [one(name, share, seed, options) for seed in range(options.draws)]
                auc = np.array([[each[method][0] for method in METHODS] for each in found])
                seconds = np.array([[each[method][1] for method in METHODS] for each in found])
                lead = auc[:, 0] - auc[:, 1 + int(auc[:, 1:].mean(axis=0).argmax())]
                cost = seconds.sum(axis=0) / seconds[:, 1].sum()
                cells = [*map(summary, auc.T), summary(lead)]
                results.add(name, share, *cells, cost[0], *cost[2:])


if __name__ == "__main__":
    main()
