r"""Empirical Bayes: what all points together teach about each one of them.

The population of laws is learned from all points by marginal likelihood
(`apiece.estimators._population`); each point's posterior then combines it with the point's own
contributions, in closed form. Ten contributions of one point say little about three coefficients;
ten contributions of each of five hundred points show the usual coefficients.

With features, or laws from elsewhere as ``prior``, the population is learned around what these
predict for each point, together with how far that can be trusted. A regression on what theory says
matters (`apiece.estimators._regression`) reads the features, and predicts each point's law without
the point's own contributions.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from apiece._base.typing import AnyArray, BoolArray, FloatArray, Places
from apiece.errors import ApieceWarning, FitError
from apiece.estimators._assumed import Assumed, Prior, assumed
from apiece.estimators._common import (
    all_zero,
    attributes,
    check,
    evenly_spread_points,
    exponents,
    in_memory_only,
    rescaled,
)
from apiece.estimators._decay import ASSUMED_DECAY, noise_decay
from apiece.estimators._estimator import Estimator, Features
from apiece.estimators._noise_scale import NoiseScale, effective_sample_fraction
from apiece.estimators._population import (
    WIDE_POINTS,
    Population,
    Sums,
    first,
    information,
    learn,
)
from apiece.estimators._regression import predict_from_features
from apiece.estimators._total import Pooled, blocks_by_chance
from apiece.laws import Family, FamilyBasis, FamilyLike, FitStatus, Laws, resolve_family
from apiece.laws.sizes import middle
from apiece.laws.status import mark
from apiece.laws.student import normal_width_factor
from apiece.records import Contributions, Moments, Table

_LEARNERS: Final = 5_000  # points that the population is learned from, at most
# Points to a training set beyond which features are left out: so many, or this part of all points.
_SHARING: Final = 10.0
_PART: Final = 0.02
_GUESS: Final = 0.3  # information of a contribution, before residuals tell


class _Learned(NamedTuple):
    """What was learned from all points together."""

    assumed: Assumed
    population: Population  # for estimates
    cautious: Population  # for intervals, with noise scales that allow for heavy tails
    beta: float  # the decay of the noise that is common to all points
    information: float


class _Posteriors(NamedTuple):
    """Parameters, covariances and noise scales of points, and what makes some of them special."""

    params: FloatArray
    cov: FloatArray
    noise: FloatArray
    gain: FloatArray
    is_zero: BoolArray
    one_size: BoolArray


@dataclass(frozen=True)
class Bayes(Estimator):
    r"""Posterior laws under a population prior that is learned from all points.

    For families that are sums of terms, such as the series, the coefficients have a full population
    covariance, with five factors on it. For other families the shape coordinates, such as $\alpha$
    of the power law, have population masses on a grid, and the linear coordinates are normal given
    these. Each point has a noise scale, which multiplies signal and noise, with a heavy-tailed
    population. ``beta`` is common to all points. Given ``beta`` and the shape, the posterior mean
    is a linear weighting of contributions, of which their plain average is one.

    Shrinking every point towards zero would shrink their total too. For sums of terms the curve of
    the total is therefore moved towards that of the pooled contributions: with the curve $M(k)$ of
    the mean contribution of all $n$ points, the posterior means $m_i(k)$ and their standard errors
    $e_i$ between the smallest and the largest size,

    $$\psi_i(k) = m_i(k) + \frac{e_i}{\sum_j e_j}\,f \Bigl(n M(k) - \sum_j m_j(k)\Bigr),$$

    with $f$ the share of what is missing that is not noise.

    Laws around features or a ``prior`` are not changed: their total is that of the prior.

    Posteriors are Student's t with ``df`` degrees of freedom: those of the population of noise
    scales plus the number of contributions.

    Parameters
    ----------
    family
        ``"series"``, ``"power"``, ``"ridge"``, ``"blend"`` (the mean of ``series24``, ``series``
        and ``ridge``), or any family, such as ``Series(terms=(2, 4))`` or one of your own.
    prior
        Laws of the same points in the same order, of any family, that the population is learned
        around; None for zero. Ridge laws and blends take none, and no features.
    block
        Entries of a table of moments that are fitted at once; sets memory, not results.

    Examples
    --------
    >>> from apiece import synthetic
    >>> truth = synthetic.random_laws(50, random_state=0)
    >>> laws = Bayes("power").fit(synthetic.sample(truth, samples=20, random_state=0))
    >>> bool(np.corrcoef(laws.mean(300), truth.mean(300))[0, 1] > 0.9)
    True
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
            Laws with ``cov`` and ``df``. ``diagnostics["population"]`` says what was learned.
        """
        check(contributions)
        family = resolve_family(self.family, contributions.k_range)
        if family.needs_population and (features is not None or self.prior is not None):
            raise FitError(
                f"{family.name} laws cannot be learned around features or a prior: expected "
                'contributions alone. Leave those out, or pass family="series".'
            )
        if family.members:
            each = [replace(self, family=member).fit(contributions) for member in family.members]
            return _blended(each, family)
        if features is not None and self.prior is None:
            prior_laws = self._from_features(contributions, *features)
            return replace(self, prior=prior_laws).fit(contributions)
        self._check_prior(contributions)
        k_ref = middle(contributions.k_range)
        learned = self._learn(contributions, assumed(contributions, family, self.prior, k_ref))
        total = contributions.counts()
        too_few = total < 3
        found, pooled = self._posteriors(contributions, learned)
        params, cov, noise = found.params, found.cov, found.noise
        for column in (params, cov, noise):
            column[too_few] = np.nan
        if learned.assumed.source in (None, "theory"):
            params, cov = pooled.with_total(params, cov, found.gain, contributions)
        status = mark(
            len(total),
            (FitStatus.TOO_FEW, too_few),
            (FitStatus.ALL_ZERO, found.is_zero),
            (FitStatus.ONE_SIZE, found.one_size),
        )
        nans = np.full(len(total), np.nan)
        settings = {"family": family.word, "prior": learned.assumed.source}
        return Laws(
            family=family,
            params=params,
            cov=cov,
            df=np.where(
                too_few, np.nan, learned.cautious.noise_scale.dfs(total.astype(np.float64))
            ),
            sigma=noise * k_ref ** (learned.beta / 2),
            beta=np.where(too_few, np.nan, learned.beta),
            r2=nans,
            r2_variance=nans.copy(),
            n_samples=total,
            status=status,
            ids=contributions.ids,
            k_range=contributions.k_range,
            attrs=attributes(contributions, "bayes", settings),
            diagnostics={"population": _described(learned)},
        )

    def _posteriors(self, contributions: Table, learned: _Learned) -> tuple[_Posteriors, Pooled]:
        """Return the posterior of every point, block by block, and the pooled contributions."""
        basis, prior = learned.assumed.basis, learned.assumed.prior
        parts, pooled = [], Pooled(basis)
        for rows, moments, even in blocks_by_chance(contributions, self.block):
            pooled.add(even, learned.beta)
            exponent = exponents(moments)
            posterior = _posterior(moments, exponent, learned, prior.take(rows))
            one_size = (moments.n > 0).sum(axis=1) < 2
            parts.append(_Posteriors(*posterior, all_zero(moments), one_size))
        return _Posteriors(*map(np.concatenate, zip(*parts, strict=True))), pooled

    def _from_features(
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
        family = resolve_family(self.family, contributions.k_range)
        plain = Bayes(family if family.is_linear else "series").fit(contributions)
        params = predict_from_features(contributions, plain, X, y, more, kind)
        return replace(plain, params=params, attrs=plain.attrs | {"estimator": "features"})

    def _check_prior(self, contributions: Table) -> None:
        if self.prior is not None and self.prior.n_points != contributions.n_points:
            raise FitError(
                f"prior has laws of {self.prior.n_points:,} points: expected "
                f"{contributions.n_points:,}, one for each point of the contributions in their "
                "order. Pass laws fitted or predicted for the same points."
            )

    def _learn(self, contributions: Table, choices: list[Assumed]) -> _Learned:
        """Learn from some of the points, by what is assumed with the most evidence."""
        few = evenly_spread_points(contributions, _LEARNERS)
        sample = contributions.of(few)
        raw = sample.moments()
        if all_zero(raw).any():  # their squares are too small to differ from zero
            few = Places(few[~all_zero(raw)])
            sample = contributions.of(few)
            raw = sample.moments()
        if not len(few):
            unseen = first(choices[0].basis)
            return _Learned(choices[0], unseen, unseen, ASSUMED_DECAY, 1.0)
        found = [self._learned(sample, raw, few, given) for given in choices]
        return max(found, key=lambda learned: learned.population.evidence)

    def _learned(
        self, sample: Contributions, raw: Moments, few: Places, given: Assumed
    ) -> _Learned:
        """Learn from points with moments: twice, since residuals of a first fit are needed."""
        basis = given.basis
        family, k_ref = basis.family, basis.k_ref
        exponent = exponents(raw)
        scaled, log_scale = rescaled(raw, exponent), 2 * np.log(2.0) * exponent
        own = given.prior.take(few).in_units(exponent)
        beta = noise_decay(scaled, k_ref, exponent)
        sums = Sums.of(scaled, basis, k_ref, beta, own.shape)
        many = float(sums.total.sum()) / sums.xtx.shape[-1]

        def learned(sums: Sums, worth: float, **how: Any) -> Population:
            return learn(
                sums, basis, log_scale, worth * many, centre=own.u, trusted=given.trusted, **how
            )

        start = learned(sums, _GUESS)
        local, _, _, _ = _averaged(start, sums, log_scale, own, basis)
        scales = family.scales(np.ldexp(1.0, exponent), k_ref)
        params = family.from_local(local * scales, k_ref)
        z2 = self._squares(sample, family, params, exponent, beta, k_ref)
        worth = information(sample.task, sample.point, z2)
        population = learned(sums, worth, start=start)
        cautious = learned(
            sums, worth, start=start, prior=basis.wide_prior, prior_points=WIDE_POINTS
        )
        around = sums if own.u is None else sums.around(cautious.trust * own.u)
        post = cautious.posterior(around, log_scale)
        q = (post.weight * post.q).sum(axis=1)
        worth_of_one = effective_sample_fraction(sample.point, z2)
        noise = NoiseScale.of(sums.unweighted(q), sums.n_contributions, log_scale, worth_of_one)
        return _Learned(
            given,
            population,
            replace(cautious, noise_scale=noise),
            beta,
            worth,
        )

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
        row, k = sample.point, sample.k.astype(np.float64)
        predicted = np.empty(len(row))
        for start in range(0, len(row), self.block):  # one size for each law: bounded memory
            part = slice(start, start + self.block)
            predicted[part] = family.curve(params[row[part]], k[part])
        unit = np.ldexp(1.0, exponent)[row]
        return np.asarray(((sample.delta - predicted) / unit) ** 2 * (k / k_ref) ** beta)


def _blended(each: list[Laws], family: Family) -> Laws:
    r"""Return the mean of the laws of a blend's $m$ members, each as likely as the others.

    The errors of such a mixture have the covariance $\frac{1}{m}\sum_j (C_j + d_j d_j^\top)$, with
    $d_j$ how far a member is from the mean: where members disagree, the blend is uncertain. That
    part has nothing to do with the noise (`normal_width_factor`).
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
        for away in (params - mean) * np.sqrt(normal_width_factor(df))[:, None]:
            cov += away[:, :, None] * away[:, None, :]
    cov[~np.isfinite(cov).all(axis=(1, 2))] = np.nan
    settings = first.attrs["settings"] | {"family": family.word}
    learned = {laws.family.word: laws.diagnostics["population"] for laws in each}
    return replace(
        first,
        family=family,
        params=mean,
        cov=cov / len(each),
        df=df,
        attrs=first.attrs | {"settings": settings},
        diagnostics={"population": learned},
    )


def _posterior(
    raw: Moments, exponent: AnyArray, learned: _Learned, prior: Prior
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return parameters, covariances, noise scales and gains of a block of points."""
    basis = learned.assumed.basis
    family, k_ref = basis.family, basis.k_ref
    moments = rescaled(raw, exponent)
    own = prior.in_units(exponent)
    log_scale = 2 * np.log(2.0) * exponent
    sums = Sums.of(moments, basis, k_ref, learned.beta, own.shape)
    local, _, _, gain = _averaged(learned.population, sums, log_scale, own, basis)
    _, spread, noise, _ = _averaged(learned.cautious, sums, log_scale, own, basis)
    unit = np.ldexp(1.0, exponent)
    scales = family.scales(unit, k_ref)
    params = family.from_local(local * scales, k_ref)
    with np.errstate(over="ignore", invalid="ignore"):  # contributions beyond 1e150
        cov = spread * scales[:, :, None] * scales[:, None, :]
    cov[~np.isfinite(cov).all(axis=(1, 2))] = np.nan
    return params, cov, noise * unit, gain


def _averaged(
    population: Population,
    sums: Sums,
    log_scale: FloatArray,
    own: Prior,
    basis: FamilyBasis,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return means and scales of t over shapes and scale factors, noise scales, and gains.

    All are in units of each point's contributions; shape coordinates come last. Gains have none:
    they multiply the weighted sums of contributions, of which means are made.
    """
    shift = np.zeros((1, 1)) if own.u is None else population.trust * own.u
    post = population.posterior(sums if own.u is None else sums.around(shift), log_scale)
    squared = population.noise_scale.squared(
        sums.unweighted(post.q), sums.n_contributions, log_scale
    )
    gain = np.einsum("nc,ncpq->npq", post.weight, post.cov)
    mean = post.mean + shift[:, None, :]
    cov = squared[..., None, None] * post.cov
    shape = basis.shape_values(len(mean), own.shape)
    shape = np.repeat(shape, mean.shape[1] // shape.shape[1], axis=1)
    mean = np.concatenate([mean, shape], axis=-1)
    q = shape.shape[-1]
    cov = np.pad(cov, [(0, 0), (0, 0), (0, q), (0, q)])
    local = np.einsum("nc,ncp->np", post.weight, mean)
    away = mean - local[:, None, :]
    spread = np.einsum("nc,ncpq->npq", post.weight, cov)
    apart = (
        normal_width_factor(population.noise_scale.dfs(sums.n_contributions))[:, None] * post.weight
    )
    spread += np.einsum("nc,ncp,ncq->npq", apart, away, away)
    return local, spread, np.sqrt((post.weight * squared).sum(axis=1)), gain


def _described(learned: _Learned) -> dict[str, Any]:
    """Describe what was learned for people and files."""
    population, noise = learned.population, learned.cautious.noise_scale
    return {
        "covariance": population.s,
        "masses": population.masses,
        "df": noise.df,
        "unit": float(np.exp(np.clip(noise.log_scale2 / 2, -700, 700))),
        "effective_sample_fraction": noise.worth,
        "beta": learned.beta,
        "information": learned.information,
        "trust": population.trust,
    }
