r"""What all points contribute together, which shrinking each of them alone would understate.

With the curve $M(k)$ of the mean contribution of all $n$ points, by least squares on the pooled
contributions, the posterior means $m_i(k)$ and their standard errors $e_i$ at the geometric mean
of the sizes, what is missing is shared in proportion to the standard errors (where some points
were valued rarely, contributions to $M$ count one over their chance to be drawn):

$$\psi_i(k) = m_i(k) + \frac{n}{n + 20}\,\frac{e_i}{\sum_j e_j}\,f
  \Bigl(n M(k) - \sum_j m_j(k)\Bigr).$$

The factor $f = \max(0, 1 - p/L)$ estimates how much of what is missing, $v$, is no noise: with $p$
coefficients and the covariance $C$ of the noise of the total, from how points differ,
$L = v^\top C^{-1} v$ is $p$ on average if all is noise. A few points keep most of what the
population says. $C$ is part of the covariances.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from apiece._base.typing import FloatArray
from apiece.estimators._population import PRIOR_POINTS
from apiece.laws import FamilyBasis
from apiece.records import Moments, Table


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
        self._gram: list[FloatArray] = []
        self._moment: list[FloatArray] = []

    def add(self, moments: Moments, beta: float) -> None:
        """Add the contributions of some points, by chance; each point counts the same."""
        x = np.where(moments.n > 0, moments.k / self._basis.k_ref, 1.0)
        weight = moments.n * x**beta / np.maximum(moments.n.sum(axis=1, keepdims=True), 1e-300)
        columns = self._basis.columns(x, 0)
        weighted = weight[..., None] * columns
        self._gram.append(np.einsum("nmp,nmq->npq", weighted, columns))
        self._moment.append(np.einsum("nmp,nm->np", weighted, moments.mean))

    def with_total(self, params: FloatArray, cov: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return parameters, ``(n, p)``, whose total is nearer to the pooled one, and covariances.

        Families that are not sums of terms, and points without a law, stay as they are.
        """
        family, k_ref = self._basis.family, self._basis.k_ref
        known = np.isfinite(params).all(axis=1) & np.isfinite(cov).all(axis=(1, 2))
        if not known.any() or not family.is_linear or family.needs_population:
            return params, cov
        n, scales = int(known.sum()), family.scales(np.ones(1), k_ref)[0]
        slope = family.gradient(params[known], np.array([k_ref]), k_ref)[:, 0]
        with np.errstate(over="ignore", invalid="ignore"):  # contributions beyond 1e150
            error = np.sqrt(np.einsum("np,npq,nq->n", slope, cov[known], slope))
            solved = self._solve()
            if solved is None or not 0 < error.sum() < np.inf:
                return params, cov
            pooled, away = solved
            pooled = family.from_local((pooled * scales)[None], k_ref)[0]
            missing = n * pooled - params[known].sum(axis=0)
            spread = n * scales * away
            noise = spread.T @ spread
        factor = _signal_share(missing, noise)
        if factor == 0:
            return params, cov
        share = n / (n + PRIOR_POINTS) * factor * error / error.sum()
        params, cov = params.copy(), cov.copy()
        params[known] += share[:, None] * missing
        cov[known] += (share**2)[:, None, None] * noise
        return params, cov

    def _solve(self) -> tuple[FloatArray, FloatArray] | None:
        """Return the pooled coefficients, and how far each point moves them, ``(n, p)``.

        None where the curve is not determined, because all contributions are at one size.
        """
        grams, moments = np.concatenate(self._gram), np.concatenate(self._moment)
        values, vectors = np.linalg.eigh(grams.sum(axis=0))
        if values[0] <= 1e-12 * values[-1]:
            return None
        inverse = (vectors / values) @ vectors.T
        pooled = inverse @ moments.sum(axis=0)
        return pooled, (moments - grams @ pooled) @ inverse


def _signal_share(found: FloatArray, noise: FloatArray) -> float:
    r"""Return the share of a noisy vector that is no noise, $1 - p / L$; 0 if it is all noise."""
    size = np.sqrt(np.diag(noise))
    if not (size > 0).all() or not np.isfinite(noise).all() or not np.isfinite(found).all():
        return 0.0
    unit = found / size
    length = float(unit @ np.linalg.pinv(noise / size[:, None] / size, hermitian=True) @ unit)
    return max(0.0, 1 - len(found) / length) if length > 0 else 0.0
