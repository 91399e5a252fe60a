r"""What a point would be worth with another label.

For a suspicious point with features $x$, every label $c$ is tried on the same training sets $D_j$,
drawn from the pool without the point:

$$g_c = \frac{1}{m} \sum_{j=1}^m \left[\Delta((x, c), D_j) - \Delta((x, y), D_j)\right].$$

The engine computes all labels of many points at once: a fifth of the suspicious points at a time,
so that the training sets resemble the pool. (Without any of them, training sets hold no hard
points, and no label of a hard point seems to help.) Differences are paired, so that what is common
to a training set cancels; Student's distribution with $m - 1$ degrees of freedom gives the
probability that the best other label is better than the point's own.

A better value alone does not make a label wrong: where a model is too sure of itself, any label
that makes it less so lowers the loss. Whether a label is wrong, `plausibility` tells.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from apiece._base.check import some
from apiece._base.progress import track
from apiece._base.rng import RandomState, seed_from
from apiece._base.typing import FloatArray, IntArray
from apiece.collection import Design, make_plan
from apiece.data import Dataset
from apiece.engines import choose_engine
from apiece.errors import PlanError

if TYPE_CHECKING:
    import pandas as pd

_FOLDS = 5  # parts of the suspicious points that are tried on the same training sets


def relabel(
    dataset: Dataset,
    points: npt.ArrayLike,
    *,
    to: npt.ArrayLike | None = None,
    at: int,
    draws: int = 20,
    model: Any = "logistic",
    metric: Any = None,
    engine: str = "auto",
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """Try other labels on suspicious points.

    Parameters
    ----------
    dataset
        Classification data.
    points
        Ids of the points.
    to
        The other label of each, such as the likeliest to `plausibility`; by default the one that is
        worth most.
    at
        Size of the training sets; at most four fifths of the points they are drawn from.
    draws
        Training sets, at least 3.
    model, metric, engine
        As in `apiece.collect`.
    random_state
        Seed of the training sets.

    Returns
    -------
    pandas.DataFrame
        Indexed by point id: ``label`` (its own), ``relabel_to`` (the other one), ``gain`` (by how
        much a contribution rises with it, in units of the loss), ``probability`` that it rises,
        ``value`` with the new label, and ``p_helps``, the probability that this is positive.
    """
    import pandas as pd

    if not dataset.is_classification:
        raise PlanError(
            "labels can be tried for classification alone, and the target is a quantity: expected "
            "classes. Leave relabelling out."
        )
    if draws != int(draws) or draws < 3:
        raise PlanError(
            f"draws={draws} training sets: expected a whole number of at least 3, to tell a gain "
            "from chance. Pass for example draws=20."
        )
    suspects = dataset.positions(np.asarray(points))
    seed = seed_from(random_state)
    delta = np.empty((int(draws), len(suspects), dataset.n_classes))
    for fold in range(_FOLDS):
        tried = suspects[fold::_FOLDS]
        if len(tried):
            delta[:, fold::_FOLDS] = _try_labels(
                dataset, tried, at, int(draws), seed, model=model, metric=metric, engine=engine
            )
    own = dataset.targets(suspects)
    rows = np.arange(len(suspects))
    mean = delta.mean(axis=0)
    mean[rows, own] = -np.inf
    other = mean.argmax(axis=1) if to is None else _codes(dataset, to, own)
    gained = delta[:, rows, other] - delta[:, rows, own]
    value = delta[:, rows, other]
    assert dataset.classes is not None
    return pd.DataFrame(
        {
            "label": dataset.classes[own],
            "relabel_to": dataset.classes[other],
            "gain": gained.mean(axis=0),
            "probability": _positive(gained),
            "value": value.mean(axis=0),
            "p_helps": _positive(value),
        },
        index=pd.Index(dataset.ids[suspects], name="point"),
    )


def _try_labels(
    dataset: Dataset, tried: IntArray, at: int, draws: int, seed: int, **settings: Any
) -> FloatArray:
    """Return contributions with every label, shape ``(draws, n_tried, n_classes)``."""
    rest = np.setdiff1d(np.arange(dataset.n_pool), tried)
    n_classes, n_pool = dataset.n_classes, dataset.n_pool
    everyone = np.concatenate([np.arange(n_pool), tried.repeat(n_classes)])
    trial = replace(
        dataset.with_points(everyone, n_pool=n_pool),
        points_y=np.concatenate([dataset.y, np.tile(np.arange(n_classes), len(tried))]),
        ids=np.arange(n_pool + n_classes * len(tried)),
        groups=None,
    )
    chosen, _ = choose_engine(trial, **settings)
    k = min(int(at), 4 * len(rest) // 5)
    plan = make_plan(
        Design.of((k, k), name="grid", samples=draws),
        n_pool=len(rest),
        points=np.array([len(rest)]),  # one that is never in a training set
        seed=seed,
        strata=dataset.y[rest],
        class_names=None if dataset.classes is None else dataset.classes.tolist(),
    )
    points = np.arange(n_pool, trial.n_points)
    tasks = [replace(plan[i], subset=rest[plan[i].subset], points=points) for i in range(draws)]
    delta = np.stack([chosen.run(task).delta for task in track(tasks)])
    return delta.reshape(draws, len(tried), n_classes)


def _codes(dataset: Dataset, labels: npt.ArrayLike, own: IntArray) -> IntArray:
    """Return the codes of other labels, one a point."""
    assert dataset.classes is not None
    known = {str(name): code for code, name in enumerate(dataset.classes.tolist())}
    names = [str(label) for label in np.asarray(labels).tolist()]
    codes = np.array([known.get(name, -1) for name in names], dtype=np.int64)
    if codes.shape != own.shape or (codes < 0).any() or (codes == own).any():
        raise PlanError(
            f"to={some(names, 3)} does not name another label of each of the {len(own)} points: "
            f"expected so many of {some(known, 3)}. Pass one for each, and not its own."
        )
    return codes


def _positive(samples: FloatArray) -> FloatArray:
    """Return the probability that the mean of each column is positive, shape ``(n,)``."""
    n = len(samples)
    error = samples.std(axis=0, ddof=1) / np.sqrt(n)
    mean = samples.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(error > 0, mean / error, np.sign(mean) * np.inf)
    return np.asarray(stdtr(n - 1, np.where(np.isnan(z), 0.0, z)))
