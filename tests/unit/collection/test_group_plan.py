from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiece.collection import Design
from apiece.collection._groups import make_group_plan
from apiece.errors import CardinalityError, PlanError


def plan(rows, *, n_pool=60, sizes=(10, 20), samples=4, group_size=None, strata=None, **design):
    return make_group_plan(
        Design.of(sizes, samples=samples, **design),
        n_pool=n_pool,
        names=[f"g{i}" for i in range(len(rows))],
        rows=tuple(np.asarray(own) for own in rows),
        group_size=group_size,
        seed=3,
        strata=strata,
        class_names=None if strata is None else ["no", "yes"],
    )


def tasks(plan):
    return [plan[index] for index in range(len(plan))]


@given(
    cuts=st.lists(st.integers(1, 59), min_size=1, max_size=4, unique=True),
    samples=st.integers(1, 6),
)
def test_whole_groups_join_training_sets_without_any_of_their_rows(cuts, samples):
    rows = [part for part in np.split(np.arange(60), sorted(cuts)) if len(part) <= 40]
    if not rows:
        return
    drawn = plan(rows, samples=samples)
    seen = np.zeros(len(rows), dtype=int)
    for task in tasks(drawn):
        assert len(task.points) == len(task.rows) == 1
        assert np.array_equal(task.rows[0], rows[task.points[0]])
        assert not np.isin(task.rows[0], task.subset).any()
        assert len(np.unique(task.subset)) == task.cardinality
        assert 10 <= task.cardinality <= 20
        seen[task.points] += 1
    assert (seen == samples).all()
    assert drawn.n_contributions == seen.sum()


@given(group_size=st.integers(1, 8), seed=st.integers(0, 5))
def test_some_rows_of_each_group_join_one_training_set_for_all(group_size, seed):
    rng = np.random.default_rng(seed)
    rows = np.split(rng.permutation(60), [20, 40])
    drawn = plan([np.sort(own) for own in rows], group_size=group_size)
    seen = np.zeros(3, dtype=int)
    for task in tasks(drawn):
        for group, joining in zip(task.points, task.rows, strict=True):
            assert len(np.unique(joining)) == group_size
            assert np.isin(joining, rows[group]).all()
            assert not np.isin(joining, task.subset).any()
        seen[task.points] += 1
    assert seen.min() >= 4
    assert drawn.n_contributions == seen.sum()


def test_joining_rows_differ_from_draw_to_draw_and_reach_all_of_the_group():
    drawn = plan([np.arange(30), np.arange(30, 60)], group_size=5, samples=60)
    joined = np.concatenate([task.rows[0] for task in tasks(drawn) if task.points[0] == 0])
    assert set(joined) == set(range(30))


def test_groups_of_candidates_share_every_training_set():
    drawn = plan([np.arange(60, 70), np.arange(70, 73)])
    assert len(drawn) == 4
    assert all(task.points.tolist() == [0, 1] for task in tasks(drawn))


def test_a_plan_for_more_samples_begins_with_that_for_fewer():
    for group_size in (None, 4):
        rows = [np.arange(20), np.arange(20, 50)]
        few, many = (plan(rows, samples=n, group_size=group_size) for n in (3, 7))
        for one, two in zip(tasks(few), tasks(many), strict=False):
            assert np.array_equal(one.subset, two.subset)
            assert np.array_equal(one.points, two.points)
            assert all(np.array_equal(a, b) for a, b in zip(one.rows, two.rows, strict=True))


def test_a_grid_visits_every_size_for_every_group():
    for group_size in (None, 4):
        drawn = plan(
            [np.arange(20), np.arange(20, 50)],
            sizes=[10, 15, 20],
            samples=6,
            group_size=group_size,
        )
        seen = [(task.cardinality, int(point)) for task in tasks(drawn) for point in task.points]
        assert {cell: seen.count(cell) for cell in seen} == {
            (k, point): 2 for k in (10, 15, 20) for point in (0, 1)
        }


def test_classes_are_balanced_as_in_the_pool_without_the_group():
    strata = np.repeat([0, 1], [40, 20])
    drawn = plan([np.arange(30)], strata=strata, sizes=[12, 15], samples=4)
    for task in tasks(drawn):  # 10 of class 0 and 20 of class 1 are left
        assert strata[task.subset].sum() == round(2 / 3 * task.cardinality)


def test_a_group_that_is_a_whole_class_needs_a_group_size():
    strata = np.repeat([0, 1], [40, 20])
    rows = [np.arange(40), np.arange(40, 60)]
    with pytest.raises(CardinalityError, match=r"'g0' .* no point of class 'no'.*group_size"):
        plan(rows, strata=strata)
    drawn = plan(rows, strata=strata, group_size=5)
    assert drawn.n_contributions >= 8


def test_sizes_that_the_pool_without_a_group_cannot_fill_are_refused():
    with pytest.raises(CardinalityError, match=r"k_max=20 does not fit the 10 points .* 'g0'"):
        plan([np.arange(50)])


@pytest.mark.parametrize("group_size", [0, -1, 2.5, "many", True])
def test_a_group_size_that_is_no_number_of_rows_is_refused(group_size):
    with pytest.raises(PlanError, match="is not a number of rows"):
        plan([np.arange(20)], group_size=group_size)


def test_a_group_smaller_than_the_group_size_is_named():
    with pytest.raises(PlanError, match="more than the 3 rows of group 'g1'"):
        plan([np.arange(20), np.arange(20, 23)], group_size=5)


def test_a_group_that_is_mostly_inside_training_sets_is_named_instead_of_waited_for():
    with pytest.raises(PlanError, match=r"group 'g1' has 5 rows.*mostly leave fewer than 5"):
        plan([np.arange(30), np.arange(30, 35)], sizes=(40, 50), group_size=5)


def test_share_is_for_points():
    with pytest.raises(PlanError, match="share=1 is given for groups"):
        plan([np.arange(20)], share=1)


def test_an_index_beyond_the_plan_is_refused():
    with pytest.raises(IndexError, match="is not among the 4 tasks"):
        plan([np.arange(20)])[4]
