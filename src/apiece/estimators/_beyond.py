r"""How far beyond the sampled sizes laws can be trusted, measured on the sizes that there are.

The estimator is fitted again to the sizes up to the largest over 2.5, for up to 1,000 points, and
compared with the larger ones. That gives the factor $w$ by which standard errors must grow for
intervals to cover: 90 % of the held-out means shall lie within the error of the law, times
$\sqrt{1 + (w^2 - 1)\,t}$ with $t = \log(k/k_\mathrm{cut})/\log 2.5$, and their noise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from apiece.errors import FitError
from apiece.estimators._common import evenly_spread_points
from apiece.estimators._cross_fit import LEVEL, cross_fitted_widening, least_widening, widened
from apiece.estimators._estimator import Estimator, opened
from apiece.estimators._rows import about_population
from apiece.estimators.backtest import Judge, cut_of
from apiece.laws import Beyond, Laws, quantile
from apiece.records import Stored, Table

_POINTS: Final = 1_000  # points in the backtest, at most
_FEWEST: Final = 10  # points with held-out contributions, at least
_STEP: Final = 2.5
_LEAST: Final = 1.3  # widening that other data sets needed, see benchmarks/reach.py
_MOST: Final = 2.0  # widening beyond which predictions are not confirmed


def checked(
    laws: Laws, estimator: Estimator, run: Stored | Table, memory: int | str | None
) -> Laws:
    """Return laws that know how far they reach, with errors that held-out tasks agree with.

    As they are where nothing can be held out: laws from features, and laws around a prior.
    """
    if estimator.needs_features or getattr(estimator, "prior", None) is not None:
        return laws
    judged, factor = estimator.judged(laws), 1.0
    with opened(run, memory) as table:
        if judged.is_cross_fitted:
            about = about_population(table)
            factor = cross_fitted_widening(judged, about.of(evenly_spread_points(about, _POINTS)))
        found = measure(judged, table, factor)
    laws = widened(laws, factor)
    return laws if found is None else replace(laws, attrs=laws.attrs | {"beyond": found.to_json()})


def measure(estimator: Estimator, table: Table, factor: float = 1.0) -> Beyond | None:
    """Hold out the largest sizes and compare; None where there is too little to compare.

    Parameters
    ----------
    estimator
        What is fitted, without features.
    table
        Contributions.
    factor
        By how much errors grow at all sizes.
    """
    table = about_population(table)
    points = evenly_spread_points(table, _POINTS)
    if len(points) < _FEWEST:
        return None
    sample = table.of(points)
    low, high = sample.k_range
    try:
        cut = cut_of(sample, None)
        early = sample.between(low, cut)
        if not (early.counts() >= 3).any():
            return None
        laws = estimator.fit(early)
    except FitError:
        return None
    judge = Judge(sample.between(cut + 1, high), LEVEL)
    shift, error, noise = judge.errors(laws)
    is_known = np.isfinite(shift) & np.isfinite(error) & np.isfinite(noise) & (judge.n > 0)
    if is_known.any(axis=1).sum() < _FEWEST:
        return None
    t = np.broadcast_to(np.log(judge.bins.k / cut) / np.log(_STEP), shift.shape)
    reach = quantile(LEVEL, laws.df)
    reach = np.broadcast_to(reach[:, None] if reach.ndim else reach, shift.shape)
    each = shift / reach, factor * error, noise, t
    widening = least_widening(*(part[is_known] for part in each))
    return Beyond(min(_STEP, high / cut) if widening <= _MOST else 1.0, max(widening, _LEAST))
