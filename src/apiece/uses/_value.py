r"""Values of points as weighted sums of their laws, $v_i = \sum_k w_k \psi_k(\text{params}_i)$."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Final

import numpy as np

from apiece._base.rng import RandomState
from apiece.errors import ApieceWarning
from apiece.laws import Laws, quantile
from apiece.uses._kinds import Kind, Semivalue, as_semivalue
from apiece.uses._ranks import add_ranks, drawn_values
from apiece.uses._weights import SizeWeights, nodes

if TYPE_CHECKING:
    import pandas as pd

_ENOUGH: Final = 1_000  # points that tell where values come from


def values_of_laws(
    laws: Laws,
    *,
    kind: Kind | Semivalue = "shapley",
    sizes: tuple[int, int] | None = None,
    n: int | None = None,
    level: float = 0.9,
    top: int | None = None,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    r"""Value every point by its law, see `apiece.value`.

    $$v_i = \sum_{k} w_k\,\psi_k(\text{params}_i)$$

    with the weights of the [`Semivalue`][apiece.uses.Semivalue]. The interval is exact for
    the normal errors of the law's local coordinates (delta method). A law has no value at $k = 0$;
    the weight of the empty set goes to $k = 1$. Values are nan for points without a law, and
    intervals for points without uncertainty. Where a size that counts is beyond ``laws.reach``
    the table has a ``status``, "not known".

    Examples
    --------
    >>> laws = Laws.from_arrays(c=[1.0, -1.0], alpha=[1.0, 2.0], k_range=(1, 9))
    >>> values_of_laws(laws, sizes=(1, 2))["value"].tolist()
    [0.75, -0.625]
    """
    import pandas as pd

    chosen = as_semivalue(kind).over(laws.k_range, sizes=sizes, n=n)
    sums = nodes(SizeWeights(np.maximum(chosen.k, 1.0), chosen.w))
    estimate = laws.functional(sums.k, sums.w, level=level)
    _warn_of_extrapolation(laws, sums)
    table = pd.DataFrame(estimate._asdict(), index=pd.Index(laws.ids, name="point"))
    table["stderr"] = (estimate.high - estimate.value) / quantile(level, laws.df)
    largest = float(sums.k[sums.w != 0].max(initial=1.0))
    if laws.is_beyond(largest):
        table["status"] = [str(status) for status in laws.status_at(largest)]
    if top is None:
        return table
    draws = np.stack(list(drawn_values(laws, sums, random_state=random_state)))
    return add_ranks(table, draws, top, level)


def _warn_of_extrapolation(laws: Laws, sums: SizeWeights) -> None:
    r"""Warn if most of $\sum_k |w_k \psi_k|$ of the median point lies below the sampled sizes."""
    few = laws.select(np.flatnonzero(laws.has_law)[:: max(1, laws.n_points // _ENOUGH)])
    k_min, k_max = laws.k_range
    below = sums.k < k_min
    if not below.any() or not few.n_points:
        return
    parts = np.abs(few.family.mean(few.params, sums.k) * sums.w)
    whole = parts.sum(axis=1)
    share = np.median(parts[:, below].sum(axis=1)[whole > 0] / whole[whole > 0])
    if share > 0.5:
        warnings.warn(
            f"{share:.0%} of the typical value comes from sizes below {k_min:,}, where nothing was "
            f"sampled: the law is extrapolated from {k_min:,} to {k_max:,}. Pass sizes="
            f"({k_min}, {k_max}) to value within them, or collect contributions at smaller sizes.",
            ApieceWarning,
            stacklevel=4,
        )
