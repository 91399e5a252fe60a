r"""A family as curves that are linear once their shape is given: what empirical Bayes needs.

With $x = k / k_\mathrm{ref}$ a law is $\psi_k = B(x)\,u$. For sums of terms $B$ holds the terms;
for the power law it is the one column $x^{-\alpha}$, for each $\alpha$ of a grid. So a *shape* is a
matrix $B$, a family is a list of shapes, and everything else is linear algebra.

The prior of the population is defined here too: curves are assumed to be like the paper's power
laws, with $\alpha \sim \mathcal{N}(1, 0.3)$ for given scoring rows. Contributions to the population
may fall faster, by theory as $k^{-2}$, but not for every model: $\alpha \sim \mathcal{N}(1.5,
0.75)$. What they are beyond second-order theory falls faster still, $\alpha \sim \mathcal{N}(2.25,
0.3)$. A few points are not what theory says: their deviations are larger, and like laws of points
of which nothing is known, $\alpha \sim \mathcal{N}(1, 0.5)$.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from apiece._base.typing import BoolArray, FloatArray

if TYPE_CHECKING:
    from apiece.laws._family import Family

DECAY: Final = 1.0  # of the curves of a population, before data is seen, and its spread
SPREAD: Final = 0.3
_DECAY_OF_POPULATION: Final = 1.5  # of contributions to the population
_SPREAD_OF_POPULATION: Final = 0.75
_DECAY_OF_DEVIATIONS: Final = 2.25  # from theory
_SPREAD_OF_DEVIATIONS: Final = 0.3  # standard deviation of that decay
_SPREAD_APART: Final = 0.5  # the same for points that are not what theory says
_SHARE_APART: Final = 0.02  # of these points
_SIZE_APART: Final = 4.0  # variance of their deviations relative to that of the others
_OTHER: Final = 0.01  # variance of each term beyond that of power laws, for estimates
_WIDE_OTHER: Final = 0.2  # the same variance for intervals
_FACTORS: Final = np.array([1 / 16, 1 / 4, 1.0, 4.0, 16.0])  # on a covariance, and their shares
_SHARES: Final = np.array([0.02, 0.08, 0.8, 0.08, 0.02])


@dataclass(frozen=True, eq=False)
class FamilyBasis:
    """A family as ``n_shapes`` lists of ``p`` linear curves, and a population before data.

    Parameters
    ----------
    family, k_ref
        The family, and the size of its local coordinates.
    nodes
        Shape coordinates of each shape, ``(n_shapes, q)``.
    typical
        Typical shape coordinates, ``(q,)``.
    scale_factors
        Factors on the population's covariance, each of which every shape comes with, ``(f,)``.
    masses
        Share of each shape and factor before data, ``(n_shapes * f,)``, factor by factor within a
        shape; then, if there is ``apart``, of each factor on it.
    prior, wide_prior
        Covariance of ``u`` before data, up to its scale, ``(p, p)``: for estimates, and for
        intervals, with room for curves that are not like power laws.
    apart
        Covariance of ``u`` of points apart, in units of the variance of the others at ``k_ref``;
        None if there are none.

    Examples
    --------
    >>> from apiece.laws import Power
    >>> basis = Power().prior_basis(300.0)
    >>> basis.n_shapes, basis.columns(np.array([[1.0, 2.0]]), 0).shape
    (25, (1, 2, 1))
    """

    family: Family
    k_ref: float
    nodes: FloatArray
    typical: FloatArray
    scale_factors: FloatArray
    masses: FloatArray
    prior: FloatArray
    wide_prior: FloatArray
    apart: FloatArray | None = None

    @classmethod
    def of(
        cls,
        family: Family,
        k_ref: float,
        nodes: FloatArray,
        typical: FloatArray,
        masses: FloatArray,
    ) -> FamilyBasis:
        """Add the family's priors and scale factors.

        Some points have a much higher ratio of signal to noise than others. So the covariance of
        the coefficients has five factors, whose shares are learned. With several shapes this is
        not needed, because their spread gives the heights heavy tails.
        """
        one_shape = len(nodes) == 1
        return cls(
            family,
            k_ref,
            nodes,
            typical,
            _FACTORS if one_shape else np.ones(1),
            _SHARES if one_shape else masses,
            *family.priors(k_ref),
        )

    def of_population(self) -> FamilyBasis:
        """Return the basis with priors for contributions to the population.

        Families of several shapes stay as they are: their grids hold such curves.
        """
        prior, wide = self._moments(_DECAY_OF_POPULATION, _SPREAD_OF_POPULATION)
        return self if self.n_shapes > 1 else replace(self, prior=prior, wide_prior=wide)

    def of_deviations(self) -> FamilyBasis:
        """Return the basis with priors for deviations from what theory expects of the population.

        Theory holds to second order, $k^{-2}$, so what it leaves out falls faster than that. For a
        few points, such as those far from all others, it does not hold at these sizes. Families of
        several shapes stay as they are: their grid is moved to the shapes of theory.
        """
        if self.n_shapes > 1:
            return self
        prior, _ = self._moments(_DECAY_OF_DEVIATIONS, _SPREAD_OF_DEVIATIONS)
        apart, _ = self._moments(DECAY, _SPREAD_APART)
        shares = np.array([1 - _SHARE_APART, _SHARE_APART])
        return replace(
            self,
            prior=prior,
            wide_prior=prior,
            apart=_SIZE_APART / apart.sum() * apart,  # all columns are 1 where x is
            masses=(shares[:, None] * self.masses).ravel(),
        )

    def _moments(self, decay: float, spread: float) -> tuple[FloatArray, FloatArray]:
        """Return `power_law_moments` of the first shape."""
        return power_law_moments(lambda x: self.columns(x, 0), decay, spread)

    @property
    def n_shapes(self) -> int:
        """How many shapes there are."""
        return len(self.nodes)

    def shape_values(self, n: int, centre: FloatArray | None = None) -> FloatArray:
        """Return the shape coordinates of ``n`` points, ``(n, n_shapes, q)``.

        A ``centre``, ``(n, q)``, moves each point's grid from what is typical to there.
        """
        values = np.broadcast_to(self.nodes, (n, *self.nodes.shape))
        return values if centre is None else values + (centre - self.typical)[:, None, :]

    def columns(self, x: FloatArray, shape: int, centre: FloatArray | None = None) -> FloatArray:
        """Evaluate one shape at sizes over ``k_ref``, ``(n, m)``, giving ``(n, m, p)``."""
        values = np.broadcast_to(self.nodes[shape], (len(x), len(self.typical)))
        values = values if centre is None else values + (centre - self.typical)
        return self.family.columns(x, values, self.k_ref)

    def at_ends(self, local: FloatArray) -> BoolArray:
        """Return which points, ``(n, p)``, have a shape coordinate at an end of its range."""
        shape = local[:, local.shape[1] - len(self.typical) :]
        ends = [self.nodes.min(axis=0), self.nodes.max(axis=0)]
        return np.asarray(((shape <= ends[0]) | (shape >= ends[1])).any(axis=1))

    def nearest(self, curves: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``u`` and shape coordinates nearest to curves at sizes ``k_ref x``.

        By weighted least squares: ``(n, m)`` and ``(m,)`` give ``(n, p)`` and ``(n, q)``.
        """
        weight = (x**2.5)[:, None]
        lowest = np.full(len(curves), np.inf)
        best = np.zeros((len(curves), len(self.prior))), np.zeros((len(curves), len(self.typical)))
        for shape in range(self.n_shapes):
            terms = self.columns(x[None, :], shape)[0]
            square = terms.T @ (weight * terms) + 1e-9 * np.eye(terms.shape[1])
            u = curves @ np.linalg.solve(square, (weight * terms).T).T
            misfit = (curves - u @ terms.T) ** 2 @ weight[:, 0]
            is_better = misfit < lowest
            lowest = np.where(is_better, misfit, lowest)
            best[0][is_better], best[1][is_better] = u[is_better], self.nodes[shape]
        return best


def power_law_moments(
    columns: Callable[[FloatArray], FloatArray],
    decay: float = DECAY,
    spread: float = SPREAD,
) -> tuple[FloatArray, FloatArray]:
    r"""Return second moments of power laws in terms of columns, each of shape ``(p, p)``.

    Each $x^{-\alpha}$ is projected on the columns by least squares over a decade of sizes, and
    averaged over $\alpha$ by Gauss-Hermite quadrature. A variance of each column is added: small
    for estimates (first result), larger for intervals (second).
    """
    x = np.exp(np.linspace(-1.15, 1.15, 40))
    terms = columns(x[None, :])[0]
    nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    curves = x[:, None] ** -(decay + spread * nodes)
    weight = (x**2.5)[:, None]
    u = np.linalg.solve(terms.T @ (weight * terms), terms.T @ (weight * curves))
    moments = np.asarray((u * weights / weights.sum()) @ u.T)
    return moments + _OTHER * np.eye(len(u)), moments + _WIDE_OTHER * np.eye(len(u))
