"""Clusters of separate processes on this machine: the same store, whatever becomes of workers."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier

import apiece
from apiece.collection.pools import DaskPool
from apiece.engines import RefitEngine, ReuseEngine
from apiece.errors import EngineError, PlanError

from conftest import make_blobs
from faults import are_equal, columns

CONNECT = "distributed.comm.timeouts.connect"
SETTINGS = {"model": "tree", "sizes": (6, 12), "samples": 30, "random_state": 1, "progress": False}
REUSE = {"engine": "reuse", "metric": "brier", "samples": None, "trainings": 60}
DESIGNS = {"fixed": {}, "rotating": {"scoring": "rotating"}, "reuse": REUSE}
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(sys.path),
}


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(RefitEngine, "rows_per_shard", 24)
    monkeypatch.setattr(ReuseEngine, "rows_per_shard", 4)


def files(folder):
    """Return the shards of a run; a killed worker may leave the temporary file of one."""
    return {file.name: file.read_bytes() for file in (folder / "shards").glob("[!.]*")}


class Dask:
    """A scheduler and its workers, each a process of its own, on the loopback address."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        self.file = folder / "scheduler.json"
        self.scheduler = self._start(
            *("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
            *("--scheduler-file", str(self.file)),
        )
        self.address = self._wait_for_address()
        self.backend = f"dask://{self.address}"

    def _wait_for_address(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            time.sleep(0.05)
            with suppress(OSError, ValueError):  # not there yet, or half of it
                return json.loads(self.file.read_text())["address"].removeprefix("tcp://")
        self.__exit__()
        raise TimeoutError("the scheduler did not start within a minute")

    def worker(self, cwd=None, memory=None):
        kind = ("--memory-limit", memory) if memory else ("--no-nanny",)
        return self._start(
            *("worker", self.address, "--nthreads", "1", *kind, "--no-dashboard"),
            *("--local-directory", str(self.folder / "scratch")),
            cwd=cwd,
        )

    def _start(self, *words, cwd=None):
        command = [sys.executable, "-m", "dask", *words]
        with open(self.folder / "dask.log", "a") as log:
            process = subprocess.Popen(command, env=ENVIRONMENT, cwd=cwd, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def killing(process, then=lambda: None):
    """Return a listener of `collect` that kills a process once a fifth of the work is done.

    The collector waits for it, so shards are left to do whenever the process is killed.
    """

    def listen(event):
        if event.done >= event.total / 5 and process.poll() is None:
            process.kill()
            process.wait()
            then()

    return listen


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("design", DESIGNS)
def test_dask_fills_a_store_like_a_local_run_and_survives_a_killed_worker(tmp_path, design):
    import dask
    import distributed  # noqa: F401  # brings the settings that are set, and set back, below

    dataset, settings = make_blobs(n=24), {**SETTINGS, **DESIGNS[design]}
    alone = apiece.collect(dataset, to=tmp_path / "alone", **settings)
    with dask.config.set({CONNECT: "30s"}), Dask(tmp_path) as cluster:
        first = cluster.worker()
        there = {**settings, "backend": cluster.backend}
        run = apiece.collect(dataset, to=tmp_path / "run", **there)
        assert files(tmp_path / "run") == files(tmp_path / "alone")
        assert not list((tmp_path / "run").glob(".*"))
        in_memory = apiece.collect(dataset, **there)  # not shared
        assert are_equal(columns(in_memory), columns(alone))

        cluster.worker()
        run = apiece.collect(dataset, to=tmp_path / "killed", on_progress=killing(first), **there)
        assert first.returncode == -signal.SIGKILL
        assert run.is_complete
        assert files(tmp_path / "killed") == files(tmp_path / "alone")

        # a dead scheduler is given up quickly; a slow one that lives is not
        hurry = functools.partial(dask.config.set, {CONNECT: "2s"})
        there["on_progress"] = killing(cluster.scheduler, then=hurry)
        with pytest.raises(EngineError, match=r"no Dask scheduler answers.*What was done is store"):
            apiece.collect(dataset, to=tmp_path / "lost", **there)
        assert cluster.scheduler.returncode == -signal.SIGKILL
        assert not apiece.open(tmp_path / "lost").is_complete
        apiece.collect(dataset, to=tmp_path / "lost", **settings)
        assert files(tmp_path / "lost") == files(tmp_path / "alone")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_dask_worker_that_is_too_small_is_named(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 200)), np.arange(20_000) % 2
    half = slice(10_000), slice(10_000, None)
    dataset = apiece.Dataset.from_arrays(X[half[0]], y[half[0]], X_val=X[half[1]], y_val=y[half[1]])
    with Dask(tmp_path) as cluster:
        cluster.worker(memory="180MB")
        pool = DaskPool(cluster.address, patience=10.0)
        settings = {**SETTINGS, "model": "logistic", "sizes": (20, 40), "points": range(50)}
        with pytest.raises(EngineError, match=r"tcp://127.0.0.1:\d+.*of its limit of 180 MB"):
            apiece.collect(dataset, backend=pool, **settings)


RAY = """
import json, sys, threading, time, os, signal
from pathlib import Path
import ray
import apiece
from apiece.engines import RefitEngine, ReuseEngine
from conftest import make_blobs

folder, kill, settings = Path(sys.argv[1]), sys.argv[2] == "kill", json.loads(sys.argv[3])
ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
RefitEngine.rows_per_shard, ReuseEngine.rows_per_shard = 24, 4

@ray.remote
def pid():
    time.sleep(0.5)
    return os.getpid()

pids = set(ray.get([pid.remote() for _ in range(2)]))

def watch():
    while len(list(folder.glob("shards/*.parquet"))) < 3:
        time.sleep(0.01)
    os.kill(min(pids), signal.SIGKILL)
    print("killed", flush=True)

killer = threading.Thread(target=watch)
if kill:
    killer.start()
apiece.collect(make_blobs(n=24), backend="ray", to=folder, **settings)
if kill:
    killer.join()  # also on a machine so busy that the run was complete before it looked
ray.shutdown()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("design", "fate"), [("fixed", "live"), *((d, "kill") for d in DESIGNS)])
def test_ray_fills_a_store_like_a_local_run_and_survives_a_killed_worker(tmp_path, design, fate):
    settings = {**SETTINGS, **DESIGNS[design]}
    apiece.collect(make_blobs(n=24), to=tmp_path / "alone", **settings)
    done = subprocess.run(
        [sys.executable, "-c", RAY, str(tmp_path / "run"), fate, json.dumps(settings)],
        env={**ENVIRONMENT, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert ("killed" in done.stdout) == (fate == "kill")
    assert files(tmp_path / "run") == files(tmp_path / "alone")


def squared(y, probabilities):
    return float(np.mean((y - probabilities[:, 1]) ** 2))


class Fatal(ClassifierMixin, BaseEstimator):
    """A model that kills its process at one size, unless that is the collector's."""

    def __init__(self, collector=0, size=0):
        self.collector, self.size = collector, size

    def fit(self, X, y):
        if os.getpid() != self.collector and len(y) == self.size:
            os.kill(os.getpid(), signal.SIGKILL)
        self.model_ = DecisionTreeClassifier(random_state=0).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


@pytest.mark.slow
def test_a_unit_that_takes_three_workers_with_it_is_recorded_and_the_others_are_done(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(RefitEngine, "rows_per_shard", 1)
    dataset, model = make_blobs(n=24), Fatal(os.getpid(), 13)
    settings = {**SETTINGS, "model": model, "points": [0, 1], "sizes": [6, 8, 12], "samples": 3}
    with pytest.raises(EngineError, match=r"tasks failed; .* its worker was lost 3 times"):
        apiece.collect(dataset, n_jobs=2, to=tmp_path / "run", **settings)
    stored = apiece.open(tmp_path / "run")
    assert set(stored.contributions().k) == {6, 8}
    assert stored.progress().failed
    run = apiece.collect(dataset, to=tmp_path / "run", **settings)  # here the model is harmless
    assert run.is_complete
    assert are_equal(columns(run), columns(apiece.collect(dataset, **settings)))


def test_a_surrounding_parallel_config_is_followed(tmp_path):
    import joblib

    dataset = make_blobs(n=24)
    alone = apiece.collect(dataset, **SETTINGS)
    threads = set()

    def metric(y, prediction):
        threads.add(threading.get_ident())
        return squared(y, prediction)

    with joblib.parallel_config(backend="threading", n_jobs=2):
        second = apiece.collect(dataset, to=tmp_path / "run", **SETTINGS)
        apiece.collect(dataset, **{**SETTINGS, "metric": metric})
    assert are_equal(columns(second), columns(alone))
    assert len(threads) > 1


@pytest.mark.parametrize("backend", ["dask", "dask://", "spark://here:1", ""])
def test_a_backend_that_is_none_is_refused(backend):
    with pytest.raises(PlanError, match="is not a place to compute"):
        apiece.collect(make_blobs(n=24), **{**SETTINGS, "backend": backend})
