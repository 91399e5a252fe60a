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
from functools import cache

from apiece._progress import Reporter, Silent
from apiece.campaign._compute import HOPELESS, compute
from apiece.engine import Engine
from apiece.errors import EngineError, StoreError
from apiece.records import Plan, Task
from apiece.store import Shard, Store, Unit


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
            failed |= shard.footer.failed
            if not n_rows and len(failed) >= HOPELESS:
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
        if shard.footer.completes(store.layout.unit(index)):
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
