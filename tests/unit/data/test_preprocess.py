from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import StandardScaler

from apiece.data import Dataset, _preprocess
from apiece.data._preprocess import TextFeatures

POOL = pd.DataFrame(
    {
        "age": [10.0, 20.0, 30.0, 40.0],
        "new": [True, False, False, True],
        "city": ["Rome", "Oslo", "Rome", "Rome"],
        "note": ["good film", "bad film", "good plot", "bad plot good"],
        "y": [0.5, 1.5, 2.5, 3.5],
    }
)
RNG = np.random.default_rng(0)
WORDS = np.array([f"word{i}" for i in range(30)])
NUMBERS = RNG.normal(size=(9, 2))
TEXTS = np.array([" ".join(RNG.choice(WORDS, 8)) for _ in range(40)], dtype=object)


def fit(frame=POOL, **options):
    settings = {"target": "y", "text": "note", "text_features": 2, "validation": frame} | options
    return Dataset.from_pandas(frame, **settings)


def numbers(*columns, **options):
    """Make a dataset of columns of numbers, all of its rows in the pool."""
    X = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
    y = np.arange(len(X)) + 0.5
    return Dataset.from_arrays(
        X, y, X_val=X, y_val=y, feature_names=list("abc"[: X.shape[1]]), **options
    )


def test_blocks_stand_side_by_side_under_their_names():
    dataset = fit()
    assert dataset.feature_names == ("age", "new", "city=Oslo", "city=Rome", "note[0]", "note[1]")
    assert_allclose(dataset.X[:, 0], (POOL["age"] - 25) / np.sqrt(125))
    assert_array_equal(dataset.X[:, 1], [1, 0, 0, 1])
    assert_array_equal(dataset.X[:, 2:4], [[0, 1], [1, 0], [0, 1], [0, 1]])
    assert np.abs(dataset.X[:, 4:]).sum() > 0
    assert dataset.preprocessing["columns"] == {
        "numeric": 1,
        "boolean": ["new"],
        "categorical": {"city": 2},
        "text": {"note": 2},
    }


def test_the_same_rows_get_the_same_features_later():
    dataset = fit()
    assert_array_equal(dataset.X_val, dataset.X)
    assert_array_equal(
        dataset.with_candidates(POOL.iloc[[2]].reset_index(drop=True)).points_X[-1], dataset.X[2]
    )
    arrived = pickle.loads(pickle.dumps(dataset))
    assert_array_equal(arrived.with_candidates(POOL).points_X[4:], dataset.X)


def test_an_unknown_category_has_none_of_the_features():
    row, known = fit(validation=POOL.iloc[[1, 1]].assign(city=["Paris", "Rome"])).X_val
    assert_array_equal(row[2:4], [0, 0])
    assert_array_equal(row[[0, 1, 4, 5]], known[[0, 1, 4, 5]])


def test_numbers_stay_as_they_are_without_standardising():
    assert_array_equal(fit(standardize=False).X[:, 0], POOL["age"])
    X = RNG.normal(size=(9, 2))
    assert_array_equal(numbers(*X.T).X, X)


def test_missing_cells_are_filled_from_the_pool():
    holed = POOL.assign(
        age=[10.0, None, 30.0, 50.0],
        new=pd.array([None, False, False, True], dtype="boolean"),
        city=["Rome", None, "Oslo", "Rome"],
        note=["good film", None, "bad plot", "good plot"],
    )
    blank = pd.DataFrame({"age": [None], "new": [None], "city": [None], "note": [None], "y": 0.5})
    dataset = fit(holed, impute=True, standardize=False, validation=blank)
    assert dataset.X[1, 0] == 30.0
    assert dataset.X[0, 1] == 0.0
    assert_array_equal(dataset.X[1, 2:4], [0, 1])
    assert_array_equal(dataset.X[1, 4:], [0, 0])
    assert_array_equal(dataset.X_val[0], [30, 0, 0, 1, 0, 0])


def test_booleans_take_the_more_frequent_value_and_keep_their_scale():
    frame = POOL.assign(new=pd.array([True, True, False, None], dtype="boolean"))
    assert_array_equal(fit(frame, impute=True).X[:, 1], [1, 1, 0, 1])
    tie = POOL.assign(new=pd.array([True, False, None, None], dtype="boolean"))
    assert_array_equal(fit(tie, impute=True).X[:, 1], [1, 0, 0, 0])


def test_a_column_without_any_value_is_refused(complaint):
    empty = pd.Series([None] * 4, dtype=object)
    assert "'city'" in complaint(fit, POOL.assign(city=empty), impute=True, categorical="city")
    assert "'age' has no value" in complaint(fit, POOL.assign(age=np.nan), impute=True)
    said = complaint(numbers, [1.0, 2.0, 3.0], [np.nan] * 3, impute=True)
    assert "'b' has no value" in said
    assert "'a'" not in said


def test_features_beyond_memory_are_refused_with_the_widest_column(complaint, monkeypatch):
    monkeypatch.setattr(_preprocess, "_MOST_ENTRIES", 10)
    said = complaint(fit)
    assert "4 rows become 5 features" in said
    assert "--drop city" in said


def test_standardised_features_equal_scikit_learns():
    X = RNG.normal(size=(50, 3)) * [1.0, 100.0, 1e-3] + [5.0, -3.0, 0.0]
    assert_array_equal(numbers(*X.T, standardize=True).X, StandardScaler().fit_transform(X) + 0.0)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9, -1e-12])
def test_a_constant_feature_is_centred_and_not_blown_up(constant):
    X = numbers(np.full(1_000, constant), standardize=True).X
    assert np.abs(X).max() <= 1e-9 * max(abs(constant), 1e-3)


def test_missing_numbers_become_the_pools_median_before_scaling():
    X = numbers([1.0, 2.0, np.nan, 9.0], standardize=True, impute=True).X
    assert X[1] == X[2]
    assert_allclose(X.mean(), 0, atol=1e-12)


def test_negative_zero_is_stored_as_zero():
    assert not np.signbit(numbers([-0.0, 0.0, 1.0]).X).any()


def test_numbers_too_large_to_standardise_are_refused(complaint):
    said = complaint(numbers, [1.0, 2.0, 3.0], [1e300, -1e300, 0.0], standardize=True)
    assert "'b'" in said
    assert "--raw" in said


def text(texts, n_features=5, seed=0):
    features = TextFeatures(n_features, seed)
    return features, features.fit_transform(pd.Series(texts, name="note"))


def test_texts_of_the_pool_and_later_ones_are_encoded_alike():
    features, X = text(TEXTS)
    assert X.shape == (40, 5)
    assert X.dtype == np.float64
    assert_array_equal(features.transform(TEXTS[3:6]), X[3:6])
    assert features.get_feature_names_out(["note"])[-1] == "note[4]"


def test_the_seed_decides_every_bit_of_a_text():
    assert_array_equal(text(TEXTS)[1], text(TEXTS)[1])


def test_the_directions_keep_most_of_what_they_can():
    features, X = text(TEXTS, n_features=29)
    weights = features.weights_.transform(features.words_.transform(TEXTS)).toarray()
    best = np.linalg.svd(weights, compute_uv=False)[:29]
    assert_allclose((X**2).sum(), (best**2).sum(), rtol=1e-6)


@pytest.mark.parametrize(
    ("texts", "n_features", "kept"),
    [
        (["aa bb cc dd"] * 3 + ["aa", "bb cc"], 100, 3),  # vocabulary of 4
        (TEXTS[:4], 100, 3),  # pool of 4
        (TEXTS, 7, 7),
        (["yes", "yes", ""], 100, 1),  # a single word
        (["aa bb"] * 5, 100, 1),  # all texts equal
    ],
)
def test_fewer_directions_are_kept_of_little_text(texts, n_features, kept):
    features, X = text(texts, n_features=n_features)
    assert X.shape == (len(texts), kept)
    assert np.isfinite(X).all()
    assert features.transform(["aa unseen", ""]).shape == (2, kept)


def test_an_unknown_or_empty_text_is_the_origin():
    features, _ = text(TEXTS)
    assert_array_equal(features.transform(["", "unheard"]), np.zeros((2, 5)))


def test_a_column_without_words_is_refused(complaint):
    said = complaint(text, ["", "?", "1"])
    assert "'note'" in said
    assert "--drop note" in said


def test_text_columns_have_seeds_of_their_own():
    X = fit(POOL.assign(twin=POOL["note"]), text=["note", "twin"]).X[:, -4:]
    assert_allclose(np.abs(X[:, :2]), np.abs(X[:, 2:]), atol=1e-8)


@pytest.mark.parametrize("options", [{}, {"preprocess": None, "text": None}])
def test_rows_to_score_on_may_be_none_at_all(options):
    dataset = fit(validation=0, **options)
    assert (dataset.n_pool, dataset.n_validation) == (4, 0)
    assert dataset.X_val.shape == (0, dataset.X.shape[1])
    scored = dataset.scored_by(np.array([2, 1]))
    assert_array_equal(scored.X_val, dataset.X[[2, 1]])
    assert Dataset.from_arrays(NUMBERS, np.arange(9) % 2, validation=0).n_validation == 0
