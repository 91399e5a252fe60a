"""Units of work on the workers of a Dask scheduler."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import Any

from apiece._base.optional import optional
from apiece._base.progress import log
from apiece.collection._compute import ATTEMPTS
from apiece.collection._work import Done, Job, work
from apiece.collection.pools._base import AHEAD, Pool, WorkersLost
from apiece.errors import EngineError, StoreError

_STORED = "What was done is stored; collect again to continue."


@dataclass(frozen=True)
class DaskPool(Pool):
    """The workers of a Dask scheduler.

    The job is scattered to every worker. A unit whose worker is lost goes to another one, by Dask
    itself; one that takes as many workers with it as Dask allows is given up.

    Parameters
    ----------
    address
        ``host:port`` of the scheduler.
    patience
        Seconds to wait for a first worker, and for a first result before workers are looked at.

    Examples
    --------
    >>> DaskPool("tcp://scheduler:8786").address
    'tcp://scheduler:8786'
    """

    address: str
    patience: float = 60.0

    def run(self, job: Job, units: Iterator[int]) -> Generator[Done]:
        """Compute units, and yield each as it is done."""
        distributed = optional("distributed", extra="dask", purpose="Dask clusters")
        try:
            client = distributed.Client(self.address, set_as_default=False)
        except (OSError, ValueError) as error:
            raise EngineError(
                f"no Dask scheduler answers at {self.address} ({type(error).__name__}): expected "
                "one that is running. Start it with `dask scheduler`, or correct the address in "
                f"backend='dask://...'. {_STORED}"
            ) from error
        with client:
            try:
                client.wait_for_workers(1, timeout=self.patience)
            except OSError as error:
                raise EngineError(
                    f"the Dask scheduler at {self.address} has no workers: expected at least one "
                    f"within {self.patience:g} seconds. Start some with "
                    f"`dask worker {self.address}`. {_STORED}"
                ) from error
            workers = _named(client)
            try:
                yield from self._compute(distributed, client, job, units)
            except StoreError:
                raise
            except (distributed.client.CancelledError, OSError) as error:
                raise WorkersLost(
                    f"the Dask cluster lost its workers, or its scheduler ({error}); it began with "
                    f"{workers}"
                ) from error

    def _compute(
        self, distributed: Any, client: Any, job: Job, units: Iterator[int]
    ) -> Generator[Done]:
        watch = _Watch(client)
        payload = self._scatter(client, job, watch)
        under_way: dict[Any, int] = {}

        def give_out(most: int) -> None:
            for index in islice(units, max(0, most - len(under_way))):
                future = client.submit(work, payload, index, pure=False, retries=ATTEMPTS - 1)
                under_way[future] = index

        give_out(AHEAD * sum(client.nthreads().values()))
        while under_way:
            try:
                with client.as_current():  # which waiting for futures asks for
                    finished = distributed.wait(
                        list(under_way), timeout=self.patience, return_when="FIRST_COMPLETED"
                    ).done
            except (TimeoutError, distributed.TimeoutError):
                watch.look()
                continue
            watch.reset()
            for future in finished:
                index = under_way.pop(future)
                if future.status == "error":
                    yield job.give_up(index, f"it failed {ATTEMPTS} times: {future.exception()!r}")
                else:
                    yield future.result()
            give_out(AHEAD * sum(client.nthreads().values()))

    def _scatter(self, client: Any, job: Job, watch: _Watch) -> Any:
        """Send the job to every worker; one without room for it would take it for ever."""
        thread = ThreadPoolExecutor(1)
        sent = thread.submit(client.scatter, job, broadcast=True, hash=False)
        thread.shutdown(wait=False)  # if this gives up, it ends when the client is closed
        while not wait({sent}, timeout=self.patience).done:
            watch.look()
        return sent.result()


class _Watch:
    """Tells workers that are too small for the job from a model that is slow."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.reset()

    def reset(self) -> None:
        """Note that units are being done."""
        self.since = time.monotonic()
        self.first = set(self._workers())

    def _workers(self) -> dict[str, Any]:
        return dict(self.client.scheduler_info(n_workers=-1)["workers"])

    def look(self) -> None:
        """Raise if no worker can do anything; else log that nothing has been done for a while."""
        workers, silent = self._workers(), time.monotonic() - self.since
        stuck = {}
        for address, worker in workers.items():
            if worker.get("status") == "paused":
                stuck[address] = f"{address} is paused, {_memory(worker)}"
            elif address not in self.first:
                stuck[address] = f"{address} has been restarted, {_memory(worker)}"
        if len(stuck) == len(workers):
            named = "; ".join(list(stuck.values())[:3]) or "no worker is left"
            raise EngineError(
                f"no unit of work was done in {silent:,.0f} seconds, and no worker of the Dask "
                f"cluster can go on: {named}. Expected workers with memory for the dataset and the "
                f"model. Start them with a larger --memory-limit. {_STORED}"
            )
        log.warning(
            "no unit of work was done in %.0f seconds on %d workers of the Dask cluster",
            silent,
            len(workers),
        )


def _memory(worker: dict[str, Any]) -> str:
    used, limit = worker["metrics"].get("memory", 0), worker.get("memory_limit") or 0
    return f"with {used / 1e6:,.0f} MB of its limit of {limit / 1e6:,.0f} MB in use"


def _named(client: Any) -> str:
    """Name the workers that a scheduler has, with their memory."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    words = [f"worker {address}, {_memory(worker)}" for address, worker in workers.items()]
    return "; ".join(words[:3]) + (f"; and {len(words) - 3} more" if len(words) > 3 else "")
