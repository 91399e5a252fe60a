r"""Curves that are linear once their shape is given: what empirical Bayes needs of a family.

With $x = k / k_\mathrm{ref}$ a law is $\psi_k = B(x)\,u$. For series and ridge laws $B$ holds their
terms; for the power law it is the one column $x^{-\alpha}$, for each $\alpha$ of a grid. So a
*shape* is a matrix $B$, a family is a list of shapes, and everything else is linear algebra.

What a population looks like before any data is seen also belongs here: curves are taken to be
like the paper's power laws, with $\alpha \sim \mathcal{N}(1, 0.3)$.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from apiece._base.typing import FloatArray
from apiece.laws import Family, Laws, Power, Ridge, Series

DECAY: Final = 1.0  # of the curves of a population, before data is seen, and its spread
SPREAD: Final = 0.3
_GRID: Final = np.linspace(0.0, 3.0, 25)
_RIDGE: Final = 0.01  # variance of each term beyond that of power laws, for estimates
_WIDE_RIDGE: Final = 0.2  # and for intervals
_SIZES: Final = np.array([1 / 16, 1 / 4, 1.0, 4.0, 16.0])  # of a covariance, and their shares
_SHARES: Final = np.array([0.02, 0.08, 0.8, 0.08, 0.02])
_SHIFTED: Final = 0.2  # standard deviation of a shifted term beside that of 1/k, for estimates
_WIDE_SHIFTED: Final = 0.5  # and for intervals


class Shapes(Protocol):
    """The shapes of a family; ``p`` columns each."""

    @property
    def n_shapes(self) -> int:
        """How many shapes there are."""
        ...

    @property
    def sizes(self) -> FloatArray:
        """Factors on the population's covariance, each of which every shape comes with."""
        ...

    @property
    def prior(self) -> FloatArray:
        """Covariance of ``u`` before data, up to its scale, shape ``(p, p)``."""
        ...

    @property
    def wide_prior(self) -> FloatArray:
        """The same for intervals, with room for curves that are not like power laws."""
        ...

    @property
    def masses(self) -> FloatArray:
        """Share of each shape and size before data, shape ``(n_shapes * n_sizes,)``."""
        ...

    def basis(self, x: FloatArray, shape: int, centre: FloatArray | None) -> FloatArray:
        """Evaluate one shape at relative sizes ``(n, m)``, giving ``(n, m, p)``."""
        ...


class _Terms:
    """One shape, whose columns are the terms of a sum.

    Some points have much more signal for their noise than others: the covariance of the
    coefficients comes in five sizes, whose shares are learned.
    """

    @property
    def n_shapes(self) -> int:
        """There is one."""
        return 1

    @property
    def sizes(self) -> FloatArray:
        """From a sixteenth to sixteen times the typical."""
        return _SIZES

    @property
    def masses(self) -> FloatArray:
        """Most points are typical."""
        return _SHARES


@dataclass(frozen=True)
class SeriesShapes(_Terms):
    """The series law."""

    family: Series

    @property
    def prior(self) -> FloatArray:
        """Second moments of power laws, and little beside them."""
        return self._power_laws + _RIDGE * np.eye(len(self.family.terms))

    @property
    def wide_prior(self) -> FloatArray:
        """Second moments of power laws, and room for any term."""
        return self._power_laws + _WIDE_RIDGE * np.eye(len(self.family.terms))

    @cached_property
    def _power_laws(self) -> FloatArray:
        r"""Second moments of power laws written in the terms.

        Each $x^{-\alpha}$ is brought to the terms by least squares over a decade of sizes, and
        averaged over $\alpha$ by Gauss-Hermite quadrature.
        """
        x = np.exp(np.linspace(-1.15, 1.15, 40))
        terms = self.basis(x[None, :], 0, None)[0]
        nodes, weights = np.polynomial.hermite_e.hermegauss(9)
        curves = x[:, None] ** -(DECAY + SPREAD * nodes)
        weight = (x**2.5)[:, None]
        u = np.linalg.solve(terms.T @ (weight * terms), terms.T @ (weight * curves))
        return np.asarray((u * weights / weights.sum()) @ u.T)

    def basis(self, x: FloatArray, shape: int, centre: FloatArray | None) -> FloatArray:
        """Evaluate the terms."""
        return x[..., None] ** (-np.asarray(self.family.terms) / 2)


@dataclass(frozen=True)
class RidgeShapes(_Terms):
    """The ridge law, each of whose terms is one at ``k_ref``.

    Before data all directions of the features are taken to come to life at any size alike: the
    coefficients of all shifts have the same variance, so that curves go on beyond the sampled sizes
    as they come out of them, and intervals grow as that becomes uncertain.
    """

    family: Ridge
    k_ref: float

    @property
    def prior(self) -> FloatArray:
        """The terms apart, those of the shifts smaller than that of 1/k."""
        return self._apart(_SHIFTED)

    @property
    def wide_prior(self) -> FloatArray:
        """The terms apart, and all alike."""
        return self._apart(_WIDE_SHIFTED)

    def _apart(self, shifted: float) -> FloatArray:
        unit = np.where(self._shifts > 0, shifted, 1.0) / (1 + self._shifts)
        return np.diag(unit**2)

    @cached_property
    def _shifts(self) -> FloatArray:
        return np.asarray(self.family.shifts, dtype=np.float64) / self.k_ref

    def basis(self, x: FloatArray, shape: int, centre: FloatArray | None) -> FloatArray:
        """Evaluate the terms."""
        return np.asarray((1 + self._shifts) / (x[..., None] + self._shifts))


@dataclass(frozen=True)
class PowerShapes:
    """The power law: one column for each alpha of a grid, or of a grid around a prior's alpha."""

    @property
    def n_shapes(self) -> int:
        """As many as the grid has values."""
        return len(_GRID)

    @property
    def sizes(self) -> FloatArray:
        """One: the spread of alpha already gives the height heavy tails."""
        return np.ones(1)

    @property
    def masses(self) -> FloatArray:
        """Normal masses, three times as wide as what is typical: the population decides."""
        mass = np.exp(-0.5 * ((_GRID - DECAY) / (3 * SPREAD)) ** 2)
        return np.asarray(mass / mass.sum())

    @property
    def prior(self) -> FloatArray:
        """One."""
        return np.ones((1, 1))

    @property
    def wide_prior(self) -> FloatArray:
        """One: height is all there is."""
        return self.prior

    def alpha(self, centre: FloatArray | None, n: int) -> FloatArray:
        """Return the decays, shape ``(n, n_shapes)``; ``centre`` moves each point's grid."""
        grid = np.broadcast_to(_GRID, (n, len(_GRID)))
        return grid if centre is None else grid + (centre - DECAY)[:, None]

    def basis(self, x: FloatArray, shape: int, centre: FloatArray | None) -> FloatArray:
        """Evaluate the curve of one alpha."""
        alpha = self.alpha(centre, len(x))[:, shape]
        return np.asarray((x ** -alpha[:, None])[..., None])


def shapes_of(family: Family, k_ref: float) -> Shapes:
    """Return the shapes of a family."""
    if isinstance(family, Ridge):
        return RidgeShapes(family, k_ref)
    return SeriesShapes(family) if isinstance(family, Series) else PowerShapes()


def centres(
    prior: Laws | None, family: Family, k_ref: float, k_range: tuple[int, int]
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return what a prior says about each point: its ``u``, ``(n, p)``, and for power laws alpha.

    Laws of another family are brought to this one by least squares over the sampled sizes. A
    point without a law in the prior is told nothing: zero, and the typical decay.
    """
    if prior is None:
        return None, None
    x = np.exp(np.linspace(np.log(k_range[0] / k_ref), np.log(k_range[1] / k_ref), 25))
    curves = np.where(prior.has_law[:, None], prior.mean(x * k_ref), 0.0)
    if isinstance(family, Series):
        terms = SeriesShapes(family).basis(x[None, :], 0, None)[0]
        weight = (x**2.5)[:, None]
        lift = np.linalg.solve(
            terms.T @ (weight * terms) + 1e-9 * np.eye(len(family.terms)), (weight * terms).T
        )
        return curves @ lift.T, None
    if isinstance(prior.family, Power):
        alpha = np.where(prior.has_law, prior.alpha, DECAY)
    else:
        rise = np.abs(curves[:, [0, -1]])
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.log(rise[:, 0] / rise[:, 1]) / np.log(x[-1] / x[0])
        alpha = np.where(np.isfinite(slope), slope, DECAY)
    alpha = np.clip(alpha, 0.0, 3.0)
    lift = x[None, :] ** -alpha[:, None]
    height = (curves * lift).sum(axis=1) / (lift**2).sum(axis=1)
    return height[:, None], alpha
