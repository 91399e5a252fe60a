"""The loss of models trained on nearly all rows, measured once at the end of a collection.

With rotating scoring rows it is cross-validated: rows are split into eight folds, each scored by a
model trained on the others. With a validation set one model is trained on the pool. Large pools
are represented by random rows, ten times as many as the largest sampled size.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from apiece._base.rng import stream
from apiece._base.typing import IntArray
from apiece.collection._rotation import N_BLOCKS, Rotation
from apiece.engines import Engine
from apiece.errors import EngineError
from apiece.records import Anchor, Task
from apiece.store import Store

_FOLDS: Final = 8
_REACH: Final = 10  # times the largest sampled size: how many rows are used at most
_STREAM: Final = (2, 1)  # tasks use keys of length one
_NOBODY: Final = np.empty(0, dtype=np.int64)


def add_anchor(store: Store, engine: Engine, seed: int, k_max: int, *, rotates: bool) -> None:
    """Measure the anchor of a run and store it, unless it is there."""
    from threadpoolctl import threadpool_limits

    if store.anchor is not None:
        return
    data = engine.dataset
    strata = data.y if data.is_classification else np.zeros(data.n_pool, dtype=np.int64)
    with threadpool_limits(1):
        anchor = measure_anchor(engine, seed=seed, strata=strata, k_max=k_max, rotates=rotates)
    if anchor is not None:
        store.keep_anchor(anchor)


def measure_anchor(
    engine: Engine, *, seed: int, strata: IntArray, k_max: int, rotates: bool
) -> Anchor | None:
    """Train on nearly all rows of the pool, by plain refits of the model.

    Parameters
    ----------
    engine
        What computes the run.
    seed
        The run's seed, which decides folds and models.
    strata
        Class code of every row of the pool, shape ``(n_pool,)``.
    k_max
        The largest sampled size.
    rotates
        Whether scoring rows rotate.

    Returns
    -------
    Anchor or None
        None where a model cannot be trained or scored on these rows.
    """
    rng = stream(seed, *_STREAM)
    rows = rng.permutation(len(strata))[: _REACH * k_max]
    if not rotates:
        parts = [(rows, _NOBODY)]
    else:
        fold = Rotation(seed, strata).block_of[rows] * _FOLDS // N_BLOCKS
        parts = [(rows[fold != j], rows[fold == j]) for j in range(_FOLDS)]
    losses = []
    for train, score in parts:
        scored = engine.scored_by(np.sort(score)) if rotates else engine
        try:
            outcome = scored.refit(Task(0, train, _NOBODY, int(rng.integers(2**31))))
        except EngineError:
            return None
        losses.append(outcome.loss)
    k = round(sum(len(train) for train, _ in parts) / len(parts))
    return Anchor(k, tuple(losses)) if np.isfinite(losses).all() else None
