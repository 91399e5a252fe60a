"""Units of work on this machine: in this process, in processes next to it, or as joblib is set."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from apiece.collection._work import Done, Job, work
from apiece.collection.pools._base import AHEAD, Pool, WorkersLost
from apiece.collection.pools._shared import Shared, opened, shared, sweep

_IDLE = 300  # seconds after which a process without work ends
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


@dataclass(frozen=True)
class LocalPool(Pool):
    """The current process, others next to it, or what ``joblib.parallel_config`` says.

    Parameters
    ----------
    n_jobs
        Worker processes, -1 for one per core, None for what joblib is configured for: by default
        this process alone.

    Examples
    --------
    >>> LocalPool(n_jobs=2)
    LocalPool(n_jobs=2)
    """

    n_jobs: int | None = None

    def run(self, job: Job, units: Iterator[int]) -> Generator[Done]:
        """Compute units, and yield each as it is done."""
        from joblib import effective_n_jobs
        from joblib.parallel import get_active_backend

        n, (active, _) = effective_n_jobs(self.n_jobs), get_active_backend()
        if n == 1 or job.n_units <= 1:
            return _here(job, units)
        if type(active).__name__ == "LokyBackend":
            return _processes(n, job, units)
        can_stream = bool(getattr(active, "supports_return_generator", False))
        return _as_configured(self.n_jobs, can_stream, job, units)


def _here(job: Job, units: Iterator[int]) -> Generator[Done]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        for index in units:
            yield job.run(index)


def _processes(n: int, job: Job, units: Iterator[int]) -> Generator[Done]:
    with _unwound_by_sigterm(), shared(job) as payload:
        executor, under_way, is_over = _workers(n), set[Future[Done]](), False
        try:
            while True:
                for index in islice(units, AHEAD * n - len(under_way)):
                    with _interrupts_held_back():
                        under_way.add(executor.submit(_work_for_parent, payload, index))
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


@contextmanager
def _unwound_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end this process as an exception does, so that temporary files are removed."""

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Handle Ctrl-C after the block, so that worker processes start whole or not at all.

    They inherit that the signal is blocked, so none prints an error while it starts.
    """
    came: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if is_main and before is not None:  # another thread of this process may receive the signal
        signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        with _blocked(signal.SIGINT):
            yield
    finally:
        if is_main and before is not None:
            signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def _blocked(number: signal.Signals) -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # loky would start it later, and its start ends the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_executors: dict[int, Any] = {}  # the executor in use, by its number of workers


def _workers(n: int) -> Any:
    """Return ``n`` worker processes, reused if the last call had the same number."""
    from joblib.externals.loky import ProcessPoolExecutor

    if n not in _executors:
        dismiss_workers()
        _executors[n] = ProcessPoolExecutor(
            n, timeout=_IDLE, initializer=_settle_in_worker, env=dict.fromkeys(_THREADS, "1")
        )
    return _executors[n]


def dismiss_workers() -> None:
    """End the worker processes, even if they are busy; the next call starts new ones.

    Examples
    --------
    >>> dismiss_workers()
    """
    for n in list(_executors):
        _executors.pop(n).shutdown(kill_workers=True)


def _as_configured(
    n_jobs: int | None, can_stream: bool, job: Job, units: Iterator[int]
) -> Generator[Done]:
    from joblib import Parallel, delayed, effective_n_jobs

    step = AHEAD * effective_n_jobs(n_jobs)
    if can_stream:
        results = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch=step)(
            delayed(work)(job, index) for index in units
        )
        with closing(results):
            yield from results
        return
    while batch := list(islice(units, step)):
        yield from Parallel(n_jobs=n_jobs)(delayed(work)(job, index) for index in batch)


def _work_for_parent(payload: Shared, index: int) -> Done:
    return work(opened(payload), index)


def _settle_in_worker() -> None:
    """Leave Ctrl-C to the collecting process, and end when it has ended."""
    from joblib.externals.loky import process_executor

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process_executor._USE_PSUTIL = False  # it mistakes shared, mapped pages for a leak
    collector = os.getppid()

    def watch() -> None:
        while os.getppid() == collector:
            time.sleep(1.0)
        sweep()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
