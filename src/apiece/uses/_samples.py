r"""Values by Monte Carlo, straight from contributions: no law in between.

Contributions are not spread over sizes as a value weighs them: designs differ, and the larger $D$,
the more often a point is inside it and gets no contribution. Sizes are therefore cut into strata
$s$ of equal weight $W_s$ (a design that repeats its sizes has a stratum for each), and in a stratum
a contribution at size $k$ counts $r_k = w_k / p_k$, its weight over the chance to see it (which is
smaller where a run values some points rarely):

$$\hat v_i = \sum_s W_s\,\frac{\sum_{j \in s} r_j \Delta_{ij}}{\sum_{j \in s} r_j}, \qquad
  \mathrm{se}^2 = \sum_s W_s^2\,\frac{m_s}{m_s - 1}
  \frac{\sum_{j \in s} r_j^2 (\Delta_{ij} - \bar\Delta_{is})^2}{(\sum_{j \in s} r_j)^2}.$$

Between repeated sizes $\psi_k$ is taken as linear in $1/(k + 1)$.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from apiece._base.rng import RandomState, seed_from, stream
from apiece._base.typing import BoolArray, FloatArray, IntArray
from apiece.errors import ApieceWarning, FitError
from apiece.laws import quantile
from apiece.records import Contributions, DesignRecord, Provenance, Table
from apiece.uses._kinds import Kind, Semivalue, as_semivalue
from apiece.uses._ranks import add_ranks, n_draws
from apiece.uses._weights import SizeWeights

if TYPE_CHECKING:
    import pandas as pd

_MOST_STRATA: Final = 20
_PER_STRATUM: Final = 3  # contributions of the typical point
_MOST_GRID: Final = 50  # sizes of a design that repeats them
_FULL: Final = 0.9  # share of points and sizes that have contributions, in a repeated design
_TINY: Final = 1e-9  # of the largest weight


class _Seen(NamedTuple):
    """What was sampled: distinct sizes, rising, how often each, points and pairs of both."""

    k: IntArray
    n: IntArray
    n_points: int
    n_cells: int

    @property
    def k_range(self) -> tuple[int, int]:
        return (int(self.k[0]), int(self.k[-1])) if len(self.k) else (1, 1)


class _Strata(NamedTuple):
    """For each size its stratum and what it counts; for each stratum its weight and place.

    ``by_chance`` says whether counts must still be divided by the probability of a contribution.
    """

    k: IntArray
    of: IntArray
    counts: FloatArray
    weight: FloatArray
    place: FloatArray
    by_chance: bool


def value_samples(
    contributions: Table,
    *,
    kind: Kind | Semivalue = "shapley",
    sizes: tuple[int, int] | None = None,
    n: int | None = None,
    level: float = 0.9,
    top: int | None = None,
    n_pool: int | None = None,
    is_candidate: BoolArray | None = None,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    r"""Value every point by Monte Carlo from its contributions.

    Parameters
    ----------
    contributions
        The samples. Sizes outside the sampled ones say nothing: their weight goes to the others,
        with a warning if it is more than 1 %.
    kind, sizes, n
        Which value, see `value`.
    level
        Coverage of the interval, normal with the standard error above.
    top
        Also rank the points, see `value`.
    n_pool
        Points that $D$ was drawn from; a point of the pool is outside a $D$ of size $k$ with
        chance $1 - k/n_\mathrm{pool}$. Left out, that of ``contributions.attrs``, or a large pool.
    is_candidate
        Which points are not in the pool and so always outside, shape ``(n_points,)``.
    random_state
        Seed of the draws behind the ranks.

    Returns
    -------
    pandas.DataFrame
        As `value`, with ``n_samples``, the contributions that count.

    Examples
    --------
    >>> table = Contributions.from_arrays(point=[0] * 4, k=[1, 1, 1, 2], delta=[3, 4, 5, 1])
    >>> value_samples(table, sizes=(1, 2))["value"].tolist()
    [2.5]
    """
    import pandas as pd

    seen, known = _seen(contributions), Provenance.of(contributions.attrs)
    chosen = as_semivalue(kind).over(seen.k_range, sizes=sizes, n=n)
    strata = _strata(_inside(chosen, seen, known.design), seen)
    is_outsider = np.zeros(contributions.n_points, bool) if is_candidate is None else is_candidate
    pool = known.n_pool if n_pool is None else n_pool
    result, start = [], 0
    for part in _finite_parts(contributions):
        outside = is_outsider[start : start + part.n_points]
        result.append(_estimate(part, strata, _chance(part, known.design, pool, outside)))
        start += part.n_points
    mean, error, n_samples = (np.concatenate(columns) for columns in zip(*result, strict=True))
    half = quantile(level) * error
    frame = pd.DataFrame(
        {"value": mean, "low": mean - half, "high": mean + half, "stderr": error},
        index=pd.Index(contributions.ids, name="point"),
    )
    if top is not None:
        rng = stream(seed_from(random_state))
        noise = rng.standard_normal((n_draws(len(mean)), len(mean)))
        frame = add_ranks(frame, mean + np.nan_to_num(error) * noise, top, level)
    return frame.assign(n_samples=n_samples)


def _finite_parts(table: Table) -> Iterator[Contributions]:
    """Yield the contributions that are numbers, block by block of points."""
    for part in table.parts():
        yield part.where(np.isfinite(part.delta))


def _seen(table: Table) -> _Seen:
    """Look through the contributions once."""
    counts, n_points, n_cells = Counter[int](), 0, 0
    for part in _finite_parts(table):
        k, n = np.unique(part.k, return_counts=True)
        counts.update(dict(zip(k.tolist(), n.tolist(), strict=True)))
        n_points += len(np.unique(part.point))
        n_cells += len(np.unique(part.point * (int(k.max(initial=0)) + 1) + part.k))
    sizes = sorted(counts)
    return _Seen(
        np.array(sizes, dtype=np.int64),
        np.array([counts[k] for k in sizes], dtype=np.int64),
        n_points,
        n_cells,
    )


def _inside(weights: SizeWeights, seen: _Seen, design: DesignRecord | None) -> SizeWeights:
    """Keep the sizes that were sampled or lie between sampled ones; raise if there are none."""
    if not len(seen.k):
        raise FitError(
            "there are no contributions to average: expected some for every point. Collect first."
        )
    low, high = _span(seen, design)
    inside = weights.within(low, high)
    total = np.abs(weights.w).sum()
    share = np.abs(weights.w[(weights.k >= low) & (weights.k <= high)]).sum() / total
    if not share > 1e-6:
        raise FitError(
            f"the value weighs sizes {weights.k[0]:,.0f} to {weights.k[-1]:,.0f}, but only sizes "
            f"{low:,} to {high:,} were sampled: expected weight on these. Use source='law' "
            "(--source law), which extrapolates, or collect contributions at those sizes."
        )
    if 1 - share > 3 / len(seen.k):  # more than lies beyond the ends by chance
        warnings.warn(
            f"{1 - share:.0%} of the weight lies outside the sampled sizes {low:,} to {high:,} and "
            "is given to these. Use source='law' (--source law) to extrapolate, or collect "
            "contributions at the other sizes.",
            ApieceWarning,
            stacklevel=5,
        )
    return inside


def _span(seen: _Seen, design: DesignRecord | None) -> tuple[int, int]:
    """Return the sizes that the design could draw, or else those that were."""
    planned = [] if design is None else design.sizes or []
    k = [*seen.k_range, *planned]
    return int(min(k)), int(max(k))


def _chance(
    table: Contributions, design: DesignRecord | None, n_pool: int | None, is_candidate: BoolArray
) -> FloatArray:
    """Return, up to a factor, how likely each contribution was to be seen, shape ``(n_rows,)``."""
    k = np.maximum(table.k, 1).astype(np.float64)
    chance = 1.0 / k if design is not None and design.name == "log-uniform" else np.ones(len(k))
    extra = table.attrs.get("extra_sizes")  # that some tasks have since the question is about them
    if design is not None and extra:
        sizes = np.arange(min(design.sizes or [1]), max(design.sizes or [1]) + 1)
        total = (1 / sizes).sum() if design.name == "log-uniform" else len(sizes)
        chance *= (1 - sum(share for _, share in extra)) / total
        for size, share in extra:
            chance[table.k == size] += share
    if n_pool is not None:
        outside = np.maximum(1.0 - table.k / float(n_pool), 1.0 / float(n_pool))
        is_alone = design is not None and design.more.get("share") == 1
        chance *= np.where(is_candidate[table.point] | is_alone, 1.0, outside)
    return chance


def _strata(weights: SizeWeights, seen: _Seen) -> _Strata:
    """Cut the sizes into strata, and return the weight of a contribution of each size."""
    is_grid = len(seen.k) <= _MOST_GRID and seen.n_cells >= _FULL * seen.n_points * len(seen.k)
    n_rows = int(seen.n.sum())
    if len(seen.k) == 1 or (is_grid and n_rows >= 2 * seen.n_cells):
        return _repeated(weights, seen.k)
    own = np.interp(seen.k, weights.k, weights.w)  # 0 for a size without weight between others
    own[~np.isin(seen.k, weights.k)] = 0.0
    own[np.abs(own) < _TINY * np.abs(weights.w).max()] = 0.0  # too far from where the weight lies
    if not own.any():
        raise FitError(
            f"no contribution was sampled near the sizes that the value weighs, around "
            f"{weights.k[np.argmax(np.abs(weights.w))]:,.0f}: expected some. Use source='law' "
            "(--source law), or collect contributions at those sizes."
        )
    heavy = np.cumsum(np.abs(weights.w)) / np.abs(weights.w).sum()
    reach = weights.k[np.searchsorted(heavy, [0.005, 0.995])]
    is_near = (seen.k >= reach[0]) & (seen.k <= reach[1])
    n_near = n_rows / seen.n_points * (seen.n[is_near].sum() / n_rows)
    n_strata = int(np.clip(n_near // _PER_STRATUM, 1, _MOST_STRATA))
    cuts = weights.k[np.searchsorted(heavy, np.arange(1, n_strata) / n_strata)]
    of_size = np.searchsorted(cuts, weights.k)
    weight = _sums(of_size, weights.w, n_strata)
    place = _sums(of_size, weights.k, n_strata) / np.maximum(np.bincount(of_size), 1)
    of = np.searchsorted(cuts, seen.k)
    return _Strata(seen.k, of, own / np.abs(own).max(), weight, place, by_chance=True)


def _repeated(weights: SizeWeights, k: IntArray) -> _Strata:
    r"""Give each sampled size the weight of what is interpolated from it, linear in 1/(k + 1)."""
    sizes = k.astype(np.float64)
    right = np.clip(np.searchsorted(sizes, weights.k), 1, max(1, len(sizes) - 1))
    if len(sizes) == 1:
        weight = np.array([weights.w.sum()])
    else:
        u, v = 1 / (sizes + 1), 1 / (weights.k + 1)
        t = np.clip((u[right - 1] - v) / (u[right - 1] - u[right]), 0.0, 1.0)
        n = len(sizes)
        weight = _sums(right - 1, weights.w * (1 - t), n) + _sums(right, weights.w * t, n)
    counts = (weight != 0).astype(np.float64)
    return _Strata(k, np.arange(len(k)), counts, weight, sizes, by_chance=False)


def _estimate(
    part: Contributions, strata: _Strata, chance: FloatArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return value, standard error and used contributions of every point, ``(n_points,)`` each."""
    size = np.searchsorted(strata.k, part.k)
    counts = strata.counts[size] / chance if strata.by_chance else strata.counts[size]
    if part.chance is not None:
        counts = counts / part.chance
    used = counts != 0
    table, r, of = part.where(used), counts[used], strata.of[size[used]]
    shape = (table.n_points, len(strata.weight))
    cell = table.point * shape[1] + of

    def total(values: FloatArray) -> FloatArray:
        return _sums(cell, values, shape[0] * shape[1]).reshape(shape)

    mass, number = total(r), total(np.ones(len(r)))
    has = mass != 0
    safe = np.where(has, mass, 1.0)
    mean = total(r * table.delta) / safe
    off = table.delta - mean.ravel()[cell]
    spread = total(r**2 * off**2) / safe**2
    spread *= np.where(number > 1, number / np.maximum(number - 1, 1), np.nan)
    weight = _moved(strata, has)
    # A stratum with one contribution varies as the point's others do, contribution by contribution.
    each = np.where(number > 1, spread * number, np.nan)
    n_known = np.isfinite(each).sum(axis=1)
    typical = np.where(n_known > 0, np.nansum(each, axis=1) / np.maximum(n_known, 1), np.nan)
    spread = np.where(has & (number == 1), typical[:, None], spread)
    parts = np.where(weight != 0, weight**2 * np.where(has, spread, 0.0), 0.0)
    known = has.any(axis=1)
    value = np.where(known, (weight * mean).sum(axis=1), np.nan)
    error = np.where(known, np.sqrt(parts.sum(axis=1)), np.nan)
    return value, error, table.counts()


def _moved(strata: _Strata, has: BoolArray) -> FloatArray:
    """Give the weight of strata where a point has nothing to its nearest with something."""
    weight = np.where(has, strata.weight, 0.0)
    place = np.log(np.maximum(strata.place, 0.5))
    needed = strata.weight != 0
    for row in np.flatnonzero((~has & needed).any(axis=1) & has.any(axis=1)):
        there = np.flatnonzero(has[row])
        for s in np.flatnonzero(~has[row] & needed):
            weight[row, there[np.argmin(np.abs(place[there] - place[s]))]] += strata.weight[s]
    return weight


def _sums(of: IntArray, values: FloatArray, n: int) -> FloatArray:
    """Sum values by the cell they belong to, shape ``(n,)``."""
    return np.bincount(of, values, minlength=n).astype(np.float64)
