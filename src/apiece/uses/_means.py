"""Means of the laws over classes, or over any other groups of points."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from apiece._base.text import amount
from apiece.errors import DataError
from apiece.laws import Laws, quantile
from apiece.laws.sizes import check_sizes

if TYPE_CHECKING:
    import pandas as pd

_QUARTERS: Final = 4
_MOST_CLASSES: Final = 20  # numbers of more different values are quantities


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
        Group of every point, shape ``(n_points,)``, or a series by id. By default their classes, or
        four ranges of a quantity with as many points each.
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
    if isinstance(group, pd.Categorical):
        table["group"] = table["group"].astype(group.dtype)  # in the order of the quantities
    return table.sort_values(["group", "k"], kind="stable", ignore_index=True)


def _of_labels(laws: Laws) -> Any:
    """Return the class of every point, or the quarter of the quantities that it is in."""
    import pandas as pd

    labels = laws.labels
    if labels is None or labels.dtype.kind != "f" or len(np.unique(labels)) <= _MOST_CLASSES:
        return labels
    edges = np.unique(np.quantile(labels, np.linspace(0, 1, _QUARTERS + 1)))
    names = [f"{amount(low)} to {amount(high)}" for low, high in itertools.pairwise(edges)]
    return pd.cut(labels, edges.tolist(), labels=names, include_lowest=True)


def _groups(laws: Laws, by: Any) -> Any:
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
    group = _of_labels(laws) if by is None else np.asarray(by)
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
