r"""A plan before the work: how long it takes, and how sure the answer will be.

A pilot collects a little in memory, then more; the difference of the two times is the time of the
work without start-up. If expected contributions of points vary by $s^2$ and one sample has
the noise $\sigma^2$, $m$ samples are expected to have the correlation
$(1 + \sigma^2 / (s^2 m))^{-1/2}$ with the answer of unlimited sampling. The ratio $\sigma^2/s^2$
comes from the agreement of two halves of the pilot.

For trainings the posterior of the pilot says what is not known yet. What features predict is
learned from all points together, and its error falls as $1/m$. The rest of each of $n$ points has a
variance $S$. After $m$ trainings, with noise $s^2$ and a share $p$ of the points in each, it is
known to the variance $v$ with

$$v = \frac{S}{1 + m\,p(1 - p)\,S / (s^2 + n\,p(1 - p)\,v)},$$

since what is not known of other points is noise for each.
"""

from __future__ import annotations

import time
import warnings
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from apiece._base.arrow import ArrowTable
from apiece._base.progress import OnProgress, current_tracker, duration, tracking
from apiece._base.rng import RandomState
from apiece.collection._collect import USUAL, collect
from apiece.collection._question import Question, Scoring
from apiece.data import Dataset
from apiece.engines import Engine, EngineChoice, RefitEngine
from apiece.errors import ApieceWarning
from apiece.losses import LossLike
from apiece.store import MemoryStore, Run

if TYPE_CHECKING:
    import pandas as pd

_SAMPLES: Final = (8, 24)  # per point in the two steps of the pilot
_REFITS: Final = (5, 10)  # the same for the refit engine
_TRAININGS: Final = (32, 128)  # the same for trainings, in whole units of work
_SLOW: Final = 60.0  # seconds above which a pilot of trainings has one step
_TESTS: Final = 2  # trainings with which every run begins
_POINTS: Final = 20  # points that the pilot of the refit engine values
_LEAST_SCORING: Final = 1_000  # rows that score, at least
_GOOD: Final = 0.9  # correlation that is called good
_FACTORS: Final = (0.25, 1.0, 4.0)
_NEVER: Final = 10**9  # samples or trainings


@dataclass(frozen=True, repr=False)
class Forecast(ArrowTable):
    """What a collection will cost, and how sure its answer will be.

    Parameters
    ----------
    engine
        The engine that will compute it.
    unit
        What is counted: ``samples`` (contributions per point) or ``trainings``.
    amount
        How many are planned.
    seconds
        How long they will take.
    correlation
        Expected correlation of values with those of unlimited sampling.
    width
        Expected half width of 90 % intervals, in standard deviations of the points' values.
    needed
        How many are needed for a correlation of 0.9; None if none are enough.
    rates
        The same for other amounts, see `table`.
    sizes
        The smallest and the largest training set.
    n_scoring, scoring_needed
        Rows of a fixed validation set, and how many the largest size needs, so that their choice
        adds less noise than the points differ: $k^2/d$ for $d$ features, at least 1,000. None
        where rows take turns in scoring, which needs none.

    Examples
    --------
    >>> import pandas as pd
    >>> Forecast("logistic", "samples", 100, 75.0, 0.95, 0.5, 60, pd.DataFrame())
    engine logistic: 100 samples take about 75 seconds
    expected correlation with unlimited sampling 0.95; 90 % intervals of ± 0.5 standard deviations
    of the values
    """

    engine: str
    unit: str
    amount: int
    seconds: float
    correlation: float
    width: float
    needed: int | None
    rates: pd.DataFrame
    sizes: tuple[int, int] = (0, 0)
    n_scoring: int | None = None
    scoring_needed: int | None = None

    def table(self) -> pd.DataFrame:
        """Return ``seconds``, ``correlation`` and ``width`` by amount."""
        return self.rates.copy()

    def __repr__(self) -> str:
        lines = [
            (
                f"engine {self.engine}: {self.amount:,} {self.unit} take about "
                f"{duration(self.seconds)}"
            ),
            (
                f"expected correlation with unlimited sampling {self.correlation:.2f}; 90 % "
                f"intervals of ± {self.width:.2g} standard deviations of the values"
            ),
        ]
        if self.correlation < _GOOD and self.needed is not None:
            each = self.seconds / self.amount
            lines.append(
                f"for a correlation of {_GOOD}: {self.needed:,} {self.unit}, about "
                f"{duration(each * self.needed)}. Or value fewer points, or pass a faster model."
            )
        elif self.needed is None:
            lines.append(
                "the pilot sees no difference between points: more of the same may not help. "
                "Pass smaller sizes, at which points matter more, or more rows."
            )
        return "\n".join([*lines, *self._about_scoring()])

    def _about_scoring(self) -> list[str]:
        """Say which sizes are trained on, and whether enough rows score."""
        if not self.sizes[1]:
            return []
        lines = [f"training sets of {self.sizes[0]:,} to {self.sizes[1]:,} points"]
        if self.n_scoring is None or self.scoring_needed is None:
            return [f"{lines[0]}; all rows take turns in scoring"]
        lines[0] += f", scored by {self.n_scoring:,} rows"
        if self.n_scoring < self.scoring_needed:
            lines.append(
                f"sizes up to {self.sizes[1]:,} need about {self.scoring_needed:,} scoring rows. "
                "Pass more, or smaller sizes, or let rows take turns (scoring='rotating')."
            )
        return lines


def plan(
    dataset: Dataset,
    *,
    model: Any = "auto",
    sizes: Sequence[int] | None = None,
    samples: int | None = None,
    trainings: int | None = None,
    metric: LossLike = None,
    engine: EngineChoice = "auto",
    points: npt.ArrayLike | None = None,
    scoring: Scoring = "auto",
    random_state: RandomState = 0,
    n_jobs: int | None = None,
    progress: bool | None = None,
    on_progress: OnProgress | None = None,
) -> Forecast:
    """Measure by a pilot what a collection will cost, and how sure its answer will be.

    Parameters
    ----------
    dataset, model, sizes, samples, trainings, metric, engine, points, scoring, random_state
        As for `collect`.
    n_jobs
        How many workers there will be. The pilot runs in this process, and its times are divided
        by their number.
    progress, on_progress
        As for `collect`.

    Returns
    -------
    Forecast
        Time, expected correlation and width of intervals.

    Raises
    ------
    PlanError
        If the request does not fit the data.

    Examples
    --------
    >>> import apiece
    >>> from apiece.data import load_demo
    >>> found = apiece.plan(load_demo()[0], sizes=(20, 60), random_state=0)
    >>> found.unit, found.amount, found.correlation > 0
    ('samples', 100, True)
    """
    from joblib import effective_n_jobs

    n_workers = effective_n_jobs(n_jobs or 1)
    asked = {"model": model, "metric": metric, "sizes": sizes, "points": points, "scoring": scoring}
    question = Question.of(dataset, **asked)
    with tracking(
        progress, on_progress, title="trying some training sets", unit="steps"
    ) as tracker:
        tracker.start(3)
        chosen, _ = question.answered_by(engine, samples)
        asked_for = question.amount(engine, chosen, samples, trainings)
        options = asked | {
            "engine": chosen.name if engine == "auto" else engine,
            "random_state": random_state,
        }
        run, n_pilot, seconds, factor = _grown(question, chosen, options)
        tracker.advance()
        unknown = _unknown(run, n_pilot)
        tracker.advance()
    unit = "trainings" if run.has_trainings else "samples"
    amount = USUAL[unit] if asked_for is None else asked_for
    each = seconds * factor / n_workers
    amounts = sorted({max(1, round(amount * step)) for step in _FACTORS})
    error = {m: unknown(m) for m in {*amounts, amount}}
    return Forecast(
        run.manifest.engine.name,
        unit,
        amount,
        each * amount,
        float(np.sqrt(1 - error[amount])),
        1.645 * float(np.sqrt(error[amount])),
        _needed(unknown),
        _rates(amounts, each, error, unit),
        *_scoring(run, dataset),
    )


def _scoring(run: Run, dataset: Dataset) -> tuple[tuple[int, int], int | None, int | None]:
    """Return the ends of the sizes, the scoring rows, and how many the largest size needs."""
    sizes = run.manifest.design.sizes or [0]
    ends = (int(min(sizes)), int(max(sizes)))
    if run.manifest.design.scoring == "rotating":
        return ends, None, None
    n_features = max(1, run.manifest.dataset.n_features or 1)
    return ends, dataset.n_validation, max(_LEAST_SCORING, round(ends[1] ** 2 / n_features))


def _rates(amounts: list[int], each: float, error: dict[int, float], unit: str) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            "seconds": [each * m for m in amounts],
            "correlation": [np.sqrt(1 - error[m]) for m in amounts],
            "width": [1.645 * np.sqrt(error[m]) for m in amounts],
        },
        index=pd.Index(amounts, name=unit),
    )


def _grown(
    question: Question, chosen: Engine, options: dict[str, Any]
) -> tuple[Run, int, float, float]:
    """Collect a little, then more: the run, its amount, seconds for one more, and a factor.

    The factor is how many times more points there are than the pilot valued.
    """
    options = {**options, "progress": False, "anchor": False}
    factor = 1.0
    unit, (few, many) = "samples", _SAMPLES
    if chosen.gives_trainings:
        unit, (few, many) = "trainings", _TRAININGS
    elif chosen.name == RefitEngine.name:
        few, many = _REFITS
        inside = question.valued[question.valued < question.dataset.n_pool]
        if question.groups is None and len(inside) > _POINTS:
            options["points"] = inside[:: -(-len(inside) // _POINTS)]
            factor = len(question.valued) / len(options["points"])
    store = MemoryStore()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApieceWarning)
        began = time.perf_counter()
        collect(question.dataset, **options | {unit: few}, to=store)
        each = (time.perf_counter() - began) / (few + _TESTS)
        current_tracker().advance()
        if unit == "trainings" and each * many > _SLOW:
            return Run(store), few, each, factor
        began = time.perf_counter()
        run = collect(question.dataset, **options | {unit: many}, to=store)
    return run, many, (time.perf_counter() - began) / (many - few), factor


def _unknown(run: Run, amount: int) -> Callable[[int], float]:
    """Return which share of the variance of points is not known after some samples or trainings.

    Parameters
    ----------
    run, amount
        The pilot, and how many samples or trainings it has.
    """
    if not run.has_trainings:
        ratio = _noise_ratio(run, amount)
        return lambda m: ratio / (ratio + m) if ratio < np.inf else 1.0
    from apiece.estimators import Reuse

    trainings = run.trainings()
    laws, n = Reuse().fit_trainings(trainings), trainings.n_points
    learned = laws.diagnostics["population"]
    share = float(np.mean(trainings.k)) / n
    own, noise = float(np.sum(learned["covariance"])), float(learned["noise"]) ** 2
    left = float(np.mean(laws.stderr(laws.k_ref) ** 2))
    whole = float(np.var(laws.mean(laws.k_ref))) + left
    common = max(left - own_left(amount, n, share, own, noise), 0.0)
    if not whole > 0:
        return lambda m: 1.0
    return lambda m: min(1.0, (own_left(m, n, share, own, noise) + common * amount / m) / whole)


def own_left(m: int, n: int, share: float, own: float, noise: float) -> float:
    """Return the variance that points keep after trainings, see above.

    Parameters
    ----------
    m, n
        Trainings, and points.
    share
        Of the points, that each training has.
    own, noise
        The variances of points before, and of the noise of a training.

    Examples
    --------
    >>> own_left(0, 100, 0.5, own=2.0, noise=1.0)
    2.0
    """
    spread = share * (1 - share)
    a, b = n * spread, noise + spread * own * (m - n)
    return float((np.sqrt(b**2 + 4 * a * own * noise) - b) / (2 * a))


def _needed(unknown: Callable[[int], float]) -> int | None:
    """Return how many samples or trainings are enough; None if none are."""
    amounts = range(1, _NEVER)
    place = bisect_left(amounts, True, key=lambda m: 1 - unknown(m) >= _GOOD**2)
    return None if place == len(amounts) else amounts[place]


def _noise_ratio(run: Run, amount: int) -> float:
    """Return the noise variance of a sample over the variance of points; inf if that is 0."""
    from apiece.estimators import fit

    table = run.contributions()
    halves = [fit(table.where(table.task % 2 == part), progress=False) for part in range(2)]
    one, two = (laws.mean(laws.k_ref) for laws in halves)
    is_known = np.isfinite(one) & np.isfinite(two)
    if is_known.sum() < 3:
        return np.inf
    agreement = float(np.corrcoef(one[is_known], two[is_known])[0, 1])
    return amount / 2 * (1 / agreement - 1) if agreement > 0 else np.inf
