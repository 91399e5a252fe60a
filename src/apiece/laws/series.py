r"""The series law, $\psi_k = \sum_j a_j k^{-j/2}$, from the theory of M-estimators.

A finite validation set gives a term in $1/k$; the next terms are $k^{-3/2}$ and $k^{-2}$. The law
is linear in its parameters. A point may help at one size and hurt at another, which a power law
cannot describe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from apiece._base.typing import FloatArray
from apiece.errors import FitError
from apiece.laws._family import Term
from apiece.laws._linear import Linear

TERMS = (2, 3, 4)


@dataclass(frozen=True)
class Series(Linear):
    r"""The series law, with one parameter ``a<j>`` for each term.

    $$\psi_k = \sum_{j \in \text{terms}} a_j\,k^{-j/2}$$

    Local coordinates are the parameters themselves.

    Parameters
    ----------
    terms
        The powers $j$ in use, in rising order, out of 2, 3 and 4.

    Examples
    --------
    >>> Series(terms=(2, 4)).mean(np.array([[1.0, -2.0]]), np.array([1.0, 4.0]))
    array([[-1.   ,  0.125]])
    """

    name: ClassVar[str] = "series"
    terms: tuple[int, ...] = TERMS

    def __post_init__(self) -> None:
        if not self.terms or list(self.terms) != sorted(set(self.terms) & set(TERMS)):
            raise FitError(
                f"terms={self.terms} is not a series law: expected some of 2, 3 and 4 in rising "
                "order, the term j being k^(-j/2). Pass for example terms=(2, 4)."
            )

    @property
    def word(self) -> str:
        """``"series"``, with its terms unless it has all, such as ``"series24"``."""
        return self.name + ("" if self.terms == TERMS else "".join(map(str, self.terms)))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(f"a{j}" for j in self.terms)

    def basis(self, k: FloatArray) -> FloatArray:
        """Evaluate the terms without their parameters: shape ``(...)`` gives ``(..., p)``."""
        return np.power(k[..., None], -np.asarray(self.terms) / 2)

    def columns(self, x: FloatArray, shape: FloatArray, k_ref: float) -> FloatArray:
        """Evaluate the terms, each of which is one at ``k_ref``."""
        return self.basis(x)

    def tensor_curve(self, coordinates: Any, log_x: Any) -> Any:
        """Evaluate the sum with tensors."""
        parts = [
            coordinates[..., j, None] * (-term / 2 * log_x).exp()
            for j, term in enumerate(self.terms)
        ]
        return sum(parts[1:], parts[0])

    @property
    def page_terms(self) -> list[Term] | None:
        """Powers of ``k``."""
        return [("power", term / 2) for term in self.terms]

    @classmethod
    def from_word(cls, word: str, k_range: tuple[int, int] | None) -> Self | None:
        """Return the family of ``"series"``, or of some terms as in ``"series24"``."""
        digits = word.removeprefix(cls.name)
        if not word.startswith(cls.name) or not (digits == "" or digits.isdigit()):
            return None
        return cls(tuple(int(digit) for digit in digits)) if digits else cls()
