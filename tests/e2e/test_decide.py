"""``advise`` and ``experiment``, from a table to decisions."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import apiece
from apiece.cli import cli


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("decide")
    rng = np.random.default_rng(0)
    y = np.arange(240) % 2
    X = rng.normal(size=(240, 4)) + 1.3 * (2 * y[:, None] - 1)
    y[:36] = 1 - y[:36]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=np.where(y == 1, "yes", "no"))
    frame["name"] = [f"p{i:03d}" for i in range(240)]
    frame.to_csv(folder / "data.csv", index=False)
    words = ("--target", "label", "--ids", "name", "--validation", "80")
    done = run(
        *("collect", folder / "data.csv", *words, "--sizes", "20:80", "--samples", "40"),
        *("--random-state", "0", "--jobs", "1", "--quiet", "--to", folder / "run"),
    )
    assert done.exit_code == 0, done.output
    return folder, words


def run(*words):
    return CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)


def test_a_table_is_advised_with_what_it_would_gain(workplace):
    folder, (*words, _, _) = workplace
    out = folder / "advice.csv"
    done = run("advise", folder / "data.csv", *words, "--quiet", "-o", out)
    assert done.exit_code == 0, done.output
    table = pd.read_csv(out, index_col="point")
    is_new = table["advice"] == "relabel"
    assert done.stdout.startswith(f"Relabel {is_new.sum()} rows: log loss falls by 0.0")
    assert "accuracy" in done.stdout
    assert len(table) == 240
    truth = pd.read_csv(folder / "data.csv", index_col="name")["label"]
    flipped = {f"p{i:03d}" for i in range(36)}
    assert len(set(table.index[is_new]) & flipped) >= max(3, 0.8 * is_new.sum())
    assert (table["to"][is_new] != truth[table.index[is_new]]).all()
    assert table["advice"].iloc[0] == "relabel"  # what calls for action comes first


def test_a_run_is_advised_with_its_own_data_as_in_python(workplace):
    folder, _ = workplace
    said = json.loads(run("advise", folder / "run", "--json", "--quiet").stdout)
    advice = apiece.advise(apiece.open(folder / "run"), progress=False)
    assert said["summary"] == advice.headline()
    assert said["effect"][-1]["loss"] == pytest.approx(advice.effect.loc["all", "loss"])
    rows = advice.table()
    assert {row["point"]: row["advice"] for row in said["rows"]} == rows["advice"].to_dict()
    assert set(rows["advice"]) <= set(apiece.uses.ADVICE)


def test_text_that_a_spreadsheet_would_compute_is_made_harmless(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    frame = pd.DataFrame(rng.normal(size=(60, 2)) + 3 * y[:, None], columns=["a", "b"])
    frame["label"] = np.where(y == 1, "=1+1", "no")
    frame["name"] = [f"@n{i}" for i in range(60)]
    frame.to_csv(tmp_path / "data.csv", index=False)
    words = ("--target", "label", "--ids", "name", "-q", "-o", tmp_path / "advice.csv")
    assert run("advise", tmp_path / "data.csv", *words).exit_code == 0
    written = pd.read_csv(tmp_path / "advice.csv")
    assert written["point"].str.startswith("'@n").all()


def test_another_dataset_or_an_unnamed_model_is_refused(workplace):
    from sklearn.linear_model import LogisticRegression

    folder, _ = workplace
    data = ("--data", folder / "data.csv", "--target", "label", "--ids", "name")
    other = run("advise", folder / "run", *data, "--validation", "60")
    assert other.exit_code == 2
    assert "another dataset" in other.stderr
    dataset = apiece.Dataset.from_csv(folder / "data.csv", target="label", ids="name")
    collected = apiece.collect(
        dataset, model=LogisticRegression(), sizes=(20, 60), samples=10, random_state=0
    )
    with pytest.raises(apiece.PlanError, match="Pass model="):
        apiece.advise(collected, dataset=dataset)
    given = apiece.advise(collected, dataset=dataset, model=LogisticRegression())
    assert len(given) == 240


@pytest.mark.parametrize(
    "words",
    [
        ("addition", "--take", "3", "--at", "20,60", "--n-candidates", "40", "--no-aware"),
        ("acquire", "--at", "20", "--budget", "6", "--steps", "2", "--n-candidates", "40"),
        ("removal", "--shares", "0.1,0.3", "--points", "80"),
        ("mislabel", "--flipped", "0.1", "--points", "80", "--no-suggest"),
    ],
)
def test_every_experiment_prints_a_table_and_writes_its_repeats(workplace, words):
    folder, reading = workplace
    name, *options = words
    out = folder / f"{name}.csv"
    common = ("--samples", "10", "--repeats", "2", "-q", "-o", out)
    done = run("experiment", name, folder / "data.csv", *reading, *options, *common)
    assert done.exit_code == 0, done.output
    assert "random" in done.output
    assert set(pd.read_csv(out)["repeat"]) == {0, 1}


def test_an_experiment_as_json_has_its_settings_and_its_table(workplace):
    folder, reading = workplace
    done = run(
        *("experiment", "mislabel", folder / "data.csv", *reading, "--points", "60", "-q"),
        *("--flipped", "0.1", "--no-suggest", "--samples", "8", "--repeats", "1", "--json"),
    )
    said = json.loads(done.stdout)
    assert said["experiment"] == "mislabel"
    assert {row["method"] for row in said["table"]} >= {"law", "random"}
    assert said["samples"] == 8


def test_shares_that_are_no_numbers_are_wrong_usage(workplace):
    folder, reading = workplace
    done = run("experiment", "mislabel", folder / "data.csv", *reading, "--flipped", "some")
    assert done.exit_code == 2
    assert "not a list of shares" in done.stderr
