r"""How well laws predict sizes that they have not seen.

The contributions at the largest sizes are held out, every candidate is fitted on the rest, and
its curves and intervals are compared with what was held out. Held-out means are noisy themselves:
with $\bar r_i$ the mean residual of point $i$ at a size and $N$ the mean of its noise variances,

$$R^2 = 1 - \frac{\overline{\bar r_i^2} - N}{\mathrm{Var}(\bar\Delta_i) - N},$$

the share of the variation of the points' true contributions that is predicted, in units of the
loss. Intervals for held-out means combine the error of the law and the noise of the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from apiece._base.arrow import ArrowTable
from apiece._base.progress import OnProgress, track, tracking
from apiece._base.typing import BoolArray, FloatArray
from apiece.errors import FitError
from apiece.estimators._bins import Bins
from apiece.estimators._common import check
from apiece.estimators._estimator import Estimator
from apiece.estimators.bayes import Bayes
from apiece.estimators.likelihood import Likelihood
from apiece.laws import Family, Laws
from apiece.laws.beyond import quiet
from apiece.laws.student import quantile
from apiece.records import Contributions, Table

if TYPE_CHECKING:
    import pandas as pd

_SIZES: Final = 3  # groups of held-out sizes
_REACH: Final = 2.5  # the largest size over the largest that is fitted, by default
_MOST: Final = 0.7  # of the contributions to hold out for that, where sizes range less far
_CLEARLY: Final = 2.5  # standard errors by which a later candidate must be better
_FLAG: Final = 0.01  # chance that any point at all is flagged although a family describes it


CANDIDATES: Final[tuple[Estimator, ...]] = (
    Bayes("blend"),
    Bayes("ridge"),
    Likelihood("series24"),
    Bayes("power"),
)
ALSO: Final[tuple[Estimator, ...]] = (Likelihood("power"),)


class Score(NamedTuple):
    """How one candidate did at one group of held-out sizes."""

    method: str
    family: str
    k: float
    r2: float
    correlation: float
    coverage: float
    n_points: int


@dataclass(frozen=True)
class Backtest(ArrowTable):
    """The outcome of a backtest.

    Parameters
    ----------
    cut
        Candidates were fitted on sizes up to this one, and judged beyond it.
    scores
        One for each candidate and group of held-out sizes.
    best
        Which candidate to take, as a position.
    undescribed
        Points whose held-out contributions nothing that was fitted can explain, ``(n_points,)``.

    Examples
    --------
    >>> from apiece import synthetic
    >>> truth = synthetic.random_laws(20, random_state=0)
    >>> result = backtest(synthetic.sample(truth, samples=30, random_state=0))
    >>> sorted(result.table().columns)[:3]
    ['correlation', 'coverage', 'family']
    """

    cut: int
    scores: list[Score]
    best: int
    undescribed: BoolArray

    def table(self) -> pd.DataFrame:
        """Return the scores as pandas."""
        import pandas as pd

        return pd.DataFrame(self.scores)

    def describe(self) -> dict[str, Any]:
        """Return what laws keep of a backtest in their diagnostics."""
        return {
            "cut": self.cut,
            "best": self.best,
            "scores": [score._asdict() for score in self.scores],
            "undescribed": int(self.undescribed.sum()),
        }


def backtest(
    contributions: Table,
    *,
    candidates: tuple[Estimator, ...] = CANDIDATES,
    also: tuple[Estimator, ...] | None = None,
    hold_out: float | None = None,
    level: float = 0.9,
    progress: bool | None = None,
    on_progress: OnProgress | None = None,
) -> Backtest:
    """Fit every candidate on the smaller sizes, and judge it at the larger ones.

    Parameters
    ----------
    contributions
        Table of contributions.
    candidates
        Estimators to choose from; the first is preferred unless another is clearly better.
    also
        Estimators that are judged like them, and not chosen; with the default candidates power laws
        by maximum likelihood.
    hold_out
        Share of the contributions that is held out, those at the largest sizes; by default all
        beyond the largest size over 2.5, or 70 % where that is less: one step further all families
        look alike.
    level
        Coverage that the intervals promise.
    progress, on_progress
        As in `collect`.

    Raises
    ------
    FitError
        If there are too few sizes or contributions to hold any out.

    Examples
    --------
    >>> from apiece import synthetic
    >>> truth = synthetic.random_laws(20, random_state=0)
    >>> result = backtest(
    ...     synthetic.sample(truth, samples=30, random_state=0),
    ...     candidates=(Bayes("power"), Likelihood("power")),
    ... )
    >>> result.best in (0, 1)
    True
    """
    check(contributions)
    if hold_out is not None and not 0 < hold_out < 1:
        raise FitError(
            f"hold_out={hold_out} is not a share: expected a number between 0 and 1. "
            "Pass for example hold_out=0.3."
        )
    if also is None:
        also = ALSO if candidates == CANDIDATES else ()
    cut = cut_of(contributions, hold_out)
    low, high = contributions.k_range
    early, late = contributions.between(low, cut), contributions.between(cut + 1, high)
    if not (early.counts() >= 3).any():
        raise FitError(
            f"no point has three contributions at the {cut:,} training points and fewer that a "
            "backtest fits on: expected some. Collect more samples."
        )
    judge = Judge(late, level)
    scores: list[Score] = []
    curves, surprise = [], np.full(contributions.n_points, np.inf)
    judged = (*candidates, *(each for each in also if each not in candidates))
    with tracking(progress, on_progress, title="backtesting", unit="estimators"):
        for candidate in track(judged):
            laws = candidate.fit(early)
            rows, z = judge.scores(laws)
            scores += rows
            curves.append(_Curves(laws.family, laws.params))
            surprise = np.fmin(surprise, z)
    is_known = np.isfinite(surprise)
    reach = float(quantile(1 - _FLAG / max(1, int(is_known.sum()))))
    undescribed = is_known & (surprise > reach)
    # Contributions that no candidate describes do not show which is best.
    best = _pick(curves[: len(candidates)], late, ~undescribed)
    return Backtest(cut, scores, best, undescribed)


def cut_of(contributions: Table, hold_out: float | None) -> int:
    """Return the largest size to fit on, with two or more up to it and one or more beyond."""
    sizes, counts = contributions.sizes()
    if len(sizes) < 3:
        raise FitError(
            f"contributions at {len(sizes)} sizes cannot be backtested: expected at least 3, two "
            "to fit on and one to predict. Collect a range of sizes."
        )
    early = (1 - (_MOST if hold_out is None else hold_out)) * (counts.sum() - 1)
    place = np.searchsorted(np.cumsum(counts), early, side="right")
    if hold_out is None:
        place = max(place, np.searchsorted(sizes, sizes[-1] / _REACH, side="right") - 1)
    return int(sizes[np.clip(place, 1, len(sizes) - 2)])


class _Curves(NamedTuple):
    """The mean of every point's law, as far as it takes to predict contributions."""

    family: Family
    params: FloatArray

    def residual(self, rows: slice, part: Contributions) -> FloatArray:
        """Return contributions less predictions, of the points ``rows``, ``(n_rows,)``."""
        k = part.k.astype(np.float64)
        return np.asarray(part.delta - self.family.curve(self.params[rows][part.point], k))


def _parts(table: Table) -> Iterator[tuple[slice, Contributions]]:
    """Yield blocks of contributions with the points that they are about."""
    start = 0
    for part in table.parts():
        yield slice(start, start + part.n_points), part
        start += part.n_points


def _weights(part: Contributions) -> FloatArray:
    """Return how many independent contributions each one is worth, shape ``(n_rows,)``."""
    return np.ones(len(part)) if part.weight is None else part.weight


class Judge:
    """Held-out contributions, grouped by point and size."""

    def __init__(self, late: Table, level: float) -> None:
        self.late, self.level = late, level
        self.bins = Bins.of_counts(*late.sizes(), max_sizes=_SIZES, n_bins=_SIZES)
        self.n = self._sum(lambda rows, part: np.ones(len(part)))
        self.worth = self._sum(lambda rows, part: _weights(part))
        self.mean = self._sum(lambda rows, part: part.delta) / np.maximum(self.n, 1)
        square = self._sum(lambda rows, part: part.delta**2) / np.maximum(self.n, 1)
        spread = np.maximum(square - self.mean**2, 0.0)
        # The noise variance of each held-out mean, from the spread of what is averaged.
        self.noise = np.where(self.n > 1, spread / np.maximum(self.n - 1, 1), np.nan)

    def _sum(self, values: Callable[[slice, Contributions], FloatArray]) -> FloatArray:
        """Sum values of contributions by point and bin of size, shape ``(n_points, n_bins)``."""
        n_bins, parts = len(self.bins), []
        for rows, part in _parts(self.late):
            place = np.searchsorted(self.bins.edges, part.k, side="right")
            cell = part.point * n_bins + place
            flat = np.bincount(cell, values(rows, part), minlength=part.n_points * n_bins)
            parts.append(flat.astype(np.float64).reshape(-1, n_bins))
        return np.concatenate(parts)

    def errors(self, laws: Laws) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compare with laws: mean residual, standard error of the law, noise variance of the mean.

        Each has shape ``(n_points, n_bins)``.
        """
        shift = self._sum(_Curves(laws.family, laws.params).residual) / np.maximum(self.n, 1)
        noise = laws.sigma[:, None] ** 2 * self.bins.k ** -laws.beta[:, None]
        with quiet():  # that these sizes were not fitted is the point
            error = laws.stderr(self.bins.k)
        return shift, error, noise / np.maximum(self.worth, 1e-12)

    def scores(self, laws: Laws) -> tuple[list[Score], FloatArray]:
        """Judge laws: scores by size, and surprise of each point."""
        shift, error, noise = self.errors(laws)
        is_there = (self.n > 0) & laws.has_law[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            z = np.abs(shift) / np.sqrt(error**2 + noise)
        reach = quantile(self.level, laws.df)
        inside = z <= (reach[:, None] if reach.ndim else reach)
        rows = []
        for j, k in enumerate(self.bins.k):
            at = is_there[:, j]
            known = at & np.isfinite(z[:, j])
            rows.append(
                Score(
                    method=str(laws.attrs["estimator"]),
                    family=laws.family.word,
                    k=float(k),
                    r2=_r2(self.mean[at, j], shift[at, j], self.noise[at, j]),
                    correlation=_correlation(self.mean[at, j], (self.mean - shift)[at, j]),
                    coverage=float(inside[known, j].mean()) if known.any() else float("nan"),
                    n_points=int(at.sum()),
                )
            )
        worst = np.where(is_there & np.isfinite(z), z, -1.0).max(axis=1)
        # A few contributions have heavier tails than the normal: judge as Student's t would.
        return rows, np.where(worst < 0, np.nan, _normal_score(worst, laws.df))


def _r2(seen: FloatArray, shift: FloatArray, noise: FloatArray) -> float:
    """Share of the variation of true means that is predicted; nan where noise drowns it."""
    known = np.isfinite(noise) & np.isfinite(shift)
    if known.sum() < 3:
        return float("nan")
    level = float(noise[known].mean())
    signal = float(seen[known].var()) - level
    if signal <= 0:
        return float("nan")
    return min(1.0, 1 - (float((shift[known] ** 2).mean()) - level) / signal)


def _correlation(seen: FloatArray, predicted: FloatArray) -> float:
    """Pearson correlation across points; nan where either does not vary."""
    known = np.isfinite(predicted)
    if known.sum() < 3 or not seen[known].std() or not predicted[known].std():
        return float("nan")
    return float(np.corrcoef(seen[known], predicted[known])[0, 1])


def _normal_score(z: FloatArray, df: FloatArray | None) -> FloatArray:
    """Return the normal deviate that is as rare as Student's ``z`` with ``df`` degrees."""
    if df is None:
        return z
    from scipy.special import ndtri_exp, stdtr

    is_finite = np.isfinite(df)
    tail = stdtr(np.where(is_finite, df, 1.0), -np.maximum(z, 0.0))
    score = -ndtri_exp(np.log(np.maximum(tail, 1e-300)))
    return np.where(is_finite, score, z)


def _pick(curves: list[_Curves], late: Table, is_counted: BoolArray) -> int:
    """Return the candidate of least squared error, the first unless another is clearly better.

    Clearly: by more than 2.5 standard errors of the difference. Contributions of one task share
    their noise, and those of one point the error of its law, so the variances of the sums by task
    and by point are added. Points outside ``is_counted`` are left out. Where some points were
    valued rarely, contributions count one over their chance to be drawn.
    """
    tasks = np.empty(0, dtype=np.int64)
    for rows, part in _parts(late):
        tasks = np.union1d(tasks, part.task[is_counted[rows][part.point]])
    best = 0
    for j in range(1, len(curves)):
        by_task, by_point = np.zeros(len(tasks)), np.zeros(len(is_counted))
        for rows, part in _parts(late):
            keep = is_counted[rows][part.point]
            less = curves[best].residual(rows, part) ** 2 - curves[j].residual(rows, part) ** 2
            gain = np.nan_to_num(less if part.chance is None else less / part.chance)[keep]
            place = np.searchsorted(tasks, part.task[keep])
            by_task += np.bincount(place, gain, minlength=len(tasks))
            by_point[rows] = np.bincount(part.point[keep], gain, minlength=part.n_points)
        spread = np.sqrt(_variance_of_sum(by_task) + _variance_of_sum(by_point[is_counted]))
        if float(by_task.sum()) > _CLEARLY * spread:
            best = j
    return best


def _variance_of_sum(values: FloatArray) -> float:
    """Estimate the variance of the sum of independent values from their spread."""
    return float(values.var() * len(values)) if len(values) else 0.0
