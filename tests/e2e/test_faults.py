"""A run is damaged in every known way; `python benchmarks/faults.py` does the same at length."""

from __future__ import annotations

import os
import random

import pytest

from apiece.errors import StoreError

from faults import DESIGNS, SHARES, Bench


@pytest.fixture(scope="module", params=DESIGNS)
def bench(request, tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("faults"), request.param)


SLOW = {"worker_killed": 1, "two_collectors": 2, "collector_killed": 3}


@pytest.mark.slow
@pytest.mark.parametrize("fault", SHARES, ids=lambda fault: fault.__name__)
def test_a_fault_is_noticed_and_repaired_or_does_no_harm(bench, fault):
    for seed in range(SLOW.get(fault.__name__, 6)):
        fault(bench, random.Random(seed))


def test_a_disk_that_is_full_at_any_write_leaves_no_file_behind(bench, tmp_path, monkeypatch):
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
            bench.collect(folder)
        assert not list(folder.rglob("*.tmp")), n
