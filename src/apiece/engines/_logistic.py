r"""Logistic regression, exactly: every joining point solved from the fit on D.

The engine is a `GLMEngine`. It uses `_glm_joining.py` for two classes and `_softmax_joining.py`
for more. A point that does not converge is refitted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from apiece._base.typing import BoolArray, FloatArray, IntArray
from apiece.data import Dataset
from apiece.engines._base import Engine
from apiece.engines._glm import Fitted, GLMEngine
from apiece.engines._glm_fit import fit_base
from apiece.engines._models import Model
from apiece.engines._refit import RefitEngine
from apiece.engines._softmax_fit import fit_base as fit_softmax
from apiece.engines._softmax_joining import SoftmaxJoining
from apiece.engines._softmax_score import SoftmaxScore
from apiece.losses import Loss
from apiece.losses._series import sigmoid
from apiece.records import Outcome, Task

_TOGETHER = 192  # points solved together with many classes: products with the inverse read it once
_SMALL = 600  # parameters of many classes up to which double precision costs nothing
_MOST_FEATURES = 5_000  # beyond, the Hessian of a single fit takes longer than refits do
_MOST_PARAMETERS = 8_000  # the same for many classes: its inverse takes half a gigabyte


def unsupported_setting(model: Model) -> str | None:
    """Return why a model is not L2-penalised logistic regression, or None if it is."""
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
    """Return the same model with a solver that converges, for points to be refitted.

    For two classes both probabilities are computed from the margin. scikit-learn computes one as
    1 minus the other, which loses digits.
    """
    from sklearn.linear_model import LogisticRegression

    class Converged(LogisticRegression):  # type: ignore[misc]  # no stubs
        def predict_proba(self, X: FloatArray) -> FloatArray:
            margins = self.decision_function(X)
            if margins.ndim == 2:
                return np.asarray(super().predict_proba(X))
            return np.stack([sigmoid(-margins), sigmoid(margins)], axis=1)

    settings = model.estimator.get_params()
    settings |= {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 1_000}
    return replace(model, estimator=Converged(**settings))


class LogisticEngine(GLMEngine):
    """Contributions under logistic regression with an L2 penalty, for any number of classes.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> from apiece.engines import choose_engine
    >>> engine, _ = choose_engine(load_demo()[0], model="logistic")
    >>> engine.run(Task(0, np.arange(30), np.arange(30, 33), seed=0)).certificate < 1e-6
    True
    """

    name: ClassVar[str] = "logistic"
    is_quick: ClassVar[bool] = True
    made_for: ClassVar[tuple[str, ...]] = ("LogisticRegression",)

    @classmethod
    def supports(cls, dataset: Dataset, model: Model, metric: Loss) -> str | None:
        """Return None if the engine computes what refitting would, or the reason why not."""
        if dataset.kind != "classification":
            return "it is for classification"
        if dataset.n_features > _MOST_FEATURES:
            return f"{dataset.n_features:,} features are more than {_MOST_FEATURES:,}"
        n_parameters = (dataset.n_features + 1) * (dataset.n_classes - 1)
        if dataset.n_classes > 2 and n_parameters > _MOST_PARAMETERS:
            return f"{n_parameters:,} parameters are more than {_MOST_PARAMETERS:,}"
        return unsupported_setting(model)

    def is_left_to_scikit_learn(self, task: Task) -> bool:
        """Whether D lacks a class: scikit-learn then fits fewer classes, or raises an error."""
        return len(np.unique(self.dataset.y[task.subset])) < self.dataset.n_classes

    def _fit(self, task: Task, *more: int) -> Fitted | None:
        X, y = self._rows(task, more)
        if self.dataset.n_classes > 2:
            return self._fit_many(X, y)
        base = fit_base(X, y.astype(np.float64), self._is_penalised, self._C)
        return None if base is None else self._join(base)

    def _fit_many(self, X: FloatArray, y: IntArray) -> Fitted | None:
        data, settings = self.dataset, (self.dataset.n_classes, self._is_penalised, self._C)
        is_double = X.shape[1] * (data.n_classes - 1) < _SMALL or not self.metric.has_softmax_series
        base = fit_softmax(X, y, *settings, dtype=np.float64 if is_double else np.float32)
        if base is None:
            return None
        score = SoftmaxScore(self.metric, self._validation[0], data.y_val, base)
        if not score.is_smooth and base.inverse.dtype == np.float32:
            base = fit_softmax(X, y, *settings, dtype=np.float64)  # some losses are clipped
            if base is None:
                return None
            score = SoftmaxScore(self.metric, self._validation[0], data.y_val, base)
        joining = SoftmaxJoining(base)

        def solve(x: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray, BoolArray]:
            delta, left, is_good = np.empty(len(y)), np.empty(len(y)), np.empty(len(y), dtype=bool)
            for batch in np.array_split(joining.by_ease(x, y), -(-len(y) // _TOGETHER)):
                change, left[batch], is_good[batch] = joining.solve(x[batch], y[batch])
                delta[batch] = score.delta(change)
            return delta, left, is_good

        return Fitted(score.loss, base.decrement, 5 * _TOGETHER, solve)

    @np.errstate(all="ignore")
    def join_groups(self, task: Task) -> Outcome:
        """Add groups by Newton's method from the fit on D, for two classes."""
        data, y = self.dataset, self.dataset.y[task.subset]
        if data.n_classes != 2 or len(np.unique(y)) < 2:
            return super().join_groups(task)
        X = self._design(data.X[task.subset])
        fits = [fit_base(X, y.astype(np.float64), self._is_penalised, self._C)]
        for group in task.rows or ():
            if fits[0] is None or fits[-1] is None:
                break
            more = np.concatenate([X, self._design(data.features(group))])
            labels = np.concatenate([y, data.targets(group)]).astype(np.float64)
            fits.append(fit_base(more, labels, self._is_penalised, self._C, start=fits[0].theta))
        good = [fit for fit in fits if fit is not None]
        if len(good) < len(fits):
            return super().join_groups(task)
        margins = np.stack([fit.theta for fit in good]) @ self._validation[0].T
        loss = self.metric.of_margins(data.y_val, margins)
        worst = max(fit.decrement for fit in good)
        return Outcome(float(loss[0]), loss[0] - loss[1:], worst, {"refits": 0, "fits": len(good)})

    @property
    def _C(self) -> float:
        return float(self.model.estimator.C)

    def refit_engine(self) -> Engine:
        """Return refits by a solver that converges."""
        return RefitEngine(self.dataset, converged(self.model), self.metric)
