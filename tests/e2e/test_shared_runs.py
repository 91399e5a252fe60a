"""Several collectors on one run: each returns when what it was asked for is there, or says why."""

from __future__ import annotations

import time

import pytest

import apiece

from processes import start


def files(folder):
    return {file.name: file.read_bytes() for file in (folder / "shards").iterdir()}


def settled(*processes):
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]


@pytest.mark.parametrize("trial", range(3))
def test_collectors_that_ask_for_different_samples_all_end_whole(tmp_path, trial):
    same = {"model": "slow", "rows_per_shard": 200}  # several tasks a shard, the last not full
    settled(start(tmp_path / "alone", samples=19, **same))
    begins = time.time() + 8.0
    together = [
        start(tmp_path / "run", samples=samples, is_checked=True, begins=begins, **same)
        for samples in (5, 19, 11)
    ]
    assert settled(*together) == [0, 0, 0]
    assert apiece.open(tmp_path / "run").is_complete
    assert files(tmp_path / "run") == files(tmp_path / "alone")


def test_a_collector_computes_what_another_one_only_failed_at(tmp_path):
    settled(start(tmp_path / "alone", model="slow"))
    begins = time.time() + 6.0
    failing = start(tmp_path / "run", model="slow", begins=begins, fails=True)
    healthy = start(tmp_path / "run", model="slow", begins=begins, is_checked=True)
    code, well = settled(failing, healthy)
    assert well == 0
    assert code in (0, 1)  # 0 if the healthy one was everywhere before it
    assert apiece.open(tmp_path / "run").is_complete
    assert files(tmp_path / "run") == files(tmp_path / "alone")


def test_collectors_that_start_together_without_a_seed_use_the_same_one(tmp_path):
    begins = time.time() + 6.0
    same = {"model": "slow", "random_state": None, "begins": begins, "is_checked": True}
    assert settled(*(start(tmp_path / "run", **same) for _ in range(2))) == [0, 0]
    assert apiece.open(tmp_path / "run").is_complete
