"""Of pairs of points, or of groups, how many are ordered rightly at a size that was not sampled?

Points, or five rows of groups of look-alikes, are valued at sizes up to 400 with few samples each,
and ordered by their laws at 800, or by the mean of their contributions at the largest sampled
sizes. The truth is the mean of many contributions at 800. Training sets and scoring rows are drawn
anew each time. Pairs count whose true difference is more than two standard errors; both methods
have the same contributions, so the same compute.

    nice -n 10 python benchmarks/decision_accuracy.py --data DIR
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import apiece
from _results import Results, summary
from apiece.uses import baselines
from decisions import load

CHOSEN_ON = ("magic", "electricity", "pol", "rings")
TARGET, N = 800, 2_000
GROUP, JOIN = 40, 5  # rows in a group, and how many of them join at once


def pairs_right(value, truth, error) -> float:
    """Return the share of sure pairs that are ordered as the truth has it, ties as half.

    It is nan without any.
    """
    first, second = np.triu_indices(len(truth), 1)
    gap = truth[first] - truth[second]
    is_sure = np.abs(gap) > 2 * np.hypot(error[first], error[second])
    agrees = np.nan_to_num(np.sign(value[first] - value[second]) * np.sign(gap))  # unknown: a tie
    return float((1 + agrees[is_sure]).mean() / 2) if is_sure.any() else np.nan


def prepared(name: str, is_grouped: bool, seed: int, options):
    """Return a dataset, the points or groups, and their true contributions with errors."""
    X, y = (each[:N] for each in load(name, options.data, seed))
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    groups = np.full(N, "", dtype=object)
    if is_grouped:
        alike = np.array_split(np.lexsort((X[:, 0], y)), N // GROUP)
        for number, rows in enumerate(alike[:: max(1, len(alike) // options.groups)]):
            groups[rows] = f"g{number:03d}"
    dataset = apiece.Dataset.from_arrays(X, y, validation=0, groups=groups if is_grouped else None)
    points = None if is_grouped else dataset.ids[: options.points]
    table = collected(
        dataset, points, (TARGET, TARGET), options.truth, 1_000 + seed
    ).contributions()
    points = table.ids if is_grouped else points
    each = [table.delta[table.point == list(table.ids).index(name)] for name in points]
    truth = np.array([np.nanmean(one) for one in each])
    error = np.array([np.nanstd(one) / np.sqrt(len(one)) for one in each])
    return dataset, points, truth, error


def collected(dataset, points, sizes, samples: int, seed: int):
    return apiece.collect(
        dataset,
        points=points,
        group_size=None if points is not None else JOIN,
        sizes=sizes,
        samples=samples,
        model="logistic",
        random_state=seed,
        progress=False,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default="magic,electricity,pol,miniboone,spambase,higgs")
    parser.add_argument("--samples", default="5,20,80")
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--groups", type=int, default=25)
    parser.add_argument("--truth", type=int, default=200)
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    results = Results(
        "decision-accuracy",
        {
            "data": "{}",
            "of": "{}",
            "samples": "{}",
            "seconds": "{:.1f}",
            "laws at 800": "{:.3f} ± {:.3f}",
            "mean at the largest size": "{:.3f} ± {:.3f}",
        },
        options,
        chosen_on=CHOSEN_ON,
        reported_on=options.sets.split(","),
    )
    with threadpool_limits(1):
        for name, of in product(options.sets.split(","), ("points", "groups")):
            is_grouped = of == "groups"
            known = [prepared(name, is_grouped, seed, options) for seed in range(options.draws)]
            for samples in map(int, options.samples.split(",")):
                shares, seconds = [], []
                for seed, (dataset, points, truth, error) in enumerate(known):
                    started = time.process_time()
                    asked = None if is_grouped else points
                    run = collected(dataset, asked, (50, 400), samples, seed)
                    laws = apiece.fit(run)
                    seconds.append(time.process_time() - started)
                    ours = pd.Series(laws.mean(float(TARGET)), laws.ids)
                    mean = baselines.largest_size_mean(run)["value"]
                    values = [each.loc[list(points)].to_numpy() for each in (ours, mean)]
                    shares.append([pairs_right(each, truth, error) for each in values])
                known_shares = [each for each in shares if np.isfinite(each).all()]
                cells = map(summary, np.transpose(known_shares or np.empty((0, 2))))
                results.add(name, of, samples, np.mean(seconds), *cells)


if __name__ == "__main__":
    main()
