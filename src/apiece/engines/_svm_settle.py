r"""From the states of a machine to those of the same machine with a point added, many at once.

Under the right states the optimum is the solution of linear equations (`Tableau.respond`). To find
them, all states that turn out wrong are exchanged at once, again and again: few rounds suffice
where free points are far from each other. Where that makes no progress the states are traced, bend
by bend (`Trace`).

A change of the kernel's width enters as a correction of the excesses, and so does what is added to
the diagonal of the kernel to make the equations solvable. The correction depends on the weights: it
is computed again until it no longer changes. The equations keep the width of the machine, so that
they stay those of a convex problem.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from apiece._base.batched import dot
from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray
from apiece.engines._svm_dual import FREE, LOWER, UPPER, jitter, tolerance, violations
from apiece.engines._svm_kernel import add_products
from apiece.engines._svm_pivot import Tableau
from apiece.engines._svm_trace import Trace

_MOST_ROUNDS = 40
_MOST_TRACES = 2
_SLACK = 1e-9  # share of its bound by which a weight may miss it
_STEADY = 1e-2  # share of the tolerance by which a correction may still change
_PATIENCE = 2  # rounds without progress before the solution is traced


@dataclass(eq=False)
class Additions:
    """Machines with one more point each, on their way to the optimum; one row for each.

    Parameters
    ----------
    at
        Which point of the batch it is, shape ``(n,)``.
    y
        Label ±1 of the added point, shape ``(n,)``.
    r
        Relative change of gamma, falling in size, shape ``(n,)``.
    twin
        The row that equals the added point and is of its class; -1 if there is none; ``(n,)``.
    c, c_z
        What a unit of weight of the added point does; see `Tableau.enter`.
    jitter
        What is added to its kernel while equations are solved, shape ``(n,)``.
    gap
        What its width changes in that, shape ``(n, w)``.
    alone
        Excess of the added point under the machine as it is, shape ``(n,)``.
    base_change, eta
        Correction of the excesses of the rows and the added point: for the weights of the machine
        without the point, and for the present weights; shape ``(n, w + 1)``.
    known
        What follows from ``eta``; see `Tableau.respond`. Shape ``(n, w + 2)``.
    state, alpha, excess
        The present guess, for the rows and the added point, shape ``(n, w + 1)``.
    db
        Change of the intercept, shape ``(n,)``.
    fewest, patience, traces
        The fewest wrong states so far, how many rounds may pass without fewer, and how often the
        states may be traced; shape ``(n,)``.
    """

    at: IntArray
    y: FloatArray
    r: FloatArray
    twin: IntArray
    c: FloatArray
    c_z: FloatArray
    jitter: FloatArray
    gap: FloatArray
    alone: FloatArray
    base_change: FloatArray
    eta: FloatArray
    known: FloatArray
    state: AnyArray
    alpha: FloatArray
    excess: FloatArray
    db: FloatArray
    fewest: IntArray
    patience: IntArray
    traces: IntArray

    @classmethod
    def begin(
        cls,
        tableau: Tableau,
        *,
        y: FloatArray,
        r: FloatArray,
        kernel: FloatArray,
        gap: FloatArray,
        alone: FloatArray,
        base_change: FloatArray,
    ) -> Additions:
        """Start with every state as it is, and a guess for that of the added point.

        Parameters
        ----------
        tableau
            The machine.
        y, r
            Labels ±1 of the added points, and their relative changes of gamma, falling in size;
            shape ``(n,)``.
        kernel, gap
            Kernel between added points and rows, at the machine's width, shape ``(n, w)``; and what
            their own widths add to it.
        alone
            Excesses of the added points under the machine as it is, shape ``(n,)``.
        base_change
            What the widths of the added points add to the excesses that the machine's weights make,
            for the rows and the added points, shape ``(n, w + 1)``. Changed in place.
        """
        n, w, s = len(y), len(tableau.rows), tableau.n_free
        added = jitter(kernel.sum(axis=1), tableau.bound)
        c, c_z = tableau.enter(kernel, y, added)
        is_twin = (kernel > 1.0 - 1e-12) & (tableau.y == y[:, None])
        base_change[:, :s] += tableau.excess[:s]  # not zero if the machine is not quite solved
        begun = cls(
            at=np.arange(n),
            y=y,
            r=r,
            twin=np.where(is_twin.any(axis=1), is_twin.argmax(axis=1), -1),
            c=c,
            c_z=c_z,
            jitter=added,
            gap=gap * tableau.y * y[:, None],
            alone=alone,
            base_change=base_change,
            eta=base_change.copy(),
            known=np.empty((n, w + 2)),
            state=np.empty((n, w + 1), dtype=np.int8),
            alpha=np.empty((n, w + 1)),
            excess=np.empty((n, w + 1)),
            db=np.empty(n),
            fewest=np.full(n, w + 2),
            patience=np.full(n, _PATIENCE),
            traces=np.full(n, _MOST_TRACES),
        )
        begun._follow(tableau, np.arange(n))
        lacks = -begun.known[:, -1]
        is_upper = lacks > tableau.bound[-1] * c_z
        guess = np.where(lacks <= tolerance(tableau.bound), LOWER, np.where(is_upper, UPPER, FREE))
        begun.state[:, :w], begun.state[:, w] = tableau.state, guess
        begun._part_twins()
        return begun

    def take(self, keep: AnyArray) -> Additions:
        """Return some of the rows."""
        return Additions(*(getattr(self, field.name)[keep] for field in fields(self)))

    def _follow(self, tableau: Tableau, of: IntArray) -> None:
        s, eta = tableau.n_free, self.eta[of]
        self.known[of, :-1] = tableau.follow(eta[:, :-1])
        self.known[of, -1] = self.alone[of] + eta[:, -1]
        self.known[of, -1] += dot(self.c[of, :s], eta[:, :s])

    def _part_twins(self) -> None:
        """Keep equal points from being free together: how they share their weight is arbitrary."""
        twins = np.flatnonzero(self.twin >= 0)
        one, other = self.state[twins, self.twin[twins]], self.state[twins, -1]
        self.state[twins, self.twin[twins]] = np.where((one == LOWER) & (other != LOWER), FREE, one)
        self.state[twins, -1] = np.where(one == UPPER, other, LOWER)

    def solve(self, tableau: Tableau) -> None:
        """Compute weights, excesses and intercept under the present states."""
        self.alpha, self.excess, self.db = tableau.respond(
            self.state, self.c, self.c_z, self.known, is_rate=False
        )

    def exchange(self, tableau: Tableau) -> BoolArray:
        """Exchange the states that are wrong, and return for which points none was."""
        of_excess, of_alpha = violations(self.alpha, self.excess, self.state, tableau.bound)
        is_free = self.state == FREE
        is_wrong = np.where(is_free, of_alpha > _SLACK, of_excess > tolerance(tableau.bound))
        is_lost = ~np.isfinite(self.excess).all(axis=1)
        n_wrong = np.where(is_lost, is_wrong.shape[1], is_wrong.sum(axis=1))
        self.patience = np.where(n_wrong < self.fewest, _PATIENCE, self.patience - 1)
        self.fewest = np.minimum(self.fewest, n_wrong)
        point, row = np.nonzero(is_wrong)
        end = np.where(self.alpha[point, row] < 0.5 * tableau.bound[row], LOWER, UPPER)
        self.state[point, row] = np.where(is_free[point, row], end, FREE)
        self._part_twins()
        is_bare = ~(self.state == FREE).any(axis=1)
        is_stuck = (n_wrong > 0) & ((self.patience < 0) | is_lost | is_bare)
        self.traces -= is_stuck
        self._trace(tableau, np.flatnonzero(is_stuck & (self.traces >= 0)))
        return np.asarray(n_wrong == 0)

    def _trace(self, tableau: Tableau, of: IntArray) -> None:
        if not len(of):
            return
        path = Trace(tableau, self.y[of], self.c[of], self.c_z[of], self.alone[of], self.known[of])
        self.state[of] = path.go()
        self.fewest[of], self.patience[of] = len(tableau.rows) + 2, _PATIENCE

    def renew(self, tableau: Tableau, of: IntArray) -> FloatArray:
        """Renew the corrections of some points, and return by how much they changed."""
        change = self.alpha[of, :-1] - tableau.alpha
        eta, gap = np.zeros((len(of), len(tableau.rows) + 1)), self.gap[of]
        add_products(eta[:, :-1], tableau.y * change, self.r[of], tableau.terms(), first=1)
        eta[:, :-1] *= tableau.y
        eta[:, :-1] += gap * self.alpha[of, -1:] - tableau.jitter * change
        eta[:, -1] = dot(gap, change) - self.jitter[of] * self.alpha[of, -1]
        eta += self.base_change[of]
        moved = np.abs(eta - self.eta[of]).max(axis=1, initial=0.0)
        self.eta[of] = eta
        self._follow(tableau, of)
        self.fewest[of], self.patience[of] = len(tableau.rows) + 2, _PATIENCE
        return np.asarray(moved)


def settle(tableau: Tableau, batch: Additions) -> tuple[Additions, BoolArray]:
    """Bring all additions to their optimum; return them in order, and which have reached it.

    States are exchanged, which is not a step of Newton's method; a batch is copied only when an
    eighth of it can leave.
    """
    is_settled = np.zeros(len(batch.at), dtype=bool)
    parts = []
    for _ in range(_MOST_ROUNDS):
        batch.solve(tableau)
        right = np.flatnonzero(batch.exchange(tableau))
        change = batch.renew(tableau, right)
        settled = right[change <= _STEADY * tolerance(tableau.bound)]
        is_settled[batch.at[settled]] = True
        leaves = is_settled[batch.at] | (batch.traces < 0)
        if 8 * np.count_nonzero(leaves) >= len(leaves):  # copying costs as much as another round
            parts.append(batch.take(leaves))
            batch = batch.take(~leaves)
        if not len(batch.at):
            break
    parts.append(batch)
    whole = Additions(
        *(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(batch))
    )
    return whole.take(np.argsort(whole.at)), is_settled
