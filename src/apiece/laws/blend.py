r"""The blend of series and ridge laws: curves that may turn out to be either.

Sizes of one decade often do not show whether contributions already fall as $1/k$ (a series) or more
slowly (a ridge law). The mean of several laws predicts better than a wrong one, and its intervals
are wide if the laws disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from apiece._base.typing import FloatArray
from apiece.laws._family import Family, Term
from apiece.laws._linear import Linear
from apiece.laws.ridge import Ridge
from apiece.laws.series import Series


@dataclass(frozen=True)
class Blend(Linear):
    r"""The terms of a series and of a ridge law, whose first term is the same.

    $$\psi_k = \frac{a_2}{k} + \frac{a_3}{k^{1.5}} + \frac{a_4}{k^2}
      + \sum_{\kappa > 0} \frac{b_\kappa}{k + \kappa}$$

    Parameters
    ----------
    ridge
        A ridge law; its shift 0 is the term $1/k$.

    Examples
    --------
    >>> Blend(Ridge((0, 100))).parameters
    ('a2', 'a3', 'a4', 'b100')
    """

    name: ClassVar[str] = "blend"
    needs_population: ClassVar[bool] = True
    ridge: Ridge

    @property
    def members(self) -> tuple[Family, ...]:
        """The families that are blended: the series of two terms and of three, and the ridge law.

        There are two series, so that the ridge law has a weight of one third only: it is the most
        flexible beyond the sampled sizes.
        """
        return Series((2, 4)), Series(), self.ridge

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return Series().parameters + self.ridge.parameters[1:]

    def basis(self, k: FloatArray) -> FloatArray:
        """Evaluate the terms without their parameters: shape ``(...)`` gives ``(..., p)``."""
        return np.concatenate([Series().basis(k), self.ridge.basis(k)[..., 1:]], axis=-1)

    def places(self, member: Family) -> list[int]:
        """Return where the parameters of a member are among those of the blend.

        Examples
        --------
        >>> blend = Blend(Ridge((0, 100)))
        >>> [blend.places(member) for member in blend.members]
        [[0, 2], [0, 1, 2], [0, 3]]
        """
        names = self.parameters
        return [0 if name == "b0" else names.index(name) for name in member.parameters]

    @property
    def page_terms(self) -> list[Term] | None:
        """Those of a series, and those of the ridge law but for its first."""
        return [*(Series().page_terms or ()), *(self.ridge.page_terms or ())[1:]]

    @classmethod
    def from_word(cls, word: str, k_range: tuple[int, int] | None) -> Self | None:
        """Return the family of ``"blend"`` over the sampled sizes."""
        return cls(Ridge.over(k_range)) if word == cls.name else None
