"""A unit of work as a worker sees it: draw its tasks, compute them, store the shard or return it.

A worker is told everything once (`Job`) and then hears the number of a unit. It draws the unit's
tasks itself, so that nothing but that number travels. If it can see the run's folder (it looks for
a mark that the collector left there), it stores the shard and returns the footer alone.
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
from apiece.store import FolderStore, Footer, Layout, Shard, Store, make_shard

_known: dict[str, Job] = {}


class Done(NamedTuple):
    """A unit of work that is done: its footer, and its shard unless the worker has stored it."""

    footer: Footer
    shard: Shard | None


@dataclass(frozen=True, eq=False)
class Job:
    """Everything that a worker needs to know, whatever unit it is given.

    Parameters
    ----------
    engine, plan, layout
        What computes a task, all tasks, and how they are grouped into units.
    store
        The run's folder, if there is one; a worker that sees it writes there.
    token
        Name of this job, and of its mark in the folder.
    """

    engine: Engine
    plan: Plan
    layout: Layout
    store: FolderStore | None
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    @classmethod
    def of(cls, engine: Engine, plan: Plan, store: Store) -> Job:
        """Build the job that fills a store."""
        return cls(engine, plan, store.layout, store if isinstance(store, FolderStore) else None)

    def run(self, index: int) -> Done:
        """Compute a unit, and store it if the run's folder is in reach."""
        unit = self.layout.unit(index)
        shard = compute(self.engine, unit, [self.plan[task] for task in unit.tasks])
        if self.store is None or not self.store.is_marked(self.token):
            return Done(shard.footer, shard)
        try:
            keep(self.store, shard)
        except StoreError:  # perhaps a matter of this worker; else the collector will say it
            return Done(shard.footer, shard)
        return Done(shard.footer, None)

    def give_up(self, index: int, reason: str) -> Done:
        """Return what is recorded of a unit that cannot be computed: the reason, for each task."""
        tasks = self.layout.unit(index).tasks
        shard = make_shard(index, [], end_task=tasks.stop, failed=dict.fromkeys(tasks, reason))
        return Done(shard.footer, shard)

    @contextmanager
    def marked(self) -> Iterator[None]:
        """Leave a mark in the run's folder for as long as the job is under way."""
        if self.store is None:
            yield
            return
        try:
            self.store.mark(self.token)
            yield
        finally:
            self.store.unmark(self.token)


def keep(store: Store, shard: Shard) -> None:
    """Store a shard; one with failed tasks never takes the place of a complete one."""
    if shard.footer.failed and store.has(shard.index):
        with suppress(StoreError, FileNotFoundError):
            if store.footer(shard.index).completes(store.layout.unit(shard.index)):
                return
    store.write(shard)


def work(job: Job, index: int) -> Done:
    """Compute a unit in a process that computes others too."""
    _one_thread()
    if job.token not in _known:  # the first copy stays, with all that its engine has prepared
        _known.clear()
        _known[job.token] = job
    return _known[job.token].run(index)


@cache
def _one_thread() -> object:
    """Let linear algebra take one thread in this process: more would change the last digits."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)
