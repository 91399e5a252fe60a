r"""Platt's sigmoid, fitted to many sets of decision values at once.

$$p(y = 1 \mid f) = \sigma(a f + b)$$

minimises the cross-entropy to the targets $(n_+ + 1) / (n_+ + 2)$ for the $n_+$ positive and
$1 / (n_- + 2)$ for the $n_-$ negative points, as scikit-learn's ``CalibratedClassifierCV`` does
with ``method="sigmoid"``. scikit-learn stops at a small gradient; this module continues to the
optimum, by Newton's method in the two parameters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from apiece._base.batched import CONVERGED, LOST, RUNNING, dot, solve
from apiece._base.typing import BoolArray, FloatArray, IntArray

_MOST_STEPS = 100
_TOLERANCE = 1e-12  # of the change of a log odds


class _Scores(NamedTuple):
    """Decision values, their target probabilities, and the largest absolute decision value."""

    decision: FloatArray
    target: FloatArray
    size: FloatArray


class _Sigmoid(NamedTuple):
    """``a, b``; the last step, the decrease that it predicted, and its length."""

    ab: FloatArray
    step: FloatArray
    promise: FloatArray
    error: FloatArray


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
        ``a`` and ``b`` to start from, shape ``(n_fits, 2)``; None for the best constant.

    Returns
    -------
    tuple of FloatArray
        ``a, b`` as an array of shape ``(n_fits, 2)``, and the largest change of a log odds in the
        last Newton step, shape ``(n_fits,)``: large if the fit did not converge.
    """
    n_positive = is_positive.sum(axis=1)
    n_negative = is_positive.shape[1] - n_positive
    high, low = (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0)
    target = np.where(is_positive, high[:, None], low[:, None])
    ab = np.zeros((len(decision), 2))
    ab[:, 1] = np.log((n_positive + 1.0) / (n_negative + 1.0))
    if start is not None:
        ab[:] = start

    start_at = _Sigmoid(ab, np.zeros_like(ab), np.zeros(len(ab)), np.full(len(ab), np.inf))
    data = _Scores(decision, target, np.abs(decision).max(axis=1))
    fitted, _, _ = solve(_step, start_at, data, max_steps=_MOST_STEPS)
    return fitted.ab, fitted.error


def _step(now: _Sigmoid, data: _Scores) -> tuple[_Sigmoid, IntArray]:
    """Take Newton's step, or go back half of the last step if it went too far."""
    gradient, newton = _newton(now.ab, data.decision, data.target)
    is_long = dot(gradient, now.step) > 0.5 * now.promise
    back = -0.5 * now.step
    step = np.where(is_long[:, None], -back, newton)
    promise = np.where(is_long, 0.5 * now.promise, -dot(gradient, newton))
    ab = now.ab + np.where(is_long[:, None], back, newton)
    change = np.abs(step[:, 0]) * data.size + np.abs(step[:, 1])
    error = np.where(np.isfinite(change), change, np.inf)
    status = np.where(np.isfinite(change), np.where(change > _TOLERANCE, RUNNING, CONVERGED), LOST)
    return _Sigmoid(ab, step, promise, error), status


def _newton(ab: FloatArray, f: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gradient and Newton step in ``a, b``, each of shape ``(n_fits, 2)``."""
    p = expit(ab[:, :1] * f + ab[:, 1:])
    surplus = p - target
    g0, g1 = surplus.sum(axis=1), dot(surplus, f)
    p *= 1.0 - p
    h0, h1 = p.sum(axis=1), dot(p, f)
    p *= f
    h2 = dot(p, f)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        step = np.stack([h1 * g0 - h0 * g1, h1 * g1 - h2 * g0], axis=1)
        step /= (h0 * h2 - h1**2)[:, None]
    return np.stack([g1, g0], axis=1), step
