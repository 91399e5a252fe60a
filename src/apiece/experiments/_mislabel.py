"""Wrong labels: does a valuation put them at the bottom, and does advice name them?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

import apiece
from apiece._base.progress import tracking
from apiece._base.rng import RandomState, seed_from, stream
from apiece._base.typing import BoolArray, FloatArray
from apiece.data import Dataset
from apiece.errors import PlanError
from apiece.experiments._removal import METHODS, Valuation, ValuationSettings, part_of, values_by
from apiece.experiments._result import Experiment
from apiece.experiments._trial import Trial
from apiece.uses import plausibility

_VALUED = {
    "auc": "probability that a flipped point has a lower value than another",
    "f1": "share of flipped points among as many of the lowest",
}
_SUGGESTED = {
    "precision": "share of suggestions that are flipped points",
    "recall": "share of flipped points that are suggested",
    "corrected": "share of suggestions with the right label",
}


def mislabel(
    dataset: Dataset,
    *,
    flipped: Sequence[float] = (0.05, 0.1, 0.2),
    repeats: int = 5,
    methods: Sequence[str] = (*METHODS, "plausibility"),
    suggest: bool = True,
    random_state: RandomState = 0,
    progress: bool | None = None,
    **settings: Unpack[ValuationSettings],
) -> Experiment:
    """Flip labels at random, value the points, and look for the flipped ones at the bottom.

    Parameters
    ----------
    dataset
        Classification data whose labels are taken as right; validation labels stay right.
    flipped
        Shares of the labels to flip to another class, each below 0.5.
    repeats
        Number of repeats, each with other points and flips.
    methods
        Valuations to include: ``law``, ``shapley``, ``knn-shapley``, ``loo``, ``random``, and
        ``plausibility``, the predictions of models that were not trained on the point; also the
        other baselines of `removal`.
    suggest
        Whether to include the labels that `advise` suggests, as method ``relabel``.
    random_state, progress, **settings
        As in `removal`; ``model`` is logistic regression by default.

    Returns
    -------
    Experiment
        By ``flipped``: ``auc`` (probability that a flipped point has a lower value than another),
        ``f1`` (share of flipped points among as many of the lowest), and for ``relabel`` only
        ``precision``, ``recall`` and ``corrected`` (share of suggestions with the right label).

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> from apiece.experiments import mislabel
    >>> data, _ = load_demo(flipped=0)
    >>> result = mislabel(
    ...     data, flipped=(0.2,), n=60, samples=10, repeats=1, methods=("law",), suggest=False,
    ...     progress=False,
    ... )
    >>> list(result.measures)
    ['auc', 'f1']
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
    settings.setdefault("model", "logistic")
    how = Valuation(**settings)
    trial = Trial.of(dataset, model=how.model, metric=how.metric, seed=seed)
    rows: list[dict[str, Any]] = []
    with tracking(progress, title="testing", unit="trials") as tracker:
        tracker.start(repeats * len(flipped), 0)
        for repeat in range(repeats):
            part = part_of(trial, how.n, repeat).dataset
            for share in flipped:
                rng = stream(seed, 6, repeat, round(1e6 * share))
                noisy, is_wrong = with_flips(part, share, rng)
                scored = _detections(methods, noisy, is_wrong, how, (seed, repeat))
                if suggest:
                    trained = {"model": how.model, "metric": how.metric}
                    advice = apiece.advise(noisy, random_state=seed, progress=False, **trained)
                    table = advice.table().iloc[: noisy.n_pool]
                    scored["relabel"] = _suggested(table, part, is_wrong)
                rows += [
                    {"repeat": repeat, "flipped": float(share), "method": name} | score
                    for name, score in scored.items()
                ]
                tracker.advance(1)
    import pandas as pd

    measures = _VALUED | _SUGGESTED if suggest else _VALUED
    return Experiment("mislabel", pd.DataFrame(rows), "flipped", measures, how.about(seed))


def _detections(
    methods: Sequence[str],
    noisy: Dataset,
    is_wrong: BoolArray,
    settings: Valuation,
    seeds: tuple[int, int],
) -> dict[str, dict[str, float]]:
    """Return how well the values of each method detect the flipped labels."""
    seed, repeat = seeds
    known = [name for name in methods if name != "plausibility"]
    values = values_by(known, noisy, settings, seed + repeat)
    if "plausibility" in methods:
        table = plausibility(noisy, random_state=seed)
        values["plausibility"] = table["plausibility"].to_numpy()[: noisy.n_pool]
    return {name: detection(value, is_wrong) for name, value in values.items()}


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
    """Return how well low values point at wrong labels; a missing value counts as the median.

    Examples
    --------
    >>> import numpy as np
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
    is_suggested = (table["advice"] == "relabel").to_numpy()
    right = truth.labels()[: truth.n_pool]
    is_right = table["to"].to_numpy() == right
    n_suggested = max(1, int(is_suggested.sum()))
    return {
        "precision": float((is_suggested & is_wrong).sum() / n_suggested),
        "recall": float((is_suggested & is_wrong).sum() / is_wrong.sum()),
        "corrected": float((is_suggested & is_right).sum() / n_suggested),
    }
