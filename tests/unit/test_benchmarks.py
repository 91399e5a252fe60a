"""Benchmarks write files, and pages show what the files hold."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "benchmarks" / "results").glob("*.json"))


@pytest.fixture
def make(monkeypatch, tmp_path):
    """Return a maker of results that go to a folder of their own."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.setenv("BENCHMARK_RESULTS", str(tmp_path / "results"))
    sys.modules.pop("_results", None)
    import _results

    yield _results.Results
    for name in ("_results", "tables"):
        sys.modules.pop(name, None)


def tables(root, *words):
    command = [sys.executable, ROOT / "benchmarks/tables.py", "--root", root, *words]
    results = ["--results", root / "results"]
    return subprocess.run([*command, *results], capture_output=True, text=True, check=False)


def page_with(root, marker):
    (root / "docs").mkdir(exist_ok=True)
    page = root / "docs" / "speed.md"
    page.write_text(f"# Speed\n\n<!-- table: {marker} -->\n<!-- /table -->\n\nEnd.\n")
    return page


def test_a_row_is_printed_and_in_the_file_as_soon_as_it_is_added(make, tmp_path, capsys):
    results = make("speed", {"data": "{}", "k": "{:,}", "r": "{:.2f} ± {:.2f}"}, {"folder": ROOT})
    results.add("higgs", np.int64(1000), [np.float64(0.5), np.nan])
    assert capsys.readouterr().out.splitlines()[-1] == "| higgs | 1,000 | 0.50 ± nan |"
    content = json.loads((tmp_path / "results" / "speed.json").read_text())
    assert content["rows"] == [{"data": "higgs", "k": 1000, "r": [0.5, None]}]
    assert content["settings"] == {"folder": ROOT.name}
    assert str(ROOT) not in json.dumps(content)


def test_a_row_needs_a_cell_for_each_column(make):
    with pytest.raises(ValueError, match="shorter"):
        make("speed", {"data": "{}", "k": "{:,}"}, {}).add("higgs")


def test_a_page_gets_the_rows_and_columns_that_its_marker_names(make, tmp_path):
    results = make("speed", {"data": "{}", "k": "{:,}", "ratio": "{:.1f}"}, {}, chosen_on=["higgs"])
    results.content["reported_on"] = ["higgs", "imdb"]
    for data, k, ratio in (("higgs", 100, 2.0), ("imdb", 100, 3.0), ("imdb", 1000, None)):
        results.add(data, k, ratio)
    page = page_with(tmp_path, "speed data=imdb columns=k,ratio")
    assert tables(tmp_path, "--check").returncode == 1
    assert tables(tmp_path).returncode == 0
    text = page.read_text()
    assert "| k | ratio |\n| --- | --- |\n| 100 | 3.0 |\n| 1,000 |  |\n" in text
    assert "*Command and all rows: [speed](benchmarks.md#speed).*" in text
    assert text.endswith("<!-- /table -->\n\nEnd.\n")
    assert tables(tmp_path, "--check").returncode == 0
    page.write_text(text.replace("3.0", "3.1"))
    assert "docs/speed.md" in tables(tmp_path, "--check").stderr


def test_all_rows_of_a_file_are_shown_with_where_they_come_from(make):
    results = make("speed", {"data": "{}", "k": "{:,}"}, {}, chosen_on=["higgs"])
    results.content["reported_on"] = ["higgs", "imdb"]
    results.add("higgs", 100)
    results.add("imdb", 1000)
    from tables import everything

    text = everything(results.content, "results/speed.json")
    assert results.content["command"] in text
    assert "chosen on higgs; sets that had no part in choosing: imdb." in text
    assert "| data | k |\n| --- | --- |\n| higgs | 100 |\n| imdb | 1,000 |" in text
    assert "<summary>2 rows</summary>" in text
    assert 'href="results/speed.json"' in text


def test_the_page_of_benchmarks_has_every_file_under_its_name():
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for file in FILES:
        section = text.partition(f"\n## {file.stem}\n")[2].partition("\n## ")[0]
        assert f"<!-- results: {file.stem} -->" in section, file.stem


def test_a_marker_may_choose_rows_by_a_pattern(make, tmp_path):
    results = make("theory", {"what": "{}"}, {})
    for what in ("constant at k = 50", "constant at k = 400", "exponent"):
        results.add(what)
    page = page_with(tmp_path, 'theory what="exponent|.* = 400"')
    assert tables(tmp_path).returncode == 0
    assert "| constant at k = 400 |\n| exponent |\n" in page.read_text()
    assert "k = 50" not in page.read_text()


def test_a_marker_without_a_file_is_refused(tmp_path):
    page_with(tmp_path, "absent")
    assert "no absent.json" in tables(tmp_path).stderr


def test_the_documentation_agrees_with_the_result_files():
    command = [sys.executable, ROOT / "benchmarks/tables.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_result_file_says_where_it_comes_from(file):
    content = json.loads(file.read_text(encoding="utf-8"))
    assert content["name"] == file.stem
    assert re.fullmatch(r"[0-9a-f]{40}", content["commit"])
    assert (ROOT / content["command"].split()[1]).exists()
    assert content["machine"]["cpu_count"] >= 1
    assert {"python", "numpy", "scikit-learn"} <= set(content["versions"])
    assert content["rows"]
    assert all(list(row) == list(content["columns"]) for row in content["rows"])


def test_every_benchmark_keeps_its_results():
    for file in (ROOT / "benchmarks").glob("[!_]*.py"):
        if file.stem != "tables":
            assert "Results(" in file.read_text(encoding="utf-8"), file.name
