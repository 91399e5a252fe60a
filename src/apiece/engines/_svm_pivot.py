r"""The equations of a support vector machine, pivoted so that a few changes of state are cheap.

Adding a point changes the state (at 0, free, at $C$) of few training points. Let $S$ be the free
ones of the machine that is there, and $N$ others near its margin. All changes are linear in what
is held fixed, the excesses of $S$ and the weights of $N$:

$$\begin{pmatrix} d\alpha_S \\ de_N \\ db \end{pmatrix}
  = T \begin{pmatrix} de_S \\ d\alpha_N \end{pmatrix} + c_z \alpha_z ,$$

where the *tableau* $T$ (a principal pivot of $Q$ bordered by the intercept) is computed once and
$c_z$ belongs to the added point $z$. For every $z$, the few entries $F$ whose state differs from
that of the machine solve a small system with the matrix $T_{FF}$, bordered by $z$; the rest follows
from a product with $T$. So all points of a batch take one step together.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from apiece._base.batched import dot
from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.engines._svm_dual import FREE, UPPER, Dual, bordered
from apiece.engines._svm_kernel import kernel_terms

_AT_ONCE = 128  # small systems of similar size that are solved together


class Tableau:
    """The pivoted equations of a machine on the rows that matter.

    Parameters
    ----------
    dual
        The machine's optimum.
    rows
        Positions among the training points: the free ones, then others, shape ``(w,)``.
    x, y
        Squared distances times gamma between these rows, shape ``(w, w)``, and their labels ±1.
    bound
        Upper bounds of the weights of the rows, then of an added point, shape ``(w + 1,)``.
    n_terms
        How many terms of the kernel are needed.
    """

    def __init__(
        self,
        dual: Dual,
        rows: IntArray,
        *,
        x: FloatArray,
        y: FloatArray,
        bound: FloatArray,
        n_terms: int,
    ) -> None:
        self.rows, self.y, self.bound = rows, y, bound
        self.alpha, self.excess, self.state = dual.alpha[rows], dual.excess[rows], dual.state[rows]
        self.jitter = dual.jitter[rows]
        self.n_free, w = int((self.state == FREE).sum()), len(rows)
        self._source = kernel_terms(x, n_terms)
        first = next(self._source).copy()
        self._terms: list[FloatArray] = []
        s = self.n_free
        Q = y[:, None] * first * y
        Q[np.diag_indices(w)] += self.jitter
        # the free block bordered by the intercept, inverted, and the others' equations times that
        self._inverse = _invert(bordered(Q[:s, :s], y[:s]))
        others = np.concatenate([y[s:, None], Q[s:, :s]], axis=1)
        self._mixed = mixed = others @ self._inverse
        # transposed: rows are what is held fixed, columns what follows, the intercept last
        self._T = T = np.empty((w, w + 1))
        T[:s, :s], T[s:, :s] = self._inverse[1:, 1:], -mixed[:, 1:]
        T[:s, s:w], T[s:, s:w] = mixed[:, 1:].T, Q[s:, s:] - mixed @ others.T
        T[:s, w], T[s:, w] = self._inverse[0, 1:], -mixed[:, 0]

    def terms(self) -> Iterator[FloatArray]:
        """Yield the kernel's terms from the second on; they are kept once they were needed."""
        yield from self._terms
        for term in self._source:
            self._terms.append(term.copy())
            yield self._terms[-1]

    def enter(
        self, kernel: FloatArray, y: FloatArray, added: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """What a unit of weight of each added point does.

        From the kernel between added points and rows, shape ``(n, w)``, the points' labels ±1 and
        what is added to their own kernel, to the effect on the rows and the intercept, shape
        ``(n, w + 1)``, and on the point's own excess, shape ``(n,)``.
        """
        w, s = len(self.rows), self.n_free
        q = np.concatenate([y[:, None], kernel * self.y * y[:, None]], axis=1)
        response = q[:, : s + 1] @ self._inverse
        c = np.empty((len(y), w + 1))
        c[:, :s], c[:, w] = -response[:, 1:], -response[:, 0]
        c[:, s:w] = q[:, s + 1 :] - q[:, : s + 1] @ self._mixed.T
        c_z = 1.0 + added - dot(q[:, : s + 1], response)
        return c, c_z

    def spread_of(self, kernel: FloatArray) -> float:
        """How much errors of the free excesses can add up to at other rows, at least 1.

        From the kernel between those rows and the free ones, shape ``(n, s)``.
        """
        edge = np.ones((len(kernel), 1))
        q = np.concatenate([edge, kernel * self.y[: self.n_free]], axis=1)
        return float(np.abs(q @ self._inverse[:, 1:]).sum(axis=1).max(initial=1.0))

    def follow(self, eta: FloatArray) -> FloatArray:
        """What follows from corrections of the excesses while every state is the machine's.

        From corrections of shape ``(n, w)`` to weights of the free rows, excesses of the others and
        the change of the intercept, shape ``(n, w + 1)``.
        """
        w, s = len(self.rows), self.n_free
        known = -(eta[:, :s] @ self._T[:s])
        known[:, :s] += self.alpha[:s]
        known[:, s:w] += self.excess[s:]
        known[:, s:w] += eta[:, s:]
        return known

    def respond(
        self, state: AnyArray, c: FloatArray, c_z: FloatArray, known: FloatArray, *, is_rate: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Solve for weights and excesses under given states.

        Parameters
        ----------
        state
            State of the rows, then of the added point, shape ``(n, w + 1)``.
        c, c_z
            From `enter`.
        known
            From `follow`, and last the excess of the added point while its weight is 0; shape
            ``(n, w + 2)``.
        is_rate
            Whether ``known`` is a rate of change, so that bounds do not move.

        Returns
        -------
        tuple of FloatArray
            Weights and excesses of the rows and the added point, shape ``(n, w + 1)`` each, and the
            change of the intercept, shape ``(n,)``; or their rates.
        """
        from scipy.sparse import csr_array

        n, w, s = len(state), len(self.rows), self.n_free
        point, row = np.nonzero(state[:, :w] != self.state)
        n_other = np.bincount(point, minlength=n)
        first = np.cumsum(n_other) - n_other
        held = np.empty(len(point))  # what changes in the quantities held fixed
        alpha, excess = np.empty((n, w + 1)), np.empty((n, w + 1))
        order = np.argsort(n_other, kind="stable")
        for start in range(0, n, _AT_ONCE):
            batch = order[start : start + _AT_ONCE]
            m = np.arange(n_other[batch[-1]])
            is_real = m < n_other[batch, None]
            place = (first[batch, None] + m)[is_real]
            rows = np.full(is_real.shape, -1)
            rows[is_real] = row[place]
            solution, of_z = self._solve_some(state, c, c_z, known, batch, rows, is_rate)
            held[place] = solution[:, :-1][is_real]
            alpha[batch, w], excess[batch, w] = solution[:, -1], of_z
        result = c * alpha[:, w:]
        result += known[:, :-1]
        result += csr_array((held, row, np.append(first, len(held))), shape=(n, w)) @ self._T
        alpha[:, :s] = result[:, :s]
        alpha[:, s:w] = 0.0 if is_rate else self.alpha[s:]
        excess[:, :s] = 0.0
        excess[:, s:w] = result[:, s:w]
        is_free = row < s
        excess[point[is_free], row[is_free]] = held[is_free]
        alpha[point[~is_free], row[~is_free]] += held[~is_free]
        return alpha, excess, result[:, w]

    def _solve_some(
        self,
        state: AnyArray,
        c: FloatArray,
        c_z: FloatArray,
        known: FloatArray,
        batch: IntArray,
        rows: IntArray,
        is_rate: bool,
    ) -> tuple[FloatArray, FloatArray]:
        """Solve the small systems of some points, whose rows are padded with -1.

        Returns what changes in the quantities held fixed, then the weight of the added point, shape
        ``(len(some), m + 1)``; and the excess of the added point.
        """
        s = self.n_free
        n, m = rows.shape
        at = batch[:, None]
        now, now_z = state[at, rows], state[batch, -1]
        bound = np.zeros_like(self.bound) if is_rate else self.bound
        A = np.empty((n, m + 1, m + 1))
        A[:, :m, :m] = self._T[rows[:, None, :], rows[:, :, None]]
        A[:, :m, m] = c[at, rows]
        A[:, m, :m] = np.where(rows < s, -A[:, :m, m], A[:, :m, m])
        A[:, m, m] = c_z[batch]
        of_z = A[:, m].copy()
        rhs = np.empty((n, m + 1))
        rhs[:, :m] = np.where((rows < s) & (now == UPPER), bound[rows], 0.0) - known[at, rows]
        rhs[:, m] = -known[batch, -1]
        # entries whose change is given: padding, and weights that go from bound to bound
        is_given, given = np.empty((n, m + 1), dtype=bool), np.empty((n, m + 1))
        is_given[:, :m] = (rows < 0) | ((rows >= s) & (now != FREE))
        given[:, :m] = np.where(rows < 0, 0.0, np.where(now == UPPER, 1.0, -1.0) * bound[rows])
        is_given[:, m], given[:, m] = now_z != FREE, np.where(now_z == UPPER, bound[-1], 0.0)
        A[is_given] = 0.0
        i, j = np.nonzero(is_given)
        A[i, j, j] = 1.0
        rhs[is_given] = given[is_given]
        solution = solve_each(A, rhs)
        return solution, known[batch, -1] + dot(of_z, solution)


def _invert(matrix: FloatArray) -> FloatArray:
    """Invert a matrix, with one step of refinement; what is wrong with a singular one will show."""
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        inverse = np.linalg.pinv(matrix)
    inverse += inverse @ (np.eye(len(matrix)) - matrix @ inverse)
    return np.asarray(inverse, dtype=np.float64)


def solve_each(A: FloatArray, rhs: FloatArray) -> FloatArray:
    """Solve many small systems; a singular one yields nan."""
    try:
        return np.asarray(np.linalg.solve(A, rhs[:, :, None])[:, :, 0], dtype=np.float64)
    except np.linalg.LinAlgError:
        if len(A) == 1:
            return np.full_like(rhs, np.nan)
        half = len(A) // 2
        return np.concatenate([solve_each(A[:half], rhs[:half]), solve_each(A[half:], rhs[half:])])
