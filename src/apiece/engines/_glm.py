"""Common part of engines for generalised linear models: fit D, then solve for every joining point.

The optimum with point z minimises scikit-learn's objective on D and z. It is computed from the
optimum on D with a few matrix products for all points of a block, instead of one fit per point.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray
from apiece.engines._base import Engine
from apiece.engines._glm_fit import GLMFit
from apiece.engines._glm_joining import GLMJoining
from apiece.engines._score import MarginScore
from apiece.records import Outcome, Task

_ENTRIES = 300_000  # of the largest array that a block of points makes: few calls, and still cached
_LARGEST = 1e12  # a larger loss is the exponential of a margin, which its rounding decides
_LIMIT = 1e-4  # largest bound of the error of a contribution, relative to their mean size


@dataclass(frozen=True, eq=False)
class Fitted:
    """The fit on D, and a solver for blocks of joining points.

    Parameters
    ----------
    loss
        On the validation set.
    decrement
        Newton decrement at the last step.
    block
        How many points to solve together.
    solve
        Takes the points' rows of the design and targets; returns contributions, the remaining
        relative error, and which points have converged.
    error
        Bound of the error of the loss.
    """

    loss: float
    decrement: float
    block: int
    solve: Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray, BoolArray]]
    error: float = 0.0


class GLMEngine(Engine):
    """Contributions under a penalised generalised linear model."""

    @np.errstate(all="ignore")
    def run(self, task: Task) -> Outcome:
        """Compute the contribution of every point of the task.

        A point whose update does not converge is fitted from scratch; its contribution is nan if
        that fit does not converge either. If D itself cannot be fitted, all contributions are nan.
        Floating-point flags are ignored, because BLAS may raise them for padding.
        """
        if self.is_left_to_scikit_learn(task):
            return self.refit(task)
        fitted = self._fit(task)
        if fitted is None or fitted.loss > _LARGEST:
            return self.uncertified(task)
        delta = np.empty(len(task.points))
        worst, lost = fitted.decrement, list[int]()
        for start in range(0, len(delta), fitted.block):
            block = slice(start, start + fitted.block)
            points = task.points[block]
            delta[block], left, is_good = fitted.solve(
                self._design(self.dataset.features(points)), self.dataset.targets(points)
            )
            worst = max(worst, float(left[is_good].max(initial=0.0)))
            lost += (start + np.flatnonzero(~is_good | ~np.isfinite(delta[block]))).tolist()
        error = np.full(len(delta), fitted.error)
        for place in lost:
            loss, more = self._loss_with(task, task.points[place])
            delta[place] = fitted.loss - loss
            error[place] += more
        delta[fitted.loss - delta > _LARGEST] = np.nan
        delta[~(error <= _largest_error(fitted.loss, delta[np.isfinite(delta)]))] = np.nan
        return Outcome(fitted.loss, delta, worst, {"refits": len(lost)})

    def is_left_to_scikit_learn(self, task: Task) -> bool:
        """Whether scikit-learn fits another model to D, or refuses D with an error."""
        return False

    @abstractmethod
    def _fit(self, task: Task, *more: int) -> Fitted | None:
        """Fit D and perhaps some more points; None if that does not converge."""

    def _loss_with(self, task: Task, point: int) -> tuple[float, float]:
        """Return the loss of a fit from scratch on D and a point, and a bound of its error.

        Both are nan if the fit does not converge or the loss overflows.

        Raises
        ------
        EngineError
            If the fit converges, and the metric is not a number.
        """
        fitted = self._fit(task, point)
        if fitted is None or fitted.loss == np.inf:
            return float("nan"), float("nan")
        if np.isnan(fitted.loss):
            self.refit(task, np.array([point]))
        return fitted.loss, fitted.error

    def _join(self, base: GLMFit) -> Fitted:
        """Return a fit with one margin, and how points join it."""
        score = MarginScore(self.metric, *self._validation, self.dataset.y_val, base.theta)
        joining = GLMJoining(base)
        steepness = score.steepness(base)

        def solve(x: FloatArray, y: AnyArray) -> tuple[FloatArray, FloatArray, BoolArray]:
            y = y.astype(np.float64)
            change, left, error, is_good = joining.solve(x, y)
            delta = score.delta(change)
            if np.isnan(steepness):  # the error of the change has to do
                return delta, left, is_good & (base.factor_error < _LIMIT)
            limit = _largest_error(score.loss, delta[is_good])
            far = np.flatnonzero(is_good & ~(steepness * error <= limit))
            if len(far):
                again = joining.solve(x[far], y[far], is_near=False)
                delta[far], left[far] = score.delta(again.change), again.left
                is_good[far] = again.is_good & (steepness * again.error <= limit)
            return delta, left, is_good

        error = float(np.nan_to_num(steepness)) * float(np.sqrt(base.decrement))
        block = max(16, _ENTRIES // len(base.margins))
        return Fitted(score.loss, base.decrement, block, solve, error)

    def _rows(self, task: Task, more: tuple[int, ...]) -> tuple[FloatArray, AnyArray]:
        """Return the design and the targets of D and some more points."""
        rows = np.concatenate([task.subset, np.array(more, dtype=np.int64)])
        return self._design(self.dataset.features(rows)), self.dataset.targets(rows)

    @cached_property
    def _is_penalised(self) -> FloatArray:
        """1 for every feature, 0 for the intercept if there is one."""
        n = self.dataset.n_features
        return np.append(np.ones(n), 0.0) if self.model.estimator.fit_intercept else np.ones(n)

    @cached_property
    def _validation(self) -> tuple[FloatArray, AnyArray]:
        V = self._design(self.dataset.X_val)
        return V, V.astype(np.float32)

    @cached_property
    def _centre(self) -> FloatArray:
        return np.asarray(self.dataset.X.mean(axis=0))

    def _design(self, X: FloatArray) -> FloatArray:
        """Centre the features and append the column of ones, if there is an intercept.

        The intercept is not penalised, so centring changes only the rounding errors.
        """
        if not self.model.estimator.fit_intercept:
            return np.ascontiguousarray(X)
        return np.column_stack([X - self._centre, np.ones(len(X))])


def _largest_error(loss: float, delta: FloatArray) -> float:
    """Error of a contribution that is accepted: a share of their mean, or the loss's rounding."""
    mean = float(np.abs(delta).mean()) if len(delta) else 0.0
    return max(_LIMIT * mean, float(np.finfo(np.float64).eps) * loss)
