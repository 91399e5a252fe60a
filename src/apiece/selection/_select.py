"""The points with the largest expected contribution at one size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apiece.errors import PlanError
from apiece.laws import Laws

if TYPE_CHECKING:
    import pandas as pd


def select(laws: Laws, *, take: int, at: float, level: float = 0.9) -> pd.DataFrame:
    r"""Pick the points that help most when added to ``at`` others.

    Points are ranked by $\psi_k$ at $k$ = ``at``, one at a time: what picks share with each other
    is not counted. Equal values keep the order of the points; one without a law is never picked.

    Parameters
    ----------
    laws
        Laws of the points to choose from.
    take
        How many to pick.
    at
        Cardinality now.
    level
        Coverage of the interval.

    Returns
    -------
    pandas.DataFrame
        Columns ``rank`` (from 1), ``value``, ``low``, ``high``, indexed by id, best first.

    Examples
    --------
    >>> laws = Laws.from_arrays(c=[1.0, 8.0, 5.0], alpha=[1.0, 2.0, 2.0], ids=["a", "b", "c"])
    >>> select(laws, take=2, at=2)["value"].to_dict()
    {'b': 2.0, 'c': 1.25}
    """
    import pandas as pd

    values = laws.mean(float(at))
    n_known = int(np.isfinite(values).sum())
    if take != int(take) or not 1 <= take <= n_known:
        missing = laws.n_points - n_known
        without = f" ({missing:,} more have none)" if missing else ""
        raise PlanError(
            f"take={take} cannot be picked: expected 1 <= take <= {n_known}, the points that have "
            f"a law{without}. Ask for fewer, or collect more."
        )
    low, high = laws.interval(float(at), level=level)
    order = np.argsort(-values, kind="stable")[: int(take)]  # nan sorts last
    return pd.DataFrame(
        {
            "rank": np.arange(1, len(order) + 1),
            "value": values[order],
            "low": low[order],
            "high": high[order],
        },
        index=pd.Index(laws.ids[order], name="point"),
    )
