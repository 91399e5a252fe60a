r"""From changes of a linear model to changes of its loss on the validation set.

With margins $m = V\theta$ on the validation set and a change $\delta$ of the parameters, the loss
falls by

$$\Delta = -\frac{1}{n}\sum_j \left(c_{1j}\,\eta_j + c_{2j}\,\eta_j^2 + \cdots\right),
  \qquad \eta = V\delta,$$

with one series per row. The first term is a product with one vector, in double precision; the
others are small, so single precision suffices for them and for the large product $V\delta$. If
$\eta$ leaves the radius of the series, and for other metrics, losses are compared in double
precision.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from apiece._base.batched import dot
from apiece._base.typing import AnyArray, FloatArray
from apiece.engines._glm_fit import GLMFit
from apiece.losses import Loss
from apiece.losses._series import DEGREE, RADIUS, horner

_ROUNDED = 1e-5  # error by single precision, relative to the mean size of contributions
_ENTRIES = 300_000  # of the margins on the validation set that are held at once


class MarginScore:
    """Scores changes of the parameters of a binary linear classifier.

    Parameters
    ----------
    metric
        The loss.
    V, V32
        Validation rows, shape ``(n, p)``, in double and single precision.
    y
        Class codes 0 or 1, shape ``(n,)``.
    theta
        Parameters before the change, shape ``(p,)``.
    """

    def __init__(
        self, metric: Loss, V: FloatArray, V32: AnyArray, y: AnyArray, theta: FloatArray
    ) -> None:
        self._metric, self._V, self._V32, self._y = metric, V, V32, y
        self._margins = V @ theta
        self.loss = float(metric.of_margins(y, self._margins[None])[0])
        series = metric.margin_series(y, self._margins, DEGREE)
        self._first = None if series is None else V.T @ series[1] / len(y)
        self._rest = (
            None if series is None else [(c / len(y)).astype(np.float32) for c in series[2:]]
        )
        self._curvature = 0.0 if series is None else 2 * float(np.abs(series[2]).max())
        self._size = np.sqrt(np.einsum("np,np->p", V, V) / len(y))

    def steepness(self, base: GLMFit) -> float:
        """Length of the loss's gradient, dual to the norm of the Hessian; nan without a derivative.

        An error of the parameters changes the loss by at most this times its length.
        """
        if not self._metric.has_slope:
            return float("nan")
        slope = base.link.slope(self._metric, self._y, self._margins)
        gradient = self._V.T @ slope / len(self._y)
        dual = solve_triangular(base.factor, gradient, lower=True, check_finite=False)
        return float(np.linalg.norm(dual))

    def delta(self, change: FloatArray) -> FloatArray:
        """Contributions for changes of the parameters, one in each row.

        Parameters
        ----------
        change
            Shape ``(n_models, p)``.

        Returns
        -------
        FloatArray
            By how much the loss falls, shape ``(n_models,)``.
        """
        step = max(16, _ENTRIES // len(self._y))
        blocks = [change[start : start + step] for start in range(0, len(change), step)]
        return np.concatenate([self._block(block) for block in blocks])

    def _block(self, change: FloatArray) -> FloatArray:
        if self._first is None or self._rest is None:
            return self._exact(change)
        eta = change.astype(np.float32) @ self._V32.T
        terms = horner(self._rest, eta, np.empty_like(eta))
        terms *= eta
        fall = -(change @ self._first) - dot(terms, eta)
        is_near = (eta.max(axis=1) < RADIUS) & (eta.min(axis=1) > -RADIUS)
        mean = np.abs(fall[is_near]).mean() if is_near.any() else 0.0
        is_near &= self._rounding(change, eta) <= _ROUNDED * mean
        far = np.flatnonzero(~is_near)
        if len(far):
            fall[far] = self._exact(change[far])
        return np.asarray(fall, dtype=np.float64)

    def _rounding(self, change: FloatArray, eta: AnyArray) -> FloatArray:
        """Error of contributions by the single precision of ``eta``, shape ``(n_models,)``.

        The products of a row and a change may cancel, so the error of their sum is relative to
        their root mean square. It enters the series from the second term on.
        """
        each = change * self._size
        error = np.finfo(np.float32).eps * np.sqrt(dot(each, each))
        return np.asarray(self._curvature * error * np.sqrt(dot(eta, eta) / eta.shape[1]))

    def _exact(self, change: FloatArray) -> FloatArray:
        margins = change @ self._V.T
        margins += self._margins
        return np.asarray(self.loss - self._metric.of_margins(self._y, margins))
