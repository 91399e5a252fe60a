from __future__ import annotations

import signal
import tempfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import apiece
from apiece.collection import Design, WorkersLost, make_plan
from apiece.engines import choose_engine
from apiece.errors import StoreError
from apiece.store import Layout


def test_workers_read_the_arrays_of_a_job_from_one_file():
    from apiece.collection._work import Job
    from apiece.collection.pools._shared import opened, shared

    dataset = apiece.Dataset.from_arrays(
        np.random.default_rng(0).normal(size=(600, 64)),
        np.arange(600) % 2,
        X_val=np.zeros((100, 64)),
        y_val=np.arange(100) % 2,
    )
    engine, _ = choose_engine(dataset, model="logistic")
    design = Design.of((20, 40), samples=3)
    plan = make_plan(design, n_pool=600, points=np.arange(600), seed=0, strata=dataset.y)
    job = Job(engine, plan, None)
    with shared(job) as payload:
        found = opened(payload)
        assert len(payload.rest) < 150_000 < Path(payload.file).stat().st_size
        assert found.token == job.token
        features = found.engine.dataset.X
        assert_array_equal(features, dataset.X)
        assert not features.flags.owndata
        assert not features.flags.writeable
        task = plan[0]
        assert_array_equal(found.engine.run(found.plan[0]).delta, engine.run(task).delta)
    assert not Path(payload.file).parent.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_folder_too_full_for_the_data_of_workers_is_named(monkeypatch, tmp_path):
    from apiece.collection.pools import _shared

    write = _shared._write
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(_shared, "_write", lambda _, arrays: write(Path("/dev/full"), arrays))
    job = {"X": np.zeros(100_000)}
    with pytest.raises(StoreError, match=r"disk is full.*about 0\.8 MB"), _shared.shared(job):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_no_worker_outlives_a_killed_collector_with_work_or_without():
    import os
    import subprocess
    import sys
    import time
    from pathlib import Path

    code = """
import os, signal, time
from apiece.collection.pools.local import _workers
if __name__ == "__main__":
    executor = _workers(3)
    executor.submit(time.sleep, 0).result()
    time.sleep(2)  # the others have started, too
    print(*executor._processes, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said.returncode == -signal.SIGKILL
    workers = [Path(f"/proc/{pid}") for pid in said.stdout.split()]
    assert len(workers) == 3
    until = time.monotonic() + 60  # they look every second, on a machine that may be busy
    while any(worker.exists() for worker in workers) and time.monotonic() < until:
        time.sleep(0.2)
    left = [worker.name for worker in workers if worker.exists()]
    for pid in left:
        os.kill(int(pid), signal.SIGKILL)
    assert not left


def test_loky_takes_no_shared_page_for_a_leak():
    """It would replace a worker whose map has grown by 300 MB, and warn of it."""
    from apiece.collection import dismiss_workers
    from apiece.collection.pools.local import _workers

    assert _workers(2).submit(_leaks_are_looked_for).result() is False
    dismiss_workers()


def _leaks_are_looked_for():
    from joblib.externals.loky import process_executor

    return process_executor._USE_PSUTIL


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs signal masks")
def test_workers_start_with_ctrl_c_blocked_and_their_parent_hears_it():
    from apiece.collection import dismiss_workers
    from apiece.collection.pools.local import _interrupts_held_back, _workers

    dismiss_workers()
    with _interrupts_held_back():
        of_worker = _workers(1).submit(signal.pthread_sigmask, signal.SIG_BLOCK, [])
    assert signal.SIGINT in of_worker.result()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    dismiss_workers()


def test_ctrl_c_while_workers_start_comes_after_they_have_started():
    from apiece.collection.pools.local import _interrupts_held_back

    steps = []

    def start():
        with _interrupts_held_back():
            # as if another thread, in which the signal is not blocked, had received it
            signal.getsignal(signal.SIGINT)(signal.SIGINT, None)
            steps.append("started")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            start()
        assert steps == ["started"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_workers_that_die_at_once_are_replaced(blobs):
    """Everything under way is lost with them, and the next units find others."""
    import os

    from apiece.collection._work import Job
    from apiece.collection.pools.local import _processes, _workers

    class Once:
        """The numbers of units; workers are killed when the third is asked for."""

        def __iter__(self):
            for index in range(4):
                if index == 2:
                    for pid in list(_workers(2)._processes):
                        os.kill(pid, 9)
                yield index

    engine, _ = choose_engine(blobs, model="tree", engine="refit")
    n = blobs.n_pool
    design = Design.of((6, 20), samples=4)
    plan = make_plan(design, n_pool=n, points=np.arange(n), seed=3, strata=blobs.y)
    job = Job(engine, plan, Layout.of(plan, n), n_units=4)
    with pytest.raises(WorkersLost):
        list(_processes(2, job, iter(Once())))
    done = list(_processes(2, job, iter([0])))
    assert [unit.footer.index for unit in done] == [0]
