r"""Power series of the logistic function around the margins of a fitted model.

Adding one point changes margins $m$ by a small $\eta$. Series in $\eta$, with coefficients per row,
give differences of losses to full *relative* precision, also in single precision, where subtracting
two losses would lose all digits. Coefficients come from differential equations, such as
$\sigma' = \sigma - \sigma^2$, which give recurrences; arrays have shape ``(degree + 1, n)``.
"""

from __future__ import annotations

import numpy as np

from apiece._base.typing import AnyArray, FloatArray

RADIUS = 0.8  # where |eta| stays below it, degree 10 leaves a relative error of about 1e-6
DEGREE = 10


def sigmoid(m: FloatArray) -> FloatArray:
    """Logistic function without overflow."""
    e = np.exp(-np.abs(m))
    return np.asarray(np.where(m >= 0, 1.0, e) / (1.0 + e))


def sigmoid_error(m: FloatArray, y: FloatArray) -> FloatArray:
    r"""Return $\sigma(m) - y$ for ``y`` of 0 or 1, to relative precision also where it is tiny."""
    sign = 1.0 - 2.0 * y
    return np.asarray(sign * sigmoid(sign * m))


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


def horner(coefficients: list[AnyArray], x: AnyArray, out: AnyArray) -> AnyArray:
    """Evaluate ``sum_j c_j x^j`` over the given coefficients, for ``x`` of shape ``(rows, n)``."""
    np.multiply(x, coefficients[-1], out=out)
    for c in coefficients[-2:0:-1]:
        out += c
        out *= x
    out += coefficients[0]
    return out
