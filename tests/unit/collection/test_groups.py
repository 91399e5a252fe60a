"""Groups from the data to laws, values and exchange rates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import apiece
from apiece import uses
from apiece.errors import DataError, PlanError, StoreError

from conftest import make_blobs, make_line


def grouped(n=120, seed=0):
    """A regression with a clean source, a noisy one, and rows without a source."""
    rng = np.random.default_rng(seed)
    X, V = rng.normal(size=(n, 3)), rng.normal(size=(200, 3))
    names = np.array(["clean", "noisy", ""])[rng.choice(3, n, p=[0.3, 0.4, 0.3])]
    y = X @ [1.0, 2.0, 3.0] + np.where(names == "noisy", 3.0, 0.3) * rng.normal(size=n)
    return apiece.Dataset.from_arrays(
        X, y, X_val=V, y_val=V @ [1.0, 2.0, 3.0], kind="regression", groups=names
    )


OPTIONS = {"model": "ridge", "sizes": (10, 40), "samples": 8, "random_state": 0, "progress": False}


def test_a_dataset_with_groups_is_valued_by_group():
    dataset = grouped()
    run = apiece.collect(dataset, **OPTIONS)
    assert run.ids.tolist() == ["clean", "noisy"]
    counts = [int((dataset.groups == name).sum()) for name in run.ids]
    assert run.points["rows"].tolist() == counts
    values = apiece.value(run)
    assert_allclose(values["per_row"], values["value"] / counts)
    assert values.loc["clean", "per_row"] > values.loc["noisy", "per_row"]
    assert "rows" in apiece.value(run, source="samples")


def test_points_of_a_dataset_with_groups_can_be_valued_one_by_one():
    dataset = grouped()
    run = apiece.collect(dataset, groups=False, **OPTIONS)
    assert_array_equal(run.ids, dataset.ids)
    assert "per_row" not in apiece.value(run)


@pytest.mark.parametrize("form", ["array", "series", "mapping"])
def test_groups_may_be_given_when_collecting(form):
    dataset = make_line()
    names = np.where(np.arange(60) < 25, "first", "second")
    given = {
        "array": names,
        "series": pd.Series(names, index=dataset.ids).sample(frac=1, random_state=0),
        "mapping": dict(zip(dataset.ids.tolist(), names, strict=True)),
    }[form]
    run = apiece.collect(dataset, groups=given, **{**OPTIONS, "sizes": (10, 25)})
    assert run.points[["id", "rows"]].values.tolist() == [["first", 25], ["second", 35]]


def test_ids_without_a_group_stay_in_the_pool_alone():
    dataset = make_line()
    run = apiece.collect(dataset, groups={0: "only", 1: "only"}, **OPTIONS)
    assert run.points["rows"].tolist() == [2]


def test_rates_of_equal_shares_tell_the_cleaner_source():
    run = apiece.collect(grouped(300), group_size=10, **{**OPTIONS, "samples": 300})
    assert run.points["rows"].tolist() == [10, 10]
    row = uses.exchange(apiece.fit(run), at=30, pairs=[("clean", "noisy")]).iloc[0]
    assert row["rate"] > 1.5
    assert row["p_more"] > 0.95


def test_an_interrupted_run_of_groups_ends_as_an_uninterrupted_one(tmp_path):
    dataset = grouped()
    for group_size in (None, 6):
        folder = tmp_path / str(group_size)
        whole = apiece.collect(dataset, group_size=group_size, **OPTIONS)
        apiece.collect(dataset, group_size=group_size, to=folder, **{**OPTIONS, "samples": 3})
        resumed = apiece.collect(dataset, group_size=group_size, to=folder, **OPTIONS)
        pd.testing.assert_frame_equal(
            resumed.contributions().table(), whole.contributions().table()
        )
        assert apiece.open(folder).contributions().attrs["groups"] == dict(
            zip(whole.ids.tolist(), whole.points["rows"].tolist(), strict=True)
        )


def test_other_groups_or_another_group_size_are_another_run(tmp_path):
    dataset = grouped()
    apiece.collect(dataset, to=tmp_path / "run", **OPTIONS)
    moved = np.roll(dataset.groups, 1)
    for change in ({"groups": moved}, {"group_size": 5}, {"groups": False}):
        with pytest.raises(StoreError, match="another choice of points"):
            apiece.collect(dataset, to=tmp_path / "run", **OPTIONS, **change)


def test_several_workers_give_the_same_groups(tmp_path):
    dataset = grouped()
    one, two = (apiece.collect(dataset, n_jobs=n, **OPTIONS) for n in (1, 2))
    pd.testing.assert_frame_equal(one.contributions().table(), two.contributions().table())


def test_a_column_of_groups_is_no_feature_and_candidates_bring_theirs(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["u", "v"])
    frame["y"] = frame["u"] + rng.normal(size=60)
    frame["batch"] = [1, 2, None] * 20
    offer = frame.head(5).assign(batch=[7, 7, 8, None, 1])
    offer.to_csv(tmp_path / "offer.csv", index=False)
    dataset = apiece.Dataset.from_pandas(
        frame, target="y", groups="batch", candidates=tmp_path / "offer.csv"
    )
    assert dataset.feature_names == ("u", "v")
    assert set(dataset.groups[: dataset.n_pool]) == {"1", "2", ""}
    assert dataset.groups[dataset.n_pool :].tolist() == ["7", "7", "8", "", "1"]
    offered = apiece.collect(dataset, points=[], **{**OPTIONS, "sizes": (8, 20)})
    assert offered.points[["id", "rows"]].values.tolist() == [["1", 1], ["7", 2], ["8", 1]]
    with pytest.raises(DataError, match="column 'batch' is named by groups= and by drop="):
        apiece.Dataset.from_pandas(frame, target="y", groups="batch", drop="batch")


def test_an_array_of_a_file_names_groups(tmp_path):
    rng = np.random.default_rng(0)
    names = np.array(["a", "b"] * 20)
    arrays = {"X": rng.normal(size=(40, 2)), "y": rng.normal(size=40), "source": names}
    np.savez(tmp_path / "rows.npz", **arrays)
    np.savez(tmp_path / "more.npz", X=arrays["X"][:2], y=arrays["y"][:2], source=["a", "z"])
    dataset = apiece.Dataset.from_npz(
        tmp_path / "rows.npz", groups="source", candidates=tmp_path / "more.npz"
    )
    assert_array_equal(dataset.groups[: dataset.n_pool], names[dataset.ids[: dataset.n_pool]])
    assert dataset.groups[-2:].tolist() == ["a", "z"]
    with pytest.raises(DataError, match=r"unknown array of groups 'sources'.*'source'"):
        apiece.Dataset.from_npz(tmp_path / "rows.npz", groups="sources")


def test_candidates_without_groups_belong_to_none():
    dataset = grouped().with_candidates((np.ones((2, 3)), [1.0, 2.0]))
    assert dataset.groups[-2:].tolist() == ["", ""]
    named = grouped().with_candidates((np.ones((2, 3)), [1.0, 2.0]), groups=["x", "y"])
    assert named.groups[-2:].tolist() == ["x", "y"]


def test_groups_do_not_change_the_fingerprint():
    assert grouped().fingerprint == make_same_without_groups().fingerprint


def make_same_without_groups():
    from dataclasses import replace

    return replace(grouped(), groups=None)


def test_names_that_do_not_fit_the_rows_are_refused():
    with pytest.raises(DataError, match=r"groups has shape \(3,\), the data has 60 rows"):
        apiece.collect(make_line(), groups=["a", "b", "c"], **OPTIONS)
    with pytest.raises(DataError, match="belongs to a group"):
        apiece.collect(make_line(), groups=[None] * 60, **OPTIONS)


def test_uses_that_need_single_points_say_so():
    dataset = make_blobs(90)
    names = np.where(np.arange(90) % 3 > 0, "a", "b")
    run = apiece.collect(
        dataset, groups=names, sizes=(8, 20), samples=8, random_state=0, progress=False
    )
    laws = apiece.fit(run)
    with pytest.raises(PlanError, match="redundancy is about single points"):
        apiece.select(laws, take=1, at=10, redundancy="aware", dataset=dataset)
    assert apiece.select(laws, take=1, at=10).index[0] in ("a", "b")


def test_experiments_on_a_dataset_with_groups_are_about_points():
    from apiece import experiments

    found = experiments.addition(
        grouped(),
        take=2,
        at=(10, 20),
        repeats=2,
        n_candidates=10,
        samples=5,
        redundancy=False,
        model="ridge",
        progress=False,
    )
    assert set(found.samples["at"]) == {10, 20}
