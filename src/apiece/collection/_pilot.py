r"""A pilot: which give more information, refits per point or trainings that serve all points?

With $T$ trainings of $n$ points, the mean of pairs has the variance
$\mathrm{Var}(\Delta)\,n / T$, and the difference of mean losses with and without a point
$\mathrm{Var}(L) / (T\,p\,(1 - p))$, if training sets hold a share $p$ of the pool. The ratio

$$g = n\,p\,(1 - p)\,\frac{\mathrm{Var}(\Delta)}{\mathrm{Var}(L)}$$

is what reuse gains at least; its prior gains more. Some 25 pairs measure both variances.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Final

import numpy as np

from apiece._base.progress import log
from apiece._base.rng import stream
from apiece._base.typing import IntArray
from apiece.collection._compute import run_task
from apiece.engines import Engine, RefitEngine, ReuseEngine
from apiece.errors import ApieceWarning, EngineError
from apiece.records import Plan, Task

_PAIRS: Final = 25
_FEWEST: Final = 8  # pairs of a slow model
_SECONDS: Final = 60.0  # after which a pilot of a slow model ends
_STREAM: Final = (2, 2)
_SCORING: Final = 0.25  # share of the pool that scores where there is no validation set
_MOST_SCORING: Final = 2_000
_SAME: Final = 1e-8  # of the loss


def choose_by_pilot(
    engine: RefitEngine, points: IntArray, sizes: tuple[int, int], *, rotates: bool
) -> tuple[Engine, str]:
    """Return the engine that gives more information per training, and the reason in words.

    Parameters
    ----------
    engine
        Refits with and without each point.
    points
        Positions to value.
    sizes
        The smallest and the largest training set.
    rotates
        Whether rows of the pool score.
    """
    data = engine.dataset
    reuse = ReuseEngine(data, engine.model, engine.metric)
    if reuse.supports(data, engine.model, engine.metric) is not None:
        return engine, f"no faster exact engine for {engine.model.name}"
    rng = stream(0, *_STREAM)
    rows = rng.permutation(data.n_pool)
    n_scoring = min(int(_SCORING * data.n_pool), _MOST_SCORING) if rotates else 0
    scoring, rest = rows[:n_scoring], rows[n_scoring:]
    trial = engine.scored_by(np.sort(scoring)) if rotates else engine
    k = min(int(np.sqrt(sizes[0] * sizes[1])), len(rest) - 1)
    loss: list[float] = []
    delta: list[float] = []
    began = time.monotonic()
    for index in range(_PAIRS):
        if len(loss) >= _FEWEST and time.monotonic() - began > _SECONDS:
            break
        drawn = rng.choice(rest, k + 1, replace=False)
        if data.is_classification and len(np.unique(data.y[drawn[:k]])) < data.n_classes:
            continue
        task = Task(index, drawn[:k], drawn[k:], index)
        try:
            outcome = run_task(trial, task)
        except EngineError as error:
            log.info("a training of the pilot failed: %s", error)
            continue
        loss.append(outcome.loss)
        delta.append(float(outcome.delta[0]))
    share = k / data.n_pool
    spread = float(np.var(loss)) if len(loss) > 2 else 0.0
    if not spread:
        return reuse, "a pilot of 50 trainings could not compare it with refits"
    gain = len(points) * share * (1 - share) * float(np.mean(np.square(delta))) / spread
    pilot = (
        f"no faster exact engine for {engine.model.name}; by a pilot of {2 * len(loss)} trainings "
        f"at k={k:,}, "
    )
    if gain > 1:
        times = _rounded(gain)
        return reuse, f"{pilot}one training says {times} times as much as a refit of one point"
    times = _rounded(1 / max(gain, 1e-3))
    return engine, f"{pilot}a refit of one point says {times} times as much as one training for all"


def _rounded(number: float) -> str:
    """Return a number with two digits.

    >>> _rounded(0.128), _rounded(128.3)
    ('0.13', '130')
    """
    return f"{float(f'{number:.2g}'):,.10g}"


def warn_if_random(engine: Engine, plan: Plan) -> None:
    """Warn of a model that computes other numbers each time, though it was given a seed."""
    if not isinstance(engine, RefitEngine | ReuseEngine):
        return
    task = plan[0]
    part = replace(task, points=task.points[:4] if engine.gives_trainings else _NOBODY)
    try:
        one, two = (run_task(engine, part).loss for _ in range(2))
    except EngineError:  # it will be met again, and reported
        return
    if abs(one - two) > _SAME * max(abs(one), abs(two)):
        warnings.warn(
            f"{engine.model.name} computes other numbers each time, though its random_state and "
            "the generators of Python, NumPy and torch were seeded. Its noise is averaged over "
            "training sets, but a run cannot be repeated bit by bit. Give it a random_state.",
            ApieceWarning,
            stacklevel=3,
        )


_NOBODY: Final = np.empty(0, dtype=np.int64)
