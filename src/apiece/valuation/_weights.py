r"""Weights $w_k$ of semivalues $v = \sum_k w_k \psi_k$ over cardinalities.

A range of more than 20,000 sizes is not summed one by one: its first 10,000 are, and the rest is
an integral in $\log k$,

$$\sum_{k=a}^{b} \psi_k \approx \int_{a-1/2}^{b+1/2} \psi_k\,dk
  = \int \psi_{e^t}\,e^t\,dt,$$

by 64 Gauss-Legendre nodes. The error of the midpoint rule at size $k$ is
$\psi_k\,\alpha(\alpha+1)/(24 k^2)$, so with $k > 10^4$ the value is off by less than
$3\cdot10^{-8}$ of itself for $\alpha \le e^2$, and less than $2\cdot10^{-7}$ for
$|\alpha| \le 20$.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from apiece._typing import FloatArray

MOST: Final = 20_000  # sizes that are summed one by one
_HEAD: Final = 10_000
_NODES: Final = 64


def shapley_weights(k_min: int, k_max: int) -> tuple[FloatArray, FloatArray]:
    r"""Return sizes and weights of the mean of $\psi_k$ over all integers from k_min to k_max.

    Returns
    -------
    tuple[FloatArray, FloatArray]
        Sizes (integers, or nodes between them for a wide range) and weights, each ``(n_k,)``;
        weights sum to 1.

    Examples
    --------
    >>> shapley_weights(3, 4)
    (array([3., 4.]), array([0.5, 0.5]))
    """
    n_sizes = k_max - k_min + 1
    if n_sizes <= MOST:
        k = np.arange(k_min, k_max + 1, dtype=np.float64)
        return k, np.full(n_sizes, 1 / n_sizes)
    head = np.arange(k_min, k_min + _HEAD, dtype=np.float64)
    low, high = np.log(k_min + _HEAD - 0.5), np.log(k_max + 0.5)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    tail = np.exp((low + high) / 2 + (high - low) / 2 * nodes)
    jacobian = (high - low) / 2 * weights * tail
    return np.append(head, tail), np.append(np.ones(_HEAD), jacobian) / n_sizes
