r"""Small machines with one more point, the machines of all pairs of classes at once.

A machine of few points is cheaper to solve than to update. With the free set $F$ and the kernel of
the width that an added point calls for, weights and intercept solve

$$K_{FF} \, \beta_F + b = y_F - K_{FU} \, \beta_U, \qquad 1'\beta = 0,$$

and states that turn out wrong are exchanged. Machines of different sizes are padded with points
whose weight is 0, so that all added points of all machines take one step together. What does not
settle so is left to `Machine.add`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from apiece._base.batched import CONVERGED, LOST, RUNNING, solve
from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray
from apiece.engines._svm_dual import (
    FREE,
    LOWER,
    UPPER,
    decision_error,
    middle_shift,
    tolerance,
    violations,
)
from apiece.engines._svm_kernel import Rows
from apiece.engines._svm_machine import ROUNDING, Added, Machine
from apiece.engines._svm_pivot import solve_each

_CHEAP = 3e7  # cube of a machine's points times those that join, up to which it is solved so
_ENTRIES = 1_000_000  # of the kernels that are held at once
_MOST_ROUNDS = 12
_SLACK = 1e-9  # share of its bound by which a weight may miss it


class Joining(NamedTuple):
    """A machine, and the points that join it, sorted by falling change of gamma."""

    machine: Machine
    Z: Rows
    y: FloatArray
    gamma: FloatArray


class _Problem(NamedTuple):
    """Kernels, labels, bounds, tolerances and which rows are padding; the added point is first."""

    K: FloatArray
    y: FloatArray
    bound: FloatArray
    tolerance: FloatArray
    is_padding: BoolArray


class _Guess(NamedTuple):
    """States, and the weights, excesses and intercept that follow from them."""

    state: AnyArray
    alpha: FloatArray
    excess: FloatArray
    b: FloatArray


def add_each(joinings: list[Joining]) -> list[Added]:
    """Train each machine with each of its points added, by `Machine.add`."""
    return [one.machine.add(one.Z, one.y, one.gamma) for one in joinings]


def add_all(joinings: list[Joining]) -> list[Added]:
    """Train each machine with each of its points added, together where that is faster."""
    small = [one for one in joinings if is_small(one)]
    most = max((len(one.machine.y) + 1 for one in small), default=1)
    found: dict[int, Added] = {}
    while small:
        batch: list[Joining] = []
        n = 0
        while small and (not batch or (n + len(small[-1].y)) * most**2 <= _ENTRIES):
            batch.append(small.pop())
            n += len(batch[-1].y)
        for one, added in zip(batch, _add_batch(batch), strict=True):
            found[id(one)] = added
    return [found[id(one)] if id(one) in found else one.machine.add(*one[1:]) for one in joinings]


def is_small(joining: Joining) -> bool:
    """Whether a machine is solved faster than updated; points that were joined are not handled."""
    machine, y, n = joining.machine, joining.machine.y, len(joining.y)
    return n * len(y) ** 3 <= _CHEAP and bool((machine.bound == machine.C).all())


def _add_batch(batch: list[Joining]) -> list[Added]:
    count = [len(one.y) for one in batch]
    ends = np.cumsum(count)
    jobs = [np.arange(end - n, end) for end, n in zip(ends, count, strict=True)]
    start, problem = _begin(batch, jobs, int(ends[-1]))
    guess, status, _ = solve(_step, start, problem, max_steps=_MOST_ROUNDS)
    is_settled = status == CONVERGED

    def per_job(values: list[float]) -> FloatArray:
        return np.repeat(np.array(values), count)

    beta = problem.y * guess.alpha
    of_excess, _ = violations(guess.alpha, guess.excess, guess.state, problem.bound)
    shift, error = middle_shift(guess.alpha, guess.excess, problem.y, problem.bound)
    error += decision_error(guess.alpha, of_excess, guess.state, problem.bound)
    rounding = per_job([one.machine.rounding for one in batch])
    rounding += ROUNDING * np.abs(beta).sum(axis=1)
    missed = of_excess.max(axis=1) + rounding
    error += per_job([one.machine.amplification for one in batch]) * missed
    limit = per_job([one.machine.accepted for one in batch])
    is_settled &= error <= limit
    found = []
    for one, of in zip(batch, jobs, strict=True):
        machine, n = one.machine, len(one.machine.y)
        dbeta = beta[of, 1 : n + 1] - machine.beta
        decision = machine.decide_with(one.Z, one.gamma, np.arange(n), dbeta, beta[of, 0])
        decision += (guess.b[of] + shift[of])[:, None]
        added = Added(decision, error[of], np.zeros(len(of), dtype=bool))
        poor = np.flatnonzero(~is_settled[of] | ~np.isfinite(decision).all(axis=1))
        if len(poor):
            again = machine.add(one.Z[poor], one.y[poor], one.gamma[poor])
            added.decision[poor], added.error[poor] = again.decision, again.error
            added.is_anew[poor] = again.is_anew
        found.append(added)
    return found


def _begin(batch: list[Joining], jobs: list[IntArray], n: int) -> tuple[_Guess, _Problem]:
    """Kernels of all jobs, and the states of the machines as they are."""
    m = 1 + max(len(one.machine.y) for one in batch)
    K, y, bound = np.zeros((n, m, m)), np.ones((n, m)), np.ones((n, m))
    state, is_padding = np.full((n, m), LOWER, dtype=np.int8), np.ones((n, m), dtype=bool)
    tol = np.empty((n, 1))
    K[:, 0, 0] = 1.0
    for one, of in zip(batch, jobs, strict=True):
        machine, w = one.machine, len(one.machine.y) + 1
        among = machine.X.squared_distances(machine.X)
        K[of, 1:w, 1:w] = np.exp(-one.gamma[:, None, None] * among)
        kernel = np.exp(-one.gamma[:, None] * one.Z.squared_distances(machine.X))
        K[of, 0, 1:w] = K[of, 1:w, 0] = kernel
        y[of, 0], y[of, 1:w], bound[of, :w] = one.y, machine.y, machine.C
        tol[of], is_padding[of, :w] = tolerance(machine.bound), False
        alone = one.y * (kernel @ machine.beta + machine.dual.b) - 1.0
        state[of, 0] = np.where(alone < 0, FREE, LOWER)
        state[of, 1:w] = machine.dual.state
    guess = _Guess(state, np.empty((n, m)), np.empty((n, m)), np.empty(n))
    return guess, _Problem(K, y, bound, tol, is_padding)


def _step(now: _Guess, problem: _Problem) -> tuple[_Guess, IntArray]:
    """Solve the equations of the free sets, and exchange the states that are wrong."""
    K, y, bound, tol, is_padding = problem
    n, m = y.shape
    is_free = now.state == FREE
    A = np.zeros((n, m + 1, m + 1))
    A[:, :m, :m] = np.where(is_free[:, :, None], K, np.eye(m))
    A[:, :m, m], A[:, m, :m] = is_free, 1.0
    rhs = np.zeros((n, m + 1))
    rhs[:, :m] = np.where(is_free, y, np.where(now.state == UPPER, y * bound, 0.0))
    solution = solve_each(A, rhs)
    beta, b = solution[:, :m], solution[:, m]
    alpha, excess = y * beta, y * ((K @ beta[:, :, None])[:, :, 0] + b[:, None]) - 1.0
    excess[is_padding] = np.inf
    of_excess, of_alpha = violations(alpha, excess, now.state, bound)
    is_wrong = np.where(is_free, ~(of_alpha <= _SLACK), ~(of_excess <= tol))
    end = np.where(alpha < 0.5 * bound, LOWER, UPPER)
    moved = np.where(is_wrong, np.where(is_free, end, FREE), now.state).astype(np.int8)
    status = np.where(is_wrong.any(axis=1), RUNNING, CONVERGED)
    status[~np.isfinite(b) | ~(moved == FREE).any(axis=1)] = LOST
    return _Guess(moved, alpha, excess, b), status
