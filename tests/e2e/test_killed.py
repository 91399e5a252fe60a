"""Durability: a collector killed at random moments loses nothing and changes nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import apiece

COLUMNS = ("task", "k", "point", "delta", "loss")
CODE = """
import sys
import apiece
from conftest import make_blobs

apiece.collect(
    make_blobs(n=40), model="tree", sizes=(6, 20), samples=30, random_state=1,
    n_jobs=int(sys.argv[2]), to=sys.argv[1], progress=False,
)
"""


def start(folder, n_jobs):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with open(f"{folder}.log", "w") as log:
        return subprocess.Popen(
            [sys.executable, "-c", CODE, str(folder), str(n_jobs)],
            env=env,
            start_new_session=True,
            stderr=log,
        )


def finish(folder, n_jobs):
    assert start(folder, n_jobs).wait() == 0, Path(f"{folder}.log").read_text()


def columns(folder):
    table = apiece.open(folder).contributions()
    return {name: getattr(table, name) for name in COLUMNS}


@pytest.mark.slow
def test_a_run_killed_at_twenty_random_moments_equals_an_uninterrupted_one(tmp_path):
    began = time.monotonic()
    finish(tmp_path / "whole", 1)
    length = time.monotonic() - began
    expected = columns(tmp_path / "whole")

    clock = random.Random(0)
    kills = finished = 0
    while kills < 20:
        folder = tmp_path / f"killed-{finished}"
        process = start(folder, 1 + kills % 2)
        time.sleep(clock.uniform(0, length))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
        else:
            assert process.returncode == 0
            finished += 1
        if (folder / "shards").exists():  # what is there is whole, at any moment
            for file in (folder / "shards").glob("*.parquet"):
                assert len(pd.read_parquet(file))
    for number in range(finished + 1):
        folder = tmp_path / f"killed-{number}"
        finish(folder, 2)
        got = columns(folder)
        for name in COLUMNS:
            assert np.array_equal(got[name], expected[name]), name


@pytest.mark.slow
def test_workers_do_not_outlive_a_collector_that_was_killed(tmp_path):
    process = start(tmp_path / "run", 2)
    deadline = time.monotonic() + 30
    while not list((tmp_path / "run").glob("shards/*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
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
def test_ctrl_c_says_what_is_stored_and_how_to_continue(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    frame["label"] = np.where(frame["a"] + rng.normal(size=300) > 0, "yes", "no")
    frame.to_csv(tmp_path / "data.csv", index=False)
    command = [
        *("collect", "data.csv", "--target", "label", "--model", "tree", "--sizes", "20:100"),
        *("--samples", "400", "--to", "run", "--random-state", "1"),
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", "from apiece.cli import main; main()", *command],
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
    assert "collect data.csv --target label" in said
