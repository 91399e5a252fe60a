r"""Where the curves of given pairs of points cross, for any family and any draw of its parameters.

The difference of two curves is followed over a wide range of sizes on a log scale; where it changes
sign, the curves cross. Two power laws of one sign do so once, at

$$k^* = \left(\frac{c_1}{c_2}\right)^{1 / (\alpha_1 - \alpha_2)},$$

two series laws up to twice. Of several crossings the one nearest to the middle of the sampled sizes
counts (on the log scale).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from apiece._base.typing import FloatArray, IntArray
from apiece.laws import Laws

REACH: Final = 1000.0  # how far beyond the sampled sizes a crossing is looked for
_STEP: Final = 0.15  # in log k, between sizes that are looked at
_DRAWS: Final = 400
_ENTRIES: Final = 4_000_000


class Intervals(NamedTuple):
    """Interval of each pair's crossing and chance that it swaps, each ``(n_pairs,)``."""

    low: FloatArray
    high: FloatArray
    p_swap: FloatArray


def cross(laws: Laws, one: FloatArray, two: FloatArray) -> FloatArray:
    """Return where each pair of curves crosses, nan where they do not.

    Parameters
    ----------
    laws
        For the family and the sampled sizes.
    one, two
        Parameters of both curves, shape ``(n_pairs, p)``.

    Returns
    -------
    FloatArray
        Sizes between 1 and 1,000 times the largest sampled, shape ``(n_pairs,)``, good to 1 %:
        differences are interpolated between sizes that are 15 % apart.
    """
    end = np.log(REACH * laws.k_range[1])
    log_k = np.linspace(0.0, end, int(end / _STEP) + 2)
    k, middle = np.exp(log_k), np.log(laws.k_ref)
    result = np.full(len(one), np.nan)
    step = max(1, _ENTRIES // len(k))
    for start in range(0, len(one), step):
        part = slice(start, start + step)
        with np.errstate(invalid="ignore", over="ignore"):  # draws from a hopeless fit are wild
            gap = laws.family.mean(one[part], k) - laws.family.mean(two[part], k)
            left, right = gap[:, :-1], gap[:, 1:]
            changes = np.isfinite(left) & np.isfinite(right)
            changes &= ((left > 0) & (right <= 0)) | ((left < 0) & (right >= 0))
            share = np.where(changes, left, 0.0) / np.where(changes, left - right, 1.0)
        at = log_k[:-1] + share * np.diff(log_k)
        far = np.where(changes, np.abs(at - middle), np.inf)
        nearest = np.argmin(far, axis=1)
        rows = np.arange(len(gap))
        result[part] = np.where(changes[rows, nearest], np.exp(at[rows, nearest]), np.nan)
    return result


def intervals(
    laws: Laws, first: IntArray, second: IntArray, ends: FloatArray, level: float
) -> Intervals:
    """Return how sure crossings are, from draws of both laws; nan where one has no uncertainty.

    Parameters
    ----------
    laws
        Laws of all points.
    first, second
        Rows of the two points of each pair, shape ``(n_pairs,)``.
    ends
        A pair swaps if the first is worth more at the smaller of these sizes, and less at the
        larger, shape ``(2,)``.
    level
        Coverage of the interval, among the draws that cross at all.
    """
    rows, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    drawn = laws.select(rows).draws(_DRAWS, random_state=0).transpose(1, 0, 2)
    bounds = np.full((len(first), 2), np.nan)
    p_swap = np.full(len(first), np.nan)
    for pair, (i, j) in enumerate(zip(*np.split(place, 2), strict=True)):
        one, two = drawn[i], drawn[j]
        if not np.isfinite(one).all() or not np.isfinite(two).all():
            continue
        with np.errstate(invalid="ignore", over="ignore"):
            gap = laws.family.mean(one, ends) - laws.family.mean(two, ends)
        p_swap[pair] = ((gap[:, 0] > 0) & (gap[:, 1] < 0)).mean()
        at = cross(laws, one, two)
        if np.isfinite(at).any():
            tails = [(1 - level) / 2, (1 + level) / 2]
            bounds[pair] = np.quantile(at[np.isfinite(at)], tails)
    return Intervals(bounds[:, 0], bounds[:, 1], p_swap)
