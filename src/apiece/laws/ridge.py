r"""The ridge law, $\psi_k = \sum_j b_j / (k + \kappa_j)$, for penalised learners.

With few points the penalty keeps a learner from using directions of its features. To first order a
contribution is $\sum_j c_j / (k h_j + 1/C)$ over the directions, with curvature $h_j$ and penalty
$1/C$. Each direction gives a term in $1/(k + \kappa)$ with $\kappa = 1/(C h_j)$, which is constant
while $k \ll \kappa$ and falls as $1/k$ beyond. While further directions come into use,
contributions fall more slowly than $1/k$. A series in $1/\sqrt{k}$ cannot continue that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from apiece._base.typing import FloatArray
from apiece.errors import DataError, FitError
from apiece.laws._family import Term
from apiece.laws._linear import Linear

_STEP = np.sqrt(10.0)  # factor from one shift to the next
_FIRST, _LAST = 0.3, 10.0  # the least shift over the least size, and the largest over the largest
_SHIFTED = 0.2  # standard deviation of a shifted term relative to that of 1/k, for estimates
_WIDE_SHIFTED = 0.5  # the same for intervals


@dataclass(frozen=True)
class Ridge(Linear):
    r"""The ridge law, with one parameter ``b<shift>`` for each term.

    $$\psi_k = \sum_j \frac{b_j}{k + \kappa_j}$$

    Parameters
    ----------
    shifts
        The sizes $\kappa_j$ beyond which a term falls as $1/k$: whole numbers in rising order,
        starting with 0.

    Examples
    --------
    >>> Ridge(shifts=(0, 100)).mean(np.array([[1.0, 6.0]]), np.array([50.0, 200.0]))
    array([[0.06 , 0.025]])
    """

    name: ClassVar[str] = "ridge"
    needs_population: ClassVar[bool] = True
    shifts: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.shifts[:1] != (0,) or list(self.shifts) != sorted(set(self.shifts)):
            raise FitError(
                f"shifts={self.shifts} is not a ridge law: expected whole numbers in rising order, "
                "the first of them 0. Pass for example shifts=(0, 100, 1000)."
            )

    @classmethod
    def over(cls, k_range: tuple[int, int] | None) -> Self:
        """Return the law with shifts from below the sampled sizes to ten times beyond them.

        Examples
        --------
        >>> Ridge.over((100, 1000)).shifts
        (0, 30, 95, 300, 949, 3000, 9487)
        """
        if k_range is None:
            raise DataError(
                "a word for laws with shifts does not say which: expected a family with them. Pass "
                "for example family=Ridge(shifts=(0, 100, 1000))."
            )
        first, last = _FIRST * k_range[0], _LAST * k_range[1]
        count = 1 + round(float(np.log(last / first) / np.log(_STEP)))
        shifts = np.rint(first * _STEP ** np.arange(count)).astype(int).tolist()
        return cls(tuple(sorted({0, *shifts})))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(f"b{shift}" for shift in self.shifts)

    def basis(self, k: FloatArray) -> FloatArray:
        """Evaluate the terms without their parameters: shape ``(...)`` gives ``(..., p)``."""
        return 1 / (k[..., None] + np.asarray(self.shifts, dtype=np.float64))

    def columns(self, x: FloatArray, shape: FloatArray, k_ref: float) -> FloatArray:
        """Evaluate the terms, each of which is one at ``k_ref``."""
        shifts = np.asarray(self.shifts, dtype=np.float64) / k_ref
        return np.asarray((1 + shifts) / (x[..., None] + shifts))

    def priors(self, k_ref: float) -> tuple[FloatArray, FloatArray]:
        """Return independent coefficients; those of the shifts are smaller than that of 1/k.

        A priori, directions of the features come into use at any size: the coefficients of all
        shifts have the same variance. So curves continue smoothly beyond the sampled sizes, and
        intervals grow with the uncertainty.
        """
        shifts = np.asarray(self.shifts, dtype=np.float64) / k_ref

        def apart(shifted: float) -> FloatArray:
            return np.diag((np.where(shifts > 0, shifted, 1.0) / (1 + shifts)) ** 2)

        return apart(_SHIFTED), apart(_WIDE_SHIFTED)

    @property
    def page_terms(self) -> list[Term] | None:
        """Shifted inverses of ``k``."""
        return [("shift", float(shift)) for shift in self.shifts]

    @classmethod
    def from_word(cls, word: str, k_range: tuple[int, int] | None) -> Self | None:
        """Return the family of ``"ridge"`` over the sampled sizes."""
        return cls.over(k_range) if word == cls.name else None
