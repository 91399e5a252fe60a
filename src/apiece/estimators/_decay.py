r"""How fast noise falls with size: $\mathrm{Var}[\Delta(k)] \propto k^{-\beta}$.

One decay serves all points: with few samples most points have not drawn an outlier yet, so that a
decay per point would weigh down just the contributions in which they show what they are worth.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from apiece._base.batched import find_root
from apiece._base.typing import FloatArray, IntArray
from apiece.records import Moments

ASSUMED_DECAY: Final = 2.0  # of the noise, where there is one size, which does not determine it


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
    curve = 1 / x

    def step(beta: FloatArray) -> FloatArray:
        w = n * x**beta
        bottom = (w * curve**2).sum(axis=1, keepdims=True)
        height = (w * curve * moments.mean).sum(axis=1, keepdims=True) / bottom
        leverage = np.minimum(x**beta * curve**2 / bottom, 0.99)
        q = x**beta * (moments.m2 + n * (moments.mean - height * curve) ** 2) / (1 - leverage)
        s = np.sqrt(q.sum(axis=1) / total)
        q = q * np.where(s > 0, size / np.where(s > 0, s, 1.0), 0.0)[:, None]
        all_q = float(q.sum())
        if all_q <= 0:
            return np.zeros(())
        return np.asarray(-np.clip((q * (log_x - centre)).sum() / all_q / spread, -1, 1))

    start = np.array(ASSUMED_DECAY)
    return float(find_root(step, start, low=0.0, high=5.0, tolerance=1e-4))
