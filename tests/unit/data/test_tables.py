from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from apiece import ApieceWarning
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


def test_the_index_names_the_points(table):
    shuffled = (
        table.drop(columns="code")
        .sample(frac=1, random_state=0)
        .set_index(table["count"] * 100 + np.arange(60))
    )
    dataset = make(shuffled, ids=None, standardize=False)
    assert dataset.ids.dtype == np.int64
    assert_array_equal(shuffled.loc[dataset.ids, "age"], dataset.X[:, 0])
    assert sorted([*dataset.ids, *dataset.ids_val]) == sorted(shuffled.index)
    named = make(table.set_index("code"), ids=None)
    assert named.ids.tolist() == make(table).ids.tolist()


def test_an_index_that_counts_the_rows_gives_row_numbers(table):
    dataset = make(table, ids=None, drop="code", standardize=False)
    assert_array_equal(dataset.X[:, 0], table["age"].to_numpy()[dataset.ids])


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ([7] * 60, "repeats 7"),
        ([np.nan, *range(59)], "missing on 1 rows"),
        (pd.MultiIndex.from_product([range(6), range(10)]), "has 2 levels"),
    ],
)
def test_an_index_that_cannot_name_the_points_is_left_aside_with_a_warning(table, index, words):
    with pytest.warns(ApieceWarning, match=words):
        dataset = make(table.set_axis(index), ids=None, drop="code")
    assert sorted([*dataset.ids, *dataset.ids_val]) == list(range(60))


def test_candidates_keep_an_index_of_their_own(table):
    dataset = make(table, ids=None, drop="code")
    rows = table.drop(columns="code").head(3)
    assert dataset.with_candidates(rows).ids[-3:].tolist() == [60, 61, 62]
    assert dataset.with_candidates(rows.set_index(pd.Index([71, 75, 73]))).ids[-3:].tolist() == [
        *(71, 75, 73)
    ]
    with pytest.warns(ApieceWarning, match="ids of other points"):
        joined = dataset.with_candidates(table.iloc[10:13])
    assert joined.ids[-3:].tolist() == [60, 61, 62]


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
    assert "ids column 'code' repeats 'same'" in said


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


@pytest.mark.parametrize("kind", ["arrow", "duckdb", "stream", "interchange"])
def test_tables_of_other_libraries_make_the_same_dataset(table, kind):
    arrow = pa.Table.from_pandas(table)
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        given = duckdb.sql("select * from arrow")
    elif kind == "arrow":
        given = arrow
    elif kind == "stream":
        given = Stream(arrow)
    else:
        given = Interchange(arrow)
    assert make(given).fingerprint == make(table).fingerprint
    assert make(table, validation=given).n_validation == 60
    candidates = pa.Table.from_pandas(table.head(2).assign(code=["a", "b"]))
    assert make(table).with_candidates(candidates).ids[-2:].tolist() == ["a", "b"]


class Stream:
    """Nothing but Arrow's stream of batches."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Interchange:
    """Nothing but the dataframe interchange protocol."""

    def __init__(self, table):
        self.table = table

    def __dataframe__(self, **options):
        return self.table.__dataframe__(**options)


def test_polars_frames_make_the_same_dataset(table):
    pl = pytest.importorskip("polars")
    given = pl.DataFrame({name: table[name].tolist() for name in table.columns})
    assert make(given).fingerprint == make(table).fingerprint
    assert make(given.lazy()).fingerprint == make(table).fingerprint


def test_columns_of_embeddings_become_features(complaint, table):
    vectors = np.random.default_rng(0).normal(size=(60, 5))
    frame = table.assign(vector=list(vectors))
    dataset = make(frame)
    names = [f"vector[{j}]" for j in range(5)]
    assert set(names) <= set(dataset.feature_names)
    where = [dataset.feature_names.index(name) for name in names]
    rows = [int(name[1:]) for name in dataset.ids]
    assert_array_equal(dataset.X[:, where], vectors[rows])
    assert dataset.preprocessing["columns"]["embedding"] == {"vector": 5}
    arrow = pa.Table.from_pandas(frame)
    fixed = pa.FixedSizeListArray.from_arrays(vectors.ravel(), 5)
    arrow = arrow.set_column(arrow.column_names.index("vector"), "vector", fixed)
    assert make(arrow).fingerprint == dataset.fingerprint
    short = frame.head(3).assign(code=["a", "b", "c"], vector=[[1.0, 2.0]] * 3)
    assert "a list of 5 numbers" in complaint(dataset.with_candidates, short)
    assert "lists of as many numbers" in complaint(
        make, table.assign(vector=[[1.0] * (1 + i % 2) for i in range(60)])
    )
    holed = frame.assign(vector=[None, *vectors[1:]])
    assert "'vector' (1)" in complaint(make, holed)
    assert np.isfinite(make(holed, impute=True).points_X).all()


def test_a_transformer_of_the_user_gets_the_columns_by_name(complaint, table):
    steps = ColumnTransformer(
        [("city", OneHotEncoder(drop="first"), ["city"]), ("age", StandardScaler(), ["age"])]
    )
    dataset = make(table, text=None, preprocess=steps)
    assert dataset.feature_names == ("city__city_Paris", "city__city_Rome", "age__age")
    assert_allclose(dataset.X[:, 2].mean(), 0, atol=1e-12)
    joined = dataset.with_candidates(table.assign(code=[f"c{i}" for i in range(60)]))
    rows = [int(name[1:]) for name in dataset.ids]
    assert_array_equal(joined.points_X[dataset.n_pool :][rows], dataset.X)
    assert dataset.source is None
    assert "both given" in complaint(make, table, preprocess=steps)
    lacking = table.drop(columns="city").head(3).assign(code=["a", "b", "c"])
    assert "lack the column 'city'" in complaint(dataset.with_candidates, lacking)


def test_a_table_is_kept_as_it_is_without_preprocessing(complaint, table):
    dataset = make(table, text=None, preprocess=None, validation=10)
    assert list(dataset.rows.columns) == ["age", "count", "is_new", "city", "review"]
    assert dataset.feature_names == ("age", "count", "is_new", "city", "review")
    known = table.set_index("code")
    assert dataset.rows["city"].tolist() == known.loc[dataset.ids, "city"].tolist()
    assert dataset.rows_val["age"].tolist() == known.loc[dataset.ids_val, "age"].tolist()
    assert "preprocess=None" in dataset.needs_refit
    known = table[table["code"].isin(dataset.ids)].drop(columns=["code", "label"])
    numbers = Dataset.from_pandas(known.assign(y=np.arange(len(known)) / 2), target="y")
    assert dataset.X.shape[1] == numbers.n_features
    assert np.isfinite(dataset.X_val).all()
    again = pickle.loads(pickle.dumps(make(table, text=None, preprocess=None, validation=10)))
    assert again.fingerprint == dataset.fingerprint
    other = make(table.assign(city="Oslo"), text=None, preprocess=None, validation=10)
    assert other.fingerprint != dataset.fingerprint
    joined = dataset.with_candidates(table.head(2).assign(code=["a", "b"]))
    assert joined.rows["city"].tolist()[-2:] == table["city"].tolist()[:2]


def test_a_column_of_weights_is_no_feature(complaint, table):
    weights = table.assign(w=np.arange(60) + 1)
    dataset = make(weights, sample_weight="w")
    assert "w" not in dataset.feature_names
    assert dataset.sample_weight.tolist() == [1 + int(name[1:]) for name in dataset.ids]
    more = weights.head(2).assign(code=["a", "b"])
    assert dataset.with_candidates(more).sample_weight[-2:].tolist() == [1, 2]
    assert "at least 0" in complaint(make, weights.assign(w=-1), sample_weight="w")
