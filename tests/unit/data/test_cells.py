from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from apiece.data._cells import as_words, check_numbers, read_cells
from apiece.data._columns import Roles

ROLES = Roles(numeric=("a", "b"), boolean=("c",), categorical=("d",), text=("e",))

NUMBERS = ["a", "b", "c"]


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
    assert_array_equal(cells[["a", "b", "c"]], [[1, 0.5, 1], [2, 1.5, 0], [3, 2.5, 1]])
    assert cells["d"].tolist() == ["x", "y", "x"]
    assert cells["e"].tolist() == ["one", "two", "three"]


def test_numbers_are_read_from_any_dtype():
    table = frame(
        a=pd.array([1, 2, 3], dtype="Int8"),
        b=pd.Series(["0.5", "1.5", 2.5], dtype=object),
        c=pd.Series([True, False, True], dtype=object),
    )
    assert_array_equal(read(table)[NUMBERS], read(frame())[NUMBERS])


def test_missing_cells_stay_missing_when_they_are_to_be_imputed():
    cells = read(
        frame(a=[1, None, 3], c=[None, False, True], d=["x", None, "x"], e=[None, "two", ""]), True
    )
    assert np.isnan(cells["a"][1])
    assert np.isnan(cells["c"][0])
    assert cells["d"].isna().tolist() == [False, True, False]
    assert cells["e"].tolist() == ["", "two", ""]


def test_the_frame_is_left_alone():
    table = pd.DataFrame({"a": [1.0, 2.0]})
    cells = read_cells(table, Roles(numeric=("a",)), impute=False, where="the table")
    cells[:] = 9
    assert table["a"].tolist() == [1.0, 2.0]


def words(column):
    return [None if pd.isna(word) else word for word in as_words(column)]


def test_categories_read_the_same_whatever_stores_them():
    assert as_words(pd.Series([1, 2])).tolist() == ["1", "2"]
    assert words(pd.Series([1.0, None, 2.0])) == ["1", None, "2"]
    assert as_words(pd.Series(["1", "2"])).tolist() == ["1", "2"]
    assert words(pd.Series([True, None], dtype=object)) == ["True", None]
    assert words(pd.Series(pd.Categorical(["b", None, "a"]))) == ["b", None, "a"]
    assert words(pd.Series(pd.array([1, None], dtype="Int64"))) == ["1", None]


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
    assert "the candidates lack the columns 'd', 'e'" in said


def test_further_columns_are_ignored():
    assert_array_equal(read(frame(z=["?", "?", "?"])), read(frame()))


NAMES = ("a", "b", "c")


def matrix(n=50, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) * [1.0, 100.0, 1e-3] + [5.0, -3.0, 0.0]


def check(X, impute=False, is_table=False):
    check_numbers(X, NAMES, where="the rows of X", impute=impute, is_table=is_table)


def test_missing_numbers_are_counted_by_feature(complaint):
    X = matrix()
    X[[1, 2], 1] = np.nan
    X[4, 2] = np.nan
    said = complaint(check, X)
    assert "'b' (2), 'c' (1)" in said
    assert "impute=True (--impute)" in said
    assert "drop" not in said
    assert "--drop b" in complaint(check, X, is_table=True)
    check(X, impute=True)


@pytest.mark.parametrize("impute", [True, False])
def test_infinite_numbers_are_refused_and_never_imputed(complaint, impute):
    X = matrix()
    X[0, 0], X[1, 0] = np.inf, -np.inf
    said = complaint(check, X, impute=impute)
    assert "infinite values in feature 'a' (2)" in said
    assert "impute" not in said


def test_large_finite_numbers_whose_sum_overflows_are_fine():
    check(np.full((10, 3), 1e308))
    check(np.full((10, 3), 6e4, dtype=np.float16))
    check(np.full((10, 3), 2**62, dtype=np.int64))
