r"""Weights $w_k$ of semivalues, $v = \sum_k w_k \psi_k$, over cardinalities.

In a game of $n$ points a semivalue weighs the sizes $k = 0, \ldots, n - 1$ of the other players:

| kind | $w_k$ |
| --- | --- |
| Data Shapley | $1/n$ |
| Beta$(a, b)$ Shapley | $\binom{n-1}{k} B(k + b,\ n - 1 - k + a) / B(a, b)$ |
| Banzhaf | $\binom{n-1}{k} 2^{-(n-1)}$ |
| leave-one-out | 1 at $k = n - 1$ |

(Kwon and Zou, AISTATS 2022, for the second: $a > b$ favours small sizes, $a = b = 1$ is Shapley.)
Distributional Shapley is the plain mean over a range of sizes. Weights of a million sizes are
computed from the logs of their ratios, cumulated outwards from the largest: nothing overflows, and
the sum is exact to a few units in the last place.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from apiece._base.typing import FloatArray
from apiece.errors import CardinalityError

MOST_SIZES: Final = 10_000_000  # that are listed one by one: 160 MB
_FEW: Final = 2_000  # sizes for which a sum is taken as it stands
_WIDTH: Final = 0.02  # of a block of sizes, in log k, when there are more


class SizeWeights(NamedTuple):
    """Sizes and their weights, each of shape ``(n_k,)``.

    Examples
    --------
    >>> uniform(3, 6).within(3, 4).w
    array([0.5, 0.5])
    """

    k: FloatArray
    w: FloatArray

    def within(self, k_min: float, k_max: float) -> SizeWeights:
        """Return the weights of the sizes in a range, scaled to the sum they had altogether."""
        keep = (self.k >= k_min) & (self.k <= k_max)
        kept = self.w[keep]
        total = kept.sum()
        return SizeWeights(self.k[keep], kept * (self.w.sum() / total if total else 1.0))


def uniform(k_min: int, k_max: int) -> SizeWeights:
    """Weigh all sizes from ``k_min`` to ``k_max`` alike.

    >>> uniform(3, 4).w
    array([0.5, 0.5])
    """
    n_sizes = check_count(k_max - k_min + 1)
    return SizeWeights(np.arange(k_min, k_max + 1, dtype=np.float64), np.full(n_sizes, 1 / n_sizes))


def beta_binomial(n: int, a: float, b: float) -> SizeWeights:
    """Weigh the sizes of a game of ``n`` points as Beta(a, b) Shapley does.

    >>> beta_binomial(3, 1, 1).w.round(12)
    array([0.33333333, 0.33333333, 0.33333333])
    """
    k = np.arange(check_count(n) - 1, dtype=np.float64)
    up = np.log((n - 1 - k) / (n - 2 - k + a))
    return _from_log_ratios(up + np.log((k + b) / (k + 1)))


def binomial(n: int) -> SizeWeights:
    """Weigh the sizes of a game of ``n`` points as Banzhaf does: every other is in with chance 1/2.

    >>> binomial(3).w.round(12)
    array([0.25, 0.5 , 0.25])
    """
    k = np.arange(check_count(n) - 1, dtype=np.float64)
    return _from_log_ratios(np.log((n - 1 - k) / (k + 1)))


def check_count(n_sizes: int) -> int:
    """Return the number of sizes, or say that there are too many."""
    if n_sizes > MOST_SIZES:
        raise CardinalityError(
            f"{n_sizes:,} sizes are to be weighed: expected at most {MOST_SIZES:,}. "
            "Narrow sizes=, or lower n=."
        )
    return n_sizes


def _from_log_ratios(log_ratio: FloatArray) -> SizeWeights:
    """Return weights of the sizes 0, 1, ... whose successive ratios are given, with sum 1."""
    top = int(np.argmax(np.append(0.0, np.cumsum(log_ratio))))
    below = np.cumsum(-log_ratio[:top][::-1])[::-1]
    above = np.cumsum(log_ratio[top:])
    w = np.exp(np.concatenate([below, [0.0], above]))
    return SizeWeights(np.arange(len(w), dtype=np.float64), w / w.sum())


def nodes(weights: SizeWeights, width: float | None = None) -> SizeWeights:
    r"""Replace many sizes by few nodes that give the same sum for every smooth curve.

    Sizes are cut into blocks of ``width`` in $\log k$. Two nodes replace a block, with the mass,
    mean, variance and skewness of its weights, so that cubics are summed exactly; the relative
    error for $k^{-\alpha}$ is about $\alpha(\alpha+1)(\alpha+2)(\alpha+3)\,\text{width}^4 / 4320$:
    with the usual 0.02, $1.3\cdot10^{-9}$ for $\alpha = 1.2$.

    Parameters
    ----------
    weights
        Sizes, rising, and weights. Some negative ones, or few sizes, are returned as they are.
    width
        Width of a block; None for the usual one, which leaves up to 2,000 sizes as they are.

    Examples
    --------
    >>> few = nodes(uniform(100, 10_000))
    >>> len(few.k) < 1000, bool(np.isclose(few.w.sum(), 1))
    (True, True)
    """
    keep = weights.w != 0
    k, w = weights.k[keep], weights.w[keep]
    if (w < 0).any() or len(k) < 3 or (width is None and len(k) <= _FEW):
        return SizeWeights(k, w)
    block = np.floor(np.log(np.maximum(k, 0.5)) / (width or _WIDTH))
    starts = np.flatnonzero(np.append(True, np.diff(block) > 0))
    counts = np.diff(np.append(starts, len(k)))
    mass = np.add.reduceat(w, starts)
    mean = np.add.reduceat(w * k, starts) / mass
    off = k - np.repeat(mean, counts)
    sd = np.sqrt(np.add.reduceat(w * off**2, starts) / mass)
    unit = np.where(sd > 0, sd, 1.0)
    skew = np.add.reduceat(w * off**3, starts) / mass / unit**3
    root = np.hypot(skew, 2.0)
    share = np.where(counts > 1, (root - skew) / (2 * root), 0.0)  # of the upper node
    ks = np.concatenate(
        [mean + sd * (skew - root) / 2 * (counts > 1), mean + sd * (skew + root) / 2]
    )
    ws = np.concatenate([mass * (1 - share), mass * share])
    order = np.argsort(ks[ws > 0], kind="stable")
    return SizeWeights(ks[ws > 0][order], ws[ws > 0][order])
