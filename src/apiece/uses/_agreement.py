r"""How well two valuations of the same points agree, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from apiece._base.rng import RandomState, seed_from, stream
from apiece._base.typing import FloatArray, IntArray
from apiece.errors import DataError, PlanError
from apiece.laws.student import check_level

if TYPE_CHECKING:
    import pandas as pd

_FEWEST: Final = 3
_RESAMPLES: Final = 200
_PAIRWISE: Final = 2_000  # points whose pairs are held at once: 32 MB a matrix


def agreement(
    first: Any,
    second: Any,
    *,
    top: int | None = None,
    level: float = 0.9,
    resamples: int = _RESAMPLES,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    r"""Compare two valuations.

    Parameters
    ----------
    first, second
        Tables with a column ``value``, or series, indexed by point id; points are matched by id,
        and those without a value in both are left out. Arrays are matched by position.
    top
        How many of the largest values to compare as sets; a tenth of the points by default.
    level
        Coverage of the interval, from points drawn again with replacement (bootstrap percentiles).
    resamples
        How many times they are drawn.
    random_state
        Seed of the draws.

    Returns
    -------
    pandas.DataFrame
        Rows ``pearson``, ``spearman``, ``kendall`` (tau-b) and ``top`` (share of the ``top`` points
        of one that are among those of the other); columns ``agreement``, ``low``, ``high``, ``n``,
        the number of points compared. Correlations with a constant are nan.

    Examples
    --------
    >>> table = agreement([1.0, 2.0, 3.0, 4.0], [1.0, 4.0, 9.0, 16.0], top=2)
    >>> table["agreement"].round(3).to_dict()
    {'pearson': 0.984, 'spearman': 1.0, 'kendall': 1.0, 'top': 1.0}
    """
    import pandas as pd

    a, b = _matched(first, second)
    n = len(a)
    best = max(1, n // 10) if top is None else top
    if best != int(best) or not 1 <= best <= n:
        raise PlanError(
            f"top={top} is not a number of points: expected 1 to {n}, those that both value. "
            "Pass for example top=20."
        )
    if resamples < 1:
        raise PlanError(
            f"resamples={resamples}: expected at least 1. Pass for example resamples=200."
        )
    check_level(level)
    rng = stream(seed_from(random_state))
    everyone = np.arange(n)[None]
    measured = _measure(a, b, everyone, int(best))
    draws = _measure(a, b, rng.integers(n, size=(resamples, n)), int(best))
    tails = [(1 - level) / 2, (1 + level) / 2]
    ends = [
        np.quantile(column[np.isfinite(column)], tails)
        if np.isfinite(column).any()
        else (np.nan, np.nan)
        for column in draws.values()
    ]
    return pd.DataFrame(
        {
            "agreement": [column[0] for column in measured.values()],
            "low": [low for low, _ in ends],
            "high": [high for _, high in ends],
            "n": n,
        },
        index=pd.Index(list(measured), name="measure"),
    )


def _matched(first: Any, second: Any) -> tuple[FloatArray, FloatArray]:
    """Return the values of the points that both know, in one order."""
    import pandas as pd

    def series(values: Any) -> pd.Series:
        if isinstance(values, pd.DataFrame):
            if "value" not in values:
                raise DataError(
                    f"a table with columns {', '.join(map(str, values.columns[:8]))} is no "
                    "valuation: expected a column 'value'. Rename one, or pass a series."
                )
            values = values["value"]
        column = values if isinstance(values, pd.Series) else pd.Series(np.asarray(values))
        column = column.set_axis(column.index.astype(str))
        if column.index.has_duplicates:
            twice = column.index[column.index.duplicated()][0]
            raise DataError(
                f"point {twice!r} has two values: expected one for each id. Drop duplicates first."
            )
        return column.astype(np.float64)

    one, two = series(first), series(second)
    both = one[np.isfinite(one)].index.intersection(two[np.isfinite(two)].index)
    if len(both) < _FEWEST:
        raise DataError(
            f"{len(both)} points have a value in both ({len(one):,} and {len(two):,} points are "
            f"given): expected at least {_FEWEST}, matched by id. Value the same points in both."
        )
    return one[both].to_numpy(), two[both].to_numpy()


def _measure(a: FloatArray, b: FloatArray, chosen: IntArray, top: int) -> dict[str, FloatArray]:
    """Return every measure for every row of chosen points, each of shape ``(n_rows,)``."""
    ranks = [_ranks(values, chosen) for values in (a, b)]
    overlap = np.empty(len(chosen))
    for row, points in enumerate(chosen):
        best = [set(np.argsort(-x[points], kind="stable")[:top].tolist()) for x in (a, b)]
        overlap[row] = len(best[0] & best[1]) / top
    return {
        "pearson": _pearson(a[chosen], b[chosen]),
        "spearman": _pearson(*ranks),
        "kendall": _kendall(a, b, chosen),
        "top": overlap,
    }


def _pearson(a: FloatArray, b: FloatArray) -> FloatArray:
    """Correlate row by row; nan for a constant."""

    def unit(x: FloatArray) -> FloatArray:
        off = x - x.mean(axis=1, keepdims=True)
        size = np.abs(off).max(axis=1, keepdims=True)
        off = np.divide(off, size, out=np.full_like(off, np.nan), where=size > 0)
        return np.asarray(off / np.sqrt((off**2).sum(axis=1, keepdims=True)))

    return np.asarray(np.clip((unit(a) * unit(b)).sum(axis=1), -1.0, 1.0))


def _ranks(values: FloatArray, chosen: IntArray) -> FloatArray:
    """Rank the chosen points of every row, equal values alike, in the shape of ``chosen``."""
    code = np.unique(values, return_inverse=True)[1][chosen]
    ranks = np.empty(chosen.shape)
    for row, codes in enumerate(code):
        counts = np.bincount(codes)
        ranks[row] = (np.cumsum(counts) - (counts - 1) / 2)[codes]
    return ranks


def _kendall(a: FloatArray, b: FloatArray, chosen: IntArray) -> FloatArray:
    r"""Kendall's tau-b of every row.

    With $m_i$ the times point $i$ was chosen and $s_{ij}$ the signs of differences, it is
    $\sum_{ij} m_i m_j s^a_{ij} s^b_{ij}$ over the root of the same sums of $|s^a|$ and $|s^b|$.
    """
    from scipy import stats

    if len(a) > _PAIRWISE:
        return np.array([stats.kendalltau(a[row], b[row]).statistic for row in chosen])
    times = np.array([np.bincount(row, minlength=len(a)) for row in chosen], dtype=np.float64)
    signs = [np.sign(np.subtract.outer(values, values)) for values in (a, b)]

    def summed(pairs: FloatArray) -> FloatArray:
        return np.asarray(((times @ pairs) * times).sum(axis=1))

    scale = np.sqrt(summed(np.abs(signs[0]))) * np.sqrt(summed(np.abs(signs[1])))
    both = summed(signs[0] * signs[1])
    return np.where(scale > 0, both / np.where(scale > 0, scale, 1.0), np.nan)
