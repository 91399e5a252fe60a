"""Baselines that values are compared with: leave-one-out by retraining, and chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from apiece._base.rng import RandomState, seed_from, stream
from apiece._base.typing import IntArray
from apiece.data import Dataset
from apiece.records import Task, scoped

if TYPE_CHECKING:
    import pandas as pd

    from apiece.engines import EngineName
    from apiece.losses import LossLike

_FOLDS: Final = 5


def leave_one_out(
    dataset: Dataset,
    *,
    model: Any = "auto",
    metric: LossLike = None,
    engine: EngineName = "auto",
    random_state: RandomState = 0,
) -> pd.DataFrame:
    r"""Value every point by retraining without it.

    $$v_i = L(f_{\text{pool} \setminus i}) - L(f_\text{pool})$$

    for a point of the pool, and $L(f_\text{pool}) - L(f_{\text{pool} \cup i})$ for a candidate. One
    training set is fitted for each point, and one for all candidates together.

    Without a validation set the pool is split into five folds, classes in proportion. Each fold
    scores models that are trained on the other four, and a point's value is the mean over the
    folds that it is not in. Every row then scores as often as it trains relative to the others, so
    that noise of the rows cancels; training sets have four fifths of the pool, and four are fitted
    for each point.

    Returns
    -------
    pandas.DataFrame
        Column ``value`` in units of the loss, indexed by id; positive helps.

    Examples
    --------
    >>> from apiece.data import Dataset
    >>> data = Dataset.from_arrays(np.arange(12.0)[:, None], np.arange(12) % 2, validation=4)
    >>> len(leave_one_out(data))
    8
    """
    import pandas as pd

    from apiece.engines import choose_engine

    chosen, _ = choose_engine(dataset, model=model, metric=metric, engine=engine)
    seed, pool = seed_from(random_state), np.arange(dataset.n_pool)
    outside = np.arange(dataset.n_pool, dataset.n_points)
    splits = [(chosen, pool)]
    if not dataset.n_validation:
        folds = _folds(dataset, seed)
        splits = [(chosen.scored_by(rows), np.setdiff1d(pool, rows)) for rows in folds]
    total, count = np.zeros((2, dataset.n_points))
    for scorer, rows in splits:
        for place, point in enumerate(rows):
            task = Task(0, np.delete(rows, place), np.array([point]), seed)
            total[point] += scorer.run(task).delta[0]
        if len(outside):
            total[outside] += scorer.run(Task(0, rows, outside, seed)).delta
        count[np.concatenate([rows, outside])] += 1
    table = pd.DataFrame({"value": total / count}, index=pd.Index(dataset.ids, name="point"))
    return scoped(table, dataset.scope)


def _folds(dataset: Dataset, seed: int) -> list[IntArray]:
    """Deal the rows of the pool into five folds, classes in proportion."""
    order = stream(seed, 5).permutation(dataset.n_pool)
    if dataset.is_classification:
        order = order[np.argsort(dataset.y[order], kind="stable")]
    return [np.sort(order[start::_FOLDS]) for start in range(min(_FOLDS, dataset.n_pool))]


def random_values(dataset: Dataset, *, random_state: RandomState = 0) -> pd.DataFrame:
    """Value every point by chance: uniform numbers in column ``value``, indexed by id.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> len(random_values(load_demo()[0]))
    369
    """
    import pandas as pd

    rng = stream(seed_from(random_state))
    return pd.DataFrame(
        {"value": rng.random(dataset.n_points)}, index=pd.Index(dataset.ids, name="point")
    )
