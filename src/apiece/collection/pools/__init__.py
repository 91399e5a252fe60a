"""Pools: where units of work are computed.

`collect` accepts a pool as ``backend``. A new kind is one class with one method, in one file; the
tests of `apiece.testing.PoolContract` check it.
"""

from __future__ import annotations

from apiece.collection.pools._base import Pool, WorkersLost
from apiece.collection.pools.dask import DaskPool
from apiece.collection.pools.local import LocalPool, dismiss_workers
from apiece.collection.pools.ray import RayPool
from apiece.errors import PlanError

__all__ = ["DaskPool", "LocalPool", "Pool", "RayPool", "WorkersLost", "dismiss_workers", "pool_of"]


def pool_of(backend: str | Pool | None, n_jobs: int | None) -> Pool:
    """Return the pool that ``backend`` means.

    Parameters
    ----------
    backend
        A pool, ``dask://host:port``, ``ray``, or None for this machine.
    n_jobs
        Worker processes on this machine.

    Examples
    --------
    >>> pool_of(None, n_jobs=2)
    LocalPool(n_jobs=2)
    """
    if n_jobs == 0:
        raise PlanError(
            "n_jobs=0 workers: expected at least 1, or -1 for one per core. Pass for example "
            "n_jobs=2 (--jobs 2)."
        )
    if isinstance(backend, Pool):
        return backend
    if backend is None:
        return LocalPool(n_jobs)
    if backend == "ray":
        return RayPool()
    scheme, _, address = str(backend).partition("://")
    if scheme == "dask" and address:
        return DaskPool(address)
    raise PlanError(
        f"backend={backend!r} is not a place to compute: expected 'dask://host:port' (the address "
        "of a scheduler), 'ray', a Pool object, or none for this machine. Leave backend "
        "(--backend) out, or set joblib.parallel_config around the call."
    )
