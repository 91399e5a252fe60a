from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.testing import assert_array_equal

from apiece.data._cells import as_words, read_cells
from apiece.data._columns import Roles

ROLES = Roles(numeric=("a", "b"), boolean=("c",), categorical=("d",), text=("e",))


def frame(**changes):
    columns = {
        "a": [1, 2, 3],
        "b": [0.5, 1.5, 2.5],
        "c": [True, False, True],
        "d": ["x", "y", "x"],
        "e": ["one", "two", "three"],
    }
    return pd.DataFrame(columns | changes)


def read(table, impute=False):
    return read_cells(table, ROLES, impute=impute, where="the candidates")


def test_cells_are_sorted_by_what_they_are():
    cells = read(frame())
    assert_array_equal(cells.numbers, [[1, 0.5, 1], [2, 1.5, 0], [3, 2.5, 1]])
    assert cells.words["d"].tolist() == ["x", "y", "x"]
    assert cells.texts["e"].tolist() == ["one", "two", "three"]
    assert len(cells) == 3


def test_numbers_are_read_from_any_dtype():
    table = frame(
        a=pd.array([1, 2, 3], dtype="Int8"),
        b=pd.Series(["0.5", "1.5", 2.5], dtype=object),
        c=pd.Series([True, False, True], dtype=object),
    )
    assert_array_equal(read(table).numbers, read(frame()).numbers)


def test_missing_cells_stay_missing_when_they_are_to_be_imputed():
    cells = read(
        frame(a=[1, None, 3], c=[None, False, True], d=["x", None, "x"], e=[None, "two", ""]), True
    )
    assert np.isnan(cells.numbers[1, 0])
    assert np.isnan(cells.numbers[0, 2])
    assert cells.words["d"].tolist() == ["x", None, "x"]
    assert cells.texts["e"].tolist() == ["", "two", ""]


def test_taken_rows_are_copies():
    cells = read(frame())
    taken = cells.take(np.array([2, 0]))
    taken.numbers[:] = 0
    assert_array_equal(cells.numbers, read(frame()).numbers)
    assert taken.words["d"].tolist() == ["x", "x"]
    assert taken.texts["e"].tolist() == ["three", "one"]


def test_the_frame_is_left_alone():
    table = pd.DataFrame({"a": [1.0, 2.0]})
    cells = read_cells(table, Roles(numeric=("a",)), impute=False, where="the table")
    cells.numbers[:] = 9
    assert table["a"].tolist() == [1.0, 2.0]


def test_categories_read_the_same_whatever_stores_them():
    assert as_words(pd.Series([1, 2])).tolist() == ["1", "2"]
    assert as_words(pd.Series([1.0, None, 2.0])).tolist() == ["1", None, "2"]
    assert as_words(pd.Series(["1", "2"])).tolist() == ["1", "2"]
    assert as_words(pd.Series([True, None], dtype=object)).tolist() == ["True", None]
    assert as_words(pd.Series(pd.Categorical(["b", None, "a"]))).tolist() == ["b", None, "a"]
    assert as_words(pd.Series(pd.array([1, None], dtype="Int64"))).tolist() == ["1", None]


def test_words_among_numbers_are_located(complaint):
    table = frame(a=["1", "unknown", "3"])
    table.index = [10, 11, 12]
    said = complaint(read, table)
    assert "column 'a' is numeric, but 1 of 3 values in the candidates are not" in said
    assert "'unknown' at row 11" in said
    assert "drop=['a'], --drop a" in said
    assert "categorical=['a'], --categorical a" in said


def test_missing_cells_are_counted_by_column(complaint):
    said = complaint(read, frame(b=[None, None, 1.0], d=["x", None, "y"], e=["a", "b", None]))
    assert "'b' (2), 'd' (1), 'e' (1)" in said
    assert "impute=True (--impute)" in said
    assert "--drop b" in said


def test_infinite_numbers_are_refused_even_when_imputing(complaint):
    said = complaint(read, frame(b=[np.inf, 1.0, -np.inf]), True)
    assert "infinite values in column 'b' (2)" in said


def test_absent_columns_are_named(complaint):
    said = complaint(read, frame()[["a", "b", "c"]])
    assert "the candidates lack the column 'd', 'e'" in said


def test_further_columns_are_ignored():
    assert_array_equal(read(frame(z=["?", "?", "?"])).numbers, read(frame()).numbers)
