"""Groups through any engine: points that join a training set together, valued as a whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from apiece.data import Dataset
from apiece.engines._base import Engine
from apiece.engines._choose import EngineChoice, choose_engine
from apiece.errors import ModelError
from apiece.losses import LossLike
from apiece.records import Outcome, Task


@dataclass(frozen=True, eq=False)
class GroupEngine(Engine):
    """Values groups by what an engine's fit gains from them; see `Engine.join_groups`.

    Parameters
    ----------
    dataset, model, metric
        As for every engine; the pool holds all points, since candidates join them too.
    engine
        Fits training sets.

    Examples
    --------
    >>> import numpy as np
    >>> from apiece.data import load_demo
    >>> engine, _ = choose_group_engine(load_demo()[0])
    >>> groups = (np.array([40, 41]), np.array([50]))
    >>> engine.run(Task(0, np.arange(40), np.arange(2), seed=0, rows=groups)).delta.shape
    (2,)
    """

    rows_per_shard: ClassVar[int] = 512

    engine: Engine

    @property
    def name(self) -> str:  # type: ignore[override]  # a constant of other engines
        """The word that chooses the engine that fits."""
        return self.engine.name

    @property
    def is_exact(self) -> bool:  # type: ignore[override]  # a constant of other engines
        """Whether contributions equal those of a converged refit."""
        return self.engine.is_exact

    @cached_property
    def _fitting(self) -> Engine:
        return replace(self.engine, dataset=self.dataset, model=self.model, metric=self.metric)

    def run(self, task: Task) -> Outcome:
        """Compute the contribution of every group of the task."""
        return self._fitting.join_groups(task)


def choose_group_engine(
    dataset: Dataset,
    *,
    model: Any = "auto",
    metric: LossLike = None,
    engine: EngineChoice = "auto",
) -> tuple[GroupEngine, str]:
    """Return the engine that values groups, and the reason in words; as `choose_engine`.

    Raises
    ------
    ModelError
        Also for an approximate engine, which knows single points alone.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> engine, _ = choose_group_engine(load_demo()[0])
    >>> engine.name
    'logistic'
    """
    everyone = replace(dataset, n_pool=dataset.n_points)
    chosen, reason = choose_engine(everyone, model=model, metric=metric, engine=engine)
    if not chosen.is_exact:
        raise ModelError(
            f"engine {chosen.name!r} approximates single points, and groups are to be valued: "
            "expected an exact engine. Pass engine='auto' (--engine auto)."
        )
    return GroupEngine(everyone, chosen.model, chosen.metric, chosen), reason
