r"""How joining points move the optimum of multinomial logistic regression.

With the inverse Hessian on $D$ (`_softmax_fit.py`), $G_z = H^{-1}(B \otimes x_z)$ and
$M_z = (B \otimes x_z)^\top G_z$ of order $K - 1$, the change $\delta$ of the parameters solves

$$\delta = G_z\,t - c, \qquad c = C\,H^{-1} X^\top r(X\delta), \qquad
  t = C\,\bigl(e_{y_z} - \pi(m_z + M_z t - x_z^\top c)\bigr),$$

where $r$, the remainder of the softmax on $D$, is of second order. $G_z$ costs no more than one
product with $H^{-1}$, since $B \otimes x_z$ has rank $K - 1$. The small equation for $t$ is solved
by Newton's method. The large one is iterated with Anderson mixing, in single precision, which
suffices because $r$ is small. Points that move margins too far for this iteration are solved by
Newton's method with conjugate gradients, preconditioned by the same inverse, in double precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from apiece._base.batched import CONVERGED, RUNNING, line_search, solve
from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray
from apiece.engines._softmax_fit import SoftmaxFit, dot, solve_rows, times
from apiece.losses._softmax import (
    against,
    all_probabilities,
    answer,
    errors,
    moves,
    remainder,
    spread,
)

_FAST_STEPS = 40
_DEPTH = 3  # iterates that Anderson's mixing uses
_NEWTON_STEPS = 60
_NEAR = 1e-3  # relative length of a step of Newton's method that needs no line search
# Length of the last step relative to that of the change, in the norm of H, by precision. The error
# is smaller, and in losses with a series it is multiplied by another small number.
_TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-9}
_REACH = 5.0  # largest change of a margin for which the last step certifies the error
# Relative error of a point's pull, given the change, beyond which the iteration has only stopped.
_PULL = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-6}
_ACCEPTED = 1e-5  # relative error of Newton's method at the new optimum
_BENT = 0.03  # after a first step of this relative length or more, the tolerance is smaller


class _Point(NamedTuple):
    """Joining points: features, margins before, and the truth without the last class."""

    x: FloatArray
    margin: FloatArray
    truth: FloatArray


class _Descent(NamedTuple):
    """A change of the parameters, with margins, probabilities and the gradient there."""

    d: FloatArray
    eta: FloatArray
    tau: FloatArray
    pi: FloatArray
    point_pi: FloatArray
    gradient: FloatArray
    relative: FloatArray


@dataclass(frozen=True, eq=False)
class Change:
    """Change of a model by joining points, one row for each point.

    Parameters
    ----------
    parameters
        Change of the parameters, shape ``(n, K - 1, p)``.
    pull
        ``t``, the pull of a point at its margins, shape ``(n, K - 1)``.
    x
        The points, shape ``(n, p)``.
    outside
        Unit vectors of their parts outside the span of D, shape ``(n, d)`` or ``(n, 0)``.
    response
        ``C r``, the response of the points of D beyond first order, shape ``(n, K - 1, k)``.
    """

    parameters: AnyArray
    pull: FloatArray
    x: FloatArray
    outside: FloatArray
    response: AnyArray


class SoftmaxJoining:
    """Solves for the change of parameters when points join D, one row for each point.

    Parameters
    ----------
    base
        The fit on D.
    """

    def __init__(self, base: SoftmaxFit) -> None:
        self.base = base
        dtype = base.inverse.dtype
        by_feature = spread(base.inverse, axis=0).transpose(1, 0, 2, 3)
        self._inverse = by_feature.reshape(len(by_feature), -1)
        self._rows = base.rows.astype(dtype)
        self._pi, self._top = base.pi.astype(dtype), base.pi.argmax(axis=0)
        self._C = dtype.type(base.C)
        self._tolerance = _TOLERANCE[dtype]

    def solve(self, X: FloatArray, y: IntArray) -> tuple[Change, FloatArray, BoolArray]:
        """Return the changes by points that join D one at a time.

        Parameters
        ----------
        X, y
            The points as rows of the design, and their class codes, shape ``(n,)``.

        Returns
        -------
        tuple
            The change; the relative length of the last step, shape ``(n,)``; and which rows have
            converged, shape ``(n,)``.
        """
        x, outside = self.base.place(X)
        margin = spread(x @ self.base.theta.T, axis=1)
        truth = (y[:, None] == np.arange(margin.shape[1])).astype(np.float64)
        parameters, pull, response, left = self._fast(x, margin, truth)
        tau = spread(np.einsum("ncp,np->nc", parameters, x), axis=1)
        missing = np.abs(pull + self.base.C * _errors(margin + tau, truth)).max(axis=1)
        is_wrong = missing > _PULL[parameters.dtype] * np.abs(pull).max(axis=1)
        hard = np.flatnonzero(~(left <= self._tolerance) | is_wrong)
        if len(hard):
            start = parameters[hard].astype(np.float64)
            change, left[hard] = self._newton(start, x[hard], margin[hard], truth[hard])
            tau = spread(np.einsum("ncp,np->nc", change, x[hard]), axis=1)
            pull[hard] = -self.base.C * _errors(margin[hard] + tau, truth[hard])
            eta = spread(times(change, self.base.rows.T))
            old, new = self.base.pi, all_probabilities(self.base.margins + eta)
            response[hard] = self.base.C * (moves(old, new) - answer(old, eta))
            parameters[hard] = change
            # the Hessian at the new optimum may be flatter by this ratio, and the error larger
            flatter = (new / np.maximum(old, 1e-300)).min(axis=(1, 2), initial=1.0)
            left[hard] /= np.maximum(flatter, 1e-300)
        limit = max(self._tolerance, _ACCEPTED)
        is_good = np.isfinite(parameters).all(axis=(1, 2)) & (left <= limit)
        return Change(parameters, pull, x, outside, response), left, is_good

    def by_ease(self, X: FloatArray, y: IntArray) -> IntArray:
        """Order points by the probability of their class, highest first: they move the model least.

        Points solved together should need the same number of steps, because each step reads the
        whole inverse even for a single point.
        """
        x, _ = self.base.place(X)
        pi = all_probabilities(spread(self.base.theta @ x.T))
        return np.argsort(-pi[y, np.arange(len(y))], kind="stable")

    def _fast(
        self, x: FloatArray, margin: FloatArray, truth: FloatArray
    ) -> tuple[AnyArray, FloatArray, AnyArray, FloatArray]:
        """Iterate the optimality condition; rows that fail have ``left`` = inf.

        Rows leave within a step, before its products with the inverse: `solve`, where rows leave
        after a step, took up to a quarter longer.
        """
        base, rows, n = self.base, self._rows, len(x)
        short, (m, p) = x.astype(rows.dtype), base.theta.shape
        G = (short @ self._inverse).reshape(n, m, m * p)
        M = (G.reshape(n, m * m, p) @ short[:, :, None]).reshape(n, m, m)
        M = spread(M.astype(np.float64), axis=2)
        t_all = _proximal(margin, M, truth, base.C, np.zeros_like(margin), steps=60)
        d_all = _weigh(G, np.arange(n), t_all).reshape(n, m, p)
        r_all = np.zeros((n, *base.margins.shape), dtype=rows.dtype)
        left, active = np.full(n, np.inf), np.arange(n)
        mixing = _Mixing(_outer(t_all, short))
        now: list[AnyArray] = [d_all.copy(), t_all, np.ones(n), M, short, margin, truth]
        for count in range(_FAST_STEPS):
            eta = against(self._top, spread(times(now[0], rows.T)))
            reach = np.maximum(eta.max(axis=(1, 2)), -eta.min(axis=(1, 2)))
            is_near = reach < _REACH
            if not is_near.all():
                active, eta, now = active[is_near], eta[is_near], [v[is_near] for v in now]
                mixing.keep(is_near)
            if not len(active):
                break
            d, t, bent, M, short, margin, truth = now
            r = self._C * remainder(self._pi, eta, float(reach[is_near].max()))[:, :-1]
            pushed = times(spread(r), rows)
            c = base.precondition(pushed)
            shift = spread(c @ short[:, :, None])[:, :, 0]
            t = _proximal(margin - shift, M, truth, base.C, t, steps=2)
            new = _weigh(G, active, t).reshape(c.shape)
            new -= c
            image = _outer(t, short) - pushed
            d, relative = mixing.next(d, new, image)
            if count == 0:
                bent = np.clip(relative / _BENT, 1.0, 20.0)
            is_done = relative * bent <= self._tolerance
            done = active[is_done]
            t_all[done], r_all[done], left[done] = t[is_done], r[is_done], relative[is_done]
            close = relative < 0.1
            d_all[active[close]] = new[close]  # start of Newton's method if this fails
            stay, now = ~is_done & (relative < 3.0), [d, t, bent, M, short, margin, truth]
            if not stay.any():
                break
            if not stay.all():
                active, now = active[stay], [v[stay] for v in now]
                mixing.keep(stay)
        return d_all, t_all, r_all, left

    def _newton(
        self, d: FloatArray, x: FloatArray, margin: FloatArray, truth: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Newton's method with conjugate gradients and a line search, in double precision."""
        z = _Point(x, margin, truth)

        def step(now: _Descent, z: _Point) -> tuple[_Descent, IntArray]:
            d = now.d + self._newton_step(now, z)
            new = self._gradient(d, z)
            return new, np.where(new.relative > 0.1 * self._tolerance, RUNNING, CONVERGED)

        end, _, _ = solve(step, self._gradient(d, z), z, max_steps=_NEWTON_STEPS)
        return end.d, np.where(np.isfinite(end.relative), end.relative, np.inf)

    def _gradient(self, d: FloatArray, z: _Point) -> _Descent:
        base, C = self.base, self.base.C
        eta = spread(times(d, base.rows.T))
        tau = spread(np.einsum("ncp,np->nc", d, z.x), axis=1)
        pi, point_pi = all_probabilities(base.margins + eta), _softmax(z.margin + tau)
        gradient = times(d, base.penalty) + C * times(spread(moves(base.pi, pi)), base.rows)
        gradient += _outer(C * _errors(z.margin + tau, z.truth), z.x)
        size = np.maximum(dot(d, base.product(d, base.pi)), 1e-300)
        left = np.maximum(dot(gradient, base.precondition(gradient)), 0.0)
        return _Descent(d, eta, tau, pi, point_pi, gradient, np.sqrt(left / size))

    def _newton_step(self, now: _Descent, z: _Point) -> FloatArray:
        base, C = self.base, self.base.C

        def product(v: FloatArray) -> FloatArray:
            image = base.product(v, now.pi)
            moved = spread(np.einsum("ncp,np->nc", v, z.x)[:, :, None])
            image += _outer(C * answer(now.point_pi[:, :, None], moved)[:, :, 0], z.x)
            return image

        relative = np.maximum(now.relative, 1e-300)
        forcing = np.minimum(0.1, np.maximum(relative, 0.03 * self._tolerance / relative))
        step = solve_rows(product, base.precondition, -now.gradient, forcing, max_steps=200)
        if not relative.max() > _NEAR:
            return np.asarray(step)
        d_eta = spread(times(step, base.rows.T))
        d_tau = spread(np.einsum("ncp,np->nc", step, z.x), axis=1)
        inner, square = (dot(times(v, base.penalty), step) for v in (now.d, step))

        def slope(s: FloatArray) -> FloatArray:
            after = all_probabilities(base.margins + now.eta + s[:, None, None] * d_eta)
            moved = moves(base.pi, after)
            error = _errors(z.margin + now.tau + s[:, None] * d_tau, z.truth)
            return np.asarray(inner + s * square + C * (dot(moved, d_eta) + dot(error, d_tau)))

        return np.asarray(line_search(slope, dot(now.gradient, step))[:, None, None] * step)


class _Mixing:
    """Anderson mixing of the last iterates, separately for each row, in the norm of the Hessian.

    Each iterate comes with its image under the Hessian, which the iteration computes first.

    Parameters
    ----------
    image
        Of the start.
    """

    def __init__(self, image: AnyArray) -> None:
        self._image = image
        self._past: list[tuple[AnyArray, ...]] = []

    def keep(self, rows: BoolArray) -> None:
        """Forget the rows that have left."""
        if not rows.all():
            self._image = self._image[rows]
            self._past = [tuple(part[rows] for part in old) for old in self._past]

    def next(self, start: AnyArray, new: AnyArray, image: AnyArray) -> tuple[AnyArray, FloatArray]:
        """Return the next start after ``start`` led to ``new``, and the step's relative length."""
        f, f_image = new - start, image - self._image
        square = np.maximum(dot(f, f_image), 0.0)
        relative = np.sqrt(square / np.maximum(dot(new, image), 1e-300))
        now = (new, image, f, f_image)
        steps = [
            tuple(part - old for part, old in zip(now, past, strict=True)) for past in self._past
        ]
        self._image = image
        if steps:
            matrix = np.stack([[dot(a[2], b[3]) for b in steps] for a in steps]).transpose(2, 0, 1)
            matrix = (matrix + matrix.transpose(0, 2, 1)) / 2
            ridge = 1e-4 * np.trace(matrix, axis1=1, axis2=2)[:, None, None] + 1e-300
            b = np.stack([dot(step[2], f_image) for step in steps], axis=1)
            weights = np.linalg.solve(matrix + ridge * np.eye(len(steps)), b[:, :, None])
            weights = weights.astype(new.dtype)
            new, self._image = new.copy(), image.copy()
            for j, step in enumerate(steps):
                new -= weights[:, j, :, None] * step[0]
                self._image -= weights[:, j, :, None] * step[1]
        self._past = [*self._past[1 - _DEPTH :], now]
        return new, relative


def _outer(t: FloatArray, x: AnyArray) -> AnyArray:
    """Pulls at the margins of points, as gradients of the parameters, shape ``(n, K - 1, p)``."""
    return np.asarray(spread(t.astype(x.dtype), axis=1)[:, :, None] * x[:, None, :])


def _softmax(m: FloatArray) -> FloatArray:
    """Probabilities of all classes at margins of points, shape ``(n, K)``."""
    return all_probabilities(m[:, :, None])[:, :, 0]


def _errors(m: FloatArray, truth: FloatArray) -> FloatArray:
    """Probabilities less the truth at margins of points, to relative precision."""
    return errors(m[:, :, None], truth[:, :, None])[:, :, 0]


def _weigh(G: AnyArray, rows: IntArray, t: FloatArray) -> AnyArray:
    """``G t`` for some rows of ``G``, which is too large to be copied; shape ``(n, (K - 1) p)``."""
    weighed = np.empty((len(rows), G.shape[2]), dtype=G.dtype)
    for row, weights, out in zip(rows, t.astype(G.dtype), weighed, strict=True):
        np.dot(weights, G[row], out=out)
    return weighed


def _proximal(
    margin: FloatArray, M: FloatArray, truth: FloatArray, C: float, t: FloatArray, *, steps: int
) -> FloatArray:
    r"""Solve $t = C (y - \pi(\text{margin} + M t))$ for every row, by Newton's method.

    Steps that end beyond the minimum of the convex function whose gradient is
    $M(t + C(\pi - y))$ are halved. Returns shape ``(n, K - 1)``. No row leaves before the last:
    a step costs less than a row would to leave.
    """
    eye = np.eye(M.shape[1])
    others = 1.0 - np.eye(M.shape[1] + 1)[:, :-1]

    def residual(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        m = margin + (M @ t[:, :, None])[:, :, 0]
        return t + C * _errors(m, truth), _softmax(m)

    h, p = residual(t)
    for _ in range(steps):
        S = -p[:, :-1, None] * p[:, None, :-1]
        S[:, range(len(eye)), range(len(eye))] = p[:, :-1] * (p @ others)  # 1 - p loses digits
        step = -np.linalg.solve(eye + C * (S @ M), h[:, :, None])
        image = (M @ step)[:, :, 0]
        slope = (image * h).sum(axis=1)
        s, d = np.ones(len(t)), step[:, :, 0]
        for _ in range(40):
            new = t + s[:, None] * d
            h, p = residual(new)
            is_far = (image * h).sum(axis=1) > 0.5 * np.abs(slope)
            if not is_far.any():
                break
            s[is_far] *= 0.5
        t = new
        if (np.abs(d).max(axis=1) <= 1e-9 * np.abs(t).max(axis=1)).all():
            break
    return t
