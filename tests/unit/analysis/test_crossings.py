from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from apiece import synthetic
from apiece.analysis import crossing, crossings
from apiece.errors import FitError, PlanError, UnknownNameError
from apiece.estimators import Likelihood
from apiece.laws import Laws, Series


def test_curves_are_equal_where_they_cross():
    laws = Laws.from_arrays(c=[3.0, 80.0], alpha=[0.8, 1.4], ids=["a", "b"])
    k = crossing(laws, "a", "b")
    assert_allclose(*laws.mean(k), rtol=1e-12)
    assert crossing(laws, "b", "a") == k


@pytest.mark.parametrize(
    ("c", "alpha"),
    [
        ([1.0, -1.0], [1.0, 2.0]),  # opposite signs
        ([1.0, 2.0], [1.0, 1.0]),  # the same decay
        ([2.0, 1.0], [1.0, 2.0]),  # would cross below one training point
        ([0.0, 1.0], [1.0, 2.0]),  # one is zero everywhere
        ([np.nan, 1.0], [np.nan, 2.0]),  # one has no law
        ([1e9, 1.0], [1.0001, 1.0]),  # beyond any size
    ],
)
def test_curves_that_do_not_cross_give_nan(c, alpha):
    assert np.isnan(crossing(Laws.from_arrays(c=c, alpha=alpha), 0, 1))


def test_pairs_that_swap_are_those_a_plain_loop_finds():
    laws = synthetic.random_laws(40, random_state=3)
    ends = laws.mean([100, 1000])
    expected = {
        (i, j)
        for i in range(40)
        for j in range(40)
        if ends[i, 0] > ends[j, 0] and ends[i, 1] < ends[j, 1]
    }
    table = crossings(laws, most=10_000)
    assert set(zip(table["first"], table["second"], strict=True)) == expected
    closed = [crossing(laws, *pair) for pair in zip(table["first"], table["second"], strict=True)]
    assert_allclose(table["at"], closed, rtol=1e-9)
    assert table["z"].isna().all()


def test_swaps_are_ranked_by_their_weaker_end():
    truth = synthetic.random_laws(60, random_state=4)
    laws = Likelihood().fit(synthetic.sample(truth, samples=300, random_state=5))
    table = crossings(laws, sizes=(100, 1000), most=25)
    assert len(table) == 25
    assert (np.diff(table["z"]) <= 0).all()
    ends = np.array([100, 1000])
    mean, error = laws.mean(ends), laws.stderr(ends)
    for pair in table.itertuples():
        d = mean[pair.first] - mean[pair.second]
        z = np.abs(d) / np.hypot(error[pair.first], error[pair.second])
        assert d[0] > 0 > d[1]
        assert_allclose(pair.z, z.min(), rtol=1e-6)
        assert 100 <= pair.at <= 1000
    everything = crossings(laws, most=100_000)
    assert_allclose(everything["z"][:25], table["z"])


def test_pairs_in_several_chunks_are_the_same(monkeypatch):
    laws = synthetic.random_laws(50, random_state=6)
    whole = crossings(laws, most=30)
    monkeypatch.setattr("apiece.analysis._crossings._ROWS", 7)
    assert crossings(laws, most=30).equals(whole)


def test_of_many_points_the_most_valuable_at_either_end_are_compared(monkeypatch):
    monkeypatch.setattr("apiece.analysis._crossings._MOST_POINTS", 10)
    laws = synthetic.random_laws(100, random_state=7)
    ends = laws.mean([100, 1000])
    best = set(np.argsort(-ends[:, 0])[:5]) | set(np.argsort(-ends[:, 1])[:5])
    table = crossings(laws, most=1000)
    assert len(table) > 0
    assert set(table["first"]) | set(table["second"]) <= best


def test_series_laws_cross_where_their_difference_changes_sign():
    laws = Laws.from_arrays(
        family=Series((2, 4)), params=[[1.0, 0.0], [0.5, 100.0]], k_range=(100, 1000)
    )
    table = crossings(laws)
    assert_allclose(table["at"], [200.0])
    assert (table["first"].iloc[0], table["second"].iloc[0]) == (1, 0)
    with pytest.raises(UnknownNameError, match="'c'"):
        crossing(laws, 0, 1)


def test_points_without_a_law_take_no_part():
    laws = Laws.from_arrays(
        c=[1.0, 100.0, np.nan], alpha=[1.0, 2.0, np.nan], k_range=(10, 1000), ids=["a", "b", "c"]
    )
    assert crossings(laws)[["first", "second"]].values.tolist() == [["b", "a"]]
    assert crossings(laws.select([2])).empty


def test_wrong_counts_are_refused():
    with pytest.raises(PlanError, match="most=0"):
        crossings(synthetic.random_laws(3), most=0)
    assert issubclass(FitError, ValueError)
