r"""The paper's validation fit: a straight line through the logarithms of the means.

$$\log|\bar\Delta_k| \approx \log|c| - \alpha\log k, \qquad
  \log s_k^2 \approx \log\sigma^2 - \beta\log k$$

with $\bar\Delta_k$ and $s_k^2$ the mean and the unbiased variance of a point's contributions at
size $k$. It is made for a grid of sizes with many samples each; a mean that noise has brought near
zero pulls the line, so with few samples prefer [`Likelihood`][apiece.estimators.Likelihood].

Reference: Covert et al. (ICML 2024), equation 5 and Table 1.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final

import numpy as np

from apiece._base.typing import BoolArray, FloatArray, IntArray
from apiece.errors import FitError
from apiece.estimators._bins import Bins
from apiece.estimators._common import (
    all_zero,
    attributes,
    check,
    exponents,
    rescaled,
)
from apiece.estimators._estimator import Estimator, Features
from apiece.estimators._log_line import Line, fit_line, refit_height
from apiece.laws import FitStatus, Laws, Power
from apiece.laws.sizes import middle
from apiece.laws.status import mark
from apiece.records import Moments, Table

_BLOCK: Final = 2_000_000  # entries of a table of moments that are merged at once
_EXACT: Final = 1e-20  # residual sum of squares, relative to the total, of a law without noise


@dataclass(frozen=True)
class LogOLS(Estimator):
    r"""Ordinary least squares on logarithms, then the scale refitted in the original space.

    The decay $\alpha$ is the slope of $\log|\bar\Delta_k|$ on $\log k$; means of exactly zero are
    left out there. With it,
    $c = \sum_k \bar\Delta_k k^{-\alpha} / \sum_k k^{-2\alpha}$ over all sizes, which also
    gives the sign. The variance law is fitted in the same way, from sizes with two samples or more;
    without two such sizes ``sigma`` and ``beta`` are nan.

    ``r2`` and ``r2_variance`` are per point, in log space, from three sizes on. ``diagnostics``
    holds, for the mean and for the variance, $R^2$ across points at each size in the original
    space (``r2_by_size``), and its mean over sizes (``overall_r2``), the paper's Table 1.

    Parameters
    ----------
    max_sizes
        With more distinct sizes than this, contributions are first merged into ``bins``; the
        sizes of the bins are ``attrs["settings"]["merged_sizes"]``.
    bins
        Number of bins of equal width in log k.

    Examples
    --------
    >>> from apiece import synthetic
    >>> truth = synthetic.random_laws(5, random_state=0)
    >>> table = synthetic.sample(truth, samples=500, design="grid", random_state=0)
    >>> LogOLS().fit(table).r2.shape
    (5,)
    """

    max_sizes: int = 20
    bins: int = 10

    def __post_init__(self) -> None:
        if self.max_sizes < 2 or self.bins < 2:
            raise FitError(
                f"max_sizes={self.max_sizes}, bins={self.bins}: expected at least 2 of each, since "
                "a slope needs two sizes. Pass for example LogOLS(max_sizes=20, bins=10)."
            )

    name: ClassVar[str] = "log_ols"
    streams: ClassVar[bool] = True

    def fit_table(self, contributions: Table, features: Features | None = None) -> Laws:
        """Fit a power law and a variance law for every point.

        Returns
        -------
        Laws
            Power laws with ``cov`` from the residuals of the line (nan with two sizes). A point
            whose mean differs from zero at one size only has status ``ONE_SIZE``; decays beyond
            20 are brought back to it and marked ``AT_BOUND``.
        """
        check(contributions)
        k_ref = middle(contributions.k_range)
        sizes = contributions.sizes()
        grouping = Bins.of_counts(*sizes, max_sizes=self.max_sizes, n_bins=self.bins)
        is_zero, exponent, moments = _summarised(contributions, grouping)
        x = np.log(grouping.k / k_ref)
        count = contributions.counts()
        too_few = count < 3

        is_there = moments.n > 0
        line = fit_line(moments.mean, is_there & (moments.mean != 0), x)
        one_size = line.n_sizes < 2
        alpha = np.where(one_size, 1.0, line.decay)
        psi = refit_height(moments.mean, is_there, x, alpha)

        has_spread = (moments.n >= 2) & (moments.m2 > 0)
        variance = np.where(has_spread, moments.m2 / np.maximum(moments.n - 1, 1), 0.0)
        noise = fit_line(variance, has_spread, x)
        has_noise = (noise.n_sizes >= 2) & ~too_few
        spread = refit_height(variance, has_spread, x, noise.decay)

        status = mark(
            len(count),
            (FitStatus.TOO_FEW, too_few),
            (FitStatus.ALL_ZERO, is_zero),
            (FitStatus.ONE_SIZE, one_size),
            (FitStatus.EXACT, _is_exact(moments, x, psi, alpha)),
            (FitStatus.AT_BOUND, line.is_steep | noise.is_steep),
        )
        unit = np.ldexp(1.0, exponent)
        local = np.stack([psi * unit, alpha], axis=1)
        local[too_few] = np.nan
        sigma = np.sqrt(spread) * k_ref ** (noise.decay / 2) * unit
        merged = None if grouping.is_exact else [float(size) for size in grouping.k]
        used = is_there & ~too_few[:, None]
        predicted = _curves(psi, alpha, x)
        r2_means = _across_points(moments.mean, predicted, used, exponent)
        used = has_spread & has_noise[:, None]
        predicted = _curves(spread, noise.decay, x)
        r2_variances = _across_points(variance, predicted, used, 2 * exponent)
        return Laws(
            family=Power(),
            params=Power().from_local(local, k_ref),
            cov=_covariance(line, psi * unit, ~(too_few | one_size | line.is_steep)),
            sigma=np.where(has_noise, sigma, np.nan),
            beta=np.where(has_noise, noise.decay, np.nan),
            r2=np.where(too_few, np.nan, line.r2),
            r2_variance=np.where(too_few, np.nan, noise.r2),
            n_samples=count,
            status=status,
            ids=contributions.ids,
            k_range=contributions.k_range,
            attrs=attributes(contributions, "log_ols", asdict(self) | {"merged_sizes": merged}),
            diagnostics=_diagnostics(grouping.k, r2_means)
            | _diagnostics(grouping.k, r2_variances, "_variance"),
        )


def _summarised(contributions: Table, grouping: Bins) -> tuple[BoolArray, IntArray, Moments]:
    """Return which points are zero, their powers of two, and their merged moments over those."""
    zero, power, merged = [], [], []
    for _, moments in contributions.blocks(_BLOCK):
        zero.append(all_zero(moments))
        power.append(exponents(moments))
        merged.append(rescaled(grouping.merge(moments), power[-1]))
    names = ("k", "n", "mean", "m2")
    columns = (np.concatenate([getattr(part, name) for part in merged]) for name in names)
    return np.concatenate(zero), np.concatenate(power), Moments(*columns)


def _curves(height: FloatArray, decay: FloatArray, x: FloatArray) -> FloatArray:
    """Evaluate fitted curves at the sizes, shape ``(n_points, n_sizes)``."""
    return np.asarray(height[:, None] * np.exp(-decay[:, None] * x))


def _covariance(line: Line, psi: FloatArray, where: BoolArray) -> FloatArray:
    """Map the covariance of (log height, decay) to the local coordinates (psi_ref, alpha)."""
    cov = np.empty((len(psi), 2, 2))
    with np.errstate(over="ignore", invalid="ignore"):  # not finite becomes nan below
        cov[:, 0, 0] = psi**2 * line.var_log_height
        cov[:, 0, 1] = cov[:, 1, 0] = psi * line.covariance
        cov[:, 1, 1] = line.var_decay
    cov[~(np.isfinite(cov).all(axis=(1, 2)) & where)] = np.nan
    return cov


def _is_exact(moments: Moments, x: FloatArray, psi: FloatArray, alpha: FloatArray) -> BoolArray:
    """Return which points have no noise at all around their law."""
    residual = moments.mean - _curves(psi, alpha, x)
    left = (moments.m2 + moments.n * residual**2).sum(axis=1)
    return np.asarray(left <= _EXACT * (moments.n * moments.mean**2).sum(axis=1))


def _across_points(
    seen: FloatArray, predicted: FloatArray, where: BoolArray, exponent: IntArray
) -> FloatArray:
    r"""Compute R² across points at each size, in the original space, shape ``(n_sizes,)``.

    $$R_k^2 = 1 - \frac{\sum_i (y_{ik} - \hat y_{ik})^2}{\sum_i (y_{ik} - \bar y_k)^2}$$

    Each point's values come divided by two to its ``exponent``; here all get the same unit.
    """
    power = (exponent - exponent[where.any(axis=1)].max(initial=-5000))[:, None]
    seen = np.ldexp(np.where(where, seen, 0.0), power)
    predicted = np.ldexp(np.where(where, predicted, 0.0), power)
    centre = seen.sum(axis=0) / np.maximum(where.sum(axis=0), 1)
    rss = ((seen - predicted) ** 2).sum(axis=0)
    tss = (np.where(where, seen - centre, 0.0) ** 2).sum(axis=0)
    # With one point, or points that are all alike, there is nothing to explain.
    is_defined = (where.sum(axis=0) >= 2) & (tss > 1e-28 * (seen**2).sum(axis=0))
    with np.errstate(over="ignore"):  # points of wildly different units: minus infinity
        return np.where(is_defined, 1 - rss / np.where(is_defined, tss, 1.0), np.nan)


def _diagnostics(k: FloatArray, r2: FloatArray, suffix: str = "") -> dict[str, Any]:
    """Name R² by size and its mean over sizes."""
    known = r2[np.isfinite(r2)]
    return {
        f"overall_r2{suffix}": float(known.mean()) if len(known) else None,
        f"r2{suffix}_by_size": {"k": k.tolist(), "r2": r2.tolist()},
    }
