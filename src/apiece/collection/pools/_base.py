"""Base class of pools."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from typing import Final

from apiece.collection._work import Done, Job

AHEAD: Final = 2  # units given out for each worker: one under way, one waiting


class WorkersLost(Exception):
    """Workers died, and with them the units that were under way."""


class Pool(ABC):
    """Computes units of work, in this process or in others.

    A pool sends the job to its workers once, and then only the indices of units. A worker calls
    `apiece.collection.work(job, index)`, which computes the unit, stores its shard if the worker
    can reach the store, and returns the footer, and the shard if it is not stored.

    Examples
    --------
    >>> from apiece.collection import work
    >>> class InOrder(Pool):
    ...     def run(self, job, units):
    ...         for index in units:
    ...             yield work(job, index)
    >>> import apiece
    >>> from apiece.data import load_demo
    >>> run = apiece.collect(
    ...     load_demo()[0], sizes=(20, 40), samples=3, backend=InOrder(), progress=False
    ... )
    >>> run.is_complete
    True
    """

    @abstractmethod
    def run(self, job: Job, units: Iterator[int]) -> Generator[Done]:
        """Compute units, and yield each as it is done, in any order.

        Parameters
        ----------
        job
            What a worker needs to know; it can be pickled (by cloudpickle, if the model was defined
            in a notebook).
        units
            Indices of units. Take the next one only when a worker is about to be free: memory must
            not grow with the run, and another collector may complete a unit in the meantime.

        Yields
        ------
        Done
            The result of ``work``. For a unit that failed, for example by an exception on a
            worker, yield ``job.give_up(index, reason)``.

        Raises
        ------
        WorkersLost
            If workers died. Units that were taken and not yielded are then tried again.
        """
