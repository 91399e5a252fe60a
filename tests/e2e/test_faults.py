"""A run is harmed in every way we know; `python tests/faults.py 1000` does the same at length."""

from __future__ import annotations

import random

import pytest

from faults import SHARES, Bench


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("faults"))


SLOW = {"worker_killed": 1, "two_collectors": 2, "collector_killed": 3}


@pytest.mark.slow
@pytest.mark.parametrize("fault", SHARES, ids=lambda fault: fault.__name__)
def test_a_fault_is_noticed_and_mended_or_does_no_harm(bench, fault):
    for seed in range(SLOW.get(fault.__name__, 8)):
        fault(bench, random.Random(seed))
