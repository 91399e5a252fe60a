r"""From changes of a softmax classifier to changes of its loss on the validation set.

Let $g$ be the gradient of the loss at the optimum on $D$, and $h = H^{-1} g$ (in double precision).
With the notation of `_softmax_joining.py`, a point lowers the loss by

$$\Delta = -g \cdot \delta - q(V\delta), \qquad
  g \cdot \delta = (x_z^\top h) \cdot t - (Xh) \cdot C r,$$

where $q$ is the change of the loss beyond first order. The first part needs no product with the
validation rows and is exact to double precision; $q$ is small, so single precision suffices for it.
An error of $\delta$ enters $\Delta$ only multiplied by another small number. For other metrics, and
for changes that leave the radius of the series, losses are compared in double precision.
"""

from __future__ import annotations

import numpy as np

from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.engines._softmax_fit import SoftmaxFit, times
from apiece.engines._softmax_joining import Change
from apiece.losses import Loss
from apiece.losses._softmax import SERIES_RADIUS, against, all_probabilities, spread

_ENTRIES = 150_000  # of the margins on the validation set that are held at once


class SoftmaxScore:
    """Scores changes of a softmax classifier.

    Parameters
    ----------
    metric
        The loss.
    V
        Validation rows of the design, shape ``(n, p)``.
    y
        Class codes, shape ``(n,)``.
    base
        The fit on D.

    Attributes
    ----------
    loss
        Before any change.
    is_smooth
        Whether contributions come from the series.
    """

    def __init__(self, metric: Loss, V: FloatArray, y: IntArray, base: SoftmaxFit) -> None:
        self._metric, self._y = metric, y
        placed, _ = base.place(V)
        if base.basis is not None:
            placed[:, -1] = 0.0  # the direction of a joining point is another one
        self._V, self._features = placed, V[:, : 0 if base.basis is None else len(base.basis)]
        self._margins = spread(base.theta @ placed.T)
        pi = all_probabilities(self._margins)
        self.loss = float(self._losses(self._margins[None])[0])
        self._series = metric.softmax_series(y, pi)
        self.is_smooth = self._series is not None
        if self._series is None:
            return
        self._short = placed.astype(np.float32)
        self._top = pi.argmax(axis=0)
        self._gradient = self._series.gradient[:-1] / len(y)
        self._h = spread(base.solve(spread(self._gradient) @ placed))
        self._outside = self._gradient @ self._features
        self._rows_h = (self._h @ base.rows.T).astype(base.inverse.dtype)

    def delta(self, change: Change) -> FloatArray:
        """Contributions, by how much the loss falls, shape ``(n_points,)``."""
        step = max(4, _ENTRIES // self._margins.size)
        n = len(change.pull)
        return np.concatenate(
            [self._block(change, slice(i, i + step)) for i in range(0, n, step)] or [np.empty(0)]
        )

    def _block(self, change: Change, block: slice) -> FloatArray:
        if self._series is None:
            return self._exact(change, block)[0]
        first = self._first(change, block)
        eta = against(self._top, self._eta(change, block, self._short))
        reach = np.maximum(eta.max(axis=(1, 2)), -eta.min(axis=(1, 2)))
        far = np.flatnonzero(~(reach < SERIES_RADIUS))
        eta[far] = reach[far] = 0.0
        fall = -first - self._series.beyond(eta, float(reach.max(initial=0.0))) / len(self._y)
        if len(far):
            exact, moved = self._exact(change, block.start + far)
            fall[far] = exact + np.einsum("nck,ck->n", moved, self._gradient) - first[far]
        return np.asarray(fall)

    def _first(self, change: Change, block: slice) -> FloatArray:
        """Change of the loss to first order, from what moves the parameters, shape ``(n,)``."""
        pull = change.pull[block]
        first = ((change.x[block] @ self._h.T) * pull).sum(axis=1)
        first -= np.einsum("nck,ck->n", change.response[block], self._rows_h, optimize=True)
        if self._features.shape[1]:
            weight = change.x[block, -1:] * (pull + pull.sum(axis=1, keepdims=True))
            first += ((change.outside[block] @ self._outside.T) * weight).sum(axis=1)
        return np.asarray(first)

    def _eta(self, change: Change, block: slice | IntArray, V: AnyArray) -> AnyArray:
        """Changes of the margins, shape ``(n, K - 1, n_validation)``."""
        parameters = change.parameters[block].astype(V.dtype, copy=False)
        eta = times(parameters, V.T)
        if self._features.shape[1]:
            along = (change.outside[block] @ self._features.T).astype(V.dtype)
            eta += parameters[:, :, -1:] * along[:, None, :]
        return spread(eta)

    def _exact(self, change: Change, block: slice | IntArray) -> tuple[FloatArray, FloatArray]:
        """Contributions from losses, and the changes of the margins they came from."""
        eta = self._eta(change, block, self._V)
        return self.loss - self._losses(self._margins + eta), eta

    def _losses(self, margins: FloatArray) -> FloatArray:
        """Loss of models with the given margins, shape ``(n_models,)``."""
        y, metric = self._y, self._metric
        if metric.needs == "proba":
            predicted = all_probabilities(margins)
        else:
            predicted = np.concatenate([margins, np.zeros_like(margins[:, :1])], axis=1)
            predicted -= predicted.mean(axis=1, keepdims=True)  # the penalty's choice
        if metric.needs == "label":
            return np.array([metric.value(y, one) for one in predicted.argmax(axis=1)])
        return np.array([metric.value(y, np.ascontiguousarray(one.T)) for one in predicted])
