r"""Binary logistic regression, exactly: every joining point solved from the fit on D.

The optimum with point $z$ is the minimiser of scikit-learn's own objective on $D \cup z$. It is
found from that on $D$ (`_newton.py`) in a few products of matrices over all points of a block,
instead of a fit from scratch for each of them. A point that does not converge is refitted.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from apiece._typing import AnyArray, FloatArray
from apiece.data import Dataset
from apiece.engine._base import BaseEngine
from apiece.engine._metrics import Metric
from apiece.engine._models import Model
from apiece.engine._newton import Joining, fit_base
from apiece.engine._refit import RefitEngine
from apiece.engine._score import MarginScore
from apiece.records import Outcome, Task

_ENTRIES = 300_000  # of the largest array that a block of points makes: few calls, and still cached
_MOST_FEATURES = 5_000  # beyond, the Hessian of a single fit takes longer than refits do


def supports(dataset: Dataset, model: Model, metric: Metric) -> str | None:
    """Return None if the engine computes what refitting would, or the reason why not."""
    if dataset.n_classes != 2:
        return "it is for two classes"
    if dataset.n_features > _MOST_FEATURES:
        return f"{dataset.n_features:,} features are more than {_MOST_FEATURES:,}"
    return unsupported_setting(model)


def unsupported_setting(model: Model) -> str | None:
    """Return what keeps a model from being L2-penalised logistic regression, or None."""
    from sklearn.linear_model import LogisticRegression

    estimator = model.estimator
    if type(estimator) is not LogisticRegression:
        return f"{type(estimator).__name__} is not LogisticRegression"
    settings: dict[str, Any] = estimator.get_params()
    if settings.get("penalty", "l2") not in ("l2", "deprecated"):
        return f"penalty is {settings['penalty']!r}"
    if settings.get("l1_ratio") not in (None, 0, 0.0):
        return f"l1_ratio is {settings['l1_ratio']}"
    if settings["class_weight"] is not None:
        return "class_weight is set"
    if settings["solver"] == "liblinear":
        return "liblinear penalises the intercept"
    if settings.get("multi_class", "auto") not in ("auto", "multinomial", "deprecated"):
        return f"multi_class is {settings['multi_class']!r}"
    if not 0 < settings["C"] < np.inf:
        return f"C is {settings['C']}"
    return None


def converged(model: Model) -> Model:
    """Return the same model with a solver that goes all the way, for points to be refitted."""
    from sklearn.base import clone

    estimator = clone(model.estimator).set_params(
        solver="newton-cholesky", tol=1e-12, max_iter=1_000
    )
    return replace(model, estimator=estimator)


class LogisticEngine(BaseEngine):
    """Contributions under binary logistic regression with an L2 penalty, for any loss."""

    name: ClassVar[str] = "logistic"

    def run(self, task: Task) -> Outcome:
        """Compute the contribution of every point of the task."""
        X, y = self._design(self.dataset.X[task.subset]), self.dataset.y[task.subset]
        base = fit_base(X, y.astype(np.float64), self._penalty, self._C)
        if base is None:
            outcome = self._refit(task)
            return replace(outcome, notes={**outcome.notes, "refits": len(task.points)})
        score = MarginScore(self.metric, *self._validation, self.dataset.y_val, base.theta)
        joining = Joining(base)
        delta = np.empty(len(task.points))
        worst, lost = base.decrement, list[int]()
        step = max(16, _ENTRIES // len(y))
        for start in range(0, len(delta), step):
            block = slice(start, start + step)
            points = task.points[block]
            change, left, is_good = joining.solve(
                self._design(self.dataset.features(points)),
                self.dataset.targets(points).astype(np.float64),
            )
            delta[block] = score.delta(change)
            worst = max(worst, float(left[is_good].max(initial=0.0)))
            lost += (start + np.flatnonzero(~is_good | ~np.isfinite(delta[block]))).tolist()
        if lost:
            delta[lost] = self._refit(replace(task, points=task.points[lost])).delta
        return Outcome(score.loss, delta, worst, {"refits": len(lost)})

    @property
    def _C(self) -> float:
        return float(self.model.estimator.C)

    @cached_property
    def _penalty(self) -> FloatArray:
        n = self.dataset.n_features
        return np.append(np.ones(n), 0.0) if self.model.estimator.fit_intercept else np.ones(n)

    @cached_property
    def _validation(self) -> tuple[FloatArray, AnyArray]:
        V = self._design(self.dataset.X_val)
        return V, V.astype(np.float32)

    def _design(self, X: FloatArray) -> FloatArray:
        """Append the column of ones, if there is an intercept."""
        if not self.model.estimator.fit_intercept:
            return np.ascontiguousarray(X)
        return np.column_stack([X, np.ones(len(X))])

    def _refit(self, task: Task) -> Outcome:
        return RefitEngine(self.dataset, converged(self.model), self.metric).run(task)
