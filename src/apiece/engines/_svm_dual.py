r"""The dual of one support vector machine, solved to the last digit.

With labels $y_i = \pm 1$ and $Q_{ij} = y_i y_j K(x_i, x_j)$ the machine minimises

$$\tfrac12 \alpha' Q \alpha - 1'\alpha, \qquad 0 \le \alpha_i \le C_i, \quad y'\alpha = 0,$$

and decides by the sign of $f(x) = \sum_i y_i \alpha_i K(x_i, x) + b$. With the *excess*
$e_i = y_i f(x_i) - 1$ the optimum is where $e_i \ge 0$ for $\alpha_i = 0$, $e_i \le 0$ for
$\alpha_i = C_i$ and $e_i = 0$ for those between, the *free* ones. The bound is $C_i = m_i C$ for
$m_i$ equal points of one class, which count as one here: their weights would not be unique. libsvm
comes close; solving the linear equations of the free set, whichever that turns out to be, goes the
rest of the way.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning, lu_factor, lu_solve

from apiece._base.typing import AnyArray, FloatArray, IntArray

LOWER, FREE, UPPER = 0, 1, 2
_JITTER = 1e-10  # on the diagonal, so that the equations of points close together can be solved
_CLOSE = 0.5  # sum of a point's kernel with the others below which it needs none of that
_SLACK = 1e-9  # share of its bound by which a free weight may be outside
_AT_BOUND = 1e-7  # share of its bound by which a weight at the bound may miss it
_CORRECTIONS = 2  # corrections of a solution by its residual
_MOST_SETS = 30  # active sets tried before libsvm's own answer is kept
_LOOSE, _TIGHT = 1e-5, 1e-9  # tolerances of libsvm, whose states start the exchange
_MOST_STEPS = 1_000_000  # of libsvm


@dataclass(frozen=True, eq=False)
class Dual:
    """An optimum of the dual.

    Parameters
    ----------
    alpha, excess
        Weights and excesses of the training points, shape ``(n,)``.
    state
        ``LOWER``, ``FREE`` or ``UPPER`` for each, shape ``(n,)``; at least one is ``FREE``, if
        need be one whose weight is at a bound and whose excess is zero.
    b
        The intercept that goes with the excesses.
    violation
        The largest violation of the conditions, as an excess.
    error
        From `decision_error`: by how much decision values may be off.
    shift
        From `middle_shift`: what the intercept of the decision values has beyond ``b``.
    jitter
        What is added to the diagonal of the kernel while equations are solved, shape ``(n,)``.
    """

    alpha: FloatArray
    excess: FloatArray
    state: AnyArray
    b: float
    violation: float
    error: float
    shift: float
    jitter: FloatArray


def jitter(others: FloatArray, bound: FloatArray) -> FloatArray:
    """What is added to the diagonal of the kernel while equations are solved.

    It changes no excess by more than 1e-10, and solving for what it leaves takes that out too,
    except in directions in which the kernel is almost flat. Nothing where a point's kernel with all
    ``others`` sums to little: its equations are sound.
    """
    return np.where(others > _CLOSE, _JITTER / max(1.0, float(bound.max())), 0.0)


def tolerance(bound: FloatArray) -> float:
    """The violation at which a dual counts as solved.

    Where weights are small so are the differences of decision values, and where they are large
    rounding is.
    """
    C = float(bound.max())
    return 1e-9 * min(1.0, C) + 1e-13 * C


def violations(
    alpha: FloatArray, excess: FloatArray, state: AnyArray, bound: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """How far each entry is from its conditions; all of shape ``(..., n)``, ``bound`` ``(n,)``.

    Returns how far the excess is from what the state allows, and the weight from its bounds as a
    share of them, both at least 0.
    """
    of_excess = np.where(state == LOWER, -excess, np.where(state == UPPER, excess, np.abs(excess)))
    of_alpha = np.maximum(-alpha, alpha - bound) / bound
    return np.maximum(of_excess, 0.0), np.maximum(of_alpha, 0.0)


def decision_error(
    alpha: FloatArray, of_excess: FloatArray, state: AnyArray, bound: FloatArray
) -> FloatArray:
    r"""Return by how much decision values may be off, from the violations of the conditions.

    With the right states the violations of the free points are passed on as they are. A state that
    is wrong by a little may hide a large change of weights along directions that the kernel hardly
    sees; then $\|f - f^*\|^2$ is at most twice the duality gap, $\sum_i C_i v_i$ over the points
    at their bounds. What is within the tolerance counts as it is: the intercept may be off by it.
    A free weight that misses its bounds belongs at one of them, and moving it there changes
    decision values by as much.

    Parameters
    ----------
    alpha, of_excess, state
        Weights, violations and states, shape ``(..., n)``.
    bound
        Upper bounds of the weights, shape ``(n,)``.
    """
    is_free = state == FREE
    least = 1e-15 * (1.0 + alpha.sum(axis=-1, keepdims=True)) + tolerance(bound)
    hidden = np.where(is_free | (of_excess <= least), 0.0, bound * of_excess).sum(axis=-1)
    error = np.where(is_free | (of_excess <= least), of_excess, 0.0).max(axis=-1)
    error += np.sqrt(2.0 * hidden)
    error += np.maximum(np.maximum(-alpha, alpha - bound), 0.0).sum(axis=-1)
    return np.asarray(error, dtype=np.float64)


def middle_shift(
    alpha: FloatArray, excess: FloatArray, y: FloatArray, bound: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Return what brings the intercept to the middle of its interval, where it has one.

    If no weight lies strictly between its bounds, every $b + t$ with

    $$\max_{i \in I} -y_i e_i \le t \le \min_{i \in J} -y_i e_i$$

    is optimal, where $I$ are the points of class $+1$ at 0 and of class $-1$ at their bound,
    and $J$ the others. libsvm takes the middle, unless rounding leaves it a weight of 1e-18 that it
    takes for free. If weights do lie between, some of them are of $I$ and some of $J$, since
    $y'\alpha = 0$, and their excesses are zero: the interval is a point. So weights that all miss
    their bounds by a little belong there if the interval is longer than moving them can make it.

    Parameters
    ----------
    alpha, excess
        Shape ``(..., n)``.
    y, bound
        Labels ±1 and upper bounds, of shapes that broadcast to theirs.

    Returns
    -------
    tuple of FloatArray
        The shift $t$, 0 where a weight lies between; and by how much decision values may be off
        since weights miss their bounds or rounding hides whether they do; both of shape ``(...)``.
    """
    share = alpha / bound
    is_between = ((share > _AT_BOUND) & (share < 1.0 - _AT_BOUND)).any(axis=-1)
    if is_between.all():
        return np.zeros(is_between.shape), np.zeros(is_between.shape)
    moved = np.minimum(np.abs(alpha), np.abs(bound - alpha)).sum(axis=-1)
    from_below = (y > 0) != (share > 0.5)
    low = np.where(from_below, -y * excess, -np.inf).max(axis=-1)
    high = np.where(from_below, np.inf, -y * excess).min(axis=-1)
    has_interval = ~is_between & np.isfinite(low) & np.isfinite(high)
    has_middle = has_interval & (high - low > 2.0 * moved)
    shift = 0.5 * np.where(has_middle, low + high, 0.0)
    length = np.where(has_interval, np.maximum(high - low, 0.0), 0.0)
    return shift, np.where(has_middle, moved, length)


def solve_dual(
    kernel: FloatArray, y: FloatArray, bound: FloatArray, start: FloatArray | None = None
) -> Dual:
    """Solve the dual for one kernel matrix.

    Parameters
    ----------
    kernel
        Kernel between the training points, shape ``(n, n)``.
    y
        Labels ±1, both present, shape ``(n,)``.
    bound
        Upper bounds of the weights, shape ``(n,)``.
    start
        Weights near the optimum, from `libsvm_of_pairs`; None to ask libsvm for them.
    """
    added = jitter(kernel.sum(axis=1) - 1.0, bound)
    if start is not None:
        dual = _polish(kernel, y, bound, _states(start, bound), added)
        if dual is not None:
            return dual
    for tol in (_LOOSE, _TIGHT):
        alpha = _libsvm(kernel, y, bound, tol)
        dual = _polish(kernel, y, bound, _states(alpha, bound), added)
        if dual is not None:
            return dual
    return _as_it_is(kernel, y, alpha, bound, added)


def _libsvm(kernel: FloatArray, y: FloatArray, bound: FloatArray, tol: float) -> FloatArray:
    C = float(bound.min())
    model = _fitted(kernel, y, C, tol, bound / C)
    alpha = np.zeros(len(y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return np.minimum(alpha, bound)


def libsvm_of_pairs(kernel: FloatArray, y: IntArray, C: float) -> dict[tuple[int, int], FloatArray]:
    """Return libsvm's weights for each pair of several classes.

    Parameters
    ----------
    kernel
        Kernel between points that all differ, shape ``(n, n)``.
    y
        Class codes from 0 on, all of them present, shape ``(n,)``.
    C
        Upper bound of the weights.

    Returns
    -------
    dict
        For each pair the weights of the points of its classes, in their order.
    """
    model = _fitted(kernel, y, C, _LOOSE, None)
    n_classes = len(model.classes_)
    alpha = np.zeros((n_classes, len(y)))  # against each other class
    weights, code = np.abs(model.dual_coef_), y[model.support_]
    for other in range(n_classes):
        row = np.where(code > other, other, other - 1)  # libsvm leaves out a point's own class
        alpha[other, model.support_] = weights[row, np.arange(len(code))]
    of_pair = {}
    for i, j in combinations(range(n_classes), 2):
        of = np.flatnonzero((y == i) | (y == j))
        of_pair[i, j] = np.minimum(np.where(y[of] == i, alpha[j, of], alpha[i, of]), C)
    return of_pair


def _fitted(
    kernel: FloatArray, y: AnyArray, C: float, tol: float, weight: FloatArray | None
) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import SVC

    model = SVC(C=C, kernel="precomputed", tol=tol, max_iter=_MOST_STEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the violation tells it better
        return model.fit(kernel, y, sample_weight=weight)


def _states(alpha: FloatArray, bound: FloatArray) -> IntArray:
    share = alpha / bound
    return np.where(share <= 1e-12, LOWER, np.where(share >= 1.0 - 1e-12, UPPER, FREE))


def _polish(
    K: FloatArray, y: FloatArray, bound: FloatArray, state: AnyArray, added: FloatArray
) -> Dual | None:
    """Solve the equations of the free set, exchange the violators, and repeat until none is left.

    After three exchanges without progress only the last violator is exchanged. None if that does
    not lead to the optimum.
    """
    tol, fewest, patience = tolerance(bound), len(y) + 1, 3
    for _ in range(_MOST_SETS):
        if not (state == FREE).any():
            alpha = np.where(state == UPPER, bound, 0.0)
            dual = _as_it_is(K, y, alpha, bound, added)
            is_optimal = dual.violation <= tol and abs(alpha @ y) <= _SLACK * bound.max()
            return dual if is_optimal else None
        alpha, b = _solve_free(K, y, state, bound, added)
        if not np.isfinite(alpha).all():
            return None
        excess = y * (K @ (y * alpha) + b) - 1.0
        of_excess, of_alpha = violations(alpha, excess, state, bound)
        is_free = state == FREE
        wrong = np.flatnonzero(np.where(is_free, of_alpha > _SLACK, of_excess > tol))
        if not len(wrong):
            error = float(decision_error(alpha, of_excess, state, bound))
            alpha = np.clip(alpha, 0.0, bound)
            shift, missed = map(float, middle_shift(alpha, excess, y, bound))
            worst = float(of_excess.max())
            return Dual(alpha, excess, state, b, worst, error + missed, shift, added)
        if len(wrong) < fewest:
            fewest, patience = len(wrong), 3
        elif patience:
            patience -= 1
        else:
            wrong = wrong[-1:]
        moved = np.where(is_free, np.where(alpha < 0.5 * bound, LOWER, UPPER), FREE)
        state = state.copy()
        state[wrong] = moved[wrong]
    return None


def _solve_free(
    K: FloatArray, y: FloatArray, state: AnyArray, bound: FloatArray, added: FloatArray
) -> tuple[FloatArray, float]:
    """Weights and intercept when the free excesses are zero and the other weights at bounds."""
    alpha = np.where(state == UPPER, bound, 0.0)
    free = np.flatnonzero(state == FREE)
    matrix = bordered(K[np.ix_(free, free)], np.ones(len(free)))
    rhs = np.concatenate([[-(y * alpha).sum()], y[free] - K[free] @ (y * alpha)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)  # a bad solution is seen by its excess
        factor = lu_factor(matrix + np.diag(np.append(0.0, added[free])), check_finite=False)
        x = lu_solve(factor, rhs, check_finite=False)
        for _ in range(_CORRECTIONS):
            x += lu_solve(factor, rhs - matrix @ x, check_finite=False)
    alpha[free] = y[free] * x[1:]
    return alpha, float(x[0])


def bordered(block: FloatArray, edge: FloatArray) -> FloatArray:
    """Return the matrix with ``edge`` as its first row and column, and 0 in the corner."""
    matrix = np.zeros((len(edge) + 1, len(edge) + 1))
    matrix[0, 1:] = matrix[1:, 0] = edge
    matrix[1:, 1:] = block
    return matrix


def _as_it_is(
    K: FloatArray, y: FloatArray, alpha: FloatArray, bound: FloatArray, added: FloatArray
) -> Dual:
    """Take weights as they are, with the intercept that suits them best."""
    state = _states(alpha, bound)
    gap = y - K @ (y * alpha)  # the intercept that would bring each excess to zero
    is_free = state == FREE
    if is_free.any():
        b = float(gap[is_free].mean())
    else:
        # at an end of its interval one excess is zero: that point counts as free
        from_below = (y > 0) == (state == LOWER)
        one = int(np.where(from_below, gap, -np.inf).argmax())
        state[one], b = FREE, float(gap[one])
    excess = y * (b - gap)
    shift, missed = map(float, middle_shift(alpha, excess, y, bound))
    worst = float(violations(alpha, excess, state, bound)[0].max())
    gap = alpha @ np.maximum(excess, 0.0) + (bound - alpha) @ np.maximum(-excess, 0.0)
    gap -= 1e-15 * bound.sum() * (1.0 + alpha.sum())  # rounding
    error = worst + missed + float(np.sqrt(2.0 * np.maximum(gap, 0.0)))
    return Dual(alpha, excess, state, b, worst, error, shift, added)
