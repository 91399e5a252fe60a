"""What a collection will cost and how sure it will be, before the work."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.tree import DecisionTreeClassifier

import apiece
from apiece.cli import cli
from apiece.errors import PlanError

TREE = {"model": DecisionTreeClassifier(max_depth=2), "metric": "brier", "sizes": (10, 40)}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=120) > 0).astype(int)
    return apiece.Dataset.from_arrays(X, y, validation=0)


def test_more_trainings_cost_more_and_say_more(data):
    found = apiece.plan(data, trainings=400, **TREE)
    assert (found.engine, found.unit, found.amount) == ("reuse", "trainings", 400)
    table = found.table()
    assert table.index.tolist() == [100, 400, 1600]
    assert table["seconds"].is_monotonic_increasing
    assert table["correlation"].is_monotonic_increasing
    assert table["width"].is_monotonic_decreasing
    assert 0 < found.correlation < 1
    assert "trainings take about" in repr(found)


def test_refits_are_tried_on_some_points_and_scaled(data):
    found = apiece.plan(data, samples=50, engine="refit", **TREE)
    assert (found.engine, found.unit) == ("refit", "samples")
    fewer = apiece.plan(data, samples=50, engine="refit", points=np.arange(20), **TREE)
    assert found.seconds > 2 * fewer.seconds  # six times as many points


def test_exact_engines_have_a_plan(data):
    found = apiece.plan(data, sizes=(10, 40), random_state=0)
    assert (found.engine, found.unit, found.amount) == ("logistic", "samples", 100)


def test_what_is_no_dataset_is_refused():
    with pytest.raises(PlanError, match=r"expected an apiece\.Dataset"):
        apiece.plan(np.zeros((3, 3)))


def test_collect_says_how_long_it_will_take(data):
    said = []
    apiece.collect(
        data,
        trainings=40,
        engine="reuse",
        on_progress=lambda event: said.append(event.message),
        progress=False,
        **TREE,
    )
    assert any(line.startswith("estimate: about") for line in said)


def test_the_command_prints_a_plan(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(90, 3)), columns=list("abc"))
    frame["label"] = np.where(frame["a"] + 0.3 * rng.normal(size=90) > 0, "yes", "no")
    frame.to_csv(tmp_path / "data.csv", index=False)
    words = ["plan", str(tmp_path / "data.csv"), "--target", "label", "--jobs", "1"]
    words += ["--sizes", "10:30"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    assert "100 samples take about" in result.output
    result = CliRunner().invoke(cli, [*words, "--json", "--quiet"])
    assert json.loads(result.stdout)["unit"] == "samples"
