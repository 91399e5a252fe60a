from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.naive_bayes import GaussianNB

import apiece
from apiece import ApieceWarning, DataError, Dataset, PlanError
from apiece.data import small_data

X = np.random.default_rng(0).normal(size=(600, 2))


def target(y, **options):
    return Dataset.from_arrays(X[: len(y)], pd.Series(y, name="quality"), **options)


def test_the_summary_counts_what_was_read():
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=[0, 1] * 300, g=["u", "v", "w"] * 200, w=1)
    offer = frame.head(2).assign(a=9.0)
    dataset = Dataset.from_pandas(
        frame, target="y", groups="g", sample_weight="w", candidates=offer, validation=0.2
    )
    first, second = dataset.summary().splitlines()
    assert first == (
        "480 points to value, 2 features, 2 candidates, 3 groups, sample weights, "
        "120 rows to score on"
    )
    assert second == "target y: 2 classes (0, 1)"


@pytest.mark.parametrize("ratings", [[3, 4, 5, 6, 7, 8, 9], [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]])
def test_numbers_taken_as_classes_come_with_the_way_to_change_that(ratings):
    dataset = target(np.resize(ratings, 140))
    expected = "target quality: 7 classes (3..9)"
    change = "; kind='regression' (--task regression) if it is a quantity"
    assert dataset.summary().endswith(expected + change)
    assert dataset.summary(is_guess=False).endswith(expected)


def test_rows_that_take_turns_in_scoring_are_summarised():
    for options in ({}, {"validation": 0}, {"validation": None}):
        dataset = target(np.resize([0, 1], 60), **options)
        assert dataset.summary().startswith("60 points to value, 2 features, all score in turns")


def test_copies_of_rows_are_counted_if_their_targets_agree():
    X, y = np.arange(60.0).reshape(30, 2), np.arange(30) % 2
    twice = np.concatenate([X, X[:3], X[:1]]), np.concatenate([y, y[:3], 1 - y[:1]])
    said = Dataset.from_arrays(*twice).summary()
    assert "all score in turns; 3 rows are copies of others\n" in said
    assert "cop" not in Dataset.from_arrays(X, y).summary()
    assert "cop" not in Dataset.from_arrays(csr_array(twice[0]), twice[1]).summary()


def test_words_and_fractions_leave_no_doubt_about_the_kind():
    assert target(np.resize(["ham", "spam"], 60)).summary().endswith("2 classes (ham, spam)")
    many = target(np.resize([f"c{i}" for i in range(8)], 80)).summary()
    assert many.endswith("8 classes (c0, c1, c2, c3, c4, …)")
    price = target(np.linspace(1, 2_000_000.5, 60), validation=5, random_state=1).summary()
    assert "a quantity from 1 to 2,000,000" in price
    assert "kind=" not in price
    counts = target(np.arange(600), kind="regression").summary()
    assert "kind='classification' (--task classification) if it is a class" in counts


def test_small_data_is_named_in_plain_words():
    assert small_data(target(np.resize([0, 1], 600))) is None
    assert small_data(target(np.resize([0, 1], 100))) is None
    few = small_data(target(np.resize([0, 1], 100), validation=0.2))
    assert "only 20 rows to score on" in few
    assert "only 60 rows (at least 100" in small_data(target(np.resize([0, 1], 60)))
    rare = small_data(target(np.repeat([0, 1], [592, 8])))
    assert "class 1 has 8 rows in the pool" in rare
    assert "only" not in rare
    assert "(and 1 class)" in small_data(target(np.repeat([0, 1, 2], [582, 9, 9])))


def test_collect_warns_of_small_data_once_and_not_on_resuming(tmp_path):
    options = {"sizes": (5, 10), "samples": 2, "random_state": 0, "to": tmp_path / "run"}
    dataset = target(np.resize([0, 1], 60))
    with pytest.warns(ApieceWarning, match="small data: only 60 rows") as caught:
        apiece.collect(dataset, **options)
    assert len(caught) == 1
    apiece.collect(dataset, **options)


@pytest.mark.parametrize("is_rare_level", [False, True])
def test_collect_names_a_row_that_lies_far_from_all_others(is_rare_level):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    X[:, 1] = 0 if is_rare_level else X[:, 1]
    X[7, 1] = 80.0
    dataset = apiece.Dataset.from_arrays(X, np.resize([0, 1], 600), feature_names=["a", "b"])
    options = {"sizes": (5, 10), "samples": 2, "random_state": 0}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        apiece.collect(dataset, **options)
        apiece.collect(dataset, model=GaussianNB(), **options)  # is refitted: may follow anything
    said = [str(warning.message) for warning in caught]
    named = [line for line in said if "standard deviations from the mean of b" in line]
    assert len(named) == (0 if is_rare_level else 1), said


def test_collect_says_what_it_expects_of_data_and_sizes():
    with pytest.raises(DataError, match="dataset is a DataFrame: expected an apiece"):
        apiece.collect(pd.DataFrame({"a": [1]}))
    with pytest.raises(PlanError, match=r"sizes=\(100,\) is not a range"):
        apiece.collect(target(np.resize([0, 1], 60)), sizes=100)
    with pytest.raises(PlanError, match=r"sizes=\(100,\) is not a range"):
        apiece.collect(target(np.resize([0, 1], 60), validation=0), sizes=100)
