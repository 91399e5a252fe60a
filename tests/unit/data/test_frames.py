from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose, assert_array_equal

from apiece.data import _frames
from apiece.data._cells import read_cells
from apiece.data._columns import Roles
from apiece.data._frames import FrameEncoder

ROLES = Roles(numeric=("age",), boolean=("new",), categorical=("city",), text=("note",))
POOL = pd.DataFrame(
    {
        "age": [10.0, 20.0, 30.0, 40.0],
        "new": [True, False, False, True],
        "city": ["Rome", "Oslo", "Rome", "Rome"],
        "note": ["good film", "bad film", "good plot", "bad plot good"],
    }
)


def cells(frame, impute=False, roles=ROLES):
    return read_cells(frame, roles, impute=impute, where="the table")


def fit(frame=POOL, roles=ROLES, **options):
    settings = {"standardize": True, "impute": False, "text_features": 2, "seed": 0} | options
    return FrameEncoder.fit(cells(frame, settings["impute"], roles), roles, **settings)


def test_blocks_stand_side_by_side_under_their_names():
    encoder, X = fit()
    assert encoder.feature_names == (
        "age",
        "new",
        "city=Oslo",
        "city=Rome",
        "note[0]",
        "note[1]",
    )
    assert_allclose(X[:, 0], (POOL["age"] - 25) / np.sqrt(125))
    assert_array_equal(X[:, 1], [1, 0, 0, 1])
    assert_array_equal(X[:, 2:4], [[0, 1], [1, 0], [0, 1], [0, 1]])
    assert np.abs(X[:, 4:]).sum() > 0
    assert encoder.describe() == {
        "numeric": 1,
        "boolean": ["new"],
        "categorical": {"city": 2},
        "text": {"note": 2},
    }


def test_the_same_rows_get_the_same_features_later():
    encoder, X = fit()
    assert_array_equal(encoder.encode(cells(POOL)), X)
    assert_array_equal(encoder.encode(cells(POOL.iloc[[2]])), X[[2]])


def test_an_unknown_category_has_none_of_the_features():
    encoder, _ = fit()
    row, known = encoder.encode(cells(POOL.iloc[[1, 1]].assign(city=["Paris", "Rome"])))
    assert_array_equal(row[2:4], [0, 0])
    assert_array_equal(row[[0, 1, 4, 5]], known[[0, 1, 4, 5]])


def test_numbers_stay_as_they_are_without_standardising():
    _, X = fit(standardize=False)
    assert_array_equal(X[:, 0], POOL["age"])


def test_numeric_tables_need_no_second_array():
    roles = Roles(numeric=("age",))
    encoder, X = fit(roles=roles, standardize=False)
    assert encoder.feature_names == ("age",)
    assert_array_equal(X, POOL[["age"]])


def test_missing_cells_are_filled_from_the_pool():
    holed = POOL.assign(
        age=[10.0, None, 30.0, 50.0],
        new=pd.array([None, False, False, True], dtype="boolean"),
        city=["Rome", None, "Oslo", "Rome"],
        note=["good film", None, "bad plot", "good plot"],
    )
    encoder, X = fit(holed, impute=True, standardize=False)
    assert X[1, 0] == 30.0
    assert X[0, 1] == 0.0
    assert_array_equal(X[1, 2:4], [0, 1])
    assert_array_equal(X[1, 4:], [0, 0])
    blank = pd.DataFrame({"age": [None], "new": [None], "city": [None], "note": [None]})
    assert_array_equal(encoder.encode(cells(blank, True))[0], [30, 0, 0, 1, 0, 0])


def test_a_category_column_without_any_value_is_refused(complaint):
    said = complaint(fit, POOL.assign(city=pd.Series([None] * 4, dtype=object)), impute=True)
    assert "'city'" in said


def test_features_beyond_memory_are_refused_with_the_widest_column(complaint, monkeypatch):
    monkeypatch.setattr(_frames, "_MOST_ENTRIES", 10)
    said = complaint(fit)
    assert "4 rows become 6 features" in said
    assert "--drop city" in said


def test_text_columns_have_seeds_of_their_own():
    roles = Roles(text=("note", "twin"))
    _, X = fit(POOL.assign(twin=POOL["note"]), roles=roles)
    assert_allclose(np.abs(X[:, :2]), np.abs(X[:, 2:]), atol=1e-8)
