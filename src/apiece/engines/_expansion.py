r"""The expected contribution of a point by second-order theory.

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

with $h^{(2)} = x^\top H_k^{-1} H H_k^{-1} x$. With several outputs $r_z$ is a vector, $x_z$ and
$w_z$ are matrices, and products of numbers become traces.

Two changes make it hold where training sets are small or rows lie far from all others. In means
over rows, $1 + wh$ becomes $1 + (wh - 2m)_+$ with the mean leverage $m = \mathrm{E}[wh]$ of one
output: a row that joins bounds its effect by itself, and rows of usual leverage are already part of
$H_k$. And $H_D^{-1}$ is larger than $H_k^{-1}$ on average, for normal features and least squares by
$1/(1 - m)$: $C$, $h^{(2)}$ and the first term are larger by that.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from apiece._base.typing import FloatArray, IntArray

N_TERMS: Final = 8
_USUAL: Final = 2.0  # leverage, in units of the mean, up to which rows are not damped
_MOST: Final = 0.3  # mean leverage beyond which the inverse curvature is taken to grow no more


class Mode(NamedTuple):
    """The ``c`` outputs of a generalised linear model, or one of them, with ``p`` parameters.

    A row acts on the parameters by a matrix, one line per output, in the basis of eigenvectors of
    the curvature: its ``q`` features with these vectors, ``q c = p``.
    """

    rows: IntArray  # positions of the rows that stand for the population
    eigenvalues: FloatArray  # of the mean curvature H, shape (p,)
    Z: FloatArray  # of each row, shape (n_points, c, p)
    residual: FloatArray  # first derivative of each row's loss, shape (n_points, c)
    weight: FloatArray  # second derivative, shape (n_points, c, c)
    bend: FloatArray  # third derivative, shape (n_points, c, c, c)
    features: FloatArray  # of each row, shape (n_points, q)
    vectors: FloatArray  # of the curvature, one column each, shape (p, p)
    n_free: int = 1  # outputs that can move by themselves: one less than classes

    def gradients(self, rows: IntArray) -> FloatArray:
        """Return the gradient of each of some rows, shape ``(n_rows, p)``."""
        return times(self.Z[rows].swapaxes(1, 2), self.residual[rows])

    def gradient(self, rows: IntArray) -> FloatArray:
        """Return the mean gradient of some rows, shape ``(p,)``."""
        return mean_of(self.Z[rows], self.residual[rows])

    def squares(self, rows: IntArray, middle: FloatArray) -> FloatArray:
        r"""Return $Z M Z^\top$ of some rows, shape ``(n, c, c)``.

        Every output has the features of the row, so that this is a form in them for each pair of
        outputs. That takes ``c`` times less time than products with all parameters.

        Parameters
        ----------
        rows
            Positions of the rows.
        middle
            $M$, shape ``(p, p)``.
        """
        x, c = self.features[rows], self.Z.shape[1]
        n, q = x.shape
        forms = (self.vectors @ middle @ self.vectors.T).reshape(c, q, c, q)
        left = (x @ forms.transpose(1, 0, 2, 3).reshape(q, -1)).reshape(n, c * c, q)
        return np.asarray((left @ x[:, :, None]).reshape(n, c, c))

    def damping(self, points: IntArray, inverse: FloatArray) -> FloatArray:
        r"""Return $(I + W_z h_z)^{-1}$ for some points, shape ``(n, c, c)``.

        Parameters
        ----------
        points
            Positions of the points.
        inverse
            The diagonal of $H_k^{-1}$, shape ``(p,)``.
        """
        leverage = self.weight[points] @ squares(self.Z[points], inverse)
        return np.asarray(np.linalg.inv(np.eye(leverage.shape[1]) + leverage))

    def moved(self, points: IntArray, inverse: FloatArray) -> FloatArray:
        """Return $H_k^{-1} g_z$, damped: how far each point moves the parameters, ``(n, p)``."""
        step = times(self.damping(points, inverse), self.residual[points])
        return times(self.Z[points].swapaxes(1, 2), step) * inverse


def times(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the product of each matrix ``(n, a, b)`` and vector ``(n, b)``, shape ``(n, a)``."""
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])


def squares(Z: FloatArray, diagonal: FloatArray) -> FloatArray:
    r"""Return $Z M Z^\top$ of each row for a diagonal $M$, shape ``(n, c, c)``."""
    return np.asarray((Z * diagonal) @ Z.swapaxes(1, 2))


def mean_of(Z: FloatArray, along: FloatArray) -> FloatArray:
    r"""Return the mean of $Z^\top v$ over rows with a vector ``(n, c)`` each, shape ``(p,)``."""
    return np.asarray(along.ravel() @ Z.reshape(-1, Z.shape[2]) / len(Z))


def _trace(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the trace of the product of two matrices for each row."""
    return np.asarray((left * right.swapaxes(1, 2)).sum(axis=(1, 2)))


def _bent(bend: FloatArray, along: FloatArray) -> FloatArray:
    """Contract third derivatives with matrices ``(n, c, c)``, shape ``(n, c)``."""
    n, c = bend.shape[:2]
    return times(bend.reshape(n, c, c * c), along.reshape(n, c * c))


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

    Z, r, w, bend = mode.Z[rows], mode.residual[rows], mode.weight[rows], mode.bend[rows]
    h = squares(Z, inverse)
    leverage = _trace(w, h) / mode.n_free
    usual = float(leverage.mean())
    growth = 1 / (1 - min(usual, _MOST))
    damping = 1 + np.maximum(leverage - _USUAL * usual, 0.0)[:, None]
    gradient = times(Z.swapaxes(1, 2), r / damping)
    C = growth * k * inverse[:, None] * (gradient.T @ gradient / n) * inverse
    cross = C * half
    cross = (cross + cross.T) / 2
    h2 = growth * squares(Z, inverse * half)
    curved = 0.5 * mean_of(Z, _bent(bend, mode.squares(rows, C)))
    mean_t = k * inverse * (mean_of(Z, times(w, times(h, r)) / damping) - curved)
    bias = H * mean_t + k * mean_of(Z, times(w, times(h2, r)) / damping**2)
    bias += curved - k * mean_of(Z, _bent(bend, mode.squares(rows, cross)))

    Z, w = mode.Z[points], mode.weight[points]
    h, h2 = squares(Z, inverse), growth * squares(Z, inverse * half)
    damped = mode.damping(points, inverse)
    w, r = damped @ w, times(damped, mode.residual[points])
    q = mode.squares(points, C)
    corrects = growth * _trace(w, mode.squares(points, cross))
    steps = -0.5 * (r * times(h2, r)).sum(axis=1)
    second = -0.5 * _trace(w @ q @ w.swapaxes(1, 2), h2)
    pull = (r * (Z @ (inverse * mode.gradient(rows)))).sum(axis=1)
    common = (r * (Z @ (inverse * bias))).sum(axis=1)
    hr = times(h, r)
    return np.stack(
        [
            corrects + steps + second + pull + common,
            corrects,
            steps,
            pull,
            common,
            (r * times(q, r)).sum(axis=1) / k,
            _trace(w, h) / k,
            (hr * times(w, hr)).sum(axis=1) / k,
        ],
        axis=1,
    )
