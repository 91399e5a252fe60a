from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from apiece.data._target import infer_kind, read_target


def read(values, kind=None):
    return read_target(pd.Series(values), kind=kind, name="y")


def encode(values, like):
    return like.encode(pd.Series(values), "the candidates")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", "b"] * 5, "classification"),
        ([True, False] * 5, "classification"),
        (pd.Categorical([1.5, 2.5] * 5), "classification"),
        (pd.array([True, False] * 5, dtype="boolean"), "classification"),
        ([0.5, 1.0, 2.0], "regression"),
        ([0.0, 1.0, 2.0], "classification"),
        (np.arange(20.0), "classification"),
        (np.arange(21.0), "regression"),
        (np.arange(20), "classification"),
        (np.arange(21), "regression"),
        (np.arange(900) % 30, "classification"),
        (np.arange(900) % 31, "regression"),
        ([Decimal("1.5"), Decimal(2)], "regression"),
        (pd.array([1.5, 2.5], dtype="Float64"), "regression"),
        (np.array([0.5, 1.5], dtype=np.float16), "regression"),
    ],
)
def test_kind_follows_from_the_values(values, kind):
    assert read(values).kind == kind


def test_the_boundary_for_whole_numbers_is_the_root_of_the_row_count():
    assert infer_kind(pd.Series(np.arange(10_000) % 100)) == "classification"
    assert infer_kind(pd.Series(np.arange(10_000) % 101)) == "regression"


def test_kind_overrides_the_guess():
    assert read([0, 1, 2], kind="regression").values.dtype == np.float64
    assert read(np.arange(30), kind="classification").classes.tolist() == list(range(30))
    assert read([True, False, True], kind="regression").values.tolist() == [1.0, 0.0, 1.0]


def test_classes_are_sorted_and_codes_point_into_them():
    target = read(["dog", "cat", "dog", "ant"])
    assert target.classes.tolist() == ["ant", "cat", "dog"]
    assert target.values.tolist() == [2, 1, 2, 0]
    assert target.values.dtype == np.int64


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ([3.0, 1.0, 3.0], [1, 3]),
        ([0.5, 1.5], [0.5, 1.5]),
        ([True, False], [False, True]),
        (pd.Categorical(["b", "a"], categories=["c", "b", "a"]), ["a", "b"]),
        (pd.Series([2, "two"], dtype=object), ["2", "two"]),
        (pd.array([2, 1], dtype="Int64"), [1, 2]),
        (np.array([2, 1], dtype=np.uint8), [1, 2]),
    ],
)
def test_labels_keep_their_type_and_unused_categories_are_no_classes(values, classes):
    found = read(values, kind="classification").classes.tolist()
    assert found == classes
    assert [type(label) for label in found] == [type(label) for label in classes]


def test_further_labels_are_encoded_by_value_whatever_their_dtype():
    target = read([1, 2, 1])
    assert encode([2.0, 1.0], target).tolist() == [1, 0]
    assert encode(pd.array([2], dtype="Int64"), target).tolist() == [1]
    assert encode([1, 0], read([True, False])).tolist() == [1, 0]
    assert encode(["b"], read(["a", "b"])).dtype == np.int64


def test_further_quantities_are_floats():
    assert_array_equal(encode([3, 4], read([0.5, 1.5])), [3.0, 4.0])


def test_negative_zero_is_zero():
    assert not np.signbit(read([-0.0, 0.5]).values).any()


def test_an_unseen_label_is_named_with_the_classes(complaint):
    said = complaint(encode, ["a", "z"], read(["a", "b"]))
    assert "'z'" in said
    assert "'a', 'b'" in said
    assert "the candidates" in said


def test_missing_targets_are_counted_and_located(complaint):
    said = complaint(read, ["a", None, "b", None])
    assert "2 of 4 rows" in said
    assert "row 1" in said
    assert "never imputed" in said
    assert "1 of 3" in complaint(read, [0.5, np.nan, 1.0])
    assert "missing" in complaint(encode, ["a", None], read(["a", "b"]))


def test_an_infinite_target_is_refused(complaint):
    assert "row 2" in complaint(read, [0.5, 1.0, np.inf])
    assert "row 1" in complaint(read, [1.0, -np.inf], kind="classification")


@pytest.mark.parametrize(("values", "kind"), [(["spam"] * 4, None), ([3.0] * 4, "regression")])
def test_a_constant_target_is_refused(complaint, values, kind):
    said = complaint(read, values, kind=kind)
    assert repr(values[0]) in said
    assert "in all 4 rows" in said


def test_a_label_for_each_row_is_no_class(complaint):
    said = complaint(read, [f"u{i}" for i in range(30)])
    assert "another label in each of its 30 rows" in said
    assert "--task regression" in said


def test_regression_needs_numbers(complaint):
    said = complaint(read, ["a", "b"], kind="regression")
    assert "'a'" in said
    assert "--task classification" in said
    assert "not a number" in complaint(encode, ["a"], read([0.5, 1.5]))


def test_dates_are_no_target(complaint):
    assert "dates" in complaint(read, pd.to_datetime(["2020-01-01", "2020-01-02"]))


def test_a_misspelt_kind_offers_the_nearest(complaint):
    assert "'regression'" in complaint(read, [0, 1], kind="regresion")


def test_complex_numbers_are_no_regression_target(complaint):
    assert "not a number" in complaint(read, [1j, 2j], kind="regression")
