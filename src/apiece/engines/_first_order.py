r"""First order: contributions from influence functions. Approximate, and marked as such.

The convex models minimise $F(\theta) = a \sum_{i \in D} \ell(\eta_i, y_i) + \tfrac12 \theta^\top
\Lambda \theta$ over linear predictors $\eta = X\theta$, with $m$ columns for $m$ outputs. When $z$
joins, the optimum moves by $-H^{-1} \nabla \ell_z$ to first order (Koh and Liang, 2017), and the
loss $L$ on the validation set falls by

$$\Delta(z, D) \approx a \sum_{c=1}^m r_{zc}\, (x_z^\top h_c), \qquad
  h = H^{-1} \nabla_\theta L, \quad r_z = \partial \ell(\eta_z, y_z) / \partial \eta_z .$$

One linear system per D is enough for all points. The approximation neglects how $z$ changes the
curvature (its leverage) and the curvature of $L$. The error is largest for few points in many
dimensions.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Final

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from apiece._base.batched import dot
from apiece._base.typing import AnyArray, FloatArray
from apiece.data import Dataset
from apiece.engines._base import Engine
from apiece.engines._linear import LinearEngine
from apiece.engines._logistic import unsupported_setting
from apiece.engines._models import Model
from apiece.errors import EngineError
from apiece.losses import LOSSES, Loss
from apiece.records import Outcome, Task

_ENTRIES: Final = 1 << 20  # numbers in the largest array of a block of points: 8 MB
_MOST_PARAMETERS: Final = 5_000  # beyond, the Hessian takes more than 200 MB


class FirstOrderEngine(Engine):
    """Influence functions for least squares, ridge and logistic regression.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> from apiece.engines import choose_engine
    >>> engine, _ = choose_engine(load_demo()[0], engine="first-order")
    >>> engine.run(Task(0, np.arange(30), np.arange(30, 33), seed=0)).delta.shape
    (3,)
    """

    name: ClassVar[str] = "first-order"
    is_quick: ClassVar[bool] = True
    is_exact: ClassVar[bool] = False

    @classmethod
    def supports(cls, dataset: Dataset, model: Model, metric: Loss) -> str | None:
        """Return None if influence functions approximate this run, or the reason why not."""
        if not metric.has_slope:
            smooth = ", ".join(name for name, known in LOSSES.items() if known.has_slope)
            return f"metric {metric.name!r} has no derivative (expected one of {smooth})"
        n_parameters = (dataset.n_features + 1) * (
            dataset.n_classes if dataset.n_classes > 2 else 1
        )
        if n_parameters > _MOST_PARAMETERS:
            return f"{n_parameters:,} parameters are more than {_MOST_PARAMETERS:,}"
        if dataset.kind == "regression":
            return LinearEngine.supports(dataset, model, metric)
        return unsupported_setting(model)

    def run(self, task: Task) -> Outcome:
        """Approximate the contribution of every point of the task.

        Raises
        ------
        EngineError
            If D lacks a class, or the model cannot be fitted.
        """
        data = self.dataset
        X, y = data.X[task.subset], data.y[task.subset]
        fitted = self._fit(X, y, task)
        centre = X.mean(axis=0) if fitted.fit_intercept else np.zeros(X.shape[1])
        adjoint = self._adjoint(fitted, X, y, centre)
        delta = np.empty(len(task.points))
        step = max(1, _ENTRIES // data.n_features)
        for start in range(0, len(delta), step):
            points = task.points[start : start + step]
            rows = data.features(points)
            pull, _ = _pull(_output(fitted, rows), data.targets(points))
            reach = _augmented(rows, centre, fitted) @ adjoint
            delta[start : start + step] = dot(pull, reach)
        return Outcome(self.metric.value(data.y_val, self._predictions(fitted)), delta)

    def _fit(self, X: FloatArray, y: AnyArray, task: Task) -> Any:
        if self.dataset.is_classification and len(np.unique(y)) < self.dataset.n_classes:
            raise EngineError(
                f"D of task {task.index} (k={task.cardinality}) lacks a class: expected all "
                f"{self.dataset.n_classes}, since influence functions cannot add one. Draw larger "
                "training sets, or pass engine='auto' (--engine auto)."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fit stopped early is one more approximation
            return self.model.seeded(task.seed).fit(X.copy(), y.copy())

    def _predictions(self, fitted: Any) -> AnyArray:
        has_proba = self.metric.needs == "proba"
        predict = fitted.predict_proba if has_proba else fitted.predict
        return np.asarray(predict(self.dataset.X_val))

    def _adjoint(self, fitted: Any, X: FloatArray, y: AnyArray, centre: FloatArray) -> FloatArray:
        r"""Return $a h = a H^{-1} \nabla_\theta L$, shape ``(p, m)``."""
        V = self.dataset.X_val
        slope = self.metric.slope(self.dataset.y_val, self._predictions(fitted))
        gradient = _augmented(V, centre, fitted).T @ slope / len(V)
        weight, penalty = _weights(fitted)
        _, curvature = _pull(_output(fitted, X), y)
        rows = _augmented(X, centre, fitted)
        p, m = gradient.shape
        hessian = np.empty((m, p, m, p))
        for c, d in np.ndindex(m, m):
            hessian[c, :, d] = rows.T @ (weight * curvature[:, c, d, None] * rows)
        classes, features = np.arange(m), np.arange(X.shape[1])
        hessian[classes[:, None], features, classes[:, None], features] += penalty
        if m > 1 and fitted.fit_intercept:
            # The same shift of all intercepts changes nothing; any curvature makes it unique.
            hessian[:, -1, :, -1] += weight * len(X) / m
        solution = _solve(
            hessian.reshape(m * p, m * p), gradient.T.reshape(-1), is_regular=penalty > 0
        )
        return np.asarray(weight * solution.reshape(m, p).T)


def _solve(hessian: FloatArray, gradient: FloatArray, *, is_regular: bool) -> FloatArray:
    """Solve by Cholesky's method, or take the shortest solution of a singular system."""
    if is_regular:
        try:
            return np.asarray(cho_solve(cho_factor(hessian), gradient))
        except LinAlgError:
            pass
    return np.asarray(np.linalg.lstsq(hessian, gradient, rcond=1e-12)[0])


def _augmented(X: FloatArray, centre: FloatArray, fitted: Any) -> FloatArray:
    """Return rows around the centre of D, with a last column of ones if there is an intercept."""
    rows = X - centre
    return np.column_stack([rows, np.ones(len(rows))]) if fitted.fit_intercept else rows


def _weights(fitted: Any) -> tuple[float, float]:
    """Return the weight of the data and that of the penalty in the model's objective."""
    if hasattr(fitted, "C"):
        return float(fitted.C), 1.0
    return 1.0, float(getattr(fitted, "alpha", 0.0))


def _output(fitted: Any, X: FloatArray) -> FloatArray:
    """Return what the model predicts: a value, or class probabilities; shape ``(n, m)``."""
    if hasattr(fitted, "predict_proba"):
        return np.asarray(fitted.predict_proba(X))
    return np.asarray(fitted.predict(X))[:, None]


def _pull(output: FloatArray, y: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Return the first and second derivatives of the training loss by the linear predictors.

    Two classes have one predictor, the log odds of the second. Shapes ``(n, m)``, ``(n, m, m)``.
    """
    m = output.shape[1]
    if m == 1:
        return output - y[:, None], np.ones((len(y), 1, 1))
    pull = output - np.eye(m)[y]
    curvature = output[:, :, None] * (np.eye(m) - output[:, None, :])
    return (pull[:, 1:], curvature[:, 1:, 1:]) if m == 2 else (pull, curvature)
