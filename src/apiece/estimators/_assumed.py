"""What is assumed of the population before data: a prior for all points, or one around curves.

Contributions to the population of a generalised linear model have a theory (`_theory`), whose
curves are the prior's centre. Whether it describes them is asked of the contributions: both
assumptions are learned from, and the one with more evidence is kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from apiece._base.typing import AnyArray, FloatArray
from apiece.estimators._theory import expected_laws
from apiece.laws import Family, FamilyBasis, Laws
from apiece.laws.sizes import middle
from apiece.records import POPULATION, Table, scope_of


class Prior(NamedTuple):
    """The prior's coefficients and shape coordinates for each point, or None."""

    u: FloatArray | None
    shape: FloatArray | None

    @classmethod
    def of(cls, laws: Laws | None, family: Family, k_range: tuple[int, int]) -> Prior:
        """Bring laws of any family to this one by least squares over the sampled sizes.

        A point without a law gets zero coefficients and typical shape coordinates.
        """
        if laws is None:
            return cls(None, None)
        k_ref = middle(k_range)
        x = np.exp(np.linspace(np.log(k_range[0] / k_ref), np.log(k_range[1] / k_ref), 25))
        curves = np.where(laws.has_law[:, None], laws.mean(x * k_ref), 0.0)
        return cls(*family.project(curves, x, k_ref))

    def take(self, rows: Any) -> Prior:
        """Return the prior of some points."""
        return Prior(*(None if column is None else column[rows] for column in self))

    def in_units(self, exponent: AnyArray) -> Prior:
        """Return the prior with each point's coefficients divided by its power of two."""
        if self.u is None:
            return self
        return Prior(np.ldexp(self.u, -exponent[:, None]), self.shape)


class Assumed(NamedTuple):
    """What is assumed of the population before data."""

    basis: FamilyBasis
    prior: Prior
    source: str | None = None  # of the prior's curves
    trusted: bool = False  # whether these are taken as they are


def assumed(
    contributions: Table, family: Family, prior: Laws | None, k_ref: float
) -> list[Assumed]:
    """Return what may be assumed of the population; the evidence decides between two."""
    basis, k_range = family.prior_basis(k_ref), contributions.k_range
    if prior is not None:
        source = prior.attrs.get("estimator", "laws")
        return [Assumed(basis, Prior.of(prior, family, k_range), source)]
    if family.needs_population:
        return [Assumed(basis, Prior(None, None))]
    if scope_of(contributions.attrs) == POPULATION:
        basis = basis.of_population()
    choices = [Assumed(basis, Prior(None, None))]
    theory = expected_laws(contributions)
    if theory is not None:  # corrected by the contributions before
        around = Prior.of(theory, family, k_range)
        choices.append(Assumed(basis.of_deviations(), around, "theory", trusted=True))
    return choices
