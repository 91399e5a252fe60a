r"""A population of laws, learned from all points: the heart of empirical Bayes.

In units of its own, every point comes from the same population:

$$\Delta_{ij} = s_i\left(B(x_{ij})\,u_i + x_{ij}^{-\beta/2}\,\varepsilon_{ij}\right), \qquad
  u_i \sim \mathcal{N}(0, f_i S), \qquad s_i^2 \sim \text{scaled inverse } \chi^2_\nu,$$

with $x = k/k_\mathrm{ref}$. The unit $s_i$ multiplies signal and noise alike, since points with
large contributions are also noisy ones; $f_i$, one of a few factors with learned shares, allows
some points more signal for their noise than others. Given $(\beta, S, f)$ the posterior mean does
not depend on the unit: it is the same optimal weighting of contributions for every point, of which
the plain average is one. The unit sets the width of the intervals, as Student's t.

* $\beta$ is common to all points for intervals, and each point's own for estimates
  (`apiece.estimators._decay`);
* $S$ is a penalised maximum of the marginal likelihood, by expectation and maximisation. Ten
  contributions say next to nothing about some of its directions, along which plain steps creep:
  they are accelerated (`_Steps`), and go to the end where points are few, so that $S$ does not
  depend on the units of the contributions;
* $\nu$ and the typical unit come from the spread of the points' log variances
  (`apiece.estimators._noise_scale`).

Noise is not independent between points that share a training set, and has heavy tails between
training sets. `information` measures from the mean squares of the tasks how many independent normal
contributions one contribution is worth; with little information $S$ stays near its prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from apiece._base.typing import FloatArray, IntArray, Places
from apiece.estimators._noise_scale import NoiseScale
from apiece.laws import FamilyBasis
from apiece.records import Moments

PRIOR_POINTS: Final = 20.0  # how many points the prior of shares and of the shape of S is worth
WIDE_POINTS: Final = 3.0  # points that the prior of the shape is worth, for intervals
_FIRST_POINTS: Final = 1.0  # points that the prior of the size of S is worth
_FIRST_SIGNAL: Final = 0.1  # variance of the signal relative to that of the noise
_STEPS: Final = 120  # steps for many points; fewer points may take more and shorter steps
_MANY: Final = 500  # points, at least, to count as many
_MEMORY: Final = 6  # steps that the next one is found from
_LEAP: Final = 2.0  # farthest beyond a plain step, in the coordinates of `_flat`
_FALL: Final = 1.0  # of the log evidence: a leap that loses more is taken back
_TOLERANCE: Final = 1e-6
_SIGNAL: Final = (1e-8, 1e8)  # least and most variance of coefficients, relative to the noise


class Sums(NamedTuple):
    r"""Weighted sums of each point, sufficient given the shapes and the noise decay.

    With $w = n x^{\beta}$, for each of ``b`` shapes: ``xtx`` $= \sum w B^\top B$, shape
    ``(n, b, p, p)``; ``xty`` $= \sum w B^\top\bar\Delta$, ``(n, b, p)``; ``yty``
    $= \sum x^\beta (M + n\bar\Delta^2)$, ``(n, b)`` or ``(n, 1)``; ``total``, the sum of
    the weights of contributions, and their number, each ``(n,)``. The decay $\beta$ is one for all,
    or one for each point, ``(n, 1)``.
    """

    xtx: FloatArray
    xty: FloatArray
    yty: FloatArray
    total: FloatArray
    n_contributions: FloatArray

    @classmethod
    def of(
        cls,
        moments: Moments,
        basis: FamilyBasis,
        k_ref: float,
        beta: float | FloatArray,
        centre: FloatArray | None = None,
    ) -> Sums:
        """Sum over the sizes of each point."""
        x = np.where(moments.n > 0, moments.k / k_ref, 1.0)
        noise = x**beta
        w = moments.n * noise
        xtx, xty = [], []
        for shape in range(basis.n_shapes):
            columns = basis.columns(x, shape, centre)
            weighted = w[..., None] * columns
            xtx.append(np.einsum("nmp,nmq->npq", weighted, columns))
            xty.append(np.einsum("nmp,nm->np", weighted, moments.mean))
        yty = (noise * moments.m2 + w * moments.mean**2).sum(axis=1)
        return cls(
            np.stack(xtx, 1),
            np.stack(xty, 1),
            yty[:, None],
            moments.n.sum(axis=1),
            moments.counts(),
        )

    def around(self, u: FloatArray) -> Sums:
        """Return the sums of the deviations from curves with coefficients ``u``, ``(n, p)``."""
        predicted = np.einsum("nbpq,nq->nbp", self.xtx, u)
        # With several shapes each sees its own curve; the sum of squares is then that shape's.
        cross = np.einsum("nbp,np->nb", self.xty, u)
        square = np.einsum("nbp,np->nb", predicted, u)
        yty = np.maximum(self.yty - 2 * cross + square, 0.0)
        return Sums(self.xtx, self.xty - predicted, yty, self.total, self.n_contributions)

    def unweighted(self, q: FloatArray) -> FloatArray:
        """Return squared lengths ``(n, ...)`` as if all contributions had the weight one."""
        share = self.n_contributions / np.where(self.total > 0, self.total, 1.0)
        return np.asarray(q * share.reshape(-1, *[1] * (q.ndim - 1)))


class Posterior(NamedTuple):
    """What the population and a point's own contributions say about its ``u``.

    There is one for each shape and scale factor, factor by factor within a shape, and one for each
    factor of points apart; ``c`` in all.
    """

    mean: FloatArray  # (n, c, p), in the units of the contributions
    cov: FloatArray  # (n, c, p, p), in the point's unit
    q: FloatArray  # squared length of the contributions relative to the population, (n, c)
    log_det: FloatArray  # log determinant of their covariance relative to that of the noise, (n, c)
    weight: FloatArray  # (n, c)


@dataclass(frozen=True)
class Population:
    """Parameters of a population.

    Parameters
    ----------
    s
        Covariance of ``u``, shape ``(p, p)``.
    scale_factors
        Factors $f$ on it, shape ``(f,)``.
    masses
        Share of each shape and scale factor, shape ``(c,)``.
    noise_scale
        The population of the points' noise scales.
    trust
        Factor on the prior's curves; 1 takes them as they are.
    apart
        Covariance of ``u`` of points apart, which theory does not describe, in units of the
        variance of the others at the reference size; None if there are none.
    evidence
        Mean log evidence of a point that the last step of learning began with, up to a constant.
    """

    s: FloatArray
    scale_factors: FloatArray
    masses: FloatArray
    noise_scale: NoiseScale
    trust: float = 1.0
    apart: FloatArray | None = None
    evidence: float = -np.inf

    def posterior(self, sums: Sums, log_scale: FloatArray) -> Posterior:
        r"""Update the population by each point's contributions.

        With $S = LL^\top$, $L^\top X^\top W X L = U\,\mathrm{diag}(d)\,U^\top$ and
        $z = U^\top L^\top X^\top W y$, factor $f$ has the covariance
        $C = LU\,\mathrm{diag}(g)\,U^\top L^\top$ with $g = f/(1 + fd)$, the mean
        $LU\,\mathrm{diag}(g)\,z$, and $q = y^\top V^{-1} y = y^\top W y - \sum g z^2$. The unit
        integrated out, the evidence is that of a multivariate t. Nothing is ever singular.

        Parameters
        ----------
        sums
            Weighted sums, each point's contributions divided by a scale of its own.
        log_scale
            Log of those scales squared, shape ``(n,)``.
        """
        given = [_given(self.s, self.scale_factors, sums)]
        if self.apart is not None:
            # All columns are 1 at the reference size, so S has the variance of its sum there.
            given.append(_given(self.apart * self.s.sum(), self.scale_factors, sums))
        mean, cov, q, log_det = (np.concatenate(part, axis=1) for part in zip(*given, strict=True))
        dfs = self.noise_scale.dfs(sums.total)[:, None]
        length = dfs * self.noise_scale.squared(q, sums.total, log_scale)
        log_p = np.log(self.masses) - 0.5 * log_det - 0.5 * dfs * np.log(length)
        weight = np.exp(log_p - log_p.max(axis=1, keepdims=True))
        return Posterior(mean, cov, q, log_det, weight / weight.sum(axis=1, keepdims=True))


def _given(
    s: FloatArray, factors: FloatArray, sums: Sums
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return mean, covariance, ``q`` and ``log_det`` of `Posterior` for a covariance of ``u``."""
    root = np.linalg.cholesky(s)
    d, vectors = np.linalg.eigh(root.T @ sums.xtx @ root)
    lift = root @ vectors
    z = (sums.xty[:, :, None, :] @ lift)[:, :, 0]
    grown = factors[:, None] * np.maximum(d, 0.0)[:, :, None, :]
    gain = factors[:, None] / (1 + grown)
    n, p, c = len(d), len(s), d.shape[1] * len(factors)
    across = lift.swapaxes(-1, -2)
    mean = ((gain * z[:, :, None, :]) @ across).reshape(n, c, p)
    cov = (lift[:, :, None] * gain[..., None, :]) @ across[:, :, None]
    explained = (gain @ (z**2)[..., None])[..., 0]
    yty = sums.yty[:, :, None]
    q = np.maximum(yty - explained, 1e-12 * yty).reshape(n, c)
    log_det = np.log1p(grown).sum(axis=-1).reshape(n, c)
    return mean, cov.reshape(n, c, p, p), q, log_det


def first(basis: FamilyBasis, log_scale2: float = 0.0) -> Population:
    """Return a population before any data: the prior, with a tenth as much signal as noise."""
    s = _FIRST_SIGNAL * basis.prior
    noise = NoiseScale(1.0, log_scale2)
    return Population(s, basis.scale_factors, basis.masses, noise, apart=basis.apart)


def learn(
    sums: Sums,
    basis: FamilyBasis,
    log_scale: FloatArray,
    n_effective: float,
    *,
    start: Population | None = None,
    centre: FloatArray | None = None,
    trusted: bool = False,
    prior: FloatArray | None = None,
    prior_points: float = PRIOR_POINTS,
) -> Population:
    """Maximise the penalised marginal likelihood over the population.

    Parameters
    ----------
    sums
        Weighted sums of the points to learn from, in scales of their own.
    basis
        The family's curves, and its population before data.
    log_scale
        Log of each point's squared scale.
    n_effective
        How many independent points they are worth.
    start
        Where to begin.
    centre
        Coefficients of the prior's curves, shape ``(n, p)``, around which to learn.
    trusted
        Whether these curves are taken as they are; otherwise a factor on them is learned.
    prior
        Shape of the covariance before data; by default that of the family for estimates.
    prior_points
        How many points that is worth; the prior of the shares is worth ``PRIOR_POINTS``.
    """
    goal = _Goal(
        sums,
        basis,
        log_scale,
        n_effective,
        centre,
        trusted,
        basis.prior if prior is None else prior,
        prior_points,
    )
    square = np.log(sums.yty[:, 0] / sums.total) + log_scale
    now = start or first(basis, float(np.median(square)))
    ease = min(1.0, len(square) / _MANY)  # few points take no time, and may need more steps
    steps, plain, last, least = _Steps(), now, -np.inf, np.inf
    for step in range(int(_STEPS / max(ease, 0.04))):
        then = _improved(now, goal)
        at, there = _flat(now), _flat(then)
        change = float(np.abs(there - at).max())
        fell = n_effective * (then.evidence - last) < -_FALL
        if fell or (step >= _STEPS * ease and change > least):  # it leapt astray
            steps, now, last, least = _Steps(), plain, -np.inf, np.inf
            continue
        plain, last, least = then, then.evidence, change
        if change < _TOLERANCE * ease**2:
            break
        now = _unflat(steps.leap(at, there), then)
    return plain


class _Goal(NamedTuple):
    """What `learn` learns from, see there; ``before`` is the covariance before data."""

    sums: Sums
    basis: FamilyBasis
    log_scale: FloatArray
    n_effective: float
    centre: FloatArray | None
    trusted: bool
    before: FloatArray
    prior_points: float


def _improved(now: Population, goal: _Goal) -> Population:
    """Take one step of expectation and maximisation."""
    sums, basis, log_scale, n_effective, centre, trusted, before, prior_points = goal
    data = sums
    if centre is not None:
        now = now if trusted else _with_trust(now, sums, centre, log_scale)
        data = sums.around(now.trust * centre)
    post = now.posterior(data, log_scale)
    evidence = _evidence(now.masses, post, data.total)
    now = replace(
        now,
        noise_scale=NoiseScale.of(
            data.unweighted((post.weight * post.q).sum(axis=1)), data.n_contributions, log_scale
        ),
    )
    factors = np.tile(now.scale_factors, basis.n_shapes)
    within = post.weight[:, : len(factors)]  # points apart say nothing about S
    weight = np.zeros_like(post.weight)
    weight[:, : len(factors)] = within / factors
    inverse = weight / now.noise_scale.squared(
        data.unweighted(post.q), data.n_contributions, log_scale
    )
    flat = post.mean.reshape(-1, len(now.s))
    moments = (inverse.reshape(-1, 1) * flat).T @ flat + np.tensordot(weight, post.cov, 2)
    moments /= max(float(within.sum()), 1e-300)
    # The prior has a say in the shape of S, and next to none in its size: just enough for a few
    # points without any signal to have a best size above zero.
    prior = before * (np.trace(moments) / np.trace(before))
    s = n_effective * moments + prior_points * prior + _FIRST_POINTS * _FIRST_SIGNAL * before
    s /= n_effective + prior_points + _FIRST_POINTS
    s *= np.clip(np.trace(s), *_SIGNAL) / np.trace(s)
    masses = n_effective * post.weight.mean(axis=0) + PRIOR_POINTS * basis.masses
    return replace(now, s=(s + s.T) / 2, masses=masses / masses.sum(), evidence=evidence)


def _evidence(masses: FloatArray, post: Posterior, total: FloatArray) -> float:
    """Return the mean log evidence of a point whose unit may be any, up to a constant."""
    fit = total[:, None] * np.log(np.maximum(post.q, 1e-300))
    log_p = np.log(masses) - 0.5 * (post.log_det + fit)
    top = log_p.max(axis=1)
    return float((top + np.log(np.exp(log_p - top[:, None]).sum(axis=1))).mean())


class _Steps:
    r"""Steps of a slow iteration $x \to g(x)$, and where they lead (Anderson 1965).

    Of the last few steps $f_j = g_j - x_j$ the combination is taken that is nearest to no step at
    all, $\min \lVert f - \sum_j \gamma_j\,\delta f_j \rVert$, and the next place is
    $g - \sum_j \gamma_j\,\delta g_j$: along directions in which an iteration creeps it learns how
    far it has to go.
    """

    def __init__(self) -> None:
        self._places: list[FloatArray] = []
        self._steps: list[FloatArray] = []

    def leap(self, at: FloatArray, then: FloatArray) -> FloatArray:
        """Return where to go after a step from ``at`` to ``then``."""
        step = then - at
        self._places = [*self._places, then][-_MEMORY:]
        self._steps = [*self._steps, step][-_MEMORY:]
        if len(self._steps) < 2:
            return then
        turns = np.diff(self._steps, axis=0)
        away = -np.linalg.lstsq(turns.T, step, rcond=1e-5)[0] @ np.diff(self._places, axis=0)
        return np.asarray(then + away * min(1.0, _LEAP / max(float(np.abs(away).max()), _LEAP)))


def _flat(population: Population) -> FloatArray:
    """Return coordinates that may be moved freely: of the Cholesky factor, and roots of masses.

    The logarithm of the factor's diagonal, and the rest of each row in units of it.
    """
    root = np.linalg.cholesky(population.s)
    size = np.diag(root)
    below = (root / size[:, None])[np.tril_indices(len(root), -1)]
    return np.concatenate([np.log(size), below, np.sqrt(population.masses)])


def _unflat(x: FloatArray, then: Population) -> Population:
    """Return the population at some coordinates, or ``then`` if its spread is degenerate."""
    p = len(then.s)
    root, (size, rest) = np.eye(p), np.split(x, [p])
    below = np.tril_indices(p, -1)
    root[below] = rest[: len(below[0])]
    root *= np.exp(size)[:, None]
    s = root @ root.T
    values = np.linalg.eigvalsh(s)
    is_sound = _SIGNAL[0] < values[-1] < _SIGNAL[1] and values[0] > 1e-10 * values[-1]
    masses = np.maximum(rest[len(below[0]) :] ** 2, 1e-12)
    return replace(then, s=s, masses=masses / masses.sum()) if is_sound else then


def _with_trust(
    now: Population, sums: Sums, centre: FloatArray, log_scale: FloatArray
) -> Population:
    r"""Return the population with the factor on the prior's curves that fits best.

    Generalised least squares: $\gamma = \sum m^\top X^\top V^{-1} y / s^2 \,\big/\,
    \sum m^\top X^\top V^{-1} X m / s^2$, kept in [0, 1.5].
    """
    post = now.posterior(sums.around(now.trust * centre), log_scale)
    squared = now.noise_scale.squared(sums.unweighted(post.q), sums.n_contributions, log_scale)
    inverse = post.weight / squared
    factors = len(now.scale_factors)
    curve, xty = (
        np.repeat(part, factors, axis=1)
        for part in (np.einsum("nbpq,nq->nbp", sums.xtx, centre), sums.xty)
    )
    held = np.einsum("ncpq,ncq->ncp", post.cov, curve)
    seen = np.einsum("ncp,np->nc", xty, centre) - np.einsum("ncp,ncp->nc", held, xty)
    known = np.einsum("ncp,np->nc", curve, centre) - np.einsum("ncp,ncp->nc", held, curve)
    bottom = float((inverse * known).sum())
    trust = float((inverse * seen).sum()) / bottom if bottom > 0 else 1.0
    return replace(now, trust=float(np.clip(trust, 0.0, 1.5)))


def information(task: IntArray, row: Places, z2: FloatArray) -> float:
    r"""Measure how many independent normal contributions one contribution is worth, at most 1.

    The mean of $c$ squared independent normal residuals has variance $2/c$ around 1. If the mean
    squares of tasks with $c$ contributions vary by $v$, they are worth $2/v$ contributions each.

    Parameters
    ----------
    task, row
        Task and point of each contribution.
    z2
        Squared residual of each; they are divided by the mean of their point.
    """
    mean = np.bincount(row, z2) / np.maximum(np.bincount(row), 1)
    z2 = np.divide(z2, mean[row], out=np.zeros_like(z2), where=mean[row] > 0)
    if not z2.any():
        return 1.0
    _, place = np.unique(task, return_inverse=True)
    count = np.bincount(place).astype(np.float64)
    square = np.bincount(place, z2) / count
    square /= np.average(square, weights=count)
    variance = float(np.average((square - 1) ** 2, weights=count))
    return min(1.0, 2 / max(variance, 1e-12) / float(np.average(count, weights=count)))
