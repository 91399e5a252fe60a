r"""The states of a machine with a point added, traced from those of the machine itself.

With $t$ from 0 to 1 the conditions of the machine turn linearly into those with the point added: at
$t = 0$ excesses are not corrected, and a point that would violate its condition is given what it
lacks. Weights and excesses of the optimum are piecewise linear in $t$, and at every bend one state
changes: a free weight reaches a bound, or the excess of a bound one reaches zero. All points of a
batch go from bend to bend together.
"""

from __future__ import annotations

import numpy as np

from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray
from apiece.engines._svm_dual import FREE, LOWER, UPPER, tolerance
from apiece.engines._svm_pivot import Tableau

_MOST_BENDS = 300


class Trace:
    """Optima on their way from the machine's own to those with one point added; one row for each.

    Parameters
    ----------
    tableau
        The machine.
    y
        Labels ±1 of the added points, shape ``(n,)``.
    c, c_z
        What a unit of their weight does; see `Tableau.enter`.
    alone
        Their excesses under the machine as it is, shape ``(n,)``.
    known
        Where the conditions go; see `Tableau.respond`. Shape ``(n, w + 2)``.
    """

    def __init__(
        self,
        tableau: Tableau,
        y: FloatArray,
        c: FloatArray,
        c_z: FloatArray,
        alone: FloatArray,
        known: FloatArray,
    ) -> None:
        n, w, s = len(y), len(tableau.rows), tableau.n_free
        self._tableau, self._c, self._c_z = tableau, c, c_z
        self._y = np.empty((n, w + 1))
        self._y[:, :w], self._y[:, w] = tableau.y, y
        self.state = np.empty((n, w + 1), dtype=np.int8)
        self.state[:, :w], self.state[:, w] = tableau.state, LOWER
        self._alpha, self._excess = np.zeros((n, w + 1)), np.zeros((n, w + 1))
        self._alpha[:, :w] = tableau.alpha
        self._excess[:, s:w] = tableau.excess[s:]
        self._excess[:, w] = np.maximum(alone, 0.0)
        self._rate = known.copy()
        self._rate[:, :s] -= tableau.alpha[:s]
        self._rate[:, s:w] -= tableau.excess[s:]
        self._rate[:, -1] -= self._excess[:, w]
        self._left = np.ones(n)  # of the way
        self._last = np.zeros(n, dtype=np.int64)  # where the last bend was
        self._still = 1e-3 * tolerance(tableau.bound)  # slower than this is rounding

    def go(self) -> AnyArray:
        """Go all the way, and return the states at the end, shape ``(n, w + 1)``."""
        live = np.arange(len(self._left))
        for _ in range(_MOST_BENDS):
            d_alpha, d_excess, _ = self._tableau.respond(
                self.state[live], self._c[live], self._c_z[live], self._rate[live], is_rate=True
            )
            bend, step = self._next_bend(live, d_alpha, d_excess)
            step = np.minimum(step, self._left[live])
            self._alpha[live] += step[:, None] * d_alpha
            self._excess[live] += step[:, None] * d_excess
            self._left[live] -= step
            goes_on = self._left[live] > 0
            live, bend, d_alpha = live[goes_on], bend[goes_on], d_alpha[goes_on]
            if not len(live):
                break
            self._change(live, bend, d_alpha[np.arange(len(live)), bend] < 0)
            is_bare = ~(self.state[live] == FREE).any(axis=1)
            if is_bare.any():
                self._free_another(live[is_bare])
        return self.state

    def _next_bend(
        self, live: IntArray, d_alpha: FloatArray, d_excess: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Which entry bends next when weights and excesses move so, and how far it is there."""
        state, alpha, excess = self.state[live], self._alpha[live], self._excess[live]
        is_free, is_lower = state == FREE, state == LOWER
        room = np.where(d_alpha < 0, alpha, self._tableau.bound - alpha)
        room = np.where(is_free, room, np.where(is_lower, excess, -excess))
        speed = np.where(is_free, np.abs(d_alpha), np.where(is_lower, -d_excess, d_excess))
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(speed > self._still, np.maximum(room, 0.0) / speed, np.inf)
        rows, last = np.arange(len(live)), self._last[live]
        steps[rows, last] = np.where(steps[rows, last] < 1e-12, np.inf, steps[rows, last])
        bend = steps.argmin(axis=1)
        return bend, steps[rows, bend]

    def _change(self, live: IntArray, bend: IntArray, falls: BoolArray) -> None:
        was_free = self.state[live, bend] == FREE
        self.state[live, bend] = np.where(was_free, np.where(falls, LOWER, UPPER), FREE)
        self._last[live] = bend

    def _free_another(self, bare: IntArray) -> None:
        """Where the last free weight reached a bound, move the intercept until another is free.

        It moves to where the excess of the one that left is right.
        """
        last = self._last[bare]
        toward = self._y[bare, last] * np.where(self.state[bare, last] == LOWER, 1.0, -1.0)
        d_excess = self._y[bare] * toward[:, None]
        bend, step = self._next_bend(bare, np.zeros_like(d_excess), d_excess)
        is_there = np.isfinite(step)
        bare, bend = bare[is_there], bend[is_there]
        self._excess[bare] += step[is_there, None] * d_excess[is_there]
        self._change(bare, bend, np.zeros(len(bare), dtype=bool))
