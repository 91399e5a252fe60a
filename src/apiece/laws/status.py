"""Status of the fit of a point, as a sentence for people."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import numpy as np

from apiece._base.typing import AnyArray, BoolArray


class FitStatus(StrEnum):
    """Status of the fit of a point; the value is the sentence that tables print.

    Examples
    --------
    >>> print(FitStatus.TOO_FEW)
    fewer than three contributions: no law
    """

    OK = "fitted"
    TOO_FEW = "fewer than three contributions: no law"
    ONE_SIZE = "contributions at one size only: alpha cannot be estimated, 1 is assumed"
    ALL_ZERO = "every contribution is zero"
    EXACT = "contributions follow the law without noise"
    AT_BOUND = "alpha or beta ran into its bound"
    PREDICTED = "no contributions: predicted from its features"
    UNDESCRIBED = "no family of laws describes its contributions at the largest sizes"
    BEYOND = "not known: the size is beyond what a backtest covers"

    @property
    def has_law(self) -> bool:
        """Whether the point has parameters at all."""
        return self is not FitStatus.TOO_FEW

    @property
    def is_failure(self) -> bool:
        """Whether the contributions do not determine the law (``on_failure="raise"`` stops)."""
        return self in (FitStatus.TOO_FEW, FitStatus.ONE_SIZE)


def statuses(members: Iterable[FitStatus]) -> AnyArray:
    """Return the members as an object array of shape ``(n_points,)``."""
    listed = list(members)
    column = np.empty(len(listed), dtype=object)
    column[:] = listed
    return column


def mark(n_points: int, *rules: tuple[FitStatus, BoolArray]) -> AnyArray:
    """Give each point the status of the first rule that is true for it, ``OK`` if none is.

    >>> [str(s) for s in mark(2, (FitStatus.ALL_ZERO, np.array([True, False])))]
    ['every contribution is zero', 'fitted']
    """
    column = statuses([FitStatus.OK] * n_points)
    for member, holds in reversed(rules):
        column[holds] = member
    return column
