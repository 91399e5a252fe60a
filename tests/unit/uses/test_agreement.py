from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from apiece.errors import DataError, PlanError
from apiece.uses import agreement, knn_shapley, random_values

from conftest import make_blobs


@pytest.fixture
def pair():
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    return a, 0.8 * a + 0.6 * rng.normal(size=200)


def test_measures_are_those_of_scipy(pair):
    a, b = pair
    table = agreement(a, b, top=20)["agreement"]
    assert_allclose(table["pearson"], stats.pearsonr(a, b).statistic, rtol=1e-12)
    assert_allclose(table["spearman"], stats.spearmanr(a, b).statistic, rtol=1e-12)
    assert_allclose(table["kendall"], stats.kendalltau(a, b).statistic, rtol=1e-12)
    expected = len(set(np.argsort(-a)[:20]) & set(np.argsort(-b)[:20])) / 20
    assert table["top"] == expected


def test_measures_of_ties_are_those_of_scipy_however_they_are_computed(monkeypatch):
    rng = np.random.default_rng(3)
    a, b = rng.integers(5, size=80).astype(float), rng.integers(4, size=80).astype(float)
    table = agreement(a, b)
    assert_allclose(table["agreement"]["kendall"], stats.kendalltau(a, b).statistic, rtol=1e-12)
    assert_allclose(table["agreement"]["spearman"], stats.spearmanr(a, b).statistic, rtol=1e-12)
    monkeypatch.setattr("apiece.uses._agreement._PAIRWISE", 10)
    pd.testing.assert_frame_equal(agreement(a, b), table)


def test_intervals_cover_the_truth_of_a_population():
    covered = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        a = rng.normal(size=80)
        b = 0.8 * a + 0.6 * rng.normal(size=80)
        row = agreement(a, b, level=0.8, resamples=50).loc["pearson"]
        covered.append(row["low"] < 0.8 < row["high"])
    # 40 trials at 0.8 have a standard error of 0.06.
    assert abs(np.mean(covered) - 0.8) < 0.18


def test_points_are_matched_by_id_and_gaps_left_out(pair):
    a, b = pair
    first = pd.DataFrame({"value": a}, index=[f"p{i}" for i in range(200)])
    second = pd.Series(b, index=first.index)[::-1].copy()
    assert_allclose(agreement(first, second)["agreement"], agreement(a, b)["agreement"])
    second.iloc[:5] = np.nan
    assert agreement(first, second)["n"].iloc[0] == 195
    numbers = pd.Series(a, index=np.arange(200))
    words = pd.Series(b, index=np.arange(200).astype(str))
    assert agreement(numbers, words)["n"].iloc[0] == 200


def test_a_constant_agrees_with_nothing(pair):
    with np.errstate(all="ignore"):
        table = agreement(pair[0], np.ones(200))
    assert table["agreement"][["pearson", "spearman", "kendall"]].isna().all()


def test_scale_and_units_do_not_matter(pair):
    a, b = pair
    assert_allclose(
        agreement(1e-160 * a, 1e160 * b + 3e160)["agreement"], agreement(a, b)["agreement"]
    )


@pytest.mark.parametrize(
    ("first", "second", "options", "error", "words"),
    [
        ([1.0, 2.0], [1.0, 2.0], {}, DataError, "at least 3"),
        (pd.DataFrame({"x": [1.0]}), [1.0], {}, DataError, "column 'value'"),
        (pd.Series([1.0, 2.0], index=["a", "a"]), [1.0], {}, DataError, "two values"),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], {"top": 4}, PlanError, "expected 1 to 3"),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], {"level": 1.0}, PlanError, "coverage"),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], {"resamples": 0}, PlanError, "resamples=0"),
    ],
)
def test_what_cannot_be_compared_is_refused(first, second, options, error, words):
    with pytest.raises(error, match=words):
        agreement(first, second, **options)


def test_random_values_are_reproducible_and_agree_with_nothing():
    dataset = make_blobs(n=300)
    values = random_values(dataset, random_state=1)
    assert values.equals(random_values(dataset, random_state=1))
    assert abs(agreement(values, knn_shapley(dataset))["agreement"]["spearman"]) < 0.2
    with pytest.raises(PlanError, match="n_neighbors=0"):
        knn_shapley(dataset, n_neighbors=0)
