r"""The linear engine: least squares and ridge, one rank-one update for each point.

With rows $\tilde x = (x - m, 1)$ around the mean $m$ of $D$, the penalised normal matrix of $D$ is
$H = \sum \tilde x \tilde x^\top + \alpha \operatorname{diag}(1, \ldots, 1, 0)$. A basis $T$ with
$T^\top H T = I$ gives every point coordinates $w = T^\top \tilde x$, and Sherman and Morrison's
formula gives the fit with the point $z$ added,

$$\theta_z = \theta + T w_z\, s_z, \qquad s_z = \frac{y_z - \tilde x_z^\top \theta}{1 + |w_z|^2}.$$

The intercept is a column like the others, so the shift of the mean is exact. For the squared
error, with $n$ validation rows $\tilde V = Q R$ and their residuals $e$,

$$\Delta(z, D) = s_z\, \bigl(2\, e^\top \tilde V T w_z - s_z\, |R\, T w_z|^2\bigr) / n,$$

in which no large numbers cancel; other metrics take the predictions of every $\theta_z$.

With few points or collinear features and a small penalty, $H$ is ill-conditioned or singular. Then
the part $u$ of a point outside the row space of $D$ is kept apart, where $H u = \alpha u$. Without
a penalty it is interpolated, $\theta_z = \theta + u\,(y_z - \tilde x_z^\top \theta) / |u|^2$. This
is Greville's update of the pseudo-inverse, so the solution is the shortest of all, as
``LinearRegression`` has it. ``LinearRegression`` also drops directions below a tolerance. If a
direction is neither clearly kept nor clearly dropped, or if rounding would matter, the points
concerned are refitted, and counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack

from apiece._base.batched import dot
from apiece._base.typing import BoolArray, FloatArray, IntArray
from apiece.data import Dataset
from apiece.engines._base import Engine
from apiece.engines._models import Model
from apiece.engines._refit import RefitEngine
from apiece.losses import Loss
from apiece.records import Outcome, Task

_EPS: Final = float(np.finfo(np.float64).eps)
_MOST_FEATURES: Final = 2_048  # a few square matrices of this size stay below 200 MB
_BLOCK: Final = 1 << 17  # numbers in the largest array of a block of points: 1 MB, for the cache
_CONDITION: Final = 1e3  # up to which a Cholesky factor is accurate to 1e-10
_CUTOFF: Final = 1e-6  # relative singular value up to which LinearRegression may drop a direction
_TINY: Final = 1e-250  # squares below have lost digits
_ROUNDING: Final = 64 * _EPS  # a part of a point outside the row space below this is rounding


class LinearEngine(Engine):
    """Least squares and ridge: contributions of all points from one factorisation.

    Examples
    --------
    >>> from apiece.engines import choose_engine
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> data = Dataset.from_arrays(X, X[:, 0], kind="regression", validation=0.2)
    >>> engine, _ = choose_engine(data, model="ridge")
    >>> engine.run(Task(0, np.arange(20), np.arange(20, 23), seed=0)).delta.shape
    (3,)
    """

    name: ClassVar[str] = "linear"
    is_quick: ClassVar[bool] = True
    made_for: ClassVar[tuple[str, ...]] = ("LinearRegression", "Ridge")

    @classmethod
    def supports(cls, dataset: Dataset, model: Model, metric: Loss) -> str | None:
        """Return None if the engine computes what refitting the model would, else why not.

        Iterative solvers of ``Ridge`` are taken as run to convergence.
        """
        from sklearn.linear_model import LinearRegression, Ridge

        estimator = model.estimator
        if type(estimator) not in (LinearRegression, Ridge):
            return f"{model.name} is not least squares or ridge"
        if dataset.kind != "regression" or metric.needs != "value":
            return "the data is not a regression"
        if dataset.n_features > _MOST_FEATURES:
            return f"{dataset.n_features:,} features are more than {_MOST_FEATURES:,}"
        if estimator.positive:
            return "positive=True"
        if type(estimator) is LinearRegression:
            return None
        if not isinstance(estimator.alpha, int | float | np.number):
            return "alpha is not a single number"
        if not 0 <= estimator.alpha < math.inf:
            return f"alpha is {estimator.alpha}"
        if estimator.solver == "lbfgs":
            return "solver='lbfgs' needs positive=True"
        if estimator.solver not in ("auto", "svd", "cholesky") and estimator.max_iter is not None:
            return f"max_iter={estimator.max_iter} may stop solver={estimator.solver!r} early"
        return None

    @cached_property
    def _validation(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        r"""Validation rows $\tilde V$ around their mean, their factor $R$, and the mean."""
        X = self.dataset.X_val
        has_intercept = bool(self.model.estimator.fit_intercept)
        centre = X.mean(axis=0) if has_intercept else np.zeros(X.shape[1])
        rows = _augment(X, centre, X.shape[1] + has_intercept)
        return rows, np.asarray(np.linalg.qr(rows, mode="r")), centre

    @np.errstate(all="ignore")
    def run(self, task: Task) -> Outcome:
        """Compute the contribution of every point of the task.

        Raises
        ------
        EngineError
            As the refit engine does, for points that are left to it.
        """
        data = self.dataset
        fit = _fit(data.X.take(task.subset, axis=0), data.y[task.subset], self.model.estimator)
        if fit is None:
            return self.refit(task)
        rows, root, centre = self._validation
        theta, basis = fit.seen_from(centre)
        target = data.y_val - fit.y_centre
        residual = target - rows @ theta
        pair = self._pair(residual)
        loss = self.loss_or_nan(*pair)
        if not math.isfinite(loss):
            return self.refit(task)

        half = 0.5 * (self.metric.curvature or 0.0)
        if half:
            slope = -(self.metric.slope(*pair)[:, 0] @ rows @ basis) / len(rows)
            spread = (root @ basis).T * math.sqrt(half / len(rows))
        delta = np.empty(len(task.points))
        is_safe = np.empty(len(task.points), dtype=bool)
        for block in _blocks(len(delta), _BLOCK // (len(basis) if half else len(rows)) + 1):
            X = data.points_X.take(task.points[block], axis=0)
            w, s, is_safe[block] = fit.steps(X, data.targets(task.points[block]))
            if half:
                moved = w @ spread
                delta[block] = s * (w @ slope - s * dot(moved, moved))
            else:
                change = (w * s[:, None]) @ basis.T @ rows.T
                delta[block] = self._fall(*pair, change)

        # what the model leaves unexplained has no more digits than what it had to explain
        certificate = max(fit.error, _EPS * math.sqrt(_square(target) / (_square(residual) or 1)))
        delta[~is_safe] = np.nan
        return self.completed(task, loss, delta, certificate)

    @np.errstate(all="ignore")
    def join_groups(self, task: Task) -> Outcome:
        r"""Add groups by updates of rank g.

        With $g$ rows $W$ in the coordinates of the engine, whose normal matrix is the identity, and
        their residuals $r$ (Woodbury),

        $$\theta_G = \theta + T W^\top (I + W W^\top)^{-1} r .$$

        If a direction of D may be dropped or kept, groups are fitted from scratch.
        """
        data = self.dataset
        fit = _fit(data.X.take(task.subset, axis=0), data.y[task.subset], self.model.estimator)
        if fit is None or fit.n_inside < fit.basis.shape[1]:
            return super().join_groups(task)
        rows, _, centre = self._validation
        theta, basis = fit.seen_from(centre)
        pair = self._pair(data.y_val - fit.y_centre - rows @ theta)
        loss, delta = self.loss_or_nan(*pair), np.empty(len(task.points))
        for place, group in enumerate(task.rows or ()):
            group_rows = _augment(data.features(group), fit.centre, len(fit.theta))
            longest2 = fit.longest**2 + float((group_rows**2).sum())
            if fit.cutoff**2 * longest2 > fit.shortest**2:
                return super().join_groups(task)
            w = group_rows @ fit.basis
            gap = (data.targets(group) - fit.y_centre) - group_rows @ fit.theta
            step = cho_solve(cho_factor(np.eye(len(w)) + w @ w.T), gap, check_finite=False)
            change = rows @ (basis @ (w.T @ step))
            delta[place] = self._fall(*pair, change[None])[0]
        if not np.isfinite(loss + delta.sum()):
            return super().join_groups(task)
        return Outcome(loss, delta, fit.error, {"refits": 0, "fits": 1})

    def refit_engine(self) -> Engine:
        """Return refits in which contributions that are not of the optimum are nan."""
        return RefitEngine(self.dataset, self.model, self.metric, self._missing)

    def _missing(self, fitted: Any, positions: IntArray) -> FloatArray:
        """Return what one step of iterative refinement would add to a model's predictions."""
        X, y = self.dataset.features(positions), self.dataset.targets(positions)
        estimator, d = self.model.estimator, X.shape[1]
        centre = X.mean(axis=0) if estimator.fit_intercept else np.zeros(d)
        root = math.sqrt(getattr(estimator, "alpha", 0.0))
        rows = _augment(X, centre, d + bool(estimator.fit_intercept))
        rows = np.concatenate([rows, root * np.eye(d, rows.shape[1])])
        left = np.concatenate([y - fitted.predict(X), -root * fitted.coef_])
        size = np.sqrt(dot(rows.T, rows.T))
        size[size == 0.0] = 1.0
        step = np.linalg.lstsq(rows / size, left, rcond=None)[0] / size
        return np.asarray(_augment(self.dataset.X_val, centre, rows.shape[1]) @ step)

    def _pair(self, residual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return targets and predictions as the loss may take them, with all digits it needs."""
        if self.metric.is_of_residual:
            return residual, np.zeros_like(residual)
        return self.dataset.y_val, self.dataset.y_val - residual

    def _fall(self, y: FloatArray, prediction: FloatArray, change: FloatArray) -> FloatArray:
        try:
            return self.metric.fall(y, prediction, change)
        except Exception:
            return np.full(len(change), math.nan)


@dataclass
class _Fit:
    r"""The fit on $D$, and the basis in which adding a point is simple.

    Parameters
    ----------
    theta
        Coefficients of $\tilde x$, shape ``(p,)``: ``p = d + 1`` with an intercept, else ``d``.
    basis
        $T$, shape ``(p, q)``; columns from ``n_inside`` on are orthonormal and span what is
        outside the row space of $D$.
    alpha
        The penalty.
    longest, shortest
        Bounds on the singular values of $D$ that are kept, from above and from below.
    cutoff
        Relative singular value that must be exceeded; 0 if all are clearly kept.
    noise
        If $D$ has no spread, a smaller deviation from it is rounding.
    error
        Relative error of the fit, estimated from its last correction or the condition.
    centre, y_centre
        Subtracted from features, shape ``(d,)``, and targets.
    """

    theta: FloatArray
    basis: FloatArray
    n_inside: int
    alpha: float
    longest: float
    shortest: float
    cutoff: float
    noise: float
    error: float
    centre: FloatArray
    y_centre: float = 0.0

    def steps(self, X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return where each point of ``X, y`` moves the fit: ``theta + basis @ w * s``.

        Returns coordinates ``w``, shape ``(n, q)``; steps ``s``, shape ``(n,)``; and which points
        are accurate, shape ``(n,)``.
        """
        d, r = X.shape[1], self.n_inside
        rows = _augment(X, self.centre, len(self.theta))
        w = rows @ self.basis
        s = (y - self.y_centre) - rows @ self.theta
        pull = 1.0 + dot(w[:, :r], w[:, :r])
        if not self.cutoff:
            s /= pull
            return w, s, np.ones(len(X), dtype=bool)

        length2 = dot(rows[:, :d], rows[:, :d])
        least2 = np.full(len(X), self.shortest**2 or np.inf)
        if r < w.shape[1]:
            out2 = dot(w[:, r:], w[:, r:])
            is_out = out2 > np.maximum(_ROUNDING**2 * length2, self.noise**2)
            # The smallest singular value with the new row, from below; the row counts k / (k + 1)
            # of its square, at least a half, because the mean moves too.
            least2[is_out] = (0.5 / (1.0 / least2 + pull / out2))[is_out]
            w[~is_out, r:] = 0.0
            w[is_out, :r] *= self.alpha
            pull = np.where(is_out, self.alpha * pull + out2, pull)
        s /= pull
        has_underflow = (length2 < _TINY) & rows[:, :d].any(axis=1)
        return w, s, (self.cutoff**2 * (self.longest**2 + length2) <= least2) & ~has_underflow

    def seen_from(self, centre: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``theta`` and ``basis`` for rows around another centre."""
        theta, basis, d = self.theta.copy(), self.basis.copy(), len(centre)
        theta[d:] += (centre - self.centre) @ theta[:d]
        basis[d:] += (centre - self.centre) @ basis[:d]
        return theta, basis


def _fit(X: FloatArray, y: FloatArray, estimator: Any) -> _Fit | None:
    """Fit $D$, whose rows are overwritten; None if the answer would not be accurate."""
    k, d = X.shape
    centre, off, y_centre, share = np.zeros(d), np.zeros(d), 0.0, np.full(k, 1.0 / k)
    if estimator.fit_intercept:
        centre, y_centre = share @ X, float(share @ y)
        X -= centre
        off = share @ X  # what rounding left of the mean
        X -= off
        y = y - y_centre
    noise = 8.0 * _EPS * float(np.abs(centre).max())  # that a constant feature may show
    is_ridge = hasattr(estimator, "alpha")
    alpha = float(estimator.alpha) if is_ridge else 0.0
    cutoff = max(_CUTOFF, 0.0 if is_ridge else getattr(estimator, "tol", 0.0))
    fit = _solve_by_factor(X, y, alpha, cutoff, noise)
    if fit is None:
        fit = _solve_by_singular_values(X, y, alpha, cutoff, noise)
    if fit is None or (is_ridge and not alpha and fit.n_inside < d):
        return None
    if estimator.fit_intercept:
        r, inner = fit.n_inside, fit.basis
        fit.basis = np.zeros((d + 1, inner.shape[1] + 1))
        fit.basis[:d, :r], fit.basis[:d, r + 1 :] = inner[:, :r], inner[:, r:]
        fit.basis[d] = -(off @ fit.basis[:d])
        fit.basis[d, r] = 1.0 / math.sqrt(k)
        fit.theta = np.append(fit.theta, share @ y - off @ fit.theta)
        fit.n_inside, fit.centre, fit.y_centre = r + 1, centre, y_centre
    return fit


def _solve_by_factor(
    X: FloatArray, y: FloatArray, alpha: float, cutoff: float, noise: float
) -> _Fit | None:
    r"""Fit by $T = C^{-1} R^{-1}$, with the normal matrix $C R^\top R C$ and a diagonal $C$."""
    k, d = X.shape
    if k < d and not alpha:
        return None
    gram = X.T @ X
    longest = max(math.sqrt(gram.trace()), 1e9 * noise)
    gram.flat[:: d + 1] += alpha
    scale = np.sqrt(gram.diagonal())
    gram /= scale
    gram /= scale[:, None]
    root, failed = lapack.dpotrf(gram)
    basis, singular = lapack.dtrtri(root)
    condition2 = math.sqrt(_square(gram)) * _square(basis)
    if failed or singular or not condition2 <= _CONDITION**2:
        return None
    basis /= scale[:, None]
    shortest = 1.0 / math.sqrt(_square(basis))
    if not alpha and shortest <= 2.0 * cutoff * longest:
        return None
    theta = np.zeros(d)
    for _ in range(2):  # solve, then correct
        step = ((y - X @ theta) @ X - alpha * theta) @ basis
        theta += basis @ step
    error = max(_EPS * condition2, math.sqrt(_square(step) / (_square(y) or 1.0)))
    in_doubt = 0.0 if alpha else cutoff
    return _Fit(theta, basis, d, alpha, longest, shortest, in_doubt, noise, error, np.zeros(d))


def _solve_by_singular_values(
    X: FloatArray, y: FloatArray, alpha: float, cutoff: float, noise: float
) -> _Fit | None:
    """Fit by a singular value decomposition; directions without spread in $D$ are the outside."""
    k, d = X.shape
    try:
        left, spread, right = np.linalg.svd(X, full_matrices=k < d)
    except np.linalg.LinAlgError:
        return None
    longest = float(spread[0])
    if longest and not _TINY < longest * longest < 1.0 / _TINY:
        return None
    is_constant = longest <= noise * math.sqrt(k)
    r = 0 if is_constant else int((spread > cutoff * longest).sum())
    shortest = float(spread[r - 1]) if r else 0.0
    dropped = float(spread[r:].max(initial=0.0))
    if not is_constant and dropped > _EPS * min(max(k, d) * longest, 4e3 * shortest):
        return None
    basis = right.T.copy()
    size = np.sqrt(spread[:r] ** 2 + alpha)
    basis[:, :r] /= size
    theta = basis[:, :r] @ (y @ left[:, :r] * spread[:r] / size)
    error = _EPS * longest / shortest if r else _EPS
    longest, noise = max(longest, 1e9 * noise), 0.0 if r else noise
    return _Fit(theta, basis, r, alpha, longest, shortest, cutoff, noise, error, np.zeros(d))


def _square(array: FloatArray) -> float:
    return float(np.vdot(array, array))


def _augment(X: FloatArray, centre: FloatArray, width: int) -> FloatArray:
    """Return the rows around a centre, with a column of ones if ``width`` has room for one."""
    rows = np.empty((len(X), width))
    np.subtract(X, centre, out=rows[:, : X.shape[1]])
    rows[:, X.shape[1] :] = 1.0
    return rows


def _blocks(n: int, size: int) -> list[slice]:
    return [slice(start, start + size) for start in range(0, n, size)]
