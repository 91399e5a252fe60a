"""Units of work of slow models are short, and say so in the manifest."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import apiece
from apiece.collection._probe import expected_seconds, rows_per_unit
from apiece.engines import RefitEngine

SETTINGS = {"sizes": (6, 20), "samples": 3, "random_state": 0, "progress": False}


class Slow(LogisticRegression):
    """Takes a while for each fit."""

    def fit(self, X, y):
        time.sleep(0.3)
        return super().fit(X, y)


def layout(dataset, folder, model):
    """Return the layout of a run that was started and interrupted at once."""

    class Enough(Exception):
        pass

    def stop(event):
        if event.total:
            raise Enough

    with pytest.raises(Enough):
        apiece.collect(dataset, model=model, to=folder, on_progress=stop, **SETTINGS)
    return apiece.open(folder).store.layout


def test_a_unit_of_a_slow_model_takes_less_than_a_minute(blobs, tmp_path):
    slow = layout(blobs, tmp_path / "slow", Slow())
    rows = slow.tasks_per_shard * 55 / slow.parts_per_task
    assert rows * 0.3 < 60
    quick = layout(blobs, tmp_path / "quick", LogisticRegression())
    assert len(quick) < len(slow)


def test_a_run_keeps_its_units_when_it_is_continued_by_a_quicker_machine(
    blobs, tmp_path, monkeypatch
):
    before = layout(blobs, tmp_path / "run", Slow())
    monkeypatch.setattr("apiece.collection._probe._seconds", lambda engine, task: 0.0)
    assert layout(blobs, tmp_path / "run", Slow()) == before


def test_engines_that_value_many_points_at_once_keep_their_units(blobs, monkeypatch):
    engine, _ = apiece.engines.choose_engine(blobs, model="logistic", engine="refit")
    design = apiece.collection.Design.of((6, 20), samples=3)
    plan = apiece.collection.make_plan(design, n_pool=60, points=range(60), seed=0, strata=blobs.y)
    # a second for the fit on D, and next to nothing for each point
    monkeypatch.setattr(
        "apiece.collection._probe._seconds", lambda engine, task: 1.0 + 1e-4 * len(task.points)
    )
    assert rows_per_unit(engine, plan) == RefitEngine.rows_per_shard


def test_the_estimate_of_an_engine_that_values_many_points_at_once_is_not_by_a_few(
    blobs, monkeypatch
):
    engine, _ = apiece.engines.choose_engine(blobs, model="logistic", engine="refit")
    design = apiece.collection.Design.of((6, 20), samples=3000, share=1000)
    plan = apiece.collection.make_plan(
        design, n_pool=2000, points=range(2000), seed=0, strata=np.array([0, 1] * 1000)
    )
    calls = []

    def seconds(engine, task):
        """Take 0.1 for the fit, 0.1 for the first batch, a little for each point; a pause once."""
        calls.append(len(task.points))
        pause = 0.5 * (len(calls) == 4)
        return 0.1 + 0.1 * (len(task.points) > 1) + 0.001 * len(task.points) + pause

    monkeypatch.setattr("apiece.collection._probe._seconds", seconds)
    size = plan.n_contributions / len(plan)
    assert size > 500
    expected = len(plan) * (0.2 + 0.001 * size)
    assert expected_seconds(engine, plan) == pytest.approx(expected, rel=0.3)
