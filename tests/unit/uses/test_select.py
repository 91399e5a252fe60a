from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import ks_2samp

from apiece.errors import CardinalityError, DataError, PlanError, UnknownNameError
from apiece.laws import Laws
from apiece.uses import as_semivalue, select
from apiece.uses._ranks import draw_values, drawn_values
from apiece.uses._rules import Rules


@pytest.fixture
def laws():
    """Steep but high, flat but low, harmful, equal to the first, and unknown."""
    return Laws.from_arrays(
        c=[100.0, 1.0, -1.0, 100.0, np.nan],
        alpha=[2.0, 1.0, 1.0, 2.0, np.nan],
        cov=np.broadcast_to(np.diag([1e-6, 0.01]), (5, 2, 2)),
        ids=["steep", "flat", "bad", "twin", "none"],
    )


def test_the_best_points_depend_on_the_size(laws):
    assert select(laws, take=2, at=10).index.tolist() == ["steep", "twin"]
    assert select(laws, take=1, at=1000).index.tolist() == ["flat"]


def test_picks_are_ranked_best_first_and_ties_keep_their_order(laws):
    table = select(laws, take=4, at=1000)
    assert table.index.tolist() == ["flat", "steep", "twin", "bad"]
    assert table["rank"].tolist() == [1, 2, 3, 4]
    assert table.index.name == "point"
    assert_allclose(table["value"], laws.mean(1000)[[1, 0, 3, 2]])
    low, high = laws.interval(1000, level=0.9)
    assert_allclose(table["low"], low[[1, 0, 3, 2]])
    assert_allclose(table["high"], high[[1, 0, 3, 2]])


@pytest.mark.parametrize("take", [0, -1, 5, 6, 1.5])
def test_more_picks_than_points_with_a_law_are_refused(laws, take):
    with pytest.raises(PlanError, match=r"1 <= take <= 4.*1 more have none"):
        select(laws, take=take, at=10)


def test_sizes_below_one_are_refused(laws):
    with pytest.raises(CardinalityError, match="at least 1"):
        select(laws, take=1, at=0)


def test_a_horizon_ranks_by_the_mean_on_the_way(laws):
    table = select(laws, take=3, at=10, until=1000)
    k = np.arange(10, 1001)
    assert_allclose(table.loc["flat", "value"], (1.0 / k).mean(), rtol=1e-9)
    assert_allclose(table.loc["steep", "value"], (100.0 / k**2).mean(), rtol=1e-9)
    assert table.index.tolist() == ["steep", "twin", "flat"]
    assert select(laws, take=1, at=200, until=1000).index.tolist() == ["flat"]


@pytest.fixture
def labelled():
    """Values 8, 7, ..., 1 at k = 100; three cats on top, then dogs."""
    return Laws.from_arrays(
        c=100.0 * np.arange(8.0, 0, -1),
        alpha=np.ones(8),
        cov=np.broadcast_to(np.diag([0.25, 1e-12]), (8, 2, 2)),
        ids=list("abcdefgh"),
        labels=np.array(["cat"] * 3 + ["dog"] * 5, dtype=object),
        k_range=(100, 100),
    )


def test_quotas_are_filled_with_the_best_of_each_class(labelled):
    table = select(labelled, at=100, quotas={"cat": 1, "dog": 3})
    assert table.index.tolist() == ["a", "d", "e", "f"]
    assert table["label"].tolist() == ["cat", "dog", "dog", "dog"]
    balanced = select(labelled, at=100, take=5, quotas="balanced")
    assert sorted(balanced["label"]) == ["cat"] * 3 + ["dog"] * 2
    assert select(labelled, at=100, take=8, quotas="balanced")["label"].tolist().count("dog") == 5


def test_a_budget_buys_value_for_money_and_only_what_helps(labelled):
    costs = {"a": 10.0, "b": 1.0, "c": 1.0, "d": 4.0, "e": 1.0, "f": 1.0, "g": 1.0, "h": 9.0}
    table = select(labelled, at=100, costs=costs, budget=4.5)
    assert table.index.tolist() == ["b", "c", "e", "f"]
    assert table["cost"].sum() <= 4.5
    assert select(labelled, at=100, costs=costs, budget=100.0).index.tolist()[0] == "b"
    harmful = Laws.from_arrays(c=[1.0, -1.0], alpha=[1.0, 1.0])
    assert len(select(harmful, at=100, costs=[1.0, 1.0], budget=9)) == 1


def test_a_budget_skips_what_it_cannot_pay(labelled):
    costs = np.array([5.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    table = select(labelled, at=100, costs=costs, budget=3, quotas={"cat": 2, "dog": 2})
    assert table.index.tolist() == ["b", "c", "d"]


def test_the_probability_to_belong_is_that_of_the_ranks(labelled):
    from apiece.uses import value

    table = select(labelled, take=3, at=100)
    ranks = value(labelled, sizes=(100, 100), top=3)
    assert_allclose(table["p_best"], ranks["p_top"][table.index])
    everyone = select(labelled, take=8, at=100)
    assert (everyone["p_best"] == 1).all()


def test_the_probability_is_missing_without_uncertainty():
    laws = Laws.from_arrays(c=[1.0, 2.0], alpha=[1.0, 1.0])
    assert select(laws, take=1, at=10)["p_best"].isna().all()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, PlanError, "nothing says how many"),
        ({"take": 2, "until": 5}, CardinalityError, "lies below at=100"),
        ({"costs": [1.0] * 8}, PlanError, "without budget"),
        ({"budget": 3}, PlanError, "without costs"),
        ({"costs": [1.0] * 8, "budget": 0}, PlanError, "buys nothing"),
        ({"costs": [1.0] * 7, "budget": 3}, DataError, r"\(8,\)"),
        ({"costs": [0.0] * 8, "budget": 3}, DataError, "positive"),
        ({"costs": {"a": 1.0}, "budget": 3}, DataError, "7 points, 'b'"),
        ({"quotas": {"cat": 4}}, PlanError, "0 to 3"),
        ({"quotas": {"cta": 1}}, UnknownNameError, "Did you mean 'cat'"),
        ({"quotas": {"cat": 2}, "take": 3}, PlanError, "contradict"),
        ({"quotas": "balanced"}, PlanError, "split evenly"),
        ({"quotas": "balance", "take": 2}, UnknownNameError, "balanced"),
        ({"take": 2, "redundancy": "awre"}, UnknownNameError, "aware"),
        ({"take": 2, "redundancy": "aware"}, PlanError, "Pass dataset="),
    ],
)
def test_what_cannot_be_picked_is_refused(labelled, options, error, words):
    with pytest.raises(error, match=words):
        select(labelled, at=100, **options)


def test_quotas_without_labels_are_refused(laws):
    with pytest.raises(PlanError, match="labels"):
        select(laws, at=10, quotas={"cat": 1})


@pytest.mark.parametrize("take", [1, 7, 30, 400])
@pytest.mark.parametrize("has_costs", [False, True])
def test_picks_are_those_of_sorting_all_points(take, has_costs):
    """Only the first are sorted; ties, unknown values, quotas and a budget change nothing."""
    rng = np.random.default_rng(take)
    n = 2_000
    value = rng.integers(-50, 50, n) / 10.0
    value[rng.random(n) < 0.1] = np.nan
    group = np.where(rng.random(n) < 0.02, 0, 1)
    rules = Rules(
        take=take,
        group=group,
        quota=np.array([take // 2, take]),
        cost=rng.integers(1, 5, n).astype(float) if has_costs else np.ones(n),
        budget=take / 2 if has_costs else np.inf,
    )
    expected, left, money = [], rules.quota.copy(), rules.budget
    for row in np.argsort(-value / rules.cost, kind="stable"):
        wanted = value[row] > 0 if has_costs else np.isfinite(value[row])
        if not wanted or len(expected) == take:
            break
        if left[group[row]] > 0 and rules.cost[row] <= money:
            expected.append(row)
            left[group[row]] -= 1
            money -= rules.cost[row]
    assert rules.pick(value).tolist() == expected


def test_chances_of_series_laws_are_those_of_drawing_their_parameters():
    """A series is linear in its parameters: its value is drawn at once."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(30, 3, 3)) * [1.0, 10.0, 100.0]
    laws = Laws.from_arrays(
        family="series",
        params=rng.normal(size=(30, 3)) * [1.0, 10.0, 100.0],
        cov=root @ root.transpose(0, 2, 1) / 10,
        df=np.where(np.arange(30) % 2, 6.0, np.inf),
    )
    weights = as_semivalue("shapley").over((50, 400))
    joint = draw_values(laws, weights, n=4_000, random_state=1)
    alone = np.stack(
        [v for seed in range(8) for v in drawn_values(laws, weights, random_state=seed)]
    )
    assert alone.shape == joint.shape
    for one, other in zip(joint.T, alone.T, strict=True):
        assert ks_2samp(one, other).pvalue > 1e-4
