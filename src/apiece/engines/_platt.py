r"""Platt's sigmoid, fitted to many sets of decision values at once.

$$p(y = 1 \mid f) = \sigma(a f + b)$$

minimises the cross-entropy to the targets $(n_+ + 1) / (n_+ + 2)$ for the $n_+$ positive and
$1 / (n_- + 2)$ for the $n_-$ negative points, as scikit-learn's ``CalibratedClassifierCV`` does
with ``method="sigmoid"``; where that stops at a small gradient, this goes on to the optimum, by
Newton's method in the two parameters.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from apiece._base.typing import BoolArray, FloatArray

_MOST_STEPS = 100
_TOLERANCE = 1e-12  # of the change of a log odds


def fit_sigmoids(
    decision: FloatArray, is_positive: BoolArray, start: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Fit one sigmoid to each row of decision values.

    Parameters
    ----------
    decision
        Decision values, of a scale around 1, shape ``(n_fits, n)``.
    is_positive
        Whether each belongs to the positive class, of the same shape.
    start
        ``a`` and ``b`` to start from, shape ``(2,)``; None for those that tell nothing.

    Returns
    -------
    tuple of FloatArray
        ``a, b`` as an array of shape ``(n_fits, 2)``, and the largest change of a log odds that the
        last Newton step made, shape ``(n_fits,)``: large where the fit did not settle.
    """
    n_positive = is_positive.sum(axis=1)
    n_negative = is_positive.shape[1] - n_positive
    high, low = (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0)
    target = np.where(is_positive, high[:, None], low[:, None])
    ab = np.zeros((len(decision), 2))
    ab[:, 1] = np.log((n_positive + 1.0) / (n_negative + 1.0))
    if start is not None:
        ab[:] = start

    size, error = np.abs(decision).max(axis=1), np.full(len(ab), np.inf)
    step, promise = np.zeros_like(ab), np.zeros(len(ab))
    live = np.arange(len(ab))
    for _ in range(_MOST_STEPS):
        gradient, newton = _newton(ab[live], decision[live], target[live])
        # a slope that has turned upwards along the last step says that the step was too long
        is_long = (gradient * step[live]).sum(axis=1) > 0.5 * promise[live]
        back = -0.5 * step[live]
        step[live] = np.where(is_long[:, None], -back, newton)
        promise[live] = np.where(is_long, 0.5 * promise[live], -(gradient * newton).sum(axis=1))
        ab[live] += np.where(is_long[:, None], back, newton)
        change = np.abs(step[live, 0]) * size[live] + np.abs(step[live, 1])
        error[live] = np.where(np.isfinite(change), change, np.inf)
        live = live[np.isfinite(change) & (change > _TOLERANCE)]
        if not len(live):
            break
    return ab, error


def _newton(ab: FloatArray, f: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gradient and Newton step in ``a, b``, each of shape ``(n_fits, 2)``."""
    p = expit(ab[:, :1] * f + ab[:, 1:])
    surplus = p - target
    g0, g1 = surplus.sum(axis=1), np.einsum("ij,ij->i", surplus, f)
    p *= 1.0 - p
    h0, h1 = p.sum(axis=1), np.einsum("ij,ij->i", p, f)
    p *= f
    h2 = np.einsum("ij,ij->i", p, f)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        step = np.stack([h1 * g0 - h0 * g1, h1 * g1 - h2 * g0], axis=1)
        step /= (h0 * h2 - h1**2)[:, None]
    return np.stack([g1, g0], axis=1), step
