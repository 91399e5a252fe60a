r"""Search for the best $(\alpha, \beta)$ of every point at once, inside a box.

The profiled likelihood may have several minima. A grid over the box, on merged sizes and by matrix
products, finds the valleys; a projected Newton method follows the deepest few to the bottom.
Rows that have converged leave, so that the slow ones do not hold up the rest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from apiece._base.batched import CONVERGED, RUNNING, solve
from apiece._base.typing import BoolArray, FloatArray, IntArray
from apiece.estimators._profile import Samples, prior, profile

STARTS: Final = 4
_LONGEST: Final = 3.0  # the longest step, in units of alpha and beta
_HALVINGS: Final = 40
_NEAR: Final = 1.0  # log likelihood from the best at which the edge alpha = 0 is looked at, too
_FEW: Final = 16  # with more contributions no valley is narrower than a step of the grid
_GRID_ENTRIES: Final = 200_000  # objective values held at once


class _Iterate(NamedTuple):
    """Where the search of each row is, with the objective there and its derivatives."""

    theta: FloatArray
    f: FloatArray
    gradient: FloatArray
    hessian: FloatArray

    @classmethod
    def at(cls, theta: FloatArray, samples: Samples) -> _Iterate:
        here = profile(samples, theta)
        return cls(theta, here.f, here.gradient, here.hessian)


class _Trial(NamedTuple):
    """The end of a step, and which part of it comes next."""

    theta: FloatArray
    f: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    scale: FloatArray


class _Start(NamedTuple):
    """Where a step starts, and the whole step."""

    theta: FloatArray
    along: FloatArray
    f: FloatArray
    gradient: FloatArray
    samples: Samples


class _Data(NamedTuple):
    samples: Samples


def starts(samples: Samples, bound: float, width: float) -> tuple[IntArray, FloatArray]:
    r"""Find the valleys of the objective over the box.

    For each beta of a grid, the lowest two minima over alpha are found on a grid and then exactly,
    because a narrow oblique valley (little noise) would otherwise look like a chain of minima. The
    minima of $\min_\alpha f$ along beta are the starts. Few contributions with almost no noise have
    a valley so narrow that the prior hides it between two steps of the grid: they are searched
    without the prior, too.

    Parameters
    ----------
    samples
        Contributions of all points, on merged sizes if there are many.
    bound
        Upper end of both axes of the box.
    width
        Log of the largest over the smallest cardinality of all points.

    Returns
    -------
    tuple[IntArray, FloatArray]
        Rows of the points, shape ``(n_starts,)``, and their starts, shape ``(n_starts, 2)``; at
        least one and up to ten for each point.
    """
    # A step of alpha changes the ratio between the ends of a curve by about e at most.
    n_alpha = int(np.clip(np.ceil(bound * width / 0.9) + 1, 20, 64))
    alphas = betas = np.linspace(0.0, bound, n_alpha)
    rows: list[IntArray] = []
    points: list[FloatArray] = []
    step = max(1, _GRID_ENTRIES // (n_alpha * max(n_alpha, samples.x.shape[1])))
    for first in range(0, len(samples.x), step):
        part = samples[first : first + step]
        f = _on_grid(part, alphas, betas)
        alpha, floor = _floors(part, f, alphas, betas)
        row, valley, j = _lowest(alpha, floor, reach=4 * alphas[1])
        # The edge alpha = 0 can hold a separate minimum, close to another one inside.
        edge, at = f[:, 0].min(axis=1), f[:, 0].argmin(axis=1)
        near = np.flatnonzero(edge < floor.min(axis=(1, 2)) + _NEAR)
        rows += [first + row, first + near]
        points.append(np.stack([alpha[row, valley, j], betas[j]], axis=1))
        points.append(np.stack([np.zeros(len(near)), betas[at[near]]], axis=1))
    few = np.flatnonzero(samples.total < _FEW)
    if samples.precision and len(few):
        row, more = starts(replace(samples[few], precision=0.0), bound, width)
        rows.append(few[row])
        points.append(more)
    return np.concatenate(rows), np.concatenate(points)


def _floors(
    samples: Samples, f: FloatArray, alphas: FloatArray, betas: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return alpha and f at the bottom of up to two valleys for each beta, ``(n_rows, 2, n_beta)``.

    ``f`` is the objective on the grid. Where there is one valley only, f of the other is inf.
    """
    is_low = np.ones(f.shape, dtype=bool)
    is_low[:, 1:] &= f[:, 1:] < f[:, :-1]
    is_low[:, :-1] &= f[:, :-1] <= f[:, 1:]
    depth = np.where(is_low, f, np.inf)
    two = np.argpartition(depth, 1, axis=1)[:, :2]
    row, valley, j = np.nonzero(np.take_along_axis(depth, two, axis=1) < np.inf)
    begin = np.stack([alphas[two[row, valley, j]], betas[j]], axis=1)
    minima, lowest = newton(
        samples, row, begin, bound=alphas[-1], tolerance=1e-2, max_steps=6, hold_beta=True
    )
    alpha, floor = np.zeros(two.shape), np.full(two.shape, np.inf)
    alpha[row, valley, j], floor[row, valley, j] = minima[:, 0], lowest
    is_same = np.abs(alpha[:, 0] - alpha[:, 1]) < 1e-3
    floor[:, 1][is_same & np.isfinite(floor[:, 0])] = np.inf
    return alpha, floor


def _on_grid(samples: Samples, alphas: FloatArray, betas: FloatArray) -> FloatArray:
    r"""Evaluate the objective on a grid, shape ``(n_rows, n_alpha, n_beta)``.

    $Q = T - B^2 / C$ with $B = \sum n\bar\Delta e^{(\beta-\alpha)x}$ and
    $C = \sum n e^{(\beta - 2\alpha)x}$: products of matrices, good enough for a first look.
    """
    noise = np.exp(samples.x[:, :, None] * betas)  # (n_rows, n_sizes, n_beta)
    curve = np.exp(-alphas[:, None] * samples.x[:, None, :])  # (n_rows, n_alpha, n_sizes)
    n, mean = samples.n[:, None, :], samples.mean[:, None, :]
    b = (n * mean * curve) @ noise
    c = (n * curve**2) @ noise
    t = (samples.m2[:, None, :] + n * mean**2) @ noise
    q = np.maximum(t - b**2 / c, 1e-12 * t)
    half, tilt = samples.total[:, None, None] / 2, samples.tilt[:, None, None]
    before = prior(alphas[:, None], betas, samples.precision)
    return np.asarray(half * np.log(q) - betas / 2 * tilt + before)


def _lowest(
    alpha: FloatArray, floor: FloatArray, reach: float
) -> tuple[IntArray, IntArray, IntArray]:
    """Return row, valley and beta of the lowest minima along valleys, at most ``STARTS`` a row.

    A valley continues at the next beta where alpha is nearest, if it is within ``reach``.
    """
    is_low = np.isfinite(floor)
    for here, there in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))):
        apart = np.abs(alpha[:, :, None, here] - alpha[:, None, :, there])
        apart[np.broadcast_to(~np.isfinite(floor)[:, None, :, there], apart.shape)] = np.inf
        follows = np.take_along_axis(floor[..., there], apart.argmin(axis=2), axis=1)
        follows = np.where(apart.min(axis=2) <= reach, follows, np.inf)
        is_low[..., here] &= floor[..., here] <= follows
    depth = np.where(is_low, floor, np.inf).reshape(len(floor), -1)
    best = np.argpartition(depth, STARTS, axis=1)[:, :STARTS]
    row, column = np.nonzero(np.take_along_axis(depth, best, axis=1) < np.inf)
    valley, j = np.divmod(best[row, column], floor.shape[-1])
    return row, valley, j


def newton(
    samples: Samples,
    rows: IntArray,
    theta: FloatArray,
    *,
    bound: float,
    tolerance: float,
    max_steps: int,
    hold_beta: bool = False,
) -> tuple[FloatArray, FloatArray]:
    r"""Follow each start downhill to a minimum in the box $[0, \text{bound}]^2$.

    Steps are $-|H|^{-1} g$ with $|H|$ the Hessian whose eigenvalues have lost their signs, so that
    they lead downhill everywhere; coordinates that a bound holds are left out. A row leaves after
    the step whose predicted gain falls below ``tolerance`` (in units of the log likelihood).

    Parameters
    ----------
    samples
        Contributions of all points.
    rows, theta
        Point of each start and where it starts, shapes ``(n_starts,)`` and ``(n_starts, 2)``.
    hold_beta
        Search along alpha alone.

    Returns
    -------
    tuple[FloatArray, FloatArray]
        Minimum reached and objective there, shapes ``(n_starts, 2)`` and ``(n_starts,)``.
    """
    data = samples[rows]

    def step(now: _Iterate, at: _Data) -> tuple[_Iterate, IntArray]:
        along, gain = _direction(now, bound, hold_beta)
        new, has_moved = _descend(now, along, at.samples, bound)
        return new, np.where(has_moved & (gain >= tolerance), RUNNING, CONVERGED)

    end, _, _ = solve(step, _Iterate.at(theta, data), _Data(data), max_steps=max_steps)
    return end.theta, end.f


def _direction(now: _Iterate, bound: float, hold_beta: bool) -> tuple[FloatArray, FloatArray]:
    """Return the step from each row and the gain that it predicts."""
    is_low, is_high = now.theta <= 0.0, now.theta >= bound
    held = (is_low & (now.gradient > 0)) | (is_high & (now.gradient < 0))
    held[:, 1] |= hold_beta
    step = _newton_step(now, held)
    # Where the other coordinate pushes this one out of the box, hold it, too.
    pushed = (is_low & (step < 0)) | (is_high & (step > 0))
    if pushed.any():
        step = _newton_step(now, held | pushed)
    gain = -(step * now.gradient).sum(axis=1) / 2
    longest = np.abs(step).max(axis=1)
    shrink = np.where(longest > _LONGEST, _LONGEST / np.maximum(longest, _LONGEST), 1.0)
    return step * shrink[:, None], gain


def _newton_step(now: _Iterate, held: BoolArray) -> FloatArray:
    """Solve with the sign-free Hessian on the coordinates that are not held."""
    g = np.where(held, 0.0, now.gradient)
    a = np.where(held[:, 0], 1.0, now.hessian[:, 0, 0])
    d = np.where(held[:, 1], 1.0, now.hessian[:, 1, 1])
    b = np.where(held.any(axis=1), 0.0, now.hessian[:, 0, 1])
    middle, half = (a + d) / 2, (a - d) / 2
    radius = np.hypot(half, b)
    high, low = np.abs(middle + radius), np.abs(middle - radius)
    least = 1e-10 * np.maximum(high, low) + 1e-12
    high, low = np.maximum(high, least), np.maximum(low, least)
    # The eigenvectors of [[a, b], [b, d]] lie at the angle t with tan(2 t) = b / half.
    angle = np.arctan2(b, half) / 2
    cos, sin = np.cos(angle), np.sin(angle)
    along = (cos * g[:, 0] + sin * g[:, 1]) / high
    across = (-sin * g[:, 0] + cos * g[:, 1]) / low
    step = -np.stack([cos * along - sin * across, sin * along + cos * across], axis=1)
    return np.where(held, 0.0, step)


def _descend(
    now: _Iterate, along: FloatArray, data: Samples, bound: float
) -> tuple[_Iterate, BoolArray]:
    """Move each row along its step, halved until it leads downhill; return which have moved."""

    def halve(trial: _Trial, start: _Start) -> tuple[_Trial, IntArray]:
        theta = np.clip(start.theta + trial.scale[:, None] * start.along, 0.0, bound)
        then = _Iterate.at(theta, start.samples)
        expected = ((theta - start.theta) * start.gradient).sum(axis=1)
        slack = 1e-14 * (np.abs(start.f) + start.samples.total)
        is_good = then.f <= start.f + 1e-4 * np.minimum(expected, 0.0) + slack
        return _Trial(*then, trial.scale / 2), np.where(is_good, CONVERGED, RUNNING)

    start = _Start(now.theta, along, now.f, now.gradient, data)
    end, status, _ = solve(halve, _Trial(*now, np.ones(len(along))), start, max_steps=_HALVINGS)
    has_moved = (status == CONVERGED) & (along != 0).any(axis=1)
    theta = np.where(has_moved[:, None], end.theta, now.theta)
    f = np.where(has_moved, end.f, now.f)
    return _Iterate(theta, f, end.gradient, end.hessian), has_moved
