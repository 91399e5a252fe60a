from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import MinMaxScaler, TargetEncoder

from apiece.data import Dataset, _rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.array(["no", "yes"])[np.arange(40) % 2]
VAL = {"X_val": X[:6], "y_val": Y[:6]}


@pytest.mark.parametrize(
    "given",
    [
        X.tolist(),
        np.asfortranarray(X),
        X[::-1][::-1],
        pd.DataFrame(X),
        pd.DataFrame(X, dtype="Float64"),
        X.astype(object),
        X.astype(">f8"),
        np.ma.masked_invalid(X),
        scipy.sparse.csr_matrix(X),
        scipy.sparse.csc_array(X),
    ],
)
def test_the_same_numbers_in_any_dress_make_the_same_dataset(given):
    expected = Dataset.from_arrays(X, Y)
    dataset = Dataset.from_arrays(given, Y)
    assert_array_equal(dataset.X, expected.X)
    assert dataset.X.flags.c_contiguous
    assert dataset.X.dtype == np.float64
    assert dataset.fingerprint == expected.fingerprint


@pytest.mark.parametrize(
    "given",
    [
        Y.tolist(),
        tuple(Y.tolist()),
        Y[:, None],
        Y.astype(object),
        pd.Series(Y, index=np.arange(40)[::-1]),
        pd.DataFrame({"target": Y}),
        pd.Categorical(Y, categories=["yes", "no"]),
        pd.Series(Y, dtype="category"),
    ],
)
def test_the_same_labels_in_any_dress_make_the_same_dataset(given):
    expected = Dataset.from_arrays(X, Y)
    dataset = Dataset.from_arrays(X, given)
    assert dataset.labels().tolist() == expected.labels().tolist()
    assert dataset.fingerprint == expected.fingerprint


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, bool])
def test_narrow_numbers_become_float64_without_change_of_value(dtype):
    narrow = (X * 3).astype(dtype)
    dataset = Dataset.from_arrays(narrow, Y, X_val=narrow[:4], y_val=Y[:4])
    assert dataset.X.dtype == np.float64
    assert_array_equal(dataset.X, narrow.astype(np.float64))
    assert_array_equal(dataset.X_val, narrow[:4].astype(np.float64))


def test_a_given_validation_set_is_used_whole_and_the_pool_keeps_every_row():
    dataset = Dataset.from_arrays(X, Y, **VAL)
    assert (dataset.n_pool, dataset.n_validation) == (40, 6)
    assert_array_equal(dataset.X, X)
    assert dataset.ids.tolist() == list(range(40))
    assert dataset.preprocessing["validation"] == {"given": 6}


def test_carved_rows_keep_their_row_numbers():
    dataset = Dataset.from_arrays(X, Y, validation=10, random_state=3)
    assert_array_equal(dataset.X, X[dataset.ids])
    assert_array_equal(dataset.X_val, X[dataset.ids_val])
    assert sorted([*dataset.ids, *dataset.ids_val]) == list(range(40))
    assert (np.diff(dataset.ids) > 0).all()
    assert np.bincount(dataset.y_val).tolist() == [5, 5]


def test_carved_rows_keep_the_names_given():
    names = [f"r{i}" for i in range(40)]
    dataset = Dataset.from_arrays(X, Y, ids=names)
    rows = [int(name[1:]) for name in dataset.ids]
    assert_array_equal(dataset.X, X[rows])


def test_the_scaler_knows_the_pool_alone():
    dataset = Dataset.from_arrays(X, Y, standardize=True, validation=15)
    pool = X[dataset.ids]
    assert_allclose(dataset.X, (pool - pool.mean(0)) / pool.std(0), rtol=1e-10, atol=1e-12)
    held = X[dataset.ids_val]
    assert_allclose(dataset.X_val, (held - pool.mean(0)) / pool.std(0), rtol=1e-10, atol=1e-12)


def test_imputed_values_are_the_pools_medians():
    holed = X.copy()
    holed[::5, 1] = np.nan
    dataset = Dataset.from_arrays(holed, Y, impute=True)
    pool = holed[dataset.ids, 1]
    assert_array_equal(dataset.X[np.isnan(pool), 1], np.nanmedian(pool))
    held = holed[dataset.ids_val, 1]
    assert_array_equal(dataset.X_val[np.isnan(held), 1], np.nanmedian(pool))


def test_the_callers_arrays_are_left_alone():
    mine, labels = X.copy(), Y.copy()
    dataset = Dataset.from_arrays(mine, labels, **VAL, standardize=True)
    before = dataset.X.copy()
    assert_array_equal(mine, X)
    mine[:] = 0
    assert mine.flags.writeable
    assert_array_equal(dataset.X, before)


def test_regression_targets_are_floats_without_classes():
    dataset = Dataset.from_arrays(X, X[:, 0], validation=0.2)
    assert dataset.kind == "regression"
    assert dataset.classes is None
    assert dataset.n_classes == 0
    assert_array_equal(dataset.y, X[dataset.ids, 0])
    assert dataset.preprocessing["validation"] == {"carved": 8, "seed": 0}


def test_names_come_from_frames_or_arguments():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    dataset = Dataset.from_arrays(frame, pd.Series(Y, name="verdict"))
    assert dataset.feature_names == ("a", "b", "c")
    assert dataset.target_name == "verdict"
    assert Dataset.from_arrays(X, Y).feature_names == ("x0", "x1", "x2")
    assert Dataset.from_arrays(frame, Y, feature_names=list("xyz")).feature_names == ("x", "y", "z")


def test_a_fresh_seed_is_drawn_and_kept():
    dataset = Dataset.from_arrays(X, Y, validation=0.2, random_state=None)
    seed = dataset.preprocessing["validation"]["seed"]
    again = Dataset.from_arrays(X, Y, validation=0.2, random_state=seed)
    assert again.fingerprint == dataset.fingerprint


def test_features_must_have_two_dimensions(complaint):
    assert "X.reshape(-1, 1)" in complaint(Dataset.from_arrays, X[:, 0], Y)
    assert "(len(X), -1)" in complaint(Dataset.from_arrays, X[:, :, None], Y)
    assert "X_val has shape (3,)" in complaint(
        Dataset.from_arrays, X, Y, X_val=[1.0, 2.0, 3.0], y_val=Y[:3]
    )


def test_features_must_be_numbers(complaint):
    assert "from_pandas" in complaint(Dataset.from_arrays, [["a", "b"]] * 40, Y)
    assert "from_pandas" in complaint(Dataset.from_arrays, pd.DataFrame({"a": Y}), Y)
    complaint(Dataset.from_arrays, X + 1j, Y)
    complaint(Dataset.from_arrays, np.full((40, 2), "2020-01-01", dtype="M8[D]"), Y)
    complaint(Dataset.from_arrays, [[1.0, 2.0], [3.0]], Y[:2])


def test_a_table_without_features_is_refused(complaint):
    assert "(40, 0)" in complaint(Dataset.from_arrays, X[:, :0], Y)


def test_lengths_must_agree(complaint):
    said = complaint(Dataset.from_arrays, X, Y[:39])
    assert "39 entries for 40 rows" in said
    assert "y_val" in complaint(Dataset.from_arrays, X, Y, X_val=X[:5], y_val=Y[:4])


def test_one_hot_labels_are_explained(complaint):
    assert "argmax" in complaint(Dataset.from_arrays, X, np.eye(2)[np.arange(40) % 2])


def test_validation_features_must_match(complaint):
    said = complaint(Dataset.from_arrays, X, Y, X_val=X[:5, :2], y_val=Y[:5])
    assert "2 features, the pool has 3" in said


def test_half_a_validation_set_is_refused(complaint):
    assert "without y_val" in complaint(Dataset.from_arrays, X, Y, X_val=X[:5])
    assert "without X_val" in complaint(Dataset.from_arrays, X, Y, y_val=Y[:5])


def test_a_given_validation_set_is_not_carved(complaint):
    assert "validation=0.2" in complaint(Dataset.from_arrays, X, Y, **VAL, validation=0.2)


def test_a_validation_label_outside_the_pool_is_named(complaint):
    said = complaint(Dataset.from_arrays, X, Y, X_val=X[:2], y_val=["yes", "maybe"])
    assert "'maybe'" in said
    assert "the validation rows" in said


def test_missing_and_infinite_numbers_are_refused(complaint):
    holed, infinite = X.copy(), X.copy()
    holed[3, 1], infinite[3, 2] = np.nan, np.inf
    assert "'x1' (1)" in complaint(Dataset.from_arrays, holed, Y)
    assert "'x2' (1)" in complaint(Dataset.from_arrays, infinite, Y, impute=True)
    assert "X_val" in complaint(Dataset.from_arrays, X, Y, X_val=holed, y_val=Y)
    assert "X_val" in complaint(Dataset.from_arrays, X, Y, X_val=infinite, y_val=Y)
    masked = np.ma.masked_array(X, mask=np.isnan(holed))
    assert "'x1' (1)" in complaint(Dataset.from_arrays, masked, Y)


def test_a_missing_label_in_a_list_of_strings_is_no_class(complaint):
    labels = [*Y[:39].tolist(), np.nan]
    assert "missing on 1 of 40" in complaint(Dataset.from_arrays, X, labels)


def test_fewer_than_three_rows_are_refused(complaint):
    assert "2 rows" in complaint(Dataset.from_arrays, X[:2], Y[:2])
    assert Dataset.from_arrays(X[:3], X[:3, 0]).n_pool == 3
    assert Dataset.from_arrays(X[:3], X[:3, 0], validation=1).n_pool == 2


def test_duplicate_ids_are_refused(complaint):
    assert "repeats 7" in complaint(Dataset.from_arrays, X, Y, ids=[7, 7, *range(100, 138)])


def test_feature_names_must_fit(complaint):
    assert "2 names" in complaint(Dataset.from_arrays, X, Y, feature_names=["a", "b"])


def test_a_sparse_matrix_stays_sparse_and_is_made_dense_when_asked_for():
    given = scipy.sparse.random(50, 8, density=0.2, format="coo", random_state=0)
    dataset = Dataset.from_arrays(given, np.arange(50) % 2)
    assert scipy.sparse.issparse(dataset.rows)
    assert scipy.sparse.issparse(dataset.rows_val)
    assert_array_equal(dataset.X, given.toarray()[dataset.ids])
    assert scipy.sparse.issparse(dataset.with_candidates((given, np.zeros(50))).rows)
    scaled = Dataset.from_arrays(given, np.arange(50) % 2, standardize=True)
    assert isinstance(scaled.rows, np.ndarray)


def test_a_sparse_matrix_that_would_fill_the_memory_is_for_the_refit_engine(complaint, monkeypatch):
    monkeypatch.setattr(_rows, "MOST_DENSE", 100)
    dataset = Dataset.from_arrays(scipy.sparse.csr_matrix(X), Y, **VAL)
    assert "120 entries" in dataset.needs_refit
    assert "TruncatedSVD" in complaint(lambda: dataset.X)


def test_float32_is_kept_for_models_and_doubled_for_engines():
    dataset = Dataset.from_arrays(X.astype(np.float32), Y, standardize=True)
    assert dataset.rows.dtype == dataset.rows_val.dtype == np.float32
    assert dataset.X.dtype == np.float64
    assert dataset.needs_refit is None
    assert dataset.with_candidates((X, Y)).rows.dtype == np.float32


def test_a_transformer_of_the_user_is_fitted_to_a_copy_of_the_pool_alone():
    scaler = MinMaxScaler()
    dataset = Dataset.from_arrays(X, Y, preprocess=scaler, validation=10)
    assert_array_equal(dataset.X.min(axis=0), 0)
    assert_array_equal(dataset.X.max(axis=0), 1)
    assert not hasattr(scaler, "scale_")
    pool = X[dataset.ids]
    expected = (X[dataset.ids_val] - pool.min(0)) / (pool.max(0) - pool.min(0))
    assert_allclose(dataset.X_val, expected, atol=1e-12)
    assert_allclose(dataset.with_candidates((pool[:3], Y[:3])).points_X[-3:], dataset.X[:3])


def test_a_transformer_that_sees_labels_gets_those_of_the_pool():
    frame = pd.DataFrame({"city": np.repeat(["a", "b"], 20)})
    dataset = Dataset.from_arrays(
        frame, np.repeat([0.0, 1.0], 20), preprocess=TargetEncoder(), kind="regression"
    )
    assert dataset.n_features == 1
    assert dataset.X[dataset.y == 1].mean() > dataset.X[dataset.y == 0].mean()


def test_what_is_no_transformer_is_refused(complaint):
    assert "preprocess='scale'" in complaint(Dataset.from_arrays, X, Y, preprocess="scale")
    said = complaint(Dataset.from_arrays, X, Y, preprocess=MinMaxScaler(feature_range=(1, 0)))
    assert "the transformer failed on the rows of the pool" in said


def test_the_index_of_a_frame_names_the_points():
    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(40)])
    dataset = Dataset.from_arrays(frame, Y)
    assert_array_equal(frame.loc[dataset.ids], dataset.X)
    assert Dataset.from_arrays(frame, Y, ids=range(40)).ids.dtype == np.int64


def test_sample_weights_belong_to_the_rows(complaint):
    weight = np.arange(40.0)
    dataset = Dataset.from_arrays(X, Y, sample_weight=weight)
    assert_array_equal(dataset.sample_weight, dataset.ids)
    assert "sample weights" in dataset.needs_refit
    assert dataset.fingerprint != Dataset.from_arrays(X, Y).fingerprint
    assert_array_equal(dataset.with_candidates((X[:2], Y[:2])).sample_weight[-2:], 1)
    for bad in (weight[1:], -weight, weight * np.nan, ["heavy"] * 40):
        assert "at least 0" in complaint(Dataset.from_arrays, X, Y, sample_weight=bad)
