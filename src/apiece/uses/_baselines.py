"""Baselines that values are compared with: leave-one-out by retraining, and chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from apiece._base.rng import RandomState, seed_from, stream
from apiece.data import Dataset
from apiece.records import Task

if TYPE_CHECKING:
    import pandas as pd

    from apiece.losses import Loss


def leave_one_out(
    dataset: Dataset,
    *,
    model: Any = "auto",
    metric: str | Loss | Callable[[Any, Any], float] | None = None,
    engine: str = "auto",
    random_state: RandomState = 0,
) -> pd.DataFrame:
    r"""Value every point by retraining without it.

    $$v_i = L(f_{\text{pool} \setminus i}) - L(f_\text{pool})$$

    for a point of the pool, and $L(f_\text{pool}) - L(f_{\text{pool} \cup i})$ for a candidate. One
    training set is fitted for each point, and one for all candidates together.

    Returns
    -------
    pandas.DataFrame
        Column ``value`` in units of the loss, indexed by id; positive helps.
    """
    import pandas as pd

    from apiece.engines import choose_engine

    dataset.check_scores("leave-one-out")
    chosen, _ = choose_engine(dataset, model=model, metric=metric, engine=engine)
    seed, pool = seed_from(random_state), np.arange(dataset.n_pool)
    values = np.empty(dataset.n_points)
    for point in pool:
        values[point] = chosen.run(
            Task(0, np.delete(pool, point), pool[point : point + 1], seed)
        ).delta[0]
    if dataset.n_candidates:
        outside = np.arange(dataset.n_pool, dataset.n_points)
        values[outside] = chosen.run(Task(0, pool, outside, seed)).delta
    return pd.DataFrame({"value": values}, index=pd.Index(dataset.ids, name="point"))


def random_values(dataset: Dataset, *, random_state: RandomState = 0) -> pd.DataFrame:
    """Value every point by chance: uniform numbers in column ``value``, indexed by id."""
    import pandas as pd

    rng = stream(seed_from(random_state))
    return pd.DataFrame(
        {"value": rng.random(dataset.n_points)}, index=pd.Index(dataset.ids, name="point")
    )
