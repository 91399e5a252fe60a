"""A model that works in the arrays that it is given changes no number, whatever it is used for."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import apiece
from apiece import uses
from apiece.experiments._trial import Trial

N = 100
SETTINGS = {"sizes": (8, 20), "samples": 2, "random_state": 0, "progress": False}
REUSE = {"engine": "reuse", "samples": None, "trainings": 20}


def model(copy):
    return make_pipeline(StandardScaler(copy=copy), LogisticRegression())


def data(**more):
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    X = 3 + 5 * (rng.normal(size=(N, 3)) + y[:, None])
    return apiece.Dataset.from_arrays(X, y, standardize=False, **more)


def validated():
    part = data()
    X, y = part.points_X, part.y
    return apiece.Dataset.from_arrays(X[:60], y[:60], X_val=X[60:], y_val=y[60:], standardize=False)


def collected(dataset, copy, **settings):
    return apiece.collect(dataset, model=model(copy), **{**SETTINGS, **settings})


def deltas(dataset, copy, **settings):
    some = {} if "groups" in settings else {"points": range(15), "anchor": False}
    return collected(dataset, copy, **some, **settings).contributions().delta


def row_losses(dataset, copy):
    trainings = collected(dataset, copy, **REUSE).trainings()
    return np.append(trainings.loss, trainings.row_loss)


def numbers(table):
    return table.select_dtypes("number").to_numpy().ravel()


STUDIES = {
    "a validation set": lambda copy: deltas(validated(), copy),
    "rotating rows": lambda copy: deltas(data(), copy),
    "sample weights": lambda copy: deltas(data(sample_weight=np.linspace(0.5, 2, N)), copy),
    "groups": lambda copy: deltas(data(), copy, groups=np.arange(N) % 5, sizes=(20, 40)),
    "reuse of a validation set": lambda copy: row_losses(validated(), copy),
    "reuse of rotating rows": lambda copy: row_losses(data(), copy),
    "anchor": lambda copy: np.array(collected(data(), copy, points=[0]).anchor.loss),
    "gain": lambda copy: numbers(
        uses.gain(data(), [1, 2, 3], at=30, model=model(copy), draws=4, progress=False)
    ),
    "an experiment": lambda copy: Trial.of(data(), model=model(copy), metric="brier", seed=0).score(
        np.arange(40)
    ),
}


@pytest.mark.parametrize("study", STUDIES)
def test_a_model_that_works_in_place_gives_the_numbers_of_one_that_copies(study):
    expected, found = (STUDIES[study](copy) for copy in (True, False))
    assert np.isfinite(expected).any()
    np.testing.assert_array_equal(found, expected)


def test_a_loss_cannot_change_the_rows_that_score():
    def sorting(y, proba):
        y.sort()
        return float(np.mean((y - proba[:, 1]) ** 2))

    with pytest.raises(apiece.EngineError, match="read-only"):
        apiece.collect(data(), model=model(copy=True), metric=sorting, **SETTINGS)
