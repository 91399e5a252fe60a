from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from apiece.data._split import carve, spread, validation_rows


def carved(counts, validation=0.2, seed=0):
    codes = np.repeat(np.arange(len(counts)), counts)
    codes = np.random.default_rng(1).permutation(codes)
    classes = np.arange(len(counts))
    return codes, *carve(len(codes), validation, seed=seed, codes=codes, classes=classes)


@pytest.mark.parametrize(
    ("validation", "n_rows", "n_classes", "expected"),
    [
        (0.2, 12, 5, 5),
        (0.2, 3, 1, 1),
        (0.25, 100, 2, 25),
        (0.001, 100, 7, 7),
        (0.999, 100, 7, 93),
        (np.float32(0.5), 10, 2, 5),
        (np.int64(5), 10, 2, 5),
        (1, 3, 1, 1),
    ],
)
def test_sizes_of_the_validation_set(validation, n_rows, n_classes, expected):
    assert validation_rows(validation, n_rows, n_classes) == expected


def test_shares_are_proportional_to_within_one_row_when_no_class_is_rare():
    counts = np.array([613, 241, 100, 46])
    for total in range(4, 900, 7):
        taken = spread(counts, total)
        assert taken.sum() == total
        free = np.array([c * total / 1000 >= 1 for c in counts])
        if free.all():
            assert (np.abs(taken - counts * total / 1000) < 1).all()


def test_largest_remainders_get_the_rows_left_over():
    # Quotas 4.5, 2.7, 1.8: floors 4, 2, 1 leave two rows for the remainders 0.8 and 0.7.
    assert spread(np.array([50, 30, 20]), 9).tolist() == [4, 3, 2]


def test_rows_lent_to_rare_classes_are_taken_where_they_are_missed_least():
    # Quotas 4.69, 4.53 and six of 0.16: the rare ones get a row each, the rest shares four.
    counts = np.array([60, 58, 2, 2, 2, 2, 2, 2])
    assert spread(counts, 10).tolist() == [2, 2, 1, 1, 1, 1, 1, 1]


def test_every_class_keeps_a_row_on_each_side_however_rare():
    for total in (3, 4, 50, 98, 99):
        taken = spread(np.array([98, 2, 2]), total)
        assert taken.sum() == total
        assert (taken >= 1).all()
        assert (taken <= [97, 1, 1]).all()


def test_pool_and_validation_are_disjoint_complete_and_in_order():
    _, pool, held = carved([30, 20, 10], 0.3)
    assert_array_equal(np.sort(np.concatenate([pool, held])), np.arange(60))
    assert (np.diff(pool) > 0).all()
    assert (np.diff(held) > 0).all()


def test_the_carving_is_stratified():
    codes, _, held = carved([60, 30, 10], 20)
    assert np.bincount(codes[held]).tolist() == [12, 6, 2]


def test_the_seed_decides_the_carving():
    first, again, other = (carved([50, 50], 20, seed=seed)[2] for seed in (3, 3, 4))
    assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_every_row_is_carved_equally_often():
    hits = np.zeros(20)
    for seed in range(2_000):
        hits[carve(20, 5, seed=seed)[1]] += 1
    # A row's hits are Binomial(2000, 1/4): standard deviation 19.4; accept five of them.
    assert (np.abs(hits - 500) < 97).all()


@pytest.mark.parametrize("validation", [0, -3, 0.0, 1.0, -0.5, 2.5, float("nan"), True, "many"])
def test_a_validation_that_is_no_size_is_refused(complaint, validation):
    assert repr(validation) in complaint(validation_rows, validation, 100, 2)


def test_a_validation_set_as_large_as_the_data_is_refused(complaint):
    said = complaint(validation_rows, 100, 100, 3)
    assert "3 to 97 rows" in said
    complaint(validation_rows, 98, 100, 3)
    assert validation_rows(97, 100, 3) == 97


def test_fewer_validation_rows_than_classes_are_refused(complaint):
    assert "3 classes" in complaint(validation_rows, 2, 100, 3)


def test_a_class_with_a_single_row_is_named(complaint):
    codes = np.array([0, 0, 1, 0, 0])
    said = complaint(carve, 5, None, seed=0, codes=codes, classes=np.array(["cat", "dog"]))
    assert "'dog'" in said
    assert "row 2" in said
    assert "--validation rows.csv" in said


def test_several_classes_with_a_single_row_are_named_together(complaint):
    codes = np.arange(30)
    said = complaint(carve, 30, None, seed=0, codes=codes, classes=np.arange(30))
    assert "and 25 more" in said
    assert "--task regression" in said
