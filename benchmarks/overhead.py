"""What `collect` and its store add to the bare refits, in time and in bytes per contribution.

Both sides train the same models on the same training sets, one process, one BLAS thread, in turns,
by processor time, which other processes on the machine disturb least. The bare side is the loop a
user would write: clone, fit, predict, and score with the same log loss; nothing is stored.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import apiece
from _results import Results
from apiece.collection import Design, make_plan
from apiece.losses import LOSSES

SIZES, SAMPLES, SEED = (50, 200), 5, 0
MODEL = LogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=1_000)


def bare(dataset, plan) -> int:
    n, log_loss = 0, LOSSES["log_loss"].value
    for index in range(len(plan)):
        task = plan[index]
        X, y = dataset.X[task.subset], dataset.y[task.subset]
        base = log_loss(dataset.y_val, clone(MODEL).fit(X, y).predict_proba(dataset.X_val))
        for point in task.points:
            model = clone(MODEL).fit(
                np.vstack([X, dataset.X[point]]), np.append(y, dataset.y[point])
            )
            n += np.isfinite(base - log_loss(dataset.y_val, model.predict_proba(dataset.X_val)))
    return n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    X, y = load_breast_cancer(return_X_y=True)
    dataset = apiece.Dataset.from_arrays(X, y, standardize=True, validation=150)
    plan = make_plan(
        Design.of(SIZES, samples=SAMPLES),
        n_pool=dataset.n_pool,
        points=np.arange(dataset.n_pool),
        seed=SEED,
        strata=dataset.y,
    )
    folder = Path(tempfile.mkdtemp())
    seconds = {"bare": [], "collect": []}
    with threadpool_limits(1):
        for number in range(options.rounds):
            started = time.process_time()
            n = bare(dataset, plan)
            seconds["bare"].append(time.process_time() - started)
            started = time.process_time()
            run = apiece.collect(
                dataset,
                model=MODEL,
                engine="refit",
                sizes=SIZES,
                samples=SAMPLES,
                random_state=SEED,
                to=folder / str(number),
                progress=False,
            )
            seconds["collect"].append(time.process_time() - started)
    assert run.progress().n_contributions == n
    size = sum(file.stat().st_size for file in (folder / "0" / "shards").iterdir())
    ratios = np.array(seconds["collect"]) / np.array(seconds["bare"])
    shutil.rmtree(folder)
    results = Results(
        "overhead",
        {
            "contributions": "{:,}",
            "bare refits, ms each": "{:.2f}",
            "`collect`, ms each": "{:.2f}",
            "ratio, median of rounds": "{:.3f}",
            "lowest and highest": "{:.3f} to {:.3f}",
            "bytes per contribution": "{:.2f}",
        },
        {**vars(options), "sizes": SIZES, "samples": SAMPLES, "seed": SEED},
    )
    best = {word: min(times) for word, times in seconds.items()}
    results.add(
        n,
        1e3 * best["bare"] / n,
        1e3 * best["collect"] / n,
        np.median(ratios),
        [ratios.min(), ratios.max()],
        size / n,
    )


if __name__ == "__main__":
    main()
