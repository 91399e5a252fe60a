"""Collectors in processes of their own, to be killed."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time

from sklearn.tree import DecisionTreeClassifier

# Children fork from a server that has imported what they need, so that a kill rarely hits imports.
SERVER = multiprocessing.get_context("forkserver")
LOADED = (
    "apiece.collection",
    "joblib",
    "pyarrow.parquet",
    "sklearn.tree",
    "sklearn.ensemble",
    "conftest",
)
SERVER.set_forkserver_preload([*LOADED, "processes"])


class SlowTree(DecisionTreeClassifier):
    """Takes a moment for each fit, and in a process that is to fail fails at odd sizes."""

    def fit(self, X, y):
        time.sleep(0.001)
        if "FAILS" in os.environ and len(y) % 2:
            raise RuntimeError("this machine cannot do it")
        return super().fit(X, y)


def start(folder, n_jobs=1, **settings):
    """Start a collector with a session of its own; return when it is about to collect."""
    ready, done = SERVER.Pipe(duplex=False)
    process = SERVER.Process(target=_collect, args=(folder, n_jobs, settings, done))
    process.start()
    done.close()
    ready.recv()
    ready.close()
    return process


def _collect(folder, n_jobs, settings, ready):
    os.setsid()
    if scratch := settings.pop("scratch", None):
        os.environ["TMPDIR"] = tempfile.tempdir = scratch
    import apiece
    from apiece.engines import LinearEngine, RefitEngine, ReuseEngine

    from conftest import make_blobs, make_line

    # many moments between two writes in a run of a second
    rows = settings.pop("rows_per_shard", 24)
    RefitEngine.rows_per_shard = LinearEngine.rows_per_shard = rows
    ReuseEngine.rows_per_shard = rows
    request = {"model": "tree", "sizes": (6, 12), "random_state": 1} | settings
    if "trainings" not in request:
        request.setdefault("samples", 15)
    dataset = make_line(n=24) if request.pop("kind", None) == "line" else make_blobs(n=24)
    if request.pop("fails", False):
        os.environ["FAILS"] = "at odd sizes"  # of the machine: the model's code is the same
    is_checked = request.pop("is_checked", False)
    if request["model"] == "slow":
        request["model"] = SlowTree(max_depth=2)
    begins = request.pop("begins", 0.0)
    ready.send("ready")
    time.sleep(max(0.0, begins - time.time()))
    run = apiece.collect(dataset, n_jobs=n_jobs, to=folder, **request | {"progress": False})
    if is_checked:
        counts = run.contributions().table().groupby("point").size()
        assert len(counts) == dataset.n_points
        assert counts.min() >= request["samples"]
    if n_jobs > 1:  # idle workers would be waited for
        from apiece.collection import dismiss_workers

        dismiss_workers()
