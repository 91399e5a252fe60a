"""The page of the documentation, made from the numbers of the package, and new numbers in both."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

from apiece.papers import SCALES
from apiece.papers._measured import PACKAGED, Measured, Part
from apiece.papers._page import write_page
from apiece.papers._sources import SOURCES
from apiece.papers._workspace import Workspace

ROOT = Path(__file__).parents[3]
TODAY = {"version": "apiece 9", "commit": "0123abcd", "date": "2030-01-02"}


@pytest.fixture(scope="module")
def tool():
    """The script that puts measured numbers into the package."""
    spec = importlib.util.spec_from_file_location("tool", ROOT / "tools" / "reproduction.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def part(data, model, measured, date="2030-01-01"):
    rows = ({"data": data, "model": model, "measured": measured},)
    return Part(rows, "", TODAY | {"date": date})


def numbers(folder, name):
    return {p.key[:2]: p.rows[0]["measured"] for p in Measured.read(name, folder).parts}


def test_the_page_and_its_tables_follow_from_the_numbers_of_the_package(tmp_path):
    work = Workspace(Path(), Path(), SCALES["paper"], tuple(SOURCES), stored=True)
    pictures = ROOT / "docs" / "images" / "reproduction"
    note = (pictures / "note.txt").read_text(encoding="utf-8").strip()
    page = write_page(work, PACKAGED, tmp_path / "page.md", note)
    blocks = re.compile(r"(<!-- table: .*? -->\n).*?(<!-- /table -->)", re.DOTALL)
    shown = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert blocks.sub(r"\1\2", shown) == page.read_text(encoding="utf-8")
    for table in (tmp_path / "images" / "reproduction").glob("*.csv"):
        assert table.read_bytes() == (pictures / table.name).read_bytes()


def test_new_numbers_and_pictures_replace_those_of_the_package(tool, tmp_path):
    package, results, pictures = (tmp_path / name for name in ("package", "results", "pictures"))
    pictures.mkdir()
    old = (part("IMDB", "MLP", 0.1), part("MAGIC", "MLP", 0.2))
    Measured("figure3", old, ("figure3.png",)).write(package)
    Measured("figure4", old[:1]).write(package)
    made = Measured("figure3", (part("IMDB", "MLP", 0.5), old[1]), ("figure3.png", "figure3-a.png"))
    made.write(results)
    (results / "figure3-a.png").write_bytes(b"drawn")
    assert tool.merge(results, package, pictures) == ["figure3"]
    assert numbers(package, "figure3") == {("IMDB", "MLP"): 0.5, ("MAGIC", "MLP"): 0.2}
    assert numbers(package, "figure4") == {("IMDB", "MLP"): 0.1}
    kept = json.loads((package / "figure3.json").read_text())
    assert kept["images"] == ["figure3.png", "figure3-a.png"]
    assert kept["parts"][0]["by"] == TODAY | {"date": "2030-01-01"}
    assert [path.name for path in pictures.iterdir()] == ["figure3-a.png"]
    assert tool.merge(results, package, pictures) == []


def test_numbers_of_a_later_day_stay_and_missing_ones_are_refused(tool, tmp_path):
    package, results = tmp_path / "package", tmp_path / "results"
    late = part("IMDB", "MLP", 0.9, "2030-02-01")
    Measured("table1", (late, part("MAGIC", "MLP", 0.2))).write(package)
    Measured("table1", (part("IMDB", "MLP", 0.1), part("MAGIC", "MLP", 0.3))).write(results)
    tool.merge(results, package, tmp_path)
    assert numbers(package, "table1") == {("IMDB", "MLP"): 0.9, ("MAGIC", "MLP"): 0.3}
    Measured("table1", (part("IMDB", "MLP", 0.1),)).write(results)
    with pytest.raises(SystemExit, match=r"lacks numbers of table1 about MAGIC: .* --stored"):
        tool.merge(results, package, tmp_path)


def test_a_picture_replaces_those_of_the_same_models_and_fewer_datasets():
    everything = tuple(
        part(data, model, 0.5)
        for data in ("MiniBooNE", "IMDB", "MAGIC")
        for model in ("logistic regression", "MLP")
    )
    images = (
        "figure3.png",
        "figure3-imdb.png",
        "figure3-miniboone-mlp.png",
        "figure3-imdb-mlp.png",
    )
    kept = Measured("figure3", everything, images)
    new = Measured("figure3", (everything[1], everything[5]), ("figure3.png",))
    assert kept.joined(new).images == (
        *("figure3.png", "figure3-imdb.png", "figure3-imdb-mlp.png"),
        "figure3-miniboone-magic-mlp.png",
    )
