r"""How sure a ranking is: ranks over draws of the values.

In each draw every point has a rank; over draws, a point's ranks give its interval, and the share
of draws in which it is among the $m$ largest is the probability that it belongs there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from apiece._base.rng import RandomState, seed_from, stream
from apiece._base.typing import AnyArray, FloatArray
from apiece.errors import PlanError
from apiece.laws import Laws, quantile
from apiece.laws.student import check_level, student_factors
from apiece.uses._weights import SizeWeights, nodes

if TYPE_CHECKING:
    import pandas as pd

_DRAWS: Final = 500
_FEWEST: Final = 100  # draws of very many points
_ENTRIES: Final = 50_000_000  # of draws held at once: 400 MB
_CHUNK: Final = 4_000_000
_WIDTH: Final = 0.25  # of a block of sizes; errors of 2e-5 do not show in 500 draws


def n_draws(n_points: int) -> int:
    """Return how many draws to take: 500, and fewer for more than 100,000 points."""
    return int(np.clip(_ENTRIES // max(1, n_points), _FEWEST, _DRAWS))


def draw_values(
    laws: Laws, weights: SizeWeights, *, n: int | None = None, random_state: RandomState = 0
) -> FloatArray:
    r"""Draw values $\sum_k w_k \psi_k$ from the uncertainty of the laws.

    A point without uncertainty has the same value in every draw, one without a law nan. Draws with
    the same ``random_state`` are of the same parameters, whatever the weights.

    Returns
    -------
    FloatArray
        Shape ``(n, n_points)``; by default 500 draws, fewer for more than 100,000 points.
    """
    sums = nodes(weights, _WIDTH)
    n_points = max(1, laws.n_points)
    wanted = n or n_draws(n_points)
    fixed = laws.family.mean(laws.params, sums.k) @ sums.w
    rng = stream(seed_from(random_state))
    step = max(1, _CHUNK // (n_points * max(len(sums.k), 1)))
    values = np.empty((wanted, laws.n_points))
    for start in range(0, wanted, step):
        part = values[start : start + step]
        params = laws.draws(len(part), random_state=rng)
        with np.errstate(over="ignore", invalid="ignore"):  # draws from a hopeless fit are wild
            curves = laws.family.mean(params.reshape(-1, params.shape[2]), sums.k)
            part[:] = (curves @ sums.w).reshape(part.shape)
        np.copyto(part, fixed, where=~np.isfinite(part))
    return values


def drawn_values(
    laws: Laws, weights: SizeWeights, *, random_state: RandomState = 0
) -> Iterator[FloatArray]:
    r"""Yield such draws one by one, each of shape ``(n_points,)``, as many as by default.

    Where curves are linear in their parameters, so is the value: it is Student's t itself, and one
    number for each point is drawn instead of all parameters.
    """
    if not laws.family.is_linear:
        yield from draw_values(laws, weights, random_state=random_state)
        return
    sums = nodes(weights, _WIDTH)
    estimate = laws.functional(sums.k, sums.w)
    error = np.nan_to_num((estimate.high - estimate.value) / quantile(0.9, laws.df))
    df = None if laws.df is None else np.where(laws.df > 0, laws.df, np.inf)
    rng = stream(seed_from(random_state))
    for _ in range(n_draws(laws.n_points)):
        noise = rng.standard_normal(laws.n_points)
        if df is not None:
            noise *= student_factors(df, 1, rng)[0]
        yield estimate.value + error * noise


def add_ranks(table: pd.DataFrame, draws: FloatArray, top: int, level: float) -> pd.DataFrame:
    """Add ``rank``, ``rank_low``, ``rank_high`` and ``p_top`` to a table of values.

    Parameters
    ----------
    table
        With columns ``value`` and ``stderr``; a point with nan in either gets no interval.
    draws
        Values in every draw, shape ``(n_draws, n_points)``.
    top
        How many of the largest values count as the best.
    level
        Coverage of the interval of the rank.
    """
    value = table["value"].to_numpy()
    n_known = int(np.isfinite(value).sum())
    if top != int(top) or not 1 <= top <= max(1, n_known):
        raise PlanError(
            f"top={top} is not a number of points: expected 1 to {n_known}, those that have a "
            "value. Pass for example top=20."
        )
    check_level(level)
    order = np.argsort(-draws, axis=1, kind="stable")  # nan sorts last
    ranks = np.empty(order.shape, dtype=np.int32)
    np.put_along_axis(ranks, order, np.arange(1, order.shape[1] + 1, dtype=np.int32)[None], axis=1)
    low, high = np.quantile(
        ranks, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf"
    )
    is_sure = np.isfinite(table["stderr"].to_numpy()) & np.isfinite(value)
    return table.assign(
        rank=_whole(table["value"].rank(ascending=False, method="first").to_numpy()),
        rank_low=_whole(np.where(is_sure, low, np.nan)),
        rank_high=_whole(np.where(is_sure, high, np.nan)),
        p_top=np.where(is_sure, (ranks <= top).mean(axis=0), np.nan),
    )


def _whole(ranks: AnyArray) -> AnyArray:
    """Return ranks as whole numbers, unless some are missing."""
    return ranks.astype(np.int64) if np.isfinite(ranks).all() else ranks
