r"""Straight lines through logarithms: $\log|y_k| \approx \log h - d\log(k/k_\mathrm{ref})$.

All points at once, each from the sizes at which it has a value other than zero; the height $h$ can
then be refitted in the original space, where small values do not count as much as large ones.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from apiece._base.typing import BoolArray, FloatArray, IntArray

STEEPEST: Final = 20.0  # larger decays are noise, and c would overflow


class Line(NamedTuple):
    """Lines fitted in log space; every field has shape ``(n_points,)``."""

    decay: FloatArray  # at most `STEEPEST` in size; 0 with fewer than two sizes
    is_steep: BoolArray  # whether the decay was cut to `STEEPEST`
    r2: FloatArray  # nan with fewer than three sizes
    var_log_height: FloatArray
    var_decay: FloatArray
    covariance: FloatArray
    n_sizes: IntArray


def fit_line(values: FloatArray, where: BoolArray, x: FloatArray) -> Line:
    """Fit ``log|values|`` against ``x`` by ordinary least squares.

    Parameters
    ----------
    values, where
        Values and where to use them (other than zero there), shape ``(n_points, n_sizes)``.
    x
        log(k / k_ref), shape ``(n_sizes,)``.
    """
    weight = where.astype(np.float64)
    n_sizes = where.sum(axis=1)
    n = np.maximum(n_sizes, 1)
    y = np.log(np.abs(np.where(where, values, 1.0)))
    x_mean, y_mean = (weight @ x) / n, (weight * y).sum(axis=1) / n
    dx = weight * (x - x_mean[:, None])
    dy = weight * (y - y_mean[:, None])
    sxx = np.where(n_sizes < 2, 1.0, (dx * dx).sum(axis=1))
    slope = (dx * dy).sum(axis=1) / sxx
    residual = dy - slope[:, None] * dx
    rss, tss = (residual**2).sum(axis=1), (dy**2).sum(axis=1)
    # Values that are all alike have no variation to explain, only that of rounding errors.
    is_defined = (n_sizes >= 3) & (tss > 1e-20 * np.maximum(1.0, y_mean**2))
    s2 = np.where(n_sizes >= 3, rss / np.maximum(n - 2, 1), np.nan)
    return Line(
        decay=np.clip(-slope, -STEEPEST, STEEPEST),
        is_steep=np.abs(slope) > STEEPEST,
        r2=np.where(is_defined, 1 - rss / np.where(is_defined, tss, 1.0), np.nan),
        var_log_height=s2 * (1 / n + x_mean**2 / sxx),
        var_decay=s2 / sxx,
        covariance=s2 * x_mean / sxx,
        n_sizes=n_sizes,
    )


def refit_height(
    values: FloatArray, where: BoolArray, x: FloatArray, decay: FloatArray
) -> FloatArray:
    r"""Fit the height at k_ref of curves with a known decay, in the original space.

    $$h = \frac{\sum_k y_k u_k}{\sum_k u_k^2}, \qquad u_k = (k / k_\mathrm{ref})^{-d}$$
    """
    curve = np.where(where, np.exp(-decay[:, None] * x), 0.0)
    square = (curve**2).sum(axis=1)
    return np.asarray((values * curve).sum(axis=1) / np.where(square > 0, square, 1.0))
