from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from apiece.data import Dataset


def make(table, **options):
    settings = {"target": "label", "ids": "code", "text": "review"} | options
    return Dataset.from_pandas(table, **settings)


def test_a_table_of_every_type_becomes_a_dataset(table):
    dataset = make(table, validation=12, text_features=4)
    assert (dataset.n_pool, dataset.n_validation) == (48, 12)
    assert dataset.feature_names == (
        *("age", "count", "is_new", "city=Oslo", "city=Paris", "city=Rome"),
        *(f"review[{j}]" for j in range(4)),
    )
    assert dataset.target_name == "label"
    assert dataset.classes.tolist() == ["no", "yes"]
    rows = table.set_index("code").loc[dataset.ids]
    assert dataset.labels().tolist() == rows["label"].tolist()
    assert_array_equal(dataset.X[:, 2], rows["is_new"])
    assert_allclose(dataset.X[:, :2].mean(axis=0), 0, atol=1e-12)
    assert_allclose(dataset.X[:, :2].std(axis=0), 1)
    assert dataset.preprocessing == {
        "from": "table",
        "standardize": True,
        "impute": False,
        "columns": {
            "numeric": 2,
            "boolean": ["is_new"],
            "categorical": {"city": 3},
            "text": {"review": 4},
        },
        "dropped": [],
        "validation": {"carved": 12, "seed": 0},
        "text_seed": 0,
    }


def test_row_numbers_are_the_ids_whatever_the_index(table):
    dataset = make(table.set_index(np.arange(60) * 10), ids=None, drop="code", standardize=False)
    assert_array_equal(dataset.X[:, 0], table["age"].to_numpy()[dataset.ids])
    assert sorted([*dataset.ids, *dataset.ids_val]) == list(range(60))


def test_the_index_can_name_the_points(table):
    by_index = make(table.set_index("code"))
    assert by_index.ids.tolist() == make(table).ids.tolist()


def test_numbers_as_column_names_are_understood():
    frame = pd.DataFrame({0: np.arange(10.0), 1: [0, 1] * 5})
    dataset = Dataset.from_pandas(frame, target="1")
    assert dataset.feature_names == ("0",)


def test_validation_rows_never_change_what_the_pool_becomes(table):
    dataset = make(table, validation=15)
    held = ~table["code"].isin(dataset.ids)
    changed = table.copy()
    changed.loc[held, "age"] = 1e6
    changed.loc[held, "city"] = "Atlantis"
    changed.loc[held, "review"] = "words that nobody else wrote"
    other = make(changed, validation=15)
    assert_array_equal(other.X, dataset.X)
    assert other.feature_names == dataset.feature_names
    assert not np.array_equal(other.X_val, dataset.X_val)


def test_a_given_validation_table_is_encoded_as_the_pool_is(table):
    whole = make(table, validation=table.iloc[::-1])
    assert (whole.n_pool, whole.n_validation) == (60, 60)
    assert_array_equal(whole.X_val, whole.X[::-1])
    assert_array_equal(whole.y_val, whole.y[::-1])
    assert whole.ids_val.tolist() == table["code"].tolist()[::-1]
    assert whole.preprocessing["validation"] == {"given": 60}


def test_a_validation_table_needs_no_ids(table):
    assert make(table, validation=table.drop(columns="code")).ids_val is None


def test_a_validation_file_is_read(table, tmp_path):
    table.to_csv(tmp_path / "held.csv", index=False)
    table.to_parquet(tmp_path / "held.parquet")
    from_frame = make(table, validation=table)
    from_csv = make(table, validation=tmp_path / "held.csv")
    from_parquet = make(table, validation=str(tmp_path / "held.parquet"))
    # The same numbers through text: csv keeps float64 to the last bit.
    assert from_csv.fingerprint == from_frame.fingerprint == from_parquet.fingerprint


def test_the_seed_decides_carving_and_texts(table):
    assert make(table).fingerprint == make(table).fingerprint
    assert make(table).fingerprint != make(table, random_state=1).fingerprint


def test_the_seed_does_not_matter_where_nothing_is_random(table):
    options = {"validation": table, "text": None, "drop": "review"}
    one, other = (make(table, random_state=seed, **options) for seed in (1, 2))
    assert one.fingerprint == other.fingerprint


def test_declared_categories_and_dropped_columns(table):
    dataset = make(table, categorical=["count"], drop=["age", "review"], text=None)
    assert dataset.feature_names[0] == "is_new"
    assert "count=3" in dataset.feature_names
    assert dataset.preprocessing["dropped"] == ["age", "review"]


def test_missing_cells_are_imputed_from_the_pool(table):
    table.loc[::7, "age"] = np.nan
    table.loc[::9, "city"] = None
    table.loc[::11, "review"] = None
    dataset = make(table, impute=True, standardize=False)
    pool = table.set_index("code").loc[dataset.ids]
    assert_array_equal(dataset.X[pool["age"].isna(), 0], pool["age"].median())
    assert np.isfinite(dataset.points_X).all()


def test_a_regression_table(table):
    dataset = make(table, target="age", drop="label")
    assert dataset.kind == "regression"
    assert dataset.y.dtype == np.float64


def test_the_frame_given_is_left_alone(table):
    before = table.copy()
    make(table, impute=True)
    pd.testing.assert_frame_equal(table, before)


@pytest.mark.parametrize("option", ["target", "ids", "text", "drop", "categorical"])
def test_every_option_that_names_a_column_checks_it(complaint, table, option):
    said = complaint(make, table, **{option: "labell"})
    assert f"{option} column 'labell' is not in the table" in said
    assert "'label'" in said


def test_errors_of_the_cells_name_the_original_row(complaint, table):
    table["count"] = table["count"].astype(str)
    table.loc[41, "count"] = "n/k"
    said = complaint(make, table)
    assert "'n/k' at row 41" in said


def test_missing_cells_are_refused_before_the_carving(complaint, table):
    table.loc[[3, 50], "age"] = np.nan
    assert "the rows of the table hold missing values in column 'age' (2)" in complaint(make, table)


def test_a_validation_table_is_checked_like_the_pool(complaint, table):
    held = table.head(5)
    assert "the validation rows lack the column 'age'" in complaint(
        make, table, validation=held.drop(columns="age")
    )
    assert "lack the target column 'label'" in complaint(
        make, table, validation=held.drop(columns="label")
    )
    assert "'perhaps'" in complaint(make, table, validation=held.assign(label="perhaps"))
    assert "the validation rows hold missing" in complaint(
        make, table, validation=held.assign(age=np.nan)
    )
    assert "without rows" in complaint(make, table, validation=held.head(0))
    twice = pd.concat([held, held[["age"]]], axis=1)
    assert "'age'" in complaint(make, table, validation=twice)


def test_duplicate_column_names_are_refused(complaint, table):
    doubled = pd.concat([table, table[["age", "city"]]], axis=1)
    assert "'age', 'city'" in complaint(make, doubled)


def test_duplicate_ids_are_refused(complaint, table):
    said = complaint(make, table.assign(code="same"))
    assert "ids column 'code' holds 'same' more than once" in said


def test_one_column_names_the_points(complaint, table):
    assert make(table, ids=["code"]).fingerprint == make(table).fingerprint
    assert "2 columns, 'code', 'age'" in complaint(make, table, ids=["code", "age"])


def test_a_table_that_is_no_frame_is_refused(complaint):
    assert "from_arrays" in complaint(Dataset.from_pandas, np.ones((5, 2)), target="a")


def test_fewer_than_three_rows_are_refused(complaint, table):
    assert "2 rows" in complaint(make, table.head(2))


@pytest.mark.parametrize("text_features", [0, -1, 2.5, "many", True])
def test_text_features_must_be_a_count(complaint, table, text_features):
    assert repr(text_features) in complaint(make, table, text_features=text_features)


def test_an_undeclared_text_is_refused(complaint, table):
    table["review"] = [f"review number {i}" for i in range(60)]
    assert "text='review' (--text review)" in complaint(make, table, text=None)
