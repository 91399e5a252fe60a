"""Tables fit the terminal, and a number is never broken."""

from __future__ import annotations

import re

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from apiece.cli import cli
from apiece.cli._print import (
    format_numbers,
    lines_of,
    prepare_folder,
    show_ends,
    show_table,
    wrapped,
    write_table,
)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        rng.normal(size=(5, 7)) * 1e-5,
        columns=["value", "low", "high", "stderr", "rank_low", "rank_high", "p_top"],
        index=pd.Index([f"row {i}" for i in range(5)], name="point"),
    )
    return frame.assign(label="yes", reason="models that have not seen the row say no, not yes")


def numbers(line):
    return re.findall(r"-?\d\.\d+e-\d\d", line)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
def test_lines_fit_and_numbers_stay_whole(table, width):
    lines, left_out = lines_of(table, width)
    assert max(map(len, lines)) <= width
    whole = format_numbers(table["value"])
    for line, value in zip(lines[1:], whole, strict=True):
        assert value in line.split()
    shown = lines[0].split()
    assert set(shown) | set(left_out) == {"point", *table.columns}
    assert not set(shown) & set(left_out)
    assert {"point", "value"} <= set(shown)


def test_a_pipe_gets_every_column_and_every_letter(table):
    lines, left_out = lines_of(table, None)
    assert left_out == []
    assert lines[1].endswith("say no, not yes")
    assert len(numbers(lines[1])) == 7


def test_what_matters_least_goes_first(table):
    assert lines_of(table, 80)[1][:1] in (["reason"], ["stderr"])
    assert "value" not in lines_of(table, 30)[1]


def test_texts_are_shortened_before_columns_are_left_out(table):
    short = table[["value", "label", "reason"]]
    lines, left_out = lines_of(short, 60)
    assert left_out == []
    assert lines[1].endswith("…")


def test_wide_characters_are_counted_by_the_cells_they_take():
    table = pd.DataFrame({"text": ["漢字かな交じり文" * 8, "a"], "value": [1.0, 2.0]})
    from rich.cells import cell_len

    lines, _ = lines_of(table, 40)
    assert max(map(cell_len, lines)) <= 40


def test_control_characters_do_not_reach_the_terminal():
    lines, _ = lines_of(pd.DataFrame({"text": ["a\x1b[2J\nb"]}), None)
    assert lines[1] == r"a\u001b[2J\u000ab"


def test_csv_keeps_text_from_being_a_formula_and_numbers_as_they_are(tmp_path):
    table = pd.DataFrame({"text": ["=1+1", "-5", "plain"], "n": [-1, 2, 3]})
    write_table(table, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "text,n\n'=1+1,-1\n-5,2\nplain,3\n"


def test_a_folder_that_is_far_from_there_is_an_error(tmp_path):
    import click

    with pytest.raises(click.BadParameter, match="is not a folder"):
        prepare_folder(tmp_path / "a" / "b" / "t.csv")
    prepare_folder(tmp_path / "a" / "t.csv")
    assert (tmp_path / "a").is_dir()


@pytest.mark.parametrize("width", [80, 60])
def test_help_lists_every_command_once_within_the_terminal(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    said = CliRunner().invoke(cli, ["--help"], terminal_width=width).output
    assert max(map(len, said.splitlines())) <= width
    for name in cli.commands:
        assert len(re.findall(rf"^  {name} ", said, re.MULTILINE)) == 1
    assert "More" not in said  # every command belongs to a task
    assert width < 80 or len(said.splitlines()) <= 45


@pytest.mark.parametrize("name", cli.commands)
def test_help_of_a_command_fits_a_terminal_of_80_columns(name):
    said = CliRunner().invoke(cli, [name, "--help"], terminal_width=80).output
    assert [line for line in said.splitlines() if len(line) > 80] == []


def test_a_value_and_its_interval_have_equally_many_decimals():
    table = pd.DataFrame({"value": [0.0015], "low": [-3e-5], "high": [4e-5], "stderr": [2e-5]})
    cells = lines_of(table, None)[0][1].split()
    assert cells == ["0.00150", "-0.00003", "0.00004", "0.00002"]


def test_a_share_next_to_dollars_keeps_its_digits():
    table = pd.DataFrame({"value": [299_697.2], "r2": [0.005195], "low": [176_424.0]})
    assert lines_of(table, None)[0][1].split() == ["299,697", "0.005195", "176,424"]


def test_small_numbers_next_to_a_large_one_keep_two_digits_of_the_median():
    assert format_numbers([-207.4123, 0.4242, 0.9812]) == ["-207.41", "0.42", "0.98"]
    assert format_numbers([1.23456789, 1e-9, 2e-9])[0] == "1.234568"


def test_rows_in_units_of_their_own_are_written_one_by_one():
    table = pd.DataFrame({"value": [315.0, 1.408]}, index=["b", "lambda"]).astype(object)
    assert [line.split()[-1] for line in lines_of(table, None)[0]] == ["value", "315", "1.408"]


@pytest.mark.parametrize(("asked", "has_escapes"), [("", True), ("1", False)])
def test_no_color_leaves_no_escape_sequence(monkeypatch, asked, has_escapes):
    monkeypatch.setenv("NO_COLOR", asked)
    shown = CliRunner().invoke(_shows_a_table, color=True).output
    assert ("\x1b" in shown) == has_escapes
    assert shown.count("\x1b") in (0, 2)  # only the head is bold


@click.command()
def _shows_a_table():
    show_table(pd.DataFrame({"value": [0.5, 0.25]}))


def test_numbers_of_a_column_have_as_many_decimals_and_dollars_have_no_exponent():
    table = pd.DataFrame({"price": [166_250.0, 9_063.5], "p": [0.25, 0.0001]})
    lines, _ = lines_of(table, None)
    assert lines[1].split() == ["166,250", "0.2500"]
    assert lines[2].split()[1] == "0.0001"
    assert format_numbers([float("nan"), float("inf"), 0.0]) == ["-", "inf", "0"]
    assert format_numbers([-0.00000001, 0.5]) == ["0.0", "0.5"]


def test_no_row_is_at_both_ends(capsys):
    # The best row by its lower end is the worst by its upper end, too.
    table = pd.DataFrame(
        {"value": [2.0, 1.0, 3.0], "low": [1.9, 0.0, 0.1], "high": [2.1, 5.0, 6.0]}
    )
    show_ends(table.rename_axis("point"), 10, 0.9)
    shown = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert [word for word in shown if word.isdigit()] == ["0", "2", "1"]


@pytest.mark.parametrize("words", [["advize"], ["experiment", "mislable"]])
def test_an_unknown_command_offers_the_nearest(words):
    result = CliRunner().invoke(cli, [*words, "reviews.csv"])
    nearest = {"advize": "advise", "mislable": "mislabel"}[words[-1]]
    assert result.exit_code == 2
    assert f"there is no command {words[-1]!r}" in result.stderr
    assert f"Did you mean {nearest!r}?" in result.stderr


def test_sentences_break_between_words_and_commands_stay_whole():
    text = "a sentence that is longer than the line\n  apiece report a.csv --target label"
    lines = wrapped(text, 16).split("\n")
    assert lines[-1] == "  apiece report a.csv --target label"
    assert max(map(len, lines[:-1])) <= 16
    assert " ".join(lines[:-1]) == text.split("\n")[0]
