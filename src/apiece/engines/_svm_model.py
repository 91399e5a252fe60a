r"""A support vector machine as a model: alone, or several of them behind Platt's sigmoid.

Calibrated on $n$ folds, the model is $n + 1$ machines: one for each fold, trained on the rest,
whose decision values at the held-out points fit the sigmoid, and one trained on everything, whose
decision values the sigmoid turns into probabilities. A point that is added falls into one fold: it
joins the other machines, and its own decision value joins the sigmoid's data.

scikit-learn's ``gamma="scale"`` is $1 / (d \, v)$, where $v$ is the variance of all entries of the
training points; with a point added it changes by about $1/n$ of itself, more for an outlier. One
machine serves all points whose width is within 5 % of its own; for an outlier another machine is
trained, at the nearest of the widths $\gamma \, e^{0.1 j}$.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray
from apiece.engines._models import CoupledFolds
from apiece.engines._platt import fit_sigmoids
from apiece.engines._svm_machine import Added, Machine

_SPACING = 0.1  # between the widths of machines, in log gamma
_SETTLED = 1e-8  # Newton step, in log odds, at which a sigmoid counts as fitted
_SPREAD = 1e-12  # of held-out decision values, below which a slope would be one of rounding
_SOLVED = 1e-2  # error of decision values beyond which a machine does not count as trained


class GammaGrid:
    """Machines trained on the same points, at the widths that added points call for.

    Parameters
    ----------
    X, y
        Training points, shape ``(n, d)``, and labels ±1, shape ``(n,)``.
    X_out
        Rows at which decision values are wanted, shape ``(n_out, d)``.
    C, gamma
        As in scikit-learn's ``SVC``.
    """

    def __init__(
        self, X: FloatArray, y: FloatArray, X_out: FloatArray, *, C: float, gamma: str | float
    ) -> None:
        self._centre = X.mean(axis=0)  # distances lose fewer digits near the origin
        self._X, self._y, self._X_out, self._C = X - self._centre, y, X_out - self._centre, C
        self._rule, self._mean = gamma, float(X.mean())
        self._scatter = float(((X - self._mean) ** 2).sum())
        self._gamma = float(self._width(X.size, np.array(self._scatter)))
        self._machines: dict[int, Machine] = {}

    def _width(self, size: int, scatter: FloatArray) -> FloatArray:
        """Gamma by the rule, given how many entries there are and their scatter."""
        d = self._X.shape[1]
        if self._rule == "scale":
            with np.errstate(divide="ignore"):
                return np.where(scatter == 0, 1.0, size / (d * scatter))
        return np.full(scatter.shape, 1.0 / d if self._rule == "auto" else float(self._rule))

    def widths(self, Z: FloatArray) -> FloatArray:
        r"""Gamma with each of some points added, shape ``(len(Z),)``.

        The scatter of $N$ entries with mean $m$ and of $d$ more with mean $m_z$ is the sum of both
        and of $(m - m_z)^2 N d / (N + d)$.
        """
        n, d = self._X.size, Z.shape[1]
        mean = Z.mean(axis=1)
        scatter = ((Z - mean[:, None]) ** 2).sum(axis=1)
        scatter += (mean - self._mean) ** 2 * n * d / (n + d)
        return self._width(n + d, self._scatter + scatter)

    @property
    def base(self) -> Machine:
        """The machine of the training points by themselves."""
        return self._machine(0)

    def _machine(self, node: int) -> Machine:
        if node not in self._machines:
            self._machines[node] = Machine(
                self._X,
                self._y,
                np.full(len(self._y), self._C),
                self._X_out,
                C=self._C,
                gamma=float(self._gamma * np.exp(_SPACING * node)),
                reach=float(np.expm1(0.5 * _SPACING)) if self._rule == "scale" else 0.0,
            )
        return self._machines[node]

    def decide(self, Z: FloatArray) -> FloatArray:
        """Decision values of the machine itself at other points, shape ``(len(Z),)``."""
        return self.base.decide(Z - self._centre)

    def add(self, Z: FloatArray, y: FloatArray) -> Added:
        """Train with each of some points added; see `Machine.add`."""
        gamma = self.widths(Z)
        nodes = np.rint(np.log(gamma / self._gamma) / _SPACING).astype(np.int64)
        n = len(Z)
        whole = Added(np.empty((n, len(self._X_out))), np.empty(n), np.empty(n, dtype=bool))
        for node in np.unique(nodes).tolist():
            at_node = nodes == node
            added = self._machine(node).add(Z[at_node] - self._centre, y[at_node], gamma[at_node])
            whole.decision[at_node], whole.error[at_node] = added.decision, added.error
            whole.is_anew[at_node] = added.is_anew
        return whole


@dataclass(frozen=True, eq=False)
class Predictions:
    """What models say about the validation set; one row for each.

    Parameters
    ----------
    margins
        Log odds of class 1, or decision values if not calibrated, shape ``(n, n_validation)``.
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
        Training points, shape ``(k, d)``, and class codes 0 or 1, shape ``(k,)``.
    X_val
        The validation set, shape ``(n_validation, d)``.
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
        C: float,
        gamma: str | float,
        folds: CoupledFolds | None,
    ) -> None:
        self._y, self._folds = y, folds
        self._fold = np.full(len(y), -1) if folds is None else folds.assign(y)
        labels = np.where(y == 1, 1.0, -1.0)
        self._whole = GammaGrid(X, labels, X_val, C=C, gamma=gamma)
        self._held_out: list[tuple[IntArray, GammaGrid]] = []
        for fold in range(int(self._fold.max()) + 1):
            is_out = self._fold == fold
            if len(np.unique(y[~is_out])) < 2:
                raise ValueError("a machine would see one class only")
            grid = GammaGrid(X[~is_out], labels[~is_out], X[is_out], C=C, gamma=gamma)
            self._held_out.append((np.flatnonzero(is_out), grid))

    def base(self) -> Predictions:
        """Predictions of the model itself, one row."""
        machine = self._whole.base
        decision, error = machine.decision_out[None], np.array([machine.error])
        if self._folds is None:
            return Predictions(decision, _within(error, _SOLVED), np.zeros(1, dtype=bool))
        self._scores = np.empty(len(self._y))
        for out, grid in self._held_out:
            self._scores[out] = grid.base.decision_out
            error = np.maximum(error, grid.base.error)
        self._start: FloatArray | None = None
        return self._calibrate(decision, self._scores[None], self._y[None], error, np.zeros(1) > 0)

    def add(self, Z: FloatArray, y: AnyArray) -> Predictions:
        """Predictions of the model trained with each of some points added.

        Parameters
        ----------
        Z, y
            The points, shape ``(n, d)``, and their class codes, shape ``(n,)``.
        """
        labels = np.where(y == 1, 1.0, -1.0)
        added = self._whole.add(Z, labels)
        decision, error, is_anew = added.decision, added.error, added.is_anew
        if self._folds is None:
            return Predictions(decision, _within(error, _SOLVED), is_anew)

        k = len(self._y)
        fold_of_next = np.bincount(self._y, minlength=2) % self._folds.n_folds
        scores, codes = np.empty((len(y), k + 1)), np.empty((len(y), k + 1), dtype=np.int64)
        scores[:, :k], codes[:, :k], codes[:, k] = self._scores, self._y, y
        scores[:, k] = self._whole.decide(Z)  # of a fold that the point opens
        for fold, (out, grid) in enumerate(self._held_out):
            is_held = fold_of_next[y] == fold
            scores[is_held, k] = grid.decide(Z[is_held])
            joins = np.flatnonzero(~is_held)
            added = grid.add(Z[joins], labels[joins])
            scores[np.ix_(joins, out)] = added.decision
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
        zero, unit = scores.mean(axis=1, keepdims=True), scores.std(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ab, left = fit_sigmoids((scores - zero) / unit, codes == 1, start=self._start)
            margins = ab[:, :1] * ((decision - zero) / unit) + ab[:, 1:]
        self._start = ab[0] if self._start is None else self._start
        left[unit[:, 0] < _SPREAD] = np.inf
        slope = 2.0 * np.abs(ab[:, 0]) / np.maximum(unit[:, 0], _SPREAD)
        error = np.maximum(slope * _within(error, _SOLVED), _within(left, _SETTLED))
        return Predictions(margins, error, is_anew)


def _within(error: FloatArray, limit: float) -> FloatArray:
    """Return errors as they are, or inf where they are above the limit or nan."""
    return np.where(error <= limit, error, np.inf)
