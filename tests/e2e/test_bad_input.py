"""Bad input: three beats, the right exit code, no traceback, nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import apiece
from apiece.cli import cli

FRAME = pd.DataFrame(
    {
        "age": np.linspace(20, 60, 40),
        "height": np.linspace(150, 190, 40)[::-1],
        "label": ["yes", "no"] * 20,
    }
)


def collect(folder, data="data.csv", *, target="label", sizes="4:12", to="run", extra=()):
    words = ["collect", str(folder / data), "--to", str(folder / to), "--sizes", sizes]
    words += ["--target", target] if target else []
    words += ["--samples", "3", "--random-state", "1", "--jobs", "1", *extra]
    return CliRunner().invoke(cli, words)


def expect(result, code, *words):
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    for word in words:
        assert word in result.stderr, result.stderr


@pytest.fixture
def folder(tmp_path):
    FRAME.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path


def test_the_folder_as_it_stands_works(folder):
    assert collect(folder).exit_code == 0


def test_a_missing_file(folder):
    expect(collect(folder, "nowhere.csv"), 2, "nowhere.csv")


def test_an_empty_file(folder):
    (folder / "empty.csv").write_bytes(b"")
    expect(collect(folder, "empty.csv"), 2, "empty")


def test_a_binary_file_named_csv(folder):
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 20)
    expect(collect(folder, "binary.csv"), 2, "binary.csv")


def test_an_unknown_ending(folder):
    (folder / "data.xlsx").write_bytes(b"PK")
    expect(collect(folder, "data.xlsx"), 2, ".csv")


def test_a_target_that_is_not_there_offers_the_nearest(folder):
    expect(collect(folder, target="lable"), 2, "lable", "'label'")


def test_no_target(folder):
    expect(collect(folder, target=None), 2, "--target")


def test_text_in_a_numeric_column(folder):
    frame = FRAME.astype({"age": object})
    frame.loc[7, "age"] = "unknown"
    frame.to_csv(folder / "text.csv", index=False)
    expect(collect(folder, "text.csv"), 2, "age", "unknown")


def test_missing_values_name_their_columns_and_offer_impute(folder):
    frame = FRAME.copy()
    frame.loc[[3, 5], "height"] = np.nan
    frame.to_csv(folder / "gaps.csv", index=False)
    expect(collect(folder, "gaps.csv"), 2, "height", "--impute")
    assert collect(folder, "gaps.csv", extra=["--impute"]).exit_code == 0


def test_one_class_only(folder):
    FRAME.assign(label="yes").to_csv(folder / "one.csv", index=False)
    expect(collect(folder, "one.csv"), 2, "in all")


def test_what_is_refused_has_no_folder_yet(folder):
    result = collect(folder, sizes="0:10")
    expect(result, 2, "is not a rising range")
    assert "run:" not in result.stderr
    assert not (folder / "run").exists()
    assert result.stderr.startswith("data.csv: 40 points to value")
    assert "run: " in collect(folder).stderr


def test_numbers_that_differ_by_rounding_only(folder):
    FRAME.assign(code=[str(10**25 + i) for i in range(40)]).to_csv(folder / "same.csv", index=False)
    expect(collect(folder, "same.csv"), 2, "'code' is 1e+25 in every row", "--drop code")


@pytest.mark.parametrize(
    ("extra", "word"),
    [
        (["--validation", "thirty"], "'thirty' is no file"),
        (["--group-size", "5"], "group_size=5 is given and points are valued"),
        (["--text", "age"], "column 'age' holds numbers"),
    ],
)
def test_options_that_do_not_fit_the_table(folder, extra, word):
    expect(collect(folder, extra=extra), 2, word)


def test_a_path_is_no_run():
    with pytest.raises(apiece.PlanError, match=r"apiece\.open\(path\)"):
        apiece.value("runs/none")
    with pytest.raises(apiece.DataError, match=r"apiece\.open\(path\)"):
        apiece.aggregate("runs/none")


def test_a_class_with_fewer_points_than_needed(folder):
    labels = ["rare"] * 2 + ["yes", "no"] * 19
    FRAME.assign(label=labels).to_csv(folder / "rare.csv", index=False)
    result = collect(folder, "rare.csv")
    expect(result, 2, "rare")
    assert not (folder / "run").exists()


def test_sizes_beyond_the_pool(folder):
    expect(collect(folder, sizes="4:32"), 2, "k_max=32", "Lower k_max")


def test_sizes_too_small_for_the_classes(folder):
    expect(collect(folder, sizes="1:12"), 2, "k_min=1", "2 classes")


def test_sizes_that_are_no_sizes(folder):
    expect(collect(folder, sizes="few"), 2, "100:1000")


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["--model", "logistc"], "Did you mean 'logistic'"),
        (["--metric", "logloss"], "Did you mean 'log_loss'"),
        (["--design", "unifrm"], "Did you mean 'uniform'"),
        (["--engine", "refitt"], "Did you mean 'refit'"),
        (["--model", "ridge"], "regression"),
        (["--points", "0:99"], "points holds"),
        (["--points", "abc"], "names no points"),
        (["--task", "regression"], "label"),
        (["--share", "0"], "share=0"),
    ],
)
def test_words_that_are_not_known_or_do_not_fit(folder, extra, words):
    expect(collect(folder, extra=extra), 2, words)
    assert not (folder / "run").exists()


def test_an_unknown_method_offers_the_nearest(folder):
    collect(folder)
    result = CliRunner().invoke(cli, ["fit", str(folder / "run"), "--method", "liklihood"])
    expect(result, 2, "Did you mean 'likelihood'")


def test_an_unknown_kind_of_value_and_an_unknown_point(folder):
    collect(folder)
    expect(
        CliRunner().invoke(cli, ["value", str(folder / "run"), "--kind", "shaply"]), 2, "shapley"
    )
    expect(CliRunner().invoke(cli, ["show", str(folder / "run"), "--point", "zzz"]), 2, "zzz")


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["--model", "tree"], "another model"),
        (["--metric", "brier"], "another metric"),
        (["--random-state", "2"], "another seed"),
        (["--raw"], "another dataset"),
        (["--design", "uniform"], "another design"),
    ],
)
def test_a_store_of_something_else_is_refused_and_untouched(folder, extra, words):
    collect(folder)
    before = {file: file.read_bytes() for file in (folder / "run").rglob("*") if file.is_file()}
    expect(collect(folder, extra=extra), 1, words, "--to")
    after = {file: file.read_bytes() for file in (folder / "run").rglob("*") if file.is_file()}
    assert after == before


def test_a_damaged_shard_is_named_and_mended_by_collecting_again(folder):
    collect(folder)
    shard = min((folder / "run" / "shards").iterdir())
    whole = shard.read_bytes()
    shard.write_bytes(whole[:50])
    expect(CliRunner().invoke(cli, ["fit", str(folder / "run")]), 1, shard.name, "Collect again")
    result = collect(folder)
    assert result.exit_code == 0
    assert shard.name in result.stderr
    assert shard.read_bytes() == whole


def test_a_folder_that_is_not_a_run(folder):
    expect(CliRunner().invoke(cli, ["fit", str(folder)]), 1, "not a run")


def test_a_place_that_cannot_be_written(folder):
    (folder / "file").write_text("in the way")
    expect(collect(folder, to="file/run"), 1, "cannot write")


def test_an_output_that_cannot_be_written_or_is_of_no_known_kind(folder):
    collect(folder)
    (folder / "file").write_text("in the way")
    out = str(folder / "file" / "values.csv")
    expect(CliRunner().invoke(cli, ["value", str(folder / "run"), "-o", out]), 1, "cannot write")
    out = str(folder / "values.xyz")
    expect(CliRunner().invoke(cli, ["value", str(folder / "run"), "-o", out]), 2, ".parquet")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_a_full_standard_output_is_no_traceback(folder):
    collect(folder)
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-c", "from apiece.cli import main; main()", "value", folder / "run"],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
    assert result.returncode == 1
    assert b"Traceback" not in result.stderr


def test_a_model_that_fails_names_its_task_and_the_rest_is_kept(folder):
    expect(
        collect(folder, extra=["--model", "knn"], sizes="4:12"), 1, "tasks failed", "task ", "(k=4)"
    )
    kept = apiece.open(folder / "run").contributions()
    assert len(kept)
    assert kept.k.min() >= 5


def test_debug_shows_the_traceback(folder):
    result = collect(folder, target="nope", extra=["--debug"])
    assert isinstance(result.exception, apiece.DataError)


@pytest.mark.parametrize(
    ("patched", "error"),
    [
        ("pandas.read_csv", MemoryError("Unable to allocate 1.46 TiB")),
        ("pandas.read_csv", pd.errors.ParserError("C error: out of memory")),
        ("apiece.data._readers.parquet_table", MemoryError("realloc failed")),
        ("numpy.load", MemoryError("Unable to allocate")),
    ],
)
def test_a_lack_of_memory_is_not_blamed_on_the_file(folder, monkeypatch, patched, error):
    FRAME.to_parquet(folder / "data.parquet")
    np.savez(folder / "data.npz", X=np.ones((20, 2)), y=np.arange(20.0))
    suffix = {"numpy.load": "npz", "pandas.read_csv": "csv"}.get(patched, "parquet")

    def fails(*_, **__):
        raise error

    monkeypatch.setattr(patched, fails)
    result = collect(folder, f"data.{suffix}", target=None if suffix == "npz" else "label")
    expect(result, 1, "out of memory")
    assert "Unexpected" not in result.stderr
    assert "damaged" not in result.stderr


def test_a_shard_that_is_a_folder_is_named(folder):
    collect(folder)
    shard = next((folder / "run" / "shards").glob("*.parquet"))
    shard.unlink()
    shard.mkdir()
    for result in (collect(folder), CliRunner().invoke(cli, ["show", str(folder / "run")])):
        expect(result, 1, shard.name)
        assert "Unexpected" not in result.stderr


@pytest.mark.parametrize(
    "source", [{"file": "data.csv", "options": {"unheard_of": 1}}, {"file": 7}, "data.csv", [1]]
)
def test_a_manifest_that_says_nonsense_about_its_data_is_no_surprise(folder, source):
    collect(folder)
    file = folder / "run" / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["dataset"]["source"] = source
    file.write_text(json.dumps(manifest))
    page = str(folder / "page.html")
    for command, *rest in (["show"], ["select", "--take", "2"], ["advise"], ["report", "-o", page]):
        result = CliRunner().invoke(cli, [command, str(folder / "run"), *rest])
        assert "Unexpected" not in result.stderr, (command, result.stderr)
        if not isinstance(source, dict):
            expect(result, 1, "manifest.json")
        elif command == "select":
            assert result.exit_code == 0
            assert "ranked one by one" in result.stderr


def test_select_says_that_it_changed_its_method_because_the_data_file_is_gone(folder):
    collect(folder)
    select = ["select", str(folder / "run"), "--take", "2", "--at", "6"]
    assert "one by one" not in CliRunner().invoke(cli, select).stderr
    (folder / "data.csv").rename(folder / "elsewhere.csv")
    result = CliRunner().invoke(cli, select)
    assert result.exit_code == 0
    assert "so points are ranked one by one: there is no file" in result.stderr
    FRAME.assign(age=0.0).to_csv(folder / "data.csv", index=False)
    result = CliRunner().invoke(cli, select)
    assert "so points are ranked one by one: this is another dataset" in result.stderr
