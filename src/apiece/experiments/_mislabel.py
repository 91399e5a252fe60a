"""Wrong labels: does a valuation put them at the bottom, and does advice name them?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import apiece
from apiece._base.progress import tracking
from apiece._base.rng import RandomState, seed_from, stream
from apiece._base.typing import BoolArray, FloatArray
from apiece.data import Dataset
from apiece.errors import PlanError
from apiece.estimators import DEFAULT_METHOD
from apiece.experiments._removal import METHODS, part_of, values_by
from apiece.experiments._result import Experiment
from apiece.experiments._trial import Trial
from apiece.uses import plausibility


def mislabel(
    dataset: Dataset,
    *,
    flipped: Sequence[float] = (0.05, 0.1, 0.2),
    n: int = 1000,
    samples: int = 100,
    repeats: int = 5,
    methods: Sequence[str] = (*METHODS, "plausibility"),
    suggest: bool = True,
    model: Any = "logistic",
    metric: Any = None,
    method: str = DEFAULT_METHOD,
    random_state: RandomState = 0,
    n_jobs: int = 1,
    progress: bool | None = None,
) -> Experiment:
    """Flip labels at random, value the points, and look for the flipped ones at the bottom.

    Parameters
    ----------
    dataset
        Classification data whose labels are taken as right; validation labels stay right.
    flipped
        Shares of the labels to flip to another class, each below 0.5.
    n
        Points of the pool in each repeat; at most all.
    samples
        Contributions a point.
    repeats
        How often, with points and flips of its own each.
    methods
        Which valuations take part: ``law``, ``shapley``, ``knn-shapley``, ``loo``, ``random``, and
        ``plausibility``, which asks models that have not seen a point for its label.
    suggest
        Whether the labels that `advise` suggests take part, as method ``relabel``.
    model, metric, method, random_state, n_jobs, progress
        As in `addition`.

    Returns
    -------
    Experiment
        By ``flipped``: ``auc`` (probability that a flipped point is worth less than another),
        ``f1`` (share of flipped ones among as many of the lowest points), and for ``relabel`` alone
        ``precision``, ``recall`` and ``corrected`` (share of suggestions with the right label).
    """
    if not dataset.is_classification:
        raise PlanError(
            "labels can be flipped for classification alone, and the target is a quantity: "
            "expected classes. Pass another dataset."
        )
    bad = [share for share in flipped if not 0 < share < 0.5]
    if bad or not flipped:
        raise PlanError(
            f"flipped={list(flipped)}: expected shares of the labels between 0 and 0.5. Pass for "
            "example flipped=(0.1,)."
        )
    seed = seed_from(random_state)
    settings = {"model": model, "metric": metric}
    trial = Trial.of(dataset, **settings, seed=seed)
    rows: list[dict[str, Any]] = []
    with tracking(progress, title="testing", unit="trials") as tracker:
        tracker.start(repeats * len(flipped), 0)
        for repeat in range(repeats):
            part = part_of(trial, n, repeat).dataset
            for share in flipped:
                rng = stream(seed, 6, repeat, round(1e6 * share))
                noisy, is_wrong = with_flips(part, share, rng)
                run = apiece.collect(
                    noisy,
                    samples=samples,
                    random_state=seed + repeat,
                    n_jobs=n_jobs,
                    progress=False,
                    **settings,
                )
                laws = apiece.fit(run, method=method)
                where = {"repeat": repeat, "flipped": float(share)}
                known = [name for name in methods if name != "plausibility"]
                values = values_by(known, noisy, run, laws, seed + repeat, **settings)
                if "plausibility" in methods:
                    asked = plausibility(noisy, random_state=seed)
                    values["plausibility"] = asked["plausibility"].to_numpy()[: noisy.n_pool]
                rows += [
                    where | {"method": name} | detection(value, is_wrong)
                    for name, value in values.items()
                ]
                if suggest:
                    advice = apiece.advise(noisy, random_state=seed, progress=False, **settings)
                    table = advice.table().iloc[: noisy.n_pool]
                    rows.append(where | {"method": "relabel"} | _suggested(table, part, is_wrong))
                tracker.advance(1)
    import pandas as pd

    measures = {
        "auc": "probability that a flipped point is worth less than another",
        "f1": "share of flipped points among as many of the lowest",
    }
    if suggest:
        measures |= {
            "precision": "share of suggestions that are flipped points",
            "recall": "share of flipped points that are suggested",
            "corrected": "share of suggestions with the right label",
        }
    told = {"n": n, "samples": samples, "seed": seed, "method": method}
    return Experiment("mislabel", pd.DataFrame(rows), "flipped", measures, told)


def with_flips(
    dataset: Dataset, share: float, rng: np.random.Generator
) -> tuple[Dataset, BoolArray]:
    """Return the dataset with some of the pool's labels flipped, and which they are."""
    n = dataset.n_pool
    is_wrong = np.zeros(n, dtype=bool)
    is_wrong[rng.choice(n, max(1, round(share * n)), replace=False)] = True
    y = dataset.points_y.copy()
    shift = rng.integers(1, dataset.n_classes, size=n)
    y[:n] = np.where(is_wrong, (y[:n] + shift) % dataset.n_classes, y[:n])
    return replace(dataset, points_y=y), is_wrong


def detection(value: FloatArray, is_wrong: BoolArray) -> dict[str, float]:
    """Return how well low values point at wrong labels; a point without a value counts as middling.

    >>> detection(np.array([0.1, -0.2, 0.3, 0.4]), np.array([False, True, False, False]))
    {'auc': 1.0, 'f1': 1.0}
    """
    from scipy.stats import rankdata

    known = np.where(np.isnan(value), np.nanmedian(value), value)
    rank = rankdata(-known)
    n_wrong, n_right = int(is_wrong.sum()), int((~is_wrong).sum())
    auc = (rank[is_wrong].sum() - n_wrong * (n_wrong + 1) / 2) / (n_wrong * n_right)
    lowest = np.argsort(known, kind="stable")[:n_wrong]
    return {"auc": float(auc), "f1": float(is_wrong[lowest].mean())}


def _suggested(table: Any, truth: Dataset, is_wrong: BoolArray) -> dict[str, float]:
    is_told = (table["advice"] == "relabel").to_numpy()
    right = truth.labels()[: truth.n_pool]
    is_right = table["to"].to_numpy() == right
    n_told = max(1, int(is_told.sum()))
    return {
        "precision": float((is_told & is_wrong).sum() / n_told),
        "recall": float((is_told & is_wrong).sum() / is_wrong.sum()),
        "corrected": float((is_told & is_right).sum() / n_told),
    }
