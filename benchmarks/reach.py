"""Beyond the sampled sizes: do intervals cover, and does the status say where they may not?

    python benchmarks/reach.py --data DIR [--sets pol,magic]

Laws are fitted to contributions of 150 points at 50 to 300 and at 100 to 1,000 training points, and
asked about larger sizes, where contributions to other training sets are the truth. With fixed
scoring rows the truth has the same validation set; with rotating ones it is drawn from other rows.
``plain`` is the coverage without widening. Settings were chosen on the sets in `CHOSEN_ON`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import apiece
from _results import Results
from _truth import means_at
from apiece.laws.beyond import quiet
from apiece.records import Contributions
from loss_law import Rows, is_classes, load

CHOSEN_ON = ("california_housing", "spambase", "logits")
APART = ("pol", "electricity", "magic", "friedman", "blobs")
RANGES = ((50, 300), (100, 1000))
FAR = (750, 2500, 3000)
N_POINTS = 150
COLUMNS = {
    "set": "{}",
    "part": "{}",
    "scoring": "{}",
    "sizes": "{}",
    "samples": "{}",
    "k": "{:,}",
    "reach": "{:,}",
    "status": "{}",
    "R²": "{:.2f}",
    "plain": "{:.2f}",
    "coverage of 90 %": "{:.2f}",
}


def first_tasks(table: Contributions, samples: int) -> Contributions:
    """Return contributions of as many tasks as give each point about ``samples``."""
    tasks = np.unique(table.task)
    share = min(1.0, samples / table.counts().mean())
    return table.where(np.isin(table.task, tasks[: round(share * len(tasks))]))


def runs(rows: Rows, scoring: str) -> Iterator[tuple[Any, Contributions]]:
    """Collect in each range of sizes, then yield the truth as ``None`` and its contributions."""
    kind = "classification" if is_classes(rows.y) else "regression"
    order = np.random.default_rng(0).permutation(len(rows.y))
    X, y, n = rows.X[order], rows.y[order], len(rows.y)
    settings: dict[str, Any] = {"progress": False, "anchor": False}
    if scoring == "fixed":
        held, pool = slice(0, min(1000, n // 5)), slice(min(1000, n // 5), 11_000)
        data = apiece.Dataset.from_arrays(X[pool], y[pool], X_val=X[held], y_val=y[held], kind=kind)
        truth, most, points = data, 0.8 * data.n_pool, range(N_POINTS)
    else:
        own = 3000 if n > 12_000 else 1500
        data = apiece.Dataset.from_arrays(X[:own], y[:own], validation=0, kind=kind)
        others = slice(own, own + 12_000)
        truth = apiece.Dataset.from_arrays(
            X[others],
            y[others],
            validation=0,
            kind=kind,
            candidates=(X[:N_POINTS], y[:N_POINTS]),
        )
        most, points = 0.69 * truth.n_pool, range(0)
    for sizes in RANGES:
        if sizes[1] < 0.69 * data.n_pool:
            yield (
                sizes,
                apiece.collect(
                    data,
                    points=range(N_POINTS),
                    sizes=sizes,
                    samples=400 if scoring == "fixed" else 100,
                    random_state=1,
                    **settings,
                ).contributions(),
            )
    far = [k for k in FAR if k < most]
    wanted = {"design": "grid", "samples": 100 * len(far), "random_state": 2}
    yield (
        None,
        apiece.collect(truth, points=points, sizes=far, **wanted, **settings).contributions(),
    )


def judged(laws: apiece.Laws, k: int, truth: Contributions) -> list[Any]:
    """Compare laws with the truth at one size."""
    mean, error = means_at(truth, k)
    plain = replace(laws, attrs={**laws.attrs, "beyond": None})
    cells: list[Any] = []
    with quiet():
        predicted = laws.mean(k)
        signal = max(mean.var() - (error**2).mean(), 1e-300)
        r2 = 1 - (((mean - predicted) ** 2).mean() - (error**2).mean()) / signal
        for each in (plain, laws):
            low, high = each.interval(k)
            reach = np.where(mean > predicted, high - predicted, predicted - low)
            cells.append((np.abs(mean - predicted) <= np.hypot(reach, 1.645 * error)).mean())
    status = "not known" if laws.is_beyond(k) else "confirmed"
    return [laws.reach, status, r2, *cells]


def main() -> None:
    """Measure every set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--sets", default=",".join((*CHOSEN_ON, *APART)))
    options = parser.parse_args()
    names = options.sets.split(",")
    warnings.simplefilter("ignore")
    results = Results("reach", COLUMNS, options, chosen_on=CHOSEN_ON, reported_on=names)
    for name in names:
        rows = load(options.data, name)
        part = "choosing" if name in CHOSEN_ON else "apart"
        for scoring in ("fixed", "rotating"):
            *fitted, (_, truth) = runs(rows, scoring)
            for sizes, table in fitted:
                for samples in (50, 400) if scoring == "fixed" else (100,):
                    laws = apiece.fit(first_tasks(table, samples))
                    for k in np.unique(truth.k).tolist():
                        if k > sizes[1]:
                            words = "{} to {:,}".format(*sizes)
                            results.add(
                                name, part, scoring, words, samples, k, *judged(laws, k, truth)
                            )


if __name__ == "__main__":
    main()
