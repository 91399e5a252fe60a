"""Where units of work are computed: here, in worker processes, or on a cluster.

A pool takes a job and the numbers of units, and yields each unit as it is done. It asks for the
next number only when a worker is about to be free, so that memory does not grow with the run.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from functools import partial
from itertools import islice
from typing import Any

from apiece._base.optional import optional
from apiece.collection._compute import ATTEMPTS
from apiece.collection._shared import Shared, opened, shared, sweep
from apiece.collection._work import Done, Job, work
from apiece.errors import EngineError, PlanError, StoreError

Pool = Callable[[Job, Iterator[int]], Generator[Done]]

_PATIENCE = 60  # seconds to wait for a first worker
_AHEAD = 2  # units given out for each worker: one under way, one waiting
_IDLE = 300  # seconds after which a process without work ends
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


class WorkersLost(Exception):
    """Workers died, and with them the units that were under way."""


def pool_of(backend: str | None, n_jobs: int | None, n_units: int) -> Pool:
    """Return the pool that a user's words ask for.

    Parameters
    ----------
    backend
        ``dask://host:port``, ``ray``, or None for joblib.
    n_jobs
        Processes that joblib starts.
    n_units
        How many units there are to do.
    """
    if backend is None:
        return joblib_pool(n_jobs, n_units)
    if backend == "ray":
        return ray_pool
    scheme, _, address = backend.partition("://")
    if scheme == "dask" and address:
        return partial(dask_pool, address)
    raise PlanError(
        f"backend={backend!r} is not a place to compute: expected 'dask://host:port' (the address "
        "of a scheduler), 'ray', or none for this machine. Leave backend (--backend) out, or set "
        "joblib.parallel_config around the call."
    )


def joblib_pool(n_jobs: int | None, n_units: int) -> Pool:
    """Return this process, processes beside it, or whatever the caller has told joblib."""
    from joblib import effective_n_jobs
    from joblib.parallel import get_active_backend

    active, _ = get_active_backend()
    if effective_n_jobs(n_jobs) == 1 or n_units <= 1:
        return _here
    if type(active).__name__ == "LokyBackend":
        return partial(_processes, n_jobs)
    return partial(_as_configured, n_jobs, bool(getattr(active, "supports_return_generator", 0)))


def _here(job: Job, units: Iterator[int]) -> Generator[Done]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        for index in units:
            yield job.run(index)


def _processes(n_jobs: int | None, job: Job, units: Iterator[int]) -> Generator[Done]:
    from joblib import effective_n_jobs

    n = effective_n_jobs(n_jobs)
    with shared(job) as told:
        executor, under_way, is_over = _workers(n), set[Future[Done]](), False
        try:
            while True:
                for index in islice(units, _AHEAD * n - len(under_way)):
                    under_way.add(executor.submit(_work_for_parent, told, index))
                is_over = not under_way
                if is_over:
                    return  # workers stay for the next run
                finished, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield future.result()
        except BrokenProcessPool as error:
            raise WorkersLost(
                "a worker process died, often because memory ran out (fewer jobs take less: "
                "n_jobs=, --jobs)"
            ) from error
        finally:
            if not is_over:  # interrupted, or broken
                dismiss_workers()


_executors: dict[int, Any] = {}  # the one that is in use, by its number of workers


def _workers(n: int) -> Any:
    """Return ``n`` worker processes, those of the last call if they are as many."""
    from joblib.externals.loky import ProcessPoolExecutor

    if n not in _executors:
        dismiss_workers()
        _executors[n] = ProcessPoolExecutor(
            n, timeout=_IDLE, initializer=_settle_in_worker, env=dict.fromkeys(_THREADS, "1")
        )
    return _executors[n]


def dismiss_workers() -> None:
    """End the worker processes, whatever they are doing; the next call starts others."""
    for n in list(_executors):
        _executors.pop(n).shutdown(kill_workers=True)


def _as_configured(
    n_jobs: int | None, can_stream: bool, job: Job, units: Iterator[int]
) -> Generator[Done]:
    from joblib import Parallel, delayed, effective_n_jobs

    step = _AHEAD * effective_n_jobs(n_jobs)
    if can_stream:
        results = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch=step)(
            delayed(work)(job, index) for index in units
        )
        with closing(results):
            yield from results
        return
    while batch := list(islice(units, step)):
        yield from Parallel(n_jobs=n_jobs)(delayed(work)(job, index) for index in batch)


def _work_for_parent(told: Shared, index: int) -> Done:
    return work(opened(told), index)


def _settle_in_worker() -> None:
    """Leave Ctrl-C to the collecting process, and go when it has gone."""
    from joblib.externals.loky import process_executor

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process_executor._USE_PSUTIL = False  # it takes pages of the file that all map for a leak
    collector = os.getppid()

    def watch() -> None:
        while os.getppid() == collector:
            time.sleep(1.0)
        sweep()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def dask_pool(address: str, job: Job, units: Iterator[int]) -> Generator[Done]:
    """Compute on the workers of a Dask scheduler.

    The job is scattered to every worker. A unit whose worker is lost goes to another one, by Dask
    itself; one that takes as many workers with it as Dask allows is given up.
    """
    distributed = optional("distributed", extra="dask", purpose="Dask clusters")
    try:
        client = distributed.Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise EngineError(
            f"no Dask scheduler answers at {address} ({type(error).__name__}): expected one that "
            "is running. Start it with `dask scheduler`, or mend the address in "
            "backend='dask://...'. What was done is stored; collect again to continue."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except OSError as error:
            raise EngineError(
                f"the Dask scheduler at {address} has no workers: expected at least one within "
                f"{_PATIENCE} seconds. Start some with `dask worker {address}`. What was done is "
                "stored; collect again to continue."
            ) from error
        try:
            yield from _on_dask(distributed, client, job, units)
        except StoreError:
            raise
        except (distributed.client.CancelledError, OSError) as error:
            raise WorkersLost("the Dask cluster lost its workers, or its scheduler") from error


def _on_dask(distributed: Any, client: Any, job: Job, units: Iterator[int]) -> Generator[Done]:
    told = client.scatter(job, broadcast=True, hash=False)
    under_way: dict[Any, int] = {}
    finished = distributed.as_completed(loop=client.loop)

    def give_out(most: int) -> None:
        for index in islice(units, max(0, most - len(under_way))):
            future = client.submit(work, told, index, pure=False, retries=ATTEMPTS - 1)
            under_way[future] = index
            finished.add(future)

    give_out(_AHEAD * sum(client.nthreads().values()))
    while under_way:
        future = next(finished)
        index = under_way.pop(future)
        if future.status == "error":
            yield job.give_up(index, f"it failed {ATTEMPTS} times: {future.exception()!r}")
        else:
            yield future.result()
        give_out(_AHEAD * sum(client.nthreads().values()))


def ray_pool(job: Job, units: Iterator[int]) -> Generator[Done]:
    """Compute on the Ray cluster that this process belongs to, or that runs here, or a new one."""
    ray = optional("ray", extra="ray", purpose="Ray clusters")
    is_ours = not ray.is_initialized()
    if is_ours:
        ray.init(log_to_driver=False, logging_level="error", include_dashboard=False)
    try:
        yield from _on_ray(ray, job, units)
    finally:
        if is_ours:
            ray.shutdown()


def _on_ray(ray: Any, job: Job, units: Iterator[int]) -> Generator[Done]:
    told = ray.put(job)
    remote = ray.remote(work).options(num_cpus=1, max_retries=ATTEMPTS - 1, retry_exceptions=True)
    under_way: dict[Any, int] = {}

    def give_out() -> None:
        most = _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        for index in islice(units, max(0, most - len(under_way))):
            under_way[remote.remote(told, index)] = index

    give_out()
    while under_way:
        (ref,), _ = ray.wait(list(under_way), num_returns=1)
        index = under_way.pop(ref)
        try:
            done = ray.get(ref)
        except ray.exceptions.RayError as error:
            done = job.give_up(index, f"it failed {ATTEMPTS} times: {str(error).splitlines()[0]}")
        yield done
        give_out()
