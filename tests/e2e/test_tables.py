"""Every command that answers with a table writes it as CSV, JSON or Parquet, and explains it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from apiece.cli import cli

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "tables.md"
MAKERS = {"collect", "fit", "demo", "plan", "report", "serve"}  # a run, laws, an estimate or a page
READ = ("DATA", "--target", "label", "--ids", "name", "--validation", "40")
TRY = ("--samples", "8", "--repeats", "2")
# The words of each command, and where in its JSON the rows are (None: in the file alone).
TABLES = {
    "contributions": (("RUN",), ""),
    "aggregate": (("RUN",), ""),
    "aggregate --at": (("RUN", "--at", "200,400"), ""),
    "backtest": (("RUN",), ""),
    "show": (("RUN",), None),
    "show --point": (("RUN", "--point", "p001"), "curve"),
    "value": (("RUN", "--top", "5"), ""),
    "value --source": (("RUN", "--source", "samples"), ""),
    "select": (("RUN", "--at", "30"), ""),
    "select --redundancy": (
        *(("RUN", "--at", "30", "--take", "2", "--redundancy", "aware", "--data", *READ), ""),
    ),
    "advise": (("RUN", "--data", *READ), "rows"),
    "advise --target": (READ, "rows"),
    "suspects": ((*READ, "--model", "logistic"), ""),
    "compare": (("RUN", "RUN"), ""),
    "crossings": (("RUN",), ""),
    "exchange": (("GROUPS",), ""),
    "movers": (("RUN",), ""),
    "means": (("RUN",), ""),
    "baseline": (READ, ""),
    "boundary": (READ, ""),
    "boundary --laws": ((*READ, "--laws", "RUN"), ""),
    "theory": (READ, ""),
    "experiment addition": (
        *((*READ, *TRY, "--n-candidates", "20", "--take", "2", "--at", "10,30"), None),
    ),
    "experiment acquire": ((*READ, *TRY, "--n-candidates", "20", "--at", "20"), None),
    "experiment removal": ((*READ, *TRY, "--points", "60", "--shares", "0.1"), None),
    "experiment mislabel": ((*READ, *TRY, "--points", "60", "--flipped", "0.1"), None),
    "reproduce --estimate": (("table1", "--scale", "smoke", "--estimate", "--to", "TO"), "runs"),
}


def leaves(group: click.Group, before: str = ""):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, f"{name} ")
        else:
            yield before + name, command


def run(*words):
    return CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A table of two classes in three towns, a run of its points and a run of its towns."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    y = np.arange(140) % 2
    frame = pd.DataFrame(rng.normal(size=(140, 3)) + y[:, None], columns=list("abc"))
    frame["town"] = rng.choice(["Bern", "Basel", "Chur"], 140)
    frame["name"] = [f"p{i:03d}" for i in range(140)]
    frame["label"] = np.where(y == 1, "yes", "no")
    frame.drop(columns="town").to_csv(folder / "data.csv", index=False)
    frame.to_csv(folder / "towns.csv", index=False)
    known = {"DATA": folder / "data.csv", "RUN": folder / "run", "TO": folder / "to"}
    known["GROUPS"] = folder / "groups"
    words = ("--sizes", "10:80", "--samples", "20", "--random-state", "0", "--jobs", "1", "--quiet")
    read = [known.get(word, word) for word in READ]
    assert run("collect", *read, *words, "--to", known["RUN"]).exit_code == 0
    assert run("fit", known["RUN"], "--family", "power").exit_code == 0
    read[0] = folder / "towns.csv"
    towns = (*words, "--groups", "town", "--group-size", "5", "--to", known["GROUPS"])
    said = run("collect", *read, *towns)
    assert said.exit_code == 0, said.output
    return known


def test_every_command_makes_something_else_or_is_tried_here():
    tried = {" ".join(re.sub(r" --.*", "", name).split()) for name in TABLES}
    assert {name for name, _ in leaves(cli)} == tried | MAKERS


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_json_and_a_file_with_columns_that_the_reference_explains(
    name, places, tmp_path
):
    words, key = TABLES[name]
    words = [places.get(word, word) for word in words]
    command = (*re.sub(r" --.*", "", name).split(), *words, "--quiet")
    said = run(*command, "--json", "-o", tmp_path / "table.csv")
    assert said.exit_code == 0, said.output
    answer = json.loads(said.stdout)
    table = pd.read_csv(tmp_path / "table.csv")
    assert len(table)
    explained = set(re.findall(r"`([a-z_0-9]+)`", REFERENCE.read_text(encoding="utf-8")))
    assert set(table.columns) <= explained
    if key is None:
        return
    rows = answer[key] if key else answer
    assert [name for name in rows[0] if name != "scope"] == list(table.columns)
    assert len(rows) == len(table)
    for column in table.select_dtypes("number"):
        listed = [np.nan if row[column] is None else row[column] for row in rows]
        finite = table[column].replace([np.inf, -np.inf], np.nan)
        np.testing.assert_allclose(np.array(listed, dtype=float), finite, rtol=1e-12)


def test_the_ending_of_the_file_decides_and_a_strange_one_is_refused(places, tmp_path):
    for ending in ("csv", "json", "parquet"):
        path = tmp_path / f"means.{ending}"
        assert run("means", places["RUN"], "-o", path, "--quiet").exit_code == 0
    csv = pd.read_csv(tmp_path / "means.csv")
    as_json = pd.DataFrame(json.loads((tmp_path / "means.json").read_text(encoding="utf-8")))
    pd.testing.assert_frame_equal(csv, as_json, check_dtype=False)
    pd.testing.assert_frame_equal(
        csv, pd.read_parquet(tmp_path / "means.parquet"), check_dtype=False
    )
    said = run("means", places["RUN"], "-o", tmp_path / "means.xlsx", "--quiet")
    assert said.exit_code == 2
    assert "expected .csv, .json or .parquet" in said.output
    assert not (tmp_path / "means.xlsx").exists()
