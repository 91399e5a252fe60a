r"""An order of the points in which every beginning trains a good model.

Values rank points one by one; the points at the top may all teach the same thing. Here points join
one after the other. With the points $S$ that have joined, those join next whose gain is largest to
first order,

$$g(z \mid S) = -\nabla L(\theta_S)^\top H_S^{-1} \nabla \ell_z(\theta_S),$$

where $\theta_S$ is the model of $S$ and $L$ the mean loss of the rows that score: the validation
rows, and the half of all points that $z$ is not in. So a point is never scored by its own label.
Each step fits one model for each half. A step lets a twentieth of $|S|$ points join, at least one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from apiece._base.progress import track
from apiece._base.rng import RandomState, seed_from
from apiece._base.typing import FloatArray, IntArray
from apiece.data import Dataset, join_rows, take_rows
from apiece.engines import choose_engine
from apiece.errors import PlanError
from apiece.losses import LossLike
from apiece.records import Task
from apiece.uses._outside import folds_of

if TYPE_CHECKING:
    import pandas as pd

_STEP: Final = 20  # points that have joined, for each that joins in a step
_FEWEST: Final = 10  # points that can be halved


def sequence(
    dataset: Dataset,
    *,
    model: Any = "auto",
    metric: LossLike = None,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """Order all points so that every beginning of the order trains a good model.

    Parameters
    ----------
    dataset
        The points; validation rows score too if there are any.
    model, metric
        As in `collect`; least squares, ridge or logistic regression, and a smooth loss.
    random_state
        Decides the halves.

    Returns
    -------
    pandas.DataFrame
        Indexed by id, in that order: ``rank``, from 1, and ``gain``, the gain to first order when
        the point joined; missing for the first ones, one of each class.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> data, flipped = load_demo()
    >>> order = sequence(data)
    >>> bool(order["rank"].loc[data.ids[flipped]].mean() > order["rank"].mean())
    True
    """
    import pandas as pd

    n = dataset.n_points
    if n < _FEWEST:
        raise PlanError(
            f"there are {n} points to order: expected at least {_FEWEST}, since one half scores "
            "the other. Collect more data."
        )
    half = folds_of(dataset.points_y, 2, seed_from(random_state))
    judges = [_scored_by(dataset, np.flatnonzero(half != side)) for side in (0, 1)]
    engines = [
        choose_engine(judge, model=model, metric=metric, engine="first-order")[0]
        for judge in judges
    ]
    joined = _first(dataset)
    gains = [np.nan] * len(joined)
    for _ in track(range(n)):
        left = np.setdiff1d(np.arange(n), joined)
        if not len(left):
            break
        gain = np.empty(len(left))
        for side, engine in enumerate(engines):
            here = np.flatnonzero(half[left] == side)
            if len(here):
                task = Task(0, np.array(joined), left[here], 0)
                gain[here] = np.nan_to_num(engine.run(task).delta, nan=-np.inf)
        best = np.argsort(-gain, kind="stable")[: max(1, len(joined) // _STEP)]
        joined += left[best].tolist()
        gains += gain[best].tolist()
    return pd.DataFrame(
        {"rank": np.arange(1, n + 1), "gain": gains},
        index=pd.Index(dataset.ids[joined], name="point"),
    )


def _scored_by(dataset: Dataset, rows: IntArray) -> Dataset:
    """Return the points as a pool, scored by some of them and by the validation rows."""
    own = take_rows(dataset.rows, rows)
    return replace(
        dataset,
        n_pool=dataset.n_points,
        groups=None,
        rows_val=join_rows(own, dataset.rows_val) if dataset.n_validation else own,
        y_val=np.concatenate([dataset.points_y[rows], dataset.y_val]),
        ids_val=None,
    )


def _first(dataset: Dataset) -> list[int]:
    """Return the most typical point of each class, or of the low and the high values."""
    y = dataset.points_y
    label = y if dataset.n_classes else (y > np.median(y)).astype(np.int64)
    return [_typical(dataset.points_X, np.flatnonzero(label == code)) for code in np.unique(label)]


def _typical(X: FloatArray, rows: IntArray) -> int:
    spread = np.maximum(X.std(axis=0), 1e-12)
    far = (((X[rows] - X[rows].mean(axis=0)) / spread) ** 2).sum(axis=1)
    return int(rows[np.argmin(far)])
