"""Normal and Student distributions for intervals and draws."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from apiece._base.typing import FloatArray
from apiece.errors import PlanError


def check_level(level: float) -> None:
    """Raise an error unless ``level`` is a coverage, a number between 0 and 1."""
    if not 0 < level < 1:
        raise PlanError(
            f"level={level} is not a coverage: expected a number between 0 and 1. "
            "Pass for example level=0.9."
        )


def quantile(level: float, df: FloatArray | None = None) -> FloatArray:
    """Return how many standard errors a two-sided interval of ``level`` reaches.

    Student's t with ``df`` degrees of freedom for each point, normal where they are infinite or
    not given; shape ``()`` or that of ``df``.

    >>> float(quantile(0.9).round(3))
    1.645
    >>> quantile(0.9, np.array([7.0, np.inf])).round(3)
    array([1.895, 1.645])
    """
    check_level(level)
    normal = NormalDist().inv_cdf((1 + level) / 2)
    if df is None:
        return np.asarray(normal)
    from scipy.special import stdtrit

    is_finite = np.isfinite(df)
    reach = stdtrit(np.where(is_finite, df, 1.0), (1 + level) / 2)
    return np.where(is_finite, reach, np.where(np.isnan(df), np.nan, normal))


def normal_width_factor(df: FloatArray) -> FloatArray:
    r"""Return the factor on a known variance in the squared scale of Student's t.

    Student's t is wide because the noise is estimated. Errors that do not depend on the estimated
    noise (of a prior, or between several laws) are normal. Scaling their variance by $(z/t)^2$
    keeps their normal width inside a t interval of 90 %.

    >>> normal_width_factor(np.array([7.0, np.inf])).round(3)
    array([0.754, 1.   ])
    """
    return np.asarray((quantile(0.9) / quantile(0.9, df)) ** 2)


def student_factors(df: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    r"""Draw $\sqrt{\nu/\chi^2_\nu}$, which turns normal draws into Student's t.

    Shape ``(n, len(df))``; one where ``df`` is infinite, nan where it is nan.
    """
    is_finite = np.isfinite(df)
    nu = np.where(is_finite, df, 1.0)
    factor = np.sqrt(nu / rng.chisquare(nu, (n, len(df))))
    return np.where(is_finite, factor, np.where(np.isnan(df), np.nan, 1.0))


def standard_error(gradient: FloatArray, cov: FloatArray) -> FloatArray:
    r"""Propagate covariances through gradients: $\sqrt{g^\top C g}$, by the delta method.

    Coordinates are first scaled to unit variance and gradients to unit size, so that extreme units
    and steep extrapolations do not overflow.

    Parameters
    ----------
    gradient
        Shape ``(n, m, p)``.
    cov
        Shape ``(n, p, p)``; nan gives nan.

    Returns
    -------
    FloatArray
        Shape ``(n, m)``.
    """
    sd = np.sqrt(np.einsum("naa->na", cov))
    unit = np.where(sd > 0, sd, 1.0)
    scaled = gradient * sd[:, None, :]
    size = np.abs(scaled).max(axis=2)
    direction = scaled / np.where(size > 0, size, 1.0)[:, :, None]
    half = np.einsum("nma,nab->nmb", direction, cov / unit[:, :, None] / unit[:, None, :])
    return np.asarray(size * np.sqrt(np.maximum(np.einsum("nmb,nmb->nm", half, direction), 0.0)))


def covariance_roots(cov: FloatArray) -> FloatArray:
    """Return matrix square roots ``R`` with ``R R' = cov``, nan where ``cov`` is, by eigenvectors.

    Coordinates are first scaled to unit variance, so that scales may be as different as 1e-8 and 1.
    """
    is_known = np.asarray(np.isfinite(cov).all(axis=(1, 2)))[:, None, None]
    known = np.where(is_known, cov, 0.0)
    sd = np.sqrt(np.einsum("naa->na", known))
    unit = np.where(sd > 0, sd, 1.0)
    correlation = known / unit[:, :, None] / unit[:, None, :]
    values, vectors = np.linalg.eigh(correlation)
    root = unit[:, :, None] * vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return np.where(is_known, root, np.nan)
