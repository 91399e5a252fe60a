from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import apiece
from apiece._base.progress import Tracker
from apiece.collection import Design, make_plan
from apiece.collection._loop import run_plan
from apiece.engines import choose_engine
from apiece.errors import EngineError, PlanError, StoreError

COLUMNS = ("task", "k", "point", "delta", "loss")
SETTINGS = {
    "model": "tree",  # the refit that takes least time
    "sizes": (6, 20),
    "samples": 6,
    "random_state": 3,
    "progress": False,
    "engine": "refit",
    "share": 30,
}


def same(one, two):
    a, b = one.contributions(), two.contributions()
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in COLUMNS)


class Moody(ClassifierMixin, BaseEstimator):
    """Refuses training sets of certain sizes."""

    def __init__(self, refuses=()):
        self.refuses = refuses

    def fit(self, X, y):
        if len(y) in self.refuses:
            raise RuntimeError("not today")
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def forest(n_trees=3):
    return RandomForestClassifier(n_estimators=n_trees)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["tree", forest()], ids=["tree", "forest"])
def test_the_answer_does_not_depend_on_the_number_of_workers(blobs, tmp_path, model):
    settings = {**SETTINGS, "model": model, "points": range(0, 60, 2), "share": 15, "samples": 12}
    runs = [
        apiece.collect(blobs, n_jobs=n_jobs, to=tmp_path / str(n_jobs), **settings)
        for n_jobs in (1, 2)
    ]
    assert len(runs[0].store.indices()) > 1
    assert same(*runs)
    assert runs[0].is_complete


def test_memory_and_folder_hold_the_same(blobs, tmp_path):
    stored = apiece.collect(blobs, to=tmp_path / "run", **SETTINGS)
    assert same(apiece.collect(blobs, **SETTINGS), stored)
    assert same(apiece.open(tmp_path / "run"), stored)


def test_every_point_has_its_samples_and_every_loss_its_task(blobs):
    table = apiece.collect(blobs, **SETTINGS).contributions().table()
    assert table.groupby("point").size().min() >= 6
    assert table["point"].nunique() == 60
    assert (table.groupby("task")["loss"].nunique() == 1).all()
    assert np.isfinite(table["delta"]).all()


def test_a_subset_of_points_gets_the_contributions_it_would_get_by_itself(blobs):
    run = apiece.collect(blobs, points=[4, 7], **SETTINGS)
    assert run.ids.tolist() == [4, 7]
    assert run.contributions().n_points == 2


@pytest.mark.slow
def test_collecting_again_computes_nothing_more(blobs, tmp_path, monkeypatch):
    first = apiece.collect(blobs, to=tmp_path / "run", **SETTINGS)
    before = first.contributions().delta

    def never(*_):
        raise AssertionError("nothing is left to compute")

    monkeypatch.setattr("apiece.collection._work.compute", never)
    again = apiece.collect(blobs, to=tmp_path / "run", **SETTINGS)
    assert np.array_equal(again.contributions().delta, before)


@pytest.mark.slow
def test_a_run_without_a_seed_keeps_the_one_it_drew(blobs, tmp_path):
    settings = {**SETTINGS, "random_state": None}
    first = apiece.collect(blobs, to=tmp_path / "run", **settings)
    seed = first.manifest.seed
    again = apiece.collect(blobs, to=tmp_path / "run", **settings)
    assert again.manifest.seed == seed
    assert same(apiece.collect(blobs, **{**SETTINGS, "random_state": seed}), first)


@pytest.mark.slow
def test_more_samples_extend_a_run_to_what_it_would_have_been(blobs, tmp_path):
    apiece.collect(blobs, to=tmp_path / "run", **SETTINGS)
    longer = {**SETTINGS, "samples": 11}
    extended = apiece.collect(blobs, to=tmp_path / "run", **longer)
    assert extended.is_complete
    assert same(extended, apiece.collect(blobs, **longer))


def test_fewer_samples_than_a_run_was_planned_for_leave_it_as_it_is(blobs, tmp_path):
    whole = apiece.collect(blobs, to=tmp_path / "run", **SETTINGS)
    before = whole.contributions()
    max((tmp_path / "run" / "shards").iterdir()).unlink()
    again = apiece.collect(blobs, to=tmp_path / "run", **{**SETTINGS, "samples": 2})
    assert again.is_complete
    assert np.array_equal(again.contributions().delta, before.delta)
    assert again.manifest.samples == SETTINGS["samples"]


def test_progress_reads_no_contribution(blobs, tmp_path, monkeypatch):
    run = apiece.collect(blobs, to=tmp_path / "run", **SETTINGS)
    n_rows = len(run.contributions())

    def never(*_):
        raise AssertionError("the footers tell")

    monkeypatch.setattr("apiece.store._folder.decode_shard", never)
    opened = apiece.open(tmp_path / "run")
    assert opened.is_complete
    assert opened.progress().n_contributions == n_rows
    assert f"{n_rows:,} of {n_rows:,}" in repr(opened)


@pytest.mark.parametrize("random_state", [-1, "seven", 1.5])
def test_what_is_not_a_seed_is_refused(blobs, random_state):
    with pytest.raises(PlanError, match="is not a seed: expected an integer of at least 0"):
        apiece.collect(blobs, **{**SETTINGS, "random_state": random_state})


@pytest.mark.parametrize("harm", ["truncate", "alter", "delete", "empty"])
def test_a_harmed_shard_is_named_and_computed_anew(blobs, tmp_path, harm):
    whole = apiece.collect(blobs, to=tmp_path / "run", **SETTINGS)
    before = whole.contributions()
    victim = sorted((tmp_path / "run" / "shards").iterdir())[1]
    data = victim.read_bytes()
    if harm == "delete":
        victim.unlink()
    else:
        altered = bytearray(data)
        altered[60] ^= 0xFF
        victim.write_bytes({"truncate": data[:100], "alter": bytes(altered), "empty": b""}[harm])
        with pytest.raises(StoreError, match=victim.name):
            apiece.open(tmp_path / "run").contributions()
    engine, plan, store = parts(blobs, tmp_path / "run")
    events = []
    run_plan(engine, plan, store, tracker=Tracker([events.append]))
    if harm != "delete":
        assert any(victim.name in event.message for event in events)
    assert victim.read_bytes() == data
    assert np.array_equal(whole.contributions().delta, before.delta)


def parts(dataset, path):
    """The engine, plan and store of a stored run, as `collect` makes them."""
    from apiece.store import FolderStore

    engine, _ = choose_engine(dataset, model="tree", engine="refit")
    design = Design.of(SETTINGS["sizes"], samples=SETTINGS["samples"], share=SETTINGS["share"])
    plan = make_plan(
        design,
        n_pool=dataset.n_pool,
        points=np.arange(dataset.n_points),
        seed=SETTINGS["random_state"],
        strata=dataset.y,
    )
    return engine, plan, FolderStore(path)


@pytest.mark.slow
def test_progress_adds_up_to_the_total(blobs, tmp_path):
    apiece.collect(blobs, to=tmp_path / "run", **SETTINGS)
    shards = sorted((tmp_path / "run" / "shards").iterdir())
    for file in shards[::2]:
        file.unlink()
    events = []
    engine, plan, store = parts(blobs, tmp_path / "run")
    run_plan(engine, plan, store, tracker=Tracker([events.append]))
    assert events[-1].done == events[-1].total == plan.n_contributions
    assert 0 < events[0].done < events[0].total


def test_failed_tasks_are_named_and_the_rest_is_kept_and_mended_later(blobs, tmp_path):
    broken = Moody(refuses=(11,))
    settings = {**SETTINGS, "sizes": [6, 10, 15], "points": range(0, 60, 2), "model": broken}
    with pytest.raises(EngineError, match=r"tasks failed.*not today"):
        apiece.collect(blobs, to=tmp_path / "run", **settings)
    run = apiece.open(tmp_path / "run")
    assert not run.is_complete
    assert set(run.contributions().k) == {6, 15}
    assert run.progress().failed


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["refit", "logistic"])
def test_a_model_that_always_fails_ends_the_campaign_early(blobs, engine):
    calls = []

    def metric(y, p):
        calls.append(1)
        raise ZeroDivisionError("always")

    with pytest.raises(EngineError, match="always"):
        apiece.collect(
            blobs,
            metric=metric,
            sizes=(6, 20),
            samples=500,
            share=1,
            progress=False,
            random_state=0,
            engine=engine,
        )
    assert len(calls) < 100


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["refit", "logistic"])
def test_a_loss_that_is_not_a_number_is_never_stored(blobs, engine):
    run = {**SETTINGS, "model": "logistic", "engine": engine, "metric": lambda y, p: float("nan")}
    with pytest.raises(EngineError, match=r"task 0 \(k="):
        apiece.collect(blobs, **run)


@pytest.mark.slow
def test_two_collectors_at_once_leave_one_whole_run(blobs, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    alone = apiece.collect(blobs, **SETTINGS)
    with ThreadPoolExecutor(3) as pool:
        runs = [
            pool.submit(apiece.collect, blobs, to=tmp_path / "run", **SETTINGS) for _ in range(3)
        ]
        for run in runs:
            assert same(run.result(), alone)


def test_collectors_that_begin_together_share_the_work(blobs, tmp_path, monkeypatch):
    """Each waits for the other before every unit, so that neither sees what the other is at."""
    from concurrent.futures import ThreadPoolExecutor
    from contextlib import suppress
    from threading import Barrier, BrokenBarrierError

    from apiece.collection import _work
    from apiece.engines import RefitEngine

    units, together, compute = [], Barrier(2), _work.compute

    def in_step(engine, unit, tasks):
        units.append(unit.index)
        with suppress(BrokenBarrierError):  # the other has no unit left
            together.wait(timeout=2)
        return compute(engine, unit, tasks)

    monkeypatch.setattr(RefitEngine, "rows_per_shard", 6)
    monkeypatch.setattr(_work, "compute", in_step)
    with ThreadPoolExecutor(2) as pool:
        first, second = (
            pool.submit(apiece.collect, blobs, to=tmp_path / "run", **SETTINGS) for _ in range(2)
        )
        assert same(first.result(), second.result())
    assert len(set(units)) == len(first.result().store.layout)
    assert len(units) < 1.3 * len(set(units))


def test_candidates_are_valued_with_the_pool_or_alone(blobs):
    X, y = blobs.X_val[:5], blobs.y_val[:5]
    both = apiece.collect(blobs, candidates=(X, y), **SETTINGS)
    assert both.contributions().n_points == 65
    alone = apiece.collect(blobs, candidates=(X, y), points=[], **SETTINGS)
    assert alone.contributions().n_points == 5
    assert (alone.points["role"][alone.points["valued"]] == "candidate").all()
