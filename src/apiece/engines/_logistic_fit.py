r"""The base fit of penalised logistic regression with two classes.

scikit-learn minimises
$F(\theta) = C \sum_{i \in D} \ell(m_i) + \tfrac12 \theta^\top \Lambda \theta$ with margins
$m = X\theta$, where $X$ has a last column of ones and $\Lambda$ is the identity except
for a zero at the intercept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

from apiece._base.typing import FloatArray
from apiece.losses._series import sigmoid, sigmoid_error

_NEWTON_STEPS = 80
_FIRST_STEPS = 20  # with few rows, in coordinates of theirs
_SETTLED = 1e-6  # change of margins at which these end


@dataclass(frozen=True, eq=False)
class BaseFit:
    """The optimum on D, and what the solution for a joining point needs of it.

    Parameters
    ----------
    theta
        Parameters, shape ``(p,)``, the intercept last if there is one.
    factor
        Lower Cholesky factor ``L`` of the Hessian, shape ``(p, p)``.
    margins
        ``X theta`` on D, shape ``(k,)``.
    rows
        ``A = X L^-T``, shape ``(k, p)``.
    C
        Weight of the data against the penalty.
    decrement
        Newton decrement at the last step: the distance that was left, before it was taken.
    """

    theta: FloatArray
    factor: FloatArray
    margins: FloatArray
    rows: FloatArray
    C: float
    decrement: float


def fit_base(
    X: FloatArray,
    y: FloatArray,
    penalty: FloatArray,
    C: float,
    start: FloatArray | None = None,
) -> BaseFit | None:
    """Minimise the objective on D by Newton's method; None if it does not converge.

    Parameters
    ----------
    X
        Rows with their last column of ones, if any, shape ``(k, p)``.
    y
        0 or 1, shape ``(k,)``.
    penalty
        Diagonal of the penalty, shape ``(p,)``.
    C
        Weight of the data.
    start
        Parameters to start from, shape ``(p,)``; by default some that are found.
    """
    theta = _start(X, y, penalty, C) if start is None else start
    margins = X @ theta
    diagonal, last = np.diag_indices(X.shape[1]), np.inf
    for _ in range(_NEWTON_STEPS):
        gradient = C * (X.T @ sigmoid_error(margins, y)) + penalty * theta
        weighted = X * np.sqrt(C * sigmoid(margins) * sigmoid(-margins))[:, None]
        hessian = weighted.T @ weighted
        hessian[diagonal] += penalty
        try:
            factor = cholesky(hessian, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return None
        step = -cho_solve((factor, True), gradient, check_finite=False)
        decrement = float(np.sqrt(np.maximum(-gradient @ step, 0.0)))
        if not np.isfinite(decrement):
            return None
        change = X @ step
        scale = 1.0
        if decrement > 1e-3:
            scale = _line_search(theta, step, margins, change, y, penalty, C, -(decrement**2))
        theta = theta + scale * step
        margins = margins + scale * change
        # the factor was taken before the step, which must not have moved margins any more
        if decrement < 1e-11 or (decrement < 1e-7 and decrement > 0.1 * last):
            rows = solve_triangular(factor, X.T, lower=True, check_finite=False).T
            return BaseFit(theta, factor, X @ theta, rows, C, decrement**2)
        last = decrement
    return None


def _start(X: FloatArray, y: FloatArray, penalty: FloatArray, C: float) -> FloatArray:
    r"""Return parameters near the optimum, where these are more than the rows of D; else zeros.

    With penalised columns $Z$, the optimum has weights $Z^\top\alpha$, where
    $\alpha = C(y - \sigma(m))$ and $m = ZZ^\top\alpha + \text{intercept}$. So Newton's method takes
    but $k$ equations: at margins $m$ with $w = C\sigma'(m)$, its step goes to the solution of
    $\alpha = C(y - \sigma(m)) - w(ZZ^\top\alpha + \text{intercept} - m)$ that sums to zero.
    """
    (k, n), is_penalised = X.shape, penalty > 0
    theta = np.zeros(n)
    if k >= n:
        return theta
    Z, margins = X[:, is_penalised], np.zeros(k)
    gram = Z @ Z.T
    for _ in range(_FIRST_STEPS):
        p = sigmoid(margins)
        weight = C * p * (1 - p)
        root = np.sqrt(weight)[:, None]
        system = root * gram * root.T
        system[np.diag_indices(k)] += 1
        sides = np.stack([C * (y - p) + weight * margins, weight], axis=1)
        try:
            factor = cholesky(system, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            break
        parts = cho_solve((factor, True), root * (gram @ sides), check_finite=False)
        a, per_intercept = (sides - root * parts).T
        intercept = 0.0 if is_penalised.all() else a.sum() / per_intercept.sum()
        alpha = a - intercept * per_intercept
        last, margins = margins, gram @ alpha + intercept
        if np.abs(margins - last).max() < _SETTLED:
            theta[is_penalised], theta[~is_penalised] = Z.T @ alpha, intercept
            break
    return theta


def _line_search(
    theta: FloatArray,
    step: FloatArray,
    margins: FloatArray,
    change: FloatArray,
    y: FloatArray,
    penalty: FloatArray,
    C: float,
    slope: float,
) -> float:
    """Halve the step until the objective has not risen past its minimum along it by much."""
    scale = 1.0
    for _ in range(50):
        error = sigmoid_error(margins + scale * change, y)
        now = C * (error @ change) + (penalty * (theta + scale * step)) @ step
        if now <= -0.5 * slope:
            return scale
        scale *= 0.5
    return scale
