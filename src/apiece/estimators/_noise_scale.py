r"""Noise scales of points, their population, and the effect of heavy tails.

Squared noise scales come from a scaled inverse chi-square, whose degrees of freedom $\nu$ and
typical value follow from the spread of the points' log mean squares, in closed form (Smyth 2004,
"Linear models and empirical Bayes methods", section 6.2). For intervals the degrees of freedom are
reduced by a factor $\kappa$ measured from the residuals: the kurtosis of real data is 5 to 30, or
even 180.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from apiece._base.batched import find_root
from apiece._base.typing import FloatArray, Places

LARGEST_DF: Final = 1e6
LEAST_WORTH: Final = 0.03  # a kurtosis of 70: a larger one is the work of a few contributions


class NoiseScale(NamedTuple):
    r"""Noise scales for intervals: contributions have heavier tails than the normal distribution.

    A sum of $m$ squared normal residuals has $m$ degrees of freedom. With kurtosis $K$ it varies
    like one with $m\kappa$, $\kappa = 2/(K - 1)$. Ten contributions then say little about the noise
    of their point, and most points seem less noisy than they are, because they have not drawn an
    outlier yet. So noise scales are estimated with $\kappa m$ in place of $m$.
    """

    df: float
    log_scale2: float
    worth: float = 1.0  # kappa

    @classmethod
    def of(
        cls, q: FloatArray, total: FloatArray, log_scale: FloatArray, worth: float = 1.0
    ) -> NoiseScale:
        """Learn them from the squared lengths of all points."""
        return cls(*spread_of_noise_scales(q, total, log_scale, worth), worth)

    def squared(self, q: FloatArray, total: FloatArray, log_scale: FloatArray) -> FloatArray:
        """Estimate squared noise scales from the population's and the points' ``q``, ``(n, c)``."""
        base = np.exp(np.clip(self.log_scale2 - log_scale, -600.0, 600.0))[:, None]
        return np.asarray((self.df * base + self.worth * q) / self.dfs(total)[:, None])

    def dfs(self, total: FloatArray) -> FloatArray:
        """Return the degrees of freedom of each point's noise scale, shape ``(n,)``."""
        return self.df + self.worth * total


def effective_sample_fraction(row: Places, z2: FloatArray) -> float:
    r"""Measure the information of a squared residual about the noise, relative to a normal one.

    $\kappa = 2/(K - 1)$ with the kurtosis $K$ of all points, from products of different residuals
    of a point, which know nothing of tails:

    $$K = \sum_i \overline{z_{ij}^4} \Big/ \sum_i \overline{z_{ij}^2 z_{il}^2}_{\,j \ne l}$$

    Points are brought to one scale by their mean root residual, which is robust to outliers.

    Parameters
    ----------
    row
        Point of each residual.
    z2
        Squared residuals.
    """
    n = np.maximum(np.bincount(row), 1).astype(np.float64)
    size = (np.bincount(row, z2**0.25) / n) ** 4
    z2 = np.divide(z2, size[row], out=np.zeros_like(z2), where=size[row] > 0)
    square, fourth = np.bincount(row, z2), np.bincount(row, z2**2)
    pairs = float(((square**2 - fourth) / np.maximum(n * (n - 1), 1)).sum())
    if pairs <= 0:
        return 1.0
    kurtosis = float((fourth / n).sum()) / pairs
    return float(np.clip(2 / max(kurtosis - 1, 1e-12), LEAST_WORTH, 1.0))


def spread_of_noise_scales(
    q: FloatArray, total: FloatArray, log_scale: FloatArray, worth: float = 1.0
) -> tuple[float, float]:
    r"""Fit the scaled inverse chi-square of squared noise scales to mean squares ``q / total``.

    $\log(q/m)$ has mean $\log s_0^2 + \mathrm{digamma}(m/2) - \log(m/2) - \ldots$ and variance
    $\mathrm{trigamma}(m/2) + \mathrm{trigamma}(\nu/2)$: two equations for $s_0^2$ and $\nu$.

    Returns
    -------
    tuple[float, float]
        Degrees of freedom $\nu$ and $\log s_0^2$.
    """
    from scipy.special import digamma, polygamma

    half = worth * total / 2
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

    def step(x: FloatArray) -> FloatArray:
        value = polygamma(1, x)
        return np.asarray(value * (1 - value / y) / polygamma(2, x))

    return float(find_root(step, np.array(0.5 + 1 / y), tolerance=1e-10))
