r"""A machine at other widths of its kernel, with no point added: a power series of its optimum.

With the free set $F$ fixed and a relative change $r$ of gamma, signed weights and intercept solve

$$K_{FF}(r) \, \beta_F + b = y_F - K_{FU}(r) \, \beta_U, \qquad 1'\beta = 0,
  \qquad K(r) = \sum_j \frac{(-r)^j}{j!} K_j .$$

Their power series in $r$ follow term by term from one factorisation of $K_{FF}(0)$, and so do those
of the decision values. A series serves all changes at which every state is right; where one is
wrong it is exchanged, and the series of the new states serves the next stretch of widths.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs

from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray
from apiece.engines._svm_dual import FREE, LOWER, UPPER, Dual, bordered, tolerance, violations
from apiece.engines._svm_kernel import SERIES_ERROR, n_terms

_MOST_TERMS = 24
_MOST_ROUNDS = 12  # exchanges before the states at a width are given up
_MOST_SERIES = 60
_SLACK = 1e-9  # share of its bound by which a weight may miss it
_TAIL = 1e-3  # share of the tolerance that the last terms of a series may have
_CORRECTIONS = 2  # corrections of a solution by its residual


@dataclass(frozen=True, eq=False)
class Stretch:
    """Power series in the change of gamma, under one set of states.

    Parameters
    ----------
    of
        Which of the widths it serves.
    state
        Shape ``(n,)``.
    beta, b, sums
        Coefficients of signed weights and intercept, and of the decision values at the training
        points, shape ``(n_terms, n)``, ``(n_terms,)`` and ``(n_terms, n)``.
    """

    of: IntArray
    state: AnyArray
    beta: FloatArray
    b: FloatArray
    sums: FloatArray

    def missing(self, r: FloatArray) -> FloatArray:
        """By how much excesses may be off since the series end, shape ``(len(r),)``.

        Kernels are at most 1, so that weights count with their sum.
        """
        weights = np.abs(self.beta).sum(axis=1, keepdims=True)
        return np.maximum(tail(weights, r), tail(self.sums, r))


def tail(coefficients: FloatArray, r: FloatArray) -> FloatArray:
    """Size of the last term of series in ``r``, the largest of all, shape ``(len(r),)``.

    The coefficient before it counts too, in case that the last one is small by chance.
    """
    largest = float(np.abs(coefficients[-2:]).max())
    return np.asarray(largest * np.abs(r) ** (len(coefficients) - 1))


def at(coefficients: FloatArray, r: FloatArray) -> FloatArray:
    """Values of series in ``r``, shape ``(len(r), ...)``."""
    return np.asarray(r[:, None] ** np.arange(len(coefficients)) @ coefficients)


class Widths:
    """A machine's optimum at other widths.

    Parameters
    ----------
    dual
        The optimum at the machine's width.
    x
        Squared distances times gamma between the training points, shape ``(n, n)``.
    y, bound
        Labels ±1 and upper bounds of the weights, shape ``(n,)``.
    """

    def __init__(self, dual: Dual, x: FloatArray, y: FloatArray, bound: FloatArray) -> None:
        self._dual, self._y, self._bound = dual, y, bound
        self._x, self._terms = x, [np.exp(-x)]
        self._limit = _TAIL * tolerance(bound)

    def _term(self, j: int) -> FloatArray:
        r"""Return the kernel's term, $(-1)^j / j! \; K_j$."""
        while len(self._terms) <= j:
            self._terms.append(self._terms[-1] * (self._x / -len(self._terms)))
        return self._terms[j]

    def stretches(self, r: FloatArray) -> tuple[list[Stretch], IntArray]:
        """Series that serve the given changes of gamma, and the changes that none serves."""
        found: list[Stretch] = []
        near, states = [0.0], [self._dual.state]
        left, lost = np.arange(len(r)), []
        n_series = 0
        while len(left):
            goal = left[np.abs(r[left]).argmin()]
            state = states[int(np.abs(np.array(near) - r[goal]).argmin())]
            for _ in range(_MOST_ROUNDS):
                if n_series == _MOST_SERIES or not (state == FREE).any():
                    break
                series = self._expand(state, float(np.abs(r[left]).max()))
                n_series += 1
                if series is None:
                    break
                is_wrong = self._wrong(series, r[left])
                is_served = ~is_wrong.any(axis=1)
                is_served &= series.missing(r[left]) <= self._limit
                if is_served.any():
                    served = left[is_served]
                    found.append(Stretch(served, series.state, series.beta, series.b, series.sums))
                    near += [float(r[served].min()), float(r[served].max())]
                    states += [state, state]
                at_goal = is_wrong[left == goal][0]
                left = left[~is_served]
                if goal not in left or not at_goal.any():
                    break
                state = self._exchange(series, r[goal], at_goal)
            if goal in left:
                lost.append(goal)
                left = left[left != goal]
        return found, np.array(lost, dtype=np.int64)

    def _expand(self, state: AnyArray, reach: float) -> Stretch | None:
        """Series under given states, long enough for changes up to ``reach``; None if singular."""
        y, free = self._y, np.flatnonzero(state == FREE)
        K, place = self._term(0), np.append(0, 1 + free)
        held = np.where(state == UPPER, y * self._bound, 0.0)
        matrix = bordered(K[np.ix_(free, free)], np.ones(len(free)))
        lu, pivots, _ = dgetrf(matrix + np.diag(np.append(0.0, self._dual.jitter[free])))
        fewest = int(n_terms(np.array(reach), SERIES_ERROR))
        beta, sums = np.zeros((_MOST_TERMS, len(y))), np.empty((_MOST_TERMS, len(y)))
        beta[0], b = held, np.empty(_MOST_TERMS)
        goal = np.append(-held.sum(), y)
        for m in range(_MOST_TERMS):
            known = K @ held if m == 0 else self._term(1) @ beta[m - 1]
            for j in range(2, m + 1):
                known += self._term(j) @ beta[m - j]
            rhs = -np.append(0.0, known)[place]
            if m == 0:
                rhs += goal[place]
            solution = dgetrs(lu, pivots, rhs)[0]
            for _ in range(_CORRECTIONS):
                solution += dgetrs(lu, pivots, rhs - matrix @ solution)[0]
            b[m] = solution[0]
            beta[m, free] = solution[1:]
            sums[m] = known + K[:, free] @ solution[1:] + b[m]
            if not np.isfinite(sums[m]).all():
                return None
            made = slice(m + 1)
            series = Stretch(np.empty(0, dtype=np.int64), state, beta[made], b[made], sums[made])
            if m + 1 >= max(2, fewest) and series.missing(np.array([reach]))[0] <= self._limit:
                break
        return series

    def conditions(
        self, series: Stretch, r: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Weights and excesses at some widths, and how far they are from their conditions."""
        alpha = self._y * at(series.beta, r)
        excess = self._y * at(series.sums, r) - 1.0
        return alpha, excess, *violations(alpha, excess, series.state, self._bound)

    def _wrong(self, series: Stretch, r: FloatArray) -> BoolArray:
        _, _, of_excess, of_alpha = self.conditions(series, r)
        is_free = series.state == FREE
        return np.where(is_free, ~(of_alpha <= _SLACK), ~(of_excess <= tolerance(self._bound)))

    def _exchange(self, series: Stretch, r: float, is_wrong: BoolArray) -> AnyArray:
        alpha = self._y * at(series.beta, np.array([r]))[0]
        end = np.where(alpha < 0.5 * self._bound, LOWER, UPPER)
        return np.where(is_wrong, np.where(series.state == FREE, end, FREE), series.state)
