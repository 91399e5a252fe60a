"""A run is harmed in every way we know; `python tests/faults.py 1000` does the same at length."""

from __future__ import annotations

import os
import random

import pytest

from apiece.errors import StoreError

from faults import SHARES, Bench, collect


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("faults"))


SLOW = {"worker_killed": 1, "two_collectors": 2, "collector_killed": 3}


@pytest.mark.slow
@pytest.mark.parametrize("fault", SHARES, ids=lambda fault: fault.__name__)
def test_a_fault_is_noticed_and_mended_or_does_no_harm(bench, fault):
    for seed in range(SLOW.get(fault.__name__, 8)):
        fault(bench, random.Random(seed))


@pytest.mark.parametrize("scoring", ["fixed", "rotating"])
def test_a_disk_that_is_full_at_any_write_leaves_no_file_behind(tmp_path, monkeypatch, scoring):
    real, left = os.fsync, [0]

    def fsync(handle):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    for n in range(1, 10):
        left[0], folder = n, tmp_path / str(n)
        with pytest.raises(StoreError, match="the disk is full"):
            collect(folder, scoring=scoring)
        assert not list(folder.rglob("*.tmp")), n
