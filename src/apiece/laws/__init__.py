r"""Laws: the value of each point at every dataset size.

`Laws` is the result of every estimator: for each point a family of curves, its parameters and
their uncertainty, the law of the noise, a status, and the provenance. Each family is a small
module: [`power`][apiece.laws.power] is the law of the paper, $\psi_k = c/k^\alpha$,
[`series`][apiece.laws.series] is $\psi_k = \sum_j a_j k^{-j/2}$,
[`ridge`][apiece.laws.ridge] is $\psi_k = \sum_j b_j / (k + \kappa_j)$, and
[`blend`][apiece.laws.blend] is a mean of the last two.
"""

from __future__ import annotations

from apiece.laws._basis import FamilyBasis
from apiece.laws._family import Family, FamilyLike, ShapePrior
from apiece.laws._laws import Estimate, Laws
from apiece.laws._linear import Linear
from apiece.laws._words import resolve_family
from apiece.laws.beyond import Beyond
from apiece.laws.blend import Blend
from apiece.laws.power import Power
from apiece.laws.ridge import Ridge
from apiece.laws.series import Series
from apiece.laws.status import FitStatus
from apiece.laws.student import quantile

__all__ = [
    "Beyond",
    "Blend",
    "Estimate",
    "Family",
    "FamilyBasis",
    "FamilyLike",
    "FitStatus",
    "Laws",
    "Linear",
    "Power",
    "Ridge",
    "Series",
    "ShapePrior",
    "quantile",
    "resolve_family",
]
