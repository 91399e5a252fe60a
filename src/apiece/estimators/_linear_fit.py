r"""Weighted least squares for sums of terms, with the decay of the noise by restricted likelihood.

With $x = k/k_\mathrm{ref}$, terms $B_j(x)$ and weights $w = n x^\beta$, the best
coefficients for given $\beta$ are $u = (\sum w B^\top B)^{-1} \sum w B^\top \bar\Delta$. The
decay $\beta$ minimises, for each point by itself,

$$f(\beta) = \frac{m - r}{2}\log Q + \frac12\log\left|\sum w B^\top B\right|
  - \frac{\beta}{2}\sum n\log x, \qquad Q = \sum x^\beta\left(M + n(\bar\Delta - Bu)^2\right),$$

the restricted likelihood, which corrects for the noise that the $r$ coefficients absorb (Patterson
and Thompson 1971), plus $(\beta - \beta_0)^2 / (2 \cdot 0.3^2)$: ten contributions do not identify
the decay of their noise, so it is shrunk towards $\beta_0$, the decay of all points. With fewer
sizes than terms $r$ is the number of sizes, and $u$ the solution of least norm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from apiece._base.typing import FloatArray
from apiece.records import Moments

_GRID: Final = 16
_STEPS: Final = 40
_CUT: Final = 1e-11  # eigenvalues of the terms below this share of the largest count as none
_FLOOR: Final = 1e-24
_SPREAD: Final = 0.3  # of the points' decays around the common one


class LinearFit(NamedTuple):
    """Coefficients of some points, in units of their contributions."""

    u: FloatArray  # (n, p)
    cov: FloatArray  # inverse of the weighted terms, (n, p, p); nan where they are deficient
    beta: FloatArray  # (n,)
    q: FloatArray  # weighted residual sum of squares, (n,)
    q_total: FloatArray  # the same around zero, (n,)
    rank: FloatArray  # (n,)
    f: FloatArray  # the objective without what draws ``beta`` to the common one, (n,)


def fit_linear(
    moments: Moments, columns: FloatArray, k_ref: float, *, typical: float, upper: float
) -> LinearFit:
    """Fit every point; ``beta`` lies in ``[0, upper]`` and is shrunk towards ``typical``.

    Parameters
    ----------
    moments
        Moments of ``n`` points.
    columns
        The terms at the points' sizes, shape ``(n, m, p)``.
    """
    x = np.where(moments.n > 0, moments.k / k_ref, 1.0)

    def objective(beta: FloatArray) -> FloatArray:
        drawn = 0.5 * ((beta - typical) / _SPREAD) ** 2
        return evaluate(moments, x, columns, beta).f + drawn

    grid = np.linspace(0.0, upper, _GRID)
    values = np.stack([objective(np.full(len(x), beta)) for beta in grid], axis=1)
    best = values.argmin(axis=1)
    low, high = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, _GRID - 1)]
    beta = _golden(objective, low, high)
    # The ends of the box are candidates, too: golden section never quite reaches them.
    for end in (0.0, upper):
        at = np.full(len(x), end)
        beta = np.where(objective(at) <= objective(beta), at, beta)
    return evaluate(moments, x, columns, beta)


def _golden(
    objective: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray
) -> FloatArray:
    """Minimise by golden section between ``low`` and ``high``, for all points at once."""
    ratio = (np.sqrt(5.0) - 1) / 2
    one, two = high - ratio * (high - low), low + ratio * (high - low)
    f_one, f_two = objective(one), objective(two)
    for _ in range(_STEPS):
        is_left = f_one <= f_two
        low, high = np.where(is_left, low, one), np.where(is_left, two, high)
        new = np.where(is_left, high - ratio * (high - low), low + ratio * (high - low))
        f_new = objective(new)
        one, two = np.where(is_left, new, two), np.where(is_left, one, new)
        f_one, f_two = np.where(is_left, f_new, f_two), np.where(is_left, f_one, f_new)
    return (low + high) / 2


def evaluate(moments: Moments, x: FloatArray, basis: FloatArray, beta: FloatArray) -> LinearFit:
    """Evaluate the objective and all that comes with it at one ``beta`` for each point."""
    noise = x ** beta[:, None]
    w = moments.n * noise
    weighted = w[..., None] * basis
    xtx = np.einsum("nmp,nmq->npq", weighted, basis)
    xty = np.einsum("nmp,nm->np", weighted, moments.mean)
    values, vectors = np.linalg.eigh(xtx)
    is_kept = values > _CUT * values[:, -1:]
    inverse = np.where(is_kept, 1 / np.where(is_kept, values, 1.0), 0.0)
    cov = np.einsum("npa,na,nqa->npq", vectors, inverse, vectors)
    u = np.einsum("npq,nq->np", cov, xty)
    residual = moments.mean - np.einsum("nmp,np->nm", basis, u)
    spread = noise * moments.m2
    q = (spread + w * residual**2).sum(axis=1)
    q_total = (spread + w * moments.mean**2).sum(axis=1)
    rank = is_kept.sum(axis=1).astype(np.float64)
    left = np.maximum(moments.n.sum(axis=1) - rank, 1.0)
    log_det = np.log(np.where(is_kept, values, 1.0)).sum(axis=1)
    tilt = (moments.n * np.log(x)).sum(axis=1)
    with np.errstate(divide="ignore"):  # a point of zeros: minus infinity, not searched
        f = 0.5 * (left * np.log(q + _FLOOR * q_total) + log_det - beta * tilt)
    cov[~is_kept.all(axis=1)] = np.nan
    return LinearFit(u, cov, beta, q, q_total, rank, f)
