r"""The base fit of a penalised generalised linear model with one margin.

scikit-learn minimises
$F(\theta) = C \sum_{i \in D} \ell(m_i) + \tfrac12 \theta^\top \Lambda \theta$ with margins
$m = X\theta$, where $X$ has a last column of ones and $\Lambda$ is diagonal with a zero at the
intercept. The derivative of $\ell$ by the margin is the mean less the target (`_link.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.special import expit

from apiece._base.typing import FloatArray
from apiece.engines._link import LOGIT, Link
from apiece.engines._newton import Step, newton

_NEWTON_STEPS = 80
_FIRST_STEPS = 20  # in the dual, for D with fewer rows than columns
_SETTLED = 1e-6  # change of margins at which the dual steps end


@dataclass(frozen=True, eq=False)
class GLMFit:
    """The optimum on D, with the factors that the solution for a joining point needs.

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
    link
        From margins to means.
    decrement
        Newton decrement at the last step: the distance to the optimum before that step.
    """

    theta: FloatArray
    factor: FloatArray
    margins: FloatArray
    rows: FloatArray
    C: float
    link: Link
    decrement: float

    @property
    def factor_error(self) -> float:
        r"""Error of a solution with the factor relative to its length, in the norm of the Hessian.

        Summing the Hessian over k rows and factoring it are exact for a Hessian whose entries
        $ij$ differ by $(k + p)\epsilon\sqrt{H_{ii}H_{jj}}$. Scaled to a unit diagonal its smallest
        eigenvalue is about the square of the smallest pivot, which multiplies the error.
        """
        pivots = np.diag(self.factor) / np.linalg.norm(self.factor, axis=1)
        return float(sum(self.rows.shape) * np.finfo(np.float64).eps / pivots.min() ** 2)


def fit_base(
    X: FloatArray,
    y: FloatArray,
    penalty: FloatArray,
    C: float,
    start: FloatArray | None = None,
    *,
    link: Link = LOGIT,
) -> GLMFit | None:
    """Minimise the objective on D by Newton's method; None if it does not converge.

    Parameters
    ----------
    X
        Rows with their last column of ones, if any, shape ``(k, p)``.
    y
        Targets, shape ``(k,)``.
    penalty
        Diagonal of the penalty, shape ``(p,)``.
    C
        Weight of the data.
    start
        Parameters to start from, shape ``(p,)``; by default zero, or near the optimum for a few
        rows of two classes.
    link
        From margins to means.
    """
    if start is None:
        start = _start(X, y, penalty, C) if link is LOGIT else np.zeros(X.shape[1])
    diagonal = np.diag_indices(X.shape[1])

    def direction(theta: FloatArray, margins: FloatArray) -> Step:
        gradient = C * (X.T @ link.error(margins, y)) + penalty * theta
        weighted = X * np.sqrt(C * link.weight(margins))[:, None]
        hessian = weighted.T @ weighted
        hessian[diagonal] += penalty
        factor = cholesky(hessian, lower=True, overwrite_a=True, check_finite=False)
        step = -cho_solve((factor, True), gradient, check_finite=False)
        slope = float(gradient @ step)
        return Step(step, X @ step, slope, float(np.sqrt(np.maximum(-slope, 0.0))), factor)

    try:
        # The factor belongs to the margins before the last step, so that step must be tiny.
        optimum = newton(
            direction,
            partial(link.error, y=y),
            lambda v: penalty * v,
            (start, X @ start),
            C=C,
            tolerance=1e-11,
            max_steps=_NEWTON_STEPS,
        )
    except LinAlgError:
        return None
    if optimum is None:
        return None
    theta, last = optimum
    rows = solve_triangular(last.factor, X.T, lower=True, check_finite=False).T
    return GLMFit(theta, last.factor, X @ theta, rows, C, link, last.decrement**2)


def _start(X: FloatArray, y: FloatArray, penalty: FloatArray, C: float) -> FloatArray:
    r"""Return parameters near the optimum if there are more of them than rows of D; else zeros.

    With penalised columns $Z$, the optimum has weights $Z^\top\alpha$, where
    $\alpha = C(y - \sigma(m))$ and $m = ZZ^\top\alpha + \text{intercept}$. So Newton's method takes
    only $k$ equations: at margins $m$ with $w = C\sigma'(m)$, its step goes to the solution of
    $\alpha = C(y - \sigma(m)) - w(ZZ^\top\alpha + \text{intercept} - m)$ that sums to zero.
    Its steps have no line search: where they diverge, the fit starts at zero.
    """
    (k, n), is_penalised = X.shape, penalty > 0
    theta = np.zeros(n)
    if k >= n:
        return theta
    Z, margins = X[:, is_penalised], np.zeros(k)
    gram = Z @ Z.T
    for _ in range(_FIRST_STEPS):
        p = expit(margins)
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
