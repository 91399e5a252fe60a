"""Contract of pools."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from apiece._base.typing import Positions
from apiece.collection import Design, Done, Job, Pool, make_plan
from apiece.data import Dataset
from apiece.engines import choose_engine
from apiece.store import FolderStore, Layout, Shard

_N = 24


class PoolContract(ABC):
    """Tests that any `apiece.collection.Pool` must pass; a subclass defines ``make``.

    Examples
    --------
    >>> from apiece.collection.pools import LocalPool
    >>> class TestLocal(PoolContract):
    ...     def make(self):
    ...         return LocalPool()
    >>> TestLocal().test_nothing_to_do_is_done_at_once()
    """

    most_taken: int = 64  # units that the pool may take before it yields the first

    @abstractmethod
    def make(self) -> Pool:
        """Return a pool."""

    def job(self, store: FolderStore | None = None) -> Job:
        """Return a job of decision trees, with one task for each unit."""
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(2 * _N, 3)), np.arange(2 * _N) % 2
        dataset = Dataset.from_arrays(X[:_N], y[:_N], X_val=X[_N:], y_val=y[_N:])
        engine, _ = choose_engine(dataset, model="tree", engine="refit")
        design = Design.of((6, 10), samples=80)
        plan = make_plan(
            design, n_pool=_N, points=Positions(np.arange(_N)), seed=1, strata=dataset.y
        )
        return Job(engine, plan, Layout(len(plan), 1, 1), store, n_units=len(plan))

    def shards(self, units: list[int]) -> dict[int, Shard]:
        """Return the shards of units, from this process."""
        job = self.job()
        computed = {index: job.run(index).shard for index in units}
        return {index: shard for index, shard in computed.items() if shard is not None}

    def test_every_unit_is_done_once_as_in_one_process(self) -> None:
        units = [3, 0, 7, 5, 1]
        done = list(self.make().run(self.job(), iter(units)))
        assert sorted(unit.footer.index for unit in done) == sorted(units)
        expected = self.shards(units)
        for unit in done:
            assert unit.shard is not None
            for name, column in expected[unit.footer.index].columns.items():
                assert_array_equal(unit.shard.columns[name], column)

    def test_units_are_taken_as_workers_become_free(self) -> None:
        taken: list[int] = []

        def units() -> Iterator[int]:
            for index in range(len(self.job().plan)):
                taken.append(index)
                yield index

        results = self.make().run(self.job(), units())
        next(results)
        assert len(taken) <= self.most_taken
        results.close()

    def test_a_pool_can_be_stopped_and_used_again(self) -> None:
        pool = self.make()
        results = pool.run(self.job(), iter(range(20)))
        next(results)
        results.close()
        assert [unit.footer.index for unit in pool.run(self.job(), iter([4]))] == [4]

    def test_nothing_to_do_is_done_at_once(self) -> None:
        assert list(self.make().run(self.job(), iter([]))) == []

    def test_a_task_that_fails_is_reported_with_its_unit(self) -> None:
        job = self.job()
        object.__setattr__(job.engine.model.estimator, "max_depth", -1)  # refused by every fit
        (unit,) = self.make().run(job, iter([2]))
        assert isinstance(unit, Done)
        assert list(unit.footer.failed) == [2]

    def test_workers_that_see_the_store_write_to_it(self, tmp_path: Path) -> None:
        pytest.importorskip("pyarrow")
        store = FolderStore(tmp_path / "run")
        (tmp_path / "run").mkdir()
        job = self.job(store)
        store.mark(job.token)
        for unit in self.make().run(job, iter([1, 2])):
            assert unit.shard is not None or unit.footer.index in (1, 2)
            if unit.shard is None:
                assert len(store.read(unit.footer.index)) == unit.footer.n_rows
