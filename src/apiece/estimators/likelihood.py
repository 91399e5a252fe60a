r"""The paper's estimator: Gaussian maximum likelihood with noise that shrinks with size.

$$\Delta_i(k) \sim \mathcal{N}\left(\frac{c_i}{k^{\alpha_i}},
  \frac{\sigma_i^2}{k^{\beta_i}}\right)$$

Ten contributions do not identify $\alpha$: the likelihood may be highest at a curve that rises a
thousandfold between the sizes. So the decays of signal and noise, $\alpha$ and $\beta/2$, have a
normal prior around 1, as the paper's amortized estimator has for $\alpha$.

Given $(\alpha, \beta)$ the best $c$ and $\sigma$ have a closed form, which leaves two parameters
per point. The reference implementation takes up to 1,000 Adam steps for one point after another;
here a grid and a few Newton steps fit all points at once, from count, mean and sum of squares at
each size, which are sufficient statistics.

Reference: Covert et al. (ICML 2024), section 3.1 and appendix "Likelihood-based scaling law
estimator".
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Final, NamedTuple

import numpy as np

from apiece._base.typing import AnyArray, FloatArray
from apiece.errors import FitError
from apiece.estimators._bins import Bins
from apiece.estimators._common import (
    all_zero,
    attributes,
    check,
    evenly_spread_points,
    exponents,
    rescaled,
)
from apiece.estimators._curve_fit import fit_curves
from apiece.estimators._decay import noise_decay
from apiece.estimators._estimator import Estimator, Features
from apiece.estimators._linear_fit import LinearFit, fit_linear
from apiece.estimators._profile import Samples, information, profile
from apiece.estimators._search import newton, starts
from apiece.laws import Family, FamilyBasis, FamilyLike, FitStatus, Laws, resolve_family
from apiece.laws.sizes import middle
from apiece.laws.status import mark
from apiece.laws.student import normal_width_factor
from apiece.records import Moments, Table

ASSUMED: Final = (1.0, 2.0)  # alpha and beta where they cannot be estimated, and the prior's middle
_BINS: Final = 24
_TYPICAL: Final = 5_000  # points that the common decay is learned from, at most
_EXACT: Final = 1e-20  # weighted residual sum of squares, relative to the total


class _Block(NamedTuple):
    """Fitted columns of a block of points."""

    params: FloatArray
    beta: FloatArray
    sigma: FloatArray
    cov: FloatArray
    status: AnyArray


@dataclass(frozen=True)
class Likelihood(Estimator):
    r"""Maximum likelihood of one law per point with power-law noise; needs three contributions.

    $\alpha$ and $\beta$ lie in $[0, e^\text{bound}]$, as in the reference implementation, and
    $\alpha, \beta/2 \sim \mathcal{N}(1, \tau^2)$ before data, with $\tau$ = ``prior_sd``. The
    covariance of $(\psi_\mathrm{ref}, \alpha)$ is the inverse of the Gauss-Newton information
    $\sum_k n_k k^{\beta} \nabla\psi_k \nabla\psi_k^\top / s^2$ and the prior's, with
    $s^2 = \hat\sigma^2 m / (m - 3)$ for $m$ contributions; nan where it is singular. The
    information of the prior is $(t/z)^2/\tau^2$, because it does not depend on the
    noise: without information from contributions an interval has the width of the prior. ``sigma``
    is the maximum likelihood estimate.

    All of that is for power laws. A family that is a sum of terms, such as the series, is fitted by
    weighted least squares, with $\beta$ by restricted likelihood, shrunk towards the decay that all
    points have in common, and the exact covariance of the coefficients given it. Laws of any other
    family are searched for (`apiece.estimators._curve_fit`); their shape coordinates have the
    family's prior unless ``prior_sd`` is None.

    Intervals are Student's t with $m - p - 1$ degrees of freedom: $p$ for the parameters of the
    curve and one for the decay of its noise. They assume the family and normal noise:
    `apiece.fit` compares them with held-out tasks and widens them as needed.

    Parameters
    ----------
    family
        ``"power"``, ``"series"``, or any family, such as ``Series(terms=(2, 4))`` or your class;
        not ridge laws and blends, which have too many terms for one point.
    prior_sd
        Prior standard deviation of alpha and beta/2 around 1; None for the plain likelihood of the
        paper, which needs about 50 contributions per point. For power laws.
    bound
        Largest log alpha and log beta.
    tolerance
        A point is finished when a Newton step predicts a smaller gain in log likelihood.
    max_steps
        Most Newton steps for one start.
    block
        Entries of a table of moments that are fitted at once; sets memory, not results.

    Examples
    --------
    >>> from apiece import synthetic
    >>> truth = synthetic.random_laws(20, random_state=0)
    >>> laws = Likelihood().fit(synthetic.sample(truth, samples=50, random_state=0))
    >>> laws.family, laws.n_points
    (Power(), 20)
    """

    family: FamilyLike = "power"
    prior_sd: float | None = 0.5
    bound: float = 2.0
    tolerance: float = 1e-9
    max_steps: int = 100
    block: int = 200_000

    def __post_init__(self) -> None:
        positive = [self.tolerance, self.max_steps, self.block]
        positive += [] if self.prior_sd is None else [self.prior_sd]
        if not (-5 <= self.bound <= 3 and min(positive) > 0):
            raise FitError(
                f"{self} cannot be used: expected -5 <= bound <= 3 (it is a logarithm), and "
                "prior_sd (or None), tolerance, max_steps and block above 0. Leave out what you "
                "need not change."
            )

    @property
    def _precision(self) -> float:
        """Precision of the prior."""
        return 0.0 if self.prior_sd is None else 1 / self.prior_sd**2

    name: ClassVar[str] = "likelihood"
    streams: ClassVar[bool] = True
    is_cross_fitted: ClassVar[bool] = True

    def fit_table(self, contributions: Table, features: Features | None = None) -> Laws:
        """Fit a law and its noise for every point.

        Returns
        -------
        Laws
            Laws with ``cov`` and ``df``; parameters are finite for every point with three
            contributions or more. Where all of them are zero or at one size, alpha = 1 and
            beta = 2 are assumed.
        """
        check(contributions)
        k_ref = middle(contributions.k_range)
        family = resolve_family(self.family, contributions.k_range)
        if family.needs_population:
            raise FitError(
                f"{family.name} laws have too many terms for the contributions of one point: "
                "expected a family such as power, series or series24. Pass one of these, or use "
                "bayes, which learns from all points."
            )
        if family.is_power_law:
            bins = Bins.of_counts(*contributions.sizes(), max_sizes=_BINS, n_bins=_BINS)
            blocks = [
                self._fit_power(moments, family, bins, k_ref)
                for _, moments in contributions.blocks(self.block)
            ]
        else:
            step = max(1, self.block // len(family.parameters))
            typical = _typical_decay(contributions, k_ref)
            basis = family.prior_basis(k_ref)
            blocks = [
                self._fit_curves(moments, basis, typical)
                for _, moments in contributions.blocks(step)
            ]
        params, beta, sigma, cov, status = (
            np.concatenate([block[j] for block in blocks]) for j in range(5)
        )
        count = contributions.counts()
        settings = {item.name: getattr(self, item.name) for item in fields(self)}
        return Laws(
            family=family,
            params=params,
            cov=cov,
            df=np.maximum(count - len(family.parameters) - 1.0, 1.0),
            sigma=sigma,
            beta=beta,
            r2=np.full(len(beta), np.nan),
            r2_variance=np.full(len(beta), np.nan),
            n_samples=count,
            status=status,
            ids=contributions.ids,
            k_range=contributions.k_range,
            attrs=attributes(contributions, "likelihood", settings | {"family": family.word}),
        )

    def _fit_curves(self, raw: Moments, basis: FamilyBasis, typical: float) -> _Block:
        """Fit the points of one block by weighted least squares."""
        family, k_ref = basis.family, basis.k_ref
        n, p, upper = len(raw), len(family.parameters), float(np.exp(self.bound))
        exponent = exponents(raw)
        moments = rescaled(raw, exponent)
        total = moments.n.sum(axis=1)
        too_few, is_zero = total < 3, all_zero(raw)
        one_size = (moments.n > 0).sum(axis=1) < 2
        u, cov = np.zeros((n, p)), np.full((n, p, p), np.nan)
        u[:, family.n_linear :] = basis.typical
        beta, q, left = np.full(n, min(ASSUMED[1], upper)), np.zeros(n), np.zeros(n)
        rows = np.flatnonzero(~(too_few | is_zero))
        if len(rows):
            at = self._search_curves(moments.block(rows), basis, min(typical, upper), upper)
            u[rows], q[rows], left[rows] = at.u, at.q, at.q - _EXACT * at.q_total
            beta[rows] = np.where(one_size[rows], beta[rows], at.beta)
            s2 = at.q / np.maximum(total[rows] - at.rank, 1.0)
            cov[rows] = s2[:, None, None] * at.cov
        status = mark(
            n,
            (FitStatus.TOO_FEW, too_few),
            (FitStatus.ALL_ZERO, is_zero),
            (FitStatus.ONE_SIZE, one_size),
            (FitStatus.EXACT, left <= 0),
            (FitStatus.AT_BOUND, (beta <= 0) | (beta >= upper) | basis.at_ends(u)),
        )
        sigma = np.sqrt(q / np.maximum(total, 1)) * k_ref ** (beta / 2)
        unit = np.ldexp(1.0, exponent)
        scales = family.scales(unit, k_ref)
        params = family.from_local(u * scales, k_ref)
        for column in (params, beta, sigma):
            column[too_few] = np.nan
        with np.errstate(over="ignore", invalid="ignore"):  # contributions beyond 1e150
            cov *= scales[:, :, None]
            cov *= scales[:, None, :]
        cov[~np.isfinite(cov).all(axis=(1, 2))] = np.nan
        return _Block(params, beta, sigma * unit, cov, status)

    def _search_curves(
        self, moments: Moments, basis: FamilyBasis, typical: float, upper: float
    ) -> LinearFit:
        """Fit laws of any family but power laws, in units of the points' contributions."""
        if basis.family.is_linear:
            x = np.where(moments.n > 0, moments.k / basis.k_ref, 1.0)
            columns = basis.columns(x, 0)
            return fit_linear(moments, columns, basis.k_ref, typical=typical, upper=upper)
        has_prior = self.prior_sd is not None
        return fit_curves(moments, basis, typical=typical, upper=upper, has_prior=has_prior)

    def _fit_power(self, raw: Moments, family: Family, bins: Bins, k_ref: float) -> _Block:
        """Fit the points of one block; the easy cases first, then the search for the rest."""
        upper = float(np.exp(self.bound))
        exponent = exponents(raw)
        moments = rescaled(raw, exponent)
        samples = Samples.of(moments, k_ref, self._precision)
        too_few, is_zero = samples.total < 3, all_zero(raw)
        one_size = (moments.n > 0).sum(axis=1) < 2

        theta = np.tile(np.minimum(ASSUMED, upper), (len(raw), 1))
        searched = np.flatnonzero(~(too_few | is_zero | one_size))
        if len(searched):
            theta[searched] = self._search(moments.block(searched), bins, k_ref, upper)

        psi, q, left = np.zeros(len(raw)), np.zeros(len(raw)), np.zeros(len(raw))
        usable = np.flatnonzero(~(too_few | is_zero))
        at = profile(samples[usable], theta[usable])
        psi[usable], q[usable], left[usable] = at.psi, at.q, at.q - _EXACT * at.q_total
        cov = np.full((len(raw), 2, 2), np.nan)
        cov[searched] = _covariance(samples[searched], theta[searched], psi[searched], q[searched])
        status = mark(
            len(raw),
            (FitStatus.TOO_FEW, too_few),
            (FitStatus.ALL_ZERO, is_zero),
            (FitStatus.ONE_SIZE, one_size),
            (FitStatus.EXACT, left <= 0),
            (FitStatus.AT_BOUND, np.asarray(((theta <= 0) | (theta >= upper)).any(axis=1))),
        )
        sigma = np.sqrt(q / np.maximum(samples.total, 1)) * k_ref ** (theta[:, 1] / 2)
        for column in (psi, theta, sigma):
            column[too_few] = np.nan
        unit = np.ldexp(1.0, exponent)
        with np.errstate(over="ignore", invalid="ignore"):  # contributions beyond 1e150
            cov[:, 0, :] *= unit[:, None]
            cov[:, :, 0] *= unit[:, None]
        cov[~np.isfinite(cov).all(axis=(1, 2))] = np.nan
        params = family.from_local(np.stack([psi * unit, theta[:, 0]], axis=1), k_ref)
        return _Block(params, theta[:, 1], sigma * unit, cov, status)

    def _search(self, moments: Moments, bins: Bins, k_ref: float, upper: float) -> FloatArray:
        """Find each point's best (alpha, beta), shape ``(n_points, 2)``."""
        samples = rough = Samples.of(moments, k_ref, self._precision)
        if moments.k.shape[1] > len(bins):
            rough = Samples.of(bins.merge(moments, point_k=True), k_ref, self._precision)
        rows, begin = starts(rough, upper, width=float(np.log(bins.k[-1] / bins.k[0])))
        minima, lowest = newton(
            samples,
            rows,
            begin,
            bound=upper,
            tolerance=self.tolerance,
            max_steps=self.max_steps,
        )
        order = np.lexsort((lowest, rows))
        is_first = np.append(True, rows[order][1:] != rows[order][:-1])
        return np.asarray(minima[order[is_first]])


def _typical_decay(contributions: Table, k_ref: float) -> float:
    """Return the decay of the noise that all points have in common."""
    moments = contributions.of(evenly_spread_points(contributions, _TYPICAL)).moments()
    moments = moments.block(np.flatnonzero(~all_zero(moments)))
    if not len(moments):
        return ASSUMED[1]
    exponent = exponents(moments)
    return noise_decay(rescaled(moments, exponent), k_ref, exponent)


def _covariance(samples: Samples, theta: FloatArray, psi: FloatArray, q: FloatArray) -> FloatArray:
    """Invert the information about (psi_ref, alpha), shape ``(n_rows, 2, 2)``; nan if singular."""
    c, middle, spread = information(samples, theta)
    df = np.maximum(samples.total - 3, 1.0)
    s2 = q / df
    cov = np.empty((len(psi), 2, 2))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # singular: nan below
        known = spread * psi**2 / s2 + samples.precision / normal_width_factor(df)
        cov[:, 0, 0] = s2 / c + (psi * middle) ** 2 / known
        cov[:, 0, 1] = cov[:, 1, 0] = psi * middle / known
        cov[:, 1, 1] = 1 / known
    cov[~np.isfinite(cov).all(axis=(1, 2))] = np.nan
    return cov
