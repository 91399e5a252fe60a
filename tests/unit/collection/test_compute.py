from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from apiece.collection import Design, make_plan
from apiece.collection._compute import compare
from apiece.records import Outcome


def engine(answer):
    """An engine whose contributions are a function of the points."""

    def run(task):
        delta = answer(task.points.astype(float)) / task.cardinality
        return Outcome(loss=1.0, delta=delta, certificate=0.0)

    return SimpleNamespace(run=run, is_exact=True)


@pytest.fixture
def plan():
    return make_plan(
        Design.of((5, 10), samples=4), n_pool=60, points=np.arange(40), seed=0, strata=None
    )


def test_contributions_without_an_answer_are_not_compared(plan):
    def with_gaps(points):
        return np.where(points % 10 == 3, np.nan, 2 * points)

    near, exact = engine(lambda points: points), engine(with_gaps)
    whole, found = (
        compare(near, engine(lambda points: 2 * points), plan),
        compare(near, exact, plan),
    )
    assert whole["correlation"] == found["correlation"] == 1.0
    assert 0.8 * whole["n_compared"] < found["n_compared"] < whole["n_compared"]


def test_a_correlation_without_answers_is_not_measured(plan):
    nothing = engine(lambda points: np.full(len(points), np.nan))
    assert compare(nothing, nothing, plan) == {"correlation": None, "n_compared": 0}
