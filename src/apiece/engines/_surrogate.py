r"""Contributions as theory predicts them, from a cheap model of the table.

A generalised linear model (logistic or least squares, with scikit-learn's penalty) is fitted to all
rows of the pool, penalised as a training set of $k$ rows is. With the gradient $g_i = r_i x_i$ of
row $i$ (its residual times its features), the curvature $H$, and $H_k = kH + \lambda I$, theory
predicts for a model trained on $D$ and scored on rows $V$, to first order,

$$\Delta(z, D) \approx \frac{(\bar g_V - B_k\,\bar g_D)^\top H_k^{-1} g_z}{1 + w_z h_z},
  \qquad B_k = kH H_k^{-1}, \quad h_z = x_z^\top H_k^{-1} x_z.$$

Where $D$ and $V$ are drawn from the same rows, the mean of that prediction over draws is known
exactly. It is much of the noise of a contribution, and none of the signal: a *control variate*.
Subtracting it, less its known mean, leaves the mean of contributions as it is, for every model and
metric; the better the surrogate describes the model, the more noise goes.

The signal is of second order (`apiece.engines._expansion`). Estimators learn how far to trust it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.data import Dataset
from apiece.engines._expansion import N_TERMS, Mode, terms, times
from apiece.engines._models import Model
from apiece.records import Task

_PENALTY: Final = 1.0  # of models without a penalty of their own
_LEAST_PENALTY: Final = 1e-6
_STEP: Final = 0.5  # between the logarithms (to base 2) of sizes that models are fitted for
_MOST_FEATURES: Final = 1_000
_MOST_ENTRIES: Final = 200_000_000  # of rows, features and classes together
_MOST_REFITTED: Final = 10_000_000  # also at most; beyond it, one model serves all sizes
_MOST_JOINT: Final = 500  # parameters of a model whose classes are treated together
_TINY: Final = 1e-9
_PRODUCTS: Final = 5  # of rows and a square matrix, for what theory predicts
_MOST_WORK: Final = 1e11  # multiplications for the noise of rows: some ten seconds
_FEWEST_PARTS: Final = 4  # of the rows, for a jackknife
_SHARE: Final = 0.25  # of the rows: the size that this one model is penalised for


@dataclass(frozen=True, eq=False)
class Surrogate:
    r"""A generalised linear model of the pool, and what theory predicts from it.

    Parameters
    ----------
    dataset
        The pool, the candidates, and perhaps a validation set.
    penalty
        $\lambda$ on the squared coefficients of standardised features, next to the sum of losses.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> dataset, _ = load_demo()
    >>> len(Surrogate(dataset).terms(np.arange(3), k=100))
    3
    """

    dataset: Dataset
    penalty: float = _PENALTY

    @property
    def is_available(self) -> bool:
        """Whether the data is small enough for the surrogate to cost little."""
        return self.dataset.n_features <= _MOST_FEATURES and self._size <= _MOST_ENTRIES

    @cached_property
    def strata(self) -> IntArray:
        """The class of every row of the pool; 0 for quantities."""
        data = self.dataset
        return data.y if data.is_classification else np.zeros(data.n_pool, dtype=np.int64)

    @cached_property
    def members(self) -> list[IntArray]:
        """The rows of each class."""
        return [np.flatnonzero(self.strata == code) for code in range(self.strata.max() + 1)]

    @cached_property
    def validation_rows(self) -> IntArray:
        """Where the validation rows are in the arrays of a mode: after all points."""
        return self.dataset.n_points + np.arange(self.dataset.n_validation)

    @cached_property
    def _size(self) -> int:
        """Entries of the design, over all outputs."""
        data = self.dataset
        n_outputs = data.n_classes if data.n_classes > 2 else 1
        return int(data.n_points * data.n_features * n_outputs)

    @cached_property
    def _is_joint(self) -> bool:
        """Whether classes are few enough to be treated together."""
        data = self.dataset
        n_parameters = data.n_classes * (data.n_features + 1)
        entries = data.n_points * data.n_classes * max(n_parameters, data.n_classes**2)
        return n_parameters <= _MOST_JOINT and entries <= _MOST_REFITTED

    @cached_property
    def _work(self) -> float:
        """Multiplications for what theory predicts at one size."""
        data = self.dataset
        n_together = data.n_classes if data.n_classes > 2 and self._is_joint else 1
        return float(_PRODUCTS * self._size * n_together * (data.n_features + 1))

    def modes(self, k: int) -> list[Mode]:
        """Return the model for training sets of about ``k`` rows: all outputs, or one mode each."""
        n = self.dataset.n_pool
        near = _SHARE * n
        if self._size <= _MOST_REFITTED:
            near = 2 ** (_STEP * round(np.log2(max(k, 1)) / _STEP))
        if near not in self._fitted:
            self._fitted[near] = self._fit(self.penalty * n / near)
        return self._fitted[near]

    @cached_property
    def _fitted(self) -> dict[float, list[Mode]]:
        return {}

    @cached_property
    def _design(self) -> tuple[FloatArray, AnyArray]:
        """Return standardised features with a constant, and targets, of points and validation."""
        data = self.dataset
        X = np.asarray(data.features(np.arange(data.n_points)), dtype=np.float64)
        targets = data.targets(np.arange(data.n_points))
        if data.n_validation:
            X, targets = np.concatenate([X, data.X_val]), np.concatenate([targets, data.y_val])
        pool = X[: data.n_pool]
        spread = pool.std(axis=0)
        X = (X - pool.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        if not data.is_classification:
            targets = targets / (float(np.std(targets[: data.n_pool])) or 1.0)
        return np.column_stack([X, np.ones(len(X))]), targets

    def _fit(self, penalty: float) -> list[Mode]:
        """Fit the model to the pool with a penalty on the sum of the losses."""
        return self._modes(*self._design, self.dataset.n_pool, penalty)

    @cached_property
    def modes_of_all_rows(self) -> list[Mode]:
        """The model of the pool and the validation rows together: none of them is special."""
        design, targets = self._design
        rows = np.concatenate([np.arange(self.dataset.n_pool), self.validation_rows])
        return self._modes(design[rows], targets[rows], len(rows), self.penalty / _SHARE)

    def _modes(self, design: FloatArray, targets: AnyArray, n: int, penalty: float) -> list[Mode]:
        """Fit the model to the first ``n`` rows of a design."""
        if not self.dataset.is_classification:
            return [_least_squares(design, targets, n, penalty)]
        proba = _proba(design[:, :-1], targets, n, penalty)
        if self.dataset.n_classes == 2:
            return [_binary(design, targets == 1, n, proba[:, 1])]
        if self._is_joint:
            return [_softmax(design, targets, n, proba)]
        return [_binary(design, targets == code, n, p) for code, p in enumerate(proba.T)]

    def control(self, task: Task) -> FloatArray:
        """Predict the first-order part of the contributions of a task, less its mean over draws.

        A valued row's block is never drawn from, so that the mean is over the other blocks.

        Parameters
        ----------
        task
            A task with scoring rows of its own.

        Returns
        -------
        FloatArray
            Shape ``(n_points_of_the_task,)``, up to a factor that estimators fit.
        """
        k, points = task.cardinality, task.points
        scoring, block_of = task.scoring, task.block_of
        if scoring is None or block_of is None:
            raise ValueError("the task has no scoring rows: expected one of a rotating plan")
        n_pool, n_strata = len(self.strata), int(self.strata.max()) + 1
        block = np.where(points < n_pool, block_of[np.minimum(points, n_pool - 1)], -1)
        shares = [
            np.bincount(self.strata[rows], minlength=n_strata) / len(rows)
            for rows in (scoring, task.subset)
        ]
        predicted = np.zeros(len(points))
        modes = self.modes(k)
        for mode, sums in zip(modes, self._sums(modes, block_of), strict=True):
            inverse = 1 / (k * mode.eigenvalues + self.penalty)
            shrink = k * mode.eigenvalues * inverse
            drawn = mode.gradient(scoring) - shrink * mode.gradient(task.subset)
            moved = mode.moved(points, inverse)
            for own in np.unique(block):
                means = sums.without(int(own))
                away = drawn - (shares[0] @ means - shrink * (shares[1] @ means))
                mine = block == own
                predicted[mine] += moved[mine] @ away
        return predicted

    def _sums(self, modes: list[Mode], block_of: IntArray) -> list[_BlockSums]:
        """Sum the gradients of each mode by block and class, once for all tasks."""
        if self._blocks.get("block_of") is not block_of:
            self._blocks.clear()
            self._blocks["block_of"] = block_of
        if id(modes) not in self._blocks:
            self._blocks[id(modes)] = [_BlockSums.of(mode, self.strata, block_of) for mode in modes]
        found: list[_BlockSums] = self._blocks[id(modes)]
        return found

    @cached_property
    def _blocks(self) -> dict[Any, Any]:
        return {}

    def terms(self, points: IntArray, k: int) -> FloatArray:
        """Return what theory predicts and corrections to it, summed over outputs.

        See `apiece.engines._expansion`; shape ``(n_points, 8)``.
        """
        found = np.zeros((len(points), N_TERMS))
        for mode in self.modes(k):
            found += terms(mode, points, k, self.penalty)
        return found

    def describes(self, k: int) -> bool:
        r"""Return whether theory can hold: fewer effective parameters than the ``k`` rows.

        These are $\sum_j k\eta_j / (k\eta_j + \lambda)$ over all outputs, with the eigenvalues
        $\eta_j$ of the curvature.
        """
        curvatures = [k * mode.eigenvalues for mode in self.modes(k)]
        return bool(sum((H / (H + self.penalty)).sum() for H in curvatures) < k)

    def row_noise(
        self, points: IntArray, sizes: Sequence[int], block_of: IntArray
    ) -> FloatArray | None:
        r"""Return the covariance that the choice of rows gives to what theory predicts.

        The jackknife over $G$ blocks of rows: with the prediction $T_g$ without block $g$,
        $\frac{G - 1}{G} \sum_g (T_g - \bar T)(T_g - \bar T)^\top$.

        Parameters
        ----------
        points
            Positions of the points.
        sizes
            Training-set sizes.
        block_of
            Block of every row of the pool, shape ``(n_pool,)``.

        Returns
        -------
        FloatArray | None
            Shape ``(n_points, n_sizes, n_sizes)``; None where it would take too long.
        """
        n_parts = min(int(block_of.max()) + 1, int(_MOST_WORK // (len(sizes) * self._work)))
        if n_parts < _FEWEST_PARTS:
            return None
        block_of = block_of % n_parts
        blocks = np.unique(block_of)
        found = np.zeros((len(blocks), len(points), len(sizes)))
        for j, k in enumerate(sizes):
            for mode in self.modes(k):
                for g, block in enumerate(blocks):
                    left = _without(mode, np.flatnonzero(block_of != block), self.penalty / k)
                    found[g, :, j] += terms(left, points, k, self.penalty)[:, 0]
        found -= found.mean(axis=0)
        share = (len(blocks) - 1) / len(blocks)
        return np.asarray(share * np.einsum("gpj,gpl->pjl", found, found))


def surrogate_of(dataset: Dataset, model: Model | None = None) -> Surrogate:
    """Return the surrogate of a dataset, penalised as a linear model is, fitted when first used.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> dataset, _ = load_demo()
    >>> surrogate_of(dataset) is surrogate_of(dataset)
    True
    """
    return _surrogate(dataset, _PENALTY if model is None else _penalty_of(model.estimator))


@lru_cache(maxsize=4)
def _surrogate(dataset: Dataset, penalty: float) -> Surrogate:
    return Surrogate(dataset, penalty)


def is_described(model: Model) -> bool:
    """Return whether a model is what the surrogate is: logistic, ridge or linear regression.

    >>> from apiece.data import load_demo
    >>> from apiece.engines import choose_engine
    >>> dataset, _ = load_demo()
    >>> [is_described(choose_engine(dataset, model=name)[0].model) for name in ("logistic", "knn")]
    [True, False]
    """
    from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

    return isinstance(_last_step(model.estimator), (LinearRegression, LogisticRegression, Ridge))


def _last_step(estimator: Any) -> Any:
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


def _penalty_of(estimator: Any) -> float:
    """Return the penalty of scikit-learn's linear models, the last step of a pipeline included."""
    from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

    last = _last_step(estimator)
    found = _PENALTY
    if isinstance(last, LinearRegression):
        found = 0.0
    elif isinstance(last, LogisticRegression):
        found = 0.0 if last.penalty is None else 1 / last.C
    elif isinstance(last, Ridge):
        found = float(np.mean(last.alpha))
    return max(found, _LEAST_PENALTY)


class _BlockSums(NamedTuple):
    """Sums of gradients and numbers of rows, by block and class."""

    gradient: FloatArray  # shape (n_blocks, n_strata, p)
    rows: FloatArray  # how many, shape (n_blocks, n_strata)

    @classmethod
    def of(cls, mode: Mode, strata: IntArray, block_of: IntArray) -> _BlockSums:
        shape = (int(block_of.max()) + 1, int(strata.max()) + 1)
        sums = np.zeros((*shape, len(mode.eigenvalues)))
        count = np.zeros(shape)
        for block in range(shape[0]):
            for code in range(shape[1]):
                rows = np.flatnonzero((block_of == block) & (strata == code))
                sums[block, code] = mode.gradients(rows).sum(axis=0)
                count[block, code] = len(rows)
        return cls(sums, count)

    def without(self, block: int) -> FloatArray:
        """Return the mean gradient of each class outside a block, -1 for none."""
        total, rows = self.gradient.sum(axis=0), self.rows.sum(axis=0)
        if block >= 0:
            total, rows = total - self.gradient[block], rows - self.rows[block]
        return np.asarray(total / np.maximum(rows, 1.0)[:, None])


def _mode(
    features: FloatArray, rows: IntArray, derivatives: tuple[FloatArray, ...], n_free: int = 1
) -> Mode:
    """Bring outputs of the surrogate into the basis where their curvature is diagonal."""
    residual, weight, bend = derivatives
    n, c, q = *residual.shape, features.shape[1]
    values, vectors = np.linalg.eigh(_curvature(features[rows], weight[rows]))
    by_output = vectors.reshape(c, q, -1).swapaxes(0, 1).reshape(q, -1)
    Z = (features @ by_output).reshape(n, c, -1)
    values = np.maximum(values, 0.0)
    return Mode(rows, values, Z, residual, weight, bend, features, vectors, n_free)


def _curvature(features: FloatArray, weight: FloatArray) -> FloatArray:
    r"""Return the mean of $w \otimes x x^\top$ over rows, shape ``(c q, c q)``."""
    n, c, q = *weight.shape[:2], features.shape[1]
    blocks = np.empty((c, q, c, q))
    for a in range(c):
        for b in range(a + 1):
            block = (features * weight[:, a, b, None]).T @ features / n
            blocks[a, :, b], blocks[b, :, a] = block, block.T
    return blocks.reshape(c * q, c * q)


def _without(mode: Mode, rows: IntArray, ridge: float) -> Mode:
    """Return the model without some of its rows: one step of Newton's method from the optimum.

    Parameters
    ----------
    mode
        The model of all rows.
    rows
        Those that are left.
    ridge
        The penalty for each row.
    """
    features, weight, bend = mode.features, mode.weight, mode.bend
    pull = mode.vectors @ (mode.gradient(rows) - mode.gradient(mode.rows))
    curvature = _curvature(features[rows], weight[rows]) + (ridge + _TINY) * np.eye(len(pull))
    step = np.linalg.solve(curvature, pull).reshape(weight.shape[1], -1)
    move = features @ step.T
    turn = (bend @ move[:, None, :, None])[..., 0]
    residual = mode.residual - times(weight, move) + 0.5 * times(turn, move)
    return _mode(features, rows, (residual, _not_negative(weight - turn), bend), mode.n_free)


def _not_negative(matrices: FloatArray) -> FloatArray:
    """Return symmetric matrices with their negative eigenvalues set to zero."""
    if matrices.shape[1] == 1:
        return np.maximum(matrices, 0.0)
    values, vectors = np.linalg.eigh(matrices)
    return np.asarray((vectors * np.maximum(values, 0.0)[:, None]) @ vectors.swapaxes(1, 2))


def _least_squares(design: FloatArray, targets: AnyArray, n: int, penalty: float) -> Mode:
    pool, ones = design[:n], np.ones(len(design))
    ridge = np.append(np.full(design.shape[1] - 1, penalty), 0.0) + 1e-9 * n
    theta = np.linalg.solve(pool.T @ pool + np.diag(ridge), pool.T @ targets[:n])
    return _one_output(design, n, design @ theta - targets, ones, 0 * ones)


def _one_output(design: FloatArray, n: int, *derivatives: FloatArray) -> Mode:
    """Return the mode of one output from its first, second and third derivative by row."""
    shaped = tuple(d.reshape(-1, *[1] * order) for order, d in enumerate(derivatives, start=1))
    return _mode(design, np.arange(n), shaped)


def _proba(X: FloatArray, codes: AnyArray, n: int, penalty: float) -> FloatArray:
    """Return probabilities of all rows by logistic regression on the first ``n`` of them."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1 / penalty, solver="lbfgs", max_iter=2_000, tol=1e-6)
    return np.asarray(model.fit(X[:n], codes[:n]).predict_proba(X))


def _binary(design: FloatArray, is_class: AnyArray, n: int, p: FloatArray) -> Mode:
    """Return the mode of one class against all others."""
    return _one_output(design, n, p - is_class, p * (1 - p), p * (1 - p) * (1 - 2 * p))


def _softmax(design: FloatArray, codes: AnyArray, n: int, p: FloatArray) -> Mode:
    r"""Return the mode of all classes: $w = \mathrm{diag}(p) - p p^\top$, and its derivative."""
    one = np.eye(p.shape[1])
    away = one - p[:, None]  # (n, class, c)
    weight = (p[:, :, None] * away).swapaxes(1, 2) @ away
    bend = np.einsum("na,nac,nad,nae->ncde", p, away, away, away, optimize=True)
    return _mode(design, np.arange(n), (p - one[codes], weight, bend), len(one) - 1)
