"""What a collection will cost and how sure it will be, before the work."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.tree import DecisionTreeClassifier

import apiece
from apiece.cli import cli
from apiece.collection._pilot import choose_by_pilot
from apiece.collection._planning import own_left
from apiece.engines import RefitEngine, ReuseEngine, choose_engine
from apiece.errors import DataError, PlanError

TREE = {"model": DecisionTreeClassifier(max_depth=2), "metric": "brier", "sizes": (10, 40)}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=120) > 0).astype(int)
    return apiece.Dataset.from_arrays(X, y, validation=0)


def test_more_trainings_cost_more_and_say_more(data):
    found = apiece.plan(data, trainings=400, **TREE)
    assert (found.engine, found.unit, found.amount) == ("reuse", "trainings", 400)
    table = found.table()
    assert table.index.tolist() == [100, 400, 1600]
    assert table["seconds"].is_monotonic_increasing
    assert table["correlation"].is_monotonic_increasing
    assert table["width"].is_monotonic_decreasing
    assert 0 < found.correlation < 1
    assert "trainings take about" in repr(found)


def test_refits_are_tried_on_some_points_and_scaled(data):
    found = apiece.plan(data, samples=50, engine="refit", **TREE)
    assert (found.engine, found.unit) == ("refit", "samples")
    fewer = apiece.plan(data, samples=50, engine="refit", points=np.arange(20), **TREE)
    assert found.seconds > 2 * fewer.seconds  # six times as many points


def test_exact_engines_have_a_plan(data):
    found = apiece.plan(data, sizes=(10, 40), random_state=0)
    assert (found.engine, found.unit, found.amount) == ("logistic", "samples", 100)


def test_a_plan_says_which_sizes_and_how_many_scoring_rows_it_needs(data):
    rotating = apiece.plan(data, sizes=(10, 40))
    assert rotating.sizes == (10, 40)
    assert rotating.scoring_needed is None
    assert "all rows take turns in scoring" in repr(rotating)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2))
    fixed = apiece.Dataset.from_arrays(X, (X[:, 0] > 0).astype(int), validation=0.2, random_state=0)
    found = apiece.plan(fixed, sizes=(20, 100))
    assert (found.n_scoring, found.scoring_needed) == (60, 100**2 // 2)
    assert "need about 5,000 scoring rows" in repr(found)


class Clock:
    """Time that passes while models are trained, and not otherwise."""

    def __init__(self, seconds):
        self.now, self.seconds = 0.0, seconds

    def monotonic(self):
        return self.now

    perf_counter = monotonic

    def slow(self, run):
        def training(engine, task):
            self.now += self.seconds * task.cardinality
            return run(engine, task)

        return training


@pytest.fixture
def clock(monkeypatch):
    clock = Clock(1.0)
    for part in ("_planning", "_pilot"):
        monkeypatch.setattr(f"apiece.collection.{part}.time", clock)
    monkeypatch.setattr(ReuseEngine, "run", clock.slow(ReuseEngine.run))
    monkeypatch.setattr(RefitEngine, "run", clock.slow(RefitEngine.run))
    return clock


def test_a_slow_model_has_a_short_pilot_that_tells_its_time(data, clock):
    found = apiece.plan(data, trainings=100, engine="reuse", **TREE)
    # Sizes of 10 to 40 at a second for each point.
    assert 100 * 10 < found.seconds < 100 * 40
    assert clock.now < 40 * 40  # 32 trainings, and two by which a run begins


def test_a_slow_model_is_compared_with_pairs_by_few_trainings(data, clock):
    options = {"model": TREE["model"], "metric": "brier", "engine": "refit"}
    engine, _ = choose_engine(data, **options)
    _, reason = choose_by_pilot(engine, np.arange(120), (10, 40), rotates=True)
    assert "by a pilot of 16 trainings" in reason


def test_trainings_of_groups_are_refused_without_offering_what_values_no_groups():
    rng = np.random.default_rng(0)
    data = apiece.Dataset.from_arrays(
        rng.normal(size=(60, 2)), np.arange(60) % 2, groups=np.arange(60) // 6, validation=0
    )
    for verb in (apiece.plan, apiece.collect):
        with pytest.raises(PlanError, match=r"Pass samples= \(--samples\)\.$"):
            verb(data, **TREE | {"trainings": 10})


@pytest.mark.parametrize(
    "options",
    [
        {"engine": "reuse", "samples": 10},
        {"engine": "refit", "trainings": 10},
        {"engine": "auto", "model": "logistic", "trainings": 10},
    ],
)
def test_a_plan_refuses_what_a_collection_refuses(data, options):
    with pytest.raises(PlanError) as planned:
        apiece.plan(data, **TREE | options)
    with pytest.raises(PlanError) as collected:
        apiece.collect(data, **TREE | options)
    assert str(planned.value) == str(collected.value)


def test_trainings_are_turned_into_samples_where_a_pilot_prefers_pairs(data, monkeypatch):
    monkeypatch.setattr(
        "apiece.collection._question.choose_by_pilot", lambda engine, *_, **__: (engine, "pairs")
    )
    found = apiece.plan(data, trainings=605, points=np.arange(10), **TREE)
    assert (found.engine, found.amount) == ("refit", 605 // 11)


def test_the_remaining_time_of_a_slow_model_is_right_from_the_first_tenth_on(data, monkeypatch):
    clock, events = Clock(1.0), []
    monkeypatch.setattr("apiece._base.progress.time", clock)
    monkeypatch.setattr(ReuseEngine, "run", clock.slow(ReuseEngine.run))
    apiece.collect(
        data,
        trainings=640,
        engine="reuse",
        anchor=False,
        progress=False,
        random_state=0,
        on_progress=events.append,
        **TREE,
    )
    known = [event for event in events if 0.1 <= event.done / max(event.total, 1) < 0.95]
    end = max(event.elapsed for event in events)
    ratio = [event.remaining / (end - event.elapsed) for event in known]
    assert len(ratio) > 10
    assert min(ratio) > 1 / 1.5
    assert max(ratio) < 1.5


def test_a_slow_model_shows_the_remaining_time_before_a_unit_is_done(data, monkeypatch):
    clock, events = Clock(0.01), []
    monkeypatch.setattr("apiece._base.progress.time", clock)
    monkeypatch.setattr("apiece.collection._probe.time", clock)
    monkeypatch.setattr(RefitEngine, "run", clock.slow(RefitEngine.run))
    options = {"engine": "refit", "samples": 5, "points": np.arange(10), "anchor": False}
    apiece.collect(
        data,
        progress=False,
        random_state=0,
        on_progress=events.append,
        **options,
        **TREE,
    )
    first = next(event for event in events if event.total and not event.done)
    end = max(event.elapsed for event in events)
    assert 1 / 1.5 < first.remaining / (end - first.elapsed) < 1.5


@pytest.mark.parametrize("m", [50, 400, 3_000])
def test_what_trainings_leave_unknown_is_that_of_a_regression_on_membership(m):
    rng, n, k, own, noise = np.random.default_rng(0), 150, 45, 0.7, 9.0
    members = np.argsort(rng.random((m, n)), axis=1) < k
    centred = members - k / n
    cov = np.linalg.inv(centred.T @ centred / noise + np.eye(n) / own)
    cov -= cov.mean(axis=0)  # what all points have in common is the mean loss
    # For many points the formula is exact; here within a twentieth.
    assert own_left(m, n, k / n, own, noise) == pytest.approx(np.diag(cov).mean(), rel=0.05)


def test_what_is_no_dataset_is_refused():
    with pytest.raises(DataError, match=r"expected an apiece\.Dataset"):
        apiece.plan(np.zeros((3, 3)))


def test_collect_says_how_long_it_will_take(data):
    said = []
    apiece.collect(
        data,
        trainings=40,
        engine="reuse",
        on_progress=lambda event: said.append(event.message),
        progress=False,
        **TREE,
    )
    assert any(re.match(r"estimate: about \d+ \w+ with 1 worker$", line) for line in said)


def test_the_command_prints_a_plan(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(90, 3)), columns=list("abc"))
    frame["label"] = np.where(frame["a"] + 0.3 * rng.normal(size=90) > 0, "yes", "no")
    frame.to_csv(tmp_path / "data.csv", index=False)
    words = ["plan", str(tmp_path / "data.csv"), "--target", "label", "--jobs", "1"]
    words += ["--sizes", "10:30"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    assert "100 samples take about" in result.output
    result = CliRunner().invoke(cli, [*words, "--json", "--quiet"])
    assert json.loads(result.stdout)["unit"] == "samples"
