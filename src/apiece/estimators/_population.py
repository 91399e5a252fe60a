r"""A population of laws, learned from all points: the heart of empirical Bayes.

In units of its own, every point comes from the same population:

$$\Delta_{ij} = s_i\left(B(x_{ij})\,u_i + x_{ij}^{-\beta/2}\,\varepsilon_{ij}\right), \qquad
  u_i \sim \mathcal{N}(0, S), \qquad s_i^2 \sim \text{scaled inverse } \chi^2_\nu,$$

with $x = k/k_\mathrm{ref}$. The unit $s_i$ multiplies signal and noise alike, since points with
large contributions are also noisy ones. Given $(\beta, S)$ the posterior mean does not depend on
it: it is the same optimal weighting of contributions for every point, of which the plain average
is one. The unit sets the width of the intervals, as Student's t.

* $\beta$ solves the pooled equation of second moments (`noise_decay`);
* $S$ is a penalised maximum of the marginal likelihood, by expectation and maximisation;
* $\nu$ and the typical unit come from the spread of the points' log variances, in closed form
  (Smyth 2004, "Linear models and empirical Bayes methods", section 6.2).

Noise is not independent between points that share a training set, and has heavy tails between
training sets. `information` measures from the mean squares of the tasks how many independent normal
contributions one contribution is worth; with little information $S$ stays near its prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from apiece._typing import BoolArray, FloatArray, IntArray
from apiece.estimators._shapes import PowerShapes, SeriesShapes
from apiece.records import Moments

ASSUMED_DECAY: Final = 2.0  # of the noise, where one size says nothing about it
PRIOR_POINTS: Final = 20.0  # how many points the prior of S is worth
LARGEST_DF: Final = 1e6
_STEPS: Final = 60
_TOLERANCE: Final = 1e-4


class Sums(NamedTuple):
    r"""Weighted sums of each point, sufficient given the shapes and the noise decay.

    With $w = n x^{\beta}$: ``xtx`` $= \sum w B^\top B$, shape ``(n, c, p, p)``; ``xty``
    $= \sum w B^\top\bar\Delta$, ``(n, c, p)``; ``yty`` $= \sum x^\beta (M + n\bar\Delta^2)$ and
    ``total``, the number of contributions, ``(n,)``.
    """

    xtx: FloatArray
    xty: FloatArray
    yty: FloatArray
    total: FloatArray

    @classmethod
    def of(
        cls,
        moments: Moments,
        shapes: SeriesShapes | PowerShapes,
        k_ref: float,
        beta: float,
        centre: FloatArray | None = None,
    ) -> Sums:
        """Sum over the sizes of each point."""
        x = np.where(moments.n > 0, moments.k / k_ref, 1.0)
        noise = x**beta
        w = moments.n * noise
        xtx, xty = [], []
        for shape in range(shapes.n_shapes):
            basis = shapes.basis(x, shape, centre)
            weighted = w[..., None] * basis
            xtx.append(np.einsum("nmp,nmq->npq", weighted, basis))
            xty.append(np.einsum("nmp,nm->np", weighted, moments.mean))
        yty = (noise * moments.m2 + w * moments.mean**2).sum(axis=1)
        return cls(np.stack(xtx, 1), np.stack(xty, 1), yty, moments.n.sum(axis=1))

    def around(self, u: FloatArray) -> Sums:
        """Return the sums of the deviations from curves with coefficients ``u``, ``(n, p)``."""
        told = np.einsum("ncpq,nq->ncp", self.xtx, u)
        # With several shapes each sees its own curve; the sum of squares is then that shape's.
        cross = np.einsum("ncp,np->nc", self.xty, u)
        own = np.einsum("ncp,np->nc", told, u)
        yty = self.yty[..., None] if self.yty.ndim == 1 else self.yty
        return Sums(self.xtx, self.xty - told, np.maximum(yty - 2 * cross + own, 0.0), self.total)

    def take(self, rows: IntArray | BoolArray | slice) -> Sums:
        """Return some of the points."""
        return Sums(self.xtx[rows], self.xty[rows], self.yty[rows], self.total[rows])


class Posterior(NamedTuple):
    """What the population and a point's own contributions say about its ``u``, in units of s."""

    mean: FloatArray  # (n, c, p), in the units of the contributions
    cov: FloatArray  # (n, c, p, p), in units of s
    q: FloatArray  # squared size of the contributions relative to the population, (n, c)
    weight: FloatArray  # of each shape, (n, c)
    log_evidence: FloatArray  # (n,)


@dataclass(frozen=True)
class Population:
    """Parameters of a population.

    Parameters
    ----------
    s
        Covariance of ``u``, shape ``(p, p)``.
    masses
        Share of each shape, shape ``(c,)``.
    df, log_unit
        Degrees of freedom of the units, and the log of their typical square.
    trust
        Factor on the prior's curves; 1 takes them as they are.
    """

    s: FloatArray
    masses: FloatArray
    df: float
    log_unit: float
    trust: float = 1.0

    def posterior(self, sums: Sums, log_scale: FloatArray) -> Posterior:
        r"""Update the population by each point's contributions.

        With $C = (X^\top W X + S^{-1})^{-1}$ the mean is $C X^\top W y$, and
        $q = y^\top V^{-1} y = y^\top W y - y^\top W X\,C\,X^\top W y$; the unit integrated out,
        the evidence of a shape is that of a multivariate t.

        Parameters
        ----------
        sums
            Weighted sums, each point's contributions divided by a scale of its own.
        log_scale
            Log of those scales squared, shape ``(n,)``.
        """
        cov = np.linalg.inv(sums.xtx + np.linalg.inv(self.s))
        mean = np.einsum("ncpq,ncq->ncp", cov, sums.xty)
        yty = sums.yty[:, None] if sums.yty.ndim == 1 else sums.yty
        q = np.maximum(yty - np.einsum("ncp,ncp->nc", mean, sums.xty), 1e-12 * yty)
        base = self.unit(log_scale)[:, None]
        total = sums.total[:, None]
        log_det = np.linalg.slogdet(cov)[1] - np.linalg.slogdet(self.s)[1]
        log_p = 0.5 * log_det - 0.5 * (self.df + total) * np.log(self.df * base + q)
        log_p = log_p + np.log(self.masses)
        top = log_p.max(axis=1, keepdims=True)
        weight = np.exp(log_p - top)
        evidence = weight.sum(axis=1, keepdims=True)
        return Posterior(mean, cov, q, weight / evidence, (top + np.log(evidence))[:, 0])

    def unit(self, log_scale: FloatArray) -> FloatArray:
        """Return the typical squared unit in each point's own scale, shape ``(n,)``."""
        return np.exp(np.clip(self.log_unit - log_scale, -600.0, 600.0))

    def squared_unit(self, post: Posterior, total: FloatArray, log_scale: FloatArray) -> FloatArray:
        """Estimate each point's squared unit from the population and its own, ``(n, c)``."""
        base = self.unit(log_scale)[:, None]
        return np.asarray((self.df * base + post.q) / (self.df + total[:, None]))


def learn(
    sums: Sums,
    shapes: SeriesShapes | PowerShapes,
    log_scale: FloatArray,
    *,
    n_effective: float,
    start: Population | None = None,
    centre: FloatArray | None = None,
) -> Population:
    """Maximise the penalised marginal likelihood over the population.

    Parameters
    ----------
    sums
        Weighted sums of the points to learn from, in scales of their own.
    shapes
        The family.
    log_scale
        Log of each point's squared scale.
    n_effective
        How many independent points they are worth; the prior is worth ``PRIOR_POINTS``.
    start
        Where to begin.
    centre
        Coefficients of the prior's curves, shape ``(n, p)``, around which to learn.
    """
    n, p = len(sums.total), sums.xtx.shape[-1]
    prior = shapes.prior
    now = start or Population(0.1 * prior, shapes.masses, 1.0, float(np.median(log_scale)))
    for _ in range(_STEPS):
        if centre is not None:
            now = _with_trust(now, sums, centre, log_scale)
            data = sums.around(now.trust * centre)
        else:
            data = sums
        post = now.posterior(data, log_scale)
        q = (post.weight * post.q).sum(axis=1)
        df, log_unit = spread_of_units(q, data.total, log_scale)
        now = Population(now.s, now.masses, df, log_unit, now.trust)
        inverse = 1 / now.squared_unit(post, data.total, log_scale)
        moments = np.einsum("nc,nc,ncp,ncq->pq", post.weight, inverse, post.mean, post.mean)
        moments = (moments + np.einsum("nc,ncpq->pq", post.weight, post.cov)) / n
        # The size of S is learned from all points, its shape with regard to the prior.
        size = np.trace(np.linalg.solve(prior, now.s)) / p
        size *= np.trace(np.linalg.solve(now.s, moments)) / p
        shape = moments * p / np.trace(np.linalg.solve(prior, moments))
        s = size * (n_effective * shape + PRIOR_POINTS * prior) / (n_effective + PRIOR_POINTS)
        masses = n_effective * post.weight.mean(axis=0) + PRIOR_POINTS * shapes.masses
        then = Population(s, masses / masses.sum(), df, log_unit, now.trust)
        change = np.abs(then.s - now.s).max() / np.abs(now.s).max()
        change = max(float(change), float(np.abs(then.masses - now.masses).max()))
        now = then
        if change < _TOLERANCE:
            break
    return now


def _with_trust(
    now: Population, sums: Sums, centre: FloatArray, log_scale: FloatArray
) -> Population:
    r"""Return the population with the factor on the prior's curves that fits best.

    Generalised least squares: $\gamma = \sum m^\top X^\top V^{-1} y / s^2 \,\big/\,
    \sum m^\top X^\top V^{-1} X m / s^2$, kept in [0, 1.5].
    """
    post = now.posterior(sums.around(now.trust * centre), log_scale)
    inverse = post.weight / now.squared_unit(post, sums.total, log_scale)
    curve = np.einsum("ncpq,nq->ncp", sums.xtx, centre)
    held = np.einsum("ncpq,ncq->ncp", post.cov, curve)
    seen = np.einsum("ncp,np->nc", sums.xty, centre) - np.einsum("ncp,ncp->nc", held, sums.xty)
    told = np.einsum("ncp,np->nc", curve, centre) - np.einsum("ncp,ncp->nc", held, curve)
    bottom = float((inverse * told).sum())
    trust = float((inverse * seen).sum()) / bottom if bottom > 0 else 1.0
    return Population(now.s, now.masses, now.df, now.log_unit, float(np.clip(trust, 0.0, 1.5)))


def spread_of_units(q: FloatArray, total: FloatArray, log_scale: FloatArray) -> tuple[float, float]:
    r"""Fit the scaled inverse chi-square of the squared units to mean squares ``q / total``.

    $\log(q/m)$ has mean $\log s_0^2 + \mathrm{digamma}(m/2) - \log(m/2) - \ldots$ and variance
    $\mathrm{trigamma}(m/2) + \mathrm{trigamma}(\nu/2)$: two equations for $s_0^2$ and $\nu$.

    Returns
    -------
    tuple[float, float]
        Degrees of freedom $\nu$ and $\log s_0^2$.
    """
    from scipy.special import digamma, polygamma

    half = total / 2
    e = np.log(q / total) + log_scale - digamma(half) + np.log(half)
    middle = float(e.mean())
    if len(e) < 3:
        return 1.0, middle
    excess = float(((e - middle) ** 2).sum() / (len(e) - 1) - polygamma(1, half).mean())
    if excess <= 2 / LARGEST_DF:
        return LARGEST_DF, middle
    df = 2 * _inverse_trigamma(excess)
    return max(df, 0.1), middle + float(digamma(df / 2)) - float(np.log(df / 2))


def _inverse_trigamma(y: float) -> float:
    """Solve ``trigamma(x) = y`` by Newton's method on the reciprocal, which is nearly linear."""
    from scipy.special import polygamma

    x = 0.5 + 1 / y
    for _ in range(50):
        value = float(polygamma(1, x))
        step = value * (1 - value / y) / float(polygamma(2, x))
        x += step
        if abs(step) < 1e-10 * x:
            break
    return x


def noise_decay(moments: Moments, k_ref: float, exponent: IntArray) -> float:
    r"""Solve the pooled equation of second moments for the decay $\beta$ of the noise.

    $$\sum_{ij} \frac{r_{ij}^2\,x_{ij}^\beta}{s_i}\,(\log x_{ij} - \overline{\log x}) = 0$$

    with residuals $r$ from a curve in $1/k$ of each point's own. Dividing by $s_i$, not by its
    square, lets points count by their size: half way between treating all points alike, and the
    sum of squares in which noisy points are all that matters.
    """
    x = np.where(moments.n > 0, moments.k / k_ref, 1.0)
    log_x, n = np.log(x), moments.n
    total = n.sum(axis=1)
    centre = float((n * log_x).sum() / n.sum())
    spread = float((n * (log_x - centre) ** 2).sum() / n.sum())
    if spread < 1e-6:
        return ASSUMED_DECAY
    size = np.ldexp(1.0, np.clip(exponent - exponent.max(), -1000, 0))
    curve, beta = 1 / x, ASSUMED_DECAY
    for _ in range(50):
        w = n * x**beta
        bottom = (w * curve**2).sum(axis=1, keepdims=True)
        height = (w * curve * moments.mean).sum(axis=1, keepdims=True) / bottom
        leverage = np.minimum(x**beta * curve**2 / bottom, 0.99)
        q = x**beta * (moments.m2 + n * (moments.mean - height * curve) ** 2) / (1 - leverage)
        s = np.sqrt(q.sum(axis=1) / total)
        q = q * np.where(s > 0, size / np.where(s > 0, s, 1.0), 0.0)[:, None]
        all_q = float(q.sum())
        if all_q <= 0:
            return ASSUMED_DECAY
        step = float(np.clip((q * (log_x - centre)).sum() / all_q / spread, -1, 1))
        beta = float(np.clip(beta - step, 0.0, 5.0))
        if abs(step) < 1e-4:
            break
    return beta


def information(task: IntArray, z2: FloatArray) -> float:
    r"""Measure how many independent normal contributions one contribution is worth, at most 1.

    The mean of $c$ squared independent normal residuals has variance $2/c$ around 1. If the mean
    squares of tasks with $c$ contributions vary by $v$, they are worth $2/v$ contributions each.

    Parameters
    ----------
    task
        Task of each contribution.
    z2
        Squared residual of each, in units in which it is 1 on average.
    """
    _, place = np.unique(task, return_inverse=True)
    count = np.bincount(place).astype(np.float64)
    square = np.bincount(place, z2) / count
    square /= np.average(square, weights=count)
    variance = float(np.average((square - 1) ** 2, weights=count))
    return min(1.0, 2 / max(variance, 1e-12) / float(np.average(count, weights=count)))
