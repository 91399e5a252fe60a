r"""The SVM engine: exact contributions to a support vector machine with the RBF kernel.

The model is ``SVC(kernel="rbf")``, alone or calibrated by Platt's sigmoid on folds that adding a
point does not reshuffle (`CoupledFolds`), for any number of classes (`_svm_pairs.py`). Each machine
of it is trained once, on D, and updated for all $z$ of a block at once (`_svm_machine.py`): few
training points change between lying at a bound of the dual and lying inside, so the optimum with
$z$ follows from small systems of equations.

libsvm keeps kernels in single precision, so that its decision values carry errors of about 1e-7
times their weights at any ``tol``; those here are of the optimum itself.
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np
from scipy.special import expit

from apiece._base.typing import FloatArray
from apiece.data import Dataset
from apiece.engines._base import Engine
from apiece.engines._models import CoupledFolds, Model
from apiece.engines._refit import RefitEngine
from apiece.engines._svm_model import FittedSVM
from apiece.losses import Loss
from apiece.records import Outcome, Task

_BLOCK_ENTRIES: Final = 500_000  # decision values of one block of points
_MANY_ENTRIES: Final = 2_000_000  # of more than two classes, whose machines get few of the points
_MOST_POINTS: Final = 512  # points of one block
_MOST_CLASSES: Final = 60  # beyond, there are so many machines that refits are as fast
_TIGHT: Final = 1e-9  # tolerance of libsvm where a point is left to a refit
_TRUSTED: Final = 1e-4  # error over the mean contribution above which one is marked
_NEGLIGIBLE: Final = 1e-11  # error below which no contribution is marked
_MOST_STEPS: Final = 1_000_000  # steps of libsvm, which may never reach _TIGHT in single precision


class SVMEngine(Engine):
    """Updates a support vector machine for each added point, instead of training it again.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> from apiece.engines import choose_engine
    >>> engine, _ = choose_engine(load_demo()[0], model="svm")
    >>> engine.run(Task(0, np.arange(30), np.arange(30, 33), seed=0)).delta.shape
    (3,)
    """

    name: ClassVar[str] = "svm"
    made_for: ClassVar[tuple[str, ...]] = ("SVC", "CalibratedClassifierCV")
    rows_per_shard: ClassVar[int] = 2048

    @classmethod
    def supports(cls, dataset: Dataset, model: Model, metric: Loss) -> str | None:
        """Return None if the engine computes what refitting the model would, else why not."""
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.svm import SVC

        estimator = model.estimator
        is_calibrated = type(estimator) is CalibratedClassifierCV
        svc = estimator.estimator if is_calibrated else estimator
        if type(svc) is not SVC:
            return f"{model.name} is not an SVC, alone or calibrated"
        if dataset.n_classes > _MOST_CLASSES:
            return f"{dataset.n_classes:,} classes are more than {_MOST_CLASSES}"
        if dataset.n_classes > 2 and svc.decision_function_shape != "ovr":
            return f"decision_function_shape is {svc.decision_function_shape!r}; it is for 'ovr'"
        if is_calibrated and estimator.ensemble is not False:
            return "calibration is on an ensemble; it is for ensemble=False"
        if is_calibrated and estimator.method != "sigmoid":
            return f"calibration has method={estimator.method!r}; it is for 'sigmoid'"
        if is_calibrated and type(estimator.cv) is not CoupledFolds:
            return "calibration is on folds that an added point reshuffles; it is for CoupledFolds"
        if metric.needs not in (("proba", "label") if is_calibrated else ("label", "decision")):
            return f"metric {metric.name!r} needs what {model.name} does not predict"
        if not isinstance(svc.kernel, str) or svc.kernel != "rbf":
            return f"kernel is {svc.kernel!r}; it is for 'rbf'"
        if svc.class_weight is not None:
            return "class_weight is set"
        if svc.probability not in (False, "deprecated"):
            return "probability=True calibrates on random folds"
        if svc.max_iter != -1:
            return "max_iter may stop before the optimum"
        if not 0 < svc.C < np.inf:
            return f"C is {svc.C}"
        if svc.gamma not in ("scale", "auto") and not 0 < svc.gamma < np.inf:
            return f"gamma is {svc.gamma}"
        return None

    def run(self, task: Task) -> Outcome:
        """Compute the contribution of every point of the task.

        Raises
        ------
        EngineError
            As the refit engine does: if ``D`` is too small for the model, or the metric fails.
        """
        data, points = self.dataset, task.points
        fitted = self._fit(task)
        base = None if fitted is None else fitted.base()
        loss = np.nan if base is None else float(self._losses(base.margins)[0])
        if fitted is None or base is None or np.isnan(loss):
            return self.refit(task)  # scikit-learn says what is wrong
        if not np.isfinite(base.error[0]):
            return self.uncertified(task)

        delta, error, n_refits = np.empty(len(points)), np.empty(len(points)), 0
        n_columns = base.margins.shape[1]
        entries = n_columns * max(task.cardinality, data.n_validation)
        most = _BLOCK_ENTRIES if n_columns == 1 else _MANY_ENTRIES
        size = min(_MOST_POINTS, most // entries + 16)
        for start in range(0, len(points), size):
            block = slice(start, start + size)
            added = fitted.add(data.features(points[block]), data.targets(points[block]))
            delta[block], error[block] = loss - self._losses(added.margins), added.error
            n_refits += int((added.is_anew & np.isfinite(added.error)).sum())
        is_solved = np.isfinite(error)
        lost = np.flatnonzero(is_solved & ~np.isfinite(delta))
        if len(lost):
            delta[lost] = self.refit(task, points[lost]).delta
        if self.metric.needs != "label":
            size = np.abs(delta[is_solved]).sum() / max(1, is_solved.sum())
            is_solved &= base.error[0] + error <= max(_TRUSTED * size, _NEGLIGIBLE)
        delta[~is_solved] = np.nan
        worst = max(base.error[0], error[is_solved].max(initial=0.0))
        return Outcome(loss, delta, float(worst), {"refits": n_refits + len(lost)})

    def _fit(self, task: Task) -> FittedSVM | None:
        """Train on D; None where scikit-learn should say what is wrong with it."""
        estimator = self.model.estimator
        folds = getattr(estimator, "cv", None)
        svc = estimator if folds is None else estimator.estimator
        X, y = self.dataset.X[task.subset], self.dataset.y[task.subset]
        if np.ptp(X, axis=0).max() == 0:
            return None
        try:
            return FittedSVM(
                X,
                y,
                self.dataset.X_val,
                n_classes=self.dataset.n_classes,
                C=svc.C,
                gamma=svc.gamma,
                folds=folds,
            )
        except ValueError:
            return None

    def _losses(self, margins: FloatArray) -> FloatArray:
        """Loss of each model, shape ``(n,)``."""
        metric, y_val = self.metric, self.dataset.y_val
        if margins.shape[1] > 1:
            by_class = margins.transpose(0, 2, 1)
            if self.model.has_proba:
                by_class = _normalised(expit(by_class))
            elif metric.needs == "label" and not self.model.estimator.break_ties:
                by_class = np.rint(by_class)  # the votes; libsvm takes the first class with most
            return metric.values(
                y_val, by_class.argmax(axis=2) if metric.needs == "label" else by_class
            )
        margins = margins[:, 0]
        if metric.needs == "label" and not self.model.has_proba:
            margins = np.where(margins >= 0, 1.0, -1.0)  # at a tie libsvm predicts class 1
        return metric.of_margins(y_val, margins)

    def refit_engine(self) -> Engine:
        """Return refits with a tolerance that leaves little error."""
        svc = getattr(self.model.estimator, "estimator", self.model.estimator)
        prefix = "" if svc is self.model.estimator else "estimator__"
        settings = {"tol": min(svc.tol, _TIGHT), "max_iter": _MOST_STEPS}
        model = self.model.with_settings(**{prefix + key: settings[key] for key in settings})
        return RefitEngine(self.dataset, model, self.metric)


def _normalised(proba: FloatArray) -> FloatArray:
    """Scale probabilities to a sum of 1; classes that all have none share it."""
    total = proba.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(total > 0, proba / total, 1.0 / proba.shape[-1]))
