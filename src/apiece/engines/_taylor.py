r"""Power series of the logistic function and of losses, around the margins of a fitted model.

Adding one point changes margins $m$ by a little, $\eta$. Series in $\eta$ with coefficients of each
row's own give differences of losses to full *relative* precision, also in single precision, where
subtracting two losses would leave nothing. Coefficients come from differential equations, such as
$\sigma' = \sigma - \sigma^2$, which turn into recurrences; arrays have shape ``(degree + 1, n)``.
"""

from __future__ import annotations

import numpy as np

from apiece._base.typing import AnyArray, FloatArray
from apiece.engines._metrics import Metric

RADIUS = 0.8  # where |eta| stays below it, degree 10 leaves a relative error of about 1e-6
DEGREE = 10


def sigmoid(m: FloatArray) -> FloatArray:
    """Logistic function without overflow."""
    e = np.exp(-np.abs(m))
    return np.asarray(np.where(m >= 0, 1.0, e) / (1.0 + e))


def sigmoid_series(m: FloatArray, degree: int = DEGREE) -> FloatArray:
    r"""Coefficients of $\sigma(m + \eta) = \sum_j a_j \eta^j$, shape ``(degree + 1, n)``."""
    a = np.zeros((degree + 1, len(m)))
    a[0] = sigmoid(m)
    q = sigmoid(-m)
    for j in range(degree):
        # sigma' = sigma (1 - sigma); the first factor pair is kept apart to lose no digits
        inner = sum((a[i] * a[j - i] for i in range(1, j)), np.zeros(len(m)))
        a[j + 1] = (a[0] * q if j == 0 else a[j] * (q - a[0]) - inner) / (j + 1)
    return a


def loss_series(
    metric: Metric, m: FloatArray, y: AnyArray, degree: int = DEGREE
) -> FloatArray | None:
    r"""Coefficients of a loss as a series in the change of the margin.

    Parameters
    ----------
    metric
        ``log_loss``, ``brier`` or ``softmax_of_proba``.
    m
        Margins, shape ``(n,)``: the log odds of class 1.
    y
        Class codes 0 or 1, shape ``(n,)``.
    degree
        Degree of the series.

    Returns
    -------
    FloatArray or None
        Shape ``(degree + 1, n)``, the constant left at zero; None for other metrics.
    """
    a = sigmoid_series(m, degree)
    c = np.zeros_like(a)
    if metric.name == "log_loss":  # its derivative is sigma - y
        c[1] = np.where(y == 1, -sigmoid(-m), a[0])
        c[2:] = a[1:-1] / np.arange(2, degree + 1)[:, None]
        return c
    if metric.name == "brier":  # (sigma - y)^2
        error = a.copy()
        error[0] = np.where(y == 1, -sigmoid(-m), a[0])
        for j in range(1, degree + 1):
            c[j] = sum(error[i] * error[j - i] for i in range(j + 1))
        return c
    if metric.name == "softmax_of_proba":  # log 2 cosh(h) - (p_y - 1/2), h = sigma - 1/2
        t = np.zeros_like(a)  # tanh(h)
        t[0] = np.tanh(a[0] - 0.5)
        slope = a[1:] * np.arange(1, degree + 1)[:, None]  # h'
        for j in range(degree):
            square = [sum(t[i] * t[n - i] for i in range(n + 1)) for n in range(j + 1)]
            c[j + 1] = sum(t[i] * slope[j - i] for i in range(j + 1)) / (j + 1)
            t[j + 1] = (slope[j] - sum(square[i] * slope[j - i] for i in range(j + 1))) / (j + 1)
        c[1:] -= np.where(y == 1, 1.0, -1.0) * a[1:]
        return c
    return None


def horner(coefficients: list[AnyArray], x: AnyArray, out: AnyArray) -> AnyArray:
    """Evaluate ``sum_j c_j x^j`` over the given coefficients, for ``x`` of shape ``(rows, n)``."""
    np.multiply(x, coefficients[-1], out=out)
    for c in coefficients[-2:0:-1]:
        out += c
        out *= x
    out += coefficients[0]
    return out
