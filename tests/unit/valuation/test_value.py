from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from apiece.errors import CardinalityError, UnknownNameError
from apiece.laws import Laws, Series
from apiece.valuation import KINDS, value
from apiece.valuation._weights import shapley_weights


@pytest.fixture
def laws():
    return Laws.from_arrays(
        c=[1.0, -2.0, np.nan],
        alpha=[1.0, 0.5, np.nan],
        cov=[[[1e-6, 0.0], [0.0, 0.01]], np.full((2, 2), np.nan), np.full((2, 2), np.nan)],
        ids=["a", "b", "c"],
        k_range=(10, 50),
    )


def test_values_are_means_over_every_size_of_the_sampled_range(laws):
    table = value(laws)
    k = np.arange(10, 51)
    assert_allclose(table.loc["a", "value"], (1 / k).mean())
    assert_allclose(table.loc["b", "value"], (-2 * k**-0.5).mean())
    assert table.columns.tolist() == ["value", "low", "high"]
    assert table.index.name == "point"


def test_intervals_are_missing_where_the_law_or_its_uncertainty_is(laws):
    table = value(laws)
    assert table.loc["a", "low"] < table.loc["a", "value"] < table.loc["a", "high"]
    assert table.loc["b", ["low", "high"]].isna().all()
    assert table.loc["c"].isna().all()


def test_intervals_agree_with_draws_of_the_law(laws):
    some = laws.select([0])
    table = value(some, level=0.8)
    draws = some.draws(20_000, random_state=0)[:, 0]
    k = np.arange(10, 51)
    values = (draws[:, :1] * k ** -draws[:, 1:]).mean(axis=1)
    half = 1.2816 * values.std()
    # The delta method is first order; with errors of 0.1 in alpha it is good to a few percent.
    assert_allclose(table["high"].iloc[0] - table["value"].iloc[0], half, rtol=0.05)


def test_wide_ranges_agree_with_the_plain_sum_to_the_stated_error():
    k_min, k_max = 50, 300_000
    k, weights = shapley_weights(k_min, k_max)
    assert len(k) < 11_000
    assert_allclose(weights.sum(), 1.0, rtol=1e-12)
    every = np.arange(k_min, k_max + 1, dtype=float)
    for alpha, tolerance in ((0.0, 1e-12), (0.5, 3e-8), (1.2, 3e-8), (3.0, 3e-8), (-2.0, 3e-8)):
        assert_allclose(weights @ k**-alpha, (every**-alpha).mean(), rtol=tolerance)


def test_ranges_just_beyond_the_limit_agree_with_the_plain_sum_for_series_laws():
    laws = Laws.from_arrays(family=Series((2, 4)), params=[[1.0, -3000.0]])
    wide = value(laws, sizes=(1000, 21_000))["value"].iloc[0]
    total = (1 / np.arange(1000.0, 21_001) - 3000 / np.arange(1000.0, 21_001) ** 2).mean()
    assert_allclose(wide, total, rtol=1e-7)


def test_the_two_names_of_the_kind_agree(laws):
    assert value(laws, kind="distributional").equals(value(laws, kind="shapley"))
    assert list(KINDS) == ["shapley", "distributional"]


def test_wrong_words_and_sizes_are_refused(laws):
    with pytest.raises(UnknownNameError, match="Did you mean 'shapley'"):
        value(laws, kind="shaply")
    with pytest.raises(CardinalityError, match="sizes"):
        value(laws, sizes=(0, 10))
