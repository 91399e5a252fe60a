r"""What second-order theory says of the expected contribution of a point.

For a generalised linear model with residuals $r$, weights $w$ (second derivatives of the loss) and
their derivatives $w'$, let $\theta$ be the optimum of the population's loss with the penalty that
$k$ training rows have, $G$ the mean gradient there, $H$ the curvature and $H_k = kH + \lambda I$.
A training set of $k$ rows ends at $\theta + t$. Adding $z$ takes a proximal step from there, so

$$\Delta(z) \approx \frac{r_z(t)}{1 + w_z h_z}\, x_z^\top H_D^{-1}\,\nabla L(\theta + t)
  - \frac{r_z(t)^2}{2 (1 + w_z h_z)^2}\, x_z^\top H_k^{-1} H H_k^{-1} x_z,
  \qquad h_z = x_z^\top H_k^{-1} x_z,$$

with $r_z(t) = r_z + w_z x_z^\top t$. With the covariance $C$ of $t$, the expectation is the sum of

* $w_z\, x_z^\top C H H_k^{-1} x_z$: errors of $f_D$ that $z$ corrects;
* $-\frac12 r_z^2\, x_z^\top H_k^{-1} H H_k^{-1} x_z$: the step that $z$ takes, right or wrong;
* $-\frac12 w_z^2\, x_z^\top C x_z\; x_z^\top H_k^{-1} H H_k^{-1} x_z$;
* $r_z\, x_z^\top H_k^{-1} G$: the pull of the penalty;
* $r_z\, x_z^\top H_k^{-1} v$: the bias of $f_D$, which is common to all points,

each damped by powers of $1 + w_z h_z$, where

$$v = H\,\mathrm{E}[t] + k\,\mathrm{E}\!\left[\tfrac{w r\,h^{(2)} x}{(1 + wh)^2}\right]
  - k\,\mathrm{E}[w'\,(x^\top C H H_k^{-1} x)\,x] + \tfrac12\,\mathrm{E}[w'\,(x^\top C x)\,x],$$

$$\mathrm{E}[t] = k H_k^{-1}\left(\mathrm{E}\!\left[\tfrac{w r h x}{1 + wh}\right]
  - \tfrac12\,\mathrm{E}[w'\,(x^\top C x)\,x]\right), \qquad
  C = k H_k^{-1}\,\mathrm{E}\!\left[\tfrac{r^2 x x^\top}{(1 + wh)^2}\right] H_k^{-1},$$

with $h^{(2)} = x^\top H_k^{-1} H H_k^{-1} x$. Two changes make it hold where training sets are
small or rows lie far from all others. In means over rows, $1 + wh$ becomes $1 + (wh - 2m)_+$ with
the mean leverage $m = \mathrm{E}[wh]$: a row that joins bounds its effect by itself, and rows of
usual leverage are already part of $H_k$. And $H_D^{-1}$ is larger than $H_k^{-1}$ on average, for
normal features and least squares by $1/(1 - m)$: $C$, $h^{(2)}$ and the first term are larger by
that.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from apiece._base.typing import FloatArray, IntArray

N_TERMS: Final = 8
_USUAL: Final = 2.0  # leverage, in units of the mean, up to which rows are not damped
_MOST: Final = 0.3  # mean leverage beyond which the inverse curvature is taken to grow no more


class Mode(NamedTuple):
    """One output of a generalised linear model: its curvature and its rows.

    Features are in the basis of eigenvectors of the curvature, ``p`` of them.
    """

    rows: IntArray  # positions of the rows that stand for the population
    eigenvalues: FloatArray  # of the mean curvature H, shape (p,)
    Z: FloatArray  # features, shape (n_points, p)
    residual: FloatArray  # first derivative of each row's loss, shape (n_points,)
    weight: FloatArray  # second derivative, shape (n_points,)
    bend: FloatArray  # third derivative, shape (n_points,)

    def gradient(self, rows: IntArray) -> FloatArray:
        """Return the mean gradient of some rows, shape ``(p,)``."""
        return np.asarray(self.residual[rows] @ self.Z[rows] / len(rows))


def terms(mode: Mode, points: IntArray, k: int, penalty: float) -> FloatArray:
    r"""Return what theory predicts for $\psi_k$, and what a correction may be made of.

    Parameters
    ----------
    mode
        The model, fitted with the penalty that ``k`` rows have.
    points
        Positions of the points.
    k
        Size of the training set.
    penalty
        $\lambda$.

    Returns
    -------
    FloatArray
        Shape ``(n_points, 8)``: the prediction; its first, second, fourth and fifth part; and
        $r^2 q$, $wh$ and $r^2 w h^2$ over $k$ with $q = x^\top C x$.
    """
    H, rows, n = mode.eigenvalues, mode.rows, len(mode.rows)
    inverse = 1 / (k * H + penalty)
    half = inverse * H
    h = (mode.Z**2) @ inverse
    leverage = mode.weight * h
    usual = float(leverage[rows].mean())
    growth = 1 / (1 - min(usual, _MOST))
    h2 = growth * (mode.Z**2) @ (inverse * half)

    Z, r, w, bend = mode.Z[rows], mode.residual[rows], mode.weight[rows], mode.bend[rows]
    damping = 1 + np.maximum(leverage[rows] - _USUAL * usual, 0.0)
    gradient = (r / damping)[:, None] * Z
    C = growth * k * inverse[:, None] * (gradient.T @ gradient / n) * inverse
    spread = Z @ C
    q = (spread * Z).sum(axis=1)
    cross = (spread * half * Z).sum(axis=1)
    curved = 0.5 * (bend * q) @ Z / n
    mean_t = k * inverse * ((w * r * h[rows] / damping) @ Z / n - curved)
    bias = H * mean_t + k * ((w * r * h2[rows] / damping**2) @ Z / n)
    bias += curved - k * ((bend * cross) @ Z / n)

    Z, r, w = mode.Z[points], mode.residual[points], mode.weight[points]
    h, h2, damping = h[points], h2[points], 1 + leverage[points]
    spread = Z @ C
    q = (spread * Z).sum(axis=1)
    corrects = growth * w * (spread * half * Z).sum(axis=1) / damping
    steps = -0.5 * r**2 * h2 / damping**2
    second = -0.5 * w**2 * q * h2 / damping**2
    pull = r * (Z @ (inverse * mode.gradient(rows))) / damping
    common = r * (Z @ (inverse * bias)) / damping
    return np.stack(
        [
            corrects + steps + second + pull + common,
            corrects,
            steps,
            pull,
            common,
            r**2 * q / damping**2 / k,
            w * h / damping / k,
            r**2 * w * h**2 / damping**3 / k,
        ],
        axis=1,
    )
