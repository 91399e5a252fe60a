"""What a store promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.testing import assert_array_equal

from apiece.store import SCHEMA_VERSION, Shard, Store, make_shard


class StoreContract(ABC):
    """A shard that was written is there, whole, until it is replaced."""

    @abstractmethod
    def make(self, tmp_path: Path, manifest: dict[str, Any], points: pd.DataFrame) -> Store:
        """Return a new, empty store."""

    def store(self, tmp_path: Path) -> Store:
        """Return a store for four tasks of three points."""
        manifest = {
            "schema_version": SCHEMA_VERSION,
            "dataset": {"fingerprint": "00", "n_pool": 3},
            "points": {"n_valued": 3, "digest": "00"},
            "model": {"name": "m", "params": {}},
            "metric": "log_loss",
            "engine": {"name": "refit"},
            "design": {"name": "uniform", "sizes": [2, 5], "share": None},
            "samples": 4,
            "seed": 0,
            "n_contributions": 12,
            "layout": {"n_tasks": 4, "tasks_per_shard": 1, "parts_per_task": 1},
        }
        points = pd.DataFrame(
            {"id": [7, 8, 9], "label": ["a", "b", "a"], "role": "pool", "valued": True}
        )
        return self.make(tmp_path, manifest, points)

    def shard(self, index: int, value: float = 1.0) -> Shard:
        """Return the shard of one task."""
        delta = value * np.array([0.1, -0.2, 1e-300])
        return make_shard(index, [(index, 3, np.arange(3), delta, 0.5)], end_task=index + 1)

    def test_a_new_store_is_empty(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        assert store.indices() == []
        assert not store.has(0)

    def test_shards_come_back_bit_by_bit_in_any_order(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        for index in (2, 0, 3):
            store.write(self.shard(index, value=index + 1.0))
        assert store.indices() == [0, 2, 3]
        assert store.has(2)
        assert not store.has(1)
        for index in (0, 2, 3):
            expected = self.shard(index, value=index + 1.0)
            back = store.read(index)
            for name, column in expected.columns.items():
                assert_array_equal(back.columns[name], column)
            assert store.footer(index).end_task == expected.footer.end_task
            assert store.footer(index).n_rows == len(expected)

    def test_a_shard_can_be_replaced(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        store.write(self.shard(1, value=1.0))
        store.write(self.shard(1, value=2.0))
        assert store.indices() == [1]
        assert store.read(1).columns["delta"][0] == 0.2

    def test_more_tasks_can_be_asked_for(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        layout = {**store.manifest["layout"], "n_tasks": 9}
        store.extend({**store.manifest, "samples": 9, "n_contributions": 27, "layout": layout})
        assert store.layout.n_tasks == 9
        assert store.manifest["samples"] == 9

    def test_the_points_are_kept(self, tmp_path: Path) -> None:
        points = self.store(tmp_path).points
        assert points["id"].tolist() == [7, 8, 9]
        assert points["valued"].all()
