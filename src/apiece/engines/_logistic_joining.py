r"""How a joining point moves the optimum of logistic regression with two classes.

At the optimum on $D$ (`_logistic_fit.py`) let $H = \nabla^2 F = LL^\top$, and measure changes of
the parameters in coordinates in which $H$ is the identity: $u = L^\top \delta$, rows
$A = X L^{-\top}$, and $b = L^{-1} x_z$ for the joining point. Stationarity at $\theta$ leaves

$$\nabla F = u + C A^\top r(Au), \qquad r(\eta) = \sigma(m + \eta) - \sigma(m) - \sigma'(m)\,\eta,$$

whose second term is of second order. With the joining point, the optimum solves

$$u = t\,b - C A^\top r(Au), \qquad t = C\,(y_z - \sigma(m_z + b \cdot u)).$$

All points of a block are solved together; arrays have one row for each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit

from apiece._base.typing import AnyArray, BoolArray, FloatArray
from apiece.engines._logistic_fit import BaseFit
from apiece.losses._series import (
    RADIUS,
    horner,
    sigmoid,
    sigmoid_error,
    sigmoid_series,
)
from apiece.losses._softmax import curve


class _Range(NamedTuple):
    """How far margins may change in an iteration, its steps, and the last one's relative length."""

    radius: float
    steps: int
    tolerance: float


_NEAR = _Range(RADIUS, steps=12, tolerance=1e-6)  # what is left is far less than the last step
_FAR = _Range(5.0, steps=40, tolerance=2e-7)  # as much is left, e^5 times that at the new optimum
_NEWTON_STEPS = 80
_ROUNDED = 1e-4  # to which a system is solved in single precision, relative
_TOLERANCE = 1e-8  # length of the gradient relative to that of the change, in coordinates of H
_ACCEPTED = 1e-5  # the same at the new optimum, where the Hessian may be flatter


class Joining:
    """Solves for the change of parameters when points join D, one row for each point.

    Parameters
    ----------
    base
        The fit on D.
    """

    def __init__(self, base: BaseFit) -> None:
        self.base = base
        k, p = base.rows.shape
        self._by_gram = k < 2 * p
        self._series = sigmoid_series(base.margins)
        self._series32 = [(base.C * c).astype(np.float32) for c in self._series[2:]]
        self._towards = np.where(base.margins > 0, -1.0, 1.0)  # the class that is less likely
        self._rare64 = sigmoid(-np.abs(base.margins))  # and its probability
        weight = base.C * self._towards * self._series[1]
        self._sign, self._rare, self._weight = (
            v.astype(np.float32) for v in (self._towards, self._rare64, weight)
        )
        self._rows32 = base.rows.astype(np.float32)
        self._gram32 = self._rows32 @ self._rows32.T if self._by_gram else None
        self._gram: FloatArray | None = None

    def solve(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return the changes of the parameters for points that join D one at a time.

        Parameters
        ----------
        x, y
            The points, shapes ``(n, p)`` and ``(n,)``; labels 0 or 1.

        Returns
        -------
        tuple
            Changes, shape ``(n, p)``; the relative length of the gradient that is left, shape
            ``(n,)``; and which rows have converged, shape ``(n,)``.
        """
        base = self.base
        b = solve_triangular(base.factor, x.T, lower=True, check_finite=False).T
        beta = np.einsum("ij,ij->i", b, b)
        margin = x @ base.theta
        u, left = np.empty_like(b), np.full(len(b), np.inf)
        for way in (partial(self._fast, _NEAR), partial(self._fast, _FAR), self._newton):
            hard = np.flatnonzero(np.isinf(left))
            if len(hard):
                u[hard], left[hard] = way(b[hard], beta[hard], margin[hard], y[hard])
        delta = solve_triangular(base.factor, u.T, lower=True, trans=1, check_finite=False).T
        converged = np.isfinite(delta).all(axis=1) & (left <= _ACCEPTED)
        return delta, left, converged

    def _times_gram32(self, r: AnyArray) -> AnyArray:
        if self._gram32 is not None:
            return np.asarray(r @ self._gram32)
        return np.asarray((r @ self._rows32) @ self._rows32.T)

    def _fast(
        self, within: _Range, b: FloatArray, beta: FloatArray, margin: FloatArray, y: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Iterate the optimality condition in single precision, with a secant step in between.

        It converges where the joining point changes margins by less than the radius; the
        first-order part ``t b`` stays in double precision. Rows that fail have ``left`` = inf.
        """
        C, (radius, steps, tolerance) = self.base.C, within
        q_all = b.astype(np.float32) @ self._rows32.T
        t_all = _proximal(margin, beta, y, C)
        eta_all = q_all * t_all[:, None].astype(np.float32)
        left = np.where(_within(eta_all, radius), 0.0, np.inf)
        active = np.flatnonzero(left == 0)
        eta, q, t = eta_all[active], q_all[active], t_all[active]
        old: tuple[AnyArray, AnyArray] | None = None
        for _ in range(steps):
            if not len(active):
                break
            r = self._remainder(eta, within)
            shift = _dot(q, r)
            t = _proximal(margin[active] - shift, beta[active], y[active], C, start=t)
            new = q * t[:, None].astype(np.float32)
            new -= self._times_gram32(r)
            f = new - eta
            f2, size = _dot(f, f), _dot(new, new)
            left[active] = np.sqrt(f2 / np.maximum(size, 1e-30))
            is_lost = ~_within(new, radius, size)
            left[active[is_lost]] = np.inf
            stay = (left[active] > tolerance) & ~is_lost
            eta_all[active], t_all[active] = new, t
            eta = new
            if old is not None:
                step = f - old[0]
                size = _dot(step, step)
                gamma = np.where(size > 1e-4 * f2, _dot(step, f) / np.maximum(size, 1e-30), 0.0)
                gamma = np.clip(gamma, -1.0, 1.0)
                eta = new - gamma[:, None].astype(np.float32) * (new - old[1])
                stay &= _within(eta, radius)
                left[active[~stay & (left[active] > tolerance)]] = np.inf
            old = (f, new)
            if not stay.all():
                active, eta, q, t = active[stay], eta[stay], q[stay], t[stay]
                old = (f[stay], new[stay])
        is_lost = ~(left <= tolerance)
        eta_all[is_lost], left[is_lost] = 0.0, np.inf
        r = self._remainder(eta_all, within)
        t = _proximal(margin - _dot(q_all, r), beta, y, C, start=t_all)
        return b * t[:, None] - r @ self._rows32, left

    def _remainder(self, eta: AnyArray, within: _Range) -> AnyArray:
        r"""Return ``C r``: by a series of each row's own, or by that of the exponential.

        With the less likely class's probability $\pi$ and $\eta$ towards it, $\varphi$ of `curve`
        and $s = \pi(\eta + \varphi)$, it is $r = \pi(1 - \pi)(\varphi - s\eta) / (1 + s)$.
        """
        if within is _NEAR:
            r = horner(self._series32, eta, np.empty_like(eta))
            r *= eta
            r *= eta
            return r
        x = self._sign * eta
        r = curve(x, float(np.abs(x).max(initial=0.0)))
        s = x + r
        s *= self._rare
        x *= s
        r -= x
        r *= self._weight
        s += 1
        r /= s
        return r

    def _newton(
        self, b: FloatArray, beta: FloatArray, margin: FloatArray, y: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Newton's method with conjugate gradients, for rows whose margins change by a lot.

        Gradients are in double precision; systems are solved in single precision, since the next
        step corrects what that leaves. A change is kept as ``u = t b + A' a``, together with its
        images ``tau = b.u`` and ``eta = A u``; then inner products, the objective along a line and
        the Hessian need one product with the Gram matrix for each step, and vectors of length k.
        """
        C, rows = self.base.C, self.base.rows
        m, s0 = self.base.margins, self._series[1]
        if self._gram is None and self._by_gram:
            self._gram = rows @ rows.T
        gram = self._gram

        def times_gram(v: FloatArray) -> FloatArray:
            return v @ gram if gram is not None else (v @ rows) @ rows.T

        n = len(b)
        q = b @ rows.T
        t = _proximal(margin, beta, y, C)
        a = np.zeros((n, len(m)))
        tau, eta = t * beta, q * t[:, None]
        u_out, left = np.zeros_like(b), np.full(n, np.inf)
        active = np.arange(n)
        for _ in range(_NEWTON_STEPS):
            pz = sigmoid(margin + tau)
            gt = t + C * sigmoid_error(margin + tau, y)
            ga = a + C * self._response(eta)
            g_eta = q * gt[:, None] + times_gram(ga)
            g_tau = gt * beta + _dot(q, ga)
            g2 = np.maximum(gt * g_tau + _dot(ga, g_eta), 0.0)
            u2 = np.maximum(t * tau + _dot(a, eta), 0.0)
            relative = np.sqrt(g2 / np.maximum(u2, 1e-300))
            is_done = ~(relative > _TOLERANCE)
            if is_done.any():
                at = active[is_done]
                u_out[at] = t[is_done, None] * b[is_done] + a[is_done] @ rows
                left[at] = self._left(u_out[at], b[is_done], margin[is_done], y[is_done])
                stay = ~is_done
                if not stay.any():
                    break
                active = active[stay]
                b, beta, margin, y, q = (v[stay] for v in (b, beta, margin, y, q))
                t, a, tau, eta, gt, ga, g_eta, g_tau, g2, u2, pz, relative = (
                    v[stay] for v in (t, a, tau, eta, gt, ga, g_eta, g_tau, g2, u2, pz, relative)
                )
            curvature = sigmoid(m + eta) * sigmoid(-m - eta) - s0
            scale = np.sqrt(np.maximum(g2, 1e-300))
            forcing = np.clip(np.maximum(relative, 0.1 * _TOLERANCE / relative), _ROUNDED, 0.1)
            dt, da, d_tau, d_eta = _conjugate_gradients(
                tuple((part.T / scale).T.astype(np.float32) for part in (gt, ga, g_tau, g_eta)),
                (C * pz * sigmoid(-margin - tau)).astype(np.float32),
                (C * curvature).astype(np.float32),
                q.astype(np.float32),
                beta.astype(np.float32),
                self._times_gram32,
                stop=forcing**2,
            )
            dt, da, d_tau, d_eta = ((part.T * scale).T for part in (dt, da, d_tau, d_eta))
            ud, dd = t * d_tau + _dot(a, d_eta), dt * d_tau + _dot(da, d_eta)
            first = gt * d_tau + _dot(ga, d_eta)

            def slope(
                s: FloatArray,
                now: tuple[FloatArray, ...] = (eta, d_eta, margin + tau, d_tau, y, ud, dd),
            ) -> FloatArray:
                eta_, d_eta_, mz, d_tau_, y_, ud_, dd_ = now
                e = eta_ + s[:, None] * d_eta_
                error = sigmoid_error(mz + s * d_tau_, y_)
                response = _dot(self._response(e), d_eta_)
                return np.asarray(ud_ + s * dd_ + C * (response + error * d_tau_))

            s = along(slope, first)
            t, a = t + s * dt, a + s[:, None] * da
            tau, eta = t * beta + _dot(q, a), q * t[:, None] + times_gram(a)
        return u_out, left

    def _left(self, u: FloatArray, b: FloatArray, margin: FloatArray, y: FloatArray) -> FloatArray:
        """Bound the error of a change relative to its length, computed afresh from ``u``.

        Where a point lies almost in the span of D and weighs far more, ``t b`` and ``A' a`` cancel,
        and lengths that were computed from ``t`` and ``a`` have no digits left. The gradient is
        measured by the Hessian on D; at the new optimum that may be flatter, by the ratio of the
        weights of its rows at most, and the error is larger by as much.
        """
        base = self.base
        eta = u @ base.rows.T
        error = sigmoid_error(margin + _dot(u, b), y)
        gradient = u + base.C * (error[:, None] * b + self._response(eta) @ base.rows)
        left = np.sqrt(_dot(gradient, gradient) / np.maximum(_dot(u, u), 1e-300))
        moved = base.margins + eta
        flatter = sigmoid(moved) * sigmoid(-moved) / np.maximum(self._series[1], 1e-300)
        return np.asarray(left / np.clip(flatter.min(axis=1, initial=1.0), 1e-300, 1.0))

    def _response(self, eta: FloatArray) -> FloatArray:
        """Return ``r`` in double precision, from the class that is less likely on each row of D."""
        x = self._towards * eta
        moved = sigmoid(self._towards * self.base.margins + x)
        return np.asarray(self._towards * (moved - self._rare64 - self._series[1] * x))


def _dot(a: AnyArray, b: AnyArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", a, b))


def _within(x: AnyArray, radius: float, squares: FloatArray | None = None) -> BoolArray:
    """Tell for which rows every entry is smaller than ``radius``; nan is not."""
    is_short = (_dot(x, x) if squares is None else squares) < radius**2
    long = np.flatnonzero(~is_short)
    if len(long):
        rows = x[long] if len(long) < len(x) else x
        is_short[long] = (rows.max(axis=1) < radius) & (rows.min(axis=1) > -radius)
    return np.asarray(is_short)


def _proximal(
    margin: FloatArray, beta: FloatArray, y: FloatArray, C: float, start: FloatArray | None = None
) -> FloatArray:
    r"""Solve $t = C (y - \sigma(\text{margin} + t \beta))$ for every row.

    With margins $w$ towards the point's own class, before it joins $w_0$, this is
    $f(w) = w - w_0 - C\beta\,\sigma(-w) = 0$. Here $f$ rises, is convex below 0 and concave above,
    and the sign of $f(0)$ tells on which side the root is: kept to that side, Newton's steps
    overshoot at most once. A step $h$ leaves a relative error of $t$ below $h^2$.
    """
    sign = np.where(y > 0, 1.0, -1.0)
    before, pull = sign * margin, C * beta
    after, is_above = before + pull, 2 * before + pull > 0
    low = np.where(is_above, np.maximum(before, 0.0), before)
    high = np.where(is_above, after, np.minimum(after, 0.0))
    w = np.where(is_above, low, high)
    if start is not None:
        w = np.clip(before + np.abs(start) * beta, low, high)
    for _ in range(_NEWTON_STEPS):
        rest = expit(-w)
        step = (before - w + pull * rest) / (1 + pull * rest * (1 - rest))
        w = np.minimum(np.maximum(w + step, low), high)
        if not (np.abs(step) > 1e-5).any():
            break
    return np.asarray(C * sign * expit(-w))


def _conjugate_gradients(
    gradient: tuple[AnyArray, ...],
    weight: AnyArray,
    curvature: AnyArray,
    q: AnyArray,
    beta: AnyArray,
    times_gram: Callable[[AnyArray], AnyArray],
    *,
    stop: FloatArray,
) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    r"""Solve $(I + A^\top \mathrm{diag}(\text{curvature}) A + \text{weight}\,bb^\top) d = -g$.

    Vectors are ``(t, a, tau, eta)`` as in `Joining._newton`; rows stop at their own residual.
    """
    rt, ra, r_tau, r_eta = (-part for part in gradient)
    pt, pa, p_tau, p_eta = rt, ra, r_tau, r_eta
    dt, da, d_tau, d_eta = (np.zeros_like(part) for part in gradient)
    rr = rt * r_tau + _dot(ra, r_eta)
    for _ in range(200):
        mt, ma = pt + weight * p_tau, pa + curvature * p_eta
        bend = mt * p_tau + _dot(ma, p_eta)
        step = np.where((rr > stop) & (bend > 0), rr / np.maximum(bend, 1e-30), 0.0)
        s = step[:, None]
        dt, d_tau = dt + step * pt, d_tau + step * p_tau
        da, d_eta = da + s * pa, d_eta + s * p_eta
        rt, ra = rt - step * mt, ra - s * ma
        r_eta = q * rt[:, None] + times_gram(ra)
        r_tau = rt * beta + _dot(q, ra)
        new = rt * r_tau + _dot(ra, r_eta)
        if not ((new > stop) & (step > 0)).any():
            break
        ratio = np.where(step > 0, new / np.maximum(rr, 1e-30), 0.0)
        w = ratio[:, None]
        pt, p_tau = rt + ratio * pt, r_tau + ratio * p_tau
        pa, p_eta = ra + w * pa, r_eta + w * p_eta
        rr = new
    return dt, da, d_tau, d_eta


def along(slope: Callable[[FloatArray], FloatArray], first: FloatArray) -> FloatArray:
    """Find for every row a step at which the slope has fallen to a tenth, by regula falsi."""
    low, high = np.zeros(len(first)), np.ones(len(first))
    f_low, f_high = first, slope(high)
    s, f = high, f_high
    for _ in range(40):
        is_bad = (f > 0.1 * np.abs(first)) | ((f < -0.9 * np.abs(first)) & (s < 1))
        if not is_bad.any():
            break
        guess = low - f_low * (high - low) / np.where(f_high > f_low, f_high - f_low, np.inf)
        width = high - low
        guess = np.clip(guess, low + 0.05 * width, high - 0.05 * width)
        s = np.where(is_bad, guess, s)
        f = slope(s)
        up = is_bad & (f > 0)
        high, f_high = np.where(up, s, high), np.where(up, f, f_high)
        down = is_bad & (f <= 0)
        low, f_low = np.where(down, s, low), np.where(down, f, f_low)
    return s
