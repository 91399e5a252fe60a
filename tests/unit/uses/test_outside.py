from __future__ import annotations

import numpy as np

from apiece.uses._outside import folds_of, forest_of_halves, outside


def test_a_row_is_judged_by_trees_that_have_not_seen_it_or_its_group():
    # Every row has features of its own and a random label: whoever saw it knows its label.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    everyone = np.ones(200, dtype=bool)
    own = forest_of_halves(X, y, everyone, 2, 0)[np.arange(200), y]
    assert abs(own.mean() - 0.5) < 0.06
    twice, labels = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    seen = forest_of_halves(twice, labels, np.ones(400, dtype=bool), 2, 0)
    assert seen[np.arange(400), labels].mean() > 0.6  # half of the twins are in the other half
    groups = np.repeat(np.arange(200).astype(str), 2)
    apart = forest_of_halves(twice, labels, np.ones(400, dtype=bool), 2, 0, groups)
    assert abs(apart[np.arange(400), labels].mean() - 0.5) < 0.06


def test_trusted_rows_train_and_are_not_predicted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] > 0).astype(int)
    fold = folds_of(y, 5, 0)
    fold[200:] = -1
    found = outside(X, y, fold, n_classes=2, seed=0)
    assert (found[:, 200:] == 0).all()
    assert (found[:, :200].argmax(axis=2) == y[:200]).mean() > 0.9
    assert np.allclose(found[:, :200].sum(axis=2), 1)
