r"""The refit engine: train with and without each point. Slow, and the reference for all engines.

For a task with training set $D$ it trains $f_D$ once, then $f_{D \cup z}$ for every valued point
$z$, with the same seed, and returns $\Delta(z, D) = L(f_D) - L(f_{D \cup z})$.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.data import Dataset, guarded
from apiece.engines._base import Engine
from apiece.engines._models import weight_option
from apiece.engines._seeds import seeded
from apiece.errors import EngineError
from apiece.losses import Loss
from apiece.records import Outcome, Task

_CERTIFIED = 1e-5  # error of a contribution relative to the mean size of contributions


@dataclass(frozen=True, eq=False)
class RefitEngine(Engine):
    """Trains any scikit-learn estimator with and without each point.

    Parameters
    ----------
    dataset, model, metric
        As for every engine.
    missing
        Takes a fitted model and the positions it was trained on; returns the difference between
        the optimum's predictions for the validation set and the model's, shape ``(n,)``.
        Contributions that this difference would change are nan. None accepts all fits.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> from apiece.engines import choose_engine
    >>> engine, _ = choose_engine(load_demo()[0], model="tree")
    >>> engine.run(Task(0, np.arange(30), np.arange(30, 33), seed=0)).notes["fits"]
    4
    """

    name: ClassVar[str] = "refit"
    rows_per_shard: ClassVar[int] = 512

    missing: Callable[[Any, IntArray], FloatArray] | None = None

    def run(self, task: Task) -> Outcome:
        """Compute the contribution of every point of the task.

        Raises
        ------
        EngineError
            If a fit raises, or a loss is not a finite number; the task and point are named.
        """
        model = self.model.seeded(task.seed)
        loss, base_error, unconverged = self._loss(model, task.subset, task, None)
        delta, error = np.empty(len(task.points)), np.empty(len(task.points))
        for i, point in enumerate(task.points):
            joined, name = np.append(task.subset, point), self.dataset.ids[point]
            with_point, error[i], n_unconverged = self._loss(model, joined, task, name)
            delta[i] = loss - with_point
            unconverged += n_unconverged
        notes = {"fits": len(delta) + 1, "unconverged": unconverged}
        limit = _CERTIFIED * (np.abs(delta).mean() if len(delta) else 0.01 * abs(loss))
        delta[~(error + base_error <= limit)] = np.nan
        return Outcome(loss, delta, np.nan if base_error <= limit else np.inf, notes)

    def _loss(
        self, model: Any, positions: IntArray, task: Task, point: object
    ) -> tuple[float, float, int]:
        """Train a fresh copy; return its loss, the error of that, and whether it stopped early.

        The fit gets copies of the points' rows and targets, in the type that the dataset keeps
        them in: a model that works in place must not change the training sets of later fits.
        """
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                data = self.dataset
                fitted = trained_on(data, model, positions, task.seed)
                prediction, missed = predicted(fitted, data.rows_val, data, self.metric), 0.0
                loss = float(self.metric.value(data.y_val, prediction))
                if self.missing is not None:
                    better = prediction + self.missing(fitted, positions)
                    missed = abs(float(self.metric.value(data.y_val, better)) - loss)
        except Exception as error:  # a user's model may raise anything; report it with the task
            fix = "fix the model or the sizes and collect again"
            if "only supported for dataframes" in str(error):  # as ColumnTransformer complains
                fix = "read the table with preprocess=None, so that the model finds its columns"
            elif "could not convert string to float" in str(error):
                fix = "leave preprocess=None out, or pass a pipeline that turns words into numbers"
            raise EngineError(
                f"{self.model.name} failed on {_where(task, point)}: {type(error).__name__}: "
                f"{str(error).rstrip('.')}. Every other task is kept; {fix}."
            ) from error
        if not np.isfinite(loss):
            raise EngineError(
                f"{self.metric.name} is {loss} on {_where(task, point)}: expected a finite number. "
                "Every other task is kept; scale the features, or pass another model or metric."
            )
        return loss, missed, int(self.model.has_stopped_early(caught))


def trained_on(dataset: Dataset, model: Any, positions: IntArray, seed: int) -> Any:
    """Return a copy of a model, trained on copies of some points.

    Global random generators are seeded for the time of the fit.
    """
    from sklearn.base import clone

    fitted, weight = clone(model), dataset.sample_weight
    options = {} if weight is None else {weight_option(model): weight[positions]}
    with seeded(seed):
        fitted.fit(dataset.take(positions), dataset.targets(positions), **options)
    return fitted


def predicted(model: Any, rows: Any, dataset: Dataset, metric: Loss) -> AnyArray:
    """Return what a metric needs of a fitted model for some rows."""
    rows = guarded(rows)
    if metric.needs not in ("proba", "decision"):
        return np.asarray(model.predict(rows))
    n, n_classes = rows.shape[0], dataset.n_classes
    is_proba = metric.needs == "proba"
    method = "predict_proba" if is_proba else "decision_function"
    expected = (n, n_classes) if is_proba or n_classes > 2 else (n,)
    found = np.asarray(getattr(model, method)(rows), dtype=np.float64)
    if found.shape != expected:
        raise ValueError(f"{method} returned shape {found.shape}, expected {expected}")
    return found


def _where(task: Task, point: object) -> str:
    added = "" if point is None else f" with point {point!r} added"
    return f"task {task.index} (k={task.cardinality}){added}"
