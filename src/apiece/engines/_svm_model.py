r"""A support vector machine as a model: alone, or several of them behind Platt's sigmoid.

Calibrated on $n$ folds, the model is trained $n + 1$ times: once for each fold, on the rest, where
decision values at the held-out points fit the sigmoid, and once on everything, where the sigmoid
turns decision values into probabilities. A point that is added falls into one fold: it joins the
other trainings, and its own decision value joins the sigmoid's data.

With more than two classes each class has a sigmoid of its own, of its decision values against all
others, and the probabilities are scaled to a sum of 1, as scikit-learn does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray
from apiece.engines._models import CoupledFolds
from apiece.engines._platt import fit_sigmoids
from apiece.engines._svm_kernel import Rows, squared_distances
from apiece.engines._svm_pairs import Machines

_SETTLED = 1e-8  # Newton step, in log odds, at which a sigmoid counts as fitted
_SPREAD = 1e-12  # of held-out decision values, below which a slope would be one of rounding
_SOLVED = 1e-2  # error of decision values beyond which a machine does not count as trained


@dataclass(frozen=True, eq=False)
class Predictions:
    """What models say about the validation set; one row for each.

    Parameters
    ----------
    margins
        Log odds of class 1, or of each class against all others beyond two classes; decision values
        if not calibrated. Shape ``(n, n_columns, n_validation)``.
    error
        By how much the margins may be off, from the machines' optimality conditions and the Newton
        step left in the sigmoid, shape ``(n,)``; inf where it is no optimum.
    is_anew
        Whether a machine was solved from scratch, shape ``(n,)``.
    """

    margins: FloatArray
    error: FloatArray
    is_anew: BoolArray


class FittedSVM:
    """The model trained on D.

    Parameters
    ----------
    X, y
        Training points, shape ``(k, d)``, and class codes, shape ``(k,)``.
    X_val
        The validation set, shape ``(n_validation, d)``.
    n_classes
        Number of classes.
    C, gamma
        As in scikit-learn's ``SVC``.
    folds
        The folds of the calibration, or None for a machine alone.

    Raises
    ------
    ValueError
        If a class is missing from the training points of a machine.
    """

    def __init__(
        self,
        X: FloatArray,
        y: AnyArray,
        X_val: FloatArray,
        *,
        n_classes: int,
        C: float,
        gamma: str | float,
        folds: CoupledFolds | None,
    ) -> None:
        self._y, self._folds, self._n_classes = y, folds, n_classes
        self._fold = np.full(len(y), -1) if folds is None else folds.assign(y)
        self._points = np.concatenate([X, X_val]) if n_classes > 2 else None
        self._centre = X.mean(axis=0)
        table, row = self._table(X), np.arange(len(X))
        training = Rows(X, table, row, row)
        validation = Rows(X_val, table, None, len(X) + np.arange(len(X_val)))

        def machines(is_in: BoolArray, out: Rows) -> Machines:
            if len(np.unique(y[is_in])) < n_classes:
                raise ValueError("a machine would not see every class")
            return Machines(training[is_in], y[is_in], out, n_classes=n_classes, C=C, gamma=gamma)

        self._whole = machines(self._fold >= -1, validation)
        self._held_out: list[tuple[IntArray, Machines]] = []
        for fold in range(int(self._fold.max()) + 1):
            is_out = self._fold == fold
            self._held_out.append((np.flatnonzero(is_out), machines(~is_out, training[is_out])))

    def _table(self, X: FloatArray) -> FloatArray | None:
        """Squared distances to training and validation points, which the pairs of classes share."""
        if self._points is None:
            return None
        return squared_distances(X - self._centre, self._points - self._centre)

    def base(self) -> Predictions:
        """Predictions of the model itself, one row."""
        whole = self._whole.base()
        if self._folds is None:
            return Predictions(whole.decision, _within(whole.error, _SOLVED), whole.is_anew)
        self._scores, error = np.empty((whole.decision.shape[1], len(self._y))), whole.error
        for out, machines in self._held_out:
            rest = machines.base()
            self._scores[:, out] = rest.decision[0]
            error = np.maximum(error, rest.error)
        self._start: FloatArray | None = None
        return self._calibrate(
            whole.decision, self._scores[None], self._y[None], error, whole.is_anew
        )

    def add(self, Z: FloatArray, y: AnyArray) -> Predictions:
        """Predictions of the model trained with each of some points added.

        Parameters
        ----------
        Z, y
            The points, shape ``(n, d)``, and their class codes, shape ``(n,)``.
        """
        table = self._table(Z)
        points = Rows(Z, table, None if table is None else np.arange(len(Z)))
        added = self._whole.add(points, y)
        decision, error, is_anew = added.decision, added.error, added.is_anew
        if self._folds is None:
            return Predictions(decision, _within(error, _SOLVED), is_anew)

        n_columns, k = self._scores.shape
        fold_of_next = np.bincount(self._y, minlength=self._n_classes) % self._folds.n_folds
        scores, codes = (
            np.empty((len(y), n_columns, k + 1)),
            np.empty((len(y), k + 1), dtype=np.int64),
        )
        scores[:, :, :k], codes[:, :k], codes[:, k] = self._scores, self._y, y
        for fold in range(self._folds.n_folds):
            held = np.flatnonzero(fold_of_next[y] == fold)
            is_old = fold < len(self._held_out)  # else a point of a fold opens it
            machines = self._held_out[fold][1] if is_old else self._whole
            if len(held):
                own = machines.decide(points[held])
                scores[held, :, k] = own.decision[:, :, 0]
                error[held] = np.maximum(error[held], own.error)
            if not is_old:
                continue
            joins = np.flatnonzero(fold_of_next[y] != fold)
            added = machines.add(points[joins], y[joins])
            columns = np.arange(n_columns)[:, None]
            scores[joins[:, None, None], columns, self._held_out[fold][0]] = added.decision
            error[joins] = np.maximum(error[joins], added.error)
            is_anew[joins] |= added.is_anew
        return self._calibrate(decision, scores, codes, error, is_anew)

    def _calibrate(
        self,
        decision: FloatArray,
        scores: FloatArray,
        codes: IntArray,
        error: FloatArray,
        is_anew: BoolArray,
    ) -> Predictions:
        """Fit the sigmoids to held-out decision values, and pass the others through them."""
        n, n_columns, m = scores.shape
        zero, unit = scores.mean(axis=2, keepdims=True), scores.std(axis=2, keepdims=True)
        positive = np.arange(n_columns)[:, None] if n_columns > 1 else np.ones((1, 1))
        is_positive = (codes[:, None] == positive).reshape(-1, m)
        start = None if self._start is None else np.tile(self._start, (n, 1))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ab, left = fit_sigmoids(((scores - zero) / unit).reshape(-1, m), is_positive, start)
            slope, offset = ab.T.reshape(2, n, n_columns, 1)
            margins = slope * ((decision - zero) / unit) + offset
        self._start = ab if self._start is None else self._start
        left[unit.ravel() < _SPREAD] = np.inf
        steepest = (2.0 * np.abs(slope) / np.maximum(unit, _SPREAD))[:, :, 0].max(axis=1)
        left = left.reshape(n, n_columns).max(axis=1)
        error = np.maximum(steepest * _within(error, _SOLVED), _within(left, _SETTLED))
        return Predictions(margins, error, is_anew)


def _within(error: FloatArray, limit: float) -> FloatArray:
    """Return errors as they are, or inf where they are above the limit or nan."""
    return np.where(error <= limit, error, np.inf)
