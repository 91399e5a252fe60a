"""Iterations over many problems at once, one in each row of all arrays.

`solve` repeats a step and lets rows leave as soon as they are done, so that few hard problems do
not keep the easy ones busy; `conjugate_gradients` and `line_search` are the parts of Newton's
method that need more than one evaluation. `find_root` solves one equation in each row: its steps
are so cheap that no row leaves before the last. A single problem is a batch of one row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from apiece._base.typing import AnyArray, BoolArray, FloatArray, IntArray

RUNNING, CONVERGED, LOST = 0, 1, 2

State = TypeVar("State", bound=tuple[Any, ...])
Fixed = TypeVar("Fixed", bound=tuple[Any, ...])
Vector = tuple[AnyArray, ...]


_vecdot: Callable[[AnyArray, AnyArray], AnyArray] = getattr(
    np, "vecdot", partial(np.einsum, "ij,ij->i")
)


def dot(a: AnyArray, b: AnyArray) -> FloatArray:
    """Return the inner product of each row, shape ``(n,)``; what overflows is inf, silently."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(_vecdot(a, b))


def solve(
    step: Callable[[State, Fixed], tuple[State, IntArray]],
    state: State,
    fixed: Fixed,
    *,
    max_steps: int,
    keep: Callable[[BoolArray], None] | None = None,
) -> tuple[State, IntArray, int]:
    """Repeat a step on every row until it is done.

    Parameters
    ----------
    step
        From the state and what is fixed, of the rows that are left, to their new state and status:
        ``RUNNING``, ``CONVERGED`` or ``LOST``.
    state
        A named tuple of arrays with one row for each problem; where the iteration starts.
    fixed
        The same for what no step changes.
    max_steps
        Rows that are still running after so many steps stay ``RUNNING``.
    keep
        Called with a mask of the rows that stay, so that a step can shrink other state.

    Returns
    -------
    tuple
        The state of every row when it left; its status, shape ``(n,)``; and the number of steps.

    Examples
    --------
    Square roots by Newton's method:

    >>> from typing import NamedTuple
    >>> class Guess(NamedTuple):
    ...     x: np.ndarray
    >>> class Number(NamedTuple):
    ...     a: np.ndarray
    >>> def step(guess, number):
    ...     x = (guess.x + number.a / guess.x) / 2
    ...     return Guess(x), np.where(np.abs(x - guess.x) < 1e-9, CONVERGED, RUNNING)
    >>> numbers = Number(np.array([1.0, 2.0]))
    >>> root, status, n_steps = solve(step, Guess(np.ones(2)), numbers, max_steps=20)
    >>> root.x.round(6), status, n_steps
    (array([1.      , 1.414214]), array([1, 1]), 5)
    """
    of_state, of_fixed = getattr(state, "_make"), getattr(fixed, "_make")  # noqa: B009  # Any named tuple
    whole = of_state(part.copy() for part in state)
    active = np.arange(len(whole[0]))
    status, count = np.full(len(active), RUNNING), 0
    while len(active) and count < max_steps:
        state, now = step(state, fixed)
        count += 1
        stay = now == RUNNING
        if stay.all():
            continue
        at = active[~stay]
        status[at] = now[~stay]
        for all_rows, part in zip(whole, state, strict=True):
            all_rows[at] = part[~stay]
        active = active[stay]
        state = of_state(part[stay] for part in state)
        fixed = of_fixed(part[stay] for part in fixed)
        if keep is not None:
            keep(stay)
    for all_rows, part in zip(whole, state, strict=True):
        all_rows[active] = part
    return whole, status, count


def conjugate_gradients(
    product: Callable[[Vector], Vector],
    precondition: Callable[[Vector], Vector],
    inner: Callable[[Vector, Vector], FloatArray],
    b: Vector,
    *,
    forcing: FloatArray,
    max_steps: int,
) -> Vector:
    """Solve ``product(d) = b`` in every row until its residual has fallen by ``forcing``.

    A vector is a tuple of arrays with one row for each problem. Images under ``product`` may have
    other parts than what ``precondition`` makes of them, as long as ``inner`` takes one of each.

    Parameters
    ----------
    product, precondition
        A symmetric positive matrix, and an approximation of its inverse.
    inner
        Inner product of an image and a vector, shape ``(n,)``.
    b
        Right-hand sides, as images.
    forcing
        In the norm of the preconditioner, relative to the right-hand side, shape ``(n,)``.
    max_steps
        Limit of steps.
    """
    r, z = b, precondition(b)
    v, rz = z, inner(r, z)
    d = tuple(np.zeros_like(part) for part in z)
    stop = forcing**2 * rz
    for _ in range(max_steps):
        image = product(v)
        curvature = inner(image, v)
        is_active = (rz > stop) & (curvature > 0)
        if not is_active.any():
            break
        step = np.where(is_active, rz / np.where(is_active, curvature, 1.0), 0.0)
        d, r = _plus(d, step, v), _plus(r, -step, image)
        z = precondition(r)
        new = inner(r, z)
        if not (is_active & (new > stop)).any():
            break
        v = _plus(z, np.where(is_active, new / np.where(is_active, rz, 1.0), 0.0), v)
        rz = np.where(is_active, new, rz)
    return d


def _plus(a: Vector, factor: FloatArray, b: Vector) -> Vector:
    return tuple(
        one + factor.astype(two.dtype).reshape(-1, *[1] * (two.ndim - 1)) * two
        for one, two in zip(a, b, strict=True)
    )


def line_search(slope: Callable[[FloatArray], FloatArray], first: FloatArray) -> FloatArray:
    """Find for every row a step that brings the slope below a tenth of its start; regula falsi.

    Parameters
    ----------
    slope
        Derivative of a convex function along the direction, at a step in each row.
    first
        The slope at step 0, negative; shape ``(n,)``.

    Returns
    -------
    FloatArray
        Steps between 0 and 1, shape ``(n,)``; 1 if a full step is good enough.
    """
    low, high = np.zeros(len(first)), np.ones(len(first))
    f_low, f_high = first, slope(high)
    s, f = high, f_high
    for _ in range(60):
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


def find_root(
    step: Callable[[FloatArray], FloatArray],
    x: FloatArray,
    *,
    low: FloatArray | float = -np.inf,
    high: FloatArray | float = np.inf,
    tolerance: float,
    max_steps: int = 50,
) -> FloatArray:
    """Solve one equation in each row by Newton's method, kept between bounds.

    Parameters
    ----------
    step
        Newton's step at the unknowns.
    x
        Where to start.
    low, high
        Bounds of the unknowns.
    tolerance
        The iteration ends after a step in which no unknown was to change by more.
    max_steps
        Limit of steps.

    Examples
    --------
    >>> squares = np.array([4.0, 9.0])
    >>> find_root(lambda x: (squares / x - x) / 2, np.ones(2), tolerance=1e-9).round(6)
    array([2., 3.])
    """
    for _ in range(max_steps):
        change = step(x)
        x = np.minimum(np.maximum(x + change, low), high)
        if not (np.abs(change) > tolerance).any():
            break
    return x
