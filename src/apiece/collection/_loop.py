"""The loop of a collection: the units of work that a store lacks, through the engine, into it.

Each unit's result depends on the unit alone, and each is stored whole as soon as it is done. So the
answer is the same for any number of workers, any order and any number of interruptions. Several
collectors may work on one run at the same time: they write the same contributions, each takes
the units in a random order, and each skips what another one has completed.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace

from apiece._base.progress import Tracker
from apiece.collection._compute import ATTEMPTS, HOPELESS
from apiece.collection._work import Done, Job
from apiece.collection.pools import LocalPool, Pool, WorkersLost
from apiece.engines import Engine
from apiece.errors import EngineError, StoreError
from apiece.records import Plan
from apiece.store import Layout, Store


def run_plan(
    engine: Engine,
    plan: Plan,
    store: Store,
    *,
    pool: Pool | None = None,
    tracker: Tracker | None = None,
    may_go_on: Callable[[], bool] | None = None,
) -> None:
    """Compute and store every unit of the plan that the store lacks.

    Parameters
    ----------
    engine
        Computes a task.
    plan
        All wanted tasks; the layout of the store says how they are grouped. The run may hold more
        tasks if another collector has requested more.
    store
        Keeps the shards.
    pool
        Where units are computed; this process by default.
    tracker
        Receives how far the work is.
    may_go_on
        Asked before each unit but the first; once it says no, units under way are the last.

    Raises
    ------
    EngineError
        After everything else was computed and stored, if some tasks failed.

    Examples
    --------
    >>> import apiece
    >>> from apiece.data import load_demo
    >>> from apiece.store import MemoryStore
    >>> store = MemoryStore()  # `collect` makes the plan and calls `run_plan`
    >>> _ = apiece.collect(load_demo()[0], to=store, sizes=(20, 40), samples=3, progress=False)
    >>> store.indices()
    [0]
    """
    tracker = tracker or Tracker()
    layout = replace(store.layout, n_tasks=len(plan))
    complete, n_rows = _take_stock(store, layout, tracker)
    todo = [index for index in range(len(layout)) if index not in complete]
    tracker.start(store.manifest.n_contributions, n_rows)
    # In a random order: collectors that took the same one would do the same units twice.
    secrets.SystemRandom().shuffle(todo)

    if not todo:
        return  # nothing is written, so that a complete run may be read-only

    failed: dict[int, dict[int, str]] = {}
    with (
        Job.on(store, engine, plan, layout, n_units=len(todo)) as job,
        closing(_units(pool or LocalPool(), job, store, todo, tracker, may_go_on)) as units,
    ):
        for footer, shard in units:
            if shard is not None:
                store.write(shard)
            tracker.advance(footer.n_rows)
            n_rows += footer.n_rows
            if footer.failed:
                failed[footer.index] = footer.failed
            if not n_rows and sum(map(len, failed.values())) >= HOPELESS:
                break
    messages: dict[int, str] = {}
    for index, tasks in failed.items():
        if not store.is_complete(layout.unit(index)):  # no other collector has computed it
            messages |= tasks
    if messages:
        raise EngineError(
            f"{len(messages)} of {len(plan):,} tasks failed; {n_rows:,} contributions of the "
            f"others are stored. The first: {messages[min(messages)]}"
        )


def _take_stock(store: Store, layout: Layout, tracker: Tracker) -> tuple[set[int], int]:
    """Return the units that are complete, and how many contributions they hold."""
    complete, n_rows = set(), 0
    for index in store.indices():
        if index >= len(layout):
            continue
        try:
            shard = store.read(index)
        except StoreError as error:
            tracker.say(str(error))
            continue
        if shard.footer.completes(layout.unit(index)):
            complete.add(index)
            n_rows += len(shard)
    return complete, n_rows


def _units(
    pool: Pool,
    job: Job,
    store: Store,
    todo: list[int],
    tracker: Tracker,
    may_go_on: Callable[[], bool] | None,
) -> Generator[Done]:
    """Yield each unit as it is done, in any order, even if workers are lost.

    When workers are lost, the units that were under way are tried again one by one, to identify a
    unit that kills its worker. After three attempts such a unit is given up and recorded.
    """
    left = dict.fromkeys(todo)
    incomplete = left.keys() & set(store.indices())  # perhaps damaged where a footer does not show
    losses = Counter[int]()
    idle = 0  # how often in a row workers were lost before a unit was given to them

    while left:
        suspect = next((index for index in left if losses[index]), None)
        under_way = set[int]()

        def units(batch: list[int], under_way: set[int] = under_way) -> Iterator[int]:
            for number, index in enumerate(batch):
                if number and may_go_on is not None and not may_go_on():
                    for other in left.keys() - under_way:
                        del left[other]
                    return
                if index not in incomplete and store.is_complete(job.layout.unit(index)):
                    del left[index]  # another collector has just stored it
                    continue
                under_way.add(index)
                yield index

        try:
            with closing(
                pool.run(job, units(list(left) if suspect is None else [suspect]))
            ) as done:
                for unit in done:
                    under_way.discard(unit.footer.index)
                    del left[unit.footer.index]
                    yield unit
        except WorkersLost as error:
            tracker.say(f"{error}; {len(under_way)} units of work are tried again")
            losses.update(under_way)
            idle = 0 if under_way else idle + 1
            if idle >= ATTEMPTS:
                raise EngineError(
                    f"workers were lost {ATTEMPTS} times before they had begun: {error}. Expected "
                    "workers with memory for the dataset and the model. Check the cluster, then "
                    "collect again: what was done is stored."
                ) from error
            for index in under_way:
                if losses[index] >= ATTEMPTS:
                    del left[index]
                    yield job.give_up(index, f"its worker was lost {ATTEMPTS} times: {error}")
