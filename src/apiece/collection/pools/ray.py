"""Units of work on a Ray cluster."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from apiece._base.optional import optional
from apiece._base.text import first_line
from apiece.collection._compute import ATTEMPTS
from apiece.collection._work import Done, Job, work
from apiece.collection.pools._base import AHEAD, Pool


@dataclass(frozen=True)
class RayPool(Pool):
    """The Ray cluster that this process belongs to, or that runs here, or a new one.

    Examples
    --------
    >>> from apiece.collection.pools import pool_of
    >>> pool_of("ray", n_jobs=None)
    RayPool()
    """

    def run(self, job: Job, units: Iterator[int]) -> Generator[Done]:
        """Compute units, and yield each as it is done."""
        ray = optional("ray", extra="ray", purpose="Ray clusters")
        is_ours = not ray.is_initialized()
        if is_ours:
            ray.init(log_to_driver=False, logging_level="error", include_dashboard=False)
        try:
            yield from _compute(ray, job, units)
        finally:
            if is_ours:
                ray.shutdown()


def _compute(ray: Any, job: Job, units: Iterator[int]) -> Generator[Done]:
    payload = ray.put(job)
    remote = ray.remote(work).options(num_cpus=1, max_retries=ATTEMPTS - 1, retry_exceptions=True)
    under_way: dict[Any, int] = {}

    def give_out() -> None:
        most = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        for index in islice(units, max(0, most - len(under_way))):
            under_way[remote.remote(payload, index)] = index

    give_out()
    while under_way:
        (ref,), _ = ray.wait(list(under_way), num_returns=1)
        index = under_way.pop(ref)
        try:
            done = ray.get(ref)
        except ray.exceptions.RayError as error:
            done = job.give_up(index, f"it failed {ATTEMPTS} times: {first_line(error)}")
        yield done
        give_out()
