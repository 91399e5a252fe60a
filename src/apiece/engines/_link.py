r"""Links of generalised linear models: means as functions of margins, and their remainders.

A model with canonical link minimises $C \sum_i \ell(m_i, y_i)$ plus a penalty, where the
derivative of $\ell$ by the margin is $\mu(m) - y$. When margins change by $\eta$, the gradient
answers with $\mu'(m)\,\eta$ and a remainder of second order,

$$r(\eta) = \mu(m + \eta) - \mu(m) - \mu'(m)\,\eta,$$

which is computed to relative precision, so that single precision suffices where it is small.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import expit

from apiece._base.batched import find_root
from apiece._base.typing import AnyArray, FloatArray
from apiece.losses import Loss
from apiece.losses._series import horner, sigmoid, sigmoid_error, sigmoid_series
from apiece.losses._softmax import curve

_STEPS = 80  # of Newton's method for one number


class Response(ABC):
    """The remainder around the margins of a fit, shape ``(k,)``.

    Attributes
    ----------
    weight
        Derivative of the mean by the margin, shape ``(k,)``.
    """

    weight: FloatArray

    @abstractmethod
    def exact(self, eta: FloatArray) -> FloatArray:
        """Return ``r`` in double precision for changes of any size, shape ``(n, k)``."""

    @abstractmethod
    def near(self, eta: AnyArray) -> AnyArray:
        """Return ``C r`` in single precision for changes below 0.8."""

    @abstractmethod
    def far(self, eta: AnyArray) -> AnyArray:
        """Return ``C r`` in single precision for changes below 20."""


class Link(ABC):
    """A canonical link."""

    @abstractmethod
    def error(self, m: FloatArray, y: FloatArray) -> FloatArray:
        """Return the mean less the target, to relative precision if possible."""

    @abstractmethod
    def weight(self, m: FloatArray) -> FloatArray:
        """Return the derivative of the mean by the margin."""

    @abstractmethod
    def slope(self, metric: Loss, y: AnyArray, m: FloatArray) -> FloatArray:
        """Return the derivative of each row's loss by its margin, shape ``(n,)``."""

    @abstractmethod
    def response(self, m: FloatArray, C: float) -> Response:
        """Return the remainder around margins ``m``."""

    @abstractmethod
    def proximal(
        self,
        margin: FloatArray,
        beta: FloatArray,
        y: FloatArray,
        C: float,
        start: FloatArray | None = None,
    ) -> FloatArray:
        r"""Solve $t = C (y - \mu(\text{margin} + t \beta))$ for every row, shape ``(n,)``."""


class _Logit(Link):
    """The logistic link of two classes, targets 0 or 1."""

    def error(self, m: FloatArray, y: FloatArray) -> FloatArray:
        return sigmoid_error(m, y)

    def weight(self, m: FloatArray) -> FloatArray:
        return sigmoid(m) * sigmoid(-m)

    def slope(self, metric: Loss, y: AnyArray, m: FloatArray) -> FloatArray:
        return metric.slope(y, np.stack([sigmoid(-m), sigmoid(m)], axis=1))[:, 0]

    def response(self, m: FloatArray, C: float) -> Response:
        return _LogitResponse(m, C)

    def proximal(
        self,
        margin: FloatArray,
        beta: FloatArray,
        y: FloatArray,
        C: float,
        start: FloatArray | None = None,
    ) -> FloatArray:
        r"""Solve $t = C (y - \sigma(\text{margin} + t \beta))$ for every row.

        With the margin $w$ towards the class of the point, and $w_0$ before it joins, this is
        $f(w) = w - w_0 - C\beta\,\sigma(-w) = 0$. Here $f$ increases, is convex below 0 and concave
        above, and the sign of $f(0)$ gives the side of the root. Restricted to that side, Newton
        steps overshoot at most once. After a step $h$ the relative error of $t$ is below $h^2$.
        """
        sign = np.where(y > 0, 1.0, -1.0)
        before, pull = sign * margin, C * beta
        after, is_above = before + pull, 2 * before + pull > 0
        low = np.where(is_above, np.maximum(before, 0.0), before)
        high = np.where(is_above, after, np.minimum(after, 0.0))
        w = np.where(is_above, low, high)
        if start is not None:
            w = np.clip(before + np.abs(start) * beta, low, high)

        def step(w: FloatArray) -> FloatArray:
            rest = expit(-w)
            return np.asarray((before - w + pull * rest) / (1 + pull * rest * (1 - rest)))

        w = find_root(step, w, low=low, high=high, tolerance=1e-5, max_steps=_STEPS)
        return np.asarray(C * sign * expit(-w))


class _LogitResponse(Response):
    def __init__(self, m: FloatArray, C: float) -> None:
        series = sigmoid_series(m)
        self.weight = series[1]
        self._short = [(C * c).astype(np.float32) for c in series[2:]]
        self._towards = np.where(m > 0, -1.0, 1.0)  # the class that is less likely
        self._margins = self._towards * m
        self._rare = sigmoid(-np.abs(m))  # the probability of that class
        self._sign32, self._rare32, self._weight32 = (
            v.astype(np.float32)
            for v in (self._towards, self._rare, C * self._towards * self.weight)
        )

    def exact(self, eta: FloatArray) -> FloatArray:
        x = self._towards * eta
        moved = sigmoid(self._margins + x)
        return np.asarray(self._towards * (moved - self._rare - self.weight * x))

    def near(self, eta: AnyArray) -> AnyArray:
        r = horner(self._short, eta, np.empty_like(eta))
        r *= eta
        r *= eta
        return r

    def far(self, eta: AnyArray) -> AnyArray:
        r"""Return ``C r`` by the series of the exponential.

        With the less likely class's probability $\pi$ and $\eta$ towards it, $\varphi$ of
        `curve` and $s = \pi(\eta + \varphi)$, $r = \pi(1 - \pi)(\varphi - s\eta) / (1 + s)$.
        """
        x = self._sign32 * eta
        r = curve(x, float(np.abs(x).max(initial=0.0)))
        s = x + r
        s *= self._rare32
        x *= s
        r -= x
        r *= self._weight32
        s += 1
        r /= s
        return r


class _Log(Link):
    """The logarithmic link of counts, targets of 0 or more."""

    def error(self, m: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.exp(m) - y)

    def weight(self, m: FloatArray) -> FloatArray:
        return np.asarray(np.exp(m))

    def slope(self, metric: Loss, y: AnyArray, m: FloatArray) -> FloatArray:
        mean = np.exp(m)
        return np.asarray(metric.slope(y, mean)[:, 0] * mean)

    def response(self, m: FloatArray, C: float) -> Response:
        return _LogResponse(m, C)

    def proximal(
        self,
        margin: FloatArray,
        beta: FloatArray,
        y: FloatArray,
        C: float,
        start: FloatArray | None = None,
    ) -> FloatArray:
        r"""Solve $t = C (y - e^{\text{margin} + t \beta})$ for every row.

        $f(w) = w - \text{margin} - C\beta(y - e^w)$ increases and is convex, so Newton's method
        converges monotonically from a bound above the root. Where $\beta$ is large, $y - e^w$ is a
        small difference that loses its digits, and $t$ is $(w - \text{margin}) / \beta$.
        """
        pull = C * beta
        high = np.maximum(margin, np.log(np.maximum(y, 1e-300)))
        high = np.minimum(high, margin + pull * y)
        w = high if start is None else np.minimum(margin + start * beta, high)

        def step(w: FloatArray) -> FloatArray:
            mean = np.exp(w)
            return np.asarray((margin + pull * (y - mean) - w) / (1 + pull * mean))

        w = find_root(step, w, high=high, tolerance=1e-6, max_steps=_STEPS)
        mean = np.exp(w)
        is_far = pull * mean > 1
        return np.where(is_far, (w - margin) / np.where(is_far, beta, 1.0), C * (y - mean))


class _LogResponse(Response):
    def __init__(self, m: FloatArray, C: float) -> None:
        self.weight = np.exp(m)
        self._weight32 = (C * self.weight).astype(np.float32)

    def exact(self, eta: FloatArray) -> FloatArray:
        return np.asarray(self.weight * (np.expm1(eta) - eta))

    def near(self, eta: AnyArray) -> AnyArray:
        return self.far(eta)

    def far(self, eta: AnyArray) -> AnyArray:
        r = curve(eta, float(np.abs(eta).max(initial=0.0)))
        r *= self._weight32
        return r


LOGIT, LOG = _Logit(), _Log()
