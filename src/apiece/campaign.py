"""The campaign: the units of work that a store lacks, through the engine, into the store.

Each unit's result depends on the unit alone, and each is stored whole as soon as it is done. So the
answer is the same for any number of workers, any order and any number of interruptions; and
several collectors may work on one run at the same time, since they write the same files.
"""

from __future__ import annotations

import os
import secrets
import signal
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import replace
from functools import cache

import numpy as np

from apiece._progress import Reporter, Silent
from apiece._typing import AnyArray
from apiece.engine import Engine
from apiece.errors import EngineError, StoreError
from apiece.records import Outcome, Plan, Task
from apiece.store import Shard, Store, Unit, make_shard

_HOPELESS = 20  # this many failed tasks without a single good one end a campaign


_COMPARED = 400  # contributions that an approximate engine is judged by
_COMPARED_TASKS = 8


def collect(
    engine: Engine,
    plan: Plan,
    store: Store,
    *,
    n_jobs: int = 1,
    reporter: Reporter | None = None,
) -> None:
    """Compute and store every unit of the plan that the store lacks.

    Parameters
    ----------
    engine
        Computes a task.
    plan
        All tasks of the run; the store's layout says how they are grouped.
    store
        Keeps the shards.
    n_jobs
        Worker processes, each with one BLAS thread; -1 for one per core.
    reporter
        Hears how far the work is.

    Raises
    ------
    EngineError
        After everything else was computed and stored, if some tasks failed.
    """
    hears = reporter or Silent()
    layout = store.layout
    complete, n_rows = _take_stock(store, hears)
    todo = [index for index in range(len(layout)) if index not in complete]
    hears.start(store.manifest["n_contributions"], n_rows)
    if complete and todo:  # a second collector on the same run had better begin elsewhere
        start = secrets.randbelow(len(todo))
        todo = todo[start:] + todo[:start]

    failed: dict[int, str] = {}
    with closing(_shards(engine, plan, store, todo, n_jobs)) as shards:
        for shard in shards:
            store.write(shard)
            hears.advance(len(shard))
            n_rows += len(shard)
            failed |= shard.failed
            if not n_rows and len(failed) >= _HOPELESS:
                break
    if failed:
        first = min(failed)
        raise EngineError(
            f"{len(failed)} of {len(plan):,} tasks failed; {n_rows:,} contributions of the others "
            f"are stored. The first: {failed[first]}"
        )


def _take_stock(store: Store, hears: Reporter) -> tuple[set[int], int]:
    """Return the units that are complete, and how many contributions they hold."""
    complete, n_rows = set(), 0
    for index in store.indices():
        try:
            shard = store.read(index)
        except StoreError as error:
            hears.say(str(error))
            continue
        if not shard.failed and shard.end_task == store.layout.unit(index).tasks.stop:
            complete.add(index)
            n_rows += len(shard)
    return complete, n_rows


def _shards(
    engine: Engine, plan: Plan, store: Store, todo: list[int], n_jobs: int
) -> Generator[Shard]:
    """Yield each unit's shard as it is done, in any order."""
    from joblib import Parallel, delayed, effective_n_jobs, parallel_config
    from threadpoolctl import threadpool_limits

    def units() -> Iterator[tuple[Unit, list[Task]]]:
        present = set(store.indices())
        for index in todo:
            if index not in present and store.has(index):
                continue  # another collector has just stored it
            unit = store.layout.unit(index)
            yield unit, [plan[task] for task in unit.tasks]

    if effective_n_jobs(n_jobs) == 1 or len(todo) <= 1:
        with threadpool_limits(1):
            for unit, tasks in units():
                yield compute(engine, unit, tasks)
        return
    with parallel_config(backend="loky", inner_max_num_threads=1):
        results = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(
            delayed(_compute_in_worker)(engine, unit, tasks) for unit, tasks in units()
        )
        try:
            with closing(results):
                yield from results
        except BrokenProcessPool as error:
            raise EngineError(
                f"a worker process died ({error}): expected it to finish its unit of work. Often "
                "memory ran out. What was done is stored; collect again with fewer jobs (n_jobs=, "
                "--jobs)."
            ) from error


def _compute_in_worker(engine: Engine, unit: Unit, tasks: list[Task]) -> Shard:
    _settle_in_worker()
    return compute(engine, unit, tasks)


@cache
def _settle_in_worker() -> None:
    """Leave Ctrl-C to the collecting process, and go when it has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collector = os.getppid()

    def watch() -> None:
        while os.getppid() == collector:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def compute(engine: Engine, unit: Unit, tasks: list[Task]) -> Shard:
    """Run the tasks of one unit and return its shard; a failed task is recorded, not raised."""
    rows: list[tuple[int, int, AnyArray, AnyArray, float]] = []
    failed: dict[int, str] = {}
    certificates = [float("nan")]
    notes: dict[str, int] = {}
    for task in tasks:
        points = unit.slice_of(task.points)
        try:
            outcome = _run(engine, replace(task, points=points))
        except EngineError as error:
            failed[task.index] = str(error)
            if len(failed) >= _HOPELESS and not rows:
                break
            continue
        rows.append((task.index, task.cardinality, points, outcome.delta, outcome.loss))
        certificates.append(outcome.certificate)
        for name, count in outcome.notes.items():
            notes[name] = notes.get(name, 0) + count
    return make_shard(
        unit.index,
        rows,
        end_task=unit.tasks.stop,
        certificate=float(np.fmax.reduce(certificates)),
        notes=notes,
        failed=failed,
    )


def compare(engine: Engine, oracle: Engine, plan: Plan) -> dict[str, float]:
    r"""Measure how well an approximate engine's contributions agree with exact ones.

    Over some tasks of the plan, at sizes across its range: the correlation of $k \,\Delta$, since
    contributions of all sizes are pooled and those of small sizes are larger.

    Returns
    -------
    dict
        ``correlation`` and ``n_compared``, the number of contributions behind it.
    """
    # A task of many points needs few others for the sizes; one D per point takes many tasks.
    n_tasks = max(_COMPARED_TASKS, -(-_COMPARED // plan.points_per_task))
    pairs = []
    for index in np.unique(np.linspace(0, len(plan) - 1, n_tasks).astype(np.int64)):
        task = plan[int(index)]
        step = max(1, len(task.points) * _COMPARED_TASKS // _COMPARED)
        part = replace(task, points=task.points[::step])
        both = np.stack([_run(engine, part).delta, _run(oracle, part).delta])
        pairs.append(part.cardinality * both)
    near, exact = np.concatenate(pairs, axis=1)
    spread = near.std() * exact.std()
    covariance = ((near - near.mean()) * (exact - exact.mean())).mean()
    correlation = covariance / spread if spread > 0 else float(np.array_equal(near, exact))
    return {"correlation": round(float(correlation), 4), "n_compared": len(exact)}


def _run(engine: Engine, task: Task) -> Outcome:
    """Run one task; whatever goes wrong becomes an error that names it."""
    where = f"task {task.index} (k={task.cardinality})"
    keeps = "Every other task is kept"
    try:
        outcome = engine.run(task)
    except EngineError:
        raise
    except Exception as error:  # whatever a user's model or metric raises
        raise EngineError(
            f"{engine.model.name} failed on {where}: {type(error).__name__}: {error}. "
            f"{keeps}; mend the model, the metric or the sizes and collect again."
        ) from error
    if not (np.isfinite(outcome.loss) and np.isfinite(outcome.delta).all()):
        raise EngineError(
            f"{engine.metric.name} is not a finite number on {where}: expected one for each point. "
            f"{keeps}; scale the features, or pass another model or metric."
        )
    return outcome
