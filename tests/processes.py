"""Collectors in processes of their own, to be killed."""

from __future__ import annotations

import multiprocessing
import os

# Children fork from a server that has imported what they need, so that a kill rarely hits imports.
SERVER = multiprocessing.get_context("forkserver")
LOADED = ("apiece.api", "joblib", "pyarrow.parquet", "sklearn.tree", "sklearn.ensemble", "conftest")
SERVER.set_forkserver_preload([*LOADED, "processes"])


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
    import apiece
    from apiece.engines import LinearEngine, RefitEngine

    from conftest import make_blobs, make_line

    # many moments between two writes in a run of a second
    RefitEngine.rows_per_shard = LinearEngine.rows_per_shard = 24
    request = {"model": "tree", "sizes": (6, 12), "samples": 15, "random_state": 1} | settings
    dataset = make_line(n=24) if request.pop("kind", None) == "line" else make_blobs(n=24)
    ready.send("ready")
    apiece.collect(dataset, n_jobs=n_jobs, to=folder, **request | {"progress": False})
    if n_jobs > 1:  # idle workers would be waited for
        from apiece.collection import dismiss_workers

        dismiss_workers()
