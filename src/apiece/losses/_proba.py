r"""Losses of class probabilities that have derivatives and series.

With validation labels $y_j$ and predicted probabilities $p_j$, each is a mean over the $n$ rows:

- ``log_loss``: $-\log p_{j, y_j}$, with probabilities clipped at machine epsilon as scikit-learn
  does (a single loss is at most 36.04).
- ``softmax_of_proba``: $-\log \mathrm{softmax}(p_j)_{y_j}$, probabilities taken as if they were
  logits. It lies in a narrow band, and is here because the paper's code computes it.
- ``brier``: $(p_{j,1} - y_j)^2$ for two classes, $\sum_c (p_{j,c} - 1[y_j = c])^2$ for more.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from scipy.special import logsumexp, softmax

from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.losses._loss import Loss, SoftmaxSeries
from apiece.losses._series import sigmoid, sigmoid_series
from apiece.losses._softmax import SERIES_RADIUS, bend, curve, remainder

EPSILON = float(np.finfo(np.float64).eps)
LARGEST_LOG_LOSS = -float(np.log(EPSILON))  # probabilities are clipped there


def of_true_class(y: IntArray, by_class: FloatArray) -> FloatArray:
    """Return the entry of the true class in each row, shape ``(n,)``."""
    return np.asarray(by_class[np.arange(len(y)), y])


def one_hot(y: IntArray, n_classes: int) -> FloatArray:
    """Return 1 at the true class of each row, else 0; shape ``(n, n_classes)``."""
    return np.asarray(np.eye(n_classes)[y])


class ProbaLoss(Loss):
    """A loss of probabilities with a derivative by them."""

    needs = "proba"
    lowest = 0.0

    @abstractmethod
    def rows(self, y: IntArray, prediction: FloatArray) -> FloatArray:
        """Return the loss of every row, shape ``(n,)``."""

    @abstractmethod
    def by_proba(self, y: IntArray, proba: FloatArray) -> FloatArray:
        """Return the derivative of each row's loss by the probabilities, shape ``(n, K)``."""

    def slope(self, y: IntArray, prediction: FloatArray) -> FloatArray:
        """Return the derivative of each row's loss by the margins."""
        slope = bend(prediction.T, self.by_proba(y, prediction).T).T
        return np.asarray(slope[:, 1:] if prediction.shape[1] == 2 else slope)


class LogLoss(ProbaLoss):
    """Negative log probability of the true class, clipped at machine epsilon.

    Examples
    --------
    >>> round(LogLoss().value(np.array([1]), np.array([[0.5, 0.5]])), 4)
    0.6931
    """

    name = "log_loss"
    unit = "nats"

    def rows(self, y: IntArray, prediction: FloatArray) -> FloatArray:
        """Return the loss of every row, shape ``(n,)``."""
        return np.asarray(-np.log(np.clip(of_true_class(y, prediction), EPSILON, 1.0)))

    def by_proba(self, y: IntArray, proba: FloatArray) -> FloatArray:
        """Return the derivative by the probabilities; `slope` does not need it."""
        return -one_hot(y, proba.shape[1]) / np.maximum(proba, EPSILON)

    def slope(self, y: IntArray, prediction: FloatArray) -> FloatArray:
        """Return the derivative of each row's loss by the margins; 0 where it is clipped."""
        slope = prediction - one_hot(y, prediction.shape[1])
        slope[of_true_class(y, prediction) < EPSILON] = 0.0
        return slope[:, 1:] if prediction.shape[1] == 2 else slope

    def of_margins(self, y: IntArray, margins: FloatArray) -> FloatArray:
        """Return the loss of binary classifiers, one in each row."""
        signed = margins * np.where(y == 1, -1.0, 1.0)
        losses = np.maximum(signed, 0.0)
        np.abs(signed, out=signed)
        losses += np.log1p(np.exp(np.negative(signed, out=signed), out=signed), out=signed)
        return np.asarray(np.minimum(losses, LARGEST_LOG_LOSS, out=losses).mean(axis=1))

    def margin_series(self, y: IntArray, margins: FloatArray, degree: int) -> FloatArray | None:
        """Return each row's series; None where some losses are clipped, or may be."""
        if np.abs(margins).max(initial=0.0) > LARGEST_LOG_LOSS - 1:
            return None
        a = sigmoid_series(margins, degree)
        c = np.zeros_like(a)
        c[1] = np.where(y == 1, -sigmoid(-margins), a[0])  # the derivative is sigma - y
        c[2:] = a[1:-1] / np.arange(2, degree + 1)[:, None]
        return c

    def softmax_series(self, y: IntArray, pi: FloatArray) -> SoftmaxSeries | None:
        """Return the loss around probabilities; None where some losses are clipped, or may be."""
        farthest = 2 * SERIES_RADIUS  # by which changes within the radius can raise a row's loss
        if of_true_class(y, pi.T).min() < np.exp(farthest - LARGEST_LOG_LOSS):
            return None
        return _LogLossSeries(pi - one_hot(y, len(pi)).T, pi)


class _LogLossSeries:
    def __init__(self, gradient: FloatArray, pi: FloatArray) -> None:
        self.gradient, self._pi = gradient, pi.astype(np.float32)

    def beyond(self, eta: AnyArray, reach: float) -> FloatArray:
        return _log_mean_exp(eta, self._pi, reach)


def _log_mean_exp(change: AnyArray, weights: AnyArray, reach: float) -> FloatArray:
    r"""Sum over rows of $\log \sum_c w_c e^{x_c} - \sum_c w_c x_c$, shape ``(n_models,)``."""
    bent = np.einsum("nck,ck->nk", curve(change, reach), weights)
    s = np.einsum("nck,ck->nk", change, weights).astype(np.float64) + bent
    return np.asarray((bent + np.log1p(s) - s).sum(axis=1))


class _ProbaSeries:
    """Second-order part of a loss through the changes of probabilities."""

    def __init__(self, loss: ProbaLoss, y: IntArray, pi: FloatArray) -> None:
        slope = loss.by_proba(y, pi.T).T
        self.gradient = bend(pi, slope)
        self._pi, self._slope = pi.astype(np.float32), slope.astype(np.float32)

    def _moved(self, eta: AnyArray, reach: float) -> tuple[AnyArray, FloatArray]:
        """Return changes of the probabilities, and the loss's slope on their bent part."""
        r = remainder(self._pi, eta, reach)
        first = np.einsum("nck,ck->n", r, self._slope, optimize=True).astype(np.float64)
        r += bend(self._pi, eta)
        return r, first


class Brier(ProbaLoss):
    """Squared distance between probabilities and the one-hot truth, halved for two classes.

    Examples
    --------
    >>> Brier().value(np.array([1]), np.array([[0.25, 0.75]]))
    0.0625
    """

    name = "brier"

    def rows(self, y: IntArray, prediction: FloatArray) -> FloatArray:
        """Return the loss of every row, shape ``(n,)``."""
        n_classes = prediction.shape[1]
        half = 0.5 if n_classes == 2 else 1.0
        return np.asarray(half * ((prediction - one_hot(y, n_classes)) ** 2).sum(axis=1))

    def by_proba(self, y: IntArray, proba: FloatArray) -> FloatArray:
        """Return the derivative of each row's loss by the probabilities."""
        factor = 1.0 if proba.shape[1] == 2 else 2.0
        return factor * (proba - one_hot(y, proba.shape[1]))

    def of_margins(self, y: IntArray, margins: FloatArray) -> FloatArray:
        """Return the loss of binary classifiers, one in each row."""
        return np.asarray(((sigmoid(margins) - y) ** 2).mean(axis=1))

    def margin_series(self, y: IntArray, margins: FloatArray, degree: int) -> FloatArray:
        """Return each row's series of ``(sigma - y)^2``."""
        error = sigmoid_series(margins, degree)
        error[0] = np.where(y == 1, -sigmoid(-margins), error[0])
        c = np.zeros_like(error)
        for j in range(1, degree + 1):
            c[j] = sum(error[i] * error[j - i] for i in range(j + 1))
        return c

    def softmax_series(self, y: IntArray, pi: FloatArray) -> SoftmaxSeries:
        """Return the loss around probabilities."""
        return _BrierSeries(self, y, pi)


class _BrierSeries(_ProbaSeries):
    def beyond(self, eta: AnyArray, reach: float) -> FloatArray:
        moved, first = self._moved(eta, reach)
        return np.asarray(first + np.einsum("nck,nck->n", moved, moved))


class SoftmaxOfProba(ProbaLoss):
    """Cross-entropy of the softmax of *probabilities*, as the paper's code computes it.

    Examples
    --------
    >>> round(SoftmaxOfProba().value(np.array([1]), np.array([[0.0, 1.0]])), 4)
    0.3133
    """

    name = "softmax_of_proba"

    def rows(self, y: IntArray, prediction: FloatArray) -> FloatArray:
        """Return the loss of every row, shape ``(n,)``."""
        return np.asarray(logsumexp(prediction, axis=1) - of_true_class(y, prediction))

    def by_proba(self, y: IntArray, proba: FloatArray) -> FloatArray:
        """Return the derivative of each row's loss by the probabilities."""
        return np.asarray(softmax(proba, axis=1) - one_hot(y, proba.shape[1]))

    def margin_series(self, y: IntArray, margins: FloatArray, degree: int) -> FloatArray:
        """Return each row's series of ``log 2 cosh(h) - (p_y - 1/2)``, ``h = sigma - 1/2``."""
        a = sigmoid_series(margins, degree)
        c, t = np.zeros_like(a), np.zeros_like(a)  # the second is that of tanh(h)
        t[0] = np.tanh(a[0] - 0.5)
        slope = a[1:] * np.arange(1, degree + 1)[:, None]  # h'
        for j in range(degree):
            square = [sum(t[i] * t[n - i] for i in range(n + 1)) for n in range(j + 1)]
            c[j + 1] = sum(t[i] * slope[j - i] for i in range(j + 1)) / (j + 1)
            t[j + 1] = (slope[j] - sum(square[i] * slope[j - i] for i in range(j + 1))) / (j + 1)
        c[1:] -= np.where(y == 1, 1.0, -1.0) * a[1:]
        return c

    def softmax_series(self, y: IntArray, pi: FloatArray) -> SoftmaxSeries:
        """Return the loss around probabilities."""
        return _SoftmaxOfProbaSeries(self, y, pi)


class _SoftmaxOfProbaSeries(_ProbaSeries):
    def __init__(self, loss: ProbaLoss, y: IntArray, pi: FloatArray) -> None:
        super().__init__(loss, y, pi)
        self._inner = softmax(pi, axis=0).astype(np.float32)

    def beyond(self, eta: AnyArray, reach: float) -> FloatArray:
        moved, first = self._moved(eta, reach)
        return np.asarray(first + _log_mean_exp(moved, self._inner, 1.0))
