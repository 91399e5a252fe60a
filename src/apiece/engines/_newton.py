r"""Newton's method for one convex problem whose loss depends on margins, as base fits have.

The objective is $F(\theta) = C \sum_i \ell(m_i) + \tfrac12 \theta^\top P \theta$, where the margins
$m$ are linear in $\theta$. Its callers differ in how they find a direction. Many such problems
at once, one for each joining point, are solved by `apiece._base.batched`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from apiece._base.batched import line_search
from apiece._base.typing import FloatArray

_FAR = 1e-3  # decrement from which a whole step may be too long
_ROUNDED = 1e-7  # decrement below which rounding may keep it from decreasing


class Step(NamedTuple):
    """A direction, the change of the margins along it, and its length.

    Parameters
    ----------
    theta, margins
        Changes of the parameters and margins by a whole step.
    slope
        Derivative of the objective along the direction, negative.
    decrement
        Length of the step: how far the optimum is, in the units of the caller's tolerance.
    factor
        Whatever the caller needs of the last step.
    """

    theta: FloatArray
    margins: FloatArray
    slope: float
    decrement: float
    factor: Any = None


def newton(
    direction: Callable[[FloatArray, FloatArray], Step],
    error: Callable[[FloatArray], FloatArray],
    penalty: Callable[[FloatArray], FloatArray],
    start: tuple[FloatArray, FloatArray],
    *,
    C: float,
    tolerance: float,
    max_steps: int,
    is_rounded_fine: bool = True,
) -> tuple[FloatArray, Step] | None:
    """Return the best parameters, and the last step, which led to them.

    None if a step is not finite or ``max_steps`` do not suffice.

    Parameters
    ----------
    direction
        From parameters and margins to Newton's step.
    error
        Derivative of the loss by the margins, at given margins.
    penalty
        ``P`` times a vector of parameters.
    start
        Parameters and their margins.
    C
        Weight of the data.
    tolerance
        Decrement of the last step.
    max_steps
        Limit of steps.
    is_rounded_fine
        Whether to end, too, at a small decrement that no longer decreases.
    """
    theta, margins = start
    before = np.inf
    for _ in range(max_steps):
        step = direction(theta, margins)
        if not np.isfinite(step.decrement):
            return None
        scale = 1.0
        if step.decrement > _FAR:
            inner, square = (float(np.vdot(penalty(v), step.theta)) for v in (theta, step.theta))
            scale = _scale(error, margins, step, C, inner, square)
        theta, margins = theta + scale * step.theta, margins + scale * step.margins
        is_rounded = is_rounded_fine and step.decrement < _ROUNDED
        if step.decrement < tolerance or (is_rounded and step.decrement > 0.1 * before):
            return theta, step
        before = step.decrement
    return None


def _scale(
    error: Callable[[FloatArray], FloatArray],
    margins: FloatArray,
    step: Step,
    C: float,
    inner: float,
    square: float,
) -> float:
    """Return which part of a step to take, between 0 and 1.

    The slope of the penalty along the step is ``inner`` before it and grows by ``square``.
    """

    def slope(s: FloatArray) -> FloatArray:
        of_data = C * np.vdot(error(margins + s[0] * step.margins), step.margins)
        return np.array([of_data + inner + s[0] * square])

    return float(line_search(slope, np.array([step.slope]))[0])
