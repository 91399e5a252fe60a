r"""The blend of a series and a ridge law: curves that may turn out to be either.

From sizes of one decade it is often impossible to tell whether contributions already fall as
$1/k$, as a series has it, or go on more slowly, as a ridge law allows. The mean of both foretells
better than the one that happened to be wrong, and where they disagree its intervals are wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apiece._typing import FloatArray
from apiece.errors import FitError
from apiece.laws._linear import Linear
from apiece.laws.ridge import Ridge
from apiece.laws.series import Series


@dataclass(frozen=True)
class Blend(Linear):
    r"""The terms of a series and of a ridge law, whose first term is the same.

    $$\psi_k = \sum_{j \in \text{terms}} a_j\,k^{-j/2}
      + \sum_{\kappa > 0} \frac{b_\kappa}{k + \kappa}$$

    Parameters
    ----------
    series
        A series with the term 2, which is $1/k$.
    ridge
        A ridge law; its shift 0 is that term too.

    Examples
    --------
    >>> Blend(Series((2, 4)), Ridge((0, 100))).parameters
    ('a2', 'a4', 'b100')
    """

    series: Series
    ridge: Ridge

    def __post_init__(self) -> None:
        if self.series.terms[0] != 2:
            raise FitError(
                f"terms={self.series.terms} cannot be blended with a ridge law: expected a series "
                "that begins with the term 2. Pass for example Series(terms=(2, 4))."
            )

    @classmethod
    def over(cls, k_range: tuple[int, int]) -> Blend:
        """Return the blend of two terms of the series and a ridge law to match the sizes."""
        return cls(Series((2, 4)), Ridge.over(k_range))

    @property
    def name(self) -> str:
        """The word for the family."""
        return "blend"

    @property
    def members(self) -> tuple[Series, Ridge]:
        """The families that are blended."""
        return self.series, self.ridge

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.series.parameters + self.ridge.parameters[1:]

    def basis(self, k: FloatArray) -> FloatArray:
        """Evaluate the terms without their parameters, shape ``(n_k, p)``."""
        return np.concatenate([self.series.basis(k), self.ridge.basis(k)[:, 1:]], axis=1)

    def places(self, member: Linear) -> list[int]:
        """Tell where the parameters of a member are among those of the blend.

        >>> blend = Blend(Series((2, 4)), Ridge((0, 100)))
        >>> blend.places(blend.ridge)
        [0, 2]
        """
        names = self.parameters
        return [0 if name == "b0" else names.index(name) for name in member.parameters]
