"""What campaign and store add to the bare refits, in time and in bytes per contribution.

Both sides train the same models on the same training sets, one process, one BLAS thread, in turns
so that a noisy machine disturbs both alike. The bare side is the loop a user would write: clone,
fit, predict, and score with the same log loss; nothing is stored.
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
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds

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
    seconds = {"bare": [], "campaign": []}
    with threadpool_limits(1):
        for number in range(rounds):
            started = time.perf_counter()
            n = bare(dataset, plan)
            seconds["bare"].append(time.perf_counter() - started)
            started = time.perf_counter()
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
            seconds["campaign"].append(time.perf_counter() - started)
    assert run.progress().n_contributions == n
    size = sum(file.stat().st_size for file in (folder / "0" / "shards").iterdir())
    ratios = np.array(seconds["campaign"]) / np.array(seconds["bare"])
    shutil.rmtree(folder)
    print(f"contributions              {n:,} (logistic regression, {dataset.n_features} features)")
    print(f"bare refits                {1e3 * min(seconds['bare']) / n:.2f} ms each")
    print(f"campaign and store         {1e3 * min(seconds['campaign']) / n:.2f} ms each")
    best = min(seconds["campaign"]) / min(seconds["bare"])
    print(f"ratio of the best rounds   {best:.3f}")
    print(f"ratio in each round        {', '.join(f'{ratio:.3f}' for ratio in ratios)}")
    print(f"bytes per contribution     {size / n:.2f}")


if __name__ == "__main__":
    main()
