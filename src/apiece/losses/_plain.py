r"""Losses of labels, of decision values and of regressions.

- ``zero_one``: 1 for a wrong label.
- ``hinge``: $\max(0, 1 - s_j f_j)$ for two classes, with the decision value $f_j$ and $s_j = 1$ for
  the second class, $-1$ for the first; for more classes
  $\max(0, 1 - f_{j,y_j} + \max_{c \ne y_j} f_{j,c})$.
- ``squared_error``, ``absolute_error``: of a predicted value.
- ``poisson_deviance``: $2(y \log(y / \mu) + \mu - y)$ of a predicted mean $\mu > 0$.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import factorial, xlogy

from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.losses._loss import Loss
from apiece.losses._proba import of_true_class


class ZeroOne(Loss):
    """1 for a wrong label, else 0.

    Examples
    --------
    >>> ZeroOne().value(np.array([0, 1]), np.array([0, 0]))
    0.5
    """

    name = "zero_one"
    needs = "label"
    lowest = 0.0

    def rows(self, y: AnyArray, prediction: AnyArray) -> FloatArray:
        """Return the loss of every row, shape ``(n,)``."""
        return np.asarray(y != prediction, dtype=np.float64)

    def of_margins(self, y: IntArray, margins: FloatArray) -> FloatArray:
        """Return the loss of binary classifiers, one in each row."""
        return np.asarray(((margins > 0) != (y == 1)).mean(axis=1))


class Hinge(Loss):
    """Hinge loss of decision values, shape ``(n,)`` or, beyond two classes, ``(n, K)``.

    Examples
    --------
    >>> Hinge().value(np.array([0, 1]), np.array([-2.0, 0.5]))
    0.25
    """

    name = "hinge"
    needs = "decision"
    lowest = 0.0

    def rows(self, y: IntArray, prediction: FloatArray) -> FloatArray:
        """Return the loss of every row, shape ``(n,)``."""
        if prediction.ndim == 1:
            margin = np.where(y == 1, prediction, -prediction)
        else:
            others = prediction.copy()
            others[np.arange(len(y)), y] = -np.inf
            margin = of_true_class(y, prediction) - others.max(axis=1)
        return np.maximum(0.0, 1.0 - margin)


class SquaredError(Loss):
    """Squared error of a predicted value.

    Examples
    --------
    >>> SquaredError().value(np.array([1.0, 2.0]), np.array([1.5, 2.0]))
    0.125
    """

    name = "squared_error"
    needs = "value"
    lowest = 0.0
    is_of_residual = True
    is_squared = True
    curvature: ClassVar[float | None] = 2.0

    def rows(self, y: FloatArray, prediction: FloatArray) -> FloatArray:
        """Return the loss of every row, shape ``(n,)``."""
        return np.asarray((y - prediction) ** 2)

    def slope(self, y: FloatArray, prediction: FloatArray) -> FloatArray:
        """Return the derivative of each row's loss by the predicted value."""
        return np.asarray(2.0 * (prediction - y)[:, None])

    def fall(self, y: FloatArray, prediction: FloatArray, change: FloatArray) -> FloatArray:
        """Return by how much the loss falls, without subtracting losses: no digits are lost."""
        return np.asarray((change * (2.0 * (y - prediction) - change)).mean(axis=1))


class AbsoluteError(Loss):
    """Absolute error of a predicted value.

    Examples
    --------
    >>> AbsoluteError().value(np.array([1.0, 2.0]), np.array([1.5, 2.0]))
    0.25
    """

    name = "absolute_error"
    needs = "value"
    lowest = 0.0
    is_of_residual = True

    def rows(self, y: FloatArray, prediction: FloatArray) -> FloatArray:
        """Return the loss of every row, shape ``(n,)``."""
        return np.asarray(np.abs(y - prediction))

    def slope(self, y: FloatArray, prediction: FloatArray) -> FloatArray:
        """Return the derivative of each row's loss by the predicted value; 0 at the kink."""
        return np.asarray(np.sign(prediction - y)[:, None])

    def fall(self, y: FloatArray, prediction: FloatArray, change: FloatArray) -> FloatArray:
        """Return by how much the loss falls, without subtracting losses: no digits are lost."""
        residual = y - prediction  # |e| - |e - t| = min(t, 2e - t) for e >= 0
        towards = change * np.where(residual < 0.0, -1.0, 1.0)
        return np.asarray(np.minimum(towards, 2.0 * np.abs(residual) - towards).mean(axis=1))


class PoissonDeviance(Loss):
    """Deviance of a predicted mean of counts, as scikit-learn's ``mean_poisson_deviance``.

    Examples
    --------
    >>> PoissonDeviance().value(np.array([2.0]), np.array([2.0]))
    0.0
    """

    name = "poisson_deviance"
    needs = "value"
    lowest = 0.0

    def rows(self, y: FloatArray, prediction: FloatArray) -> FloatArray:
        """Return the loss of every row; not finite for a mean that is not positive."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(2.0 * (xlogy(y, y / prediction) + prediction - y))

    def slope(self, y: FloatArray, prediction: FloatArray) -> FloatArray:
        """Return the derivative of each row's loss by the predicted mean."""
        return np.asarray(2.0 * (1.0 - y / prediction)[:, None])

    def margin_series(self, y: FloatArray, margins: FloatArray, degree: int) -> FloatArray:
        """Return each row's series in the change of the logarithm of the mean."""
        mean, powers = np.exp(margins), np.arange(degree + 1)
        c = 2.0 * mean / factorial(powers)[:, None]
        c[0], c[1] = 0.0, 2.0 * (mean - y)
        return np.asarray(c)
