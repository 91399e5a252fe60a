r"""The amortized estimator and bayes with features, from the whole pool, against the truth.

Contributions of every point of a pool are collected once (`--to`; the same again to continue), as
the paper's network has them, networks are trained on those of some points, and values compared with
the truth from a grid of the same data (`apiece reproduce table1 --scale paper`), for the points
that the grid has.

    python benchmarks/amortized.py --data DIR --grid RUN --to runs/imdb-whole
    python benchmarks/amortized.py --data DIR --grid RUN --to runs/cifar10-whole --name cifar10 \
        --points 1000 5000 22000 --samples 10

Of CIFAR-10 ten samples of all points take half an hour of one core.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import apiece
from _results import Results
from _truth import INSIDE, Truth, dataset, positions
from apiece import uses
from apiece.estimators import Amortized, Bayes
from apiece.records import Contributions


def first(table: Contributions, samples: int) -> Contributions:
    """Return the first contributions of each point."""
    order = np.argsort(table.point, kind="stable")
    counts = table.counts()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return table.where(rank < samples)


def main() -> None:
    """Read the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="imdb", help="dataset")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--grid", type=Path, required=True, help="run that tells the truth")
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--points", type=int, nargs="+", default=[1000, 5000, 19_000])
    parser.add_argument("--samples", type=int, nargs="+", default=[10, 50])
    parser.add_argument("--families", nargs="*", default=["power", "series"], help="of networks")
    options = parser.parse_args()
    threadpool_limits(1)
    data = dataset(options.name, options.data)
    labels = np.asarray(data.labels())
    truth, _ = Truth.of(options.grid).value()
    known = positions(apiece.open(options.grid))
    # Of each point training sets of its own, or nearly: what few share is hardly in common.
    run = apiece.collect(
        data,
        metric="softmax_of_proba",
        sizes=INSIDE,
        samples=max(options.samples),
        share=200,
        random_state=5,
        to=options.to,
    )
    every = run.contributions()
    others = np.random.default_rng(0).permutation(np.setdiff1d(np.arange(data.n_pool), known))
    estimators = [*(Amortized(family) for family in options.families), Bayes()]
    words = ["Monte Carlo", *options.families, "bayes with features"]
    results = Results(
        f"amortized-{options.name}",
        {
            "points": "{:,}",
            "samples": "{}",
            **dict.fromkeys(words, "{:.3f}"),
            "seconds": ", ".join(["{:.0f}"] * len(estimators)),
        },
        options,
        chosen_on=["cifar10"],
        reported_on=[options.name],
    )
    for points in options.points:
        chosen = np.concatenate([known, others[: max(0, points - len(known))]])
        for samples in options.samples:
            table = first(every.of(chosen), samples)
            estimates = [np.bincount(table.point, table.delta) / table.counts()]
            took = []
            for estimator in estimators:
                started = time.process_time()
                laws = estimator.fit(table, X=data.features(chosen), y=labels[chosen])
                took.append(time.process_time() - started)
                estimates.append(uses.value(laws, sizes=INSIDE)["value"].to_numpy())
            scores = [np.corrcoef(v[: len(known)], truth)[0, 1] for v in estimates]
            results.add(len(chosen), samples, *scores, took)


if __name__ == "__main__":
    main()
