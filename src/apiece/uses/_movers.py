"""The points whose rank changes most between two sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apiece._base.rng import RandomState, seed_from
from apiece._base.typing import BoolArray, FloatArray
from apiece.errors import PlanError
from apiece.laws import Laws
from apiece.laws.sizes import check_range
from apiece.laws.student import check_level
from apiece.records import scope_of, scoped
from apiece.uses._ranks import draw_values
from apiece.uses._weights import SizeWeights

if TYPE_CHECKING:
    import pandas as pd


def movers(
    laws: Laws,
    *,
    sizes: tuple[int, int] | None = None,
    most: int = 20,
    level: float = 0.9,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """List the points whose rank changes most between a small and a large dataset.

    Parameters
    ----------
    laws
        Laws of any family.
    sizes
        The two sizes; the ends of the sampled range by default.
    most
        How many points to list.
    level
        Coverage of the interval of the change, from draws of the laws.
    random_state
        Seed of the draws.

    Returns
    -------
    pandas.DataFrame
        Indexed by id, the largest change that is certain first (the end of its interval that is
        nearer to zero), then the largest: ``change`` in rank (positive: worth more, relative to
        the others, at the larger size), ``low`` and ``high``, ``rank_small`` and ``rank_large``
        (1 is the best), ``value_small`` and ``value_large`` in units of the utility.

    Examples
    --------
    >>> laws = Laws.from_arrays(c=[1.0, 100.0, 50.0], alpha=[1.0, 2.0, 2.0], k_range=(10, 1000))
    >>> movers(laws, most=1)["change"].to_dict()
    {0: 2.0}
    """
    import pandas as pd

    if most < 1:
        raise PlanError(f"most={most} points: expected at least 1. Pass for example most=20.")
    check_level(level)
    pair = np.array(check_range(laws.k_range if sizes is None else sizes), dtype=np.float64)
    value = laws.mean(pair)
    rank = np.stack([_ranks(value[None, :, end])[0] for end in (0, 1)], axis=1)
    change = rank[:, 0] - rank[:, 1]

    seed = seed_from(random_state)  # one seed: both sizes see the same draws of the parameters
    drawn = [
        _ranks(draw_values(laws, SizeWeights(k[None], np.ones(1)), random_state=seed)) for k in pair
    ]
    tails = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(drawn[0] - drawn[1], tails, axis=0)
    is_sure = np.isfinite(laws.stderr(pair)).all(axis=1)
    table = pd.DataFrame(
        {
            "change": change,
            "low": np.where(is_sure, low, np.nan),
            "high": np.where(is_sure, high, np.nan),
            "rank_small": rank[:, 0],
            "rank_large": rank[:, 1],
            "value_small": value[:, 0],
            "value_large": value[:, 1],
        },
        index=pd.Index(laws.ids, name="point"),
    )
    order = np.lexsort((-np.abs(change), -_sure(low, high, np.asarray(is_sure))))
    order = order[np.isfinite(change[order])][:most]
    result: pd.DataFrame = table.iloc[order]
    return scoped(result, scope_of(laws.attrs))


def _sure(low: FloatArray, high: FloatArray, is_known: BoolArray) -> FloatArray:
    """Return by how many ranks each point moves at least, 0 if it may not move at all."""
    least = np.where(low > 0, low, np.where(high < 0, -high, 0.0))
    return np.where(is_known, least, 0.0)


def _ranks(values: FloatArray) -> FloatArray:
    """Rank each row, 1 for the largest; nan stays nan."""
    order = np.argsort(-values, axis=1, kind="stable")
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, np.arange(1.0, values.shape[1] + 1)[None], axis=1)
    return np.where(np.isfinite(values), ranks, np.nan)
