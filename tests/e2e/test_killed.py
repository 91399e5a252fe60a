"""Durability: a collector killed at random moments loses nothing and changes nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import apiece

from faults import are_equal, columns
from processes import start

DESIGNS = {
    "fixed": {},
    "rotating": {"scoring": "rotating"},
    "reuse": {"engine": "reuse", "samples": None, "trainings": 200, "rows_per_shard": 4},
}


def finish(folder, n_jobs=1, **settings):
    process = start(folder, n_jobs, **settings)
    began = time.monotonic()
    process.join()
    assert process.exitcode == 0
    return time.monotonic() - began


@pytest.mark.slow
@pytest.mark.parametrize(("design", "most"), [("fixed", 12), ("rotating", 8), ("reuse", 8)])
def test_a_run_killed_at_random_moments_equals_an_uninterrupted_one(tmp_path, design, most):
    settings = DESIGNS[design]
    length = {jobs: finish(tmp_path / f"whole-{jobs}", jobs, **settings) for jobs in (1, 2)}
    expected = columns(apiece.open(tmp_path / "whole-1"))

    clock = random.Random(0)
    kills = finished = 0
    while kills < most:
        folder = tmp_path / f"killed-{finished}"
        n_jobs = 2 if kills % 7 == 6 else 1  # starting workers takes seconds
        process = start(folder, n_jobs, **settings)
        process.join(clock.uniform(0, length[n_jobs]))
        if process.exitcode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
            kills += 1
        else:
            assert process.exitcode == 0
            finished += 1
        if (folder / "shards").exists():  # what is there is whole, at any moment
            for file in (folder / "shards").glob("*.parquet"):
                assert len(pd.read_parquet(file))
    for number in range(finished + 1):
        folder = tmp_path / f"killed-{number}"
        finish(folder, **settings)
        assert are_equal(columns(apiece.open(folder)), expected)


@pytest.mark.slow
def test_workers_do_not_outlive_a_collector_that_was_killed(tmp_path):
    process = start(tmp_path / "run", 2, samples=600)
    deadline = time.monotonic() + 30
    shards = (tmp_path / "run").glob
    while len(list(shards("shards/*.parquet"))) < 12 and time.monotonic() < deadline:
        time.sleep(0.05)  # until both are at work
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    pytest.fail("workers were still alive 30 seconds after their collector died")


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_says_what_is_stored_and_how_to_continue(tmp_path, jobs):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    frame["label"] = np.where(frame["a"] + rng.normal(size=300) > 0, "yes", "no")
    frame.to_csv(tmp_path / "data.csv", index=False)
    command = [
        *("collect", "data.csv", "--target", "label", "--model", "tree", "--sizes", "20:100"),
        *("--samples", "400", "--to", "run", "--random-state", "1"),
        *("--jobs", jobs),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "apiece", *command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not list((tmp_path / "run").glob("shards/*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "contributions are stored in run. Continue with:" in said
    assert "collect data.csv --target label" in said.splitlines()[-1]  # nothing comes after it


@pytest.mark.slow
def test_sigterm_to_the_process_group_leaves_no_data_behind(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = start(tmp_path / "run", 2, samples=600, scratch=str(scratch))
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "run").glob("shards/*.parquet"))) < 12:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert list(scratch.glob("apiece-*"))
    os.killpg(process.pid, signal.SIGTERM)
    process.join(60)
    assert process.exitcode == 128 + signal.SIGTERM
    assert not list(scratch.glob("apiece-*"))
