"""The paper from one command, on synthetic data and on small files."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

import apiece
from apiece.cli import cli
from apiece.papers import SCALES, estimate, measured, names, reproduce
from apiece.papers._accuracy import PAPERS
from apiece.papers._ceiling import Ceiling, common_noise
from apiece.papers._items import ITEMS
from apiece.papers._runs import Means, Setting
from apiece.papers._scale import Effort
from apiece.papers._valuation import one_turn
from apiece.papers._workspace import Workspace
from apiece.records import Contributions


def invoke(*words):
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Everything once, with logistic regression alone, and the page with some documentation."""
    to = tmp_path_factory.mktemp("all")
    page = to / "docs" / "reproduction.md"
    page.parent.mkdir()
    reproduce("all", scale="smoke", to=to, models=["logistic", "svm"], page=page, progress=False)
    return to


def test_every_table_and_figure_that_has_data_is_written_in_all_forms(made):
    folder = made / "smoke"
    about_other_data = {"figure17", "figure18", "figure20"}
    for name in set(names()) - about_other_data:
        assert len(pd.read_csv(folder / f"{name}.csv")) > 0
        text = (folder / f"{name}.md").read_text()
        assert text.count("|") > 6 or f"({name}.csv)" in text
        if name.startswith("figure"):
            assert (folder / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
            assert (folder / f"{name}.pdf").read_bytes()[:4] == b"%PDF"
    assert not any((folder / f"{name}.md").exists() for name in about_other_data)


def test_the_page_links_every_figure_where_it_is(made):
    for page in (made / "smoke" / "reproduction.md", made / "docs" / "reproduction.md"):
        text = page.read_text()
        links = [part.split(")")[0] for part in text.split("](")[1:] if "http" not in part[:4]]
        assert len(links) >= 15
        assert all((page.parent / link).is_file() for link in links)
        titles = [line for line in text.splitlines() if line.startswith("## ")]
        first = [title.split(":")[0] for title in titles[:3]]
        assert first == [f"## Table {number}" for number in (1, 2, 3)]


def test_table_1_is_the_mean_r2_of_the_stored_runs(made):
    table = pd.read_csv(made / "smoke" / "table1.csv")
    assert table["model"].tolist() == ["logistic regression", "logistic regression", "SVM"]
    assert table["loss"].tolist() == ["softmax_of_proba", "log_loss", "softmax_of_proba"]
    run = apiece.open(made / "runs" / "smoke" / "synthetic-logistic-log_loss-grid")
    table_of = run.contributions().table()
    laws = apiece.fit(run, method="log_ols")
    psi = table_of.groupby(["point", "k"])["delta"].mean().unstack()
    predicted = pd.DataFrame(laws.mean(psi.columns.to_numpy()), index=laws.ids, columns=psi.columns)
    left = ((psi - predicted) ** 2).sum() / ((psi - psi.mean()) ** 2).sum()
    assert_allclose(table["measured"][1], (1 - left).mean(), rtol=1e-9)


def test_a_second_call_collects_nothing_and_says_the_same(made):
    shards = {p: p.stat().st_mtime_ns for p in (made / "runs").rglob("*.parquet")}
    before = pd.read_csv(made / "smoke" / "table3.csv")
    assert estimate("all", scale="smoke", to=made, models=["logistic", "svm"])["left"].sum() == 0
    reproduce("table3", scale="smoke", to=made, models=["logistic"], progress=False)
    assert {p: p.stat().st_mtime_ns for p in (made / "runs").rglob("*.parquet")} == shards
    pd.testing.assert_frame_equal(pd.read_csv(made / "smoke" / "table3.csv"), before)


def test_a_model_is_shown_without_logistic_regression(made, tmp_path):
    (tmp_path / "runs").symlink_to(made / "runs")
    asked = {"scale": "smoke", "to": tmp_path, "datasets": ["synthetic"], "stored": True}
    reproduce("figure8", models=["svm"], progress=False, **asked)
    table = pd.read_csv(tmp_path / "smoke" / "figure8.csv")
    both = pd.read_csv(made / "smoke" / "figure8.csv").set_index("model")
    assert table["model"].tolist() == ["SVM"]
    assert_allclose(table["median"], both.loc["SVM", "median"])


def test_additions_stand_next_to_the_accuracy_before_them(made):
    table = pd.read_csv(made / "smoke" / "table5.csv")
    assert table["method"].tolist() == [
        *("scaling 20", "scaling 100", "bayes 20", "bayes 100"),
        *("shapley", "random", "preceding"),
    ]
    assert (table["repeats"] == SCALES["smoke"].additions[0].repeats).all()
    before = table.set_index("method").loc["preceding", "measured"]
    assert 60 < before < 100
    assert table["measured"].iloc[:-1].abs().max() < 100 - before


def test_every_run_tells_the_time_it_took(made):
    table = pd.read_csv(made / "smoke" / "speed.csv")
    runs = [p.parent for p in (made / "runs" / "smoke").glob("*/manifest.json")]
    assert len(table) == len(runs)
    assert table["contributions"].sum() == sum(
        apiece.open(run).progress().n_contributions for run in runs
    )
    several = table["minutes"].dropna()  # a run of a single shard does not tell
    assert (several > 0).all()
    assert_allclose(table["times faster"], table["ms refitted"] / table["ms each"])
    refitted = table["contributions"] * table["ms refitted"] / 3.6e6
    assert_allclose(table["hours refitted"], refitted)


def test_pauses_do_not_count_as_work(tmp_path):
    work = Workspace(tmp_path, tmp_path, SCALES["smoke"], ("synthetic",))
    folder = work.folder(Setting("synthetic")) / "shards"
    folder.mkdir(parents=True)
    for place, moment in enumerate([0, 60, 120, 180, 9000, 9060]):
        (folder / str(place)).touch()
        os.utime(folder / str(place), (moment, moment))
    assert work.minutes(Setting("synthetic")) == pytest.approx(6)  # six shards, a minute each


def test_a_smaller_scale_serves_where_nothing_else_is_stored(made):
    asked = {"datasets": ["synthetic"], "to": made, "stored": True, "progress": False}
    page = reproduce("table1", scale="laptop", **asked)
    found = pd.read_csv(made / "laptop" / "table1.csv")
    pd.testing.assert_frame_equal(found, pd.read_csv(made / "smoke" / "table1.csv"))
    assert "smaller ones where none exists" in page.read_text()


def test_runs_of_different_scales_meet_in_the_points_they_share(tmp_path):
    smoke = SCALES["smoke"]
    few = replace(smoke, name="laptop", grid={"logistic": Effort(8, 12)})
    Workspace(tmp_path, tmp_path, few, ("synthetic",)).run(Setting("synthetic", design="uniform"))
    work = Workspace(tmp_path, tmp_path, smoke, ("synthetic",))
    work.run(Setting("synthetic"))
    reproduce("figure14", scale="smoke", to=tmp_path, stored=True, progress=False)
    assert "for 8 points" in (tmp_path / "smoke" / "figure14.md").read_text()
    found = pd.read_csv(tmp_path / "smoke" / "figure14.csv")
    run = apiece.open(tmp_path / "runs" / "laptop" / "synthetic-logistic-softmax_of_proba-uniform")
    table = run.contributions()
    laws = apiece.fit(table.where(table.task < 50), PAPERS)
    grid = work.contributions(Setting("synthetic")).table()
    psi = grid[grid["k"] == 120].groupby("point")["delta"].mean()[laws.ids]
    right = np.corrcoef(laws.mean(120.0), psi)[0, 1]
    assert_allclose(found.set_index("k").loc[120, "Pearson"], right)


def test_an_estimate_counts_the_additions(tmp_path):
    table = estimate("table7", scale="smoke", to=tmp_path).set_index("run")
    candidates = table.loc["synthetic-logistic-softmax_of_proba-candidates"]
    assert candidates["left"] == candidates["points"] * candidates["samples"] == 60 * 24
    trained = table.loc["synthetic-logistic-addition-10"]
    assert trained["left"] == 6 * 2 * 7  # repeats, sizes, and models for each
    assert trained["minutes"] > 0


def test_values_from_more_samples_are_nearer_to_the_truth(made):
    few, many = (pd.read_csv(made / "smoke" / f"table{i}.csv").set_index("method") for i in (3, 4))
    assert many.loc["Monte Carlo", "measured"] > few.loc["Monte Carlo", "measured"] > 0.5


def test_a_network_learns_from_the_whole_pool_and_is_judged_on_the_valued_points(tmp_path):
    pytest.importorskip("torch")
    scale = replace(SCALES["smoke"], network=True, network_samples=10, counts=(10,), truth=40)
    work = Workspace(tmp_path, tmp_path, scale, ("synthetic",))
    table = ITEMS["table3"].make(work).table
    trained = table.set_index("method")["trained on"]
    assert trained["amortized"] == work.dataset("synthetic").n_pool
    assert trained.drop("amortized").isna().all()
    assert (table["points"] == scale.grid["logistic"].points).all()
    pool = apiece.open(work.folder(Setting("synthetic", design="pool"))).contributions()
    first, second = (one_turn(pool, 5, turn) for turn in (0, 1))
    assert set(first.counts()) == set(second.counts()) == {5}
    # blocks of points have training sets of their own: points share few
    assert len(np.unique(pool.task)) > 10
    rows = set(zip(first.task.tolist(), first.point.tolist(), strict=True))
    assert not rows & set(zip(second.task.tolist(), second.point.tolist(), strict=True))
    # without the pool, as from earlier versions, it learns from the valued points
    work.folder(Setting("synthetic", design="pool")).rename(tmp_path / "elsewhere")
    table = ITEMS["table3"].make(replace(work, stored=True)).table.set_index("method")
    assert table.loc["amortized", "trained on"] == scale.grid["logistic"].points


def test_an_estimate_names_every_run_and_its_size(tmp_path):
    said = invoke(
        *("reproduce", "table1", "--scale", "smoke", "--to", tmp_path, "--estimate", "--json")
    )
    assert said.exit_code == 0, said.stderr
    runs = json.loads(said.stdout)["runs"]
    assert [run["run"] for run in runs] == [
        "synthetic-logistic-softmax_of_proba-grid",
        "synthetic-logistic-log_loss-grid",
        "synthetic-mlp-softmax_of_proba-grid",
        "synthetic-svm-softmax_of_proba-grid",
    ]
    effort = SCALES["smoke"].grid["logistic"]
    assert runs[0]["points"] == effort.points
    assert runs[0]["left"] == runs[0]["contributions"] >= effort.points * effort.samples * 4
    assert all(run["minutes"] > 0 for run in runs)
    assert not (tmp_path / "runs").exists()


def test_fewer_points_and_samples_than_the_scale_has(tmp_path):
    asked = ("--scale", "smoke", "--to", tmp_path, "--models", "logistic")
    said = invoke("reproduce", "figure3", *asked, "--points", 5, "--samples", 3, "--json")
    assert said.exit_code == 0, said.stderr
    table = pd.read_csv(tmp_path / "smoke" / "figure3.csv")
    assert table["points"].tolist() == [5]
    assert table["samples per size"].between(3, 5).all()  # the scale has 12; some are in D
    said = invoke("reproduce", "figure3", *asked, "--points", 0)
    assert said.exit_code == 2
    assert "points is 0: expected at least 2" in said.stderr


def test_measured_numbers_stand_next_to_those_of_the_paper(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    np.savez(tmp_path / "imdb.npz", X=rng.normal(size=(600, 4)) + y[:, None], y=y)
    said = invoke(
        *("reproduce", "table1", "--data", tmp_path, "--scale", "smoke", "--to", tmp_path / "out"),
        *("--datasets", "imdb", "--models", "logistic", "--note", "Drawn from two clouds."),
    )
    assert said.exit_code == 0, said.stderr
    assert str(tmp_path / "out" / "smoke" / "reproduction.md") in said.stdout
    table = pd.read_csv(tmp_path / "out" / "smoke" / "table1.csv")
    assert table["paper"].tolist() == [0.985, 0.985]
    text = (tmp_path / "out" / "smoke" / "reproduction.md").read_text()
    assert "| IMDB | logistic regression | 24 | " in text
    assert "Not measured: MiniBooNE" in text
    assert "Drawn from two clouds." in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("table9",), "unknown table or figure 'table9'"),
        (("table1", "--scale", "huge"), "unknown scale 'huge'"),
        (("table1", "--data", "nowhere"), "none of the datasets"),
        (("table1", "--data", "nowhere", "--datasets", "imdb"), "aclImdb_v1.tar.gz"),
        (("table1", "--datasets", "imbd"), "Did you mean 'imdb'?"),
        (("figure17", "--scale", "smoke", "--stored"), "nothing to show"),
    ],
)
def test_what_cannot_be_made_is_explained_without_a_traceback(tmp_path, words, message):
    said = invoke("reproduce", *words, "--to", tmp_path)
    assert said.exit_code == 2
    assert message in said.stderr
    assert "Traceback" not in said.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_is_stored_will_do_and_grows_when_more_is_asked_for(tmp_path):
    smoke = SCALES["smoke"]
    half = replace(smoke, grid={"logistic": Effort(24, smoke.grid["logistic"].samples // 2)})
    Workspace(tmp_path, tmp_path, half, ("synthetic",)).run(Setting("synthetic"))
    settings = {"scale": "smoke", "to": tmp_path, "progress": False}
    reproduce("table1", stored=True, **settings)
    before = pd.read_csv(tmp_path / "smoke" / "table1.csv")
    reproduce("table1", models=["logistic"], **settings)
    after = pd.read_csv(tmp_path / "smoke" / "table1.csv")
    assert (len(before), len(after)) == (1, 2)  # the other loss had not been collected
    assert after["samples per size"][0] > 1.5 * before["samples per size"][0]


def test_a_dataset_measured_later_is_added_and_one_measured_again_replaced(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    for name in ("imdb", "adult"):
        np.savez(tmp_path / f"{name}.npz", X=rng.normal(size=(600, 4)) + y[:, None], y=y)
    asked = {"scale": "smoke", "data": tmp_path, "models": ["logistic"], "progress": False}
    for name in ("adult", "imdb", "adult"):
        reproduce("figure4", datasets=[name], to=tmp_path / "out", **asked)
    kept = json.loads((tmp_path / "out" / "smoke" / "figure4.json").read_text())
    assert [part["rows"][0]["data"] for part in kept["parts"]] == ["IMDB", "adult"]
    assert kept["images"] == ["figure4.png", "figure4-imdb.png", "figure4-adult.png"]
    text = (tmp_path / "out" / "smoke" / "figure4.md").read_text()
    assert "(figure4-imdb.png)" in text
    assert "| IMDB | logistic regression | 24 | " in text
    shown = (tmp_path / "out" / "smoke" / "figure4-imdb.png").read_bytes()
    reproduce("figure4", datasets=["imdb"], to=tmp_path / "out", **asked)
    assert (tmp_path / "out" / "smoke" / "figure4-imdb.png").read_bytes() == shown
    asked["models"] = ["svm"]
    reproduce("figure4", datasets=["imdb"], to=tmp_path / "out", **asked)
    kept = json.loads((tmp_path / "out" / "smoke" / "figure4.json").read_text())
    assert kept["images"][-1] == "figure4-imdb-svm.png"  # the other one shows another model
    asked["models"] = ["logistic", "svm"]
    reproduce("figure4", datasets=["imdb", "adult"], to=tmp_path / "out", **asked)
    kept = json.loads((tmp_path / "out" / "smoke" / "figure4.json").read_text())
    assert kept["images"] == ["figure4.png"]  # it shows both


def test_the_ceilings_are_drawn_from_all_rows_also_those_measured_before(tmp_path, monkeypatch):
    drawn, item = [], ITEMS["ceiling"]

    def draw(table):
        drawn.append(item.draw(table))
        return drawn[-1]

    monkeypatch.setitem(ITEMS, "ceiling", replace(item, draw=draw))
    reproduce("ceiling", scale="paper", data="nowhere", to=tmp_path, stored=True, progress=False)
    (figure,) = drawn
    table = measured("ceiling")
    lines = [line for ax in figure.axes for line in ax.get_lines() if len(line.get_xdata()) > 2]
    assert len(lines) == len(table)
    assert json.loads((tmp_path / "paper" / "ceiling.json").read_text())["images"] == [
        "ceiling.png"
    ]


def test_the_numbers_of_the_documentation_need_no_data(tmp_path):
    said = invoke("reproduce", "table1", "--stored", "--data", "nowhere", "--to", tmp_path)
    assert said.exit_code == 0, said.stderr
    table = measured("table1")
    below = table[table["measured"] < table["paper"]]
    assert len(below) > 0
    for row in below.to_dict("records"):
        line = f"{row['data']}, {row['model']}, {row['loss']}: {row['measured']:.3f} of "
        assert line + f"{row['paper']:.3f}. {row['why lower']}" in said.stdout
    assert not table["why lower"].str.contains("not explained").any()
    noisy = table[table["ceiling by noise"] < 0.9]
    assert set(below.index) | set(noisy.index) == set(table.index[table["why lower"] != ""])
    assert noisy["why lower"].str.contains("with .* samples|no signal").all()
    curves = measured("ceiling").set_index(["data", "model"])
    for data, model in zip(noisy["data"], noisy["model"], strict=True):
        curve = curves.loc[(data, model)]
        assert (curve["samples for 0.9"] > curve["samples per size"]) or curve[
            "5,000 samples"
        ] < 0.9


def test_every_table_and_figure_has_stored_numbers_with_their_scale():
    for name in names():
        table = measured(name)
        assert len(table) > 0
        assert "data" in table
        assert re.search(r"\d (points|samples|repeats)", table.attrs["scale"])
        assert "repeat" in table.attrs["scale"]
        is_in_paper = name.startswith(("table", "figure"))
        assert not is_in_paper or "In the paper: " in table.attrs["scale"]


def test_the_ceiling_by_noise_is_reached_by_the_true_means():
    rng = np.random.default_rng(0)
    true = rng.normal(size=(4000, 3)) * [1.0, 2.0, 0.5]
    noisy = true[:, :, None] + rng.normal(size=(4000, 3, 8)) * 3.0
    means = Means(np.arange(3.0), noisy.mean(axis=2), noisy.var(axis=2, ddof=1) / 8)
    ceiling = Ceiling.of(means, 8)
    left = ((means.psi - true) ** 2).sum(axis=0) / ((means.psi - means.psi.mean(0)) ** 2).sum(
        axis=0
    )
    assert_allclose(ceiling.reached, (1 - left).mean(), atol=0.02)
    expected = np.mean([1 / (1 + 9 / 100 / s**2) for s in (1.0, 2.0, 0.5)])
    assert_allclose(ceiling.at(100), expected, atol=0.01)
    assert (
        ceiling.at(0.98 * ceiling.samples_for(0.9))
        < 0.9
        < ceiling.at(1.05 * ceiling.samples_for(0.9))
    )


@pytest.mark.parametrize("common", [0.0, 2.0])
def test_the_ceiling_of_more_samples_knows_that_points_share_training_sets(common):
    rng = np.random.default_rng(1)
    n_points, n_sets, k = 600, 40, np.array([100, 1000])
    true = rng.normal(size=(n_points, 2)) * [1.0, 0.5]

    def drawn(n_sets):
        """Training sets that hold a fifth of the points, which then have no contribution."""
        size, noise = np.repeat([0, 1], n_sets), rng.normal(size=(2 * n_sets, n_points))
        delta = true.T[size] + 3.0 * noise + common * rng.normal(size=(2 * n_sets, 1))
        task, point = np.nonzero(rng.random(delta.shape) < 0.8)
        return Contributions.from_arrays(
            k=k[size[task]], point=point, delta=delta[task, point], task=task
        )

    table = drawn(n_sets)
    means = Means.of(table)
    found = common_noise(table, means)
    # the variance of a sample of 40 normal numbers has a relative standard error of 0.23
    assert_allclose(found, common**2, atol=0.1 + 0.6 * common**2)
    ceiling = Ceiling.of(means, 0.8 * n_sets, found)
    assert_allclose(ceiling.signal, [1.0, 0.25], atol=0.15)  # whatever the common noise is
    n = 2000
    psi = true + (rng.normal(size=(50, n_points, 2)) * 3 + rng.normal(size=(50, 1, 2)) * common) / (
        n**0.5
    )
    left = ((psi - true) ** 2).sum(axis=1) / ((psi - psi.mean(axis=1, keepdims=True)) ** 2).sum(1)
    assert_allclose(ceiling.at(n), (1 - left).mean(), atol=0.01)
