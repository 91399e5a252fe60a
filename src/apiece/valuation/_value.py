r"""Values of points as weighted sums of their laws.

Distributional Shapley, the value of a point in a dataset of random size, is the plain mean of
$\psi_k$ over sizes (Ghorbani, Kim and Zou, ICML 2020).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from apiece._check import one_of
from apiece._typing import FloatArray
from apiece.laws import Laws
from apiece.laws.sizes import check_range
from apiece.valuation._weights import shapley_weights

if TYPE_CHECKING:
    import pandas as pd

KINDS: Final[dict[str, Callable[[int, int], tuple[FloatArray, FloatArray]]]] = {
    "shapley": shapley_weights,
    "distributional": shapley_weights,
}


def value(
    laws: Laws,
    *,
    kind: str = "shapley",
    sizes: tuple[int, int] | None = None,
    level: float = 0.9,
) -> pd.DataFrame:
    r"""Value every point.

    $$v_i = \sum_{k} w_k\,\psi_k(\text{params}_i)$$

    with $w_k = 1/(k_\max - k_\min + 1)$ for Distributional Shapley. The interval is exact for the
    normal errors of the law's local coordinates (delta method).

    Parameters
    ----------
    laws
        Laws of the points.
    kind
        ``"shapley"``, which is also called ``"distributional"``.
    sizes
        Smallest and largest cardinality; the sampled range by default, an extrapolation beyond it.
    level
        Coverage of the interval.

    Returns
    -------
    pandas.DataFrame
        Columns ``value``, ``low``, ``high`` in units of the utility, indexed by id; nan for points
        without a law, and in ``low`` and ``high`` for points without uncertainty.

    Examples
    --------
    >>> laws = Laws.from_arrays(c=[1.0, -1.0], alpha=[1.0, 2.0])
    >>> value(laws, sizes=(1, 2))["value"].tolist()
    [0.75, -0.625]
    """
    import pandas as pd

    one_of("kind", kind, KINDS)
    k_min, k_max = check_range(laws.k_range if sizes is None else sizes)
    k, weights = KINDS[kind](k_min, k_max)
    estimate = laws.functional(k, weights, level=level)
    return pd.DataFrame(estimate._asdict(), index=pd.Index(laws.ids, name="point"))
