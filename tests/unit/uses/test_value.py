from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from apiece.errors import ApieceWarning, CardinalityError, PlanError, UnknownNameError
from apiece.laws import Laws, Series
from apiece.uses import as_semivalue, value
from apiece.uses._ranks import add_ranks, draw_values


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
    assert table.columns.tolist() == ["value", "low", "high", "stderr"]
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


def test_ranges_just_beyond_the_limit_agree_with_the_plain_sum_for_series_laws():
    laws = Laws.from_arrays(family=Series((2, 4)), params=[[1.0, -3000.0]])
    wide = value(laws, sizes=(1000, 21_000))["value"].iloc[0]
    total = (1 / np.arange(1000.0, 21_001) - 3000 / np.arange(1000.0, 21_001) ** 2).mean()
    assert_allclose(wide, total, rtol=1e-7)


def test_the_two_names_of_the_kind_agree(laws):
    assert value(laws, kind="distributional").equals(value(laws, kind="shapley"))


def test_wrong_words_and_sizes_are_refused(laws):
    with pytest.raises(UnknownNameError, match="Did you mean 'shapley'"):
        value(laws, kind="shaply")
    with pytest.raises(CardinalityError, match="sizes"):
        value(laws, sizes=(0, 10))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("data-shapley", {"n": 60}),
        ("beta-shapley", {"n": 60, "a": 2, "b": 3}),
        ("banzhaf", {"n": 60}),
        ("loo", {"n": 60}),
        ("weights", {"weights": {10: 2.0, 30: -1.0}}),
    ],
)
@pytest.mark.filterwarnings("ignore::apiece.ApieceWarning")
def test_every_kind_is_the_weighted_sum_of_the_curve(laws, kind, options):
    how = {name: item for name, item in options.items() if name != "n"}
    weights = as_semivalue(kind, **how).over(laws.k_range, n=options.get("n"))
    table = value(laws, kind=kind, **options)
    expected = laws.mean(np.maximum(weights.k, 1.0)) @ weights.w
    assert_allclose(table["value"], expected, rtol=1e-12)


def test_a_value_that_comes_from_below_the_sampled_sizes_warns(laws):
    with pytest.warns(ApieceWarning, match=r"comes from sizes below 10.*sizes=\(10, 50\)"):
        value(laws, kind="data-shapley", n=40)
    value(laws, kind="data-shapley", n=40, sizes=(10, 39))
    value(laws, kind="loo", n=5000)


def test_the_standard_error_is_that_of_the_interval(laws):
    table = value(laws, level=0.5)
    assert_allclose(
        table.loc["a", "high"] - table.loc["a", "value"],
        0.67449 * table.loc["a", "stderr"],
        rtol=1e-5,
    )


def test_the_standard_error_does_not_depend_on_the_degrees_of_freedom(laws):
    few = replace(laws, df=np.array([4.0, np.inf, np.inf]))
    assert_allclose(value(few)["stderr"], value(laws)["stderr"])
    assert value(few).loc["a", "high"] > value(laws).loc["a", "high"]


@pytest.fixture
def spread():
    """Ten points whose values are 10, 9, ..., 1 with errors of 0.7 (and one without a law)."""
    height = np.append(np.arange(10.0, 0, -1), np.nan)
    return Laws.from_arrays(
        c=height * 100.0,
        alpha=np.where(np.isnan(height), np.nan, 1.0),
        cov=np.broadcast_to(np.diag([0.49, 1e-12]), (11, 2, 2)),
        k_range=(100, 100),
    )


def test_ranks_come_with_an_interval_and_a_chance_to_be_among_the_best(spread):
    table = value(spread, top=3, level=0.9)
    assert table["rank"].tolist()[:10] == list(range(1, 11))
    assert (table["rank_low"] <= table["rank"])[:10].all()
    assert (table["rank_high"] >= table["rank"])[:10].all()
    assert_allclose(table["p_top"].sum(), 3.0)
    assert table["p_top"].iloc[:10].is_monotonic_decreasing
    assert table.iloc[10][["rank", "rank_low", "rank_high", "p_top"]].isna().all()
    # The largest stays among three unless it falls below two of 9, 8, 7, ...: hardly ever.
    assert table["p_top"].iloc[0] > 0.97
    # Places 3 and 4 differ by 1 with an error of 1: about three to one.
    assert 0.1 < table["p_top"].iloc[3] < 0.4


def test_chances_agree_with_normal_theory_for_two_points():
    laws = Laws.from_arrays(
        c=[100.0, 200.0],
        alpha=[1.0, 1.0],
        cov=np.broadcast_to(np.diag([0.5, 1e-12]), (2, 2, 2)),
        k_range=(100, 100),
    )
    draws = draw_values(laws, as_semivalue("shapley").over((100, 100)), n=20_000)
    table = add_ranks(value(laws), draws, 1, 0.9)
    # P(N(1, 0.5) > N(2, 0.5)) = Phi(-1) = 0.1587, with a standard error of 0.0026.
    assert_allclose(table["p_top"], [0.1587, 0.8413], atol=0.01)


def test_points_without_uncertainty_are_ranked_without_an_interval(laws):
    table = value(laws, top=1)
    assert table["rank"].tolist()[:2] == [1.0, 2.0]
    assert np.isnan(table.loc["b", "p_top"])
    assert table.loc["a", "p_top"] == 1.0


def test_draws_in_several_chunks_have_the_same_spread(laws, monkeypatch):
    some = laws.select([0])
    weights = as_semivalue("shapley").over(laws.k_range)
    monkeypatch.setattr("apiece.uses._ranks._CHUNK", 300)
    draws = draw_values(some, weights, n=2000)
    assert_allclose(draws.std(), value(some)["stderr"].iloc[0], rtol=0.1)
    assert len(np.unique(draws)) == 2000


@pytest.mark.parametrize("top", [0, 3, 1.5])
def test_more_best_points_than_there_are_are_refused(laws, top):
    with pytest.raises(PlanError, match="expected 1 to 2"):
        value(laws, top=top)
