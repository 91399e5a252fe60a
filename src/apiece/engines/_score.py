r"""From changes of a linear model to changes of its loss on the validation set.

With margins $m = V\theta$ on the validation set and a change $\delta$ of the parameters, the loss
falls by

$$\Delta = -\frac{1}{n}\sum_j \left(c_{1j}\,\eta_j + c_{2j}\,\eta_j^2 + \cdots\right),
  \qquad \eta = V\delta,$$

with each row's own series. The first term is a product with one vector, in double precision; the
others are small, so single precision suffices for them and for the large product $V\delta$. Where
$\eta$ leaves the series' radius, and for other metrics, losses are compared in double precision.
"""

from __future__ import annotations

import numpy as np

from apiece._base.typing import AnyArray, FloatArray
from apiece.engines._metrics import Metric
from apiece.engines._taylor import RADIUS, horner, loss_series, sigmoid

_ENTRIES = 300_000  # of the margins on the validation set that are held at once
LARGEST_LOG_LOSS = -float(np.log(np.finfo(np.float64).eps))  # probabilities are clipped there


def margin_loss(metric: Metric, margins: FloatArray, y: AnyArray) -> FloatArray:
    """Loss of binary classifiers with the given margins, one in each row.

    Parameters
    ----------
    metric
        Any metric for classification.
    margins
        Log odds of class 1, or decision values, shape ``(n_models, n)``.
    y
        Class codes 0 or 1, shape ``(n,)``.

    Returns
    -------
    FloatArray
        Shape ``(n_models,)``.
    """
    if metric.name == "log_loss":
        signed = margins * np.where(y == 1, -1.0, 1.0)
        losses = np.maximum(signed, 0.0)
        np.abs(signed, out=signed)
        losses += np.log1p(np.exp(np.negative(signed, out=signed), out=signed), out=signed)
        return np.asarray(np.minimum(losses, LARGEST_LOG_LOSS, out=losses).mean(axis=1))
    if metric.name == "zero_one":
        return np.asarray(((margins > 0) != (y == 1)).mean(axis=1))
    if metric.needs == "decision":
        return np.array([metric.loss(y, row) for row in margins])
    p = sigmoid(margins)
    if metric.name == "brier":
        return np.asarray(((p - y) ** 2).mean(axis=1))
    q = sigmoid(-margins)
    if metric.needs == "label":
        return np.array([metric.loss(y, (row > 0).astype(np.int64)) for row in margins])
    return np.array([metric.loss(y, np.stack(pair, axis=1)) for pair in zip(q, p, strict=True)])


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
        self, metric: Metric, V: FloatArray, V32: AnyArray, y: AnyArray, theta: FloatArray
    ) -> None:
        self._metric, self._V, self._V32, self._y = metric, V, V32, y
        self._margins = V @ theta
        self.loss = float(margin_loss(metric, self._margins[None], y)[0])
        series = loss_series(metric, self._margins, y)
        if metric.name == "log_loss" and np.abs(self._margins).max() > LARGEST_LOG_LOSS - 1:
            series = None  # some losses are clipped
        self._first = None if series is None else V.T @ series[1] / len(y)
        self._rest = (
            None if series is None else [(c / len(y)).astype(np.float32) for c in series[2:]]
        )

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
        fall = -(change @ self._first) - np.einsum("ij,ij->i", terms, eta)
        far = np.flatnonzero(~((eta.max(axis=1) < RADIUS) & (eta.min(axis=1) > -RADIUS)))
        if len(far):
            fall[far] = self._exact(change[far])
        return np.asarray(fall, dtype=np.float64)

    def _exact(self, change: FloatArray) -> FloatArray:
        margins = change @ self._V.T
        margins += self._margins
        return np.asarray(self.loss - margin_loss(self._metric, margins, self._y))
