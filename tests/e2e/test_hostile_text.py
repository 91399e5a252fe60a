"""Ids, labels and columns of strangers: no terminal obeys them, no spreadsheet computes them."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import apiece
from apiece._base.text import printable, without_formula
from apiece.cli import cli

CLEAR, CLIPBOARD, C1 = "\x1b[2J", "\x1b]52;c;cm0gLXJm\x07", "\x9b31m"
FORMULAS = ["=HYPERLINK(1)", "+cmd|' /C calc'!A0", "-2+3+cmd", "@SUM(1)", "\t=1", "\r=1"]
COMMANDS = [
    "show",
    "show --json",
    "show --point 0{clear}",
    "show --point nobody{clear}",
    "fit",
    "value",
    "value --json",
    "select --at 20 --take 5",
    "movers",
    "crossings",
    "means",
    "contributions",
    "exchange --pair 0{clear} 1{clear}",
    "suspects",
    "advise",
    "report",
    "baseline",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    n, rng = 60, np.random.default_rng(0)
    codes = np.arange(n) % 2
    frame = pd.DataFrame(
        {
            "name": [f"{i}{CLEAR}" for i in range(n)],
            f"=size{CLEAR}": rng.normal(size=n) + codes,
            f"colour{CLIPBOARD}": rng.normal(size=n) + codes,
            "label": np.where(codes == 1, f"=yes{C1}", f"no\u202e{CLEAR}"),
        }
    )
    frame.to_csv(folder / "data.csv", index=False)
    result = invoke(
        "collect", folder / "data.csv", "--to", folder / "run", *reading(), "--samples", 8
    )
    assert result.exit_code == 0, result.output
    assert_quiet(result)
    return folder


def reading():
    return ["--target", "label", "--ids", "name", "--sizes", "8:24", "--random-state", "0"]


def invoke(*words):
    return CliRunner().invoke(cli, [str(word) for word in words])


def assert_quiet(result):
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", result.stdout + result.stderr)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_escape_sequence_reaches_the_terminal(folder, command, monkeypatch):
    monkeypatch.chdir(folder)
    name, *words = command.format(clear=CLEAR).split(" ")
    if name in ("suspects", "baseline"):
        words = ["data.csv", "--target", "label", "--ids", "name", *words]
    else:
        words = ["run", *words]
    result = invoke(name, *words)
    assert "Unexpected" not in result.stderr
    assert result.exit_code == (2 if "nobody" in command else 0), result.output
    assert_quiet(result)
    if "--json" in words:
        json.loads(result.stdout)
    elif name == "value":
        assert "\\u001b[2J" in result.stdout


def test_json_keeps_the_ids_as_they_are(folder):
    points = json.loads(invoke("value", folder / "run", "--json").stdout)
    assert {str(row["point"]) for row in points} <= {f"{i}{CLEAR}" for i in range(60)}


def test_commands_print_in_one_place():
    for file in (Path(apiece.__file__).parent / "cli").glob("*.py"):
        if file.name != "_print.py":
            assert not re.search(r"click\.s?echo\(|\bprint\(|Console\(", file.read_text()), file


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_only_text_in_an_exported_csv(text, tmp_path):
    from apiece.cli._print import write_table

    index = pd.Index([text, "plain", "-5", "+1e3"], name=text)
    table = pd.DataFrame({"label": [text, "-0.5", "ok", None], "value": -1.5}, index=index)
    write_table(table, tmp_path / "out.csv")
    with open(tmp_path / "out.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert [row[0] for row in rows] == [f"'{text}", f"'{text}", "plain", "-5", "+1e3"]
    assert [row[1] for row in rows[1:]] == [f"'{text}", "-0.5", "ok", ""]
    assert {row[2] for row in rows[1:]} == {"-1.5"}
    write_table(table, tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text())[0][text] == text
    write_table(table, tmp_path / "out.parquet")
    assert pd.read_parquet(tmp_path / "out.parquet")[text][0] == text


def test_every_character_that_a_terminal_may_obey_is_written_out():
    assert printable("a\tb\n\u00e9\u4e2d") == "a\tb\n\u00e9\u4e2d"
    assert printable("\x1b\x07\x7f\x9b\u202e\ud800") == (
        "\\u001b\\u0007\\u007f\\u009b\\u202e\\ud800"
    )
    assert without_formula("\uff1d1") == "'\uff1d1"
