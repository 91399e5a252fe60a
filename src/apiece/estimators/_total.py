r"""What all points contribute together, which shrinking each of them alone would understate.

With the curve $M(k)$ of the mean contribution of all $n$ points, by least squares on the pooled
contributions, the posterior means $m_i(k)$ and their standard errors $e_i$ at the geometric mean
of the sizes, what is missing is shared in proportion to the standard errors (where some points
were valued rarely, contributions to $M$ count one over their chance to be drawn):

$$\psi_i(k) = m_i(k) + \frac{e_i}{\sum_j e_j}\,f \Bigl(n M(k) - \sum_j m_j(k)\Bigr).$$

The factor $f = \max(0, 1 - p/L)$ estimates how much of what is missing, $v$, is no noise: with $p$
coefficients and the covariance $C$ of the noise of $v$, $L = v^\top C^{-1} v$ is $p$ on average if
all is noise. $C$ is part of the covariances.

What is missing is a sum over contributions, $v = \sum_{it} A_{it}\,\Delta_{it}$: those of a point
count with a weight for the pooled curve, less the weight that its posterior gives them. Points that
share a training set share noise, so that residuals $r_{it}$ from the posterior curves are summed by
task first, and the noise that blocks of rows share is added (`sum_noise`):
$C = \sum_t S_t S_t^\top + C_\text{rows}$ with $S_t = \sum_i A_{it}\,r_{it}$.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from apiece._base.typing import BoolArray, FloatArray
from apiece.estimators._shared_noise import Scores
from apiece.laws import FamilyBasis
from apiece.records import Contributions, Moments, Table

_ROWS: Final = 200_000  # contributions whose noise is summed at once


def blocks_by_chance(table: Table, n_rows: int) -> Iterator[tuple[slice, Moments, Moments]]:
    """Yield moments in blocks of points, as they are and with rows that count by their chance."""
    start = 0
    for part in table.parts():
        even = part.by_chance()
        others = None if even is part else even.blocks(n_rows)
        for rows, moments in part.blocks(n_rows):
            place = slice(start + rows.start, start + rows.start + len(moments))
            yield place, moments, moments if others is None else next(others)[1]
        start += part.n_points


class Pooled:
    """The pooled contributions of all points, and laws moved towards their total."""

    def __init__(self, basis: FamilyBasis) -> None:
        self._basis = basis
        self._beta = 0.0
        self._gram: list[FloatArray] = []
        self._total: list[FloatArray] = []
        self._moment: list[FloatArray] = []

    def add(self, moments: Moments, beta: float) -> None:
        """Add the contributions of some points, by chance; each point counts the same."""
        x = np.where(moments.n > 0, moments.k / self._basis.k_ref, 1.0)
        total = np.maximum(moments.n.sum(axis=1), 1e-300)
        weight = moments.n * x**beta / total[:, None]
        columns = self._basis.columns(x, 0)
        weighted = weight[..., None] * columns
        self._beta = beta
        self._total.append(total)
        self._gram.append(np.einsum("nmp,nmq->npq", weighted, columns))
        self._moment.append(np.einsum("nmp,nm->np", weighted, moments.mean))

    def with_total(
        self, params: FloatArray, cov: FloatArray, gain: FloatArray, table: Table
    ) -> tuple[FloatArray, FloatArray]:
        """Return parameters, ``(n, p)``, whose total is nearer to the pooled one, and covariances.

        Families that are not sums of terms, and points without a law, stay as they are.

        Parameters
        ----------
        params, cov
            Of the posteriors, shapes ``(n, p)`` and ``(n, p, p)``.
        gain
            By which a posterior multiplies the weighted sums of its contributions, ``(n, p, p)``.
        table
            The contributions, whose noise is measured.
        """
        family, k_ref = self._basis.family, self._basis.k_ref
        known = np.asarray(np.isfinite(params).all(axis=1) & np.isfinite(cov).all(axis=(1, 2)))
        if not known.any() or not family.is_linear or family.needs_population:
            return params, cov
        n, scales = int(known.sum()), family.scales(np.ones(1), k_ref)[0]
        slope = family.gradient(params[known], np.array([k_ref]), k_ref)[:, 0]
        with np.errstate(over="ignore", invalid="ignore"):  # contributions beyond 1e150
            error = np.sqrt(np.einsum("np,npq,nq->n", slope, cov[known], slope))
            solved = self._solve()
            if solved is None or not 0 < error.sum() < np.inf:
                return params, cov
            pooled, inverse = solved
            pooled = family.from_local((pooled * scales)[None], k_ref)[0]
            missing = n * pooled - params[known].sum(axis=0)
            noise = self._noise(table, params, known, n * inverse, gain) * scales[:, None] * scales
            factor = _signal_share(missing, noise)
        if factor == 0:
            return params, cov
        share = factor * error / error.sum()
        params, cov = params.copy(), cov.copy()
        params[known] += share[:, None] * missing
        cov[known] += (share**2)[:, None, None] * noise
        return params, cov

    def _solve(self) -> tuple[FloatArray, FloatArray] | None:
        """Return the pooled coefficients, and the inverse of the sum of squares, ``(p, p)``.

        None where the curve is not determined, because all contributions are at one size.
        """
        grams, moments = np.concatenate(self._gram), np.concatenate(self._moment)
        values, vectors = np.linalg.eigh(grams.sum(axis=0))
        if values[0] <= 1e-12 * values[-1]:
            return None
        inverse = (vectors / values) @ vectors.T
        return inverse @ moments.sum(axis=0), inverse

    def _noise(
        self, table: Table, params: FloatArray, known: BoolArray, pool: FloatArray, gain: FloatArray
    ) -> FloatArray:
        """Return the covariance of the noise of what is missing, ``(p, p)``."""
        family, k_ref = self._basis.family, self._basis.k_ref
        total = np.concatenate(self._total)
        scores, first = Scores(len(pool)), 0
        for part in table.parts():
            even = part.by_chance()
            for start in range(0, len(part), _ROWS):
                some = slice(start, start + _ROWS)
                place = first + part.point[some]
                k = part.k[some].astype(np.float64)
                x = k / k_ref
                seen = known[place]
                residual = part.delta[some] - family.curve(params[place], k)
                weighted = np.where(seen, x**self._beta * residual, 0.0)[:, None]
                weighted = weighted * self._basis.columns(x[None, :], 0)[0]
                for_pool = _weight(even, some) / total[place]
                each = for_pool[:, None] * (weighted @ pool)
                own = _weight(part, some)[:, None] * weighted
                each -= np.einsum("rpq,rq->rp", np.where(seen[:, None, None], gain[place], 0), own)
                scores.add(
                    each, part.task[some], None if part.active is None else part.active[some]
                )
            first += part.n_points
        return scores.noise_of_sum()


def _weight(part: Contributions, rows: slice) -> FloatArray:
    """Return how many contributions some rows count for."""
    if part.weight is None:
        return np.ones(len(part.delta[rows]))
    return part.weight[rows]


def _signal_share(found: FloatArray, noise: FloatArray) -> float:
    r"""Return the share of a noisy vector that is no noise, $1 - p / L$; 0 if it is all noise."""
    size = np.sqrt(np.diag(noise))
    if not (size > 0).all() or not np.isfinite(noise).all() or not np.isfinite(found).all():
        return 0.0
    unit = found / size
    length = float(unit @ np.linalg.pinv(noise / size[:, None] / size, 1e-9, hermitian=True) @ unit)
    return max(0.0, 1 - len(found) / length) if length > 0 else 0.0
