"""Runs of trainings: the same shards whatever interrupts them; test_clusters.py has clusters."""

from __future__ import annotations

import json
import os
import random
import signal
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.tree import DecisionTreeClassifier

import apiece
from apiece.cli import cli
from apiece.engines import ReuseEngine
from e2e.test_clusters import files

from conftest import make_blobs
from processes import start

SETTINGS = {
    "engine": "reuse",
    "model": "tree",
    "metric": "brier",
    "sizes": (6, 12),
    "trainings": 60,
    "random_state": 1,
    "progress": False,
}


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(ReuseEngine, "rows_per_shard", 4)


@pytest.fixture
def alone(tmp_path):
    apiece.collect(make_blobs(n=40), to=tmp_path / "alone", **SETTINGS)
    return files(tmp_path / "alone")


def test_workers_write_the_same_shards(tmp_path, alone):
    run = apiece.collect(make_blobs(n=40), to=tmp_path / "run", n_jobs=2, **SETTINGS)
    assert files(tmp_path / "run") == alone
    table = pd.read_parquet(tmp_path / "run" / "shards")
    assert len(table) == 60
    assert (table["trained"].map(len) == table["k"]).all()
    assert run.is_complete


def test_a_damaged_shard_is_computed_again(tmp_path, alone):
    folder = tmp_path / "alone"
    shard = sorted((folder / "shards").iterdir())[3]
    whole = shard.read_bytes()
    shard.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    apiece.collect(make_blobs(n=40), to=folder, **SETTINGS)
    assert files(folder) == alone


@pytest.mark.slow
def test_a_killed_run_ends_like_an_uninterrupted_one(tmp_path):
    settings = {"engine": "reuse", "metric": "brier", "trainings": 400, "rows_per_shard": 4}
    process = start(tmp_path / "whole", **settings)
    process.join()
    assert process.exitcode == 0
    clock, kills = random.Random(0), 0
    while kills < 5:
        process = start(tmp_path / "run", **settings)
        process.join(clock.uniform(0.05, 0.5))
        if process.exitcode is not None:
            break
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
        kills += 1
    process = start(tmp_path / "run", **settings)
    process.join()
    assert process.exitcode == 0
    assert kills > 0
    shards = {name: part for name, part in files(tmp_path / "run").items() if name[0] != "."}
    assert shards == files(tmp_path / "whole")


def test_the_commands_take_a_run_of_trainings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(90, 3)), columns=list("abc"))
    frame["label"] = np.where(frame["a"] + 0.3 * rng.normal(size=90) > 0, "yes", "no")
    frame.to_csv("data.csv", index=False)

    def call(*words):
        result = CliRunner().invoke(cli, words)
        assert result.exit_code == 0, result.output
        return result.output

    said = call(
        *("collect", "data.csv", "--target", "label", "--model", "tree", "--metric", "brier"),
        *("--engine", "reuse", "--trainings", "50", "--sizes", "8:30", "--to", "run"),
        *("--random-state", "0", "--jobs", "1"),
    )
    assert "50 trainings" in said
    assert "reuse" in call("fit", "run")
    assert call("show", "run")
    assert len(json.loads(call("value", "run", "--json"))) > 0
    call("report", "run", "-o", "report.html")


def test_a_model_from_a_file_is_collected_with_and_advised_on(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 2))
    y = (X[:, 0] > 0).astype(int)
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    table.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "recipes_of_mine.py").write_text(
        "from sklearn.tree import DecisionTreeClassifier\n"
        "def make():\n    return DecisionTreeClassifier(max_depth=2)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    model = ["--model", "recipes_of_mine:make"]
    words = "collect table.csv --target y --to run --engine reuse --trainings 60 --metric brier"
    collected = CliRunner().invoke(cli, [*words.split(), *model, "--jobs", "2", "--quiet"])
    assert collected.exit_code == 0, collected.output
    unnamed = CliRunner().invoke(cli, ["advise", "run", "--quiet"])
    assert unnamed.exit_code != 0
    assert "--model" in unnamed.output
    advised = CliRunner().invoke(cli, ["advise", "run", *model, "--quiet", "--json"])
    assert advised.exit_code == 0, advised.output
    rows = json.loads(advised.stdout)["rows"]
    assert len(rows) == 160
    assert all(row["unseen_loss"] >= 0 for row in rows)


def test_advice_on_a_run_of_trainings_says_how_hard_each_row_was_for_its_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] > 0).astype(int)
    y[:10] = 1 - y[:10]
    data = apiece.Dataset.from_arrays(X, y, validation=0)
    model = DecisionTreeClassifier(max_depth=3)
    run = apiece.collect(
        data, model=model, metric="brier", engine="reuse", trainings=64, random_state=0
    )
    table = apiece.advise(run, dataset=data, model=model, progress=False).table()
    assert table["unseen_loss"][:10].min() > table["unseen_loss"][10:].median()
    np.testing.assert_allclose(table["unseen_loss"], run.trainings().unseen_loss())
