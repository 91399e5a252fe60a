r"""Removing points: does a model improve without the points that harm, and suffer without the best?

All points of the pool are valued; then the lowest (or the highest) are left out, more and more of
them, and the model is trained on the rest. Every repeat uses another random part of the pool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack

import numpy as np

import apiece
from apiece._base.check import one_of
from apiece._base.progress import tracking
from apiece._base.rng import RandomState, seed_from, stream
from apiece._base.typing import FloatArray
from apiece.data import Dataset
from apiece.errors import PlanError
from apiece.estimators import DEFAULT_METHOD, MethodName
from apiece.experiments._result import Experiment
from apiece.experiments._trial import Trial
from apiece.losses import LossLike
from apiece.uses import baselines

if TYPE_CHECKING:
    import pandas as pd

METHODS = ("law", "shapley", "knn-shapley", "loo", "random")
MORE_METHODS = ("self-confidence", "data-oob", "influence", "largest-size-mean")


class ValuationSettings(TypedDict, total=False):
    """How points are valued, as in `addition`, and in how many repeats.

    ``n`` is the number of points of the pool in each repeat (1,000 by default, at most all), and
    ``samples`` the number of contributions per point (100 by default).
    """

    n: int
    samples: int
    model: Any
    metric: LossLike
    method: MethodName
    n_jobs: int


class Valuation(NamedTuple):
    """`ValuationSettings` with their defaults."""

    n: int = 1000
    samples: int = 100
    model: Any = "auto"
    metric: LossLike = None
    method: MethodName = DEFAULT_METHOD
    n_jobs: int = 1

    def about(self, seed: int) -> dict[str, Any]:
        """Return what a result remembers of the settings."""
        return {"n": self.n, "samples": self.samples, "seed": seed, "method": self.method}


def values_by(
    methods: Sequence[str], dataset: Dataset, settings: Valuation, seed: int
) -> dict[str, FloatArray]:
    """Value the points of the pool by several methods, each of shape ``(n_pool,)``.

    ``law`` is the law at the size of the pool. ``shapley`` is the Monte Carlo mean of the same
    contributions. ``knn-shapley`` and ``loo`` (leave-one-out) need no contributions. ``random`` is
    random numbers. The others are those of `apiece.uses.baselines`. Unknown values are nan.
    """
    for name in methods:
        one_of("method", name, (*METHODS, *MORE_METHODS))
    trained = {"model": settings.model, "metric": settings.metric}
    run = apiece.collect(
        dataset,
        samples=settings.samples,
        random_state=seed,
        n_jobs=settings.n_jobs,
        progress=False,
        **trained,
    )
    laws = apiece.fit(run, method=settings.method)
    tables: dict[str, Callable[[], pd.Series[Any]]] = {
        "law": lambda: apiece.value(laws, kind="loo", n=dataset.n_pool)["value"],
        "shapley": lambda: apiece.value(run, source="samples")["value"],
        "knn-shapley": lambda: baselines.knn_shapley(dataset)["value"],
        "loo": lambda: baselines.leave_one_out(dataset, random_state=seed, **trained)["value"],
        "self-confidence": lambda: baselines.self_confidence(dataset, random_state=seed)["value"],
        "data-oob": lambda: baselines.data_oob(dataset, random_state=seed)["value"],
        "influence": lambda: baselines.influence(dataset, **trained)["value"],
        "largest-size-mean": lambda: baselines.largest_size_mean(run)["value"],
    }
    ids = dataset.ids[: dataset.n_pool]
    chance = stream(seed, 5).random(dataset.n_pool)
    return {
        name: chance if name == "random" else tables[name]().reindex(ids).to_numpy()
        for name in methods
    }


def removal(
    dataset: Dataset,
    *,
    remove: Literal["lowest", "highest"] = "lowest",
    shares: Sequence[float] = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5),
    repeats: int = 10,
    methods: Sequence[str] = METHODS,
    random_state: RandomState = 0,
    progress: bool | None = None,
    **settings: Unpack[ValuationSettings],
) -> Experiment:
    """Leave out the points of lowest (or highest) value, and train on the rest.

    Parameters
    ----------
    dataset
        The data. Half of its validation rows, or without any a fifth of its rows, are kept for
        testing.
    remove
        ``lowest`` (the model should improve) or ``highest`` (it should suffer: the gains are then
        turned around, so that more is better for a valuation here too).
    shares
        Shares of the points to leave out, between 0 and 1.
    repeats
        Number of repeats, each with other points.
    methods
        Valuations to include: ``law``, ``shapley``, ``knn-shapley``, ``loo``, ``random``; also
        ``self-confidence``, ``data-oob``, ``influence`` and ``largest-size-mean``, as in
        `apiece.uses.baselines`.
    random_state, progress
        As in `addition`.
    **settings
        ``n``, points of the pool in each repeat (1,000, at most all); ``samples``, contributions
        per point (100); ``model``, ``metric``, ``method`` and ``n_jobs``, as in `addition`.

    Returns
    -------
    Experiment
        By ``share``; measures ``gain`` and ``accuracy`` against training on all points.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> from apiece.experiments import removal
    >>> data, _ = load_demo(flipped=0)
    >>> result = removal(
    ...     data, shares=(0.2,), n=60, samples=10, repeats=1, methods=("law", "random"),
    ...     progress=False,
    ... )
    >>> result.table().index.tolist()
    [(0.2, 'law'), (0.2, 'random')]
    """
    one_of("remove", remove, ("lowest", "highest"))
    bad = [share for share in shares if not 0 < share < 1]
    if bad or not shares:
        raise PlanError(
            f"shares={list(shares)}: expected shares of the points between 0 and 1. Pass for "
            "example shares=(0.1, 0.2)."
        )
    seed = seed_from(random_state)
    how = Valuation(**settings)
    sign = 1.0 if remove == "lowest" else -1.0
    trial = Trial.of(dataset, model=how.model, metric=how.metric, seed=seed)
    rows: list[dict[str, Any]] = []
    with tracking(progress, title="testing", unit="trials") as tracker:
        tracker.start(repeats, 0)
        for repeat in range(repeats):
            part = part_of(trial, how.n, repeat)
            values = values_by(methods, part.dataset, how, seed + repeat)
            before = part.score(np.arange(part.dataset.n_pool))
            for name, value in values.items():
                order = np.argsort(sign * value, kind="stable")  # nan sorts last, and stays longest
                for share in shares:
                    rest = np.sort(order[round(share * len(order)) :])
                    gained = sign * (part.score(rest) - before)
                    rows.append(
                        {"repeat": repeat, "share": float(share), "method": name}
                        | dict(zip(part.measures, gained.tolist(), strict=True))
                    )
            tracker.advance(1)
    import pandas as pd

    attrs = {"remove": remove, **how.about(seed)}
    return Experiment("removal", pd.DataFrame(rows), "share", trial.measures, attrs)


def part_of(trial: Trial, n: int, repeat: int) -> Trial:
    """Return the trial with a random part of its pool, class by class as the pool is."""
    data = trial.dataset
    if n >= data.n_pool:
        rows = np.arange(data.n_pool)
    else:
        rows = np.sort(trial.draws(n, repeat + 1)[repeat].subset)
    return replace(trial, dataset=data.with_points(rows, n_pool=len(rows)))
