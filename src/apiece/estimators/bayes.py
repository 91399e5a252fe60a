r"""Empirical Bayes: what all points together teach about each one of them.

The population of laws is learned from all points by marginal likelihood
(`apiece.estimators._population`); each point's posterior then combines it with the point's own
contributions, in closed form. Ten contributions of one point say little about three coefficients;
ten contributions of each of five hundred points say how such coefficients usually look.

With features, or laws from elsewhere as ``prior``, the population is learned around what they say
of each point, together with how far that can be trusted: features are read by a regression on
what theory says matters (`apiece.estimators._regression`), each point's law predicted without the
point's own contributions.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from apiece._base.typing import AnyArray, FloatArray
from apiece.errors import ApieceWarning, FitError
from apiece.estimators._common import (
    all_zero,
    attributes,
    check,
    exponents,
    in_memory_only,
    rescaled,
    some_points,
)
from apiece.estimators._decay import ASSUMED_DECAY, noise_decay, own_decays
from apiece.estimators._estimator import Estimator, Features
from apiece.estimators._families import FamilyLike, curve_at, described, family_over
from apiece.estimators._population import WIDE_POINTS, Population, Sums, first, information, learn
from apiece.estimators._regression import told_by_features
from apiece.estimators._shapes import PowerShapes, Shapes, centres, shapes_of
from apiece.estimators._units import Units, worth_of_squares
from apiece.laws import Blend, Family, FitStatus, Laws, Linear, Ridge, Series
from apiece.laws.sizes import middle
from apiece.laws.status import mark
from apiece.laws.student import beside_noise
from apiece.records import Contributions, Moments, Table

_LEARNERS: Final = 5_000  # points that the population is learned from, at most
# Points to a training set beyond which features are left out: so many, or this part of all points.
_SHARING: Final = 10.0
_PART: Final = 0.02
_GUESS: Final = 0.3  # information of a contribution, before residuals tell


class _Learned(NamedTuple):
    """What all points together told."""

    population: Population  # for estimates, with decays of the points' own
    cautious: Population  # for intervals, with units that know of heavy tails
    beta: float  # the decay of the noise that is common to all points
    information: float


class _Prior(NamedTuple):
    """The prior's coefficients and decays for each point, or None."""

    u: FloatArray | None
    alpha: FloatArray | None

    def take(self, rows: Any) -> _Prior:
        return _Prior(*(None if column is None else column[rows] for column in self))


@dataclass(frozen=True)
class Bayes(Estimator):
    r"""Posterior laws under a population prior that is learned from all points.

    For the series and the ridge family the coefficients have a full population covariance, in five
    sizes; for the power family $\alpha$ has population masses on a grid, and the height is normal
    given $\alpha$. Each point has a unit of its own, which multiplies signal and noise, with a
    heavy-tailed population.
    ``beta`` is common to all points; for estimates, contributions are weighed by a decay of the
    noise of each point's own, drawn to it. Given that, and $\alpha$ or the size, the posterior mean
    is a linear weighting of contributions, of which their plain average is one.

    Posteriors are Student's t with ``df`` degrees of freedom: those of the population of units
    plus the number of contributions.

    Parameters
    ----------
    family
        ``"series"``, ``"power"``, ``"ridge"``, ``"blend"`` (the mean of ``series24``, ``series``
        and ``ridge``), or a family such as ``Series(terms=(2, 4))``.
    prior
        Laws of the same points in the same order, of any family, that the population is learned
        around; None for zero. Ridge laws and blends take none, and no features.
    block
        Entries of a table of moments that are fitted at once; sets memory, not results.
    """

    family: FamilyLike = "series"
    prior: Laws | None = None
    block: int = 200_000

    name: ClassVar[str] = "bayes"
    streams: ClassVar[bool] = True
    takes_features: ClassVar[bool] = True

    def fit_table(self, contributions: Table, features: Features | None = None) -> Laws:
        """Learn the population, then every point's posterior.

        Parameters
        ----------
        contributions
            Table of contributions.
        features
            Features and labels for the regression that supplies the prior; none by default. They
            are left out, with a warning, where more than ten points, and more than a fiftieth of
            all, share their training sets: what is learned from other points then holds the noise
            that these have in common.

        Returns
        -------
        Laws
            Laws with ``cov`` and ``df``. ``diagnostics["population"]`` tells what was learned.
        """
        check(contributions)
        family = family_over(self.family, contributions.k_range)
        if isinstance(family, (Ridge, Blend)) and (features is not None or self.prior is not None):
            raise FitError(
                f"{family.name} laws cannot be learned around features or a prior: expected "
                'contributions alone. Leave those out, or pass family="series".'
            )
        if isinstance(family, Blend):
            each = [replace(self, family=member).fit(contributions) for member in family.members]
            return _blended(each, family)
        if features is not None and self.prior is None:
            prior_laws = self._told(contributions, *features)
            return replace(self, prior=prior_laws).fit(contributions)
        self._check_prior(contributions)
        k_ref = middle(contributions.k_range)
        prior = _Prior(*centres(self.prior, family, k_ref, contributions.k_range))
        learned = self._learn(contributions, family, prior, k_ref)

        parts, flags = [], []
        for rows, moments in contributions.blocks(self.block):
            exponent = exponents(moments)
            parts.append(_posterior(moments, exponent, learned, family, k_ref, prior.take(rows)))
            flags.append((all_zero(moments), (moments.n > 0).sum(axis=1) < 2))
        params, cov, unit = (np.concatenate([part[j] for part in parts]) for j in range(3))
        is_zero, one_size = (np.concatenate([flag[j] for flag in flags]) for j in range(2))
        total = contributions.counts()
        too_few = total < 3
        for column in (params, cov, unit):
            column[too_few] = np.nan
        status = mark(
            len(total),
            (FitStatus.TOO_FEW, too_few),
            (FitStatus.ALL_ZERO, is_zero),
            (FitStatus.ONE_SIZE, one_size),
        )
        nans = np.full(len(total), np.nan)
        settings = {
            "family": described(family),
            "prior": None if self.prior is None else self.prior.attrs.get("estimator", "laws"),
        }
        return Laws(
            family=family,
            params=params,
            cov=cov,
            df=np.where(too_few, np.nan, learned.cautious.units.dfs(total.astype(np.float64))),
            sigma=unit * k_ref ** (learned.beta / 2),
            beta=np.where(too_few, np.nan, learned.beta),
            r2=nans,
            r2_variance=nans.copy(),
            n_samples=total,
            status=status,
            ids=contributions.ids,
            k_range=contributions.k_range,
            attrs=attributes(contributions, "bayes", settings),
            diagnostics={"population": _told(learned)},
        )

    def _told(
        self, contributions: Table, X: Any, y: Any, more: Any, kind: str | None
    ) -> Laws | None:
        """Predict each point's law from features, without its own contributions; None if unwise."""
        if not isinstance(contributions, Contributions):
            raise in_memory_only("bayes with features")
        _, count = np.unique(contributions.task, return_counts=True)
        sharing = float(np.average(count, weights=count))
        most = max(_SHARING, _PART * contributions.n_points)
        if sharing > most:
            warnings.warn(
                f"features are left out: some {sharing:,.0f} points share each training set, so "
                "what is learned from other points holds the noise that all have in common. "
                f"Collect with share={int(most)} or less to let features help.",
                ApieceWarning,
                stacklevel=4,
            )
            return None
        family = family_over(self.family, contributions.k_range)
        plain = Bayes(family if isinstance(family, Series) else "series").fit(contributions)
        params = told_by_features(contributions, plain, X, y, more, kind)
        return replace(plain, params=params, attrs=plain.attrs | {"estimator": "features"})

    def _check_prior(self, contributions: Table) -> None:
        if self.prior is not None and self.prior.n_points != contributions.n_points:
            raise FitError(
                f"prior has laws of {self.prior.n_points:,} points: expected "
                f"{contributions.n_points:,}, one for each point of the contributions in their "
                "order. Pass laws fitted or predicted for the same points."
            )

    def _learn(self, contributions: Table, family: Family, prior: _Prior, k_ref: float) -> _Learned:
        """Learn from some of the points: twice, since residuals of a first fit are needed."""
        shapes = shapes_of(family, k_ref)
        few = some_points(contributions, _LEARNERS)
        sample = contributions.of(few)
        raw = sample.moments()
        if all_zero(raw).any():  # squares of theirs are too small to be told from zero
            few = few[~all_zero(raw)]
            sample = contributions.of(few)
            raw = sample.moments()
        if not len(few):
            unseen = first(shapes)
            return _Learned(unseen, unseen, ASSUMED_DECAY, 1.0)
        exponent = exponents(raw)
        scaled, log_scale = rescaled(raw, exponent), 2 * np.log(2.0) * exponent
        own = _in_units(prior.take(few), exponent)
        beta = noise_decay(scaled, k_ref, exponent)
        sums = Sums.of(scaled, shapes, k_ref, beta, own.alpha)
        many = float(sums.total.sum()) / sums.xtx.shape[-1]

        def learned(sums: Sums, worth: float, **how: Any) -> Population:
            return learn(sums, shapes, log_scale, worth * many, centre=own.u, **how)

        start = learned(sums, _GUESS)
        local, _, _ = _told_by(start, sums, log_scale, own, shapes)
        params = family.from_local(local * _lift(family, exponent, k_ref), k_ref)
        z2 = self._squares(sample, family, params, exponent, beta, k_ref)
        worth = information(sample.task, sample.point, z2)
        weighed = Sums.of(scaled, shapes, k_ref, own_decays(scaled, k_ref, beta), own.alpha)
        population = learned(weighed, worth, start=start)
        cautious = learned(
            sums, worth, start=start, prior=shapes.wide_prior, prior_points=WIDE_POINTS
        )
        around = sums if own.u is None else sums.around(cautious.trust * own.u)
        post = cautious.posterior(around, log_scale)
        q = (post.weight * post.q).sum(axis=1)
        units = Units.of(q, sums.total, log_scale, worth_of_squares(sample.point, z2))
        return _Learned(population, replace(cautious, units=units), beta, worth)

    def _squares(
        self,
        sample: Contributions,
        family: Family,
        params: FloatArray,
        exponent: AnyArray,
        beta: float,
        k_ref: float,
    ) -> FloatArray:
        """Return the squared residual of each contribution, brought to ``k_ref``."""
        row, k = sample.point, sample.k
        told = np.empty(len(row))
        for start in range(0, len(row), self.block):  # one size for each law: bounded memory
            part = slice(start, start + self.block)
            told[part] = curve_at(family, params[row[part]], k[part])
        unit = np.ldexp(1.0, exponent)[row]
        return np.asarray(((sample.delta - told) / unit) ** 2 * (k / k_ref) ** beta)


def _blended(each: list[Laws], family: Blend) -> Laws:
    r"""Return the mean of the laws of a blend's $m$ members, each as likely as the others.

    The errors of such a mixture have the covariance $\frac{1}{m}\sum_j (C_j + d_j d_j^\top)$, with
    $d_j$ how far a member is from the mean: where members disagree, the blend is uncertain. That
    part has nothing to do with the noise (`beside_noise`).
    """
    first, n, p = each[0], each[0].n_points, len(family.parameters)
    params, cov = np.zeros((len(each), n, p)), np.zeros((n, p, p))
    for own, laws, member in zip(params, each, family.members, strict=True):
        places = np.array(family.places(member))
        own[:, places] = laws.params
        cov[:, places[:, None], places] += np.asarray(laws.cov)
    mean = params.mean(axis=0)
    df = np.min([np.asarray(laws.df) for laws in each], axis=0)
    with np.errstate(over="ignore", invalid="ignore"):  # contributions beyond 1e150
        for away in (params - mean) * np.sqrt(beside_noise(df))[:, None]:
            cov += away[:, :, None] * away[:, None, :]
    cov[~np.isfinite(cov).all(axis=(1, 2))] = np.nan
    settings = first.attrs["settings"] | {"family": family.name}
    learned = {described(laws.family): laws.diagnostics["population"] for laws in each}
    return replace(
        first,
        family=family,
        params=mean,
        cov=cov / len(each),
        df=df,
        attrs=first.attrs | {"settings": settings},
        diagnostics={"population": learned},
    )


def _in_units(prior: _Prior, exponent: AnyArray) -> _Prior:
    """Return the prior's coefficients divided by each point's power of two."""
    if prior.u is None:
        return prior
    return _Prior(np.ldexp(prior.u, -exponent[:, None]), prior.alpha)


def _posterior(
    raw: Moments,
    exponent: AnyArray,
    learned: _Learned,
    family: Family,
    k_ref: float,
    prior: _Prior,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return parameters, covariances in local coordinates and units of a block of points."""
    shapes = shapes_of(family, k_ref)
    moments = rescaled(raw, exponent)
    own = _in_units(prior, exponent)
    log_scale = 2 * np.log(2.0) * exponent
    weighed = Sums.of(moments, shapes, k_ref, own_decays(moments, k_ref, learned.beta), own.alpha)
    local, _, _ = _told_by(learned.population, weighed, log_scale, own, shapes)
    sums = Sums.of(moments, shapes, k_ref, learned.beta, own.alpha)
    _, spread, unit = _told_by(learned.cautious, sums, log_scale, own, shapes)
    unit = np.ldexp(unit, exponent)

    lift = _lift(family, exponent, k_ref)
    params = family.from_local(local * lift, k_ref)
    with np.errstate(over="ignore", invalid="ignore"):  # contributions beyond 1e150
        cov = spread * lift[:, :, None] * lift[:, None, :]
    cov[~np.isfinite(cov).all(axis=(1, 2))] = np.nan
    return params, cov, unit


def _lift(family: Family, exponent: AnyArray, k_ref: float) -> FloatArray:
    """Return what takes coordinates in a point's own scale to the law's, ``(n, p)``."""
    scale = np.ldexp(1.0, exponent)[:, None]
    if isinstance(family, Linear):
        return np.asarray(scale / family.basis(np.array([k_ref])))
    return np.concatenate([scale, np.ones_like(scale)], axis=1)


def _told_by(
    population: Population,
    sums: Sums,
    log_scale: FloatArray,
    own: _Prior,
    shapes: Shapes,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return means and scales of t over shapes and sizes, and units, in the points' own scales."""
    shift = np.zeros((1, 1)) if own.u is None else population.trust * own.u
    post = population.posterior(sums if own.u is None else sums.around(shift), log_scale)
    squared = population.units.squared(post.q, sums.total, log_scale)
    mean = post.mean + shift[:, None, :]
    cov = squared[..., None, None] * post.cov
    if isinstance(shapes, PowerShapes):
        alpha = shapes.alpha(own.alpha, len(mean))
        mean = np.concatenate([mean, alpha[..., None]], axis=-1)
        cov = np.pad(cov, [(0, 0), (0, 0), (0, 1), (0, 1)])
    local = np.einsum("nc,ncp->np", post.weight, mean)
    away = mean - local[:, None, :]
    spread = np.einsum("nc,ncpq->npq", post.weight, cov)
    apart = beside_noise(population.units.dfs(sums.total))[:, None] * post.weight
    spread += np.einsum("nc,ncp,ncq->npq", apart, away, away)
    return local, spread, np.sqrt((post.weight * squared).sum(axis=1))


def _told(learned: _Learned) -> dict[str, Any]:
    """Describe what was learned for people and files."""
    population, units = learned.population, learned.cautious.units
    return {
        "covariance": population.s,
        "masses": population.masses,
        "df": units.df,
        "unit": float(np.exp(np.clip(units.log_unit / 2, -700, 700))),
        "worth_of_squares": units.worth,
        "beta": learned.beta,
        "information": learned.information,
        "trust": population.trust,
    }
