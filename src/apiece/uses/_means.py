"""Means of the laws over classes, or over any other groups of points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from apiece.errors import DataError
from apiece.laws import Laws, quantile
from apiece.laws.sizes import check_sizes

if TYPE_CHECKING:
    import pandas as pd


def means(
    laws: Laws, *, at: npt.ArrayLike | None = None, by: Any = None, level: float = 0.9
) -> pd.DataFrame:
    r"""Average the expected contributions of the points of each class or group.

    Parameters
    ----------
    laws
        Laws of the points.
    at
        Sizes, a number or shape ``(n_k,)``; ends and middle of the sampled range by default.
    by
        Group of every point, shape ``(n_points,)``, or a series by id; their labels by default.
    level
        Coverage of the interval. It says how well the mean of these very points is known: errors of
        their laws, taken as independent, $\mathrm{se} = \sqrt{\sum_i \mathrm{se}_i^2} / n$.

    Returns
    -------
    pandas.DataFrame
        One row for each ``group`` and size ``k``: ``n`` points with a law, their mean ``value``
        with ``low`` and ``high``, the spread ``sd`` between points, the share ``harmful`` of points
        whose contribution is negative, and for power laws the median ``alpha``.

    Examples
    --------
    >>> laws = Laws.from_arrays(c=[1.0, 3.0, -1.0], alpha=[1.0] * 3, labels=["a", "a", "b"])
    >>> means(laws, at=100)[["group", "n", "value", "harmful"]].values.tolist()
    [['a', 2, 0.02, 0.0], ['b', 1, -0.01, 1.0]]
    """
    import pandas as pd

    low, high = laws.k_range
    sizes, _ = check_sizes([low, round(laws.k_ref), high] if at is None else at)
    group = _groups(laws, by)
    value, error = laws.mean(sizes), laws.stderr(sizes)
    rows = []
    for name in pd.unique(group[laws.has_law]):
        members = np.flatnonzero((group == name) & laws.has_law)
        for column, k in enumerate(sizes):
            psi = value[members, column]
            half = quantile(level) * np.sqrt((error[members, column] ** 2).sum()) / len(members)
            row = {
                "group": name,
                "k": k,
                "n": len(members),
                "value": psi.mean(),
                "low": psi.mean() - half,
                "high": psi.mean() + half,
                "sd": psi.std(ddof=1) if len(members) > 1 else np.nan,
                "harmful": float((psi < 0).mean()),
            }
            if laws.family.decay is not None:
                decay = laws.parameter(laws.family.decay)
                row[laws.family.decay] = float(np.median(decay[members]))
            rows.append(row)
    table = pd.DataFrame(rows)
    return table.sort_values(["group", "k"], kind="stable", ignore_index=True)


def _groups(laws: Laws, by: Any) -> npt.NDArray[Any]:
    """Return the group of every point."""
    import pandas as pd

    if isinstance(by, pd.Series):
        named = by.set_axis(by.index.astype(str))
        if named.index.has_duplicates or not set(laws.ids.astype(str)) <= set(named.index):
            raise DataError(
                "by does not name one group for every point: expected a series indexed by id. "
                "Pass by=series.loc[ids]."
            )
        by = named[laws.ids.astype(str)].to_numpy()
    group = laws.labels if by is None else np.asarray(by)
    if group is None:
        raise DataError(
            "these laws hold no labels: expected groups to average over. Pass by=, one group for "
            "each point."
        )
    if group.shape != laws.ids.shape:
        raise DataError(
            f"by has shape {group.shape}: expected {laws.ids.shape}, one group for each point. "
            "Pass a series by id, or an array in the order of laws.ids."
        )
    return group
