"""Errors of laws checked on contributions that had no part in the fit.

Maximum likelihood believes its family and the normal noise; a network believes the noise that it
predicts. On real data contributions have heavy tails, most of all at small sizes, and curves are
no power laws, so that errors are too small. Comparing laws with held-out contributions gives the
factor by which they must grow for 90 % intervals to cover.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from apiece._base.rng import stream
from apiece._base.typing import FloatArray
from apiece.estimators._estimator import Estimator
from apiece.estimators.backtest import Judge
from apiece.laws import Laws, quantile
from apiece.records import Contributions

LEVEL: Final = 0.9
_TOLERANCE: Final = 0.01  # of the coverage, whose own error is about that
_FOLDS: Final = 4
_FEWEST: Final = 10  # points that say something
_LARGEST: Final = 64.0


def widened(laws: Laws, factor: float) -> Laws:
    """Return laws whose standard errors are larger by a factor."""
    if laws.cov is None or factor == 1:
        return laws
    return replace(
        laws,
        cov=laws.cov * factor**2,
        diagnostics=laws.diagnostics | {"cross_fitted_widening": factor},
    )


def cross_fitted_widening(estimator: Estimator, sample: Contributions) -> float:
    """Fit without a quarter of the tasks at a time, and compare with that quarter; 1 if unknown.

    Parameters
    ----------
    estimator
        What is fitted.
    sample
        Contributions of the points to compare.
    """
    tasks = np.unique(sample.task)
    if len(tasks) < 2 * _FOLDS or sample.n_points < _FEWEST:
        return 1.0
    fold = stream(0).permutation(len(tasks)) % _FOLDS
    of_row = fold[np.searchsorted(tasks, sample.task)]
    pairs = []
    for number in range(_FOLDS):
        rest, held = sample.where(of_row != number), sample.where(of_row == number)
        pairs.append((estimator.fit(rest), held))
    return widening_for(pairs)


def widening_for(pairs: Iterable[tuple[Laws, Contributions]]) -> float:
    """Return the factor with which intervals of laws cover contributions that they did not see."""
    parts: list[tuple[FloatArray, ...]] = []
    for laws, held in pairs:
        judge = Judge(held, LEVEL)
        shift, error, noise = judge.errors(laws)
        if laws.df is not None:  # sigma is a maximum likelihood estimate, which is too small
            noise = noise * np.fmax(laws.n_samples / np.maximum(laws.df, 1.0), 1.0)[:, None]
        reach = quantile(LEVEL, laws.df)
        shift = shift / (reach[:, None] if reach.ndim else reach)
        known = np.isfinite(shift) & np.isfinite(error) & np.isfinite(noise) & (judge.n > 0)
        parts.append((shift[known], error[known], noise[known]))
    shift, error, noise = (np.concatenate(each) for each in zip(*parts, strict=True))
    if len(shift) < _FEWEST:
        return 1.0
    return least_widening(shift, error, noise, np.ones(len(shift)))


def least_widening(shift: FloatArray, error: FloatArray, noise: FloatArray, t: FloatArray) -> float:
    r"""Return the least $w \ge 1$ with which enough shifts lie within errors and noise.

    Enough: about 90 % of $|\mathrm{shift}|$ are at most
    $\sqrt{(1 + (w^2 - 1)\,t)\,\mathrm{error}^2 + \mathrm{noise}}$.
    """

    def covers(widening: float) -> bool:
        square = (1 + (widening**2 - 1) * t) * error**2 + noise
        return bool((shift**2 <= square).mean() >= LEVEL - _TOLERANCE)

    low, high = 1.0, 1.0
    while not covers(high) and high < _LARGEST:
        low, high = high, 2 * high
    for _ in range(12 if high > 1 else 0):
        middle = (low + high) / 2
        low, high = (low, middle) if covers(middle) else (middle, high)
    return high
