from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from apiece.collection import Design, make_plan
from apiece.errors import CardinalityError, PlanError


def counts_of(plan, n_points):
    have = np.zeros(n_points, dtype=int)
    for index in range(len(plan)):
        have[plan[index].points] += 1
    return have


@pytest.mark.parametrize("share", [None, 7, 1])
@pytest.mark.parametrize("sizes", [(2, 10), (25, 29)])
def test_every_point_gets_the_samples_asked_for(share, sizes):
    plan = make_plan(
        Design.of(sizes, samples=12, share=share), n_pool=30, points=np.arange(30), seed=1
    )
    have = counts_of(plan, 30)
    assert have.min() >= 12
    assert have.sum() == plan.n_contributions


def test_a_grid_gives_every_point_its_share_at_every_size():
    design = Design.of([3, 10, 18], samples=12)
    plan = make_plan(design, n_pool=20, points=np.arange(20), seed=0)
    have = Counter()
    for index in range(len(plan)):
        task = plan[index]
        have.update((task.cardinality, int(point)) for point in task.points)
    assert min(have[size, point] for size in (3, 10, 18) for point in range(20)) >= 4


def test_large_sizes_do_not_multiply_the_tasks_of_small_ones():
    design = Design.of((2, 18), name="grid", n_sizes=2, samples=20)
    plan = make_plan(design, n_pool=20, points=np.arange(20), seed=0)
    tasks = Counter(plan[index].cardinality for index in range(len(plan)))
    assert tasks[2] < 25
    assert tasks[18] >= 100  # each such task values two of twenty points


def test_a_point_is_never_valued_against_a_set_that_holds_it():
    plan = make_plan(Design.of((2, 9), samples=5), n_pool=10, points=np.arange(10), seed=3)
    for index in range(len(plan)):
        task = plan[index]
        assert not np.isin(task.points, task.subset).any()
        assert len(np.unique(task.subset)) == task.cardinality


def test_a_plan_for_more_samples_begins_with_the_plan_for_fewer():
    few, many = (
        make_plan(
            Design.of((5, 20), samples=samples, share=10), n_pool=30, points=np.arange(30), seed=5
        )
        for samples in (4, 9)
    )
    assert len(few) < len(many)
    for index in range(len(few)):
        a, b = few[index], many[index]
        assert (a.seed, a.subset.tolist(), a.points.tolist()) == (
            b.seed,
            b.subset.tolist(),
            b.points.tolist(),
        )


def test_given_that_a_point_is_out_every_subset_is_equally_likely():
    plan = make_plan(Design.of((2, 2), samples=6_000), n_pool=5, points=np.arange(5), seed=0)
    seen = Counter(
        tuple(sorted(task.subset.tolist()))
        for task in (plan[index] for index in range(len(plan)))
        if 0 in task.points
    )
    n = sum(seen.values())
    assert set(seen) == set(combinations(range(1, 5), 2))
    # multinomial over 6 subsets: standard deviation of a count sqrt(n 5/36); accept five of them
    assert max(abs(count - n / 6) for count in seen.values()) < 5 * np.sqrt(n * 5 / 36)


def test_a_point_with_its_own_draws_meets_the_same_subsets():
    plan = make_plan(Design.of((2, 2), samples=3_000, share=1), n_pool=5, points=[0], seed=0)
    seen = Counter(tuple(sorted(plan[index].subset.tolist())) for index in range(len(plan)))
    assert len(plan) == 3_000
    assert set(seen) == set(combinations(range(1, 5), 2))
    assert max(abs(count - 500) for count in seen.values()) < 5 * np.sqrt(3_000 * 5 / 36)


def test_classes_keep_the_proportions_of_the_pool_and_none_is_missing():
    strata = np.repeat([0, 1, 2], [60, 36, 4])
    plan = make_plan(
        Design.of([3, 25, 50], samples=9), n_pool=100, points=np.arange(100), seed=0, strata=strata
    )
    for index in range(len(plan)):
        subset = plan[index].subset
        counts = np.bincount(strata[subset], minlength=3)
        assert counts.min() >= 1
        if len(subset) > 3:
            assert np.all(np.abs(counts - len(subset) * np.array([0.6, 0.36, 0.04])) < 1)


def test_candidates_are_valued_against_the_pool_and_never_drawn():
    plan = make_plan(Design.of((3, 10), samples=4), n_pool=10, points=np.arange(10, 13), seed=0)
    assert len(plan) == 4
    for index in range(len(plan)):
        assert plan[index].subset.max() < 10
        assert plan[index].points.tolist() == [10, 11, 12]


def test_when_only_candidates_are_valued_the_whole_pool_may_train():
    plan = make_plan(Design.of([10], name="grid", samples=2), n_pool=10, points=[11], seed=0)
    assert sorted(plan[0].subset) == list(range(10))


@pytest.mark.parametrize(
    ("sizes", "strata", "words"),
    [
        ((5, 20), None, "k_max=20 does not fit a pool of 20 points: expected k_max <= 19"),
        ((5, 19), np.repeat([0, 1], 10), "k_max=19 .* expected k_max <= 18"),
        ((2, 10), np.repeat([0, 1, 2], [8, 8, 4]), "k_min=2 is too small for 3 classes"),
        ((3, 10), np.repeat([0, 1], [19, 1]), "class 'rare' has 1 point"),
    ],
)
def test_sizes_that_cannot_be_drawn_are_refused_before_any_work(sizes, strata, words):
    names = ["common", "rare", "other"]
    with pytest.raises(CardinalityError, match=words):
        make_plan(
            Design.of(sizes),
            n_pool=20,
            points=np.arange(20),
            seed=0,
            strata=strata,
            class_names=names,
        )


def test_the_largest_size_that_is_allowed_works():
    strata = np.repeat([0, 1], [15, 5])
    plan = make_plan(
        Design.of([18], name="grid", samples=3),
        n_pool=20,
        points=np.arange(20),
        seed=0,
        strata=strata,
    )
    assert counts_of(plan, 20).min() >= 3


def test_nothing_to_value_is_refused():
    with pytest.raises(PlanError, match="no points"):
        make_plan(Design.of((2, 5)), n_pool=10, points=[], seed=0)
