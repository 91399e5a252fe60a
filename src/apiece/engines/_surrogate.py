r"""Predictions of contributions by first- and second-order theory, from one cheap model.

A generalised linear model (logistic or least squares, with scikit-learn's penalty) is fitted once
to all rows of the pool. With the gradient $g_i = r_i x_i$ of row $i$ (its residual times its
features), the curvature $H$, and $H_k = kH + \lambda I$, theory predicts for a model trained on
$D$ and scored on rows $V$, to first order,

$$\Delta(z, D) \approx \frac{(\bar g_V - B_k\,\bar g_D)^\top H_k^{-1} g_z}{1 + w_z h_z},
  \qquad B_k = kH H_k^{-1}, \quad h_z = x_z^\top H_k^{-1} x_z.$$

If $D$ and $V$ are drawn from the same rows, the mean of this prediction over draws is known
exactly. The prediction holds nearly all of the noise of a contribution and none of the signal: it
is a *control variate*. Subtracting it, less its known mean, does not change the mean of
contributions, for any model and metric. The better the surrogate describes the model, the more
noise is removed.

The signal is of second order. By theory it is a combination of a few quantities of each point, the
*terms*, whose weights estimators learn from the contributions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.data import Dataset
from apiece.records import Task

_PENALTY: Final = 1.0
_SHARE: Final = 0.25  # the surrogate is penalised as a training set of this share of the rows is
_MOST_FEATURES: Final = 1_000
_MOST_ENTRIES: Final = 200_000_000  # of rows, features and classes together
N_TERMS: Final = 6


class _Mode(NamedTuple):
    """One output of the surrogate (a class, or the target): its curvature and its rows."""

    eigenvalues: FloatArray  # of the mean curvature H, shape (p,)
    Z: FloatArray  # rows in the basis of eigenvectors, pool and candidates, shape (n_points, p)
    residual: FloatArray  # shape (n_points,)
    weight: FloatArray  # curvature of the loss, shape (n_points,)
    pull: FloatArray  # what the penalty adds to the mean gradient, shape (p,)

    def gradient(self, rows: IntArray) -> FloatArray:
        """Return the mean gradient of some rows, shape ``(p,)``."""
        return np.asarray(self.residual[rows] @ self.Z[rows] / len(rows))


@dataclass(frozen=True, eq=False)
class Surrogate:
    """A generalised linear model of the pool, and the contributions that theory predicts from it.

    Parameters
    ----------
    dataset
        The pool and the candidates.
    """

    dataset: Dataset

    @property
    def is_available(self) -> bool:
        """Whether the data is small enough for the surrogate to cost little."""
        data = self.dataset
        n_outputs = data.n_classes if data.n_classes > 2 else 1
        size = data.n_points * data.n_features * n_outputs
        return data.n_features <= _MOST_FEATURES and size <= _MOST_ENTRIES

    @cached_property
    def _strata(self) -> IntArray:
        data = self.dataset
        return data.y if data.is_classification else np.zeros(data.n_pool, dtype=np.int64)

    @cached_property
    def _modes(self) -> list[_Mode]:
        data = self.dataset
        X = np.asarray(data.features(np.arange(data.n_points)), dtype=np.float64)
        pool = X[: data.n_pool]
        spread = pool.std(axis=0)
        X = (X - pool.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        design = np.column_stack([X, np.ones(len(X))])
        targets = data.targets(np.arange(data.n_points))
        if not data.is_classification:
            scale = float(np.std(targets[: data.n_pool])) or 1.0
            return [_mode(design, data.n_pool, *_least_squares(design, targets / scale, data))]
        return [_mode(design, data.n_pool, *parts) for parts in _logistic(design, targets, data)]

    def control(self, task: Task) -> FloatArray:
        """Predict the first-order part of the contributions of a task, less its mean over draws.

        A valued row's block is never drawn from, so that the mean is over the other blocks.

        Parameters
        ----------
        task
            A task of a rotating plan, with scoring rows.

        Returns
        -------
        FloatArray
            Shape ``(n_points_of_the_task,)``, up to a factor that estimators fit.
        """
        k, points = task.cardinality, task.points
        scoring, block_of = task.scoring, task.block_of
        if scoring is None or block_of is None:
            raise ValueError("the task has no scoring rows: expected one of a rotating plan")
        n_pool, n_strata = len(self._strata), int(self._strata.max()) + 1
        block = np.where(points < n_pool, block_of[np.minimum(points, n_pool - 1)], -1)
        shares = [
            np.bincount(self._strata[rows], minlength=n_strata) / len(rows)
            for rows in (scoring, task.subset)
        ]
        predicted = np.zeros(len(points))
        for mode, sums in zip(self._modes, self._sums(block_of), strict=True):
            inverse = 1 / (k * mode.eigenvalues + _PENALTY)
            shrink = k * mode.eigenvalues * inverse
            drawn = mode.gradient(scoring) - shrink * mode.gradient(task.subset)
            Z, r = mode.Z[points], mode.residual[points]
            damping = 1 + mode.weight[points] * ((Z**2) @ inverse)
            for left_out in np.unique(block):
                means = sums.without(int(left_out))
                away = drawn - (shares[0] @ means - shrink * (shares[1] @ means))
                mine = block == left_out
                predicted[mine] += r[mine] * (Z[mine] @ (inverse * away)) / damping[mine]
        return predicted

    def _sums(self, block_of: IntArray) -> list[_BlockSums]:
        """Sum the gradients of each mode by block and class, once for all tasks."""
        if self._cache.get("block_of") is not block_of:
            self._cache["block_of"] = block_of
            self._cache["sums"] = [
                _BlockSums.of(mode, self._strata, block_of) for mode in self._modes
            ]
        sums: list[_BlockSums] = self._cache["sums"]
        return sums

    @cached_property
    def _cache(self) -> dict[str, Any]:
        return {}

    def terms(self, points: IntArray, k: int) -> FloatArray:
        r"""Return the terms of which $\psi_k$ is a combination, shape ``(n_points, 6)``.

        With $q_z = k\,x_z^\top H_k^{-1} S H_k^{-1} x_z$ and the mean outer product $S$ of
        gradients: $w_z q_z$ (errors of $f_D$ that $z$ corrects), $r_z^2 h_z$ (the step that $z$
        takes), $r_z^2 q_z$, $w_z h_z$, the pull of the penalty along $g_z$, and
        $r_z^2 w_z h_z^2$; each damped by powers of $1 + w_z h_z$ and divided by $k$.
        """
        total = np.zeros((len(points), N_TERMS))
        n_pool = len(self._strata)
        for mode in self._modes:
            inverse = 1 / (k * mode.eigenvalues + _PENALTY)
            Z, r, w = mode.Z[points], mode.residual[points], mode.weight[points]
            gradient = mode.residual[:n_pool, None] * mode.Z[:n_pool]
            S = gradient.T @ gradient / n_pool
            h = (Z**2) @ inverse
            q = k * np.einsum("ia,ab,ib->i", Z * inverse, S, Z * inverse)
            damping = 1 + w * h
            pull = r * (Z @ (inverse * mode.pull))
            total += np.stack(
                [
                    w * q / damping,
                    r**2 * h / damping**2,
                    r**2 * q / damping**2,
                    w * h / damping,
                    pull / damping,
                    r**2 * w * h**2 / damping**3,
                ],
                axis=1,
            )
        return total / k


@lru_cache(maxsize=4)
def surrogate_of(dataset: Dataset) -> Surrogate:
    """Return the surrogate of a dataset, fitted when first used."""
    return Surrogate(dataset)


class _BlockSums(NamedTuple):
    """Sums of gradients and numbers of rows, by block and class."""

    gradient: FloatArray  # shape (n_blocks, n_strata, p)
    rows: FloatArray  # how many, shape (n_blocks, n_strata)

    @classmethod
    def of(cls, mode: _Mode, strata: IntArray, block_of: IntArray) -> _BlockSums:
        shape = (int(block_of.max()) + 1, int(strata.max()) + 1)
        sums = np.zeros((*shape, mode.Z.shape[1]))
        count = np.zeros(shape)
        for block in range(shape[0]):
            for code in range(shape[1]):
                rows = np.flatnonzero((block_of == block) & (strata == code))
                sums[block, code] = mode.residual[rows] @ mode.Z[rows]
                count[block, code] = len(rows)
        return cls(sums, count)

    def without(self, block: int) -> FloatArray:
        """Return the mean gradient of each class outside a block, -1 for none."""
        total, rows = self.gradient.sum(axis=0), self.rows.sum(axis=0)
        if block >= 0:
            total, rows = total - self.gradient[block], rows - self.rows[block]
        return np.asarray(total / np.maximum(rows, 1.0)[:, None])


def _mode(
    design: FloatArray, n_pool: int, residual: FloatArray, weight: FloatArray, theta: FloatArray
) -> _Mode:
    """Turn one output of the surrogate into the basis where its curvature is diagonal."""
    pool = design[:n_pool]
    values, vectors = np.linalg.eigh((pool * weight[:n_pool, None]).T @ pool / n_pool)
    theta = np.append(theta[:-1], 0.0)  # the intercept is not penalised
    return _Mode(
        np.maximum(values, 0.0), design @ vectors, residual, weight, _PENALTY * vectors.T @ theta
    )


def _least_squares(
    design: FloatArray, targets: FloatArray, data: Dataset
) -> tuple[FloatArray, FloatArray, FloatArray]:
    pool, n = design[: data.n_pool], data.n_pool
    penalty = np.append(np.full(data.n_features, _PENALTY / _SHARE), 0.0)
    gram = pool.T @ pool + np.diag(penalty + 1e-9 * n)
    theta: FloatArray = np.asarray(np.linalg.solve(gram, pool.T @ targets[:n]), dtype=np.float64)
    return design @ theta - targets, np.ones(len(design)), theta


def _logistic(
    design: FloatArray, codes: AnyArray, data: Dataset
) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
    """Return residuals, weights and parameters for the second class, or for each of several."""
    from sklearn.linear_model import LogisticRegression

    n = data.n_pool
    model = LogisticRegression(C=_SHARE / _PENALTY, solver="lbfgs", max_iter=2_000, tol=1e-6)
    model.fit(design[:n, :-1], codes[:n])
    proba = model.predict_proba(design[:, :-1])
    outputs = [1] if data.n_classes == 2 else range(data.n_classes)
    coefficients = np.column_stack([model.coef_, model.intercept_])
    return [
        (
            proba[:, code] - (codes == code),
            proba[:, code] * (1 - proba[:, code]),
            coefficients[0 if data.n_classes == 2 else code],
        )
        for code in outputs
    ]
