"""Contributions from an approximate engine are marked as such in every output."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import apiece
from apiece.cli import cli

from conftest import make_blobs

WORDS = "approximate: engine first-order, correlation 0."


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("approximate") / "run"
    return apiece.collect(
        make_blobs(n=120, n_val=60),
        engine="first-order",
        sizes=(20, 60),
        samples=12,
        random_state=0,
        to=folder,
    )


def test_the_manifest_says_how_well_it_agrees_with_exact_contributions(run):
    engine = run.manifest.engine.to_json()
    assert engine["is_exact"] is False
    assert 0.5 < engine["correlation"] < 1
    assert engine["n_compared"] >= 200
    exact = apiece.collect(make_blobs(n=120, n_val=60), sizes=(20, 60), samples=12, random_state=0)
    near, true = run.contributions(), exact.contributions()
    measured = np.corrcoef(near.k * near.delta, true.k * true.delta)[0, 1]
    # The manifest's figure is from a third of the same contributions.
    assert abs(measured - engine["correlation"]) < 0.05


def test_one_training_set_for_each_point_is_compared_too():
    engine = apiece.collect(
        make_blobs(), engine="first-order", sizes=(10, 20), samples=3, share=1, random_state=0
    ).manifest.engine.to_json()
    assert engine["n_compared"] == 180


def test_every_result_in_python_is_marked(run):
    laws = apiece.fit(run)
    assert WORDS in repr(run)
    assert WORDS in laws.headline()
    assert WORDS in laws.summary()
    for table in (laws.table(), apiece.value(laws), apiece.select(laws, take=3, at=50)):
        assert table["approximate"].all()
        assert table.attrs["caveat"].startswith(WORDS)


def test_laws_remember_it_on_disk(run, tmp_path):
    apiece.fit(run).save(tmp_path / "laws.parquet")
    assert WORDS in apiece.Laws.load(tmp_path / "laws.parquet").summary()


def test_results_of_exact_engines_are_not_marked():
    run = apiece.collect(make_blobs(), sizes=(10, 20), samples=5, random_state=0)
    assert "approximate" not in repr(run)
    assert "approximate" not in apiece.value(run)


def test_every_command_says_it(run, tmp_path):
    folder, out = str(run.path), tmp_path / "values.csv"
    for command in (
        ["show", folder],
        ["value", folder, "-o", str(out)],
        ["select", folder, "--at", "50", "--take", "3"],
    ):
        result = CliRunner().invoke(cli, command)
        assert result.exit_code == 0
        assert WORDS in result.output
    assert pd.read_csv(out)["approximate"].all()
    shown = json.loads(CliRunner().invoke(cli, ["show", folder, "--json", "--quiet"]).stdout)
    assert shown["manifest"]["engine"]["is_exact"] is False
    assert all(point["approximate"] for point in shown["points"])


def test_a_resumed_run_is_the_same_run(run, tmp_path):
    to = shutil.copytree(run.path, tmp_path / "run")
    again = apiece.collect(
        make_blobs(n=120, n_val=60),
        engine="first-order",
        sizes=(20, 60),
        samples=20,
        random_state=0,
        to=to,
    )
    assert again.progress().n_contributions > 20 * 120
    before, after = run.contributions(), again.contributions()
    same = np.isin(after.task, before.task)
    assert np.array_equal(np.sort(after.delta[same]), np.sort(before.delta))


def test_an_exact_run_is_not_continued_by_an_approximate_engine(tmp_path):
    settings = {"sizes": (10, 20), "samples": 3, "random_state": 0, "to": tmp_path / "run"}
    apiece.collect(make_blobs(), **settings)
    with pytest.raises(apiece.StoreError, match="another engine"):
        apiece.collect(make_blobs(), engine="first-order", **settings)
