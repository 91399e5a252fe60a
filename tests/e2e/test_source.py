"""A table is enough: missing steps are run, and nothing is asked twice."""

from __future__ import annotations

import json
import os
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import apiece
from apiece.cli import cli

FEW = ("--samples", "8", "--jobs", "1")


def run(*words):
    return CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.arange(260) % 2
    frame = pd.DataFrame(rng.normal(size=(260, 3)) + y[:, None], columns=list("abc"))
    frame["price"] = np.exp(frame["a"])
    frame["label"] = np.where(y == 1, "yes", "no")
    frame.to_csv("shop.csv", index=False)
    return tmp_path


def test_value_of_a_table_collects_fits_and_remembers(folder):
    first = run("value", "shop.csv", "--target", "label", *FEW, "--json")
    assert first.exit_code == 0, first.output
    assert "runs/shop" in first.stderr
    assert "2 classes" in first.stderr
    rows = json.loads(first.stdout)
    assert {"point", "label", "value", "low", "high"} <= set(rows[0])
    again = run("value", "shop.csv", "--json")  # not even the target is asked again
    assert again.exit_code == 0
    assert json.loads(again.stdout) == rows
    assert "collected before" in again.stderr
    assert [path.name for path in (folder / "runs").iterdir()] == ["shop"]


def test_value_shows_both_ends_by_interval_and_how_many_signs_are_clear(folder):
    said = run("value", "shop.csv", "--target", "label", *FEW)
    assert said.exit_code == 0, said.output
    table = apiece.value(apiece.open(folder / "runs" / "shop"))
    best, worst = table["low"].nlargest(10).index, table["high"].nsmallest(10).index
    shown = [line.split()[0] for line in said.stdout.splitlines()]
    assert [point for point in shown if point.isdigit()] == [*map(str, best), *map(str, worst)]
    clear = ((table["low"] > 0) | (table["high"] < 0)).sum()
    assert f"rows whose interval does not contain 0: {clear} of 260" in said.stdout
    assert "-o FILE writes all 260 rows" in said.stderr
    ranked = run("value", "shop.csv", "--top", "3")
    assert [line.split()[0] for line in ranked.stdout.splitlines()[1:4]] == [
        str(point) for point in table["value"].nlargest(3).index
    ]


@pytest.mark.parametrize("command", ["value", "advise", "report"])
@pytest.mark.parametrize("reads", [(), ("--target", "label")])
def test_a_table_that_is_not_there_is_complained_of_as_a_file(folder, command, reads):
    said = run(command, "shp.csv", *reads)
    assert said.exit_code == 2
    assert "there is no file 'shp.csv'" in said.stderr
    assert "Did you mean 'shop.csv'?" in said.stderr


def test_a_quantity_gets_a_model_for_quantities(folder):
    said = run("value", "shop.csv", "--target", "price", "--drop", "label", *FEW)
    assert said.exit_code == 0, said.output
    assert "a quantity from" in said.stderr
    assert apiece.open(folder / "runs" / "shop").provenance()["model"] == "ridge"


def test_another_target_goes_to_a_folder_of_its_own(folder):
    for target, drop in (("label", "price"), ("price", "label")):
        said = run("value", "shop.csv", "--target", target, "--drop", drop, *FEW)
        assert said.exit_code == 0, said.output
    assert {path.name for path in (folder / "runs").iterdir()} == {"shop", "shop-2"}
    said = run("compare", "runs/shop", "runs/shop-2")
    assert "warning: runs/shop and runs/shop-2 are of different data" in said.stderr
    assert "different data" not in run("compare", "runs/shop", "runs/shop").stderr


def test_a_table_that_changed_is_not_mistaken_for_the_old_one(folder):
    assert run("value", "shop.csv", "--target", "label", *FEW).exit_code == 0
    frame = pd.read_csv("shop.csv").iloc[:200]
    frame.to_csv("shop.csv", index=False)
    later = (folder / "runs" / "shop" / "manifest.json").stat().st_mtime + 10
    os.utime("shop.csv", (later, later))
    said = run("value", "shop.csv")
    assert said.exit_code == 2
    assert "--target is missing" in said.stderr
    assert "'label'" in said.stderr


def test_commands_that_read_tables_know_how_from_the_run(folder):
    assert run("collect", "shop.csv", "--target", "label", "--drop", "price", *FEW).exit_code == 0
    for words in (("suspects",), ("advise",), ("baseline",), ("show",), ("means",)):
        said = run(*words, "shop.csv")
        assert said.exit_code == 0, (words, said.output)


def test_rows_set_aside_to_score_are_not_denied(folder):
    assert run("fit", "shop.csv", "--target", "label", "--validation", "60", *FEW).exit_code == 0
    opened = apiece.open(folder / "runs" / "shop")
    valued = set(opened.laws().ids.astype(str))
    aside = next(str(i) for i in range(260) if str(i) not in valued)
    said = run("show", "shop.csv", "--point", aside)
    assert said.exit_code == 2
    assert f"row {aside} was set aside to score on" in said.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("value", "shop.csv", "--n", "5"), "plays no game"),
        (("exchange", "shop.csv"), "--groups"),
        (("collect", "shop.csv", "--target", "label", "--jobs", "0"), "at least 1"),
        (("collect", "shop.csv", "--target", "label", "--metric", "roc_auc"), "log_loss"),
        (("collect", "shop.csv", "--target", "price", "--metric", "rmse"), "squared_error"),
        (("report", "shop.csv", "-o", "a/b/report.html"), "is not a folder"),
        (("value", "shop.csv", "-o", "values.txt"), ".csv, .json or .parquet"),
    ],
)
def test_wrong_requests_say_what_to_do(folder, words, said):
    assert run("collect", "shop.csv", "--target", "label", *FEW).exit_code == 0
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert said in result.stderr


def test_accuracy_is_known_by_its_everyday_name(folder):
    said = run("collect", "shop.csv", "--target", "label", "--metric", "accuracy", *FEW)
    assert said.exit_code == 0, said.output
    assert apiece.open(folder / "runs" / "shop").provenance()["metric"] == "zero_one"


def test_another_model_or_setting_is_another_run(folder):
    reads = ("--target", "label", "--drop", "price")
    for model in ("logistic", "logistic(C=0.01)", "logistic(C=0.01)"):
        said = run("value", "shop.csv", *reads, "--model", model, *FEW)
        assert said.exit_code == 0, said.output
    assert {path.name for path in (folder / "runs").iterdir()} == {"shop", "shop-2"}
    assert apiece.open(folder / "runs" / "shop-2").provenance()["model"] == "logistic(C=0.01)"
    again = run("value", "shop.csv", "--model", "logistic(C=0.01)", *FEW)
    assert "shop-2 (collected before)" in again.stderr
    advised = run("advise", "runs/shop-2")  # whose model is known by its name and settings
    assert advised.exit_code == 0, advised.output


def test_report_says_how_good_the_model_is_what_to_do_and_what_rows_are_worth(folder):
    said = run("report", "shop.csv", "--target", "price", "--drop", "label", *FEW)
    assert said.exit_code == 0, said.output
    assert "model: ridge, on rows it has not seen: R² 0." in said.stdout
    assert "most valuable, by the lower end" in said.stdout
    assert "least valuable, by the upper end" in said.stdout
    assert "value: by how much R2 rises" in said.stdout
    assert (folder / "report.html").exists()


def test_advise_says_how_good_any_named_model_is_and_repeats_it_in_the_next_command(folder):
    reads = ("shop.csv", "--target", "label", "--drop", "price")
    said = run("advise", *reads, "--model", "logistic(C=0.1)")
    assert said.exit_code == 0, said.output
    assert "model: logistic(C=0.1), on rows it has not seen: accuracy" in said.stderr
    assert "--drop price --model 'logistic(C=0.1)'" in said.stderr


def test_advise_on_a_known_table_says_of_which_run_and_target_it_speaks(folder):
    run("value", "shop.csv", "--target", "label", "--drop", "price", *FEW)
    said = run("advise", "shop.csv")
    assert "shop (collected before): model logistic, target label" in said.stderr


@pytest.mark.parametrize("command", ["suspects", "boundary", "baseline"])
def test_commands_for_tables_take_the_data_of_a_run(folder, command):
    reads = ("--target", "label", "--drop", "price")
    run("value", "shop.csv", *reads, *FEW)
    found = run(command, "runs/shop", "--json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout) == json.loads(run(command, "shop.csv", *reads, "--json").stdout)
    refused = run(command, "runs/shop", "--target", "label")
    assert refused.exit_code == 2
    assert "expected no --target" in refused.stderr


def test_top_shows_as_many_rows_and_writes_all(folder):
    said = run("value", "shop.csv", "--target", "label", *FEW, "--top", "3", "-o", "all.csv")
    assert len(said.stdout.splitlines()) == 4
    assert len(pd.read_csv("all.csv")) == 260


def test_a_warning_that_differs_in_numbers_is_printed_once(folder):
    frame = pd.read_csv("shop.csv").head(90)
    frame.to_csv("few.csv", index=False)
    quick = ("--repeats", "3", "--samples", "8")
    said = run("experiment", "mislabel", "few.csv", "--target", "label", "--drop", "price", *quick)
    assert said.exit_code == 0, said.output
    assert said.stderr.count("warning: small data") == 1
    lines = [re.sub(r"[\d.,]+", "", line) for line in said.stderr.splitlines()]
    warned = [line for line in lines if line.startswith("warning:")]
    assert len(warned) == len(set(warned))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan", "shop.csv", "--target", "label", "--samples", "0"), "samples=0 asks for nothing"),
        (("report", "shop.csv", "--target", "label", "-o", "page.pdf"), "expected .html"),
        (("compare", "none.csv", "shop.csv"), "none.csv cannot be used (there is no such file)"),
        (("collect", "shop.csv", "--target", "a", "--task", "classification"), "has 1 row ("),
    ],
)
def test_more_requests_are_refused_in_plain_words(folder, words, said):
    done = run(*words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Errno" not in done.stderr
