from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import apiece
from apiece.data import Dataset
from apiece.data._ids import as_ids, continued_ids, find_ids


@pytest.mark.parametrize(
    ("values", "expected", "kind"),
    [
        ([3, 1, 2], [3, 1, 2], "i"),
        (np.array([3, 1], dtype=np.uint8), [3, 1], "i"),
        ([3.0, 1.0], [3, 1], "i"),
        ([1.5, 2.5], ["1.5", "2.5"], "U"),
        (("a", "b"), ["a", "b"], "U"),
        (pd.Series(["b", "a"], index=[7, 9]), ["b", "a"], "U"),
        (pd.Series([1, "x"], dtype=object), ["1", "x"], "U"),
        (pd.array([5, 6], dtype="Int64"), [5, 6], "i"),
        (pd.Series(["a", "b"], dtype="category"), ["a", "b"], "U"),
    ],
)
def test_ids_are_whole_numbers_or_strings(values, expected, kind):
    ids = as_ids(values, len(expected), what="ids")
    assert ids.tolist() == expected
    assert ids.dtype.kind == kind


def test_a_wrong_number_of_ids_is_refused(complaint):
    said = complaint(as_ids, [1, 2], 3, what="ids")
    assert "2 rows" in said
    assert "3" in said


def test_duplicate_ids_are_named(complaint):
    said = complaint(as_ids, ["a", "b", "a", "b", "c"], 5, what="column 'id'")
    assert "repeats 'a', 'b'" in said
    assert "column 'id'" in said


def test_missing_ids_are_counted(complaint):
    assert "1 rows, first at row 1" in complaint(as_ids, ["a", None], 2, what="ids")


def test_a_text_is_no_id(complaint):
    said = complaint(as_ids, ["a", "word " * 100], 2, what="ids")
    assert "500 characters" in said
    assert "row 1" in said


def test_numbers_go_on_after_the_largest_of_all():
    ids = continued_ids((np.array([3, 9]), np.array([11, 2])), 3, n_before=0)
    assert ids.tolist() == [12, 13, 14]


def test_strings_count_candidates():
    ids = continued_ids((np.array(["a"]), None), 2, n_before=4)
    assert ids.tolist() == ["candidate-4", "candidate-5"]


@pytest.mark.parametrize(
    ("wanted", "ids", "expected"),
    [
        ([30, 10], [10, 20, 30], [2, 0]),
        (20, [10, 20, 30], [1]),
        (["30", "10"], [10, 20, 30], [2, 0]),
        (np.array([10.0]), [10, 20], [0]),
        ("b", ["a", "b"], [1]),
        ([7], ["5", "7"], [1]),
        ([-1], [-1, 1], [0]),
        ([], [1, 2], []),
    ],
)
def test_ids_are_found_however_they_are_written(wanted, ids, expected):
    found = find_ids(wanted, np.array(ids), others=None)
    assert found.tolist() == expected
    assert found.dtype == np.int64


def test_unknown_ids_are_named_and_validation_rows_explained(complaint):
    said = complaint(find_ids, [1, 5, 99], np.array([1, 2, 3]), others=np.array([5, 6]))
    assert "5, 99" in said
    assert "(5 in the validation set)" in said
    assert "'x'" in complaint(find_ids, "x", np.array([1, 2]), others=None)
    assert "1.5" in complaint(find_ids, 1.5, np.array([1, 2]), others=None)


def test_integer_ids_stay_integers_through_runs_laws_tables_and_files(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    frame = frame.assign(y=np.arange(60) % 2).sample(frac=1, random_state=0).iloc[:50]
    dataset = Dataset.from_pandas(frame, target="y", standardize=False)
    run = apiece.collect(dataset, sizes=(8, 16), samples=6, random_state=0, to=tmp_path / "run")
    laws = apiece.fit(run, method="likelihood", family="series24")
    laws.save(tmp_path / "laws.parquet")
    for held in (laws, apiece.Laws.load(tmp_path / "laws.parquet")):
        for table in (held.table(), apiece.value(held)):
            assert table.index.dtype == np.int64
            found = frame.loc[table.index]
            assert_array_equal(found[["a", "b"]], dataset.X[dataset.positions(table.index)])
    assert apiece.open_run(tmp_path / "run").points["id"].dtype == np.int64
