from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from apiece.data import Dataset

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.array(["no", "yes"])[np.arange(40) % 2]
NEW = (RNG.normal(size=(5, 3)), ["yes", "no", "no", "yes", "no"])


@pytest.fixture
def dataset():
    return Dataset.from_arrays(X, Y, validation=10)


@pytest.fixture
def from_table(table):
    return Dataset.from_pandas(table, target="label", ids="code", text="review", text_features=3)


def test_candidates_follow_the_pool(dataset):
    joined = dataset.with_candidates(NEW)
    assert (joined.n_pool, joined.n_candidates, joined.n_points) == (30, 5, 35)
    assert_array_equal(joined.X, dataset.X)
    assert_array_equal(joined.y, dataset.y)
    assert_array_equal(joined.features(np.arange(30, 35)), NEW[0])
    assert joined.labels()[30:].tolist() == NEW[1]
    assert (dataset.n_candidates, dataset.n_points) == (0, 30)
    assert not joined.points_X.flags.writeable


def test_the_constructor_takes_candidates_too(dataset):
    at_once = Dataset.from_arrays(X, Y, validation=10, candidates=NEW)
    assert at_once.fingerprint == dataset.with_candidates(NEW).fingerprint
    named = Dataset.from_arrays(X, Y, candidates=NEW, candidate_ids=range(100, 105))
    assert named.ids[-5:].tolist() == [100, 101, 102, 103, 104]


def test_numbers_go_on_after_pool_and_validation():
    last_rows = set()
    for seed in range(12):
        dataset = Dataset.from_arrays(X, Y, validation=20, random_state=seed)
        last_rows.add(39 in dataset.ids)
        assert dataset.with_candidates(NEW).ids[20:].tolist() == [40, 41, 42, 43, 44]
    assert last_rows == {True, False}, "the last row should be carved by some of the seeds"


def test_strings_count_candidates_and_further_ones_join_behind():
    names = [f"r{i}" for i in range(40)]
    dataset = Dataset.from_arrays(X, Y, ids=names).with_candidates(NEW).with_candidates(NEW)
    assert dataset.ids[-10:].tolist() == [f"candidate-{j}" for j in range(10)]


def test_candidates_are_scaled_by_the_pools_scaler():
    dataset = Dataset.from_arrays(X, Y, standardize=True).with_candidates(NEW)
    pool = X[dataset.ids[: dataset.n_pool]]
    expected = (NEW[0] - pool.mean(0)) / pool.std(0)
    assert_allclose(dataset.features(slice(dataset.n_pool, None)), expected, rtol=1e-10)


def test_candidates_are_imputed_only_where_the_pool_was(complaint, dataset):
    holed = np.array([[np.nan, 0.0, 0.0]])
    assert "the candidates hold missing" in complaint(dataset.with_candidates, (holed, ["no"]))
    filled = Dataset.from_arrays(X, Y, impute=True).with_candidates((holed, ["no"]))
    assert filled.features([-1])[0, 0] == np.median(filled.X[:, 0])


def test_a_table_of_candidates_is_encoded_as_the_pool_was(table, from_table):
    rows = table.head(4).assign(code=["n0", "n1", "n2", "n3"])
    joined = from_table.with_candidates(rows)
    whole = Dataset.from_pandas(
        table, target="label", ids="code", text="review", text_features=3, candidates=rows
    )
    assert joined.fingerprint == whole.fingerprint
    assert joined.ids[-4:].tolist() == ["n0", "n1", "n2", "n3"]
    for j in range(4):
        if table["code"][j] in from_table.ids:
            (where,) = from_table.positions(table["code"][j])
            assert_allclose(joined.points_X[joined.n_pool + j], joined.X[where], atol=1e-12)


def test_a_file_of_candidates_is_read(table, from_table, tmp_path):
    rows = table.head(4).assign(code=["n0", "n1", "n2", "n3"])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.to_parquet(tmp_path / "rows.parquet")
    expected = from_table.with_candidates(rows).fingerprint
    assert from_table.with_candidates(tmp_path / "rows.csv").fingerprint == expected
    assert from_table.with_candidates(str(tmp_path / "rows.parquet")).fingerprint == expected


def test_an_npz_of_candidates_joins_arrays(dataset, tmp_path):
    np.savez(
        tmp_path / "new.npz",
        X=NEW[0],
        y=np.array([1, 0, 0, 1, 0]),
        class_names=np.array(["no", "yes"]),
        ids=np.arange(90, 95),
    )
    joined = dataset.with_candidates(tmp_path / "new.npz")
    assert joined.fingerprint == dataset.with_candidates(NEW, ids=range(90, 95)).fingerprint


def test_ids_of_a_table_come_from_a_column_an_array_or_are_made_up(table, from_table):
    rows = table.head(2).assign(code=["n0", "n1"], other=["o0", "o1"])
    assert from_table.with_candidates(rows, ids="other").ids[-2:].tolist() == ["o0", "o1"]
    assert from_table.with_candidates(rows, ids=["q0", "q1"]).ids[-2:].tolist() == ["q0", "q1"]
    made_up = from_table.with_candidates(rows.drop(columns="code"))
    assert made_up.ids[-2:].tolist() == ["candidate-0", "candidate-1"]


def test_arrays_join_a_table_in_its_feature_space(from_table):
    joined = from_table.with_candidates((from_table.X[:2], ["no", "yes"]))
    assert_array_equal(joined.points_X[-2:], from_table.X[:2])


def test_regression_candidates_bring_quantities():
    dataset = Dataset.from_arrays(X, X[:, 0]).with_candidates((NEW[0], [1, 2, 3, 4, 5]))
    assert dataset.targets(slice(-2, None)).tolist() == [4.0, 5.0]


def test_an_unknown_label_is_refused_with_the_classes(complaint, dataset):
    said = complaint(dataset.with_candidates, (NEW[0][:1], ["maybe"]))
    assert "'maybe'" in said
    assert "'no', 'yes'" in said


def test_an_id_of_the_pool_cannot_be_used_again(complaint, dataset):
    taken = dataset.ids[0]
    said = complaint(dataset.with_candidates, (NEW[0][:1], ["no"]), ids=[taken])
    assert f"repeats {taken}" in said


def test_ids_are_of_one_type(complaint, dataset):
    assert "strings such as 'a'" in complaint(
        dataset.with_candidates, (NEW[0][:1], ["no"]), ids=["a"]
    )


def test_candidates_have_the_pools_features(complaint, dataset):
    assert "2 features, the pool has 3" in complaint(
        dataset.with_candidates, (NEW[0][:, :2], NEW[1])
    )
    assert "3 entries for 5 rows" in complaint(dataset.with_candidates, (NEW[0], NEW[1][:3]))


def test_a_table_cannot_join_arrays(complaint, dataset, table):
    assert "made from arrays" in complaint(dataset.with_candidates, table)


def test_a_table_of_candidates_is_checked(complaint, table, from_table):
    rows = table.head(2).assign(code=["n0", "n1"])
    assert "lack the column 'age'" in complaint(
        from_table.with_candidates, rows.drop(columns="age")
    )
    assert "lack the target column" in complaint(
        from_table.with_candidates, rows.drop(columns="label")
    )
    assert "the candidates hold missing" in complaint(
        from_table.with_candidates, rows.assign(age=np.nan)
    )
    assert "'old' at row 0" in complaint(from_table.with_candidates, rows.assign(age="old"))
    again = rows.assign(code=["n0", from_table.ids[0]])
    assert repr(str(from_table.ids[0])) in complaint(from_table.with_candidates, again)
    assert "ids column 'nope'" in complaint(from_table.with_candidates, rows, ids="nope")


def test_anything_else_is_refused(complaint, dataset):
    assert "came as a ndarray" in complaint(dataset.with_candidates, NEW[0])
    assert "suffix '.txt'" in complaint(dataset.with_candidates, "rows.txt")


def test_a_row_needs_no_index_to_join(from_table, table):
    row = pd.DataFrame([table.iloc[0].to_dict() | {"code": "n0"}])
    assert from_table.with_candidates(row).n_candidates == 1
