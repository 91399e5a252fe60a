from __future__ import annotations

from apiece.collection.pools import LocalPool
from apiece.testing import PoolContract


class TestThisProcess(PoolContract):
    most_taken = 1

    def make(self):
        return LocalPool()


class TestWorkerProcesses(PoolContract):
    most_taken = 6

    def make(self):
        return LocalPool(2)
