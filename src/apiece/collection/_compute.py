"""One unit of work: its tasks through the engine, into a shard."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from apiece.engines import Engine, sample_of, surrogate_of
from apiece.errors import EngineError
from apiece.records import Outcome, Plan, Task
from apiece.store import Shard, TaskRows, TrainingRow, Unit, make_shard, make_training_shard

ATTEMPTS = 3  # before a task is recorded as failed
HOPELESS = 20  # this many failed tasks without a single good one end a campaign
_COMPARED = 400  # contributions that an approximate engine is judged by
_COMPARED_TASKS = 8


def compute(engine: Engine, unit: Unit, tasks: list[Task]) -> Shard:
    """Run the tasks of one unit and return its shard; a failed task is recorded, not raised.

    Examples
    --------
    >>> from apiece.data import load_demo
    >>> from apiece.engines import choose_engine
    >>> engine, _ = choose_engine(load_demo()[0])
    >>> task = Task(0, np.arange(30), np.arange(30, 33), seed=0)
    >>> len(compute(engine, Unit(0, range(1)), [task]))
    3
    """
    rows: list[TaskRows] = []
    trainings: list[TrainingRow] = []
    failed: dict[int, str] = {}
    certificates = [float("nan")]
    notes: dict[str, int] = {}
    for task in tasks:
        part = task.part(unit.slice_of(np.arange(len(task.points))))
        try:
            outcome = _attempt(engine, part)
        except EngineError as error:
            failed[task.index] = str(error)
            if len(failed) >= HOPELESS and not rows and not trainings:
                break
            continue
        for name, count in outcome.notes.items():
            notes[name] = notes.get(name, 0) + count
        if engine.gives_trainings:
            trainings.append(_training(task, outcome))
            continue
        good = ~np.isnan(outcome.delta)
        rows.append(
            TaskRows(
                task.index,
                task.cardinality,
                part.points[good],
                outcome.delta[good],
                outcome.loss,
                None if outcome.control is None else outcome.control[good],
                task.active,
            )
        )
        if not good.all():
            notes["uncertified"] = notes.get("uncertified", 0) + int(np.count_nonzero(~good))
        if good.any():
            certificates.append(outcome.certificate)
    found: dict[str, Any] = {"end_task": unit.tasks.stop, "notes": notes, "failed": failed}
    if engine.gives_trainings:
        return make_training_shard(unit.index, trainings, **found)
    return make_shard(unit.index, rows, certificate=float(np.fmax.reduce(certificates)), **found)


def _training(task: Task, outcome: Outcome) -> TrainingRow:
    subset = np.sort(task.subset)
    return TrainingRow(
        task.index, task.cardinality, outcome.loss, subset, task.points, outcome.delta
    )


def _attempt(engine: Engine, task: Task) -> Outcome:
    """Run one task, again if it fails: memory or a file may have been short for a moment."""
    for _ in range(ATTEMPTS - 1):
        with suppress(EngineError):
            return run_task(engine, task)
    return run_task(engine, task)


def compare(engine: Engine, oracle: Engine, plan: Plan) -> dict[str, float | None]:
    r"""Measure how well an approximate engine's contributions agree with exact ones.

    Over some tasks of the plan, at sizes across its range: the correlation of $k \,\Delta$, since
    contributions of all sizes are pooled and those of small sizes are larger.

    Returns
    -------
    dict
        ``correlation`` and ``n_compared``, the number of contributions behind it. Where one of the
        engines has no answer nothing is compared; without any answers the correlation is None.

    Examples
    --------
    >>> from apiece.collection import Design, make_plan
    >>> from apiece.data import load_demo
    >>> from apiece.engines import choose_engine
    >>> data, _ = load_demo()
    >>> fast, exact = (choose_engine(data, engine=name)[0] for name in ("first-order", "logistic"))
    >>> plan = make_plan(
    ...     Design.of((40, 80), samples=3), n_pool=data.n_pool, points=np.arange(50), seed=0,
    ...     strata=data.y,
    ... )
    >>> compare(fast, exact, plan)["correlation"] > 0.5
    True
    """
    # A task of many points needs few others for the sizes; one D per point takes many tasks.
    n_tasks = max(_COMPARED_TASKS, -(-_COMPARED // plan.points_per_task))
    pairs = []
    for index in np.unique(np.linspace(0, len(plan) - 1, n_tasks).astype(np.int64)):
        task = plan[int(index)]
        step = max(1, len(task.points) * _COMPARED_TASKS // _COMPARED)
        part = replace(task, points=task.points[::step])
        both = np.stack([run_task(engine, part).delta, run_task(oracle, part).delta])
        pairs.append(part.cardinality * both[:, np.isfinite(both).all(axis=0)])
    near, exact = np.concatenate(pairs, axis=1)
    if not len(exact):
        return {"correlation": None, "n_compared": 0}
    spread = near.std() * exact.std()
    covariance = ((near - near.mean()) * (exact - exact.mean())).mean()
    correlation = covariance / spread if spread > 0 else float(np.array_equal(near, exact))
    return {"correlation": round(float(correlation), 4), "n_compared": len(exact)}


def _run_scored(engine: Engine, task: Task) -> Outcome:
    """Run a task that is about the population, and add what theory predicts for its points."""
    if task.scoring is None:
        sample = sample_of(engine.dataset, engine.model)
        return replace(engine.run(task), control=sample.control(task))
    outcome = engine.scored_by(task.scoring).run(replace(task, scoring=None))
    surrogate = surrogate_of(engine.dataset, engine.model)
    if task.rows is not None or not surrogate.is_available:
        return outcome
    return replace(outcome, control=surrogate.control(task))


def run_task(engine: Engine, task: Task) -> Outcome:
    """Run one task; whatever goes wrong becomes an error that names it."""
    where = f"task {task.index} (k={task.cardinality})"
    keeps = "Every other task is kept"
    try:
        outcome = (
            engine.run(task)
            if task.scoring is None and not task.active
            else _run_scored(engine, task)
        )
    except EngineError:
        raise
    except Exception as error:  # whatever a user's model or metric raises
        raise EngineError(
            f"{engine.model.name} failed on {where}: {type(error).__name__}: {error}. "
            f"{keeps}; fix the model, the metric or the sizes and collect again."
        ) from error
    if not np.isfinite(outcome.loss) or np.isinf(outcome.delta).any():
        raise EngineError(
            f"{engine.metric.name} is not a finite number on {where}: expected one for each point. "
            f"{keeps}; scale the features, or pass another model or metric."
        )
    return outcome
