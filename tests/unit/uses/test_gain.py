"""What picks do to a model: trained with and without them, on rows that are in neither."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import apiece
from apiece.errors import PlanError
from apiece.uses import gain


def line(n=400, n_val=0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=n)
    held = {"X_val": X[:n_val], "y_val": y[:n_val]} if n_val else {}
    return apiece.Dataset.from_arrays(X[n_val:], y[n_val:], kind="regression", **held)


def test_changes_are_those_of_training_with_and_without_the_picks_on_the_validation_rows():
    dataset = line(n_val=100)
    n = dataset.n_pool
    # With all others in every training set there is one draw only, which a refit repeats.
    found = gain(dataset, dataset.ids[:50], at=n, model=LinearRegression(), draws=2)
    scores = [
        LinearRegression()
        .fit(dataset.X[first:], dataset.y[first:])
        .score(dataset.X_val, dataset.y_val)
        for first in (50, 0)
    ]
    assert found.attrs["at"] == n - 50
    assert found.loc["r2", "before"] == pytest.approx(scores[0], abs=1e-9)
    assert found.loc["r2", "change"] == pytest.approx(scores[1] - scores[0], abs=1e-9)
    assert found.loc["r2", "high"] == pytest.approx(found.loc["r2", "low"], abs=1e-9)


def test_rows_with_wrong_labels_cost_accuracy_and_right_ones_bring_some():
    rng = np.random.default_rng(1)
    y = np.arange(600) % 2
    X = rng.normal(size=(600, 5)) + 0.7 * y[:, None]
    wrong = y.copy()
    wrong[:60] = 1 - y[:60]
    good = gain(apiece.Dataset.from_arrays(X, y), range(60), at=20)
    bad = gain(apiece.Dataset.from_arrays(X, wrong), range(60), at=20)
    assert good.loc["accuracy", "low"] > 0
    assert bad.loc["accuracy", "high"] < 0
    assert bad.loc["log_loss", "low"] > 0


def test_training_sets_leave_a_fifth_of_the_other_rows_to_score_on():
    assert gain(line(), range(100), at=10_000, draws=2).attrs["at"] == 240


@pytest.mark.parametrize(
    ("picks", "options", "said"),
    [
        ([9999], {}, "9999 is no point"),
        ([], {}, "there are no picks"),
        ([1], {"at": 0}, "expected at least one row"),
        ([1], {"draws": 1}, "two draws"),
        (range(390), {}, "Pass fewer picks"),
    ],
)
def test_what_cannot_be_tried_is_refused(picks, options, said):
    with pytest.raises(PlanError, match=said):
        gain(line(), picks, **{"at": 50, **options})
