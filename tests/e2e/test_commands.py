"""The commands in a temporary folder, from data to picks."""

from __future__ import annotations

import json

import duckdb
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import apiece
from apiece.cli import cli


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder with a table and a finished run."""
    folder = tmp_path_factory.mktemp("work")
    rng = np.random.default_rng(0)
    n = 90
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["age", "income", "score"])
    frame["town"] = rng.choice(["Bern", "Basel"], size=n)
    frame["name"] = [f"p{i:03d}" for i in range(n)]
    frame["label"] = np.where(frame["age"] + 0.7 * rng.normal(size=n) > 0, "yes", "no")
    frame.to_csv(folder / "people.csv", index=False)
    offer = frame.head(6).assign(name=[f"new{i}" for i in range(6)])
    offer.to_csv(folder / "offer.csv", index=False)
    result = run(
        *("collect", folder / "people.csv", "--target", "label", "--ids", "name"),
        *("--sizes", "8:40", "--samples", "12", "--random-state", "1", "--jobs", "1"),
        *("--validation", "30", "--to", folder / "run"),
    )
    assert result.exit_code == 0, result.output
    return folder


def run(*words):
    return CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)


def test_collect_reports_and_the_run_is_plain_parquet(workplace):
    opened = apiece.open(workplace / "run")
    assert opened.is_complete
    rows = duckdb.sql(
        f"select p.id, count(*) as n from '{workplace}/run/shards/*.parquet' s "
        f"join '{workplace}/run/points.parquet' p on p.position = s.point group by p.id"
    ).df()
    assert len(rows) == 60
    assert rows["n"].min() >= 12
    table = opened.contributions().table()
    assert list(table.columns[:4]) == ["task", "k", "point", "delta"]
    read = pd.read_parquet(workplace / "run" / "shards")
    assert np.array_equal(read["delta"], table["delta"])


def test_fit_show_value_select_tell_one_story(workplace):
    said = run("fit", workplace / "run", "--method", "likelihood")
    assert said.exit_code == 0, said.output
    assert (workplace / "run" / "laws.parquet").exists()

    shown = run("show", workplace / "run", "--at", "30", "--top", "3")
    assert shown.exit_code == 0
    assert "most helpful at k = 30" in shown.output

    laws = apiece.Laws.load(workplace / "run" / "laws.parquet")
    best = str(laws.ids[np.nanargmax(laws.mean(30))])
    assert best in shown.output

    picks = run("select", workplace / "run", "--at", "30", "--take", "4", "--json", "--quiet")
    assert json.loads(picks.stdout)[0]["point"] == best
    assert len(json.loads(picks.stdout)) == 4

    values = run("value", workplace / "run", "-o", workplace / "values.csv", "--quiet")
    assert values.exit_code == 0
    written = pd.read_csv(workplace / "values.csv", index_col="point")
    expected = apiece.value(laws)
    np.testing.assert_allclose(written["value"], expected["value"][written.index], rtol=1e-12)
    assert {"value", "low", "high"} <= set(written.columns)


def test_show_one_point_with_its_interval(workplace):
    result = run("show", workplace / "run", "--point", "p003")
    if result.exit_code == 2:  # the carving may have put that row into the validation set
        assert "Did you mean" in result.output
    opened = apiece.open(workplace / "run")
    result = run("show", workplace / "run", "--point", opened.ids[0], "--json", "--quiet")
    shown = json.loads(result.stdout)
    assert shown["point"] == opened.ids[0]
    assert {"c", "alpha"} <= set(shown["law"])
    assert all(row["low"] <= row["value"] <= row["high"] for row in shown["curve"])


def test_commands_and_python_agree(workplace):
    dataset = apiece.Dataset.from_csv(
        workplace / "people.csv", target="label", ids="name", validation=30
    )
    mine = apiece.collect(dataset, sizes=(8, 40), samples=12, random_state=1, progress=False)
    theirs = apiece.open(workplace / "run")
    assert np.array_equal(mine.contributions().delta, theirs.contributions().delta)


def test_candidates_from_a_file_are_valued_alone(workplace):
    result = run(
        *("collect", workplace / "people.csv", "--target", "label", "--ids", "name"),
        *("--candidates", workplace / "offer.csv", "--points", "none", "--sizes", "8:40"),
        *("--samples", "5", "--random-state", "1", "--jobs", "1", "--to", workplace / "offer"),
        "--json",
        "--quiet",
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["n_points"] == 6
    picks = run("select", workplace / "offer", "--at", "40", "--take", "2", "--json", "--quiet")
    assert all(row["point"].startswith("new") for row in json.loads(picks.stdout))


def test_a_grid_fits_by_log_ols_with_an_overall_r2(workplace):
    result = run(
        *("collect", workplace / "people.csv", "--target", "label", "--ids", "name"),
        *("--design", "grid", "--sizes", "8,16,32", "--samples", "12", "--random-state", "1"),
        *("--jobs", "1", "--points", "0:10", "--to", workplace / "grid", "--quiet"),
    )
    assert result.exit_code == 0, result.output
    fitted = run("fit", workplace / "grid", "--method", "log_ols", "--json", "--quiet")
    assert json.loads(fitted.stdout)["summary"]["diagnostics"]["overall_r2"] <= 1


def test_json_goes_to_stdout_alone_and_messages_to_stderr(workplace):
    result = run("value", workplace / "run", "--json")
    json.loads(result.stdout)


def test_quiet_says_nothing_on_stderr(workplace):
    result = run("show", workplace / "run", "--quiet")
    assert result.stderr == ""


@pytest.mark.parametrize(
    "command", [[], ["collect"], ["fit"], ["show"], ["value"], ["select"], ["report"], ["serve"]]
)
def test_help_teaches_with_an_example(command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert f"apiece {command[0] if command else 'collect'}" in result.output


def test_every_verb_has_a_command():
    from apiece import api

    verbs = {"collect", "fit", "value", "select", "report"}
    assert verbs <= set(dir(api))
    assert verbs <= set(cli.commands)


def test_the_version_is_told():
    assert apiece.__version__ in run("--version").output


@pytest.mark.slow
def test_the_demo_finds_most_flipped_labels_and_draws_its_figure(tmp_path):
    result = run("demo", "--to", tmp_path / "demo", "--json", "--quiet")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["n_found"] > 0.6 * found["n_flipped"]
    assert len(found["crossing"]) == 1
    low, high = apiece.open(tmp_path / "demo").contributions().k_range
    assert low < found["crossing"][0]["at"] < high
    picture = (tmp_path / "demo" / "demo.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 20_000
    assert (tmp_path / "demo" / "report.html").stat().st_size > 500_000
    again = run("demo", "--to", tmp_path / "demo", "--json", "--quiet")
    assert json.loads(again.stdout) == found
