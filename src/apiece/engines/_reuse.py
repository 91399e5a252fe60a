r"""The reuse engine: one training per training set, which informs about all points in it.

For a task with training set $D$ it trains $f_D$ once and returns its loss, and the loss of each row
outside $D$ that the task names. It computes no contributions: the estimator `Reuse` learns the laws
of all points from the losses of all trainings.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from apiece._base.typing import FloatArray, IntArray
from apiece.data import Dataset
from apiece.engines._base import Engine
from apiece.engines._models import Model
from apiece.engines._refit import predicted, trained_on
from apiece.errors import EngineError
from apiece.losses import Loss
from apiece.records import Outcome, Task


@dataclass(frozen=True, eq=False)
class ReuseEngine(Engine):
    """Trains any scikit-learn estimator once for each training set.

    Parameters
    ----------
    dataset, model, metric
        As for every engine. Without a validation set, rows of the pool score.

    Examples
    --------
    >>> import numpy as np
    >>> from apiece.data import load_demo
    >>> from apiece.engines import choose_engine
    >>> engine, _ = choose_engine(load_demo()[0], model="tree", engine="reuse")
    >>> engine.run(Task(0, np.arange(30), np.arange(30, 33), seed=0)).delta.shape
    (3,)
    """

    name: ClassVar[str] = "reuse"
    gives_trainings: ClassVar[bool] = True
    rows_per_shard: ClassVar[int] = 32

    @classmethod
    def supports(cls, dataset: Dataset, model: Model, metric: Loss) -> str | None:
        """Return None if the engine can compute this run, or the reason why not."""
        if not dataset.n_validation and not metric.is_mean_of_rows:
            return (
                f"{metric.name} is not a mean over rows, which rows that take turns in scoring "
                "need; a validation set would do"
            )
        return None

    def run(self, task: Task) -> Outcome:
        """Train on the task's set; ``delta`` holds the losses of the rows ``task.points``.

        Raises
        ------
        EngineError
            If the fit raises, or a loss is not a finite number; the task is named.
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = trained_on(self.dataset, self.model.seeded(task.seed), task.subset, task.seed)
            rows = self._row_losses(model, task.points)
            loss = self._loss(model, rows[task.points < self.dataset.n_pool])
        if not (np.isfinite(loss) and np.isfinite(rows).all()):
            raise EngineError(
                f"{self.metric.name} is {loss} on task {task.index} (k={task.cardinality}): "
                "expected a finite number. Every other task is kept; scale the features, or pass "
                "another model or metric."
            )
        is_short = self.model.has_stopped_early(caught)
        return Outcome(loss, rows, notes={"fits": 1, "unconverged": int(is_short)})

    def _row_losses(self, model: Any, points: IntArray) -> FloatArray:
        if not len(points) or not self.metric.is_mean_of_rows:
            return np.zeros(len(points))
        data = self.dataset
        prediction = predicted(model, data.take(points), data, self.metric)
        return self.metric.rows(data.targets(points), prediction)

    def _loss(self, model: Any, rows: FloatArray) -> float:
        """Return the loss on the validation set, or the mean of the pool's rows without one."""
        data = self.dataset
        if not data.n_validation:
            return float(rows.mean())
        return float(
            self.metric.value(data.y_val, predicted(model, data.rows_val, data, self.metric))
        )
