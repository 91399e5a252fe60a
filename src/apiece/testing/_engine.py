"""Contract of engines."""

from __future__ import annotations

import pickle
import warnings
from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from apiece._base.typing import FloatArray
from apiece.data import Dataset
from apiece.engines import Engine
from apiece.records import Task


def refits(engine: Engine, task: Task) -> tuple[float, FloatArray]:
    """Return the loss and the contributions of a task by a plain loop of scikit-learn fits."""
    data, loss = engine.dataset, engine.metric
    method = {"proba": "predict_proba", "decision": "decision_function"}.get(loss.needs, "predict")
    losses = []
    for added in (task.points[:0], *task.points[:, None]):
        rows = np.concatenate([task.subset, added])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of settings that suit the engine's data otherwise
            fitted = engine.model.seeded(task.seed).fit(data.features(rows), data.targets(rows))
        losses.append(loss.value(data.y_val, getattr(fitted, method)(data.X_val)))
    return losses[0], losses[0] - np.array(losses[1:])


class EngineContract(ABC):
    """The outcome of a task depends on the task alone, and equals that of a refit.

    ``kind`` is the kind of data to make; ``tolerance`` the largest error of a contribution,
    relative to the mean size of contributions, that an exact engine may show against a refit;
    ``correlation`` the least correlation with refits that an approximate engine must have.

    Examples
    --------
    >>> from apiece.engines import choose_engine
    >>> class TestLogistic(EngineContract):
    ...     def make(self, dataset):
    ...         return choose_engine(dataset, engine="logistic")[0]
    >>> TestLogistic().test_one_finite_contribution_for_each_point()
    """

    kind: str = "classification"
    n_classes: int = 2
    tolerance: float = 1e-5
    correlation: float = 0.8

    @abstractmethod
    def make(self, dataset: Dataset) -> Engine:
        """Return the engine for a dataset."""

    def dataset(self, seed: int = 0, n: int = 60, d: int = 4) -> Dataset:
        """Return a small dataset with two candidates."""
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n + 42, d))
        if self.kind == "regression":
            y = X @ np.arange(1.0, d + 1.0) + rng.normal(size=len(X))
        else:
            scores = X @ rng.normal(size=(d, self.n_classes)) + rng.gumbel(
                size=(len(X), self.n_classes)
            )
            y = scores.argmax(axis=1)
            y[: self.n_classes] = y[n : n + self.n_classes] = np.arange(self.n_classes)
        return Dataset.from_arrays(
            X[:n],
            y[:n],
            X_val=X[n : n + 40],
            y_val=y[n : n + 40],
            candidates=(X[n + 40 :], np.where(y[n + 40 :] == y[0], y[0], y[1])),
            kind="regression" if self.kind == "regression" else "classification",
        )

    def task(self, dataset: Dataset, k: int = 30) -> Task:
        """Return a task in which every class is present and candidates are valued."""
        subset = np.arange(k)
        return Task(5, subset, np.arange(k, dataset.n_points), seed=11)

    def test_one_finite_contribution_for_each_point(self) -> None:
        dataset = self.dataset()
        task = self.task(dataset)
        outcome = self.make(dataset).run(task)
        assert outcome.delta.shape == (len(task.points),)
        assert np.isfinite(outcome.delta).all()
        assert np.isfinite(outcome.loss)

    def test_the_same_task_gives_the_same_bits(self) -> None:
        dataset = self.dataset()
        task = self.task(dataset)
        engine = self.make(dataset)
        first = engine.run(task)
        engine.run(replace(task, index=6, subset=task.subset[::-1].copy(), seed=12))
        assert_array_equal(engine.run(task).delta, first.delta)

    def test_a_copy_in_another_process_gives_the_same_bits(self) -> None:
        dataset = self.dataset()
        task = self.task(dataset)
        engine = self.make(dataset)
        copy = pickle.loads(pickle.dumps(engine))
        assert_array_equal(copy.run(task).delta, engine.run(task).delta)

    def test_contributions_are_those_of_refits_or_correlate_as_promised(self) -> None:
        for seed, k in ((0, 12), (1, 30), (2, 55)):
            dataset = self.dataset(seed)
            engine = self.make(dataset)
            task = self.task(dataset, k)
            loss, delta = refits(engine, task)
            outcome = engine.run(task)
            if engine.is_exact:
                scale = np.abs(delta).mean() or 1.0
                assert_allclose(outcome.delta, delta, rtol=0, atol=self.tolerance * scale)
                assert_allclose(outcome.loss, loss, rtol=self.tolerance)
            else:
                assert np.corrcoef(outcome.delta, delta)[0, 1] >= self.correlation

    def test_a_group_of_one_point_is_worth_what_the_point_is(self) -> None:
        dataset = self.dataset()
        everyone = replace(dataset, n_pool=dataset.n_points)
        engine = self.make(everyone)
        if not engine.is_exact:
            pytest.skip("groups are for exact engines")
        task = self.task(dataset)
        points = task.points[:3]
        single = engine.run(replace(task, points=points)).delta
        groups = replace(task, points=np.arange(3), rows=tuple(points[:, None]))
        scale = np.abs(single).mean() or 1.0
        joined = engine.join_groups(groups).delta
        assert_allclose(joined, single, rtol=0, atol=self.tolerance * scale)

    def test_a_point_is_worth_the_same_whatever_is_valued_with_it(self) -> None:
        dataset = self.dataset()
        task = self.task(dataset)
        engine = self.make(dataset)
        whole = engine.run(task).delta
        scale = np.abs(whole).mean()
        for points in (slice(3, 9), slice(None, None, -1), slice(0, 1)):
            part = engine.run(replace(task, points=task.points[points])).delta
            assert_allclose(part, whole[points], rtol=0, atol=self.tolerance * scale)
