"""The campaign: the units of work that a store lacks, through the engine, into the store.

Each unit's result depends on the unit alone, and each is stored whole as soon as it is done. So the
answer is the same for any number of workers, any order and any number of interruptions; and
several collectors may work on one run at the same time, since they write the same files, each
taking the units in a random order of its own.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import closing

from apiece._base.progress import Reporter, Silent
from apiece.collection._compute import ATTEMPTS, HOPELESS
from apiece.collection._pools import Pool, WorkersLost, pool_of
from apiece.collection._work import Done, Job, keep
from apiece.engines import Engine
from apiece.errors import EngineError, StoreError
from apiece.records import Plan
from apiece.store import Store


def run_plan(
    engine: Engine,
    plan: Plan,
    store: Store,
    *,
    n_jobs: int | None = None,
    backend: str | None = None,
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
        Worker processes, each with one BLAS thread; -1 for one per core, None for one, or as many
        as the caller's ``joblib.parallel_config`` says.
    backend
        ``dask://host:port``, ``ray``, or None for this machine or the caller's
        ``joblib.parallel_config``.
    reporter
        Hears how far the work is.

    Raises
    ------
    EngineError
        After everything else was computed and stored, if some tasks failed.
    """
    hears = reporter or Silent()
    complete, n_rows = _take_stock(store, hears)
    todo = [index for index in range(len(store.layout)) if index not in complete]
    hears.start(store.manifest["n_contributions"], n_rows)
    # In an order of its own: collectors that went the same way would do the same units twice.
    secrets.SystemRandom().shuffle(todo)

    failed: dict[int, str] = {}
    job, pool = Job.of(engine, plan, store), pool_of(backend, n_jobs, len(todo))
    with job.marked(), closing(_units(pool, job, store, todo, hears)) as units:
        for footer, shard in units:
            if shard is not None:
                keep(store, shard)
            hears.advance(footer.n_rows)
            n_rows += footer.n_rows
            failed |= footer.failed
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


def _units(pool: Pool, job: Job, store: Store, todo: list[int], hears: Reporter) -> Generator[Done]:
    """Yield each unit as it is done, in any order, whatever becomes of workers.

    When workers are lost, the units that were under way are tried again one by one, so that one
    which takes its worker with it is found; after three times it is given up and recorded.
    """
    present = set(store.indices())
    left = dict.fromkeys(todo)
    losses = Counter[int]()

    while left:
        suspect = next((index for index in left if losses[index]), None)
        under_way = set[int]()

        def units(batch: list[int], under_way: set[int] = under_way) -> Iterator[int]:
            for index in batch:
                if index not in present and store.has(index):
                    del left[index]  # another collector has just stored it
                    continue
                under_way.add(index)
                yield index

        try:
            with closing(pool(job, units(list(left) if suspect is None else [suspect]))) as done:
                for unit in done:
                    under_way.discard(unit.footer.index)
                    del left[unit.footer.index]
                    yield unit
        except WorkersLost as error:
            hears.say(f"{error}; {len(under_way)} units of work are tried again")
            losses.update(under_way)
            for index in under_way:
                if losses[index] >= ATTEMPTS:
                    del left[index]
                    yield job.give_up(index, f"its worker was lost {ATTEMPTS} times: {error}")
