from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import StandardScaler

from apiece.data import _numeric
from apiece.data._numeric import NumericEncoder, check_numbers

NAMES = ("a", "b", "c")


def matrix(n=50, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) * [1.0, 100.0, 1e-3] + [5.0, -3.0, 0.0]


def test_standardised_features_equal_scikit_learns():
    X, further = matrix(), matrix(7, seed=1)
    scaler = StandardScaler().fit(X)
    encoder = NumericEncoder.fit(X, NAMES, standardize=True, impute=False)
    assert_allclose(encoder.encode(further.copy()), scaler.transform(further), rtol=1e-12)
    assert_allclose(encoder.encode(X.copy()), scaler.transform(X), rtol=1e-10, atol=1e-12)


def test_moments_do_not_depend_on_the_size_of_the_blocks(monkeypatch):
    X = matrix()
    X[3, 1] = np.nan
    whole = NumericEncoder.fit(X, NAMES, standardize=True, impute=True)
    monkeypatch.setattr(_numeric, "_BLOCK", 7)
    parts = NumericEncoder.fit(X, NAMES, standardize=True, impute=True)
    assert_allclose(parts.mean, whole.mean, rtol=1e-12)
    assert_allclose(parts.scale, whole.scale, rtol=1e-12)
    assert_allclose(parts.encode(X.copy()), whole.encode(X.copy()), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9, -1e-12])
def test_a_constant_feature_is_centred_and_not_blown_up(constant):
    X = np.full((1_000, 1), constant)
    encoder = NumericEncoder.fit(X, ["a"], standardize=True, impute=False)
    assert encoder.scale.tolist() == [1.0]
    assert np.abs(encoder.encode(X.copy())).max() <= 1e-9 * max(abs(constant), 1e-3)


def test_missing_numbers_become_the_pools_median_before_scaling():
    X = np.array([[1.0], [2.0], [np.nan], [9.0]])
    encoder = NumericEncoder.fit(X, ["a"], standardize=True, impute=True)
    assert encoder.fill.tolist() == [2.0]
    assert encoder.mean.tolist() == [3.5]
    further = encoder.encode(np.array([[np.nan], [2.0]]))
    assert further[0, 0] == further[1, 0]


def test_booleans_take_the_more_frequent_value_and_keep_their_scale():
    X = np.array([[1.0], [1.0], [0.0], [np.nan]])
    encoder = NumericEncoder.fit(
        X, ["a"], standardize=True, impute=True, is_boolean=np.array([True])
    )
    assert_array_equal(encoder.encode(X.copy()), [[1.0], [1.0], [0.0], [1.0]])
    tie = NumericEncoder.fit(
        np.array([[1.0], [0.0], [np.nan]]),
        ["a"],
        standardize=True,
        impute=True,
        is_boolean=np.array([True]),
    )
    assert tie.fill.tolist() == [0.0]


def test_numbers_stay_as_they_are_unless_asked():
    X = matrix()
    encoder = NumericEncoder.fit(X, NAMES, standardize=False, impute=False)
    assert_array_equal(encoder.encode(X.copy()), X)


def test_negative_zero_is_stored_as_zero():
    assert not np.signbit(NumericEncoder().encode(np.array([[-0.0, 0.0]]))).any()


def test_a_feature_without_any_value_cannot_be_imputed(complaint):
    X = np.array([[1.0, np.nan], [2.0, np.nan]])
    said = complaint(NumericEncoder.fit, X, ["a", "b"], standardize=False, impute=True)
    assert "'b'" in said
    assert "'a'" not in said


def test_numbers_too_large_to_standardise_are_refused(complaint):
    X = np.array([[1.0, 1e300], [2.0, -1e300], [3.0, 0.0]])
    said = complaint(NumericEncoder.fit, X, ["a", "b"], standardize=True, impute=False)
    assert "'b'" in said
    assert "--raw" in said


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
