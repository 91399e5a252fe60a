from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.neighbors import NearestCentroid

import apiece
from apiece.engines import Engine, choose_engine, choose_group_engine
from apiece.errors import ModelError, UnknownNameError
from apiece.records import Outcome, Task

TASK = Task(0, np.arange(20), np.arange(30, 40), 0)


@dataclass(frozen=True, eq=False)
class CentroidEngine(Engine):
    """An engine that the package does not know: nearest centroids, by running sums."""

    name = "centroid"
    shift: float = 0.0

    @classmethod
    def supports(cls, dataset, model, metric):
        is_known = type(model.estimator) is NearestCentroid and metric.needs == "label"
        return None if is_known else f"{model.name} is not NearestCentroid under a loss of labels"

    def run(self, task):
        data = self.dataset
        sums = np.zeros((data.n_classes, data.n_features))
        X, y = data.X[task.subset], data.y[task.subset]
        np.add.at(sums, y, X)
        counts = np.bincount(y, minlength=data.n_classes)
        loss = self._loss(sums / counts[:, None])
        delta = np.empty(len(task.points))
        for place, point in enumerate(task.points):
            more, n = sums.copy(), counts.copy()
            more[data.targets(point)] += data.features(point)
            n[data.targets(point)] += 1
            delta[place] = loss - self._loss(more / n[:, None])
        return Outcome(loss, delta + self.shift, 0.0)

    def _loss(self, centres):
        distance = ((self.dataset.X_val[:, None] - centres) ** 2).sum(axis=2)
        return self.metric.value(self.dataset.y_val, distance.argmin(axis=1))


def test_an_engine_that_the_package_does_not_know_equals_refits(blobs):
    model = NearestCentroid()
    fast, reason = choose_engine(blobs, model=model, metric="zero_one", engine=CentroidEngine)
    slow, _ = choose_engine(blobs, model=model, metric="zero_one")
    assert (fast.name, reason, slow.name) == ("centroid", "as requested", "refit")
    np.testing.assert_allclose(fast.run(TASK).delta, slow.run(TASK).delta, atol=1e-15)


def test_it_collects_a_run_and_values_groups(blobs):
    run = apiece.collect(
        blobs,
        model=NearestCentroid(),
        metric="zero_one",
        engine=CentroidEngine,
        sizes=(10, 20),
        samples=3,
        random_state=0,
    )
    assert run.manifest.engine.name == "centroid"
    groups = (np.arange(30, 35), np.arange(40, 50))
    task = Task(0, np.arange(20), np.arange(2), 0, groups)
    fast, slow = (
        choose_group_engine(blobs, model=NearestCentroid(), metric="zero_one", engine=engine)[0]
        for engine in (CentroidEngine, "refit")
    )
    np.testing.assert_allclose(fast.run(task).delta, slow.run(task).delta, atol=1e-15)


def test_an_object_keeps_its_further_settings(blobs):
    plain, _ = choose_engine(
        blobs, model=NearestCentroid(), metric="zero_one", engine=CentroidEngine
    )
    template = CentroidEngine(blobs, plain.model, plain.metric, shift=2.0)
    chosen, _ = choose_engine(blobs, model=NearestCentroid(), metric="zero_one", engine=template)
    np.testing.assert_allclose(chosen.run(TASK).delta, plain.run(TASK).delta + 2.0)


def test_what_is_no_engine_is_refused(blobs):
    with pytest.raises(ModelError, match="engine 'centroid' cannot compute this run"):
        choose_engine(blobs, engine=CentroidEngine)
    with pytest.raises(ModelError, match=r"expected a name .* or a subclass"):
        choose_engine(blobs, engine=dict)
    with pytest.raises(UnknownNameError, match="logistic"):
        choose_engine(blobs, engine="logistics")


def test_the_names_that_editors_complete_are_those_of_the_engines():
    from typing import get_args

    from apiece.engines import ENGINES, EngineName

    assert set(get_args(EngineName)) == set(ENGINES)
