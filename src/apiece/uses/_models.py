"""How well two sets of laws agree, such as those of two models for the same points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apiece._base.rng import RandomState
from apiece.laws import Laws
from apiece.laws.sizes import middle
from apiece.uses._agreement import agreement

if TYPE_CHECKING:
    import pandas as pd


def compare_laws(
    first: Laws,
    second: Laws,
    *,
    at: float | None = None,
    top: int | None = None,
    level: float = 0.9,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    r"""Compare the parameters of two sets of laws, point by point.

    Parameters
    ----------
    first, second
        Laws of the same points, matched by id.
    at
        A size at which to compare $\psi_k$ too; the middle of the sizes of ``first`` by default.
    top
        How many of the largest to compare as sets; a tenth of the points by default.
    level
        Coverage of the interval, by bootstrap over points.
    random_state
        Seed of the bootstrap.

    Returns
    -------
    pandas.DataFrame
        Columns ``quantity`` (parameters that both families have; for power laws ``c``, ``alpha``
        and ``log_abs_c``; then ``psi`` at the size), ``measure`` (``pearson``, ``spearman``,
        ``kendall``, ``top``), ``agreement``, ``low``, ``high`` and ``n``.

    Examples
    --------
    >>> laws = Laws.from_arrays(c=np.arange(1.0, 30.0), alpha=np.linspace(0.5, 1.5, 29))
    >>> table = compare_laws(laws, laws)
    >>> round(float(table["agreement"].min()), 6)
    1.0
    """
    import pandas as pd

    size = middle(first.k_range) if at is None else float(at)

    def quantities(laws: Laws) -> dict[str, pd.Series]:
        columns = {name: laws.params[:, j] for j, name in enumerate(laws.family.parameters)}
        if "c" in columns:
            with np.errstate(divide="ignore"):
                columns["log_abs_c"] = np.log(np.abs(columns["c"]))
        columns["psi"] = laws.mean(size)
        return {name: pd.Series(column, index=laws.ids) for name, column in columns.items()}

    one, two = quantities(first), quantities(second)
    parts = [
        agreement(one[name], two[name], top=top, level=level, random_state=random_state)
        .reset_index()
        .assign(quantity=name)
        for name in one
        if name in two
    ]
    table = pd.concat(parts, ignore_index=True)
    return table[["quantity", "measure", "agreement", "low", "high", "n"]]
