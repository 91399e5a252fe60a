r"""How a joining point moves the optimum of a generalised linear model with one margin.

At the optimum on $D$ (`_glm_fit.py`) let $H = \nabla^2 F = LL^\top$, and measure changes of the
parameters in coordinates in which $H$ is the identity: $u = L^\top \delta$, rows
$A = X L^{-\top}$, and $b = L^{-1} x_z$ for the joining point. Stationarity at $\theta$ leaves

$$\nabla F = u + C A^\top r(Au), \qquad r(\eta) = \mu(m + \eta) - \mu(m) - \mu'(m)\,\eta,$$

whose second term is of second order (`_link.py`). With the joining point, the optimum solves

$$u = t\,b - C A^\top r(Au), \qquad t = C\,(y_z - \mu(m_z + b \cdot u)).$$

All points of a block are solved together; arrays have one row for each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from apiece._base.batched import (
    CONVERGED,
    LOST,
    RUNNING,
    Vector,
    conjugate_gradients,
    dot,
    line_search,
    solve,
)
from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray
from apiece.engines._glm_fit import GLMFit
from apiece.losses._series import RADIUS


class _Point(NamedTuple):
    """Joining points: ``b``, its square, the margin before, the target, and ``A b``."""

    b: FloatArray
    beta: FloatArray
    margin: FloatArray
    y: FloatArray
    q: AnyArray


class _Iterate(NamedTuple):
    """State of the fast iteration: changes of margins, ``t``, relative length of the step."""

    eta: AnyArray
    t: FloatArray
    left: FloatArray


class _Change(NamedTuple):
    """State of Newton's method: ``u = t b + A' a``, ``tau = b.u``, ``eta = A u``, and gradients.

    ``gt``, ``ga``, ``g_tau`` and ``g_eta`` are the same for the gradient, and ``relative`` is its
    length relative to that of ``u``.
    """

    t: FloatArray
    a: FloatArray
    tau: FloatArray
    eta: FloatArray
    gt: FloatArray
    ga: FloatArray
    g_tau: FloatArray
    g_eta: FloatArray
    relative: FloatArray


class _Range(NamedTuple):
    """Limits of an iteration: largest change of margins, steps, relative length of the last."""

    radius: float
    steps: int
    tolerance: float


_NEAR = _Range(RADIUS, steps=12, tolerance=1e-6)  # the error is far smaller than the last step
_FAR = _Range(5.0, steps=40, tolerance=2e-7)  # the error may be e^5 larger at the new optimum
_NEWTON_STEPS = 80
_ROUNDED = 1e-4  # relative accuracy of a system solved in single precision
_TOLERANCE = 1e-8  # length of the gradient relative to that of the change, in coordinates of H
_ACCEPTED = 1e-5  # the same at the new optimum, where the Hessian may be flatter


class Joined(NamedTuple):
    """Changes of the parameters when points join D, one row for each point.

    Parameters
    ----------
    change
        Shape ``(n, p)``.
    left
        Lengths of the remaining gradients relative to those of the changes, shape ``(n,)``.
    error
        Bounds of the errors of the changes, in the norm of the Hessian on D, shape ``(n,)``.
    is_good
        Which rows have converged, shape ``(n,)``.
    """

    change: FloatArray
    left: FloatArray
    error: FloatArray
    is_good: BoolArray


class GLMJoining:
    """Solves for the change of parameters when points join D, one row for each point.

    Parameters
    ----------
    base
        The fit on D.
    """

    def __init__(self, base: GLMFit) -> None:
        self.base = base
        k, p = base.rows.shape
        self._response = base.link.response(base.margins, base.C)
        self._rows32 = base.rows.astype(np.float32)
        self._by_gram = k < 2 * p
        self._gram32 = self._rows32 @ self._rows32.T if self._by_gram else None
        self._gram: FloatArray | None = None

    def solve(self, x: FloatArray, y: FloatArray, *, is_near: bool = True) -> Joined:
        """Return the changes of the parameters for points that join D one at a time.

        Parameters
        ----------
        x, y
            The points, shapes ``(n, p)`` and ``(n,)``.
        is_near
            Whether to try iterations in single precision first.
        """
        base = self.base
        b = solve_triangular(base.factor, x.T, lower=True, check_finite=False).T
        beta, margin = dot(b, b), x @ base.theta
        u, left, flatter = np.empty_like(b), np.full(len(b), np.inf), np.ones(len(b))
        methods: list[Callable[..., tuple[FloatArray, FloatArray, FloatArray]]] = [self._newton]
        if is_near:
            methods = [partial(self._fast, _NEAR), partial(self._fast, _FAR), self._newton]
        for method in methods:
            hard = np.flatnonzero(np.isinf(left))
            if len(hard):
                rows = (b[hard], beta[hard], margin[hard], y[hard])
                u[hard], left[hard], flatter[hard] = method(*rows)
        change = solve_triangular(base.factor, u.T, lower=True, trans=1, check_finite=False).T
        is_good = np.isfinite(change).all(axis=1) & (left <= _ACCEPTED)
        error = (left * flatter + base.factor_error) * np.sqrt(dot(u, u))
        return Joined(change, left, error, is_good)

    def _times_gram32(self, r: AnyArray) -> AnyArray:
        if self._gram32 is not None:
            return np.asarray(r @ self._gram32)
        return np.asarray((r @ self._rows32) @ self._rows32.T)

    def _times_gram(self, v: FloatArray) -> FloatArray:
        rows = self.base.rows
        if not self._by_gram:
            return np.asarray((v @ rows) @ rows.T)
        if self._gram is None:
            self._gram = rows @ rows.T
        return np.asarray(v @ self._gram)

    def _fast(
        self, within: _Range, b: FloatArray, beta: FloatArray, margin: FloatArray, y: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Iterate the optimality condition in single precision, with a secant step in between.

        The iteration converges if the joining point changes margins by less than the radius. The
        first-order part ``t b`` stays in double precision. Rows that fail have ``left`` = inf.
        Also returned is by how much the Hessian may be flatter at the new optimum.
        """
        C, link = self.base.C, self.base.link
        remainder = self._response.near if within is _NEAR else self._response.far
        q = b.astype(np.float32) @ self._rows32.T
        t = link.proximal(margin, beta, y, C)
        eta = q * t[:, None].astype(np.float32)
        is_near = _within(eta, within.radius)
        # Where the next step starts; then, of the last step, its change and its end
        memory = [eta if is_near.all() else eta[is_near]]

        def step(now: _Iterate, z: _Point) -> tuple[_Iterate, IntArray]:
            r = remainder(memory[0])
            t = link.proximal(z.margin - dot(z.q, r), z.beta, z.y, C, start=now.t)
            new = z.q * t[:, None].astype(np.float32)
            new -= self._times_gram32(r)
            f = new - memory[0]
            f2, size = dot(f, f), dot(new, new)
            left = np.sqrt(f2 / np.maximum(size, 1e-30))
            is_done, is_within = left <= within.tolerance, _within(new, within.radius, size)
            go_on = new
            if len(memory) > 1:
                turn = f - memory[1]
                size = dot(turn, turn)
                share = np.where(size > 1e-4 * f2, dot(turn, f) / np.maximum(size, 1e-30), 0.0)
                go_on = memory[2]
                go_on -= new
                go_on *= np.clip(share, -1.0, 1.0)[:, None].astype(np.float32)
                go_on += new
                is_within &= is_done | _within(go_on, within.radius)
            memory[:] = go_on, f, new
            status = np.where(is_within, np.where(is_done, CONVERGED, RUNNING), LOST)
            return _Iterate(new, t, left), status

        def keep(stay: BoolArray) -> None:
            memory[:] = (part[stay] for part in memory)

        start = _Iterate(eta, t, np.full(len(t), np.inf))
        points = _Point(b, beta, margin, y, q)
        near_rows = slice(None) if is_near.all() else is_near
        status = np.full(len(t), LOST)
        end, status[near_rows], _ = solve(
            step,
            _Iterate(*(part[near_rows] for part in start)),
            _Point(*(part[near_rows] for part in points)),
            max_steps=within.steps,
            keep=keep,
        )
        is_good = status == CONVERGED
        eta, t, left = start
        eta[near_rows], t[near_rows], left[near_rows] = end
        eta[~is_good], left[~is_good] = 0.0, np.inf
        r = remainder(eta)
        t = link.proximal(margin - dot(q, r), beta, y, C, start=t)
        reach = np.maximum(eta.max(axis=1, initial=0.0), -eta.min(axis=1, initial=0.0))
        return b * t[:, None] - r @ self._rows32, left, np.exp(reach.astype(np.float64))

    def _newton(
        self, b: FloatArray, beta: FloatArray, margin: FloatArray, y: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Newton's method with conjugate gradients, for rows whose margins change by a lot.

        Gradients are in double precision. Systems are solved in single precision; the next step
        corrects the rounding. With changes stored as in `_Change`, a step needs one product with
        the Gram matrix, and vectors of length k.
        """
        z = _Point(b, beta, margin, y, b @ self.base.rows.T)
        t = self.base.link.proximal(margin, beta, y, self.base.C)
        start = self._gradient(t, np.zeros((len(b), len(self.base.margins))), z)

        def step(now: _Change, z: _Point) -> tuple[_Change, IntArray]:
            dt, da, d_tau, d_eta = self._direction(now, z)
            first = now.gt * d_tau + dot(now.ga, d_eta)
            inner = now.t * d_tau + dot(now.a, d_eta)
            square = dt * d_tau + dot(da, d_eta)

            def slope(s: FloatArray) -> FloatArray:
                answer = dot(self._response.exact(now.eta + s[:, None] * d_eta), d_eta)
                error = self.base.link.error(z.margin + now.tau + s * d_tau, z.y)
                return np.asarray(inner + s * square + self.base.C * (answer + error * d_tau))

            s = line_search(slope, first)
            new = self._gradient(now.t + s * dt, now.a + s[:, None] * da, z)
            return new, np.where(new.relative > _TOLERANCE, RUNNING, CONVERGED)

        end, status, _ = solve(step, start, z, max_steps=_NEWTON_STEPS)
        u = end.t[:, None] * b + end.a @ self.base.rows
        left = np.where(status == CONVERGED, self._left(u, b, margin, y), np.inf)
        return u, left, np.ones(len(left))

    def _gradient(self, t: FloatArray, a: FloatArray, z: _Point) -> _Change:
        C = self.base.C
        tau, eta = t * z.beta + dot(z.q, a), z.q * t[:, None] + self._times_gram(a)
        gt = t + C * self.base.link.error(z.margin + tau, z.y)
        ga = a + C * self._response.exact(eta)
        g_eta = z.q * gt[:, None] + self._times_gram(ga)
        g_tau = gt * z.beta + dot(z.q, ga)
        g2 = np.maximum(gt * g_tau + dot(ga, g_eta), 0.0)
        u2 = np.maximum(t * tau + dot(a, eta), 1e-300)
        return _Change(t, a, tau, eta, gt, ga, g_tau, g_eta, np.sqrt(g2 / u2))

    def _direction(self, now: _Change, z: _Point) -> Vector:
        r"""Solve $(I + A^\top \mathrm{diag}(C\mu'(m + \eta) - C\mu'(m)) A + w bb^\top) d = -g$."""
        C, link = self.base.C, self.base.link
        scale = np.sqrt(np.maximum(now.gt * now.g_tau + dot(now.ga, now.g_eta), 1e-300))
        weight = (C * link.weight(z.margin + now.tau)).astype(np.float32)
        more = link.weight(self.base.margins + now.eta) - self._response.weight
        bend, q, beta = (v.astype(np.float32) for v in (C * more, z.q, z.beta))

        def product(v: Vector) -> Vector:
            vt, va, v_tau, v_eta = v
            return vt + weight * v_tau, va + bend * v_eta

        def with_images(v: Vector) -> Vector:
            vt, va = v
            return vt, va, vt * beta + dot(q, va), q * vt[:, None] + self._times_gram32(va)

        def inner(image: Vector, v: Vector) -> FloatArray:
            return np.asarray(image[0] * v[2] + dot(image[1], v[3]))

        relative = np.maximum(now.relative, 1e-300)
        forcing = np.clip(np.maximum(relative, 0.1 * _TOLERANCE / relative), _ROUNDED, 0.1)
        sides = tuple((-part.T / scale).T.astype(np.float32) for part in (now.gt, now.ga))
        direction = conjugate_gradients(
            product, with_images, inner, sides, forcing=forcing, max_steps=200
        )
        return tuple((part.T * scale).T for part in direction)

    def _left(self, u: FloatArray, b: FloatArray, margin: FloatArray, y: FloatArray) -> FloatArray:
        """Bound the error of a change relative to its length, computed afresh from ``u``.

        If a point lies almost in the span of D and has much more weight, ``t b`` and ``A' a``
        cancel, so lengths computed from ``t`` and ``a`` are inaccurate. The gradient is measured
        in the norm of the Hessian on D. The Hessian at the new optimum may be flatter, at most by
        the ratio of the weights of the rows, and the error is larger by that ratio.
        """
        base = self.base
        eta = u @ base.rows.T
        error = base.link.error(margin + dot(u, b), y)
        gradient = u + base.C * (error[:, None] * b + self._response.exact(eta) @ base.rows)
        left = np.sqrt(dot(gradient, gradient) / np.maximum(dot(u, u), 1e-300))
        flatter = base.link.weight(base.margins + eta) / np.maximum(self._response.weight, 1e-300)
        return np.asarray(left / np.clip(flatter.min(axis=1, initial=1.0), 1e-300, 1.0))


def _within(x: AnyArray, radius: float, squares: FloatArray | None = None) -> BoolArray:
    """Return for which rows every entry is below ``radius`` in size; False for nan."""
    is_short = (dot(x, x) if squares is None else squares) < radius**2
    long = np.flatnonzero(~is_short)
    if len(long):
        rows = x[long] if len(long) < len(x) else x
        is_short[long] = (rows.max(axis=1) < radius) & (rows.min(axis=1) > -radius)
    return np.asarray(is_short)
