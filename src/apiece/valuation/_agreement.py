r"""How well two valuations of the same points agree, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from apiece._rng import RandomState, seed_from, stream
from apiece._typing import FloatArray
from apiece.errors import DataError, PlanError
from apiece.laws import quantile

if TYPE_CHECKING:
    import pandas as pd

_FEWEST: Final = 3
_RESAMPLES: Final = 200


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
        Coverage of the interval, from points drawn anew with replacement (bootstrap percentiles).
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
    quantile(level)  # complains of a level that is none
    measures = _measures(int(best))
    rng = stream(seed_from(random_state))
    draws = np.empty((resamples, len(measures)))
    for row in draws:
        chosen = rng.integers(n, size=n)
        row[:] = [measure(a[chosen], b[chosen]) for measure in measures.values()]
    tails = [(1 - level) / 2, (1 + level) / 2]
    ends = [
        np.quantile(column[np.isfinite(column)], tails)
        if np.isfinite(column).any()
        else (np.nan, np.nan)
        for column in draws.T
    ]
    return pd.DataFrame(
        {
            "agreement": [measure(a, b) for measure in measures.values()],
            "low": [low for low, _ in ends],
            "high": [high for _, high in ends],
            "n": n,
        },
        index=pd.Index(list(measures), name="measure"),
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


def _measures(top: int) -> dict[str, Callable[[FloatArray, FloatArray], float]]:
    from scipy import stats

    def pearson(a: FloatArray, b: FloatArray) -> float:
        a, b = a - a.mean(), b - b.mean()
        scale = np.abs(a).max() * np.abs(b).max()
        if not scale > 0:
            return float("nan")
        a, b = a / np.abs(a).max(), b / np.abs(b).max()
        return float(np.clip((a @ b) / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))

    def spearman(a: FloatArray, b: FloatArray) -> float:
        return pearson(stats.rankdata(a), stats.rankdata(b))

    def kendall(a: FloatArray, b: FloatArray) -> float:
        return float(stats.kendalltau(a, b).statistic)

    def overlap(a: FloatArray, b: FloatArray) -> float:
        best = [set(np.argsort(-values, kind="stable")[:top].tolist()) for values in (a, b)]
        return len(best[0] & best[1]) / top

    return {"pearson": pearson, "spearman": spearman, "kendall": kendall, "top": overlap}
