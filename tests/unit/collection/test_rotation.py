"""Scoring rows that rotate: who trains, who scores, who is valued."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import apiece
from apiece.collection import Design, largest_size, make_plan
from apiece.collection._groups import make_group_plan
from apiece.collection._request import default_sizes
from apiece.data import groups_of
from apiece.errors import CardinalityError, PlanError

STRATA = np.repeat([0, 1, 2], [120, 60, 20])


def plan(samples=4, sizes=(20, 60), seed=3, strata=STRATA, points=None, **settings):
    design = Design.of(sizes, name="log-uniform", samples=samples, **settings)
    points = np.arange(len(strata)) if points is None else points
    return make_plan(
        design, n_pool=len(strata), points=points, seed=seed, strata=strata, rotates=True
    )


def test_training_rows_scoring_rows_and_valued_points_are_disjoint_and_every_class_is_there():
    drawn = plan()
    for index in range(len(drawn)):
        task = drawn[index]
        parts = np.concatenate([task.subset, task.scoring, task.points])
        assert len(np.unique(parts)) == len(parts) == len(STRATA)
        assert 20 <= len(task.subset) <= 60
        for rows in (task.subset, task.scoring):
            assert set(STRATA[rows]) == {0, 1, 2}


def test_every_row_is_valued_often_enough_trains_and_scores():
    drawn = plan(samples=30)
    tasks = [drawn[index] for index in range(len(drawn))]
    for part in ("points", "subset", "scoring"):
        counts = np.bincount(np.concatenate([getattr(t, part) for t in tasks]), minlength=200)
        assert counts.min() >= (30 if part == "points" else 1)
    assert drawn.n_contributions == sum(len(task.points) for task in tasks)


def test_a_plan_for_more_samples_begins_with_the_tasks_of_the_plan_for_fewer():
    few, many = plan(samples=3), plan(samples=6)
    for index in range(len(few)):
        assert_array_equal(few[index].subset, many[index].subset)
        assert_array_equal(few[index].scoring, many[index].scoring)
        assert few[index].active == many[index].active


def test_blocks_hold_every_class_in_proportion():
    blocks = plan().rotation.block_of
    for code in range(3):
        counts = np.bincount(blocks[code == STRATA], minlength=16)
        assert counts.max() - counts.min() <= 1


def test_a_point_with_draws_to_itself_is_never_in_an_active_block():
    drawn = plan(share=1, samples=2)
    for index in range(0, len(drawn), 7):
        task = drawn[index]
        assert len(task.points) == 1
        assert task.points[0] not in {*task.subset.tolist(), *task.scoring.tolist()}


def test_candidates_are_valued_by_every_task():
    drawn = plan(points=np.arange(200, 205))
    assert all(len(drawn[index].points) == 5 for index in range(len(drawn)))


def test_sizes_that_leave_too_few_rows_to_score_are_refused():
    assert largest_size(200) == 140
    with pytest.raises(CardinalityError, match="at most 140"):
        plan(sizes=(20, 150))
    with pytest.raises(CardinalityError, match="7 rows: expected at least 8"):
        plan(strata=np.zeros(7, dtype=np.int64), sizes=(2, 3))


@pytest.mark.parametrize(
    ("strata", "sizes"),
    [
        (np.repeat(np.arange(8), [160, *[3] * 7]), (16, 126)),  # seven classes of three rows
        (np.repeat(np.arange(50), 4), (50, 137)),
        (np.zeros(9, dtype=np.int64), (1, 6)),
        (np.repeat([0, 1], [5, 3]), (2, 5)),
    ],
)
def test_rows_take_turns_in_small_tables_and_rare_classes(strata, sizes):
    assert sizes[1] == largest_size(len(strata), len(set(strata)))
    drawn = plan(strata=strata, sizes=sizes)
    tasks = [drawn[index] for index in range(len(drawn))]
    valued = np.bincount(np.concatenate([task.points for task in tasks]), minlength=len(strata))
    assert valued.min() >= 4
    for task in tasks:
        parts = np.concatenate([task.subset, task.scoring, task.points])
        assert len(np.unique(parts)) == len(parts) == len(strata)
        for rows in (task.subset, task.scoring):
            assert set(strata[rows]) == set(strata)


def test_a_class_too_rare_to_take_turns_is_named():
    strata = np.repeat([0, 1, 2], [40, 2, 1])
    with pytest.raises(CardinalityError, match=r"class 2 has 1 row \(and 1 more .*--task reg"):
        make_plan(
            Design.of((5, 20), samples=2),
            n_pool=43,
            points=np.arange(43),
            seed=0,
            strata=strata,
            class_names=[0, 1, 2],
            rotates=True,
        )


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    y = (X[:, 0] + rng.normal(size=160) > 0).astype(int)
    return apiece.Dataset.from_arrays(X, y)


def test_a_dataset_that_sets_nothing_aside_rotates_unless_requested_otherwise(data):
    assert data.n_pool == 160
    run = apiece.collect(data, sizes=(20, 50), samples=4, random_state=1, progress=False)
    assert run.rotates
    assert len(run.ids) == 160
    with pytest.raises(PlanError, match="no validation rows"):
        apiece.collect(data, sizes=(20, 50), scoring="fixed", progress=False)


def test_default_sizes_reach_as_far_as_the_rows_allow(data):
    slow, quick = (
        apiece.collect(data, samples=1, model=model, random_state=0, progress=False)
        for model in ("tree", "logistic")
    )
    assert slow.manifest.design.sizes == quick.manifest.design.sizes == [10, largest_size(160, 2)]
    large = apiece.Dataset.from_arrays(np.arange(4000.0)[:, None], np.arange(4000) / 7)
    assert default_sizes(large, rotates=True, is_quick=True) == (100, largest_size(4000))
    assert default_sizes(large, rotates=True) == default_sizes(large) == (100, 1000)


def test_contributions_are_those_of_refits_scored_on_the_rows_of_the_task(data):
    settings = {"sizes": (20, 50), "samples": 2, "random_state": 1, "progress": False}
    fast = apiece.collect(data, **settings).contributions()
    slow = apiece.collect(data, engine="refit", **settings).contributions()
    assert_array_equal(fast.point, slow.point)
    # The refit engine stops at scikit-learn's tolerance of 1e-4.
    assert_allclose(fast.delta, slow.delta, atol=2e-4)
    assert_allclose(fast.control, slow.control)


def test_resumed_and_parallel_runs_equal_one_that_was_not_interrupted(data, tmp_path):
    settings = {"sizes": (20, 50), "random_state": 1, "progress": False}
    whole = apiece.collect(data, samples=6, **settings).contributions()
    apiece.collect(data, samples=2, to=tmp_path / "run", **settings)
    resumed = apiece.collect(data, samples=6, n_jobs=2, to=tmp_path / "run", **settings)
    again = apiece.open(tmp_path / "run").contributions()
    for name in ("task", "k", "point", "delta", "control", "active"):
        assert_array_equal(getattr(again, name), getattr(whole, name))
    assert_array_equal(resumed.theory.terms, again.theory.terms)


GROUPS = np.repeat(["a", "b", "c", "d"], [20, 40, 50, 50])


@pytest.mark.parametrize("group_size", [None, 3])
def test_rows_of_a_group_that_joins_neither_train_nor_score(data, group_size):
    groups = groups_of(data, GROUPS, np.arange(160))
    drawn = make_group_plan(
        Design.of((20, 60), name="log-uniform", samples=12),
        n_pool=160,
        **groups._asdict(),
        group_size=group_size,
        seed=1,
        strata=data.y,
        rotates=True,
    )
    tasks = [drawn[index] for index in range(len(drawn))]
    assert sum(len(task.points) for task in tasks) == drawn.n_contributions
    scored = np.zeros(160, dtype=bool)
    for task in tasks:
        assert not np.isin(task.subset, task.scoring).any()
        assert set(data.y[task.subset]) == set(data.y[task.scoring]) == {0, 1}
        scored[task.scoring] = True
        for group, rows in zip(task.points, task.rows, strict=True):
            own = groups.rows[group] if group_size is None else rows
            assert len(rows) == (group_size or len(groups.rows[group]))
            assert np.isin(rows, groups.rows[group]).all()
            assert not np.isin(own, np.concatenate([task.subset, task.scoring])).any()
    assert scored.mean() > 0.95


@pytest.mark.parametrize("group_size", [None, 3])
def test_groups_are_valued_as_refits_scored_on_the_rows_of_the_task(data, group_size):
    settings = {"groups": GROUPS, "group_size": group_size, "sizes": (20, 60), "samples": 3}
    settings |= {"random_state": 1, "progress": False}
    fast = apiece.collect(data, **settings)
    slow = apiece.collect(data, engine="refit", **settings)
    assert fast.rotates
    assert fast.laws().scope == "population"
    assert_allclose(fast.contributions().delta, slow.contributions().delta, atol=2e-4)
    assert apiece.value(fast).index.tolist() == ["a", "b", "c", "d"]


@pytest.mark.parametrize("group_size", [None, 3])
def test_resumed_and_parallel_runs_of_groups_equal_one_that_was_not_interrupted(
    data, tmp_path, group_size
):
    settings = {"groups": GROUPS, "group_size": group_size, "sizes": (20, 60), "random_state": 1}
    settings |= {"progress": False}
    whole = apiece.collect(data, samples=5, **settings).contributions()
    apiece.collect(data, samples=2, to=tmp_path / "run", **settings)
    apiece.collect(data, samples=5, n_jobs=2, to=tmp_path / "run", **settings)
    again = apiece.open(tmp_path / "run").contributions()
    for name in ("task", "k", "point", "delta", "control", "active"):
        assert_array_equal(getattr(again, name), getattr(whole, name))


def test_a_group_without_which_too_little_is_left_is_named(data):
    settings = {"groups": np.where(np.arange(160) < 140, "most", "rest"), "progress": False}
    with pytest.raises(
        CardinalityError, match=r"20 points .* without the 140 rows of group 'most'"
    ):
        apiece.collect(data, sizes=(10, 30), **settings)


def test_uses_of_a_run_with_rotating_rows_work(data, tmp_path):
    run = apiece.collect(data, sizes=(20, 50), samples=5, random_state=1, progress=False)
    assert len(apiece.value(run)) == 160
    assert len(apiece.select(run, take=3, at=40, dataset=data)) == 3
    page = apiece.report(run, to=tmp_path / "r.html", dataset=data, advice=False)
    assert page.exists()
