"""Base class of engines: from a dataset and a task to the contribution of every point."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from apiece._base.typing import AnyArray, FloatArray, IntArray
from apiece.data import Dataset
from apiece.engines._models import Model
from apiece.losses import Loss
from apiece.records import Outcome, Task

_NOBODY = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Engine(ABC):
    """Computes contributions. The outcome of a task depends on the task alone.

    A subclass sets ``name`` and defines `run`; `collect(engine=...)` takes the class. Derived
    values may be cached with `functools.cached_property`: only the fields are sent to workers.

    Parameters
    ----------
    dataset
        The points and the validation set.
    model
        The model to train.
    metric
        The loss on the validation set.

    Attributes
    ----------
    name
        The name that chooses the engine, also written to manifests.
    is_exact
        Whether contributions equal those of a converged refit.
    is_quick
        Whether many points are valued at once for little more than one fit. Default sizes are
        then larger, and picks are valued together by default.
    gives_trainings
        Whether a task yields the losses of one training, for all points, in place of contributions.
    rows_per_shard
        How many contributions make a unit of work of a few seconds.
    made_for
        Class names of estimators; if one has unsupported settings, `choose_engine` reports them.

    Examples
    --------
    An engine for a model that predicts the class frequencies of D:

    >>> from apiece.data import load_demo
    >>> from apiece.engines import choose_engine
    >>> class Frequencies(Engine):
    ...     name = "frequencies"
    ...
    ...     def run(self, task):
    ...         def loss(rows):
    ...             share = self.dataset.targets(rows).mean()
    ...             proba = np.tile([1 - share, share], (self.dataset.n_validation, 1))
    ...             return self.metric.value(self.dataset.y_val, proba)
    ...
    ...         base = loss(task.subset)
    ...         joined = [loss(np.append(task.subset, point)) for point in task.points]
    ...         return Outcome(base, base - np.array(joined))
    >>> engine, _ = choose_engine(load_demo()[0], engine=Frequencies)
    >>> engine.run(Task(0, np.arange(10), np.arange(10, 13), seed=0)).delta.shape
    (3,)
    """

    name: ClassVar[str]
    is_exact: ClassVar[bool] = True
    is_quick: ClassVar[bool] = False
    gives_trainings: ClassVar[bool] = False
    rows_per_shard: ClassVar[int] = 50_000
    made_for: ClassVar[tuple[str, ...]] = ()

    dataset: Dataset
    model: Model
    metric: Loss

    @classmethod
    def supports(cls, dataset: Dataset, model: Model, metric: Loss) -> str | None:
        """Return None if the engine can compute this run, or the reason why not."""
        return None

    @abstractmethod
    def run(self, task: Task) -> Outcome:
        """Compute the contribution of every point of the task.

        Raises
        ------
        EngineError
            If a model cannot be fitted or scored; the task and point are named.
        """

    def scored_by(self, rows: IntArray) -> Self:
        """Return the same engine with rows of the pool in place of the validation set."""
        return replace(self, dataset=self.dataset.scored_by(rows))

    def join_groups(self, task: Task) -> Outcome:
        r"""Compute the contribution of every group of the task, ``task.rows``.

        $$\Delta(G, D) = L(f_D) - L(f_{D \cup G})$$

        By default `run` is called without points for D and for each union with a group, so a group
        is as exact as a fit, with the same seed, folds and initial weights. Subclasses may
        override this with something faster.
        """
        joining = task.rows or ()
        subsets = [task.subset, *(np.concatenate([task.subset, rows]) for rows in joining)]
        fits = [self.run(Task(task.index, subset, _NOBODY, task.seed)) for subset in subsets]
        notes: dict[str, int] = {}
        for fit in fits:
            for name, count in fit.notes.items():
                notes[name] = notes.get(name, 0) + count
        notes["fits"] = len(fits)
        error = np.array([fit.certificate for fit in fits])
        loss = np.where(error == np.inf, np.nan, [fit.loss for fit in fits])
        certificate = float(np.fmax.reduce(error[error < np.inf], initial=np.nan))
        return Outcome(fits[0].loss, loss[0] - loss[1:], certificate, notes)

    def refit_engine(self) -> Engine:
        """Return the engine that computes the points which this engine cannot."""
        from apiece.engines._refit import RefitEngine

        return RefitEngine(self.dataset, self.model, self.metric)

    def refit(self, task: Task, points: IntArray | None = None) -> Outcome:
        """Compute a task, or some of its points, by refits of the model; notes count them."""
        if points is not None:
            task = replace(task, points=points)
        outcome = self.refit_engine().run(task)
        return replace(outcome, notes={**outcome.notes, "refits": len(task.points)})

    def completed(self, task: Task, loss: float, delta: FloatArray, certificate: float) -> Outcome:
        """Return the outcome of a task, after a refit for each contribution that is not finite."""
        is_lost = ~np.isfinite(delta)
        if not is_lost.any():
            return Outcome(loss, delta, certificate, {"refits": 0})
        refitted = self.refit(task, task.points[is_lost])
        delta[is_lost] = refitted.delta
        return Outcome(loss, delta, certificate, refitted.notes)

    def loss_or_nan(self, y: AnyArray, prediction: AnyArray) -> float:
        """Return the loss, or nan if the metric raises: a refit then reports the error."""
        try:
            return float(self.metric.value(y, prediction))
        except Exception:
            return float("nan")

    def uncertified(self, task: Task) -> Outcome:
        """Return the outcome of a task whose training set cannot be fitted to the stated error.

        Contributions are nan. The loss is that of scikit-learn's fit, converged or not.
        """
        loss = self.refit(task, _NOBODY).loss
        return Outcome(loss, np.full(len(task.points), np.nan), float("inf"))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}
