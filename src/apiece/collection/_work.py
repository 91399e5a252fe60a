"""A unit of work as a worker sees it: draw its tasks, compute them, store the shard or return it.

A worker receives the `Job` once, then only indices of units, and draws the tasks of a unit itself.
The collector leaves a mark in the run's store. A worker that finds the mark stores the shard there
and returns the footer alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from apiece.collection._compute import compute
from apiece.engines import Engine
from apiece.errors import StoreError
from apiece.records import Plan
from apiece.store import Footer, Layout, Shard, Store, make_shard

_jobs: dict[str, Job] = {}


class Done(NamedTuple):
    """A unit of work that is done: its footer, and its shard unless the worker has stored it.

    Examples
    --------
    >>> from apiece.store import make_shard
    >>> shard = make_shard(0, [], end_task=1)
    >>> Done(shard.footer, shard).footer.n_rows
    0
    """

    footer: Footer
    shard: Shard | None


@dataclass(frozen=True, eq=False)
class Job:
    """Everything that a worker needs to compute any unit.

    Parameters
    ----------
    engine, plan, layout
        What computes a task, all tasks, and how they are grouped into units.
    store
        The run's store, if other processes may reach it; a worker that does writes there.
    n_units
        How many units there are to do.
    token
        Name of this job, and of its mark in the store.

    Examples
    --------
    >>> from apiece.collection.pools import LocalPool
    >>> from apiece.testing import PoolContract
    >>> class Example(PoolContract):
    ...     def make(self):
    ...         return LocalPool()
    >>> Example().job().run(0).footer.index
    0
    """

    engine: Engine
    plan: Plan
    layout: Layout
    store: Store | None = None
    n_units: int = 1
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    @classmethod
    @contextmanager
    def on(
        cls, store: Store, engine: Engine, plan: Plan, layout: Layout, *, n_units: int
    ) -> Iterator[Job]:
        """Build the job that fills a store, and mark the store for as long as the block lasts."""
        token = secrets.token_hex(8)
        store.mark(token)
        try:
            within_reach = store if store.is_marked(token) else None
            yield cls(engine, plan, layout, within_reach, n_units, token)
        finally:
            with suppress(StoreError, OSError):  # a mark that is left is harmless
                store.unmark(token)

    def run(self, index: int) -> Done:
        """Compute a unit, and store it if the run's store is in reach."""
        unit = self.layout.unit(index)
        shard = compute(self.engine, unit, [self.plan[task] for task in unit.tasks])
        if self.store is None or not self.store.is_marked(self.token):
            return Done(shard.footer, shard)
        try:
            self.store.write(shard)
        except StoreError:  # if all fail to write, the collector's write says so
            return Done(shard.footer, shard)
        return Done(shard.footer, None)

    def give_up(self, index: int, reason: str) -> Done:
        """Return what is recorded of a unit that cannot be computed: the reason, for each task."""
        tasks = self.layout.unit(index).tasks
        shard = make_shard(index, [], end_task=tasks.stop, failed=dict.fromkeys(tasks, reason))
        return Done(shard.footer, shard)


def work(job: Job, index: int) -> Done:
    """Compute a unit in a process that computes others too.

    Examples
    --------
    >>> from apiece.collection.pools import LocalPool
    >>> from apiece.testing import PoolContract
    >>> class Example(PoolContract):
    ...     def make(self):
    ...         return LocalPool()
    >>> work(Example().job(), 1).footer.index
    1
    """
    _one_thread()
    if job.token not in _jobs:  # the first copy stays, with all that its engine has prepared
        _jobs.clear()
        _jobs[job.token] = job
    return _jobs[job.token].run(index)


@cache
def _one_thread() -> object:
    """Let linear algebra take one thread in this process: more would change the last digits."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)
