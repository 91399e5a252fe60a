from __future__ import annotations

from math import erf

import numpy as np
import pytest
from numpy.testing import assert_allclose

from apiece import synthetic
from apiece.errors import FitError, PlanError
from apiece.estimators import Likelihood
from apiece.laws import Laws, Series
from apiece.uses import crossing, crossings, movers, value


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
    monkeypatch.setattr("apiece.uses._crossings._ROWS", 7)
    assert crossings(laws, most=30).equals(whole)


def test_of_many_points_the_most_valuable_at_either_end_are_compared(monkeypatch):
    monkeypatch.setattr("apiece.uses._crossings._MOST_POINTS", 10)
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
    assert_allclose(crossing(laws, 0, 1), 200.0, rtol=1e-9)
    assert_allclose(crossing(laws, 1, 0), 200.0, rtol=1e-9)


def test_series_that_cross_twice_report_the_crossing_near_the_sampled_sizes():
    # The difference 1 - 6 u + 8 u^2 over k, with u = k^(-1/2), vanishes at u = 1/2 and u = 1/4.
    laws = Laws.from_arrays(
        family="series", params=[[1.0, -6.0, 8.0], [0.0, 0.0, 0.0]], k_range=(10, 30)
    )
    assert_allclose(crossing(laws, 0, 1), 16.0, rtol=1e-9)
    assert np.isnan(crossing(laws, 0, 0))
    assert np.isnan(crossing(laws.select([1]), 1, 1))


@pytest.mark.parametrize("family", ["power", "series"])
def test_intervals_of_crossings_cover_as_often_as_they_say(family):
    """Two true curves that cross at 300, estimated with errors again and again."""
    truth = (
        Laws.from_arrays(c=[1.0, 300.0], alpha=[1.0, 2.0])
        if family == "power"
        else Laws.from_arrays(family=Series((2, 4)), params=[[1.0, 0.0], [0.5, 150.0]])
    )
    assert_allclose(crossing(truth, 0, 1), 300.0, rtol=1e-6)
    local = truth.family.to_local(truth.params, truth.k_ref)
    sd = np.array([2e-4, 0.05]) if family == "power" else np.array([0.05, 15.0])
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(200):
        params = truth.family.from_local(local + sd * rng.standard_normal((2, 2)), truth.k_ref)
        laws = Laws.from_arrays(
            family=truth.family, params=params, cov=np.broadcast_to(np.diag(sd**2), (2, 2, 2))
        )
        row = crossings(laws, pairs=[(0, 1)], level=0.8).iloc[0]
        covered.append(row["low"] < 300 < row["high"])
        assert row["low"] < row["at"] < row["high"]
    # 200 trials at 0.8 have a standard error of 0.03.
    assert abs(np.mean(covered) - 0.8) < 0.09


def test_the_chance_of_a_swap_is_that_of_both_ends():
    truth = synthetic.random_laws(40, random_state=8)
    laws = Likelihood().fit(synthetic.sample(truth, samples=300, random_state=9))
    table = crossings(laws, most=20)
    assert table["p_swap"].between(0, 1).all()
    assert table["p_swap"].iloc[0] > table["p_swap"].iloc[-1]
    ends = laws.mean([100, 1000])
    for pair in table.itertuples():
        d, e = ends[pair.first] - ends[pair.second], laws.stderr([100, 1000])
        z = d / np.hypot(e[pair.first], e[pair.second])
        # By normal theory at least one minus both tails, and at most the weaker end alone.
        tails = [0.5 * (1 + erf(abs(x) / np.sqrt(2))) for x in z]
        assert sum(tails) - 1 - 0.1 < pair.p_swap < min(tails) + 0.1


def test_given_pairs_are_listed_whether_they_cross_or_not():
    laws = Laws.from_arrays(c=[1.0, 100.0, -1.0], alpha=[1.0, 2.0, 1.0], ids=["a", "b", "c"])
    table = crossings(laws, pairs=[("a", "b"), ("a", "c")])
    assert table[["first", "second"]].values.tolist() == [["a", "b"], ["a", "c"]]
    assert_allclose(table["at"], [100.0, np.nan])
    assert crossings(laws, pairs=[]).empty


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


def test_wild_draws_from_a_hopeless_fit_do_no_harm():
    laws = Laws.from_arrays(
        c=[1.0, 100.0],
        alpha=[1.0, 2.0],
        cov=np.broadcast_to(np.diag([1.0, 1e4]), (2, 2, 2)),
        df=np.array([1.0, 1.0]),
        k_range=(10, 1000),
    )
    row = crossings(laws, pairs=[(0, 1)]).iloc[0]
    assert_allclose(row["at"], 100.0)
    assert 0 <= row["p_swap"] <= 1
    assert np.isfinite(movers(laws)[["low", "high"]]).all().all()
    assert value(laws, top=1)["p_top"].between(0, 1).all()


def test_a_row_of_crossings_leaves_whole_ids_whole():
    laws = Laws.from_arrays(c=[1.0, 100.0], alpha=[1.0, 2.0], k_range=(10, 1000))
    row = crossings(laws).iloc[0]
    assert (row["first"], row["second"]) == (1, 0)
    assert isinstance(row["first"], int)


def test_a_point_that_swaps_with_many_is_listed_a_few_times():
    laws = Laws.from_arrays(
        c=[1.0, *np.linspace(50, 100, 30)], alpha=[1.0, *[2.0] * 30], k_range=(10, 1000)
    )
    assert (crossings(laws)["second"] == 0).sum() == 30
    found = crossings(laws, per_point=2)
    assert len(found) == 2
    assert found["first"].tolist() == crossings(laws)["first"].tolist()[:2]
