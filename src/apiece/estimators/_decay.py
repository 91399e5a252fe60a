r"""How fast noise falls with size: $\mathrm{Var}[\Delta(k)] \propto k^{-\beta}$.

Intervals use one decay for all points. Point estimates use a decay per point, shrunk towards the
common one: ten contributions say little about it, but enough for better weights, for example if a
point has outliers at small sizes only. With few samples most points have not drawn an outlier yet,
so a decay per point would make intervals too narrow.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from apiece._base.typing import FloatArray, IntArray
from apiece.estimators._population import Sums
from apiece.laws import Series
from apiece.records import Moments

ASSUMED_DECAY: Final = 2.0  # of the noise, where one size says nothing about it
_POINT_SD: Final = 0.5  # standard deviation of the points' decays around the common one
_NODES: Final = np.linspace(-3.0, 3.0, 25)  # in standard deviations
_LARGEST: Final = 8.0
_EXACT: Final = 1e-12  # residual sum of squares, relative to the total


def noise_decay(moments: Moments, k_ref: float, exponent: IntArray) -> float:
    r"""Solve the pooled equation of second moments for the decay $\beta$ of the noise.

    $$\sum_{ij} \frac{r_{ij}^2\,x_{ij}^\beta}{s_i}\,(\log x_{ij} - \overline{\log x}) = 0$$

    with residuals $r$ from a curve in $1/k$ per point. Dividing by $s_i$, and not by its square, is
    a compromise between equal weights for all points and a sum of squares that noisy points
    dominate.
    """
    x = np.where(moments.n > 0, moments.k / k_ref, 1.0)
    log_x, n = np.log(x), moments.n
    total = n.sum(axis=1)
    centre = float((n * log_x).sum() / n.sum())
    spread = float((n * (log_x - centre) ** 2).sum() / n.sum())
    if spread < 1e-6:
        return ASSUMED_DECAY
    size = np.ldexp(1.0, np.clip(exponent - exponent.max(), -1000, 0))
    curve, beta = 1 / x, ASSUMED_DECAY
    for _ in range(50):
        w = n * x**beta
        bottom = (w * curve**2).sum(axis=1, keepdims=True)
        height = (w * curve * moments.mean).sum(axis=1, keepdims=True) / bottom
        leverage = np.minimum(x**beta * curve**2 / bottom, 0.99)
        q = x**beta * (moments.m2 + n * (moments.mean - height * curve) ** 2) / (1 - leverage)
        s = np.sqrt(q.sum(axis=1) / total)
        q = q * np.where(s > 0, size / np.where(s > 0, s, 1.0), 0.0)[:, None]
        all_q = float(q.sum())
        if all_q <= 0:
            return ASSUMED_DECAY
        step = float(np.clip((q * (log_x - centre)).sum() / all_q / spread, -1, 1))
        beta = float(np.clip(beta - step, 0.0, 5.0))
        if abs(step) < 1e-4:
            break
    return beta


def point_decays(moments: Moments, k_ref: float, common: float) -> FloatArray:
    r"""Return the posterior mean of each point's decay, shape ``(n, 1)``.

    The prior is $\mathcal{N}(\text{common}, 0.5^2)$, the likelihood the restricted one of a curve
    in $1/k$ and normal noise, with the unit of the noise profiled out:

    $$-\log p(\beta) = \frac{m - 1}{2}\log Q + \frac12\log\sum w x^{-2}
      - \frac\beta2\sum n\log x, \qquad w = n x^\beta,$$

    with the residual sum of squares $Q$ of the best curve.
    """
    curve = Series((2,)).prior_basis(k_ref)
    betas = np.clip(common + _POINT_SD * _NODES, 0.0, _LARGEST)
    x = np.where(moments.n > 0, moments.k / k_ref, 1.0)
    tilt = (moments.n * np.log(x)).sum(axis=1)
    f = np.empty((len(moments), len(betas)))
    for j, beta in enumerate(betas):
        sums = Sums.of(moments, curve, k_ref, float(beta))
        top, total = sums.xty[:, 0, 0], sums.yty[:, 0]
        bottom = np.where(sums.total > 0, sums.xtx[:, 0, 0, 0], 1.0)
        q = np.maximum(total - top**2 / bottom, _EXACT * total)
        log_q = np.log(np.where(q > 0, q, 1.0))
        f[:, j] = (sums.total - 1) / 2 * log_q + np.log(bottom) / 2 - beta / 2 * tilt
    f += _NODES**2 / 2
    weight = np.exp(f.min(axis=1, keepdims=True) - f)
    return np.asarray((weight @ betas / weight.sum(axis=1))[:, None])
