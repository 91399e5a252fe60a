r"""One support vector machine with the RBF kernel, and the same with one more point, many times.

$f_D$ is trained once. For every added point $z$ with its own width $\gamma_z$, `Machine.add` gives
the decision values of $f_{D \cup z}$ at the rows that matter, and the largest violation of the
optimality conditions over all training points, computed afresh. Few training points near the
margin change their state; if another one does, the point is added again with all of them, and if
that does not settle either, its dual is solved from scratch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np

from apiece._base.batched import dot
from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray
from apiece.engines._svm_dual import (
    FREE,
    decision_error,
    middle_shift,
    solve_dual,
    tolerance,
    violations,
)
from apiece.engines._svm_kernel import (
    SERIES_ERROR,
    Rows,
    add_products,
    coefficients,
    kernel_terms,
    n_terms,
)
from apiece.engines._svm_pivot import Tableau
from apiece.engines._svm_settle import Additions, settle
from apiece.engines._svm_width import Widths, at, tail

_FEWEST_NEAR = 96  # rows besides the free ones that may change their state at first
_NEAR = 0.7  # such rows for each free one, if these are more
_MISSED = 1e-8  # share of its bound by which a weight may miss it in the end
_SINGULAR = 1e-8  # relative size of an eigenvalue below which half of the digits are lost
_ACCEPTED = 10  # tolerances by which a condition may be violated in the end
ROUNDING = 8.0 * float(np.finfo(np.float64).eps)  # of a kernel: its width, distance and power
_CHUNK = 2048  # rows at which kernels are evaluated at a time


@dataclass(frozen=True, eq=False)
class Added:
    """Machines with one more point each.

    Parameters
    ----------
    decision
        Decision values, shape ``(n_added, n_out)``.
    error
        By how much decision values may be off (`decision_error`), shape ``(n_added,)``.
    is_anew
        Which were solved from scratch, shape ``(n_added,)``.
    """

    decision: FloatArray
    error: FloatArray
    is_anew: BoolArray


class Machine:
    """A machine, trained on points of which equal ones of one class are joined.

    Parameters
    ----------
    X, y, bound
        Training points, centred, shape ``(n, d)``, labels ±1, and upper bounds of the weights,
        shape ``(n,)``.
    X_out
        Rows at which decision values are wanted, shape ``(n_out, d)``.
    C, gamma
        As in scikit-learn's ``SVC``; ``C`` bounds the weight of an added point.
    reach
        The largest relative change of gamma that will be asked for.
    start
        Weights near the optimum, of points that all differ; None if they may not, or to ask libsvm.
    """

    def __init__(
        self,
        X: Rows,
        y: FloatArray,
        bound: FloatArray,
        X_out: Rows,
        *,
        C: float,
        gamma: float,
        reach: float,
        start: FloatArray | None = None,
    ) -> None:
        self.X, self.y, self.bound = (
            (X, y, bound) if start is not None else _join_equal(X, y, bound)
        )
        self.X_out, self.C, self.gamma, self.reach = X_out, C, gamma, reach
        kernel = np.exp(-gamma * self.X.squared_distances(self.X))
        self.dual = solve_dual(kernel, self.y, self.bound, start)
        self.beta = self.y * self.dual.alpha  # signed weights
        self.rounding = float(ROUNDING * (1.0 + (kernel @ self.dual.alpha).max()))

    @cached_property
    def decision_out(self) -> FloatArray:
        """Decision values at the rows that are wanted, shape ``(n_out,)``."""
        return np.asarray(self._series_out[0] + (self.dual.b + self.dual.shift))

    @cached_property
    def error(self) -> float:
        r"""By how much decision values may be off.

        If free points are almost equal, rounding decides which are free. What is left is the
        bound by the duality gap, $\|f - f^*\|^2 \le 2g$, which is known to
        $\epsilon \sum_i \alpha_i$.
        """
        dual, (free, _) = self.dual, self._by_margin
        error = float(dual.error + self.amplification * (dual.violation + self.rounding))
        kernel = np.exp(-self.gamma * self.X[free].squared_distances(self.X[free]))
        if not len(free) or np.linalg.eigvalsh(kernel)[0] > _SINGULAR * len(free):
            return error
        gap = np.finfo(np.float64).eps * dual.alpha.sum()
        return float(error + np.sqrt(2.0 * gap))

    @cached_property
    def amplification(self) -> float:
        r"""How much larger errors of decision values can be than those at the free points.

        Decision values depend on those at the free points $S$ by
        $\delta f(x) = \sum_{i \in S} L_i(x) \, \delta f(x_i)$, and this is the largest
        $\sum_i |L_i(x)|$, at up to 2,048 of the rows that are wanted.
        """
        rows = self.X_out[:: -(-len(self.X_out) // _CHUNK) or 1]
        free, _ = self._by_margin
        kernel = np.exp(-self.gamma * rows.squared_distances(self.X[free]))
        return self._near.spread_of(kernel)

    def decide(self, X: Rows) -> FloatArray:
        """Decision values at other rows, shape ``(len(X),)``."""
        kernel = np.exp(-self.gamma * X.squared_distances(self.X))
        return np.asarray(kernel @ self.beta + (self.dual.b + self.dual.shift))

    @cached_property
    def _series(self) -> FloatArray:
        return self._series_at(self.X)

    @cached_property
    def _series_out(self) -> FloatArray:
        return self._series_at(self.X_out)

    def _series_at(self, X: Rows) -> FloatArray:
        """Series in r of the weighted sum of kernels, shape ``(n_terms, len(X))``."""
        support = np.flatnonzero(self.beta)
        n = int(n_terms(np.array(self.reach), SERIES_ERROR))
        series = np.empty((n, len(X)))
        for rows in _chunks(len(X)):
            x = self.gamma * X[rows].squared_distances(self.X[support])
            for j, term in enumerate(kernel_terms(x, n)):
                series[j, rows] = term @ self.beta[support]
        return series

    @cached_property
    def _by_margin(self) -> tuple[IntArray, IntArray]:
        """Positions of the free points, and of the others by their distance to the margin."""
        is_free = self.dual.state == FREE
        others = np.flatnonzero(~is_free)
        order = np.argsort(np.abs(self.dual.excess[others]), kind="stable")
        return np.flatnonzero(is_free), others[order]

    @cached_property
    def _near(self) -> Tableau:
        free, others = self._by_margin
        n_near = max(_FEWEST_NEAR, int(_NEAR * len(free)))
        return self._tableau(np.concatenate([free, others[:n_near]]))

    def _tableau(self, rows: IntArray) -> Tableau:
        return Tableau(
            self.dual,
            rows,
            x=self.gamma * self.X[rows].squared_distances(self.X[rows]),
            y=self.y[rows],
            bound=np.append(self.bound[rows], self.C),
            n_terms=int(n_terms(np.array(self.reach), SERIES_ERROR)),
        )

    def add(self, Z: Rows, y: FloatArray, gamma: FloatArray) -> Added:
        """Train with each of some points added.

        Parameters
        ----------
        Z, y
            The points, centred like ``X``, shape ``(n_added, d)``, and their labels ±1.
        gamma
            The kernel's width with each of them, shape ``(n_added,)``.
        """
        order = np.argsort(-np.abs(gamma / self.gamma - 1.0), kind="stable")
        Z, y, gamma = Z[order], y[order], gamma[order]
        decision, error = np.empty((len(y), len(self.X_out))), np.empty(len(y))
        limit, tableau, poor = self.accepted, self._near, np.arange(len(y))
        while len(poor):
            added = self._add(tableau, Z[poor], y[poor], gamma[poor])
            decision[poor], error[poor], others = added
            poor = poor[error[poor] > limit]
            if not len(others):
                break
            tableau = self._tableau(np.concatenate([tableau.rows, others]))
        for i in poor:
            again = Machine(
                Rows(np.concatenate([self.X.X, Z.X[i : i + 1]])),
                np.append(self.y, y[i]),
                np.append(self.bound, self.C),
                self.X_out,
                C=self.C,
                gamma=float(gamma[i]),
                reach=0.0,
            )
            decision[i], error[i] = again.decision_out, again.error
        is_anew = np.zeros(len(y), dtype=bool)
        is_anew[poor] = True
        back = np.argsort(order)
        return Added(decision[back], error[back], is_anew[back])

    def widen(self, gamma: FloatArray) -> Added:
        """Train on the same points at other widths of the kernel, shape ``(n,)``."""
        r = gamma / self.gamma - 1.0
        n = len(r)
        decision, error = np.empty((n, len(self.X_out))), np.empty(n)
        is_anew = np.zeros(n, dtype=bool)
        is_same = r == 0.0
        decision[is_same], error[is_same] = self.decision_out, self.error
        others = np.flatnonzero(~is_same)
        if not len(others):
            return Added(decision, error, is_anew)
        x = self.gamma * self.X.squared_distances(self.X)
        widths = Widths(self.dual, x, self.y, self.bound)
        found, lost = widths.stretches(r[others])
        limit = self.accepted
        at_rows = self._out_of([stretch.beta for stretch in found])
        for stretch, out in zip(found, at_rows, strict=True):
            of = others[stretch.of]
            alpha, excess, of_excess, _ = widths.conditions(stretch, r[of])
            shift, missed = middle_shift(alpha, excess, self.y, self.bound)
            decision[of] = at(out, r[of]) + (at(stretch.b[:, None], r[of]) + shift[:, None])
            error[of] = missed + decision_error(alpha, of_excess, stretch.state, self.bound)
            missing = of_excess.max(axis=1) + stretch.missing(r[of])
            error[of] += self.amplification * (missing + self.rounding) + tail(out, r[of])
        poor = np.concatenate([others[lost], np.flatnonzero(~is_same & ~(error <= limit))])
        for i in np.unique(poor):
            again = Machine(
                self.X, self.y, self.bound, self.X_out, C=self.C, gamma=float(gamma[i]), reach=0.0
            )
            decision[i], error[i], is_anew[i] = again.decision_out, again.error, True
        return Added(decision, error, is_anew)

    @property
    def accepted(self) -> float:
        """Error of decision values up to which a machine counts as solved."""
        return _ACCEPTED * tolerance(self.bound) + 4.0 * self.amplification * self.rounding

    def _out_of(self, betas: list[FloatArray]) -> list[FloatArray]:
        """Series of the sums of kernels at the rows that are wanted, from series of weights."""
        series = [np.zeros((len(beta), len(self.X_out))) for beta in betas]
        if not betas:
            return series
        for rows in _chunks(len(self.X_out)):
            x = self.gamma * self.X.squared_distances(self.X_out[rows])
            for j, term in enumerate(kernel_terms(x, max(map(len, betas)))):
                for beta, out in zip(betas, series, strict=True):
                    if len(beta) > j:
                        out[j:, rows] += (beta[: len(beta) - j] * (-1) ** j / factorial(j)) @ term
        return series

    def _add(
        self, tableau: Tableau, Z: Rows, y: FloatArray, gamma: FloatArray
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Add points, sorted by falling change of gamma.

        Returns decision values; by how much they may be off, inf where a point did not settle; and
        training points besides the tableau's rows whose state is no longer right for some point.
        """
        r = gamma / self.gamma - 1.0
        x = self.gamma * Z.squared_distances(self.X)
        kernel = np.exp(-x)
        gap = kernel * np.expm1(-r[:, None] * x)
        base_change = np.empty((len(y), len(tableau.rows) + 1))
        base_change[:, :-1] = (
            coefficients(r, len(self._series))[:, 1:] @ self._series[1:, tableau.rows]
        )
        base_change[:, :-1] *= tableau.y
        base_change[:, -1] = y * (gap @ self.beta)
        start = Additions.begin(
            tableau,
            y=y,
            r=r,
            kernel=kernel[:, tableau.rows],
            gap=gap[:, tableau.rows],
            alone=y * (kernel @ self.beta + self.dual.b) - 1.0,
            base_change=base_change,
        )
        additions, is_settled = settle(tableau, start)
        kernel += gap
        dbeta = tableau.y * (additions.alpha[:, :-1] - tableau.alpha)
        error, shift, of_excess = self._check(tableau, additions, kernel, dbeta)

        beta_z = y * additions.alpha[:, -1]
        decision = self.decide_with(Z, gamma, tableau.rows, dbeta, beta_z)
        decision += (self.dual.b + additions.db + shift)[:, None]
        is_settled &= np.isfinite(decision).all(axis=1) & np.isfinite(error)
        of_excess[:, tableau.rows] = 0.0
        worst = of_excess[is_settled, :-1].max(axis=0, initial=0.0)
        others = np.flatnonzero(worst > _ACCEPTED * tolerance(self.bound))
        return decision, np.where(is_settled, error, np.inf), others

    def decide_with(
        self,
        Z: Rows,
        gamma: FloatArray,
        at: IntArray,
        dbeta: FloatArray,
        beta_z: FloatArray,
    ) -> FloatArray:
        """Decision values with points added, less the intercept, shape ``(n_added, n_out)``.

        From the kernel's width with each of them, the changes of signed weights at some training
        points, and the signed weight of the added point.
        """
        decision = self._sums(self.X_out, self._series_out, at, dbeta, gamma / self.gamma - 1.0)
        for rows in _chunks(len(self.X_out)):
            kernel = Z.squared_distances(self.X_out[rows])
            kernel *= -gamma[:, None]
            np.exp(kernel, out=kernel)
            kernel *= beta_z[:, None]
            decision[:, rows] += kernel
        return decision

    def _check(
        self, tableau: Tableau, additions: Additions, kernel: FloatArray, dbeta: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute the excesses of all training points and the added one afresh.

        Returns by how much decision values may be off, inf where weights miss bounds; what the
        intercept has beyond that of the excesses; and the violation of each training point, and the
        added one, shape ``(n_added, n + 1)``.
        """
        n, y = len(self.y), additions.y
        alpha = self._spread(tableau, self.dual.alpha, additions.alpha)
        state = self._spread(tableau, self.dual.state, additions.state)
        labels = np.concatenate([np.broadcast_to(self.y, (len(y), n)), y[:, None]], axis=1)
        beta_z, bound = y * additions.alpha[:, -1], np.append(self.bound, self.C)
        excess = np.empty_like(alpha)
        excess[:, :n] = self._sums(self.X, self._series, tableau.rows, dbeta, additions.r)
        excess[:, :n] += kernel * beta_z[:, None]
        excess[:, n] = kernel @ self.beta + beta_z
        excess[:, n] += dot(kernel[:, tableau.rows], dbeta)
        excess += (self.dual.b + additions.db)[:, None]
        excess *= labels
        excess -= 1.0
        of_excess, of_alpha = violations(alpha, excess, state, bound)
        balance = np.abs(dot(labels, alpha)) / bound.max()
        is_feasible = np.maximum(of_alpha.max(axis=1), balance) <= _MISSED
        shift, missed = middle_shift(alpha, excess, labels, bound)
        error = missed + decision_error(alpha, of_excess, state, bound)
        rounding = self.rounding + ROUNDING * (np.abs(dbeta).sum(axis=1) + additions.alpha[:, -1])
        error += self.amplification * (of_excess.max(axis=1) + rounding)
        error = np.where(is_feasible, error, np.inf)
        return error, shift, of_excess

    def _spread(self, tableau: Tableau, base: AnyArray, changed: AnyArray) -> AnyArray:
        """Put what was found for the tableau's rows and the added point in among all the others."""
        whole = np.empty((len(changed), len(base) + 1), dtype=changed.dtype)
        whole[:, :-1] = base
        whole[:, tableau.rows] = changed[:, :-1]
        whole[:, -1] = changed[:, -1]
        return whole

    def _sums(
        self, X: Rows, series: FloatArray, at: IntArray, dbeta: FloatArray, r: FloatArray
    ) -> FloatArray:
        """Sums of kernels of the training points with their new weights, ``(n_added, len(X))``.

        Relative changes ``r`` of gamma fall in size.
        """
        sums = coefficients(r, len(series)) @ series
        n = int(n_terms(r, SERIES_ERROR).max(initial=1))
        for rows in _chunks(len(X)):
            x = self.gamma * self.X[at].squared_distances(X[rows])
            add_products(sums[:, rows], dbeta, r, kernel_terms(x, n))
        return sums


def _join_equal(X: Rows, y: FloatArray, bound: FloatArray) -> tuple[Rows, FloatArray, FloatArray]:
    """Join equal points of one class into one, whose weight is bounded by the sum."""
    _, first, member = np.unique(
        np.column_stack([X.X, y]), axis=0, return_index=True, return_inverse=True
    )
    if len(first) == len(y):
        return X, y, bound
    order = np.argsort(first)
    total = np.bincount(member.ravel(), weights=bound)[order].astype(np.float64)
    return X[first[order]], y[first[order]], total


def _chunks(n: int) -> Iterator[slice]:
    for start in range(0, n, _CHUNK):
        yield slice(start, min(start + _CHUNK, n))
