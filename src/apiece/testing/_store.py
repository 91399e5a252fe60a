"""Contract of stores."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from apiece.errors import StoreError
from apiece.store import Manifest, Shard, Store, TaskRows, make_shard

POINTS = pd.DataFrame({"id": [7, 8, 9], "label": ["a", "b", "a"], "role": "pool", "valued": True})


class StoreContract(ABC):
    """Tests that any `apiece.store.Store` must pass; a subclass defines ``make``.

    Examples
    --------
    >>> from apiece.store import MemoryStore
    >>> class TestMemory(StoreContract):
    ...     def make(self, tmp_path):
    ...         return MemoryStore()
    >>> TestMemory().test_the_points_are_kept(Path("unused"))
    """

    @abstractmethod
    def make(self, tmp_path: Path) -> Store:
        """Return a store without a run.

        Called twice with one folder it returns two objects for the same place, if the kind of store
        has such a thing; else any two stores.
        """

    def damage(self, store: Store, index: int) -> None:
        """Alter the stored contents of a shard, as a failing disk would."""
        pytest.skip("this kind of store has no contents that could be damaged")

    def manifest(self, n_tasks: int = 4) -> Manifest:
        """Return a manifest for tasks of three points, two to a shard."""
        facts: dict[str, Any] = {
            "dataset": {"fingerprint": "00", "n_pool": 3},
            "points": {"n_valued": 3, "digest": "00"},
            "model": {"name": "m", "params": {}},
            "metric": "log_loss",
            "engine": {"name": "refit", "is_exact": True},
            "design": {"name": "uniform", "sizes": [2, 5], "share": None},
            "samples": n_tasks,
            "seed": 0,
            "n_contributions": 3 * n_tasks,
            "layout": {"n_tasks": n_tasks, "tasks_per_shard": 2, "parts_per_task": 1},
        }
        return Manifest.from_json(facts)

    def store(self, tmp_path: Path) -> Store:
        """Return a store for four tasks, in two shards."""
        store = self.make(tmp_path)
        store.start(self.manifest(), POINTS)
        return store

    def shard(self, index: int, n_tasks: int = 2, n_failed: int = 0) -> Shard:
        """Return the shard of a unit, complete if it holds two tasks and none failed."""
        first = 2 * index
        tasks = range(first, first + n_tasks)
        rows = [
            TaskRows(task, 3, np.arange(3), (task + 1) * np.array([0.1, -0.2, 1e-300]), 0.5)
            for task in tasks[n_failed:]
        ]
        failed = dict.fromkeys(tasks[:n_failed], "it failed")
        return make_shard(index, rows, end_task=tasks.stop, failed=failed)

    def test_a_new_store_is_empty_and_says_so(self, tmp_path: Path) -> None:
        store = self.make(tmp_path)
        assert not store.has_run()
        with pytest.raises(StoreError):
            _ = store.manifest
        store.start(self.manifest(), POINTS)
        assert store.has_run()
        assert store.indices() == []
        assert not store.is_complete(store.layout.unit(0))
        with pytest.raises(FileNotFoundError):
            store.read(0)

    def test_shards_come_back_bit_by_bit_in_any_order(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        for index in (1, 0):
            store.write(self.shard(index))
        assert store.indices() == [0, 1]
        for index in (0, 1):
            expected = self.shard(index)
            back = store.read(index)
            for name, column in expected.columns.items():
                assert_array_equal(back.columns[name], column)
            assert store.footer(index).end_task == expected.footer.end_task
            assert store.footer(index).n_rows == len(expected)
            assert store.is_complete(store.layout.unit(index))

    def test_a_shard_gives_way_to_one_that_holds_more_and_to_no_other(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        rising = [
            self.shard(1, n_failed=2),
            self.shard(1, n_failed=1),
            self.shard(1),
        ]
        for held, shard in enumerate(rising):
            store.write(shard)
            for other in rising[: held + 1]:
                store.write(other)
            assert len(store.read(1)) == len(shard)
            assert store.footer(1).failed == shard.footer.failed
        assert store.is_complete(store.layout.unit(1))

    def test_the_last_shard_grows_with_the_run(self, tmp_path: Path) -> None:
        store = self.make(tmp_path)
        store.start(self.manifest(n_tasks=3), POINTS)
        store.write(self.shard(1, n_tasks=1))
        assert store.is_complete(store.layout.unit(1))
        store.extend(self.manifest(n_tasks=4))
        assert not store.is_complete(store.layout.unit(1))
        store.write(self.shard(1, n_tasks=2))
        store.write(self.shard(1, n_tasks=1))  # of a collector that was asked for less
        assert store.is_complete(store.layout.unit(1))

    def test_a_run_grows_and_never_shrinks(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        for n_tasks in (9, 6):
            store.extend(self.manifest(n_tasks))
            assert store.layout.n_tasks == 9
            assert store.manifest.samples == 9
            assert store.manifest.n_contributions == 27

    def test_another_run_is_refused(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        other = replace(self.manifest(n_tasks=9), seed=1)
        for ask in (store.extend, lambda manifest: store.start(manifest, POINTS)):
            with pytest.raises(StoreError, match="another seed"):
                ask(other)
        assert store.layout.n_tasks == 4

    def test_of_many_requests_at_once_the_largest_is_kept(self, tmp_path: Path) -> None:
        stores = [self.store(tmp_path) for _ in range(2)]
        requests = list(range(5, 25))
        random.Random(0).shuffle(requests)
        with ThreadPoolExecutor(4) as pool:
            for number, n_tasks in enumerate(requests):
                pool.submit(stores[number % 2].extend, self.manifest(n_tasks))
        for store in stores:
            store.extend(self.manifest(24))
            assert store.layout.n_tasks == 24

    def test_many_writers_of_one_shard_leave_the_one_that_holds_most(self, tmp_path: Path) -> None:
        stores = [self.store(tmp_path) for _ in range(2)]
        shards = [self.shard(0, n_failed=n) for n in (2, 1, 0)] * 8
        random.Random(1).shuffle(shards)
        with ThreadPoolExecutor(4) as pool:
            done = [pool.submit(store.write, shard) for shard in shards for store in stores]
            for future in done:
                future.result()
        for store in stores:
            assert not store.read(0).footer.failed
            assert_array_equal(store.read(0).columns["delta"], self.shard(0).columns["delta"])

    def test_a_damaged_shard_is_noticed_and_replaced(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        store.write(self.shard(0))
        self.damage(store, 0)
        with pytest.raises(StoreError, match="damaged"):
            store.read(0)
        store.write(self.shard(0))
        assert len(store.read(0)) == len(self.shard(0))

    def test_the_points_are_kept(self, tmp_path: Path) -> None:
        points = self.store(tmp_path).points
        assert points["id"].tolist() == [7, 8, 9]
        assert points["valued"].all()
