"""One valuation against another: two models, two estimators, an estimate and the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apiece._base.typing import AnyArray
from apiece.errors import DataError
from apiece.plots._style import axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_MANY = 5_000


def paired_values(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Join two tables of values by point: ``first`` and ``second``, both known.

    Raises
    ------
    DataError
        If they share fewer than two points with known values.

    Examples
    --------
    >>> import pandas as pd
    >>> first, second = (pd.DataFrame({"value": [0.1, column]}) for column in (0.2, 0.3))
    >>> paired_values(first, second)["second"].tolist()
    [0.1, 0.3]
    """
    import pandas as pd

    both = pd.DataFrame({"first": first["value"], "second": second["value"]}).dropna()
    if len(both) < 2:
        raise DataError(
            f"the two valuations share {len(both)} points with a value: expected at least 2. "
            "Pass valuations of the same points, with the same ids."
        )
    return both


def plot_agreement(
    first: pd.DataFrame,
    second: pd.DataFrame,
    *,
    names: tuple[str, str] = ("first", "second"),
    ax: Axes | None = None,
) -> Axes:
    """Plot the values of points under one valuation against those under another.

    Parameters
    ----------
    first, second
        Tables that `apiece.value` returns, indexed by point id, with a column ``value``.
    names
        What they are, for the axes.
    ax
        Axes to draw on; a new figure by default.

    Examples
    --------
    >>> import pandas as pd
    >>> values = pd.DataFrame({"value": [0.1, 0.2, 0.4]})
    >>> plot_agreement(values, 2 * values, names=("one", "two")).get_xlabel()
    'value, one'
    """
    both = paired_values(first, second)
    x, y = both["first"].to_numpy(), both["second"].to_numpy()
    pearson, spearman = (
        _correlation(x, y),
        _correlation(x.argsort().argsort(), y.argsort().argsort()),
    )
    many = len(x) > _MANY
    with axes(ax) as ax:
        ax.scatter(
            x, y, s=4 if many else 18, alpha=0.3 if many else 0.6, linewidths=0, rasterized=many
        )
        ends = np.array([min(x.min(), y.min()), max(x.max(), y.max())])
        ax.plot(ends, ends, "--", color="0.5", linewidth=1, label="equal")
        ax.set(xlabel=f"value, {names[0]}", ylabel=f"value, {names[1]}")
        ax.legend(title=f"{len(x):,} points\nPearson {pearson:.3f}\nSpearman {spearman:.3f}")
    return ax


def _correlation(x: AnyArray, y: AnyArray) -> float:
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])
