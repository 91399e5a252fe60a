r"""Sizes at which the curves of two points cross, so that the more valuable one changes.

Two power laws of one sign cross once, at

$$k^* = \left(\frac{c_1}{c_2}\right)^{1 / (\alpha_1 - \alpha_2)},$$

which is why the best points for a small dataset are not the best for a large one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from apiece._base.typing import BoolArray, FloatArray, IntArray
from apiece.errors import PlanError
from apiece.laws import Laws
from apiece.laws.sizes import check_range
from apiece.records import scope_of, scoped
from apiece.uses._pairs import cross, intervals

if TYPE_CHECKING:
    import pandas as pd

_MOST_POINTS: Final = 2000  # compared with each other: 4 million pairs
_ROWS: Final = 256  # points whose pairs are held at once
_HALVINGS: Final = 60


class _Pairs(NamedTuple):
    """Swapping pairs, each field of shape ``(n_pairs,)``."""

    first: IntArray
    second: IntArray
    clarity: FloatArray


def crossing(laws: Laws, first: object, second: object) -> float:
    r"""Return the size at which the curves of two points cross; nan if they do not.

    For power laws

    $$\log k^* = \frac{\log|c_1| - \log|c_2|}{\alpha_1 - \alpha_2},$$

    and curves of opposite sign, of the same decay, or that would cross below one training point or
    beyond $10^{300}$ of them, do not cross. Other families are searched from 1 to 1,000 times the
    largest sampled size; of several crossings the one nearest to the sampled sizes counts.

    Parameters
    ----------
    laws
        Laws of any family.
    first, second
        Ids of the two points.

    Examples
    --------
    >>> laws = Laws.from_arrays(c=[1.0, 100.0], alpha=[1.0, 2.0])
    >>> round(crossing(laws, 0, 1), 6)
    100.0
    """
    rows = np.array([laws.place(first), laws.place(second)])
    at = laws.family.crossing(*laws.params[rows])
    return float(_refined(laws, rows[:1], rows[1:])[0]) if at is None else at


def crossings(
    laws: Laws,
    *,
    sizes: tuple[int, int] | None = None,
    most: int = 100,
    pairs: Sequence[tuple[object, object]] | None = None,
    level: float = 0.9,
    per_point: int | None = None,
) -> pd.DataFrame:
    r"""List pairs of points whose order swaps between the two ends of a range of sizes.

    A swap is as clear as its weaker end: with $d$ the difference of two curves and its standard
    error from both (as if their errors were independent),
    $z = \min(|d / \mathrm{se}(d)|)$ over the two ends.

    Parameters
    ----------
    laws
        Laws of any family. Of more than 2,000 points only the 1,000 most valuable at each end are
        compared, since swaps among the rest decide nothing.
    sizes
        Smallest and largest cardinality; the sampled range by default.
    most
        How many pairs to list.
    pairs
        Pairs of ids to list instead, whether they swap or not, as in `crossing`.
    level
        Coverage of the interval of the size.
    per_point
        In how many pairs a point is listed at most as ``first``, and as ``second``; None for any
        number.

    Returns
    -------
    pandas.DataFrame
        Clearest first: ``first`` (id of the point worth more at the smallest size), ``second`` (the
        one worth more at the largest), ``at`` (the size where they cross), ``low`` and ``high``
        (among the draws of both laws that cross at all), ``p_swap`` (probability that they swap
        within ``sizes``) and ``z``. Without uncertainty (``laws.cov`` is None) these are nan and
        pairs are ranked by their smaller difference relative to the values; points that alone
        lack it are left out.

    Examples
    --------
    >>> laws = Laws.from_arrays(c=[1.0, 100.0, 50.0], alpha=[1.0, 2.0, 2.0], k_range=(10, 1000))
    >>> crossings(laws).round(6)[["first", "second", "at"]].values.tolist()
    [[1, 0, 100.0], [2, 0, 50.0]]
    """
    import pandas as pd

    if most < 1:
        raise PlanError(f"most={most} pairs: expected at least 1. Pass for example most=100.")
    k_min, k_max = check_range(laws.k_range if sizes is None else sizes)
    ends = np.array([k_min, k_max], dtype=np.float64)
    mean = laws.mean(ends)
    error = np.zeros_like(mean) if laws.cov is None else laws.stderr(ends)
    if pairs is None:
        rows = _most_valuable(mean, np.asarray(np.isfinite(mean + error).all(axis=1)))
        swaps = _swaps(mean[rows], error[rows], laws.cov is not None, most, per_point)
        first, second = rows[swaps.first], rows[swaps.second]
        at = _bisect(laws, first, second, float(k_min), float(k_max))
    else:
        given = [[laws.place(point) for point in pair] for pair in pairs]
        first, second = np.array(given, dtype=np.int64).reshape(-1, 2).T
        at = np.array([crossing(laws, *pair) for pair in pairs], dtype=np.float64)
    gap = np.abs(mean[first] - mean[second])
    noise = np.hypot(np.hypot(error[first], error[second]), 1e-12 * gap)
    clarity = np.divide(gap, noise, out=np.full_like(gap, np.nan), where=noise > 0).min(axis=1)
    table = pd.DataFrame(
        {
            # As objects, so that a row of the table leaves whole numbers whole.
            "first": laws.ids[first].astype(object),
            "second": laws.ids[second].astype(object),
            "at": at,
            **intervals(laws, first, second, ends, level)._asdict(),
            "z": clarity if laws.cov is not None else np.full(len(first), np.nan),
        }
    )
    return scoped(table, scope_of(laws.attrs))


def _most_valuable(mean: FloatArray, is_known: BoolArray) -> IntArray:
    """Return the rows to compare, in order: all known ones, or the best at either end."""
    rows = np.flatnonzero(is_known)
    if len(rows) <= _MOST_POINTS:
        return rows
    half = _MOST_POINTS // 2
    best = [np.argsort(-mean[rows, end], kind="stable")[:half] for end in (0, 1)]
    return rows[np.unique(np.concatenate(best))]


def _swaps(
    mean: FloatArray, error: FloatArray, has_error: bool, most: int, per_point: int | None
) -> _Pairs:
    """Find the clearest swaps among all pairs, some rows at a time."""
    swaps = _Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    for start in range(0, len(mean), _ROWS):
        part = slice(start, start + _ROWS)
        # The first of a pair is worth more at the small end, the second at the large one.
        low = mean[part, None, 0] - mean[None, :, 0]
        high = mean[None, :, 1] - mean[part, None, 1]
        first, second = np.nonzero((low > 0) & (high > 0))
        gap = np.stack([low[first, second], high[first, second]], axis=1)
        i, j = first + start, second
        size = np.abs(mean[i]) + np.abs(mean[j])
        # A difference of exact laws is as clear as the digits of a number allow.
        noise = np.hypot(np.hypot(error[i], error[j]), 1e-12 * size) if has_error else size
        clarity = np.divide(gap, noise, out=np.zeros_like(gap), where=noise > 0).min(axis=1)
        swaps = _Pairs(
            np.append(swaps.first, i),
            np.append(swaps.second, j),
            np.append(swaps.clarity, clarity),
        )
        keep = np.argsort(-swaps.clarity, kind="stable")
        if per_point is not None:
            for side in (swaps.first, swaps.second):
                keep = keep[_place_among_equals(side[keep]) < per_point]
        else:
            keep = keep[:most]
        swaps = _Pairs(swaps.first[keep], swaps.second[keep], swaps.clarity[keep])
    return _Pairs(swaps.first[:most], swaps.second[:most], swaps.clarity[:most])


def _place_among_equals(numbers: IntArray) -> IntArray:
    """Return how many equal numbers come before each one.

    >>> _place_among_equals(np.array([5, 3, 5, 5]))
    array([0, 0, 1, 2])
    """
    order = np.argsort(numbers, kind="stable")
    rising = numbers[order]
    is_first = np.append(True, rising[1:] != rising[:-1])
    start = np.flatnonzero(is_first)
    place = np.empty(len(numbers), dtype=np.int64)
    place[order] = np.arange(len(numbers)) - np.repeat(
        start, np.diff(np.append(start, len(rising)))
    )
    return place


def _bisect(
    laws: Laws, first: IntArray, second: IntArray, k_min: float, k_max: float
) -> FloatArray:
    """Find where each pair crosses, on a log scale; any family, shape ``(n_pairs,)``."""
    one, two = laws.params[first], laws.params[second]
    low, high = np.full(len(first), np.log(k_min)), np.full(len(first), np.log(k_max))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        k = np.exp(middle)
        gap = laws.family.curve(one, k) - laws.family.curve(two, k)
        low, high = np.where(gap > 0, middle, low), np.where(gap > 0, high, middle)
    return np.asarray(np.exp((low + high) / 2))


def _refined(laws: Laws, first: IntArray, second: IntArray) -> FloatArray:
    """Find where given pairs cross, wherever that is, to the last digits."""
    near = cross(laws, laws.params[first], laws.params[second])
    at = np.full(len(first), np.nan)
    for row in np.flatnonzero(np.isfinite(near)):
        i, j = first[row : row + 1], second[row : row + 1]
        low, high = max(1.0, 0.8 * near[row]), 1.25 * near[row]
        if laws.mean(low)[i[0]] < laws.mean(low)[j[0]]:
            i, j = j, i
        at[row] = _bisect(laws, i, j, low, high)[0]
    return at
