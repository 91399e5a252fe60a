r"""Contributions with rotating scoring rows, adjusted to be about the population.

Three things are learned from all points together.

1. *How much of the first-order prediction to subtract.* With the control variate $c$ of each
   contribution, whose mean over draws is zero, $\Delta - b\,c$ has the mean of $\Delta$ for any
   $b$ and the least variance for $b(k) = \mathrm{E}[\Delta c]/\mathrm{E}[c^2]$.
2. *The noise of rows.* More tasks average out which rows were drawn, not which rows the table
   holds. Tasks draw from random blocks of rows; with the effect $\beta_g$ of block $g$ on the
   adjusted contributions of a point, a table of $G$ blocks, $s$ of them active, has the variance
   $\frac{s^2}{G^2}\sum_g \beta_g^2$. It is estimated without bias from products of different
   tasks, relative to the variance over tasks, as $\rho\,k$; $m$ contributions are then worth
   $m / (1 + m \rho k)$. Few tasks say little about it: it is then near $0.1 / n$ for $n$ rows.
3. *What theory says*, and how far to correct it (`apiece.estimators._theory`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray, Places, PointIds
from apiece.estimators._theory import NOISE_DECAY, Corrections, corrected, theory_weights
from apiece.records import Contributions, Moments, Table, Theory, blocks_of

_BINS: Final = 6  # of sizes, in which the factor of the control is learned
_PARTS: Final = 3  # of sizes, in which the noise of rows is measured
_FEWEST: Final = 8  # contributions of a point and part, at least, to estimate effects of blocks
_USUAL: Final = 0.1  # typical noise of rows, times the number of rows
_AS_TASKS: Final = 100  # tasks that the typical value counts for; information grows as the square
_LOUD: Final = 0.9  # quantile at which the scale of the control is cut off


def about_population(table: Table) -> Table:
    """Return contributions adjusted to be about the population, or as they are if fixed."""
    if isinstance(table, Contributions):
        return table if table.control is None else _Learned.of(table).adjusted(table)
    first = next(iter(table.parts()), None)
    return table if first is None or first.control is None else Adjusted(table, _Learned.of(table))


@dataclass(frozen=True, eq=False)
class _Learned:
    r"""What is learned from all points together.

    Parameters
    ----------
    log_k, factor
        The factor $b$ of the control at some sizes.
    row_noise
        The noise of rows, relative to that of a contribution, for each training point.
    weights
        Corrections to what theory predicts; None where it predicts nothing.
    k_0
        The middle of the sampled sizes.
    """

    log_k: FloatArray
    factor: FloatArray
    row_noise: float
    weights: Corrections | None
    k_0: float

    @classmethod
    def of(cls, table: Table) -> _Learned:
        """Learn from a table of contributions, part by part."""
        low, high = table.k_range
        k_0 = float(np.sqrt(low * high))
        sizes, counts = table.sizes()
        log_k, factor = _factors(table, sizes, counts)
        known = cls(log_k, factor, 0.0, None, k_0)
        known = replace(known, row_noise=_row_noise(table, known, sizes, counts))
        return replace(known, weights=theory_weights(table, known))

    def adjusted(self, part: Contributions) -> Contributions:
        """Subtract the noise that is known, and count contributions for what they are worth."""
        return replace(
            part,
            delta=self.less_control(part),
            weight=self.worth(part),
            control=None,
            theory=self.expected(part.theory),
        )

    def expected(self, theory: Theory | None) -> Theory | None:
        """Return what theory expects of every point at its sizes, as one term."""
        if theory is None:
            return None
        if self.weights is None:
            factor = self.factor_at(theory.sizes)
            noise = theory.row_noise
            noise = None if noise is None else noise * factor[:, None] * factor
            return replace(theory, terms=theory.terms[:, :, :0], row_noise=noise)
        return corrected(theory, self.factor_at(theory.sizes), self.weights, self.k_0)

    def factor_at(self, k: AnyArray) -> FloatArray:
        """Return the factor of first-order theory at some sizes."""
        return np.asarray(np.interp(np.log(k), self.log_k, self.factor))

    def worth(self, part: Contributions) -> FloatArray:
        """Return how many contributions each one counts for, given the noise of rows.

        Of a table by chance (`Contributions.by_chance`) as if all points had been valued.
        """
        each = np.ones(len(part)) if part.weight is None else part.weight
        number = np.bincount(part.point, each, part.n_points)[part.point]
        return np.asarray(each / (1 + self.row_noise * part.k * number))

    def less_control(self, part: Contributions) -> FloatArray:
        """Return contributions without the noise that is known."""
        return np.asarray(part.delta - self.factor_at(part.k) * _control(part))


class Adjusted:
    """A streamed table of contributions about the population, adjusted block by block."""

    def __init__(self, table: Table, learned: _Learned) -> None:
        self._table, self._learned = table, learned
        self.ids: PointIds = table.ids
        self.attrs: dict[str, Any] = table.attrs
        self.n_points, self.k_range = table.n_points, table.k_range

    @cached_property
    def theory(self) -> Theory | None:
        """What theory expects of every point."""
        return self._learned.expected(getattr(self._table, "theory", None))

    def __len__(self) -> int:
        return len(self._table)

    def counts(self) -> IntArray:
        """Count the contributions of each point, shape ``(n_points,)``."""
        return self._table.counts()

    def nonzero(self) -> BoolArray:
        """Return which points have a contribution other than zero, shape ``(n_points,)``."""
        return self._table.nonzero()

    def sizes(self) -> tuple[IntArray, IntArray]:
        """Return the distinct cardinalities, rising, and how often each occurs."""
        return self._table.sizes()

    def losses(self) -> Moments:
        """Summarise the known losses, one for each task, by cardinality."""
        return self._table.losses()

    def of(self, points: Places) -> Contributions:
        """Return the rows of some points alone, and their ids."""
        return self._learned.adjusted(self._table.of(points))

    def between(self, low: int, high: int) -> Adjusted:
        """Return the rows at cardinalities from ``low`` to ``high`` alone."""
        return Adjusted(self._table.between(low, high), self._learned)

    def parts(self) -> Iterator[Contributions]:
        """Yield the rows of consecutive points, as many as memory allows at once."""
        return map(self._learned.adjusted, self._table.parts())

    def blocks(self, n_rows: int) -> Iterator[tuple[slice, Moments]]:
        """Yield the moments in blocks of points whose tables stay below ``n_rows`` entries."""
        return blocks_of(self.parts(), n_rows)


def _control(part: Contributions) -> FloatArray:
    return np.zeros(len(part)) if part.control is None else part.control


def _edges(sizes: IntArray, counts: IntArray, n_parts: int) -> FloatArray:
    """Return the inner borders of parts of sizes with about as many contributions each."""
    share = np.cumsum(counts) / counts.sum()
    places = np.searchsorted(share, np.arange(1, n_parts) / n_parts)
    return np.unique(sizes[places]).astype(np.float64)


def _factors(table: Table, sizes: IntArray, counts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Learn the factor of the control by size; the loudest points do not decide alone."""
    edges = _edges(sizes, counts, _BINS)
    top, bottom, where, n = np.zeros((4, len(edges) + 1))
    scales = [
        np.bincount(part.point, (part.k * _control(part)) ** 2, part.n_points)
        / np.maximum(part.counts(), 1)
        for part in table.parts()
    ]
    loud = max(float(np.quantile(np.concatenate(scales), _LOUD)), 1e-300)
    for part, scale in zip(table.parts(), scales, strict=True):
        c, d = part.k * _control(part), part.k * part.delta
        weight = 1 / np.maximum(scale, loud)[part.point]
        group = np.searchsorted(edges, part.k, side="right")
        for into, values in ((top, weight * c * d), (bottom, weight * c**2)):
            into += np.bincount(group, values, len(into))
        where += np.bincount(group, np.log(part.k), len(where))
        n += np.bincount(group, minlength=len(n))
    seen = (bottom > 0) & (n > 0)
    if not seen.any():
        return np.zeros(1), np.zeros(1)
    return where[seen] / n[seen], top[seen] / bottom[seen]


def _row_noise(table: Table, known: _Learned, sizes: IntArray, counts: IntArray) -> float:
    """Measure the noise of rows relative to that of a contribution, for each training point."""
    edges = _edges(sizes, counts, _PARTS)
    n_parts = len(edges) + 1
    noise, n_points, where, n_rows = np.zeros((4, n_parts))
    for part in table.parts():
        if part.active is None:
            return 0.0
        residual = _residuals(part, known.less_control(part))
        group = np.searchsorted(edges, part.k, side="right")
        cell = part.point * n_parts + group
        found = _block_effects(cell, residual, part.active, part.n_points * n_parts)
        at = np.arange(len(found)) % n_parts
        good = np.isfinite(found)
        noise += np.bincount(at[good], found[good], n_parts)
        n_points += np.bincount(at[good], minlength=n_parts)
        where += np.bincount(group, part.k, n_parts)
        n_rows += np.bincount(group, minlength=n_parts)
    seen = (n_points > 0) & (n_rows > 0)
    usual = _USUAL / float(table.attrs.get("n_pool", np.inf))
    if not seen.any():
        return usual
    k, rho = where[seen] / n_rows[seen], noise[seen] / n_points[seen]
    measured = float((k * rho).sum() / (k**2).sum())
    share = 1 / (1 + (_AS_TASKS / max(float(table.losses().n.sum()), 1.0)) ** 2)
    return max(0.0, share * measured + (1 - share) * usual)


def _residuals(part: Contributions, delta: FloatArray) -> FloatArray:
    """Return what is left of each point's contributions after a curve $a/k + b/k^2$."""
    k = part.k.astype(np.float64)
    unit = k**NOISE_DECAY
    one, two, d = unit / k, unit / k**2, unit * delta

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(part.point, values, part.n_points).astype(np.float64)

    aa, ab, bb = total(one * one), total(one * two), total(two * two)
    ad, bd = total(one * d), total(two * d)
    det = aa * bb - ab**2
    det = np.where(det > 1e-12 * aa * bb, det, np.inf)
    a, b = (bb * ad - ab * bd) / det, (aa * bd - ab * ad) / det
    return np.asarray(d - a[part.point] * one - b[part.point] * two)


def _block_effects(
    cell: IntArray, residual: FloatArray, active: IntArray, n_cells: int
) -> FloatArray:
    r"""Return the variance that blocks of rows give to each cell's mean, over that of a residual.

    With centred indicators $x_{tg}$ of the active blocks, $\sum_g \beta_g^2$ is estimated by
    $\sum_{s \ne t} e_s e_t \langle x_s, x_t \rangle$ over its value for unit effects. Residuals
    $e$ are from the mean of their $n$, so that different ones are correlated by $-1/(n - 1)$;
    squares count for $n / (n - 1)$ to make up for that.
    """
    n_blocks = max(1, int(active.max()).bit_length())
    bits = (active[:, None] >> np.arange(n_blocks)) & 1

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(cell, values, n_cells).astype(np.float64)

    n = total(np.ones(len(cell)))
    many = np.maximum(n, 1)
    mean = total(residual) / many
    e = residual - mean[cell]
    variance = total(e**2) / np.maximum(n - 1, 1)
    tops, norms = np.zeros(n_cells), np.zeros(n_cells)
    for g in range(n_blocks):
        x = bits[:, g].astype(np.float64)
        x -= (total(x) / many)[cell]
        tops += total(e * x) ** 2 - many / np.maximum(n - 1, 1) * total((e * x) ** 2)
        norms += (total(x**2) ** 2 - total(x**4)) / n_blocks
    share = total(bits.sum(axis=1).astype(np.float64)) / many / n_blocks
    good = (n >= _FEWEST) & (norms > 0) & (variance > 0)
    effect = np.full(n_cells, np.nan)
    effect[good] = (tops / np.where(norms > 0, norms, 1) * share**2)[good] / variance[good]
    return effect
