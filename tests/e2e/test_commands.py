"""The commands in a temporary folder, from data to picks."""

from __future__ import annotations

import json

import duckdb
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import apiece
from apiece import uses
from apiece.cli import cli


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder with a table, a finished run and its power laws."""
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
    result = run("fit", folder / "run", "--method", "likelihood", "--quiet")
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
    assert "most valuable at k = 30, by the lower end" in shown.output

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
        assert "was set aside to score on" in result.output
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


def test_values_that_are_mostly_noise_say_what_to_do(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    frame["label"] = rng.choice(["yes", "no"], 60)
    frame.to_csv(tmp_path / "noise.csv", index=False)
    words = ["collect", str(tmp_path / "noise.csv"), "--target", "label", "--samples", "3"]
    run = str(tmp_path / "run")
    assert CliRunner().invoke(cli, [*words, "--random-state", "0", "--to", run]).exit_code == 0
    said = CliRunner().invoke(cli, ["value", run])
    assert "rows whose interval does not contain 0: " in said.stdout
    table = apiece.value(apiece.open(run))
    clear = ((table["low"] > 0) | (table["high"] < 0)).mean()
    assert ("mostly noise" in said.stdout) == (clear < 0.1)
    assert clear < 0.1


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


def test_values_of_every_kind_and_source_agree_with_python(workplace):
    laws = apiece.Laws.load(workplace / "run" / "laws.parquet")
    words = ("value", workplace / "run", "--json", "--quiet")
    for options, settings in [
        (("--kind", "banzhaf"), {"kind": "banzhaf", "n": 60}),
        (
            ("--kind", "beta-shapley", "--beta", "2,3", "--n", "41", "--sizes", "8:40"),
            {"kind": "beta-shapley", "a": 2, "b": 3, "n": 41, "sizes": (8, 40)},
        ),
        (("--weights", "10=0.5,40=0.5"), {"weights": {10: 0.5, 40: 0.5}}),
        (("--top", "5"), {"top": 5}),
    ]:
        said = json.loads(run(*words, *options).stdout)
        expected = apiece.value(laws, **settings)
        assert [row["value"] for row in said] == sorted(expected["value"], reverse=True)
        assert set(said[0]) == {"point", "label", "scope", *expected.columns}
    said = json.loads(run(*words, "--source", "samples").stdout)
    by_samples = apiece.value(apiece.open(workplace / "run"), source="samples")
    assert said[0]["value"] == by_samples["value"].max()
    assert said[0]["n_samples"] >= 12


def test_select_by_quota_cost_and_redundancy(workplace):
    words = ("select", workplace / "run", "--at", "30", "--json", "--quiet")
    said = json.loads(run(*words, "--quotas", "yes=2,no=3").stdout)
    assert sorted(row["label"] for row in said) == ["no"] * 3 + ["yes"] * 2
    assert all(0 <= row["p_best"] <= 1 for row in said)
    points = apiece.open(workplace / "run").ids
    prices = pd.DataFrame({"point": points, "cost": np.arange(1.0, len(points) + 1)})
    prices.to_csv(workplace / "prices.csv", index=False)
    said = json.loads(run(*words, "--costs", workplace / "prices.csv", "--budget", "30").stdout)
    assert 0 < sum(row["cost"] for row in said) <= 30
    reading = ("--data", workplace / "people.csv", "--target", "label", "--ids", "name")
    words = (*words, "--take", "3", "--redundancy", "aware")
    aware = run(*words, *reading, "--validation", "30", "--draws", "3")
    said = json.loads(aware.stdout)
    assert len({row["point"] for row in said}) == 3
    assert {"value", "alone", "low", "high"} <= set(said[0])
    shown = run(*(word for word in words if word not in ("--json", "--quiet")), "--draws", "3")
    assert "what a pick adds to those above it" in " ".join(shown.stderr.split())
    other = run(*words, *reading, "--validation", "20")
    assert other.exit_code == 2
    assert "another dataset" in other.stderr


def test_baselines_are_written_and_compared(workplace):
    data = (workplace / "people.csv", "--target", "label", "--ids", "name", "--validation", "30")
    for method in ("knn-shapley", "loo", "random"):
        out = workplace / f"{method}.csv"
        done = run("baseline", *data, "--method", method, "-o", out, "--quiet")
        assert done.exit_code == 0, done.output
        assert len(pd.read_csv(out)) == 60
    table = run("compare", workplace / "run", workplace / "loo.csv", "--json", "--quiet")
    rows = {row["measure"]: row["agreement"] for row in json.loads(table.stdout)}
    # Leave-one-out is one draw at the largest size, noisy but not unrelated.
    assert rows["spearman"] > 0.2
    same = run("compare", workplace / "run", workplace / "run", "-o", workplace / "same.csv")
    assert same.exit_code == 0, same.output
    written = pd.read_csv(workplace / "same.csv")
    assert set(written["quantity"]) == {"value", "c", "alpha", "log_abs_c", "psi"}
    assert (written["agreement"] > 0.999).all()


def test_crossings_movers_and_means_agree_with_python(workplace):
    laws = apiece.Laws.load(workplace / "run" / "laws.parquet")
    listed = run("crossings", workplace / "run", "--most", "3", "--json", "-q")
    assert listed.exit_code == 0, listed.output
    said = json.loads(listed.stdout)
    expected = apiece.uses.crossings(laws, most=3)
    assert [row["at"] for row in said] == expected["at"].tolist()
    assert "point" not in said[0]
    pair = run(
        "crossings", workplace / "run", "--pair", said[0]["first"], said[0]["second"], "--json"
    )
    assert pair.exit_code == 0, pair.output
    assert json.loads(pair.stdout)[0]["at"] == pytest.approx(said[0]["at"])
    said = json.loads(run("movers", workplace / "run", "--most", "2", "--json", "-q").stdout)
    assert [row["point"] for row in said] == apiece.uses.movers(laws, most=2).index.tolist()
    said = json.loads(run("means", workplace / "run", "--at", "10,40", "--json", "-q").stdout)
    assert [(row["group"], row["k"]) for row in said] == [
        ("no", 10), ("no", 40), ("yes", 10), ("yes", 40),
    ]  # fmt: skip
    groups = pd.DataFrame({"point": laws.ids, "group": np.arange(len(laws)) % 3})
    groups.to_csv(workplace / "groups.csv", index=False)
    table = run("means", workplace / "run", "--at", "10", "--by", workplace / "groups.csv")
    assert table.exit_code == 0, table.output
    assert "harmful" in table.output


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("value", "RUN", "--beta", "1"), "two numbers such as 16,1"),
        (("value", "RUN", "--weights", "a=1"), "100=0.5,1000=0.5"),
        (("value", "RUN", "--kind", "banzaf"), "Did you mean 'banzhaf'"),
        (("value", "RUN", "--source", "sample"), "Did you mean 'samples'"),
        (("select", "RUN", "--at", "30", "--quotas", "yes"), "a=10,b=5"),
        (("select", "RUN", "--at", "30", "--quotas", "yes=1.5"), "whole numbers"),
        (("select", "RUN", "--at", "30", "--costs", "none.csv", "--budget", "1"), "point and cost"),
        (("select", "RUN", "--at", "30", "--redundancy", "awre"), "Did you mean 'aware'"),
        (("compare", "RUN", "none.csv"), "point and value"),
        (("baseline", "none.csv", "--target", "y", "--method", "shap"), "knn-shapley"),
    ],
)
def test_wrong_words_are_answered_with_what_was_expected(workplace, words, complaint):
    result = run(*(workplace / "run" if word == "RUN" else word for word in words))
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr


COMMANDS = ["collect", "fit", "show", "value", "select", "advise", "report", "serve"]
COMMANDS += ["compare", "crossings", "movers", "means", "baseline", "experiment"]


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_teaches_with_an_example(command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert f"apiece {command[0] if command else 'advise'}" in result.output


def test_every_verb_has_a_command():
    verbs = {"advise", "collect", "compare", "fit", "value", "select", "report"}
    assert verbs <= set(apiece.__all__)
    assert verbs <= set(cli.commands)


def test_the_version_is_printed():
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


def test_amortized_laws_need_the_data_of_the_run_and_no_other(workplace):
    fit = ("fit", workplace / "run", "--method", "amortized", "-o", workplace / "amortized.parquet")
    data = ("--data", workplace / "people.csv", "--target", "label", "--ids", "name")
    said = run(*fit)
    assert said.exit_code == 2
    assert "--data FILE" in said.output
    said = run(*fit, *data)  # the run's validation set was another
    assert said.exit_code == 2
    assert "fingerprint" in said.output
    assert not (workplace / "amortized.parquet").exists()
    said = run(*fit, *data, "--validation", "30", "--family", "series")
    assert said.exit_code == 0, said.output
    assert "60 series laws by amortized" in said.output


def test_show_tells_the_law_of_the_loss(workplace):
    said = run("show", workplace / "run", "--quiet")
    assert said.exit_code == 0, said.output
    assert "/ k^" in said.output
    shown = json.loads(run("show", workplace / "run", "--json", "--quiet").output)
    assert [row["parameter"] for row in shown["aggregate"]] == ["eps", "b", "lambda"]


def test_groups_are_valued_and_exchanged(workplace, monkeypatch):
    to = workplace / "towns"
    said = run(
        *("collect", workplace / "people.csv", "--target", "label", "--ids", "name"),
        *("--groups", "town", "--group-size", "5", "--sizes", "8:30", "--samples", "12"),
        *("--validation", "30", "--random-state", "1", "--jobs", "1", "--to", to),
    )
    assert said.exit_code == 0, said.output
    assert "contributions of 2 groups" in said.output
    assert run("fit", to, "--quiet").exit_code == 0
    values = json.loads(run("value", to, "--json").stdout)
    rows = values if isinstance(values, list) else values["points"]
    assert {row["point"]: row["rows"] for row in rows} == {"Basel": 5, "Bern": 5}
    pair = ("exchange", to, "--at", "20,40", "--pair", "Bern", "Basel")
    rates = json.loads(run(*pair, "--json").stdout)
    assert len(rates) == 2
    assert {"group", "other", "k", "rate", "low", "high", "p_more"} <= set(rates[0])
    assert run(*pair, "-o", workplace / "rates.csv").exit_code == 0
    assert pd.read_csv(workplace / "rates.csv")["k"].tolist() == [20, 40]
    unknown = run(*("exchange", to, "--pair", "Bern", "Basl"))
    assert unknown.exit_code == 2
    assert "Did you mean 'Basel'?" in unknown.output
    assert "when the group's rows join a training set" in run("value", to).stderr
    empty = uses.exchange(apiece.open(to).laws()).head(0)
    monkeypatch.setattr(uses, "exchange", lambda *_, **__: empty)
    assert "fewer than two groups help at this size" in run("exchange", to).stderr


def test_suspects_are_listed_with_the_least_plausible_label_first(workplace):
    words = ("suspects", workplace / "people.csv", "--target", "label", "--ids", "name")
    said = run(*words, "--validation", "30", "--model", "logistic", "--draws", "3", "--json")
    assert said.exit_code == 0, said.output
    rows = json.loads(said.stdout)
    assert len(rows) == 60
    assert set(rows[0]) == {"point", "label", "plausibility", "likeliest", "p_likeliest"}
    order = [row["plausibility"] for row in rows]
    assert order == sorted(order)


def test_show_writes_every_law_or_the_curve_of_one_point(workplace):
    assert run("fit", workplace / "run", "--quiet", "--method", "likelihood").exit_code == 0
    said = run("show", workplace / "run", "--at", "30", "-o", workplace / "laws.csv")
    assert said.exit_code == 0, said.output
    laws = apiece.Laws.load(workplace / "run" / "laws.parquet")
    table = pd.read_csv(workplace / "laws.csv").set_index("point").loc[laws.ids]
    assert np.allclose(table["value"], laws.mean(30))
    assert np.allclose(table["alpha"], laws.alpha)
    assert {"label", "low", "high", "status", "n_samples"} <= set(table.columns)
    point = laws.ids[0]
    words = ("show", workplace / "run", "--point", point, "-o", workplace / "curve.csv")
    assert run(*words).exit_code == 0
    assert list(pd.read_csv(workplace / "curve.csv").columns) == ["k", "value", "low", "high"]


def test_a_run_of_groups_has_a_report(workplace):
    to = workplace / "by-town"
    words = ("collect", workplace / "people.csv", "--target", "label", "--ids", "name")
    sizes = ("--groups", "town", "--group-size", "5", "--sizes", "8:30", "--samples", "6")
    assert run(*words, *sizes, "--random-state", "1", "--jobs", "1", "--to", to).exit_code == 0
    said = run("report", to, "-o", workplace / "towns.html")
    assert said.exit_code == 0, said.output
    assert "Basel" in (workplace / "towns.html").read_text(encoding="utf-8")
