r"""Groups through any engine: the loss of its fit on D, less that of its fit on D and the group.

$$\Delta(G, D) = L(f_D) - L(f_{D \cup G})$$

Every engine fits D to convergence, or as a refit would, before it values points; without any points
to value that is all it does. So each engine adds a group as a whole, as exactly and as fast as it
fits, and with the same seed, folds and initial weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from apiece._typing import IntArray
from apiece.data import Dataset
from apiece.engine._choose import Engine, choose_engine
from apiece.engine._metrics import Metric
from apiece.engine._models import Model
from apiece.errors import ModelError
from apiece.records import Outcome, Task


@dataclass(frozen=True, eq=False)
class GroupEngine:
    """Values groups by what an engine's fit loses with them.

    Parameters
    ----------
    engine
        Fits training sets; its pool holds all points, since candidates join them too.
    """

    rows_per_shard: ClassVar[int] = 512

    engine: Engine

    @property
    def name(self) -> str:
        """The word that chooses the engine that fits."""
        return self.engine.name

    @property
    def is_exact(self) -> bool:
        """Whether contributions equal those of a converged refit."""
        return self.engine.is_exact

    @property
    def model(self) -> Model:
        """What is trained."""
        return self.engine.model

    @property
    def metric(self) -> Metric:
        """The loss on the validation set."""
        return self.engine.metric

    def run(self, task: Task) -> Outcome:
        """Compute the contribution of every group of the task.

        Raises
        ------
        EngineError
            As the engine does, if a fit fails.
        """
        assert task.rows is not None
        before = self._fit(task, task.subset)
        after = [self._fit(task, np.concatenate([task.subset, rows])) for rows in task.rows]
        fits = [before, *after]
        notes: dict[str, int] = {}
        for fit in fits:
            for name, count in fit.notes.items():
                notes[name] = notes.get(name, 0) + count
        return Outcome(
            before.loss,
            before.loss - np.array([fit.loss for fit in after]),
            float(np.fmax.reduce([fit.certificate for fit in fits])),
            notes | {"fits": len(fits)},
        )

    def _fit(self, task: Task, subset: IntArray) -> Outcome:
        nobody = np.empty(0, dtype=np.int64)
        return self.engine.run(Task(task.index, subset, nobody, task.seed))


def choose_group_engine(
    dataset: Dataset,
    *,
    model: Any = "logistic",
    metric: str | Metric | Callable[[Any, Any], float] | None = None,
    engine: str = "auto",
) -> tuple[GroupEngine, str]:
    """Return the engine that values groups, and the reason in words; as `choose_engine`.

    Raises
    ------
    ModelError
        Also for an approximate engine, which knows single points alone.
    """
    everyone = replace(dataset, n_pool=dataset.n_points)
    chosen, reason = choose_engine(everyone, model=model, metric=metric, engine=engine)
    if not chosen.is_exact:
        raise ModelError(
            f"engine {chosen.name!r} approximates single points, and groups are to be valued: "
            "expected an exact engine. Pass engine='auto' (--engine auto)."
        )
    return GroupEngine(chosen), reason
